// The redo log of one thread, and the transaction that is open in it; see redo.h.
//
// The paper says no more than that the log comes before the data. Ours: a line with the state and the commit record, and
// after it a ring of lines with four entries (address and new word) each. A transaction begins on the line after those
// of the one before.
//
//   state    the number of the last transaction that is over (its words are home), and the line after its entries
//   record   the number of a transaction, where its entries are and how many, their checksum, and a checksum of all this
//
// A record counts if it carries the number after the state's and its checksum holds; the log holds a committed transaction
// then, and nothing otherwise. Why that is enough:
// - The entries are durable before the first word of the record is written. A record that is torn, or stale from the
//   transaction before, has a wrong checksum or a number that is over. So a record that counts has all of its entries.
// - The words go home after the record is durable: a power failure before leaves none of them, one after finds the record.
// - They are durable there before the state moves on, which is one word and cannot tear, and the state is durable before
//   the commit returns. So entries are overwritten, and others may write to the same words, only when no recovery can
//   believe the record any more.
// - Of a record that is torn any words may be there. Recovery takes its number out of use, so that no later transaction
//   completes it.
// - Recovery writes what the log says, to places that the log names, and moves the state on at the end; it does not change
//   the log. Cut anywhere and run again, it does the same.
// Hence a record that counts with entries that do not fit it is no trace of a power failure but damage. Some of its words
// may be home already, so recovery refuses the pool instead of leaving the transaction out. A damaged record itself cannot
// be told from a torn one.
#ifndef DURASIM_RUNTIMES_REDO_LOG_H
#define DURASIM_RUNTIMES_REDO_LOG_H

#include <cstdint>
#include <cstring>

#include "durasim/error.h"
#include "durasim/layout.h"
#include "durasim/markers.h"
#include "runtimes/fences.h"
#include "runtimes/planted.h"
#include "runtimes/store.h"
#include "runtimes/write_set.h"

namespace durasim {

struct RedoOptions {
    bool skip_flushes = false;  // negative control: transactions run without their cbo.clean
    bool skip_fences = false;   // negative control: transactions run without their fences
};

class RedoLog : private Fences {
public:
    // Log entries written so far: the number of words that transactions modified.
    std::uint64_t entries_total = 0;

    // Takes log `number` of the pool. `options` outlive this.
    void attach(const PoolHeader& header, std::uint64_t number, const RedoOptions& options) {
        const std::uint64_t bytes = header.bytes_per_log();
        const std::uint64_t place = pool_address + header.log_offset + number * bytes;
        options_ = &options;
        head_ = reinterpret_cast<std::uint64_t*>(place);
        lines_ = reinterpret_cast<EntryLine*>(place + line_bytes);
        line_count_ = bytes / line_bytes - 1;
        if (line_count_ > place_mask + 1) line_count_ = place_mask + 1;
        data_offset_ = header.data_offset;
        data_bytes_ = header.data_bytes;
        number_ = number;
    }

    // Whether a power failure left a committed transaction that is not home yet.
    bool needs_recovery() const { return is_committed(); }

    // Carries it through. May itself be interrupted anywhere. Returns the number of entries applied.
    std::uint64_t recover() {
        if (!is_committed()) {
            const std::uint64_t applied = planted(Fault::recovery_applies_uncommitted) ? apply_uncommitted() : 0;
            // The next transaction must not complete the record of the one that a power failure has interrupted, so it gets
            // another number.
            if (is_torn()) truncate(tail());
            return applied;
        }
        const std::uint64_t first = ring(get(head_ + record_place) & place_mask);
        const std::uint64_t count = get(head_ + record_place) >> place_bits;
        if (count == 0 || count > capacity()) refuse("its commit record names more entries than there are");
        Checksum check(get(head_ + record_sequence));
        for (std::uint64_t i = 0; i < count; ++i) {
            const Entry& entry = entry_at(first, i);
            if (!is_home(entry.home)) refuse("an entry names an address outside the data of the pool");
            check.take(entry.home);
            check.take(entry.value);
        }
        if (check.sum != get(head_ + record_entries) && !planted(Fault::entries_checksum_not_checked)) {
            refuse("its entries are not those that were committed");
        }
        const std::uint64_t last_line = first + lines_of(count);
        if (planted(Fault::recovery_truncates_first)) truncate(last_line);
        for (std::uint64_t n = 0; n < count; ++n) {
            const std::uint64_t i = planted(Fault::recovery_newest_first) ? count - 1 - n : n;
            if (planted(Fault::recovery_stops_after_first) && i != 0) continue;
            if (planted(Fault::recovery_skips_last) && i == count - 1) continue;
            apply(entry_at(first, i));
            if (planted(Fault::recovery_applies_twice)) apply(entry_at(first, i));
        }
        if (!planted(Fault::recovery_not_fenced)) fence();
        if (!planted(Fault::recovery_leaves_log)) truncate(last_line);
        return count;
    }

