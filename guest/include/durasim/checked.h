// Checked accesses and the operations on their filters (P-INSPECT, MICRO 2020, section V-B, Table II): instructions of
// designs that have them, illegal on every other machine. On other hosts a model of them takes their place
// (objects/checked_host.h).
//
// An access checks the object that begins at `base`, and a store of a reference also the object whose address it stores;
// what it loads or stores is `offset` bytes after the base. The hardware makes the access, or a handler of the program
// does (objects/p_inspect.h).
#ifndef DURASIM_CHECKED_H
#define DURASIM_CHECKED_H

#include <cstdint>
#include <type_traits>

#include "durasim/encodings.h"

namespace durasim {

// The flavours of a store to the persistent heap; stores to ordinary memory are plain (section V-E).
enum class StoreKind : std::uint8_t {
    plain = 0,
    clean = DURASIM_ACCESS_CLEAN,                      // a clean of its line
    clean_and_fence = DURASIM_ACCESS_CLEAN_AND_FENCE,  // and a fence that later stores wait for
};

// Registers of the hart beside the integer registers (Figure 3).
enum class CheckRegister : unsigned {
    filters = DURASIM_CHECK_REGISTER_FILTERS,
    handlers = DURASIM_CHECK_REGISTER_HANDLERS,
    heap_base = DURASIM_CHECK_REGISTER_HEAP_BASE,
    heap_limit = DURASIM_CHECK_REGISTER_HEAP_LIMIT,
    xaction = DURASIM_CHECK_REGISTER_XACTION,
    base = DURASIM_CHECK_REGISTER_BASE,
    offset = DURASIM_CHECK_REGISTER_OFFSET,
    value = DURASIM_CHECK_REGISTER_VALUE,
    access = DURASIM_CHECK_REGISTER_ACCESS,
    result = DURASIM_CHECK_REGISTER_RESULT,
};

// The check register that says what the access of a handler is, in parts.
class AccessWord {
public:
    constexpr explicit AccessWord(std::uint64_t word) : word_(word) {}
    constexpr unsigned width_log2() const { return word_ & 3; }
    constexpr StoreKind kind() const { return static_cast<StoreKind>(word_ & (DURASIM_ACCESS_CLEAN | DURASIM_ACCESS_CLEAN_AND_FENCE)); }
    constexpr bool stores_reference() const { return (word_ >> 8 & 7) == DURASIM_FUNCT3_CHECK_STORE_BOTH; }

private:
    std::uint64_t word_;
};

namespace detail {

template <class T>
inline constexpr unsigned width_log2 = static_cast<unsigned>(__builtin_ctz(sizeof(T)));

template <class T>
inline constexpr unsigned load_funct7 = width_log2<T> | (sizeof(T) < 8 && std::is_unsigned_v<T> ? DURASIM_ACCESS_ZERO_EXTEND : 0);

template <class T, StoreKind kind>
inline constexpr unsigned store_funct7 = width_log2<T> | static_cast<unsigned>(kind);

}  // namespace detail

}  // namespace durasim

#if defined(__riscv)

