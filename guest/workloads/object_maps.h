// Workloads that map keys to values, over any map of objects of guest/structures: searches, insertions, replacements and
// removals (keyed_steps.h). Threads share the maps, but each operates on keys of its own.
//
// Each program says what is its own:
//
//     struct Program {
//         static constexpr std::uint64_t kind;                        // of the settings
//         static std::uint64_t parameter(const Arguments&, std::uint64_t shards);  // of each map in a new pool
//     };
#ifndef DURASIM_WORKLOADS_OBJECT_MAPS_H
#define DURASIM_WORKLOADS_OBJECT_MAPS_H

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "workloads/keyed_steps.h"
#include "workloads/object_shards.h"
#include "workloads/object_state.h"
#include "workloads/shards.h"

namespace durasim {

template <class Map, class Program>
class ObjectMaps {
    using Value = typename Map::Value;
    // The settings that a pool was made with.
    enum Setting : std::uint64_t { kind, seed, populated_items, threads, shards, searches, updates, erasures, value_words, parameter, settings };
    using State = ObjectState<settings>;
    using Words = typename State::Words;
    using Shards = ObjectShards<Map, State::first_free_root>;

public:
    struct Thread {
        Steps steps;
        std::uint64_t found;  // a sum over what searches have found
    };

    static std::uint64_t arenas(const Arguments&) { return 1; }

    static std::uint64_t pool_bytes(const Arguments& arguments) {
        check_arguments(arguments);
        return 2 * live_bytes(arguments) + (std::uint64_t{8} << 20);
    }

    ObjectMaps(Pool& pool, const Arguments& arguments) {
        check_arguments(arguments);
        const std::uint64_t volatile_bytes = 2 * live_bytes(arguments) + (std::uint64_t{16} << 20);
        object_runtime.attach(pool, detail::object_options(arguments, volatile_bytes), static_cast<unsigned>(arguments.threads));
        const Words wanted = words_of(arguments);
        if (!State::is_made()) make(wanted);
        words_ = State::words();
        if (words_[kind] != Program::kind) fail(exit_usage, "%s: the pool belongs to another workload", program_name);
        for (std::uint64_t i = 0; i < settings; ++i) {
            if (words_[i] == wanted[i] || i == parameter) continue;
            fail(exit_usage, "%s: the pool was made with other arguments", program_name);
        }
        Shards::open(words_[shards]);
        load_states();
        finish_cut_operations();
        if (words_[threads] > 1) locks_ = std::make_unique<Lock[]>(words_[shards]);
    }

    // With insertions alone, populating items are operations like others.
    std::uint64_t populated() const {
        const std::uint64_t finished = states_[0].steps.finished();
        return percentages_of(words_).is_insertion_only() ? finished : std::min(finished, words_[populated_items]);
    }

    Thread enter(std::uint64_t number) {
        object_runtime.enter_thread(number);
        return states_[number];
    }
    void populate_one(Thread& thread) {
        operation(thread);
        states_[0] = thread;
    }
    void leave(const Thread& thread) {
        states_[thread.steps.thread()] = thread;
        if constexpr (!has_history) State::leave(thread.steps.thread(), thread.steps.finished());
    }

    void operation(Thread& thread) {
        const Step step = thread.steps.next();
        const std::uint64_t shard = Shards::shard_of(step.key, words_[shards]);
        if (locks_ != nullptr) {
            const std::lock_guard held(locks_[shard]);
            perform(thread, shard, step);
        } else {
            perform(thread, shard, step);
        }
        thread.steps.finish(step);
    }

    void compare_with_model() {
        object_runtime.stop();
        object_runtime.enter_thread(0);
        for (const Thread& thread : states_) State::expect_finished(thread.steps.thread(), thread.steps.finished());
        compare(words_, false);
    }

    void print_result() const {
        std::uint64_t keys = 0, found = 0;
        for (const Thread& thread : states_) {
            keys += thread.steps.end() - thread.steps.oldest();
            found += thread.found;
        }
        std::printf("keys=%llu found=%llx forwarders=%llu sweeps=%llu collections=%llu", static_cast<Long>(keys), static_cast<Long>(found),
                    static_cast<Long>(object_runtime.forwarders()), static_cast<Long>(object_runtime.sweeps()),
                    static_cast<Long>(object_runtime.collections()));
        detail::print_handlers(object_runtime);
    }

    static void recover(const Pool& pool) { objects::ObjectRuntime::recover(pool); }

    static std::uint64_t check(const Pool& pool) {
        const auto made_with = State::open_for_check(pool);
        if (!made_with) return 0;
        const Words& words = *made_with;
        if (words[kind] != Program::kind || words[threads] == 0 || words[threads] > threads_max || words[shards] == 0) {
            DURASIM_VIOLATION("the settings of the pool are damaged");
        }
        return compare(words, true);
    }

