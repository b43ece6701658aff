// Aligned accesses of eight bytes are atomic: no reader sees parts of two stores.
//
//     atomicity [ITERATIONS [THREADS]]    atomicity: reads=3000 torn=0 changes=812 order=0
//
// One thread stores numbers that grow, each as the same half twice; the others read. `changes` says how often a read gave
// another number than the one before it, `order` how often an older one.
#include "litmus.h"

int main(int argc, char** argv) {
    const std::uint64_t iterations = litmus::number_at(argc, argv, 1, 1000);
    const auto threads = static_cast<unsigned>(litmus::number_at(argc, argv, 2, 4));
    const bool few_cores = durasim::core_count() < threads;
    static litmus::Cell cell;
    std::uint64_t reads = 0, torn = 0, changes = 0, order = 0;
    durasim::Barrier barrier(threads, litmus::barrier_spins(threads));
    durasim::run_threads(threads, [&](unsigned thread) {
        durasim::Random random(thread);
        std::uint64_t my_torn = 0, my_changes = 0, my_order = 0, last = 0;
        barrier.wait();
        for (std::uint64_t i = 1; i <= iterations; ++i) {
            if (thread == 0) {
                litmus::store(cell, i << 32 | i);
            } else {
                const std::uint64_t value = litmus::load(cell);
                my_torn += value >> 32 != (value & 0xffff'ffff);
                my_changes += value != last;
                my_order += value < last;
                last = value;
            }
            litmus::delay(random.below(32));
            if (few_cores && i % 16 == 0) ::sched_yield();
        }
        if (thread == 0) return;
        __atomic_fetch_add(&reads, iterations, __ATOMIC_RELAXED);
        __atomic_fetch_add(&torn, my_torn, __ATOMIC_RELAXED);
        __atomic_fetch_add(&changes, my_changes, __ATOMIC_RELAXED);
        __atomic_fetch_add(&order, my_order, __ATOMIC_RELAXED);
    });
    std::printf("atomicity: reads=%llu torn=%llu changes=%llu order=%llu\n", static_cast<unsigned long long>(reads),
                static_cast<unsigned long long>(torn), static_cast<unsigned long long>(changes),
                static_cast<unsigned long long>(order));
    return 0;
}
