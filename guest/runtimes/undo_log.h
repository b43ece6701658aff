// The undo log of one thread, and the transaction that is open in it; see undo.h.
//
// The papers leave the log's format open. Ours: a ring of words after a state word that holds the number of the last
// finished transaction and the place behind its entries. An entry follows the one before it without a gap and holds where
// its old content belongs, a checksum, and the old content. It has 80 bytes for a line, and 32 for a word, so that an entry
// of a word lies on one line. The entries of the transaction after the last finished one are live. Their checksums are over
// its number and their place in it too, so an entry that is torn, or stale from an earlier round of the ring, is never taken
// for a live one.
//
// Whether a line is in the log is looked up in a small table of the last ones. A line that another one has displaced is
// logged again, which does no harm: entries are undone newest first.
#ifndef DURASIM_RUNTIMES_UNDO_LOG_H
#define DURASIM_RUNTIMES_UNDO_LOG_H

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "durasim/backend.h"
#if defined(DURASIM_CHECKED_ACCESSES_)
#include "durasim/checked.h"
#endif
#include "durasim/error.h"
#include "durasim/layout.h"
#include "durasim/markers.h"
#include "runtimes/fences.h"
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
#if defined(DURASIM_STORES_ARE_CLEANED_AT_ONCE_)
    static constexpr bool cleans_with_store = true;
#else
    static constexpr bool cleans_with_store = false;
