// Replay of timed logs (thesis, sections 2.4.1 and 2.4.2): transactions of all threads are applied to the persistent heap in the order of
// their timestamps, a batch at a time. Lines are flushed, then one word says up to which timestamp the heap has everything, then the logs
// lose them. A power failure before that word leaves a heap with parts of the batch, and the whole batch is applied again.
//
// Backwards (NV-HTM's backward filtering, and SPHT's backward linking) each word gets its newest value alone.
#ifndef DURASIM_RUNTIMES_TIMED_REPLAY_H
#define DURASIM_RUNTIMES_TIMED_REPLAY_H

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "durasim/layout.h"
#include "durasim/markers.h"
#include "runtimes/fences.h"
#include "runtimes/planted.h"
#include "runtimes/timed_log.h"
#include "runtimes/timed_threads.h"

namespace durasim {

class TimedReplay : private Fences {
public:
    TimedReplay(std::vector<TimedLog> logs, std::uint64_t base, bool is_backward)
        : logs_(std::move(logs)), words_(base), base_(base), is_backward_(is_backward), cursors_(logs_.size()) {
        for (std::size_t i = 0; i < logs_.size(); ++i) cursors_[i] = logs_[i].head();
    }

    // In the background: applies what is durable by now. Returns how many transactions that were.
    std::uint64_t apply_all() {
        // All up to this one are in their logs, and their threads have said where these end.
        const std::uint64_t last = durable_timestamp();
        if (last == get(words_.replayed)) return 0;
        std::vector<std::uint64_t> ends(logs_.size());
        for (std::size_t i = 0; i < logs_.size(); ++i) ends[i] = get_first(&timed_threads[i].position);
        durasim_situation_begin(DURASIM_SITUATION_REPLAY);
        const std::uint64_t count = apply(last, ends);
        for (std::size_t i = 0; i < logs_.size(); ++i) {
            logs_[i].put_head(cursors_[i]);
            if (!planted(Fault::head_not_cleaned)) clean(logs_[i].head_place());
        }
        fence();
        for (std::size_t i = 0; i < logs_.size(); ++i) put_last(&timed_threads[i].released, cursors_[i]);
        durasim_situation_end(DURASIM_SITUATION_REPLAY);
        return count;
    }

    // At recovery: applies what counts, up to the timestamp `last`.
    std::uint64_t recover(std::uint64_t last) {
        std::vector<std::uint64_t> ends(logs_.size());
        for (std::size_t i = 0; i < logs_.size(); ++i) ends[i] = cursors_[i] + logs_[i].ring_words();
        return apply(last, ends);
    }

    bool is_empty() const { return durable_timestamp() == get(words_.replayed); }

private:
    struct Chosen {
        std::size_t log;
        TimedLog::Transaction transaction;
    };

    std::uint64_t apply(std::uint64_t last, const std::vector<std::uint64_t>& ends) {
        const std::vector<Chosen> batch = in_order(last, ends);
        if (planted(Fault::replayed_before_stores)) note_replayed(last, batch);
        std::unordered_set<std::uint64_t> written;
        for (std::size_t i = 0; i < batch.size(); ++i) {
            const bool is_reversed = is_backward_ != planted(Fault::filter_in_wrong_direction);
            const Chosen& chosen = batch[is_reversed ? batch.size() - 1 - i : i];
            if (is_backward_) {
                apply_backward(chosen, written);
            } else {
                apply_forward(chosen);
            }
        }
        if (!planted(Fault::no_fence_behind_replay)) fence();
        if (!planted(Fault::replayed_before_stores)) note_replayed(last, batch);
        return batch.size();
    }

    void note_replayed(std::uint64_t last, const std::vector<Chosen>& batch) {
        // What is durable by now may be more than the logs have shown.
        if (last != ~std::uint64_t{0} || !batch.empty()) put(words_.replayed, last == ~std::uint64_t{0} ? batch.back().transaction.timestamp : last);
        if (!planted(Fault::replayed_not_cleaned)) clean(words_.replayed);
        fence();
    }

    // The transactions up to a timestamp in their order; cursors move behind them.
    std::vector<Chosen> in_order(std::uint64_t last, const std::vector<std::uint64_t>& ends) {
        const std::uint64_t after = planted(Fault::replayed_ignored) ? 0 : get(words_.replayed);
        std::vector<Chosen> batch;
        std::vector<TimedLog::Transaction> firsts(logs_.size());
        std::vector<char> has(logs_.size());
        const auto look = [&](std::size_t i) { has[i] = logs_[i].find(cursors_[i], ends[i], after, last, firsts[i]); };
        for (std::size_t i = 0; i < logs_.size(); ++i) {
            if (planted(Fault::recovery_first_log_only) && i != 0) break;
            look(i);
        }
        for (;;) {
            std::size_t oldest = logs_.size();
            for (std::size_t i = 0; i < logs_.size(); ++i) {
                if (has[i] == 0) continue;
                if (oldest == logs_.size() || (!planted(Fault::replay_without_order) && firsts[i].timestamp < firsts[oldest].timestamp)) oldest = i;
            }
            if (oldest == logs_.size()) return batch;
            batch.push_back({oldest, firsts[oldest]});
            cursors_[oldest] = firsts[oldest].end;
            look(oldest);
        }
    }

    std::uint64_t* heap(std::uint64_t offset) const { return reinterpret_cast<std::uint64_t*>(base_ + offset); }

    // Each store is flushed, as SPHT does without filtering.
    void apply_forward(const Chosen& chosen) {
        const TimedLog& log = logs_[chosen.log];
        const std::uint64_t stores = stores_of(chosen.transaction);
        std::uint64_t place = log.slot(chosen.transaction.begin);
        for (std::uint64_t i = 0; i < stores; ++i, place = log.next(log.next(place))) {
            if (planted(Fault::replay_skips_last_store) && i + 1 == stores) break;
            std::uint64_t* const word = heap(log.word(place));
            put(word, log.word(log.next(place)));
            if (!planted(Fault::replay_not_cleaned)) clean(word);
        }
    }

    // Newest store first; a word that has been written has its value.
    void apply_backward(const Chosen& chosen, std::unordered_set<std::uint64_t>& written) {
        const TimedLog& log = logs_[chosen.log];
        const std::uint64_t stores = stores_of(chosen.transaction);
        for (std::uint64_t i = stores; i-- > 0;) {
            if (planted(Fault::replay_skips_last_store) && i + 1 == stores) continue;
            const std::uint64_t place = log.slot(chosen.transaction.begin + i * TimedLog::words_of_store);
            std::uint64_t* const word = heap(log.word(place));
            if (!written.insert(log.word(place)).second) continue;
            put(word, log.word(log.next(place)));
            if (!planted(Fault::replay_not_cleaned)) clean(word);
        }
    }

    static std::uint64_t stores_of(const TimedLog::Transaction& transaction) {
        return (transaction.end - transaction.begin - TimedLog::words_of_end) / TimedLog::words_of_store;
    }

    std::vector<TimedLog> logs_;
    TimedWords words_;
    std::uint64_t base_;
    bool is_backward_;
    // Where each log has not been applied from.
    std::vector<std::uint64_t> cursors_;
};

}  // namespace durasim

#endif
