// durasim-workload: pinspect-arraylistx — ArrayListX of P-INSPECT: an array changed in place by failure-atomic regions, over objects
#include <cstdint>

#include "structures/object_lists.h"
#include "workloads/object_lists.h"

namespace {

struct ArrayListX {
    static constexpr std::uint64_t kind = 0x7874736C727261;  // "arrlstx"
};

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<durasim::ObjectLists<durasim::ObjectArrayListX, ArrayListX>>(argc, argv); }
