// Faults of the undo log: what it does wrong on purpose, so that crash campaigns can show that they would notice.
//
// Only builds with DURASIM_PLANTED have them, which `durasim crash --planted` makes; planted/undo.toml says what each does,
// and which of them nobody can see. In any other build `planted` is false at compile time and leaves nothing behind.
#ifndef DURASIM_RUNTIMES_PLANTED_H
#define DURASIM_RUNTIMES_PLANTED_H

#include "durasim/error.h"

// Each name with - for _ is that of planted/undo.toml.
#define DURASIM_FAULTS_(X)                                                                                              \
    X(entry_not_cleaned) X(old_content_not_cleaned) X(no_fence_before_store) X(log_stops_after_two) X(logged_after_store) \
    X(checksum_after_store) X(last_word_not_saved) X(second_slot_not_wrapped) X(filter_too_coarse) X(filter_not_cleared)  \
    X(thread_log_shared) X(data_not_cleaned) X(word_lines_not_cleaned) X(no_fence_before_record) X(record_first)          \
    X(record_skipped) X(record_not_cleaned) X(no_fence_after_record) X(acknowledged_first) X(sequence_not_bumped)         \
    X(tail_not_advanced) X(abort_not_restored) X(abort_skips_oldest) X(abort_not_cleaned) X(checksum_not_checked)         \
    X(sequence_not_checked) X(index_not_checked) X(recovery_first_log_only) X(recovery_skips_newest)                      \
    X(recovery_skips_oldest) X(recovery_loses_place) X(recovery_restores_short) X(recovery_leaves_log_live)               \
    X(recovery_oldest_first) X(recovery_restores_twice)

namespace durasim {

enum class Fault : unsigned {
    none,
#define X(name) name,
    DURASIM_FAULTS_(X)
#undef X
};

#if defined(DURASIM_PLANTED)

namespace detail {

inline Fault planted_fault = Fault::none;

// Whether `name`, words joined by -, is `fault`, words joined by _.
inline bool is_name_of(const char* name, const char* fault) {
    for (; *name != 0 && (*name == *fault || (*name == '-' && *fault == '_')); ++name) ++fault;
    return *name == 0 && *fault == 0;
}

}  // namespace detail

inline bool planted(Fault fault) { return detail::planted_fault == fault; }

// From now on this fault is in the program; the name "none" takes it out.
inline void plant(const char* name) {
#define X(fault) \
    if (detail::is_name_of(name, #fault)) return void(detail::planted_fault = Fault::fault);
    X(none) DURASIM_FAULTS_(X)
#undef X
    fail(exit_usage, "durasim: the undo log has no fault '%s'", name);
}

#else

constexpr bool planted(Fault) { return false; }

#endif

}  // namespace durasim

#endif
