// What all workloads share: the commands run, check, recover and recover-and-check around a class such as
//
//     class W {
//     public:
//         static std::uint64_t pool_bytes(const Arguments&);      // enough for populate and ops
//         W(Pool&, const Arguments&);                             // makes or finds the root object
//         std::uint64_t populated() const;                        // items the pool holds
//         void populate_one();                                    // one transaction
//         void operation();                                       // one transaction
//         void compare_with_model() const;                        // violation if the pool is not what was done to it
//         void print_result() const;                              // "keys=..." or the like, without a newline
//         static std::uint64_t check(const Pool&);                // violation, or the number of finished operations
//     };
#ifndef DURASIM_WORKLOADS_HARNESS_H
#define DURASIM_WORKLOADS_HARNESS_H

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "durasim/audit.h"
#include "durasim/error.h"
#include "durasim/markers.h"
#include "durasim/pool.h"
#include "durasim/tx.h"
#include "workloads/arguments.h"

namespace durasim {

// Reports what is wrong with the pool and ends the program.
#define DURASIM_VIOLATION(format, ...) \
    ::durasim::fail(::durasim::exit_violation, "%s: violation: " format, ::durasim::program_name __VA_OPT__(, ) __VA_ARGS__)

// printf has no portable letter for std::uint64_t that is the same on every host.
using Long = unsigned long long;

namespace detail {

// The runtime's own arguments; which of them exist depends on the backend.
template <class A, class R>
void configure(const A& arguments, R& target) {
    if constexpr (requires { arguments.log_granularity; }) {
        target.options.log_words = std::strcmp(arguments.log_granularity, "word") == 0;
    }
    if constexpr (requires { arguments.no_flush; }) target.options.skip_flushes = arguments.no_flush;
    if constexpr (requires { arguments.no_fence; }) target.options.skip_fences = arguments.no_fence;
}

template <class A>
std::uint64_t log_bytes(const A& arguments) {
    if constexpr (requires { arguments.log_bytes; }) {
        return arguments.log_bytes;
    } else {
        return 0;
    }
}

template <class R>
void print_log_entries(const R& source) {
    if constexpr (requires { source.entries_total; }) std::printf(" log_entries=%llu", static_cast<Long>(source.entries_total));
}

template <class Workload>
int run(const Arguments& arguments) {
    if (arguments.threads != 1) {
        fail(exit_usage, "%s: --threads %llu is not supported; this workload runs on one thread", program_name,
             static_cast<Long>(arguments.threads));
    }
    configure(arguments, runtime);
    const std::uint64_t log = log_bytes(arguments);
    const bool exact = arguments.pool_bytes != 0;
    const std::uint64_t wanted = exact ? arguments.pool_bytes : Workload::pool_bytes(arguments) + 2 * page_bytes + log;
    Pool& pool = Pool::open(arguments.pool_path, wanted, log, exact);
    Workload workload(pool, arguments);
    while (workload.populated() < arguments.populate) workload.populate_one();
    durasim_snapshot_mark(0);

    durasim_roi_begin();
    for (std::uint64_t i = 0; i < arguments.ops; ++i) {
        durasim_op_begin(i);
        workload.operation();
        durasim_op_end(i);
    }
    durasim_roi_end();

    if (!arguments.no_check) {
        Workload::check(pool);
        workload.compare_with_model();
    }
    std::printf("%s: ops=%llu ", program_name, static_cast<Long>(arguments.ops));
    workload.print_result();
    print_log_entries(runtime);
    std::printf(" %s\n", arguments.no_check ? "unchecked" : "ok");
    return exit_ok;
}

template <class Workload>
int check(const Arguments& arguments, const Pool* pool) {
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
    if (command == command_run) return detail::run<Workload>(arguments);
    Pool* pool = Pool::open_existing(arguments.pool_path);
    if (command != command_check) {
        const std::uint64_t entries = pool == nullptr ? 0 : runtime.recover();
        if (command == command_recover) {
            std::printf("%s: recovered, %llu log entries applied\n", program_name, static_cast<Long>(entries));
            return exit_ok;
        }
    }
    return detail::check<Workload>(arguments, pool);
}

}  // namespace durasim

#endif
