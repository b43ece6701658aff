// durasim-workload: blind-writes — threads write shared words that they have not read, and copy them in their next transaction
//
// The operations of a thread write and copy in turn. One writes some words of the thread's own, between none and `own-writes` of them, then
// `writes` shared words, one after the other in the array, and reads none of them. The next one copies what these shared words hold by then to a
// second array. Own words and shared words have a line each: a store may leave the store buffer late.
//
// The right values in each state that a power failure may leave: a shared word is what was last copied from it, or the last write of a thread
// that has not copied since. Any other write was followed by its thread's copy, so another one was copied, or written, later. A design
// that recovers the writes of two transactions in another order than they were committed in leaves the older one.
//
// The history (durasim/history.h) has the copies: of a shared word a transaction does not know what it overwrites.
#include <cstdint>
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

constexpr std::uint64_t kind_of_root = 0x646e696c62;  // "blind"
constexpr std::uint64_t writes_max = 64, own_writes_max = 64;

struct alignas(64) Word {
    std::uint64_t value;
};

struct alignas(64) Board {
    std::uint64_t kind;
    std::uint64_t seed;
    std::uint64_t length;  // shared words
    std::uint64_t ready;   // those that have been written
    std::uint64_t writes, own_writes;
    std::uint64_t threads;
    Word* shared;
    Word* copied;
    Word* own;  // of each thread own_writes
    Progress* progress;
};

// The words after populating, and those that an operation writes to shared words: no two are the same.
constexpr std::uint64_t initial_value(std::uint64_t index) { return std::uint64_t{1} << 63 | index; }
constexpr std::uint64_t value_of(std::uint64_t thread, std::uint64_t number) { return durasim::operation_of(thread + 1, number); }

// Whether the n-th operation of a thread writes; else it copies what the one before has written.
constexpr bool is_write(std::uint64_t number) { return number % 2 == 0; }

// The words of the n-th operation of a thread, which writes: how many of its own, from the first, and which shared one comes first.
struct Choice {
    std::uint64_t own_count, first;
};
Choice choose(const Board& board, std::uint64_t thread, std::uint64_t number) {
    durasim::Random random(durasim::mix(board.seed) + durasim::operation_of(thread, number) * 0x632BE59BD9B4E019u);
    const std::uint64_t own_count = random.below(board.own_writes + 1);
    return {own_count, random.below(board.length)};
}

class BlindWrites {
public:
    struct Thread {
        std::uint64_t number;
        std::uint64_t finished;
    };

    static std::uint64_t arenas(const Arguments&) { return 1; }
    static std::uint64_t pool_bytes(const Arguments& arguments) {
        check_arguments(arguments);
        return 2 * durasim::block_bytes(arguments.populate * sizeof(Word)) + own_bytes(arguments) +
               durasim::block_bytes(arguments.threads * sizeof(Progress)) + 64 * durasim::line_bytes;
    }

    BlindWrites(Pool& pool, const Arguments& arguments) {
        check_arguments(arguments);
        board_ = pool.root<Board>();
        if (board_ == nullptr) {
            make(pool, arguments);
            board_ = pool.root<Board>();
        }
        if (board_->kind != kind_of_root) durasim::fail(durasim::exit_usage, "blind-writes: the pool belongs to another workload");
        if (board_->seed != arguments.seed || board_->length != arguments.populate || board_->threads != arguments.threads ||
            board_->writes != arguments.writes || board_->own_writes != arguments.own_writes) {
            durasim::fail(durasim::exit_usage,
                          "blind-writes: the pool was made with --seed %llu --populate %llu --threads %llu --writes %llu --own-writes %llu; use these",
                          static_cast<Long>(board_->seed), static_cast<Long>(board_->length), static_cast<Long>(board_->threads),
                          static_cast<Long>(board_->writes), static_cast<Long>(board_->own_writes));
        }
        constant_ = *board_;
        for (std::uint64_t i = 0; i < constant_.threads; ++i) finished_.push_back(constant_.progress[i].finished);
    }

    std::uint64_t populated() const { return board_->ready; }

    Thread enter(std::uint64_t number) const { return {number, finished_[number]}; }
    void leave(const Thread& thread) { finished_[thread.number] = thread.finished; }

    void populate_one(Thread&) {
        durasim::tx([&](Tx& t) {
            const std::uint64_t index = t.read(board_->ready), value = initial_value(index);
            t.write(constant_.shared[index].value, value);
            t.write(constant_.copied[index].value, value);
            t.write(board_->ready, index + 1);
            durasim::report_change(index, 0, value);
            durasim::report_change(durasim::populated_object, index, index + 1);
        });
    }

