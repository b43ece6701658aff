// durasim-workload: pinspect-arraylist — ArrayList of P-INSPECT: an insertion or removal copies the array, over objects
#include <cstdint>

#include "structures/object_lists.h"
#include "workloads/object_lists.h"

namespace {

struct ArrayList {
    static constexpr std::uint64_t kind = 0x7473696C727261;  // "arrlist"
};

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<durasim::ObjectLists<durasim::ObjectArrayList, ArrayList>>(argc, argv); }
