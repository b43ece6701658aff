// HTM+SGL: hardware transactions on persistent data, where caches are durable (thesis, section 3.1.1, Algorithm 2).
//
// A hardware transaction is durable when it commits, without an instruction more: all its lines become visible, and
// survive, in one step. What does not commit in hardware runs under the single global lock, with an undo log: its stores are
// visible to a power failure one by one.
//
// - The algorithm makes the log where the lock is taken; as printed, its loop encloses the making of the log. Here it
//   follows the loop.
// - The log of a thread is that of SWL_eADR (undo_log.h): entries of lines or words with checksums, and a word that empties it.
//   Stores become durable in program order (TSO), so the lock is released behind the word with a fence.
#ifndef DURASIM_RUNTIMES_HTM_SGL_H
#define DURASIM_RUNTIMES_HTM_SGL_H

#include <cstdint>

#include "durasim/layout.h"
#include "durasim/markers.h"
#include "runtimes/fences.h"
#include "runtimes/htm_attempts.h"
#include "runtimes/planted.h"
#include "runtimes/store.h"
#include "runtimes/undo_log.h"

namespace durasim {

namespace detail {

// Of the calling thread.
struct HtmThread {
    HtmAttempts attempts;
    UndoLog log;
    HtmPath path = HtmPath::hardware;
};
inline constinit thread_local HtmThread htm_thread;

}  // namespace detail

class Runtime : private Fences {
public:
    static constexpr const char* name = "htm-sgl";
    static constexpr LogKind log_kind = LogKind::undo;
    static constexpr bool marks = true;
    static constexpr bool isolates = true;

    UndoOptions options;

    void attach(const PoolHeader& header) {
        header_ = header;
        detail::htm_thread.log.attach(header, 0, options);
    }

    void enter_thread(std::uint64_t number) {
        refuse_thread_without_log(header_, number);
        detail::htm_thread.log.attach(header_, planted(Fault::thread_log_shared) ? 0 : number, options);
    }

    using Fences::format;

    // Whether a power failure left a transaction under the lock to be undone.
    bool needs_recovery() const {
        for (std::uint64_t i = 0; i < header_.logs(); ++i) {
            if (log(i).needs_recovery()) return true;
        }
        return false;
    }

    // Rolls it back. Returns the number of entries applied.
    std::uint64_t recover() {
        std::uint64_t entries = 0;
        for (std::uint64_t i = 0; i < header_.logs(); ++i) {
            if (planted(Fault::recovery_first_log_only) && i != 0) break;
            entries += log(i).recover();
        }
        return entries;
    }

    // False if the body has rolled the transaction back.
    [[gnu::always_inline]] bool begin() {
        detail::HtmThread& thread = detail::htm_thread;
        const HtmPath path = thread.attempts.begin([](std::uint64_t) {}, [] {});
        thread.path = path;
        // As printed: the making of the log is the body of the loop that waits for the lock.
        const bool makes_log = !planted(Fault::log_made_while_waiting) || HtmAttempts::has_waited;
        if (path == HtmPath::lock && makes_log) thread.log.begin();
        return path != HtmPath::rolled_back;
    }

    void commit() {
        detail::HtmThread& thread = detail::htm_thread;
        if (thread.path == HtmPath::hardware) {
            durasim_tx_committing();
            thread.attempts.end();
            durasim_tx_commit();
            return;
        }
        if (planted(Fault::unlocked_before_commit)) thread.attempts.unlock();
        planted_slow(Fault::unlocked_before_commit);
        thread.log.commit();
        thread.attempts.committed_under_lock();
        if (!planted(Fault::unlocked_before_commit)) thread.attempts.unlock();
    }

    void abort() {
        detail::HtmThread& thread = detail::htm_thread;
        if (thread.path == HtmPath::hardware) thread.attempts.roll_back();
        thread.log.roll_back();
        thread.attempts.unlock();
        durasim_tx_abort(1);
    }

    template <class T>
    T load(const T* place) const {
        return get(place);
    }

    // Only who holds the lock logs.
    template <class T>
    [[gnu::always_inline]] void store(T* place, T value) {
        detail::HtmThread& thread = detail::htm_thread;
        if (thread.path == HtmPath::lock && !planted(Fault::lock_path_not_logged)) {
            thread.log.store(place, value);
        } else {
            put(place, value);
        }
    }

    // Log entries that the calling thread has written.
    std::uint64_t entries_total() const { return detail::htm_thread.log.entries_total; }

    // Whether the open transaction of the calling thread is a hardware transaction.
    bool is_in_hardware() const { return detail::htm_thread.path == HtmPath::hardware; }

    static AttemptOptions& attempt_options() { return HtmAttempts::options; }

    // What the calling thread has counted.
    const HtmCounts& htm_counts() const { return detail::htm_thread.attempts.counts; }

private:
    UndoLog log(std::uint64_t number) const {
        UndoLog log;
        log.attach(header_, number, options);
        return log;
    }

    PoolHeader header_{};
};

}  // namespace durasim

#endif
