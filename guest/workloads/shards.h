// The pool of workloads over the maps of guest/structures: a root object, several maps that share the keys, each
// with a lock and an arena of its own, and for each thread a count of its operations.
//
// A shard has an equal part of all numbers of 64 bits, in ascending order; keys are random or mixed.
#ifndef DURASIM_WORKLOADS_SHARDS_H
#define DURASIM_WORKLOADS_SHARDS_H

#include <algorithm>
#include <cstdint>
#include <memory>

#include "durasim/random.h"
#include "structures/map_shape.h"
#include "workloads/harness.h"

namespace durasim {

// The top of a map, on a line of the pool of its own.
struct alignas(64) ShardTop {
    std::uint64_t word;
};

// The operations that a thread has finished, and the number of keys it may have (0: any number). The seal says that the count was written by the
// thread; where the contents of the maps say how many operations there were it is 0.
struct alignas(64) ThreadCount {
    std::uint64_t finished;
    std::uint64_t seal;
    std::uint64_t items_max;
};

struct alignas(64) ShardsRoot {
    std::uint64_t kind;
    std::uint64_t seed;
    std::uint32_t parameter;  // of each map's shape
    std::uint32_t populated;  // items to be made by populating; 0 if these are like those of the first thread's operations
    std::uint16_t shards;
    std::uint8_t settings[2];  // of the workload, as setting_more is
    std::uint8_t threads;
    std::uint8_t setting_more;
    std::uint16_t value_words_more;  // words of a value beyond the first
    ShardTop* top;                   // null if the root is simple: `only_top` and `only_finished` take their place
    ThreadCount* count;              // of each thread; populating counts for the first
    std::uint64_t only_top;
    std::uint64_t only_finished;

    std::uint64_t value_bytes() const { return 8 * (value_words_more + std::uint64_t{1}); }
    std::uint64_t items_max_of(std::uint64_t thread) const { return count == nullptr ? 0 : count[thread].items_max; }
    bool is_like(const ShardsRoot& o) const {
        return kind == o.kind && seed == o.seed && parameter == o.parameter && populated == o.populated && shards == o.shards &&
               settings[0] == o.settings[0] && settings[1] == o.settings[1] && threads == o.threads &&
               setting_more == o.setting_more && value_words_more == o.value_words_more;
    }
};
static_assert(sizeof(ShardsRoot) == line_bytes);

// Shards per thread if several threads share them: few enough to meet, many enough not to queue. All are made in one
// transaction, which sets a bound.
inline constexpr std::uint64_t shards_per_thread = 4;
inline constexpr std::uint64_t shards_default_max = 64;

inline std::uint64_t shards_of(std::uint64_t wanted, std::uint64_t threads) {
    if (wanted != 0) return wanted;
    return threads == 1 ? 1 : std::min(threads * shards_per_thread, shards_default_max);
}

// The shard that a key belongs to.
inline std::uint64_t shard_of(std::uint64_t key, std::uint64_t shards) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(key) * shards) >> 64);
}

// Eight standard deviations of a sum of independent choices with a mean or a number of `count`: it is exceeded with a
// chance below 10^-15.
inline std::uint64_t spread_of(std::uint64_t count) {
    std::uint64_t root = 1;
    while (root * root < count) ++root;
    return 8 * root + 16;
}

// More of `keys` random keys than this do not fall into one of `shards` shards.
inline std::uint64_t keys_max(std::uint64_t keys, std::uint64_t shards) {
    const std::uint64_t mean = keys / shards + 1;
    return shards == 1 ? keys : std::min(keys, mean + spread_of(mean));
}

