// Locks and barriers in ordinary memory, for threads that share persistent data.
//
// A thread takes its locks before a transaction begins and releases them when the commit has returned: the next holder
// then finds durable data only, and a recovery never has to undo two transactions over the same place. Waiting is bounded
// spinning, then a futex; a thread must not wait inside a transaction.
#ifndef DURASIM_LOCK_H
#define DURASIM_LOCK_H

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <cstdint>

namespace durasim {

namespace detail {

// Informs the core that the thread waits for another (Zihintpause: a HINT, FENCE W,0).
inline void pause_hint() {
#if defined(__riscv)
    __asm__ volatile(".insn 0x0100000f" : : : "memory");
#else
    __asm__ volatile("" : : : "memory");
#endif
}

// Waits that grow: pauses of the core first, then the core is left to other threads, as one of them may be awaited.
class Backoff {
public:
    void wait() {
        if (pauses_ > pauses_max) return void(::sched_yield());
        for (unsigned i = 0; i < pauses_; ++i) pause_hint();
        pauses_ *= 2;
    }

private:
    static constexpr unsigned pauses_max = 256;
    unsigned pauses_ = 1;
};

// Sleeps until another thread wakes `word`, unless it is no longer `seen`. May return early.
inline void futex_wait(std::uint32_t* word, std::uint32_t seen) {
    ::syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, nullptr);
}

inline void futex_wake(std::uint32_t* word, int threads) { ::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads); }

}  // namespace detail

// A lock with a line of its own. Taking it free and giving it back without a waiter is one atomic instruction each.
class alignas(64) Lock {
public:
    void lock() {
        std::uint32_t expected = free;
        if (!__atomic_compare_exchange_n(&state_, &expected, held, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) lock_slowly();
    }

    // False if it is held.
    bool try_lock() {
        std::uint32_t expected = free;
        return __atomic_compare_exchange_n(&state_, &expected, held, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
    }

    void unlock() {
        if (__atomic_exchange_n(&state_, free, __ATOMIC_RELEASE) == awaited) detail::futex_wake(&state_, 1);
    }

    // Whether some thread holds it.
    bool is_held() const { return __atomic_load_n(&state_, __ATOMIC_RELAXED) != free; }

private:
    // Awaited: held, and a thread may be asleep. Ulrich Drepper, "Futexes Are Tricky" (2011), section 5.
    static constexpr std::uint32_t free = 0, held = 1, awaited = 2;
    static constexpr unsigned spins_max = 128;
    static constexpr unsigned pauses_max = 64;

    [[gnu::noinline]] void lock_slowly() {
        unsigned pauses = 1;
        for (unsigned spin = 0; spin < spins_max; ++spin) {
            if (__atomic_load_n(&state_, __ATOMIC_RELAXED) == free) {
                std::uint32_t expected = free;
                if (__atomic_compare_exchange_n(&state_, &expected, held, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
            }
            for (unsigned i = 0; i < pauses; ++i) detail::pause_hint();
            if (pauses < pauses_max) pauses *= 2;
        }
        while (__atomic_exchange_n(&state_, awaited, __ATOMIC_ACQUIRE) != free) detail::futex_wait(&state_, awaited);
    }

    std::uint32_t state_ = free;
};

// All threads wait here for the last one, again and again.
class alignas(64) Barrier {
public:
    // `spins` are the looks a thread takes before it sleeps.
    explicit Barrier(unsigned threads, unsigned spins = 256) : threads_(threads), spins_(spins) {}

    void wait() {
        const std::uint32_t round = __atomic_load_n(&round_, __ATOMIC_ACQUIRE);
        if (__atomic_add_fetch(&arrived_, 1, __ATOMIC_ACQ_REL) == threads_) {
            __atomic_store_n(&arrived_, 0, __ATOMIC_RELAXED);
            __atomic_store_n(&round_, round + 1, __ATOMIC_SEQ_CST);
            if (__atomic_load_n(&asleep_, __ATOMIC_SEQ_CST) != 0) detail::futex_wake(&round_, INT_MAX);
            return;
        }
        for (unsigned spin = 0; spin < spins_; ++spin) {
            if (__atomic_load_n(&round_, __ATOMIC_ACQUIRE) != round) return;
            detail::pause_hint();
        }
        __atomic_add_fetch(&asleep_, 1, __ATOMIC_SEQ_CST);
        while (__atomic_load_n(&round_, __ATOMIC_SEQ_CST) == round) detail::futex_wait(&round_, round);
        __atomic_sub_fetch(&asleep_, 1, __ATOMIC_SEQ_CST);
    }

private:
    std::uint32_t threads_;
    std::uint32_t spins_;
    std::uint32_t arrived_ = 0;
    std::uint32_t asleep_ = 0;
    alignas(64) std::uint32_t round_ = 0;  // what the threads look at
};

}  // namespace durasim

#endif
