// Write-ahead logging in software: SP, "software-supported persistence", of TC (DAC'17, sections 2.1 and 5.1).
//
// The paper logs log(address, new value) for each store, orders the log before the data by cache flushes and a memory
// barrier, and stores in place then. Here each store of a transaction appends its address and new word to a log in
// persistent memory. The commit makes the log durable, with a record that commits it; then it stores the words in place and
// makes them durable; then it empties the log. cbo.clean and a fence make something durable: three waits for persistent
// memory for each transaction, however large. An abort forgets the entries.
//
// A log of new values recovers only if all of it is durable before the first store in place. So the words of an open
// transaction are in the log alone: its loads are plain loads, unless the word is one that it has stored to itself, which
// they take from the log. (sp-indirect, runtimes/redo.h, keeps them in a write set and writes the log at the commit.)
//
// Each thread has a log of its own (write_ahead_log.h), so at most one transaction is inside commit in each. Threads hold
// their locks until the commit has returned, and the log is empty by then: two logs never hold committed entries of the
// same word, and recovery may take the logs in any order. What is stored in place is whole words of eight bytes, so data of
// different locks has to lie in different words.
#ifndef DURASIM_RUNTIMES_WRITE_AHEAD_H
#define DURASIM_RUNTIMES_WRITE_AHEAD_H

#include <cstdint>

#include "durasim/layout.h"
#include "runtimes/planted.h"
#include "runtimes/write_ahead_log.h"

namespace durasim {

namespace detail {

inline constinit thread_local WriteAheadLog thread_log;

struct Logs {
    using Log = WriteAheadLog;
    using Options = WriteAheadOptions;
    static constexpr const char* name = "write-ahead";
    static constexpr LogKind kind = LogKind::write_ahead;
    static Log& of_thread() { return thread_log; }
    template <class T>
    static T load(const T* place) {
        return thread_log.load(place);
    }
    static bool threads_share_first() { return planted(Fault::threads_share_log); }
    static bool recovery_does_nothing() { return false; }
    static bool recovery_takes_first_alone() { return planted(Fault::recovery_of_first_log_only); }
};

}  // namespace detail

}  // namespace durasim

#include "runtimes/log_runtime.h"

#endif
