// Counts of the operations of each thread, without a line of the pool for each thread.
//
// A thread that counts its finished operations on a line of its own adds a line to each transaction. Where a benchmark's
// transactions modify one line, or four, that is too much. So the things that the threads share (rows, queues, lines of an
// array) carry the counts themselves, on a line that an operation modifies anyway: one count for each of the threads that
// come there. To find room for them, at most four do: the threads form teams of up to four, and each team has its part of
// the things.
#ifndef DURASIM_STRUCTURES_TEAMS_H
#define DURASIM_STRUCTURES_TEAMS_H

#include <cstdint>
#include <vector>

#include "workloads/harness.h"

namespace durasim {

inline constexpr std::uint64_t team_max = 4;

class Teams {
public:
    Teams(std::uint64_t threads, std::uint64_t things) : threads_(threads), things_(things), count_(count_for(threads)) {}

    static std::uint64_t count_for(std::uint64_t threads) { return (threads + team_max - 1) / team_max; }

    std::uint64_t count() const { return count_; }
    std::uint64_t team_of(std::uint64_t thread) const { return thread % count_; }
    // The count of a thing that is that of the thread.
    std::uint64_t seat_of(std::uint64_t thread) const { return thread / count_; }
    // Team t has the things t, t + count, t + 2 * count and so on.
    std::uint64_t things_of(std::uint64_t team) const { return share_of(things_, count_, team); }
    std::uint64_t thing(std::uint64_t team, std::uint64_t index) const { return index * count_ + team; }

    // The number of `ops` operations that the threads of the largest team perform.
    std::uint64_t ops_max(std::uint64_t ops) const {
        std::uint64_t most = 0;
        for (std::uint64_t thread = 0; thread < threads_; thread += count_) most += share_of(ops, threads_, thread);
        return most;
    }

    // The sum of a thread's counts. `counted(thing, seat)` is a count in the pool.
    template <class Counted>
    std::uint64_t sum(std::uint64_t thread, Counted&& counted) const {
        const std::uint64_t team = team_of(thread), seat = seat_of(thread);
        std::uint64_t sum = 0;
        for (std::uint64_t i = 0; i < things_of(team); ++i) sum += counted(thing(team, i), seat);
        return sum;
    }

    // Replays what every thread chose, as often as its counts say, and compares all counts. `choose(thread, number, take)`
    // calls take(thing) `each` times, for the things that count the operation. Returns the number of operations.
    template <class Counted, class Choose>
    std::uint64_t check(std::uint64_t each, Counted&& counted, Choose&& choose) const {
        for (std::uint64_t i = 0; i < things_; ++i) {
            for (std::uint64_t seat = 0; seat < team_max; ++seat) {
                const std::uint64_t count = counted(i, seat), thread = seat * count_ + i % count_;
                if (count >> operation_bits != 0 || (thread >= threads_ && count != 0)) {
                    DURASIM_VIOLATION("an impossible number of operations was counted at %llu", static_cast<Long>(i));
                }
            }
        }
        std::uint64_t operations = 0;
        std::vector<std::uint64_t> model;
        for (std::uint64_t thread = 0; thread < threads_; ++thread) {
            const std::uint64_t team = team_of(thread), counts = sum(thread, counted), finished = counts / each;
            if (counts % each != 0) DURASIM_VIOLATION("half an operation of thread %llu was counted", static_cast<Long>(thread));
            operations += finished;
            if (things_of(team) == 1) continue;  // whatever it counts
            model.assign(things_of(team), 0);
            // Since the sums are equal, no count differs if none is too small. One that is by far too large does not keep the
            // replay long, as another is then too small.
            for (std::uint64_t n = 0; n < finished; ++n) {
                choose(thread, n, [&](std::uint64_t thing) {
                    if (++model[thing / count_] <= counted(thing, seat_of(thread))) return;
                    DURASIM_VIOLATION("%llu counts fewer operations of thread %llu than it should, or another too many",
                                      static_cast<Long>(thing), static_cast<Long>(thread));
                });
            }
        }
        return operations;
    }

private:
    std::uint64_t threads_, things_, count_;
};

}  // namespace durasim

#endif
