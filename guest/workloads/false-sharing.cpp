// durasim-workload: false-sharing — a control: words that different locks guard lie on one line
//
// A table of rows and eight columns of words. A column has a lock and a count of its operations, in row 0; an operation
// takes the lock of a random column and, in one transaction, adds a number to two words of the column, and one to its
// count. With --shared-lines true a row is one line, so threads that never touch a word of each other meet on every line.
//
// A design that isolates whole lines then makes a neighbour's unfinished word durable, and a power failure shows half of its
// transaction; or it notices and aborts, and the thread tries again. What isolates words is not disturbed; a log in
// software does so with --log-granularity word only. This is why a workload keeps data of different locks on different
// lines, as this one does with --shared-lines false.
//
// With --look-percent some operations only look at a column: they read its count and the words that its last operation changed, and
// write nothing at all. What they have read has to survive.
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
using durasim::Progress;
using durasim::Tx;

constexpr std::uint64_t kind_of_root = 0x65736c6166;  // "false"
constexpr std::uint64_t columns = durasim::line_bytes / 8;
// Row 0 has the counts; an operation needs two more.
constexpr std::uint64_t rows_min = 3;

struct alignas(64) Table {
    std::uint64_t kind;
    std::uint64_t seed;
    std::uint64_t rows;
    std::uint64_t ready;         // rows that populating has reached
    std::uint64_t stride_words;  // from a word to the one of the next column: 1, or 8 for a line each
    std::uint64_t threads;
    std::uint64_t* words;
    Progress* progress;  // of each thread
};

std::uint64_t place_of(std::uint64_t row, std::uint64_t column, std::uint64_t stride_words) {
    return (row * columns + column) * stride_words;
}

// The column that a thread's n-th operation takes.
std::uint64_t column_of(std::uint64_t seed, std::uint64_t thread, std::uint64_t number) {
    return durasim::Random(durasim::mix(seed) + durasim::operation_of(thread, number)).below(columns);
}

// The effect of the n-th operation on a column, by any thread: so the count of a column determines its words.
struct Change {
    std::uint64_t first_row, second_row, amount;
};

Change change_of(std::uint64_t seed, std::uint64_t column, std::uint64_t number, std::uint64_t rows) {
    durasim::Random random(durasim::mix(seed ^ (column + 1)) + number * 0x632BE59BD9B4E019u);
    const std::uint64_t first = random.below(rows - 1);
    const std::uint64_t second = random.below(rows - 2);
    return {1 + first, 1 + (second < first ? second : second + 1), random.next() | 1};
}

// A word's number in the history, wherever it lies. Each sum of random numbers is a version of its own.
constexpr std::uint64_t object_of(std::uint64_t row, std::uint64_t column) { return row * columns + column; }

std::uint64_t initial_word(std::uint64_t seed, std::uint64_t row, std::uint64_t column) {
    return row == 0 ? 0 : durasim::mix(durasim::mix(seed + row) + column);
}

class FalseSharing {
public:
    static std::uint64_t arenas(const Arguments&) { return 1; }

    static std::uint64_t pool_bytes(const Arguments& arguments) {
        return table_bytes(rows_of(arguments), stride_of(arguments)) +
               durasim::block_bytes(arguments.threads * sizeof(Progress)) + 64 * durasim::line_bytes;
    }

