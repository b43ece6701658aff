// Messages that are handed over through a futex: who is woken finds what was stored before.
//
//     futex_passing [MESSAGES]    futex-passing: messages=1000 wrong=0
//
// The first thread fills a buffer with plain stores, sets the state to full and wakes; the second sleeps until then,
// compares every word, sets the state to empty and wakes.
#include "litmus.h"

namespace {

constexpr std::uint32_t empty = 0, full = 1;
constexpr unsigned words = 24;

alignas(64) std::uint32_t state = empty;
litmus::Cell buffer[words];

void wait_until(std::uint32_t wanted) {
    while (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != wanted) durasim::detail::futex_wait(&state, 1 - wanted);
}

void change_to(std::uint32_t next) {
    __atomic_store_n(&state, next, __ATOMIC_RELEASE);
    durasim::detail::futex_wake(&state, 1);
}

}  // namespace

int main(int argc, char** argv) {
    const std::uint64_t messages = litmus::number_at(argc, argv, 1, 1000);
    std::uint64_t wrong = 0;
    durasim::run_threads(2, [&](unsigned thread) {
        for (std::uint64_t i = 1; i <= messages; ++i) {
            wait_until(thread == 0 ? empty : full);
            for (unsigned w = 0; w < words; ++w) {
                if (thread == 0) {
                    litmus::store(buffer[w], durasim::mix(i) + w);
                } else if (litmus::load(buffer[w]) != durasim::mix(i) + w) {
                    ++wrong;
                }
            }
            change_to(thread == 0 ? full : empty);
        }
    });
    std::printf("futex-passing: messages=%llu wrong=%llu\n", static_cast<unsigned long long>(messages),
                static_cast<unsigned long long>(wrong));
    return 0;
}
