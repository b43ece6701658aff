// The redo log of one thread of SPHT-eADR, a ring of words in persistent memory, and what the replayer reads of it.
//
// The thesis (section 3.4) says: private redo logs, circular, transactions in order with timestamps. Ours: a transaction is a
// pair of words for each store, place and value, and a word with its timestamp and bit 63 behind them. The word `tail` says where
// the transactions end, `head` which of them have been replayed; both count words since the pool was made. A thread stores entries, timestamp and
// tail inside its hardware transaction, so they survive together.
//
// Threads reach their logs at the second address of the pool, where it is shared (shadow.h).
#ifndef DURASIM_RUNTIMES_SPHT_LOG_H
#define DURASIM_RUNTIMES_SPHT_LOG_H

#include <cstdint>

#include "durasim/error.h"
#include "durasim/layout.h"
#include "runtimes/planted.h"
#include "runtimes/store.h"

namespace durasim {

class SphtLog {
public:
    static constexpr std::uint64_t end_mark = std::uint64_t{1} << 63;
    // A store, and the end of a transaction.
    static constexpr std::uint64_t words_of_store = 2, words_of_end = 1;

    // Log `number` of the pool that lies at `base`.
    void attach(const PoolHeader& header, std::uint64_t base, std::uint64_t number) {
        const std::uint64_t bytes = header.bytes_per_log();
        const std::uint64_t place = base + header.log_offset + number * bytes;
        number_ = number;
        tail_ = reinterpret_cast<std::uint64_t*>(place);
        head_ = reinterpret_cast<std::uint64_t*>(place + line_bytes);
        ring_ = reinterpret_cast<std::uint64_t*>(place + 2 * line_bytes);
        ring_words_ = (bytes - 2 * line_bytes) / sizeof(std::uint64_t);
        data_offset_ = header.data_offset;
        data_bytes_ = header.data_bytes;
    }

    std::uint64_t number() const { return number_; }
    std::uint64_t ring_words() const { return ring_words_; }
    std::uint64_t tail() const { return get_first(tail_); }
    std::uint64_t head() const { return get_first(head_); }

    // The place of a word in the ring, and the place behind it: who goes from word to word divides once.
    std::uint64_t slot(std::uint64_t position) const { return position % ring_words_; }
    std::uint64_t next(std::uint64_t slot) const { return slot + 1 == ring_words_ ? 0 : slot + 1; }
    std::uint64_t word(std::uint64_t slot) const { return get(ring_ + slot); }
    const void* place(std::uint64_t slot) const { return ring_ + slot; }

    void put_word(std::uint64_t slot, std::uint64_t word) { put(ring_ + slot, word); }
    void put_tail(std::uint64_t position) { put(tail_, position); }
    void put_head(std::uint64_t position) { put_last(head_, position); }

    // Ends the program if head and tail cannot be those of a log, or what lies between them is not a sequence of transactions.
    void check() const {
        const std::uint64_t end = tail(), begin = head();
        if (begin > end || end - begin > ring_words_) refuse();
        std::uint64_t before = 0;
        for (std::uint64_t position = begin; position < end;) {
            const Transaction found = transaction(position, end);
            if (found.timestamp < before) {
                fail(exit_violation, "durasim: violation: the redo log of thread %llu is damaged: its timestamps go back",
                     static_cast<unsigned long long>(number_));
            }
            before = found.timestamp;
            position = found.end;
        }
    }

    // The timestamp of the transaction at `position`, of those before `end`, and where it ends.
    struct Transaction {
        std::uint64_t timestamp, begin, end;
    };
    Transaction transaction(std::uint64_t position, std::uint64_t end) const {
        std::uint64_t place = slot(position);
        for (std::uint64_t at = position; at < end; at += words_of_store, place = next(next(place))) {
            const std::uint64_t first = word(place);
            if ((first & end_mark) != 0) return {first & ~end_mark, position, at + words_of_end};
            const std::uint64_t offset = first - data_offset_;
            if (first % sizeof(std::uint64_t) != 0 || offset >= data_bytes_) refuse();
        }
        refuse();
    }

    // Makes the stores of a transaction to the pool that lies at `base`, in their order, of those that `wanted` says yes to.
    template <class Wanted>
    void apply(const Transaction& transaction, std::uint64_t base, Wanted&& wanted) const {
        const std::uint64_t stores = (transaction.end - transaction.begin - words_of_end) / words_of_store;
        std::uint64_t place = slot(transaction.begin);
        for (std::uint64_t i = 0; i < stores; ++i, place = next(next(place))) {
            if (planted(Fault::replay_stores_backwards)) place = slot(transaction.begin + (stores - 1 - i) * words_of_store);
            if (planted(Fault::replay_skips_last_store) && i + 1 == stores) break;
            if (wanted(word(place))) put(reinterpret_cast<std::uint64_t*>(base + word(place)), word(next(place)));
        }
    }

private:
    [[noreturn]] void refuse() const {
        fail(exit_violation, "durasim: violation: the redo log of thread %llu is damaged", static_cast<unsigned long long>(number_));
    }

    std::uint64_t* tail_ = nullptr;
    std::uint64_t* head_ = nullptr;
    std::uint64_t* ring_ = nullptr;
    std::uint64_t number_ = 0;
    std::uint64_t ring_words_ = 0;
    std::uint64_t data_offset_ = 0;
    std::uint64_t data_bytes_ = 0;
};

}  // namespace durasim

#endif
