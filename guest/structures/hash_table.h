// A hash table with chains in persistent memory, with the value in the node. Nodes start on a line of their own.
//
// The number of buckets is a power of two and stays; several heads of chains share a line, but those of two tables never.
// Keys are taken as they are: who has keys that are not random mixes them first.
#ifndef DURASIM_STRUCTURES_HASH_TABLE_H
#define DURASIM_STRUCTURES_HASH_TABLE_H

#include <algorithm>
#include <bit>
#include <cstdint>

#include "structures/directory.h"
#include "structures/map_shape.h"

namespace durasim {

// The parameter of its shape is the number of buckets.
class HashTable {
    struct Node {
        Node* next;
        std::uint64_t key;

        std::uint64_t* value() { return reinterpret_cast<std::uint64_t*>(this + 1); }
        const std::uint64_t* value() const { return reinterpret_cast<const std::uint64_t*>(this + 1); }
    };
    static_assert(sizeof(Node) == 16);
    using Heads = Directory<1>;

public:
    static constexpr std::uint64_t buckets_max = Heads::entries_max;

    HashTable(const MapShape& shape, std::uint64_t& top, std::uint64_t arena)
        : heads_(top, shape.parameter, arena),
          mask_(shape.parameter - 1),
          node_bytes_(sizeof(Node) + shape.value_bytes),
          arena_(arena) {}

    // The parameter of each of `maps` maps that shall have `wanted` buckets together.
    static std::uint64_t entries_for(std::uint64_t wanted, std::uint64_t maps) {
        return std::min(std::bit_ceil(std::max<std::uint64_t>(1, (wanted + maps - 1) / maps)), buckets_max);
    }

    static bool is_possible(const MapShape& shape) { return std::has_single_bit(shape.parameter) && shape.parameter <= buckets_max; }

    static std::uint64_t bytes(const MapShape& shape, std::uint64_t live, std::uint64_t) {
        return Heads::bytes(shape.parameter) + live * block_bytes(sizeof(Node) + shape.value_bytes);
    }

    void make(Tx& t) { heads_.make(t); }

    std::uint64_t* find(Tx& t, std::uint64_t key) {
        const std::uint64_t* head = heads_.find(t, key & mask_);
        if (head == nullptr) return nullptr;
        Node* node = as_node(t.read(*head));
        while (node != nullptr && t.read(node->key) != key) node = t.read(node->next);
        return node == nullptr ? nullptr : node->value();
    }

    std::uint64_t* insert(Tx& t, std::uint64_t key) {
        std::uint64_t* head = heads_.find_or_make(t, key & mask_);
        auto* node = static_cast<Node*>(t.allocate(node_bytes_, arena_));
        t.write(node->next, as_node(t.read(*head)));
        t.write(node->key, key);
        t.write(*head, reinterpret_cast<std::uint64_t>(node));
        return node->value();
    }

    bool erase(Tx& t, std::uint64_t key) {
        std::uint64_t* head = heads_.find(t, key & mask_);
        if (head == nullptr) return false;
        Node* before = nullptr;
        Node* node = as_node(t.read(*head));
        while (node != nullptr && t.read(node->key) != key) {
            before = node;
            node = t.read(node->next);
        }
        if (node == nullptr) return false;
        Node* next = t.read(node->next);
        if (before == nullptr) {
            t.write(*head, reinterpret_cast<std::uint64_t>(next));
        } else {
            t.write(before->next, next);
        }
        t.free(node, node_bytes_, arena_);
        return true;
    }

    template <class Each>
    const char* check(Audit& audit, Each&& each) const {
        return heads_.check(audit, [&](std::uint64_t bucket, const std::uint64_t* head) -> const char* {
            for (const Node* node = as_node(*head); node != nullptr; node = node->next) {
                if (!audit.claim(node, node_bytes_)) return "a node is reachable twice or not allocated";
                if ((node->key & mask_) != bucket) return "a key is in the wrong bucket";
                each(node->key, node->value());
            }
            return nullptr;
        });
    }

    template <class Each>
    bool dump(const Pool& pool, Each&& each) const {
        std::uint64_t nodes_left = pool.data_bytes() / line_bytes;  // a walk that finds more goes in a circle
        return heads_.dump(pool, [&](const std::uint64_t* head) {
            for (const Node* node = as_node(*head); node != nullptr; node = node->next) {
                if (!pool.holds(node, node_bytes_) || nodes_left-- == 0) return false;
                each(node->key, node->value());
            }
            return true;
        });
    }

private:
    static Node* as_node(std::uint64_t word) { return reinterpret_cast<Node*>(word); }

    Heads heads_;
    std::uint64_t mask_;
    std::uint64_t node_bytes_;
    std::uint64_t arena_;
};

}  // namespace durasim

#endif
