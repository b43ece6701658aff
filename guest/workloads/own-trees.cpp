// durasim-workload: own-trees — threads that each insert into a tree of its own and update it, some without transactions
//
// The experiment of Hercules (TECS'23, section 5.3, Table 5): an ordinary thread, which operates on a B+-tree or a red-black
// tree without transactions, shares a core with a thread that operates on a second tree in transactions, or without. The
// misses of the ordinary thread show what the other one's transactions cost it.
//
// --ordinary threads, the first ones, store to their trees outside of transactions, as a program does that does not care
// for power failures. A power failure may tear their trees, so such a pool is checked at the end of its run alone.
//
// Nothing is shared, so no lock is needed. The n-th operation of a thread depends on seed, thread and n alone: the first
// --items-max insert a key each, and all that follow update one of these at random. So the count of a thread's operations,
// which is written in the transaction, says what its tree holds.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "durasim/random.h"
#include "structures/bplus_tree.h"
#include "structures/red_black_tree.h"
#include "workloads/harness.h"

namespace {

using durasim::Arguments;
using durasim::Audit;
using durasim::BPlusTree;
using durasim::Long;
using durasim::MapShape;
using durasim::Pool;
using durasim::RedBlackTree;
using durasim::Tx;

constexpr std::uint64_t kind_of_root = 0x73656572746e776f;  // "owntrees"

// The tree of a thread and its finished operations, on a line of the pool of its own. The seal says that the count was
// written by the thread.
struct alignas(64) Side {
    std::uint64_t top;
    std::uint64_t finished;
    std::uint64_t seal;
};

struct alignas(64) Root {
    std::uint64_t kind;
    std::uint64_t seed;
    std::uint64_t threads;
    std::uint64_t ordinary;
    std::uint64_t items_max;
    std::uint64_t node_bytes;  // of a B+-tree, 0 for red-black trees
    Side* side;

    MapShape shape() const { return {.value_bytes = 8, .parameter = node_bytes, .erases = false}; }
    bool is_bplus() const { return node_bytes != 0; }
};

// Calls use(type_identity<Tree>) for the kind of tree that there is.
template <class Use>
auto with_tree(const Root& root, Use&& use) {
    return root.is_bplus() ? use(std::type_identity<BPlusTree>{}) : use(std::type_identity<RedBlackTree>{});
}

std::uint64_t key_of(const Root& root, std::uint64_t thread, std::uint64_t index) {
    return durasim::mix(durasim::mix(root.seed) + durasim::operation_of(thread, index));
}

// The value that an operation gives its key: never 0.
std::uint64_t value_of(std::uint64_t key, std::uint64_t number) { return durasim::mix(key + number) | 1; }

std::uint64_t seal_of(std::uint64_t thread, std::uint64_t finished) { return finished == 0 ? 0 : durasim::mix(durasim::mix(finished) + thread + 1); }

bool inserts(const Root& root, std::uint64_t number) { return root.items_max == 0 || number < root.items_max; }

// The key of operation `number` of a thread.
std::uint64_t index_of(const Root& root, std::uint64_t thread, std::uint64_t number) {
    if (inserts(root, number)) return number;
    return durasim::Random(durasim::mix(root.seed) + durasim::operation_of(thread, number) * 0x632BE59BD9B4E019u).below(root.items_max);
}

class OwnTrees {
public:
    struct Thread {
        std::uint64_t number;
        std::uint64_t finished;
    };

    static std::uint64_t arenas(const Arguments& arguments) { return arguments.threads; }
    static std::uint64_t pool_bytes(const Arguments& arguments) {
        std::uint64_t keys = (arguments.populate + arguments.ops) / arguments.threads + 2;
        if (arguments.items_max != 0) keys = std::min(keys, arguments.items_max);
        const std::uint64_t tree = with_tree(root_of(arguments), [&]<class Tree>(std::type_identity<Tree>) {
            return Tree::bytes(root_of(arguments).shape(), keys, keys);
        });
        const std::uint64_t shared = sizeof(durasim::ArenaHeader) + sizeof(Root) + durasim::block_bytes(arguments.threads * sizeof(Side));
        return arguments.threads * (tree + shared);
    }

