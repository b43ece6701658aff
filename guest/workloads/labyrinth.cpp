// durasim-workload: labyrinth — paths through a shared maze of three dimensions; a transaction finds and lays one path
//
// The labyrinth of STAMP (Cao Minh, Chung, Kozyrakis, Olukotun: "STAMP: Stanford Transactional Applications for
// Multi-Processing", IISWC 2008), written anew. Threads take pairs of points from a shared queue and connect them with Lee's
// algorithm (labyrinth/router.h). As in STAMP there are two kinds of transactions, and an operation is one:
//   take   takes the next pair from the queue
//   route  copies the whole maze to memory of the thread by plain loads, finds a path there, and writes the path to the shared
//          maze, after it has seen through the transaction that each point of it is still free; if one is not, it starts again
// So a path takes two operations of a thread. The input of STAMP for simulators, x32-y32-z3-n96, is --width 32 --height 32
// --layers 3 --paths 96 --populate 96 --ops 192. Points are words of 8 bytes, as there. Hardware transactions track the plain
// loads and the stores to the copy like all others: there is no early release.
//
// The queue holds --populate pairs, --paths of them for each maze, chosen from the seed; at its end it starts again, with all
// pairs of a maze moved by the same random distance. For the next maze no point is cleared: a point is free for it if no
// path of this or a later maze occupies it. A path that is late may find points taken by the next maze.
//
// Deviations: the ends of all pairs are taken from the beginning, as there, but known from the queue instead of marked. A
// point names the path it belongs to and its place on it. Each thread keeps on a line of its own which pair it has taken,
// and counts what it has done (Ledger): a check compares that with the maze. STAMP keeps both in ordinary memory, with the
// paths; each thread makes a list of its own that all have at the end. One lock guards queue and maze, where the runtime needs
// locks.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <numeric>
#include <vector>

#include "durasim/random.h"
#include "structures/blocks.h"
#include "workloads/harness.h"
#include "workloads/labyrinth/router.h"

namespace {

using durasim::Arguments;
using durasim::Audit;
using durasim::Long;
using durasim::Pool;
using durasim::Tx;
using durasim::labyrinth::Router;
using durasim::labyrinth::Space;

constexpr std::uint64_t kind_of_root = 0x746e697279626c;  // "lbyrint"
constexpr std::uint64_t points_of_line = durasim::line_bytes / 8;
constexpr unsigned place_bits = 24;
constexpr std::uint64_t points_max = std::uint64_t{1} << place_bits;

// The sum of the operations of a thread, modulo 2^64.
struct alignas(64) Ledger {
    std::uint64_t finished;
    std::uint64_t seal;       // over finished; see seal_of
    std::uint64_t hand;       // 1 + the pair that is to be connected, 0: none
    std::uint64_t taken;      // sum over the pairs taken; see stamp_of
    std::uint64_t connected;  // sum over those of them that have a path
    std::uint64_t failed;     // and over those that have none
    std::uint64_t marks;      // sum over the points written, less what was there; see stamp_of
};
static_assert(sizeof(Ledger) == durasim::line_bytes);

struct Pair {
    std::uint64_t source, target;
};

struct alignas(64) Queue {
    std::uint64_t popped;  // pairs taken, in all rounds
    std::uint64_t pushed;  // pairs in the array
};

struct alignas(64) Labyrinth {
    std::uint64_t kind;
    std::uint64_t seed;
    Space space;
    std::uint64_t populate;  // pairs in the queue
    std::uint64_t paths;     // of a maze
    std::uint64_t threads;
    Queue queue;
    Pair* pair;
    std::uint64_t* point;  // see mark_of; 0: no path has ever been here
    Ledger* ledger;        // of each thread
};

// The content of a point: the pair of its path, and its place on the path.
constexpr std::uint64_t mark_of(std::uint64_t pair, std::uint64_t place) { return (pair + 1) << place_bits | place; }
constexpr std::uint64_t pair_of(std::uint64_t mark) { return (mark >> place_bits) - 1; }
constexpr std::uint64_t place_of(std::uint64_t mark) { return mark % points_max; }

std::uint64_t stamp_of(std::uint64_t pair) { return durasim::mix(pair + 1); }
std::uint64_t stamp_of(std::uint64_t point, std::uint64_t mark) { return mark == 0 ? 0 : durasim::mix(durasim::mix(point + 1) + mark); }

// A check goes through what a thread has finished: it has to know that this many is not nonsense.
std::uint64_t seal_of(std::uint64_t seed, std::uint64_t thread, std::uint64_t finished) {
    return finished == 0 ? 0 : durasim::mix(durasim::mix(~seed) + durasim::operation_of(thread, finished));
}

// The maze of a pair. Rounds through the queue have mazes of their own.
struct Maze {
    std::uint64_t round;
    std::uint64_t first;  // its first pair in the queue, and how many there are
    std::uint64_t count;

