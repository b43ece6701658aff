// Workloads that map keys to values, over any of the maps of guest/structures: searches, insertions, updates and removals
// (keyed_steps.h), one transaction each. Threads share the maps, but each operates on keys of its own, so that their
// counts of operations say exactly what the pool has to hold, whatever the order in which they met.
//
// A value belongs to its key and to the operation that wrote it, in each of its words: one that is torn or stale shows.
//
// Each program says what is its own:
//
//     struct Program {
//         static constexpr std::uint64_t kind;                                // of the root object
//         static constexpr const char* shards_name;                           // the argument that says how many maps there are
//         static constexpr const char* parameter_name;                        // that for the maps' parameter, null for none
//         static std::uint64_t shards(const Arguments&);                      // 0 for a number that suits the threads
//         static std::uint64_t parameter(const Arguments&, std::uint64_t shards);  // of each map in a new pool
//         static std::uint64_t parameter_of_all(std::uint64_t parameter, std::uint64_t shards);  // as the argument says it
//         static std::uint64_t parameter_given(const Arguments&);             // 0 takes what the pool has
//         static void check_arguments(const Arguments&);                      // refuses what is impossible
//     };
#ifndef DURASIM_WORKLOADS_KEYED_H
#define DURASIM_WORKLOADS_KEYED_H

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "workloads/keyed_steps.h"
#include "workloads/shards.h"

namespace durasim {

template <class Map, class Program>
class Keyed {
    using Steps = StepsWithin<ItemsMax>;

public:
    static std::uint64_t arenas(const Arguments& arguments) { return shards_of(Program::shards(arguments), arguments.threads); }

    static std::uint64_t pool_bytes(const Arguments& arguments) {
        check_arguments(arguments);
        const std::uint64_t shards = arenas(arguments), ops = arguments.ops;
        const Percentages percentages = percentages_of(arguments);
        const MapShape shape{arguments.value_bytes, Program::parameter(arguments, shards), percentages.erase != 0};
        std::uint64_t insertions = ops;
        if (arguments.items_max != 0) insertions = std::min(ops, arguments.items_max);
        if (!percentages.is_insertion_only()) {
            // A thread without a key inserts one, and has one.
            insertions = std::min(ops, ops / 100 * percentages.insert() + percentages.insert() + spread_of(ops) + arguments.threads);
        }
        return Shards<Map>::pool_bytes(shape, shards, arguments.threads, arguments.populate + insertions, arguments.populate + ops);
    }

    Keyed(Pool& pool, const Arguments& arguments)
        : percentages_(percentages_of(arguments)), only_inserts_(percentages_.is_insertion_only() && arguments.items_max == 0) {
        check_arguments(arguments);
        ShardsRoot wanted = root_of(arguments);
        if (pool.root<ShardsRoot>() == nullptr) {
            // With a single thread that only inserts there is no need for more lines than the root's.
            Shards<Map>::make(pool, wanted, only_inserts_ && wanted.shards == 1 && wanted.threads == 1, arguments.items_max);
        }
        auto* root = pool.root<ShardsRoot>();
        if (root->kind != Program::kind) fail(exit_usage, "%s: the pool belongs to another workload", program_name);
        if (Program::parameter_given(arguments) == 0) wanted.parameter = root->parameter;
        if (!root->is_like(wanted) || items_max_of(*root) != arguments.items_max) refuse(*root);
        shards_ = Shards<Map>(root, percentages_.erase != 0);
        for (std::uint64_t i = 0; i < root->threads; ++i) {
            states_.push_back({steps_of(*root, i), 0, 0});
            Steps& steps = states_[i].steps;
            while (steps.finished() < shards_.finished(i)) steps.finish(steps.next());
        }
        if (root->threads > 1) locks_ = std::make_unique<TxLock[]>(root->shards);
    }

    std::uint64_t populated() const {
        return only_inserts_ ? shards_.finished(0) : std::min<std::uint64_t>(shards_.finished(0), shards_.root().populated);
    }

    struct Thread {
        Steps steps;
        std::uint64_t first;  // of its operations in this run
        std::uint64_t found;  // sum over all that its searches found
    };

    Thread enter(std::uint64_t number) const {
        const Steps& steps = states_[number].steps;
        return {steps, steps.finished(), 0};
    }
    void leave(const Thread& thread) { states_[thread.steps.thread()] = thread; }

    void populate_one(Thread& thread) { operation(thread); }

