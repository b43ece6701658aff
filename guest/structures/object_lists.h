// Lists of boxed elements, over objects: ArrayList, ArrayListX and LinkedList of P-INSPECT (MICRO 2020, section VIII).
//
// The common interface of all three:
//
//     using Root;                            // what a durable root refers to
//     bytes_of(elements, value_words)        // what objects a list takes, their headers included
//     garbage_bytes(elements)                // the garbage of one insertion or removal
//     region_words_max(elements)             // words that one region stores; 0 without regions
//     make(o)                                // an empty list
//     length(o, root), at(o, root, index)
//     insert(o, root, index, element, then), replace(o, root, index, element, then), erase(o, root, index, then)
//     append_all(o, root, count, make_element, then)   // elements make_element(0) and so on, after the last
//     each(o, root, visit)                   // calls visit(element) in order until it returns false; returns the last answer
//     is_whole(o, root, is_cut)              // as operations leave it, or one that a power failure has cut if is_cut
//     finish_cut_operation(o, root)          // by the run that takes over the pool: makes what is_cut allows as it should be
//
// A change takes effect by one store of a reference or in one region. It calls then() when it has made all its stores: in
// the region, if there is one.
#ifndef DURASIM_STRUCTURES_OBJECT_LISTS_H
#define DURASIM_STRUCTURES_OBJECT_LISTS_H

#include <algorithm>
#include <bit>
#include <cstdint>

#include "durasim/objects.h"

namespace durasim {

// The first word is the id of the element, the others its value.
using ListElement = Array<std::uint64_t, Placement::durable>;
using ListElements = Array<Ref<ListElement>, Placement::durable>;

constexpr std::uint64_t list_element_bytes(std::uint64_t value_words) { return objects::room_bytes(1 + value_words); }

// Java's persistent ArrayList: an insertion or removal copies the array into one of exactly the new length.
class ObjectArrayList {
public:
    struct Root {
        static constexpr Placement placement = Placement::durable;
        static constexpr std::uint64_t references = 1;
        Ref<ListElements> elements;
    };

    static std::uint64_t bytes_of(std::uint64_t elements, std::uint64_t value_words) {
        return elements * list_element_bytes(value_words) + garbage_bytes(elements) + objects::room_bytes(1);
    }
    static std::uint64_t garbage_bytes(std::uint64_t elements) { return objects::room_bytes(elements) + objects::chunk_bytes; }
    static std::uint64_t region_words_max(std::uint64_t) { return 0; }

    template <class Operation>
    static Ref<Root> make(Operation& o) {
        static Site root_sites(Root::placement), array_sites(ListElements::placement);
        auto root = o.template make<Root>(root_sites);
        root.template set<&Root::elements>(o.template make_array<ListElements>(array_sites, 0).finish());
        return root.finish();
    }

    template <class Operation>
    static std::uint64_t length(Operation& o, Ref<Root> root) {
        return o.length(o.template get<&Root::elements>(root));
    }
    template <class Operation>
    static Ref<ListElement> at(Operation& o, Ref<Root> root, std::uint64_t index) {
        return o.at(o.template get<&Root::elements>(root), index);
    }

    template <class Operation, class Then>
    static void insert(Operation& o, Ref<Root> root, std::uint64_t index, Ref<ListElement> element, Then&& then) {
        const auto old = o.template get<&Root::elements>(root);
        const std::uint64_t count = o.length(old);
        auto fresh = o.template make_array<ListElements>(sites(), count + 1);
        for (std::uint64_t i = 0; i < index; ++i) fresh.set_at(i, o.at(old, i));
        fresh.set_at(index, element);
        for (std::uint64_t i = index; i < count; ++i) fresh.set_at(i + 1, o.at(old, i));
        o.template set<&Root::elements>(root, fresh.finish());
        then();
    }

    template <class Operation, class Then>
    static void replace(Operation& o, Ref<Root> root, std::uint64_t index, Ref<ListElement> element, Then&& then) {
        o.set_at(o.template get<&Root::elements>(root), index, element);
        then();
    }

    template <class Operation, class Then>
    static void erase(Operation& o, Ref<Root> root, std::uint64_t index, Then&& then) {
        const auto old = o.template get<&Root::elements>(root);
        const std::uint64_t count = o.length(old);
        auto fresh = o.template make_array<ListElements>(sites(), count - 1);
        for (std::uint64_t i = 0; i < index; ++i) fresh.set_at(i, o.at(old, i));
        for (std::uint64_t i = index + 1; i < count; ++i) fresh.set_at(i - 1, o.at(old, i));
        o.template set<&Root::elements>(root, fresh.finish());
        then();
    }

