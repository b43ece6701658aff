// durasim-workload: btree — a B+-tree into which unique random keys are inserted, 8-byte keys and values, one transaction each
//
// A node is a header of 16 bytes, an array of keys and an array of values or children, all sorted in place, so that an
// insertion into a node of n keys moves n / 2 keys and n / 2 values on average. The default node of 256 bytes holds 15 keys:
// a transaction then modifies 5.4 lines on average (1 KiB: 9.8, 4 KiB: 27, 6 KiB: 38 lines). Hercules (TECS'23, Table 4)
// reports 34.4 lines for its B+-tree and does not say how its nodes look; --node-bytes 5440 comes close to that.
//
// Several threads share several trees, each with a range of the keys, a lock and an arena of its own.
#include <algorithm>
#include <cstdint>
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

constexpr std::uint64_t kind_of_root = 0x6565727462;  // "btree"
constexpr unsigned levels_max = 48;

struct Node {
    std::uint32_t count;  // of keys
    std::uint32_t level;  // 0 for a leaf
    Node* link;           // leaf: the next leaf; inner node: the child left of the first key

    std::uint64_t* keys() { return reinterpret_cast<std::uint64_t*>(this + 1); }
    const std::uint64_t* keys() const { return reinterpret_cast<const std::uint64_t*>(this + 1); }
    // Values of a leaf; in an inner node the child right of the key with the same index.
    std::uint64_t* values(std::uint64_t capacity) { return keys() + capacity; }
    const std::uint64_t* values(std::uint64_t capacity) const { return keys() + capacity; }
};
static_assert(sizeof(Node) == 16);

// The top of a tree, on a line of the pool of its own.
struct alignas(64) Tree {
    Node* top;
};

struct alignas(64) Forest {
    std::uint64_t kind;
    std::uint64_t seed;
    std::uint64_t node_bytes;
    std::uint32_t trees;
    std::uint32_t threads;
    Tree* tree;          // null if there are one tree and one thread: `only_top` and `only_finished` take their place
    Progress* progress;  // of each thread; populating counts for the first
    Node* only_top;
    std::uint64_t only_finished;

    Node*& top(std::uint64_t number) { return tree == nullptr ? only_top : tree[number].top; }
    const Node* top(std::uint64_t number) const { return tree == nullptr ? only_top : tree[number].top; }
    std::uint64_t& finished(std::uint64_t thread) { return progress == nullptr ? only_finished : progress[thread].finished; }
    std::uint64_t finished(std::uint64_t thread) const {
        return progress == nullptr ? only_finished : progress[thread].finished;
    }
    bool is_simple() const { return trees == 1 && threads == 1; }
};
static_assert(sizeof(Forest) == durasim::line_bytes);

// Trees per thread if several threads share them: few enough to meet, many enough not to queue. All are made in one
// transaction, which sets a bound.
constexpr std::uint64_t trees_per_thread = 4;
constexpr std::uint64_t trees_default_max = 64;

constexpr std::uint64_t capacity_of(std::uint64_t node_bytes) { return (node_bytes - sizeof(Node)) / 16; }

// The key of a thread's n-th insertion. Different operations give different keys.
std::uint64_t key_of(std::uint64_t seed, std::uint64_t thread, std::uint64_t number) {
    return durasim::mix(durasim::mix(seed) + durasim::operation_of(thread, number));
}

// The tree that a key belongs to: each has an equal part of all numbers.
std::uint64_t tree_of(std::uint64_t key, std::uint64_t trees) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(key) * trees) >> 64);
}

std::uint64_t value_of(std::uint64_t key) { return durasim::mix(key ^ 0xD1B54A32D192ED03u); }

// How many of the first `count` keys are less than or equal to `key` (`or_equal`), or less.
template <bool or_equal, class Read>
std::uint64_t rank(const Node* node, std::uint64_t count, std::uint64_t key, Read&& read) {
    const std::uint64_t* keys = node->keys();
    std::uint64_t low = 0;
    for (std::uint64_t length = count; length > 0;) {
        const std::uint64_t half = length / 2;
        const std::uint64_t at = read(keys[low + half]);
        if (or_equal ? at <= key : at < key) {
            low += half + 1;
            length -= half + 1;
        } else {
            length = half;
        }
    }
    return low;
}

