// Plain objects: no persistence at all, in ordinary memory (P-INSPECT's baseline.op, MICRO 2020, section IX-A, has neither
// reachability nor persistent memory).
#ifndef DURASIM_OBJECTS_PLAIN_H
#define DURASIM_OBJECTS_PLAIN_H

#include <cstdint>

#include "durasim/markers.h"
#include "objects/heap.h"
#include "objects/profile.h"

namespace durasim::objects {

// Operations are transactions of the machine, for its counters; nothing else is durable or atomic.
class NoPersistentStores {
public:
    static void begin_operation(Thread&) { (void)durasim_tx_begin(); }
    static void end_operation(Thread&) {
        durasim_tx_committing();
        durasim_tx_commit();
    }
    static void begin_region(Thread&) {}
    static void end_region(Thread&) {}
};

class Barriers {
public:
    static constexpr bool is_durable = false;
    static constexpr bool moves_objects = false;

    Barriers(Heap& heap, const ObjectOptions&) : heap_(heap) {}

    NoPersistentStores& stores() { return stores_; }
    static Object* resolve(Object* object) { return object; }
    static std::uint64_t load(Object* holder, std::uint64_t index) { return get(holder->words() + index); }

    template <Placement>
    static void store(Thread&, Object* holder, std::uint64_t index, std::uint64_t value) {
        put(holder->words() + index, value);
    }
    template <Placement>
    static void store_words(Thread&, Object* holder, std::uint64_t index, const std::uint64_t* from, std::uint64_t count) {
        for (std::uint64_t i = 0; i < count; ++i) put(holder->words() + index + i, from[i]);
    }
    template <Placement>
    static void store_reference(Thread&, Object* holder, std::uint64_t index, Object* value) {
        put(holder->words() + index, reinterpret_cast<std::uint64_t>(value));
    }

    Object* allocate(Thread& thread, Site&, std::uint64_t words, std::uint64_t references) {
        Object* const object = heap_.allocate_raw(thread, Heap::in_volatile, words);
        for (std::uint64_t i = 0; i < words; ++i) put(object->words() + i, std::uint64_t{0});
        put_last(&object->header, Header::of(words, references, Header::shared).word());
        return object;
    }

    static void initialize(Object* object, std::uint64_t index, std::uint64_t value) { put(object->words() + index, value); }
    static void initialize_reference(Thread&, Object* object, std::uint64_t index, Object* value) {
        put(object->words() + index, reinterpret_cast<std::uint64_t>(value));
    }
    static void finish(Thread&, Object*) {}

private:
    Heap& heap_;
    NoPersistentStores stores_;
};

}  // namespace durasim::objects

#endif
