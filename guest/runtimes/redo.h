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
#include "runtimes/fences.h"
#include "runtimes/planted.h"
#include "runtimes/redo_log.h"

namespace durasim {

namespace detail {

inline constinit thread_local RedoLog thread_log;

}  // namespace detail

class Runtime : private Fences {
public:
    static constexpr const char* name = "redo-flush";
    static constexpr LogKind log_kind = LogKind::redo;
    static constexpr bool marks = true;

    RedoOptions options;

    void attach(const PoolHeader& header) {
        header_ = header;
        detail::thread_log.attach(header, 0, options);
    }

    void enter_thread(std::uint64_t number) {
        refuse_thread_without_log(header_, number);
        detail::thread_log.attach(header_, planted(Fault::log_of_first_thread_shared) ? 0 : number, options);
    }

    using Fences::format;

    // Whether a power failure left a committed transaction that is not home yet.
    bool needs_recovery() const {
        for (std::uint64_t i = 0; i < header_.logs(); ++i) {
            if (log(i).needs_recovery()) return true;
        }
        return false;
    }

    // Carries the committed transactions through. Returns the number of entries applied.
    std::uint64_t recover() {
        std::uint64_t entries = 0;
        for (std::uint64_t i = 0; i < header_.logs(); ++i) {
            if (planted(Fault::recovery_first_thread_only) && i != 0) break;
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
    RedoLog log(std::uint64_t number) const {
        RedoLog log;
        log.attach(header_, number, options);
        return log;
    }

    PoolHeader header_{};
};

}  // namespace durasim

#endif