    void operation(Thread& thread) {
        if (is_write(thread.finished)) {
            write_blindly(thread, choose(constant_, thread.number, thread.finished));
        } else {
            copy(thread, choose(constant_, thread.number, thread.finished - 1));
        }
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
        std::printf("words=%llu operations=%llu", static_cast<Long>(constant_.length), static_cast<Long>(operations));
    }

    static std::uint64_t check(const Pool& pool);

    static void dump(const Pool& pool, durasim::Dump& dump) {
        const Board* board = pool.root<Board>();
        if (!pool.holds(board, sizeof(Board))) return dump.note_damage();
        dump.add(durasim::root_object, board->kind);
        dump.add(durasim::populated_object, board->ready);
        if (board->ready > pool.data_bytes() / sizeof(Word) || board->threads > durasim::threads_max ||
            !pool.holds(board->copied, board->ready * sizeof(Word)) || !pool.holds(board->progress, board->threads * sizeof(Progress))) {
            return dump.note_damage();
        }
        for (std::uint64_t i = 0; i < board->ready; ++i) dump.add(i, board->copied[i].value);
        for (std::uint64_t i = 0; i < board->threads; ++i) dump.add(durasim::progress_object(i), board->progress[i].finished);
    }

private:
    static void check_arguments(const Arguments& arguments) {
        if (arguments.populate < arguments.writes) {
            durasim::fail(durasim::exit_usage, "blind-writes: --populate has to be at least --writes, which is %llu", static_cast<Long>(arguments.writes));
        }
    }

    static std::uint64_t own_bytes(const Arguments& arguments) {
        return durasim::block_bytes((arguments.threads * arguments.own_writes + 1) * sizeof(Word));
    }

    static void make(Pool& pool, const Arguments& arguments) {
        durasim::tx([&](Tx& t) {
            auto* board = static_cast<Board*>(t.allocate(sizeof(Board)));
            auto* progress = static_cast<Progress*>(t.allocate(arguments.threads * sizeof(Progress)));
            for (std::uint64_t i = 0; i < arguments.threads; ++i) t.write(progress[i].finished, 0);
            auto* own = static_cast<Word*>(t.allocate(own_bytes(arguments)));
            for (std::uint64_t i = 0; i < arguments.threads * arguments.own_writes; ++i) t.write(own[i].value, 0);
            t.write(board->kind, kind_of_root);
            t.write(board->seed, arguments.seed);
            t.write(board->length, arguments.populate);
            t.write(board->ready, 0);
            t.write(board->writes, arguments.writes);
            t.write(board->own_writes, arguments.own_writes);
            t.write(board->threads, arguments.threads);
            t.write(board->shared, static_cast<Word*>(t.allocate(arguments.populate * sizeof(Word))));
            t.write(board->copied, static_cast<Word*>(t.allocate(arguments.populate * sizeof(Word))));
            t.write(board->own, own);
            t.write(board->progress, progress);
            pool.set_root(t, board);
            durasim::report_change(durasim::root_object, 0, kind_of_root);
        });
    }

    std::uint64_t place(const Choice& choice, std::uint64_t i) const {
        const std::uint64_t index = choice.first + i;
        return index < constant_.length ? index : index - constant_.length;
    }

    void write_blindly(const Thread& thread, const Choice& choice) {
        const std::lock_guard held(lock_);
        const std::uint64_t value = value_of(thread.number, thread.finished);
        Word* const own = constant_.own + thread.number * constant_.own_writes;
        durasim::tx([&](Tx& t) {
            for (std::uint64_t i = 0; i < choice.own_count; ++i) t.write(own[i].value, thread.finished + 1);
            for (std::uint64_t i = 0; i < constant_.writes; ++i) t.write(constant_.shared[place(choice, i)].value, value);
            finish(t, thread);
        });
    }

    void copy(const Thread& thread, const Choice& choice) {
        const std::lock_guard held(lock_);
        durasim::tx([&](Tx& t) {
            for (std::uint64_t i = 0; i < constant_.writes; ++i) {
                const std::uint64_t index = place(choice, i), value = t.read(constant_.shared[index].value);
                if constexpr (durasim::has_history) durasim::report_change(index, t.read(constant_.copied[index].value), value);
                t.write(constant_.copied[index].value, value);
            }
            finish(t, thread);
        });
    }

