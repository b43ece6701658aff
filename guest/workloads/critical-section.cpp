// durasim-workload: critical-section — a control: pairs of words whose locks can be released before the transaction commits
//
// Each pair has a lock and two words; the first counts the operations on the pair. In one transaction an operation
// takes a random pair, changes its first word or both, and writes lines that belong to its thread alone. The lock is held
// until the commit has returned. With --release before-commit it is given back inside the transaction, when all stores are
// done: another thread then finds words that are not durable, and may commit first. If power fails then, its transaction
// is kept and the one that it depends on is lost. These are Figures 7b and 7a of LAD (S. Gupta, A. Daglis, B. Falsafi:
// Distributed Logless Atomic Durability with Persistent Memory, MICRO 2019).
//
// The fault is for designs that neither isolate nor abort transactions. Where other cores do not see the words before the
// commit, updates are lost even without a crash; and an abort may interrupt the release, so that the next is not woken.
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "durasim/random.h"
#include "workloads/harness.h"

namespace {

using durasim::Arguments;
using durasim::Audit;
using durasim::Long;
using durasim::Pool;
using durasim::Tx;

constexpr std::uint64_t kind_of_root = 0x6c61636974697263;  // "critical"
// Lines of a thread besides the one with its progress. A transaction writes some of them: commits that have more lines to
// flush take longer, so the later one may end first.
constexpr std::uint64_t notes_max = 6;
constexpr std::uint64_t own_lines = 1 + notes_max;

// A word that shares its line with no other.
struct alignas(64) Word {
    std::uint64_t value;
};

struct alignas(64) Table {
    std::uint64_t kind;
    std::uint64_t seed;
    std::uint64_t pairs;
    std::uint64_t ready;  // pairs that populating has reached
    std::uint64_t threads;
    Word* words;  // two of each pair
    Word* own;    // of each thread: how many operations it finished, then its notes
};

// The pair that a thread's n-th operation takes, and how many notes it writes.
struct Choice {
    std::uint64_t pair, notes;
};

Choice choice_of(std::uint64_t seed, std::uint64_t thread, std::uint64_t number, std::uint64_t pairs) {
    durasim::Random random(durasim::mix(seed) + durasim::operation_of(thread, number));
    const std::uint64_t pair = random.below(pairs);
    return {pair, random.below(notes_max + 1)};
}

// Whether the n-th operation on a pair changes its second word too, by any thread: so the count of a pair determines
// both words.
bool changes_both(std::uint64_t seed, std::uint64_t pair, std::uint64_t number) {
    return durasim::Random(durasim::mix(seed ^ (pair + 1)) + number).below(2) == 0;
}

// The second word of a pair after this many operations on it.
std::uint64_t second_word(std::uint64_t seed, std::uint64_t pair, std::uint64_t count) {
    while (count > 0 && !changes_both(seed, pair, count - 1)) --count;
    return durasim::mix(durasim::mix(seed + pair) + count);
}

// A thread's note after this many operations: the number of the last one that wrote it, from 1.
std::uint64_t note_of(std::uint64_t seed, std::uint64_t thread, std::uint64_t note, std::uint64_t finished, std::uint64_t pairs) {
    while (finished > 0 && choice_of(seed, thread, finished - 1, pairs).notes <= note) --finished;
    return finished;
}

// Numbers in the history: 0 and 1 are the words of the first pair.
constexpr std::uint64_t object_of(std::uint64_t pair, std::uint64_t word) { return 2 * pair + word; }
constexpr std::uint64_t note_object(std::uint64_t thread, std::uint64_t note) {
    return (std::uint64_t{1} << 48) + thread * notes_max + note;
}

class CriticalSection {
public:
    static std::uint64_t arenas(const Arguments&) { return 1; }

    static std::uint64_t pool_bytes(const Arguments& arguments) {
        return durasim::block_bytes(pairs_of(arguments) * 2 * sizeof(Word)) +
               durasim::block_bytes(arguments.threads * own_lines * sizeof(Word)) + 64 * durasim::line_bytes;
    }

    CriticalSection(Pool& pool, const Arguments& arguments) {
        table_ = pool.root<Table>();
        if (table_ == nullptr) {
            make(pool, arguments);
            table_ = pool.root<Table>();
        }
        if (table_->kind != kind_of_root) {
            durasim::fail(durasim::exit_usage, "critical-section: the pool belongs to another workload");
        }
        if (table_->seed != arguments.seed || table_->pairs != pairs_of(arguments) || table_->threads != arguments.threads) {
            durasim::fail(durasim::exit_usage,
                          "critical-section: the pool was made with --seed %llu --populate %llu --threads %llu; use these",
                          static_cast<Long>(table_->seed), static_cast<Long>(table_->pairs), static_cast<Long>(table_->threads));
        }
        seed_ = table_->seed;
        pairs_ = table_->pairs;
        releases_early_ = std::strcmp(arguments.release, "before-commit") == 0;
        finished_.resize(table_->threads);
        for (std::uint64_t i = 0; i < finished_.size(); ++i) finished_[i] = own(i)->value;
        if (table_->threads > 1) locks_ = std::make_unique<durasim::TxLock[]>(pairs_);
    }

