// A limit on how many threads have a transaction open at once (thesis, section 5.2: rate-limiting that tunes itself, so that throughput does
// not fall with many threads).
//
// The thesis leaves the method open. Ours climbs: after each window of transactions the limit moves by a quarter, on in the same direction if the
// window took no more time than the one before, else back.
#ifndef DURASIM_RUNTIMES_ADMISSION_H
#define DURASIM_RUNTIMES_ADMISSION_H

#include <cstdint>

#include "durasim/lock.h"

namespace durasim {

class Admission {
public:
    // At most `limit` threads, of `threads`; 0: all. If it tunes itself, that is where it begins.
    void start(std::uint64_t limit, bool tunes, std::uint64_t threads) {
        is_limited_ = limit != 0 || tunes;
        tunes_ = tunes;
        threads_ = threads;
        limit_ = limit == 0 || limit > threads ? threads : limit;
    }

    // Waits until the calling thread may begin a transaction.
    [[gnu::always_inline]] void enter() {
        if (is_limited_) wait();
    }

    // Its transaction has ended; `now` counts cycles.
    template <class Clock>
    [[gnu::always_inline]] void leave(bool has_committed, Clock&& now) {
        if (!is_limited_) return;
        __atomic_fetch_sub(&inside_, 1, __ATOMIC_RELEASE);
        if (!tunes_ || !has_committed) return;
        if (__atomic_add_fetch(&committed_, 1, __ATOMIC_RELAXED) % (transactions_of_window * threads_) == 0) tune(now());
    }

    std::uint64_t limit() const { return __atomic_load_n(&limit_, __ATOMIC_RELAXED); }

private:
    // Of each thread, on average.
    static constexpr std::uint64_t transactions_of_window = 8;

    [[gnu::noinline]] void wait() {
        for (detail::Backoff backoff;; backoff.wait()) {
            std::uint64_t inside = __atomic_load_n(&inside_, __ATOMIC_RELAXED);
            if (inside >= limit()) continue;
            if (__atomic_compare_exchange_n(&inside_, &inside, inside + 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
        }
    }

    // Windows end far from each other; two threads that end one at once leave a limit that is off by one.
    [[gnu::noinline]] void tune(std::uint64_t now) {
        const std::uint64_t cycles = now - window_begin_;
        if (last_cycles_ != 0 && cycles > last_cycles_) rises_ = !rises_;
        const std::uint64_t old = limit(), step = old < 8 ? 1 : old / 4;
        const std::uint64_t next = rises_ ? old + step : old > step ? old - step : 1;
        __atomic_store_n(&limit_, next < threads_ ? next : threads_, __ATOMIC_RELAXED);
        if (next == 1 || next >= threads_) rises_ = next == 1;
        last_cycles_ = window_begin_ == 0 ? 0 : cycles;
        window_begin_ = now;
    }

    // Read by all at each transaction.
    alignas(64) bool is_limited_ = false;
    bool tunes_ = false;
    std::uint64_t threads_ = 1, limit_ = 1;
    std::uint64_t window_begin_ = 0, last_cycles_ = 0;
    bool rises_ = false;
    // Written by all.
    alignas(64) std::uint64_t inside_ = 0;
    alignas(64) std::uint64_t committed_ = 0;
};

}  // namespace durasim

#endif
