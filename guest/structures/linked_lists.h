// Doubly linked lists in persistent memory, each sorted by its keys, with the value in the node.
//
// A list has to be walked to the place of a key, so that one long list would make n insertions cost n * n / 4 steps. Here
// are many short ones: a directory has the two ends of each, and the low bits of a key say which list it belongs to.
#ifndef DURASIM_STRUCTURES_LINKED_LISTS_H
#define DURASIM_STRUCTURES_LINKED_LISTS_H

#include <algorithm>
#include <bit>
#include <cstdint>

#include "structures/directory.h"
#include "structures/map_shape.h"

namespace durasim {

// The parameter of its shape is the number of lists, a power of two.
class LinkedLists {
    struct Node {
        Node* next;
        Node* before;
        std::uint64_t key;

        std::uint64_t* value() { return reinterpret_cast<std::uint64_t*>(this + 1); }
        const std::uint64_t* value() const { return reinterpret_cast<const std::uint64_t*>(this + 1); }
    };
    static_assert(sizeof(Node) == 24);
    using Ends = Directory<2>;
    enum : unsigned { first = 0, last = 1 };  // words of an entry

public:
    static constexpr std::uint64_t lists_max = Ends::entries_max;

    LinkedLists(const MapShape& shape, std::uint64_t& top, std::uint64_t arena)
        : ends_(top, shape.parameter, arena),
          mask_(shape.parameter - 1),
          node_bytes_(sizeof(Node) + shape.value_bytes),
          arena_(arena) {}

    // The parameter of each of `maps` maps that shall have `wanted` lists together.
    static std::uint64_t entries_for(std::uint64_t wanted, std::uint64_t maps) {
        return std::min(std::bit_ceil(std::max<std::uint64_t>(1, (wanted + maps - 1) / maps)), lists_max);
    }

    static bool is_possible(const MapShape& shape) { return std::has_single_bit(shape.parameter) && shape.parameter <= lists_max; }

    static std::uint64_t bytes(const MapShape& shape, std::uint64_t live, std::uint64_t) {
        return Ends::bytes(shape.parameter) + live * block_bytes(sizeof(Node) + shape.value_bytes);
    }

    void make(Tx& t) { ends_.make(t); }

    std::uint64_t* find(Tx& t, std::uint64_t key) {
        Node* node = node_of(t, key);
        return node == nullptr ? nullptr : node->value();
    }

    std::uint64_t* insert(Tx& t, std::uint64_t key) {
        std::uint64_t* ends = ends_.find_or_make(t, key & mask_);
        Node* before = nullptr;
        Node* next = not_below(t, ends, key, before);
        auto* node = static_cast<Node*>(t.allocate(node_bytes_, arena_));
        t.write(node->next, next);
        t.write(node->before, before);
        t.write(node->key, key);
        join(t, ends, before, node, next, node);
        return node->value();
    }

    bool erase(Tx& t, std::uint64_t key) {
        Node* node = node_of(t, key);
        if (node == nullptr) return false;
        Node* before = t.read(node->before);
        Node* next = t.read(node->next);
        join(t, ends_.find(t, key & mask_), before, next, next, before);
        t.free(node, node_bytes_, arena_);
        return true;
    }

    template <class Each>
    const char* check(Audit& audit, Each&& each) const {
        return ends_.check(audit, [&](std::uint64_t list, const std::uint64_t* ends) -> const char* {
            const Node* before = nullptr;
            for (const Node* node = as_node(ends[first]); node != nullptr; node = node->next) {
                if (!audit.claim(node, node_bytes_)) return "a node is reachable twice or not allocated";
                if (node->before != before) return "a node does not link to the one before it";
                if ((node->key & mask_) != list) return "a key is in the wrong list";
                if (before != nullptr && node->key <= before->key) return "keys are out of order";
                each(node->key, node->value());
                before = node;
            }
            return as_node(ends[last]) == before ? nullptr : "a list does not end with its last node";
        });
    }

    template <class Each>
    bool dump(const Pool& pool, Each&& each) const {
        std::uint64_t nodes_left = pool.data_bytes() / line_bytes;  // a walk that finds more goes in a circle
        return ends_.dump(pool, [&](const std::uint64_t* ends) {
            std::uint64_t least = 0;
            for (const Node* node = as_node(ends[first]); node != nullptr; node = node->next) {
                if (!pool.holds(node, node_bytes_) || nodes_left-- == 0 || node->key < least) return false;
                each(node->key, node->value());
                least = node->key + 1;
            }
            return true;
        });
    }

private:
    static Node* as_node(std::uint64_t word) { return reinterpret_cast<Node*>(word); }

    // The first node of a list whose key is not below `key`, null if there is none; leaves the one in front of it in `before`.
    static Node* not_below(Tx& t, const std::uint64_t* ends, std::uint64_t key, Node*& before) {
        Node* node = as_node(t.read(ends[first]));
        while (node != nullptr && t.read(node->key) < key) {
            before = node;
            node = t.read(node->next);
        }
        return node;
    }

    Node* node_of(Tx& t, std::uint64_t key) const {
        const std::uint64_t* ends = ends_.find(t, key & mask_);
        if (ends == nullptr) return nullptr;
        Node* before = nullptr;
        Node* node = not_below(t, ends, key, before);
        return node == nullptr || t.read(node->key) != key ? nullptr : node;
    }

    // Behind `before` shall come `behind`, and in front of `next` shall be `in_front`; null stands for the end of the list.
    static void join(Tx& t, std::uint64_t* ends, Node* before, Node* behind, Node* next, Node* in_front) {
        if (before == nullptr) {
            t.write(ends[first], reinterpret_cast<std::uint64_t>(behind));
        } else {
            t.write(before->next, behind);
        }
        if (next == nullptr) {
            t.write(ends[last], reinterpret_cast<std::uint64_t>(in_front));
        } else {
            t.write(next->before, in_front);
        }
    }

    Ends ends_;
    std::uint64_t mask_;
    std::uint64_t node_bytes_;
    std::uint64_t arena_;
};

}  // namespace durasim

#endif
