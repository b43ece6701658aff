// The redo log of one thread of NV-HTM or SPHT, a ring of pairs of words in persistent memory, whose lines are flushed
// (thesis, sections 2.4.1, 2.4.2 and 3.2).
//
// A transaction is a pair for each store, place and value, and a pair behind them that begins with its timestamp, bit 63, and bit 62 in every
// other round of the ring. Nothing says where the log ends: what is in persistent memory tells. A transaction counts if its timestamp is above
// the word `replayed` of the pool and, under SPHT, not above the word `marker`.
//
// - Positions count words since the pool was made, so the head says which round bit 62 of the ends behind it has to show. The first end that shows
//   another, and the first word that is 0, lie behind the tail: what follows is of the round before. Recovery reads from the head up to there.
// - Pairs begin at even places, so what is left of the round before is read as pairs too: a value is never taken for a timestamp.
// - Cycle counters start again at 0 with the machine. So a pool says that a session is open, and recovery ends it: it replays what counts, takes
//   out the end of a transaction that is not durable, moves each head to the tail, where the next session begins, and clears the words of the pool.
#ifndef DURASIM_RUNTIMES_TIMED_LOG_H
#define DURASIM_RUNTIMES_TIMED_LOG_H

#include <cstdint>

#include "durasim/error.h"
#include "durasim/layout.h"
#include "runtimes/planted.h"
#include "runtimes/store.h"

namespace durasim {

// Words of the pool that concern all logs, each on a line of its own behind the header.
struct TimedWords {
    std::uint64_t* session;   // 0: none is open, else a mark and which way links go
    std::uint64_t* replayed;  // the timestamp up to which persistent memory has all transactions
    std::uint64_t* next;      // with links, on its line: the link to the end of the last one of these
    std::uint64_t* marker;    // SPHT: up to this timestamp transactions are durable
    std::uint64_t* first;     // with links: the link to the first transaction of the session

    explicit TimedWords(std::uint64_t base)
        : session(line(base, 1)), replayed(line(base, 2)), next(replayed + 1), marker(line(base, 3)), first(line(base, 4)) {}

private:
    static std::uint64_t* line(std::uint64_t base, std::uint64_t number) { return reinterpret_cast<std::uint64_t*>(base + number * line_bytes); }
};

class TimedLog {
public:
    static constexpr std::uint64_t end_mark = std::uint64_t{1} << 63, odd_round_mark = std::uint64_t{1} << 62;
    // A store, and the end of a transaction.
    static constexpr std::uint64_t words_of_store = 2, words_of_end = 2;

    // Log `number` of the pool that lies at `base`.
    void attach(const PoolHeader& header, std::uint64_t base, std::uint64_t number) {
        const std::uint64_t bytes = header.bytes_per_log();
        const std::uint64_t place = base + header.log_offset + number * bytes;
        number_ = number;
        head_ = reinterpret_cast<std::uint64_t*>(place);
        ring_ = reinterpret_cast<std::uint64_t*>(place + lines_before_ring * line_bytes);
        ring_words_ = (bytes - lines_before_ring * line_bytes) / sizeof(std::uint64_t);
        data_offset_ = header.data_offset;
        data_bytes_ = header.data_bytes;
    }

    std::uint64_t number() const { return number_; }
    std::uint64_t ring_words() const { return ring_words_; }

    std::uint64_t slot(std::uint64_t position) const { return position % ring_words_; }
    std::uint64_t next(std::uint64_t slot) const { return slot + 1 == ring_words_ ? 0 : slot + 1; }
    std::uint64_t word(std::uint64_t slot) const { return get(ring_ + slot); }
    std::uint64_t* place(std::uint64_t slot) const { return ring_ + slot; }
    void put_word(std::uint64_t slot, std::uint64_t word) { put(ring_ + slot, word); }

    // The first word of an end in a round of the ring, and the timestamp that it holds.
    static std::uint64_t end_word(std::uint64_t timestamp, bool is_odd_round) { return timestamp | end_mark | (is_odd_round ? odd_round_mark : 0); }
    static std::uint64_t timestamp_in(std::uint64_t word) { return word & ~(end_mark | odd_round_mark); }
    bool is_odd_round(std::uint64_t position) const { return position / ring_words_ % 2 != 0; }

