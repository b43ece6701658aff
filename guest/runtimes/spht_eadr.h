// SPHT-eADR: hardware transactions on a shadow of the pool in DRAM, with a redo log in persistent memory, where caches are
// durable (thesis, section 3.3, Algorithms 4 and 5).
//
// A transaction stores to the shadow, and appends place and value to the log of its thread. The log commits inside of the hardware
// transaction: stores, entries, timestamp and the end of the log become visible, and survive, in one step. A replayer
// brings logged stores to persistent memory (replayer.h). After a power failure the shadow is gone, and recovery replays what the logs
// still hold. With DURASIM_BACKEND_SPHT_EADR_FLUSH the log's lines are cleaned or flushed behind the commit, without a fence: they will not
// be needed in the caches again.
//
// - As printed, the algorithms never reset `isUpdate`, and Algorithm 5 stores to `*addr` in its begin, where there is no address. Here
//   a transaction that has logged nothing is read-only, and begins store nothing.
// - A transaction that has used up its attempts takes the global lock. Its entries come into the log one by one, behind what
//   the log ends with; the word that says where it ends is stored last, and a fence stands before the lock is released.
// - Logs are circular. A thread waits until the replayer has made room before it begins; one that runs out of room inside
//   aborts, and waits until its log is empty.
#ifndef DURASIM_RUNTIMES_SPHT_EADR_H
#define DURASIM_RUNTIMES_SPHT_EADR_H

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "durasim/error.h"
#include "durasim/layout.h"
#include "durasim/markers.h"
#include "durasim/persist.h"
#include "runtimes/fences.h"
#include "runtimes/htm_attempts.h"
#include "runtimes/planted.h"
#include "runtimes/replayer.h"
#include "runtimes/shadow.h"
#include "runtimes/spht_log.h"
#include "runtimes/store.h"

namespace durasim {

struct SphtOptions {
    bool flush_lines = false;  // -Flush: cbo.flush instead of cbo.clean
};

namespace detail {

// Of the calling thread.
struct SphtThread {
    static constexpr unsigned code_log_full = 0xfd;

    HtmAttempts attempts;
    SphtLog log;
    HtmPath path = HtmPath::hardware;
    bool was_full = false;  // the last attempt ran out of room
    // Of the open transaction: where its entries begin, where the next one goes, and where the room ends.
    std::uint64_t begin = 0, position = 0, limit = 0;
    // The places of the first two in the ring.
    std::uint64_t first_slot = 0, slot = 0;
    bool is_wrapped = false;  // the transaction before lies at both ends of the ring
    // What it has overwritten in the shadow, if it runs under the lock.
    struct Old {
        std::uint64_t* place;
        std::uint64_t word;
    };
    std::vector<Old>* old = nullptr;
};
inline constinit thread_local SphtThread spht_thread;

// Timestamps: the cycle counters of all cores count one clock.
inline std::uint64_t read_timestamp() {
#if defined(__riscv)
    std::uint64_t cycle;
    __asm__ volatile("rdcycle %0" : "=r"(cycle) : : "memory");
    return cycle;
#else
    static std::uint64_t clock = 0;
    return __atomic_add_fetch(&clock, 1, __ATOMIC_SEQ_CST);
#endif
}

}  // namespace detail

class Runtime : private Fences {
public:
#if defined(DURASIM_BACKEND_SPHT_EADR_FLUSH)
    static constexpr const char* name = "spht-eadr-flush";
    static constexpr bool cleans_log = true;
#else
    static constexpr const char* name = "spht-eadr";
    static constexpr bool cleans_log = false;
#endif
    static constexpr LogKind log_kind = LogKind::spht;
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

    using Fences::format;

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

    // The pool is formatted and recovered, and work begins: on its shadow. The logs are emptied when the program exits.
    void begin_work(const char* path) {
        static Runtime* working = nullptr;
        working = this;
        std::atexit([] { working->replayer_.stop(); });
        shared_ = make_shadow(path, header_.pool_bytes);
        replayer_.start(logs(), shared_, static_cast<unsigned>(header_.logs()));
        enter_thread(0);
    }

    void enter_thread(std::uint64_t number) {
        detail::SphtThread& thread = detail::spht_thread;
        if (number >= header_.logs()) {
            fail(exit_usage, "durasim: thread %llu has no log: the pool was made for %llu threads", static_cast<unsigned long long>(number),
                 static_cast<unsigned long long>(header_.logs()));
        }
        thread.log.attach(header_, shared_, number);
        thread.first_slot = thread.slot = thread.log.slot(thread.log.tail());
        if (thread.old == nullptr) thread.old = new std::vector<detail::SphtThread::Old>;
    }

    // False if the body has rolled the transaction back.
    [[gnu::always_inline]] bool begin() {
        detail::SphtThread& thread = detail::spht_thread;
        thread.was_full = false;
        const HtmPath path = thread.attempts.begin([&](std::uint64_t status) { await_room(thread, status); });
        thread.path = path;
        return path != HtmPath::rolled_back;
    }

    void commit() {
        detail::SphtThread& thread = detail::spht_thread;
        const bool is_update = thread.position != thread.begin;
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
        if (thread.slot < thread.first_slot) note_wrapped(thread, true);
        thread.first_slot = thread.slot;
        if (is_update && replayer_.is_asleep() && is_half_full(thread)) replayer_.wake();
    }