    std::uint64_t populated() const { return table_->ready; }

    struct Thread {
        std::uint64_t number;
        std::uint64_t finished;  // operations
    };

    Thread enter(std::uint64_t number) const { return {number, finished_[number]}; }
    void leave(const Thread& thread) { finished_[thread.number] = thread.finished; }

    void populate_one(Thread&) {
        durasim::tx([&](Tx& t) {
            const std::uint64_t pair = t.read(table_->ready), second = second_word(seed_, pair, 0);
            t.write(words(pair)[0].value, 0);
            t.write(words(pair)[1].value, second);
            t.write(table_->ready, pair + 1);
            durasim::report_change(object_of(pair, 1), 0, second);
            durasim::report_change(durasim::populated_object, pair, pair + 1);
        });
    }

    void operation(Thread& thread) {
        const auto [pair, notes] = choice_of(seed_, thread.number, thread.finished, pairs_);
        std::unique_lock<durasim::TxLock> held;
        if (locks_ != nullptr) held = std::unique_lock(locks_[pair]);
        durasim::tx([&](Tx& t) {
            change(t, pair);
            take_notes(t, thread, notes);
            // An attempt that the machine aborts may have given the lock back already; the next one goes on without it.
            if (releases_early_ && held.owns_lock()) held.unlock();
        });
        ++thread.finished;
    }

    void compare_with_model() const {
        // The check has compared every word with what the counts in the pool say; here remains whether these are right.
        for (std::uint64_t i = 0; i < finished_.size(); ++i) {
            if (own(i)->value != finished_[i]) {
                DURASIM_VIOLATION("thread %llu finished %llu operations, but the pool says %llu", static_cast<Long>(i),
                                  static_cast<Long>(finished_[i]), static_cast<Long>(own(i)->value));
            }
        }
    }

    void print_result() const {
        std::uint64_t operations = 0;
        for (const std::uint64_t finished : finished_) operations += finished;
        std::printf("pairs=%llu operations=%llu", static_cast<Long>(pairs_), static_cast<Long>(operations));
    }

    static std::uint64_t check(const Pool& pool);

    static void dump(const Pool& pool, durasim::Dump& dump) {
        const Table* table = pool.root<Table>();
        if (!pool.holds(table, sizeof(Table))) return dump.note_damage();
        dump.add(durasim::root_object, table->kind);
        dump.add(durasim::populated_object, table->ready);
        const std::uint64_t ready = table->ready, threads = table->threads;
        if (ready > pool.data_bytes() || threads > durasim::threads_max ||
            !pool.holds(table->words, ready * 2 * sizeof(Word)) ||
            !pool.holds(table->own, threads * own_lines * sizeof(Word))) {
            return dump.note_damage();
        }
        for (std::uint64_t pair = 0; pair < ready; ++pair) {
            for (std::uint64_t word = 0; word < 2; ++word) dump.add(object_of(pair, word), table->words[2 * pair + word].value);
        }
        for (std::uint64_t i = 0; i < threads; ++i) {
            const Word* own = table->own + i * own_lines;
            dump.add(durasim::progress_object(i), own->value);
            for (std::uint64_t note = 0; note < notes_max; ++note) dump.add(note_object(i, note), own[1 + note].value);
        }
    }

private:
    static std::uint64_t pairs_of(const Arguments& arguments) {
        if (arguments.populate == 0) durasim::fail(durasim::exit_usage, "critical-section: --populate has to be at least 1");
        return arguments.populate;
    }

    static void make(Pool& pool, const Arguments& arguments) {
        durasim::tx([&](Tx& t) {
            auto* table = static_cast<Table*>(t.allocate(sizeof(Table)));
            auto* own = static_cast<Word*>(t.allocate(arguments.threads * own_lines * sizeof(Word)));
            for (std::uint64_t i = 0; i < arguments.threads * own_lines; ++i) t.write(own[i].value, 0);
            const std::uint64_t pairs = pairs_of(arguments);
            t.write(table->kind, kind_of_root);
            t.write(table->seed, arguments.seed);
            t.write(table->pairs, pairs);
            t.write(table->ready, 0);
            t.write(table->threads, arguments.threads);
            t.write(table->words, static_cast<Word*>(t.allocate(pairs * 2 * sizeof(Word))));
            t.write(table->own, own);
            pool.set_root(t, table);
            durasim::report_change(durasim::root_object, 0, kind_of_root);
        });
    }

    // The data that the lock of the pair guards.
    void change(Tx& t, std::uint64_t pair) const {
        const std::uint64_t count = t.read(words(pair)[0].value);
        const std::uint64_t found = t.read(words(pair)[1].value), left = second_word(seed_, pair, count + 1);
        t.write(words(pair)[0].value, count + 1);
        if (changes_both(seed_, pair, count)) t.write(words(pair)[1].value, left);
        durasim::report_change(object_of(pair, 0), count, count + 1);
        durasim::report_change(object_of(pair, 1), found, changes_both(seed_, pair, count) ? left : found);
    }

