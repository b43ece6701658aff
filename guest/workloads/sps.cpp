// durasim-workload: sps — an array of pairs of 32-bit numbers, two random ones of which are swapped in each transaction
//
// The sps of TC (DAC'17: "randomly swap elements in an array"), with elements of 8 bytes, a key and a value. A transaction
// modifies the two lines where the elements lie, or one, and nothing else. (Elements of whole lines, as in the Array Swap of
// Hercules and the SPS of LAD, are those of array-swap.)
//
// So that no further line is needed to count the swaps, a line has six pairs and a count for each of the four threads of a
// team (structures/teams.h): how often a place in this line took part. With more than four threads each team swaps within its
// part of the lines. Threads lock the stripes of the two lines, the lower one first; no line belongs to two locks.
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "durasim/random.h"
#include "structures/blocks.h"
#include "structures/teams.h"
#include "workloads/harness.h"

namespace {

using durasim::Arguments;
using durasim::Audit;
using durasim::Long;
using durasim::Pool;
using durasim::Reader;
using durasim::Teams;
using durasim::Tx;

constexpr std::uint64_t kind_of_root = 0x737073;  // "sps"
constexpr std::uint64_t pairs_per_line = 6;

struct alignas(64) Line {
    std::uint64_t pair[pairs_per_line];  // the key in the lower half
    std::uint32_t by[durasim::team_max];
};
static_assert(sizeof(Line) == durasim::line_bytes);

struct alignas(64) Array {
    std::uint64_t kind;
    std::uint64_t seed;
    std::uint64_t length;
    std::uint64_t ready;  // elements that have been filled in
    std::uint64_t threads;
    Line* line;
};

constexpr std::uint64_t lines_for(std::uint64_t length) { return (length + pairs_per_line - 1) / pairs_per_line; }

std::uint64_t pair_of(std::uint64_t seed, std::uint64_t key) {
    return key | durasim::mix(durasim::mix(seed) + key) >> 32 << 32;
}

// A place by its line and the number in it.
struct Place {
    std::uint64_t line, index;
};

struct Choice {
    Place first, second;
};

// The number of places on the lines of a team: its last line may be the array's, which need not be full.
std::uint64_t places_of(const Teams& teams, std::uint64_t team, std::uint64_t length) {
    const std::uint64_t lines = lines_for(length), missing = lines * pairs_per_line - length;
    return teams.things_of(team) * pairs_per_line - ((lines - 1) % teams.count() == team ? missing : 0);
}

// The two places that the n-th swap of a thread takes.
Choice choose(std::uint64_t seed, const Teams& teams, std::uint64_t length, std::uint64_t thread, std::uint64_t n) {
    durasim::Random random(durasim::mix(seed) + durasim::operation_of(thread, n) * 0x632BE59BD9B4E019u);
    const std::uint64_t team = teams.team_of(thread), places = places_of(teams, team, length);
    const std::uint64_t first = random.below(places);
    std::uint64_t second = random.below(places - 1);
    if (second >= first) ++second;
    return {{teams.thing(team, first / pairs_per_line), first % pairs_per_line},
            {teams.thing(team, second / pairs_per_line), second % pairs_per_line}};
}

class Sps {
public:
    static std::uint64_t arenas(const Arguments&) { return 1; }

    static std::uint64_t pool_bytes(const Arguments& arguments) {
        return lines_for(arguments.populate) * sizeof(Line) + 64 * durasim::line_bytes;
    }

    Sps(Pool& pool, const Arguments& arguments) : teams_(arguments.threads, lines_for(arguments.populate)) {
        const std::uint64_t least = (teams_.count() - 1) * pairs_per_line + 2;
        if (arguments.populate < least || arguments.populate >> 32 != 0) {
            durasim::fail(durasim::exit_usage, "sps: %llu threads need --populate from %llu to 4294967295",
                          static_cast<Long>(arguments.threads), static_cast<Long>(least));
        }
        array_ = pool.root<Array>();
        if (array_ == nullptr) {
            make(pool, arguments);
            array_ = pool.root<Array>();
        }
        if (array_->kind != kind_of_root) durasim::fail(durasim::exit_usage, "sps: the pool belongs to another workload");
        if (array_->seed != arguments.seed || array_->length != arguments.populate || array_->threads != arguments.threads) {
            durasim::fail(durasim::exit_usage, "sps: the pool was made with --seed %llu --populate %llu --threads %llu; use these",
                          static_cast<Long>(array_->seed), static_cast<Long>(array_->length), static_cast<Long>(array_->threads));
        }
        seed_ = array_->seed;
        length_ = array_->length;
        for (std::uint64_t thread = 0; thread < array_->threads; ++thread) swaps_.push_back(counted_for(thread));
        if (array_->threads > 1) {
            stripes_ = arguments.stripes;
            locks_ = std::make_unique<durasim::TxLock[]>(stripes_);
        }
    }

    std::uint64_t populated() const { return array_->ready; }

    struct Thread {
        std::uint64_t number;
        std::uint64_t swaps;
    };

    Thread enter(std::uint64_t number) const { return {number, swaps_[number]}; }
    void leave(const Thread& thread) { swaps_[thread.number] = thread.swaps; }

