// How a software runtime makes something durable, and the header of a fresh pool as the first thing.
#ifndef DURASIM_RUNTIMES_FENCES_H
#define DURASIM_RUNTIMES_FENCES_H

#include <cstdint>

#include "durasim/backend.h"
#include "durasim/error.h"
#include "durasim/layout.h"
#include "durasim/persist.h"
#include "runtimes/store.h"

namespace durasim {

// By cbo.clean and a fence, or where the caches are durable by a full fence alone.
struct Fences {
#if defined(DURASIM_CACHES_ARE_DURABLE_)
    static constexpr bool flushes = false;
#else
    static constexpr bool flushes = true;
#endif

    static void clean([[maybe_unused]] const void* place) {
        if constexpr (flushes) durasim_clean(place);
    }
    static void fence() {
        if constexpr (flushes) {
            durasim_persist_fence();
        } else {
            durasim_full_fence();
        }
    }

    // The magic number comes last: without it there is no pool.
    static void format(PoolHeader* header, const PoolHeader& contents) {
        auto* to = reinterpret_cast<std::uint64_t*>(header);
        auto* from = reinterpret_cast<const std::uint64_t*>(&contents);
        for (unsigned i = 1; i < sizeof(PoolHeader) / 8; ++i) put(to + i, from[i]);
        clean(header);
        fence();
        put(to, from[0]);
        clean(header);
        fence();
    }
};

// Ends the program if the pool has no log for a thread of this number.
inline void refuse_thread_without_log(const PoolHeader& header, std::uint64_t number) {
    if (number < header.logs()) return;
    fail(exit_usage, "durasim: thread %llu has no log: the pool was made for %llu threads", static_cast<unsigned long long>(number),
         static_cast<unsigned long long>(header.logs()));
}

// The checksum of what recovery relies on, word by word. The first word is mixed like the others: if it were where the sum
// begins, a number and a place that count up together would cancel out.
struct Checksum {
    std::uint64_t sum = 0;
    explicit Checksum(std::uint64_t first) { take(first); }
    void take(std::uint64_t word) { sum = (sum ^ word) * 0x9E3779B97F4A7C15u + (sum >> 29); }
};

}  // namespace durasim

#endif
