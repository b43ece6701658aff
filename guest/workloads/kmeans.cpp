// durasim-workload: kmeans — partition-based clustering: points are added to the nearest of some centres in small transactions
//
// The program kmeans of STAMP (Cao Minh, Chung, Kozyrakis and Olukotun, IISWC 2008, section III and Table IV). Its inputs are 2048 points of
// 16 dimensions around 16 centres: --populate 2048 with -m40 -n40 (low contention, --clusters 40) or -m15 -n15 (high contention,
// --clusters 15), both with -t0.05 (--threshold-permille 50). A clustering consists of steps. In each one all points are added to sums
// of the clusters whose centres are nearest, and then the centres move to the means. It is at its end when a step moves few enough points, or
// after 500 steps. An operation is one of these transactions:
// - add: adds a point to the count and the sums of its cluster. The nearest centre is looked for before, outside of the transaction.
// - claim: takes the next three points from the queue that all threads share.
// - hand in: adds the number of points that changed their clusters, since the thread handed in, to a sum of all threads.
// - close: makes the means the centres and empties the sums, for the next step. The thread that hands in the last points does it.
//
// Deviations. STAMP has transactions for the first three, and barriers around the fourth, which one thread does without a transaction;
// here it is one, since it has to survive a power failure as a whole. A thread waits at the end of a step as at STAMP's barrier, but not
// for a thread that has no more operations to do: the points that this one has claimed and not handed in go to another, in a transaction
// that takes them over. A thread that comes too late to a step finds nothing to take over; one of STAMP hands in nothing then. What it
// does with points between its transactions each thread notes on its line of the pool, and the transactions note the clusters of points,
// which STAMP does outside of them. Threads copy the centres when they claim their first points of a step; STAMP reads them in place,
// outside of transactions. Coordinates are whole numbers of 16 bits instead of floats, so all results are the same in any order, and the
// queue hands out all points; STAMP deals out the first three of each thread. A clustering that has come to its end is followed by
// another one of the same points, with other centres to begin with: so there is work for any number of operations.
//
// The points are made from the seed. Transactions write them when populating; afterwards all threads read a copy in ordinary memory.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "structures/blocks.h"
#include "workloads/harness.h"
#include "workloads/kmeans_clustering.h"
#include "workloads/kmeans_points.h"

namespace {

using namespace durasim::kmeans;
using durasim::Arguments;
using durasim::Audit;
using durasim::Long;
using durasim::Pool;
using durasim::Reader;
using durasim::Tx;

constexpr std::uint64_t kind_of_root = 0x736E61656D6B;  // "kmeans"

// The threads that hold what the others wait for at the end of a step. In ordinary memory: it only says when to wait.
enum class Holds : std::uint32_t {
    nothing,
    work,       // points that are not handed in, or a step to be closed, and goes on with it
    left_work,  // and has no more operations to do, for now
};
struct alignas(64) Presence {
    std::atomic<Holds> holds;
};

class Kmeans {
public:
    static std::uint64_t arenas(const Arguments&) { return 1; }

    static std::uint64_t pool_bytes(const Arguments& arguments) {
        return durasim::block_bytes(arguments.populate * sizeof(Point)) + durasim::block_bytes(arguments.clusters * sizeof(Sum)) +
               durasim::block_bytes(arguments.clusters * sizeof(Packed)) + durasim::block_bytes(arguments.threads * sizeof(Line)) +
               16 * durasim::line_bytes;
    }

    // Closing a step writes all sums and centres.
    static std::uint64_t log_bytes_min(const Arguments& arguments) { return 4096 + arguments.clusters * 1024; }

