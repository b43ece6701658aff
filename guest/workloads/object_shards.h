// Maps of objects that share the keys of a workload, each with a lock if there are several threads.
#ifndef DURASIM_WORKLOADS_OBJECT_SHARDS_H
#define DURASIM_WORKLOADS_OBJECT_SHARDS_H

#include <cstdint>

#include "durasim/objects.h"
#include "durasim/random.h"
#include "workloads/harness.h"

namespace durasim {

template <class Map, std::uint64_t root>
class ObjectShards {
    using Maps = Array<Ref<typename Map::Root>, Placement::durable>;

public:
    using Value = typename Map::Value;

    static std::uint64_t shard_of(std::uint64_t key, std::uint64_t shards) { return mix(key ^ 0x5851F42D4C957F2Du) % shards; }

    // In an operation. `parameter` is that of each map.
    template <class Operation>
    static void make(Operation& o, std::uint64_t shards, std::uint64_t parameter) {
        static Site sites(Placement::durable);
        auto maps = o.template make_array<Maps>(sites, shards);
        for (std::uint64_t i = 0; i < shards; ++i) maps.set_at(i, Map::make(o, parameter));
        o.set_durable_root(root, maps.finish());
    }

    // Some maps keep a part in ordinary memory, and make it anew: Map::open(o, root, number, of how many).
    static void open(std::uint64_t shards) {
        if constexpr (requires(objects::Operation& o, Ref<typename Map::Root> map) { Map::open(o, map, 0, 1); }) {
            for (std::uint64_t i = 0; i < shards; ++i) {
                object_runtime.operation([&](auto& o) { Map::open(o, map(o, i), i, shards); });
            }
        }
    }

    template <class Operation>
    static Ref<typename Map::Root> map(Operation& o, std::uint64_t shard) {
        return o.at(o.template durable_root<Maps>(root), shard);
    }

    // The version of a value, 0 without one.
    template <class Operation>
    static std::uint64_t version_of(Operation& o, Ref<Value> value) {
        if (!value) return 0;
        Version version;
        for (std::uint64_t i = 0, words = o.length(value); i < words; ++i) version.take(o.at(value, i));
        return version.value();
    }

    // Calls each(o, key, value) for all items, whose values have this many words. False if a map is damaged.
    template <class Each>
    static bool each(std::uint64_t shards, std::uint64_t value_words, Each&& each) {
        bool whole = true;
        object_runtime.examine([&](auto& o) {
            for (std::uint64_t i = 0; i < shards; ++i) {
                whole = whole && Map::each(o, map(o, i), [&](std::uint64_t key, Ref<Value> value) {
                    if (!value || o.length(value) != value_words || shard_of(key, shards) != i) return false;
                    each(o, key, value);
                    return true;
                });
            }
        });
        return whole;
    }
};

}  // namespace durasim

#endif