    // The number of its first pair, counted through all rounds.
    std::uint64_t first_pair(std::uint64_t populate) const { return round * populate + first; }
};

Maze maze_of(const Labyrinth& labyrinth, std::uint64_t pair) {
    const std::uint64_t place = pair % labyrinth.populate, first = place - place % labyrinth.paths;
    return {pair / labyrinth.populate, first, std::min(labyrinth.paths, labyrinth.populate - first)};
}

// The pairs of a maze as populating puts them into the queue: no point is in two.
std::vector<Pair> pairs_of(const Labyrinth& labyrinth, const Maze& maze) {
    durasim::Random random(durasim::mix(labyrinth.seed) + maze.first);
    std::vector<std::uint64_t> points(labyrinth.space.points());
    std::iota(points.begin(), points.end(), 0);
    std::vector<Pair> pairs;
    for (std::uint64_t i = 0; i < maze.count; ++i) {
        for (std::uint64_t end = 2 * i; end < 2 * i + 2; ++end) std::swap(points[end], points[end + random.below(points.size() - end)]);
        pairs.push_back({points[2 * i], points[2 * i + 1]});
    }
    return pairs;
}

// A pair of the queue in this round.
Pair moved(const Labyrinth& labyrinth, const Maze& maze, const Pair& pair) {
    if (maze.round == 0) return pair;
    durasim::Random random(durasim::mix(~labyrinth.seed) + maze.first_pair(labyrinth.populate));
    const Space& space = labyrinth.space;
    const std::uint64_t x = random.below(space.width), y = random.below(space.height), z = random.below(space.layers);
    return {space.moved(pair.source, x, y, z), space.moved(pair.target, x, y, z)};
}

// The memory that a thread needs to connect pairs, in ordinary memory.
class Worker {
public:
    explicit Worker(const Labyrinth& labyrinth) : labyrinth_(labyrinth), router_(labyrinth.space), is_end_(labyrinth.space.points()) {}

    // Prepares for a pair, outside of transactions. `at(i)` is pair i of the queue.
    template <class At>
    void aim(std::uint64_t pair, At&& at) {
        const Maze maze = maze_of(labyrinth_, pair);
        pair_ = moved(labyrinth_, maze, at(pair % labyrinth_.populate));
        const std::uint64_t first_mark = mark_of(maze.first_pair(labyrinth_.populate), 0);
        if (first_mark == first_mark_) return;
        first_mark_ = first_mark;
        std::fill(is_end_.begin(), is_end_.end(), 0);
        for (std::uint64_t i = 0; i < maze.count; ++i) {
            const auto [source, target] = moved(labyrinth_, maze, at(maze.first + i));
            is_end_[source] = is_end_[target] = 1;
        }
    }

    // Whether a point with this mark is free for the path of the pair.
    bool is_free(std::uint64_t point, std::uint64_t mark) const { return mark < first_mark_ && is_end_[point] == 0; }

    // Copies the maze and looks for the path.
    template <class Read>
    bool connect(Read&& read) {
        for (std::uint64_t i = 0; i < is_end_.size(); ++i) router_.prepare(i, !is_free(i, read(i)));
        return router_.connect(pair_.source, pair_.target);
    }