    Kmeans(Pool& pool, const Arguments& arguments) : points_(make_points(arguments.seed, points_of(arguments))) {
        clustering_ = pool.root<Clustering>();
        if (clustering_ == nullptr) {
            make(pool, arguments);
            clustering_ = pool.root<Clustering>();
        }
        if (clustering_->kind != kind_of_root) durasim::fail(durasim::exit_usage, "kmeans: the pool belongs to another workload");
        if (clustering_->seed != arguments.seed || clustering_->points != arguments.populate || clustering_->threads != arguments.threads ||
            clustering_->clusters != arguments.clusters || clustering_->threshold_permille != arguments.threshold_permille) {
            durasim::fail(durasim::exit_usage,
                          "kmeans: the pool was made with --seed %llu --populate %llu --threads %llu --clusters %llu "
                          "--threshold-permille %llu; use these",
                          static_cast<Long>(clustering_->seed), static_cast<Long>(clustering_->points),
                          static_cast<Long>(clustering_->threads), static_cast<Long>(clustering_->clusters),
                          static_cast<Long>(clustering_->threshold_permille));
        }
        copy_ = *clustering_;
        presence_ = std::make_unique<Presence[]>(copy_.threads);
        for (std::uint64_t i = 0; i < copy_.threads; ++i) {
            lines_.push_back(copy_.line[i]);
            presence_[i].holds = copy_.line[i].points != 0 ? Holds::left_work : Holds::nothing;
            ends_.push_back({durasim::share_of(arguments.warm_ops, copy_.threads, i), durasim::share_of(arguments.ops, copy_.threads, i)});
        }
        begun_.step = copy_.queue->step;
        begun_.first = copy_.queue->first;
        begun_.centres = unpacked_centres();
        step_ = begun_.step;
        if (copy_.threads > 1) lock_ = std::make_unique<durasim::TxLock>();
    }

    std::uint64_t populated() const { return clustering_->ready; }

    // The centres of a step, as a thread has copied them.
    struct Copy {
        std::uint64_t step, first;
        std::vector<Place> centres;
    };

    struct Thread {
        std::uint64_t number;
        Line line;  // as the thread left it; another one may have taken its points since
        Copy copy;
        std::uint64_t operations;  // of this run
        std::uint64_t step;        // that was open when the thread looked
        bool waits;                // for the end of that
    };

    Thread enter(std::uint64_t number) const { return {number, lines_[number], begun_, 0, begun_.step, false}; }
    void leave(const Thread& thread) { lines_[thread.number] = thread.line; }

    void populate_one(Thread&) {
        durasim::tx([&](Tx& t) {
            const std::uint64_t ready = t.read(clustering_->ready);
            const Packed words = packed(points_[ready]);
            Point& point = copy_.point[ready];
            for (std::uint64_t w = 0; w < packed_words; ++w) t.write(point.coordinate[w], words[w]);
            t.write(clustering_->ready, ready + 1);
            if constexpr (durasim::has_history) {
                durasim::report_change(ready, 0, version_of(point, Reader{t}));
                durasim::report_change(durasim::populated_object, ready, ready + 1);
            }
        });
    }

    void operation(Thread& thread) {
        ++thread.operations;
        const std::uint64_t victim = thread.waits ? wait_for_others(thread) : nobody;
        presence_[thread.number].holds.store(Holds::work, std::memory_order_release);
        const bool has_point = thread.line.next < thread.line.end;
        const std::uint64_t cluster = has_point ? nearest(points_[thread.line.next], thread.copy.centres) : 0;
        Line left;
        Outcome outcome;
        {
            std::unique_lock<durasim::TxLock> held;
            if (lock_ != nullptr) held = std::unique_lock(*lock_);
            durasim::tx([&](Tx& t) {
                Line& line = copy_.line[thread.number];
                [[maybe_unused]] std::uint64_t found = 0;
                if constexpr (durasim::has_history) found = version_of(line, Reader{t});
                left = thread.line;
                // A thread that takes over takes all.
                if (t.read(line.points) != left.points) left.next = left.end = left.points = left.changed = 0;
                const Line before = left;
                outcome = {false, false, false, thread.step};
                if (left.next < left.end) {
                    add(t, thread, left, cluster);
                } else {
                    go_on(t, thread, left, victim, outcome);
                }
                write_line(t, line, before, left);
                if constexpr (durasim::has_history) {
                    durasim::report_change(durasim::progress_object(thread.number), found, version_of(line, Reader{t}));
                }
            });
        }
        thread.line = left;
        announce(thread, victim, outcome);
    }

    void compare_with_model() const {
        // The check has compared the clustering with what the counts say; here remains whether these are right.
        for (std::uint64_t i = 0; i < lines_.size(); ++i) {
            if (copy_.line[i].finished() != lines_[i].finished()) {
                DURASIM_VIOLATION("thread %llu finished %llu operations, but the pool says %llu", static_cast<Long>(i),
                                  static_cast<Long>(lines_[i].finished()), static_cast<Long>(copy_.line[i].finished()));
            }
        }
    }

