// durasim-workload: linked-list — sorted doubly linked lists of keys with values in the nodes; insertions unless percentages say otherwise
//
// Hercules (TECS'23, Table 4) reports 12.5 lines on average and 18 at most for an insertion into its Linked List, and does
// not say how its records look. Here an insertion modifies its node, the two neighbours (or an end of the list), the
// allocator and the counter; the default value of 488 bytes makes the node 8 lines long, which gives 12 in sum.
//
// A list has to be walked to the place of a key. So that a million insertions remain feasible there are many lists, each
// for 16 keys in the end.
#include <cstdint>

#include "structures/linked_lists.h"
#include "workloads/keyed.h"

namespace {

using durasim::Arguments;

struct Lists {
    static constexpr std::uint64_t kind = 0x7473696C;  // "list"
    static constexpr const char* shards_name = "shards";
    static constexpr const char* parameter_name = "lists";
    static constexpr std::uint64_t keys_per_list = 16;

    static std::uint64_t shards(const Arguments& arguments) { return arguments.shards; }
    static std::uint64_t parameter(const Arguments& arguments, std::uint64_t shards) {
        const std::uint64_t wanted = arguments.lists != 0 ? arguments.lists : (arguments.populate + arguments.ops) / keys_per_list;
        return durasim::LinkedLists::entries_for(wanted, shards);
    }
    static std::uint64_t parameter_given(const Arguments& arguments) { return arguments.lists; }
    static std::uint64_t parameter_of_all(std::uint64_t lists, std::uint64_t shards) { return lists * shards; }
    static void check_arguments(const Arguments&) {}
};

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<durasim::Keyed<durasim::LinkedLists, Lists>>(argc, argv); }