    // The data of the thread.
    void take_notes(Tx& t, const Thread& thread, std::uint64_t notes) const {
        Word* lines = own(thread.number);
        for (std::uint64_t note = 0; note < notes; ++note) {
            std::uint64_t& place = lines[1 + note].value;
            if constexpr (durasim::has_history) {
                durasim::report_change(note_object(thread.number, note), t.read(place), thread.finished + 1);
            }
            t.write(place, thread.finished + 1);
        }
        if constexpr (durasim::has_history) {
            durasim::report_change(durasim::progress_object(thread.number), t.read(lines->value), thread.finished + 1);
        }
        t.write(lines->value, thread.finished + 1);
    }

    Word* words(std::uint64_t pair) const { return table_->words + 2 * pair; }
    Word* own(std::uint64_t thread) const { return table_->own + thread * own_lines; }

    Table* table_ = nullptr;
    std::uint64_t seed_ = 0;
    std::uint64_t pairs_ = 0;
    bool releases_early_ = false;
    std::unique_ptr<durasim::TxLock[]> locks_;  // of the pairs; a single thread needs none
    std::vector<std::uint64_t> finished_;     // by each thread: what the pool must hold
};

std::uint64_t CriticalSection::check(const Pool& pool) {
    Audit audit(pool);
    if (audit.problem() != nullptr) DURASIM_VIOLATION("%s", audit.problem());
    const Table* table = pool.root<Table>();
    if (!audit.claim(table, sizeof(Table))) DURASIM_VIOLATION("the root object is not allocated");
    if (table->kind != kind_of_root) DURASIM_VIOLATION("the root object is not a table");
    if (table->pairs == 0 || table->pairs > pool.data_bytes() / (2 * sizeof(Word)) || table->ready > table->pairs ||
        table->threads == 0 || table->threads > durasim::threads_max) {
        DURASIM_VIOLATION("the table has impossible sizes");
    }
    if (!audit.claim(table->words, table->pairs * 2 * sizeof(Word)) ||
        !audit.claim(table->own, table->threads * own_lines * sizeof(Word))) {
        DURASIM_VIOLATION("what belongs to the root object is not allocated");
    }
    if (audit.lines_leaked() != 0) DURASIM_VIOLATION("%llu lines are leaked", static_cast<Long>(audit.lines_leaked()));

    // The number of times that each pair was taken: by its own count, and by what the threads have finished.
    std::uint64_t counted = 0, finished = 0;
    for (std::uint64_t pair = 0; pair < table->ready; ++pair) {
        const std::uint64_t count = table->words[2 * pair].value;
        if (count >> durasim::operation_bits != 0) DURASIM_VIOLATION("pair %llu has an impossible count", static_cast<Long>(pair));
        counted += count;
    }
    if (counted != 0 && table->ready != table->pairs) DURASIM_VIOLATION("there were operations before all pairs were there");
    for (std::uint64_t i = 0; i < table->threads; ++i) {
        const std::uint64_t number = table->own[i * own_lines].value;
        if (number > counted) DURASIM_VIOLATION("thread %llu finished more operations than there were", static_cast<Long>(i));
        finished += number;
    }
    if (finished != counted) {
        DURASIM_VIOLATION("pairs count %llu operations and threads %llu", static_cast<Long>(counted), static_cast<Long>(finished));
    }
    std::vector<std::uint64_t> taken(table->pairs);
    for (std::uint64_t i = 0; i < table->threads; ++i) {
        const Word* own = table->own + i * own_lines;
        for (std::uint64_t n = 0; n < own->value; ++n) ++taken[choice_of(table->seed, i, n, table->pairs).pair];
        for (std::uint64_t note = 0; note < notes_max; ++note) {
            if (own[1 + note].value != note_of(table->seed, i, note, own->value, table->pairs)) {
                DURASIM_VIOLATION("note %llu of thread %llu is not that of %llu operations", static_cast<Long>(note),
                                  static_cast<Long>(i), static_cast<Long>(own->value));
            }
        }
    }
    for (std::uint64_t pair = 0; pair < table->ready; ++pair) {
        const Word* words = table->words + 2 * pair;
        if (words[0].value != taken[pair]) {
            DURASIM_VIOLATION("pair %llu counts %llu operations, but the threads made %llu", static_cast<Long>(pair),
                              static_cast<Long>(words[0].value), static_cast<Long>(taken[pair]));
        }
        if (words[1].value != second_word(table->seed, pair, words[0].value)) {
            DURASIM_VIOLATION("the second word of pair %llu is not that of %llu operations", static_cast<Long>(pair),
                              static_cast<Long>(words[0].value));
        }
    }
    return table->ready + finished;
}

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<CriticalSection>(argc, argv); }
