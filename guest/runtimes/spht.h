// SPHT as it was made for volatile caches (thesis, section 3.2 and Algorithm 3; Castro and others, FAST 2021).
//
// Threads flush their logs in any order. A transaction is durable once the marker in persistent memory is at least its timestamp, and the
// one with the highest timestamp of all that are committing moves the marker for all of them.
//
// Where Algorithm 3 cannot be right as printed: its line 19 lets a read-only transaction return before what it has read is durable. Here it waits,
// unless the program asks for what is printed (--read-only return).
#ifndef DURASIM_RUNTIMES_SPHT_H
#define DURASIM_RUNTIMES_SPHT_H

#include <cstdint>

#include "runtimes/timed_transactions.h"

namespace durasim {

class Runtime : public TimedTransactions<Runtime> {
    friend TimedTransactions<Runtime>;

public:
    static constexpr const char* name = "spht";
    static constexpr LogKind log_kind = LogKind::spht;
    static constexpr bool has_marker = true;

    // CommitTx.
    void commit() {
        Thread& thread = this_thread();
        TimedThread& mine = told(thread);
        const bool is_update = thread.position != thread.begin;
        const std::uint64_t timestamp = commit_stores(thread);
        if (!is_update) {
            put_last(&mine.timestamp, timestamp | TimedThread::persisted);
            if (!options.reads_return_early && !planted(Fault::read_only_returns)) await_what_was_read(thread, timestamp);
            return acknowledge(thread);
        }
        links_.note(mine, timestamp, thread.log.number(), thread.begin, thread.position);
        if (!planted(Fault::final_timestamp_not_told)) put(&mine.timestamp, timestamp);
        put_last(&mine.is_update, 1);
        if (planted(Fault::told_before_log)) put_last(&mine.timestamp, timestamp | TimedThread::persisted);
        planted_slow(Fault::told_before_log);
        hold_up(thread, Fault::preceding_not_awaited);
        hold_up(thread, Fault::marker_ignored);
        commit_log(thread, timestamp);
        put_last(&mine.timestamp, timestamp | TimedThread::persisted);
        durasim_situation_begin(DURASIM_SITUATION_GROUP_WAIT);
        const bool is_last = await_preceding(thread, timestamp);
        if (planted(Fault::acknowledged_before_marker)) return acknowledge(thread);
        update_marker(mine, timestamp, is_last);
        durasim_situation_end(DURASIM_SITUATION_GROUP_WAIT);
        acknowledge(thread);
    }

private:
    // logCommit: entries are durable before the timestamp behind them is.
    void commit_log(Thread& thread, std::uint64_t timestamp) {
        if (planted(Fault::end_before_entries)) return end_first(thread, timestamp);
        // On one line with it they need no flush of their own.
        if (clean_entries(thread) && !planted(Fault::no_fence_behind_entries)) fence();
        end_log(thread, timestamp);
    }

    // A fault: the order is the other one.
    void end_first(Thread& thread, std::uint64_t timestamp) {
        const Thread entries = thread;
        end_log(thread, timestamp);
        clean_entries(entries);
        fence();
    }

    // waitPrecedingTxs: until all with an earlier timestamp have flushed their logs. Whether none has a later one and will move the marker.
    static bool await_preceding(const Thread& thread, std::uint64_t timestamp) {
        bool is_last = true;
        if (planted(Fault::preceding_not_awaited)) return true;
        look_at_threads();
        for (std::uint64_t i = 0; i < timed_threads_count; ++i) {
            const TimedThread& other = timed_threads[i];
            if (i == thread.log.number()) continue;
            std::uint64_t told_timestamp = get_first(&other.timestamp);
            for (detail::Backoff backoff; told_timestamp < timestamp; told_timestamp = get_first(&other.timestamp)) backoff.wait();
            const bool is_later = (told_timestamp & ~TimedThread::persisted) > timestamp;
            if (is_later && get_first(&other.is_update) != 0) is_last = false;
        }
        return is_last;
    }

    // updateMarker.
    void update_marker(TimedThread& mine, std::uint64_t timestamp, bool is_last) {
        std::uint64_t* const marker = TimedWords(shared_).marker;
        for (std::uint64_t value = get(marker); is_last && value < timestamp; value = get(marker)) {
            if (!put_if(marker, value, timestamp)) continue;
            if (planted(Fault::marker_told_before_flush)) put_last(&mine.durable, timestamp);
            planted_slow(Fault::marker_told_before_flush);
            durasim_situation_begin(DURASIM_SITUATION_MARKER_NOT_FENCED);
            if (!planted(Fault::marker_not_cleaned)) clean(marker);
            if (!planted(Fault::no_fence_behind_marker)) fence();
            durasim_situation_end(DURASIM_SITUATION_MARKER_NOT_FENCED);
            put_last(&mine.durable, timestamp);
            return;
        }
        for (detail::Backoff backoff; durable_timestamp() < timestamp;) backoff.wait();
    }

    // What a read-only transaction has read is of transactions before it: they are durable, or will never be known to have been.
    static void await_what_was_read(const Thread& thread, std::uint64_t timestamp) {
        look_at_threads();
        for (std::uint64_t i = 0; i < timed_threads_count; ++i) {
            const TimedThread& other = timed_threads[i];
            if (i == thread.log.number()) continue;
            for (detail::Backoff backoff;; backoff.wait()) {
                const std::uint64_t told_timestamp = get_first(&other.timestamp);
                const std::uint64_t bound = told_timestamp & ~TimedThread::persisted;
                if (bound > timestamp) break;
                const bool is_update = get_first(&other.is_update) != 0;
                if (told_timestamp != bound && (!is_update || durable_timestamp() >= bound)) break;
            }
        }
    }
};

}  // namespace durasim

#endif