    void operation(Thread& thread) {
        const Step step = thread.steps.next();
        const std::uint64_t shard = shard_of(step.key, shards_.shards());
        if (locks_ == nullptr) {
            perform(thread, shard, step);
        } else {
            const std::lock_guard held(locks_[shard]);
            perform(thread, shard, step);
        }
        thread.steps.finish(step);
    }

    // The check has replayed what the pool says was done; here remains whether that is what was done, and whether the
    // searches found what was there.
    void compare_with_model() const {
        for (const Thread& thread : states_) {
            const std::uint64_t number = thread.steps.thread();
            if (shards_.finished(number) != thread.steps.finished()) {
                DURASIM_VIOLATION("thread %llu made %llu operations, but the pool says %llu", static_cast<Long>(number),
                                  static_cast<Long>(thread.steps.finished()), static_cast<Long>(shards_.finished(number)));
            }
            std::uint64_t found = 0;
            replay(shards_.root(), number, thread.steps.finished(), [&](const Steps& steps, const Step& step, std::uint64_t stamp) {
                if (step.kind != StepKind::search || steps.finished() < thread.first) return;
                for (std::uint64_t i = 0; i < shards_.words(); ++i) found = add_found(found, word_of(step.key, stamp, i));
            });
            if (found != thread.found) DURASIM_VIOLATION("thread %llu found other values than it had written", static_cast<Long>(number));
        }
    }

    void print_result() const {
        std::uint64_t keys = 0;
        for (const Thread& thread : states_) keys += thread.steps.end() - thread.steps.oldest();
        std::printf("keys=%llu", static_cast<Long>(keys));
        if constexpr (requires(Map map) { map.height(); }) {
            unsigned height = 0;
            for (std::uint64_t i = 0; i < shards_.shards(); ++i) height = std::max(height, shards_.map(i).height());
            std::printf(" height=%u", height);
        }
    }

    static std::uint64_t check(const Pool& pool) {
        std::vector<Found> found;
        const auto erases = [](const ShardsRoot& root) {
            if (!percentages_of(root).are_possible()) DURASIM_VIOLATION("the root object has impossible percentages");
            return percentages_of(root).erase != 0;
        };
        const auto all = Shards<Map>::check(pool, Program::kind, erases, [&](std::uint64_t key, const std::uint64_t* value) {
            found.push_back({key, value});
        });
        const ShardsRoot& root = all.root();
        const bool has_seals = !only_inserts(root);
        if (all.is_simple() && has_seals) DURASIM_VIOLATION("the operations of the only thread are not counted");
        std::uint64_t operations = 0;
        for (std::uint64_t thread = 0; thread < root.threads; ++thread) {
            const std::uint64_t finished = all.finished(thread);
            const bool is_right = has_seals ? all.is_sealed(thread) : finished <= found.size();
            if (!is_right) {
                DURASIM_VIOLATION("thread %llu cannot have finished %llu operations", static_cast<Long>(thread), static_cast<Long>(finished));
            }
            if (thread != 0 && finished != 0 && all.finished(0) < root.populated) {
                DURASIM_VIOLATION("there were operations before the pool was populated");
            }
            operations += finished;
        }
        compare(all, found, expected_in(all));
        return operations;
    }

    static void dump(const Pool& pool, Dump& dump) { Shards<Map>::dump(pool, dump); }

private:
    struct Found {
        std::uint64_t key;
        const std::uint64_t* value;
    };
    struct Expected {
        std::uint64_t key;
        std::uint64_t stamp;
    };

    static Percentages percentages_of(const Arguments& arguments) {
        return {arguments.search_percent, arguments.update_percent, arguments.erase_percent};
    }
    static Percentages percentages_of(const ShardsRoot& root) { return {root.settings[0], root.settings[1], root.setting_more}; }

    static bool only_inserts(const ShardsRoot& root) { return percentages_of(root).is_insertion_only() && root.items_max_of(0) == 0; }

    static std::uint64_t items_max_of(const ShardsRoot& root) {
        std::uint64_t sum = 0;
        for (std::uint64_t i = 0; i < root.threads; ++i) sum += root.items_max_of(i);
        return sum;
    }

    static Steps steps_of(const ShardsRoot& root, std::uint64_t thread) {
        return {root.seed, percentages_of(root), thread, root.threads, root.populated, ItemsMax{root.items_max_of(thread)}};
    }

