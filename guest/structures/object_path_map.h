// A map of objects that copies paths, as the maps of Java's PCollections do (pmap of P-INSPECT, MICRO 2020, section VIII): a
// weight-balanced binary search tree whose nodes never change.
//
// An insertion, a replacement and a removal make new copies of all nodes from the place of the key to the top, and take effect
// by one store of the reference to the new top.
//
// PCollections rotates when a subtree has five times the nodes of the other. Here it is three times, counting one more on both
// sides, with which removals keep the balance too (Hirai and Yamamoto, Journal of Functional Programming 2011); each() insists
// on it.
#ifndef DURASIM_STRUCTURES_OBJECT_PATH_MAP_H
#define DURASIM_STRUCTURES_OBJECT_PATH_MAP_H

#include <cstdint>

#include "durasim/objects.h"

namespace durasim {

class ObjectPathMap {
public:
    using Value = Array<std::uint64_t, Placement::durable>;
    struct Node {
        static constexpr Placement placement = Placement::durable;
        static constexpr std::uint64_t references = 3;
        Ref<Node> left;
        Ref<Node> right;
        Ref<Value> value;
        std::uint64_t key;
        std::uint64_t size;  // nodes of the subtree, this one included
    };
    struct Root {
        static constexpr Placement placement = Placement::durable;
        static constexpr std::uint64_t references = 1;
        Ref<Node> top;
    };

    // The bytes of objects for an item, their headers included, on average. Copied paths are for the collector.
    static std::uint64_t bytes_of(std::uint64_t items, std::uint64_t value_words, std::uint64_t) {
        return items * (objects::room_bytes(value_words) + objects::room_bytes(sizeof(Node) / 8)) + objects::room_bytes(1);
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
            const std::uint64_t there = o.template get<&Node::key>(node);
            if (there == key) return o.template get<&Node::value>(node);
            node = key < there ? left_of(o, node) : right_of(o, node);
        }
        return {};
    }

    // Gives the key this value, whether it is there or not.
    template <class Operation>
    static void put(Operation& o, Ref<Root> root, std::uint64_t key, Ref<Value> value) {
        o.template set<&Root::top>(root, with(o, o.template get<&Root::top>(root), {key, value}));
    }

    template <class Operation>
    static void erase(Operation& o, Ref<Root> root, std::uint64_t key) {
        if (!find(o, root, key)) return;
        o.template set<&Root::top>(root, without(o, o.template get<&Root::top>(root), key));
    }

    // Calls each(key, value) for all items. False if the tree cannot be one.
    template <class Operation, class Each>
    static bool each(Operation& o, Ref<Root> root, Each&& each) {
        const auto top = o.template get<&Root::top>(root);
        return !top || walk(o, top, 0, ~std::uint64_t{0}, each);
    }

private:
    struct Item {
        std::uint64_t key;
        Ref<Value> value;
    };

    // No subtree has more than `heavy` times the weight of the one beside it. A rotation is double if the inner one of the
    // heavier subtree has at least `inner` times the weight of the outer one.
    static constexpr std::uint64_t heavy = 3, inner = 2;

    template <class Operation>
    static Ref<Node> left_of(Operation& o, Ref<Node> node) {
        return o.template get<&Node::left>(node);
    }
    template <class Operation>
    static Ref<Node> right_of(Operation& o, Ref<Node> node) {
        return o.template get<&Node::right>(node);
    }
    template <class Operation>
    static Item item_of(Operation& o, Ref<Node> node) {
        return {o.template get<&Node::key>(node), o.template get<&Node::value>(node)};
    }
    template <class Operation>
    static std::uint64_t weight(Operation& o, Ref<Node> node) {
        return node ? o.template get<&Node::size>(node) + 1 : 1;
    }

    template <class Operation>
    static Ref<Node> make_node(Operation& o, const Item& item, Ref<Node> left, Ref<Node> right) {
        static Site sites(Node::placement);
        auto node = o.template make<Node>(sites);
        node.template set<&Node::left>(left);
        node.template set<&Node::right>(right);
        node.template set<&Node::value>(item.value);
        node.template set<&Node::key>(item.key);
        node.template set<&Node::size>(weight(o, left) + weight(o, right) - 1);
        return node.finish();
    }

