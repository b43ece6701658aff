// durasim-workload: tpcc — TPC-C: New Order, Payment and Delivery on its nine tables, each operation one transaction
//
// The tables, their columns and contents and the three transactions are those of the TPC-C Standard Specification, Revision
// 5.11; the headers in tpcc/ name its clauses. Warehouses, districts, customers, items and stock are arrays of rows, each row
// on lines of its own; orders with their lines, rows of NEW-ORDER and HISTORY come from the allocator, and each district has a
// directory of them. --populate says how many transactions load the tables: each loads a row of STOCK with its share of all
// other tables, so that a full warehouse takes --populate 100000; smaller tables keep the specification's proportions.
//
// A New Order of n lines modifies n lines of STOCK, n of ORDER-LINE and one each of ORDER, NEW-ORDER, the district, the
// directory and the allocator: 14 to 36 lines, 25 on average, where lines for the same item are one (LAD, MICRO'19, Table
// 2: 10 to 35). Operations are New Orders alone unless percentages say otherwise, as LAD and Hercules (TECS'23) measure; the
// specification has 45 of them to 43 Payments and 4 Deliveries. A Payment modifies 5 lines on average: 4, and 8 more where
// C_DATA changes. A Delivery takes the oldest new order of all ten districts in one transaction; clause 2.7.2.1
// allows one to ten: 140 lines. So a log of the default size is large enough for all of them.
//
// Differences from the specification: one New Order in a hundred has an item that does not exist, as clause 2.4.1.4 wants,
// but items are looked up before the first write instead of in between, since not every machine can take stores back; such
// an operation changes no more than the district's count of operations. Dates are numbers. There are no terminals, no think
// times and no Order-Status and Stock-Level, which change nothing.
//
// Threads are terminals of warehouse `thread mod warehouses`. A warehouse has a lock and an arena; remote stock and remote
// customers take the lock of their warehouse too, in ascending order. Several threads each count their operations on a line
// of their own; those of a single one are counted by the districts, in rows that change anyway.
#include "workloads/tpcc/workload.h"

int main(int argc, char** argv) { return durasim::workload_main<Tpcc>(argc, argv); }
