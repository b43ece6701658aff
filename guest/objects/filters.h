// The work of those who move objects and of the pointer update thread for accesses that are checked in hardware (p_inspect.h): they
// keep its filters (P-INSPECT, MICRO 2020, sections V-A and VI-A).
//
// FWD has the objects that forward. The paper inserts an object just before it forwards; a store between its copy and that
// moment is lost. Here:
//
// - An object that is going to be copied is Copying first, then in FWD, then copied. When the insertion has ended, all stores that
//   the hardware has made to the object have left their cores, and later accesses go to handlers. These wait while it is Copying.
// - A handler may have found the object before it was Copying, and stores to it. It says so before it looks (threads.h), and
//   the copy waits for it.
// - An object is in the list of forwarders when it is in FWD: under a lock, under which the pointer update thread changes the
//   active filter and takes the list too. So all that is in the filter that becomes inactive is on the list that is swept. Not all
//   of that forwards yet; the sweep waits for it.
// - The inactive filter is cleared when no reference to what is in it is left: not in the heap, which the sweep has seen to, and not
//   in a register or on a stack. The paper clears it after the sweep.
//
// TRANS has the copies whose closure may not be durable yet: their addresses in persistent memory, since these are
// what others store. It is cleared when no move is in progress. The paper clears it at the end of each.
#ifndef DURASIM_OBJECTS_FILTERS_H
#define DURASIM_OBJECTS_FILTERS_H

#include <sys/mman.h>

#include <cstdint>
#include <vector>

#include "durasim/checked.h"
#include "durasim/error.h"
#include "durasim/layout.h"
#include "durasim/lock.h"
#include "durasim/persist.h"
#include "objects/handler_table.h"
#include "objects/heap.h"
#include "objects/threads.h"
#include "runtimes/planted.h"

namespace durasim::objects {

class Filters {
public:
    static constexpr bool in_hardware = true;

    // The page of the filters, all of them empty.
    static void attach(const Heap&) {
        static bool is_mapped = false;
        if (is_mapped) return;
        auto* const wanted = reinterpret_cast<void*>(filter_page_address);
        void* const page = ::mmap(wanted, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page != wanted) {
            fail(exit_runtime, "durasim: the page of the filters cannot be mapped at %#llx", static_cast<unsigned long long>(filter_page_address));
        }
        put(static_cast<std::uint64_t*>(page), std::uint64_t{0});  // the page is there from now on
        is_mapped = true;
    }

    static void enter_thread(const Heap& heap) {
        const auto base = reinterpret_cast<std::uint64_t>(heap.durable_roots);
        const auto limit = reinterpret_cast<std::uint64_t>(heap.persistent.base()) + heap.persistent.size_bytes();
        check_write<CheckRegister::filters>(filter_page_address);
        check_write<CheckRegister::handlers>(handler_table_address());
        check_write<CheckRegister::heap_base>(base);
        check_write<CheckRegister::heap_limit>(planted(Fault::heap_limit_too_low) ? base + 2 * line_bytes : limit);
        check_write<CheckRegister::xaction>(0);
    }

    static void begin_move() {
        moves_lock_.lock();
        ++moves_;
        moves_lock_.unlock();
    }
    static void end_move() {
        moves_lock_.lock();
        --moves_;
        if (moves_ == 0 || planted(Fault::trans_cleared_by_each_move)) clear_trans();
        moves_lock_.unlock();
    }

    // Objects that are Copying, the first ones of their move or not. What is copied is read after the insertions.
    static void before_copying(Heap& heap, const std::vector<Object*>& copying, bool are_first) {
        if (!planted(Fault::inserted_behind_copy)) {
            heap.forwarders.lock.lock();
            for (Object* object : copying) insert(heap.forwarders, object, are_first && object == copying.front());
            heap.forwarders.lock.unlock();
        }
        durasim_full_fence();
    }

    // `moved` is going to have the content of the object: who finds it there finds it in TRANS too.
    static void copy(const Object* object, const Object* moved) {
        if (planted(Fault::copy_not_in_trans)) return;
        insert_trans(planted(Fault::old_address_in_trans) ? object : moved);
    }
    static void before_forwarding(Heap& heap, Object* object) {
        if (!planted(Fault::inserted_behind_copy)) return;
        heap.forwarders.lock.lock();
        insert(heap.forwarders, object, false);
        heap.forwarders.lock.unlock();
    }
    // All objects of the move forward, and their copies are not durable yet.
    static void before_fence() {
        if (planted(Fault::trans_cleared_before_fence)) clear_trans();
    }

    // The pointer update thread has the lock of the forwarders, and takes those there are.
    static void take_forwarders() {
        if (!planted(Fault::active_not_changed) && !planted(Fault::active_changed_late)) change_active();
    }
    // Everything on the list forwards, and a thread that has found an object of it before has stored what it stores.
    static void begin_sweep(Heap& heap, Thread& thread) {
        if (planted(Fault::fwd_cleared_before_sweep)) clear_fwd();
        if (!planted(Fault::sweep_before_forwarding)) {
            heap.threads.wait_inside(thread, [&] {
                for (const Object* object : heap.forwarders.swept) {
                    if (!Header(get_first(&object->header)).has(Header::forwarding)) return false;
                }
                return true;
            });
        }
        durasim_full_fence();
        heap.threads.wait_for_stores(thread);
    }
    // No reference to what has been swept is in the heap.
    static void before_safepoints() {
        if (planted(Fault::active_changed_late)) change_active();
        if (planted(Fault::fwd_cleared_before_safepoints)) clear_fwd();
    }
    // No thread has a reference to what has been swept.
    static void end_sweep() {
        if (planted(Fault::active_filter_cleared)) change_active();
        if (!planted(Fault::fwd_cleared_before_safepoints)) clear_fwd();
        if (planted(Fault::active_filter_cleared)) change_active();
    }
    // The collector has left no object that forwards.
    static void none_forwards() {
        if (planted(Fault::collector_leaves_fwd)) return;
        clear_fwd();
        change_active();
        clear_fwd();
    }

private:
    // The value of `waiting` when the hardware says that the pointer update thread has to work, however few objects wait.
    static constexpr std::uint64_t filter_is_full = ~std::uint64_t{0};

    static void insert(Forwarders& all, Object* object, bool is_first) {
        all.active.push_back(object);
        ++all.total;
        bool is_full = all.waiting == filter_is_full;
        if (!planted(Fault::object_not_inserted) && (is_first || !planted(Fault::first_object_only_inserted))) is_full |= insert_fwd(object);
        put_last(&all.waiting, is_full ? filter_is_full : std::uint64_t{all.active.size()});
    }

    static inline Lock moves_lock_;
    static inline std::uint64_t moves_ = 0;  // in progress
};

}  // namespace durasim::objects

#endif
