// What threads of NV-HTM and SPHT tell each other, in the DRAM (thesis, Algorithms 1 and 3: ts, isUpd, marked).
#ifndef DURASIM_RUNTIMES_TIMED_THREADS_H
#define DURASIM_RUNTIMES_TIMED_THREADS_H

#include <cstdint>

#include "durasim/layout.h"
#include "runtimes/store.h"

namespace durasim {

// A transaction of a thread that has committed in hardware, and where it lies in its log: with forward links its end, else its begin.
// Timestamp 0: none.
struct Committed {
    std::uint64_t timestamp = 0, place = 0;
};
// Of each thread so many are kept, the newest.
inline constexpr std::uint64_t committed_kept = 2;

struct alignas(line_bytes) TimedThread {
    // In front of this bit: the timestamp of its transaction, or a lower bound of it. The bit: nobody has to wait for it.
    static constexpr std::uint64_t persisted = std::uint64_t{1} << 63;

    std::uint64_t timestamp = persisted;
    std::uint64_t is_update = 0;  // the transaction has committed in hardware, and has entries
    std::uint64_t durable = 0;    // everything up to this timestamp is durable
    std::uint64_t position = 0;   // where its log ends
    Committed committed[committed_kept];  // with links alone
    alignas(line_bytes) std::uint64_t released = 0;  // up to here its log may be used again
    std::uint64_t committed_count = 0;
};

inline TimedThread timed_threads[threads_max];
// Those that may have transactions.
inline std::uint64_t timed_threads_count = 0;

// Brings what all threads tell to the core, all lines at once. Who then reads one word after the other, each before the next, does not wait
// for each line, as it would not on a processor that orders all loads by itself.
inline void look_at_threads() {
    std::uint64_t all = 0;
    for (std::uint64_t i = 0; i < timed_threads_count; ++i) all |= get(&timed_threads[i].timestamp);
    __asm__ volatile("" : : "r"(all));
}

// Up to this timestamp all transactions are durable, and in their logs.
inline std::uint64_t durable_timestamp() {
    std::uint64_t last = 0;
    for (std::uint64_t i = 0; i < timed_threads_count; ++i) {
        const std::uint64_t durable = get_first(&timed_threads[i].durable);
        if (durable > last) last = durable;
    }
    return last;
}

}  // namespace durasim

#endif
