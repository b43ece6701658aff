// Links between the transactions of timed logs (thesis, section 2.4.2: linked transactions): each names its successor in the order of
// replay, or with backward replay its predecessor, so that a replayer goes from one to the next without comparing logs.
//
// The thesis says no more than that. Ours: a thread looks for the transaction with the greatest timestamp below its own. Forwards it does so
// while the end of its log is being flushed, stores the link into the second word of that transaction's end, or of the pool if it is the first, and
// cleans it before it says that its log is durable; backwards the link is part of its own end. So up to a timestamp that is durable all links are.
// A transaction with a later timestamp waits until this log is durable before it returns: of each thread the last two transactions are enough.
#ifndef DURASIM_RUNTIMES_TIMED_LINKS_H
#define DURASIM_RUNTIMES_TIMED_LINKS_H

#include <cstdint>
#include <vector>

#include "durasim/lock.h"
#include "runtimes/planted.h"
#include "runtimes/store.h"
#include "runtimes/timed_log.h"
#include "runtimes/timed_threads.h"

namespace durasim {

// A place in the log of a thread, as one word; 0 is none.
struct Link {
    static constexpr unsigned position_bits = 48;

    static std::uint64_t to(std::uint64_t log, std::uint64_t position) { return (log + 1) << position_bits | position; }
    static std::uint64_t log(std::uint64_t link) { return (link >> position_bits) - 1; }
    static std::uint64_t position(std::uint64_t link) { return link & ((std::uint64_t{1} << position_bits) - 1); }
};

class Links {
public:
    // Which way links go.
    enum class Way { none, forward, backward };

    void attach(Way way, std::vector<TimedLog> logs, std::uint64_t* first) {
        way_ = way;
        logs_ = std::move(logs);
        first_ = first;
    }

    // The last transaction that has been replayed keeps its end: the next one stores its link there.
    std::uint64_t words_kept() const { return way_ == Way::forward ? TimedLog::words_of_end : 0; }

    // A transaction of a thread has committed: where its log is to lie. Others that come behind it look for it. Who reads one of both words too early
    // has found a later transaction of the thread in the other place.
    void note(TimedThread& thread, std::uint64_t timestamp, std::uint64_t log, std::uint64_t begin, std::uint64_t end) {
        if (way_ == Way::none) return;
        Committed& place = thread.committed[thread.committed_count++ % committed_kept];
        if (way_ == Way::forward) put(logs_[log].link_place(end), std::uint64_t{0});
        put(&place.place, way_ == Way::forward ? end : begin);
        put_last(&place.timestamp, timestamp);
    }

    // Backwards: stores the link of a transaction of log `log` into its end, 0 if it is the first, whatever an earlier session has left there.
    void link_to_predecessor(std::uint64_t log, std::uint64_t end, std::uint64_t timestamp) const {
        if (way_ != Way::backward) return;
        const Predecessor before = find_predecessor(log, timestamp);
        const std::uint64_t link = before.committed.timestamp == 0 ? 0 : Link::to(before.log, before.committed.place);
        put(logs_[log].link_place(end), link);
    }

    // Forwards: stores and cleans the link to a transaction that begins at a position of log `log`.
    template <class Clean>
    void link_from_predecessor(std::uint64_t log, std::uint64_t begin, std::uint64_t timestamp, Clean&& clean) const {
        if (way_ != Way::forward) return;
        const Predecessor before = find_predecessor(log, timestamp);
        std::uint64_t* const place = before.committed.timestamp == 0 ? first_ : logs_[before.log].link_place(before.committed.place);
        put(place, Link::to(log, begin));
        if (!planted(Fault::link_not_cleaned)) clean(place);
    }

    // The newest transaction that is durable, as far as threads still tell of it, and the link to it.
    struct Newest {
        std::uint64_t timestamp = 0, link = 0;
    };
    static Newest find_newest_durable() {
        // What is read first is durable if what has become durable by then is not before it.
        std::vector<Newest> seen;
        for (std::uint64_t i = 0; i < timed_threads_count; ++i) {
            for (const Committed& place : timed_threads[i].committed) {
                const Committed committed = read(place);
                seen.push_back({committed.timestamp, Link::to(i, committed.place)});
            }
        }
        Newest found;
        const std::uint64_t durable = durable_timestamp();
        for (const Newest& one : seen) {
            if (one.timestamp <= durable && one.timestamp > found.timestamp) found = one;
        }
        return found;
    }

private:
    struct Predecessor {
        std::uint64_t log = 0;
        Committed committed;
    };

    Predecessor find_predecessor(std::uint64_t self, std::uint64_t timestamp) const {
        Predecessor found;
        look_at_threads();
        for (std::uint64_t i = 0; i < timed_threads_count; ++i) {
            if (i != self && !planted(Fault::predecessor_not_awaited)) await(timed_threads[i], timestamp);
            for (const Committed& place : timed_threads[i].committed) {
                const Committed committed = read(place);
                if (committed.timestamp < timestamp && committed.timestamp > found.committed.timestamp) found = {i, committed};
            }
            if (planted(Fault::predecessor_of_own_thread) && i == self) return found;
        }
        return found;
    }

    // Until a thread will have no other transaction with an earlier timestamp.
    static void await(const TimedThread& thread, std::uint64_t timestamp) {
        for (detail::Backoff backoff;; backoff.wait()) {
            if (get_first(&thread.timestamp) >= timestamp) return;
            // Its timestamp is final, and it has been noted.
            if (get_first(&thread.is_update) != 0) return;
        }
    }

    static Committed read(const Committed& place) {
        const std::uint64_t timestamp = get_first(&place.timestamp);
        return {timestamp, get_first(&place.place)};
    }

    Way way_ = Way::none;
    std::vector<TimedLog> logs_;
    std::uint64_t* first_ = nullptr;
};

}  // namespace durasim

#endif