    // Joins subtrees where one of them has a node more or less than before.
    template <class Operation>
    static Ref<Node> balanced(Operation& o, const Item& item, Ref<Node> left, Ref<Node> right) {
        const std::uint64_t left_weight = weight(o, left), right_weight = weight(o, right);
        if (right_weight > heavy * left_weight) {
            const auto inside = left_of(o, right), outside = right_of(o, right);
            const Item above = item_of(o, right);
            if (weight(o, inside) < inner * weight(o, outside)) return make_node(o, above, make_node(o, item, left, inside), outside);
            return make_node(o, item_of(o, inside), make_node(o, item, left, left_of(o, inside)), make_node(o, above, right_of(o, inside), outside));
        }
        if (left_weight > heavy * right_weight) {
            const auto inside = right_of(o, left), outside = left_of(o, left);
            const Item above = item_of(o, left);
            if (weight(o, inside) < inner * weight(o, outside)) return make_node(o, above, outside, make_node(o, item, inside, right));
            return make_node(o, item_of(o, inside), make_node(o, above, outside, left_of(o, inside)), make_node(o, item, right_of(o, inside), right));
        }
        return make_node(o, item, left, right);
    }

    // Trees of those items and another one, or without one that is there.
    template <class Operation>
    static Ref<Node> with(Operation& o, Ref<Node> node, const Item& item) {
        if (!node) return make_node(o, item, {}, {});
        const Item there = item_of(o, node);
        const auto left = left_of(o, node), right = right_of(o, node);
        if (item.key == there.key) return make_node(o, item, left, right);
        if (item.key < there.key) return balanced(o, there, with(o, left, item), right);
        return balanced(o, there, left, with(o, right, item));
    }

    template <class Operation>
    static Ref<Node> without(Operation& o, Ref<Node> node, std::uint64_t key) {
        const Item there = item_of(o, node);
        const auto left = left_of(o, node), right = right_of(o, node);
        if (key < there.key) return balanced(o, there, without(o, left, key), right);
        if (key > there.key) return balanced(o, there, left, without(o, right, key));
        if (!left) return right;
        if (!right) return left;
        // The neighbour in the larger subtree takes its place.
        if (weight(o, left) > weight(o, right)) {
            const Item largest = item_of(o, last(o, left));
            return balanced(o, largest, without(o, left, largest.key), right);
        }
        const Item smallest = item_of(o, first(o, right));
        return balanced(o, smallest, left, without(o, right, smallest.key));
    }

    template <class Operation>
    static Ref<Node> first(Operation& o, Ref<Node> node) {
        while (const auto left = left_of(o, node)) node = left;
        return node;
    }
    template <class Operation>
    static Ref<Node> last(Operation& o, Ref<Node> node) {
        while (const auto right = right_of(o, node)) node = right;
        return node;
    }

    // The keys below `node` have to be in [low, high]. The sizes have to fit, so the depth is limited in a damaged map too.
    template <class Operation, class Each>
    static bool walk(Operation& o, Ref<Node> node, std::uint64_t low, std::uint64_t high, Each& each) {
        const Item item = item_of(o, node);
        if (item.key < low || item.key > high) return false;
        const auto left = left_of(o, node), right = right_of(o, node);
        const std::uint64_t left_weight = weight(o, left), right_weight = weight(o, right), size = o.template get<&Node::size>(node);
        if (size >= ~std::uint64_t{0} / (2 * heavy) || left_weight > size || right_weight > size) return false;
        if (size != left_weight + right_weight - 1) return false;
        if (left_weight > heavy * right_weight || right_weight > heavy * left_weight) return false;
        if (left && (item.key == low || !walk(o, left, low, item.key - 1, each))) return false;
        if (!each(item.key, item.value)) return false;
        return !right || (item.key != high && walk(o, right, item.key + 1, high, each));
    }
};

}  // namespace durasim

#endif
