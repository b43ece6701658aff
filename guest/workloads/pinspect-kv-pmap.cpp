// durasim-workload: pinspect-kv-pmap — key-value server over a map that copies paths (pmap of P-INSPECT), over objects
#include <cstdint>

#include "structures/object_path_map.h"
#include "workloads/kv_server.h"

namespace {

using durasim::Arguments;

struct PMap {
    static constexpr std::uint64_t kind = 0x70616D70766B;

    static std::uint64_t parameter(const Arguments&, std::uint64_t) { return 0; }
};

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<durasim::KvServer<durasim::ObjectPathMap, PMap>>(argc, argv); }
