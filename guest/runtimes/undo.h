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

struct Logs {
    using Log = UndoLog;
    using Options = UndoOptions;
    static constexpr const char* name = Fences::flushes ? "undo-flush" : "undo-fence";
    static constexpr LogKind kind = LogKind::undo;
    static Log& of_thread() { return thread_log; }
    template <class T>
    static T load(const T* place) {
        return get(place);
    }
    static bool threads_share_first() { return planted(Fault::thread_log_shared); }
    static bool recovery_does_nothing() { return planted(Fault::recovery_without_undo); }
    static bool recovery_takes_first_alone() { return planted(Fault::recovery_first_log_only); }
};

}  // namespace detail

}  // namespace durasim

#include "runtimes/log_runtime.h"

#endif
