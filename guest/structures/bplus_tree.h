// A B+-tree in persistent memory.
//
// A node is a header of 16 bytes, an array of keys and an array of values or children, all sorted in place. Values of 8
// bytes are in the leaves, larger ones in blocks of their own. Leaves are linked in the order of the keys.
//
// Nodes do not merge when they become half empty. A leaf that loses its last key goes, with the inner nodes that led to it
// alone; a top with a single child is replaced by that child.
#ifndef DURASIM_STRUCTURES_BPLUS_TREE_H
#define DURASIM_STRUCTURES_BPLUS_TREE_H

#include <cstdint>

#include "structures/map_shape.h"

namespace durasim {

// The parameter of its shape is the size of a node, a multiple of 64 up to small_block_bytes_max.
class BPlusTree {
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
    static constexpr unsigned levels_max = 48;

public:
    BPlusTree(const MapShape& shape, std::uint64_t& top, std::uint64_t arena)
        : top_(top),
          arena_(arena),
          node_bytes_(shape.parameter),
          capacity_(capacity_of(shape.parameter)),
          value_bytes_(shape.value_bytes),
          erases_(shape.erases) {}

    static constexpr std::uint64_t capacity_of(std::uint64_t node_bytes) { return (node_bytes - sizeof(Node)) / 16; }

    static bool is_possible(const MapShape& shape) {
        return shape.parameter % line_bytes == 0 && shape.parameter >= line_bytes && shape.parameter <= small_block_bytes_max;
    }

    // A node needs half of its keys to come into being, wherever they go afterwards.
    static std::uint64_t bytes(const MapShape& shape, std::uint64_t live, std::uint64_t inserted) {
        // A leaf that is not the top begins with at least half of its keys and an inner node with at least
        // (capacity - 1) / 2 and one more child: the levels above the leaves form a geometric series, and the first leaf
        // and the top may hold less.
        const std::uint64_t capacity = capacity_of(shape.parameter);
        const std::uint64_t leaves = inserted / (capacity / 2) + 1;
        const std::uint64_t nodes = leaves + leaves / ((capacity - 1) / 2) + 2;
        const std::uint64_t values = shape.value_bytes == 8 ? 0 : live * block_bytes(shape.value_bytes);
        return nodes * block_bytes(shape.parameter) + values;
    }

    void make(Tx& t) {
        auto* leaf = static_cast<Node*>(t.allocate(node_bytes_, arena_));
        t.write(leaf->count, 0);
        t.write(leaf->level, 0);
        t.write(leaf->link, nullptr);
        t.write(top_, reinterpret_cast<std::uint64_t>(leaf));
    }

    std::uint64_t* find(Tx& t, std::uint64_t key) {
        Node* leaf = leaf_of(t, key);
        const std::uint64_t count = t.read(leaf->count), at = rank<false>(t, leaf, count, key);
        if (at == count || t.read(leaf->keys()[at]) != key) return nullptr;
        return value_at(t, leaf, at);
    }

    // Inlined: it is most of what an insertion does, and called from one place in most programs.
    [[gnu::always_inline]] std::uint64_t* insert(Tx& t, std::uint64_t key) {
        Node* path[levels_max];
        Node* node = as_node(t.read(top_));
        const std::uint32_t height = t.read(node->level);
        for (std::uint32_t level = height; level > 0; --level) {
            path[level] = node;
            node = child(t, node, rank<true>(t, node, t.read(node->count), key));
        }
        path[0] = node;
        std::uint64_t word = 0;  // what stands at the key: a value's block, or the right node of a split
        if (has_blocks()) word = reinterpret_cast<std::uint64_t>(t.allocate(value_bytes_, arena_));
        std::uint64_t* value = reinterpret_cast<std::uint64_t*>(word);
        // `key` and `word` go into path[level]; a split passes its separator and the new node upwards.
        for (std::uint32_t level = 0;; ++level) {
            node = path[level];
            const std::uint64_t count = t.read(node->count);
            const std::uint64_t at = rank<false>(t, node, count, key);
            std::uint64_t* place;
            Node* right = nullptr;
            if (count < capacity_) {
                place = open_place(t, node, count, at, key);
            } else {
                right = split(t, node, level, at, key, place);
            }
            if (level == 0 && !has_blocks()) {
                value = place;
            } else {
                t.write(*place, word);
            }
            if (right == nullptr) return value;
            word = reinterpret_cast<std::uint64_t>(right);
            if (level == height) {
                auto* top = static_cast<Node*>(t.allocate(node_bytes_, arena_));
                t.write(top->count, 1);
                t.write(top->level, height + 1);
                t.write(top->link, node);
                t.write(top->keys()[0], key);
                t.write(top->values(capacity_)[0], word);
                t.write(top_, reinterpret_cast<std::uint64_t>(top));
                return value;
            }
        }
    }

