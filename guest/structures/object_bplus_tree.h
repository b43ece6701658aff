// A B+-tree of objects in the manner of IntelKV, the kvtree of pmemkv, which P-INSPECT cites (MICRO 2020, section VIII): leaves
// with unsorted slots, and a word that says which of them are used.
//
// Every operation takes effect by one store. An insertion writes the key and the reference to the value into a free slot;
// the word `used` makes them count. A removal clears the slot's bit there, a replacement stores the reference to the value. A
// full leaf is replaced by two new ones, with new copies of the inner nodes above as far as they change, and a leaf that
// loses its last item goes with those that lead to nothing else: one store of a reference each. Inner nodes never change
// except for their references.
//
// Nodes are not merged: as in pmemkv, a leaf may have few items. Leaves are not linked to each other: the link to a new leaf
// would be a second store. What is in a free slot means nothing; its value is in use until the slot is used again.
#ifndef DURASIM_STRUCTURES_OBJECT_BPLUS_TREE_H
#define DURASIM_STRUCTURES_OBJECT_BPLUS_TREE_H

#include <array>
#include <cstdint>
#include <vector>

#include "durasim/objects.h"

namespace durasim {

namespace detail {

// The lowest number that some bits do not have.
inline std::uint64_t lowest_clear(std::uint64_t bits) { return static_cast<std::uint64_t>(__builtin_ctzll(~bits)); }

// The handling of slots in the leaves of this tree and of ObjectHybridTree. A leaf has `values`, `keys`, `used` and keys_max.
template <class Leaf, class Value>
struct LeafSlots {
    static constexpr std::uint64_t all = Leaf::keys_max == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << Leaf::keys_max) - 1;
    static constexpr std::uint64_t none = 64;

    struct Item {
        std::uint64_t key;
        Ref<Value> value;
    };
    // In ascending order of keys, with room for one more than a leaf has.
    struct Items {
        std::array<Item, Leaf::keys_max + 1> items;
        std::uint64_t count = 0;

        void add(std::uint64_t key, Ref<Value> value) {
            std::uint64_t place = count++;
            for (; place > 0 && items[place - 1].key > key; --place) items[place] = items[place - 1];
            items[place] = {key, value};
        }
    };

    // The slot of the key.
    template <class Operation>
    static std::uint64_t find(Operation& o, Ref<Leaf> leaf, std::uint64_t key) {
        for (std::uint64_t left = o.template get<&Leaf::used>(leaf); left != 0; left &= left - 1) {
            const auto slot = static_cast<std::uint64_t>(__builtin_ctzll(left));
            if (o.template at<&Leaf::keys>(leaf, slot) == key) return slot;
        }
        return none;
    }

    // The store to `used` comes last.
    template <class Operation>
    static void add(Operation& o, Ref<Leaf> leaf, std::uint64_t key, Ref<Value> value) {
        const std::uint64_t used = o.template get<&Leaf::used>(leaf), slot = lowest_clear(used);
        o.template set_at<&Leaf::keys>(leaf, slot, key);
        o.template set_at<&Leaf::values>(leaf, slot, value);
        o.template set<&Leaf::used>(leaf, used | std::uint64_t{1} << slot);
    }

    template <class Operation>
    static Items load(Operation& o, Ref<Leaf> leaf) {
        Items items;
        for (std::uint64_t left = o.template get<&Leaf::used>(leaf) & all; left != 0; left &= left - 1) {
            const auto slot = static_cast<std::uint64_t>(__builtin_ctzll(left));
            items.add(o.template at<&Leaf::keys>(leaf, slot), o.template at<&Leaf::values>(leaf, slot));
        }
        return items;
    }

