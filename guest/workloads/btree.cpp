// durasim-workload: btree — a B+-tree into which unique random keys are inserted, 8-byte keys and values, one transaction each
//
// A node is a header of 16 bytes, an array of keys and an array of values or children, all sorted in place, so that an
// insertion into a node of n keys moves n / 2 keys and n / 2 values on average. The default node of 256 bytes holds 15 keys:
// a transaction then modifies 5.4 lines on average (1 KiB: 9.8, 4 KiB: 27, 6 KiB: 38 lines). Hercules (TECS'23, Table 4)
// reports 34.4 lines for its B+-tree and does not say how its nodes look; --node-bytes 5440 comes close to that.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "durasim/random.h"
#include "workloads/harness.h"

namespace {

using durasim::Arguments;
using durasim::Audit;
using durasim::Long;
using durasim::Pool;
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

struct alignas(64) Tree {
    std::uint64_t kind;
    std::uint64_t seed;
    std::uint64_t node_bytes;
    std::uint64_t keys;  // inserted so far: the persistent counter of operations
    Node* top;
};

constexpr std::uint64_t capacity_of(std::uint64_t node_bytes) { return (node_bytes - sizeof(Node)) / 16; }

// The key of the n-th insertion. Different numbers give different keys.
std::uint64_t key_of(std::uint64_t seed, std::uint64_t number) { return durasim::mix(durasim::mix(seed) + number); }

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
    static std::uint64_t pool_bytes(const Arguments& arguments) {
        check_node_bytes(arguments.node_bytes);
        // Every node but the top one is at least half full.
        const std::uint64_t capacity = capacity_of(arguments.node_bytes);
        const std::uint64_t leaves = (arguments.populate + arguments.ops) / (capacity / 2) + 1;
        const std::uint64_t nodes = leaves + leaves / ((capacity - 1) / 2) + levels_max;
        return nodes * durasim::block_bytes(arguments.node_bytes);
    }

    Btree(Pool& pool, const Arguments& arguments) {
        check_node_bytes(arguments.node_bytes);
        tree_ = pool.root<Tree>();
        if (tree_ == nullptr) {
            durasim::tx([&](Tx& t) {
                auto* tree = static_cast<Tree*>(t.allocate(sizeof(Tree)));
                auto* leaf = static_cast<Node*>(t.allocate(arguments.node_bytes));
                t.write(leaf->count, 0);
                t.write(leaf->level, 0);
                t.write(leaf->link, nullptr);
                t.write(tree->kind, kind_of_root);
                t.write(tree->seed, arguments.seed);
                t.write(tree->node_bytes, arguments.node_bytes);
                t.write(tree->keys, 0);
                t.write(tree->top, leaf);
                pool.set_root(t, tree);
            });
            tree_ = pool.root<Tree>();
        }
        if (tree_->kind != kind_of_root) durasim::fail(durasim::exit_usage, "btree: the pool belongs to another workload");
        if (tree_->seed != arguments.seed || tree_->node_bytes != arguments.node_bytes) {
            durasim::fail(durasim::exit_usage, "btree: the pool was made with --seed %llu --node-bytes %llu; use these",
                          static_cast<Long>(tree_->seed), static_cast<Long>(tree_->node_bytes));
        }
        node_bytes_ = tree_->node_bytes;
        capacity_ = capacity_of(node_bytes_);
        seed_ = tree_->seed;
        keys_expected_ = tree_->keys;
    }

    std::uint64_t populated() const { return tree_->keys; }

    void populate_one() { operation(); }

    void operation() {
        durasim::tx([&](Tx& t) {
            const std::uint64_t number = t.read(tree_->keys);
            const std::uint64_t key = key_of(seed_, number);
            insert(t, key, value_of(key));
            t.write(tree_->keys, number + 1);
        });
        ++keys_expected_;
    }

    void compare_with_model() const {
        std::vector<std::uint64_t> model(keys_expected_);
        for (std::uint64_t i = 0; i < keys_expected_; ++i) model[i] = key_of(seed_, i);
        std::sort(model.begin(), model.end());
        const Node* leaf = tree_->top;
        while (leaf->level != 0) leaf = leaf->link;
        std::uint64_t at = 0;
        for (; leaf != nullptr; leaf = leaf->link) {
            for (std::uint64_t i = 0; i < leaf->count; ++i, ++at) {
                if (at >= model.size() || leaf->keys()[i] != model[at] ||
                    leaf->values(capacity_)[i] != value_of(model[at])) {
                    DURASIM_VIOLATION("place %llu of the leaves differs from the model", static_cast<Long>(at));
                }
            }
        }
        if (at != model.size()) {
            DURASIM_VIOLATION("the tree has %llu keys and the model %llu", static_cast<Long>(at), static_cast<Long>(model.size()));
        }
    }

    void print_result() const {
        std::printf("keys=%llu height=%u", static_cast<Long>(tree_->keys), tree_->top->level + 1);
    }

    static std::uint64_t check(const Pool& pool);

private:
    static void check_node_bytes(std::uint64_t node_bytes) {
        if (node_bytes % durasim::line_bytes != 0) {
            durasim::fail(durasim::exit_usage, "btree: --node-bytes has to be a multiple of 64, not %llu",
                          static_cast<Long>(node_bytes));
        }
    }

