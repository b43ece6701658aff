// Two threads hand a line to and fro: how long a round trip between two cores takes.
//
//     ping_pong [ROUNDS]    ping-pong: rounds=1000 last=2000 cycles=254321
//
// Each thread waits until the word has the other's number and stores the next one. `cycles` are those of the first thread
// from its first store to its last look, counted by rdcycle; `last` is what the word holds in the end.
#include "litmus.h"

int main(int argc, char** argv) {
    const std::uint64_t rounds = litmus::number_at(argc, argv, 1, 1000);
    // Alone on its core a thread does nothing but look.
    const bool share = durasim::core_count() < 2;
    static litmus::Cell cell;
    std::uint64_t cycles = 0;
    durasim::Barrier barrier(2, litmus::barrier_spins(2));
    durasim::run_threads(2, [&](unsigned thread) {
        litmus::Spin spin;
        barrier.wait();
        const std::uint64_t start = litmus::cycles();
        for (std::uint64_t i = 0; i < rounds; ++i) {
            const std::uint64_t mine = 2 * i + thread;
            while (litmus::load(cell) != mine) {
                if (share) spin();
            }
            litmus::store(cell, mine + 1);
        }
        if (thread == 0) {
            while (litmus::load(cell) != 2 * rounds) {
                if (share) spin();
            }
            cycles = litmus::cycles() - start;
        }
    });
    std::printf("ping-pong: rounds=%llu last=%llu cycles=%llu\n", static_cast<unsigned long long>(rounds),
                static_cast<unsigned long long>(litmus::load(cell)), static_cast<unsigned long long>(cycles));
    return 0;
}
