// The response to an abort by the machine: a conflict is tried again, everything else ends the program. A
// machine that has no identifier for one more transaction calls that a conflict too: another one has to end first.
#ifndef DURASIM_RETRY_H
#define DURASIM_RETRY_H

#include <cstdint>

#include "durasim/error.h"
#include "durasim/lock.h"
#include "durasim/random.h"

namespace durasim {

// Causes that durasim_tx_begin returns: the codes a program gives to durasim_tx_abort, then those of the machine.
inline constexpr std::uint64_t abort_cause_requested_max = 0xff;
inline constexpr std::uint64_t abort_cause_conflict = 0x100;
inline constexpr std::uint64_t abort_cause_capacity = 0x200;
inline constexpr std::uint64_t abort_cause_out_of_memory = 0x300;

// The attempts of one thread. It is in ordinary memory on purpose: an abort restores registers, and this has to stay.
class Retry {
public:
    // Threads with different numbers wait for different times.
    constexpr explicit Retry(std::uint64_t thread = 0) : random_(thread) {}

    // Before the first attempt.
    void start() { attempts_ = 0; }

    // After an abort with `cause`: returns, after a while, if the transaction shall be tried again.
    [[gnu::noinline]] void again(std::uint64_t cause) {
        using Long = unsigned long long;
        if (cause == abort_cause_capacity) {
            fail(exit_runtime, "durasim: a transaction is too large for the machine, which has no room for its stores (cause %#llx)",
                 static_cast<Long>(cause));
        }
        if (cause == abort_cause_out_of_memory) {
            fail(exit_runtime, "durasim: the machine has no persistent memory left to keep a transaction in (cause %#llx)",
                 static_cast<Long>(cause));
        }
        if (cause != abort_cause_conflict) {
            fail(exit_runtime, "durasim: the machine aborted a transaction with cause %#llx, which this program does not know",
                 static_cast<Long>(cause));
        }
        ++aborts_total_;
        if (++attempts_ == attempts_max) {
            fail(exit_runtime, "durasim: the machine aborted the same transaction %llu times for conflicts with other cores",
                 static_cast<Long>(attempts_max));
        }
        // No other transaction aborts one that runs while the others wait: the wait grows until it is longer than transactions are,
        // a quarter of a million pauses at most.
        const std::uint64_t doublings = attempts_ < doublings_max ? attempts_ : doublings_max;
        for (std::uint64_t wait = random_.below(pauses_first << doublings); wait > 0; --wait) detail::pause_hint();
    }

    // Conflicts of this thread so far.
    std::uint64_t aborts_total() const { return aborts_total_; }

private:
    static constexpr std::uint64_t attempts_max = 1'000'000;
    static constexpr std::uint64_t pauses_first = 8;
#if defined(DURASIM_TEST_HOOKS)
    static constexpr std::uint64_t doublings_max = 2;  // the aborts of a test have no other transaction to wait for
#else
    static constexpr std::uint64_t doublings_max = 15;
#endif

    std::uint64_t attempts_ = 0;
    std::uint64_t aborts_total_ = 0;
    Random random_;
};

}  // namespace durasim

#endif