    void print_result() const {
        std::printf("points=%llu clusters=%llu steps=%llu clusterings=%llu", static_cast<Long>(copy_.points),
                    static_cast<Long>(copy_.clusters), static_cast<Long>(copy_.queue->step), static_cast<Long>(copy_.queue->round));
    }

    static std::uint64_t check(const Pool& pool);
    static void dump(const Pool& pool, durasim::Dump& dump);

private:
    // The outcome of a transaction.
    struct Outcome {
        bool completes;      // the last points of the step are handed in: this thread closes it
        bool closes;         // it did so
        bool relieves;       // the victim has no points any more
        std::uint64_t step;  // that was open before
    };

    static constexpr std::uint64_t nobody = ~std::uint64_t{0};

    static std::uint64_t points_of(const Arguments& arguments) {
        if (arguments.populate == 0 || arguments.populate > points_max) {
            durasim::fail(durasim::exit_usage, "kmeans: --populate has to be from 1 to %llu", static_cast<Long>(points_max));
        }
        return arguments.populate;
    }

    void make(Pool& pool, const Arguments& arguments) {
        const std::vector<Place> centres = first_centres(arguments.seed, 0, arguments.clusters, points_);
        durasim::tx([&](Tx& t) {
            auto* clustering = static_cast<Clustering*>(t.allocate(sizeof(Clustering)));
            auto* centre = static_cast<std::uint64_t*>(t.allocate(arguments.clusters * sizeof(Packed)));
            write_centres(t, centre, centres);
            t.write(clustering->kind, kind_of_root);
            t.write(clustering->seed, arguments.seed);
            t.write(clustering->points, arguments.populate);
            t.write(clustering->ready, 0);
            t.write(clustering->threads, arguments.threads);
            t.write(clustering->clusters, arguments.clusters);
            t.write(clustering->threshold_permille, arguments.threshold_permille);
            t.write(clustering->centre, centre);
            // Memory that was never given out before is zero: the first step begins, and no thread has done anything.
            t.write(clustering->point, static_cast<Point*>(t.allocate(arguments.populate * sizeof(Point))));
            t.write(clustering->sum, static_cast<Sum*>(t.allocate(arguments.clusters * sizeof(Sum))));
            t.write(clustering->queue, static_cast<Queue*>(t.allocate(sizeof(Queue))));
            t.write(clustering->total, static_cast<Total*>(t.allocate(sizeof(Total))));
            t.write(clustering->line, static_cast<Line*>(t.allocate(arguments.threads * sizeof(Line))));
            pool.set_root(t, clustering);
            if constexpr (durasim::has_history) {
                durasim::report_change(durasim::root_object, 0, kind_of_root);
                durasim::report_change(centres_object, 0, version_of_centres(centre, arguments.clusters, 0, Reader{t}));
            }
        });
    }

    static void write_centres(Tx& t, std::uint64_t* to, const std::vector<Place>& centres) {
        for (std::uint64_t c = 0; c < centres.size(); ++c) {
            const Packed words = packed(centres[c]);
            for (std::uint64_t w = 0; w < packed_words; ++w) t.write(to[c * packed_words + w], words[w]);
        }
    }

    std::vector<Place> unpacked_centres() const {
        std::vector<Place> centres(copy_.clusters);
        for (std::uint64_t c = 0; c < copy_.clusters; ++c) {
            Packed words;
            std::copy_n(copy_.centre + c * packed_words, packed_words, words.begin());
            centres[c] = unpacked(words);
        }
        return centres;
    }

    // Waits until the step is over, or is kept from being so by a thread that does nothing for now: returns that one.
    std::uint64_t wait_for_others(const Thread& thread) const {
        durasim::detail::Backoff backoff;
        while (step_.load(std::memory_order_acquire) <= thread.step) {
            bool all_done = true;
            for (std::uint64_t i = 0; i < copy_.threads; ++i) {
                const Holds holds = presence_[i].holds.load(std::memory_order_acquire);
                if (holds == Holds::left_work) return i;
                if (holds == Holds::work) all_done = false;
            }
            if (all_done) break;
            backoff.wait();
        }
        return nobody;
    }