    static void check_arguments(const Arguments& arguments) {
        Program::check_arguments(arguments);
        if (arguments.value_bytes % 8 != 0) {
            fail(exit_usage, "%s: --value-bytes has to be a multiple of 8, not %llu", program_name,
                 static_cast<Long>(arguments.value_bytes));
        }
        if (!percentages_of(arguments).are_possible()) {
            fail(exit_usage, "%s: --search-percent, --update-percent and --erase-percent are more than 100 together", program_name);
        }
        if (arguments.items_max != 0 && (arguments.items_max < arguments.threads || arguments.items_max < arguments.populate)) {
            fail(exit_usage, "%s: --items-max has to be 0, or as large as --populate and --threads", program_name);
        }
    }

    static ShardsRoot root_of(const Arguments& arguments) {
        const Percentages percentages = percentages_of(arguments);
        const std::uint64_t shards = arenas(arguments);
        ShardsRoot root{};
        root.kind = Program::kind;
        root.seed = arguments.seed;
        root.parameter = static_cast<std::uint32_t>(Program::parameter(arguments, shards));
        const bool only_inserts = percentages.is_insertion_only() && arguments.items_max == 0;
        root.populated = only_inserts ? 0 : static_cast<std::uint32_t>(arguments.populate);
        root.shards = static_cast<std::uint16_t>(shards);
        root.settings[0] = static_cast<std::uint8_t>(percentages.search);
        root.settings[1] = static_cast<std::uint8_t>(percentages.update);
        root.setting_more = static_cast<std::uint8_t>(percentages.erase);
        root.threads = static_cast<std::uint8_t>(arguments.threads);
        root.value_words_more = static_cast<std::uint16_t>(arguments.value_bytes / 8 - 1);
        return root;
    }

    [[noreturn]] static void refuse(const ShardsRoot& root) {
        const Percentages percentages = percentages_of(root);
        const auto with = [](const char* name, std::uint64_t value) { return std::string(" --") + name + ' ' + std::to_string(value); };
        std::string text = with("seed", root.seed) + with("threads", root.threads) + with(Program::shards_name, root.shards);
        if (Program::parameter_name != nullptr) text += with(Program::parameter_name, Program::parameter_of_all(root.parameter, root.shards));
        text += with("value-bytes", root.value_bytes());
        if (root.items_max_of(0) != 0) text += with("items-max", items_max_of(root));
        if (!only_inserts(root)) {
            text += with("populate", root.populated) + with("search-percent", percentages.search) +
                    with("update-percent", percentages.update) + with("erase-percent", percentages.erase);
        }
        fail(exit_usage, "%s: the pool was made with%s; use these", program_name, text.c_str());
    }

    static std::uint64_t add_found(std::uint64_t sum, std::uint64_t word) { return sum * 31 + word; }

    void write_value(Tx& t, std::uint64_t* value, const Step& step) {
        const std::uint64_t words = shards_.words();
        for (std::uint64_t i = 0; i < words; ++i) t.write(value[i], word_of(step.key, step.stamp, i));
    }

    // Each kind has a transaction of its own, so that none carries the code of the others through the caches.
    void perform(Thread& thread, std::uint64_t shard, const Step& step) {
        switch (step.kind) {
            case StepKind::insert: return insert(thread, shard, step);
            case StepKind::search: return search(thread, shard, step);
            case StepKind::update: return update(thread, shard, step);
            case StepKind::erase: return erase(thread, shard, step);
        }
    }

    // The version that a key has before the operation.
    std::uint64_t version_before(Tx& t, Map& map, std::uint64_t key) {
        if constexpr (has_history) return shards_.version(t, map.find(t, key));
        return 0;
    }

    // Ends an operation that found the version `before` and leaves `value`, null if the key is gone.
    void conclude(Tx& t, const Thread& thread, const Step& step, std::uint64_t before, const std::uint64_t* value) {
        if constexpr (has_history) report_change(step.key, before, shards_.version(t, value));
        shards_.count(t, thread.steps.thread(), thread.steps.finished() + 1, !only_inserts_);
    }

    [[gnu::noinline]] void insert(Thread& thread, std::uint64_t shard, const Step& step) {
        tx([&](Tx& t) {
            Map map = shards_.map(shard);
            const std::uint64_t before = version_before(t, map, step.key);
            std::uint64_t* value = map.insert(t, step.key);
            write_value(t, value, step);
            conclude(t, thread, step, before, value);
        });
    }

