// Replay of timed logs (thesis, sections 2.4.1 and 2.4.2): transactions of all threads are applied to the persistent heap in the order of
// their timestamps, a batch at a time. Lines are flushed, then one word says up to which timestamp the heap has everything, then the logs
// lose them. A power failure before that word leaves a heap with parts of the batch, and the whole batch is applied again.
//
// Backwards (NV-HTM's backward filtering, and SPHT's backward linking) each word gets its newest value alone.
//
// The order comes from links between transactions (timed_links.h) or, without, from comparing the first transactions of all logs.
#ifndef DURASIM_RUNTIMES_TIMED_REPLAY_H
#define DURASIM_RUNTIMES_TIMED_REPLAY_H

#include <algorithm>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "durasim/layout.h"
#include "durasim/markers.h"
#include "runtimes/fences.h"
#include "runtimes/planted.h"
#include "runtimes/replay_team.h"
#include "runtimes/timed_links.h"
#include "runtimes/timed_log.h"
#include "runtimes/timed_threads.h"

namespace durasim {

class TimedReplay : private Fences {
public:
    TimedReplay(std::vector<TimedLog> logs, std::uint64_t base, bool is_backward, Links::Way way)
        : logs_(std::move(logs)), words_(base), base_(base), is_backward_(is_backward), way_(way), cursors_(logs_.size()) {
        for (std::size_t i = 0; i < logs_.size(); ++i) cursors_[i] = logs_[i].head();
    }

    // So many replayers work together: the caller on core `core`, others behind it.
    void start(unsigned replayers, unsigned core) {
        team_.start(replayers, core);
        written_.resize(team_.count());
    }

    // In the background: applies what is durable by now. Returns how many transactions that were.
    std::uint64_t apply_all() {
        const Links::Newest newest = way_ == Links::Way::backward ? Links::find_newest_durable() : Links::Newest{durable_timestamp()};
        const std::uint64_t last = newest.timestamp;
        // All up to this one are in their logs, and their threads have said where these end.
        if (last == get(words_.replayed)) return 0;
        durasim_situation_begin(DURASIM_SITUATION_REPLAY);
        const std::vector<Chosen> batch = way_ == Links::Way::none ? in_order(last, told_ends()) : way_ == Links::Way::forward ? follow_forward(last) : follow_backward(newest.link);
        apply(last, batch);
        for (std::size_t i = 0; i < logs_.size(); ++i) {
            logs_[i].put_head(room_begin(i));
            if (!planted(Fault::head_not_cleaned)) clean(logs_[i].head_place());
        }
        fence();
        for (std::size_t i = 0; i < logs_.size(); ++i) put_last(&timed_threads[i].released, room_begin(i));
        durasim_situation_end(DURASIM_SITUATION_REPLAY);
        return batch.size();
    }

    // At recovery: applies what counts, up to the timestamp `last`.
    std::uint64_t recover(std::uint64_t last) {
        const std::vector<Chosen> batch = chosen_at_recovery(last);
        apply(last, batch);
        return batch.size();
    }

    bool is_empty() const { return durable_timestamp() == get(words_.replayed); }

private:
    struct Chosen {
        std::size_t log;
        TimedLog::Transaction transaction;
    };
    // Offsets of words that a batch has written backwards, numbers of their lines, and a word of each line.
    struct Written {
        std::unordered_set<std::uint64_t> words, has_line;
        std::vector<std::uint64_t> lines;
    };

    std::vector<std::uint64_t> told_ends() const {
        std::vector<std::uint64_t> ends(logs_.size());
        for (std::size_t i = 0; i < logs_.size(); ++i) ends[i] = get_first(&timed_threads[i].position);
        return ends;
    }

