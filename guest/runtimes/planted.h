// Faults of the logs in software and of the runtime of objects: what they do wrong on purpose, so that crash campaigns can show that they would notice.
//
// Only builds with DURASIM_PLANTED have them, which `durasim mutation` makes; the files in planted/ say what
// each does, and which of them nobody can see. In any other build `planted` is false at compile time and leaves
// nothing behind.
#ifndef DURASIM_RUNTIMES_PLANTED_H
#define DURASIM_RUNTIMES_PLANTED_H

#include "durasim/backend.h"
#include "durasim/error.h"

// Each name with - for _ is that of planted/undo.toml, redo.toml, write_ahead.toml, objects.toml, p-inspect.toml, htm.toml, spht.toml, clock.toml, timed.toml, group-commit.toml and nv-htm.toml, one after the other.
#define DURASIM_UNDO_FAULTS_(X)                                                                                         \
    X(entry_not_cleaned) X(old_content_not_cleaned) X(no_fence_before_store) X(log_stops_after_two) X(logged_after_store) \
    X(checksum_after_store) X(last_word_not_saved) X(entry_not_wrapped) X(filter_too_coarse) X(filter_not_cleared)  \
    X(thread_log_shared) X(data_not_cleaned) X(word_lines_not_cleaned) X(no_fence_before_record) X(record_first)          \
    X(record_skipped) X(record_not_cleaned) X(no_fence_after_record) X(acknowledged_first) X(sequence_not_bumped)         \
    X(tail_not_advanced) X(abort_not_restored) X(abort_skips_oldest) X(abort_not_cleaned) X(checksum_not_checked)         \
    X(sequence_not_checked) X(index_not_checked) X(recovery_first_log_only) X(recovery_skips_newest)                      \
    X(recovery_skips_oldest) X(recovery_loses_place) X(recovery_restores_short) X(recovery_leaves_log_live)               \
    X(recovery_oldest_first) X(recovery_restores_twice) X(recovery_restores_without_clean)             \
    X(recovery_restores_without_fence)

#define DURASIM_REDO_FAULTS_(X)                                                                                         \
    X(entries_not_cleaned) X(last_entries_not_cleaned) X(entry_words_swapped) X(last_word_not_logged)                   \
    X(ring_not_wrapped) X(record_before_entries) X(no_fence_before_commit_record) X(commit_record_skipped)              \
    X(commit_record_not_cleaned) X(no_fence_after_commit_record) X(acknowledged_before_record) X(home_before_record)    \
    X(home_not_cleaned) X(first_home_line_only_cleaned) X(truncated_before_home) X(no_fence_before_truncation)          \
    X(truncation_skipped) X(truncation_not_cleaned) X(no_fence_after_truncation) X(own_stores_not_seen)                 \
    X(second_store_ignored) X(write_set_not_cleared) X(log_of_first_thread_shared) X(abort_writes_home)                 \
    X(record_checksum_not_checked) X(record_number_not_checked) X(entries_checksum_not_checked)                         \
    X(recovery_applies_uncommitted) X(recovery_stops_after_first) X(recovery_skips_last) X(recovery_first_thread_only)  \
    X(recovery_not_cleaned) X(recovery_truncates_first) X(recovery_leaves_log) X(recovery_newest_first)                 \
    X(recovery_applies_twice) X(recovery_not_fenced)

#define DURASIM_WRITE_AHEAD_FAULTS_(X)                                                                                  \
    X(log_not_cleaned) X(record_line_not_cleaned) X(last_log_line_not_cleaned) X(record_not_written)                    \
    X(sum_without_homes) X(sum_without_values) X(no_fence_after_log) X(stored_before_log) X(acknowledged_before_log)    \
    X(stores_not_cleaned) X(first_store_only_cleaned) X(last_store_forgotten) X(no_fence_after_stores)                  \
    X(emptied_before_stores) X(log_not_emptied) X(emptying_not_cleaned) X(no_fence_after_emptying)                      \
    X(own_entries_not_read) X(repeated_store_lost) X(narrow_store_clears_word) X(entries_kept) X(threads_share_log)     \
    X(abort_stores) X(abort_commits) X(sum_not_checked) X(recovery_believes_entries) X(recovery_applies_first_only)     \
    X(recovery_forgets_last) X(recovery_of_first_log_only) X(recovery_does_not_clean) X(recovery_empties_first)         \
    X(recovery_keeps_record) X(recovery_keeps_torn_record) X(recovery_in_reverse) X(recovery_repeats_entries)     \
    X(recovery_does_not_wait)

#define DURASIM_OBJECT_FAULTS_(X)                                                                                         \
    X(queued_bit_forgotten) X(queued_not_awaited) X(queued_value_stored) X(queued_cleared_before_fence)                   \
    X(queued_bit_not_cleaned) X(published_before_copying) X(last_word_not_copied) X(second_level_not_moved)               \
    X(references_not_replaced) X(references_overwritten) X(copies_not_cleaned) X(first_line_only_cleaned)                 \
    X(no_fence_behind_move) X(stores_not_awaited) X(copying_ignored) X(sharing_not_noted) X(store_not_cleaned)            \
    X(no_fence_behind_store) X(new_object_not_cleaned) X(no_fence_behind_new_object) X(region_not_logged)                 \
    X(sweep_does_not_wait) X(sweep_overwrites_stores) X(collector_forgets_volatile_holders)                               \
    X(collector_forgets_last_reference) X(recovery_leaves_queued) X(recovery_without_undo) X(recovery_forgets_half)

