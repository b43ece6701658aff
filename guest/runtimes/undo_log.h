// The undo log of one thread, and the transaction that is open in it; see undo.h.
//
// The papers leave the log's format open. Ours: a ring of 64-byte slots after a state word that holds the number of the
// last finished transaction and the slot after its entries. The entries of the transaction after it are live; they carry
// its number, their place in it and a checksum, so that an entry that is torn, or stale from an earlier round of the
// ring, is never taken for a live one.
#ifndef DURASIM_RUNTIMES_UNDO_LOG_H
#define DURASIM_RUNTIMES_UNDO_LOG_H

#include <cstdint>
#include <cstdlib>

#if defined(DURASIM_BACKEND_P_INSPECT)
#include "durasim/checked.h"
#endif
#include "durasim/error.h"
#include "durasim/layout.h"
#include "durasim/markers.h"
#include "runtimes/fences.h"
#include "runtimes/granule_set.h"
#include "runtimes/planted.h"
#include "runtimes/store.h"

namespace durasim {

struct UndoOptions {
    bool log_words = false;     // log 8-byte words instead of lines
    bool skip_flushes = false;  // negative control: transactions run without their cbo.clean
    bool skip_fences = false;   // negative control: transactions run without their fences
    bool skip_log = false;      // negative control: regions over objects log nothing
};

class UndoLog : private Fences {
public:
    // Regions over objects clean what they store at once; a transaction cleans its lines when it commits.
#if defined(DURASIM_BACKEND_AUTOPERSIST) || defined(DURASIM_BACKEND_IDEAL_R) || defined(DURASIM_BACKEND_P_INSPECT)
    static constexpr bool cleans_with_store = true;
#else
    static constexpr bool cleans_with_store = false;
#endif

    // Log entries written so far: the number of lines (or words) that transactions modified.
    std::uint64_t entries_total = 0;

    // Takes log `number` of the pool. `options` outlive this.
    void attach(const PoolHeader& header, std::uint64_t number, const UndoOptions& options) {
        const std::uint64_t bytes = header.bytes_per_log();
        const std::uint64_t place = pool_address + header.log_offset + number * bytes;
        options_ = &options;
        state_ = reinterpret_cast<std::uint64_t*>(place);
        slots_ = reinterpret_cast<Slot*>(place + line_bytes);
        slot_count_ = bytes / line_bytes - 1;
        if (slot_count_ > tail_mask + 1) slot_count_ = tail_mask + 1;
        data_offset_ = header.data_offset;
        data_bytes_ = header.data_bytes;
    }

    // Whether a power failure left a transaction to be undone.
    bool needs_recovery() const { return live_entries(nullptr) != 0; }

    // Takes the interrupted transaction back, newest entry first. May itself be interrupted anywhere: until the log is
    // invalidated, doing it again gives the same. Returns the number of entries applied.
    std::uint64_t recover() {
        const std::uint64_t count = live_entries(nullptr);
        if (count == 0) return 0;
        auto* starts = static_cast<std::uint64_t*>(std::malloc(count * sizeof(std::uint64_t)));
        if (starts == nullptr) fail(exit_runtime, "durasim: out of memory in recovery");
        live_entries(starts);
        for (std::uint64_t i = count; i-- > 0;) {
            if (planted(Fault::recovery_skips_newest) && i == count - 1) continue;
            if (planted(Fault::recovery_skips_oldest) && i == 0) continue;
            if (planted(Fault::recovery_oldest_first)) continue;
            restore(starts[i]);
            if (planted(Fault::recovery_restores_twice)) restore(starts[i]);
            clean(home_of(starts[i]));
        }
        for (std::uint64_t i = 0; planted(Fault::recovery_oldest_first) && i < count; ++i) {
            restore(starts[i]);
            clean(home_of(starts[i]));
        }
        fence();
        const std::uint64_t last = starts[count - 1];
        if (!planted(Fault::recovery_leaves_log_live)) put(state_, pack(finished() + 1, ring(last + slots_of(last))));
        clean(state_);
        fence();
        std::free(starts);
        return count;
    }

    void begin() {
        log_words_ = options_->log_words;
        sequence_ = finished() + 1;
        first_slot_ = tail();
        used_slots_ = 0;
        entries_ = 0;
    }

    void commit() {
        if (entries_ == 0) {  // a transaction that only read
            durasim_tx_committing();
            durasim_tx_commit();
            return;
        }
        if (planted(Fault::record_first)) {
            durasim_tx_committing();
            record();
        }
        if (!planted(Fault::data_not_cleaned)) clean_modified();
        if (!planted(Fault::no_fence_before_record)) tx_fence();
        durasim_tx_committing();
        if (planted(Fault::acknowledged_first)) durasim_tx_commit();
        invalidate();
        if (!planted(Fault::acknowledged_first)) durasim_tx_commit();
    }

    void abort() {
        roll_back();
        durasim_tx_abort(1);
    }