    const Router& router() const { return router_; }

private:
    Labyrinth labyrinth_;
    Router router_;
    std::vector<std::uint8_t> is_end_;  // of each point: whether a pair of the maze begins or ends there
    std::uint64_t first_mark_ = 0;      // of the maze
    Pair pair_{};
};

std::uint64_t lines_of(const Space& space) { return (space.points() + points_of_line - 1) / points_of_line; }

// A line of the maze is an object; marks never come again, so each version is new. A line that no path has met is not there.
template <class Read>
std::uint64_t version_of(const std::uint64_t* line, Read&& read) {
    durasim::Version version;
    bool is_empty = true;
    for (std::uint64_t i = 0; i < points_of_line; ++i) {
        const std::uint64_t mark = read(line[i]);
        version.take(mark);
        is_empty = is_empty && mark == 0;
    }
    return is_empty ? 0 : version.value();
}

// The queue is an object as well, its version the number of pairs taken.
constexpr std::uint64_t queue_object = std::uint64_t{1} << 62;

class LabyrinthWorkload {
public:
    static std::uint64_t arenas(const Arguments&) { return 1; }

    static std::uint64_t pool_bytes(const Arguments& arguments) {
        const Space space = space_of(arguments);
        return durasim::block_bytes(lines_of(space) * durasim::line_bytes) + durasim::block_bytes(arguments.populate * sizeof(Pair)) +
               durasim::block_bytes(arguments.threads * sizeof(Ledger)) + 64 * durasim::line_bytes;
    }

    // A path may go through all points.
    static std::uint64_t log_bytes_min(const Arguments& arguments) {
        return durasim::log_bytes_default + space_of(arguments).points() * 32;
    }

    LabyrinthWorkload(Pool& pool, const Arguments& arguments) {
        if (space_of(arguments).points() > points_max || 2 * arguments.paths > space_of(arguments).points()) {
            durasim::fail(durasim::exit_usage, "labyrinth: a maze has to have two points for each of its --paths, and %llu at most",
                          static_cast<Long>(points_max));
        }
        if (arguments.populate == 0) durasim::fail(durasim::exit_usage, "labyrinth: --populate has to be at least 1");
        shared_ = pool.root<Labyrinth>();
        if (shared_ == nullptr) {
            make(pool, arguments);
            shared_ = pool.root<Labyrinth>();
        }
        if (shared_->kind != kind_of_root) durasim::fail(durasim::exit_usage, "labyrinth: the pool belongs to another workload");
        const Space space = space_of(arguments);
        if (shared_->seed != arguments.seed || shared_->populate != arguments.populate || shared_->threads != arguments.threads ||
            shared_->paths != arguments.paths || std::memcmp(&shared_->space, &space, sizeof space) != 0) {
            durasim::fail(durasim::exit_usage,
                          "labyrinth: the pool was made with --seed %llu --populate %llu --threads %llu --paths %llu --width %llu "
                          "--height %llu --layers %llu; use these",
                          static_cast<Long>(shared_->seed), static_cast<Long>(shared_->populate), static_cast<Long>(shared_->threads),
                          static_cast<Long>(shared_->paths), static_cast<Long>(shared_->space.width),
                          static_cast<Long>(shared_->space.height), static_cast<Long>(shared_->space.layers));
        }
        copy_ = *shared_;
        for (std::uint64_t i = 0; i < copy_.threads; ++i) ledgers_.push_back(copy_.ledger[i]);
    }

    std::uint64_t populated() const { return shared_->queue.pushed; }

    struct Thread {
        std::uint64_t number;
        Ledger ledger;
        std::uint64_t paths;  // laid in this run
        Worker worker;
    };

    Thread enter(std::uint64_t number) const { return {number, ledgers_[number], paths_[number], Worker(copy_)}; }
    void leave(const Thread& thread) {
        ledgers_[thread.number] = thread.ledger;
        paths_[thread.number] = thread.paths;
    }

    void populate_one(Thread&) {
        const std::uint64_t pushed = populated();
        const Maze maze = maze_of(copy_, pushed);
        if (pushed == maze.first) pushing_ = pairs_of(copy_, maze);
        if (pushing_.empty()) pushing_ = pairs_of(copy_, maze);  // an earlier run has left off in the middle of a maze
        const Pair pair = pushing_[pushed - maze.first];
        durasim::tx([&](Tx& t) {
            t.write(copy_.pair[pushed].source, pair.source);
            t.write(copy_.pair[pushed].target, pair.target);
            t.write(shared_->queue.pushed, pushed + 1);
            durasim::report_change(durasim::populated_object, pushed, pushed + 1);
        });
    }

