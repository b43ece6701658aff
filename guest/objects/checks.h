// The checks of accesses, for those who move objects and the pointer update thread: software (autopersist.h), or hardware with
// its filters (p_inspect.h, filters.h).
#ifndef DURASIM_OBJECTS_CHECKS_H
#define DURASIM_OBJECTS_CHECKS_H

#include "durasim/backend.h"

#if defined(DURASIM_CHECKED_ACCESSES_)

#include "objects/filters.h"

namespace durasim::objects {
using Checks = Filters;
}

#else

#include <vector>

#include "objects/heap.h"
#include "objects/threads.h"

namespace durasim::objects {

// Checks in software keep no filters; filters.h says when these functions are called.
class Checks {
public:
    static constexpr bool in_hardware = false;

    static void attach(const Heap&) {}
    static void enter_thread(const Heap&) {}
    static void begin_move() {}
    static void end_move() {}
    static void before_copying(Heap&, const std::vector<Object*>&, bool) {}
    static void copy(const Object*, const Object*) {}
    static void before_forwarding(Heap&, Object*) {}
    static void before_fence() {}
    static void take_forwarders() {}
    static void begin_sweep(Heap&, Thread&) {}
    static void before_safepoints() {}
    static void end_sweep() {}
    static void none_forwards() {}
};

}  // namespace durasim::objects

#endif

#endif
