// A model of checked accesses for hosts that have none: Tables III to VI of P-INSPECT (MICRO 2020), with threads for harts.
// It is there for tests of the runtime; its hashes are not those of the hardware.
//
// As in the hardware, an operation that changes filters waits until no thread is between the check of an access and the
// access, and none begins one meanwhile.
#ifndef DURASIM_OBJECTS_CHECKED_HOST_H
#define DURASIM_OBJECTS_CHECKED_HOST_H

#include <sched.h>

#include <array>
#include <cstdint>
#include <type_traits>

#include "durasim/checked.h"
#include "durasim/error.h"
#include "durasim/lock.h"
#include "durasim/persist.h"
#include "runtimes/store.h"

namespace durasim {

namespace detail {

#if !defined(DURASIM_HOST_FWD_BITS)
#define DURASIM_HOST_FWD_BITS 2047
#endif
#if !defined(DURASIM_HOST_TRANS_BITS)
#define DURASIM_HOST_TRANS_BITS 512
#endif

class HostChecks {
public:
    static constexpr std::uint64_t fwd_bits = DURASIM_HOST_FWD_BITS, trans_bits = DURASIM_HOST_TRANS_BITS, wake_percent = 30;
    static_assert(fwd_bits <= 2047 && trans_bits <= 512);

    // A thread: its check registers, and whether it is between a check and what follows.
    struct Hart {
        std::array<std::uint64_t, 11> registers{};
        std::uint32_t is_inside = 0;
        Hart* next = nullptr;
    };

