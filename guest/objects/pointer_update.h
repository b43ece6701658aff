// The pointer update thread (PUT; P-INSPECT, MICRO 2020, sections V-A and VI-A): when enough objects forward, it sweeps the
// volatile heap in the background, replaces references to forwarding objects by what these forward to, and takes the
// forwarding objects back.
//
// - The paper sweeps one of two filters; here two lists, with filters or without. An object that comes to forward
//   during a sweep is for the next one.
// - A thread may have loaded a reference to a forwarding object before the sweep replaced it, and hold it in a register or on
//   its stack. So the sweep waits until every thread has ended its operation. No thread stores such a reference meanwhile:
//   stores replace what forwards.
// - The collector does the same while all threads stand still. If it wants to work, a sweep ends early.
#ifndef DURASIM_OBJECTS_POINTER_UPDATE_H
#define DURASIM_OBJECTS_POINTER_UPDATE_H

#include <pthread.h>

#include <cstdint>
#include <vector>

#include "durasim/error.h"
#include "durasim/threads.h"
#include "objects/checks.h"
#include "objects/heap.h"
#include "runtimes/planted.h"

namespace durasim::objects {

class PointerUpdate {
public:
    // The number of sweeps of the whole heap, and of replaced references.
    std::uint64_t sweeps = 0, references = 0;

    // Sweeps when `forwarders` objects forward that it has not seen, or when the hardware says so. It runs on a core of its own if there is one.
    PointerUpdate(Heap& heap, std::uint64_t forwarders, unsigned core) : heap_(heap), forwarders_(forwarders), core_(core) {
        if (const int error = ::pthread_create(&thread_, nullptr, [](void* self) -> void* { return static_cast<PointerUpdate*>(self)->run(), nullptr; }, this)) {
            fail(exit_runtime, "durasim: cannot start the pointer update thread: %s", std::strerror(error));
        }
    }
    PointerUpdate(const PointerUpdate&) = delete;
    PointerUpdate& operator=(const PointerUpdate&) = delete;

    ~PointerUpdate() {
        put_last(&ended_, 1);
        wake();
        ::pthread_join(thread_, nullptr);
    }

    // A thread that has ended an operation reports it here: it wakes the thread if there is enough to do.
    void notice() {
        if (__atomic_load_n(&heap_.forwarders.waiting, __ATOMIC_RELAXED) < forwarders_) return;
        if (get_first(&asleep_) != 0) wake();
    }

private:
    void run() {
        pin_to_core(core_, allowed_cores());
        Thread& thread = heap_.threads.of(object_threads_max - 1);
        Checks::enter_thread(heap_);
        while (get_first(&ended_) == 0) {
            if (get_first(&heap_.forwarders.waiting) < forwarders_) {
                __atomic_store_n(&asleep_, 1, __ATOMIC_SEQ_CST);
                if (__atomic_load_n(&heap_.forwarders.waiting, __ATOMIC_SEQ_CST) < forwarders_ && __atomic_load_n(&ended_, __ATOMIC_SEQ_CST) == 0) {
                    durasim::detail::futex_wait(&asleep_, 1);
                }
                __atomic_store_n(&asleep_, 0, __ATOMIC_SEQ_CST);
                continue;
            }
            heap_.threads.begin_operation(thread);
            take_list();
            Checks::begin_sweep(heap_, thread);
            // A store that found an object as it was before it forwarded is made before the sweep looks.
            if constexpr (!Checks::in_hardware) heap_.threads.handshake(thread);
            if (sweep(thread) && (planted(Fault::sweep_does_not_wait) || wait_for_safepoints(thread))) {
                Checks::end_sweep();
                free_swept();
                ++sweeps;
            }
            heap_.threads.end_operation(thread);
        }
    }

    void wake() {
        __atomic_store_n(&asleep_, 0, __ATOMIC_SEQ_CST);
        durasim::detail::futex_wake(&asleep_, 1);
    }

    // Objects that forward so far are for this sweep, the rest for the next one.
    void take_list() {
        Forwarders& all = heap_.forwarders;
        all.lock.lock();
        Checks::take_forwarders();
        all.swept.insert(all.swept.end(), all.active.begin(), all.active.end());
        all.active.clear();
        put_last(&all.waiting, 0);
        all.lock.unlock();
    }

    // When it returns true, no thread has a reference to what has been swept. False if the collector wants to work.
    //
    // A thread that moved an object may have copied a reference to a swept one before the sweep replaced it, and others may
    // have found that in the copy until it was replaced there, which was before the thread's operation ended. So these are
    // waited for too, when that cannot happen any more.
    bool wait_for_safepoints(Thread& thread) {
        Checks::before_safepoints();
        return heap_.threads.wait_for_safepoints(thread);
    }

    // False if the collector wants to work.
    bool sweep(Thread& thread) {
        return heap_.volatile_space.walk([&](Object* object) {
            heap_.threads.poll(thread);
            if (heap_.threads.is_stopping()) return false;
            const Header header = header_of(object);
            if (header.has(Header::forwarding)) return true;
            if (planted(Fault::sweep_overwrites_stores)) return overwrite(object, header.references());
            for (std::uint64_t i = 0; i < header.references(); ++i) update(object->words() + i);
            return true;
        });
    }

    void update(std::uint64_t* place) {
        const std::uint64_t old = get(place);
        auto* object = reinterpret_cast<Object*>(old);
        if (old == 0 || heap_.is_persistent(object)) return;
        const Header header = header_of(object);
        if (!header.has(Header::forwarding)) return;
        // A thread that has stored there meanwhile has stored something newer.
        put_if(place, old, reinterpret_cast<std::uint64_t>(header.target()));
        ++references;
    }

    // Only with a fault: reads all references of an object, and writes them back as they should be.
    static bool overwrite(Object* object, std::uint64_t count) {
        std::vector<std::uint64_t> words;
        for (std::uint64_t i = 0; i < count; ++i) words.push_back(get(object->words() + i));
        for (std::uint64_t& word : words) {
            const auto* referred = reinterpret_cast<Object*>(word);
            if (word != 0 && header_of(referred).has(Header::forwarding)) word = reinterpret_cast<std::uint64_t>(header_of(referred).target());
        }
        for (std::uint64_t i = 0; i < count; ++i) put(object->words() + i, words[i]);
        return true;
    }

    void free_swept() {
        Forwarders& all = heap_.forwarders;
        for (Object* object : all.swept) heap_.volatile_space.give_back(object, room_bytes(header_of(header_of(object).target()).words()));
        all.swept.clear();
    }

    Heap& heap_;
    std::uint64_t forwarders_;
    unsigned core_;
    std::uint32_t asleep_ = 0, ended_ = 0;
    pthread_t thread_{};
};

}  // namespace durasim::objects

#endif