    OwnTrees(Pool& pool, const Arguments& arguments) {
        const Root wanted = root_of(arguments);
        if (wanted.node_bytes % durasim::line_bytes != 0) {
            durasim::fail(durasim::exit_usage, "own-trees: --node-bytes has to be a multiple of 64, not %llu", static_cast<Long>(wanted.node_bytes));
        }
        if (wanted.ordinary > wanted.threads) {
            durasim::fail(durasim::exit_usage, "own-trees: --ordinary has to be at most --threads, which is %llu", static_cast<Long>(wanted.threads));
        }
        if (wanted.ordinary != 0 && std::strcmp(durasim::Runtime::name, "markers") != 0) {
            durasim::fail(durasim::exit_usage, "own-trees: the runtime %s has no stores outside of transactions; take a design without one, or --ordinary 0",
                          durasim::Runtime::name);
        }
        const bool is_new = pool.root<Root>() == nullptr;
        if (is_new) make(pool, wanted);
        const Root* root = pool.root<Root>();
        if (root->kind != kind_of_root) durasim::fail(durasim::exit_usage, "own-trees: the pool belongs to another workload");
        if (root->seed != wanted.seed || root->threads != wanted.threads || root->ordinary != wanted.ordinary ||
            root->items_max != wanted.items_max || root->node_bytes != wanted.node_bytes) {
            durasim::fail(durasim::exit_usage,
                          "own-trees: the pool was made with --seed %llu --threads %llu --ordinary %llu --items-max %llu --tree %s%s; use these",
                          static_cast<Long>(root->seed), static_cast<Long>(root->threads), static_cast<Long>(root->ordinary),
                          static_cast<Long>(root->items_max), root->is_bplus() ? "b-plus" : "red-black",
                          root->is_bplus() ? " with its --node-bytes" : "");
        }
        if (root->ordinary != 0 && !is_new) {
            durasim::fail(durasim::exit_usage, "own-trees: a power failure may have torn the trees of --ordinary threads, so this pool cannot be used again");
        }
        root_ = *root;
        for (std::uint64_t i = 0; i < root_.threads; ++i) finished_.push_back(root_.side[i].finished);
        has_run = true;
    }

    std::uint64_t populated() const {
        std::uint64_t operations = 0;
        for (std::uint64_t i = 0; i < root_.threads; ++i) operations += root_.side[i].finished;
        return operations;
    }

    Thread enter(std::uint64_t number) const { return {number, finished_[number]}; }
    void leave(const Thread& thread) { finished_[thread.number] = thread.finished; }

    void populate_one(Thread& first) {
        const std::uint64_t number = smallest();
        Thread thread{number, finished_[number]};
        operation(thread);
        leave(thread);
        if (number == first.number) first = thread;
    }

    void operation(Thread& thread) {
        if (root_.is_bplus()) {
            operation_on<BPlusTree>(thread);
        } else {
            operation_on<RedBlackTree>(thread);
        }
        ++thread.finished;
    }

    void compare_with_model() const {
        for (std::uint64_t i = 0; i < finished_.size(); ++i) {
            if (root_.side[i].finished != finished_[i]) {
                DURASIM_VIOLATION("thread %llu finished %llu operations, but the pool says %llu", static_cast<Long>(i),
                                  static_cast<Long>(finished_[i]), static_cast<Long>(root_.side[i].finished));
            }
        }
    }

    void print_result() const {
        std::uint64_t keys = 0;
        for (const std::uint64_t finished : finished_) keys += keys_after(root_, finished);
        std::printf("keys=%llu", static_cast<Long>(keys));
    }

    static std::uint64_t check(const Pool& pool) {
        Audit audit(pool);
        if (audit.problem() != nullptr) DURASIM_VIOLATION("%s", audit.problem());
        const Root* root = pool.root<Root>();
        if (!audit.claim(root, sizeof(Root))) DURASIM_VIOLATION("the root object is not allocated");
        if (root->kind != kind_of_root) DURASIM_VIOLATION("the root object is not one of trees");
        if (!is_possible(pool, *root)) DURASIM_VIOLATION("the root object has impossible sizes");
        if (root->ordinary != 0 && !has_run) {
            durasim::fail(durasim::exit_usage, "own-trees: a power failure may tear the trees of --ordinary threads, so this pool cannot be checked");
        }
        if (!audit.claim(root->side, root->threads * sizeof(Side))) DURASIM_VIOLATION("what belongs to the root object is not allocated");
        std::uint64_t operations = 0;
        for (std::uint64_t i = 0; i < root->threads; ++i) operations += check_thread(*root, i, audit);
        if (audit.lines_leaked() != 0) DURASIM_VIOLATION("%llu lines are leaked", static_cast<Long>(audit.lines_leaked()));
        return operations;
    }

    static void dump(const Pool& pool, durasim::Dump& dump) {
        const Root* root = pool.root<Root>();
        if (!pool.holds(root, sizeof(Root))) return dump.note_damage();
        dump.add(durasim::root_object, root->kind);
        if (!is_possible(pool, *root) || !pool.holds(root->side, root->threads * sizeof(Side))) return dump.note_damage();
        for (std::uint64_t i = 0; i < root->threads; ++i) {
            dump.add(durasim::progress_object(i), root->side[i].finished);
            const bool is_whole = with_tree(*root, [&]<class Tree>(std::type_identity<Tree>) {
                return Tree(root->shape(), root->side[i].top, i).dump(pool, [&](std::uint64_t key, const std::uint64_t* value) {
                    dump.add(key, *value);
                });
            });
            if (!is_whole) dump.note_damage();
        }
    }

private:
    static Root root_of(const Arguments& arguments) {
        Root root{};
        root.kind = kind_of_root;
        root.seed = arguments.seed;
        root.threads = arguments.threads;
        root.ordinary = arguments.ordinary;
        root.items_max = arguments.items_max;
        root.node_bytes = std::strcmp(arguments.tree, "b-plus") == 0 ? arguments.node_bytes : 0;
        return root;
    }