    void begin() {
        if (!planted(Fault::write_set_not_cleared)) clear();
        sequence_ = finished() + 1;
        first_line_ = tail();
    }

    void commit() {
        if (word_count_ == 0) {  // a transaction that only read
            durasim_tx_committing();
            durasim_tx_commit();
            return;
        }
        if (planted(Fault::home_before_record)) write_home();
        const std::uint64_t entries_sum = planted(Fault::record_before_entries) ? sum_of_entries() : write_entries();
        if (!planted(Fault::no_fence_before_commit_record)) tx_fence();
        durasim_tx_committing();
        if (planted(Fault::acknowledged_before_record)) durasim_tx_commit();
        if (!planted(Fault::commit_record_skipped)) write_record(entries_sum);
        if (planted(Fault::record_before_entries)) write_entries();
        if (!planted(Fault::no_fence_after_commit_record)) tx_fence();
        if (planted(Fault::truncated_before_home)) tx_truncate();
        if (!planted(Fault::home_before_record)) write_home();
        if (!planted(Fault::no_fence_before_truncation)) tx_fence();
        if (!planted(Fault::truncated_before_home)) tx_truncate();
        if (!planted(Fault::acknowledged_before_record)) durasim_tx_commit();
        entries_total += word_count_;
    }

    void abort() {
        if (planted(Fault::abort_writes_home)) write_home();
        clear();
        durasim_tx_abort(1);
    }

    template <class T>
    T load(const T* place) {
        const std::uint64_t offset = reinterpret_cast<std::uint64_t>(place) - pool_address;
        // What is not in the data of the pool is not in the set either.
        if (offset - data_offset_ < data_bytes_ && !planted(Fault::own_stores_not_seen)) {
            const WriteSet::Line* line = set_.find(offset / line_bytes);
            if (line != nullptr && (line->stored >> offset % line_bytes / 8 & 1) != 0) {
                T value;
                std::memcpy(&value, reinterpret_cast<const char*>(line->word) + offset % line_bytes, sizeof(T));
                return value;
            }
        }
        return get(place);
    }

    template <class T>
    void store(T* place, T value) {
        const std::uint64_t offset = reinterpret_cast<std::uint64_t>(place) - pool_address;
        WriteSet::Line* line = set_.find(offset / line_bytes);
        if (line == nullptr) {
            if (offset - data_offset_ >= data_bytes_) refuse_store(offset);
            line = set_.add(offset / line_bytes);
        }
        const std::uint64_t word = offset % line_bytes / 8;
        if ((line->stored >> word & 1) == 0) {
            if (word_count_ == capacity()) refuse_store(offset);
            ++word_count_;
            line->stored |= std::uint64_t{1} << word;
            // A narrow value leaves the rest of its word as it is.
            if (sizeof(T) != 8) line->word[word] = get(home_of(*line, static_cast<unsigned>(word)));
        } else if (planted(Fault::second_store_ignored)) {
            return;
        }
        std::memcpy(reinterpret_cast<char*>(line->word) + offset % line_bytes, &value, sizeof(T));
    }

private:
    struct Entry {
        std::uint64_t home;  // an address
        std::uint64_t value;
    };
    static constexpr std::uint64_t entries_per_line = line_bytes / sizeof(Entry);
    struct alignas(64) EntryLine {
        Entry entry[entries_per_line];
    };
    // Words of the line in front.
    enum : unsigned { state, record_sequence, record_place, record_entries, record_checksum };

