// The n-th operation of a thread in the core workloads A to F of YCSB (Cooper, Silberstein, Tam, Ramakrishnan and
// Sears, "Benchmarking Cloud Serving Systems with YCSB", SoCC 2010).
#ifndef DURASIM_WORKLOADS_YCSB_STEPS_H
#define DURASIM_WORKLOADS_YCSB_STEPS_H

#include <cstdint>
#include <cstring>

#include "durasim/random.h"
#include "workloads/harness.h"
#include "workloads/zipfian.h"

namespace durasim::ycsb {

enum class Kind { read, update, insert, scan, modify };
enum Distribution : std::uint8_t { zipfian, latest, uniform };
inline constexpr const char* distribution_names[] = {"zipfian", "latest", "uniform"};
inline constexpr std::uint64_t scan_records_max = 100;

// Operations of 100; the distribution that goes with them.
struct Mix {
    char letter;
    std::uint8_t read, update, insert, scan, modify;
    Distribution distribution;
};
inline constexpr Mix mixes[] = {
    {'a', 50, 50, 0, 0, 0, zipfian}, {'b', 95, 5, 0, 0, 0, zipfian}, {'c', 100, 0, 0, 0, 0, zipfian},
    {'d', 95, 0, 5, 0, 0, latest},   {'e', 0, 0, 5, 95, 0, zipfian}, {'f', 50, 0, 0, 0, 50, zipfian},
};
inline constexpr std::uint64_t mixes_count = sizeof mixes / sizeof *mixes;

struct Step {
    Kind kind;
    std::uint64_t record;  // number of a populated record, or `populated` plus the number of the thread's insertion
    std::uint64_t key;
    std::uint64_t scan_records;  // at most
    std::uint64_t writer;        // what the record says of this operation, if it writes
};

// The state that all threads' choices depend on.
class Choices {
public:
    Choices(std::uint64_t seed, const Mix& mix, Distribution distribution, std::uint64_t populated)
        : seed_(seed), mix_(mix), distribution_(distribution), populated_(populated) {
        if (distribution != uniform) zipfian_ = Zipfian(populated);
        scrambled_ = Scrambled(populated);
    }

    std::uint64_t populated() const { return populated_; }
    const Mix& mix() const { return mix_; }

    // Keys are mixed, so that the order of the records is not that of their keys.
    std::uint64_t populated_key(std::uint64_t record) const { return key(0, record); }
    std::uint64_t inserted_key(std::uint64_t thread, std::uint64_t number) const { return key(thread + 1, number); }

    // Operation `number` of a thread that has inserted this many records.
    Step step(std::uint64_t thread, std::uint64_t number, std::uint64_t inserted) const {
        Random random(durasim::mix(seed_) + operation_of(thread, number) * 0x632BE59BD9B4E019u);
        std::uint64_t percent = random.below(100);
        Step step{kind_of(percent), populated_ + inserted, 0, 0, operation_of(thread, number) + 1};
        if (step.kind != Kind::insert) step.record = choose(random, inserted);
        if (step.kind == Kind::scan) step.scan_records = 1 + random.below(scan_records_max);
        step.key = step.record < populated_ ? populated_key(step.record) : inserted_key(thread, step.record - populated_);
        return step;
    }

private:
    std::uint64_t key(std::uint64_t series, std::uint64_t number) const {
        return durasim::mix(durasim::mix(seed_) + operation_of(series, number));
    }

    Kind kind_of(std::uint64_t percent) const {
        std::uint64_t end = mix_.read;
        if (percent < end) return Kind::read;
        if (percent < (end += mix_.update)) return Kind::update;
        if (percent < (end += mix_.insert)) return Kind::insert;
        return percent < end + mix_.scan ? Kind::scan : Kind::modify;
    }

    // Of the records that the thread knows to be there: the populated ones and, after them, its own.
    std::uint64_t choose(Random& random, std::uint64_t inserted) const {
        if (distribution_ == uniform) return random.below(populated_ + inserted);
        const std::uint64_t rank = zipfian_.rank(random.next());
        if (distribution_ == zipfian) return scrambled_[rank];
        return populated_ + inserted - 1 - rank;
    }

    std::uint64_t seed_;
    Mix mix_;
    Distribution distribution_;
    std::uint64_t populated_;
    Zipfian zipfian_;
    Scrambled scrambled_;
};

// The words of a record: how often it was updated, who wrote it last (0: populating), and a filling that depends on both.
inline constexpr std::uint64_t word_updates = 0, word_writer = 1, words_head = 2;

inline std::uint64_t filling(std::uint64_t key, std::uint64_t updates, std::uint64_t writer, std::uint64_t index) {
    return durasim::mix((key ^ writer) + updates * 0x9E3779B97F4A7C15u + index * 0xD1B54A32D192ED03u);
}

}  // namespace durasim::ycsb

#endif