    static void dump(const Pool& pool, Dump& dump) {
        const auto made_with = State::open_for_dump(pool, dump);
        if (!made_with) return;
        const Words& words = *made_with;
        const bool whole = each_item(words, [&](std::uint64_t key, std::uint64_t version) { dump.add(key, version); });
        if (!whole) dump.note_damage();
    }

private:
    static Percentages percentages_of(const Arguments& arguments) {
        return {arguments.search_percent, arguments.update_percent, arguments.erase_percent};
    }
    static Percentages percentages_of(const Words& words) { return {words[searches], words[updates], words[erasures]}; }
    static Steps steps_of(const Words& words, std::uint64_t thread) {
        return {words[seed], percentages_of(words), thread, words[threads], words[populated_items]};
    }

    static void check_arguments(const Arguments& arguments) {
        if (arguments.value_bytes % 8 != 0) {
            fail(exit_usage, "%s: --value-bytes has to be a multiple of 8, not %llu", program_name, static_cast<Long>(arguments.value_bytes));
        }
        if (!percentages_of(arguments).are_possible()) {
            fail(exit_usage, "%s: --search-percent, --update-percent and --erase-percent are more than 100 together", program_name);
        }
    }

    static Words words_of(const Arguments& arguments) {
        const Percentages percentages = percentages_of(arguments);
        const std::uint64_t maps = shards_of(arguments.shards, arguments.threads);
        const std::uint64_t populated = percentages.is_insertion_only() ? 0 : arguments.populate;
        return {Program::kind, arguments.seed, populated, arguments.threads, maps, percentages.search, percentages.update,
                percentages.erase, arguments.value_bytes / 8, Program::parameter(arguments, maps)};
    }

    static std::uint64_t live_bytes(const Arguments& arguments) {
        const std::uint64_t maps = shards_of(arguments.shards, arguments.threads);
        const std::uint64_t items = arguments.populate + arguments.ops / 100 * percentages_of(arguments).insert() + 100;
        return maps * Map::bytes_of(items / maps + 1, arguments.value_bytes / 8, Program::parameter(arguments, maps));
    }

    static void make(const Words& words) {
        object_runtime.operation([&](auto& o) {
            Shards::make(o, words[shards], words[parameter]);
            State::make(o, words, words[threads]);
        });
    }

    void load_states() {
        for (std::uint64_t i = 0; i < words_[threads]; ++i) {
            states_.push_back({steps_of(words_, i), 0});
            Steps& steps = states_[i].steps;
            for (const std::uint64_t finished = State::finished(i); steps.finished() < finished;) steps.finish(steps.next());
        }
    }

    // An operation that took effect and was not counted before the power failed is counted now. To do it again would be
    // right too, but not what happened.
    void finish_cut_operations() {
        if constexpr (!has_history) return;
        for (Thread& thread : states_) {
            // No other thread has begun while the first one populates.
            if (thread.steps.thread() != 0 && states_[0].steps.is_populating()) break;
            const Step step = thread.steps.next();
            if (step.kind == StepKind::search || !has_taken_effect(step)) continue;
            thread.steps.finish(step);
            State::leave(thread.steps.thread(), thread.steps.finished());
        }
    }

    bool has_taken_effect(const Step& step) const {
        bool has = false;
        object_runtime.examine([&](auto& o) {
            const auto value = Map::find(o, Shards::map(o, Shards::shard_of(step.key, words_[shards])), step.key);
            has = step.kind == StepKind::erase ? !value : value && o.at(value, 0) == word_of(step.key, step.stamp, 0);
        });
        return has;
    }

    void perform(Thread& thread, std::uint64_t shard, const Step& step) {
        object_runtime.operation([&](auto& o) {
            const auto map = Shards::map(o, shard);
            std::uint64_t before = 0;
            if constexpr (has_history) before = Shards::version_of(o, Map::find(o, map, step.key));
            switch (step.kind) {
                case StepKind::insert:
                case StepKind::update: Map::put(o, map, step.key, make_value(o, step)); break;
                case StepKind::erase: Map::erase(o, map, step.key); break;
                case StepKind::search: search(o, map, thread, step); break;
            }
            if constexpr (has_history) report_change(step.key, before, Shards::version_of(o, Map::find(o, map, step.key)));
            State::count(o, thread.steps.thread(), thread.steps.finished() + 1);
        });
    }

    template <class Operation>
    Ref<Value> make_value(Operation& o, const Step& step) {
        static Site sites(Value::placement);
        auto value = o.template make_array<Value>(sites, words_[value_words]);
        for (std::uint64_t i = 0; i < words_[value_words]; ++i) value.set_at(i, word_of(step.key, step.stamp, i));
        return value.finish();
    }

