// A B-tree of objects, with values in all of its nodes.
//
// Every operation takes effect by one store of a reference. A replacement stores the reference to the value. An insertion or
// a removal makes new copies of the nodes that it changes, up to the lowest one that need not be split or merged, and stores
// the reference to that one. So nodes never change except for their references, and no log is needed.
#ifndef DURASIM_STRUCTURES_OBJECT_BTREE_H
#define DURASIM_STRUCTURES_OBJECT_BTREE_H

#include <array>
#include <cstdint>

#include "durasim/objects.h"

namespace durasim {

class ObjectBTree {
public:
    // P-INSPECT does not publish the arity of its kernel. This is that of btree_map, an example of PMDK (BTREE_ORDER 8,
    // BTREE_MIN 3); a node with its header has the size of three lines.
    static constexpr std::uint64_t keys_max = 7, keys_min = 3;

    using Value = Array<std::uint64_t, Placement::durable>;
    struct Node {
        static constexpr Placement placement = Placement::durable;
        static constexpr std::uint64_t references = 2 * keys_max + 1;
        Ref<Node> children[keys_max + 1];  // none in a leaf
        Ref<Value> values[keys_max];
        std::uint64_t keys[keys_max];
        std::uint64_t count;
    };
    struct Root {
        static constexpr Placement placement = Placement::durable;
        static constexpr std::uint64_t references = 1;
        Ref<Node> top;  // none if the tree is empty
    };

    // The bytes of objects for an item, their headers included, on average; nodes of a tree of random keys are filled to 70%.
    static std::uint64_t bytes_of(std::uint64_t items, std::uint64_t value_words, std::uint64_t) {
        return items * objects::room_bytes(value_words) + (items / 4 + 1) * objects::room_bytes(sizeof(Node) / 8) + objects::room_bytes(1);
    }

    template <class Operation>
    static Ref<Root> make(Operation& o, std::uint64_t) {
        static Site sites(Root::placement);
        return o.template make<Root>(sites).finish();
    }

    // The value of a key, none if it is not there.
    template <class Operation>
    static Ref<Value> find(Operation& o, Ref<Root> root, std::uint64_t key) {
        for (auto node = o.template get<&Root::top>(root); node;) {
            const Place place = place_of(o, node, key);
            if (place.is_there) return o.template at<&Node::values>(node, place.index);
            node = o.template at<&Node::children>(node, place.index);
        }
        return {};
    }

    // Gives the key this value, whether it is there or not.
    template <class Operation>
    static void put(Operation& o, Ref<Root> root, std::uint64_t key, Ref<Value> value) {
        Path path;
        if (descend(o, root, key, path)) {
            o.template set_at<&Node::values>(path.last().node(), path.last().index, value);
            return;
        }
        // The result of a split below for the node above: `left` for the child that was split; the key, its value and `right`
        // after it. In a leaf, the new item and no children.
        Ref<Node> left, right;
        for (std::uint64_t level = path.levels; level-- > 0;) {
            const Step& step = path.steps[level];
            Draft draft = load(o, step.node());
            draft.children[step.index] = left;
            draft.insert(step.index, key, value, right);
            if (draft.count <= keys_max) {
                link(o, root, path, level, write(o, draft, 0, draft.count));
                return;
            }
            const std::uint64_t middle = draft.count / 2;
            left = write(o, draft, 0, middle);
            right = write(o, draft, middle + 1, draft.count);
            key = draft.keys[middle];
            value = draft.values[middle];
        }
        Draft top;
        top.children[0] = left;
        top.insert(0, key, value, right);
        link(o, root, path, 0, write(o, top, 0, 1));
    }

    template <class Operation>
    static void erase(Operation& o, Ref<Root> root, std::uint64_t key) {
        Path path;
        if (!descend(o, root, key, path)) return;
        // In an inner node the largest item below takes the place of the one that goes; that leaf loses it instead.
        const std::uint64_t level_of_key = path.levels - 1, index_of_key = path.last().index;
        descend_to_largest(o, path);
        Draft draft = load(o, path.last().node());
        const std::uint64_t leaving = path.levels - 1 == level_of_key ? index_of_key : draft.count - 1;
        const std::uint64_t moved_key = draft.keys[leaving];
        const Ref<Value> moved_value = draft.values[leaving];
        draft.remove(leaving);
        for (std::uint64_t level = path.levels - 1;; --level) {
            if (level == 0) {
                // A tree loses its top node with the last key of that one.
                link(o, root, path, 0, draft.count == 0 ? draft.children[0] : write(o, draft, 0, draft.count));
                return;
            }
            const bool is_full_enough = draft.count >= keys_min;
            if (is_full_enough && level <= level_of_key) {
                link(o, root, path, level, write(o, draft, 0, draft.count));
                return;
            }
            Draft above = load(o, path.steps[level - 1].node());
            if (level - 1 == level_of_key) {
                above.keys[index_of_key] = moved_key;
                above.values[index_of_key] = moved_value;
            }
            const std::uint64_t index = path.steps[level - 1].index;
            if (is_full_enough) {
                above.children[index] = write(o, draft, 0, draft.count);
            } else {
                refill(o, above, index, draft);
            }
            draft = above;
        }
    }

