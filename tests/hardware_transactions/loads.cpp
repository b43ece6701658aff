// Loads that the read set of a transaction may miss, while another thread stores to their line.
//
//   forwarded     the transaction has stored to the line, and the store buffer answers the load
//   inside        the load is the first instruction of the transaction
//   before        the load is the last instruction before the transaction
//   rounds N      N short transactions with loads of the first kind, while the other thread stores to the line all the
//                 time
#include <pthread.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "durasim/htm.h"
#include "durasim/lock.h"

namespace {

using namespace durasim;

constexpr unsigned code_own = 1, code_other = 2;

struct alignas(64) Line {
    volatile std::uint64_t own = 0, other = 0;
};
Line line;
alignas(64) volatile bool started = false;
alignas(64) volatile bool over = false;
std::uint64_t stored_at = 0;

std::uint64_t read_cycle() {
    std::uint64_t cycle;
    __asm__ volatile("rdcycle %0" : "=r"(cycle) : : "memory");
    return cycle;
}

void wait_a_while(unsigned turns) {
    for (unsigned i = 0; i < turns; ++i) detail::pause_hint();
}

void* store_once(void*) {
    while (!started) detail::pause_hint();
    wait_a_while(2000);
    line.other = 1;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    stored_at = read_cycle();
    return nullptr;
}

void* store_always(void*) {
    for (std::uint64_t i = 1; !over; ++i) {
        line.other = i;
        wait_a_while(200 + i % 32);
    }
    return nullptr;
}

// A load, a begin and a load, of which one is of the line. The answer is the status.
[[gnu::always_inline]] inline std::uint64_t load_and_begin(const volatile std::uint64_t* before,
                                                           const volatile std::uint64_t* inside, std::uint64_t& first) {
    std::uint64_t status, second;
    __asm__ volatile(
        "ld %1, 0(%3)\n\t"
        ".insn r 0x2b, 2, 0, %0, x0, x0\n\t"  // htm.begin
        "ld %2, 0(%4)"
        : "=&r"(status), "=&r"(first), "=&r"(second)
        : "r"(before), "r"(inside)
        : "memory");
    return status;
}

int one(const char* kind) {
    alignas(64) static volatile std::uint64_t elsewhere = 5;
    const bool is_before = std::strcmp(kind, "before") == 0;
    const bool is_inside = std::strcmp(kind, "inside") == 0;
    pthread_t thread;
    if (::pthread_create(&thread, nullptr, store_once, nullptr) != 0) return 1;
    started = true;
    const std::uint64_t begun_at = read_cycle();
    std::uint64_t first, ended_at = 0;
    const std::uint64_t status =
        load_and_begin(is_before ? &line.other : &elsewhere, is_inside ? &line.other : &elsewhere, first);
    if (status == htm_started) {
        if (std::strcmp(kind, "forwarded") == 0) {
            line.own = 3;
            if (line.own != 3) htm_abort<code_own>();
        }
        wait_a_while(100000);
        htm_end();
        ended_at = read_cycle();
    }
    ::pthread_join(thread, nullptr);
    if (status == htm_started) {
        const bool is_during = begun_at < stored_at && stored_at < ended_at;
        std::printf("committed, loaded %d, stored during it %d, line %d %d\n", static_cast<int>(first), is_during,
                    static_cast<int>(line.own), static_cast<int>(line.other));
    } else {
        std::printf("status %d, line %d %d\n", static_cast<int>(status), static_cast<int>(line.own),
                    static_cast<int>(line.other));
    }
    return 0;
}

int rounds(std::uint64_t count) {
    pthread_t thread;
    if (::pthread_create(&thread, nullptr, store_always, nullptr) != 0) return 1;
    std::uint64_t committed = 0, conflicts = 0, mixtures = 0;
    for (std::uint64_t i = 1; i <= count; ++i) {
        const std::uint64_t status = htm_begin();
        if (status == htm_started) {
            line.own = i;
            if (line.own != i) htm_abort<code_own>();
            for (std::uint64_t turn = 0; turn < i % 16; ++turn) __asm__ volatile("");
            const std::uint64_t other = line.other;
            for (std::uint64_t turn = 0; turn < i % 64; ++turn) __asm__ volatile("");
            if (line.own != i) htm_abort<code_own>();
            if (line.other != other) htm_abort<code_other>();
            htm_end();
            ++committed;
            // Nobody else stores there.
            if (line.own != i) ++mixtures;
        } else if ((status & htm_conflict) != 0) {
            ++conflicts;
        } else {
            ++mixtures;
        }
    }
    over = true;
    ::pthread_join(thread, nullptr);
    std::printf("%d %d %d\n", static_cast<int>(committed), static_cast<int>(conflicts), static_cast<int>(mixtures));
    return 0;
}

}  // namespace

int main(int argc, char** argv) { return argc > 2 ? rounds(std::strtoull(argv[2], nullptr, 10)) : one(argv[1]); }