    void populate_one(Thread&) {
        durasim::tx([&](Tx& t) {
            const std::uint64_t key = t.read(array_->ready);
            Line& line = array_->line[key / pairs_per_line];
            t.write(line.pair[key % pairs_per_line], pair_of(seed_, key));
            t.write(array_->ready, key + 1);
            if constexpr (durasim::has_history) {
                durasim::report_change(key, 0, version_of(line, key % pairs_per_line, Reader{t}));
                durasim::report_change(durasim::populated_object, key, key + 1);
            }
        });
    }

    void operation(Thread& thread) {
        const Choice choice = choose(seed_, teams_, length_, thread.number, thread.swaps);
        if (locks_ == nullptr) {
            swap_places(thread, choice);
            return;
        }
        const std::uint64_t a = choice.first.line % stripes_, b = choice.second.line % stripes_;
        const std::lock_guard lower(locks_[a < b ? a : b]);
        std::unique_lock<durasim::TxLock> upper;
        if (a != b) upper = std::unique_lock(locks_[a < b ? b : a]);
        swap_places(thread, choice);
    }

    void compare_with_model() const {
        // The check has replayed the swaps that the pool holds; here remains whether these are all that were made.
        for (std::uint64_t i = 0; i < swaps_.size(); ++i) {
            if (counted_for(i) != swaps_[i]) {
                DURASIM_VIOLATION("thread %llu made %llu swaps, but the pool says %llu", static_cast<Long>(i),
                                  static_cast<Long>(swaps_[i]), static_cast<Long>(counted_for(i)));
            }
        }
    }

    void print_result() const {
        std::uint64_t sum = 0;
        for (const std::uint64_t swaps : swaps_) sum += swaps;
        std::printf("elements=%llu swaps=%llu", static_cast<Long>(length_), static_cast<Long>(sum));
    }

    static std::uint64_t check(const Pool& pool);

    static void dump(const Pool& pool, durasim::Dump& dump) {
        const Array* array = pool.root<Array>();
        if (!durasim::can_be_block(pool, array, sizeof(Array))) return dump.note_damage();
        dump.add(durasim::root_object, array->kind);
        dump.add(durasim::populated_object, array->ready);
        const std::uint64_t ready = array->ready;
        if (ready > pool.data_bytes() || !durasim::can_be_block(pool, array->line, lines_for(ready) * sizeof(Line))) {
            return dump.note_damage();
        }
        for (std::uint64_t place = 0; place < ready; ++place) {
            const auto read = [](const auto& word) { return word; };
            dump.add(place, version_of(array->line[place / pairs_per_line], place % pairs_per_line, read));
        }
    }

private:
    static void make(Pool& pool, const Arguments& arguments) {
        durasim::tx([&](Tx& t) {
            auto* array = static_cast<Array*>(t.allocate(sizeof(Array)));
            t.write(array->kind, kind_of_root);
            t.write(array->seed, arguments.seed);
            t.write(array->length, arguments.populate);
            t.write(array->ready, 0);
            t.write(array->threads, arguments.threads);
            // Memory that was never given out before is zero: the lines count nothing.
            t.write(array->line, static_cast<Line*>(t.allocate(lines_for(arguments.populate) * sizeof(Line))));
            pool.set_root(t, array);
            if constexpr (durasim::has_history) durasim::report_change(durasim::root_object, 0, kind_of_root);
        });
    }

    // An object is a place. A pair comes to a place again and again; the counts of the line make each version new, so a swap
    // leaves a new version at each place of the line.
    template <class Read>
    static std::uint64_t version_of(const Line& line, std::uint64_t index, Read&& read) {
        durasim::Version version;
        version.take(read(line.pair[index]));
        for (const std::uint32_t& by : line.by) version.take(read(by));
        return version.value();
    }

    std::uint64_t counted_for(std::uint64_t thread) const {
        return teams_.sum(thread, [&](std::uint64_t line, std::uint64_t seat) { return array_->line[line].by[seat]; }) / 2;
    }

    void swap_places(Thread& thread, const Choice& choice) {
        Line& first = array_->line[choice.first.line];
        Line& second = array_->line[choice.second.line];
        const std::uint64_t seat = teams_.seat_of(thread.number);
        durasim::tx([&](Tx& t) {
            [[maybe_unused]] std::uint64_t found[2][pairs_per_line] = {};
            if constexpr (durasim::has_history) take_versions(t, choice, found);
            const std::uint64_t from_first = t.read(first.pair[choice.first.index]);
            const std::uint64_t from_second = t.read(second.pair[choice.second.index]);
            t.write(first.pair[choice.first.index], from_second);
            t.write(second.pair[choice.second.index], from_first);
            for (Line* line : {&first, &second}) t.write(line->by[seat], t.read(line->by[seat]) + 1);
            if constexpr (durasim::has_history) {
                std::uint64_t left[2][pairs_per_line] = {};
                take_versions(t, choice, left);
                for (std::uint64_t i = 0; i < pairs_per_line; ++i) {
                    if (left[0][i] != 0) durasim::report_change(choice.first.line * pairs_per_line + i, found[0][i], left[0][i]);
                    if (left[1][i] != 0) durasim::report_change(choice.second.line * pairs_per_line + i, found[1][i], left[1][i]);
                }
            }
        });
        ++thread.swaps;
    }

