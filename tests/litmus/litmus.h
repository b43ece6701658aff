// What the litmus tests share: accesses that the compiler leaves as they stand, and threads that start together.
#ifndef DURASIM_TESTS_LITMUS_H
#define DURASIM_TESTS_LITMUS_H

#include <sched.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "durasim/lock.h"
#include "durasim/random.h"
#include "durasim/threads.h"

namespace litmus {

// A word with a line of its own.
struct alignas(64) Cell {
    std::uint64_t word = 0;
};

#if defined(__riscv)
inline std::uint64_t load(const Cell& cell) {
    std::uint64_t value;
    __asm__ volatile("ld %0, %1" : "=r"(value) : "m"(cell.word));
    return value;
}
inline void store(Cell& cell, std::uint64_t value) { __asm__ volatile("sd %z1, %0" : "=m"(cell.word) : "rJ"(value)); }
inline void fence() { __asm__ volatile("fence rw, rw" : : : "memory"); }
inline std::uint64_t cycles() {
    std::uint64_t value;
    __asm__ volatile("rdcycle %0" : "=r"(value));
    return value;
}
inline void wait_a_little() { __asm__ volatile("nop"); }
#elif defined(__x86_64__)
// The host has the memory model that the simulated machine promises, so the tests can be tried there.
inline std::uint64_t load(const Cell& cell) {
    std::uint64_t value;
    __asm__ volatile("movq %1, %0" : "=r"(value) : "m"(cell.word));
    return value;
}
inline void store(Cell& cell, std::uint64_t value) { __asm__ volatile("movq %1, %0" : "=m"(cell.word) : "r"(value)); }
inline void fence() { __asm__ volatile("mfence" : : : "memory"); }
inline std::uint64_t cycles() { return __builtin_ia32_rdtsc(); }
inline void wait_a_little() { __asm__ volatile("nop"); }
#endif

inline void delay(std::uint64_t steps) {
    for (; steps > 0; --steps) wait_a_little();
}

// Waiting for another thread: it looks often, then lets others run, who may need the core.
class Spin {
public:
    void operator()() {
        if (++looks_ % 64 == 0) {
            ::sched_yield();
        } else {
            durasim::detail::pause_hint();
        }
    }

private:
    unsigned looks_ = 0;
};

// How long a thread looks at a barrier before it sleeps: not at all if the thread it waits for may need the core.
inline unsigned barrier_spins(unsigned threads) { return durasim::core_count() >= threads ? 10000 : 0; }

inline std::uint64_t number_at(int argc, char** argv, int index, std::uint64_t otherwise) {
    return argc > index ? std::strtoull(argv[index], nullptr, 10) : otherwise;
}

}  // namespace litmus

#endif
