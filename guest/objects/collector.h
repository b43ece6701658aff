// The collector: finds what roots reach, in both heaps, and frees everything else. It runs while all threads are at
// safepoints.
//
// References to forwarding objects are replaced by what these forward to, so none is left. In persistent memory nothing is
// written: an object that no durable root reaches is none, before and after.
#ifndef DURASIM_OBJECTS_COLLECTOR_H
#define DURASIM_OBJECTS_COLLECTOR_H

#include <cstdint>
#include <vector>

#include "objects/heap.h"
#include "runtimes/planted.h"

namespace durasim::objects {

class Collector {
public:
    // The memory that a collection found in use.
    struct Found {
        std::uint64_t volatile_objects = 0, persistent_objects = 0;
        const char* problem = nullptr;  // null if all is well
        const Object* where = nullptr;
    };

    explicit Collector(Heap& heap) : heap_(heap) {}

    // Both heaps.
    Found collect() {
        heap_.volatile_space.forget();
        heap_.persistent.forget();
        Found found;
        reach_all(heap_.volatile_roots, found);
        reach_all(heap_.durable_roots, found);
        bool consistent = true;
        heap_.volatile_space.mark(heap_.volatile_roots, room_bytes(roots_max), consistent);
        while (!list_.empty()) {
            Object* const object = list_.back();
            list_.pop_back();
            reach_all(object, found);
        }
        heap_.volatile_space.rebuilt();
        heap_.persistent.rebuilt();
        heap_.forwarders.active.clear();
        heap_.forwarders.swept.clear();
        heap_.forwarders.waiting = 0;
        return found;
    }

private:
    void reach_all(Object* holder, Found& found) {
        const std::uint64_t references = header_of(holder).references();
        for (std::uint64_t i = 0; i < references; ++i) {
            std::uint64_t* const place = holder->words() + i;
            const std::uint64_t word = get(place);
            if (word == 0) continue;
            auto* object = reinterpret_cast<Object*>(word);
            if (!heap_.persistent.holds(object) && header_of(object).has(Header::forwarding)) {
                object = header_of(object).target();
                put(place, reinterpret_cast<std::uint64_t>(object));
            }
            if (planted(Fault::collector_forgets_volatile_holders) && !heap_.is_persistent(holder) && heap_.persistent.holds(object)) continue;
            if (planted(Fault::collector_forgets_last_reference) && i + 1 == references && references > 1) continue;
            reach(object, found);
        }
    }

    void reach(Object* object, Found& found) {
        const Header header = header_of(object);
        const bool is_persistent = heap_.persistent.holds(object);
        bool consistent = true;
        Space& space = is_persistent ? heap_.persistent : heap_.volatile_space;
        if (!space.mark(object, room_bytes(header.words()), consistent)) {
            if (!consistent) fail(exit_runtime, "durasim: the collector found an object where none can be");
            return;
        }
        ++(is_persistent ? found.persistent_objects : found.volatile_objects);
        if (header.references() != 0) list_.push_back(object);
    }

    Heap& heap_;
    std::vector<Object*> list_;
};

}  // namespace durasim::objects

#endif
