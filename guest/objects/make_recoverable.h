// Moves an object and all that it reaches to persistent memory, before something durable refers to it: makeRecoverable
// (AutoPersist, PLDI 2019; P-INSPECT, MICRO 2020, section III-B).
//
// A worklist begins with the object. Each object on it is copied with its Queued bit set, forwards to its copy from then on,
// and its references that are in ordinary memory come onto the list. When the list is empty, references to what has moved are
// replaced in the copies, their lines are cleaned, and a fence waits for them. Then nothing is queued any more.
//
// Between threads:
// - An object that only the calling thread knows is copied at once. One that others may know is claimed by its Copying bit;
//   the claimed ones are copied together, when no store to them is in progress any more (threads.h, filters.h).
// - What another thread claims or has queued is left to that thread. A move depends on the moves that it has met, and
//   these on others: its copies are not queued any more when all of these have copied durably, and it ends when they have
//   come so far too. No move waits for the end of another, so two that meet each other's objects both end.
// - Queued bits are cleared one by one. A copy without its bit may reach one that still has it, of the same move or of one
//   that this depends on. So a cleared header still names the owner, and while the owner clears (is_clearing), a move that meets
//   the copy depends on that move as well.
#ifndef DURASIM_OBJECTS_MAKE_RECOVERABLE_H
#define DURASIM_OBJECTS_MAKE_RECOVERABLE_H

#include <cstdint>
#include <vector>

#include "durasim/persist.h"
#include "objects/checks.h"
#include "objects/header.h"
#include "objects/heap.h"
#include "objects/profile.h"
#include "objects/threads.h"
#include "runtimes/planted.h"

namespace durasim::objects {

class MakeRecoverable {
public:
    explicit MakeRecoverable(Heap& heap) : heap_(heap), threads_(heap.threads) {}

    // Returns where `object` is in persistent memory. All that it reaches is there and durable.
    [[gnu::noinline]] Object* operator()(Thread& thread, Object* object) {
        begin(thread);
        Object* const moved = enqueue(thread, object);
        while (!worklist_.empty() || !claimed_.empty() || !foreign_.empty()) {
            if (!worklist_.empty()) {
                Object* const next = worklist_.back();
                worklist_.pop_back();
                claim_or_copy(thread, next);
            } else if (!claimed_.empty()) {
                copy_claimed(thread);
            } else {
                wait_for_foreign(thread);
            }
        }
        Object* const result = moved != nullptr ? moved : target_of(object);
        fix_references();
        end(thread);
        return result;
    }

private:
    struct Reference {
        std::uint64_t* place;  // in a copy
        std::uint64_t old;     // what was copied there
        bool is_known;         // to other threads
    };

    void begin(Thread& thread) {
        for (std::uint64_t& word : thread.depends_on) put(&word, std::uint64_t{0});
        put_last(&thread.moves, thread.moves + 1);
        put_last(&thread.move, Move::copying);
        Checks::begin_move();
        copies_.clear();
        references_.clear();
    }

    static Object* target_of(const Object* object) { return header_of(object).target(); }

    // An object that has to be in persistent memory. Returns where it is, null if that is not known yet.
    Object* enqueue(Thread& thread, Object* object) {
        if (!heap_.persistent.holds(object)) {
            const Header header = header_of(object);
            if (!header.has(Header::forwarding)) {
                worklist_.push_back(object);
                return nullptr;
            }
            object = header.target();
        }
        const Header header(get_first(&object->header));
        if (header.owner() == thread.number) return object;
        if (header.has(Header::queued) || threads_.is_clearing(header.owner())) depend_on(thread, header.owner());
        return object;
    }

    static void depend_on(Thread& thread, std::uint64_t owner) {
        if (planted(Fault::queued_not_awaited)) return;
        std::uint64_t& word = thread.depends_on[owner / 64];
        put_last(&word, word | std::uint64_t{1} << owner % 64);
    }

    void claim_or_copy(Thread& thread, Object* object) {
        for (;;) {
            const Header header = header_of(object);
            if (header.has(Header::forwarding)) {
                enqueue(thread, object);  // it has moved since
                return;
            }
            if (!header.has(Header::shared)) {
                Site::of(header.site()).count_move();
                copy(thread, object, header, false);
                return;
            }
            if (header.has(Header::copying)) {
                if (header.owner() != thread.number) foreign_.push_back(object);
                return;
            }
            const std::uint64_t wanted = header.with(Header::copying).of_owner(thread.number).word();
            if (put_if(&object->header, header.word(), wanted)) {
                Site::of(header.site()).count_move();
                claimed_.push_back(object);
                return;
            }
        }
    }

    void copy_claimed(Thread& thread) {
        Checks::before_copying(heap_, claimed_, copies_.empty());
        if (!planted(Fault::stores_not_awaited)) wait_for_stores(thread);
        // Copying finds further objects; those come onto the worklist, so the list of claimed ones does not change.
        for (Object* object : claimed_) copy(thread, object, header_of(object), true);
        claimed_.clear();
    }

    // Those that were in progress when the claimed objects were not Copying yet.
    void wait_for_stores(Thread& thread) {
        if constexpr (Checks::in_hardware) {
            threads_.wait_for_stores(thread);
        } else {
            threads_.handshake(thread);
        }
    }

