// The n-th operation of a thread, in workloads whose threads each own the keys that they have inserted: a
// search, an insertion, an update or a removal of an own key, by percentages.
//
// A thread owns an equal part of what populating has made and what it inserts. It removes the oldest key it has, so that
// its keys are always a range of their sequence; it searches and updates any of them. With no key left it inserts; with as many
// as it may have it updates one where it would insert.
#ifndef DURASIM_WORKLOADS_KEYED_STEPS_H
#define DURASIM_WORKLOADS_KEYED_STEPS_H

#include <cstdint>

#include "durasim/random.h"
#include "workloads/harness.h"

namespace durasim {

enum class StepKind { insert, search, update, erase };

struct Percentages {
    std::uint64_t search, update, erase;  // the rest are insertions

    bool is_insertion_only() const { return search == 0 && update == 0 && erase == 0; }
    bool are_possible() const { return search <= 100 && update <= 100 && erase <= 100 && search + update + erase <= 100; }
    std::uint64_t insert() const { return 100 - search - update - erase; }
};

struct Step {
    StepKind kind;
    std::uint64_t place;  // in the sequence of the thread's keys
    std::uint64_t key;
    std::uint64_t stamp;  // what the content of a key is derived from: 0 for an insertion, else the number of the update
};

// The key of a thread's n-th insertion. Different operations give different keys.
inline std::uint64_t key_of(std::uint64_t seed, std::uint64_t thread, std::uint64_t number) {
    return mix(mix(seed) + operation_of(thread, number));
}

// Word `index` of what an operation gives a key.
inline std::uint64_t word_of(std::uint64_t key, std::uint64_t stamp, std::uint64_t index) {
    return mix((key ^ 0xD1B54A32D192ED03u) + stamp * 0x9E3779B97F4A7C15u + index * 0x632BE59BD9B4E019u);
}

// The largest number of keys of a thread.
struct NoLimit {
    static constexpr bool exists() { return false; }
    static constexpr bool is_reached(std::uint64_t) { return false; }
};
struct ItemsMax {
    std::uint64_t max = 0;  // 0: any number

    bool exists() const { return max != 0; }
    bool is_reached(std::uint64_t live) const { return max != 0 && live >= max; }
};

template <class Limit>
class StepsWithin {
public:
    // `populated` items are populated before the first operation of any thread.
    StepsWithin(std::uint64_t seed, const Percentages& percentages, std::uint64_t thread, std::uint64_t threads, std::uint64_t populated,
                Limit limit = {})
        : seed_(seed),
          percentages_(percentages),
          limit_(limit),
          thread_(thread),
          threads_(threads),
          populated_(thread == 0 ? populated : 0),
          share_(share_of(populated, threads, thread)) {}

    std::uint64_t thread() const { return thread_; }
    // Operations; those of the first thread begin with the populating ones.
    std::uint64_t finished() const { return finished_; }
    bool is_populating() const { return finished_ < populated_; }

    // The keys that are there: a range of the thread's sequence.
    std::uint64_t oldest() const { return erased_; }
    std::uint64_t end() const { return share_ + inserted_; }

    std::uint64_t key_at(std::uint64_t place) const {
        if (place < share_) return key_of(seed_, 0, place * threads_ + thread_);
        return key_of(seed_, thread_, populated_ + place - share_);
    }

    Step next() const {
        if (percentages_.is_insertion_only() && !limit_.exists()) return {StepKind::insert, inserted_, key_of(seed_, thread_, inserted_), 0};
        return choose();
    }

    // `step` was the next one and is done.
    void finish(const Step& step) {
        if (!is_populating()) {
            inserted_ += step.kind == StepKind::insert;
            erased_ += step.kind == StepKind::erase;
        }
        ++finished_;
    }

private:
    [[gnu::noinline]] Step choose() const {
        if (is_populating()) return {StepKind::insert, 0, key_of(seed_, 0, finished_), 0};
        Random random(mix(seed_) + operation_of(thread_, finished_) * 0x632BE59BD9B4E019u);
        const std::uint64_t percent = random.below(100), live = end() - oldest();
        if (live == 0) return insertion();
        const bool inserts = percent >= percentages_.search + percentages_.update + percentages_.erase;
        if (inserts && !limit_.is_reached(live)) return insertion();
        if (!inserts && percent >= percentages_.search + percentages_.update) return {StepKind::erase, oldest(), key_at(oldest()), 0};
        const std::uint64_t place = oldest() + random.below(live);
        if (percent >= percentages_.search) return {StepKind::update, place, key_at(place), finished_ + 1};
        return {StepKind::search, place, key_at(place), 0};
    }

    Step insertion() const { return {StepKind::insert, end(), key_at(end()), 0}; }

    std::uint64_t seed_;
    Percentages percentages_;
    [[no_unique_address]] Limit limit_;
    std::uint64_t thread_;
    std::uint64_t threads_;
    std::uint64_t populated_;  // of the thread's operations
    std::uint64_t share_;      // of the populated items, which head its sequence
    std::uint64_t finished_ = 0;
    std::uint64_t inserted_ = 0;
    std::uint64_t erased_ = 0;
};

using Steps = StepsWithin<NoLimit>;

}  // namespace durasim

#endif
