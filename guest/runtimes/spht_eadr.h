// SPHT-eADR: hardware transactions on a shadow of the pool in DRAM, with a redo log in persistent memory, where caches are
// durable (thesis, section 3.3, Algorithms 4 and 5).
//
// The log commits inside of the hardware transaction: stores, entries, timestamp and the end of the log become visible, and survive, in
// one step. A replayer brings logged stores to persistent memory (spht_replay.h, replay_thread.h). After a power failure the shadow is gone, and recovery
// replays what the logs still hold. With DURASIM_LOG_LEAVES_CACHES_ the log's lines are cleaned or flushed behind the commit, without a
// fence: they will not be needed in the caches again.
//
// - As printed, the algorithms never reset `isUpdate`, and Algorithm 5 stores to `*addr` in its begin, where there is no address. Here
//   a transaction that has logged nothing is read-only, and begins store nothing.
// - Under the lock entries come into the log one by one, behind what the log ends with; the word that says where it ends is stored last,
//   and a fence stands before the lock is released.
#ifndef DURASIM_RUNTIMES_SPHT_EADR_H
#define DURASIM_RUNTIMES_SPHT_EADR_H

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "durasim/layout.h"
#include "durasim/markers.h"
#include "durasim/persist.h"
#include "runtimes/admission.h"
#include "runtimes/fences.h"
#include "runtimes/htm_attempts.h"
#include "runtimes/planted.h"
#include "runtimes/replay_thread.h"
#include "runtimes/shadow_pages.h"
#include "runtimes/shadow_transactions.h"
#include "runtimes/spht_log.h"
#include "runtimes/spht_replay.h"

namespace durasim {

struct SphtOptions {
    bool flush_lines = false;  // -Flush: cbo.flush instead of cbo.clean
    unsigned replayers = 1;
    // How many threads may have a transaction open at once; 0: all. A limit that tunes itself begins there.
    std::uint64_t limit = 0;
    bool tunes_limit = false;
    // How much of the shadow may lie in the DRAM; 0: all.
    std::uint64_t shadow_bytes = 0;
    bool touches_shadow = false;  // all of it lies there before work begins
};

class Runtime : private Fences, public ShadowTransactions<Runtime, SphtLog> {
    friend ShadowTransactions<Runtime, SphtLog>;

public:
#if defined(DURASIM_LOG_LEAVES_CACHES_)
    static constexpr const char* name = "spht-eadr-flush";
    static constexpr bool cleans_log = true;
#else
    static constexpr const char* name = "spht-eadr";
    static constexpr bool cleans_log = false;
#endif
    static constexpr LogKind log_kind = LogKind::spht_eadr;
    static constexpr bool marks = true;
    static constexpr bool isolates = true;

    SphtOptions options;

    Runtime() = default;
    Runtime(const Runtime&) = delete;
    Runtime& operator=(const Runtime&) = delete;

    void attach(const PoolHeader& header) {
        header_ = header;
        shared_ = pool_address;
    }

    // Whether logs hold transactions that persistent memory does not have.
    bool needs_recovery() const {
        for (const SphtLog& log : logs()) {
            if (log.head() != log.tail()) return true;
        }
        return false;
    }

    // Applies them. Returns how many there were.
    std::uint64_t recover() {
        const std::vector<SphtLog> all = logs();
        for (const SphtLog& log : all) log.check();
        if (planted(Fault::recovery_without_replay)) {
            for (SphtLog log : all) log.put_head(log.tail());
            return 0;
        }
        const std::uint64_t count = Replay(all, shared_).apply_all();
        fence();
        return count;
    }

    using Fences::format;

    // The pool is formatted and recovered, and work begins: on its shadow.
    void begin_work(const char* path) {
        static Runtime* working = nullptr;
        working = this;
        std::atexit([] { working->end_work(); });
        ReplayTeam::refuse_without_cores(options.replayers, static_cast<unsigned>(header_.logs()));
        pages_.start(options.shadow_bytes, header_.pool_bytes);
        if (options.touches_shadow && options.shadow_bytes != 0) {
            fail(exit_usage, "durasim: shadow-touched has all of the shadow in the DRAM, and shadow-bytes a part of it; use one of them");
        }
        shared_ = make_shadow(path, header_.pool_bytes);
        if (options.touches_shadow) touch_shadow(header_);
        logs_ = logs();
        replayer_.start(new Replay(logs(), shared_), options.replayers, static_cast<unsigned>(header_.logs()));
        admission_.start(options.limit, options.tunes_limit, header_.logs());
        enter_thread(0);
    }

    void enter_thread(std::uint64_t number) {
        refuse_thread_without_log(header_, number);
        this_thread().log.attach(header_, shared_, number);
        attach_log(number, this_thread().log.tail());
    }

    // False if the body has rolled the transaction back.
    [[gnu::always_inline]] bool begin() {
        Thread& thread = this_thread();
        thread.was_full = false;
        admission_.enter();
        const HtmPath path = thread.attempts.begin([&](std::uint64_t status) { await_room(thread, status); }, [] {});
        thread.path = path;
        if (path == HtmPath::lock) pages_.begin_transaction();
        if (path != HtmPath::rolled_back && planted(Fault::begin_stores)) store_again();
        if (path == HtmPath::rolled_back) admission_.leave(false, detail::read_timestamp);
        return path != HtmPath::rolled_back;
    }

