// durasim-workload: pinspect-hashmap — HashMap of P-INSPECT: chained nodes and boxed values, over objects
#include <cstdint>

#include "structures/object_hash_map.h"
#include "workloads/object_maps.h"

namespace {

using durasim::Arguments;

struct HashMap {
    static constexpr std::uint64_t kind = 0x70616D68736168;  // "hashmap"

    static std::uint64_t parameter(const Arguments& arguments, std::uint64_t shards) {
        const std::uint64_t wanted = arguments.buckets != 0 ? arguments.buckets : arguments.populate + arguments.ops / 4;
        return wanted / shards + 1;
    }
};

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<durasim::ObjectMaps<durasim::ObjectHashMap, HashMap>>(argc, argv); }
