// The two heaps, and what threads take from them.
#ifndef DURASIM_OBJECTS_HEAP_H
#define DURASIM_OBJECTS_HEAP_H

#include <cstdint>
#include <vector>

#include "durasim/error.h"
#include "durasim/persist.h"
#include "objects/header.h"
#include "objects/space.h"
#include "objects/threads.h"
#include "runtimes/planted.h"

namespace durasim::objects {

// Roots of each kind. They are the references of one object each.
inline constexpr std::uint64_t roots_max = 15;

// Objects that forward: since the last sweep began, and before.
struct Forwarders {
    Lock lock;
    std::vector<Object*> active, swept;
    std::uint64_t waiting = 0;  // as many as are active
    std::uint64_t total = 0;
};

class Heap {
public:
    enum Which : unsigned { in_volatile, in_persistent };

    Space volatile_space, persistent;
    Threads threads;
    Forwarders forwarders;
    Object* volatile_roots = nullptr;
    Object* durable_roots = nullptr;

    // The persistent heap takes [place, place + size_bytes): the durable roots, then chunks. A new one is formatted.
    void attach(char* place, std::uint64_t size_bytes, std::uint64_t volatile_bytes, bool is_fresh) {
        durable_roots = reinterpret_cast<Object*>(place);
        place += line_bytes * 2;
        size_bytes -= line_bytes * 2;
        persistent.attach(place, size_bytes, "persistent", "pool-bytes", false);
        volatile_space.attach(zero_pages<char>(volatile_bytes, "a volatile heap"), volatile_bytes, "volatile", "volatile-heap-bytes", true);
        if (is_fresh) {
            put(&durable_roots->header, Header::of(roots_max, roots_max, Header::non_volatile | Header::shared).word());
            clean(durable_roots, sizeof(Object));
            durasim_persist_fence();
        }
        volatile_roots = allocate_raw(threads.of(0), in_volatile, roots_max);
        for (std::uint64_t i = 0; i < roots_max; ++i) put(volatile_roots->words() + i, std::uint64_t{0});
        put(&volatile_roots->header, Header::of(roots_max, roots_max, Header::shared).word());
    }

    bool is_persistent(const Object* object) const { return object == durable_roots || persistent.holds(object); }

    // Room for an object with this many words after its header. What is there is arbitrary; in ordinary memory its header
    // is 0 until it is written, which comes last.
    Object* allocate_raw(Thread& thread, Which which, std::uint64_t words) {
        const std::uint64_t bytes = room_bytes(words);
        Space& space = which == in_volatile ? volatile_space : persistent;
        if (bytes > small_room_bytes_max) [[unlikely]] return reinterpret_cast<Object*>(space.take_large(bytes));
        const unsigned size_class = size_class_of(bytes);
        Run& run = thread.runs[which][size_class];
        if (run.next == run.end) [[unlikely]] space.refill(run, size_class);
        char* const place = run.next;
        run.next += cell_bytes(size_class);
        return reinterpret_cast<Object*>(place);
    }

    // Cleans the lines of the first `size_bytes` of an object.
    static void clean(const Object* object, std::uint64_t size_bytes) {
        const auto first = reinterpret_cast<std::uint64_t>(object), end = first + size_bytes;
        for (std::uint64_t line = first / line_bytes * line_bytes; line < end; line += line_bytes) {
            durasim_clean(reinterpret_cast<const void*>(line));
        }
    }

    void note_forwarder(Object* object) {
        forwarders.lock.lock();
        forwarders.active.push_back(object);
        put_last(&forwarders.waiting, std::uint64_t{forwarders.active.size()});
        ++forwarders.total;
        forwarders.lock.unlock();
    }
};

}  // namespace durasim::objects

#endif