class Btree {
public:
    static std::uint64_t arenas(const Arguments& arguments) {
        if (arguments.trees != 0) return arguments.trees;
        return arguments.threads == 1 ? 1 : std::min(arguments.threads * trees_per_thread, trees_default_max);
    }

    static std::uint64_t pool_bytes(const Arguments& arguments) {
        check_node_bytes(arguments.node_bytes);
        const std::uint64_t trees = arenas(arguments);
        // Every arena has room for its tree and what all share. A leaf that is not the top has at least half of its keys
        // and an inner node at least (capacity - 1) / 2 and one more child: the levels above the leaves form a geometric
        // series, and the first leaf and the top may hold less.
        const std::uint64_t capacity = capacity_of(arguments.node_bytes);
        const std::uint64_t leaves = keys_max(arguments.populate + arguments.ops, trees) / (capacity / 2) + 1;
        const std::uint64_t nodes = leaves + leaves / ((capacity - 1) / 2) + 2;
        const std::uint64_t shared = sizeof(durasim::ArenaHeader) + sizeof(Forest) +
                                     durasim::block_bytes(trees * sizeof(Tree)) +
                                     durasim::block_bytes(arguments.threads * sizeof(Progress));
        return trees * (nodes * durasim::block_bytes(arguments.node_bytes) + shared);
    }

    Btree(Pool& pool, const Arguments& arguments) {
        check_node_bytes(arguments.node_bytes);
        forest_ = pool.root<Forest>();
        if (forest_ == nullptr) {
            make(pool, arguments);
            forest_ = pool.root<Forest>();
        }
        if (forest_->kind != kind_of_root) durasim::fail(durasim::exit_usage, "btree: the pool belongs to another workload");
        if (forest_->seed != arguments.seed || forest_->node_bytes != arguments.node_bytes ||
            forest_->trees != arenas(arguments) || forest_->threads != arguments.threads) {
            durasim::fail(durasim::exit_usage,
                          "btree: the pool was made with --seed %llu --node-bytes %llu --trees %llu --threads %llu; use these",
                          static_cast<Long>(forest_->seed), static_cast<Long>(forest_->node_bytes),
                          static_cast<Long>(forest_->trees), static_cast<Long>(forest_->threads));
        }
        trees_ = forest_->trees;
        node_bytes_ = forest_->node_bytes;
        capacity_ = capacity_of(node_bytes_);
        seed_ = forest_->seed;
        finished_.resize(forest_->threads);
        for (std::uint64_t i = 0; i < finished_.size(); ++i) finished_[i] = forest_->finished(i);
        if (forest_->threads > 1) locks_ = std::make_unique<durasim::Lock[]>(trees_);
    }

    std::uint64_t populated() const { return forest_->finished(0); }

    struct Thread {
        std::uint64_t number;
        std::uint64_t finished;  // insertions
    };

    Thread enter(std::uint64_t number) const { return {number, finished_[number]}; }
    void leave(const Thread& thread) { finished_[thread.number] = thread.finished; }

    void populate_one(Thread& thread) { operation(thread); }

    void operation(Thread& thread) {
        const std::uint64_t key = key_of(seed_, thread.number, thread.finished);
        const std::uint64_t tree = tree_of(key, trees_);
        if (locks_ == nullptr) {
            insert_next(thread, tree, key);
        } else {
            const std::lock_guard held(locks_[tree]);
            insert_next(thread, tree, key);
        }
    }