    // Before this position everything has been replayed. A hint: what follows may have been replayed too.
    std::uint64_t head() const { return get_first(head_); }
    void put_head(std::uint64_t position) { put_last(head_, position); }
    std::uint64_t* head_place() const { return head_; }

    struct Transaction {
        std::uint64_t timestamp, begin, end;
    };

    // The first transaction between two positions, at most a ring apart, whose timestamp is above `after`; false if there is none
    // up to the timestamp `last`. Others are passed over.
    bool find(std::uint64_t position, std::uint64_t until, std::uint64_t after, std::uint64_t last, Transaction& found) const {
        std::uint64_t begin = position;
        for (Place at(*this, position); at.position < until && !at.is_behind_tail(); at.advance()) {
            if (!at.is_end()) {
                check_store(at.first);
                continue;
            }
            const std::uint64_t timestamp = timestamp_in(at.first);
            if (timestamp > last) return false;
            if (timestamp > after) {
                found = {timestamp, begin, at.position + words_of_end};
                return true;
            }
            begin = at.position + words_of_end;
        }
        return false;
    }

    // Pairs begin at even places.
    void check_head() const {
        if (head() % words_of_store != 0) refuse();
    }

    // At recovery: where the log ends, behind the last transaction with a timestamp up to `last`. Calls drop(place) for each end behind it: of a
    // transaction that is not durable. Ends the program if timestamps go back.
    template <class Drop>
    std::uint64_t find_tail(std::uint64_t last, Drop&& drop) const {
        std::uint64_t tail = head(), before = 0;
        const std::uint64_t until = tail + ring_words_;
        for (Place at(*this, tail); at.position < until && !at.is_behind_tail(); at.advance()) {
            if (!at.is_end()) continue;
            const std::uint64_t timestamp = timestamp_in(at.first);
            if (timestamp <= before) refuse(": its timestamps go back");
            before = timestamp;
            if (timestamp <= last) {
                tail = at.position + words_of_end;
            } else {
                drop(ring_ + at.slot);
            }
        }
        return tail;
    }

    // The transaction whose entries begin at a position, where one is known to lie.
    Transaction transaction(std::uint64_t position) const {
        std::uint64_t place = slot(position);
        for (std::uint64_t at = position; at < position + ring_words_; at += words_of_store, place = next(next(place))) {
            const std::uint64_t first = word(place);
            if ((first & end_mark) != 0) return {timestamp_in(first), position, at + words_of_end};
            check_store(first);
        }
        refuse();
    }

    // The second word of its end, in which a link lies.
    std::uint64_t* link_place(const Transaction& transaction) const { return link_place(transaction.end - words_of_end); }
    std::uint64_t* link_place(std::uint64_t end) const { return ring_ + slot(end) + 1; }

private:
    // The line of the head.
    static constexpr std::uint64_t lines_before_ring = 1;

    // A pair, on the way from a head or a cursor to the tail.
    struct Place {
        const TimedLog& log;
        std::uint64_t position, slot, first;
        bool is_odd_round;

        Place(const TimedLog& of, std::uint64_t at)
            : log(of), position(at), slot(of.slot(at)), first(of.word(slot)), is_odd_round(of.is_odd_round(at)) {}

        bool is_end() const { return (first & end_mark) != 0; }
        bool is_behind_tail() const { return is_end() ? ((first & odd_round_mark) != 0) != is_odd_round : first == 0; }
        void advance() {
            position += words_of_store;
            slot = log.next(log.next(slot));
            if (slot == 0) is_odd_round = !is_odd_round;
            first = log.word(slot);
        }
    };

    void check_store(std::uint64_t place) const {
        if (place % sizeof(std::uint64_t) != 0 || place - data_offset_ >= data_bytes_) refuse();
    }

    [[noreturn]] void refuse(const char* how = "") const {
        fail(exit_violation, "durasim: violation: the redo log of thread %llu is damaged%s", static_cast<unsigned long long>(number_), how);
    }

    std::uint64_t* head_ = nullptr;
    std::uint64_t* ring_ = nullptr;
    std::uint64_t number_ = 0;
    std::uint64_t ring_words_ = 0;
    std::uint64_t data_offset_ = 0;
    std::uint64_t data_bytes_ = 0;
};

}  // namespace durasim

#endif
