// Workloads over lists of objects (guest/structures/object_lists.h): reads, insertions, replacements and removals at random
// indices (object_list_steps.h). Each thread has a list of its own.
//
// Each program says of what kind its settings are: struct Program { static constexpr std::uint64_t kind; }.
//
// To the history a list is one object, and its version a hash over all ids and values in order: 0 without elements.
#ifndef DURASIM_WORKLOADS_OBJECT_LISTS_H
#define DURASIM_WORKLOADS_OBJECT_LISTS_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "structures/object_lists.h"
#include "workloads/object_list_steps.h"
#include "workloads/object_state.h"

namespace durasim {

template <class List, class Program>
class ObjectLists {
    using Root = typename List::Root;
    using Lists = Array<Ref<Root>, Placement::durable>;
    // The settings that a pool was made with.
    enum Setting : std::uint64_t { kind, seed, populated_items, threads, searches, updates, erasures, value_words, settings };
    using State = ObjectState<settings>;
    using Words = typename State::Words;

    // The identity of an element of the model: its value follows from these.
    struct Entry {
        std::uint64_t id;
        std::uint64_t stamp;
    };
    using Model = std::vector<Entry>;

public:
    struct Thread {
        ListSteps steps;
        std::uint64_t found;  // a sum over what searches have found
    };

    static std::uint64_t arenas(const Arguments&) { return 1; }

    static std::uint64_t pool_bytes(const Arguments& arguments) {
        check_arguments(arguments);
        return heap_bytes(arguments) + (std::uint64_t{8} << 20);
    }

    // The log of a thread has to have room for what one region stores: a line for each word, and one for its state.
    static std::uint64_t log_bytes_min(const Arguments& arguments) {
        const std::uint64_t words = List::region_words_max(length_max(arguments));
        return words == 0 ? 0 : line_bytes * (words + 2);
    }

    ObjectLists(Pool& pool, const Arguments& arguments) {
        check_arguments(arguments);
        const std::uint64_t volatile_bytes = heap_bytes(arguments) + (std::uint64_t{16} << 20);
        object_runtime.attach(pool, detail::object_options(arguments, volatile_bytes), static_cast<unsigned>(arguments.threads));
        const Words wanted = words_of(arguments);
        if (!State::is_made()) make(wanted);
        words_ = State::words();
        if (words_[kind] != Program::kind) fail(exit_usage, "%s: the pool belongs to another workload", program_name);
        if (words_ != wanted) fail(exit_usage, "%s: the pool was made with other arguments", program_name);
        check_log(arguments);
        finish_cut_lists(words_);
        for (std::uint64_t i = 0; i < words_[threads]; ++i) states_.push_back({steps_at(words_, i, State::finished(i)), 0});
        finish_cut_operations();
    }

    std::uint64_t populated() const { return std::min(states_[0].steps.finished(), words_[populated_items]); }

    Thread enter(std::uint64_t number) {
        object_runtime.enter_thread(number);
        return states_[number];
    }
    // A whole block, to keep it from being quadratic: an array is copied for each.
    void populate_one(Thread& thread) {
        operation(thread);
        states_[0] = thread;
    }
    void leave(const Thread& thread) {
        states_[thread.steps.thread()] = thread;
        if constexpr (!has_history) State::leave(thread.steps.thread(), thread.steps.finished());
    }

    void operation(Thread& thread) {
        const ListStep step = thread.steps.next();
        object_runtime.operation([&](auto& o) { perform(o, thread, step); });
        thread.steps.finish(step);
    }

    void compare_with_model() {
        object_runtime.stop();
        object_runtime.enter_thread(0);
        for (const Thread& thread : states_) State::expect_finished(thread.steps.thread(), thread.steps.finished());
        compare(words_, false);
    }

    void print_result() const {
        std::uint64_t elements = 0, found = 0;
        for (const Thread& thread : states_) {
            elements += thread.steps.length();
            found += thread.found;
        }
        std::printf("elements=%llu found=%llx forwarders=%llu sweeps=%llu collections=%llu", static_cast<Long>(elements), static_cast<Long>(found),
                    static_cast<Long>(object_runtime.forwarders()), static_cast<Long>(object_runtime.sweeps()),
                    static_cast<Long>(object_runtime.collections()));
        detail::print_handlers(object_runtime);
    }

