// Ideal-R (P-INSPECT, MICRO 2020, section VIII): the user has said which objects are durable. They are born in persistent
// memory, so nothing is checked and nothing moves; durable stores are made as in AutoPersist.
#ifndef DURASIM_OBJECTS_IDEAL_H
#define DURASIM_OBJECTS_IDEAL_H

#include <cstdint>

#include "objects/heap.h"
#include "objects/persistent_stores.h"
#include "objects/profile.h"

namespace durasim::objects {

class Barriers {
public:
    static constexpr bool is_durable = true;
    static constexpr bool moves_objects = false;

    Barriers(Heap& heap, const ObjectOptions&) : heap_(heap), stores_(heap) {}

    PersistentStores& stores() { return stores_; }
    static Object* resolve(Object* object) { return object; }
    static std::uint64_t load(Object* holder, std::uint64_t index) { return get(holder->words() + index); }

    template <Placement placement>
    void store(Thread& thread, Object* holder, std::uint64_t index, std::uint64_t value) {
        if constexpr (placement == Placement::durable) {
            stores_.store(thread, holder->words() + index, value);
        } else {
            put(holder->words() + index, value);
        }
    }

    template <Placement placement>
    void store_words(Thread& thread, Object* holder, std::uint64_t index, const std::uint64_t* from, std::uint64_t count) {
        if constexpr (placement == Placement::durable) {
            stores_.store_words(thread, holder->words() + index, from, count);
        } else {
            for (std::uint64_t i = 0; i < count; ++i) put(holder->words() + index + i, from[i]);
        }
    }

    template <Placement placement>
    void store_reference(Thread& thread, Object* holder, std::uint64_t index, Object* value) {
        stores_.before_reference(thread);
        store<placement>(thread, holder, index, reinterpret_cast<std::uint64_t>(value));
    }

    Object* allocate(Thread& thread, Site& site, std::uint64_t words, std::uint64_t references) {
        const bool durable = site.is_placed_durably();
        Object* const object = heap_.allocate_raw(thread, durable ? Heap::in_persistent : Heap::in_volatile, words);
        for (std::uint64_t i = 0; i < words; ++i) put(object->words() + i, std::uint64_t{0});
        const std::uint64_t flags = durable ? Header::non_volatile | Header::shared : Header::shared;
        put_last(&object->header, Header::of(words, references, flags).word());
        return object;
    }

    static void initialize(Object* object, std::uint64_t index, std::uint64_t value) { put(object->words() + index, value); }
    static void initialize_reference(Thread&, Object* object, std::uint64_t index, Object* value) {
        put(object->words() + index, reinterpret_cast<std::uint64_t>(value));
    }
    void finish(Thread& thread, Object* object) {
        if (heap_.persistent.holds(object)) stores_.finish(thread, object);
    }

private:
    Heap& heap_;
    PersistentStores stores_;
};

}  // namespace durasim::objects

#endif
