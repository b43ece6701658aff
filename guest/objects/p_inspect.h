// P-INSPECT (MICRO 2020): persistence by reachability with checks in hardware. Each access of a program is a checked one
// (durasim/checked.h). In most cases the hardware makes it; else one of four handlers does (section V-D, Algorithm 1).
//
// - Null is no object: storing it checks the holder alone, as storing a word does. Tables III and IV do not mention it, and
//   would take it for an object in ordinary memory.
// - All objects in ordinary memory count as known to other threads. The hardware stores references without noting who may know
//   an object then, so every object is claimed before it is copied.
// - Many words side by side are stored with one check in software.
#ifndef DURASIM_OBJECTS_P_INSPECT_H
#define DURASIM_OBJECTS_P_INSPECT_H

#include <array>
#include <cstdint>

#include "durasim/checked.h"
#include "durasim/error.h"
#include "objects/heap.h"
#include "objects/moving_barriers.h"
#include "objects/persistent_stores.h"
#include "runtimes/planted.h"

namespace durasim::objects {

// Durable stores beside those that the hardware makes.
class CheckedStores : public PersistentStores {
public:
    using PersistentStores::PersistentStores;

    // A durable store of the hardware holds later stores back and nothing else, so an operation ends after a fence.
    void end_operation(Thread& thread) {
        if (!thread.has_committed) {
            thread.has_cleans = false;
            if (!planted(Fault::no_fence_behind_store)) fence();
        }
        PersistentStores::end_operation(thread);
    }

    // In a region the hardware leaves durable stores to handlers.
    void begin_region(Thread& thread) {
        PersistentStores::begin_region(thread);
        if (!planted(Fault::xaction_not_set)) check_write<CheckRegister::xaction>(1);
    }
    void end_region(Thread& thread) {
        if (!planted(Fault::xaction_not_cleared)) check_write<CheckRegister::xaction>(0);
        PersistentStores::end_region(thread);
    }

    using PersistentStores::note_store;

    // One of a handler, to an object in the persistent heap. `kind` is for stores outside of regions; the others are logged
    // and cleaned, and the region ends with a fence.
    template <class T>
    void store_as(Thread& thread, T* place, T value, StoreKind kind) {
        if ((check_read<CheckRegister::xaction>() & 1) != 0 && !planted(Fault::handler_does_not_log)) {
            if (planted(Fault::region_not_logged)) return persist_store<StoreKind::clean>(place, value);
            runtime.store(place, value);
            return;
        }
        if (kind == StoreKind::plain || planted(Fault::handler_store_not_cleaned)) return persist_store<StoreKind::plain>(place, value);
        note_store(thread);
        if (kind == StoreKind::clean) return persist_store<StoreKind::clean>(place, value);
        persist_store<StoreKind::clean_and_fence>(place, value);
    }
};

// The work of the handlers of a thread: the calls of each, and those with nothing to do because a filter
// only seemed to have the object.
struct alignas(64) HandlerCalls {
    std::array<std::uint64_t, 4> calls{}, false_positives{};
};

class Barriers : public MovingBarriers<CheckedStores, Header::shared> {
public:
    using MovingBarriers::MovingBarriers;

    [[gnu::always_inline]] std::uint64_t load(Object* holder, std::uint64_t index) const { return check_load<std::uint64_t>(holder, offset_of(index)); }

    template <Placement>
    [[gnu::always_inline]] void store(Thread& thread, Object* holder, std::uint64_t index, std::uint64_t value) {
        note_store(thread, holder);
        store_word(holder, index, value);
    }

    template <Placement>
    void store_words(Thread& thread, Object* holder, std::uint64_t index, const std::uint64_t* from, std::uint64_t count) {
        Object* const now = resolve(holder);
        if (heap_.is_persistent(now)) {
            stores_.store_words(thread, now->words() + index, from, count);
        } else {
            for (std::uint64_t i = 0; i < count; ++i) store_word(now, index + i, from[i]);
        }
    }

    template <Placement>
    [[gnu::always_inline]] void store_reference(Thread& thread, Object* holder, std::uint64_t index, Object* value) {
        note_store(thread, holder);
        if (value == nullptr) return store_word(holder, index, 0);
        stores_.before_reference(thread);
        if (planted(Fault::store_not_cleaned)) {
            check_store_both<StoreKind::plain>(holder, offset_of(index), value);
        } else if (planted(Fault::no_fence_behind_store)) {
            check_store_both<StoreKind::clean>(holder, offset_of(index), value);
        } else {
            check_store_both<StoreKind::clean_and_fence>(holder, offset_of(index), value);
        }
    }

    // The object is cleaned as a whole later, and no part of a region.
    void initialize_reference(Thread& thread, Object* object, std::uint64_t index, Object* value) {
        if (value == nullptr) return initialize(object, index, 0);
        if (thread.in_region) check_write<CheckRegister::xaction>(0);
        check_store_both<StoreKind::plain>(object, offset_of(index), value);
        if (thread.in_region && !planted(Fault::xaction_not_set)) check_write<CheckRegister::xaction>(1);
    }

    // Makes the access that the check registers describe.
    void handle(Thread& thread, std::uint64_t number) {
        HandlerCalls& calls = calls_[thread.number];
        if (number - 1 >= calls.calls.size()) fail(exit_runtime, "durasim: there is no handler %llu", static_cast<unsigned long long>(number));
        ++calls.calls[number - 1];
        const Access access;
        bool needed = true;
        switch (access.word.width_log2()) {
            case 0: needed = handle_as<std::uint8_t>(thread, number, access); break;
            case 1: needed = handle_as<std::uint16_t>(thread, number, access); break;
            case 2: needed = handle_as<std::uint32_t>(thread, number, access); break;
            default: needed = handle_as<std::uint64_t>(thread, number, access);
        }
        if (!needed) ++calls.false_positives[number - 1];
    }

