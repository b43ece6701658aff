// durasim-workload: unlocked — threads store plainly beside their transactions, and read what other transactions write, without locks
//
// Each thread has lines of its own: plain cells, and words that only its transactions write. An operation stores to one of its plain cells outside of
// any transaction, cleans the line and waits for that with a fence. Its transaction then writes all words of the thread. Between these steps it
// reads words of other threads, neither in a transaction nor under a lock, while they are being written.
//
// The right values in each state that a power failure may leave: the words of a thread are those of its last transaction that survives. Its plain
// cells have what the operations up to that one have stored, for a fence has waited for each of these stores before the transaction began; the
// store of the next operation may have survived or not. A design that promises to come back to the end of an epoch keeps this order too.
//
// The values that a plain read finds have been written by an operation that has begun. Where transactions are isolated without locks, a word that is read
// later is never older. A runtime that works on a shadow of the pool makes no plain store durable: there the transaction stores to the cell.
//
// The history (durasim/history.h) has the words, and no plain cells.
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "durasim/persist.h"
#include "durasim/random.h"
#include "workloads/harness.h"

namespace {

using durasim::Arguments;
using durasim::Audit;
using durasim::Long;
using durasim::Pool;
using durasim::Progress;
using durasim::Tx;

constexpr std::uint64_t kind_of_root = 0x64656b636f6c6e75;  // "unlocked"
constexpr std::uint64_t writes_max = 64;

// Whether the runtime keeps a shadow of the pool, which plain stores would change.
template <class R>
constexpr bool has_shadow = requires(R& runtime) { runtime.options.touches_shadow; };
constexpr bool stores_plainly = !has_shadow<durasim::Runtime>;

struct alignas(64) Cell {
    std::uint64_t value;
};

struct alignas(64) Board {
    std::uint64_t kind;
    std::uint64_t seed;
    std::uint64_t length;  // plain cells
    std::uint64_t ready;   // those that have been written
    std::uint64_t writes;  // words of each thread
    std::uint64_t threads;
    Cell* plain;
    Cell* words;
    Progress* progress;
};

// The plain cell to which the n-th operation of a thread stores n + 1: cells go round among the threads.
std::uint64_t cell_of(const Board& board, std::uint64_t thread, std::uint64_t number) {
    durasim::Random random(durasim::mix(board.seed) + durasim::operation_of(thread, number) * 0x632BE59BD9B4E019u);
    return thread + board.threads * random.below(durasim::share_of(board.length, board.threads, thread));
}

// A plain access, as the program makes it.
std::uint64_t load(const std::uint64_t& place) { return __atomic_load_n(&place, __ATOMIC_ACQUIRE); }

class Unlocked {
public:
    struct Thread {
        std::uint64_t number;
        std::uint64_t finished;
    };

    static std::uint64_t arenas(const Arguments&) { return 1; }
    static std::uint64_t pool_bytes(const Arguments& arguments) {
        check_arguments(arguments);
        return durasim::block_bytes(arguments.populate * sizeof(Cell)) + durasim::block_bytes(arguments.threads * arguments.writes * sizeof(Cell)) +
               durasim::block_bytes(arguments.threads * sizeof(Progress)) + 64 * durasim::line_bytes;
    }

    Unlocked(Pool& pool, const Arguments& arguments) {
        check_arguments(arguments);
        board_ = pool.root<Board>();
        if (board_ == nullptr) {
            make(pool, arguments);
            board_ = pool.root<Board>();
        }
        if (board_->kind != kind_of_root) durasim::fail(durasim::exit_usage, "unlocked: the pool belongs to another workload");
        if (board_->seed != arguments.seed || board_->length != arguments.populate || board_->threads != arguments.threads ||
            board_->writes != arguments.writes) {
            durasim::fail(durasim::exit_usage, "unlocked: the pool was made with --seed %llu --populate %llu --threads %llu --writes %llu; use these",
                          static_cast<Long>(board_->seed), static_cast<Long>(board_->length), static_cast<Long>(board_->threads),
                          static_cast<Long>(board_->writes));
        }
        constant_ = *board_;
        begun_ = std::make_unique<std::atomic<std::uint64_t>[]>(constant_.threads);
        for (std::uint64_t i = 0; i < constant_.threads; ++i) {
            finished_.push_back(constant_.progress[i].finished);
            begun_[i] = finished_.back();
        }
    }

    std::uint64_t populated() const { return board_->ready; }

