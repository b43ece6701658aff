// Hardware transactions, after Intel's RTM: instructions of designs that have them (htm-sgl and its relatives), illegal on
// every other machine. On x86-64 they are those of RTM where the processor has them. On other hosts, with test hooks, which are no part of a
// hardware transaction, with DURASIM_WITHOUT_RTM, and where a machine executes without a model of time, none ever begins.
//
// Everything that a transaction has stored, wherever it lies, and every register comes back when it aborts: the program is
// then after its start once more, with a status instead of htm_started. Functional runs answer 0: no retry helps.
#ifndef DURASIM_HTM_H
#define DURASIM_HTM_H

#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "durasim/encodings.h"

namespace durasim {

// The result of the start of a transaction.
inline constexpr std::uint64_t htm_started = ~std::uint64_t{0};

// Bits of a status, numbered as Intel numbers them.
inline constexpr std::uint64_t htm_explicit = 1, htm_retry = 2, htm_conflict = 4, htm_capacity = 8, htm_debug = 16, htm_nested = 32;
inline constexpr unsigned htm_code_shift = 24;

// The code that an explicit abort has left in a status.
constexpr std::uint64_t htm_code(std::uint64_t status) { return status >> htm_code_shift & 0xff; }

#if defined(__riscv)

// Begins a transaction, or one inside of it: htm_started, and once more the status of its abort.
[[gnu::always_inline]] inline std::uint64_t htm_begin() {
    std::uint64_t status;
    __asm__ volatile(".insn r %1, %2, %3, %0, x0, x0"
                     : "=r"(status)
                     : "i"(DURASIM_OPCODE_HTM_BEGIN), "i"(DURASIM_FUNCT3_HTM_BEGIN), "i"(DURASIM_FUNCT7_HTM_BEGIN)
                     : "memory");
    return status;
}

// Ends the innermost transaction.
[[gnu::always_inline]] inline void htm_end() {
    __asm__ volatile(".insn r %0, %1, %2, x0, x0, x0"
                     :
                     : "i"(DURASIM_OPCODE_HTM_END), "i"(DURASIM_FUNCT3_HTM_END), "i"(DURASIM_FUNCT7_HTM_END)
                     : "memory");
}

namespace detail {

// The fields of two register numbers hold the code.
template <unsigned low, unsigned high>
[[gnu::always_inline]] inline void htm_abort() {
    __asm__ volatile(".insn r %0, %1, %2, x0, x%3, x%4"
                     :
                     : "i"(DURASIM_OPCODE_HTM_ABORT), "i"(DURASIM_FUNCT3_HTM_ABORT), "i"(DURASIM_FUNCT7_HTM_ABORT), "i"(low), "i"(high)
                     : "memory");
}

}  // namespace detail

// Aborts the transaction; nothing happens outside of one.
template <unsigned code>
[[gnu::always_inline]] inline void htm_abort() {
    static_assert(code < 256, "a code has eight bits");
    detail::htm_abort<code % 32, code / 32>();
}

// Whether a transaction is open.
[[gnu::always_inline]] inline bool htm_test() {
    std::uint64_t open;
    __asm__ volatile(".insn r %1, %2, %3, %0, x0, x0"
                     : "=r"(open)
                     : "i"(DURASIM_OPCODE_HTM_TEST), "i"(DURASIM_FUNCT3_HTM_TEST), "i"(DURASIM_FUNCT7_HTM_TEST)
                     : "memory");
    return open != 0;
}

#elif defined(__x86_64__) && !defined(DURASIM_TEST_HOOKS) && !defined(DURASIM_WITHOUT_RTM)

namespace detail {

// CPUID leaf 7: RTM, and whether all its transactions abort at once (Intel SDM, volume 2, CPUID).
inline bool has_rtm() {
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b >> 11 & 1) != 0 && (d >> 11 & 1) == 0;
}
inline const bool rtm = has_rtm();

}  // namespace detail

// The bytes are those of xbegin, xend, xabort and xtest (Intel SDM, volume 2): compilers know the names with a flag alone that would let them use
// RTM where there is none. The abort of a transaction continues after its start.
[[gnu::always_inline]] inline std::uint64_t htm_begin() {
    if (!detail::rtm) return 0;
    std::uint32_t status = ~std::uint32_t{0};
    __asm__ volatile(".byte 0xc7, 0xf8, 0, 0, 0, 0" : "+a"(status) : : "memory");
    return status == ~std::uint32_t{0} ? htm_started : status;
}
[[gnu::always_inline]] inline void htm_end() {
    if (detail::rtm) __asm__ volatile(".byte 0x0f, 0x01, 0xd5" : : : "memory");
}
template <unsigned code>
[[gnu::always_inline]] inline void htm_abort() {
    static_assert(code < 256, "a code has eight bits");
    if (detail::rtm) __asm__ volatile(".byte 0xc6, 0xf8, %c0" : : "i"(code) : "memory");
}
[[gnu::always_inline]] inline bool htm_test() {
    bool open = false;
    if (detail::rtm) __asm__ volatile(".byte 0x0f, 0x01, 0xd6\n\tsetnz %0" : "=q"(open) : : "cc", "memory");
    return open;
}

#else

inline std::uint64_t htm_begin() { return 0; }
inline void htm_end() {}
template <unsigned code>
inline void htm_abort() {}
inline bool htm_test() { return false; }

#endif

}  // namespace durasim

#endif