    void compare_with_model() const {
        std::vector<std::uint64_t> model;
        for (std::uint64_t thread = 0; thread < finished_.size(); ++thread) {
            for (std::uint64_t i = 0; i < finished_[thread]; ++i) model.push_back(key_of(seed_, thread, i));
        }
        std::sort(model.begin(), model.end());
        std::uint64_t at = 0;
        for (std::uint64_t tree = 0; tree < trees_; ++tree) {
            const Node* leaf = forest_->top(tree);
            while (leaf->level != 0) leaf = leaf->link;
            for (; leaf != nullptr; leaf = leaf->link) {
                for (std::uint64_t i = 0; i < leaf->count; ++i, ++at) {
                    if (at >= model.size() || leaf->keys()[i] != model[at] ||
                        leaf->values(capacity_)[i] != value_of(model[at])) {
                        DURASIM_VIOLATION("place %llu of the leaves differs from the model", static_cast<Long>(at));
                    }
                }
            }
        }
        if (at != model.size()) {
            DURASIM_VIOLATION("there are %llu keys in the pool and %llu in the model", static_cast<Long>(at),
                              static_cast<Long>(model.size()));
        }
    }

    void print_result() const {
        std::uint64_t keys = 0;
        unsigned height = 0;
        for (const std::uint64_t finished : finished_) keys += finished;
        for (std::uint64_t i = 0; i < trees_; ++i) height = std::max(height, forest_->top(i)->level + 1);
        std::printf("keys=%llu height=%u", static_cast<Long>(keys), height);
    }

    static std::uint64_t check(const Pool& pool);
    static void dump(const Pool& pool, durasim::Dump& dump);

private:
    // More of `keys` random keys than this do not fall into one of `trees` trees, but with a chance below 10^-15: eight
    // standard deviations above the mean.
    static std::uint64_t keys_max(std::uint64_t keys, std::uint64_t trees) {
        const std::uint64_t mean = keys / trees + 1;
        std::uint64_t root = 1;
        while (root * root < mean) ++root;
        return trees == 1 ? keys : std::min(keys, mean + 8 * root + 16);
    }

    static void make(Pool& pool, const Arguments& arguments) {
        const std::uint64_t trees = arenas(arguments);
        durasim::tx([&](Tx& t) {
            auto* forest = static_cast<Forest*>(t.allocate(sizeof(Forest)));
            Tree* tree = nullptr;
            Progress* progress = nullptr;
            if (trees > 1 || arguments.threads > 1) {
                tree = static_cast<Tree*>(t.allocate(trees * sizeof(Tree)));
                progress = static_cast<Progress*>(t.allocate(arguments.threads * sizeof(Progress)));
                for (std::uint64_t i = 0; i < arguments.threads; ++i) t.write(progress[i].finished, 0);
            }
            for (std::uint64_t i = 0; i < trees; ++i) {
                auto* leaf = static_cast<Node*>(t.allocate(arguments.node_bytes, i));
                t.write(leaf->count, 0);
                t.write(leaf->level, 0);
                t.write(leaf->link, nullptr);
                t.write(tree == nullptr ? forest->only_top : tree[i].top, leaf);
            }
            t.write(forest->only_finished, 0);
            t.write(forest->kind, kind_of_root);
            t.write(forest->seed, arguments.seed);
            t.write(forest->node_bytes, arguments.node_bytes);
            t.write(forest->trees, static_cast<std::uint32_t>(trees));
            t.write(forest->threads, static_cast<std::uint32_t>(arguments.threads));
            t.write(forest->tree, tree);
            t.write(forest->progress, progress);
            pool.set_root(t, forest);
            if constexpr (durasim::has_history) durasim::report_change(durasim::root_object, 0, kind_of_root);
        });
    }

    static void check_node_bytes(std::uint64_t node_bytes) {
        if (node_bytes % durasim::line_bytes != 0) {
            durasim::fail(durasim::exit_usage, "btree: --node-bytes has to be a multiple of 64, not %llu",
                          static_cast<Long>(node_bytes));
        }
    }

    void insert_next(Thread& thread, std::uint64_t tree, std::uint64_t key) {
        durasim::tx([&](Tx& t) {
            insert(t, tree, key, value_of(key));
            if constexpr (durasim::has_history) {
                const std::uint64_t finished = t.read(forest_->finished(thread.number));
                durasim::report_change(durasim::progress_object(thread.number), finished, thread.finished + 1);
            }
            t.write(forest_->finished(thread.number), thread.finished + 1);
        });
        ++thread.finished;
    }

