// durasim-workload: huge — artificial huge transactions: each one reads, modifies and writes a run of consecutive lines
//
// The "artificial huge transactions" of Hercules (TECS'23, section 5.2: 1k to 60k consecutive lines, read-modify-write). A
// transaction takes --lines-per-tx consecutive lines of a region of --populate lines, from a random one on, and after the
// last line continues with the first. In each line it counts itself, adds a number of its own to a sum, and seals both: so a
// transaction with some lines missing shows, and so does half a line. It modifies these lines and no other.
//
// Several threads lock the sections of the region that their run touches, in ascending order; each also counts its
// transactions, on a line of its own. Software needs a log for the longest transaction (--log-bytes, 80 bytes for a line).
#include <cstdint>
#include <memory>
#include <vector>

#include "durasim/random.h"
#include "structures/blocks.h"
#include "workloads/harness.h"

namespace {

using durasim::Arguments;
using durasim::Audit;
using durasim::Long;
using durasim::Pool;
using durasim::Progress;
using durasim::Tx;

constexpr std::uint64_t kind_of_root = 0x65677568;  // "huge"
constexpr unsigned fillings = 4;

struct alignas(64) Line {
    std::uint64_t number;
    std::uint64_t count;  // of transactions
    std::uint64_t sum;    // of their amounts
    std::uint64_t filling[fillings];
    std::uint64_t seal;
};
static_assert(sizeof(Line) == durasim::line_bytes);

struct alignas(64) Region {
    std::uint64_t kind;
    std::uint64_t seed;
    std::uint64_t lines;
    std::uint64_t ready;  // lines that have been filled in
    std::uint64_t lines_per_tx;
    std::uint64_t threads;
    Line* line;
    Progress* progress;  // of each thread; null for a single one
};
static_assert(sizeof(Region) == durasim::line_bytes);

std::uint64_t filling_of(std::uint64_t seed, std::uint64_t line, unsigned word) {
    return durasim::mix(durasim::mix(seed + line) + word);
}
std::uint64_t seal_of(std::uint64_t seed, std::uint64_t line, std::uint64_t count, std::uint64_t sum) {
    return durasim::mix(durasim::mix(durasim::mix(seed ^ line) - count) + sum);
}

// The effect of the n-th transaction of a thread: the start of its run, and what it adds.
struct Change {
    std::uint64_t first, amount;
};

Change change_of(std::uint64_t seed, std::uint64_t thread, std::uint64_t number, std::uint64_t lines) {
    durasim::Random random(durasim::mix(seed) + durasim::operation_of(thread, number) * 0x632BE59BD9B4E019u);
    const std::uint64_t first = random.below(lines);
    return {first, random.next() | 1};
}

class Huge {
public:
    static std::uint64_t arenas(const Arguments&) { return 1; }

    static std::uint64_t pool_bytes(const Arguments& arguments) {
        return arguments.populate * sizeof(Line) + durasim::block_bytes(arguments.threads * sizeof(Progress)) +
               64 * durasim::line_bytes;
    }

    Huge(Pool& pool, const Arguments& arguments) {
        if (arguments.populate == 0 || arguments.lines_per_tx > arguments.populate) {
            durasim::fail(durasim::exit_usage,
                          "huge: a transaction of --lines-per-tx %llu needs at least so many lines, not --populate %llu",
                          static_cast<Long>(arguments.lines_per_tx), static_cast<Long>(arguments.populate));
        }
        const std::uint64_t lines_per_tx = arguments.lines_per_tx == 0 ? arguments.populate : arguments.lines_per_tx;
        region_ = pool.root<Region>();
        if (region_ == nullptr) {
            make(pool, arguments, lines_per_tx);
            region_ = pool.root<Region>();
        }
        if (region_->kind != kind_of_root) durasim::fail(durasim::exit_usage, "huge: the pool belongs to another workload");
        if (region_->seed != arguments.seed || region_->lines != arguments.populate || region_->lines_per_tx != lines_per_tx ||
            region_->threads != arguments.threads) {
            durasim::fail(durasim::exit_usage,
                          "huge: the pool was made with --seed %llu --populate %llu --lines-per-tx %llu --threads %llu; use these",
                          static_cast<Long>(region_->seed), static_cast<Long>(region_->lines),
                          static_cast<Long>(region_->lines_per_tx), static_cast<Long>(region_->threads));
        }
        seed_ = region_->seed;
        lines_ = region_->lines;
        lines_per_tx_ = region_->lines_per_tx;
        for (std::uint64_t thread = 0; thread < region_->threads; ++thread) finished_.push_back(counted_for(region_, thread));
        if (region_->threads > 1) {
            section_lines_ = (lines_ + arguments.stripes - 1) / arguments.stripes;
            sections_ = (lines_ + section_lines_ - 1) / section_lines_;
            locks_ = std::make_unique<durasim::TxLock[]>(sections_);
        }
    }

