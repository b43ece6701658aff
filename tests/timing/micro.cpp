// Microbenchmarks whose cost follows from the configuration of the machine by a formula (test_micro.py).
//
//     micro KERNEL N LINES MEMORY    prints the cycles of N iterations and of 2 N iterations of a kernel
//
// A kernel works on LINES lines (a power of two) of MEMORY, which is `dram` or `pmem`, again and again in the same order.
// It runs once before it is measured. The difference of the two numbers by N is the cost of an iteration without what
// begins and ends a run. Every loop lies in one line of code, so that the front end fetches it once.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "durasim/markers.h"
#include "durasim/persist.h"
#include "durasim/threads.h"

namespace {

using u64 = std::uint64_t;

// A line: where the next one is, and a word that is random.
struct alignas(64) Line {
    Line* next;
    u64 random;
    u64 rest[6];
};

// What a kernel continues with: the line of a chase, the place in the array, the state of a generator of random numbers.
struct State {
    Line* lines;
    u64 mask;
    Line* at;
    u64 offset;
    u64 random;
};

// The time behind everything before: all stores have left and are acknowledged as far as fences wait for that, and the
// front end starts anew. Without fence.i an out-of-order core may read its counter long before.
u64 cycles() {
    u64 value;
    __asm__ volatile("fence rw, rw\nfence.i\nrdcycle %0" : "=r"(value) : : "memory");
    return value;
}

// A loop of n iterations, at the begin of a line of code.
#define LOOP(body) ".balign 64\n1:\n" body "addi %[n], %[n], -1\nbnez %[n], 1b\n"
// Goes on by so many bytes in the array: t0 is the address.
#define ADVANCE(bytes) "addi %[o], %[o], " #bytes "\nand %[o], %[o], %[m]\nadd t0, %[b], %[o]\n"
// cbo.clean and cbo.flush of the line at t0: spelt so that the compiler needs no -march with Zicbom.
#define CLEAN ".insn i MISC_MEM, 2, x0, t0, 1\n"
#define FLUSH ".insn i MISC_MEM, 2, x0, t0, 2\n"

#define WALK(name, body)                                                                         \
    void name(State& s, u64 n) {                                                                 \
        __asm__ volatile(LOOP(body)                                                              \
                         : [n] "+r"(n), [o] "+r"(s.offset)                                       \
                         : [b] "r"(s.lines), [m] "r"(s.mask)                                     \
                         : "t0", "t1", "memory");                                                \
    }

WALK(loads, ADVANCE(512)
     "ld t1, 0(t0)\nld t1, 64(t0)\nld t1, 128(t0)\nld t1, 192(t0)\n"
     "ld t1, 256(t0)\nld t1, 320(t0)\nld t1, 384(t0)\nld t1, 448(t0)\n")
WALK(stores, ADVANCE(512)
     "sd x0, 16(t0)\nsd x0, 80(t0)\nsd x0, 144(t0)\nsd x0, 208(t0)\n"
     "sd x0, 272(t0)\nsd x0, 336(t0)\nsd x0, 400(t0)\nsd x0, 464(t0)\n")
WALK(store_fence, ADVANCE(64) "sd x0, 16(t0)\nfence rw, rw\n")
WALK(clean, ADVANCE(64) "sd x0, 16(t0)\n" CLEAN)
WALK(clean_fence, ADVANCE(64) "sd x0, 16(t0)\n" CLEAN "fence w, rw\n")
WALK(flush_fence, ADVANCE(64) "sd x0, 16(t0)\n" FLUSH "fence w, rw\n")
WALK(fences, "fence rw, rw\nfence rw, rw\nfence rw, rw\nfence rw, rw\n"
     "fence rw, rw\nfence rw, rw\nfence rw, rw\nfence rw, rw\n")

// Eight loads, each from where the one before says.
#define FOUR_LOADS "ld %[a], 0(%[a])\nld %[a], 0(%[a])\nld %[a], 0(%[a])\nld %[a], 0(%[a])\n"
void chase(State& s, u64 n) {
    __asm__ volatile(LOOP(FOUR_LOADS FOUR_LOADS) : [n] "+r"(n), [a] "+r"(s.at) : : "memory");
}

// A chain of six additions or shifts (a xorshift generator), beside it a branch that skips one instruction.
#define CHAIN                                                                        \
    "slli t1, %[x], 13\nxor %[x], %[x], t1\nsrli t1, %[x], 7\nxor %[x], %[x], t1\n" \
    "slli t1, %[x], 17\nxor %[x], %[x], t1\n"
#define BRANCHES(name, condition)                                                                              \
    void name(State& s, u64 n) {                                                                               \
        __asm__ volatile(LOOP(CHAIN condition "beqz t0, 2f\nnop\n2:\n")                                        \
                         : [n] "+r"(n), [x] "+r"(s.random)                                                     \
                         :                                                                                     \
                         : "t0", "t1");                                                                        \
    }
BRANCHES(taken_branches, "andi t0, %[x], 0\n")
BRANCHES(alternating_branches, "andi t0, %[n], 1\n")
BRANCHES(random_branches, "andi t0, %[x], 1\n")

// A branch that depends on a load from a line to which the iteration before has led.
void late_branches(State& s, u64 n) {
    __asm__ volatile(LOOP("ld t0, 8(%[a])\nld %[a], 0(%[a])\nbeqz t0, 2f\nnop\n2:\n")
                     : [n] "+r"(n), [a] "+r"(s.at)
                     :
                     : "t0", "memory");
}

// One line for two cores.
void atomics(State& s, u64 n) {
    __asm__ volatile(LOOP("amoadd.d t0, %[n], (%[b])\n") : [n] "+r"(n) : [b] "r"(&s.lines->rest[0]) : "t0", "memory");
}
void shared_stores(State& s, u64 n) {
    __asm__ volatile(LOOP("sd %[n], 0(%[b])\nfence rw, rw\n") : [n] "+r"(n) : [b] "r"(&s.lines->rest[0]) : "memory");
}

struct Kernel {
    const char* name;
    void (*run)(State&, u64);
    unsigned threads;
};

constexpr Kernel kernels[] = {
    {"chase", chase, 1},
    {"loads", loads, 1},
    {"stores", stores, 1},
    {"store-fence", store_fence, 1},
    {"clean", clean, 1},
    {"clean-fence", clean_fence, 1},
    {"flush-fence", flush_fence, 1},
    {"fences", fences, 1},
    {"taken-branches", taken_branches, 1},
    {"alternating-branches", alternating_branches, 1},
    {"random-branches", random_branches, 1},
    {"late-branches", late_branches, 1},
    {"atomics", atomics, 2},
    {"shared-stores", shared_stores, 2},
};

// Lines one after the other, each leading to the next one, the last one to the first.
Line* make_lines(u64 count, const char* memory) {
    const u64 bytes = count * sizeof(Line);
    int file = -1;
    if (std::strcmp(memory, "pmem") == 0) {
        file = ::open("/pmem/micro", O_RDWR | O_CREAT, 0600);
        if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) durasim::fail(2, "micro: there is no /pmem/micro");
    }
    const int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void* place = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
    if (place == MAP_FAILED) durasim::fail(2, "micro: no memory");
    Line* lines = static_cast<Line*>(place);
    u64 random = 88172645463325252u;
    for (u64 i = 0; i < count; ++i) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        lines[i].next = &lines[(i + 1) % count];
        lines[i].random = random >> 33 & 1;
    }
    // Dirty lines would be written home during the first walks, and where reads go first the last ones would wait in the
    // queue without end, and answer reads.
    for (u64 i = 0; i < count; ++i) durasim_flush(&lines[i]);
    durasim_full_fence();
    ::usleep(5000);
    return lines;
}

