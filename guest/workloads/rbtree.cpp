// durasim-workload: rbtree — a red-black tree of keys with values in the nodes; insertions unless percentages say otherwise
//
// Hercules (TECS'23, Table 4) reports 50.6 lines for an insertion into its RB-Tree and does not say how its records look.
// An insertion of a node of one line modifies 6.1 lines here: the node, the allocator, the counter, and three nodes that get
// other children or colours. The default value of 2840 bytes makes the node 45 lines long, and a transaction modifies 50.1.
//
// The rbtree of TC ("search/insert nodes in a red-black tree", pairs of 64 bits, four threads) is --value-bytes 8
// --search-percent 50 --threads 4. The RBT of LAD (insertions and removals, 2 to 10 lines, a tree that fits into the
// caches) is --value-bytes 8 --erase-percent 50: 6.3 lines on average.
#include <cstdint>

#include "structures/red_black_tree.h"
#include "workloads/keyed.h"

namespace {

using durasim::Arguments;

struct RbTree {
    static constexpr std::uint64_t kind = 0x656572746272;  // "rbtree"
    static constexpr const char* shards_name = "shards";
    static constexpr const char* parameter_name = nullptr;

    static std::uint64_t shards(const Arguments& arguments) { return arguments.shards; }
    static std::uint64_t parameter(const Arguments&, std::uint64_t) { return 0; }
    static std::uint64_t parameter_given(const Arguments&) { return 0; }
    static std::uint64_t parameter_of_all(std::uint64_t, std::uint64_t) { return 0; }
    static void check_arguments(const Arguments&) {}
};

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<durasim::Keyed<durasim::RedBlackTree, RbTree>>(argc, argv); }