    // A new leaf with the items [from, to); the caller sets what else it has.
    template <class Operation>
    static auto make(Operation& o, const Items& items, std::uint64_t from, std::uint64_t to) {
        static Site sites(Leaf::placement);
        auto leaf = o.template make<Leaf>(sites);
        for (std::uint64_t i = from; i < to; ++i) {
            leaf.template set_at<&Leaf::keys>(i - from, items.items[i].key);
            leaf.template set_at<&Leaf::values>(i - from, items.items[i].value);
        }
        leaf.template set<&Leaf::used>((std::uint64_t{1} << (to - from)) - 1);
        return leaf;
    }

    // Calls each(key, value) for the items in order. False if the keys are not different ones in [low, high].
    template <class Operation, class Each>
    static bool each(Operation& o, Ref<Leaf> leaf, std::uint64_t low, std::uint64_t high, bool may_be_empty, Each& each) {
        const std::uint64_t used = o.template get<&Leaf::used>(leaf);
        if ((used & ~all) != 0 || (used == 0 && !may_be_empty)) return false;
        const Items items = load(o, leaf);
        for (std::uint64_t i = 0; i < items.count; ++i) {
            const auto& [key, value] = items.items[i];
            if (key < low || key > high || (i > 0 && key == items.items[i - 1].key) || !each(key, value)) return false;
        }
        return true;
    }
};

// The nodes above the leaves. They are made once; only their references to children change. The top is always a node of
// this kind: with one leaf, it has no key.
template <class Leaf, Placement where, std::uint64_t keys_max>
class InnerNodes {
public:
    struct Node {
        static constexpr Placement placement = where;
        static constexpr std::uint64_t references = keys_max + 1;
        Ref<Node> children[keys_max + 1];  // leaves where the level is 1
        std::uint64_t keys[keys_max];      // below child i are keys from keys[i - 1] on, and less than keys[i]
        std::uint64_t count;               // of keys; 0 if only one child is left
        std::uint64_t level;
    };

    // Only a split of the top makes a tree higher, and each node that is split gives two with three children.
    static constexpr std::uint64_t levels_max = 48;
    static_assert(keys_max >= 3);

    // A bare address, so that a whole path is not filled with null references.
    struct Step {
        objects::Object* object;
        std::uint64_t index;  // of the child that comes next

        Ref<Node> node() const { return Ref<Node>(object); }
    };
    struct Path {
        std::array<Step, levels_max> steps;
        std::uint64_t levels = 0;
        bool is_to_only_leaf = false;
    };

    static Ref<Leaf> leaf_of(Ref<Node> child) { return Ref<Leaf>(child.object()); }
    static Ref<Node> child_of(Ref<Leaf> leaf) { return Ref<Node>(leaf.object()); }

    template <class Operation>
    static Ref<Node> make_top(Operation& o, Ref<Leaf> only) {
        Draft draft;
        draft.children[0] = child_of(only);
        return write(o, draft, 0, 0);
    }

    // The leaf where a key belongs.
    template <class Operation>
    static Ref<Leaf> find(Operation& o, Ref<Node> node, std::uint64_t key) {
        for (std::uint64_t level = o.template get<&Node::level>(node); level > 0; --level) {
            node = o.template at<&Node::children>(node, child_index(o, node, key));
        }
        return leaf_of(node);
    }

    // Finds the leaf and the nodes that lead there.
    template <class Operation>
    static Ref<Leaf> descend(Operation& o, Ref<Node> node, std::uint64_t key, Path& path) {
        path.levels = o.template get<&Node::level>(node);
        path.is_to_only_leaf = path.levels == 1 && o.template get<&Node::count>(node) == 0;
        for (std::uint64_t i = 0; i < path.levels; ++i) {
            path.steps[i] = {node.object(), child_index(o, node, key)};
            node = o.template at<&Node::children>(node, path.steps[i].index);
        }
        return leaf_of(node);
    }

    // The leaf before that of a path, none if it is the first.
    template <class Operation>
    static Ref<Leaf> before(Operation& o, const Path& path) {
        std::uint64_t i = path.levels;
        while (i > 0 && path.steps[i - 1].index == 0) --i;
        if (i == 0) return {};
        auto node = o.template at<&Node::children>(path.steps[i - 1].node(), path.steps[i - 1].index - 1);
        for (; i < path.levels; ++i) node = o.template at<&Node::children>(node, o.template get<&Node::count>(node));
        return leaf_of(node);
    }