    void wait_for_foreign(Thread& thread) {
        for (Object* object : foreign_) {
            threads_.wait_inside(thread, [&] { return header_of(object).has(Header::forwarding); });
            enqueue(thread, object);
        }
        foreign_.clear();
    }

    void copy(Thread& thread, Object* object, Header header, bool is_known) {
        const std::uint64_t words = header.words(), references = header.references();
        Object* const moved = heap_.allocate_raw(thread, Heap::in_persistent, words);
        const Header fresh = Header::of(words, references, Header::non_volatile | Header::shared);
        const bool queue = !planted(Fault::queued_bit_forgotten);
        put(&moved->header, queue ? fresh.with(Header::queued).of_owner(thread.number).word() : fresh.word());
        Checks::copy(object, moved);
        if (planted(Fault::published_before_copying)) put(&object->header, Header::to(moved).word());
        const std::uint64_t copied = planted(Fault::last_word_not_copied) && words > references ? words - 1 : words;
        for (std::uint64_t i = 0; i < copied; ++i) {
            const std::uint64_t word = get(object->words() + i);
            put(moved->words() + i, word);
            if (i >= references || word == 0) continue;
            if (!heap_.persistent.holds(reinterpret_cast<Object*>(word))) references_.push_back({moved->words() + i, word, is_known});
            if (planted(Fault::second_level_not_moved) && !copies_.empty()) continue;
            enqueue(thread, reinterpret_cast<Object*>(word));
        }
        copies_.push_back(moved);
        Checks::before_forwarding(heap_, object);
        put_last(&object->header, Header::to(moved).word());
        if constexpr (!Checks::in_hardware) heap_.note_forwarder(object);
    }

    // In the copies, references to what has moved. A store to a copy meanwhile stores what is durable: that stays.
    void fix_references() {
        for (const Reference& reference : references_) {
            if (planted(Fault::references_not_replaced)) continue;
            const Header header = header_of(reinterpret_cast<Object*>(reference.old));
            if (!header.has(Header::forwarding)) continue;  // only with a fault: everything on the worklist has moved
            const auto moved = reinterpret_cast<std::uint64_t>(header.target());
            if (reference.is_known && !planted(Fault::references_overwritten)) {
                put_if(reference.place, reference.old, moved);
            } else {
                put(reference.place, moved);
            }
        }
    }

    void end(Thread& thread) {
        Checks::before_fence();
        if (planted(Fault::queued_cleared_before_fence)) clear_queued();
        for (Object* moved : copies_) {
            if (planted(Fault::copies_not_cleaned)) break;
            const bool first_line_only = planted(Fault::first_line_only_cleaned);
            heap_.clean(moved, first_line_only ? 8 : header_of(moved).size_bytes());
        }
        if (!copies_.empty() && !planted(Fault::no_fence_behind_move)) durasim_persist_fence();
        put_last(&thread.move, Move::copied);
        wait_for_others(thread, Move::copied);
        clear_queued();
        // Nothing durable comes to refer to a copy whose owner may still clear its Queued bit: recovery would clear it for
        // the owner, in a header that a fence has made durable.
        put_last(&thread.move, Move::cleared);
        wait_for_others(thread, Move::cleared);
        put_last(&thread.move, Move::none);
        Checks::end_move();
    }

    void clear_queued() {
        for (Object* moved : copies_) {
            const Header header = header_of(moved);
            if (!header.has(Header::queued)) continue;
            put(&moved->header, header.without(Header::queued).word());
            if (!planted(Fault::queued_bit_not_cleaned)) heap_.clean(moved, 8);
        }
    }

    // Until every move that this one depends on, directly or by others, has come so far.
    void wait_for_others(Thread& thread, Move least) {
        if ((thread.depends_on[0] | thread.depends_on[1]) == 0) return;
        threads_.wait_inside(thread, [&] { return is_closed(thread, least); });
    }

    bool is_closed(const Thread& thread, Move least) {
        std::array<std::uint64_t, 2> known = thread.depends_on, seen{};
        for (;;) {
            std::uint64_t other = 0;
            while (other < object_threads_max && !((known[other / 64] & ~seen[other / 64]) >> other % 64 & 1)) ++other;
            if (other == object_threads_max) return true;
            seen[other / 64] |= std::uint64_t{1} << other % 64;
            const Thread& met = threads_.of(other);
            const std::uint64_t moves = get_first(&met.moves);
            const Move move = get_first(&met.move);
            if (move == Move::none) continue;
            if (move < least) return false;
            const std::array<std::uint64_t, 2> further = {get_first(&met.depends_on[0]),
                                                          get_first(&met.depends_on[1])};
            // Another move of that thread has begun: what it depended on before is durable.
            if (get_first(&met.moves) != moves) return false;
            for (unsigned i = 0; i < 2; ++i) known[i] |= further[i];
        }
    }

    Heap& heap_;
    Threads& threads_;
    std::vector<Object*> worklist_;
    std::vector<Object*> claimed_;   // Copying, by this thread
    std::vector<Object*> foreign_;   // Copying, by others
    std::vector<Object*> copies_;
    std::vector<Reference> references_;
};

}  // namespace durasim::objects

#endif
