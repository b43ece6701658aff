// durasim-workload: hash-table — a hash table of keys with values in the nodes; insertions unless percentages say otherwise
//
// The numbers of Hercules (TECS'23, Table 4) for its Hash Table cannot be read any more. The default value of 240 bytes makes
// the record as long as those of its Array Swap, 256 bytes, and an insertion modifies 7 lines: the node, the head of a
// chain, the allocator and the counter.
//
// The hashtable of TC ("search/insert a key-value pair in a hashtable", pairs of 64 bits, four threads) is --value-bytes 8
// --search-percent 50 --threads 4. PC of LAD ("modify values in a hash-table", 8 lines) is --value-bytes 432
// --update-percent 100: the seven lines of the node and the counter.
#include <cstdint>

#include "structures/hash_table.h"
#include "workloads/keyed.h"

namespace {

using durasim::Arguments;

struct Table {
    static constexpr std::uint64_t kind = 0x656C626174;  // "table"
    static constexpr const char* shards_name = "shards";
    static constexpr const char* parameter_name = "buckets";

    static std::uint64_t shards(const Arguments& arguments) { return arguments.shards; }
    static std::uint64_t parameter(const Arguments& arguments, std::uint64_t shards) {
        const std::uint64_t wanted = arguments.buckets != 0 ? arguments.buckets : arguments.populate + arguments.ops;
        return durasim::HashTable::entries_for(wanted, shards);
    }
    static std::uint64_t parameter_given(const Arguments& arguments) { return arguments.buckets; }
    static std::uint64_t parameter_of_all(std::uint64_t buckets, std::uint64_t shards) { return buckets * shards; }
    static void check_arguments(const Arguments&) {}
};

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<durasim::Keyed<durasim::HashTable, Table>>(argc, argv); }
