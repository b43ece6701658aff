// The n-th operation of a thread that has a list of its own, in workloads over lists of objects.
//
// The content of the list before the operation follows from the operations before it, so that indices can be drawn from its
// length. The element that was inserted last is never removed: then no content of a list comes again, and a version of it
// stands for one moment (durasim/history.h). Where there is no other element a removal becomes an insertion.
//
// Populating is done by the first thread for all lists, one list after the other, in blocks that double: each is one
// operation, and a list of n elements takes about log2(n) of them. An operation counts as many as it has items.
#ifndef DURASIM_WORKLOADS_OBJECT_LIST_STEPS_H
#define DURASIM_WORKLOADS_OBJECT_LIST_STEPS_H

#include <algorithm>
#include <cstdint>

#include "durasim/random.h"
#include "workloads/harness.h"
#include "workloads/keyed_steps.h"

namespace durasim {

struct ListSettings {
    std::uint64_t seed;
    std::uint64_t threads;
    std::uint64_t populated;  // items of all lists together
    Percentages percentages;
};

struct ListStep {
    bool is_populating;
    StepKind kind;
    std::uint64_t list;
    std::uint64_t index;  // of the first element that it is about
    std::uint64_t items;  // that it appends, if it populates; else 1
    std::uint64_t id;     // of what it inserts
    std::uint64_t stamp;  // of an update; what it writes is derived from it
};

// The id of an item that populating makes.
inline std::uint64_t populated_id(const ListSettings& settings, std::uint64_t item) { return key_of(settings.seed, 0, item); }

// The populating operation that begins with this item.
inline ListStep populating_step(const ListSettings& settings, std::uint64_t item) {
    std::uint64_t list = 0;
    while (share_before(settings.populated, settings.threads, list + 1) <= item) ++list;
    const std::uint64_t index = item - share_before(settings.populated, settings.threads, list);
    const std::uint64_t left = share_of(settings.populated, settings.threads, list) - index;
    return {true, StepKind::insert, list, index, std::min(left, std::max<std::uint64_t>(index, 1)), populated_id(settings, item), 0};
}

class ListSteps {
public:
    ListSteps(const ListSettings& settings, std::uint64_t thread)
        : settings_(settings),
          thread_(thread),
          populating_(thread == 0 ? settings.populated : 0),
          length_(share_of(settings.populated, settings.threads, thread)),
          newest_(length_ - (length_ != 0)) {}

    std::uint64_t thread() const { return thread_; }
    // Items that it has populated and operations.
    std::uint64_t finished() const { return finished_; }
    bool is_populating() const { return finished_ < populating_; }
    // Of its list, when populating has ended.
    std::uint64_t length() const { return length_; }

    [[gnu::noinline]] ListStep next() const {
        if (is_populating()) return populating_step(settings_, finished_);
        Random random(mix(settings_.seed) + operation_of(thread_, finished_) * 0x632BE59BD9B4E019u);
        const Percentages& percentages = settings_.percentages;
        const std::uint64_t percent = random.below(100);
        if (length_ == 0 || percent >= percentages.search + percentages.update + percentages.erase) return insertion(random);
        if (percent < percentages.search) return own(StepKind::search, random.below(length_), 0);
        if (percent < percentages.search + percentages.update) return own(StepKind::update, random.below(length_), finished_ + 1);
        if (length_ == 1) return insertion(random);
        const std::uint64_t index = random.below(length_ - 1);
        return own(StepKind::erase, index + (index >= newest_), 0);
    }

    // `step` was the next one and is done.
    void finish(const ListStep& step) {
        finished_ += step.items;
        if (step.is_populating) return;
        if (step.kind == StepKind::insert) {
            ++length_;
            newest_ = step.index;
        } else if (step.kind == StepKind::erase) {
            --length_;
            newest_ -= step.index < newest_;
        }
    }

private:
    ListStep own(StepKind kind, std::uint64_t index, std::uint64_t stamp) const { return {false, kind, thread_, index, 1, 0, stamp}; }

    ListStep insertion(Random& random) const {
        ListStep step = own(StepKind::insert, random.below(length_ + 1), 0);
        step.id = key_of(settings_.seed, thread_, finished_);
        return step;
    }

    ListSettings settings_;
    std::uint64_t thread_;
    std::uint64_t populating_;  // items that it populates before its first operation
    std::uint64_t length_;
    std::uint64_t newest_;  // index of the element that was inserted last
    std::uint64_t finished_ = 0;
};

}  // namespace durasim

#endif
