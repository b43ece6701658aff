// The write-ahead log of one thread, and the transaction that is open in it; see write_ahead.h.
//
// The paper says of the log that it holds addresses and new values. Ours: a record of one word, and entries of 16 bytes, the
// first three in the line of the record, four in each line after it. Each transaction begins at the first entry.
//
//   record   0 if nothing is committed; else how many entries are, and a checksum of them
//   entry    an address and the new content of its word
//
// Record and entries are cleaned together, and one fence stands between them and the data. Why that is enough:
// - A record counts if its checksum is that of its entries. If a power failure leaves some of the lines, or part of one, the
//   checksum is wrong and the transaction has not happened: no word has been written in place before the fence.
// - The words are durable in place before the record is cleared, which is one store of a word and cannot tear. That is
//   durable before the commit returns, so entries are overwritten, and others may write to the same words, only when
//   no recovery can believe the record any more. Hence no number of a transaction is needed.
// - Recovery writes what the log says and then clears the record. Interrupted anywhere and repeated, it does the same. It
//   also clears a record that does not count: the program, when it runs again, might write the entries that are missing.
// A record that damage has changed cannot be told from a torn one.
#ifndef DURASIM_RUNTIMES_WRITE_AHEAD_LOG_H
#define DURASIM_RUNTIMES_WRITE_AHEAD_LOG_H

#include <cstdint>
#include <cstdlib>

#include "durasim/error.h"
#include "durasim/layout.h"
#include "durasim/markers.h"
#include "runtimes/fences.h"
#include "runtimes/planted.h"
#include "runtimes/store.h"

namespace durasim {

struct WriteAheadOptions {
    bool skip_flushes = false;  // negative control: transactions run without their cbo.clean
    bool skip_fences = false;   // negative control: transactions run without their fences
};

class WriteAheadLog : private Fences {
public:
    // Log entries written so far: the number of words that transactions modified.
    std::uint64_t entries_total = 0;

    // Takes log `number` of the pool. `options` outlive this.
    void attach(const PoolHeader& header, std::uint64_t number, const WriteAheadOptions& options) {
        const std::uint64_t bytes = header.bytes_per_log();
        const std::uint64_t place = pool_address + header.log_offset + number * bytes;
        options_ = &options;
        record_ = reinterpret_cast<std::uint64_t*>(place);
        entries_ = reinterpret_cast<Entry*>(place + sizeof(Entry));
        capacity_ = bytes / sizeof(Entry) - 1;
        if (capacity_ > count_mask) capacity_ = count_mask;
        data_offset_ = header.data_offset;
        data_bytes_ = header.data_bytes;
        number_ = number;
    }

    // Whether a power failure left a record: of a committed transaction, or of one whose entries are missing.
    bool needs_recovery() const { return get(record_) != 0; }

    // Writes a committed transaction in place and empties the log. May itself be interrupted anywhere. Returns the number of
    // entries applied.
    std::uint64_t recover() {
        if (get(record_) == 0) return planted(Fault::recovery_believes_entries) ? apply_without_record() : 0;
        std::uint64_t count = get(record_) & count_mask;
        if (count > capacity_ || (get(record_) != record_of(count) && !planted(Fault::sum_not_checked))) count = 0;
        for (std::uint64_t i = 0; i < count; ++i) {
            if (!is_in_data(entries_[i].home)) refuse("an entry names an address outside the data of the pool");
        }
        if (planted(Fault::recovery_empties_first)) empty();
        for (std::uint64_t n = 0; n < count; ++n) {
            const std::uint64_t i = planted(Fault::recovery_in_reverse) ? count - 1 - n : n;
            if (planted(Fault::recovery_applies_first_only) && i != 0) continue;
            if (planted(Fault::recovery_forgets_last) && i == count - 1) continue;
            apply(entries_[i]);
            if (planted(Fault::recovery_repeats_entries)) apply(entries_[i]);
        }
        if (!planted(Fault::recovery_does_not_wait)) fence();
        if (!planted(Fault::recovery_keeps_record) && !(planted(Fault::recovery_keeps_torn_record) && count == 0)) empty();
        return count;
    }

    void begin() {
        if (planted(Fault::entries_kept)) return;
        base_ += count_;
        count_ = 0;
    }