    // Reports to the others how a transaction of the thread has ended.
    void announce(Thread& thread, std::uint64_t victim, const Outcome& outcome) {
        if (outcome.closes) step_.store(outcome.step + 1, std::memory_order_release);
        const bool works = thread.line.points != 0 || outcome.completes;
        const auto& [warm, all] = ends_[thread.number];
        const bool leaves = thread.operations == warm || thread.operations == all;
        presence_[thread.number].holds.store(!works ? Holds::nothing : leaves ? Holds::left_work : Holds::work, std::memory_order_release);
        Holds left = Holds::left_work;
        if (outcome.relieves) presence_[victim].holds.compare_exchange_strong(left, Holds::nothing);
        thread.step = outcome.step;
        thread.waits = !works && !outcome.closes;
    }

    static void write_line(Tx& t, Line& line, const Line& before, const Line& left) {
        for (auto word : {&Line::added, &Line::claimed, &Line::handed, &Line::closed}) {
            if (left.*word != before.*word) t.write(line.*word, left.*word);
        }
        for (auto word : {&Line::next, &Line::end, &Line::points, &Line::changed}) {
            if (left.*word != before.*word) t.write(line.*word, left.*word);
        }
    }

    void add(Tx& t, const Thread& thread, Line& left, std::uint64_t cluster) const {
        const std::uint32_t number = left.next;
        Point& point = copy_.point[number];
        Sum& sum = copy_.sum[cluster];
        [[maybe_unused]] std::uint64_t found[2] = {};
        if constexpr (durasim::has_history) found[0] = version_of(point, Reader{t}), found[1] = version_of(sum, Reader{t});
        const std::uint64_t member = t.read(point.member);
        // Its state before this clustering does not matter.
        if (member >> 32 <= thread.copy.first || (member & 0xffffffff) != cluster) ++left.changed;
        t.write(point.member, member_of(thread.copy.step, cluster));
        t.write(sum.count, t.read(sum.count) + 1);
        for (std::uint64_t d = 0; d < dimensions; ++d) t.write(sum.sum[d], t.read(sum.sum[d]) + points_[number][d]);
        ++left.next;
        ++left.added;
        if constexpr (durasim::has_history) {
            durasim::report_change(number, found[0], version_of(point, Reader{t}));
            durasim::report_change(sum_object(cluster), found[1], version_of(sum, Reader{t}));
        }
    }

    // The thread has added all points that it has claimed.
    void go_on(Tx& t, Thread& thread, Line& left, std::uint64_t victim, Outcome& outcome) const {
        Queue& queue = *copy_.queue;
        outcome.step = t.read(queue.step);
        const std::uint64_t next = t.read(queue.next);
        [[maybe_unused]] std::uint64_t found = 0;
        if constexpr (durasim::has_history) found = version_of(queue, Reader{t});
        if (next < copy_.points) {
            const std::uint64_t end = std::min(next + chunk, copy_.points);
            t.write(queue.next, end);
            left.next = static_cast<std::uint32_t>(next);
            left.end = static_cast<std::uint32_t>(end);
            left.points += left.end - left.next;
            ++left.claimed;
            copy_centres(t, thread, outcome.step);
            if constexpr (durasim::has_history) durasim::report_change(queue_object, found, version_of(queue, Reader{t}));
        } else if (left.points != 0) {
            durasim::report_read(queue_object, found);
            hand_in(t, left, outcome);
        } else if (t.read(copy_.total->points) == copy_.points) {
            close(t, outcome.step);
            ++left.closed;
            outcome.closes = true;
            if constexpr (durasim::has_history) durasim::report_change(queue_object, found, version_of(queue, Reader{t}));
        } else {
            if constexpr (durasim::has_history) {
                durasim::report_read(queue_object, found);
                durasim::report_read(total_object, version_of(*copy_.total, outcome.step, Reader{t}));
            }
            take_over(t, thread, left, victim, outcome);
        }
    }

    // All but a thread's first claims of a step find the copy there.
    void copy_centres(Tx& t, Thread& thread, std::uint64_t step) const {
        if (thread.copy.step == step) return;
        thread.copy.first = t.read(copy_.queue->first);
        for (std::uint64_t c = 0; c < copy_.clusters; ++c) {
            Packed words;
            for (std::uint64_t w = 0; w < packed_words; ++w) words[w] = t.read(copy_.centre[c * packed_words + w]);
            thread.copy.centres[c] = unpacked(words);
        }
        thread.copy.step = step;
        if constexpr (durasim::has_history) {
            durasim::report_read(centres_object, version_of_centres(copy_.centre, copy_.clusters, step, Reader{t}));
        }
    }