    Thread enter(std::uint64_t number) const { return {number, finished_[number]}; }
    void leave(const Thread& thread) { finished_[thread.number] = thread.finished; }

    void populate_one(Thread&) {
        durasim::tx([&](Tx& t) {
            const std::uint64_t index = t.read(board_->ready);
            t.write(constant_.plain[index].value, 0);
            t.write(board_->ready, index + 1);
            durasim::report_change(durasim::populated_object, index, index + 1);
        });
    }

    void operation(Thread& thread) {
        const std::uint64_t number = thread.finished, value = number + 1;
        Cell& cell = constant_.plain[cell_of(constant_, thread.number, number)];
        begun_[thread.number].store(value, std::memory_order_release);
        if constexpr (stores_plainly) {
            __atomic_store_n(&cell.value, value, __ATOMIC_RELEASE);
            look_at_others(thread);
            durasim_clean(&cell);
            durasim_persist_fence();
        }
        look_at_others(thread);
        durasim::tx([&](Tx& t) {
            if constexpr (!stores_plainly) t.write(cell.value, value);
            for (std::uint64_t i = 0; i < constant_.writes; ++i) {
                const std::uint64_t index = thread.number * constant_.writes + i;
                t.write(constant_.words[index].value, value);
                durasim::report_change(index, number, value);
            }
            t.write(constant_.progress[thread.number].finished, value);
            durasim::report_change(durasim::progress_object(thread.number), number, value);
        });
        ++thread.finished;
    }

    void compare_with_model() const {
        for (std::uint64_t i = 0; i < finished_.size(); ++i) {
            if (constant_.progress[i].finished != finished_[i]) {
                DURASIM_VIOLATION("thread %llu finished %llu operations, but the pool says %llu", static_cast<Long>(i),
                                  static_cast<Long>(finished_[i]), static_cast<Long>(constant_.progress[i].finished));
            }
        }
    }

    void print_result() const {
        std::uint64_t operations = 0;
        for (const std::uint64_t finished : finished_) operations += finished;
        std::printf("cells=%llu operations=%llu", static_cast<Long>(constant_.length), static_cast<Long>(operations));
    }

    static std::uint64_t check(const Pool& pool);

    static void dump(const Pool& pool, durasim::Dump& dump) {
        const Board* board = pool.root<Board>();
        if (!pool.holds(board, sizeof(Board))) return dump.note_damage();
        dump.add(durasim::root_object, board->kind);
        dump.add(durasim::populated_object, board->ready);
        if (board->threads > durasim::threads_max || board->writes > writes_max ||
            !pool.holds(board->words, board->threads * board->writes * sizeof(Cell)) ||
            !pool.holds(board->progress, board->threads * sizeof(Progress))) {
            return dump.note_damage();
        }
        for (std::uint64_t i = 0; i < board->threads * board->writes; ++i) dump.add(i, board->words[i].value);
        for (std::uint64_t i = 0; i < board->threads; ++i) dump.add(durasim::progress_object(i), board->progress[i].finished);
    }

private:
    static void check_arguments(const Arguments& arguments) {
        if (arguments.populate < arguments.threads) {
            durasim::fail(durasim::exit_usage, "unlocked: --populate has to be at least --threads: each thread needs a plain cell");
        }
    }

    static void make(Pool& pool, const Arguments& arguments) {
        durasim::tx([&](Tx& t) {
            auto* board = static_cast<Board*>(t.allocate(sizeof(Board)));
            auto* progress = static_cast<Progress*>(t.allocate(arguments.threads * sizeof(Progress)));
            for (std::uint64_t i = 0; i < arguments.threads; ++i) t.write(progress[i].finished, 0);
            auto* words = static_cast<Cell*>(t.allocate(arguments.threads * arguments.writes * sizeof(Cell)));
            for (std::uint64_t i = 0; i < arguments.threads * arguments.writes; ++i) t.write(words[i].value, 0);
            t.write(board->kind, kind_of_root);
            t.write(board->seed, arguments.seed);
            t.write(board->length, arguments.populate);
            t.write(board->ready, 0);
            t.write(board->writes, arguments.writes);
            t.write(board->threads, arguments.threads);
            t.write(board->plain, static_cast<Cell*>(t.allocate(arguments.populate * sizeof(Cell))));
            t.write(board->words, words);
            t.write(board->progress, progress);
            pool.set_root(t, board);
            durasim::report_change(durasim::root_object, 0, kind_of_root);
        });
    }