    void abort() {
        detail::SphtThread& thread = detail::spht_thread;
        if (thread.path == HtmPath::hardware) thread.attempts.roll_back();
        for (std::size_t i = thread.old->size(); i-- > 0;) put((*thread.old)[i].place, (*thread.old)[i].word);
        thread.old->clear();
        thread.position = thread.begin;
        thread.slot = thread.first_slot;
        thread.attempts.unlock();
        durasim_tx_abort(1);
    }

    template <class T>
    T load(const T* place) const {
        return get(place);
    }

    // Logs hold whole words.
    template <class T>
    [[gnu::always_inline]] void store(T* place, T value) {
        detail::SphtThread& thread = detail::spht_thread;
        const auto address = reinterpret_cast<std::uint64_t>(place);
        auto* const word = reinterpret_cast<std::uint64_t*>(address & ~std::uint64_t{7});
        if (thread.path == HtmPath::lock) thread.old->push_back({word, get(word)});
        put(place, value);
        if (!planted(Fault::store_not_logged)) append(thread, reinterpret_cast<std::uint64_t>(word) - pool_address, get(word));
    }

    // What the calling thread has counted.
    const HtmCounts& htm_counts() const { return detail::spht_thread.attempts.counts; }

private:
    // Words that a log has free when a transaction begins, if it has as many (SPHT, FAST 2021).
    static constexpr std::uint64_t reserved_words = 128;

    std::vector<SphtLog> logs() const {
        std::vector<SphtLog> logs(header_.logs());
        for (std::uint64_t i = 0; i < header_.logs(); ++i) logs[i].attach(header_, shared_, i);
        return logs;
    }

    // Before an attempt, of which the one before ended with `status`: waits until the log has room.
    void await_room(detail::SphtThread& thread, std::uint64_t status) {
        SphtLog& log = thread.log;
        // No fence tells when the log of the transaction before is clean.
        if constexpr (cleans_log) durasim_situation_end(DURASIM_SITUATION_COMMIT_NOT_CLEANED);
        if (thread.is_wrapped) note_wrapped(thread, false);
        thread.begin = thread.position = log.tail();
        thread.slot = thread.first_slot;
        const bool was_full = (status & htm_explicit) != 0 && htm_code(status) == detail::SphtThread::code_log_full;
        const std::uint64_t wanted = was_full ? log.ring_words() : reserved_words < log.ring_words() / 2 ? reserved_words : log.ring_words() / 2;
        if (was_full && thread.limit - thread.begin == log.ring_words()) refuse_large(log);
        await_words(thread, wanted);
        thread.limit = planted(Fault::log_overwritten) ? ~std::uint64_t{0} : log.head() + log.ring_words();
    }

    void await_words(detail::SphtThread& thread, std::uint64_t wanted) {
        if (planted(Fault::log_overwritten)) return;
        for (detail::Backoff backoff; thread.log.head() + thread.log.ring_words() - thread.begin < wanted;) {
            if (replayer_.is_asleep()) replayer_.wake();
            backoff.wait();
        }
    }

    [[noreturn]] static void refuse_large(const SphtLog& log) {
        fail(exit_runtime, "durasim: the redo log of %llu words is too small for one transaction; give the pool a larger log (log-bytes)",
             static_cast<unsigned long long>(log.ring_words()));
    }

    void append(detail::SphtThread& thread, std::uint64_t offset, std::uint64_t value) {
        if (thread.limit - thread.position < SphtLog::words_of_store + SphtLog::words_of_end) make_room(thread);
        const std::uint64_t behind = thread.log.next(thread.slot);
        thread.log.put_word(thread.slot, offset);
        thread.log.put_word(behind, value);
        thread.slot = thread.log.next(behind);
        thread.position += SphtLog::words_of_store;
    }

    [[gnu::noinline]] void make_room(detail::SphtThread& thread) {
        if (thread.path == HtmPath::hardware) htm_abort<detail::SphtThread::code_log_full>();
        if (thread.log.ring_words() - (thread.position - thread.begin) < SphtLog::words_of_store + SphtLog::words_of_end) refuse_large(thread.log);
        await_words(thread, thread.log.ring_words());
        thread.limit = thread.log.head() + thread.log.ring_words();
    }

    // logCommit: the timestamp behind the entries, and the end of the log.
    void commit_log(detail::SphtThread& thread) {
        const std::uint64_t timestamp = planted(Fault::timestamps_tie) ? 1 : detail::read_timestamp();
        if (planted(Fault::tail_before_end)) thread.log.put_tail(thread.position + SphtLog::words_of_end);
        if (!planted(Fault::end_not_written)) thread.log.put_word(thread.slot, timestamp | SphtLog::end_mark);
        thread.slot = thread.log.next(thread.slot);
        thread.position += SphtLog::words_of_end;
        if (!planted(Fault::tail_not_stored) && !planted(Fault::tail_before_end)) thread.log.put_tail(thread.position);
    }

    // Lines of entries that no one will look at but the replayer.
    void clean_log(const detail::SphtThread& thread) const {
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

    [[gnu::noinline]] static void note_wrapped(detail::SphtThread& thread, bool is_wrapped) {
        thread.is_wrapped = is_wrapped;
        if (is_wrapped) {
            durasim_situation_begin(DURASIM_SITUATION_LOG_WRAPPED);
        } else {
            durasim_situation_end(DURASIM_SITUATION_LOG_WRAPPED);
        }
    }

    static bool is_half_full(const detail::SphtThread& thread) {
        return thread.position - thread.log.head() > thread.log.ring_words() / 2;
    }

    PoolHeader header_{};
    std::uint64_t shared_ = pool_address;
    Replayer replayer_;
};

}  // namespace durasim

#endif
