// A B+-tree of objects with durable leaves alone: HpTree of P-INSPECT (MICRO 2020, section VIII), as IntelKV and
// FPTree have it. Inner nodes are in ordinary memory, and are made anew from the leaves when a pool is opened.
//
// The leaves are a list in the order of their keys. What is durable changes by one store for each operation:
// - in a leaf as in object_bplus_tree.h;
// - a full leaf is replaced by two new ones: the second refers to the next leaf, the first to the second, and the store is
//   that of the reference to the first, in the leaf before or in the root;
// - a leaf that loses its last item leaves the list by the store of the reference to the next one.
// After that store the inner nodes are changed; a power failure takes them away as a whole.
//
// A volatile root refers to the inner nodes, an array of one reference for each tree: the opener of a pool calls open() for
// each tree before it uses one, also for those that it has just made. A program has hybrid trees in one place only.
#ifndef DURASIM_STRUCTURES_OBJECT_HYBRID_TREE_H
#define DURASIM_STRUCTURES_OBJECT_HYBRID_TREE_H

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "durasim/objects.h"
#include "structures/object_bplus_tree.h"

namespace durasim {

template <std::uint64_t leaf_keys, std::uint64_t inner_keys>
class ObjectHybridTreeOf {
public:
    using Value = Array<std::uint64_t, Placement::durable>;
    struct Leaf {
        static constexpr Placement placement = Placement::durable;
        static constexpr std::uint64_t keys_max = leaf_keys;
        static constexpr std::uint64_t references = keys_max + 1;
        Ref<Leaf> next;
        Ref<Value> values[keys_max];
        std::uint64_t used;  // a bit for each slot
        std::uint64_t keys[keys_max];
    };
    struct Root {
        static constexpr Placement placement = Placement::durable;
        static constexpr std::uint64_t references = 1;
        Ref<Leaf> head;
        std::uint64_t number;  // of the tree, among all of the program; known when it has been opened
    };

private:
    static_assert(leaf_keys >= 2 && leaf_keys <= 64);
    using Slots = detail::LeafSlots<Leaf, Value>;
    using Inner = detail::InnerNodes<Leaf, Placement::ordinary, inner_keys>;
    using Node = typename Inner::Node;
    using Tops = Array<Ref<Node>, Placement::ordinary>;

public:
    static constexpr std::uint64_t tops_root = 1;  // of the volatile roots

    // The bytes of objects for an item, their headers included, on average; see ObjectBPlusTree.
    static std::uint64_t bytes_of(std::uint64_t items, std::uint64_t value_words, std::uint64_t) {
        const std::uint64_t leaves = items / (leaf_keys / 3 + 1) + 1;
        return items * 2 * objects::room_bytes(value_words) + leaves * objects::room_bytes(sizeof(Leaf) / 8) +
               leaves * objects::room_bytes(sizeof(Node) / 8) + objects::room_bytes(sizeof(Root) / 8);
    }

    template <class Operation>
    static Ref<Root> make(Operation& o, std::uint64_t) {
        static Site sites(Root::placement);
        auto root = o.template make<Root>(sites);
        root.template set<&Root::head>(Slots::make(o, {}, 0, 0).finish());
        return root.finish();
    }

    // Makes the inner nodes of tree `number` of `trees`. No other thread has an operation meanwhile.
    template <class Operation>
    static void open(Operation& o, Ref<Root> root, std::uint64_t number, std::uint64_t trees) {
        static Site sites(Tops::placement);
        auto tops = o.template volatile_root<Tops>(tops_root);
        if (!tops) {
            tops = o.template make_array<Tops>(sites, trees).finish();
            o.set_volatile_root(tops_root, tops);
        }
        if (o.template get<&Root::number>(root) != number) o.template set<&Root::number>(root, number);
        std::vector<typename Inner::Child> leaves;
        for (auto leaf = o.template get<&Root::head>(root); leaf; leaf = o.template get<&Leaf::next>(leaf)) {
            leaves.push_back({lowest_key(o, leaf), Inner::child_of(leaf)});
        }
        o.set_at(tops, number, Inner::build(o, std::move(leaves)));
    }

    // The value of a key, none if it is not there.
    template <class Operation>
    static Ref<Value> find(Operation& o, Ref<Root> root, std::uint64_t key) {
        const auto leaf = Inner::find(o, top_of(o, root), key);
        const std::uint64_t slot = Slots::find(o, leaf, key);
        return slot == Slots::none ? Ref<Value>() : o.template at<&Leaf::values>(leaf, slot);
    }

    // Gives the key this value, whether it is there or not.
    template <class Operation>
    static void put(Operation& o, Ref<Root> root, std::uint64_t key, Ref<Value> value) {
        typename Inner::Path path;
        const auto leaf = Inner::descend(o, top_of(o, root), key, path);
        if (const std::uint64_t slot = Slots::find(o, leaf, key); slot != Slots::none) {
            o.template set_at<&Leaf::values>(leaf, slot, value);
            return;
        }
        if (o.template get<&Leaf::used>(leaf) != Slots::all) {
            Slots::add(o, leaf, key, value);
            return;
        }
        auto items = Slots::load(o, leaf);
        items.add(key, value);
        const std::uint64_t middle = items.count / 2;
        const auto second = make_leaf(o, items, middle, items.count, o.template get<&Leaf::next>(leaf));
        const auto first = make_leaf(o, items, 0, middle, second);
        link(o, root, Inner::before(o, path), first);
        Inner::split(o, path, first, items.items[middle].key, second, [&](Ref<Node> top) { set_top(o, root, top); });
    }

