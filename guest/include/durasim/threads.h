// Threads that stay on a core of their own.
#ifndef DURASIM_THREADS_H
#define DURASIM_THREADS_H

#include <pthread.h>
#include <sched.h>

#include <cstring>
#include <memory>
#include <type_traits>

#include "durasim/error.h"

namespace durasim {

// The cores that the calling thread may run on.
inline cpu_set_t allowed_cores() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) fail(exit_runtime, "durasim: cannot learn which cores there are");
    return allowed;
}

inline unsigned core_count() {
    const cpu_set_t allowed = allowed_cores();
    return static_cast<unsigned>(CPU_COUNT(&allowed));
}

// Binds the calling thread to the `number`-th of `allowed`; where there are fewer, they are dealt in turn.
inline void pin_to_core(unsigned number, const cpu_set_t& allowed) {
    unsigned skip = number % static_cast<unsigned>(CPU_COUNT(&allowed));
    int core = 0;
    while (!CPU_ISSET(core, &allowed) || skip-- > 0) ++core;
    cpu_set_t chosen;
    CPU_ZERO(&chosen);
    CPU_SET(core, &chosen);
    if (::sched_setaffinity(0, sizeof chosen, &chosen) != 0) fail(exit_runtime, "durasim: cannot bind a thread to core %d", core);
}

// Runs body(0) to body(count - 1), each on a thread and core of its own, the first on the calling thread. Returns when all
// have returned; the calling thread then runs where it could before.
template <class Body>
void run_threads(unsigned count, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    struct Start {
        Plain* body;
        const cpu_set_t* allowed;
        unsigned number;
        pthread_t thread;
    };
    auto entry = [](void* argument) -> void* {
        auto* start = static_cast<Start*>(argument);
        pin_to_core(start->number, *start->allowed);
        (*start->body)(start->number);
        return nullptr;
    };
    auto starts = std::make_unique<Start[]>(count);
    const cpu_set_t allowed = allowed_cores();
    for (unsigned i = count; i-- > 0;) {
        starts[i] = {&body, &allowed, i, {}};
        if (i == 0) {
            entry(&starts[0]);
        } else if (const int error = ::pthread_create(&starts[i].thread, nullptr, entry, &starts[i])) {
            fail(exit_runtime, "durasim: cannot start thread %u of %u: %s", i, count, std::strerror(error));
        }
    }
    for (unsigned i = 1; i < count; ++i) ::pthread_join(starts[i].thread, nullptr);
    ::sched_setaffinity(0, sizeof allowed, &allowed);
}

}  // namespace durasim

#endif