    bool erase(Tx& t, std::uint64_t key) {
        Node* path[levels_max];
        std::uint64_t way[levels_max];  // which child
        Node* node = as_node(t.read(top_));
        const std::uint32_t height = t.read(node->level);
        for (std::uint32_t level = height; level > 0; --level) {
            path[level] = node;
            way[level] = rank<true>(t, node, t.read(node->count), key);
            node = child(t, node, way[level]);
        }
        const std::uint64_t count = t.read(node->count), at = rank<false>(t, node, count, key);
        if (at == count || t.read(node->keys()[at]) != key) return false;
        if (has_blocks()) t.free(value_at(t, node, at), value_bytes_, arena_);
        if (count > 1 || height == 0) {
            close_place(t, node, count, at);
            return true;
        }
        // The leaf goes: its neighbour to the left passes it by, and the lowest node with another child forgets it.
        std::uint32_t level = 1;
        while (level <= height && way[level] == 0) ++level;
        if (level <= height) {
            Node* left = child(t, path[level], way[level] - 1);
            while (t.read(left->level) != 0) left = child(t, left, t.read(left->count));
            t.write(left->link, t.read(node->link));
        }
        t.free(node, node_bytes_, arena_);
        for (level = 1; t.read(path[level]->count) == 0; ++level) t.free(path[level], node_bytes_, arena_);
        node = path[level];
        const std::uint64_t keys = t.read(node->count);
        if (way[level] == 0) t.write(node->link, child(t, node, 1));
        close_place(t, node, keys, way[level] == 0 ? 0 : way[level] - 1);
        Node* top = as_node(t.read(top_));
        while (t.read(top->level) != 0 && t.read(top->count) == 0) {
            Node* only = t.read(top->link);
            t.free(top, node_bytes_, arena_);
            t.write(top_, reinterpret_cast<std::uint64_t>(only));
            top = only;
        }
        return true;
    }

    // Calls each(key, value) for up to `count` keys from `key` on, in ascending order. Returns how many there were.
    template <class Each>
    std::uint64_t scan(Tx& t, std::uint64_t key, std::uint64_t count, Each&& each) {
        Node* leaf = leaf_of(t, key);
        std::uint64_t keys = t.read(leaf->count), at = rank<false>(t, leaf, keys, key), seen = 0;
        while (seen < count) {
            if (at == keys) {
                leaf = t.read(leaf->link);
                if (leaf == nullptr) break;
                keys = t.read(leaf->count);
                at = 0;
                continue;
            }
            each(t.read(leaf->keys()[at]), value_at(t, leaf, at));
            ++at;
            ++seen;
        }
        return seen;
    }

    template <class Each>
    const char* check(Audit& audit, Each&& each) const {
        const Node* top = as_node(top_);
        if (!audit.claim(top, node_bytes_)) return "a tree starts outside of its memory";
        if (top->level >= levels_max) return "a tree has an impossible height";
        const Node* leaf_before = nullptr;
        if (const char* problem = walk(audit, top, top->level, 0, ~std::uint64_t{0}, leaf_before, each)) return problem;
        if (leaf_before->link != nullptr) return "the last leaf links to another";
        return nullptr;
    }