    template <class Operation>
    static void erase(Operation& o, Ref<Root> root, std::uint64_t key) {
        typename Inner::Path path;
        const auto leaf = Inner::descend(o, top_of(o, root), key, path);
        const std::uint64_t slot = Slots::find(o, leaf, key);
        if (slot == Slots::none) return;
        const std::uint64_t left = o.template get<&Leaf::used>(leaf) & ~(std::uint64_t{1} << slot);
        if (left != 0 || path.is_to_only_leaf) {
            o.template set<&Leaf::used>(leaf, left);
            return;
        }
        link(o, root, Inner::before(o, path), o.template get<&Leaf::next>(leaf));
        Inner::remove(o, path, [&](Ref<Node> top) { set_top(o, root, top); });
    }

    // Calls each(key, value) for all items. False if the list of leaves cannot be one, or if the tree has been opened and its
    // inner nodes do not lead to these leaves.
    template <class Operation, class Each>
    static bool each(Operation& o, Ref<Root> root, Each&& each) {
        const auto head = o.template get<&Root::head>(root);
        if (!head || !have_same_leaves(o, root, head)) return false;
        std::uint64_t low = 0;
        bool is_full = false;  // no key is left that could come next
        for (auto leaf = head; leaf; leaf = o.template get<&Leaf::next>(leaf)) {
            if (is_full) return false;
            const bool is_only = o.same(leaf, head) && !o.template get<&Leaf::next>(leaf);
            std::uint64_t highest = low;
            const auto note = [&](std::uint64_t key, Ref<Value> value) {
                highest = key;
                return static_cast<bool>(each(key, value));
            };
            if (!Slots::each(o, leaf, low, ~std::uint64_t{0}, is_only, note)) return false;
            is_full = highest == ~std::uint64_t{0};
            low = highest + 1;
        }
        return true;
    }

private:
    template <class Operation>
    static Ref<Node> top_of(Operation& o, Ref<Root> root) {
        return o.at(o.template volatile_root<Tops>(tops_root), o.template get<&Root::number>(root));
    }
    template <class Operation>
    static void set_top(Operation& o, Ref<Root> root, Ref<Node> top) {
        o.set_at(o.template volatile_root<Tops>(tops_root), o.template get<&Root::number>(root), top);
    }

    template <class Operation>
    static Ref<Leaf> make_leaf(Operation& o, const typename Slots::Items& items, std::uint64_t from, std::uint64_t to, Ref<Leaf> next) {
        auto leaf = Slots::make(o, items, from, to);
        leaf.template set<&Leaf::next>(next);
        return leaf.finish();
    }

    // The store by which a change of the list takes effect.
    template <class Operation>
    static void link(Operation& o, Ref<Root> root, Ref<Leaf> before, Ref<Leaf> leaf) {
        if (before) {
            o.template set<&Leaf::next>(before, leaf);
        } else {
            o.template set<&Root::head>(root, leaf);
        }
    }

    template <class Operation>
    static std::uint64_t lowest_key(Operation& o, Ref<Leaf> leaf) {
        std::uint64_t lowest = ~std::uint64_t{0};
        for (std::uint64_t left = o.template get<&Leaf::used>(leaf) & Slots::all; left != 0; left &= left - 1) {
            lowest = std::min(lowest, o.template at<&Leaf::keys>(leaf, static_cast<std::uint64_t>(__builtin_ctzll(left))));
        }
        return lowest;
    }

    // Whether the inner nodes, if there are any, lead to the leaves of the list, and to none with keys that are not found there.
    template <class Operation>
    static bool have_same_leaves(Operation& o, Ref<Root> root, Ref<Leaf> head) {
        const auto tops = o.template volatile_root<Tops>(tops_root);
        if (!tops) return true;
        const std::uint64_t number = o.template get<&Root::number>(root);
        if (number >= o.length(tops)) return false;
        const auto any = [](std::uint64_t, Ref<Value>) { return true; };
        auto next = head;
        const bool is_tree = Inner::each_leaf(o, o.at(tops, number), [&](Ref<Leaf> leaf, std::uint64_t low, std::uint64_t high, bool is_only) {
            if (!next || !o.same(leaf, next)) return false;
            next = o.template get<&Leaf::next>(next);
            return Slots::each(o, leaf, low, high, is_only, any);
        });
        return is_tree && !next;
    }
};

// With the numbers of pmemkv (LEAF_KEYS 48, INNER_KEYS 4); P-INSPECT publishes none of its own.
using ObjectHybridTree = ObjectHybridTreeOf<48, 4>;

}  // namespace durasim

#endif