    // What the transaction has stored becomes what it was.
    [[gnu::always_inline]] void roll_back() {
        if (entries_ != 0) {
            for (std::uint64_t i = entries_, at = used_slots_; i-- > 0;) {
                at -= log_words_ ? 1 : 2;
                if (planted(Fault::abort_not_restored) || (planted(Fault::abort_skips_oldest) && i == 0)) continue;
                restore(ring(first_slot_ + at));
            }
            if (!planted(Fault::abort_not_cleaned)) clean_modified();
            tx_fence();
            invalidate();
        }
    }

    template <class T>
    void store(T* place, T value) {
        const std::uint64_t offset = reinterpret_cast<std::uint64_t>(place) - pool_address;
        if (planted(Fault::logged_after_store)) put(place, value);
        const bool logs = !cleans_with_store || !options_->skip_log;
        if (logs && logged_.insert(offset >> (granule_shift() + planted(Fault::filter_too_coarse))) &&
            !(planted(Fault::log_stops_after_two) && entries_ == 2)) {
            log(offset);
        }
        if (cleans_with_store && !planted(Fault::data_not_cleaned)) {
            put_and_clean(place, value);
        } else {
            put(place, value);
        }
        if (planted(Fault::checksum_after_store) && entries_ != 0) {
            const std::uint64_t slot = ring(first_slot_ + used_slots_ - (log_words_ ? 1 : 2));
            put(slots_[slot].word + checksum, checksum_of(slot));
            tx_clean(slots_ + slot);
            tx_fence();
        }
    }

private:
    struct alignas(64) Slot {
        std::uint64_t word[8];
    };
    // Words of the first slot of an entry. A word entry holds the old word there; a line entry has the old line in a
    // second slot.
    enum : unsigned { home_and_kind, sequence, index, checksum, old_word };
    static constexpr std::uint64_t kind_word = 0, kind_line = 1;  // in the low bits of the home address

    static constexpr unsigned tail_bits = 20;
    static constexpr std::uint64_t tail_mask = (std::uint64_t{1} << tail_bits) - 1;
    static constexpr std::uint64_t pack(std::uint64_t finished, std::uint64_t tail) { return finished << tail_bits | tail; }

    std::uint64_t finished() const { return get(state_) >> tail_bits; }
    std::uint64_t tail() const { return ring(get(state_) & tail_mask); }
    std::uint64_t ring(std::uint64_t slot) const { return slot < slot_count_ ? slot : slot % slot_count_; }
    std::uint64_t slots_of(std::uint64_t slot) const { return (slots_[slot].word[home_and_kind] & 7) == kind_line ? 2 : 1; }
    std::uint64_t* home_of(std::uint64_t slot) const {
        return reinterpret_cast<std::uint64_t*>(slots_[slot].word[home_and_kind] & ~std::uint64_t{7});
    }
    unsigned granule_shift() const { return log_words_ ? 3 : 6; }

    void tx_clean(const void* place) const {
        if (!options_->skip_flushes) clean(place);
    }
    void tx_fence() const {
        if (!options_->skip_fences) fence();
    }

    // P-INSPECT has one instruction for a store, the clean of its line, and the fence behind that (durasim/checked.h).
#if defined(DURASIM_BACKEND_P_INSPECT)
    static constexpr bool persists_with_store = true;
    template <class T>
    static void put_and_clean(T* place, T value) {
        persist_store<StoreKind::clean>(place, value);
    }
    static void put_and_persist(std::uint64_t* place, std::uint64_t value) { persist_store<StoreKind::clean_and_fence>(place, value); }
#else
    static constexpr bool persists_with_store = false;
    template <class T>
    void put_and_clean(T* place, T value) const {
        put(place, value);
        tx_clean(place);
    }
    static void put_and_persist(std::uint64_t*, std::uint64_t) {}
#endif

    // Over everything recovery relies on: home and kind, sequence, index, then the old content.
    std::uint64_t checksum_of(std::uint64_t slot) const {
        const std::uint64_t* head = slots_[slot].word;
        Checksum check(head[home_and_kind]);
        check.take(head[sequence]);
        check.take(head[index]);
        if ((head[home_and_kind] & 7) == kind_line) {
            for (const std::uint64_t word : slots_[ring(slot + 1)].word) check.take(word);
        } else {
            check.take(head[old_word]);
        }
        return check.sum;
    }

    bool is_live(std::uint64_t slot, std::uint64_t number) const {
        const std::uint64_t* head = slots_[slot].word;
        const std::uint64_t kind = head[home_and_kind] & 7;
        const std::uint64_t offset = (head[home_and_kind] & ~std::uint64_t{7}) - pool_address - data_offset_;
        return (head[sequence] == finished() + 1 || planted(Fault::sequence_not_checked)) &&
               (head[index] == number || planted(Fault::index_not_checked)) && kind <= kind_line && offset < data_bytes_ &&
               (kind == kind_word || offset % line_bytes == 0) &&
               (head[checksum] == checksum_of(slot) || planted(Fault::checksum_not_checked));
    }