    std::vector<Chosen> chosen_at_recovery(std::uint64_t last) {
        if (way_ != Links::Way::none && last <= get(words_.replayed)) return {};
        // Nothing but the rings says where the newest transaction lies.
        if (way_ == Links::Way::backward) return follow_backward(find_newest(last));
        if (way_ == Links::Way::forward) return follow_forward(last);
        std::vector<std::uint64_t> ends(logs_.size());
        for (std::size_t i = 0; i < logs_.size(); ++i) ends[i] = cursors_[i] + logs_[i].ring_words();
        return in_order(last, ends);
    }

    // Where the log begins that cannot be used again yet.
    std::uint64_t room_begin(std::size_t log) const {
        return cursors_[log] - (way_ == Links::Way::forward && log == last_log_ ? TimedLog::words_of_end : 0);
    }

    void apply(std::uint64_t last, const std::vector<Chosen>& batch) {
        if (!batch.empty()) last_log_ = batch.back().log;
        if (planted(Fault::replayed_before_stores)) note_replayed(last, batch);
        team_.run([&](unsigned part) { apply_part(part, batch); });
        if (!planted(Fault::replayed_before_stores)) note_replayed(last, batch);
    }

    // The stores to the pages of a replayer are durable when it returns.
    void apply_part(unsigned part, const std::vector<Chosen>& batch) {
        Written& written = written_[part];
        written = {};
        for (std::size_t i = 0; i < batch.size(); ++i) {
            const bool is_reversed = is_backward_ != planted(Fault::filter_in_wrong_direction);
            const Chosen& chosen = batch[is_reversed ? batch.size() - 1 - i : i];
            if (is_backward_) {
                apply_backward(part, chosen, written);
            } else {
                apply_forward(part, chosen);
            }
        }
        for (const std::uint64_t line : written.lines) {
            if (!planted(Fault::replay_not_cleaned)) clean(heap(line));
        }
        if (!planted(Fault::no_fence_behind_replay)) fence();
    }

