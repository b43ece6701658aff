// A workload of containers that take items in and give items out, each with a lock and an arena of its own.
//
// The container of the n-th operation of a thread depends on seed, thread and n; what is done there depends on seed,
// container and how many operations the container has seen. So its counts alone say what a container has to hold, in
// whatever order threads came to it: a check replays it exactly. The counts lie on the line where the container begins,
// which every operation modifies anyway, and say also which thread did how much (teams.h): there is no line for progress.
//
// `Kind` is the container:
//     kind_of_root, option, percent_option               the arguments that wanted and remove_percent read
//     struct Container                                   a multiple of lines, begins with `Tally tally`; all zeros is empty
//     wanted(arguments), remove_percent(arguments)       the number of containers, 0 for the usual one
//     limit(arguments)                                   items at most, 0 for any number
//     value_bytes_min                                    the least bytes of an item's value
//     arena_bytes(items_max, value_bytes)                the bytes of this many items
//     insert(t, container, arena, item, value_words)     returns the place of the value in the pool
//     remove(t, container, arena, value, value_words)    reads the value; returns the key
//     class Model                                        insert(key), remove(); the container in ordinary memory
//     check(container, model, audit, value_bytes)        violation unless the container holds what the model holds
//     visit(container, pool, value_bytes, take)          take(key, value) for each item; false if that is not possible
#ifndef DURASIM_STRUCTURES_CONTAINERS_H
#define DURASIM_STRUCTURES_CONTAINERS_H

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "durasim/random.h"
#include "structures/blocks.h"
#include "structures/shares.h"
#include "structures/teams.h"
#include "workloads/harness.h"

namespace durasim {

// The operations on a container.
struct Tally {
    std::uint64_t inserted;
    std::uint64_t removed;
    std::uint64_t by[team_max];  // operations of each thread of the team; populating counts for none

    std::uint64_t finished() const { return inserted + removed; }
    std::uint64_t size() const { return inserted - removed; }
};
static_assert(sizeof(Tally) == 6 * sizeof(std::uint64_t));

inline constexpr std::uint64_t item_bytes_max = 4096;

// An item that goes into a container: its key is the item's alone, and its value follows from the key.
struct Item {
    std::uint64_t key;

    std::uint64_t word(std::uint64_t number) const { return mix(key + number + 1); }
};

inline bool is_value_of(std::uint64_t key, const std::uint64_t* value, std::uint64_t words) {
    for (std::uint64_t w = 0; w < words; ++w) {
        if (value[w] != Item{key}.word(w)) return false;
    }
    return true;
}

template <class Kind>
class Containers {
    using Container = typename Kind::Container;
    static_assert(sizeof(Container) % line_bytes == 0);

    struct alignas(64) Root {
        std::uint64_t kind;
        std::uint64_t seed;
        std::uint64_t populate;
        std::uint32_t remove_percent;
        std::uint32_t items_max;  // an insertion beyond this number removes one; 0: any number
        std::uint64_t value_bytes;
        std::uint64_t threads;
        std::uint64_t containers;
        Container* container;
    };

public:
    static std::uint64_t arenas(const Arguments& arguments) {
        const std::uint64_t wanted = Kind::wanted(arguments), teams = Teams::count_for(arguments.threads);
        if (wanted == 0) return arguments.threads == 1 ? 1 : std::min(arguments.threads * containers_per_thread, default_max);
        if (wanted < teams) {
            fail(exit_usage, "%s: %llu threads need at least %s %llu, one for each four threads", program_name,
                 static_cast<Long>(arguments.threads), Kind::option, static_cast<Long>(teams));
        }
        return wanted;
    }

    static std::uint64_t pool_bytes(const Arguments& arguments) {
        const std::uint64_t number = arenas(arguments);
        const Teams teams(arguments.threads, number);
        const std::uint64_t ops = share_max(teams.ops_max(arguments.ops), teams.things_of(teams.count() - 1));
        std::uint64_t items = items_max(arguments.populate / number + 1, ops, Kind::remove_percent(arguments));
        if (const std::uint64_t limit = Kind::limit(arguments); limit != 0) items = std::min(items, limit / number + 1);
        const std::uint64_t shared = sizeof(ArenaHeader) + sizeof(Root) + block_bytes(number * sizeof(Container));
        return number * (shared + Kind::arena_bytes(items, arguments.value_bytes) + line_bytes);
    }

