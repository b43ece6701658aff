// A map that is a hash table or a B+-tree, as its shape says.
#ifndef DURASIM_STRUCTURES_EITHER_MAP_H
#define DURASIM_STRUCTURES_EITHER_MAP_H

#include <cstdint>

#include "structures/bplus_tree.h"
#include "structures/hash_table.h"

namespace durasim {

// The parameter of its shape is made by of_table or of_tree.
class EitherMap {
    template <class Use>
    auto with(Use&& use) const {
        if (is_tree_) return use(BPlusTree(shape_, top_, arena_));
        return use(HashTable(shape_, top_, arena_));
    }

public:
    static constexpr std::uint64_t of_table(std::uint64_t buckets) { return buckets * 2; }
    static constexpr std::uint64_t of_tree(std::uint64_t node_bytes) { return node_bytes * 2 + 1; }
    static constexpr bool is_tree(std::uint64_t parameter) { return parameter % 2 != 0; }
    // Buckets or bytes of a node.
    static constexpr std::uint64_t size_of(std::uint64_t parameter) { return parameter / 2; }

    EitherMap(const MapShape& shape, std::uint64_t& top, std::uint64_t arena)
        : shape_(inner(shape)), is_tree_(is_tree(shape.parameter)), top_(top), arena_(arena) {}

    static bool is_possible(const MapShape& shape) {
        return is_tree(shape.parameter) ? BPlusTree::is_possible(inner(shape)) : HashTable::is_possible(inner(shape));
    }

    static std::uint64_t bytes(const MapShape& shape, std::uint64_t live, std::uint64_t inserted) {
        return is_tree(shape.parameter) ? BPlusTree::bytes(inner(shape), live, inserted) : HashTable::bytes(inner(shape), live, inserted);
    }

    void make(Tx& t) {
        with([&](auto map) { map.make(t); });
    }
    std::uint64_t* find(Tx& t, std::uint64_t key) {
        return with([&](auto map) { return map.find(t, key); });
    }
    std::uint64_t* insert(Tx& t, std::uint64_t key) {
        return with([&](auto map) { return map.insert(t, key); });
    }
    bool erase(Tx& t, std::uint64_t key) {
        return with([&](auto map) { return map.erase(t, key); });
    }

    // Of a tree only.
    template <class Each>
    std::uint64_t scan(Tx& t, std::uint64_t key, std::uint64_t count, Each&& each) {
        return BPlusTree(shape_, top_, arena_).scan(t, key, count, each);
    }

    template <class Each>
    const char* check(Audit& audit, Each&& each) const {
        return with([&](auto map) { return map.check(audit, each); });
    }
    template <class Each>
    bool dump(const Pool& pool, Each&& each) const {
        return with([&](auto map) { return map.dump(pool, each); });
    }

private:
    static MapShape inner(const MapShape& shape) { return {shape.value_bytes, size_of(shape.parameter), shape.erases}; }

    MapShape shape_;
    bool is_tree_;
    std::uint64_t& top_;
    std::uint64_t arena_;
};

}  // namespace durasim

#endif
