// Replay of redo logs (thesis, sections 2.4.2 and 3.4): transactions of all threads are applied to the persistent heap in the
// order of their timestamps, each with one word that takes it out of its log. A replayer does so in the background, and recovery at its end.
//
// The heap then holds a prefix of that order and a part of the next transaction, which is applied again after a power failure: replay is idempotent.
//
// Which transaction is next? One is in its log before another one can see or overwrite what it has stored. So whatever
// conflicts with a transaction and comes before it is found by looking through all logs once more after the transaction was seen.
#ifndef DURASIM_RUNTIMES_SPHT_REPLAY_H
#define DURASIM_RUNTIMES_SPHT_REPLAY_H

#include <cstdint>
#include <vector>

#include "durasim/markers.h"
#include "runtimes/planted.h"
#include "runtimes/replay_team.h"
#include "runtimes/spht_log.h"

namespace durasim {

// Applies transactions of several logs to the pool at `base`.
class Replay {
public:
    Replay(std::vector<SphtLog> logs, std::uint64_t base) : logs_(std::move(logs)), base_(base), seen_(logs_.size()), tails_(logs_.size()), firsts_(logs_.size()) {}

    // So many replayers work together: the caller on core `core`, others behind it.
    void start(unsigned replayers, unsigned core) { team_.start(replayers, core); }

    // Applies what is in the logs now. Returns how many transactions that were.
    std::uint64_t apply_all() {
        look();
        std::uint64_t count = 0;
        batch_.clear();
        for (;; ++count) {
            const std::size_t oldest = find_oldest();
            if (oldest == logs_.size() || firsts_[oldest].end > seen_[oldest]) break;
            const Chosen next{oldest, firsts_[oldest]};
            // One replayer makes room in the logs as soon as it can.
            if (team_.count() == 1) {
                apply_alone(next);
            } else {
                batch_.push_back(next);
            }
            look_at_first(oldest, next.transaction.end);
        }
        if (!batch_.empty()) apply_together();
        return count;
    }

    bool is_empty() const {
        for (const SphtLog& log : logs_) {
            if (log.head() != log.tail()) return false;
        }
        return true;
    }

private:
    struct Chosen {
        std::size_t log;
        SphtLog::Transaction transaction;
    };

    void look() {
        for (std::size_t i = 0; i < logs_.size(); ++i) {
            seen_[i] = logs_[i].tail();
            planted_slow(Fault::replay_looks_once);
        }
        // Nobody who is before these is missing here.
        for (std::size_t i = 0; i < logs_.size(); ++i) tails_[i] = planted(Fault::replay_looks_once) ? seen_[i] : logs_[i].tail();
        for (std::size_t i = 0; i < logs_.size(); ++i) look_at_first(i, logs_[i].head());
    }

    // The transaction of a log at `position`, if there is one.
    void look_at_first(std::size_t log, std::uint64_t position) {
        firsts_[log] = position == tails_[log] ? SphtLog::Transaction{0, position, position} : logs_[log].transaction(position, tails_[log]);
    }

    // The log whose first transaction comes before those of all others; the number of logs if there is none.
    std::size_t find_oldest() const {
        std::size_t oldest = logs_.size();
        for (std::size_t i = 0; i < logs_.size(); ++i) {
            if (planted(Fault::recovery_first_log_only) && i != 0) break;
            if (firsts_[i].begin == tails_[i]) continue;
            if (oldest == logs_.size() || comes_before(firsts_[i], firsts_[oldest])) oldest = i;
        }
        return oldest;
    }

    void apply_alone(const Chosen& next) {
        SphtLog& log = logs_[next.log];
        const bool is_forgotten = planted(Fault::replay_forgets_last) && next.transaction.end == log.tail();
        durasim_situation_begin(DURASIM_SITUATION_REPLAY);
        if (planted(Fault::head_before_stores) || is_forgotten) log.put_head(next.transaction.end);
        if (!is_forgotten) log.apply(next.transaction, base_, [](std::uint64_t) { return true; });
        if (!planted(Fault::head_before_stores)) log.put_head(next.transaction.end);
        durasim_situation_end(DURASIM_SITUATION_REPLAY);
    }

    // Transactions leave their logs in their order too: what is applied again after a power failure is all that comes behind one of them.
    void apply_together() {
        durasim_situation_begin(DURASIM_SITUATION_REPLAY);
        team_.run([this](unsigned part) {
            for (const Chosen& next : batch_) {
                logs_[next.log].apply(next.transaction, base_, [&](std::uint64_t offset) { return team_.has(part, offset); });
            }
        });
        for (std::size_t i = 0; i < batch_.size(); ++i) {
            const Chosen& next = batch_[planted(Fault::heads_moved_backwards) ? batch_.size() - 1 - i : i];
            if (logs_[next.log].head() < next.transaction.end) logs_[next.log].put_head(next.transaction.end);
        }
        durasim_situation_end(DURASIM_SITUATION_REPLAY);
    }

    // Two with one timestamp do not conflict; the first thread comes first.
    static bool comes_before(const SphtLog::Transaction& a, const SphtLog::Transaction& b) {
        if (planted(Fault::replay_without_order)) return false;
        return planted(Fault::replay_newest_first) ? a.timestamp > b.timestamp : a.timestamp < b.timestamp;
    }

    std::vector<SphtLog> logs_;
    std::uint64_t base_;
    std::vector<std::uint64_t> seen_, tails_;
    std::vector<SphtLog::Transaction> firsts_;
    std::vector<Chosen> batch_;
    ReplayTeam team_;
};

}  // namespace durasim

#endif