    static void recover(const Pool& pool) { objects::ObjectRuntime::recover(pool); }

    static std::uint64_t check(const Pool& pool) {
        const auto made_with = State::open_for_check(pool);
        if (!made_with) return 0;
        const Words& words = *made_with;
        if (words[kind] != Program::kind || words[threads] == 0 || words[threads] > threads_max) {
            DURASIM_VIOLATION("the settings of the pool are damaged");
        }
        return compare(words, true);
    }

    static void dump(const Pool& pool, Dump& dump) {
        const auto made_with = State::open_for_dump(pool, dump);
        if (!made_with) return;
        const Words& words = *made_with;
        object_runtime.examine([&](auto& o) {
            for (std::uint64_t i = 0; i < words[threads]; ++i) {
                const auto list = list_of(o, i);
                if (!list || !List::is_whole(o, list, true) || !List::each(o, list, [&](auto element) { return is_element(o, words, element); })) {
                    dump.note_damage();
                } else if (const std::uint64_t version = version_of_list(o, list)) {
                    dump.add(i, version);
                }
            }
        });
    }

private:
    static Percentages percentages_of(const Arguments& arguments) {
        return {arguments.search_percent, arguments.update_percent, arguments.erase_percent};
    }
    static ListSettings settings_of(const Words& words) {
        return {words[seed], words[threads], words[populated_items], {words[searches], words[updates], words[erasures]}};
    }

    static void check_arguments(const Arguments& arguments) {
        if (arguments.value_bytes % 8 != 0) {
            fail(exit_usage, "%s: --value-bytes has to be a multiple of 8, not %llu", program_name, static_cast<Long>(arguments.value_bytes));
        }
        if (!percentages_of(arguments).are_possible()) {
            fail(exit_usage, "%s: --search-percent, --update-percent and --erase-percent are more than 100 together", program_name);
        }
    }

    // Before the first operation: not in the middle of one, after hours.
    static void check_log(const Arguments& arguments) {
        const auto* header = reinterpret_cast<const PoolHeader*>(pool_address);
        if (Runtime::log_kind == LogKind::none || header->bytes_per_log() >= log_bytes_min(arguments)) return;
        fail(exit_usage, "%s: a region may shift the whole list, and a log of %llu bytes has no room for that; make a new pool with --log-bytes %llu",
             program_name, static_cast<Long>(header->bytes_per_log()), static_cast<Long>(log_bytes_min(arguments)));
    }

    static Words words_of(const Arguments& arguments) {
        const Percentages percentages = percentages_of(arguments);
        return {Program::kind, arguments.seed, arguments.populate, arguments.threads, percentages.search, percentages.update, percentages.erase,
                arguments.value_bytes / 8};
    }

    // More elements than one list ever has: removals left out, and some more insertions than are to be expected.
    static std::uint64_t length_max(const Arguments& arguments) {
        const std::uint64_t ops = arguments.ops / arguments.threads + 1, mean = ops * percentages_of(arguments).insert() / 100;
        return arguments.populate / arguments.threads + 1 + std::min(ops, mean + mean / 8 + 100);
    }

    // Twice what is in use, the arrays of some insertions (a collection costs as much as the copying of a few), and for each
    // thread a chunk for each size of objects.
    static std::uint64_t heap_bytes(const Arguments& arguments) {
        constexpr std::uint64_t insertions_per_collection = 32;
        const std::uint64_t length = length_max(arguments);
        const std::uint64_t live = arguments.threads * List::bytes_of(length, arguments.value_bytes / 8);
        return 2 * live + insertions_per_collection * List::garbage_bytes(length) + 8 * arguments.threads * objects::chunk_bytes;
    }

    static void make(const Words& words) {
        static Site sites(Placement::durable);
        object_runtime.operation([&](auto& o) {
            auto lists = o.template make_array<Lists>(sites, words[threads]);
            for (std::uint64_t i = 0; i < words[threads]; ++i) lists.set_at(i, List::make(o));
            o.set_durable_root(State::first_free_root, lists.finish());
            State::make(o, words, words[threads]);
        });
    }

