// Hash tables of fixed size in persistent memory whose chains are sorted: the tables and sets of STAMP's genome.
//
// A chain has its head and its size on 32 bytes, so that two heads share a line, as they do in STAMP, whose lists begin so.
// The items are numbers that stand for something else; the caller of an insertion says how they are ordered. All zeros is an empty
// chain.
#ifndef DURASIM_STRUCTURES_SORTED_CHAINS_H
#define DURASIM_STRUCTURES_SORTED_CHAINS_H

#include <cstdint>

#include "durasim/audit.h"
#include "durasim/history.h"
#include "durasim/tx.h"
#include "structures/blocks.h"

namespace durasim {

struct ChainNode {
    ChainNode* next;
    std::uint64_t item;
};

struct alignas(32) SortedChain {
    ChainNode* first;
    std::uint64_t size;

    // Inserts the item unless one that is equal to it is there. compare(item) is negative for items in front of it, zero for an
    // equal one. Returns whether it was inserted.
    template <class Compare>
    bool insert(Tx& t, std::uint64_t item, std::uint64_t arena, Compare&& compare) {
        ChainNode** link = &first;
        ChainNode* node = t.read(*link);
        while (node != nullptr) {
            const int order = compare(t.read(node->item));
            if (order == 0) return false;
            if (order > 0) break;
            link = &node->next;
            node = t.read(*link);
        }
        auto* fresh = static_cast<ChainNode*>(t.allocate(sizeof(ChainNode), arena));
        t.write(fresh->next, node);
        t.write(fresh->item, item);
        t.write(*link, fresh);
        t.write(size, t.read(size) + 1);
        return true;
    }

    // Calls take(node) for each node. False if no node can be where a link leads, or the size is wrong.
    template <class Take>
    bool visit(const Pool& pool, Take&& take) const {
        std::uint64_t left = size;
        const ChainNode* node = first;
        for (; node != nullptr && left > 0; node = node->next, --left) {
            if (!can_be_block(pool, node, sizeof(ChainNode))) return false;
            take(node);
        }
        return node == nullptr && left == 0;
    }

    // The size makes each version new. Of a chain whose links can be followed.
    template <class Read>
    std::uint64_t version(Read&& read) const {
        Version version;
        version.take(read(size));
        for (const ChainNode* node = read(first); node != nullptr; node = read(node->next)) version.take(read(node->item));
        return read(size) == 0 ? 0 : version.value();
    }
};

}  // namespace durasim

#endif
