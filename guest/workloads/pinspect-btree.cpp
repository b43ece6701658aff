// durasim-workload: pinspect-btree — BTree of P-INSPECT: values in all nodes, changed nodes are copied, over objects
#include <cstdint>

#include "structures/object_btree.h"
#include "workloads/object_maps.h"

namespace {

using durasim::Arguments;

struct BTree {
    static constexpr std::uint64_t kind = 0x6565727462;  // "btree"

    static std::uint64_t parameter(const Arguments&, std::uint64_t) { return 0; }
};

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<durasim::ObjectMaps<durasim::ObjectBTree, BTree>>(argc, argv); }
