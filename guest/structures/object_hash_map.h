// A hash map of objects with chained nodes, as Java's HashMap has it, without its resizing: the number of buckets is fixed.
//
// An insertion, a replacement and a removal take effect by one store of a reference each.
#ifndef DURASIM_STRUCTURES_OBJECT_HASH_MAP_H
#define DURASIM_STRUCTURES_OBJECT_HASH_MAP_H

#include <cstdint>

#include "durasim/objects.h"
#include "durasim/random.h"

namespace durasim {

class ObjectHashMap {
public:
    using Value = Array<std::uint64_t, Placement::durable>;
    struct Node {
        static constexpr Placement placement = Placement::durable;
        static constexpr std::uint64_t references = 2;
        Ref<Node> next;
        Ref<Value> value;
        std::uint64_t key;
    };
    // The object that a root refers to.
    using Root = Array<Ref<Node>, Placement::durable>;

    // The bytes of objects for an item, their headers included, on average; `parameter` is the number of buckets.
    static std::uint64_t bytes_of(std::uint64_t items, std::uint64_t value_words, std::uint64_t parameter) {
        return items * (objects::room_bytes(3) + objects::room_bytes(value_words)) + objects::room_bytes(parameter);
    }

    template <class Operation>
    static Ref<Root> make(Operation& o, std::uint64_t buckets) {
        static Site sites(Root::placement);
        return o.template make_array<Root>(sites, buckets).finish();
    }

    // The value of a key, none if it is not there.
    template <class Operation>
    static Ref<Value> find(Operation& o, Ref<Root> root, std::uint64_t key) {
        for (auto node = o.at(root, bucket_of(o, root, key)); node; node = o.template get<&Node::next>(node)) {
            if (o.template get<&Node::key>(node) == key) return o.template get<&Node::value>(node);
        }
        return {};
    }

    // Gives the key this value, whether it is there or not.
    template <class Operation>
    static void put(Operation& o, Ref<Root> root, std::uint64_t key, Ref<Value> value) {
        static Site sites(Node::placement);
        const std::uint64_t bucket = bucket_of(o, root, key);
        const auto first = o.at(root, bucket);
        for (auto node = first; node; node = o.template get<&Node::next>(node)) {
            if (o.template get<&Node::key>(node) != key) continue;
            o.template set<&Node::value>(node, value);
            return;
        }
        auto fresh = o.template make<Node>(sites);
        fresh.template set<&Node::next>(first);
        fresh.template set<&Node::value>(value);
        fresh.template set<&Node::key>(key);
        o.set_at(root, bucket, fresh.finish());
    }

    template <class Operation>
    static void erase(Operation& o, Ref<Root> root, std::uint64_t key) {
        const std::uint64_t bucket = bucket_of(o, root, key);
        Ref<Node> before;
        for (auto node = o.at(root, bucket); node; before = node, node = o.template get<&Node::next>(node)) {
            if (o.template get<&Node::key>(node) != key) continue;
            const auto next = o.template get<&Node::next>(node);
            if (before) {
                o.template set<&Node::next>(before, next);
            } else {
                o.set_at(root, bucket, next);
            }
            return;
        }
    }

    // Calls each(key, value) for all items. False if the map cannot be one.
    template <class Operation, class Each>
    static bool each(Operation& o, Ref<Root> root, Each&& each) {
        const std::uint64_t buckets = o.length(root);
        for (std::uint64_t i = 0; i < buckets; ++i) {
            for (auto node = o.at(root, i); node; node = o.template get<&Node::next>(node)) {
                const std::uint64_t key = o.template get<&Node::key>(node);
                if (mix(key) % buckets != i || !each(key, o.template get<&Node::value>(node))) return false;
            }
        }
        return true;
    }

private:
    template <class Operation>
    static std::uint64_t bucket_of(Operation& o, Ref<Root> root, std::uint64_t key) {
        return mix(key) % o.length(root);
    }
};

}  // namespace durasim

#endif