    std::uint64_t populated() const { return region_->ready; }

    struct Thread {
        std::uint64_t number;
        std::uint64_t finished;  // transactions
    };

    Thread enter(std::uint64_t number) const { return {number, finished_[number]}; }
    void leave(const Thread& thread) { finished_[thread.number] = thread.finished; }

    void populate_one(Thread&) {
        durasim::tx([&](Tx& t) {
            const std::uint64_t number = t.read(region_->ready);
            Line& line = region_->line[number];
            t.write(line.number, number);
            t.write(line.count, 0);
            t.write(line.sum, 0);
            for (unsigned w = 0; w < fillings; ++w) t.write(line.filling[w], filling_of(seed_, number, w));
            t.write(line.seal, seal_of(seed_, number, 0, 0));
            t.write(region_->ready, number + 1);
            if constexpr (durasim::has_history) {
                durasim::report_change(number, 0, version_in(t, line));
                durasim::report_change(durasim::populated_object, number, number + 1);
            }
        });
    }

    void operation(Thread& thread) {
        const Change change = change_of(seed_, thread.number, thread.finished, lines_);
        for (std::uint64_t s = 0; s < sections_; ++s) {
            if (touches(change.first, s)) locks_[s].lock();
        }
        durasim::tx([&](Tx& t) {
            for (std::uint64_t i = 0, at = change.first; i < lines_per_tx_; ++i, at = at + 1 == lines_ ? 0 : at + 1) {
                Line& line = region_->line[at];
                [[maybe_unused]] std::uint64_t found = 0;
                if constexpr (durasim::has_history) found = version_in(t, line);
                const std::uint64_t count = t.read(line.count) + 1, sum = t.read(line.sum) + change.amount;
                t.write(line.count, count);
                t.write(line.sum, sum);
                t.write(line.seal, seal_of(seed_, at, count, sum));
                if constexpr (durasim::has_history) durasim::report_change(at, found, version_in(t, line));
            }
            if (region_->progress == nullptr) return;
            if constexpr (durasim::has_history) {
                const std::uint64_t finished = t.read(region_->progress[thread.number].finished);
                durasim::report_change(durasim::progress_object(thread.number), finished, thread.finished + 1);
            }
            t.write(region_->progress[thread.number].finished, thread.finished + 1);
        });
        for (std::uint64_t s = sections_; s-- > 0;) {
            if (touches(change.first, s)) locks_[s].unlock();
        }
        ++thread.finished;
    }

    void compare_with_model() const {
        // The check has compared every line with what the counts say; here remains whether these are right.
        for (std::uint64_t i = 0; i < finished_.size(); ++i) {
            if (counted_for(region_, i) != finished_[i]) {
                DURASIM_VIOLATION("thread %llu made %llu transactions, but the pool says %llu", static_cast<Long>(i),
                                  static_cast<Long>(finished_[i]), static_cast<Long>(counted_for(region_, i)));
            }
        }
    }