    // The versions of all places in the two lines, 0 where there is none; if it is one line, only once.
    void take_versions(Tx& t, const Choice& choice, std::uint64_t (&versions)[2][pairs_per_line]) const {
        const std::uint64_t lines[2] = {choice.first.line, choice.second.line};
        for (std::uint64_t l = 0; l < (lines[0] == lines[1] ? 1u : 2u); ++l) {
            for (std::uint64_t i = 0; i < pairs_per_line && lines[l] * pairs_per_line + i < length_; ++i) {
                versions[l][i] = version_of(array_->line[lines[l]], i, Reader{t});
            }
        }
    }

    Array* array_ = nullptr;
    Teams teams_;
    std::uint64_t seed_ = 0;
    std::uint64_t length_ = 0;
    std::unique_ptr<durasim::TxLock[]> locks_;  // of the stripes; a single thread needs none
    std::uint64_t stripes_ = 0;
    std::vector<std::uint64_t> swaps_;  // by each thread: what the pool must hold
};

// The counts give the number of swaps of each thread that the array holds. If one thread made them all, replaying them gives the key at
// each place. Where several threads met at a place, their order decides that; a half swap still shows: a key is then there
// twice.
std::uint64_t Sps::check(const Pool& pool) {
    Audit audit(pool);
    if (audit.problem() != nullptr) DURASIM_VIOLATION("%s", audit.problem());
    const Array* array = pool.root<Array>();
    if (!audit.claim(array, sizeof(Array))) DURASIM_VIOLATION("the root object is not allocated");
    if (array->kind != kind_of_root) DURASIM_VIOLATION("the root object is not an array");
    const std::uint64_t length = array->length;
    if (length < 2 || length > pool.data_bytes() || array->ready > length || array->threads == 0 ||
        array->threads > durasim::threads_max || length < (Teams::count_for(array->threads) - 1) * pairs_per_line + 2) {
        DURASIM_VIOLATION("the array has impossible sizes");
    }
    if (!audit.claim(array->line, lines_for(length) * sizeof(Line))) DURASIM_VIOLATION("the array is not allocated");
    if (audit.lines_leaked() != 0) DURASIM_VIOLATION("%llu lines are leaked", static_cast<Long>(audit.lines_leaked()));

    const Teams teams(array->threads, lines_for(length));
    std::vector<bool> seen(array->ready);
    for (std::uint64_t place = 0; place < array->ready; ++place) {
        const std::uint64_t pair = array->line[place / pairs_per_line].pair[place % pairs_per_line], key = pair & 0xffffffff;
        if (key >= array->ready || pair != pair_of(array->seed, key)) {
            DURASIM_VIOLATION("the pair at place %llu is torn", static_cast<Long>(place));
        }
        if (seen[key]) DURASIM_VIOLATION("key %llu is there twice", static_cast<Long>(key));
        seen[key] = true;
        if (key / pairs_per_line % teams.count() != place / pairs_per_line % teams.count()) {
            DURASIM_VIOLATION("key %llu is among the places of another team", static_cast<Long>(key));
        }
    }
    for (std::uint64_t place = array->ready; place < lines_for(length) * pairs_per_line; ++place) {
        if (array->line[place / pairs_per_line].pair[place % pairs_per_line] != 0) {
            DURASIM_VIOLATION("place %llu, which populating has not reached, is not empty", static_cast<Long>(place));
        }
    }
    const std::uint64_t swaps = teams.check(
        2, [&](std::uint64_t line, std::uint64_t seat) { return array->line[line].by[seat]; },
        [&](std::uint64_t thread, std::uint64_t n, auto&& take) {
            const Choice choice = choose(array->seed, teams, length, thread, n);
            take(choice.first.line);
            take(choice.second.line);
        });
    if (swaps != 0 && array->ready != length) DURASIM_VIOLATION("elements were swapped before all were there");
    if (array->threads > 1) return array->ready + swaps;

    std::vector<std::uint64_t> model(array->ready);
    for (std::uint64_t place = 0; place < model.size(); ++place) model[place] = place;
    for (std::uint64_t n = 0; n < swaps; ++n) {
        const Choice choice = choose(array->seed, teams, length, 0, n);
        std::swap(model[choice.first.line * pairs_per_line + choice.first.index],
                  model[choice.second.line * pairs_per_line + choice.second.index]);
    }
    for (std::uint64_t place = 0; place < model.size(); ++place) {
        const std::uint64_t key = array->line[place / pairs_per_line].pair[place % pairs_per_line] & 0xffffffff;
        if (key != model[place]) {
            DURASIM_VIOLATION("place %llu holds key %llu, but after %llu swaps it should hold %llu", static_cast<Long>(place),
                              static_cast<Long>(key), static_cast<Long>(swaps), static_cast<Long>(model[place]));
        }
    }
    return array->ready + swaps;
}

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<Sps>(argc, argv); }