    // Follows the links of the leaves. Whether the inner nodes lead to them is for the check to say.
    template <class Each>
    bool dump(const Pool& pool, Each&& each) const {
        std::uint64_t nodes_left = pool.data_bytes() / node_bytes_;  // a walk of more links goes in a circle
        const Node* node = as_node(top_);
        const auto can_be_read = [&] {
            return pool.holds(node, node_bytes_) && node->count <= capacity_ && nodes_left-- != 0;
        };
        while (can_be_read() && node->level != 0) node = node->link;
        std::uint64_t least = 0;  // half a split leaves keys twice
        do {
            if (!can_be_read()) return false;
            for (std::uint64_t i = 0; i < node->count; ++i) {
                const std::uint64_t* value = value_at(node, i);
                if (node->keys()[i] < least || !pool.holds(value, value_bytes_)) return false;
                each(node->keys()[i], value);
                least = node->keys()[i] + 1;
            }
            node = node->link;
        } while (node != nullptr);
        return true;
    }

    // Levels of a tree that is in order.
    unsigned height() const { return as_node(top_)->level + 1; }

private:
    static Node* as_node(std::uint64_t word) { return reinterpret_cast<Node*>(word); }
    bool has_blocks() const { return value_bytes_ != 8; }

    // The number of the first `count` keys that are less than or equal to `key` (`or_equal`), or less.
    template <bool or_equal>
    static std::uint64_t rank(Tx& t, const Node* node, std::uint64_t count, std::uint64_t key) {
        const std::uint64_t* keys = node->keys();
        std::uint64_t low = 0;
        for (std::uint64_t length = count; length > 0;) {
            const std::uint64_t half = length / 2;
            const std::uint64_t at = t.read(keys[low + half]);
            if (or_equal ? at <= key : at < key) {
                low += half + 1;
                length -= half + 1;
            } else {
                length = half;
            }
        }
        return low;
    }

    Node* child(Tx& t, Node* node, std::uint64_t at) const {
        return at == 0 ? t.read(node->link) : as_node(t.read(node->values(capacity_)[at - 1]));
    }

    Node* leaf_of(Tx& t, std::uint64_t key) const {
        Node* node = as_node(t.read(top_));
        for (std::uint32_t level = t.read(node->level); level > 0; --level) {
            node = child(t, node, rank<true>(t, node, t.read(node->count), key));
        }
        return node;
    }

    std::uint64_t* value_at(Tx& t, Node* leaf, std::uint64_t at) const {
        std::uint64_t& word = leaf->values(capacity_)[at];
        return has_blocks() ? reinterpret_cast<std::uint64_t*>(t.read(word)) : &word;
    }
    const std::uint64_t* value_at(const Node* leaf, std::uint64_t at) const {
        const std::uint64_t& word = leaf->values(capacity_)[at];
        return has_blocks() ? reinterpret_cast<const std::uint64_t*>(word) : &word;
    }

    // Puts `key` into a node that is not full. Returns the place for what stands at it.
    std::uint64_t* open_place(Tx& t, Node* node, std::uint64_t count, std::uint64_t at, std::uint64_t key) {
        std::uint64_t* keys = node->keys();
        std::uint64_t* values = node->values(capacity_);
        for (std::uint64_t i = count; i > at; --i) t.write(keys[i], t.read(keys[i - 1]));
        t.write(keys[at], key);
        for (std::uint64_t i = count; i > at; --i) t.write(values[i], t.read(values[i - 1]));
        t.write(node->count, static_cast<std::uint32_t>(count + 1));
        return &values[at];
    }

    void close_place(Tx& t, Node* node, std::uint64_t count, std::uint64_t at) {
        std::uint64_t* keys = node->keys();
        std::uint64_t* values = node->values(capacity_);
        for (std::uint64_t i = at; i + 1 < count; ++i) t.write(keys[i], t.read(keys[i + 1]));
        for (std::uint64_t i = at; i + 1 < count; ++i) t.write(values[i], t.read(values[i + 1]));
        t.write(node->count, static_cast<std::uint32_t>(count - 1));
    }