    // Of all threads together; they stand still.
    HandlerCalls handler_calls() const {
        HandlerCalls sum;
        for (const HandlerCalls& each : calls_) {
            for (std::size_t i = 0; i < sum.calls.size(); ++i) {
                sum.calls[i] += each.calls[i];
                sum.false_positives[i] += each.false_positives[i];
            }
        }
        return sum;
    }

private:
    // An access that a handler has to make.
    struct Access {
        Object* const base = reinterpret_cast<Object*>(check_read<CheckRegister::base>());
        const std::uint64_t offset = check_read<CheckRegister::offset>();
        const std::uint64_t value = check_read<CheckRegister::value>();
        const AccessWord word{check_read<CheckRegister::access>()};

        template <class T>
        T* place_in(Object* object) const {
            return reinterpret_cast<T*>(reinterpret_cast<char*>(object) + offset);
        }
        // Null if it stores none.
        Object* reference() const { return word.stores_reference() ? reinterpret_cast<Object*>(value) : nullptr; }
    };

    [[gnu::always_inline]] static std::uint64_t offset_of(std::uint64_t index) { return 8 * (1 + index); }

    [[gnu::always_inline]] static void store_word(Object* holder, std::uint64_t index, std::uint64_t value) {
        if (planted(Fault::store_not_cleaned)) {
            check_store_h<StoreKind::plain>(holder, offset_of(index), value);
        } else if (planted(Fault::no_fence_behind_store)) {
            check_store_h<StoreKind::clean>(holder, offset_of(index), value);
        } else {
            check_store_h<StoreKind::clean_and_fence>(holder, offset_of(index), value);
        }
    }

    // The hardware makes the store: only a history wants to know of it. Handlers note their own.
    [[gnu::always_inline]] void note_store(Thread& thread, const Object* holder) const {
        if constexpr (has_history) {
            if (!thread.in_region && heap_.is_persistent(holder)) CheckedStores::note_store(thread);
        }
    }

    // False if a filter has sent the access here for nothing.
    template <class T>
    bool handle_as(Thread& thread, std::uint64_t number, const Access& access) {
        switch (number) {
            case 1: return check_holder_and_value<T>(thread, access);
            case 2: return check_value<T>(thread, access, access.base);
            case 3: return log_store<T>(thread, access);
            default: return check_holder_of_load<T>(access);
        }
    }

    // checkHandV: the holder is in ordinary memory, and holder or value seem to forward.
    template <class T>
    bool check_holder_and_value(Thread& thread, const Access& access) {
        constexpr std::uint64_t moves = Header::forwarding | Header::copying;
        planted_slow(Fault::value_not_followed);
        heap_.threads.begin_store(thread);
        const Header header(get_first(&access.base->header));
        if (!header.has(moves) || (planted(Fault::copying_ignored) && header.has(Header::copying)) ||
            (planted(Fault::holder_not_followed) && header.has(Header::forwarding))) {
            // No thread copies the holder before this store has ended, and no sweep misses it.
            Object* const value = access.reference();
            std::uint64_t word = access.value;
            bool moves_value = false;
            if (value != nullptr && !heap_.is_persistent(value)) {
                const Header of_value(get_first(&value->header));
                moves_value = of_value.has(moves);
                if (of_value.has(Header::forwarding) && !planted(Fault::value_not_followed)) word = reinterpret_cast<std::uint64_t>(of_value.target());
            }
            put(access.template place_in<T>(access.base), static_cast<T>(word));
            heap_.threads.end_store(thread);
            return moves_value || header.has(moves);
        }
        heap_.threads.end_store(thread);
        if (!header.has(Header::forwarding)) {
            heap_.threads.wait_inside(thread, [&] { return header_of(access.base).has(Header::forwarding); });
        }
        check_value<T>(thread, access, header_of(access.base).target());
        return true;
    }

    // checkV: the holder is in persistent memory, and the value is not, or seems to be queued.
    template <class T>
    bool check_value(Thread& thread, const Access& access, Object* holder) {
        Object* value = access.reference();
        const bool was_recoverable = value == nullptr || is_recoverable(value);
        std::uint64_t word = access.value;
        if (!was_recoverable) {
            value = resolve(value);
            if (!is_recoverable(value) && !planted(Fault::value_not_moved)) value = make_recoverable(thread, value);
            word = reinterpret_cast<std::uint64_t>(value);
        }
        stores_.store_as(thread, access.template place_in<T>(holder), static_cast<T>(word), access.word.kind());
        return !was_recoverable;
    }

    // logStore: in a region, holder and value are in persistent memory.
    template <class T>
    bool log_store(Thread& thread, const Access& access) {
        stores_.store_as(thread, access.template place_in<T>(access.base), static_cast<T>(access.value), access.word.kind());
        return true;
    }

    // loadCheck: the holder is in ordinary memory and seems to forward.
    template <class T>
    bool check_holder_of_load(const Access& access) {
        const Header header(get_first(&access.base->header));
        Object* const holder = header.has(Header::forwarding) && !planted(Fault::load_not_followed) ? header.target() : access.base;
        const T value = get(access.template place_in<T>(holder));
        if (!planted(Fault::result_not_written)) check_write<CheckRegister::result>(value);
        return header.has(Header::forwarding | Header::copying);
    }

    std::array<HandlerCalls, object_threads_max> calls_{};
};

}  // namespace durasim::objects

#endif