    template <class Operation, class MakeElement, class Then>
    static void append_all(Operation& o, Ref<Root> root, std::uint64_t count, MakeElement&& make_element, Then&& then) {
        const auto old = o.template get<&Root::elements>(root);
        const std::uint64_t length = o.length(old);
        auto fresh = o.template make_array<ListElements>(sites(), length + count);
        for (std::uint64_t i = 0; i < length; ++i) fresh.set_at(i, o.at(old, i));
        for (std::uint64_t i = 0; i < count; ++i) fresh.set_at(length + i, make_element(i));
        o.template set<&Root::elements>(root, fresh.finish());
        then();
    }

    template <class Operation, class Visit>
    static bool each(Operation& o, Ref<Root> root, Visit&& visit) {
        const auto elements = o.template get<&Root::elements>(root);
        const std::uint64_t count = length(o, root);
        for (std::uint64_t i = 0; i < count; ++i) {
            if (!visit(o.at(elements, i))) return false;
        }
        return true;
    }

    template <class Operation>
    static bool is_whole(Operation& o, Ref<Root> root, bool) {
        return static_cast<bool>(o.template get<&Root::elements>(root));
    }
    template <class Operation>
    static void finish_cut_operation(Operation&, Ref<Root>) {}

private:
    static Site& sites() {
        static Site all(ListElements::placement);
        return all;
    }
};

// An array changed in place: an insertion or removal shifts the elements after the index, in a region. The array has room for more
// elements than there are; a full one is copied into one that is half as long again, as Java does it.
class ObjectArrayListX {
public:
    struct Root {
        static constexpr Placement placement = Placement::durable;
        static constexpr std::uint64_t references = 1;
        Ref<ListElements> elements;
        std::uint64_t length;
    };

    static std::uint64_t bytes_of(std::uint64_t elements, std::uint64_t value_words) {
        // The array is copied while the old one is still in use.
        return elements * list_element_bytes(value_words) + 3 * (objects::room_bytes(elements) + objects::chunk_bytes) + objects::room_bytes(2);
    }
    static std::uint64_t garbage_bytes(std::uint64_t) { return 0; }
    // The elements, length and array of the list, and a count of the workload.
    static std::uint64_t region_words_max(std::uint64_t elements) { return elements + 4; }

    template <class Operation>
    static Ref<Root> make(Operation& o) {
        static Site root_sites(Root::placement);
        auto root = o.template make<Root>(root_sites);
        root.template set<&Root::elements>(o.template make_array<ListElements>(sites(), capacity_min).finish());
        return root.finish();
    }

    template <class Operation>
    static std::uint64_t length(Operation& o, Ref<Root> root) {
        return o.template get<&Root::length>(root);
    }
    template <class Operation>
    static Ref<ListElement> at(Operation& o, Ref<Root> root, std::uint64_t index) {
        return o.at(o.template get<&Root::elements>(root), index);
    }

    template <class Operation, class Then>
    static void insert(Operation& o, Ref<Root> root, std::uint64_t index, Ref<ListElement> element, Then&& then) {
        const std::uint64_t count = length(o, root);
        const auto old = o.template get<&Root::elements>(root);
        if (count == o.length(old)) {
            auto fresh = o.template make_array<ListElements>(sites(), count + count / 2 + 1);
            for (std::uint64_t i = 0; i < index; ++i) fresh.set_at(i, o.at(old, i));
            fresh.set_at(index, element);
            for (std::uint64_t i = index; i < count; ++i) fresh.set_at(i + 1, o.at(old, i));
            install(o, root, fresh.finish(), count + 1, then);
            return;
        }
        o.region([&] {
            for (std::uint64_t i = count; i > index; --i) o.set_at(old, i, o.at(old, i - 1));
            o.set_at(old, index, element);
            o.template set<&Root::length>(root, count + 1);
            then();
        });
    }

    template <class Operation, class Then>
    static void replace(Operation& o, Ref<Root> root, std::uint64_t index, Ref<ListElement> element, Then&& then) {
        o.set_at(o.template get<&Root::elements>(root), index, element);
        then();
    }

    template <class Operation, class Then>
    static void erase(Operation& o, Ref<Root> root, std::uint64_t index, Then&& then) {
        o.region([&] {
            const auto elements = o.template get<&Root::elements>(root);
            const std::uint64_t count = length(o, root);
            for (std::uint64_t i = index; i + 1 < count; ++i) o.set_at(elements, i, o.at(elements, i + 1));
            o.set_at(elements, count - 1, {});
            o.template set<&Root::length>(root, count - 1);
            then();
        });
    }