    void note_replayed(std::uint64_t last, const std::vector<Chosen>& batch) {
        if (!batch.empty() && !planted(Fault::next_not_stored)) put(words_.next, Link::to(batch.back().log, batch.back().transaction.end - TimedLog::words_of_end));
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

    // The transactions up to a timestamp, from one to its successor; cursors move behind them.
    std::vector<Chosen> follow_forward(std::uint64_t last) {
        std::vector<Chosen> batch;
        const std::uint64_t next = get(words_.next);
        const std::uint64_t* place = link_place(next);
        // The word `replayed` may not be as new: it is stored behind this one.
        std::uint64_t timestamp = next == 0 ? 0 : TimedLog::timestamp_in(*(place - 1));
        while (timestamp != last) {
            const Chosen chosen = read(get_first(place));
            if (chosen.transaction.timestamp <= timestamp || chosen.transaction.timestamp > last) refuse();
            batch.push_back(chosen);
            cursors_[chosen.log] = chosen.transaction.end;
            timestamp = chosen.transaction.timestamp;
            place = logs_[chosen.log].link_place(chosen.transaction);
        }
        return batch;
    }

    // The transactions up to the one at `link`, from one to its predecessor, until one has been replayed; in their order.
    std::vector<Chosen> follow_backward(std::uint64_t link) {
        std::vector<Chosen> batch;
        const std::vector<std::uint64_t> begins = cursors_;
        const std::uint64_t replayed = planted(Fault::replayed_ignored) ? 0 : get(words_.replayed);
        for (std::uint64_t timestamp = ~std::uint64_t{0}; link != 0;) {
            // The room of what lies before has been used again.
            if (Link::log(link) < logs_.size() && Link::position(link) < begins[Link::log(link)]) break;
            const Chosen chosen = read(link);
            if (chosen.transaction.timestamp <= replayed) break;
            if (chosen.transaction.timestamp >= timestamp) refuse();
            batch.push_back(chosen);
            if (cursors_[chosen.log] < chosen.transaction.end) cursors_[chosen.log] = chosen.transaction.end;
            timestamp = chosen.transaction.timestamp;
            link = get(logs_[chosen.log].link_place(chosen.transaction));
        }
        std::reverse(batch.begin(), batch.end());
        return batch;
    }

    // The link to the transaction with the timestamp `last`, which lies in one of the rings.
    std::uint64_t find_newest(std::uint64_t last) const {
        for (const TimedLog& log : logs_) {
            TimedLog::Transaction found;
            const std::uint64_t begin = cursors_[log.number()];
            if (log.find(begin, begin + log.ring_words(), last - 1, last, found)) return Link::to(log.number(), found.begin);
        }
        refuse();
    }

    // Where the link behind the transaction lies whose end `link` names; that to the first one if there is none.
    const std::uint64_t* link_place(std::uint64_t link) const {
        if (link == 0) return words_.first;
        refuse_place(link);
        return logs_[Link::log(link)].link_place(Link::position(link));
    }

    Chosen read(std::uint64_t link) const {
        if (link == 0) refuse();
        refuse_place(link);
        return {Link::log(link), logs_[Link::log(link)].transaction(Link::position(link))};
    }

    // Pairs begin at even places of logs that there are.
    void refuse_place(std::uint64_t link) const {
        if (Link::log(link) >= logs_.size() || Link::position(link) % TimedLog::words_of_store != 0) refuse();
    }

    [[noreturn]] static void refuse() { fail(exit_violation, "durasim: violation: the links between the redo logs are damaged"); }

    std::uint64_t* heap(std::uint64_t offset) const { return reinterpret_cast<std::uint64_t*>(base_ + offset); }

    // Each store is flushed, as SPHT does without filtering.
    void apply_forward(unsigned part, const Chosen& chosen) {
        const TimedLog& log = logs_[chosen.log];
        const std::uint64_t stores = stores_of(chosen.transaction);
        std::uint64_t place = log.slot(chosen.transaction.begin);
        for (std::uint64_t i = 0; i < stores; ++i, place = log.next(log.next(place))) {
            if (planted(Fault::replay_skips_last_store) && i + 1 == stores) break;
            if (!team_.has(part, log.word(place))) continue;
            std::uint64_t* const word = heap(log.word(place));
            put(word, log.word(log.next(place)));
            if (!planted(Fault::replay_not_cleaned)) clean(word);
        }
    }

    // Newest store first; a word that has been written has its value. Lines are flushed at the end: SPHT writes back all caches there, which
    // no instruction does here.
    void apply_backward(unsigned part, const Chosen& chosen, Written& written) {
        const TimedLog& log = logs_[chosen.log];
        const std::uint64_t stores = stores_of(chosen.transaction);
        for (std::uint64_t i = stores; i-- > 0;) {
            if (planted(Fault::replay_skips_last_store) && i + 1 == stores) continue;
            const std::uint64_t place = log.slot(chosen.transaction.begin + i * TimedLog::words_of_store);
            std::uint64_t* const word = heap(log.word(place));
            if (!team_.has(part, log.word(place))) continue;
            if (!written.words.insert(log.word(place)).second) continue;
            put(word, log.word(log.next(place)));
            if (written.has_line.insert(log.word(place) / line_bytes).second) written.lines.push_back(log.word(place));
        }
    }

    static std::uint64_t stores_of(const TimedLog::Transaction& transaction) {
        return (transaction.end - transaction.begin - TimedLog::words_of_end) / TimedLog::words_of_store;
    }

    std::vector<TimedLog> logs_;
    TimedWords words_;
    std::uint64_t base_;
    bool is_backward_;
    Links::Way way_;
    // Where each log has not been applied from, and which of them has the last transaction that has been.
    std::vector<std::uint64_t> cursors_;
    std::size_t last_log_ = ~std::size_t{0};
    // Of each replayer.
    std::vector<Written> written_ = std::vector<Written>(1);
    ReplayTeam team_;
};

}  // namespace durasim

#endif
