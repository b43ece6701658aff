// AutoPersist (Shull, Huang and Torrellas, PLDI 2019), as P-INSPECT (MICRO 2020) describes and measures it: persistence by
// reachability with all checks in software. Before each access:
//
// - Is the holder forwarding? Then its copy in persistent memory is accessed. (Section III-C; a holder in persistent memory
//   never is.)
// - A store of a reference: is the value forwarding, is it in ordinary memory or queued while the holder is in persistent
//   memory? Then it is made recoverable first.
// - Is the holder in persistent memory? Then the store is durable before the next one, or logged in a region.
#ifndef DURASIM_OBJECTS_AUTOPERSIST_H
#define DURASIM_OBJECTS_AUTOPERSIST_H

#include <cstdint>

#include "objects/heap.h"
#include "objects/make_recoverable.h"
#include "objects/persistent_stores.h"
#include "objects/profile.h"
#include "runtimes/planted.h"

namespace durasim::objects {

class Barriers {
public:
    static constexpr bool is_durable = true;
    static constexpr bool moves_objects = true;

    Barriers(Heap& heap, const ObjectOptions& options) : heap_(heap), options_(options), stores_(heap) {}

    PersistentStores& stores() { return stores_; }

    // Where an object is now.
    Object* resolve(Object* object) const {
        if (heap_.is_persistent(object)) return object;
        const Header header = header_of(object);
        if (header.has(Header::forwarding)) [[unlikely]] return header.target();
        return object;
    }

    std::uint64_t load(Object* holder, std::uint64_t index) const { return get(resolve(holder)->words() + index); }

    template <Placement>
    void store(Thread& thread, Object* holder, std::uint64_t index, std::uint64_t value) {
        holder = holder_for_store(thread, holder);
        if (heap_.is_persistent(holder)) {
            stores_.store(thread, holder->words() + index, value);
        } else {
            put(holder->words() + index, value);
        }
    }

    template <Placement>
    void store_words(Thread& thread, Object* holder, std::uint64_t index, const std::uint64_t* from, std::uint64_t count) {
        holder = holder_for_store(thread, holder);
        if (heap_.is_persistent(holder)) {
            stores_.store_words(thread, holder->words() + index, from, count);
        } else {
            for (std::uint64_t i = 0; i < count; ++i) put(holder->words() + index + i, from[i]);
        }
    }

    template <Placement>
    void store_reference(Thread& thread, Object* holder, std::uint64_t index, Object* value) {
        if (value != nullptr) value = resolve(value);
        holder = holder_for_store(thread, holder);
        if (heap_.is_persistent(holder)) {
            if (value != nullptr && !is_recoverable(value)) value = make_recoverable(thread, value);
            stores_.store(thread, holder->words() + index, reinterpret_cast<std::uint64_t>(value));
            return;
        }
        if (value != nullptr && !heap_.persistent.holds(value)) share_with(holder, value);
        put(holder->words() + index, reinterpret_cast<std::uint64_t>(value));
    }

    // A new object, all words 0. The calling thread alone knows it until it stores it somewhere.
    Object* allocate(Thread& thread, Site& site, std::uint64_t words, std::uint64_t references) {
        const bool durable = options_.placed ? site.is_placed_durably() : options_.profile && site.is_durable();
        site.count_allocation();
        Object* const object = heap_.allocate_raw(thread, durable ? Heap::in_persistent : Heap::in_volatile, words);
        for (std::uint64_t i = 0; i < words; ++i) put(object->words() + i, std::uint64_t{0});
        const std::uint64_t flags = durable ? Header::non_volatile | Header::shared : 0;
        put_last(&object->header, Header::of(words, references, flags).of_site(durable ? 0 : site.number()).word());
        return object;
    }

    // Stores to an object that the thread has just made, before it stores it anywhere.
    void initialize(Object* object, std::uint64_t index, std::uint64_t value) { put(object->words() + index, value); }

    void initialize_reference(Thread& thread, Object* object, std::uint64_t index, Object* value) {
        if (value != nullptr) value = resolve(value);
        if (value != nullptr && heap_.persistent.holds(object) && !is_recoverable(value)) value = make_recoverable(thread, value);
        put(object->words() + index, reinterpret_cast<std::uint64_t>(value));
    }

    void finish(Thread& thread, Object* object) {
        if (heap_.persistent.holds(object)) stores_.finish(thread, object);
    }

private:
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

    // Where to store. In ordinary memory: no thread moves the object, and none begins to copy it before this access ends.
    Object* holder_for_store(Thread& thread, Object* holder) {
        if (heap_.is_persistent(holder)) return holder;
        heap_.threads.poll(thread);
        const Header header = header_of(holder);
        if (!header.has(Header::forwarding | Header::copying)) [[likely]] return holder;
        return moved_holder(thread, holder);
    }

    [[gnu::noinline]] Object* moved_holder(Thread& thread, Object* holder) {
        if (header_of(holder).has(Header::forwarding)) return header_of(holder).target();
        if (planted(Fault::copying_ignored)) return holder;
        heap_.threads.wait_inside(thread, [&] { return header_of(holder).has(Header::forwarding); });
        return header_of(holder).target();
    }

    // Other threads may come to know `value` and all that it reaches, if they may know the holder.
    void share_with(const Object* holder, Object* value) {
        if (!header_of(holder).has(Header::shared) || planted(Fault::sharing_not_noted)) return;
        if (!header_of(value).has(Header::shared | Header::forwarding)) [[unlikely]] share(value);
    }

    [[gnu::noinline]] void share(Object* value) {
        static thread_local std::vector<Object*> list;
        list.push_back(value);
        while (!list.empty()) {
            Object* const object = list.back();
            list.pop_back();
            const Header header = header_of(object);
            if (header.has(Header::shared | Header::forwarding)) continue;
            put(&object->header, header.with(Header::shared).word());
            for (std::uint64_t i = 0; i < header.references(); ++i) {
                auto* const next = reinterpret_cast<Object*>(get(object->words() + i));
                if (next != nullptr && !heap_.persistent.holds(next)) list.push_back(next);
            }
        }
    }

    Heap& heap_;
    const ObjectOptions& options_;
    PersistentStores stores_;
};

}  // namespace durasim::objects

#endif
