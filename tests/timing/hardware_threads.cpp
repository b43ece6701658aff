// What threads of the program cost each other, by where they run.
//
//     hardware_threads KERNEL ROUNDS CPU...    one thread on each CPU; prints the cycles of each
//
// Kernels: additions (independent), multiplications (a chain), divisions (of units that are not pipelined), misses (independent loads
// that the L2 has and the L1D has not), lines (all threads load the same lines, which the first one has brought).
#include <sched.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "durasim/lock.h"
#include "durasim/threads.h"

namespace {

constexpr std::size_t line_bytes = 64;
constexpr std::size_t far_lines = 128, near_lines = 32;

struct alignas(line_bytes) Line {
    std::uint64_t value;
};

Line lines[32 * far_lines];

std::uint64_t cycles() {
    std::uint64_t value;
    __asm__ volatile("rdcycle %0" : "=r"(value));
    return value;
}

void run_on(unsigned cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (::sched_setaffinity(0, sizeof set, &set) != 0) std::abort();
}

void additions(std::uint64_t rounds) {
    for (std::uint64_t i = 0; i < rounds; ++i) {
        __asm__ volatile(
            ".rept 20\n"
            "addi t0, x0, 1\n addi t1, x0, 1\n addi t2, x0, 1\n addi t3, x0, 1\n addi t4, x0, 1\n addi t5, x0, 1\n"
            ".endr" ::
                : "t0", "t1", "t2", "t3", "t4", "t5");
    }
}

void multiplications(std::uint64_t rounds) {
    std::uint64_t value = rounds;
    for (std::uint64_t i = 0; i < rounds; ++i) {
        __asm__ volatile("mul %0, %0, %0\n mul %0, %0, %0\n mul %0, %0, %0\n mul %0, %0, %0\n" : "+r"(value));
    }
}

void divisions(std::uint64_t rounds) {
    for (std::uint64_t i = 0; i < rounds; ++i) {
        __asm__ volatile("div t0, a0, a0\n div t1, a0, a0\n div t2, a0, a0\n div t3, a0, a0\n" ::: "t0", "t1", "t2", "t3");
    }
}

void load(const Line* from, std::size_t count, std::uint64_t rounds) {
    for (std::uint64_t i = 0; i < rounds; ++i) {
        for (std::size_t n = 0; n < count; n += 4) {
            __asm__ volatile("ld t0, 0(%0)\n ld t1, 64(%0)\n ld t2, 128(%0)\n ld t3, 192(%0)\n" ::"r"(from + n)
                             : "t0", "t1", "t2", "t3");
        }
    }
}

void run(const char* kernel, unsigned thread, std::uint64_t rounds) {
    if (std::strcmp(kernel, "additions") == 0) return additions(rounds);
    if (std::strcmp(kernel, "multiplications") == 0) return multiplications(rounds);
    if (std::strcmp(kernel, "divisions") == 0) return divisions(rounds);
    if (std::strcmp(kernel, "misses") == 0) return load(lines + thread * far_lines, far_lines, rounds);
    if (std::strcmp(kernel, "lines") == 0) return load(lines, near_lines, rounds);
    std::abort();
}

}  // namespace

int main(int argc, char** argv) {
    const std::uint64_t rounds = std::strtoull(argv[2], nullptr, 10);
    const auto threads = static_cast<unsigned>(argc - 3);
    std::memset(lines, 1, sizeof lines);
    std::vector<std::uint64_t> taken(threads);
    durasim::Barrier barrier(threads, 1 << 20);
    durasim::run_threads(threads, [&](unsigned thread) {
        run_on(static_cast<unsigned>(std::atoi(argv[3 + thread])));
        run(argv[1], thread, 2);
        barrier.wait();
        const std::uint64_t begin = cycles();
        run(argv[1], thread, rounds);
        taken[thread] = cycles() - begin;
        barrier.wait();
    });
    for (const std::uint64_t value : taken) std::printf("%llu ", static_cast<unsigned long long>(value));
    std::printf("\n");
    return 0;
}