    void commit() {
        if (count_ == 0) {  // a transaction that only read
            durasim_tx_committing();
            durasim_tx_commit();
            return;
        }
        if (planted(Fault::stored_before_log)) write_in_place();
        durasim_tx_committing();
        if (planted(Fault::acknowledged_before_log)) durasim_tx_commit();
        if (!planted(Fault::record_not_written)) put(record_, record_of(count_));
        clean_log();
        if (!planted(Fault::no_fence_after_log)) tx_fence();
        if (planted(Fault::emptied_before_stores)) tx_empty();
        if (!planted(Fault::stored_before_log)) write_in_place();
        if (!planted(Fault::no_fence_after_stores)) tx_fence();
        if (!planted(Fault::emptied_before_stores)) tx_empty();
        if (!planted(Fault::acknowledged_before_log)) durasim_tx_commit();
        entries_total += count_;
    }

    // Nothing has been stored in place: the next begin forgets the entries.
    void abort() {
        if (planted(Fault::abort_stores)) write_in_place();
        if (planted(Fault::abort_commits)) {
            put(record_, record_of(count_));
            clean_log();
            tx_fence();
        }
        durasim_tx_abort(1);
    }

    template <class T>
    T load(const T* place) const {
        const std::uint64_t address = reinterpret_cast<std::uint64_t>(place);
        const Entry* entry = planted(Fault::own_entries_not_read) ? nullptr : find(address & ~std::uint64_t{7});
        if (entry == nullptr) return get(place);
        return get(reinterpret_cast<const T*>(reinterpret_cast<const char*>(&entry->value) + address % 8));
    }

    template <class T>
    void store(T* place, T value) {
        const std::uint64_t address = reinterpret_cast<std::uint64_t>(place);
        const std::uint64_t home = address & ~std::uint64_t{7};
        Entry* entry = find(home);
        if (entry == nullptr) {
            entry = append(home);
            // A narrow value leaves the rest of its word as it is.
            if (sizeof(T) != 8) {
                put(&entry->value, planted(Fault::narrow_store_clears_word) ? 0 : get(reinterpret_cast<std::uint64_t*>(home)));
            }
        } else if (planted(Fault::repeated_store_lost)) {
            return;
        }
        put(reinterpret_cast<T*>(reinterpret_cast<char*>(&entry->value) + address % 8), value);
    }

private:
    struct Entry {
        std::uint64_t home;  // an address
        std::uint64_t value;
    };
    static_assert(line_bytes % sizeof(Entry) == 0);

    // The number of entries in a record; the checksum lies above it.
    static constexpr unsigned count_bits = 22;
    static constexpr std::uint64_t count_mask = (std::uint64_t{1} << count_bits) - 1;

    // The open transaction finds its entries by their address: `newest_` has for each bucket the entry that came last, and
    // `older_` for each entry the one before it in its bucket. An entry is named by base_ + 1 + its place, so that those of
    // earlier transactions are at most base_, and nothing has to be cleared.
    static constexpr std::uint64_t bucket_count = 256;
    static std::uint64_t bucket_of(std::uint64_t home) { return home / 8 % bucket_count; }

    Entry* find(std::uint64_t home) const {
        for (std::uint64_t name = newest_[bucket_of(home)]; name > base_; name = older_[name - base_ - 1]) {
            Entry* entry = entries_ + (name - base_ - 1);
            if (entry->home == home) return entry;
        }
        return nullptr;
    }

    Entry* append(std::uint64_t home) {
        if (!is_in_data(home) || count_ == capacity_) refuse_store(home);
        if (count_ == older_count_) grow();
        std::uint64_t& newest = newest_[bucket_of(home)];
        older_[count_] = newest;
        newest = base_ + ++count_;
        Entry* entry = entries_ + (count_ - 1);
        put(&entry->home, home);
        return entry;
    }

    [[gnu::noinline]] void grow() {
        older_count_ = older_count_ == 0 ? 64 : 2 * older_count_;
        older_ = static_cast<std::uint64_t*>(std::realloc(older_, older_count_ * sizeof *older_));
        if (older_ == nullptr) fail(exit_runtime, "durasim: out of memory in a transaction");
    }

    bool is_in_data(std::uint64_t home) const { return home % 8 == 0 && home - pool_address - data_offset_ < data_bytes_; }

