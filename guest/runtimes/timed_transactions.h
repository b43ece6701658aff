// What NV-HTM and SPHT have in common (thesis, sections 2.4.1, 2.4.2 and 3.2): the log of a transaction is flushed behind its hardware commit, and
// the thread waits for the transactions before it until it may say that its own is durable. Caches may be volatile.
//
// A transaction's timestamp is read inside of it, so timestamps of transactions that conflict are in the order of their commits. Before it begins a
// thread says a lower bound of it; one that waits for the lock, or for room before it begins, says that nobody has to wait for it, since whom it waits
// for may wait for that. Under the lock a thread waits for room with its lower bound told: whoever has committed has an earlier timestamp.
#ifndef DURASIM_RUNTIMES_TIMED_TRANSACTIONS_H
#define DURASIM_RUNTIMES_TIMED_TRANSACTIONS_H

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "durasim/layout.h"
#include "durasim/lock.h"
#include "durasim/markers.h"
#include "durasim/persist.h"
#include "runtimes/fences.h"
#include "runtimes/htm_attempts.h"
#include "runtimes/planted.h"
#include "runtimes/replay_thread.h"
#include "runtimes/shadow_transactions.h"
#include "runtimes/timed_links.h"
#include "runtimes/timed_log.h"
#include "runtimes/timed_replay.h"
#include "runtimes/timed_threads.h"

namespace durasim {

struct TimedOptions {
    bool replays_backward = false;
    // A read-only transaction returns although what it has read may not be durable, as published.
    bool reads_return_early = false;
    // Transactions are linked in the order of replay.
    bool links = false;
    unsigned replayers = 1;
    bool touches_shadow = false;  // all of the shadow lies in the DRAM before work begins
};

// `Self` has `has_marker` and commit(), which calls the steps below.
template <class Self>
class TimedTransactions : protected Fences, public ShadowTransactions<Self, TimedLog> {
    using Base = ShadowTransactions<Self, TimedLog>;
    friend Base;

public:
    using typename Base::Thread;
    static constexpr bool marks = true;
    static constexpr bool isolates = true;

    TimedOptions options;

    void attach(const PoolHeader& header) {
        this->header_ = header;
        this->shared_ = pool_address;
    }

    using Fences::format;

    // Whether a session was not ended by recovery.
    bool needs_recovery() const { return get(TimedWords(pool_address).session) != 0; }

    // Applies what is durable, and ends the session. Returns how many transactions there were. Each step leaves what a power failure
    // behind it needs to begin again.
    std::uint64_t recover() {
        const TimedWords words(pool_address);
        std::vector<TimedLog> all = this->logs();
        const Links::Way way = way_of_session(words);
        for (const TimedLog& log : all) log.check_head();
        const std::uint64_t last = Self::has_marker && !planted(Fault::marker_ignored) ? get(words.marker) : ~std::uint64_t{0};
        // Damage shows before anything is applied.
        for (const TimedLog& log : all) log.find_tail(last, [](std::uint64_t*) {});
        const bool is_backward = way == Links::Way::none ? options.replays_backward : way == Links::Way::backward;
        const std::uint64_t count = planted(Fault::recovery_without_replay) ? 0 : TimedReplay(all, pool_address, is_backward, way).recover(last);
        end_logs(all, words, [last](const TimedLog& log) { return log.find_tail(last, take_out); });
        return count;
    }

    // The pool is formatted and recovered, and work begins: on its shadow.
    void begin_work(const char* path) {
        static Self* working = nullptr;
        working = static_cast<Self*>(this);
        std::atexit([] { working->end_work(); });
        ReplayTeam::refuse_without_cores(options.replayers, static_cast<unsigned>(this->header_.logs()));
        refuse_shadow_without_dram(this->header_.pool_bytes, "make the pool smaller (pool-bytes)");
        this->shared_ = make_shadow(path, this->header_.pool_bytes);
        if (options.touches_shadow) touch_shadow(this->header_);
        const TimedWords words(this->shared_);
        const Links::Way way = !options.links ? Links::Way::none : options.replays_backward ? Links::Way::backward : Links::Way::forward;
        refuse_clock_at_its_end();
        put(words.session, session_mark | static_cast<std::uint64_t>(way));
        clean(words.session);
        fence();
        timed_threads_count = this->header_.logs();
        const std::vector<TimedLog> all = this->logs();
        for (std::uint64_t i = 0; i < timed_threads_count; ++i) {
            timed_threads[i] = TimedThread{};
            timed_threads[i].position = timed_threads[i].released = all[i].head();
        }
        links_.attach(way, all, words.first);
        replayer_.start(new TimedReplay(this->logs(), this->shared_, options.replays_backward, way), options.replayers,
                        static_cast<unsigned>(timed_threads_count));
        enter_thread(0);
    }