    static void finish_cut_lists(const Words& words) {
        for (std::uint64_t i = 0; i < words[threads]; ++i) {
            object_runtime.operation([&](auto& o) { List::finish_cut_operation(o, list_of(o, i)); });
        }
    }

    static ListSteps steps_at(const Words& words, std::uint64_t thread, std::uint64_t finished) {
        ListSteps steps(settings_of(words), thread);
        while (steps.finished() < finished) steps.finish(steps.next());
        return steps;
    }

    // An operation that took effect and was not counted before the power failed is counted now. To do it again would be
    // wrong: a list would have the element twice.
    void finish_cut_operations() {
        if constexpr (!has_history) return;
        for (Thread& thread : states_) {
            if (thread.steps.thread() != 0 && states_[0].steps.is_populating()) break;
            const ListStep step = thread.steps.next();
            if (step.kind == StepKind::search || !has_taken_effect(thread, step)) continue;
            thread.steps.finish(step);
            State::leave(thread.steps.thread(), thread.steps.finished());
        }
    }

    bool has_taken_effect(const Thread& thread, const ListStep& step) const {
        bool has = false;
        object_runtime.examine([&](auto& o) {
            const auto list = list_of(o, step.list);
            const std::uint64_t length = List::length(o, list), before = step.is_populating ? step.index : thread.steps.length();
            if (step.kind == StepKind::update) {
                const auto element = List::at(o, list, step.index);
                has = o.at(element, 1) == word_of(o.at(element, 0), step.stamp, 0);
            } else {
                has = length != before;
            }
        });
        return has;
    }

    template <class Operation>
    static Ref<Root> list_of(Operation& o, std::uint64_t number) {
        return o.at(o.template durable_root<Lists>(State::first_free_root), number);
    }

    template <class Operation>
    static std::uint64_t version_of_list(Operation& o, Ref<Root> list) {
        Version version;
        bool is_empty = true;
        List::each(o, list, [&](auto element) {
            is_empty = false;
            for (std::uint64_t i = 0, words = o.length(element); i < words; ++i) version.take(o.at(element, i));
            return true;
        });
        return is_empty ? 0 : version.value();
    }

    template <class Operation>
    void perform(Operation& o, Thread& thread, const ListStep& step) {
        const auto list = list_of(o, step.list);
        std::uint64_t before = 0;
        if constexpr (has_history) before = version_of_list(o, list);
        // When the list is as the operation leaves it: in its region, if there is one.
        const auto finish = [&] {
            if constexpr (has_history) report_change(step.list, before, version_of_list(o, list));
            State::count(o, thread.steps.thread(), thread.steps.finished() + step.items);
        };
        if (step.is_populating) {
            const std::uint64_t first = thread.steps.finished();
            const auto make_item = [&](std::uint64_t i) { return make_element(o, populated_id(settings_of(words_), first + i), 0); };
            List::append_all(o, list, step.items, make_item, finish);
            return;
        }
        switch (step.kind) {
            case StepKind::insert: List::insert(o, list, step.index, make_element(o, step.id, 0), finish); break;
            case StepKind::update: update(o, list, step, finish); break;
            case StepKind::erase: List::erase(o, list, step.index, finish); break;
            case StepKind::search:
                search(o, list, step.index, thread);
                finish();
                break;
        }
    }

    template <class Operation>
    Ref<ListElement> make_element(Operation& o, std::uint64_t id, std::uint64_t stamp) {
        static Site sites(ListElement::placement);
        auto element = o.template make_array<ListElement>(sites, 1 + words_[value_words]);
        element.set_at(0, id);
        for (std::uint64_t i = 0; i < words_[value_words]; ++i) element.set_at(1 + i, word_of(id, stamp, i));
        return element.finish();
    }

    template <class Operation, class Finish>
    void update(Operation& o, Ref<Root> list, const ListStep& step, Finish&& finish) {
        const std::uint64_t id = o.at(List::at(o, list, step.index), 0);
        List::replace(o, list, step.index, make_element(o, id, step.stamp), finish);
    }