    void print_result() const {
        std::uint64_t transactions = 0;
        for (const std::uint64_t finished : finished_) transactions += finished;
        std::printf("lines=%llu lines_per_tx=%llu transactions=%llu", static_cast<Long>(lines_), static_cast<Long>(lines_per_tx_),
                    static_cast<Long>(transactions));
    }

    static std::uint64_t check(const Pool& pool);

    static void dump(const Pool& pool, durasim::Dump& dump) {
        const Region* region = pool.root<Region>();
        if (!durasim::can_be_block(pool, region, sizeof(Region))) return dump.note_damage();
        dump.add(durasim::root_object, region->kind);
        dump.add(durasim::populated_object, region->ready);
        const std::uint64_t ready = region->ready, threads = region->threads;
        if (ready > pool.data_bytes() || threads > durasim::threads_max ||
            !durasim::can_be_block(pool, region->line, ready * sizeof(Line))) {
            return dump.note_damage();
        }
        for (std::uint64_t i = 0; i < ready; ++i) {
            dump.add(i, durasim::version_of(reinterpret_cast<const std::uint64_t*>(&region->line[i]), sizeof(Line) / 8));
        }
        if (region->progress == nullptr) return;
        if (!durasim::can_be_block(pool, region->progress, threads * sizeof(Progress))) return dump.note_damage();
        for (std::uint64_t i = 0; i < threads; ++i) dump.add(durasim::progress_object(i), region->progress[i].finished);
    }

private:
    static void make(Pool& pool, const Arguments& arguments, std::uint64_t lines_per_tx) {
        durasim::tx([&](Tx& t) {
            auto* region = static_cast<Region*>(t.allocate(sizeof(Region)));
            t.write(region->kind, kind_of_root);
            t.write(region->seed, arguments.seed);
            t.write(region->lines, arguments.populate);
            t.write(region->ready, 0);
            t.write(region->lines_per_tx, lines_per_tx);
            t.write(region->threads, arguments.threads);
            t.write(region->line, static_cast<Line*>(t.allocate(arguments.populate * sizeof(Line))));
            Progress* progress = nullptr;
            if (arguments.threads > 1) {
                progress = static_cast<Progress*>(t.allocate(arguments.threads * sizeof(Progress)));
                for (std::uint64_t i = 0; i < arguments.threads; ++i) t.write(progress[i].finished, 0);
            }
            t.write(region->progress, progress);
            pool.set_root(t, region);
            if constexpr (durasim::has_history) durasim::report_change(durasim::root_object, 0, kind_of_root);
        });
    }

    // Whether the run from line `first` on goes into a section.
    bool touches(std::uint64_t first, std::uint64_t section) const {
        const std::uint64_t begin = section * section_lines_;
        const std::uint64_t end = begin + section_lines_ < lines_ ? begin + section_lines_ : lines_;
        const std::uint64_t last = first + lines_per_tx_;  // after it; beyond the region if the run goes round
        return (begin < last && first < end) || (last > lines_ && begin < last - lines_);
    }

    static std::uint64_t counted_for(const Region* region, std::uint64_t thread) {
        if (region->progress != nullptr) return region->progress[thread].finished;
        std::uint64_t counts = 0;
        for (std::uint64_t i = 0; i < region->ready; ++i) counts += region->line[i].count;
        return counts / region->lines_per_tx;
    }

    // An object is a line, its version a hash over it: its count makes each one new.
    static std::uint64_t version_in(Tx& t, const Line& line) {
        std::uint64_t words[sizeof(Line) / 8];
        t.read_words(words, &line, sizeof words);
        return durasim::version_of(words, sizeof(Line) / 8);
    }

