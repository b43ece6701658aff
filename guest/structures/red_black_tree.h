// A red-black tree in persistent memory, with the value in the node. A node of a value of up to 24 bytes takes one line.
//
// Insertion and removal restore the colours from the bottom up, as Guibas and Sedgewick (1978) and the textbooks do; a
// node with two children changes places with its successor, by links, so that no value is copied.
#ifndef DURASIM_STRUCTURES_RED_BLACK_TREE_H
#define DURASIM_STRUCTURES_RED_BLACK_TREE_H

#include <cstdint>
#include <vector>

#include "structures/map_shape.h"

namespace durasim {

class RedBlackTree {
    struct Node {
        std::uint64_t key;
        Node* child[2];
        Node* parent;
        std::uint64_t red;  // 0 or 1

        std::uint64_t* value() { return reinterpret_cast<std::uint64_t*>(this + 1); }
        const std::uint64_t* value() const { return reinterpret_cast<const std::uint64_t*>(this + 1); }
    };
    static_assert(sizeof(Node) == 40);
    // Of 2^64 nodes.
    static constexpr unsigned height_max = 128;

public:
    RedBlackTree(const MapShape& shape, std::uint64_t& top, std::uint64_t arena)
        : top_(top), arena_(arena), node_bytes_(sizeof(Node) + shape.value_bytes) {}

    static bool is_possible(const MapShape& shape) { return shape.parameter == 0; }

    static std::uint64_t bytes(const MapShape& shape, std::uint64_t live, std::uint64_t) {
        return live * block_bytes(sizeof(Node) + shape.value_bytes);
    }

    void make(Tx& t) { t.write(top_, 0); }

    std::uint64_t* find(Tx& t, std::uint64_t key) {
        Node* node = node_of(t, key);
        return node == nullptr ? nullptr : node->value();
    }

    std::uint64_t* insert(Tx& t, std::uint64_t key) {
        Node* parent = nullptr;
        unsigned side = 0;
        for (Node* at = top(t); at != nullptr; at = t.read(at->child[side])) {
            parent = at;
            side = key > t.read(at->key);
        }
        auto* node = static_cast<Node*>(t.allocate(node_bytes_, arena_));
        t.write(node->key, key);
        t.write(node->child[0], nullptr);
        t.write(node->child[1], nullptr);
        t.write(node->parent, parent);
        t.write(node->red, 1);
        hang(t, node, parent, side);
        mend_red(t, node, parent);
        return node->value();
    }

    bool erase(Tx& t, std::uint64_t key) {
        Node* node = node_of(t, key);
        if (node == nullptr) return false;
        Node* left = t.read(node->child[0]);
        Node* right = t.read(node->child[1]);
        bool black_is_missing = t.read(node->red) == 0;
        Node* below;   // takes the place where a black node may be missing
        Node* parent;  // of that place
        if (left == nullptr || right == nullptr) {
            below = left == nullptr ? right : left;
            parent = t.read(node->parent);
            replace(t, node, below);
        } else {
            Node* next = right;
            while (Node* smaller = t.read(next->child[0])) next = smaller;
            black_is_missing = t.read(next->red) == 0;
            below = t.read(next->child[1]);
            parent = next;
            if (next != right) {
                parent = t.read(next->parent);
                replace(t, next, below);
                t.write(next->child[1], right);
                t.write(right->parent, next);
            }
            replace(t, node, next);
            t.write(next->child[0], left);
            t.write(left->parent, next);
            set_red(t, next, t.read(node->red));
        }
        t.free(node, node_bytes_, arena_);
        if (black_is_missing) mend_black(t, below, parent);
        return true;
    }

    template <class Each>
    const char* check(Audit& audit, Each&& each) const {
        const char* problem = nullptr;
        unsigned blacks = 0;
        walk(audit, top(), nullptr, 0, ~std::uint64_t{0}, 0, blacks, problem, each);
        if (problem == nullptr && top() != nullptr && top()->red != 0) problem = "the top of a tree is red";
        return problem;
    }

    template <class Each>
    bool dump(const Pool& pool, Each&& each) const {
        std::uint64_t nodes_left = pool.data_bytes() / line_bytes;  // a walk that finds more goes in a circle
        std::vector<const Node*> waiting(1, top());
        while (!waiting.empty()) {
            const Node* node = waiting.back();
            waiting.pop_back();
            if (node == nullptr) continue;
            if (!pool.holds(node, node_bytes_) || nodes_left-- == 0) return false;
            each(node->key, node->value());
            waiting.push_back(node->child[0]);
            waiting.push_back(node->child[1]);
        }
        return true;
    }

private:
    Node* top(Tx& t) const { return reinterpret_cast<Node*>(t.read(top_)); }
    const Node* top() const { return reinterpret_cast<const Node*>(top_); }

    // Makes `node` the child of `parent`, or the top.
    void hang(Tx& t, Node* node, Node* parent, unsigned side) {
        if (parent == nullptr) {
            t.write(top_, reinterpret_cast<std::uint64_t>(node));
        } else {
            t.write(parent->child[side], node);
        }
    }