    Containers(Pool& pool, const Arguments& arguments) : teams_(arguments.threads, arenas(arguments)) {
        if (arguments.value_bytes % 8 != 0) {
            fail(exit_usage, "%s: --value-bytes has to be a multiple of 8, not %llu", program_name,
                 static_cast<Long>(arguments.value_bytes));
        }
        if (const std::uint64_t limit = Kind::limit(arguments); limit != 0 && (limit < arenas(arguments) || limit < arguments.populate)) {
            fail(exit_usage, "%s: --items-max has to be 0, or as large as --populate and %s", program_name, Kind::option);
        }
        root_ = pool.root<Root>();
        if (root_ == nullptr) {
            make(pool, arguments);
            root_ = pool.root<Root>();
        }
        if (root_->kind != Kind::kind_of_root) fail(exit_usage, "%s: the pool belongs to another workload", program_name);
        if (root_->seed != arguments.seed || root_->populate != arguments.populate ||
            root_->remove_percent != Kind::remove_percent(arguments) || root_->items_max != Kind::limit(arguments) ||
            root_->value_bytes != arguments.value_bytes ||
            root_->containers != arenas(arguments) || root_->threads != arguments.threads) {
            fail(exit_usage,
                 "%s: the pool was made with --seed %llu --populate %llu %s %llu%s --value-bytes %llu %s %llu --threads %llu; "
                 "use these",
                 program_name, static_cast<Long>(root_->seed), static_cast<Long>(root_->populate), Kind::percent_option,
                 static_cast<Long>(root_->remove_percent),
                 root_->items_max == 0 ? "" : (" --items-max " + std::to_string(root_->items_max)).c_str(),
                 static_cast<Long>(root_->value_bytes), Kind::option,
                 static_cast<Long>(root_->containers), static_cast<Long>(root_->threads));
        }
        seed_ = root_->seed;
        containers_ = root_->containers;
        value_words_ = root_->value_bytes / 8;
        for (std::uint64_t i = 0; i < containers_; ++i) {
            populated_ += std::min(root_->container[i].tally.finished(), share_of(root_->populate, containers_, i));
        }
        for (std::uint64_t thread = 0; thread < root_->threads; ++thread) finished_.push_back(counted_for(root_, teams_, thread));
        if (root_->threads > 1) locks_ = std::make_unique<TxLock[]>(containers_);
    }

    std::uint64_t populated() const { return populated_; }

    struct Thread {
        std::uint64_t number;
        std::uint64_t finished;  // operations
        std::uint64_t value[item_bytes_max / 8];
    };

    Thread enter(std::uint64_t number) const { return {number, finished_[number], {}}; }
    void leave(const Thread& thread) { finished_[thread.number] = thread.finished; }

    void populate_one(Thread& thread) {
        tx([&](Tx& t) { perform(t, populated_ % containers_, nullptr, thread); });
        ++populated_;
    }

    void operation(Thread& thread) {
        const std::uint64_t number = choose(seed_, teams_, thread.number, thread.finished);
        std::unique_lock<TxLock> held;
        if (locks_ != nullptr) held = std::unique_lock(locks_[number]);
        std::uint64_t* by = &root_->container[number].tally.by[teams_.seat_of(thread.number)];
        tx([&](Tx& t) { perform(t, number, by, thread); });
        ++thread.finished;
    }

    void compare_with_model() const {
        // The check has compared the containers with what their counts say; here remains whether these are right.
        for (std::uint64_t i = 0; i < finished_.size(); ++i) {
            if (counted_for(root_, teams_, i) != finished_[i]) {
                DURASIM_VIOLATION("thread %llu finished %llu operations, but the pool says %llu", static_cast<Long>(i),
                                  static_cast<Long>(finished_[i]), static_cast<Long>(counted_for(root_, teams_, i)));
            }
        }
    }

    void print_result() const {
        std::uint64_t items = 0;
        for (std::uint64_t i = 0; i < containers_; ++i) items += root_->container[i].tally.size();
        std::printf("containers=%llu items=%llu", static_cast<Long>(containers_), static_cast<Long>(items));
    }