    // Replaces the leaf of a path by two; the second has the keys from `separator` on. Calls set_top(node) if there
    // is another top.
    template <class Operation, class SetTop>
    static void split(Operation& o, const Path& path, Ref<Leaf> first, std::uint64_t separator, Ref<Leaf> second, SetTop&& set_top) {
        Ref<Node> left = child_of(first), right = child_of(second);
        for (std::uint64_t i = path.levels; i-- > 0;) {
            Draft draft = load(o, path.steps[i].node());
            draft.children[path.steps[i].index] = left;
            draft.insert(path.steps[i].index, separator, right);
            if (draft.count <= keys_max) {
                link(o, path, i, write(o, draft, 0, draft.count), set_top);
                return;
            }
            const std::uint64_t middle = draft.count / 2;
            left = write(o, draft, 0, middle);
            right = write(o, draft, middle + 1, draft.count);
            separator = draft.keys[middle];
        }
        Draft draft;
        draft.level = path.levels + 1;
        draft.children[0] = left;
        draft.insert(0, separator, right);
        set_top(write(o, draft, 0, 1));
    }

    // Takes the leaf of a path out, which is not the only one, and all nodes that lead to nothing else.
    template <class Operation, class SetTop>
    static void remove(Operation& o, const Path& path, SetTop&& set_top) {
        std::uint64_t i = path.levels - 1;
        while (o.template get<&Node::count>(path.steps[i].node()) == 0) --i;
        Draft draft = load(o, path.steps[i].node());
        draft.remove(path.steps[i].index);
        if (i == 0 && draft.count == 0 && draft.level > 1) {
            // The tree becomes lower, as far as there is one child only.
            auto top = draft.children[0];
            while (o.template get<&Node::level>(top) > 1 && o.template get<&Node::count>(top) == 0) top = o.template at<&Node::children>(top, 0);
            set_top(top);
            return;
        }
        link(o, path, i, write(o, draft, 0, draft.count), set_top);
    }

    struct Child {
        std::uint64_t low;  // the lowest key below
        Ref<Node> node;
    };

    // Nodes above some leaves, at least one, in order.
    template <class Operation>
    static Ref<Node> build(Operation& o, std::vector<Child> children) {
        for (std::uint64_t level = 1;; ++level) {
            // Nodes with one place left, so that the next split below does not continue to the top.
            const std::uint64_t count = children.size(), nodes = (count + keys_max - 1) / keys_max;
            for (std::uint64_t i = 0; i < nodes; ++i) {
                const std::uint64_t from = count * i / nodes, to = count * (i + 1) / nodes;
                Draft draft;
                draft.level = level;
                draft.children[0] = children[from].node;
                for (std::uint64_t j = from + 1; j < to; ++j) draft.insert(draft.count, children[j].low, children[j].node);
                const std::uint64_t low = children[from].low;
                children[i] = {low, write(o, draft, 0, draft.count)};
            }
            children.resize(nodes);
            if (nodes == 1) return children[0].node;
        }
    }

    // Calls each(leaf, low, high, is_only) for all leaves in order. False if the nodes cannot be a tree.
    template <class Operation, class Each>
    static bool each_leaf(Operation& o, Ref<Node> top, Each&& each) {
        if (!top) return false;
        const std::uint64_t level = o.template get<&Node::level>(top), count = o.template get<&Node::count>(top);
        if (level == 0 || level > levels_max || (level > 1 && count == 0)) return false;
        return walk(o, top, level, 0, ~std::uint64_t{0}, level == 1 && count == 0, each);
    }

private:
    // The content of a node to be, with room for one more key.
    struct Draft {
        std::uint64_t count = 0;
        std::uint64_t level = 1;
        std::array<Ref<Node>, keys_max + 2> children;
        std::array<std::uint64_t, keys_max + 1> keys{};