    void operation(Thread& thread) {
        if (thread.ledger.hand != 0) {
            thread.worker.aim(thread.ledger.hand - 1, [this](std::uint64_t i) { return copy_.pair[i]; });
        }
        std::unique_lock<durasim::TxLock> held;
        if (copy_.threads > 1) held = std::unique_lock(lock_);
        const Ledger left = thread.ledger.hand == 0 ? take(thread) : route(thread);
        thread.paths += left.connected != thread.ledger.connected;
        thread.ledger = left;
    }

    void compare_with_model() const {
        // The check has compared the maze with what the ledgers say, and that of one thread with a model; here remains whether
        // the ledgers are right.
        durasim::compare_ledgers(copy_.ledger, ledgers_);
    }

    void print_result() const {
        std::uint64_t paths = 0;
        for (const std::uint64_t laid : paths_) paths += laid;
        std::printf("pairs=%llu paths=%llu", static_cast<Long>(shared_->queue.popped), static_cast<Long>(paths));
    }

    static std::uint64_t check(const Pool& pool);
    static void dump(const Pool& pool, durasim::Dump& dump);

private:
    static Space space_of(const Arguments& arguments) { return {arguments.width, arguments.height, arguments.layers}; }

    static void make(Pool& pool, const Arguments& arguments) {
        durasim::tx([&](Tx& t) {
            const Space space = space_of(arguments);
            auto* labyrinth = static_cast<Labyrinth*>(t.allocate(sizeof(Labyrinth)));
            t.write(labyrinth->kind, kind_of_root);
            t.write(labyrinth->seed, arguments.seed);
            t.write_words(&labyrinth->space, &space, sizeof space);
            t.write(labyrinth->populate, arguments.populate);
            t.write(labyrinth->paths, arguments.paths);
            t.write(labyrinth->threads, arguments.threads);
            t.write(labyrinth->queue.popped, 0);
            t.write(labyrinth->queue.pushed, 0);
            // Memory that was never given out before is zero: the maze is free, and the ledgers say nothing.
            t.write(labyrinth->pair, static_cast<Pair*>(t.allocate(arguments.populate * sizeof(Pair))));
            t.write(labyrinth->point, static_cast<std::uint64_t*>(t.allocate(lines_of(space) * durasim::line_bytes)));
            t.write(labyrinth->ledger, static_cast<Ledger*>(t.allocate(arguments.threads * sizeof(Ledger))));
            pool.set_root(t, labyrinth);
            durasim::report_change(durasim::root_object, 0, kind_of_root);
        });
    }

    // Writes the thread's ledger with one operation more. Words that keep their content need not be written.
    void conclude(Tx& t, const Thread& thread, Ledger& left) {
        const Ledger& found = thread.ledger;
        left.finished = found.finished + 1;
        left.seal = seal_of(copy_.seed, thread.number, left.finished);
        for (const auto word :
             {&Ledger::finished, &Ledger::seal, &Ledger::hand, &Ledger::taken, &Ledger::connected, &Ledger::failed, &Ledger::marks}) {
            if (left.*word != found.*word) t.write(copy_.ledger[thread.number].*word, left.*word);
        }
        durasim::report_change(durasim::progress_object(thread.number), found.finished, left.finished);
    }

    Ledger take(const Thread& thread) {
        Ledger left;
        durasim::tx([&](Tx& t) {
            left = thread.ledger;
            Queue& queue = shared_->queue;
            const std::uint64_t pair = t.read(queue.popped);
            // STAMP asks here whether the queue is at its end.
            const Pair& place = copy_.pair[pair % t.read(queue.pushed)];
            t.write(queue.popped, pair + 1);
            durasim::report_change(queue_object, pair, pair + 1);
            if (t.read(place.source) == t.read(place.target)) DURASIM_VIOLATION("the queue holds a pair that is none");
            left.hand = pair + 1;
            left.taken += stamp_of(pair);
            conclude(t, thread, left);
        });
        return left;
    }