    // Inserts into tree `tree`, which allocates from the arena of the same number.
    void insert(Tx& t, std::uint64_t tree, std::uint64_t key, std::uint64_t value) {
        auto read = [&t](const std::uint64_t& place) { return t.read(place); };
        Node* path[levels_max];
        Node* node = t.read(forest_->top(tree));
        const std::uint32_t height = t.read(node->level);
        for (std::uint32_t level = height; level > 0; --level) {
            path[level] = node;
            const std::uint64_t at = rank<true>(node, t.read(node->count), key, read);
            node = at == 0 ? t.read(node->link) : reinterpret_cast<Node*>(t.read(node->values(capacity_)[at - 1]));
        }
        path[0] = node;
        // `key` and `value` go into path[level]; a split passes its separator and the new node upwards.
        for (std::uint32_t level = 0;; ++level) {
            node = path[level];
            const std::uint64_t count = t.read(node->count);
            const std::uint64_t at = rank<false>(node, count, key, read);
            if constexpr (durasim::has_history) {  // an object is a key, its version the value
                const bool is_there = at < count && t.read(node->keys()[at]) == key;
                if (level == 0) durasim::report_change(key, is_there ? t.read(node->values(capacity_)[at]) : 0, value);
            }
            if (count < capacity_) {
                insert_at(t, node, count, at, key, value);
                return;
            }
            Node* right = split(t, tree, node, level, at, key, value);
            value = reinterpret_cast<std::uint64_t>(right);
            if (level == height) {
                auto* top = static_cast<Node*>(t.allocate(node_bytes_, tree));
                t.write(top->count, 1);
                t.write(top->level, height + 1);
                t.write(top->link, node);
                t.write(top->keys()[0], key);
                t.write(top->values(capacity_)[0], value);
                t.write(forest_->top(tree), top);
                return;
            }
        }
    }

    void insert_at(Tx& t, Node* node, std::uint64_t count, std::uint64_t at, std::uint64_t key, std::uint64_t value) {
        std::uint64_t* keys = node->keys();
        std::uint64_t* values = node->values(capacity_);
        for (std::uint64_t i = count; i > at; --i) t.write(keys[i], t.read(keys[i - 1]));
        t.write(keys[at], key);
        for (std::uint64_t i = count; i > at; --i) t.write(values[i], t.read(values[i - 1]));
        t.write(values[at], value);
        t.write(node->count, static_cast<std::uint32_t>(count + 1));
    }

    // Splits a full node and inserts the entry. Returns the new right node and leaves its separator in `key`.
    Node* split(Tx& t, std::uint64_t tree, Node* node, std::uint32_t level, std::uint64_t at, std::uint64_t& key,
                std::uint64_t value) {
        std::uint64_t* keys = node->keys();
        std::uint64_t* values = node->values(capacity_);
        auto* right = static_cast<Node*>(t.allocate(node_bytes_, tree));
        const std::uint64_t middle = level == 0 ? (capacity_ + 1) / 2 : capacity_ / 2;
        std::uint64_t separator = t.read(keys[middle]);
        std::uint64_t from = middle;
        t.write(right->level, level);
        if (level == 0) {
            t.write(right->link, t.read(node->link));
            t.write(node->link, right);
        } else {  // the separator moves up, and the child behind it becomes the leftmost of the right node
            t.write(right->link, reinterpret_cast<Node*>(t.read(values[middle])));
            ++from;
        }
        const std::uint64_t moved = capacity_ - from;
        for (std::uint64_t i = 0; i < moved; ++i) {
            t.write(right->keys()[i], t.read(keys[from + i]));
            t.write(right->values(capacity_)[i], t.read(values[from + i]));
        }
        if (at <= middle) {
            t.write(right->count, static_cast<std::uint32_t>(moved));
            insert_at(t, node, middle, at, key, value);
        } else {
            t.write(node->count, static_cast<std::uint32_t>(middle));
            insert_at(t, right, moved, at - from, key, value);
        }
        key = separator;
        return right;
    }

    Forest* forest_ = nullptr;
    std::uint64_t trees_ = 0;
    std::uint64_t node_bytes_ = 0;
    std::uint64_t capacity_ = 0;
    std::uint64_t seed_ = 0;
    std::unique_ptr<durasim::Lock[]> locks_;  // of the trees; a single thread needs none
    std::vector<std::uint64_t> finished_;     // by each thread: what the pool must hold
};