    static bool is_possible(const Pool& pool, const Root& root) {
        if (root.threads == 0 || root.threads > durasim::threads_max || root.threads != pool.arenas() || root.ordinary > root.threads) return false;
        return with_tree(root, [&]<class Tree>(std::type_identity<Tree>) { return Tree::is_possible(root.shape()); });
    }

    static void make(Pool& pool, const Root& wanted) {
        durasim::tx([&](Tx& t) {
            auto* root = static_cast<Root*>(t.allocate(sizeof(Root)));
            auto* side = static_cast<Side*>(t.allocate(wanted.threads * sizeof(Side)));
            for (std::uint64_t i = 0; i < wanted.threads; ++i) {
                t.write(side[i].finished, 0);
                t.write(side[i].seal, 0);
                with_tree(wanted, [&]<class Tree>(std::type_identity<Tree>) { Tree(wanted.shape(), side[i].top, i).make(t); });
            }
            t.write(root->kind, wanted.kind);
            t.write(root->seed, wanted.seed);
            t.write(root->threads, wanted.threads);
            t.write(root->ordinary, wanted.ordinary);
            t.write(root->items_max, wanted.items_max);
            t.write(root->node_bytes, wanted.node_bytes);
            t.write(root->side, side);
            pool.set_root(t, root);
            durasim::report_change(durasim::root_object, 0, wanted.kind);
        });
    }

    template <class Tree>
    [[gnu::noinline]] void operation_on(const Thread& thread) {
        Side& side = root_.side[thread.number];
        const std::uint64_t key = key_of(root_, thread.number, index_of(root_, thread.number, thread.finished));
        const std::uint64_t value = value_of(key, thread.finished);
        const bool is_insertion = inserts(root_, thread.finished);
        const auto body = [&](Tx& t) {
            Tree tree(root_.shape(), side.top, thread.number);
            std::uint64_t* const place = is_insertion ? tree.insert(t, key) : tree.find(t, key);
            if constexpr (durasim::has_history) {
                durasim::report_change(key, is_insertion ? 0 : t.read(*place), value);
                durasim::report_change(durasim::progress_object(thread.number), thread.finished, thread.finished + 1);
            }
            t.write(*place, value);
            t.write(side.finished, thread.finished + 1);
            t.write(side.seal, seal_of(thread.number, thread.finished + 1));
        };
        if (thread.number < root_.ordinary) {
            Tx stores;
            body(stores);
        } else {
            durasim::tx(body);
        }
    }

    std::uint64_t smallest() const {
        std::uint64_t found = 0;
        for (std::uint64_t i = 1; i < root_.threads; ++i) {
            if (root_.side[i].finished < root_.side[found].finished) found = i;
        }
        return found;
    }

    static std::uint64_t keys_after(const Root& root, std::uint64_t finished) {
        return root.items_max == 0 ? finished : std::min(finished, root.items_max);
    }

    // The tree of a thread holds what its operations leave.
    static std::uint64_t check_thread(const Root& root, std::uint64_t thread, Audit& audit) {
        using Item = std::pair<std::uint64_t, std::uint64_t>;
        const std::uint64_t finished = root.side[thread].finished;
        if (finished >> durasim::operation_bits != 0 || root.side[thread].seal != seal_of(thread, finished)) {
            DURASIM_VIOLATION("thread %llu has an impossible count", static_cast<Long>(thread));
        }
        std::vector<Item> found;
        const char* problem = with_tree(root, [&]<class Tree>(std::type_identity<Tree>) {
            return Tree(root.shape(), root.side[thread].top, thread).check(audit, [&](std::uint64_t key, const std::uint64_t* value) {
                found.emplace_back(key, *value);
            });
        });
        if (problem != nullptr) DURASIM_VIOLATION("%s", problem);
        if (found.size() != keys_after(root, finished)) {
            DURASIM_VIOLATION("%llu keys are in the tree of thread %llu, but %llu operations leave %llu", static_cast<Long>(found.size()),
                              static_cast<Long>(thread), static_cast<Long>(finished), static_cast<Long>(keys_after(root, finished)));
        }
        std::vector<Item> model(found.size());
        for (std::uint64_t n = 0; n < finished; ++n) {
            const std::uint64_t index = index_of(root, thread, n), key = key_of(root, thread, index);
            model[index] = {key, value_of(key, n)};
        }
        std::sort(found.begin(), found.end());
        std::sort(model.begin(), model.end());
        for (std::uint64_t i = 0; i < model.size(); ++i) {
            if (found[i] == model[i]) continue;
            DURASIM_VIOLATION("key %llx of thread %llu has %llx in the pool, but %llu operations leave %llx for key %llx", static_cast<Long>(found[i].first),
                              static_cast<Long>(thread), static_cast<Long>(found[i].second), static_cast<Long>(finished),
                              static_cast<Long>(model[i].second), static_cast<Long>(model[i].first));
        }
        return finished;
    }

    static inline bool has_run = false;  // this program has operated on the pool
    Root root_{};  // a copy: nothing of it changes but what `side` points to
    std::vector<std::uint64_t> finished_;
};

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<OwnTrees>(argc, argv); }