    void finish(Tx& t, const Thread& thread) const {
        t.write(constant_.progress[thread.number].finished, thread.finished + 1);
        durasim::report_change(durasim::progress_object(thread.number), thread.finished, thread.finished + 1);
    }

    Board* board_ = nullptr;
    Board constant_{};  // what does not change
    durasim::TxLock lock_;
    std::vector<std::uint64_t> finished_;
};

// The thread's own words are those of the operations that it has finished.
void check_own_words(const Board& board, std::uint64_t thread) {
    const std::uint64_t finished = board.progress[thread].finished;
    std::vector<std::uint64_t> model(board.own_writes);
    for (std::uint64_t n = 0; n < finished; n += 2) {
        for (std::uint64_t i = 0; i < choose(board, thread, n).own_count; ++i) model[i] = n + 1;
    }
    const Word* const own = board.own + thread * board.own_writes;
    for (std::uint64_t i = 0; i < board.own_writes; ++i) {
        if (own[i].value == model[i]) continue;
        DURASIM_VIOLATION("own word %llu of thread %llu is %llu, but with %llu operations finished it should be %llu", static_cast<Long>(i),
                          static_cast<Long>(thread), static_cast<Long>(own[i].value), static_cast<Long>(finished), static_cast<Long>(model[i]));
    }
}

// Whether the operation that wrote `value` writes the shared word `index`.
bool is_value_of_word(const Board& board, std::uint64_t value, std::uint64_t index) {
    if (value == initial_value(index)) return true;
    const std::uint64_t thread = (value >> durasim::operation_bits) - 1, number = value & ((std::uint64_t{1} << durasim::operation_bits) - 1);
    if (thread >= board.threads || number >= board.progress[thread].finished || !is_write(number)) return false;
    const std::uint64_t first = choose(board, thread, number).first;
    return (index + board.length - first) % board.length < board.writes;
}

std::uint64_t BlindWrites::check(const Pool& pool) {
    Audit audit(pool);
    if (audit.problem() != nullptr) DURASIM_VIOLATION("%s", audit.problem());
    const Board* board = pool.root<Board>();
    if (!audit.claim(board, sizeof(Board))) DURASIM_VIOLATION("the root object is not allocated");
    if (board->kind != kind_of_root) DURASIM_VIOLATION("the root object is not a board of words");
    if (board->threads == 0 || board->threads > durasim::threads_max || board->writes == 0 || board->writes > writes_max ||
        board->own_writes > own_writes_max || board->length < board->writes || board->length > pool.data_bytes() / sizeof(Word) ||
        board->ready > board->length) {
        DURASIM_VIOLATION("the board has impossible sizes");
    }
    if (!audit.claim(board->shared, board->length * sizeof(Word)) || !audit.claim(board->copied, board->length * sizeof(Word)) ||
        !audit.claim(board->own, (board->threads * board->own_writes + 1) * sizeof(Word)) ||
        !audit.claim(board->progress, board->threads * sizeof(Progress))) {
        DURASIM_VIOLATION("what belongs to the root object is not allocated");
    }
    if (audit.lines_leaked() != 0) DURASIM_VIOLATION("%llu lines are leaked", static_cast<Long>(audit.lines_leaked()));

    std::uint64_t operations = 0;
    for (std::uint64_t i = 0; i < board->threads; ++i) {
        if (board->progress[i].finished >> durasim::operation_bits != 0) DURASIM_VIOLATION("thread %llu has an impossible count", static_cast<Long>(i));
        check_own_words(*board, i);
        operations += board->progress[i].finished;
    }
    if (operations != 0 && board->ready != board->length) DURASIM_VIOLATION("there were operations before all words were there");
    for (std::uint64_t i = 0; i < board->ready; ++i) {
        const std::uint64_t value = board->shared[i].value, copied = board->copied[i].value;
        if (!is_value_of_word(*board, value, i) || !is_value_of_word(*board, copied, i)) {
            DURASIM_VIOLATION("word %llu or its copy holds what no operation has written there", static_cast<Long>(i));
        }
        if (value == copied) continue;
        // Its thread has not copied since if this is the operation that it has finished last.
        const std::uint64_t thread = (value >> durasim::operation_bits) - 1;
        if (thread >= board->threads || value != value_of(thread, board->progress[thread].finished - 1)) {
            DURASIM_VIOLATION("word %llu holds a write that is older than the one which was copied from there", static_cast<Long>(i));
        }
    }
    return board->ready + operations;
}

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<BlindWrites>(argc, argv); }
