// durasim-workload: tpcc-any — TPC-C whose operations take place in any warehouse, as SPHT-eADR measures it
//
// The TPC-C of SPHT-eADR (thesis, Lisboa 2022, section 4.3.3): 95 % Payments, 3 % Deliveries and 2 % New Orders in 32
// warehouses. It is that of tpcc.cpp, but threads are terminals of all warehouses: each operation draws the one where it takes
// place. A program of its own, so that the other is what it was.
#define DURASIM_TPCC_ANY_WAREHOUSE
#include "workloads/tpcc/workload.h"

int main(int argc, char** argv) { return durasim::workload_main<Tpcc>(argc, argv); }
