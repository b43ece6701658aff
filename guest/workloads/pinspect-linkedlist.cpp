// durasim-workload: pinspect-linkedlist — LinkedList of P-INSPECT: doubly linked nodes and boxed elements, over objects
#include <cstdint>

#include "structures/object_lists.h"
#include "workloads/object_lists.h"

namespace {

struct LinkedList {
    static constexpr std::uint64_t kind = 0x7473696C6B6E6C;  // "lnklist"
};

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<durasim::ObjectLists<durasim::ObjectLinkedList, LinkedList>>(argc, argv); }