    // Calls each(key, value) for all items. False if the tree cannot be one.
    template <class Operation, class Each>
    static bool each(Operation& o, Ref<Root> root, Each&& each) {
        const auto top = o.template get<&Root::top>(root);
        std::uint64_t levels = 0;
        for (auto node = top; node; node = o.template at<&Node::children>(node, 0)) {
            if (++levels > levels_max) return false;
        }
        return levels == 0 || walk(o, top, levels - 1, true, 0, ~std::uint64_t{0}, each);
    }

private:
    // Every node but the top has at least four children, and there are at most 2^64 keys.
    static constexpr std::uint64_t levels_max = 33;

    // The first key that is not below the one searched.
    struct Place {
        std::uint64_t index;
        bool is_there;
    };
    // A bare address, so that a whole path is not filled with null references.
    struct Step {
        objects::Object* object;
        std::uint64_t index;  // of the child that comes next, or of the key

        Ref<Node> node() const { return Ref<Node>(object); }
    };
    struct Path {
        std::array<Step, levels_max> steps;
        std::uint64_t levels = 0;

        const Step& last() const { return steps[levels - 1]; }
        void add(Ref<Node> node, std::uint64_t index) { steps[levels++] = {node.object(), index}; }
    };

    // The content of a node to be, with room for two nodes and the key between them.
    struct Draft {
        std::uint64_t count = 0;
        std::array<Ref<Node>, 2 * keys_max + 2> children;
        std::array<Ref<Value>, 2 * keys_max + 1> values;
        std::array<std::uint64_t, 2 * keys_max + 1> keys;

        // A key, its value, and the child after it.
        void insert(std::uint64_t index, std::uint64_t key, Ref<Value> value, Ref<Node> child) {
            for (std::uint64_t i = count; i > index; --i) {
                keys[i] = keys[i - 1];
                values[i] = values[i - 1];
                children[i + 1] = children[i];
            }
            keys[index] = key;
            values[index] = value;
            children[index + 1] = child;
            ++count;
        }

        void remove(std::uint64_t index) {
            --count;
            for (std::uint64_t i = index; i < count; ++i) {
                keys[i] = keys[i + 1];
                values[i] = values[i + 1];
                children[i + 1] = children[i + 2];
            }
        }

        // A key and its value, and all of another node.
        void append(std::uint64_t key, Ref<Value> value, const Draft& other) {
            insert(count, key, value, other.children[0]);
            for (std::uint64_t i = 0; i < other.count; ++i) insert(count, other.keys[i], other.values[i], other.children[i + 1]);
        }
    };

    template <class Operation>
    static Place place_of(Operation& o, Ref<Node> node, std::uint64_t key) {
        const std::uint64_t count = o.template get<&Node::count>(node);
        for (std::uint64_t i = 0; i < count; ++i) {
            const std::uint64_t there = o.template at<&Node::keys>(node, i);
            if (there >= key) return {i, there == key};
        }
        return {count, false};
    }

    // The nodes from the top to that of the key, or to the leaf where it belongs. True if it is there.
    template <class Operation>
    static bool descend(Operation& o, Ref<Root> root, std::uint64_t key, Path& path) {
        for (auto node = o.template get<&Root::top>(root); node;) {
            const Place place = place_of(o, node, key);
            path.add(node, place.index);
            if (place.is_there) return true;
            node = o.template at<&Node::children>(node, place.index);
        }
        return false;
    }

    // From a key to the leaf with the largest one below it.
    template <class Operation>
    static void descend_to_largest(Operation& o, Path& path) {
        while (const auto node = o.template at<&Node::children>(path.last().node(), path.last().index)) {
            path.add(node, o.template get<&Node::count>(node));
        }
    }