    // Into a new array: shifting nothing, it stores two words to the list.
    template <class Operation, class MakeElement, class Then>
    static void append_all(Operation& o, Ref<Root> root, std::uint64_t count, MakeElement&& make_element, Then&& then) {
        const auto old = o.template get<&Root::elements>(root);
        const std::uint64_t before = length(o, root), needed = before + count;
        auto fresh = o.template make_array<ListElements>(sites(), std::max(needed, o.length(old)));
        for (std::uint64_t i = 0; i < before; ++i) fresh.set_at(i, o.at(old, i));
        for (std::uint64_t i = 0; i < count; ++i) fresh.set_at(before + i, make_element(i));
        install(o, root, fresh.finish(), needed, then);
    }

    template <class Operation, class Visit>
    static bool each(Operation& o, Ref<Root> root, Visit&& visit) {
        const auto elements = o.template get<&Root::elements>(root);
        const std::uint64_t count = length(o, root);
        for (std::uint64_t i = 0; i < count; ++i) {
            if (!visit(o.at(elements, i))) return false;
        }
        return true;
    }

    // After the last element the array is empty.
    template <class Operation>
    static bool is_whole(Operation& o, Ref<Root> root, bool) {
        const auto elements = o.template get<&Root::elements>(root);
        if (!elements || length(o, root) > o.length(elements)) return false;
        for (std::uint64_t i = length(o, root); i < o.length(elements); ++i) {
            if (o.at(elements, i)) return false;
        }
        return true;
    }
    template <class Operation>
    static void finish_cut_operation(Operation&, Ref<Root>) {}

private:
    static constexpr std::uint64_t capacity_min = 4;

    static Site& sites() {
        static Site all(ListElements::placement);
        return all;
    }

    template <class Operation, class Then>
    static void install(Operation& o, Ref<Root> root, Ref<ListElements> fresh, std::uint64_t length, Then&& then) {
        o.region([&] {
            o.template set<&Root::elements>(root, fresh);
            o.template set<&Root::length>(root, length);
            then();
        });
    }
};

// Java's LinkedList: doubly linked nodes, in a ring around a head that has no element.
//
// The `next` references are the list: one store to one of them makes an insertion or removal take effect. The `prev`
// references and the length follow, so a power failure may leave one `prev` and the length as they were.
class ObjectLinkedList {
public:
    struct Node {
        static constexpr Placement placement = Placement::durable;
        static constexpr std::uint64_t references = 3;
        Ref<Node> next;
        Ref<Node> prev;
        Ref<ListElement> element;
    };
    struct Root {
        static constexpr Placement placement = Placement::durable;
        static constexpr std::uint64_t references = 1;
        Ref<Node> head;
        std::uint64_t length;
    };

    static std::uint64_t bytes_of(std::uint64_t elements, std::uint64_t value_words) {
        return elements * (objects::room_bytes(3) + list_element_bytes(value_words)) + objects::room_bytes(2) + objects::room_bytes(3);
    }
    static std::uint64_t garbage_bytes(std::uint64_t) { return 0; }
    static std::uint64_t region_words_max(std::uint64_t) { return 0; }

    // The head refers to itself, which a new object cannot: the operation that makes the list durable has to come later, or
    // the two stores here are volatile ones.
    template <class Operation>
    static Ref<Root> make(Operation& o) {
        static Site root_sites(Root::placement);
        const auto head = o.template make<Node>(sites()).finish();
        o.template set<&Node::next>(head, head);
        o.template set<&Node::prev>(head, head);
        auto root = o.template make<Root>(root_sites);
        root.template set<&Root::head>(head);
        return root.finish();
    }

    template <class Operation>
    static std::uint64_t length(Operation& o, Ref<Root> root) {
        return o.template get<&Root::length>(root);
    }
    template <class Operation>
    static Ref<ListElement> at(Operation& o, Ref<Root> root, std::uint64_t index) {
        return o.template get<&Node::element>(node_at(o, root, index));
    }

    template <class Operation, class Then>
    static void insert(Operation& o, Ref<Root> root, std::uint64_t index, Ref<ListElement> element, Then&& then) {
        const auto after = node_at(o, root, index), before = o.template get<&Node::prev>(after);
        const auto node = make_node(o, before, after, element);
        o.template set<&Node::next>(before, node);
        o.template set<&Node::prev>(after, node);
        o.template set<&Root::length>(root, length(o, root) + 1);
        then();
    }

