// The shared part of all workloads: the commands run, check, recover and recover-and-check around a class such as
//
//     class W {
//     public:
//         static std::uint64_t arenas(const Arguments&);          // of the pool; one for each lock under which it allocates
//         static std::uint64_t pool_bytes(const Arguments&);      // enough for populate and ops
//         W(Pool&, const Arguments&);                             // makes or finds the root object
//         std::uint64_t populated() const;                        // items the pool holds
//         struct Thread;                                          // what a thread keeps to itself, in ordinary memory
//         Thread enter(std::uint64_t number) const;               // for thread `number`, from 0
//         void populate_one(Thread&);                             // one transaction, by thread 0 alone
//         void operation(Thread&);                                // one transaction of this thread
//         void leave(const Thread&);                              // notes what the thread did, for the comparison
//         void compare_with_model() const;                        // violation if the pool is not what was done to it
//         void print_result() const;                              // "keys=..." or the like, without a newline
//         static std::uint64_t check(const Pool&);                // violation, or the number of finished operations
//         static void dump(const Pool&, Dump&);                   // the objects with their versions (durasim/history.h)
//         static std::uint64_t log_bytes_min(const Arguments&);   // optional: of each log, where a runtime keeps one
//         static void recover(const Pool&);                       // optional: what the runtime's recovery does not do
//     };
//
// With several threads an operation takes locks around its transaction, and each thread counts its finished operations in
// a line of the pool of its own, in the same transaction. Which operation is the n-th of a thread depends on seed, thread
// and n alone, so these counts say what the pool has to hold.
//
// Each transaction reports what it read and changed (durasim/history.h), the populating ones too. `dump` has to be ready
// for any content of the pool, as `check` has, and notes the damage if it cannot reach a part.
#ifndef DURASIM_WORKLOADS_HARNESS_H
#define DURASIM_WORKLOADS_HARNESS_H

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "durasim/audit.h"
#include "durasim/error.h"
#include "durasim/history.h"
#include "durasim/lock.h"
#include "durasim/markers.h"
#include "durasim/pool.h"
#include "durasim/threads.h"
#include "durasim/tx.h"
#include "workloads/arguments.h"

namespace durasim {

// Reports what is wrong with the pool and ends the program.
#define DURASIM_VIOLATION(format, ...) \
    ::durasim::fail(::durasim::exit_violation, "%s: violation: " format, ::durasim::program_name __VA_OPT__(, ) __VA_ARGS__)

// printf has no portable letter for std::uint64_t that is the same on every host.
using Long = unsigned long long;

// Operations that a thread has finished, on a line of the pool of its own.
struct alignas(64) Progress {
    std::uint64_t finished;
};

// Operation `number` of `thread`, as one number: different operations stay different.
inline constexpr unsigned operation_bits = 40;
constexpr std::uint64_t operation_of(std::uint64_t thread, std::uint64_t number) { return thread << operation_bits | number; }

// The number of operations of `thread` among `ops`, and the number of those of the threads before it.
constexpr std::uint64_t share_of(std::uint64_t ops, std::uint64_t threads, std::uint64_t thread) {
    return ops / threads + (thread < ops % threads ? 1 : 0);
}
constexpr std::uint64_t share_before(std::uint64_t ops, std::uint64_t threads, std::uint64_t thread) {
    return ops / threads * thread + (thread < ops % threads ? thread : ops % threads);
}

// Reads what is of the open transaction.
struct Reader {
    Tx& t;

