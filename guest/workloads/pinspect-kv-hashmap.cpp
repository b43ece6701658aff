// durasim-workload: pinspect-kv-hashmap — key-value server over a hash map (hashmap of P-INSPECT), over objects
#include <cstdint>

#include "structures/object_hash_map.h"
#include "workloads/kv_server.h"

namespace {

using durasim::Arguments;

struct HashMap {
    static constexpr std::uint64_t kind = 0x68736168766B;

    static std::uint64_t parameter(const Arguments& arguments, std::uint64_t shards) { return (arguments.buckets != 0 ? arguments.buckets : arguments.populate) / shards + 1; }
};

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<durasim::KvServer<durasim::ObjectHashMap, HashMap>>(argc, argv); }