    void enter_thread(std::uint64_t number) {
        refuse_thread_without_log(this->header_, number);
        this->attach_log(number, get(&timed_threads[number].position));
        Thread& thread = this->this_thread();
        thread.is_odd_round = thread.log.is_odd_round(thread.position);
    }

    // False if the body has rolled the transaction back.
    [[gnu::always_inline]] bool begin() {
        Thread& thread = this->this_thread();
        thread.was_full = false;
        const auto prepare = [&](std::uint64_t status) {
            TimedThread& mine = told(thread);
            put(&mine.timestamp, TimedThread::persisted);
            Base::await_room(thread, status, mine.position);
        };
        // The hardware transaction begins behind these stores. That the thread has no update comes first: who sees the new bound must not take it
        // for the timestamp of one.
        const auto announce = [&] {
            TimedThread& mine = told(thread);
            put(&mine.is_update, std::uint64_t{0});
            put_last(&mine.timestamp, planted(Fault::bound_not_told) ? TimedThread::persisted : timestamp_of(thread, detail::read_timestamp()));
        };
        const HtmPath path = thread.attempts.begin(prepare, announce);
        thread.path = path;
        if (path == HtmPath::rolled_back) put(&told(thread).timestamp, TimedThread::persisted);
        return path != HtmPath::rolled_back;
    }

    void abort() {
        Thread& thread = this->this_thread();
        if (thread.path == HtmPath::hardware) thread.attempts.roll_back();
        this->undo_stores(thread);
        put(&told(thread).timestamp, TimedThread::persisted);
        thread.attempts.unlock();
        durasim_tx_abort(1);
    }

protected:
    // No two are the same: threads come after each other in one cycle.
    static std::uint64_t timestamp_of(const Thread& thread, std::uint64_t clock) { return clock * threads_max + thread.log.number(); }

    static TimedThread& told(const Thread& thread) { return timed_threads[thread.log.number()]; }

    // The hardware transaction commits, or the stores under the lock are complete: the timestamp.
    [[gnu::always_inline]] static std::uint64_t commit_stores(Thread& thread) {
        durasim_tx_committing();
        const std::uint64_t timestamp = planted(Fault::timestamps_tie) ? 1 : timestamp_of(thread, Base::read_commit_clock());
        if (thread.path == HtmPath::hardware) {
            thread.attempts.end();
        } else {
            thread.attempts.committed_under_lock();
            thread.old->clear();
        }
        hold_up(thread, Fault::bound_not_told);
        return timestamp;
    }

    // A fault only shows if some threads take longer here than others.
    static void hold_up(const Thread& thread, Fault fault) {
        if (thread.log.number() % 2 == 1) planted_slow(fault);
    }

    // All is done: the transaction is acknowledged, and the lock is free if it was taken.
    [[gnu::always_inline]] void acknowledge(Thread& thread) {
        durasim_tx_commit();
        if (thread.path == HtmPath::lock) thread.attempts.unlock();
        const TimedThread& mine = told(thread);
        if (replayer_.is_asleep() && thread.position - mine.released > thread.log.ring_words() / 2) replayer_.wake();
    }

    // Lines of entries in front of the line on which the log ends. Whether there are any.
    static bool clean_entries(const Thread& thread) {
        const std::uint64_t words = line_bytes / sizeof(std::uint64_t);
        const std::uint64_t last = thread.position / words;
        // The ring is a number of whole lines.
        std::uint64_t line = thread.begin / words, slot = thread.first_slot / words * words;
        const bool has_lines = line != last;
        for (; line != last && !planted(Fault::entries_not_flushed); ++line) {
            clean(thread.log.place(slot));
            slot += words;
            if (slot == thread.log.ring_words()) slot = 0;
        }
        return has_lines;
    }

    // The timestamp behind the entries is stored, and its line flushed.
    void end_log(Thread& thread, std::uint64_t timestamp) {
        links_.link_to_predecessor(thread.log.number(), thread.position, timestamp);
        const std::uint64_t slot = thread.slot;
        if (!planted(Fault::end_not_written)) thread.log.put_word(slot, TimedLog::end_word(timestamp, thread.is_odd_round != reaches_next_round(thread)));
        thread.slot = thread.log.next(thread.log.next(slot));
        thread.position += TimedLog::words_of_end;
        if (reaches_next_round(thread)) thread.is_odd_round = !thread.is_odd_round;
        if (!planted(Fault::end_not_cleaned)) clean(thread.log.place(slot));
        // While that line is being flushed.
        links_.link_from_predecessor(thread.log.number(), thread.begin, timestamp, [](const std::uint64_t* place) { clean(place); });
        put(&told(thread).position, thread.position);
        if (!planted(Fault::no_fence_behind_end)) fence();
        this->keep(thread);
    }

    ReplayThread<TimedReplay> replayer_;
    Links links_;

private:
    // What a session is known by, "TXRN" read as bytes, above which way its links go.
    static constexpr std::uint64_t session_mark = std::uint64_t{0x4E525854} << 32;

