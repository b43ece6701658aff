// durasim-workload: pinspect-kv-hptree — key-value server over a B+ tree with durable leaves and inner nodes in ordinary memory (HpTree of P-INSPECT), over objects
#include <cstdint>

#include "structures/object_hybrid_tree.h"
#include "workloads/kv_server.h"

namespace {

using durasim::Arguments;

struct HpTree {
    static constexpr std::uint64_t kind = 0x656572747068766B;

    static std::uint64_t parameter(const Arguments&, std::uint64_t) { return 0; }
};

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<durasim::KvServer<durasim::ObjectHybridTree, HpTree>>(argc, argv); }