// Verifies the trees of `forest`, whose own fields are known to be possible, without trusting them.
class Checker {
public:
    Checker(const Forest* forest, Audit& audit) : forest_(forest), audit_(audit), capacity_(capacity_of(forest->node_bytes)) {}

    // Returns the number of insertions.
    std::uint64_t check() {
        for (std::uint64_t i = 0; i < forest_->trees; ++i) check_tree(i);
        std::uint64_t counted = 0;
        for (std::uint64_t thread = 0; thread < forest_->threads; ++thread) {
            const std::uint64_t finished = forest_->finished(thread);
            if (finished > keys_) refuse_count(finished);
            counted += finished;
        }
        if (counted != keys_) refuse_count(counted);
        // Together with the counts this says: exactly the first insertions of each thread are there, none lost, none halved.
        for (std::uint64_t thread = 0; thread < forest_->threads; ++thread) {
            const std::uint64_t finished = forest_->finished(thread);
            for (std::uint64_t i = 0; i < finished; ++i) {
                if (!contains(key_of(forest_->seed, thread, i))) {
                    DURASIM_VIOLATION("insertion %llu of %llu by thread %llu is missing", static_cast<Long>(i),
                                      static_cast<Long>(finished), static_cast<Long>(thread));
                }
            }
        }
        return counted;
    }

private:
    [[noreturn]] void refuse_count(std::uint64_t counted) const {
        DURASIM_VIOLATION("%llu keys are in the leaves, but %llu insertions were counted", static_cast<Long>(keys_),
                          static_cast<Long>(counted));
    }

    void check_tree(std::uint64_t number) {
        top_ = forest_->top(number);
        number_ = number;
        leaf_before_ = nullptr;
        if (!audit_.claim(top_, forest_->node_bytes)) DURASIM_VIOLATION("a tree starts outside of its memory");
        if (top_->level >= levels_max) DURASIM_VIOLATION("a tree has an impossible height");
        walk(top_, top_->level, 0, ~std::uint64_t{0});
        if (leaf_before_ != nullptr && leaf_before_->link != nullptr) DURASIM_VIOLATION("the last leaf links to another");
    }

    // `node` is claimed; its keys have to lie in [low, high].
    void walk(const Node* node, std::uint32_t level, std::uint64_t low, std::uint64_t high) {
        if (node->level != level) DURASIM_VIOLATION("the tree is not balanced");
        const std::uint64_t count = node->count;
        const std::uint64_t least = node == top_ ? (level == 0 ? 0 : 1) : level == 0 ? capacity_ / 2 : (capacity_ - 1) / 2;
        if (count > capacity_ || count < least) DURASIM_VIOLATION("a node has an impossible number of keys: %llu", static_cast<Long>(count));
        for (std::uint64_t i = 0; i < count; ++i) {
            const std::uint64_t key = node->keys()[i];
            if (key < low || key > high || (i > 0 && key <= node->keys()[i - 1])) DURASIM_VIOLATION("keys are out of order");
        }
        if (level == 0) {
            for (std::uint64_t i = 0; i < count; ++i) {
                const std::uint64_t key = node->keys()[i];
                if (node->values(capacity_)[i] != value_of(key)) DURASIM_VIOLATION("a value does not belong to its key");
                if (tree_of(key, forest_->trees) != number_) DURASIM_VIOLATION("a key is in the wrong tree");
            }
            if (leaf_before_ != nullptr && leaf_before_->link != node) DURASIM_VIOLATION("the links of the leaves are broken");
            leaf_before_ = node;
            keys_ += count;
            return;
        }
        for (std::uint64_t i = 0; i <= count; ++i) {
            const Node* child = i == 0 ? node->link : reinterpret_cast<const Node*>(node->values(capacity_)[i - 1]);
            if (!audit_.claim(child, forest_->node_bytes)) DURASIM_VIOLATION("a node is reachable twice or not allocated");
            walk(child, level - 1, i == 0 ? low : node->keys()[i - 1], i == count ? high : node->keys()[i] - 1);
        }
    }

