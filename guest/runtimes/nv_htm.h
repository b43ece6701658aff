// NV-HTM (thesis, section 2.4.1 and Algorithm 1; Castro and others, IPDPS 2018).
//
// A thread flushes the entries of its log behind the hardware commit, waits until no thread has an earlier transaction in progress, and then stores
// and flushes a commit mark with its timestamp: transactions become durable one after the other.
//
// Where Algorithm 1 cannot be right as printed: its line 22 resets the timestamp of a read-only transaction before line 36 compares it, so that the thread waits
// indefinitely: no other one has a later timestamp than none. Here it compares the timestamp that it has read. The end of the log needs no word: marks say where it is.
#ifndef DURASIM_RUNTIMES_NV_HTM_H
#define DURASIM_RUNTIMES_NV_HTM_H

#include <cstdint>

#include "runtimes/timed_transactions.h"

namespace durasim {

class Runtime : public TimedTransactions<Runtime> {
    friend TimedTransactions<Runtime>;

public:
    static constexpr const char* name = "nv-htm";
    static constexpr LogKind log_kind = LogKind::nv_htm;
    static constexpr bool has_marker = false;

    // The heap is brought up to date by backward filtering checkpoints.
    Runtime() { options.replays_backward = true; }

    // Commit.
    void commit() {
        Thread& thread = this_thread();
        TimedThread& mine = told(thread);
        const bool is_update = thread.position != thread.begin;
        const std::uint64_t timestamp = commit_stores(thread);
        if (!is_update) {
            // Others do not need to wait for it.
            put_last(&mine.timestamp, TimedThread::persisted);
            // As printed: until others have more than the "none" that line 22 leaves.
            if (planted(Fault::reset_timestamp_compared)) await_commit(thread, TimedThread::persisted + 1);
            if (!options.reads_return_early && !planted(Fault::read_only_returns)) await_commit(thread, timestamp);
            return acknowledge(thread);
        }
        put_last(&mine.timestamp, timestamp);
        hold_up(thread, Fault::preceding_not_awaited);
        clean_entries(thread);
        if (!planted(Fault::entries_not_flushed)) clean(thread.log.place(thread.slot));
        if (!planted(Fault::no_fence_behind_entries)) fence();
        durasim_situation_begin(DURASIM_SITUATION_GROUP_WAIT);
        if (!planted(Fault::preceding_not_awaited)) await_commit(thread, timestamp);
        durasim_situation_end(DURASIM_SITUATION_GROUP_WAIT);
        if (planted(Fault::told_before_log)) put_last(&mine.timestamp, TimedThread::persisted);
        planted_slow(Fault::told_before_log);
        durasim_situation_begin(DURASIM_SITUATION_MARKER_NOT_FENCED);
        end_log(thread, timestamp);
        durasim_situation_end(DURASIM_SITUATION_MARKER_NOT_FENCED);
        put(&mine.durable, timestamp);
        put_last(&mine.timestamp, TimedThread::persisted);
        acknowledge(thread);
    }

private:
    // waitCommit: until all others have a later timestamp, or none.
    static void await_commit(const Thread& thread, std::uint64_t timestamp) {
        look_at_threads();
        for (std::uint64_t i = 0; i < timed_threads_count; ++i) {
            const TimedThread& other = timed_threads[i];
            if (i == thread.log.number()) continue;
            for (detail::Backoff backoff; get_first(&other.timestamp) < timestamp;) backoff.wait();
        }
    }
};

}  // namespace durasim

#endif