    // Splits a full node and puts the key in. Returns the new right node, and leaves its separator in `key` and the place
    // of what stands at the key that came in `place`.
    Node* split(Tx& t, Node* node, std::uint32_t level, std::uint64_t at, std::uint64_t& key, std::uint64_t*& place) {
        std::uint64_t* keys = node->keys();
        std::uint64_t* values = node->values(capacity_);
        auto* right = static_cast<Node*>(t.allocate(node_bytes_, arena_));
        const std::uint64_t middle = level == 0 ? (capacity_ + 1) / 2 : capacity_ / 2;
        const std::uint64_t separator = t.read(keys[middle]);
        std::uint64_t from = middle;
        t.write(right->level, level);
        if (level == 0) {
            t.write(right->link, t.read(node->link));
            t.write(node->link, right);
        } else {  // the separator moves up, and the child after it becomes the leftmost of the right node
            t.write(right->link, as_node(t.read(values[middle])));
            ++from;
        }
        const std::uint64_t moved = capacity_ - from;
        for (std::uint64_t i = 0; i < moved; ++i) {
            t.write(right->keys()[i], t.read(keys[from + i]));
            t.write(right->values(capacity_)[i], t.read(values[from + i]));
        }
        if (at <= middle) {
            t.write(right->count, static_cast<std::uint32_t>(moved));
            place = open_place(t, node, middle, at, key);
        } else {
            t.write(node->count, static_cast<std::uint32_t>(middle));
            place = open_place(t, right, moved, at - from, key);
        }
        key = separator;
        return right;
    }

    // The fewest keys that a node may have.
    std::uint64_t least(const Node* node, std::uint32_t level) const {
        if (node == as_node(top_)) return level == 0 ? 0 : 1;
        if (erases_) return level == 0 ? 1 : 0;
        return level == 0 ? capacity_ / 2 : (capacity_ - 1) / 2;
    }

    // `node` is claimed; its keys have to be in [low, high].
    template <class Each>
    const char* walk(Audit& audit, const Node* node, std::uint32_t level, std::uint64_t low, std::uint64_t high,
                     const Node*& leaf_before, Each&& each) const {
        if (node->level != level) return "the tree is not balanced";
        const std::uint64_t count = node->count;
        if (count > capacity_ || count < least(node, level)) return "a node has an impossible number of keys";
        for (std::uint64_t i = 0; i < count; ++i) {
            const std::uint64_t key = node->keys()[i];
            if (key < low || key > high || (i > 0 && key <= node->keys()[i - 1])) return "keys are out of order";
        }
        if (level == 0) {
            for (std::uint64_t i = 0; i < count; ++i) {
                const std::uint64_t* value = value_at(node, i);
                if (has_blocks() && !audit.claim(value, value_bytes_)) return "a value is reachable twice or not allocated";
                each(node->keys()[i], value);
            }
            if (leaf_before != nullptr && leaf_before->link != node) return "the links of the leaves are broken";
            leaf_before = node;
            return nullptr;
        }
        for (std::uint64_t i = 0; i <= count; ++i) {
            const Node* below = i == 0 ? node->link : as_node(node->values(capacity_)[i - 1]);
            if (!audit.claim(below, node_bytes_)) return "a node is reachable twice or not allocated";
            const std::uint64_t from = i == 0 ? low : node->keys()[i - 1], to = i == count ? high : node->keys()[i] - 1;
            if (const char* problem = walk(audit, below, level - 1, from, to, leaf_before, each)) return problem;
        }
        return nullptr;
    }

    std::uint64_t& top_;
    std::uint64_t arena_;
    std::uint64_t node_bytes_;
    std::uint64_t capacity_;
    std::uint64_t value_bytes_;
    bool erases_;
};

}  // namespace durasim

#endif
