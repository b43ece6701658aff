// The shared part of runtimes with moving objects, with any checks of accesses: where objects are born, where they are now, and how
// they become durable.
#ifndef DURASIM_OBJECTS_MOVING_BARRIERS_H
#define DURASIM_OBJECTS_MOVING_BARRIERS_H

#include <cstdint>

#include "objects/heap.h"
#include "objects/make_recoverable.h"
#include "objects/profile.h"
#include "runtimes/planted.h"

namespace durasim::objects {

// `Stores` makes durable stores. Objects are born in ordinary memory with `flags_when_born` in their headers.
template <class Stores, std::uint64_t flags_when_born>
class MovingBarriers {
public:
    static constexpr bool is_durable = true;
    static constexpr bool moves_objects = true;

    MovingBarriers(Heap& heap, const ObjectOptions& options) : heap_(heap), options_(options), stores_(heap) {}

    Stores& stores() { return stores_; }

    // The place of an object now.
    Object* resolve(Object* object) const {
        if (heap_.is_persistent(object)) return object;
        const Header header = header_of(object);
        if (header.has(Header::forwarding)) [[unlikely]] return header.target();
        return object;
    }

    // A new object, all words 0. The calling thread alone knows it until it stores it somewhere.
    Object* allocate(Thread& thread, Site& site, std::uint64_t words, std::uint64_t references) {
        const bool durable = options_.placed ? site.is_placed_durably() : options_.profile && site.is_durable();
        site.count_allocation();
        Object* const object = heap_.allocate_raw(thread, durable ? Heap::in_persistent : Heap::in_volatile, words);
        for (std::uint64_t i = 0; i < words; ++i) put(object->words() + i, std::uint64_t{0});
        const std::uint64_t flags = durable ? Header::non_volatile | Header::shared : flags_when_born;
        put_last(&object->header, Header::of(words, references, flags).of_site(durable ? 0 : site.number()).word());
        return object;
    }

    // Stores to an object that the thread has just made, before it stores it anywhere.
    void initialize(Object* object, std::uint64_t index, std::uint64_t value) { put(object->words() + index, value); }

    void finish(Thread& thread, Object* object) {
        if (heap_.persistent.holds(object)) stores_.finish(thread, object);
    }

protected:
    bool is_recoverable(const Object* value) const {
        if (!heap_.persistent.holds(value)) return false;
        if (planted(Fault::queued_value_stored)) return true;
        const Header header(get_first(&value->header));
        return !header.has(Header::queued) && !heap_.threads.is_clearing(header.owner());
    }

    [[gnu::noinline]] Object* make_recoverable(Thread& thread, Object* value) {
        stores_.leave_region(thread);
        static thread_local MakeRecoverable move(heap_);
        Object* const moved = move(thread, value);
        stores_.return_to_region(thread);
        return moved;
    }

    Heap& heap_;
    const ObjectOptions& options_;
    Stores stores_;
};

}  // namespace durasim::objects

#endif