    void hand_in(Tx& t, Line& left, Outcome& outcome) const {
        Total& total = *copy_.total;
        [[maybe_unused]] std::uint64_t found = 0;
        if constexpr (durasim::has_history) found = version_of(total, outcome.step, Reader{t});
        const std::uint64_t points = t.read(total.points) + left.points;
        t.write(total.points, points);
        if (left.changed != 0) t.write(total.changed, t.read(total.changed) + left.changed);
        left.points = left.changed = 0;
        ++left.handed;
        outcome.completes = points == copy_.points;
        if constexpr (durasim::has_history) durasim::report_change(total_object, found, version_of(total, outcome.step, Reader{t}));
    }

    // The centres move, or, if the clustering is at its end, the next one begins.
    void close(Tx& t, std::uint64_t step) const {
        Queue& queue = *copy_.queue;
        Total& total = *copy_.total;
        [[maybe_unused]] std::uint64_t found[2] = {};
        if constexpr (durasim::has_history) {
            found[0] = version_of_centres(copy_.centre, copy_.clusters, step, Reader{t});
            found[1] = version_of(total, step, Reader{t});
        }
        const std::uint64_t steps = step + 1 - t.read(queue.first);
        const bool is_last = is_last_step(steps, t.read(total.changed), copy_.points, copy_.threshold_permille);
        if (is_last) {
            const std::uint64_t round = t.read(queue.round) + 1;
            write_centres(t, copy_.centre, first_centres(copy_.seed, round, copy_.clusters, points_));
            t.write(queue.first, step + 1);
            t.write(queue.round, round);
        }
        for (std::uint64_t c = 0; c < copy_.clusters; ++c) {
            Sum& sum = copy_.sum[c];
            [[maybe_unused]] std::uint64_t found_sum = 0;
            if constexpr (durasim::has_history) found_sum = version_of(sum, Reader{t});
            const std::uint64_t count = t.read(sum.count);
            if (!is_last && count != 0) {
                Place centre;
                for (std::uint64_t d = 0; d < dimensions; ++d) centre[d] = static_cast<std::uint16_t>(t.read(sum.sum[d]) / count);
                const Packed words = packed(centre);
                for (std::uint64_t w = 0; w < packed_words; ++w) t.write(copy_.centre[c * packed_words + w], words[w]);
            }
            t.write(sum.step, static_cast<std::uint32_t>(step + 1));
            t.write(sum.count, 0);
            for (std::uint32_t& word : sum.sum) t.write(word, 0);
            if constexpr (durasim::has_history) durasim::report_change(sum_object(c), found_sum, version_of(sum, Reader{t}));
        }
        t.write(queue.step, step + 1);
        t.write(queue.next, 0);
        t.write(total.points, 0);
        t.write(total.changed, 0);
        if constexpr (durasim::has_history) {
            durasim::report_change(centres_object, found[0], version_of_centres(copy_.centre, copy_.clusters, step + 1, Reader{t}));
            durasim::report_change(total_object, found[1], version_of(total, step + 1, Reader{t}));
        }
    }

    // Takes the points of a thread that has no more operations to do. Where none is known for such, though all others wait, it
    // takes those of any thread: one of them has to go on. A thread that came too late for the step has nothing to do.
    void take_over(Tx& t, Thread& thread, Line& left, std::uint64_t victim, Outcome& outcome) const {
        ++left.handed;
        outcome.relieves = victim != nobody;
        for (std::uint64_t i = 0; thread.waits && victim == nobody && i < copy_.threads; ++i) {
            if (t.read(copy_.line[i].points) != 0) victim = i;
        }
        if (victim == nobody) return;
        Line& line = copy_.line[victim];
        [[maybe_unused]] std::uint64_t found = 0;
        if constexpr (durasim::has_history) found = version_of(line, Reader{t});
        if (t.read(line.points) == 0) return durasim::report_read(durasim::progress_object(victim), found);
        for (auto word : {&Line::next, &Line::end, &Line::points, &Line::changed}) {
            left.*word = t.read(line.*word);
            t.write(line.*word, 0);
        }
        copy_centres(t, thread, outcome.step);
        if constexpr (durasim::has_history) durasim::report_change(durasim::progress_object(victim), found, version_of(line, Reader{t}));
    }