    FalseSharing(Pool& pool, const Arguments& arguments) {
        table_ = pool.root<Table>();
        if (table_ == nullptr) {
            make(pool, arguments);
            table_ = pool.root<Table>();
        }
        if (table_->kind != kind_of_root) {
            durasim::fail(durasim::exit_usage, "false-sharing: the pool belongs to another workload");
        }
        if (table_->seed != arguments.seed || table_->rows != rows_of(arguments) ||
            table_->stride_words != stride_of(arguments) || table_->threads != arguments.threads) {
            durasim::fail(durasim::exit_usage,
                          "false-sharing: the pool was made with --seed %llu --populate %llu --shared-lines %s --threads %llu; "
                          "use these",
                          static_cast<Long>(table_->seed), static_cast<Long>(table_->rows),
                          table_->stride_words == 1 ? "true" : "false", static_cast<Long>(table_->threads));
        }
        seed_ = table_->seed;
        rows_ = table_->rows;
        stride_words_ = table_->stride_words;
        finished_.resize(table_->threads);
        for (std::uint64_t i = 0; i < finished_.size(); ++i) finished_[i] = table_->progress[i].finished;
        look_percent_ = arguments.look_percent;
        if (table_->threads > 1) locks_ = std::make_unique<durasim::TxLock[]>(columns);
    }

    std::uint64_t populated() const { return table_->ready; }

    struct Thread {
        std::uint64_t number;
        std::uint64_t finished;  // operations that the pool counts
        std::uint64_t looks;     // the others
    };

    Thread enter(std::uint64_t number) const { return {number, finished_[number], 0}; }
    void leave(const Thread& thread) { finished_[thread.number] = thread.finished; }

    void populate_one(Thread&) {
        durasim::tx([&](Tx& t) {
            const std::uint64_t row = t.read(table_->ready);
            for (std::uint64_t c = 0; c < columns; ++c) t.write(word(row, c), initial_word(seed_, row, c));
            t.write(table_->ready, row + 1);
            if constexpr (durasim::has_history) {
                for (std::uint64_t c = 0; c < columns; ++c) durasim::report_change(object_of(row, c), 0, t.read(word(row, c)));
                durasim::report_change(durasim::populated_object, row, row + 1);
            }
        });
    }

    void operation(Thread& thread) {
        if (look_percent_ != 0) {
            durasim::Random random(durasim::mix(~seed_) + durasim::operation_of(thread.number, thread.finished + thread.looks));
            if (random.below(100) < look_percent_) return look(thread, random.below(columns));
        }
        const std::uint64_t column = column_of(seed_, thread.number, thread.finished);
        std::unique_lock<durasim::TxLock> held;
        if (locks_ != nullptr) held = std::unique_lock(locks_[column]);
        durasim::tx([&](Tx& t) {
            const std::uint64_t count = t.read(word(0, column));
            const Change change = change_of(seed_, column, count, rows_);
            for (const std::uint64_t row : {change.first_row, change.second_row}) {
                if constexpr (durasim::has_history) {
                    const std::uint64_t found = t.read(word(row, column));
                    durasim::report_change(object_of(row, column), found, found + change.amount);
                }
                t.write(word(row, column), t.read(word(row, column)) + change.amount);
            }
            if constexpr (durasim::has_history) {
                const std::uint64_t finished = t.read(table_->progress[thread.number].finished);
                durasim::report_change(object_of(0, column), count, count + 1);
                durasim::report_change(durasim::progress_object(thread.number), finished, thread.finished + 1);
            }
            t.write(word(0, column), count + 1);
            t.write(table_->progress[thread.number].finished, thread.finished + 1);
        });
        ++thread.finished;
    }

    void compare_with_model() const {
        // The check has compared every word with what the counts in the pool say; here remains whether these are right.
        for (std::uint64_t i = 0; i < finished_.size(); ++i) {
            if (table_->progress[i].finished != finished_[i]) {
                DURASIM_VIOLATION("thread %llu finished %llu operations, but the pool says %llu", static_cast<Long>(i),
                                  static_cast<Long>(finished_[i]), static_cast<Long>(table_->progress[i].finished));
            }
        }
    }

    void print_result() const {
        std::uint64_t operations = 0;
        for (const std::uint64_t finished : finished_) operations += finished;
        std::printf("rows=%llu operations=%llu", static_cast<Long>(rows_), static_cast<Long>(operations));
    }

    static std::uint64_t check(const Pool& pool);