    Region* region_ = nullptr;
    std::uint64_t seed_ = 0;
    std::uint64_t lines_ = 0;
    std::uint64_t lines_per_tx_ = 0;
    std::unique_ptr<durasim::TxLock[]> locks_;  // of the sections; a single thread needs none
    std::uint64_t section_lines_ = 0;
    std::uint64_t sections_ = 0;
    std::vector<std::uint64_t> finished_;  // by each thread: what the pool must hold
};

std::uint64_t Huge::check(const Pool& pool) {
    Audit audit(pool);
    if (audit.problem() != nullptr) DURASIM_VIOLATION("%s", audit.problem());
    const Region* region = pool.root<Region>();
    if (!audit.claim(region, sizeof(Region))) DURASIM_VIOLATION("the root object is not allocated");
    if (region->kind != kind_of_root) DURASIM_VIOLATION("the root object is not a region");
    const std::uint64_t lines = region->lines, run = region->lines_per_tx;
    if (lines == 0 || lines > pool.data_bytes() / sizeof(Line) || region->ready > lines || run == 0 || run > lines ||
        region->threads == 0 || region->threads > durasim::threads_max || (region->threads == 1) != (region->progress == nullptr)) {
        DURASIM_VIOLATION("the region has impossible sizes");
    }
    if (!audit.claim(region->line, lines * sizeof(Line)) ||
        (region->progress != nullptr && !audit.claim(region->progress, region->threads * sizeof(Progress)))) {
        DURASIM_VIOLATION("what belongs to the root object is not allocated");
    }
    if (audit.lines_leaked() != 0) DURASIM_VIOLATION("%llu lines are leaked", static_cast<Long>(audit.lines_leaked()));

    // Every line is whole.
    std::uint64_t counts = 0;
    for (std::uint64_t i = 0; i < region->ready; ++i) {
        const Line& line = region->line[i];
        bool whole = line.number == i && line.seal == seal_of(region->seed, i, line.count, line.sum) &&
                     line.count >> durasim::operation_bits == 0;
        for (unsigned w = 0; w < fillings; ++w) whole = whole && line.filling[w] == filling_of(region->seed, i, w);
        if (!whole) DURASIM_VIOLATION("line %llu is torn", static_cast<Long>(i));
        counts += line.count;
    }
    if (!durasim::is_untouched(region->line + region->ready, (lines - region->ready) * sizeof(Line))) {
        DURASIM_VIOLATION("a line that populating has not reached is not empty");
    }
    if (counts % run != 0) DURASIM_VIOLATION("a part of a transaction is in the region");
    if (counts != 0 && region->ready != lines) DURASIM_VIOLATION("there were transactions before all lines were there");
    const std::uint64_t transactions = counts / run;

    // Replays the transactions: what each adds from its first line on, and takes away after its last.
    struct Content {
        std::uint64_t count, sum;
    };
    std::vector<Content> steps(lines);  // from one line to the next
    std::uint64_t finished = 0;
    for (std::uint64_t thread = 0; thread < region->threads; ++thread) {
        const std::uint64_t number = counted_for(region, thread);
        if (number > transactions) DURASIM_VIOLATION("thread %llu made more transactions than there were", static_cast<Long>(thread));
        for (std::uint64_t n = 0; n < number; ++n) {
            const Change change = change_of(region->seed, thread, n, lines);
            const auto add = [&](std::uint64_t line, std::uint64_t count, std::uint64_t amount) {
                steps[line].count += count;
                steps[line].sum += amount;
            };
            const std::uint64_t end = change.first + run;
            add(change.first, 1, change.amount);
            if (end > lines) add(0, 1, change.amount);
            if (end != lines) add(end > lines ? end - lines : end, ~std::uint64_t{0}, 0 - change.amount);
        }
        finished += number;
    }
    if (finished != transactions) {
        DURASIM_VIOLATION("the lines count %llu transactions, but the threads %llu", static_cast<Long>(transactions),
                          static_cast<Long>(finished));
    }
    Content model{0, 0};
    for (std::uint64_t i = 0; i < region->ready; ++i) {
        model.count += steps[i].count;
        model.sum += steps[i].sum;
        if (region->line[i].count != model.count || region->line[i].sum != model.sum) {
            DURASIM_VIOLATION("line %llu is not that of %llu transactions", static_cast<Long>(i), static_cast<Long>(model.count));
        }
    }
    return region->ready + transactions;
}

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<Huge>(argc, argv); }