    void commit() {
        Thread& thread = this_thread();
        const bool is_update = thread.position != thread.begin || (planted(Fault::is_update_not_reset) && thread.position != 0);
        if (thread.path == HtmPath::hardware) {
            durasim_tx_committing();
            if (planted(Fault::log_committed_behind)) thread.attempts.end();
            planted_slow(Fault::log_committed_behind);
            if (is_update) commit_log(thread);
            if (!planted(Fault::log_committed_behind)) thread.attempts.end();
            if constexpr (cleans_log) durasim_situation_begin(DURASIM_SITUATION_COMMIT_NOT_CLEANED);
            durasim_tx_commit();
        } else {
            durasim_tx_committing();
            if (is_update) commit_log(thread);
            if (!planted(Fault::no_fence_before_unlock)) fence();
            thread.attempts.committed_under_lock();
            thread.old->clear();
            if constexpr (cleans_log) durasim_situation_begin(DURASIM_SITUATION_COMMIT_NOT_CLEANED);
            durasim_tx_commit();
            thread.attempts.unlock();
        }
        if constexpr (cleans_log) clean_log(thread);
        keep(thread);
        if (is_update && replayer_.is_asleep() && is_half_full(thread)) replayer_.wake();
        admission_.leave(true, detail::read_timestamp);
    }

    void abort() {
        Thread& thread = this_thread();
        if (thread.path == HtmPath::hardware) thread.attempts.roll_back();
        undo_stores(thread);
        thread.attempts.unlock();
        admission_.leave(false, detail::read_timestamp);
        durasim_tx_abort(1);
    }

private:
    // The program exits: the logs are emptied, unless a thread does not end its transaction or a replayer has failed. Then recovery replays what they hold.
    void end_work() {
        if (!ReplayTeam::is_replayer() && this_thread().attempts.keep_lock()) replayer_.stop();
    }

    void await_room(Thread& thread, std::uint64_t status) {
        // No fence tells when the log of the transaction before is clean.
        if constexpr (cleans_log) durasim_situation_end(DURASIM_SITUATION_COMMIT_NOT_CLEANED);
        ShadowTransactions::await_room(thread, status, thread.log.tail());
    }

    void bring_in_page(std::uint64_t offset) {
        pages_.bring_in(offset, [this] { empty_logs(); });
    }

    // Under the lock, so nothing is appended meanwhile.
    void empty_logs() {
        for (const SphtLog& log : logs_) {
            for (detail::Backoff backoff; log.head() != log.tail(); backoff.wait()) wake_replayer();
        }
    }

    static std::uint64_t room_end(const Thread& thread) { return thread.log.head() + thread.log.ring_words(); }
    static constexpr std::uint64_t words_kept() { return 0; }
    void wake_replayer() {
        if (replayer_.is_asleep()) replayer_.wake();
    }

    // logCommit: the timestamp behind the entries, and the end of the log.
    void commit_log(Thread& thread) {
        if (thread.path == HtmPath::hardware) store_end_ahead(thread);
        const std::uint64_t timestamp = planted(Fault::timestamps_tie) ? 1 : read_commit_clock();
        if (planted(Fault::tail_before_end)) thread.log.put_tail(thread.position + SphtLog::words_of_end);
        if (!planted(Fault::end_not_written)) thread.log.put_word(thread.slot, timestamp | SphtLog::end_mark);
        thread.slot = thread.log.next(thread.slot);
        thread.position += SphtLog::words_of_end;
        if (!planted(Fault::tail_not_stored) && !planted(Fault::tail_before_end)) thread.log.put_tail(thread.position);
    }

    // The lines that the end of the log is stored to after the clock has been read join the write set before: their misses do not come one after
    // the other. What is stored here is overwritten in the same hardware transaction.
    static void store_end_ahead(Thread& thread) {
        if (reads_clock_early || planted(Fault::tail_not_stored) || planted(Fault::log_committed_behind)) return;
        if (thread.slot % (line_bytes / sizeof(std::uint64_t)) == 0) thread.log.put_word(thread.slot, 0);
        thread.log.put_tail(thread.position);
    }

    // Lines of entries that no one will look at but the replayer.
    void clean_log(const Thread& thread) const {
        const std::uint64_t words = line_bytes / sizeof(std::uint64_t);
        // The ring is a number of whole lines.
        std::uint64_t slot = thread.first_slot / words * words;
        for (std::uint64_t at = thread.begin / words * words; at < thread.position; at += words) {
            if (options.flush_lines) {
                durasim_flush(thread.log.place(slot));
            } else {
                durasim_clean(thread.log.place(slot));
            }
            slot += words;
            if (slot == thread.log.ring_words()) slot = 0;
        }
    }

    static bool is_half_full(const Thread& thread) {
        return thread.position - thread.log.head() > thread.log.ring_words() / 2;
    }

    ReplayThread<Replay> replayer_;
    Admission admission_;
    ShadowPages pages_;
    std::vector<SphtLog> logs_;
};

}  // namespace durasim

#endif
