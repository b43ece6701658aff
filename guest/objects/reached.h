// The objects that durable roots reach after a power failure, and whether all of it is what a recovery may leave: whole objects in
// persistent memory, not forwarding, without a reference to ordinary memory. Nothing that is read is trusted.
//
// Recovery ends what a crash has cut: a copy may be reached whose Queued bit was cleared, but not durably. The bit means
// nothing any more. What no root reaches is not in use: the heap reclaims it, as it is not reported.
#ifndef DURASIM_OBJECTS_REACHED_H
#define DURASIM_OBJECTS_REACHED_H

#include <cstdint>
#include <vector>

#include "durasim/persist.h"
#include "objects/header.h"
#include "objects/heap.h"
#include "objects/threads.h"
#include "runtimes/planted.h"

namespace durasim::objects {

class Reached {
public:
    // Marks in `persistent` what `roots` reach. A recovery ends what was cut; a check reports it.
    Reached(Space& persistent, Object* roots, bool is_recovery) : persistent_(persistent), is_recovery_(is_recovery) {
        persistent_.forget();
        if (header_of(roots).without(Header::queued) != Header::of(roots_max, roots_max, Header::non_volatile | Header::shared)) {
            problem_ = "the durable roots are damaged";
            return;
        }
        look_into(roots);
        while (!list_.empty() && problem_ == nullptr) {
            Object* const object = list_.back();
            list_.pop_back();
            look_into(object);
        }
        if (cleared_ != 0) durasim_persist_fence();
    }

    // The error, null if there is none.
    const char* problem() const { return problem_; }
    std::uint64_t objects() const { return objects_; }
    // Objects whose Queued bit was still set.
    std::uint64_t cleared() const { return cleared_; }

private:
    void look_into(const Object* holder) {
        std::uint64_t references = header_of(holder).references();
        if (planted(Fault::recovery_forgets_half) && is_recovery_) references -= references / 2;
        for (std::uint64_t i = 0; i < references; ++i) {
            if (const std::uint64_t word = get(holder->words() + i)) reach(reinterpret_cast<Object*>(word));
        }
    }

    void reach(Object* object) {
        const auto address = reinterpret_cast<std::uint64_t>(object);
        if (!persistent_.holds(object)) return fail_with("a durable object refers to ordinary memory");
        if (address % object_align_bytes != 0) return fail_with("a durable object refers to the middle of a word");
        Header header = header_of(object);
        if (header.has(Header::forwarding)) return fail_with("a durable object refers to a forwarding one");
        const std::uint64_t left = reinterpret_cast<std::uint64_t>(persistent_.base()) + persistent_.size_bytes() - address;
        if (!header.has(Header::non_volatile) || header.references() > header.words() || header.size_bytes() > left ||
            header.owner() >= object_threads_max) {
            return fail_with("a durable object refers to something that is no object");
        }
        bool consistent = true;
        const bool is_new = persistent_.mark(object, room_bytes(header.words()), consistent);
        if (!consistent) return fail_with("two durable objects lie over each other");
        if (!is_new) return;
        ++objects_;
        if (header.has(Header::queued | Header::copying)) clear(object, header);
        if (header.references() != 0) list_.push_back(object);
    }

    void clear(Object* object, Header header) {
        if (!is_recovery_) return fail_with("a durable object is still queued");
        ++cleared_;
        if (planted(Fault::recovery_leaves_queued)) return;
        put(&object->header, header.without(Header::queued | Header::copying).word());
        Heap::clean(object, 8);
    }

    void fail_with(const char* problem) {
        if (problem_ == nullptr) problem_ = problem;
    }

    Space& persistent_;
    bool is_recovery_;
    std::vector<Object*> list_;
    const char* problem_ = nullptr;
    std::uint64_t objects_ = 0, cleared_ = 0;
};

}  // namespace durasim::objects

#endif