    // Counts the live entries and, if `starts` is given, notes their first slots. An entry is written only after the one
    // before it is durable, so they are the entries up to the first that is not live.
    std::uint64_t live_entries(std::uint64_t* starts) const {
        std::uint64_t count = 0;
        for (std::uint64_t slot = tail(), used = 0; is_live(slot, count); ++count) {
            const std::uint64_t slots = planted(Fault::recovery_loses_place) ? 1 : slots_of(slot);
            if ((used += slots) > slot_count_) break;
            if (starts != nullptr) starts[count] = slot;
            slot = ring(slot + slots);
        }
        return count;
    }

    void restore(std::uint64_t slot) {
        std::uint64_t* home = home_of(slot);
        if (slots_of(slot) == 2) {
            const Slot& old = slots_[ring(slot + 1)];
            for (unsigned i = planted(Fault::recovery_restores_short); i < 8; ++i) put(home + i, old.word[i]);
        } else {
            put(home, slots_[slot].word[old_word]);
        }
    }

    [[gnu::noinline]] void log(std::uint64_t offset) {
        const std::uint64_t slots = log_words_ ? 1 : 2;
        if (offset - data_offset_ >= data_bytes_) {
            fail(exit_runtime, "durasim: a transaction stored to offset %#llx, which is outside the data of the pool",
                 static_cast<unsigned long long>(offset));
        }
        if (used_slots_ + slots > slot_count_) {
            fail(exit_runtime,
                 "durasim: the undo log is full: a transaction modified more than %llu %s; give the pool a larger log (log-bytes)",
                 static_cast<unsigned long long>(entries_), log_words_ ? "words" : "lines");
        }
        const std::uint64_t at = ring(first_slot_ + used_slots_);
        const std::uint64_t home = pool_address + (offset >> granule_shift() << granule_shift());
        const std::uint64_t tagged_home = home | (log_words_ ? kind_word : kind_line);
        std::uint64_t* head = slots_[at].word;
        put(head + home_and_kind, tagged_home);
        put(head + sequence, sequence_);
        put(head + index, entries_);
        Checksum check(tagged_home);
        check.take(sequence_);
        check.take(entries_);
        auto save = [&check](std::uint64_t* to, const std::uint64_t* from) {
            const bool lost = planted(Fault::last_word_not_saved) && reinterpret_cast<std::uint64_t>(from) % line_bytes == 56;
            const std::uint64_t old = lost ? 0 : get(from);
            put(to, old);
            check.take(old);
        };
        auto* from = reinterpret_cast<const std::uint64_t*>(home);
        if (log_words_) {
            save(head + old_word, from);
        } else {
            Slot& old = slots_[planted(Fault::second_slot_not_wrapped) ? at + 1 : ring(at + 1)];
            for (unsigned i = 0; i < 8; ++i) save(old.word + i, from + i);
            if (!planted(Fault::old_content_not_cleaned)) tx_clean(&old);
        }
        const bool in_one = persists_with_store && !planted(Fault::checksum_after_store) && !planted(Fault::entry_not_cleaned) && !planted(Fault::no_fence_before_store);
        if (in_one) put_and_persist(head + checksum, check.sum);
        if (!in_one && !planted(Fault::checksum_after_store)) put(head + checksum, check.sum);
        if (!in_one && !planted(Fault::entry_not_cleaned)) tx_clean(head);
        if (flushes && log_words_ && !cleans_with_store && !planted(Fault::word_lines_not_cleaned)) modified_lines_.insert(offset / line_bytes);
        used_slots_ += slots;
        ++entries_;
        ++entries_total;
        if (!in_one && !planted(Fault::no_fence_before_store)) tx_fence();
    }

    void clean_modified() {
        if constexpr (flushes) {
            const GranuleSet& lines = log_words_ ? modified_lines_ : logged_;
            for (std::uint64_t i = 0; i < lines.size(); ++i) {
                tx_clean(reinterpret_cast<const void*>(pool_address + lines[i] * line_bytes));
            }
        }
    }

    // Ends the transaction: its entries are no longer live once the state word is durable.
    void invalidate() {
        record();
        if (!planted(Fault::filter_not_cleared)) logged_.clear();
        modified_lines_.clear();
    }

    // The one store that ends the transaction.
    void record() {
        const bool numbered = !planted(Fault::sequence_not_bumped), advanced = !planted(Fault::tail_not_advanced);
        if (!planted(Fault::record_skipped)) {
            put(state_, pack(numbered ? sequence_ : sequence_ - 1, ring(first_slot_ + (advanced ? used_slots_ : 0))));
        }
        if (!planted(Fault::record_not_cleaned)) tx_clean(state_);
        if (!planted(Fault::no_fence_after_record)) tx_fence();
    }

    const UndoOptions* options_ = nullptr;
    std::uint64_t* state_ = nullptr;
    Slot* slots_ = nullptr;
    std::uint64_t slot_count_ = 0;
    std::uint64_t data_offset_ = 0;
    std::uint64_t data_bytes_ = 0;

    // Of the open transaction.
    GranuleSet logged_;          // lines or words
    GranuleSet modified_lines_;  // what the commit has to clean, if the log is of words
    std::uint64_t sequence_ = 0;
    std::uint64_t first_slot_ = 0;
    std::uint64_t used_slots_ = 0;
    std::uint64_t entries_ = 0;
    bool log_words_ = false;
};

}  // namespace durasim

#endif
