// durasim-workload: pinspect-bplustree — BPlusTree of P-INSPECT: leaves with unsorted slots, as IntelKV has them, over objects
#include <cstdint>

#include "structures/object_bplus_tree.h"
#include "workloads/object_maps.h"

namespace {

using durasim::Arguments;

struct BPlusTree {
    static constexpr std::uint64_t kind = 0x73756C7062;  // "bplus"

    static std::uint64_t parameter(const Arguments&, std::uint64_t) { return 0; }
};

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<durasim::ObjectMaps<durasim::ObjectBPlusTree, BPlusTree>>(argc, argv); }