    template <class Operation, class Then>
    static void replace(Operation& o, Ref<Root> root, std::uint64_t index, Ref<ListElement> element, Then&& then) {
        o.template set<&Node::element>(node_at(o, root, index), element);
        then();
    }

    template <class Operation, class Then>
    static void erase(Operation& o, Ref<Root> root, std::uint64_t index, Then&& then) {
        const auto node = node_at(o, root, index);
        const auto before = o.template get<&Node::prev>(node), after = o.template get<&Node::next>(node);
        o.template set<&Node::next>(before, after);
        o.template set<&Node::prev>(after, before);
        o.template set<&Root::length>(root, length(o, root) - 1);
        then();
    }

    // A chain that no other thread knows, then as for one node.
    template <class Operation, class MakeElement, class Then>
    static void append_all(Operation& o, Ref<Root> root, std::uint64_t count, MakeElement&& make_element, Then&& then) {
        const auto head = o.template get<&Root::head>(root), before = o.template get<&Node::prev>(head);
        const auto first = make_node(o, before, head, make_element(0));
        auto last = first;
        for (std::uint64_t i = 1; i < count; ++i) {
            const auto node = make_node(o, last, head, make_element(i));
            o.template set<&Node::next>(last, node);
            last = node;
        }
        o.template set<&Node::next>(before, first);
        o.template set<&Node::prev>(head, last);
        o.template set<&Root::length>(root, length(o, root) + count);
        then();
    }

    template <class Operation, class Visit>
    static bool each(Operation& o, Ref<Root> root, Visit&& visit) {
        const auto head = o.template get<&Root::head>(root);
        for (auto node = o.template get<&Node::next>(head); !o.same(node, head); node = o.template get<&Node::next>(node)) {
            if (!visit(o.template get<&Node::element>(node))) return false;
        }
        return true;
    }

    template <class Operation>
    static bool is_whole(Operation& o, Ref<Root> root, bool is_cut) {
        const auto head = o.template get<&Root::head>(root);
        if (!head) return false;
        // Each round of a cycle without the head meets another `prev` that is wrong.
        std::uint64_t stale = 0, nodes = 0;
        for (auto node = head;; ++nodes) {
            const auto next = o.template get<&Node::next>(node);
            if (!next) return false;
            stale += !o.same(o.template get<&Node::prev>(next), node);
            if (stale > (is_cut ? 1 : 0)) return false;
            node = next;
            if (o.same(node, head)) return is_cut || nodes == length(o, root);
        }
    }

    // Stores what differs alone: it may be interrupted and begun anew.
    template <class Operation>
    static void finish_cut_operation(Operation& o, Ref<Root> root) {
        const auto head = o.template get<&Root::head>(root);
        if (!head) return;
        std::uint64_t count = 0;
        for (auto node = head, seen = head;; ++count) {
            const auto next = o.template get<&Node::next>(node);
            // Damaged, as a check says: it ends, or comes back to another node than the first (Brent's method).
            if (!next || (count != 0 && !o.same(seen, head) && o.same(node, seen))) return;
            if (std::has_single_bit(count)) seen = node;
            if (!o.same(o.template get<&Node::prev>(next), node)) o.template set<&Node::prev>(next, node);
            node = next;
            if (o.same(node, head)) break;
        }
        if (length(o, root) != count) o.template set<&Root::length>(root, count);
    }

private:
    static Site& sites() {
        static Site all(Node::placement);
        return all;
    }

    template <class Operation>
    static Ref<Node> make_node(Operation& o, Ref<Node> before, Ref<Node> after, Ref<ListElement> element) {
        auto node = o.template make<Node>(sites());
        node.template set<&Node::next>(after);
        node.template set<&Node::prev>(before);
        node.template set<&Node::element>(element);
        return node.finish();
    }

    // From the nearer end. The head for the index after the last element.
    template <class Operation>
    static Ref<Node> node_at(Operation& o, Ref<Root> root, std::uint64_t index) {
        const std::uint64_t count = length(o, root);
        auto node = o.template get<&Root::head>(root);
        if (index < count / 2) {
            for (std::uint64_t i = 0; i <= index; ++i) node = o.template get<&Node::next>(node);
        } else {
            for (std::uint64_t i = count; i > index; --i) node = o.template get<&Node::prev>(node);
        }
        return node;
    }
};

}  // namespace durasim

#endif