    // A line of the ring, and above it the number of a transaction or of entries.
    static constexpr unsigned place_bits = 20;
    static constexpr std::uint64_t place_mask = (std::uint64_t{1} << place_bits) - 1;
    static constexpr std::uint64_t pack(std::uint64_t number, std::uint64_t line) { return number << place_bits | line; }
    static constexpr std::uint64_t lines_of(std::uint64_t count) { return (count + entries_per_line - 1) / entries_per_line; }

    std::uint64_t finished() const { return get(head_ + state) >> place_bits; }
    std::uint64_t tail() const { return ring(get(head_ + state) & place_mask); }
    std::uint64_t ring(std::uint64_t line) const { return line < line_count_ ? line : line % line_count_; }
    std::uint64_t capacity() const { return line_count_ * entries_per_line; }
    Entry& entry_at(std::uint64_t first, std::uint64_t index) const {
        const std::uint64_t line = first + index / entries_per_line;
        return lines_[planted(Fault::ring_not_wrapped) ? line : ring(line)].entry[index % entries_per_line];
    }
    bool is_home(std::uint64_t home) const { return home % 8 == 0 && home - pool_address - data_offset_ < data_bytes_; }

    void tx_clean(const void* place) const {
        if (!options_->skip_flushes) clean(place);
    }
    void tx_fence() const {
        if (!options_->skip_fences) fence();
    }

    std::uint64_t checksum_of_record() const {
        Checksum check(get(head_ + record_sequence));
        check.take(get(head_ + record_place));
        check.take(get(head_ + record_entries));
        return check.sum;
    }

    bool is_committed() const {
        return (get(head_ + record_sequence) == finished() + 1 ||
                (planted(Fault::record_number_not_checked) && get(head_ + record_sequence) != 0)) &&
               (get(head_ + record_checksum) == checksum_of_record() || planted(Fault::record_checksum_not_checked));
    }

    // Whether the record may have words of a transaction that did not commit: it is neither new nor that of the last one.
    bool is_torn() const {
        if (get(head_ + record_sequence) == finished() && get(head_ + record_checksum) == checksum_of_record()) return false;
        return (get(head_ + record_sequence) | get(head_ + record_place) | get(head_ + record_entries) | get(head_ + record_checksum)) != 0;
    }

    [[noreturn]] void refuse(const char* why) const {
        fail(exit_violation, "durasim: violation: the redo log of thread %llu is damaged: %s",
             static_cast<unsigned long long>(number_), why);
    }

    [[noreturn, gnu::cold, gnu::noinline]] void refuse_store(std::uint64_t offset) const {
        if (offset - data_offset_ >= data_bytes_) {
            fail(exit_runtime, "durasim: a transaction stored to offset %#llx, which is outside the data of the pool",
                 static_cast<unsigned long long>(offset));
        }
        fail(exit_runtime,
             "durasim: the redo log is full: a transaction modified more than %llu words; give the pool a larger log (log-bytes)",
             static_cast<unsigned long long>(word_count_));
    }

    static std::uint64_t* home_of(const WriteSet::Line& line, unsigned word) {
        return reinterpret_cast<std::uint64_t*>(pool_address + line.number * line_bytes) + word;
    }

    void clear() {
        set_.clear();
        word_count_ = 0;
    }

    // Calls act(home, value) for each word of the set.
    template <class Act>
    void for_each_word(Act&& act) const {
        for (const WriteSet::Line& line : set_) {
            for (unsigned word = 0; word < WriteSet::words_per_line; ++word) {
                if ((line.stored >> word & 1) != 0) act(home_of(line, word), line.word[word]);
            }
        }
    }

