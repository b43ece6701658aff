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
#include "runtimes/fences.h"
#include "runtimes/planted.h"
#include "runtimes/write_ahead_log.h"

namespace durasim {

namespace detail {

inline constinit thread_local WriteAheadLog thread_log;

}  // namespace detail

class Runtime : private Fences {
public:
    static constexpr const char* name = "write-ahead";
    static constexpr LogKind log_kind = LogKind::write_ahead;
    static constexpr bool marks = true;

    WriteAheadOptions options;

    void attach(const PoolHeader& header) {
        header_ = header;
        detail::thread_log.attach(header, 0, options);
    }

    void enter_thread(std::uint64_t number) {
        refuse_thread_without_log(header_, number);
        detail::thread_log.attach(header_, planted(Fault::threads_share_log) ? 0 : number, options);
    }

    using Fences::format;

    // Whether a power failure left anything in a log.
    bool needs_recovery() const {
        for (std::uint64_t i = 0; i < header_.logs(); ++i) {
            if (log(i).needs_recovery()) return true;
        }
        return false;
    }

    // Writes the committed transactions in place. Returns the number of entries applied.
    std::uint64_t recover() {
        std::uint64_t entries = 0;
        for (std::uint64_t i = 0; i < header_.logs(); ++i) {
            if (planted(Fault::recovery_of_first_log_only) && i != 0) break;
            entries += log(i).recover();
        }
        return entries;
    }

    void begin() { detail::thread_log.begin(); }
    void commit() { detail::thread_log.commit(); }
    void abort() { detail::thread_log.abort(); }

    template <class T>
    T load(const T* place) const {
        return detail::thread_log.load(place);
    }

    template <class T>
    void store(T* place, T value) {
        detail::thread_log.store(place, value);
    }

    // Entries that the calling thread has written.
    std::uint64_t entries_total() const { return detail::thread_log.entries_total; }

private:
    WriteAheadLog log(std::uint64_t number) const {
        WriteAheadLog log;
        log.attach(header_, number, options);
        return log;
    }

    PoolHeader header_{};
};

}  // namespace durasim

#endif
