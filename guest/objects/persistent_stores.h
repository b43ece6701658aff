// Durable stores: sequential persistency outside of regions, an undo log inside. All runtimes with durable objects share it.
#ifndef DURASIM_OBJECTS_PERSISTENT_STORES_H
#define DURASIM_OBJECTS_PERSISTENT_STORES_H

#include <cstdint>

#include "durasim/history.h"
#include "durasim/markers.h"
#include "durasim/persist.h"
#include "durasim/tx.h"
#include "objects/heap.h"
#include "objects/threads.h"
#include "runtimes/planted.h"

namespace durasim::objects {

class PersistentStores {
public:
    explicit PersistentStores(Heap& heap) : heap_(heap) {}

    // A store to an object in persistent memory. Outside of a region it is durable on return; inside, when the region has
    // ended, and undone by recovery if it has not.
    [[gnu::noinline]] void store(Thread& thread, std::uint64_t* place, std::uint64_t value) {
        fence_behind_cleans(thread);
        if (thread.in_region) {
            store_in_region(place, value);
            return;
        }
        note_store(thread);
        put(place, value);
        if (!planted(Fault::store_not_cleaned)) clean(place);
        if (!planted(Fault::no_fence_behind_store)) fence();
    }

    // `count` words side by side: one fence for all.
    [[gnu::noinline]] void store_words(Thread& thread, std::uint64_t* place, const std::uint64_t* from, std::uint64_t count) {
        fence_behind_cleans(thread);
        if (thread.in_region) {
            for (std::uint64_t i = 0; i < count; ++i) store_in_region(place + i, from[i]);
            return;
        }
        note_store(thread);
        for (std::uint64_t i = 0; i < count; ++i) put(place + i, from[i]);
        clean_words(place, count);
        if (!planted(Fault::no_fence_behind_store)) fence();
    }

    // A new object in persistent memory has its first content. It is durable before the next durable store.
    void finish(Thread& thread, const Object* object) {
        if (planted(Fault::new_object_not_cleaned) || runtime.options.skip_flushes) return;
        heap_.clean(object, header_of(object).size_bytes());
        thread.has_cleans = true;
    }

    // Before a reference is stored somewhere: a finder of the object there finds its content, durable if it has to be.
    void before_reference(Thread& thread) {
        if (thread.has_cleans) [[unlikely]] fence_behind_cleans(thread);
    }

    // The transaction of the machine that the operation is belongs to the region alone: other stores are single ones.
    void begin_operation(Thread& thread) {
        thread.has_stored = thread.has_committed = false;
        if constexpr (Runtime::marks) {
            (void)durasim_tx_begin();
            durasim_tx_suspend();
        }
    }

    void end_operation(Thread& thread) {
        if (thread.in_region) fail(exit_runtime, "durasim: an operation ended inside of a region");
        fence_behind_cleans(thread);
        if constexpr (Runtime::marks) {
            if (thread.has_committed) return;
            durasim_tx_resume();
            if (!has_history || !thread.has_stored) durasim_tx_committing();
            durasim_tx_commit();
        }
    }

    // A failure-atomic region: all its durable stores survive, or none. It is the last part of its operation that stores
    // to persistent memory.
    void begin_region(Thread& thread) {
        if (thread.in_region || thread.has_committed || thread.has_stored) {
            fail(exit_runtime, "durasim: an operation has one region, and no durable store before it; regions do not nest");
        }
        fence_behind_cleans(thread);
        durasim_tx_resume();
        runtime.begin();
        thread.in_region = true;
    }

    void end_region(Thread& thread) {
        fence_behind_cleans(thread);
        thread.in_region = false;
        runtime.commit();
        thread.has_committed = true;
    }

    // Between these two, stores in a region are no part of it: those to objects that no durable one refers to yet.
    void leave_region(const Thread& thread) {
        if (thread.in_region) durasim_tx_suspend();
    }
    void return_to_region(const Thread& thread) {
        if (thread.in_region) durasim_tx_resume();
    }

protected:
    static void clean(const void* place) {
        if (!runtime.options.skip_flushes) durasim_clean(place);
    }
    static void fence() {
        if (!runtime.options.skip_fences) durasim_persist_fence();
    }

    void fence_behind_cleans(Thread& thread) {
        if (!thread.has_cleans) return;
        thread.has_cleans = false;
        if (!planted(Fault::no_fence_behind_new_object)) fence();
    }

    void store_in_region(std::uint64_t* place, std::uint64_t value) {
        if (planted(Fault::region_not_logged)) {
            put(place, value);
            clean(place);
            return;
        }
        runtime.store(place, value);
    }

    // From the first durable store on a crash may show the operation. Only a history wants to know.
    static void note_store(Thread& thread) {
        if constexpr (has_history && Runtime::marks) {
            if (!thread.has_stored) {
                durasim_tx_resume();
                durasim_tx_committing();
                durasim_tx_suspend();
            }
        }
        thread.has_stored = true;
    }

private:
    static void clean_words(const std::uint64_t* place, std::uint64_t count) {
        const auto first = reinterpret_cast<std::uint64_t>(place), end = first + 8 * count;
        if (planted(Fault::store_not_cleaned)) return;
        for (std::uint64_t line = first / line_bytes * line_bytes; line < end; line += line_bytes) {
            clean(reinterpret_cast<const void*>(line));
        }
    }

    Heap& heap_;
};

}  // namespace durasim::objects

#endif
