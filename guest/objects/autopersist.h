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
#include "objects/moving_barriers.h"
#include "objects/persistent_stores.h"
#include "runtimes/planted.h"

namespace durasim::objects {

class Barriers : public MovingBarriers<PersistentStores, 0> {
public:
    using MovingBarriers::MovingBarriers;

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
        holder = holder_for_store(thread, holder);
        // After the poll of the holder: the pointer update thread does not look at the heap before this access ends.
        if (value != nullptr) value = resolve(value);
        if (heap_.is_persistent(holder)) {
            if (value != nullptr && !is_recoverable(value)) value = make_recoverable(thread, value);
            stores_.store(thread, holder->words() + index, reinterpret_cast<std::uint64_t>(value));
            return;
        }
        if (value != nullptr && !heap_.persistent.holds(value)) share_with(holder, value);
        stores_.before_reference(thread);
        put(holder->words() + index, reinterpret_cast<std::uint64_t>(value));
    }

    void initialize_reference(Thread& thread, Object* object, std::uint64_t index, Object* value) {
        if (value != nullptr) value = resolve(value);
        if (value != nullptr && heap_.persistent.holds(object) && !is_recoverable(value)) value = make_recoverable(thread, value);
        put(object->words() + index, reinterpret_cast<std::uint64_t>(value));
    }

private:
    // The place to store to. In ordinary memory: no thread moves the object, and none begins to copy it before this access ends.
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
};

}  // namespace durasim::objects

#endif