    Ledger route(Thread& thread) {
        const auto load = [this](std::uint64_t i) { return __atomic_load_n(&copy_.point[i], __ATOMIC_RELAXED); };
        const std::uint64_t pair = thread.ledger.hand - 1;
        Ledger left;
        const auto body = [&](Tx& t) {
            left = thread.ledger;
            left.hand = 0;
            const bool is_connected = thread.worker.connect(load);
            report_lines(t);
            if (!is_connected) {
                left.failed += stamp_of(pair);
            } else {
                left.connected += stamp_of(pair);
                if (!lay(t, thread, pair, left)) return false;
            }
            conclude(t, thread, left);
            return true;
        };
        while (!durasim::tx(body)) {
        }
        return left;
    }

    // Writes the path; false: a point is not free any more.
    bool lay(Tx& t, const Thread& thread, std::uint64_t pair, Ledger& left) {
        const Router& router = thread.worker.router();
        for (std::uint64_t i = 0; i < router.length(); ++i) {
            const std::uint64_t at = router.path(i), found = t.read(copy_.point[at]), mark = mark_of(pair, i);
            if (!thread.worker.is_free(at, found)) return false;
            [[maybe_unused]] const std::uint64_t before = version(t, at / points_of_line);
            t.write(copy_.point[at], mark);
            left.marks += stamp_of(at, mark) - stamp_of(at, found);
            if constexpr (durasim::has_history) durasim::report_change(at / points_of_line, before, version(t, at / points_of_line));
        }
        return true;
    }

    std::uint64_t version(Tx& t, std::uint64_t line) const {
        if constexpr (!durasim::has_history) return 0;
        return version_of(copy_.point + line * points_of_line, [&t](const std::uint64_t& place) { return t.read(place); });
    }

    // The path depends on the whole maze.
    void report_lines(Tx& t) const {
        if constexpr (durasim::has_history) {
            for (std::uint64_t line = 0; line < lines_of(copy_.space); ++line) durasim::report_read(line, version(t, line));
        }
    }