    static std::uint64_t check(const Pool& pool) {
        Audit audit(pool);
        if (audit.problem() != nullptr) DURASIM_VIOLATION("%s", audit.problem());
        const Root* root = pool.root<Root>();
        if (!audit.claim(root, sizeof(Root))) DURASIM_VIOLATION("the root object is not allocated");
        if (root->kind != Kind::kind_of_root) DURASIM_VIOLATION("the root object is not one of containers");
        const Teams teams(root->threads, root->containers);
        if (root->containers != pool.arenas() || root->threads == 0 || root->threads > threads_max ||
            teams.count() > root->containers || root->remove_percent > 100 || root->value_bytes % 8 != 0 ||
            root->value_bytes < Kind::value_bytes_min || root->value_bytes > item_bytes_max || root->populate >> operation_bits != 0) {
            DURASIM_VIOLATION("the root object is damaged");
        }
        if (!audit.claim(root->container, root->containers * sizeof(Container))) DURASIM_VIOLATION("the containers are not allocated");

        const std::uint64_t counted = teams.check(
            1, [&](std::uint64_t number, std::uint64_t seat) { return root->container[number].tally.by[seat]; },
            [&](std::uint64_t thread, std::uint64_t n, auto&& take) { take(choose(root->seed, teams, thread, n)); });
        const std::uint64_t finished = check_tallies(root, counted);
        for (std::uint64_t i = 0; i < root->containers; ++i) check_container(root, i, audit);
        if (audit.lines_leaked() != 0) DURASIM_VIOLATION("%llu lines are leaked", static_cast<Long>(audit.lines_leaked()));
        return finished;
    }

    static void dump(const Pool& pool, Dump& dump) {
        const Root* root = pool.root<Root>();
        if (!can_be_block(pool, root, sizeof(Root))) return dump.note_damage();
        dump.add(root_object, root->kind);
        if (root->containers > pool.arenas() || !can_be_block(pool, root->container, root->containers * sizeof(Container)) ||
            root->value_bytes > item_bytes_max) {
            return dump.note_damage();
        }
        for (std::uint64_t i = 0; i < root->containers; ++i) {
            const Container& container = root->container[i];
            dump.add(i, version_of_tally(container.tally, [](const std::uint64_t& place) { return place; }));
            const auto add = [&](std::uint64_t key, const std::uint64_t* value) {
                dump.add(key, version_of(value, root->value_bytes / 8));
            };
            if (!Kind::visit(container, pool, root->value_bytes, add)) dump.note_damage();
        }
    }

private:
    // Containers for each thread if several share them: few enough to meet, many enough not to queue. All are made in one
    // transaction, which sets a bound.
    static constexpr std::uint64_t containers_per_thread = 4;
    static constexpr std::uint64_t default_max = 64;

    // The container that a thread's n-th operation takes.
    static std::uint64_t choose(std::uint64_t seed, const Teams& teams, std::uint64_t thread, std::uint64_t number) {
        const std::uint64_t team = teams.team_of(thread);
        return teams.thing(team, Random(mix(seed) + operation_of(thread, number)).below(teams.things_of(team)));
    }

    // Different containers and numbers give different keys.
    static std::uint64_t key_of(std::uint64_t seed, std::uint64_t container, std::uint64_t number) {
        return mix(mix(seed) + operation_of(container, number));
    }

    // Whether operation `number` on a container removes an item, which is not so before populating has done its share.
    // Without an item, one is inserted instead.
    static bool removes(const Root& root, std::uint64_t container, std::uint64_t number, std::uint64_t items) {
        if (items == 0) return false;
        if (root.items_max != 0 && items >= share_of(root.items_max, root.containers, container)) return true;
        return Random(mix(~root.seed) + operation_of(container, number)).below(100) < root.remove_percent;
    }

    static std::uint64_t counted_for(const Root* root, const Teams& teams, std::uint64_t thread) {
        return teams.sum(thread, [&](std::uint64_t number, std::uint64_t seat) { return root->container[number].tally.by[seat]; });
    }

    // The counts of a container are an object, whose number is the container's. Before the first operation it is not there.
    template <class Read>
    static std::uint64_t version_of_tally(const Tally& tally, Read&& read) {
        Version version;
        version.take(read(tally.inserted));
        version.take(read(tally.removed));
        for (const std::uint64_t& by : tally.by) version.take(read(by));
        return read(tally.inserted) == 0 ? 0 : version.value();
    }

    static void make(Pool& pool, const Arguments& arguments) {
        tx([&](Tx& t) {
            const std::uint64_t number = arenas(arguments);
            auto* root = static_cast<Root*>(t.allocate(sizeof(Root)));
            t.write(root->kind, Kind::kind_of_root);
            t.write(root->seed, arguments.seed);
            t.write(root->populate, arguments.populate);
            t.write(root->remove_percent, static_cast<std::uint32_t>(Kind::remove_percent(arguments)));
            t.write(root->items_max, static_cast<std::uint32_t>(Kind::limit(arguments)));
            t.write(root->value_bytes, arguments.value_bytes);
            t.write(root->threads, arguments.threads);
            t.write(root->containers, number);
            // Memory that was never given out before is zero, and so are empty containers.
            t.write(root->container, static_cast<Container*>(t.allocate(number * sizeof(Container))));
            pool.set_root(t, root);
            if constexpr (has_history) report_change(root_object, 0, Kind::kind_of_root);
        });
    }