    std::vector<Place> points_;
    Clustering* clustering_ = nullptr;
    Clustering copy_{};                      // what does not change once all points are there
    std::unique_ptr<durasim::TxLock> lock_;  // for all transactions; a single thread needs none
    std::vector<Line> lines_;                // of each thread: what the pool must hold
    Copy begun_;                             // when the run began
    std::unique_ptr<Presence[]> presence_;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ends_;  // operations after which a thread does nothing for a while, or at all
    std::atomic<std::uint64_t> step_ = 0;                        // the newest that is known to be open
};

// Whether the root object is one that its parts can be looked for by.
bool is_possible(const Clustering* clustering) {
    return clustering->points != 0 && clustering->points <= points_max && clustering->ready <= clustering->points &&
           clustering->clusters != 0 && clustering->clusters <= clusters_max && clustering->threads != 0 &&
           clustering->threads <= durasim::threads_max && clustering->threshold_permille <= 1000;
}

// Calls each(block, bytes) for all that belongs to the root object; whether that always said so.
template <class Each>
bool for_parts(const Clustering* clustering, Each&& each) {
    return each(clustering->point, clustering->points * sizeof(Point)) && each(clustering->centre, clustering->clusters * sizeof(Packed)) &&
           each(clustering->sum, clustering->clusters * sizeof(Sum)) && each(clustering->queue, sizeof(Queue)) &&
           each(clustering->total, sizeof(Total)) && each(clustering->line, clustering->threads * sizeof(Line));
}

void Kmeans::dump(const Pool& pool, durasim::Dump& dump) {
    const Clustering* clustering = pool.root<Clustering>();
    if (!durasim::can_be_block(pool, clustering, sizeof(Clustering))) return dump.note_damage();
    dump.add(durasim::root_object, clustering->kind);
    dump.add(durasim::populated_object, clustering->ready);
    const auto is_block = [&](const void* block, std::uint64_t bytes) { return durasim::can_be_block(pool, block, bytes); };
    if (!is_possible(clustering) || !for_parts(clustering, is_block)) return dump.note_damage();
    const auto read = [](const auto& place) { return place; };
    for (std::uint64_t i = 0; i < clustering->ready; ++i) dump.add(i, version_of(clustering->point[i], read));
    for (std::uint64_t c = 0; c < clustering->clusters; ++c) dump.add(sum_object(c), version_of(clustering->sum[c], read));
    const std::uint64_t step = clustering->queue->step;
    dump.add(queue_object, version_of(*clustering->queue, read));
    dump.add(total_object, version_of(*clustering->total, step, read));
    dump.add(centres_object, version_of_centres(clustering->centre, clustering->clusters, step, read));
    for (std::uint64_t i = 0; i < clustering->threads; ++i) dump.add(durasim::progress_object(i), version_of(clustering->line[i], read));
}

// The points that are claimed and not added, and the number of transactions of each kind.
Line check_lines(const Clustering* clustering, std::vector<bool>& pending) {
    const Queue& queue = *clustering->queue;
    Line all{};
    for (std::uint64_t i = 0; i < clustering->threads; ++i) {
        const Line& line = clustering->line[i];
        for (auto word : {&Line::added, &Line::claimed, &Line::handed, &Line::closed}) {
            if (line.*word >> durasim::operation_bits != 0) DURASIM_VIOLATION("thread %llu has an impossible count", static_cast<Long>(i));
            all.*word += line.*word;
        }
        if (line.next > line.end || line.end > clustering->points || line.points > queue.next || line.changed > line.points ||
            line.end - line.next > std::min<std::uint64_t>(chunk, line.points)) {
            DURASIM_VIOLATION("thread %llu has an impossible number of points", static_cast<Long>(i));
        }
        for (std::uint64_t p = line.next; p < line.end; ++p) {
            if (p >= queue.next || pending[p]) DURASIM_VIOLATION("point %llu is claimed by two, or by mistake", static_cast<Long>(p));
            pending[p] = true;
        }
        all.points += line.points;
        all.changed += line.changed;
    }
    return all;
}

// The counts say how many steps there were. All of them are repeated; then the pool holds the centres that follow, and of the
// open step what the points that were added to it leave.
std::uint64_t Kmeans::check(const Pool& pool) {
    Audit audit(pool);
    if (audit.problem() != nullptr) DURASIM_VIOLATION("%s", audit.problem());
    const Clustering* clustering = pool.root<Clustering>();
    if (!audit.claim(clustering, sizeof(Clustering))) DURASIM_VIOLATION("the root object is not allocated");
    if (clustering->kind != kind_of_root) DURASIM_VIOLATION("the root object is not a clustering");
    if (!is_possible(clustering)) DURASIM_VIOLATION("the clustering has impossible sizes");
    if (!for_parts(clustering, [&](const void* block, std::uint64_t bytes) { return audit.claim(block, bytes); })) {
        DURASIM_VIOLATION("what belongs to the root object is not allocated");
    }
    if (audit.lines_leaked() != 0) DURASIM_VIOLATION("%llu lines are leaked", static_cast<Long>(audit.lines_leaked()));

    const Queue& queue = *clustering->queue;
    const Total& total = *clustering->total;
    const std::uint64_t count = clustering->points;
    const auto chunks = [](std::uint64_t points) { return (points + chunk - 1) / chunk; };
    if (queue.next > count) DURASIM_VIOLATION("the queue has an impossible end");
    std::vector<bool> pending(count);
    const Line all = check_lines(clustering, pending);
    const auto left = static_cast<std::uint64_t>(std::count(pending.begin(), pending.end(), true));
    if (all.closed != queue.step || all.added != queue.step * count + queue.next - left ||
        all.claimed != queue.step * chunks(count) + chunks(queue.next) || total.points + all.points != queue.next) {
        DURASIM_VIOLATION("step %llu with %llu claimed points is not what the threads have done", static_cast<Long>(queue.step),
                          static_cast<Long>(queue.next));
    }
    if (all.finished() != 0 && clustering->ready != count) DURASIM_VIOLATION("there were operations before all points were there");

    const std::vector<Place> points = make_points(clustering->seed, count);
    Model model(clustering->seed, clustering->clusters, clustering->threshold_permille, points);
    while (model.step() < queue.step) model.next_step();
    if (queue.first != model.first() || queue.round != model.round()) DURASIM_VIOLATION("another clustering should be at work");
    for (std::uint64_t c = 0; c < clustering->clusters; ++c) {
        const Packed words = packed(model.centres()[c]);
        if (!std::equal(words.begin(), words.end(), clustering->centre + c * packed_words)) {
            DURASIM_VIOLATION("centre %llu is not where %llu steps lead it", static_cast<Long>(c), static_cast<Long>(queue.step));
        }
    }
    std::vector<Sum> sums(clustering->clusters);
    std::uint64_t changed = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
        const Packed words = i < clustering->ready ? packed(points[i]) : Packed{};
        std::uint64_t member = queue.step == 0 ? 0 : member_of(queue.step - 1, model.member_before(i));
        if (i < queue.next && !pending[i]) {
            member = member_of(queue.step, model.member(i));
            changed += model.changes(i);
            Sum& sum = sums[model.member(i)];
            ++sum.count;
            for (std::uint64_t d = 0; d < dimensions; ++d) sum.sum[d] += points[i][d];
        }
        const Point& point = clustering->point[i];
        if (!std::equal(words.begin(), words.end(), point.coordinate) || point.member != member) {
            DURASIM_VIOLATION("point %llu is torn, or not in its cluster", static_cast<Long>(i));
        }
    }
    for (std::uint64_t c = 0; c < clustering->clusters; ++c) {
        const Sum& sum = clustering->sum[c];
        if (sum.step != queue.step || sum.count != sums[c].count || !std::equal(sum.sum, sum.sum + dimensions, sums[c].sum)) {
            DURASIM_VIOLATION("the sums of cluster %llu are not those of its points", static_cast<Long>(c));
        }
    }
    if (total.changed + all.changed != changed) {
        DURASIM_VIOLATION("%llu points changed their clusters, but %llu are counted", static_cast<Long>(changed),
                          static_cast<Long>(total.changed + all.changed));
    }
    return clustering->ready + all.finished();
}

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<Kmeans>(argc, argv); }
