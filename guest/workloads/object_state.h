// The data that all workloads over objects keep beside their own: the settings of the pool, and the progress of each thread.
//
// An operation and the count of it are two durable stores, so after a power failure the operation after the counted ones may be
// there: whole, because each operation takes effect by one store or in a region. Counting costs a durable store for each
// operation, which the programs of the papers do not have: builds for campaigns count every operation, others when a run ends.
#ifndef DURASIM_WORKLOADS_OBJECT_STATE_H
#define DURASIM_WORKLOADS_OBJECT_STATE_H

#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "durasim/objects.h"
#include "workloads/harness.h"

namespace durasim {

namespace detail {

template <class A>
ObjectOptions object_options(const A& arguments, std::uint64_t volatile_bytes) {
    ObjectOptions options;
    options.volatile_heap_bytes = arguments.volatile_heap_bytes != 0 ? arguments.volatile_heap_bytes : volatile_bytes;
    options.volatile_heap_bytes = (options.volatile_heap_bytes + objects::chunk_bytes - 1) / objects::chunk_bytes * objects::chunk_bytes;
    if constexpr (requires { arguments.sweep_forwarders; }) options.sweep_forwarders = arguments.sweep_forwarders;
    if constexpr (requires { arguments.no_profile; }) options.profile = !arguments.no_profile;
    if constexpr (requires { arguments.placed; }) options.placed = arguments.placed;
    return options;
}

// The work of handlers of checked accesses, where there are some: calls of each, and those for nothing.
template <class R>
void print_handlers(const R& objects) {
    if constexpr (requires { objects.handler_calls(); }) {
        const auto sum = objects.handler_calls();
        for (std::size_t i = 0; i < sum.calls.size(); ++i) {
            std::printf("%s%llu", i == 0 ? " handlers=" : ",", static_cast<unsigned long long>(sum.calls[i]));
        }
        for (std::size_t i = 0; i < sum.calls.size(); ++i) {
            std::printf("%s%llu", i == 0 ? " for_nothing=" : ",", static_cast<unsigned long long>(sum.false_positives[i]));
        }
    }
}

// For a process that has not made the pool, and moves nothing.
inline void open_for_reading(const Pool& pool) {
    if (object_runtime.is_attached()) return;
    const ObjectOptions options = {.volatile_heap_bytes = std::uint64_t{1} << 20, .sweep_forwarders = 0, .profile = false};
    object_runtime.attach(const_cast<Pool&>(pool), options, 1);
}

}  // namespace detail

template <std::size_t settings>
class ObjectState {
public:
    using Words = std::array<std::uint64_t, settings>;

    // The first durable root; the last to be made, so that a pool with it is complete. Workloads have the roots after it.
    static constexpr std::uint64_t settings_root = 0, progress_root = 1, first_free_root = 2;

    static bool is_made() {
        bool made = false;
        object_runtime.examine([&](auto& o) { made = static_cast<bool>(o.template durable_root<Settings>(settings_root)); });
        return made;
    }

    // The settings of the pool, for a process that has not made it. None if a power failure has cut the making.
    static std::optional<Words> open_for_check(const Pool& pool) {
        if (const char* problem = object_runtime.problem_in(pool)) DURASIM_VIOLATION("%s", problem);
        return open(pool);
    }
    // None too if the pool is damaged, which the dump says then.
    static std::optional<Words> open_for_dump(const Pool& pool, Dump& dump) {
        if (object_runtime.problem_in(pool) == nullptr) return open(pool);
        dump.note_damage();
        return std::nullopt;
    }

    // In an operation, after the workload's own roots.
    template <class Operation>
    static void make(Operation& o, const Words& words, std::uint64_t threads) {
        static Site progress_sites(Placement::durable), progresses_sites(Placement::durable), settings_sites(Placement::durable);
        auto progresses = o.template make_array<Progresses>(progresses_sites, threads);
        for (std::uint64_t i = 0; i < threads; ++i) progresses.set_at(i, o.template make<Progress>(progress_sites).finish());
        o.set_durable_root(progress_root, progresses.finish());
        auto made = o.template make_array<Settings>(settings_sites, settings + 1);
        for (std::uint64_t i = 0; i < settings; ++i) made.set_at(i, words[i]);
        made.set_at(settings, seal_of(words));
        o.set_durable_root(settings_root, made.finish());
    }

    static Words words() {
        Words words{};
        object_runtime.examine([&](auto& o) {
            const auto made = o.template durable_root<Settings>(settings_root);
            for (std::uint64_t i = 0; i < settings; ++i) words[i] = o.at(made, i);
            if (o.at(made, settings) != seal_of(words)) DURASIM_VIOLATION("the settings of the pool are damaged");
        });
        return words;
    }

    static std::uint64_t finished(std::uint64_t thread) {
        std::uint64_t count = 0;
        object_runtime.examine([&](auto& o) { count = o.template get<&Progress::count>(of(o, thread)); });
        if (count != 0 && sealed(count & count_max) != count) DURASIM_VIOLATION("the count of operations of thread %llu is damaged", static_cast<Long>(thread));
        return count & count_max;
    }

    static void expect_finished(std::uint64_t thread, std::uint64_t operations) {
        if (finished(thread) == operations) return;
        DURASIM_VIOLATION("the operations of thread %llu are not all counted", static_cast<Long>(thread));
    }

    // Operation number `finished` - 1 of the thread has ended, in the operation that it is.
    template <class Operation>
    static void count(Operation& o, std::uint64_t thread, std::uint64_t finished) {
        if constexpr (has_history) note(o, thread, finished);
    }

    // The number of operations that have ended.
    static void leave(std::uint64_t thread, std::uint64_t finished) {
        object_runtime.operation([&](auto& o) { note(o, thread, finished); });
    }

private:
    // A line of its own.
    struct Progress {
        static constexpr Placement placement = Placement::durable;
        static constexpr std::uint64_t references = 0;
        std::uint64_t count;  // sealed
        std::uint64_t unused[6];
    };
    using Progresses = Array<Ref<Progress>, Placement::durable>;
    using Settings = Array<std::uint64_t, Placement::durable>;

    static std::optional<Words> open(const Pool& pool) {
        detail::open_for_reading(pool);
        if (!is_made()) return std::nullopt;
        return words();
    }

    // A check counts up to what it reads here: in a damaged pool that would not end. A word is never torn, so the seal is
    // in the count's own.
    static constexpr std::uint64_t count_max = (std::uint64_t{1} << operation_bits) - 1;
    static std::uint64_t sealed(std::uint64_t count) { return (mix(count) & ~count_max) | count; }
    static std::uint64_t seal_of(const Words& words) {
        std::uint64_t sum = settings;
        for (const std::uint64_t word : words) sum = mix(sum ^ word);
        return sum;
    }

    template <class Operation>
    static Ref<Progress> of(Operation& o, std::uint64_t thread) {
        return o.at(o.template durable_root<Progresses>(progress_root), thread);
    }
    template <class Operation>
    static void note(Operation& o, std::uint64_t thread, std::uint64_t finished) {
        o.template set<&Progress::count>(of(o, thread), sealed(finished));
    }
};

}  // namespace durasim

#endif
