// Instructions beyond RV64GC: Zba, Zbb, Zbs, Zicond, Zicboz, Zfhmin, compare and swap of Zacas; and what riscv_hwprobe says of
// them. The expected output is that of qemu-riscv64 10, but for the answers of riscv_hwprobe.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/syscall.h>

#define ARCH ".option push\n.option arch, +zba, +zbb, +zbs, +zicond, +zicboz, +zfhmin, +zacas\n"
#define END "\n.option pop"

static const uint64_t VALUES[] = {0, 1, 0x80, 0x8000, 0x7fffffff, 0x80000000, 0xffffffff, 0x0123456789abcdef,
                                  0x8000000000000000, 0xffffffffffffffff, 0x00ff00ff00ff00ff};
#define COUNT (sizeof VALUES / sizeof *VALUES)

// A sum of all results that depends on their order.
static uint64_t mixed(uint64_t sum, uint64_t value) { return (sum ^ value) * 0x100000001b3 + 1; }

#define OF_TWO(text)                                                                                       \
    do {                                                                                                   \
        uint64_t sum = 0, result;                                                                          \
        for (unsigned i = 0; i < COUNT; i++)                                                               \
            for (unsigned j = 0; j < COUNT; j++) {                                                         \
                __asm__(ARCH text " %0, %1, %2" END : "=r"(result) : "r"(VALUES[i]), "r"(VALUES[j]));      \
                sum = mixed(sum, result);                                                                  \
            }                                                                                              \
        printf("%s: %016lx\n", text, sum);                                                                 \
    } while (0)

#define OF_ONE(text, rest)                                                                                 \
    do {                                                                                                   \
        uint64_t sum = 0, result;                                                                          \
        for (unsigned i = 0; i < COUNT; i++) {                                                             \
            __asm__(ARCH text " %0, %1" rest END : "=r"(result) : "r"(VALUES[i]));                         \
            sum = mixed(sum, result);                                                                      \
        }                                                                                                  \
        printf("%s%s: %016lx\n", text, rest, sum);                                                         \
    } while (0)

static uint64_t half_of_double(uint64_t bits) {
    uint64_t half;
    __asm__(ARCH "fmv.d.x ft0, %1\nfcvt.h.d ft1, ft0\nfmv.x.h %0, ft1" END : "=r"(half) : "r"(bits) : "ft0", "ft1");
    return half;
}

static uint64_t double_of_half(uint64_t half) {
    uint64_t bits;
    __asm__(ARCH "fmv.h.x ft0, %1\nfcvt.d.h ft1, ft0\nfmv.x.d %0, ft1" END : "=r"(bits) : "r"(half) : "ft0", "ft1");
    return bits;
}

static uint64_t single_of_half_in_memory(uint16_t half) {
    uint16_t back = 0;
    uint64_t bits;
    __asm__ volatile(ARCH "flh ft0, 0(%1)\nfcvt.s.h ft1, ft0\nfmv.x.w %0, ft1\nfcvt.h.s ft2, ft1\nfsh ft2, 0(%2)" END
                     : "=&r"(bits)
                     : "r"(&half), "r"(&back)
                     : "ft0", "ft1", "ft2", "memory");
    return bits << 16 | back;
}

static uint64_t swapped(uint64_t *word, uint64_t expected, uint64_t wanted) {
    __asm__ volatile(ARCH "amocas.d.aqrl %0, %2, (%1)" END : "+r"(expected) : "r"(word), "r"(wanted) : "memory");
    return expected;
}

static uint64_t swapped_word(uint32_t *word, uint64_t expected, uint64_t wanted) {
    __asm__ volatile(ARCH "amocas.w %0, %2, (%1)" END : "+r"(expected) : "r"(word), "r"(wanted) : "memory");
    return expected;
}

static uint64_t counter;

static void *count(void *unused) {
    for (int i = 0; i < 200; i++) {
        uint64_t old = counter, found;
        while ((found = swapped(&counter, old, old + 1)) != old) old = found;
    }
    return unused;
}