    template <class Operation>
    static Draft load(Operation& o, Ref<Node> node) {
        Draft draft;
        draft.count = o.template get<&Node::count>(node);
        draft.children[0] = o.template at<&Node::children>(node, 0);
        const bool is_leaf = !draft.children[0];
        for (std::uint64_t i = 0; i < draft.count; ++i) {
            draft.keys[i] = o.template at<&Node::keys>(node, i);
            draft.values[i] = o.template at<&Node::values>(node, i);
            if (!is_leaf) draft.children[i + 1] = o.template at<&Node::children>(node, i + 1);
        }
        return draft;
    }

    // A new node with the keys [from, to).
    template <class Operation>
    static Ref<Node> write(Operation& o, const Draft& draft, std::uint64_t from, std::uint64_t to) {
        static Site sites(Node::placement);
        auto node = o.template make<Node>(sites);
        const bool is_leaf = !draft.children[from];
        if (!is_leaf) node.template set_at<&Node::children>(0, draft.children[from]);
        for (std::uint64_t i = from; i < to; ++i) {
            node.template set_at<&Node::values>(i - from, draft.values[i]);
            node.template set_at<&Node::keys>(i - from, draft.keys[i]);
            if (!is_leaf) node.template set_at<&Node::children>(i - from + 1, draft.children[i + 1]);
        }
        node.template set<&Node::count>(to - from);
        return node.finish();
    }

    // The store by which an operation takes effect.
    template <class Operation>
    static void link(Operation& o, Ref<Root> root, const Path& path, std::uint64_t level, Ref<Node> node) {
        if (level == 0) {
            o.template set<&Root::top>(root, node);
        } else {
            o.template set_at<&Node::children>(path.steps[level - 1].node(), path.steps[level - 1].index, node);
        }
    }

    // Child `index` of `above` is to be `draft`, which has too few keys: it shares those of a neighbour, or becomes one with it.
    template <class Operation>
    static void refill(Operation& o, Draft& above, std::uint64_t index, const Draft& draft) {
        const std::uint64_t between = index == 0 ? 0 : index - 1;  // the key between the two
        const Draft neighbour = load(o, above.children[index == 0 ? 1 : index - 1]);
        Draft both = index == 0 ? draft : neighbour;
        both.append(above.keys[between], above.values[between], index == 0 ? neighbour : draft);
        if (both.count <= keys_max) {
            above.children[between] = write(o, both, 0, both.count);
            above.remove(between);
            return;
        }
        const std::uint64_t middle = both.count / 2;
        above.children[between] = write(o, both, 0, middle);
        above.children[between + 1] = write(o, both, middle + 1, both.count);
        above.keys[between] = both.keys[middle];
        above.values[between] = both.values[middle];
    }

    // The keys of `node` have to be in [low, high]. Its leaves are `level` levels below.
    template <class Operation, class Each>
    static bool walk(Operation& o, Ref<Node> node, std::uint64_t level, bool is_top, std::uint64_t low, std::uint64_t high, Each& each) {
        const std::uint64_t count = o.template get<&Node::count>(node);
        if (count > keys_max || count < (is_top ? 1 : keys_min)) return false;
        if (!is_unused_behind(o, node, count)) return false;
        for (std::uint64_t i = 0; i <= count; ++i) {
            const auto child = o.template at<&Node::children>(node, i);
            if (static_cast<bool>(child) != (level != 0)) return false;
            const std::uint64_t key = i == count ? 0 : o.template at<&Node::keys>(node, i);
            if (i < count && (key < low || key > high)) return false;
            if (child) {
                // Some key has to fit below.
                if (i == count ? low > high : key == low) return false;
                if (!walk(o, child, level - 1, false, low, i == count ? high : key - 1, each)) return false;
            }
            if (i == count) return true;
            if (!each(key, o.template at<&Node::values>(node, i))) return false;
            if (key == ~std::uint64_t{0}) return i + 1 == count && level == 0;
            low = key + 1;
        }
        return true;
    }

    // Nodes are made once, so what they do not use is 0.
    template <class Operation>
    static bool is_unused_behind(Operation& o, Ref<Node> node, std::uint64_t count) {
        for (std::uint64_t i = count; i < keys_max; ++i) {
            if (o.template at<&Node::keys>(node, i) != 0 || o.template at<&Node::values>(node, i)) return false;
            if (o.template at<&Node::children>(node, i + 1)) return false;
        }
        return true;
    }
};

}  // namespace durasim

#endif
