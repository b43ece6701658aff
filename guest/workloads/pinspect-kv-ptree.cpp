// durasim-workload: pinspect-kv-ptree — key-value server over a B+ tree whose nodes are all durable (pTree of P-INSPECT), over objects
#include <cstdint>

#include "structures/object_bplus_tree.h"
#include "workloads/kv_server.h"

namespace {

using durasim::Arguments;

struct PTree {
    static constexpr std::uint64_t kind = 0x6565727470766B;

    static std::uint64_t parameter(const Arguments&, std::uint64_t) { return 0; }
};

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<durasim::KvServer<durasim::ObjectBPlusTree, PTree>>(argc, argv); }