    // Ends the program if the words of the pool cannot be those of a session, or of none.
    static Links::Way way_of_session(const TimedWords& words) {
        const std::uint64_t session = get(words.session), way = session & ~session_mark, marker = get(words.marker), replayed = get(words.replayed);
        const bool is_whole = session == 0 ? (marker | replayed | get(words.next) | get(words.first)) == 0
                                           : session == (session_mark | way) && way <= static_cast<std::uint64_t>(Links::Way::backward);
        // The marker goes first when a session ends.
        const bool is_in_order = !Self::has_marker || marker == 0 || replayed <= marker;
        if (!is_whole || !is_in_order) fail(exit_violation, "durasim: violation: the pool's session of transactions is damaged");
        return static_cast<Links::Way>(way);
    }

    // Whether the position of the open transaction lies in the round of the ring behind that of its begin.
    static bool reaches_next_round(const Thread& thread) {
        return thread.first_slot + (thread.position - thread.begin) >= thread.log.ring_words();
    }

    // Bits 56 and up of a processor's counter, which counts for as long as the machine runs, have no place in a timestamp.
    static void refuse_clock_at_its_end() {
        if (detail::read_timestamp() >= TimedLog::odd_round_mark / threads_max) fail(exit_runtime, "durasim: the cycle counter is too large for timestamps");
    }

    // The program exits: what threads have committed is made durable and replayed, and the session ends. If a thread does not end its transaction, or if a
    // replayer has failed, the session stays open, and whoever opens the pool next recovers it.
    void end_work() {
        if (ReplayTeam::is_replayer() || !end_transactions()) return;
        replayer_.stop();
        std::vector<TimedLog> all = this->logs();
        end_logs(all, TimedWords(this->shared_), [](const TimedLog& log) { return timed_threads[log.number()].position; });
    }

    // No transaction begins any more, and none is committing. False if that cannot be had.
    bool end_transactions() {
        Thread& thread = this->this_thread();
        // A transaction that the calling thread has begun is not going to commit.
        const bool has_log = thread.old != nullptr;
        if (has_log && (get(&told(thread).timestamp) & TimedThread::persisted) == 0) put_last(&told(thread).timestamp, TimedThread::persisted);
        if (!thread.attempts.keep_lock()) return false;
        detail::Backoff backoff;
        for (unsigned look = 0; look < HtmAttempts::looks_at_exit; ++look, backoff.wait()) {
            std::uint64_t all = TimedThread::persisted;
            for (std::uint64_t i = 0; i < timed_threads_count; ++i) all &= get_first(&timed_threads[i].timestamp);
            if (all != 0 && durable_timestamp() >= newest_told()) return true;
        }
        return false;
    }

    // The newest timestamp of a transaction that has entries.
    static std::uint64_t newest_told() {
        std::uint64_t newest = 0;
        for (std::uint64_t i = 0; i < timed_threads_count; ++i) {
            if (get_first(&timed_threads[i].is_update) == 0) continue;
            const std::uint64_t told = get_first(&timed_threads[i].timestamp) & ~TimedThread::persisted;
            if (told > newest) newest = told;
        }
        return newest;
    }

    // All pages of the shadow have room in the DRAM.
    static constexpr void bring_in_page(std::uint64_t) {}
    // Words of a log that are never free.
    std::uint64_t words_kept() const { return links_.words_kept(); }
    static std::uint64_t room_end(const Thread& thread) { return get_first(&told(thread).released) + thread.log.ring_words(); }
    void wake_replayer() {
        if (replayer_.is_asleep()) replayer_.wake();
    }

    // The end of a transaction that is not durable.
    static void take_out(std::uint64_t* end) {
        put(end, std::uint64_t{0});
        clean(end);
    }

    // All has been replayed: the session ends, and the logs are empty from where tail(log) says that they end.
    template <class Tail>
    static void end_logs(std::vector<TimedLog>& all, const TimedWords& words, Tail&& tail) {
        std::vector<std::uint64_t> tails;
        for (const TimedLog& log : all) tails.push_back(tail(log));
        // No later session finds what was taken out.
        fence();
        for (std::size_t i = 0; i < all.size(); ++i) {
            all[i].put_head(tails[i]);
            clean(all[i].head_place());
        }
        // Without a marker no transaction counts: a recovery would look for the tail at the head.
        fence();
        put(words.marker, std::uint64_t{0});
        clean(words.marker);
        // Links lead to a marker that is not 0, and what is below `replayed` is not replayed again.
        fence();
        put(words.replayed, std::uint64_t{0});
        put(words.next, std::uint64_t{0});
        clean(words.replayed);
        put(words.first, std::uint64_t{0});
        clean(words.first);
        fence();
        put(words.session, std::uint64_t{0});
        clean(words.session);
        fence();
    }
};

}  // namespace durasim

#endif