    std::uint64_t logged() const { return word_count_ - planted(Fault::last_word_not_logged); }

    // Line by line. Returns their checksum.
    std::uint64_t write_entries() {
        Checksum check(sequence_);
        std::uint64_t at = first_line_, written = 0;
        Entry* entry = lines_[at].entry;
        for_each_word([&](std::uint64_t* place, std::uint64_t value) {
            if (planted(Fault::last_word_not_logged) && written == logged()) return;
            const std::uint64_t home = reinterpret_cast<std::uint64_t>(place);
            check.take(home);
            check.take(value);
            put(&entry->home, planted(Fault::entry_words_swapped) ? value : home);
            put(&entry->value, planted(Fault::entry_words_swapped) ? home : value);
            ++entry;
            if (++written % entries_per_line != 0) return;
            if (!planted(Fault::entries_not_cleaned)) tx_clean(lines_ + at);
            at = planted(Fault::ring_not_wrapped) ? at + 1 : ring(at + 1);
            entry = lines_[at].entry;
        });
        const bool is_kept = planted(Fault::entries_not_cleaned) || planted(Fault::last_entries_not_cleaned);
        if (written % entries_per_line != 0 && !is_kept) tx_clean(lines_ + at);
        return check.sum;
    }

    void write_record(std::uint64_t entries_sum) {
        const std::uint64_t place = pack(logged(), first_line_);
        Checksum check(sequence_);
        check.take(place);
        check.take(entries_sum);
        put(head_ + record_sequence, sequence_);
        put(head_ + record_place, place);
        put(head_ + record_entries, entries_sum);
        put(head_ + record_checksum, check.sum);
        if (!planted(Fault::commit_record_not_cleaned)) tx_clean(head_);
    }

    // For the planted fault that writes the record first.
    std::uint64_t sum_of_entries() const {
        Checksum check(sequence_);
        for_each_word([&](std::uint64_t* home, std::uint64_t value) {
            check.take(reinterpret_cast<std::uint64_t>(home));
            check.take(value);
        });
        return check.sum;
    }

    void write_home() {
        for_each_word([](std::uint64_t* home, std::uint64_t value) { put(home, value); });
        for (const WriteSet::Line& line : set_) {
            if (planted(Fault::home_not_cleaned) || (planted(Fault::first_home_line_only_cleaned) && &line != set_.begin())) break;
            tx_clean(home_of(line, 0));
        }
    }

    // The one store that ends the transaction.
    void tx_truncate() {
        if (planted(Fault::truncation_skipped)) return;
        put(head_ + state, pack(sequence_, ring(first_line_ + lines_of(word_count_))));
        if (!planted(Fault::truncation_not_cleaned)) tx_clean(head_);
        if (!planted(Fault::no_fence_after_truncation)) tx_fence();
    }

    // The same, of a recovery.
    void truncate(std::uint64_t next_line) {
        put(head_ + state, pack(finished() + 1, ring(next_line)));
        clean(head_);
        fence();
    }

    void apply(const Entry& entry) {
        auto* home = reinterpret_cast<std::uint64_t*>(entry.home);
        put(home, entry.value);
        if (!planted(Fault::recovery_not_cleaned)) clean(home);
    }

    // A planted fault: what looks like entries after the last transaction.
    std::uint64_t apply_uncommitted() {
        std::uint64_t count = 0;
        while (count < capacity() && is_home(entry_at(tail(), count).home)) apply(entry_at(tail(), count++));
        fence();
        return count;
    }

    const RedoOptions* options_ = nullptr;
    std::uint64_t* head_ = nullptr;
    EntryLine* lines_ = nullptr;
    std::uint64_t line_count_ = 0;
    std::uint64_t data_offset_ = 0;
    std::uint64_t data_bytes_ = 0;
    std::uint64_t number_ = 0;

    // Of the open transaction.
    WriteSet set_;
    std::uint64_t word_count_ = 0;  // in the set
    std::uint64_t sequence_ = 0;
    std::uint64_t first_line_ = 0;
};

}  // namespace durasim

#endif
