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
#include "runtimes/spht_log.h"

namespace durasim {

// Applies transactions of several logs to the pool at `base`.
class Replay {
public:
    Replay(std::vector<SphtLog> logs, std::uint64_t base) : logs_(std::move(logs)), base_(base), seen_(logs_.size()), tails_(logs_.size()), firsts_(logs_.size()) {}

    // Applies what is in the logs now. Returns how many transactions that were.
    std::uint64_t apply_all() {
        std::uint64_t count = 0;
        for (std::size_t i = 0; i < logs_.size(); ++i) {
            seen_[i] = logs_[i].tail();
            planted_slow(Fault::replay_looks_once);
        }
        // Nobody who is before these is missing here.
        for (std::size_t i = 0; i < logs_.size(); ++i) tails_[i] = planted(Fault::replay_looks_once) ? seen_[i] : logs_[i].tail();
        for (std::size_t i = 0; i < logs_.size(); ++i) look_at_first(i);
        for (;;) {
            std::size_t oldest = logs_.size();
            for (std::size_t i = 0; i < logs_.size(); ++i) {
                if (planted(Fault::recovery_first_log_only) && i != 0) break;
                if (firsts_[i].begin == tails_[i]) continue;
                if (oldest == logs_.size() || comes_before(firsts_[i], firsts_[oldest])) oldest = i;
            }
            if (oldest == logs_.size()) return count;
            const SphtLog::Transaction next = firsts_[oldest];
            if (next.end > seen_[oldest]) return count;
            SphtLog& log = logs_[oldest];
            const bool is_forgotten = planted(Fault::replay_forgets_last) && next.end == log.tail();
            durasim_situation_begin(DURASIM_SITUATION_REPLAY);
            if (planted(Fault::head_before_stores) || is_forgotten) log.put_head(next.end);
            if (!is_forgotten) log.apply(next, base_);
            if (!planted(Fault::head_before_stores)) log.put_head(next.end);
            durasim_situation_end(DURASIM_SITUATION_REPLAY);
            count += is_forgotten ? 0 : 1;
            look_at_first(oldest);
        }
    }

    bool is_empty() const {
        for (const SphtLog& log : logs_) {
            if (log.head() != log.tail()) return false;
        }
        return true;
    }

private:
    // The first transaction of a log that has not been applied.
    void look_at_first(std::size_t log) {
        const std::uint64_t head = logs_[log].head();
        firsts_[log] = head == tails_[log] ? SphtLog::Transaction{0, head, head} : logs_[log].transaction(head, tails_[log]);
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
};

}  // namespace durasim

#endif