template <class Map>
class Shards {
public:
    // Of a pool for this many keys at once, and ever.
    static std::uint64_t pool_bytes(const MapShape& shape, std::uint64_t shards, std::uint64_t threads, std::uint64_t live,
                                    std::uint64_t inserted) {
        // Every arena has room for its map and for what all share.
        const std::uint64_t shared =
            sizeof(ArenaHeader) + sizeof(ShardsRoot) + block_bytes(shards * sizeof(ShardTop)) + block_bytes(threads * sizeof(ThreadCount));
        return shards * (Map::bytes(shape, keys_max(live, shards), keys_max(inserted, shards)) + shared);
    }

    Shards() = default;

    Shards(ShardsRoot* root, bool erases)
        : root_(root),
          top_(root->top),
          count_(root->count),
          shards_(root->shards),
          shape_{root->value_bytes(), root->parameter, erases} {}

    // Makes the root object that is `wanted` and what belongs to it, for this many keys at most of all threads.
    static void make(Pool& pool, const ShardsRoot& wanted, bool is_simple, std::uint64_t items_max = 0) {
        tx([&](Tx& t) {
            auto* root = static_cast<ShardsRoot*>(t.allocate(sizeof(ShardsRoot)));
            ShardTop* top = nullptr;
            ThreadCount* count = nullptr;
            if (!is_simple) {
                top = static_cast<ShardTop*>(t.allocate(wanted.shards * sizeof(ShardTop)));
                count = static_cast<ThreadCount*>(t.allocate(wanted.threads * sizeof(ThreadCount)));
                for (std::uint64_t i = 0; i < wanted.threads; ++i) {
                    t.write(count[i].finished, 0);
                    t.write(count[i].seal, 0);
                    if (items_max != 0) t.write(count[i].items_max, share_of(items_max, wanted.threads, i));
                }
            }
            for (std::uint64_t i = 0; i < wanted.shards; ++i) {
                Map({wanted.value_bytes(), wanted.parameter, false}, is_simple ? root->only_top : top[i].word, i).make(t);
            }
            t.write(root->only_finished, 0);
            t.write(root->kind, wanted.kind);
            t.write(root->seed, wanted.seed);
            t.write(root->parameter, wanted.parameter);
            t.write(root->populated, wanted.populated);
            t.write(root->shards, wanted.shards);
            t.write(root->settings[0], wanted.settings[0]);
            t.write(root->settings[1], wanted.settings[1]);
            t.write(root->threads, wanted.threads);
            t.write(root->setting_more, wanted.setting_more);
            t.write(root->value_words_more, wanted.value_words_more);
            t.write(root->top, top);
            t.write(root->count, count);
            pool.set_root(t, root);
            if constexpr (has_history) report_change(root_object, 0, wanted.kind);
        });
    }

    ShardsRoot& root() const { return *root_; }
    std::uint64_t shards() const { return shards_; }
    std::uint64_t threads() const { return root_->threads; }
    std::uint64_t words() const { return shape_.value_bytes / 8; }
    bool is_simple() const { return top_ == nullptr; }

    Map map(std::uint64_t shard) const { return Map(shape_, is_simple() ? root_->only_top : top_[shard].word, shard); }

    std::uint64_t& finished(std::uint64_t thread) const {
        return is_simple() ? root_->only_finished : count_[thread].finished;
    }

    // Notes inside its transaction that `thread` has finished another operation.
    void count(Tx& t, std::uint64_t thread, std::uint64_t finished_now, bool sealed) {
        std::uint64_t& place = finished(thread);
        if constexpr (has_history) report_change(progress_object(thread), t.read(place), finished_now);
        t.write(place, finished_now);
        if (sealed) t.write(count_[thread].seal, seal_of(thread, finished_now));
    }

    bool is_sealed(std::uint64_t thread) const {
        const ThreadCount& count = count_[thread];
        return count.seal == (count.finished == 0 ? 0 : seal_of(thread, count.finished));
    }

