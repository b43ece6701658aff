// A persistent array of pointers that only grows: a tree of nodes of 8 pointers each, a line, as high as the number of entries
// makes it. The number is kept by the owner, beside other data that changes with it. An entry that is appended modifies one
// line of a node, and now and then there are new nodes.
#ifndef DURASIM_STRUCTURES_POINTER_ARRAY_H
#define DURASIM_STRUCTURES_POINTER_ARRAY_H

#include <cstdint>

#include "durasim/layout.h"
#include "durasim/tx.h"

namespace durasim {

class PointerArray {
public:
    static constexpr unsigned entries_bits = 3;
    static constexpr std::uint64_t node_entries = std::uint64_t{1} << entries_bits;
    static constexpr std::uint64_t node_bytes = node_entries * 8;
    static constexpr std::uint64_t length_max = std::uint64_t{1} << 40;

    // An array of no entries.
    static void make(Tx& t, PointerArray& array) { t.write(array.top_, 0); }

    // The most bytes that `length` entries take from the pool.
    static constexpr std::uint64_t pool_bytes(std::uint64_t length) {
        std::uint64_t nodes = 0;
        for (std::uint64_t level = length; level > 1; nodes += level) level = (level + node_entries - 1) / node_entries;
        return (nodes + 1) * node_bytes;
    }

    // Entry `index` of `length`.
    std::uint64_t at(Tx& t, std::uint64_t length, std::uint64_t index) const {
        std::uint64_t place = t.read(top_);
        for (unsigned level = height_of(length); level-- > 0;) place = t.read(entries(place)[digit(index, level)]);
        return place;
    }

    // Makes `entry` the one after the `length` that are there. New nodes come from `arena`, whose lock the caller holds.
    void append(Tx& t, std::uint64_t length, std::uint64_t entry, std::uint64_t arena) {
        const unsigned height = height_of(length + 1);
        if (height > height_of(length)) {
            const auto grown = reinterpret_cast<std::uint64_t>(t.allocate(node_bytes, arena));
            if (length != 0) t.write(entries(grown)[0], t.read(top_));
            t.write(top_, grown);
        }
        std::uint64_t node = t.read(top_);
        for (unsigned level = height; --level > 0;) {
            std::uint64_t& slot = entries(node)[digit(length, level)];
            // The first entry below a node comes with that node.
            const bool is_first = (length & (below(level) - 1)) == 0;
            if (is_first) t.write(slot, reinterpret_cast<std::uint64_t>(t.allocate(node_bytes, arena)));
            node = t.read(slot);
        }
        t.write(entries(node)[digit(length, 0)], entry);
    }

    // Calls `entry(index, pointer)` for the entries of an array that may be damaged, until that returns false; a node is
    // followed only if `node(place)` allows it. Returns whether neither returned false.
    template <class Node, class Entry>
    bool visit(std::uint64_t length, Node&& node, Entry&& entry) const {
        if (length == 0) return true;
        return length <= length_max && visit_below(top_, height_of(length), 0, length, node, entry);
    }

private:
    // Entries below an entry of a node at `level`.
    static constexpr std::uint64_t below(unsigned level) { return std::uint64_t{1} << (level * entries_bits); }
    static constexpr std::uint64_t digit(std::uint64_t index, unsigned level) {
        return index >> (level * entries_bits) & (node_entries - 1);
    }
    static std::uint64_t* entries(std::uint64_t node) { return reinterpret_cast<std::uint64_t*>(node); }

    // Levels of nodes above `length` entries.
    static constexpr unsigned height_of(std::uint64_t length) {
        unsigned height = length != 0;
        while (height != 0 && below(height) < length) ++height;
        return height;
    }

    template <class Node, class Entry>
    static bool visit_below(std::uint64_t place, unsigned height, std::uint64_t first, std::uint64_t length, Node& node,
                            Entry& entry) {
        if (height == 0) return entry(first, place);
        if (!node(place)) return false;
        for (std::uint64_t i = 0; i < node_entries && first < length; ++i, first += below(height - 1)) {
            if (!visit_below(entries(place)[i], height - 1, first, length, node, entry)) return false;
        }
        return true;
    }

    std::uint64_t top_;  // the highest node, if there are entries
};
static_assert(sizeof(PointerArray) == 8);

}  // namespace durasim

#endif