        // A key and the child after it.
        void insert(std::uint64_t index, std::uint64_t key, Ref<Node> child) {
            for (std::uint64_t i = count; i > index; --i) {
                keys[i] = keys[i - 1];
                children[i + 1] = children[i];
            }
            keys[index] = key;
            children[index + 1] = child;
            ++count;
        }

        // A child, and a key beside it: what remains on both sides of that is found as before.
        void remove(std::uint64_t index) {
            --count;
            for (std::uint64_t i = index; i <= count; ++i) children[i] = children[i + 1];
            for (std::uint64_t i = index == 0 ? 0 : index - 1; i < count; ++i) keys[i] = keys[i + 1];
        }
    };

    template <class Operation>
    static std::uint64_t child_index(Operation& o, Ref<Node> node, std::uint64_t key) {
        const std::uint64_t count = o.template get<&Node::count>(node);
        std::uint64_t i = 0;
        while (i < count && o.template at<&Node::keys>(node, i) <= key) ++i;
        return i;
    }

    template <class Operation>
    static Draft load(Operation& o, Ref<Node> node) {
        Draft draft;
        draft.count = o.template get<&Node::count>(node);
        draft.level = o.template get<&Node::level>(node);
        for (std::uint64_t i = 0; i < draft.count; ++i) draft.keys[i] = o.template at<&Node::keys>(node, i);
        for (std::uint64_t i = 0; i <= draft.count; ++i) draft.children[i] = o.template at<&Node::children>(node, i);
        return draft;
    }

    // A new node with the keys [from, to) and the children around them.
    template <class Operation>
    static Ref<Node> write(Operation& o, const Draft& draft, std::uint64_t from, std::uint64_t to) {
        static Site sites(Node::placement);
        auto node = o.template make<Node>(sites);
        for (std::uint64_t i = from; i <= to; ++i) node.template set_at<&Node::children>(i - from, draft.children[i]);
        for (std::uint64_t i = from; i < to; ++i) node.template set_at<&Node::keys>(i - from, draft.keys[i]);
        node.template set<&Node::count>(to - from);
        node.template set<&Node::level>(draft.level);
        return node.finish();
    }

    // Puts a node in the place of one of the path.
    template <class Operation, class SetTop>
    static void link(Operation& o, const Path& path, std::uint64_t i, Ref<Node> node, SetTop&& set_top) {
        if (i == 0) {
            set_top(node);
        } else {
            o.template set_at<&Node::children>(path.steps[i - 1].node(), path.steps[i - 1].index, node);
        }
    }

    template <class Operation, class Each>
    static bool walk(Operation& o, Ref<Node> node, std::uint64_t level, std::uint64_t low, std::uint64_t high, bool is_only, Each& each) {
        const std::uint64_t count = o.template get<&Node::count>(node);
        if (o.template get<&Node::level>(node) != level || count > keys_max) return false;
        // Nodes are made once, so what they do not use is 0.
        for (std::uint64_t i = count; i < keys_max; ++i) {
            if (o.template at<&Node::keys>(node, i) != 0 || o.template at<&Node::children>(node, i + 1)) return false;
        }
        for (std::uint64_t i = 0; i <= count; ++i) {
            const auto child = o.template at<&Node::children>(node, i);
            const std::uint64_t end = i == count ? high : o.template at<&Node::keys>(node, i) - 1;
            // Some key has to fit below; a separator is above the lowest key.
            if (!child || end < low || end > high || (i < count && end == high)) return false;
            if (level == 1 ? !each(leaf_of(child), low, end, is_only) : !walk(o, child, level - 1, low, end, false, each)) return false;
            low = end + 1;
        }
        return true;
    }
};

}  // namespace detail