    static std::uint64_t line_of(const void* place) { return reinterpret_cast<std::uint64_t>(place) / line_bytes; }

    void tx_clean(const void* place) const {
        if (!options_->skip_flushes) clean(place);
    }
    void tx_fence() const {
        if (!options_->skip_fences) fence();
    }

    // The record of the first `count` entries.
    std::uint64_t record_of(std::uint64_t count) const {
        Checksum check(count);
        for (const Entry* entry = entries_; entry != entries_ + count; ++entry) {
            check.take(planted(Fault::sum_without_homes) ? 0 : entry->home);
            check.take(planted(Fault::sum_without_values) ? 0 : entry->value);
        }
        return (check.sum & ~count_mask) | count;
    }

    void clean_log() const {
        if (planted(Fault::log_not_cleaned)) return;
        const std::uint64_t last = line_of(entries_ + (count_ - 1));
        for (std::uint64_t line = line_of(record_); line <= last; ++line) {
            if (planted(Fault::record_line_not_cleaned) && line == line_of(record_)) continue;
            if (planted(Fault::last_log_line_not_cleaned) && line == last) continue;
            tx_clean(reinterpret_cast<const void*>(line * line_bytes));
        }
    }

    // Neighbours on a line share a clean.
    void write_in_place() const {
        const Entry* end = entries_ + count_;
        for (const Entry* entry = entries_; entry != end; ++entry) {
            if (planted(Fault::last_store_forgotten) && entry + 1 == end) continue;
            put(reinterpret_cast<std::uint64_t*>(entry->home), entry->value);
        }
        std::uint64_t cleaned = 0;
        for (const Entry* entry = entries_; entry != end; ++entry) {
            if (planted(Fault::stores_not_cleaned) || (planted(Fault::first_store_only_cleaned) && entry != entries_)) break;
            const std::uint64_t line = entry->home / line_bytes;
            if (line == cleaned) continue;
            tx_clean(reinterpret_cast<const void*>(entry->home));
            cleaned = line;
        }
    }

    // The one store that ends the transaction.
    void tx_empty() const {
        if (planted(Fault::log_not_emptied)) return;
        put(record_, std::uint64_t{0});
        if (!planted(Fault::emptying_not_cleaned)) tx_clean(record_);
        if (!planted(Fault::no_fence_after_emptying)) tx_fence();
    }

    // The same, of a recovery.
    void empty() const {
        put(record_, std::uint64_t{0});
        clean(record_);
        fence();
    }

    void apply(const Entry& entry) const {
        auto* home = reinterpret_cast<std::uint64_t*>(entry.home);
        put(home, entry.value);
        if (!planted(Fault::recovery_does_not_clean)) clean(home);
    }

    // A planted fault: what looks like entries, without a record.
    std::uint64_t apply_without_record() const {
        std::uint64_t count = 0;
        while (count < capacity_ && is_in_data(entries_[count].home)) apply(entries_[count++]);
        fence();
        return count;
    }

    [[noreturn]] void refuse(const char* why) const {
        fail(exit_violation, "durasim: violation: the write-ahead log of thread %llu is damaged: %s",
             static_cast<unsigned long long>(number_), why);
    }

    [[noreturn, gnu::cold, gnu::noinline]] void refuse_store(std::uint64_t home) const {
        if (!is_in_data(home)) {
            fail(exit_runtime, "durasim: a transaction stored to offset %#llx, which is outside the data of the pool",
                 static_cast<unsigned long long>(home - pool_address));
        }
        fail(exit_runtime,
             "durasim: the write-ahead log is full: a transaction modified more than %llu words; give the pool a larger log (log-bytes)",
             static_cast<unsigned long long>(count_));
    }

    const WriteAheadOptions* options_ = nullptr;
    std::uint64_t* record_ = nullptr;
    Entry* entries_ = nullptr;
    std::uint64_t capacity_ = 0;
    std::uint64_t data_offset_ = 0;
    std::uint64_t data_bytes_ = 0;
    std::uint64_t number_ = 0;

    // Of the open transaction.
    std::uint64_t count_ = 0;
    std::uint64_t base_ = 0;  // entries of earlier transactions
    std::uint64_t* older_ = nullptr;
    std::uint64_t older_count_ = 0;
    std::uint64_t newest_[bucket_count] = {};
};

}  // namespace durasim

#endif