    template <class Operation>
    static void search(Operation& o, Ref<Root> list, std::uint64_t index, Thread& thread) {
        const auto element = List::at(o, list, index);
        for (std::uint64_t i = 0, words = o.length(element); i < words; ++i) thread.found = thread.found * 31 + o.at(element, i);
    }

    template <class Operation>
    static bool is_element(Operation& o, const Words& words, Ref<ListElement> element) {
        return element && o.length(element) == 1 + words[value_words];
    }

    template <class Operation>
    static bool is_like(Operation& o, const Words& words, Ref<ListElement> element, const Entry& entry) {
        if (!is_element(o, words, element) || o.at(element, 0) != entry.id) return false;
        for (std::uint64_t i = 0; i < words[value_words]; ++i) {
            if (o.at(element, 1 + i) != word_of(entry.id, entry.stamp, i)) return false;
        }
        return true;
    }

    static void apply(const ListSettings& settings, std::uint64_t populated_before, const ListStep& step, Model& model) {
        const auto place = model.begin() + static_cast<std::ptrdiff_t>(step.index);
        if (step.is_populating) {
            for (std::uint64_t i = 0; i < step.items; ++i) model.push_back({populated_id(settings, populated_before + i), 0});
        } else if (step.kind == StepKind::insert) {
            model.insert(place, {step.id, 0});
        } else if (step.kind == StepKind::update) {
            place->stamp = step.stamp;
        } else if (step.kind == StepKind::erase) {
            model.erase(place);
        }
    }

    // The content of list `number` after the counted operations.
    static Model model_of(const Words& words, std::uint64_t number) {
        const ListSettings settings = settings_of(words);
        const std::uint64_t populated = std::min(State::finished(0), settings.populated);
        const std::uint64_t first = share_before(settings.populated, settings.threads, number);
        const std::uint64_t end = std::min(populated, share_before(settings.populated, settings.threads, number + 1));
        Model model;
        for (std::uint64_t item = first; item < end; ++item) model.push_back({populated_id(settings, item), 0});
        ListSteps steps(settings, number);
        for (const std::uint64_t finished = State::finished(number); steps.finished() < finished;) {
            const ListStep step = steps.next();
            if (!step.is_populating) apply(settings, 0, step, model);
            steps.finish(step);
        }
        return model;
    }

    // Applies the operation after the counted ones that may have changed list `number`. False if there is none.
    static bool apply_cut_operation(const Words& words, std::uint64_t number, Model& model) {
        const ListSettings settings = settings_of(words);
        const std::uint64_t items = State::finished(0);
        const ListStep step = items < settings.populated ? populating_step(settings, items) : steps_at(words, number, State::finished(number)).next();
        if (step.list != number) return false;
        apply(settings, items, step, model);
        return true;
    }

    static bool is_like(const Words& words, std::uint64_t number, const Model& model) {
        bool same = true;
        object_runtime.examine([&](auto& o) {
            std::uint64_t at = 0;
            same = List::each(o, list_of(o, number), [&](auto element) { return at < model.size() && is_like(o, words, element, model[at++]); });
            same = same && at == model.size();
        });
        return same;
    }

    // Holds the lists against what the counted operations leave; the operation of each thread after them may have taken
    // effect too if `is_cut`. Returns the number of counted operations.
    static std::uint64_t compare(const Words& words, bool is_cut) {
        std::uint64_t operations = 0;
        for (std::uint64_t number = 0; number < words[threads]; ++number) {
            bool whole = false;
            object_runtime.examine([&](auto& o) {
                const auto list = list_of(o, number);
                whole = list && List::is_whole(o, list, is_cut);
            });
            if (!whole) DURASIM_VIOLATION("list %llu is damaged", static_cast<Long>(number));
            operations += State::finished(number);
            Model model = model_of(words, number);
            if (is_like(words, number, model)) continue;
            if (!is_cut || !apply_cut_operation(words, number, model) || !is_like(words, number, model)) {
                DURASIM_VIOLATION("list %llu is not what its operations leave", static_cast<Long>(number));
            }
        }
        return operations;
    }

    Words words_{};
    std::vector<Thread> states_;
};

}  // namespace durasim

#endif