namespace durasim {

namespace detail {

// Whether the offset fits into its field as a constant: five bits, which count in widths of the access.
template <class T>
[[gnu::always_inline]] constexpr bool fits_as_constant(std::uint64_t offset) {
    return __builtin_constant_p(offset) && offset % sizeof(T) == 0 && offset / sizeof(T) < 32;
}

template <unsigned funct3, class T, StoreKind kind>
[[gnu::always_inline]] inline void store_of_custom_0(void* base, std::uint64_t offset, T value) {
    // An instruction stores the low bytes of the register.
    const auto word = static_cast<std::uint64_t>(value);
    if (fits_as_constant<T>(offset)) {
        __asm__ volatile(".insn r %0, %1, %2, x%3, %4, %z5"
                         :
                         : "i"(DURASIM_OPCODE_CUSTOM_0), "i"(funct3), "i"(store_funct7<T, kind> | DURASIM_ACCESS_CONSTANT_OFFSET), "i"(offset / sizeof(T)), "r"(base), "rJ"(word)
                         : "memory");
    } else {
        __asm__ volatile(".insn r %0, %1, %2, %3, %4, %z5"
                         :
                         : "i"(DURASIM_OPCODE_CUSTOM_0), "i"(funct3), "i"(store_funct7<T, kind>), "r"(offset), "r"(base), "rJ"(word)
                         : "memory");
    }
}

template <unsigned funct7>
[[gnu::always_inline]] inline void filter_operation(const void* object) {
    __asm__ volatile(".insn r %0, %1, %2, x0, %z3, x0" : : "i"(DURASIM_OPCODE_CUSTOM_0), "i"(DURASIM_FUNCT3_INSERT_FWD), "i"(funct7), "rJ"(object) : "memory");
}

}  // namespace detail

// checkLoad.
template <class T>
[[gnu::always_inline]] inline T check_load(const void* base, std::uint64_t offset) {
    std::uint64_t word;
    if (detail::fits_as_constant<T>(offset)) {
        __asm__ volatile(".insn r %1, %2, %3, %0, %4, x%5"
                         : "=r"(word)
                         : "i"(DURASIM_OPCODE_CUSTOM_0), "i"(DURASIM_FUNCT3_CHECK_LOAD), "i"(detail::load_funct7<T> | DURASIM_ACCESS_CONSTANT_OFFSET), "r"(base), "i"(offset / sizeof(T))
                         : "memory");
    } else {
        __asm__ volatile(".insn r %1, %2, %3, %0, %4, %5"
                         : "=r"(word)
                         : "i"(DURASIM_OPCODE_CUSTOM_0), "i"(DURASIM_FUNCT3_CHECK_LOAD), "i"(detail::load_funct7<T>), "r"(base), "r"(offset)
                         : "memory");
    }
    return static_cast<T>(word);
}

// checkStoreH: of something that is no reference.
template <StoreKind kind, class T>
[[gnu::always_inline]] inline void check_store_h(void* base, std::uint64_t offset, T value) {
    detail::store_of_custom_0<DURASIM_FUNCT3_CHECK_STORE_H, T, kind>(base, offset, value);
}

// checkStoreBoth: of a reference, which is not null.
template <StoreKind kind>
[[gnu::always_inline]] inline void check_store_both(void* base, std::uint64_t offset, const void* value) {
    detail::store_of_custom_0<DURASIM_FUNCT3_CHECK_STORE_BOTH, std::uint64_t, kind>(base, offset, reinterpret_cast<std::uint64_t>(value));
}

// persistentWrite: to persistent memory, without checks.
template <StoreKind kind, class T>
[[gnu::always_inline]] inline void persist_store(T* place, T value) {
    detail::store_of_custom_0<DURASIM_FUNCT3_PERSIST_STORE, T, kind>(place, 0, value);
}

// True if enough bits of the active filter are set for the pointer update thread to work.
inline bool insert_fwd(const void* object) {
    std::uint64_t is_full;
    __asm__ volatile(".insn r %1, %2, %3, %0, %4, x0"
                     : "=r"(is_full)
                     : "i"(DURASIM_OPCODE_CUSTOM_0), "i"(DURASIM_FUNCT3_INSERT_FWD), "i"(DURASIM_FUNCT7_INSERT_FWD), "r"(object)
                     : "memory");
    return is_full != 0;
}
inline void insert_trans(const void* object) { detail::filter_operation<DURASIM_FUNCT7_INSERT_TRANS>(object); }
// The inactive one.
inline void clear_fwd() { detail::filter_operation<DURASIM_FUNCT7_CLEAR_FWD>(nullptr); }
inline void clear_trans() { detail::filter_operation<DURASIM_FUNCT7_CLEAR_TRANS>(nullptr); }
inline void change_active() { detail::filter_operation<DURASIM_FUNCT7_CHANGE_ACTIVE>(nullptr); }

template <CheckRegister number>
[[gnu::always_inline]] inline std::uint64_t check_read() {
    std::uint64_t word;
    __asm__ volatile(".insn r %1, %2, %3, %0, x0, x0" : "=r"(word) : "i"(DURASIM_OPCODE_CUSTOM_0), "i"(DURASIM_FUNCT3_CHECK_READ), "i"(static_cast<unsigned>(number)) : "memory");
    return word;
}
template <CheckRegister number>
[[gnu::always_inline]] inline void check_write(std::uint64_t word) {
    __asm__ volatile(".insn r %0, %1, %2, x0, %z3, x0" : : "i"(DURASIM_OPCODE_CUSTOM_0), "i"(DURASIM_FUNCT3_CHECK_WRITE), "i"(static_cast<unsigned>(number)), "rJ"(word) : "memory");
}

}  // namespace durasim

#else
#include "objects/checked_host.h"
#endif

#endif