    // The next operation on a container; `by` counts it if it is not for populating.
    void perform(Tx& t, std::uint64_t number, std::uint64_t* by, Thread& thread) {
        Container& container = root_->container[number];
        Tally& tally = container.tally;
        const auto read = [&t](const std::uint64_t& place) { return t.read(place); };
        [[maybe_unused]] std::uint64_t found = 0;
        if constexpr (has_history) found = version_of_tally(tally, read);
        const std::uint64_t inserted = t.read(tally.inserted), removed = t.read(tally.removed);
        if (by != nullptr && removes(*root_, number, inserted + removed, inserted - removed)) {
            const std::uint64_t key = Kind::remove(t, container, number, thread.value, value_words_);
            t.write(tally.removed, removed + 1);
            if constexpr (has_history) report_change(key, version_of(thread.value, value_words_), 0);
        } else {
            const Item item{key_of(seed_, number, inserted)};
            [[maybe_unused]] const std::uint64_t* value = Kind::insert(t, container, number, item, value_words_);
            t.write(tally.inserted, inserted + 1);
            if constexpr (has_history) {
                Version version;
                for (std::uint64_t w = 0; w < value_words_; ++w) version.take(t.read(value[w]));
                report_change(item.key, 0, version.value());
            }
        }
        if (by != nullptr) t.write(*by, t.read(*by) + 1);
        if constexpr (has_history) report_change(number, found, version_of_tally(tally, read));
    }

    // The counts are possible, and what populating did comes before what was counted for threads.
    static std::uint64_t check_tallies(const Root* root, std::uint64_t counted) {
        std::uint64_t finished = 0;
        for (std::uint64_t i = 0; i < root->containers; ++i) {
            const Tally& tally = root->container[i].tally;
            if (tally.inserted >> operation_bits != 0 || tally.removed > tally.inserted) {
                DURASIM_VIOLATION("container %llu has impossible counts", static_cast<Long>(i));
            }
            finished += tally.finished();
        }
        const std::uint64_t populated = finished - counted;
        if (counted > finished || populated > root->populate || (counted != 0 && populated != root->populate)) {
            DURASIM_VIOLATION("the containers count %llu operations, but the threads %llu after populating %llu",
                              static_cast<Long>(finished), static_cast<Long>(counted), static_cast<Long>(root->populate));
        }
        for (std::uint64_t i = 0; i < root->containers; ++i) {
            const Tally& tally = root->container[i].tally;
            std::uint64_t expected = share_of(populated, root->containers, i);
            for (const std::uint64_t by : tally.by) expected += by;
            if (tally.finished() != expected) {
                DURASIM_VIOLATION("container %llu saw %llu operations, but should have seen %llu", static_cast<Long>(i),
                                  static_cast<Long>(tally.finished()), static_cast<Long>(expected));
            }
        }
        return finished;
    }

    static void check_container(const Root* root, std::uint64_t number, Audit& audit) {
        const Container& container = root->container[number];
        const std::uint64_t populating = share_of(root->populate, root->containers, number);
        typename Kind::Model model;
        std::uint64_t inserted = 0, removed = 0;
        for (std::uint64_t n = 0; n < container.tally.finished(); ++n) {
            if (n >= populating && removes(*root, number, n, inserted - removed)) {
                model.remove();
                ++removed;
            } else {
                model.insert(key_of(root->seed, number, inserted));
                ++inserted;
            }
        }
        if (inserted != container.tally.inserted) {
            DURASIM_VIOLATION("container %llu counts %llu insertions, but should count %llu", static_cast<Long>(number),
                              static_cast<Long>(container.tally.inserted), static_cast<Long>(inserted));
        }
        Kind::check(container, model, audit, root->value_bytes);
    }

    Root* root_ = nullptr;
    Teams teams_;
    std::uint64_t seed_ = 0;
    std::uint64_t containers_ = 0;
    std::uint64_t value_words_ = 0;
    std::uint64_t populated_ = 0;
    std::unique_ptr<TxLock[]> locks_;        // of the containers; a single thread needs none
    std::vector<std::uint64_t> finished_;  // by each thread: what the pool must hold
};

}  // namespace durasim

#endif