    // Claims the root object and what belongs to it, and all maps; calls each(key, value). Ends the program if something
    // is wrong. `erases` says whether a pool with this root may have lost keys.
    template <class Erases, class Each>
    static Shards check(const Pool& pool, std::uint64_t kind, Erases&& erases, Each&& each) {
        Audit audit(pool);
        if (audit.problem() != nullptr) DURASIM_VIOLATION("%s", audit.problem());
        auto* root = pool.root<ShardsRoot>();
        if (!audit.claim(root, sizeof(ShardsRoot))) DURASIM_VIOLATION("the root object is not allocated");
        if (root->kind != kind) DURASIM_VIOLATION("the root object is of another kind");
        if (!is_possible(pool, *root)) DURASIM_VIOLATION("the root object has impossible sizes");
        const bool claimed = root->top == nullptr
                                 ? root->count == nullptr
                                 : audit.claim(root->top, root->shards * sizeof(ShardTop)) &&
                                       audit.claim(root->count, root->threads * sizeof(ThreadCount));
        if (!claimed) DURASIM_VIOLATION("what belongs to the root object is not allocated");
        Shards all(root, erases(*root));
        for (std::uint64_t i = 0; i < root->shards; ++i) {
            const char* problem = all.map(i).check(audit, [&](std::uint64_t key, const std::uint64_t* value) {
                if (shard_of(key, root->shards) != i) DURASIM_VIOLATION("a key is in the wrong shard");
                each(key, value);
            });
            if (problem != nullptr) DURASIM_VIOLATION("%s", problem);
        }
        if (audit.lines_leaked() != 0) DURASIM_VIOLATION("%llu lines are leaked", static_cast<Long>(audit.lines_leaked()));
        return all;
    }

    static void dump(const Pool& pool, Dump& dump) {
        auto* root = pool.root<ShardsRoot>();
        if (!pool.holds(root, sizeof(ShardsRoot))) return dump.note_damage();
        dump.add(root_object, root->kind);
        if (!is_possible(pool, *root) || (root->top != nullptr && (!pool.holds(root->top, root->shards * sizeof(ShardTop)) ||
                                                                   !pool.holds(root->count, root->threads * sizeof(ThreadCount))))) {
            return dump.note_damage();
        }
        Shards all(root, true);
        for (std::uint64_t i = 0; i < root->threads; ++i) dump.add(progress_object(i), all.finished(i));
        for (std::uint64_t i = 0; i < root->shards; ++i) {
            const bool whole = all.map(i).dump(pool, [&](std::uint64_t key, const std::uint64_t* value) {
                dump.add(key, version_of_value(value, all.words()));
            });
            if (!whole) dump.note_damage();
        }
    }

    // A word that belongs to its content alone is its own version.
    static std::uint64_t version_of_value(const std::uint64_t* value, std::uint64_t words) {
        return words == 1 ? *value : version_of(value, words);
    }

    // The version of a value in the open transaction; 0 for none.
    std::uint64_t version(Tx& t, const std::uint64_t* value) const {
        if (value == nullptr) return 0;
        if (words() == 1) return t.read(*value);
        Version version;
        for (std::uint64_t i = 0; i < words(); ++i) version.take(t.read(value[i]));
        return version.value();
    }

private:
    static std::uint64_t seal_of(std::uint64_t thread, std::uint64_t finished) { return mix(mix(finished) + thread + 1); }

    static bool is_possible(const Pool& pool, const ShardsRoot& root) {
        return root.shards == pool.arenas() && root.threads != 0 && root.threads <= threads_max &&
               (root.top == nullptr ? root.shards == 1 && root.threads == 1 : root.count != nullptr) &&
               root.value_bytes() <= value_bytes_max && Map::is_possible({root.value_bytes(), root.parameter, false});
    }

    ShardsRoot* root_ = nullptr;
    // Copies of what does not change: an operation need not look at the root for it.
    ShardTop* top_ = nullptr;
    ThreadCount* count_ = nullptr;
    std::uint64_t shards_ = 0;
    MapShape shape_;
};

}  // namespace durasim

#endif