    static void dump(const Pool& pool, durasim::Dump& dump) {
        const Table* table = pool.root<Table>();
        if (!pool.holds(table, sizeof(Table))) return dump.note_damage();
        dump.add(durasim::root_object, table->kind);
        dump.add(durasim::populated_object, table->ready);
        const std::uint64_t stride_words = table->stride_words, ready = table->ready, threads = table->threads;
        if (stride_words > durasim::line_bytes / 8 || ready > pool.data_bytes() || threads > durasim::threads_max ||
            !pool.holds(table->words, ready * columns * stride_words * 8) ||
            !pool.holds(table->progress, threads * sizeof(Progress))) {
            return dump.note_damage();
        }
        for (std::uint64_t row = 0; row < ready; ++row) {
            for (std::uint64_t c = 0; c < columns; ++c) {
                dump.add(object_of(row, c), table->words[place_of(row, c, stride_words)]);
            }
        }
        for (std::uint64_t i = 0; i < threads; ++i) dump.add(durasim::progress_object(i), table->progress[i].finished);
    }

private:
    void look(Thread& thread, std::uint64_t column) {
        std::unique_lock<durasim::TxLock> held;
        if (locks_ != nullptr) held = std::unique_lock(locks_[column]);
        durasim::tx([&](Tx& t) {
            const std::uint64_t count = t.read(word(0, column));
            if constexpr (durasim::has_history) durasim::report_read(object_of(0, column), count);
            if (count == 0) return;
            const Change change = change_of(seed_, column, count - 1, rows_);
            for (const std::uint64_t row : {change.first_row, change.second_row}) {
                [[maybe_unused]] const std::uint64_t found = t.read(word(row, column));
                if constexpr (durasim::has_history) durasim::report_read(object_of(row, column), found);
            }
        });
        ++thread.looks;
    }

    static std::uint64_t rows_of(const Arguments& arguments) {
        if (arguments.populate < rows_min) {
            durasim::fail(durasim::exit_usage, "false-sharing: --populate has to be at least %llu", static_cast<Long>(rows_min));
        }
        return arguments.populate;
    }

    static std::uint64_t stride_of(const Arguments& arguments) {
        return std::strcmp(arguments.shared_lines, "true") == 0 ? 1 : durasim::line_bytes / 8;
    }

    static std::uint64_t table_bytes(std::uint64_t rows, std::uint64_t stride_words) {
        return durasim::block_bytes(rows * columns * stride_words * 8);
    }

    static void make(Pool& pool, const Arguments& arguments) {
        durasim::tx([&](Tx& t) {
            auto* table = static_cast<Table*>(t.allocate(sizeof(Table)));
            auto* progress = static_cast<Progress*>(t.allocate(arguments.threads * sizeof(Progress)));
            for (std::uint64_t i = 0; i < arguments.threads; ++i) t.write(progress[i].finished, 0);
            const std::uint64_t rows = rows_of(arguments), stride_words = stride_of(arguments);
            t.write(table->kind, kind_of_root);
            t.write(table->seed, arguments.seed);
            t.write(table->rows, rows);
            t.write(table->ready, 0);
            t.write(table->stride_words, stride_words);
            t.write(table->threads, arguments.threads);
            t.write(table->words, static_cast<std::uint64_t*>(t.allocate(rows * columns * stride_words * 8)));
            t.write(table->progress, progress);
            pool.set_root(t, table);
            if constexpr (durasim::has_history) durasim::report_change(durasim::root_object, 0, kind_of_root);
        });
    }

    std::uint64_t& word(std::uint64_t row, std::uint64_t column) const {
        return table_->words[place_of(row, column, stride_words_)];
    }

    Table* table_ = nullptr;
    std::uint64_t seed_ = 0;
    std::uint64_t rows_ = 0;
    std::uint64_t stride_words_ = 0;
    std::uint64_t look_percent_ = 0;
    std::unique_ptr<durasim::TxLock[]> locks_;  // of the columns; a single thread needs none
    std::vector<std::uint64_t> finished_;     // by each thread: what the pool must hold
};

