// durasim-workload: btree — a B+-tree into which unique random keys are inserted, 8-byte keys and values, one transaction each
//
// A node is a header of 16 bytes, an array of keys and an array of values or children, all sorted in place, so that an
// insertion into a node of n keys moves n / 2 keys and n / 2 values on average. The default node of 5440 bytes holds 339
// keys: a transaction then modifies 34.2 lines on average (256 bytes: 5.4, 1 KiB: 9.8, 4 KiB: 27). Hercules (TECS'23,
// Table 4) reports 34.4 lines for its B+-tree and does not say how its nodes look; --node-bytes 5440 comes close to that.
//
// The btree of TC ("search/insert nodes in a B+tree", pairs of 64 bits, four threads) is --search-percent 50
// --node-bytes 64 --threads 4.
//
// Several threads share several trees, each with a range of the keys, a lock and an arena of its own.
#include <cstdint>

#include "structures/bplus_tree.h"
#include "workloads/keyed.h"

namespace {

using durasim::Arguments;

struct Btree {
    static constexpr std::uint64_t kind = 0x6565727462;  // "btree"
    static constexpr const char* shards_name = "trees";
    static constexpr const char* parameter_name = "node-bytes";

    static std::uint64_t shards(const Arguments& arguments) { return arguments.trees; }
    static std::uint64_t parameter(const Arguments& arguments, std::uint64_t) { return arguments.node_bytes; }
    static std::uint64_t parameter_given(const Arguments& arguments) { return arguments.node_bytes; }
    static std::uint64_t parameter_of_all(std::uint64_t node_bytes, std::uint64_t) { return node_bytes; }

    static void check_arguments(const Arguments& arguments) {
        if (arguments.node_bytes % durasim::line_bytes != 0) {
            durasim::fail(durasim::exit_usage, "btree: --node-bytes has to be a multiple of 64, not %llu",
                          static_cast<durasim::Long>(arguments.node_bytes));
        }
    }
};

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<durasim::Keyed<durasim::BPlusTree, Btree>>(argc, argv); }
