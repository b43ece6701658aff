// The attempts of a thread to run a transaction in hardware, and the single global lock behind them (thesis, section 3.1.1).
//
// A transaction is tried in hardware so many times, whatever it aborts for. Each attempt waits until nobody holds the lock,
// and has the lock in its read set: whoever takes it aborts all attempts. After the last one the thread takes the lock itself.
// If so asked, attempts that end while the lock is held are not counted, and a thread pauses behind an attempt that a conflict has ended.
#ifndef DURASIM_RUNTIMES_HTM_ATTEMPTS_H
#define DURASIM_RUNTIMES_HTM_ATTEMPTS_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "durasim/error.h"
#include "durasim/htm.h"
#include "durasim/lock.h"
#include "durasim/markers.h"
#include "runtimes/planted.h"

namespace durasim {

// How a transaction runs.
enum class HtmPath : std::uint8_t {
    hardware,    // as a hardware transaction
    lock,        // by software, with the global lock
    rolled_back,  // not at all: its body has said so in a hardware transaction
};

// What a thread has counted. `explicitly` counts attempts that found the lock held, and bodies that rolled a transaction back.
struct HtmCounts {
    std::uint64_t hardware = 0, lock = 0;
    std::uint64_t conflict = 0, capacity = 0, explicitly = 0, nested = 0, other = 0;

    void add(const HtmCounts& counts) {
        hardware += counts.hardware, lock += counts.lock;
        conflict += counts.conflict, capacity += counts.capacity, explicitly += counts.explicitly, nested += counts.nested, other += counts.other;
    }
};

// What all threads do alike.
struct AttemptOptions {
    unsigned attempts = 10;  // of a transaction (thesis, section 4.1)
    bool counts_lock_aborts = true;  // whether an attempt that ends while another thread holds the lock is one of them
    // Behind the n-th attempt, if a conflict has ended it, a thread waits for a random number of pauses of the core, at most n times so many.
    unsigned back_off_pauses = 0;
};

class HtmAttempts {
public:
    static constexpr unsigned code_lock_held = 0xff, code_rolled_back = 0xfe;

    HtmCounts counts;

    static inline AttemptOptions options;

    // Begins a transaction of the calling thread. Before each attempt, and around the taking of the lock, calls prepare(status) with the
    // status that the attempt before has left, or 0, and announce() once it waits for nobody any more. Returns inside of the transaction, or
    // with HtmPath::rolled_back.
    template <class Prepare, class Announce>
    [[gnu::always_inline]] HtmPath begin(Prepare&& prepare, Announce&& announce) {
        std::uint64_t status = 0;
        for (unsigned attempt = 0; attempt < options.attempts;) {
            prepare(status);
            await_free();
            announce();
            order_announcement();
            status = htm_begin();
            if (status == htm_started) {
                if (!planted(Fault::lock_not_subscribed) && lock_.is_held()) htm_abort<code_lock_held>();
                if (planted(Fault::ended_where_it_begins)) htm_end();
                return HtmPath::hardware;
            }
            count(status);
            if ((status & htm_explicit) != 0 && htm_code(status) == code_rolled_back) return HtmPath::rolled_back;
            if (options.counts_lock_aborts || !lock_.is_held()) ++attempt;
            if (options.back_off_pauses != 0 && (status & htm_conflict) != 0) back_off(attempt);
        }
        // Room comes before the lock: nobody waits for the replayer while others wait for this thread.
        prepare(status);
        if (planted(Fault::log_made_while_waiting)) note_whether_held();
        if (!planted(Fault::lock_not_taken)) lock_.lock();
        holds_lock_ = true;
        durasim_situation_begin(DURASIM_SITUATION_FALL_BACK_LOCK);
        // No attempt lies between the two.
        prepare(0);
        announce();
        return HtmPath::lock;
    }

    // The body of a hardware transaction rolls it back: control continues behind its begin.
    [[gnu::always_inline]] void roll_back() { htm_abort<code_rolled_back>(); }

    // The hardware transaction commits.
    [[gnu::always_inline]] void end() {
        if (!planted(Fault::ended_where_it_begins)) htm_end();
        ++counts.hardware;
    }

#if defined(DURASIM_PLANTED)
    // Whether another thread had the lock when this one came to take it.
    static inline thread_local bool has_waited = false;
#else
    static constexpr bool has_waited = false;
#endif

    // The transaction under the lock has committed.
    void committed_under_lock() { ++counts.lock; }

    void unlock() {
        durasim_situation_end(DURASIM_SITUATION_FALL_BACK_LOCK);
        holds_lock_ = false;
        if (!planted(Fault::lock_not_taken)) lock_.unlock();
    }

    // The program exits: the calling thread takes the lock and keeps it, so that no transaction begins or commits any more. False if the
    // thread that holds it does not release it: it may be one that exits too.
    bool keep_lock() {
        detail::Backoff backoff;
        for (unsigned look = 0; look < looks_at_exit && !holds_lock_; ++look) {
            holds_lock_ = lock_.try_lock();
            if (!holds_lock_) backoff.wait();
        }
        return holds_lock_;
    }
    // How often a thread that exits looks for what others have to end first.
    static constexpr unsigned looks_at_exit = 1 << 16;

private:
    static void note_whether_held() {
#if defined(DURASIM_PLANTED)
        has_waited = lock_.is_held();
#endif
    }

    // What announce() has stored has to be visible before the transaction begins: htm.begin waits for that, xbegin does not (Intel SDM, volume 1, RTM
    // memory ordering).
    [[gnu::always_inline]] static void order_announcement() {
#if !defined(__riscv)
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
    }

    void await_free() const {
        for (detail::Backoff backoff; lock_.is_held(); backoff.wait()) {
            if (holds_lock_) refuse_behind_exit();
        }
    }

    // A thread that waits for the lock that it keeps would wait indefinitely. The program exits already, so no other handler runs.
    [[noreturn, gnu::cold, gnu::noinline]] static void refuse_behind_exit() {
        std::fputs("durasim: a transaction begins after the runtime has ended, while the program exits\n", stderr);
        std::_Exit(exit_runtime);
    }

    void count(std::uint64_t status) {
        if ((status & htm_nested) != 0) {
            ++counts.nested;
        } else if ((status & htm_explicit) != 0) {
            ++counts.explicitly;
        } else if ((status & htm_conflict) != 0) {
            ++counts.conflict;
        } else if ((status & htm_capacity) != 0) {
            ++counts.capacity;
        } else {
            ++counts.other;
        }
    }

    // Threads that aborted each other would meet again if all waited for the same time.
    [[gnu::noinline]] void back_off(unsigned attempt) {
        if (random_ == 0) random_ = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(this) >> 4) | 1;
        random_ ^= random_ << 13, random_ ^= random_ >> 17, random_ ^= random_ << 5;
        for (std::uint64_t pauses = random_ % (std::uint64_t{attempt} * options.back_off_pauses + 1); pauses != 0; --pauses) detail::pause_hint();
    }

    bool holds_lock_ = false;
    std::uint32_t random_ = 0;  // 0: has yet to begin
    static inline Lock lock_;
};

}  // namespace durasim

#endif
