// Redo (write-ahead) logging in software behind a write set: a reading of SP, "software-supported persistence", of TC
// (DAC'17, section 5.1). Row sp-indirect; runtimes/write_ahead.h is the other reading.
//
// Stores of a transaction go to a write set in ordinary memory, where its own loads find them; the pool keeps its old content
// until the commit. That appends the words to a log in persistent memory and makes them durable, then a commit record, and
// only then writes the words home, makes them durable there, and truncates the log: four waits for persistent memory for
// each transaction, however large. cbo.clean and a fence make something durable. An abort forgets the write set.
//
// Each thread has a log of its own (redo_log.h), so at most one transaction is inside commit in each. Threads hold their
// locks until the commit has returned, and the log is truncated by then: two logs never hold committed entries of the same
// word, and recovery may take the logs in any order. What is written home is whole words of eight bytes, so data of
// different locks has to lie in different words.
#ifndef DURASIM_RUNTIMES_REDO_H
#define DURASIM_RUNTIMES_REDO_H

#include <cstdint>

#include "durasim/layout.h"
#include "runtimes/planted.h"
#include "runtimes/redo_log.h"

namespace durasim {

namespace detail {

inline constinit thread_local RedoLog thread_log;

struct Logs {
    using Log = RedoLog;
    using Options = RedoOptions;
    static constexpr const char* name = "redo-flush";
    static constexpr LogKind kind = LogKind::redo;
    static Log& of_thread() { return thread_log; }
    template <class T>
    static T load(const T* place) {
        return thread_log.load(place);
    }
    static bool threads_share_first() { return planted(Fault::log_of_first_thread_shared); }
    static bool recovery_does_nothing() { return false; }
    static bool recovery_takes_first_alone() { return planted(Fault::recovery_first_thread_only); }
};

}  // namespace detail

}  // namespace durasim

#include "runtimes/log_runtime.h"

#endif