    template <class T>
    T operator()(const T& place) const {
        return t.read(place);
    }
};

// For workloads whose threads each keep a ledger of what they did in the pool: a violation if one is not what the thread has
// noted itself.
template <class Ledger>
void compare_ledgers(const Ledger* in_pool, const std::vector<Ledger>& noted) {
    for (std::uint64_t i = 0; i < noted.size(); ++i) {
        if (std::memcmp(&in_pool[i], &noted[i], sizeof(Ledger)) != 0) {
            DURASIM_VIOLATION("thread %llu finished %llu operations, but its ledger in the pool is another, of %llu",
                              static_cast<Long>(i), static_cast<Long>(noted[i].finished), static_cast<Long>(in_pool[i].finished));
        }
    }
}

namespace detail {

// The runtime's own arguments; which of them exist depends on the backend.
template <class A, class R>
void configure(const A& arguments, R& target) {
    if constexpr (requires { arguments.log_granularity; }) {
        target.options.log_words = std::strcmp(arguments.log_granularity, "word") == 0;
    }
    if constexpr (requires { arguments.no_flush; }) target.options.skip_flushes = arguments.no_flush;
    if constexpr (requires { arguments.no_fence; }) target.options.skip_fences = arguments.no_fence;
    if constexpr (requires { arguments.log_lines; }) {
        target.options.flush_lines = std::strcmp(arguments.log_lines, "flush") == 0;
    }
    if constexpr (requires { arguments.replay; }) target.options.replays_backward = std::strcmp(arguments.replay, "backward") == 0;
    if constexpr (requires { arguments.read_only; }) {
        target.options.reads_return_early = std::strcmp(arguments.read_only, "return") == 0;
    }
    if constexpr (requires { arguments.lock_aborts_uncounted; }) {
        target.attempt_options() = {.attempts = static_cast<unsigned>(arguments.attempts),
                                    .counts_lock_aborts = !arguments.lock_aborts_uncounted,
                                    .back_off_pauses = static_cast<unsigned>(arguments.back_off_pauses)};
    }
    if constexpr (requires { arguments.commit_clock; }) target.reads_clock_early = std::strcmp(arguments.commit_clock, "published") == 0;
    if constexpr (requires { arguments.shadow_touched; }) target.options.touches_shadow = arguments.shadow_touched;
    if constexpr (requires { arguments.links; }) target.options.links = arguments.links;
    if constexpr (requires { arguments.replayers; }) target.options.replayers = static_cast<unsigned>(arguments.replayers);
    if constexpr (requires { arguments.open_max; }) {
        target.options.limit = arguments.open_max;
        target.options.tunes_limit = arguments.tune_open_max;
    }
    if constexpr (requires { arguments.shadow_bytes; }) target.options.shadow_bytes = arguments.shadow_bytes;
    if constexpr (requires { arguments.no_log; }) target.options.skip_log = arguments.no_log;
}

// The fault of a build that has some; see runtimes/planted.h.
template <class A>
void plant_fault([[maybe_unused]] const A& arguments) {
    if constexpr (requires { arguments.planted; }) plant(arguments.planted);
}

template <class A>
std::uint64_t log_bytes(const A& arguments) {
    if constexpr (requires { arguments.log_bytes; }) {
        return arguments.log_bytes;
    } else {
        return 0;
    }
}

// Whether a check is to dump the pool first: an argument of builds with a history.
template <class A>
bool wants_dump(const A& arguments) {
    if constexpr (requires { arguments.dump; }) {
        return arguments.dump;
    } else {
        return false;
    }
}

// Log entries written by the calling thread, as a number of the sum that is printed.
template <class R>
void add_log_entries(const R& source, std::uint64_t& sum) {
    if constexpr (requires { source.entries_total(); }) __atomic_fetch_add(&sum, source.entries_total(), __ATOMIC_RELAXED);
}

template <class R>
void print_log_entries(const R& source, std::uint64_t sum) {
    if constexpr (requires { source.entries_total(); }) std::printf(" log_entries=%llu", static_cast<Long>(sum));
}

template <class Workload>
void perform(Workload& workload, typename Workload::Thread& thread, std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t i = first; i < first + count; ++i) {
        durasim_op_begin(i);
        workload.operation(thread);
        durasim_op_end(i);
    }
}

// A commit may be in flight when the program continues: the measured region holds all of its own and none from before.
inline void finish_commits() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

// The operations: `warm_ops` of them, then the measured region with all others. All threads begin together, and it ends
// with the last.
template <class Workload>
void measure(Workload& workload, const Arguments& arguments, std::uint64_t warm_ops, std::uint64_t& log_entries) {
    const std::uint64_t ops = arguments.ops, threads = arguments.threads;
    if (threads == 1) {
        typename Workload::Thread state = workload.enter(0);
        perform(workload, state, 0, warm_ops);
        finish_commits();
        durasim_roi_begin();
        perform(workload, state, warm_ops, ops - warm_ops);
        finish_commits();
        durasim_roi_end();
        workload.leave(state);
        add_log_entries(runtime, log_entries);
        return;
    }
    Barrier barrier(static_cast<unsigned>(threads));
    run_threads(static_cast<unsigned>(threads), [&](unsigned thread) {
        if (thread != 0) enter_thread(thread);
        typename Workload::Thread state = workload.enter(thread);
        const std::uint64_t first = share_before(ops, threads, thread), warm = share_of(warm_ops, threads, thread);
        perform(workload, state, first, warm);
        finish_commits();
        barrier.wait();
        if (thread == 0) durasim_roi_begin();
        barrier.wait();
        perform(workload, state, first + warm, share_of(ops, threads, thread) - warm);
        finish_commits();
        barrier.wait();
        if (thread == 0) durasim_roi_end();
        workload.leave(state);
        add_log_entries(runtime, log_entries);
    });
}

template <class Workload>
int run(const Arguments& given) {
    // For the workload the unmeasured operations are operations like others.
    Arguments arguments = given;
    arguments.ops += given.warm_ops;
    if constexpr (requires { Workload::complete(arguments); }) Workload::complete(arguments);
    configure(arguments, runtime);
    std::uint64_t log = log_bytes(arguments);
    if constexpr (requires { Workload::log_bytes_min(arguments); }) {
        if (log != 0) log = std::max(log, Workload::log_bytes_min(arguments));
    }
    const bool exact = arguments.pool_bytes != 0;
    const PoolShape shape{.arenas = Workload::arenas(arguments), .logs = arguments.threads};
    const std::uint64_t enough = Workload::pool_bytes(arguments) + (1 + shape.arenas) * page_bytes + log * shape.logs;
    const std::uint64_t wanted = exact ? arguments.pool_bytes : enough;
    Pool& pool = Pool::open(arguments.pool_path, wanted, log, exact, shape);
    Workload workload(pool, arguments);
    typename Workload::Thread state = workload.enter(0);
    while (workload.populated() < arguments.populate) workload.populate_one(state);
    workload.leave(state);
    durasim_snapshot_point(0);

    std::uint64_t log_entries = 0;
    measure(workload, arguments, given.warm_ops, log_entries);

    if (!arguments.no_check) {
        Workload::check(pool);
        workload.compare_with_model();
    }
    std::printf("%s: ops=%llu ", program_name, static_cast<Long>(arguments.ops));
    workload.print_result();
    print_log_entries(runtime, log_entries);
    std::printf(" %s\n", arguments.no_check ? "unchecked" : "ok");
    return exit_ok;
}

// The content of a pool, whatever is in it.
template <class Workload>
int write_dump(const Pool* pool) {
    Dump dump;
    if (pool != nullptr && pool->data()->root != 0) Workload::dump(*pool, dump);
    dump.write(stdout);
    return exit_ok;
}

template <class Workload>
int check(const Arguments& arguments, const Pool* pool) {
    if (wants_dump(arguments)) write_dump<Workload>(pool);
    std::uint64_t operations = 0;
    bool empty = pool == nullptr;
    if (pool != nullptr) {
        if (runtime.needs_recovery()) DURASIM_VIOLATION("the pool holds an interrupted transaction; recover it first");
        if (pool->data()->root == 0) {
            Audit audit(*pool);
            if (audit.problem() != nullptr) DURASIM_VIOLATION("%s", audit.problem());
            if (audit.lines_leaked() != 0) DURASIM_VIOLATION("memory is in use, but there is no root object");
            empty = true;
        } else {
            operations = Workload::check(*pool);
        }
    }
    if (operations < arguments.operations_min) {
        DURASIM_VIOLATION("the pool holds %llu finished operations, but at least %llu were acknowledged",
                          static_cast<Long>(operations), static_cast<Long>(arguments.operations_min));
    }
    if (empty) {
        std::printf("%s: empty\n", program_name);
    } else {
        std::printf("%s: operations=%llu consistent\n", program_name, static_cast<Long>(operations));
    }
    return exit_ok;
}

}  // namespace detail

// The whole program.
template <class Workload>
int workload_main(int argc, char** argv) {
    Arguments arguments;
    const Command command = parse(argc, argv, arguments);
    detail::plant_fault(arguments);
    if (command == command_run) return detail::run<Workload>(arguments);
    Pool* pool = Pool::open_existing(arguments.pool_path);
    if constexpr (has_history) {
        if (command == command_dump) return detail::write_dump<Workload>(pool);
    }
    if (command != command_check) {
        const std::uint64_t entries = pool == nullptr ? 0 : runtime.recover();
        if constexpr (requires { Workload::recover(*pool); }) {
            if (pool != nullptr) Workload::recover(*pool);
        }
        if (command == command_recover) {
            std::printf("%s: recovered, %llu log entries applied\n", program_name, static_cast<Long>(entries));
            return exit_ok;
        }
    }
    return detail::check<Workload>(arguments, pool);
}

}  // namespace durasim

#endif
