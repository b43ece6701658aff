// The threads that use objects, and how they wait for each other.
//
// - An *operation* is the time in which a thread holds addresses of objects in registers and on its stack. Between
//   operations it holds none: that is its safepoint. The collector stops all threads there; the pointer update thread waits
//   until each has passed one.
// - A *handshake* is shorter: it waits until each other thread has begun another access or is at a safepoint. Who moves an
//   object that other threads know needs it between setting Copying and copying: a store that found the bit clear is in
//   the object then, and later ones find the bit. AutoPersist counts the stores in progress in the header instead, by two
//   atomic operations for each store.
// - A *store of a handler* (p_inspect.h) is announced before the handler looks at its object, so a thread that moves objects
//   waits for those alone: the hardware sees to the others.
#ifndef DURASIM_OBJECTS_THREADS_H
#define DURASIM_OBJECTS_THREADS_H

#include <sched.h>

#include <array>
#include <cstdint>
#include <span>

#include "durasim/error.h"
#include "durasim/layout.h"
#include "durasim/lock.h"
#include "durasim/persist.h"
#include "objects/pages.h"
#include "objects/space.h"
#include "runtimes/store.h"

namespace durasim::objects {

// The workers, and the pointer update thread.
inline constexpr std::uint64_t object_threads_max = threads_max + 1;

enum class Place : std::uint64_t {
    outside,  // holds no address of an object
    inside,   // in an operation
    waiting,  // in an operation, inside of no access: looks at everything anew when it continues
};

// The progress of a thread with what it moves: its copies are durable (copied), and not queued any more (cleared).
enum class Move : std::uint64_t { none, copying, copied, cleared };

struct alignas(64) Thread {
    // The state that others look at.
    Place place = Place::outside;
    std::uint64_t handshakes_seen = 0;
    std::uint64_t safepoints = 0;  // passed so far
    Move move = Move::none;
    std::uint64_t moves = 0;                     // begun so far
    std::array<std::uint64_t, 2> depends_on{};   // threads whose queued objects this move has met, a bit for each
    std::uint64_t stores = 0;                    // begun and ended so far by its handlers, to ordinary memory

    // Its own.
    alignas(64) std::uint64_t number = 0;
    std::array<std::array<Run, size_classes>, 2> runs{};  // by heap: volatile, persistent
    bool in_region = false;
    bool has_cleans = false;     // lines of new objects were cleaned, and no fence has waited for them
    bool has_stored = false;     // the operation has made a durable store outside of a region
    bool has_committed = false;  // the commit marker of the operation's region is out
};

// Waits a moment longer each time, then lets others run.
class Backoff {
public:
    void wait() {
        if (looks_ < 64) {
            for (unsigned i = 0; i <= looks_ / 8; ++i) durasim::detail::pause_hint();
            ++looks_;
        } else {
            ::sched_yield();
        }
    }

private:
    unsigned looks_ = 0;
};

class Threads {
public:
    Thread& of(std::uint64_t number) { return threads_[number]; }

    // The calling thread begins an operation; waits while the collector works.
    void begin_operation(Thread& thread) {
        for (;;) {
            put(&thread.place, Place::inside);
            durasim_full_fence();
            if (get(&stopping_) == 0) return;
            put(&thread.place, Place::outside);
            for (Backoff backoff; get(&stopping_) != 0;) backoff.wait();
        }
    }

    // It holds no address of an object any more.
    void end_operation(Thread& thread) {
        put(&thread.safepoints, thread.safepoints + 1);
        put_last(&thread.place, Place::outside);
    }

    // At the beginning of an access: a thread that waits for a handshake may continue.
    void poll(Thread& thread) {
        const std::uint64_t wanted = get(&handshakes_);
        if (wanted != thread.handshakes_seen) [[unlikely]] answer(thread, wanted);
    }