static _Alignas(64) unsigned char block[192];

static void zeros(void) {
    for (int at = 0; at < 64; at += 21) {
        memset(block, 0xa5, sizeof block);
        __asm__ volatile(ARCH "cbo.zero (%0)" END : : "r"(block + 64 + at) : "memory");
        unsigned sum = 0, zero = 0;
        for (unsigned i = 0; i < sizeof block; i++) {
            sum += block[i];
            zero += block[i] == 0;
        }
        printf("cbo.zero at %d: %u zeros, sum %u\n", at, zero, sum);
    }
}

int main(void) {
    OF_TWO("sh1add"); OF_TWO("sh2add"); OF_TWO("sh3add"); OF_TWO("add.uw");
    OF_TWO("sh1add.uw"); OF_TWO("sh2add.uw"); OF_TWO("sh3add.uw"); OF_ONE("slli.uw", ", 37");
    OF_TWO("andn"); OF_TWO("orn"); OF_TWO("xnor"); OF_TWO("min"); OF_TWO("minu"); OF_TWO("max"); OF_TWO("maxu");
    OF_TWO("rol"); OF_TWO("ror"); OF_TWO("rolw"); OF_TWO("rorw"); OF_ONE("rori", ", 45"); OF_ONE("roriw", ", 13");
    OF_ONE("clz", ""); OF_ONE("ctz", ""); OF_ONE("cpop", ""); OF_ONE("clzw", ""); OF_ONE("ctzw", ""); OF_ONE("cpopw", "");
    OF_ONE("sext.b", ""); OF_ONE("sext.h", ""); OF_ONE("zext.h", ""); OF_ONE("orc.b", ""); OF_ONE("rev8", "");
    OF_TWO("bclr"); OF_TWO("bext"); OF_TWO("binv"); OF_TWO("bset");
    OF_ONE("bclri", ", 63"); OF_ONE("bexti", ", 31"); OF_ONE("binvi", ", 32"); OF_ONE("bseti", ", 7");
    OF_TWO("czero.eqz"); OF_TWO("czero.nez");

    double doubles[] = {0.0, -0.0, 1.0, 0.1, 65504.0, 65520.0, 1e-8, 6e-5, -1e300, 1.0 / 0.0};
    for (unsigned i = 0; i < sizeof doubles / sizeof *doubles; i++) {
        uint64_t bits;
        memcpy(&bits, &doubles[i], 8);
        uint64_t half = half_of_double(bits);
        printf("%g: half %lx, double %lx, single and half %lx\n", doubles[i], half, double_of_half(half),
               single_of_half_in_memory((uint16_t)half));
    }
    zeros();

    uint64_t word = 0x1122334455667788;
    printf("amocas.d: %lx ", swapped(&word, 1, 2));
    printf("%lx ", word);
    printf("%lx ", swapped(&word, word, 3));
    printf("%lx\n", word);
    uint32_t half[2] = {0x80000000, 5};
    printf("amocas.w: %lx ", swapped_word(half, 0x180000000, 7));
    printf("%x %x\n", half[0], half[1]);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, count, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    printf("threads: %lu\n", counter);

    struct { int64_t key; uint64_t value; } pairs[] = {{0, 9}, {3, 9}, {4, 9}, {5, 9}, {6, 9}, {12, 9}, {99, 9}};
    uint64_t cores = 1, none = 0;
    int answer = (int)syscall(258, pairs, 7L, 0L, NULL, 0L);
    printf("riscv_hwprobe: %d\n", answer);
    for (int i = 0; i < 7; i++) printf("  %ld: %lx\n", pairs[i].key, pairs[i].value);
    printf("  of a core: %d\n", (int)syscall(258, pairs, 7L, 8L, &cores, 0L));
    printf("  of none: %d\n", (int)syscall(258, pairs, 7L, 8L, &none, 0L));
    printf("  with flags: %d\n", (int)syscall(258, pairs, 7L, 0L, NULL, 2L));
    return 0;
}