    [[gnu::noinline]] void search(Thread& thread, std::uint64_t shard, const Step& step) {
        std::uint64_t found = 0;
        tx([&](Tx& t) {
            Map map = shards_.map(shard);
            const std::uint64_t before = version_before(t, map, step.key);
            const std::uint64_t* value = map.find(t, step.key);
            found = thread.found;
            for (std::uint64_t i = 0; value != nullptr && i < shards_.words(); ++i) found = add_found(found, t.read(value[i]));
            conclude(t, thread, step, before, value);
        });
        thread.found = found;
    }

    [[gnu::noinline]] void update(Thread& thread, std::uint64_t shard, const Step& step) {
        tx([&](Tx& t) {
            Map map = shards_.map(shard);
            const std::uint64_t before = version_before(t, map, step.key);
            std::uint64_t* value = map.find(t, step.key);
            if (value != nullptr) write_value(t, value, step);
            conclude(t, thread, step, before, value);
        });
    }

    [[gnu::noinline]] void erase(Thread& thread, std::uint64_t shard, const Step& step) {
        tx([&](Tx& t) {
            Map map = shards_.map(shard);
            const std::uint64_t before = version_before(t, map, step.key);
            map.erase(t, step.key);
            conclude(t, thread, step, before, nullptr);
        });
    }

    // Calls each(steps, step, stamp) for the operations of a thread, before they count; `stamp` is what the key has then.
    // Returns the stamps in the end, by the thread's sequence.
    template <class Each>
    static std::vector<std::uint64_t> replay(const ShardsRoot& root, std::uint64_t thread, std::uint64_t finished, Each&& each,
                                             Steps* last = nullptr) {
        Steps steps = steps_of(root, thread);
        std::vector<std::uint64_t> stamps(steps.end());
        while (steps.finished() < finished) {
            const Step step = steps.next();
            if (!steps.is_populating()) {
                if (step.kind == StepKind::insert) stamps.push_back(0);
                each(steps, step, stamps[step.place]);
                if (step.kind == StepKind::update) stamps[step.place] = step.stamp;
            }
            steps.finish(step);
        }
        if (last != nullptr) *last = steps;
        return stamps;
    }

    // The final state of all threads.
    static std::vector<Expected> expected_in(const Shards<Map>& all) {
        const ShardsRoot& root = all.root();
        std::vector<Expected> expected;
        if (all.finished(0) < root.populated) {
            for (std::uint64_t i = 0; i < all.finished(0); ++i) expected.push_back({key_of(root.seed, 0, i), 0});
            return expected;
        }
        for (std::uint64_t thread = 0; thread < root.threads; ++thread) {
            Steps steps = steps_of(root, thread);
            const auto stamps = replay(root, thread, all.finished(thread), [](const Steps&, const Step&, std::uint64_t) {}, &steps);
            for (std::uint64_t i = steps.oldest(); i < steps.end(); ++i) expected.push_back({steps.key_at(i), stamps[i]});
        }
        return expected;
    }

    static void compare(const Shards<Map>& all, std::vector<Found>& found, std::vector<Expected> expected) {
        std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.key < b.key; });
        std::sort(expected.begin(), expected.end(), [](const Expected& a, const Expected& b) { return a.key < b.key; });
        if (found.size() != expected.size()) {
            DURASIM_VIOLATION("%llu keys are in the pool, but the operations leave %llu", static_cast<Long>(found.size()),
                              static_cast<Long>(expected.size()));
        }
        for (std::uint64_t i = 0; i < found.size(); ++i) {
            if (found[i].key != expected[i].key) {
                DURASIM_VIOLATION("key %llx is in the pool where %llx should be", static_cast<Long>(found[i].key),
                                  static_cast<Long>(expected[i].key));
            }
            for (std::uint64_t w = 0; w < all.words(); ++w) {
                if (found[i].value[w] == word_of(expected[i].key, expected[i].stamp, w)) continue;
                DURASIM_VIOLATION("word %llu of the value of key %llx is not what the last operation wrote", static_cast<Long>(w),
                                  static_cast<Long>(found[i].key));
            }
        }
    }

    Percentages percentages_;
    bool only_inserts_;
    Shards<Map> shards_;
    std::unique_ptr<TxLock[]> locks_;  // of the shards; a single thread needs none
    std::vector<Thread> states_;     // of each thread: what the pool must hold
};

}  // namespace durasim

#endif