    // Returns when each other thread has begun another access since, or is inside of none. The caller counts as waiting.
    [[gnu::noinline]] void handshake(Thread& thread) {
        const std::uint64_t wanted = __atomic_add_fetch(&handshakes_, 1, __ATOMIC_SEQ_CST);
        durasim_full_fence();
        wait_inside(thread, [&] {
            for (const Thread& other : threads_) {
                if (&other == &thread || get_first(&other.place) != Place::inside) continue;
                if (get_first(&other.handshakes_seen) < wanted) return false;
            }
            return true;
        });
    }

    // Around a store of a handler to an object in ordinary memory, and the look at the object before.
    void begin_store(Thread& thread) {
        put(&thread.stores, thread.stores + 1);
        durasim_full_fence();
    }
    void end_store(Thread& thread) { put_last(&thread.stores, thread.stores + 1); }

    // Returns when each store of a handler has ended that had begun before the caller's last full fence.
    void wait_for_stores(const Thread& thread) const {
        for (const Thread& other : threads_) {
            if (&other == &thread) continue;
            const std::uint64_t stores = get_first(&other.stores);
            if (stores % 2 == 0) continue;
            for (Backoff backoff; get_first(&other.stores) == stores;) backoff.wait();
        }
    }

    // Waits inside an operation until `holds()`; others do not wait for this thread meanwhile.
    template <class Condition>
    void wait_inside(Thread& thread, Condition&& holds) {
        put_last(&thread.place, Place::waiting);
        for (Backoff backoff; !holds();) backoff.wait();
        put(&thread.place, Place::inside);
        durasim_full_fence();
    }

    // Returns when each other thread has been at its safepoint twice, or is there, or the caller has to stop for the
    // collector: then false. The caller is in an operation itself and holds no address.
    bool wait_for_safepoints(Thread& thread) {
        bool stopped = false;
        for (unsigned round = 0; round < 2 && !stopped; ++round) {
            durasim_full_fence();
            std::array<std::uint64_t, object_threads_max> passed{};
            for (std::uint64_t i = 0; i < threads_.size(); ++i) passed[i] = get_first(&threads_[i].safepoints);
            wait_inside(thread, [&] {
                for (std::uint64_t i = 0; i < threads_.size(); ++i) {
                    if (&threads_[i] == &thread || get_first(&threads_[i].place) == Place::outside) continue;
                    if (get_first(&threads_[i].safepoints) == passed[i]) return stopped = is_stopping();
                }
                return true;
            });
        }
        return !stopped;
    }

    // Whether that thread may be clearing the Queued bits of a move, or waits for others that do.
    bool is_clearing(std::uint64_t number) const { return get_first(&threads_[number].move) >= Move::copied; }

    bool is_stopping() const { return get(&stopping_) != 0; }

    // Stops all other threads at their safepoints, calls `work`, and lets them continue. The caller is outside. False, and
    // nothing done, if another thread does that already.
    template <class Work>
    bool stop_others(Thread& thread, Work&& work) {
        std::uint64_t expected = 0;
        if (!__atomic_compare_exchange_n(&stopping_, &expected, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) return false;
        durasim_full_fence();
        for (const Thread& other : threads_) {
            if (&other == &thread) continue;
            for (Backoff backoff; get_first(&other.place) != Place::outside;) backoff.wait();
        }
        work();
        for (Thread& each : threads_) each.runs = {};
        put_last(&stopping_, 0);
        return true;
    }

private:
    [[gnu::noinline]] static void answer(Thread& thread, std::uint64_t wanted) {
        durasim_full_fence();
        put_last(&thread.handshakes_seen, wanted);
    }

    alignas(64) std::uint64_t handshakes_ = 0;
    alignas(64) std::uint64_t stopping_ = 0;
    // All zero at first.
    const std::span<Thread, object_threads_max> threads_{zero_pages<Thread>(object_threads_max, "a table of threads"), object_threads_max};
};

}  // namespace durasim::objects

#endif