    bool contains(std::uint64_t key) const {
        auto read = [](const std::uint64_t& place) { return place; };
        const Node* node = forest_->top(tree_of(key, forest_->trees));
        while (node->level > 0) {
            const std::uint64_t at = rank<true>(node, node->count, key, read);
            node = at == 0 ? node->link : reinterpret_cast<const Node*>(node->values(capacity_)[at - 1]);
        }
        const std::uint64_t at = rank<false>(node, node->count, key, read);
        return at < node->count && node->keys()[at] == key;
    }

    const Forest* forest_;
    Audit& audit_;
    std::uint64_t capacity_;
    // Of the tree being walked.
    const Node* top_ = nullptr;
    std::uint64_t number_ = 0;
    const Node* leaf_before_ = nullptr;
    std::uint64_t keys_ = 0;  // in all trees
};

// Follows the links of the leaves. Whether the inner nodes lead to them is for the check to say.
void Btree::dump(const Pool& pool, durasim::Dump& dump) {
    const Forest* forest = pool.root<Forest>();
    if (!pool.holds(forest, sizeof(Forest))) return dump.note_damage();
    dump.add(durasim::root_object, forest->kind);
    const std::uint64_t node_bytes = forest->node_bytes, trees = forest->trees, threads = forest->threads;
    const bool holds_what_belongs_to_it =
        forest->is_simple() || (pool.holds(forest->tree, trees * sizeof(Tree)) && pool.holds(forest->progress, threads * sizeof(Progress)));
    if (node_bytes < 64 || node_bytes > durasim::small_block_bytes_max || threads > durasim::threads_max ||
        trees > pool.arenas() || !holds_what_belongs_to_it) {
        return dump.note_damage();
    }
    for (std::uint64_t i = 0; i < threads; ++i) dump.add(durasim::progress_object(i), forest->finished(i));
    const std::uint64_t capacity = capacity_of(node_bytes);
    std::uint64_t nodes_left = pool.data_bytes() / node_bytes;  // whoever follows more links goes in a circle
    for (std::uint64_t tree = 0; tree < trees; ++tree) {
        const Node* node = forest->top(tree);
        const auto can_be_read = [&] {
            return pool.holds(node, node_bytes) && node->count <= capacity && nodes_left-- != 0;
        };
        while (can_be_read() && node->level != 0) node = node->link;
        do {
            if (!can_be_read()) return dump.note_damage();
            for (std::uint64_t i = 0; i < node->count; ++i) dump.add(node->keys()[i], node->values(capacity)[i]);
            node = node->link;
        } while (node != nullptr);
    }
}

std::uint64_t Btree::check(const Pool& pool) {
    Audit audit(pool);
    if (audit.problem() != nullptr) DURASIM_VIOLATION("%s", audit.problem());
    const Forest* forest = pool.root<Forest>();
    if (!audit.claim(forest, sizeof(Forest))) DURASIM_VIOLATION("the root object is not allocated");
    if (forest->kind != kind_of_root) DURASIM_VIOLATION("the root object is not one of trees");
    if (forest->node_bytes < 64 || forest->node_bytes % 64 != 0 || forest->node_bytes > durasim::small_block_bytes_max) {
        DURASIM_VIOLATION("the trees have an impossible node size");
    }
    if (forest->trees != pool.arenas() || forest->threads == 0 || forest->threads > durasim::threads_max) {
        DURASIM_VIOLATION("there is an impossible number of trees or threads");
    }
    const bool claimed = forest->is_simple() ? forest->tree == nullptr && forest->progress == nullptr
                                             : audit.claim(forest->tree, forest->trees * sizeof(Tree)) &&
                                                   audit.claim(forest->progress, forest->threads * sizeof(Progress));
    if (!claimed) {
        DURASIM_VIOLATION("what belongs to the root object is not allocated");
    }
    const std::uint64_t insertions = Checker(forest, audit).check();
    if (audit.lines_leaked() != 0) DURASIM_VIOLATION("%llu lines are leaked", static_cast<Long>(audit.lines_leaked()));
    return insertions;
}

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<Btree>(argc, argv); }
