// Undo logging in software: SWL_flush and SWL_eADR of Hercules (TECS'23), the "SW Logging" of LAD (MICRO'19).
//
// Before the first store to a line (or word) its old content goes into a log in persistent memory, and the store waits
// until the entry is durable. A commit makes the modified lines durable, then invalidates the log with one word store and
// makes that durable. The backend undo-flush makes durable by cbo.clean and a fence, for a persistence domain that
// begins at the memory controller (ADR); undo-fence by a full fence alone, for one that holds the caches
// (eADR).
//
// Each thread has a log of its own (undo_log.h), so at most one transaction is open in each. Threads hold their locks until
// the commit has returned: the live entries of two logs then never name the same line, and recovery may take the logs in
// any order.
#ifndef DURASIM_RUNTIMES_UNDO_H
#define DURASIM_RUNTIMES_UNDO_H

#include <cstdint>

#include "durasim/layout.h"
#include "runtimes/fences.h"
#include "runtimes/planted.h"
#include "runtimes/store.h"
#include "runtimes/undo_log.h"

namespace durasim {

namespace detail {

inline constinit thread_local UndoLog thread_log;

}  // namespace detail

class Runtime : private Fences {
public:
    static constexpr const char* name = Fences::flushes ? "undo-flush" : "undo-fence";
    static constexpr LogKind log_kind = LogKind::undo;
    static constexpr bool marks = true;

    UndoOptions options;

    void attach(const PoolHeader& header) {
        header_ = header;
        detail::thread_log.attach(header, 0, options);
    }

    void enter_thread(std::uint64_t number) {
        refuse_thread_without_log(header_, number);
        detail::thread_log.attach(header_, planted(Fault::thread_log_shared) ? 0 : number, options);
    }

    using Fences::format;

    // Whether a power failure left a transaction to be undone.
    bool needs_recovery() const {
        for (std::uint64_t i = 0; i < header_.logs(); ++i) {
            if (log(i).needs_recovery()) return true;
        }
        return false;
    }

    // Takes the interrupted transactions back. Returns the number of entries applied.
    std::uint64_t recover() {
        std::uint64_t entries = 0;
        if (planted(Fault::recovery_without_undo)) return 0;
        for (std::uint64_t i = 0; i < header_.logs(); ++i) {
            if (planted(Fault::recovery_first_log_only) && i != 0) break;
            entries += log(i).recover();
        }
        return entries;
    }

    void begin() { detail::thread_log.begin(); }
    void commit() { detail::thread_log.commit(); }
    void abort() { detail::thread_log.abort(); }

    template <class T>
    T load(const T* place) const {
        return get(place);
    }

    template <class T>
    void store(T* place, T value) {
        detail::thread_log.store(place, value);
    }

    // Entries that the calling thread has written.
    std::uint64_t entries_total() const { return detail::thread_log.entries_total; }

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