    // The calling thread. It is never freed: a thread that has ended is inside of no access.
    static Hart& hart() {
        static thread_local Hart* own = nullptr;
        if (own == nullptr) {
            own = new Hart;
            own->next = __atomic_load_n(&harts_, __ATOMIC_SEQ_CST);
            while (!__atomic_compare_exchange_n(&harts_, &own->next, own, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
            }
        }
        return *own;
    }

    static std::uint64_t& register_of(Hart& hart, CheckRegister number) { return hart.registers[static_cast<unsigned>(number)]; }

    // Tables IV and V: 0 if the hardware continues, else the number of the handler. The thread is inside of an access then, and
    // leaves it if a handler has to run.
    static unsigned enter_load(Hart& hart, const void* base) {
        enter(hart);
        return leave_for(hart, !is_in_heap(hart, base) && is_in_fwd(hart, base) ? 4 : 0);
    }
    static unsigned enter_store_h(Hart& hart, const void* base) {
        enter(hart);
        if (is_in_heap(hart, base)) return leave_for(hart, is_in_xaction(hart) ? 3 : 0);
        return leave_for(hart, is_in_fwd(hart, base) ? 1 : 0);
    }
    static unsigned enter_store_both(Hart& hart, const void* base, const void* value) {
        enter(hart);
        const bool value_in_heap = is_in_heap(hart, value);
        if (!is_in_heap(hart, base)) return leave_for(hart, is_in_fwd(hart, base) || (!value_in_heap && is_in_fwd(hart, value)) ? 1 : 0);
        if (!value_in_heap || is_in_trans(hart, value)) return leave_for(hart, 2);
        return leave_for(hart, is_in_xaction(hart) ? 3 : 0);
    }
    static void leave(Hart& hart) { __atomic_store_n(&hart.is_inside, 0, __ATOMIC_RELEASE); }

    // The registers that the hart gives a handler, and the handler.
    static void call_handler(Hart& hart, unsigned number, const void* base, std::uint64_t offset, std::uint64_t value, std::uint64_t access) {
        const std::uint64_t handler = register_of(hart, CheckRegister::handlers);
        if (handler == 0) fail(exit_runtime, "durasim: a checked access needs a handler, and none is set");
        register_of(hart, CheckRegister::base) = reinterpret_cast<std::uint64_t>(base);
        register_of(hart, CheckRegister::offset) = offset;
        register_of(hart, CheckRegister::value) = value;
        register_of(hart, CheckRegister::access) = access;
        reinterpret_cast<std::uint64_t (*)(std::uint64_t)>(handler)(number);
    }

    static bool is_in_heap(Hart& hart, const void* object) {
        const auto address = reinterpret_cast<std::uint64_t>(object);
        return address >= register_of(hart, CheckRegister::heap_base) && address < register_of(hart, CheckRegister::heap_limit);
    }

    // Calls change(red, black, trans) while no thread is inside of an access.
    template <class Change>
    static auto update(Change&& change) {
        Hart& own = hart();
        std::uint64_t* const red = filters(own);
        lock_.lock();
        __atomic_store_n(&changing_, 1, __ATOMIC_SEQ_CST);
        for (Hart* other = __atomic_load_n(&harts_, __ATOMIC_SEQ_CST); other != nullptr; other = other->next) {
            while (__atomic_load_n(&other->is_inside, __ATOMIC_SEQ_CST) != 0) ::sched_yield();
        }
        const auto result = change(red, red + fwd_words, red + 2 * fwd_words);
        __atomic_store_n(&changing_, 0, __ATOMIC_SEQ_CST);
        lock_.unlock();
        return result;
    }

    // Of a forwarding filter: four lines; the last bit of them is Active.
    static constexpr std::uint64_t fwd_words = 32, trans_words = 8, active = std::uint64_t{1} << 63;

    static bool is_active(const std::uint64_t* red) { return (red[fwd_words - 1] & active) != 0; }

    static void insert(std::uint64_t* filter, const void* object, std::uint64_t bits) {
        for (const std::uint64_t bit : places(object, bits)) filter[bit / 64] |= std::uint64_t{1} << bit % 64;
    }

    static std::uint64_t bits_set(const std::uint64_t* filter) {
        std::uint64_t count = 0;
        for (std::uint64_t i = 0; i < fwd_words; ++i) count += static_cast<std::uint64_t>(__builtin_popcountll(i + 1 == fwd_words ? filter[i] & ~active : filter[i]));
        return count;
    }

private:
    static std::uint64_t* filters(Hart& hart) {
        const std::uint64_t page = register_of(hart, CheckRegister::filters);
        if (page == 0) fail(exit_runtime, "durasim: a checked access needs filters, and none are set");
        return reinterpret_cast<std::uint64_t*>(page);
    }

    static void enter(Hart& hart) {
        for (;;) {
            __atomic_store_n(&hart.is_inside, 1, __ATOMIC_SEQ_CST);
            if (__atomic_load_n(&changing_, __ATOMIC_SEQ_CST) == 0) return;
            __atomic_store_n(&hart.is_inside, 0, __ATOMIC_SEQ_CST);
            while (__atomic_load_n(&changing_, __ATOMIC_SEQ_CST) != 0) ::sched_yield();
        }
    }

    static unsigned leave_for(Hart& hart, unsigned handler) {
        if (handler != 0) leave(hart);
        return handler;
    }

    static std::array<std::uint64_t, 2> places(const void* object, std::uint64_t bits) {
        const auto address = reinterpret_cast<std::uint64_t>(object);
        return {(address * 0x9E3779B97F4A7C15u >> 32) % bits, (address * 0xC2B2AE3D27D4EB4Fu >> 32) % bits};
    }
    static bool contains(const std::uint64_t* filter, const void* object, std::uint64_t bits) {
        for (const std::uint64_t bit : places(object, bits)) {
            if ((filter[bit / 64] >> bit % 64 & 1) == 0) return false;
        }
        return true;
    }
    static bool is_in_fwd(Hart& hart, const void* object) {
        const std::uint64_t* const red = filters(hart);
        return contains(red, object, fwd_bits) || contains(red + fwd_words, object, fwd_bits);
    }
    static bool is_in_trans(Hart& hart, const void* object) { return contains(filters(hart) + 2 * fwd_words, object, trans_bits); }
    static bool is_in_xaction(Hart& hart) { return (register_of(hart, CheckRegister::xaction) & 1) != 0; }

    static inline Lock lock_;
    static inline std::uint32_t changing_ = 0;
    static inline Hart* harts_ = nullptr;
};

template <class T>
T* place_of(void* base, std::uint64_t offset) {
    return reinterpret_cast<T*>(static_cast<char*>(base) + offset);
}

template <StoreKind kind, class T>
void put_as(T* place, T value) {
    put(place, value);
    if constexpr (kind != StoreKind::plain) durasim_clean(place);
    if constexpr (kind == StoreKind::clean_and_fence) durasim_persist_fence();
}

// A checked store that is inside of its access if no handler is needed.
template <StoreKind kind, class T>
void finish_store(HostChecks::Hart& hart, unsigned handler, unsigned funct3, void* base, std::uint64_t offset, T value) {
    if (handler != 0) {
        HostChecks::call_handler(hart, handler, base, offset, static_cast<std::uint64_t>(value), store_funct7<T, kind> | funct3 << 8);
        return;
    }
    if (HostChecks::is_in_heap(hart, base)) {
        put_as<kind>(place_of<T>(base, offset), value);
    } else {
        put(place_of<T>(base, offset), value);
    }
    HostChecks::leave(hart);
}

}  // namespace detail

template <class T>
T check_load(const void* base, std::uint64_t offset) {
    auto& hart = detail::HostChecks::hart();
    if (const unsigned handler = detail::HostChecks::enter_load(hart, base)) {
        detail::HostChecks::call_handler(hart, handler, base, offset, 0, detail::load_funct7<T> | DURASIM_FUNCT3_CHECK_LOAD << 8);
        return static_cast<T>(detail::HostChecks::register_of(hart, CheckRegister::result));
    }
    const T value = get(detail::place_of<T>(const_cast<void*>(base), offset));
    detail::HostChecks::leave(hart);
    return value;
}

template <StoreKind kind, class T>
void check_store_h(void* base, std::uint64_t offset, T value) {
    auto& hart = detail::HostChecks::hart();
    const unsigned handler = detail::HostChecks::enter_store_h(hart, base);
    detail::finish_store<kind>(hart, handler, DURASIM_FUNCT3_CHECK_STORE_H, base, offset, value);
}

template <StoreKind kind>
void check_store_both(void* base, std::uint64_t offset, const void* value) {
    auto& hart = detail::HostChecks::hart();
    const unsigned handler = detail::HostChecks::enter_store_both(hart, base, value);
    detail::finish_store<kind>(hart, handler, DURASIM_FUNCT3_CHECK_STORE_BOTH, base, offset, reinterpret_cast<std::uint64_t>(value));
}

template <StoreKind kind, class T>
void persist_store(T* place, T value) {
    detail::put_as<kind>(place, value);
}

inline bool insert_fwd(const void* object) {
    using Host = detail::HostChecks;
    return Host::update([&](std::uint64_t* red, std::uint64_t* black, std::uint64_t*) {
        std::uint64_t* const filter = Host::is_active(red) ? red : black;
        Host::insert(filter, object, Host::fwd_bits);
        return Host::bits_set(filter) * 100 >= Host::fwd_bits * Host::wake_percent;
    });
}
inline void insert_trans(const void* object) {
    using Host = detail::HostChecks;
    Host::update([&](std::uint64_t*, std::uint64_t*, std::uint64_t* trans) {
        Host::insert(trans, object, Host::trans_bits);
        return 0;
    });
}
inline void clear_fwd() {
    using Host = detail::HostChecks;
    Host::update([](std::uint64_t* red, std::uint64_t* black, std::uint64_t*) {
        std::uint64_t* const filter = Host::is_active(red) ? black : red;
        for (std::uint64_t i = 0; i < Host::fwd_words; ++i) filter[i] = i + 1 == Host::fwd_words ? filter[i] & Host::active : 0;
        return 0;
    });
}
inline void clear_trans() {
    using Host = detail::HostChecks;
    Host::update([](std::uint64_t*, std::uint64_t*, std::uint64_t* trans) {
        for (std::uint64_t i = 0; i < Host::trans_words; ++i) trans[i] = 0;
        return 0;
    });
}
inline void change_active() {
    using Host = detail::HostChecks;
    Host::update([](std::uint64_t* red, std::uint64_t* black, std::uint64_t*) {
        const bool was_red = Host::is_active(red);
        std::uint64_t& red_end = red[Host::fwd_words - 1];
        std::uint64_t& black_end = black[Host::fwd_words - 1];
        red_end = was_red ? red_end & ~Host::active : red_end | Host::active;
        black_end = was_red ? black_end | Host::active : black_end & ~Host::active;
        return 0;
    });
}

template <CheckRegister number>
std::uint64_t check_read() {
    return detail::HostChecks::register_of(detail::HostChecks::hart(), number);
}
template <CheckRegister number>
void check_write(std::uint64_t word) {
    detail::HostChecks::register_of(detail::HostChecks::hart(), number) = word;
}

}  // namespace durasim

#endif