#define DURASIM_CHECK_FAULTS_(X)                                                                                          \
    X(inserted_behind_copy) X(object_not_inserted) X(first_object_only_inserted) X(old_address_in_trans)                  \
    X(copy_not_in_trans) X(trans_cleared_by_each_move) X(trans_cleared_before_fence)           \
    X(active_not_changed) X(active_changed_late) X(fwd_cleared_before_sweep) X(sweep_before_forwarding)                   \
    X(fwd_cleared_before_safepoints) X(active_filter_cleared) X(collector_leaves_fwd) X(heap_limit_too_low)               \
    X(xaction_not_set) X(xaction_not_cleared) X(handler_does_not_log) X(handler_store_not_cleaned)                        \
    X(holder_not_followed) X(value_not_followed) X(value_not_moved) X(load_not_followed) X(result_not_written)            \
    X(registers_not_preserved)

#define DURASIM_HTM_FAULTS_(X)                                                                                            \
    X(lock_not_subscribed) X(lock_not_taken) X(lock_path_not_logged) X(unlocked_before_commit) X(ended_where_it_begins)       \
    X(log_made_while_waiting)

#define DURASIM_SPHT_FAULTS_(X)                                                                                           \
    X(store_not_logged) X(log_committed_behind) X(end_not_written) X(tail_before_end) X(tail_not_stored) \
    X(timestamps_tie) X(log_overwritten) X(no_fence_before_unlock) X(replay_stores_backwards) \
    X(replay_skips_last_store) X(replay_looks_once) X(replay_without_order) X(replay_newest_first) \
    X(replay_forgets_last) X(head_before_stores) X(recovery_without_replay) X(heads_moved_backwards) \
    X(page_out_before_replay) X(page_out_of_open_transaction) X(is_update_not_reset) X(begin_stores)

// Of all runtimes that take the order of replay from a clock.
#define DURASIM_CLOCK_FAULTS_(X) X(clock_before_stores)

#define DURASIM_TIMED_FAULTS_(X)                                                                                           \
    X(bound_not_told) X(final_timestamp_not_told) X(entries_not_flushed) X(no_fence_behind_entries) X(end_before_entries) \
    X(end_not_cleaned) X(no_fence_behind_end) X(told_before_log) X(preceding_not_awaited) X(acknowledged_before_marker)   \
    X(marker_not_cleaned) X(no_fence_behind_marker) X(marker_told_before_flush) X(marker_ignored) X(replay_not_cleaned)   \
    X(no_fence_behind_replay) X(replayed_before_stores) X(replayed_not_cleaned) X(replayed_ignored)                       \
    X(filter_in_wrong_direction) X(head_not_cleaned) X(read_only_returns)
#define DURASIM_NV_HTM_FAULTS_(X) X(reset_timestamp_compared)
#define DURASIM_TEAM_FAULTS_(X) X(replayers_not_awaited) X(page_without_replayer)
#define DURASIM_LINK_FAULTS_(X) X(link_not_cleaned) X(predecessor_not_awaited) X(predecessor_of_own_thread) X(next_not_stored)
// Those of SPHT-eADR that these have too.
#define DURASIM_TIMED_SHARED_FAULTS_(X)                                                                                    \
    X(store_not_logged) X(end_not_written) X(timestamps_tie) X(log_overwritten) X(replay_skips_last_store)                \
    X(replay_without_order) X(recovery_without_replay) X(recovery_first_log_only)

namespace durasim {

enum class Fault : unsigned {
    none,
#define X(name) name,
    DURASIM_UNDO_FAULTS_(X) DURASIM_REDO_FAULTS_(X) DURASIM_WRITE_AHEAD_FAULTS_(X) DURASIM_OBJECT_FAULTS_(X) DURASIM_CHECK_FAULTS_(X) DURASIM_HTM_FAULTS_(X) DURASIM_SPHT_FAULTS_(X) DURASIM_CLOCK_FAULTS_(X) DURASIM_TIMED_FAULTS_(X) DURASIM_TEAM_FAULTS_(X) DURASIM_LINK_FAULTS_(X) DURASIM_NV_HTM_FAULTS_(X)
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

// The same, for a fault that only shows if other threads come in between: the program stays there for a while.
inline bool planted_slow(Fault fault) {
    for (unsigned i = 0; planted(fault) && i < 3000; ++i) __asm__ volatile("");
    return planted(fault);
}

#if !defined(DURASIM_PLANTED_FAULTS_)
#define DURASIM_PLANTED_FAULTS_(X) X(none) DURASIM_UNDO_FAULTS_(X)
#endif

// From now on this fault is in the program; the name "none" takes it out.
inline void plant(const char* name) {
#define X(fault) \
    if (detail::is_name_of(name, #fault)) return void(detail::planted_fault = Fault::fault);
    DURASIM_PLANTED_FAULTS_(X)
#undef X
    fail(exit_usage, "durasim: this runtime has no fault '%s'", name);
}

#else

constexpr bool planted(Fault) { return false; }
constexpr bool planted_slow(Fault) { return false; }

#endif

}  // namespace durasim

#endif