template <std::uint64_t leaf_keys, std::uint64_t inner_keys>
class ObjectBPlusTreeOf {
public:
    using Value = Array<std::uint64_t, Placement::durable>;
    struct Leaf {
        static constexpr Placement placement = Placement::durable;
        static constexpr std::uint64_t keys_max = leaf_keys;
        static constexpr std::uint64_t references = keys_max;
        Ref<Value> values[keys_max];
        std::uint64_t used;  // a bit for each slot
        std::uint64_t keys[keys_max];
    };

private:
    static_assert(leaf_keys >= 2 && leaf_keys <= 64);
    using Slots = detail::LeafSlots<Leaf, Value>;
    using Inner = detail::InnerNodes<Leaf, Placement::durable, inner_keys>;
    using Node = typename Inner::Node;

public:
    struct Root {
        static constexpr Placement placement = Placement::durable;
        static constexpr std::uint64_t references = 1;
        Ref<Node> top;
    };

    // The bytes of objects for an item, their headers included, on average: leaves filled to a third, the less of them the more
    // is removed, and as many values again in free slots.
    static std::uint64_t bytes_of(std::uint64_t items, std::uint64_t value_words, std::uint64_t) {
        const std::uint64_t leaves = items / (leaf_keys / 3 + 1) + 1;
        return items * 2 * objects::room_bytes(value_words) + leaves * objects::room_bytes(sizeof(Leaf) / 8) +
               leaves * objects::room_bytes(sizeof(Node) / 8) + objects::room_bytes(1);
    }

    template <class Operation>
    static Ref<Root> make(Operation& o, std::uint64_t) {
        static Site sites(Root::placement);
        auto root = o.template make<Root>(sites);
        root.template set<&Root::top>(Inner::make_top(o, Slots::make(o, {}, 0, 0).finish()));
        return root.finish();
    }

    // The value of a key, none if it is not there.
    template <class Operation>
    static Ref<Value> find(Operation& o, Ref<Root> root, std::uint64_t key) {
        const auto leaf = Inner::find(o, o.template get<&Root::top>(root), key);
        const std::uint64_t slot = Slots::find(o, leaf, key);
        return slot == Slots::none ? Ref<Value>() : o.template at<&Leaf::values>(leaf, slot);
    }

    // Gives the key this value, whether it is there or not.
    template <class Operation>
    static void put(Operation& o, Ref<Root> root, std::uint64_t key, Ref<Value> value) {
        typename Inner::Path path;
        const auto leaf = Inner::descend(o, o.template get<&Root::top>(root), key, path);
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
        const auto first = Slots::make(o, items, 0, middle).finish(), second = Slots::make(o, items, middle, items.count).finish();
        Inner::split(o, path, first, items.items[middle].key, second, [&](Ref<Node> top) { o.template set<&Root::top>(root, top); });
    }

    template <class Operation>
    static void erase(Operation& o, Ref<Root> root, std::uint64_t key) {
        typename Inner::Path path;
        const auto leaf = Inner::descend(o, o.template get<&Root::top>(root), key, path);
        const std::uint64_t slot = Slots::find(o, leaf, key);
        if (slot == Slots::none) return;
        const std::uint64_t left = o.template get<&Leaf::used>(leaf) & ~(std::uint64_t{1} << slot);
        if (left != 0 || path.is_to_only_leaf) {
            o.template set<&Leaf::used>(leaf, left);
        } else {
            Inner::remove(o, path, [&](Ref<Node> top) { o.template set<&Root::top>(root, top); });
        }
    }

    // Calls each(key, value) for all items. False if the tree cannot be one.
    template <class Operation, class Each>
    static bool each(Operation& o, Ref<Root> root, Each&& each) {
        return Inner::each_leaf(o, o.template get<&Root::top>(root), [&](Ref<Leaf> leaf, std::uint64_t low, std::uint64_t high, bool is_only) {
            return Slots::each(o, leaf, low, high, is_only, each);
        });
    }
};

// With the numbers of pmemkv (LEAF_KEYS 48, INNER_KEYS 4); P-INSPECT publishes none of its own.
using ObjectBPlusTree = ObjectBPlusTreeOf<48, 4>;

}  // namespace durasim

#endif