    Node* node_of(Tx& t, std::uint64_t key) const {
        Node* node = top(t);
        while (node != nullptr) {
            const std::uint64_t at = t.read(node->key);
            if (at == key) break;
            node = t.read(node->child[key > at]);
        }
        return node;
    }

    static bool is_red(Tx& t, Node* node) { return node != nullptr && t.read(node->red) != 0; }

    // A line that keeps its content need not be modified.
    static void set_red(Tx& t, Node* node, std::uint64_t red) {
        if (t.read(node->red) != red) t.write(node->red, red);
    }

    static unsigned side_of(Tx& t, Node* parent, const Node* node) { return t.read(parent->child[1]) == node; }

    // `node`, which may be null, takes the place of `old` below the parent of that.
    void replace(Tx& t, Node* old, Node* node) {
        Node* parent = t.read(old->parent);
        hang(t, node, parent, parent == nullptr ? 0 : side_of(t, parent, old));
        if (node != nullptr) t.write(node->parent, parent);
    }

    // `node` goes down to `side`, and its child on the other side takes its place.
    void rotate(Tx& t, Node* node, unsigned side) {
        Node* up = t.read(node->child[!side]);
        Node* middle = t.read(up->child[side]);
        t.write(node->child[!side], middle);
        if (middle != nullptr) t.write(middle->parent, node);
        replace(t, node, up);
        t.write(up->child[side], node);
        t.write(node->parent, up);
    }

    // `node` has become red; its parent may be, too.
    void mend_red(Tx& t, Node* node, Node* parent) {
        while (is_red(t, parent)) {
            Node* above = t.read(parent->parent);  // there is one, and it is black: the top is never red
            const unsigned side = side_of(t, above, parent);
            Node* uncle = t.read(above->child[!side]);
            if (!is_red(t, uncle)) {
                if (side_of(t, parent, node) != side) {
                    rotate(t, parent, side);
                    parent = node;
                }
                set_red(t, parent, 0);
                set_red(t, above, 1);
                rotate(t, above, !side);
                break;
            }
            set_red(t, parent, 0);
            set_red(t, uncle, 0);
            set_red(t, above, 1);
            node = above;
            parent = t.read(node->parent);
        }
        set_red(t, top(t), 0);
    }

    // Ways through `node`, which may be null and lies below `parent`, have one black node less than the others.
    void mend_black(Tx& t, Node* node, Node* parent) {
        while (parent != nullptr && !is_red(t, node)) {
            const unsigned side = side_of(t, parent, node);
            Node* other = t.read(parent->child[!side]);  // there is one: it leads through a black node more
            if (is_red(t, other)) {
                set_red(t, other, 0);
                set_red(t, parent, 1);
                rotate(t, parent, side);
                other = t.read(parent->child[!side]);
            }
            Node* near = t.read(other->child[side]);
            Node* far = t.read(other->child[!side]);
            if (!is_red(t, near) && !is_red(t, far)) {
                set_red(t, other, 1);
                node = parent;
                parent = t.read(node->parent);
                continue;
            }
            if (!is_red(t, far)) {
                rotate(t, other, !side);
                far = other;
                other = near;
            }
            set_red(t, far, 0);
            set_red(t, other, t.read(parent->red));
            set_red(t, parent, 0);
            rotate(t, parent, side);
            return;
        }
        if (node != nullptr) set_red(t, node, 0);
    }

    // Keys below `node` have to be in [low, high]. Leaves in `blacks` the number of black nodes on a way down.
    template <class Each>
    void walk(Audit& audit, const Node* node, const Node* parent, std::uint64_t low, std::uint64_t high, unsigned depth,
              unsigned& blacks, const char*& problem, Each&& each) const {
        blacks = 0;
        if (node == nullptr || problem != nullptr) return;
        if (depth >= height_max) {
            problem = "a tree has an impossible height";
        } else if (!audit.claim(node, node_bytes_)) {
            problem = "a node is reachable twice or not allocated";
        } else if (node->parent != parent) {
            problem = "a node has a wrong parent";
        } else if (node->red > 1 || (node->red == 1 && parent != nullptr && parent->red == 1)) {
            problem = "a node has a wrong colour";
        } else if (node->key < low || node->key > high) {
            problem = "keys are out of order";
        }
        if (problem != nullptr) return;
        if (node->child[0] != nullptr && node->key == 0) problem = "keys are out of order";
        if (node->child[1] != nullptr && node->key == ~std::uint64_t{0}) problem = "keys are out of order";
        unsigned left = 0, right = 0;
        walk(audit, node->child[0], node, low, node->key - 1, depth + 1, left, problem, each);
        each(node->key, node->value());
        walk(audit, node->child[1], node, node->key + 1, high, depth + 1, right, problem, each);
        if (problem == nullptr && left != right) problem = "ways down a tree have different numbers of black nodes";
        blacks = left + (node->red == 0);
    }

    std::uint64_t& top_;
    std::uint64_t arena_;
    std::uint64_t node_bytes_;
};

}  // namespace durasim

#endif