    // Reads the words of the thread after this one, the last first: its transactions write the first one first.
    void look_at_others(const Thread& thread) const {
        const std::uint64_t other = (thread.number + 1) % constant_.threads;
        if (other == thread.number) return;
        const Cell* const words = constant_.words + other * constant_.writes;
        std::uint64_t before = 0;
        for (std::uint64_t i = constant_.writes; i-- > 0;) {
            const std::uint64_t value = load(words[i].value), begun = begun_[other].load(std::memory_order_acquire);
            if (value > begun) {
                DURASIM_VIOLATION("word %llu of thread %llu is %llu, but the thread has begun %llu operations", static_cast<Long>(i),
                                  static_cast<Long>(other), static_cast<Long>(value), static_cast<Long>(begun));
            }
            if (durasim::runtime_isolates && value < before) {
                DURASIM_VIOLATION("word %llu of thread %llu is %llu, but another one was %llu before", static_cast<Long>(i),
                                  static_cast<Long>(other), static_cast<Long>(value), static_cast<Long>(before));
            }
            before = value;
        }
    }

    Board* board_ = nullptr;
    Board constant_{};  // what does not change
    std::unique_ptr<std::atomic<std::uint64_t>[]> begun_;  // operations of each thread
    std::vector<std::uint64_t> finished_;
};

// The words and the plain cells of a thread are those of the operations that it has finished, or one plain cell is that of the next one.
void check_thread(const Board& board, std::uint64_t thread) {
    const std::uint64_t finished = board.progress[thread].finished;
    for (std::uint64_t i = 0; i < board.writes; ++i) {
        const std::uint64_t value = board.words[thread * board.writes + i].value;
        if (value == finished) continue;
        DURASIM_VIOLATION("word %llu of thread %llu is %llu, but the thread has finished %llu operations", static_cast<Long>(i),
                          static_cast<Long>(thread), static_cast<Long>(value), static_cast<Long>(finished));
    }
    std::vector<std::uint64_t> model(board.length);
    for (std::uint64_t n = 0; n < finished; ++n) model[cell_of(board, thread, n)] = n + 1;
    const std::uint64_t next = cell_of(board, thread, finished);
    for (std::uint64_t i = thread; i < board.ready; i += board.threads) {
        const std::uint64_t value = board.plain[i].value;
        if (value == model[i] || (stores_plainly && i == next && value == finished + 1)) continue;
        DURASIM_VIOLATION("plain cell %llu of thread %llu is %llu, but with %llu operations finished it should be %llu", static_cast<Long>(i),
                          static_cast<Long>(thread), static_cast<Long>(value), static_cast<Long>(finished), static_cast<Long>(model[i]));
    }
}

std::uint64_t Unlocked::check(const Pool& pool) {
    Audit audit(pool);
    if (audit.problem() != nullptr) DURASIM_VIOLATION("%s", audit.problem());
    const Board* board = pool.root<Board>();
    if (!audit.claim(board, sizeof(Board))) DURASIM_VIOLATION("the root object is not allocated");
    if (board->kind != kind_of_root) DURASIM_VIOLATION("the root object is not a board of cells");
    if (board->threads == 0 || board->threads > durasim::threads_max || board->writes == 0 || board->writes > writes_max ||
        board->length < board->threads || board->length > pool.data_bytes() / sizeof(Cell) || board->ready > board->length) {
        DURASIM_VIOLATION("the board has impossible sizes");
    }
    if (!audit.claim(board->plain, board->length * sizeof(Cell)) ||
        !audit.claim(board->words, board->threads * board->writes * sizeof(Cell)) ||
        !audit.claim(board->progress, board->threads * sizeof(Progress))) {
        DURASIM_VIOLATION("what belongs to the root object is not allocated");
    }
    if (audit.lines_leaked() != 0) DURASIM_VIOLATION("%llu lines are leaked", static_cast<Long>(audit.lines_leaked()));

    std::uint64_t operations = 0;
    for (std::uint64_t i = 0; i < board->threads; ++i) {
        if (board->progress[i].finished >> durasim::operation_bits != 0) DURASIM_VIOLATION("thread %llu has an impossible count", static_cast<Long>(i));
        if (board->progress[i].finished != 0 && board->ready != board->length) DURASIM_VIOLATION("there were operations before all cells were there");
        check_thread(*board, i);
        operations += board->progress[i].finished;
    }
    return board->ready + operations;
}

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<Unlocked>(argc, argv); }