    void insert(Tx& t, std::uint64_t key, std::uint64_t value) {
        auto read = [&t](const std::uint64_t& place) { return t.read(place); };
        Node* path[levels_max];
        Node* node = t.read(tree_->top);
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
            if (count < capacity_) {
                insert_at(t, node, count, at, key, value);
                return;
            }
            Node* right = split(t, node, level, at, key, value);
            value = reinterpret_cast<std::uint64_t>(right);
            if (level == height) {
                auto* top = static_cast<Node*>(t.allocate(node_bytes_));
                t.write(top->count, 1);
                t.write(top->level, height + 1);
                t.write(top->link, node);
                t.write(top->keys()[0], key);
                t.write(top->values(capacity_)[0], value);
                t.write(tree_->top, top);
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
    Node* split(Tx& t, Node* node, std::uint32_t level, std::uint64_t at, std::uint64_t& key, std::uint64_t value) {
        std::uint64_t* keys = node->keys();
        std::uint64_t* values = node->values(capacity_);
        auto* right = static_cast<Node*>(t.allocate(node_bytes_));
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

    Tree* tree_ = nullptr;
    std::uint64_t node_bytes_ = 0;
    std::uint64_t capacity_ = 0;
    std::uint64_t seed_ = 0;
    std::uint64_t keys_expected_ = 0;  // ordinary memory: what the pool must hold
};

// Verifies the tree below `tree` without trusting it.
class Checker {
public:
    Checker(const Tree* tree, Audit& audit) : tree_(tree), audit_(audit), capacity_(capacity_of(tree->node_bytes)) {}

    void check() {
        if (!audit_.claim(tree_->top, tree_->node_bytes)) DURASIM_VIOLATION("the tree starts outside of its memory");
        if (tree_->top->level >= levels_max) DURASIM_VIOLATION("the tree has an impossible height");
        walk(tree_->top, tree_->top->level, 0, ~std::uint64_t{0});
        if (leaf_before_ != nullptr && leaf_before_->link != nullptr) DURASIM_VIOLATION("the last leaf links to another");
        if (keys_ != tree_->keys) {
            DURASIM_VIOLATION("%llu keys are in the leaves, but %llu insertions were counted", static_cast<Long>(keys_),
                              static_cast<Long>(tree_->keys));
        }
        // Together with the count this says: exactly the first insertions are there, none lost, none halved.
        for (std::uint64_t i = 0; i < tree_->keys; ++i) {
            if (!contains(key_of(tree_->seed, i))) {
                DURASIM_VIOLATION("insertion %llu of %llu is missing", static_cast<Long>(i), static_cast<Long>(tree_->keys));
            }
        }
    }

private:
    // `node` is claimed; its keys have to lie in [low, high].
    void walk(const Node* node, std::uint32_t level, std::uint64_t low, std::uint64_t high) {
        if (node->level != level) DURASIM_VIOLATION("the tree is not balanced");
        const std::uint64_t count = node->count;
        const std::uint64_t least = node == tree_->top ? (level == 0 ? 0 : 1) : level == 0 ? capacity_ / 2 : (capacity_ - 1) / 2;
        if (count > capacity_ || count < least) DURASIM_VIOLATION("a node has an impossible number of keys: %llu", static_cast<Long>(count));
        for (std::uint64_t i = 0; i < count; ++i) {
            const std::uint64_t key = node->keys()[i];
            if (key < low || key > high || (i > 0 && key <= node->keys()[i - 1])) DURASIM_VIOLATION("keys are out of order");
        }
        if (level == 0) {
            for (std::uint64_t i = 0; i < count; ++i) {
                if (node->values(capacity_)[i] != value_of(node->keys()[i])) DURASIM_VIOLATION("a value does not belong to its key");
            }
            if (leaf_before_ != nullptr && leaf_before_->link != node) DURASIM_VIOLATION("the links of the leaves are broken");
            leaf_before_ = node;
            keys_ += count;
            return;
        }
        for (std::uint64_t i = 0; i <= count; ++i) {
            const Node* child = i == 0 ? node->link : reinterpret_cast<const Node*>(node->values(capacity_)[i - 1]);
            if (!audit_.claim(child, tree_->node_bytes)) DURASIM_VIOLATION("a node is reachable twice or not allocated");
            walk(child, level - 1, i == 0 ? low : node->keys()[i - 1], i == count ? high : node->keys()[i] - 1);
        }
    }

    bool contains(std::uint64_t key) const {
        auto read = [](const std::uint64_t& place) { return place; };
        const Node* node = tree_->top;
        while (node->level > 0) {
            const std::uint64_t at = rank<true>(node, node->count, key, read);
            node = at == 0 ? node->link : reinterpret_cast<const Node*>(node->values(capacity_)[at - 1]);
        }
        const std::uint64_t at = rank<false>(node, node->count, key, read);
        return at < node->count && node->keys()[at] == key;
    }

    const Tree* tree_;
    Audit& audit_;
    std::uint64_t capacity_;
    const Node* leaf_before_ = nullptr;
    std::uint64_t keys_ = 0;
};

std::uint64_t Btree::check(const Pool& pool) {
    Audit audit(pool);
    if (audit.problem() != nullptr) DURASIM_VIOLATION("%s", audit.problem());
    const Tree* tree = pool.root<Tree>();
    if (!audit.claim(tree, sizeof(Tree))) DURASIM_VIOLATION("the root object is not allocated");
    if (tree->kind != kind_of_root) DURASIM_VIOLATION("the root object is not a tree");
    if (tree->node_bytes < 64 || tree->node_bytes % 64 != 0 || tree->node_bytes > durasim::small_block_bytes_max) {
        DURASIM_VIOLATION("the tree has an impossible node size");
    }
    Checker(tree, audit).check();
    if (audit.lines_leaked() != 0) DURASIM_VIOLATION("%llu lines are leaked", static_cast<Long>(audit.lines_leaked()));
    return tree->keys;
}

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<Btree>(argc, argv); }
