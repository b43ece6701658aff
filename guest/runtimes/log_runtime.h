// Runtime of the backends in which each thread has a log: undo.h, redo.h and write_ahead.h include it. It gives threads their
// logs, passes transactions on to them, and recovers all logs of a pool.
//
// The backend defines before what is its own. (As a base class or a template this would place variables elsewhere.)
//
//     struct detail::Logs {
//         using Log = ...;          // of one thread: attach, needs_recovery, recover, begin, commit, abort, store, entries_total
//         using Options = ...;      // of its transactions
//         static constexpr const char* name;
//         static constexpr LogKind kind;
//         static Log& of_thread();  // the log of the calling thread
//         static T load(const T*);  // of an open transaction of the calling thread
//         static bool threads_share_first(), recovery_does_nothing(), recovery_takes_first_alone();  // planted faults
//     };
#ifndef DURASIM_RUNTIMES_LOG_RUNTIME_H
#define DURASIM_RUNTIMES_LOG_RUNTIME_H

#include <cstdint>

#include "durasim/layout.h"
#include "runtimes/fences.h"

namespace durasim {

class Runtime : private Fences {
    using Logs = detail::Logs;

public:
    static constexpr const char* name = Logs::name;
    static constexpr LogKind log_kind = Logs::kind;
    static constexpr bool marks = true;

    Logs::Options options;

    void attach(const PoolHeader& header) {
        header_ = header;
        Logs::of_thread().attach(header, 0, options);
    }

    void enter_thread(std::uint64_t number) {
        refuse_thread_without_log(header_, number);
        Logs::of_thread().attach(header_, Logs::threads_share_first() ? 0 : number, options);
    }

    using Fences::format;

    // Whether a power failure left a log that has to be recovered.
    bool needs_recovery() const {
        for (std::uint64_t i = 0; i < header_.logs(); ++i) {
            if (log(i).needs_recovery()) return true;
        }
        return false;
    }

    // Recovers all logs. Returns the number of entries applied.
    std::uint64_t recover() {
        std::uint64_t entries = 0;
        if (Logs::recovery_does_nothing()) return 0;
        for (std::uint64_t i = 0; i < header_.logs(); ++i) {
            if (Logs::recovery_takes_first_alone() && i != 0) break;
            entries += log(i).recover();
        }
        return entries;
    }

    void begin() { Logs::of_thread().begin(); }
    void commit() { Logs::of_thread().commit(); }
    void abort() { Logs::of_thread().abort(); }

    template <class T>
    T load(const T* place) const {
        return Logs::load(place);
    }

    template <class T>
    void store(T* place, T value) {
        Logs::of_thread().store(place, value);
    }

    // Entries that the calling thread has written.
    std::uint64_t entries_total() const { return Logs::of_thread().entries_total; }

private:
    Logs::Log log(std::uint64_t number) const {
        Logs::Log log;
        log.attach(header_, number, options);
        return log;
    }

    PoolHeader header_{};
};

}  // namespace durasim

#endif