u64 measure(const Kernel& kernel, State& state, u64 n) {
    const u64 start = cycles();
    kernel.run(state, n);
    return cycles() - start;
}

}  // namespace

int main(int argc, char** argv) {
    const Kernel* kernel = nullptr;
    for (const Kernel& known : kernels) {
        if (argc == 5 && std::strcmp(argv[1], known.name) == 0) kernel = &known;
    }
    if (kernel == nullptr) durasim::fail(2, "usage: micro KERNEL N LINES MEMORY");
    const u64 n = std::strtoull(argv[2], nullptr, 10);
    const u64 count = std::strtoull(argv[3], nullptr, 10);
    Line* lines = make_lines(count, argv[4]);
    static u64 spent[2][2];
    static std::atomic<unsigned> arrived;
    durasim::run_threads(kernel->threads, [&](unsigned thread) {
        State state{lines, count * sizeof(Line) - 1, lines, 0, 88172645463325252u};
        auto meet = [&, meetings = 0u]() mutable {
            ++arrived;
            ++meetings;
            while (arrived < meetings * kernel->threads) {
            }
        };
        meet();
        measure(*kernel, state, n);
        meet();
        if (thread == 0) durasim_roi_begin();
        spent[thread][0] = measure(*kernel, state, n);
        meet();
        spent[thread][1] = measure(*kernel, state, 2 * n);
        meet();
        if (thread == 0) durasim_roi_end();
    });
    std::printf("%llu %llu\n", static_cast<unsigned long long>(spent[0][0]), static_cast<unsigned long long>(spent[0][1]));
    return 0;
}