    template <class Operation>
    static void search(Operation& o, Ref<typename Map::Root> map, Thread& thread, const Step& step) {
        const auto value = Map::find(o, map, step.key);
        if (!value) return;
        for (std::uint64_t i = 0, words = o.length(value); i < words; ++i) thread.found = thread.found * 31 + o.at(value, i);
    }

    // Calls each(key, version) for all items; the version is that of the whole value. False if a map is damaged.
    template <class Each>
    static bool each_item(const Words& words, Each&& each) {
        return Shards::each(words[shards], words[value_words], [&](auto& o, std::uint64_t key, Ref<Value> value) { each(key, Shards::version_of(o, value)); });
    }

    static std::uint64_t version_of_step(const Words& words, std::uint64_t key, std::uint64_t stamp) {
        Version version;
        for (std::uint64_t i = 0; i < words[value_words]; ++i) version.take(word_of(key, stamp, i));
        return version.value();
    }

    // Holds the maps against what the counted operations leave; the operation of each thread after them may have taken
    // effect too if `is_cut`. Returns the number of counted operations.
    static std::uint64_t compare(const Words& words, bool is_cut) {
        std::unordered_map<std::uint64_t, std::uint64_t> found;
        const bool whole = each_item(words, [&](std::uint64_t key, std::uint64_t version) {
            if (!found.emplace(key, version).second) DURASIM_VIOLATION("key %llx is there twice", static_cast<Long>(key));
        });
        if (!whole) DURASIM_VIOLATION("a map is damaged");
        std::uint64_t operations = 0;
        for (std::uint64_t thread = 0; thread < words[threads]; ++thread) operations += compare_thread(words, thread, is_cut, found);
        if (!found.empty()) DURASIM_VIOLATION("key %llx is there, but no operation left it", static_cast<Long>(found.begin()->first));
        return operations;
    }

    static std::uint64_t compare_thread(const Words& words, std::uint64_t thread, bool is_cut, std::unordered_map<std::uint64_t, std::uint64_t>& found) {
        Steps steps = steps_of(words, thread);
        const std::uint64_t finished = State::finished(thread);
        std::unordered_map<std::uint64_t, std::uint64_t> stamps;  // by key; 0 if it was inserted and never changed
        // Populated items that the operations of this thread may change; those of a thread without operations too.
        if (thread != 0 || finished >= words[populated_items]) {
            const bool is_populated = State::finished(0) >= words[populated_items];
            for (std::uint64_t place = 0; is_populated && place < steps.end(); ++place) stamps[steps.key_at(place)] = 0;
        }
        const bool is_populating = thread == 0 && finished < words[populated_items];
        while (steps.finished() < finished) {
            const Step step = steps.next();
            apply(step, is_populating || !steps.is_populating(), stamps);
            steps.finish(step);
        }
        const Step next = steps.next();
        auto after = stamps;
        if (is_cut && next.kind != StepKind::search) apply(next, true, after);
        for (const auto& [key, stamp] : stamps) take(words, key, {stamp}, after, found);
        for (const auto& [key, stamp] : after) {
            // Inserted by the operation that is cut.
            const auto there = found.find(key);
            if (stamps.contains(key) || there == found.end()) continue;
            if (there->second != version_of_step(words, key, stamp)) DURASIM_VIOLATION("the value of key %llx is torn", static_cast<Long>(key));
            found.erase(there);
        }
        return finished;
    }

    static void apply(const Step& step, bool counts, std::unordered_map<std::uint64_t, std::uint64_t>& stamps) {
        if (!counts) return;
        if (step.kind == StepKind::erase) {
            stamps.erase(step.key);
        } else if (step.kind != StepKind::search) {
            stamps[step.key] = step.stamp;
        }
    }

    // Takes a key out of what was found, which has to be as it was before the operation that is cut, or after it.
    static void take(const Words& words, std::uint64_t key, std::uint64_t stamp, const std::unordered_map<std::uint64_t, std::uint64_t>& after,
                     std::unordered_map<std::uint64_t, std::uint64_t>& found) {
        const auto there = found.find(key);
        const auto later = after.find(key);
        if (there == found.end()) {
            if (later == after.end()) return;  // removed by the operation that is cut
            DURASIM_VIOLATION("key %llx is not there, but an operation has inserted it", static_cast<Long>(key));
        }
        const bool is_before = there->second == version_of_step(words, key, stamp);
        if (!is_before && (later == after.end() || there->second != version_of_step(words, key, later->second))) {
            DURASIM_VIOLATION("the value of key %llx is not what the last operation wrote", static_cast<Long>(key));
        }
        found.erase(there);
    }

    Words words_{};
    std::unique_ptr<Lock[]> locks_;  // of the maps; a single thread needs none
    std::vector<Thread> states_;
};

}  // namespace durasim

#endif