// Every word of a column is what the count of the column says.
void check_column(const Table* table, std::uint64_t column, std::uint64_t count) {
    std::vector<std::uint64_t> model(table->ready);
    for (std::uint64_t row = 0; row < model.size(); ++row) model[row] = initial_word(table->seed, row, column);
    for (std::uint64_t n = 0; n < count; ++n) {
        const Change change = change_of(table->seed, column, n, table->rows);
        model[change.first_row] += change.amount;
        model[change.second_row] += change.amount;
    }
    for (std::uint64_t row = 1; row < model.size(); ++row) {
        if (table->words[place_of(row, column, table->stride_words)] != model[row]) {
            DURASIM_VIOLATION("the word in row %llu of column %llu is not that of %llu operations", static_cast<Long>(row),
                              static_cast<Long>(column), static_cast<Long>(count));
        }
    }
}

std::uint64_t FalseSharing::check(const Pool& pool) {
    Audit audit(pool);
    if (audit.problem() != nullptr) DURASIM_VIOLATION("%s", audit.problem());
    const Table* table = pool.root<Table>();
    if (!audit.claim(table, sizeof(Table))) DURASIM_VIOLATION("the root object is not allocated");
    if (table->kind != kind_of_root) DURASIM_VIOLATION("the root object is not a table");
    const std::uint64_t stride_words = table->stride_words;
    if ((stride_words != 1 && stride_words != durasim::line_bytes / 8) || table->rows < rows_min ||
        table->rows > pool.data_bytes() / (columns * stride_words * 8) || table->ready > table->rows || table->threads == 0 ||
        table->threads > durasim::threads_max) {
        DURASIM_VIOLATION("the table has impossible sizes");
    }
    if (!audit.claim(table->words, table->rows * columns * stride_words * 8) ||
        !audit.claim(table->progress, table->threads * sizeof(Progress))) {
        DURASIM_VIOLATION("what belongs to the root object is not allocated");
    }
    if (audit.lines_leaked() != 0) DURASIM_VIOLATION("%llu lines are leaked", static_cast<Long>(audit.lines_leaked()));

    // The number of times that each column was taken: by its own count, and by what the threads have finished.
    std::uint64_t counted = 0, finished = 0;
    std::uint64_t count[columns] = {};
    for (std::uint64_t c = 0; c < columns && table->ready != 0; ++c) {
        count[c] = table->words[place_of(0, c, stride_words)];
        if (count[c] >> durasim::operation_bits != 0) DURASIM_VIOLATION("column %llu has an impossible count", static_cast<Long>(c));
        counted += count[c];
    }
    if (counted != 0 && table->ready != table->rows) DURASIM_VIOLATION("there were operations before all rows were there");
    std::uint64_t taken[columns] = {};
    for (std::uint64_t thread = 0; thread < table->threads; ++thread) {
        const std::uint64_t number = table->progress[thread].finished;
        if (number > counted) DURASIM_VIOLATION("thread %llu finished more operations than there were", static_cast<Long>(thread));
        for (std::uint64_t n = 0; n < number; ++n) ++taken[column_of(table->seed, thread, n)];
        finished += number;
    }
    if (finished != counted) {
        DURASIM_VIOLATION("columns count %llu operations and threads %llu", static_cast<Long>(counted), static_cast<Long>(finished));
    }
    for (std::uint64_t c = 0; c < columns; ++c) {
        if (count[c] != taken[c]) {
            DURASIM_VIOLATION("column %llu counts %llu operations, but the threads made %llu", static_cast<Long>(c),
                              static_cast<Long>(count[c]), static_cast<Long>(taken[c]));
        }
        check_column(table, c, count[c]);
    }
    return table->ready + finished;
}

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<FalseSharing>(argc, argv); }