    Labyrinth* shared_ = nullptr;
    Labyrinth copy_{};           // what does not change
    std::vector<Pair> pushing_;  // the pairs of the maze that populating is at
    durasim::TxLock lock_;       // of queue and maze; a single thread needs none
    std::vector<Ledger> ledgers_;  // of each thread: what the pool must hold
    std::vector<std::uint64_t> paths_ = std::vector<std::uint64_t>(durasim::threads_max);  // of each thread in this run
};

// Whether the root object is one that its parts can be looked for by.
bool is_possible(const Labyrinth* labyrinth, const Pool& pool) {
    const Space& space = labyrinth->space;
    const std::uint64_t bytes = pool.data_bytes();
    return space.width != 0 && space.height != 0 && space.layers != 0 && space.width <= 1024 && space.height <= 1024 &&
           space.layers <= 64 && space.points() <= points_max && space.points() <= bytes / 8 && labyrinth->paths != 0 &&
           labyrinth->paths <= space.points() / 2 &&
           labyrinth->populate != 0 && labyrinth->populate <= bytes / sizeof(Pair) && labyrinth->queue.pushed <= labyrinth->populate &&
           labyrinth->threads != 0 && labyrinth->threads <= durasim::threads_max && labyrinth->queue.popped >> durasim::operation_bits == 0;
}

void LabyrinthWorkload::dump(const Pool& pool, durasim::Dump& dump) {
    const Labyrinth* labyrinth = pool.root<Labyrinth>();
    if (!durasim::can_be_block(pool, labyrinth, sizeof(Labyrinth))) return dump.note_damage();
    dump.add(durasim::root_object, labyrinth->kind);
    dump.add(durasim::populated_object, labyrinth->queue.pushed);
    dump.add(queue_object, labyrinth->queue.popped);
    if (!is_possible(labyrinth, pool) || !durasim::can_be_block(pool, labyrinth->ledger, labyrinth->threads * sizeof(Ledger)) ||
        !durasim::can_be_block(pool, labyrinth->point, lines_of(labyrinth->space) * durasim::line_bytes)) {
        return dump.note_damage();
    }
    for (std::uint64_t i = 0; i < labyrinth->threads; ++i) dump.add(durasim::progress_object(i), labyrinth->ledger[i].finished);
    for (std::uint64_t line = 0; line < lines_of(labyrinth->space); ++line) {
        dump.add(line, version_of(labyrinth->point + line * points_of_line, [](const std::uint64_t& place) { return place; }));
    }
}

// The sum of what the ledgers say. Each of them has to make sense by itself.
Ledger sum_of(const Labyrinth& labyrinth, std::vector<std::uint64_t>& hands) {
    Ledger sum{};
    for (std::uint64_t i = 0; i < labyrinth.threads; ++i) {
        const Ledger& ledger = labyrinth.ledger[i];
        if (ledger.finished >> durasim::operation_bits != 0 || ledger.seal != seal_of(labyrinth.seed, i, ledger.finished)) {
            DURASIM_VIOLATION("thread %llu cannot have finished %llu operations", static_cast<Long>(i), static_cast<Long>(ledger.finished));
        }
        const bool has_pair = ledger.hand != 0, should_have = ledger.finished % 2 != 0;
        const std::uint64_t held = has_pair ? stamp_of(ledger.hand - 1) : 0;
        if (has_pair != should_have || ledger.hand > labyrinth.queue.popped || ledger.taken != ledger.connected + ledger.failed + held) {
            DURASIM_VIOLATION("thread %llu has lost a pair or has one too many after %llu operations", static_cast<Long>(i),
                              static_cast<Long>(ledger.finished));
        }
        if (has_pair) hands.push_back(ledger.hand - 1);
        for (const auto word : {&Ledger::finished, &Ledger::taken, &Ledger::connected, &Ledger::failed, &Ledger::marks}) {
            sum.*word += ledger.*word;
        }
    }
    std::sort(hands.begin(), hands.end());
    if (std::adjacent_find(hands.begin(), hands.end()) != hands.end()) DURASIM_VIOLATION("two threads have taken the same pair");
    return sum;
}

// A path of the last maze, which nothing has overwritten: `along` has its points by their place.
bool is_path(const Space& space, const Pair& pair, const std::vector<std::uint64_t>& along) {
    std::uint64_t at = pair.target;
    for (const std::uint64_t next : along) {
        if (next == space.points() || !space.are_neighbours(at, next)) return false;
        at = next;
    }
    return space.are_neighbours(at, pair.source);
}

// The paths of the maze that the last pair belongs to are whole; in the first maze no others are missing than those that failed.
void check_last_maze(const Labyrinth& labyrinth, const std::vector<std::uint64_t>& hands, const Ledger& sum) {
    if (labyrinth.queue.popped == 0) return;
    const Maze maze = maze_of(labyrinth, labyrinth.queue.popped - 1);
    const std::uint64_t first = maze.first_pair(labyrinth.populate), points = labyrinth.space.points();
    std::vector<std::vector<std::uint64_t>> along(labyrinth.queue.popped - first);
    for (std::uint64_t i = 0; i < points; ++i) {
        const std::uint64_t mark = labyrinth.point[i];
        if (mark < mark_of(first, 0)) continue;
        auto& path = along[pair_of(mark) - first];
        if (path.size() <= place_of(mark)) path.resize(std::min(place_of(mark) + 1, points), points);
        if (place_of(mark) >= points || path[place_of(mark)] != points) DURASIM_VIOLATION("two points have the same place on a path");
        path[place_of(mark)] = i;
    }
    const auto pairs = pairs_of(labyrinth, maze);
    std::uint64_t connected = 0, failed = 0;
    for (std::uint64_t i = 0; i < along.size(); ++i) {
        if (std::binary_search(hands.begin(), hands.end(), first + i)) continue;
        const Pair pair = moved(labyrinth, maze, pairs[i]);
        const bool has_path = is_path(labyrinth.space, pair, along[i]);
        if (!has_path && !along[i].empty()) DURASIM_VIOLATION("the path of pair %llu is broken", static_cast<Long>(first + i));
        (has_path ? connected : failed) += stamp_of(first + i);
    }
    if (first == 0 && (connected != sum.connected || failed != sum.failed)) {
        DURASIM_VIOLATION("the maze holds other paths than those that the threads have found");
    }
}

// The final state of a single thread, by doing its work again.
void compare_with_sequence(const Labyrinth& labyrinth) {
    std::vector<std::uint64_t> points(labyrinth.space.points());
    Worker worker(labyrinth);
    Ledger left{};
    for (std::uint64_t pair = 0; pair < labyrinth.ledger[0].finished / 2; ++pair) {
        worker.aim(pair, [&](std::uint64_t i) { return labyrinth.pair[i]; });
        if (!worker.connect([&](std::uint64_t i) { return points[i]; })) {
            left.failed += stamp_of(pair);
            continue;
        }
        left.connected += stamp_of(pair);
        for (std::uint64_t i = 0; i < worker.router().length(); ++i) points[worker.router().path(i)] = mark_of(pair, i);
    }
    if (!std::equal(points.begin(), points.end(), labyrinth.point)) {
        DURASIM_VIOLATION("the maze is not that of so many paths, one after the other");
    }
    if (left.connected != labyrinth.ledger[0].connected || left.failed != labyrinth.ledger[0].failed) {
        DURASIM_VIOLATION("other pairs should have a path");
    }
}

std::uint64_t LabyrinthWorkload::check(const Pool& pool) {
    Audit audit(pool);
    if (audit.problem() != nullptr) DURASIM_VIOLATION("%s", audit.problem());
    const Labyrinth* labyrinth = pool.root<Labyrinth>();
    if (!audit.claim(labyrinth, sizeof(Labyrinth))) DURASIM_VIOLATION("the root object is not allocated");
    if (labyrinth->kind != kind_of_root) DURASIM_VIOLATION("the root object is not a labyrinth");
    if (!is_possible(labyrinth, pool)) DURASIM_VIOLATION("the labyrinth has impossible sizes");
    const std::uint64_t points = labyrinth->space.points(), popped = labyrinth->queue.popped, pushed = labyrinth->queue.pushed;
    if (!audit.claim(labyrinth->pair, labyrinth->populate * sizeof(Pair)) ||
        !audit.claim(labyrinth->point, lines_of(labyrinth->space) * durasim::line_bytes) ||
        !audit.claim(labyrinth->ledger, labyrinth->threads * sizeof(Ledger))) {
        DURASIM_VIOLATION("what belongs to the root object is not allocated");
    }
    if (audit.lines_leaked() != 0) DURASIM_VIOLATION("%llu lines are leaked", static_cast<Long>(audit.lines_leaked()));

    for (std::uint64_t i = 0; i < pushed;) {
        for (const Pair& pair : pairs_of(*labyrinth, maze_of(*labyrinth, i))) {
            if (i == pushed) break;
            if (std::memcmp(&labyrinth->pair[i++], &pair, sizeof pair) != 0) DURASIM_VIOLATION("a pair of the queue is torn");
        }
    }
    if (!durasim::is_untouched(labyrinth->pair + pushed, (labyrinth->populate - pushed) * sizeof(Pair))) {
        DURASIM_VIOLATION("a pair that populating has not reached is not empty");
    }
    if (popped != 0 && pushed != labyrinth->populate) DURASIM_VIOLATION("there were operations before all pairs were there");

    std::vector<std::uint64_t> hands;
    const Ledger sum = sum_of(*labyrinth, hands);
    if (popped != (sum.finished + hands.size()) / 2) {
        DURASIM_VIOLATION("%llu pairs were taken by %llu operations", static_cast<Long>(popped), static_cast<Long>(sum.finished));
    }
    std::uint64_t taken = 0, marks = 0;
    for (std::uint64_t pair = 0; pair < popped; ++pair) taken += stamp_of(pair);
    if (taken != sum.taken) DURASIM_VIOLATION("a pair was taken twice or never");
    for (std::uint64_t i = 0; i < lines_of(labyrinth->space) * points_of_line; ++i) {
        const std::uint64_t mark = labyrinth->point[i];
        if (mark == 0) continue;
        if (i >= points || mark < mark_of(0, 0) || pair_of(mark) >= popped ||
            std::binary_search(hands.begin(), hands.end(), pair_of(mark))) {
            DURASIM_VIOLATION("point %llu belongs to a path that there is not", static_cast<Long>(i));
        }
        marks += stamp_of(i, mark);
    }
    if (marks != sum.marks) DURASIM_VIOLATION("the maze is not what the threads wrote");
    check_last_maze(*labyrinth, hands, sum);
    if (labyrinth->threads == 1) compare_with_sequence(*labyrinth);
    return pushed + sum.finished;
}

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<LabyrinthWorkload>(argc, argv); }