#endif

    // Log entries written so far.
    std::uint64_t entries_total = 0;

    // Takes log `number` of the pool. `options` outlive this.
    void attach(const PoolHeader& header, std::uint64_t number, const UndoOptions& options) {
        const std::uint64_t bytes = header.bytes_per_log();
        const std::uint64_t place = pool_address + header.log_offset + number * bytes;
        options_ = &options;
        state_ = reinterpret_cast<std::uint64_t*>(place);
        ring_ = reinterpret_cast<std::uint64_t*>(place + line_bytes);
        ring_words_ = bytes / sizeof(std::uint64_t) - words_of_line;
        if (ring_words_ > tail_mask + 1) ring_words_ = tail_mask + 1;
        data_offset_ = header.data_offset;
        data_bytes_ = header.data_bytes;
        forget_logged();
    }

    // Whether a power failure left a transaction to be undone.
    bool needs_recovery() const { return live_entries(nullptr) != 0; }

    // Takes the interrupted transaction back, newest entry first. May itself be interrupted anywhere: until the log is
    // invalidated, doing it again gives the same. Returns the number of entries applied.
    std::uint64_t recover() {
        const std::uint64_t count = live_entries(nullptr);
        if (count == 0) {
            // A part of the first entry may be there. The next transaction must not complete it, so it gets another number.
            if ((*word(tail(), home_and_kind) | *word(tail(), checksum)) != 0) finish_recovery(tail());
            return 0;
        }
        auto* starts = static_cast<std::uint64_t*>(std::malloc(count * sizeof(std::uint64_t)));
        if (starts == nullptr) fail(exit_runtime, "durasim: out of memory in recovery");
        live_entries(starts);
        for (std::uint64_t i = count; i-- > 0;) {
            if (planted(Fault::recovery_skips_newest) && i == count - 1) continue;
            if (planted(Fault::recovery_skips_oldest) && i == 0) continue;
            if (planted(Fault::recovery_oldest_first)) continue;
            restore(starts[i]);
            if (planted(Fault::recovery_restores_twice)) restore(starts[i]);
            if (!planted(Fault::recovery_restores_without_clean)) clean(home_of(starts[i]));
        }
        for (std::uint64_t i = 0; planted(Fault::recovery_oldest_first) && i < count; ++i) {
            restore(starts[i]);
            clean(home_of(starts[i]));
        }
        if (!planted(Fault::recovery_restores_without_fence)) fence();
        const std::uint64_t last = starts[count - 1];
        finish_recovery(ring(last + words_of(last)));
        std::free(starts);
        return count;
    }

    void begin() {
        log_words_ = options_->log_words;
        sequence_ = finished() + 1;
        first_ = tail();
        used_words_ = 0;
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
        if (!cleans_with_store && !planted(Fault::data_not_cleaned)) clean_modified();
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
            for (std::uint64_t i = entries_; i-- > 0;) {
                if (planted(Fault::abort_not_restored) || (planted(Fault::abort_skips_oldest) && i == 0)) continue;
                restore(ring(first_ + i * words_of_entry()));
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
        if (logs && !was_logged(offset >> (granule_shift() + planted(Fault::filter_too_coarse))) &&
            !(planted(Fault::log_stops_after_two) && entries_ == 2)) {
            log(offset);
        }
        if (cleans_with_store && !planted(Fault::data_not_cleaned)) {
            put_and_clean(place, value);
        } else {
            put(place, value);
        }
        if (planted(Fault::checksum_after_store) && entries_ != 0) {
            const std::uint64_t at = ring(first_ + used_words_ - words_of_entry());
            put(word(at, checksum), checksum_of(at, sequence_, entries_ - 1));
            tx_clean(word(at, checksum));
            tx_fence();
        }
    }

private:
    static constexpr std::uint64_t words_of_line = line_bytes / sizeof(std::uint64_t);
    // Words of an entry: where its old content belongs, with its kind in the low bits, the checksum, and the old content.
    enum : unsigned { home_and_kind, checksum, old_content };
    static constexpr std::uint64_t kind_word = 0, kind_line = 1;

    static constexpr unsigned tail_bits = 24;
    static constexpr std::uint64_t tail_mask = (std::uint64_t{1} << tail_bits) - 1;
    static constexpr std::uint64_t pack(std::uint64_t finished, std::uint64_t tail) { return finished << tail_bits | tail; }

    std::uint64_t finished() const { return get(state_) >> tail_bits; }
    std::uint64_t tail() const { return ring(get(state_) & tail_mask); }
    std::uint64_t ring(std::uint64_t at) const { return at < ring_words_ ? at : at % ring_words_; }
    // Word `number` of the entry at `at`.
    std::uint64_t* word(std::uint64_t at, std::uint64_t number) const { return ring_ + ring(at + number); }
    static constexpr std::uint64_t words_of_line_entry = old_content + words_of_line, words_of_word_entry = 4;
    bool is_of_line(std::uint64_t at) const { return (*word(at, home_and_kind) & 7) == kind_line; }
    std::uint64_t words_of(std::uint64_t at) const { return is_of_line(at) ? words_of_line_entry : words_of_word_entry; }
    std::uint64_t words_of_entry() const { return log_words_ ? words_of_word_entry : words_of_line_entry; }
    // Words of old content.
    std::uint64_t words_saved(std::uint64_t at) const { return is_of_line(at) ? words_of_line : 1; }
    std::uint64_t* home_of(std::uint64_t at) const {
        return reinterpret_cast<std::uint64_t*>(*word(at, home_and_kind) & ~std::uint64_t{7});
    }
    unsigned granule_shift() const { return log_words_ ? 3 : 6; }

    void tx_clean(const void* place) const {
        if (!options_->skip_flushes) clean(place);
    }
    void tx_fence() const {
        if (!options_->skip_fences) fence();
    }

    // P-INSPECT has one instruction for a store, the clean of its line, and the fence behind that (durasim/checked.h).
#if defined(DURASIM_CHECKED_ACCESSES_)
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

    // Over everything recovery relies on.
    std::uint64_t checksum_of(std::uint64_t at, std::uint64_t sequence, std::uint64_t index) const {
        Checksum check(*word(at, home_and_kind));
        check.take(planted(Fault::sequence_not_checked) ? 0 : sequence);
        check.take(planted(Fault::index_not_checked) ? 0 : index);
        for (std::uint64_t i = 0; i < words_saved(at); ++i) check.take(*word(at, old_content + i));
        return check.sum;
    }

    // Whether entry `index` of the open transaction is at `at`.
    bool is_live(std::uint64_t at, std::uint64_t index) const {
        const std::uint64_t head = *word(at, home_and_kind), kind = head & 7;
        const std::uint64_t offset = (head & ~std::uint64_t{7}) - pool_address - data_offset_;
        return kind <= kind_line && offset < data_bytes_ && (kind == kind_word || offset % line_bytes == 0) &&
               (*word(at, checksum) == checksum_of(at, finished() + 1, index) || planted(Fault::checksum_not_checked));
    }

    // Counts the live entries and, if `starts` is given, notes where they begin. An entry is written only after the one
    // before it is durable, so they are the entries up to the first that is not live.
    std::uint64_t live_entries(std::uint64_t* starts) const {
        std::uint64_t count = 0;
        for (std::uint64_t at = tail(), used = 0; is_live(at, count); ++count) {
            const std::uint64_t words = planted(Fault::recovery_loses_place) ? words_of_word_entry : words_of(at);
            if ((used += words) > ring_words_) break;
            if (starts != nullptr) starts[count] = at;
            at = ring(at + words);
        }
        return count;
    }

    // Ends the transaction that a power failure has interrupted; the entries of the next one begin at `at`.
    void finish_recovery(std::uint64_t at) {
        if (!planted(Fault::recovery_leaves_log_live)) put(state_, pack(finished() + 1, at));
        clean(state_);
        fence();
    }

    void restore(std::uint64_t at) {
        std::uint64_t* const home = home_of(at);
        const std::uint64_t words = words_saved(at);
        for (std::uint64_t i = planted(Fault::recovery_restores_short) && words > 1; i < words; ++i) {
            put(home + i, *word(at, old_content + i));
        }
    }

    // Whether the open transaction has logged a line or word, as far as the table tells; it is there from now on.
    [[gnu::always_inline]] bool was_logged(std::uint64_t granule) {
        std::uint64_t& last = last_logged_[(granule ^ granule >> 4) % recent];
        const std::uint64_t open = planted(Fault::filter_not_cleared) ? 0 : sequence_ & sequence_mask;
        const std::uint64_t wanted = granule << sequence_bits | open;
        if (last == wanted) return true;
        last = wanted;
        return false;
    }

    [[gnu::noinline]] void log(std::uint64_t offset) {
        const std::uint64_t words = words_of_entry();
        if (offset - data_offset_ >= data_bytes_) {
            fail(exit_runtime, "durasim: a transaction stored to offset %#llx, which is outside the data of the pool",
                 static_cast<unsigned long long>(offset));
        }
        if (used_words_ + words > ring_words_) {
            fail(exit_runtime,
                 "durasim: the undo log is full: a transaction wrote more than %llu entries of %s; give the pool a larger log (log-bytes)",
                 static_cast<unsigned long long>(entries_), log_words_ ? "words" : "lines");
        }
        const std::uint64_t at = ring(first_ + used_words_);
        const std::uint64_t home = pool_address + (offset >> granule_shift() << granule_shift());
        const std::uint64_t tagged_home = home | (log_words_ ? kind_word : kind_line);
        Checksum check(tagged_home);
        check.take(planted(Fault::sequence_not_checked) ? 0 : sequence_);
        check.take(planted(Fault::index_not_checked) ? 0 : entries_);
        std::uint64_t old[words_of_line];
        const auto take = [&](std::uint64_t i) {
            const auto* const from = reinterpret_cast<const std::uint64_t*>(home) + i;
            const bool lost = planted(Fault::last_word_not_saved) && reinterpret_cast<std::uint64_t>(from) % line_bytes == 56;
            old[i] = lost ? 0 : get(from);
            check.take(old[i]);
        };
        std::uint64_t* const place = ring_ + at;
        put(place + home_and_kind, tagged_home);
        if (log_words_) {
            take(0);
            put(word(at, old_content), old[0]);
        } else {
            take(0), take(1), take(2), take(3), take(4), take(5), take(6), take(7);
            if (at + words <= ring_words_ || planted(Fault::entry_not_wrapped)) {
                std::uint64_t* const to = place + old_content;
                put(to, old[0]), put(to + 1, old[1]), put(to + 2, old[2]), put(to + 3, old[3]);
                put(to + 4, old[4]), put(to + 5, old[5]), put(to + 6, old[6]), put(to + 7, old[7]);
            } else {
                for (std::uint64_t i = 0; i < words_of_line; ++i) put(word(at, old_content + i), old[i]);
            }
        }
        const bool in_one = persists_with_store && !planted(Fault::checksum_after_store) &&
                            !planted(Fault::entry_not_cleaned) && !planted(Fault::no_fence_before_store);
        if (!in_one && !planted(Fault::checksum_after_store)) put(word(at, checksum), check.sum);
        clean_entry(at, words, in_one);
        if (in_one) put_and_persist(word(at, checksum), check.sum);
        used_words_ += words;
        ++entries_;
        ++entries_total;
        if (!in_one && !planted(Fault::no_fence_before_store)) tx_fence();
    }

    // The lines of the ring that an entry lies on; without that of its checksum if that is yet to be stored.
    void clean_entry(std::uint64_t at, std::uint64_t words, bool without_checksum) const {
        if constexpr (!flushes) return;
        const std::uint64_t of_checksum = (at + checksum) / words_of_line;
        for (std::uint64_t line = at / words_of_line; line <= (at + words - 1) / words_of_line; ++line) {
            if (without_checksum && line == of_checksum) continue;
            if (planted(line <= of_checksum ? Fault::entry_not_cleaned : Fault::old_content_not_cleaned)) continue;
            tx_clean(ring_ + ring(line * words_of_line));
        }
    }

    // What the transaction has stored, by the entries of its log.
    void clean_modified() {
        if constexpr (flushes) {
            if (log_words_ && planted(Fault::word_lines_not_cleaned)) return;
            std::uint64_t last = 0;
            for (std::uint64_t i = 0; i < entries_; ++i) {
                const std::uint64_t* const home = home_of(ring(first_ + i * words_of_entry()));
                // Words of a line are mostly logged one after the other.
                const std::uint64_t line = reinterpret_cast<std::uint64_t>(home) / line_bytes;
                if (line == last) continue;
                tx_clean(home);
                last = line;
            }
        }
    }

    // Ends the transaction: its entries are no longer live once the state word is durable.
    void invalidate() {
        record();
        // The table tells transactions apart by the low bits of their numbers.
        if ((sequence_ & sequence_mask) == sequence_mask) forget_logged();
    }

    void forget_logged() { std::memset(last_logged_, 0, sizeof(last_logged_)); }

    // The one store that ends the transaction.
    void record() {
        const bool numbered = !planted(Fault::sequence_not_bumped), advanced = !planted(Fault::tail_not_advanced);
        if (!planted(Fault::record_skipped)) {
            put(state_, pack(numbered ? sequence_ : sequence_ - 1, ring(first_ + (advanced ? used_words_ : 0))));
        }
        if (!planted(Fault::record_not_cleaned)) tx_clean(state_);
        if (!planted(Fault::no_fence_after_record)) tx_fence();
    }

    const UndoOptions* options_ = nullptr;
    std::uint64_t* state_ = nullptr;
    std::uint64_t* ring_ = nullptr;
    std::uint64_t ring_words_ = 0;
    std::uint64_t data_offset_ = 0;
    std::uint64_t data_bytes_ = 0;

    // Of the open transaction.
    std::uint64_t sequence_ = 0;
    std::uint64_t first_ = 0;
    std::uint64_t used_words_ = 0;
    std::uint64_t entries_ = 0;
    // What was logged last: lines or words with the number of the transaction.
    static constexpr std::uint64_t recent = 16;
    static constexpr unsigned sequence_bits = 24;
    static constexpr std::uint64_t sequence_mask = (std::uint64_t{1} << sequence_bits) - 1;
    std::uint64_t last_logged_[recent] = {};
    bool log_words_ = false;
};

}  // namespace durasim

#endif
