// durasim-workload: object-sharing — threads store to objects that other threads move to persistent memory, over objects
//
// A table in ordinary memory has a few objects that all threads know. Each thread writes increasing numbers to them, links
// them with each other, and makes its own durable slots refer to some: that moves an object and all that it reaches while
// others store to the same objects, or move them too. New objects take places in the table, so that there is always
// something to move. No locks: what each thread stores has a place of its own in each object.
//
// A thread finds what it has written to an object there again, whatever has become of the object. After a power failure
// the durable slots reach whole objects only, and in each of them, by thread:
//
// - The first word is at least the second, because they are stored in this order, and neither is newer than the counted
//   operations and the one after them.
// - If the thread has a target noted, its link refers to that object or to none: it is noted after the link is stored.
// - An object in a slot has in the second word at least the number that stands beside the slot: that was stored later.
// - Two words of the thread that it stores in regions only are the same.
//
// To the history (durasim/history.h) each thread reports its count of operations alone. An operation makes several durable
// stores, and a crash may show the first of them: what objects hold then is no version that an operation leaves.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <unordered_set>
#include <vector>

#include "durasim/objects.h"
#include "durasim/persist.h"
#include "durasim/random.h"
#include "workloads/object_state.h"

namespace durasim {
namespace {

class ObjectSharing {
    static constexpr std::uint64_t kind_of_pool = 0x676E6972616873;  // "sharing"
    static constexpr std::uint64_t table_root = 0;                   // of the volatile roots
    // Numbers that an operation may write, one after the other.
    static constexpr std::uint64_t rounds = 4;
    // Of ordinary memory that each thread has beside the objects: more than the caches of the campaigns hold.
    static constexpr std::uint64_t own_words = (std::uint64_t{256} << 10) / sizeof(std::uint64_t);
    static constexpr std::uint64_t words_of_a_line = 8;

    enum Setting : std::uint64_t { kind, seed, threads, slots, settings };
    using State = ObjectState<settings>;
    using Words = typename State::Words;

    struct Node;
    // A reference and a word for each thread. The words of a thread lie on different lines: the first, the second, the target.
    using Links = Array<Ref<Node>, Placement::durable>;
    using Numbers = Array<std::uint64_t, Placement::durable>;
    struct Node {
        static constexpr Placement placement = Placement::durable;
        static constexpr std::uint64_t references = 2;
        Ref<Links> links;
        Ref<Numbers> words;
        std::uint64_t id;       // 1 + the operation that has made it
        std::uint64_t seal;     // made from the id
        std::uint64_t retired;  // it has lost its place in the table: anybody may take its links away
    };
    using Table = Array<Ref<Node>, Placement::ordinary>;
    // The durable part of a thread: slots, beside each a number, and after these two words that only regions store.
    struct Account {
        static constexpr Placement placement = Placement::durable;
        static constexpr std::uint64_t references = 2;
        Ref<Links> slots;
        Ref<Numbers> acknowledged;
    };
    using Accounts = Array<Ref<Account>, Placement::durable>;

    // The value that a thread has stored to an object.
    static constexpr std::uint64_t unknown = ~std::uint64_t{0};
    struct Known {
        std::uint64_t id, number, target;
    };

public:
    struct Thread {
        std::uint64_t number;
        std::uint64_t finished;
        std::uint64_t looks = 0;  // at objects that it has stored to
        std::array<Known, 64> known{};  // by id; a newer object takes the place of an older one
        const char* problem = nullptr;  // of an object with this id
        std::uint64_t problem_id = 0;
        std::uint64_t next_own_word = 0;
    };

    static std::uint64_t arenas(const Arguments&) { return 1; }
    static std::uint64_t pool_bytes(const Arguments& arguments) { return heap_bytes(arguments) + (std::uint64_t{2} << 20); }

    ObjectSharing(Pool& pool, const Arguments& arguments) : arguments_(arguments) {
        if (percent_sum(arguments) > 100) fail(exit_usage, "%s: the percentages are more than 100 together", program_name);
        auto options = detail::object_options(arguments, heap_bytes(arguments));
        options.profile = false;  // or all objects would soon be born in persistent memory, and none would move
        object_runtime.attach(pool, options, static_cast<unsigned>(arguments.threads));
        const Words wanted = {kind_of_pool, arguments.seed, arguments.threads, arguments.slots};
        if (!State::is_made()) make_pool(wanted);
        words_ = State::words();
        if (words_[kind] != kind_of_pool) fail(exit_usage, "%s: the pool belongs to another workload", program_name);
        if (words_ != wanted) fail(exit_usage, "%s: the pool was made with other arguments", program_name);
        finish_cut_operations(words_);
        for (std::uint64_t i = 0; i < words_[threads]; ++i) states_.push_back({.number = i, .finished = State::finished(i)});
        make_table();
        if (arguments.own_lines != 0) own_words_.resize(words_[threads] * own_words);
    }

    // Objects that this process has made in the beginning: the table is gone with the power.
    std::uint64_t populated() const { return populated_; }

    Thread enter(std::uint64_t number) {
        object_runtime.enter_thread(number);
        return states_[number];
    }
    void populate_one(Thread& thread) {
        object_runtime.operation([&](auto& o) {
            const auto table = o.template volatile_root<Table>(table_root);
            make_node(o, thread, table, populated_ % arguments_.objects, o.at(table, (populated_ + 1) % arguments_.objects), false);
            count(o, thread);
        });
        fail_with_problem(thread);
        ++thread.finished;
        ++populated_;
    }
    void leave(const Thread& thread) {
        states_[thread.number] = thread;
        if constexpr (!has_history) State::leave(thread.number, thread.finished);
    }

    void operation(Thread& thread) {
        object_runtime.operation([&](auto& o) { perform(o, thread); });
        fail_with_problem(thread);
        ++thread.finished;
    }

    void compare_with_model() {
        object_runtime.stop();
        object_runtime.enter_thread(0);
        for (const Thread& thread : states_) State::expect_finished(thread.number, thread.finished);
        load_finished(words_);
        object_runtime.examine([&](auto& o) {
            each_node(o, words_, true, [&](Ref<Node> node) {
                check_node(o, words_, node);
                for (Thread& thread : states_) look(o, thread, node);
            });
        });
        for (const Thread& thread : states_) fail_with_problem(thread);
    }

    void print_result() const {
        std::uint64_t looks = 0;
        for (const Thread& thread : states_) looks += thread.looks;
        std::printf("looks=%llu forwarders=%llu sweeps=%llu collections=%llu", static_cast<Long>(looks), static_cast<Long>(object_runtime.forwarders()),
                    static_cast<Long>(object_runtime.sweeps()), static_cast<Long>(object_runtime.collections()));
        detail::print_handlers(object_runtime);
    }

    static void recover(const Pool& pool) { objects::ObjectRuntime::recover(pool); }

    static std::uint64_t check(const Pool& pool) {
        const auto made_with = State::open_for_check(pool);
        if (!made_with) return 0;
        const Words& words = *made_with;
        if (words[kind] != kind_of_pool || words[threads] == 0 || words[threads] > threads_max) {
            DURASIM_VIOLATION("the settings of the pool are damaged");
        }
        load_finished(words);
        object_runtime.examine([&](auto& o) {
            each_node(o, words, false, [&](Ref<Node> node) { check_node(o, words, node); });
            for (std::uint64_t i = 0; i < words[threads]; ++i) check_account(o, words, i);
        });
        std::uint64_t operations = 0;
        for (const std::uint64_t finished : finished_) operations += finished;
        return operations;
    }

    static void dump(const Pool& pool, Dump& dump) {
        const auto made_with = State::open_for_dump(pool, dump);
        if (!made_with) return;
        const Words& words = *made_with;
        for (std::uint64_t i = 0; i < words[threads]; ++i) dump.add(progress_object(i), State::finished(i));
    }

private:
    static std::uint64_t percent_sum(const Arguments& a) {
        return a.make_percent + a.publish_percent + a.link_percent + a.drop_percent + a.region_percent;
    }

    // Threads or slots, rounded up to a line.
    static constexpr std::uint64_t lanes(std::uint64_t count) { return (count + 7) / 8 * 8; }

    static std::uint64_t live_bytes(const Arguments& arguments) {
        const std::uint64_t node = objects::room_bytes(5) + objects::room_bytes(arguments.threads) + objects::room_bytes(3 * lanes(arguments.threads));
        return (2 * arguments.objects + arguments.threads * (arguments.slots + 2)) * node;
    }

    // So small that the collector has to work. Each thread has a chunk for each size of objects.
    static std::uint64_t heap_bytes(const Arguments& arguments) {
        return 64 * live_bytes(arguments) + 16 * arguments.threads * objects::chunk_bytes + (std::uint64_t{1} << 20);
    }

    static void load_finished(const Words& words) {
        finished_.clear();
        for (std::uint64_t i = 0; i < words[threads]; ++i) finished_.push_back(State::finished(i));
    }

    static void make_pool(const Words& words) {
        static Site array_sites(Accounts::placement), account_sites(Account::placement), slot_sites(Links::placement), number_sites(Numbers::placement);
        object_runtime.operation([&](auto& o) {
            auto accounts = o.template make_array<Accounts>(array_sites, words[threads]);
            for (std::uint64_t i = 0; i < words[threads]; ++i) {
                auto account = o.template make<Account>(account_sites);
                account.template set<&Account::slots>(o.template make_array<Links>(slot_sites, words[slots]).finish());
                account.template set<&Account::acknowledged>(o.template make_array<Numbers>(number_sites, lanes(words[slots]) + 16).finish());
                accounts.set_at(i, account.finish());
            }
            o.set_durable_root(State::first_free_root, accounts.finish());
            State::make(o, words, words[threads]);
        });
    }

    // Objects in the slots of an older run come into the table again.
    void make_table() {
        static Site sites(Table::placement);
        object_runtime.operation([&](auto& o) {
            auto table = o.template make_array<Table>(sites, arguments_.objects);
            std::uint64_t place = arguments_.objects;
            for (std::uint64_t i = 0; i < words_[threads] * words_[slots] && place > 0; ++i) {
                const auto node = o.at(o.template get<&Account::slots>(account_of(o, i / words_[slots])), i % words_[slots]);
                if (node) table.set_at(--place, node);
            }
            o.set_volatile_root(table_root, table.finish());
        });
    }

    // The numbers of an operation that has left something are not used again: its objects have them.
    static void finish_cut_operations(const Words& words) {
        if constexpr (!has_history) return;
        std::vector<std::uint64_t> begun(words[threads], 0);
        object_runtime.examine([&](auto& o) {
            each_node(o, words, false, [&](Ref<Node> node) {
                const std::uint64_t id = o.template get<&Node::id>(node) - 1;
                if (id >> operation_bits >= words[threads]) return;  // a check says what is wrong
                std::uint64_t& of_maker = begun[id >> operation_bits];
                of_maker = std::max(of_maker, (id & ((std::uint64_t{1} << operation_bits) - 1)) + 1);
                const auto numbers = o.template get<&Node::words>(node);
                for (std::uint64_t i = 0; i < words[threads]; ++i) begun[i] = std::max(begun[i], o.at(numbers, i) / rounds);
            });
        });
        for (std::uint64_t i = 0; i < words[threads]; ++i) {
            const std::uint64_t finished = State::finished(i);
            if (begun[i] <= finished) continue;
            object_runtime.operation([&](auto& o) {
                report_change(progress_object(i), finished, begun[i]);
                State::count(o, i, begun[i]);
            });
        }
    }

    template <class Operation>
    static Ref<Account> account_of(Operation& o, std::uint64_t thread) {
        return o.at(o.template durable_root<Accounts>(State::first_free_root), thread);
    }

    template <class Operation>
    static std::uint64_t id_of(Operation& o, Ref<Node> node) {
        return o.template get<&Node::id>(node);
    }
    static std::uint64_t seal_of(std::uint64_t id) { return mix(id ^ 0xD1B54A32D192ED03u); }

    Known& known_of(Thread& thread, std::uint64_t id) const { return thread.known[mix(id) % thread.known.size()]; }
    Known& learn(Thread& thread, std::uint64_t id) const {
        Known& known = known_of(thread, id);
        if (known.id != id) known = {id, unknown, unknown};
        return known;
    }

    template <class Operation>
    static void count(Operation& o, const Thread& thread) {
        if constexpr (has_history) report_change(progress_object(thread.number), thread.finished, thread.finished + 1);
        State::count(o, thread.number, thread.finished + 1);
    }

    template <class Operation>
    void perform(Operation& o, Thread& thread) {
        const Arguments& a = arguments_;
        Random random(mix(words_[seed]) + operation_of(thread.number, thread.finished) * 0x632BE59BD9B4E019u);
        const std::uint64_t percent = random.below(100), place = random.below(a.objects), slot = random.below(a.slots);
        const auto table = o.template volatile_root<Table>(table_root);
        // Held to the end of the operation, even if the objects move meanwhile.
        auto one = o.at(table, place);
        const auto other = o.at(table, random.below(a.objects));
        const bool flag = random.below(2) != 0;
        const bool publishes = percent >= a.make_percent && percent < a.make_percent + a.publish_percent;
        const bool follows = a.follow_percent != 0 && random.below(100) < a.follow_percent;
        const std::uint64_t whose = follows ? random.below(words_[threads]) : 0;
        if (one && follows && !publishes) one = follow(o, one, whose);
        if (!one || !other || percent < a.make_percent) {
            make_node(o, thread, table, place, other, flag && !a.publish_new_later);
        } else if (percent < a.make_percent + a.publish_percent) {
            publish(o, thread, slot, one, follows, whose);
            write(o, thread, one, 0);
        } else if (percent < a.make_percent + a.publish_percent + a.link_percent) {
            link(o, thread, one, other);
            link(o, thread, other, one);
        } else if (percent < percent_sum(a) - a.region_percent) {
            if (flag) publish(o, thread, slot, {});
            link(o, thread, one, {});
        } else if (percent < percent_sum(a)) {
            write_in_region(o, thread, one, other, slot);
        } else {
            for (std::uint64_t round = 0; round < rounds; ++round) write(o, thread, round % 2 == 0 ? one : other, round);
        }
        if (one) look(o, thread, one);
        if (other) look(o, thread, other);
        const bool was_in_region = one && other && percent >= percent_sum(a) - a.region_percent && percent < percent_sum(a);
        if (!was_in_region) count(o, thread);
    }

    // The next object that this one links to, from the link of that thread on; itself if there is none. The reference comes
    // from an object that may have moved, so it may be an address in persistent memory that nothing durable has referred to.
    template <class Operation>
    Ref<Node> follow(Operation& o, Ref<Node> node, std::uint64_t thread) const {
        const auto links = o.template get<&Node::links>(node);
        for (std::uint64_t i = 0; i < words_[threads]; ++i) {
            if (const auto next = o.at(links, (thread + i) % words_[threads])) return next;
        }
        return node;
    }

    template <class Operation>
    void make_node(Operation& o, Thread& thread, Ref<Table> table, std::uint64_t place, Ref<Node> target, bool publish_first) {
        static Site node_sites(Node::placement), link_sites(Links::placement), word_sites(Numbers::placement);
        const std::uint64_t own = thread.number, all = lanes(words_[threads]), id = operation_of(own, thread.finished) + 1;
        const std::uint64_t number = (thread.finished + 1) * rounds;
        auto links = o.template make_array<Links>(link_sites, words_[threads]);
        links.set_at(own, target);
        auto words = o.template make_array<Numbers>(word_sites, 3 * all);
        words.set_at(own, number);
        words.set_at(all + own, number);
        words.set_at(2 * all + own, target ? id_of(o, target) : 0);
        auto fresh = o.template make<Node>(node_sites);
        fresh.template set<&Node::links>(links.finish());
        fresh.template set<&Node::words>(words.finish());
        fresh.template set<&Node::id>(id);
        fresh.template set<&Node::seal>(seal_of(id));
        const auto node = fresh.finish();
        known_of(thread, id) = {id, number, target ? id_of(o, target) : 0};
        // As one that no other thread knows.
        if (publish_first) publish(o, thread, place % words_[slots], node);
        const auto old = o.at(table, place);
        durasim_full_fence();  // a finder of it in the table finds its content
        o.set_at(table, place, node);
        if (old) retire(o, old);
        look(o, thread, node);
    }

    // Without its links: or whatever is made would stay reachable from what was made later.
    template <class Operation>
    void retire(Operation& o, Ref<Node> node) {
        o.template set<&Node::retired>(node, 1);
        durasim_full_fence();  // who misses a link finds this
        const auto links = o.template get<&Node::links>(node);
        for (std::uint64_t i = 0; i < words_[threads]; ++i) {
            if (o.at(links, i)) o.set_at(links, i, {});
        }
    }

    template <class Operation>
    void write(Operation& o, Thread& thread, Ref<Node> node, std::uint64_t round) {
        const std::uint64_t number = (thread.finished + 1) * rounds + round, all = lanes(words_[threads]);
        const auto words = o.template get<&Node::words>(node);
        store_to_own_lines(thread, number);
        o.set_at(words, thread.number, number);
        o.set_at(words, all + thread.number, number);
        learn(thread, id_of(o, node)).number = number;
        const auto account = account_of(o, thread.number);
        const auto own = o.template get<&Account::slots>(account);
        for (std::uint64_t slot = 0; slot < words_[slots]; ++slot) {
            if (o.same(o.at(own, slot), node)) o.set_at(o.template get<&Account::acknowledged>(account), slot, number);
        }
    }

    // The next stores to the object leave the core's store buffer after these.
    void store_to_own_lines(Thread& thread, std::uint64_t number) {
        for (std::uint64_t i = 0; i < arguments_.own_lines; ++i) {
            volatile std::uint64_t& word = own_words_[thread.number * own_words + thread.next_own_word];
            word = number;
            thread.next_own_word = (thread.next_own_word + words_of_a_line) % own_words;
        }
    }

    template <class Operation>
    void link(Operation& o, Thread& thread, Ref<Node> node, Ref<Node> target) {
        const std::uint64_t id = target ? id_of(o, target) : 0, place = 2 * lanes(words_[threads]) + thread.number;
        o.set_at(o.template get<&Node::words>(node), place, 0);
        o.set_at(o.template get<&Node::links>(node), thread.number, target);
        o.set_at(o.template get<&Node::words>(node), place, id);
        learn(thread, id_of(o, node)).target = id;
    }

    template <class Operation>
    void publish(Operation& o, Thread& thread, std::uint64_t slot, Ref<Node> node, bool follows = false, std::uint64_t whose = 0) {
        const auto account = account_of(o, thread.number);
        o.set_at(o.template get<&Account::acknowledged>(account), slot, 0);
        if (follows) node = follow(o, node, whose);  // just before it is stored, so that it has not moved meanwhile
        o.set_at(o.template get<&Account::slots>(account), slot, node);
        if (!node) return;
        const std::uint64_t number = o.at(o.template get<&Node::words>(node), lanes(words_[threads]) + thread.number);
        o.set_at(o.template get<&Account::acknowledged>(account), slot, number);
    }

    // Links have no part in it: of a link and its target one may be stored before the object is durable, and then a recovery
    // takes the other one back alone.
    template <class Operation>
    void write_in_region(Operation& o, Thread& thread, Ref<Node> one, Ref<Node> other, std::uint64_t slot) {
        const std::uint64_t number = (thread.finished + 1) * rounds, pair = lanes(words_[slots]);
        o.region([&] {
            const auto acknowledged = o.template get<&Account::acknowledged>(account_of(o, thread.number));
            o.set_at(acknowledged, pair, number);
            write(o, thread, one, 0);
            publish(o, thread, slot, other);
            write(o, thread, other, 1);
            o.set_at(acknowledged, pair + 8, number);
            count(o, thread);
        });
    }

    // Holds an object against what the thread has stored there last. No other thread stores to these places.
    template <class Operation>
    void look(Operation& o, Thread& thread, Ref<Node> node) const {
        const std::uint64_t id = id_of(o, node), all = lanes(words_[threads]);
        if (o.template get<&Node::seal>(node) != seal_of(id)) return note(thread, id, "is damaged");
        const Known& known = known_of(thread, id);
        if (known.id != id) return;
        ++thread.looks;
        const auto words = o.template get<&Node::words>(node);
        const std::uint64_t first = o.at(words, thread.number), second = o.at(words, all + thread.number), target = o.at(words, 2 * all + thread.number);
        if (known.number != unknown && (first != known.number || second != known.number)) note(thread, id, "has lost a number");
        if (known.target == unknown) return;
        if (target != known.target) note(thread, id, "has lost the note of a target");
        const auto link = o.at(o.template get<&Node::links>(node), thread.number);
        durasim_full_fence();
        const bool is_retired = o.template get<&Node::retired>(node) != 0;
        if (link ? id_of(o, link) != target : target != 0 && !is_retired) note(thread, id, "has lost a link");
    }

    // Said when the operation has ended: a program that ends inside of one would wait for itself.
    static void note(Thread& thread, std::uint64_t id, const char* problem) {
        if (thread.problem == nullptr) thread.problem = problem, thread.problem_id = id;
    }
    static void fail_with_problem(const Thread& thread) {
        if (thread.problem == nullptr) return;
        DURASIM_VIOLATION("object %llx %s: thread %llu has stored there", static_cast<Long>(thread.problem_id), thread.problem, static_cast<Long>(thread.number));
    }

    // Calls each(node) once for every object that the slots reach, and the table if that is wanted.
    template <class Operation, class Each>
    static void each_node(Operation& o, const Words& words, bool with_table, Each&& each) {
        std::unordered_set<std::uint64_t> seen;  // ids
        std::vector<Ref<Node>> list;
        const auto reach = [&](Ref<Node> node) {
            if (node && seen.insert(id_of(o, node)).second) list.push_back(node);
        };
        for (std::uint64_t i = 0; i < words[threads]; ++i) {
            const auto own = o.template get<&Account::slots>(account_of(o, i));
            for (std::uint64_t slot = 0; slot < words[slots]; ++slot) reach(o.at(own, slot));
        }
        if (with_table) {
            const auto table = o.template volatile_root<Table>(table_root);
            for (std::uint64_t i = 0, places = o.length(table); i < places; ++i) reach(o.at(table, i));
        }
        while (!list.empty()) {
            const auto node = list.back();
            list.pop_back();
            const auto links = o.template get<&Node::links>(node);
            if (!links || o.length(links) != words[threads]) DURASIM_VIOLATION("object %llx has no links", static_cast<Long>(id_of(o, node)));
            each(node);
            for (std::uint64_t i = 0; i < words[threads]; ++i) reach(o.at(links, i));
        }
    }

    template <class Operation>
    static void check_node(Operation& o, const Words& words, Ref<Node> node) {
        const std::uint64_t id = id_of(o, node), all = lanes(words[threads]), made = id - 1;
        const std::uint64_t maker = made >> operation_bits, number = made & ((std::uint64_t{1} << operation_bits) - 1);
        if (o.template get<&Node::seal>(node) != seal_of(id)) DURASIM_VIOLATION("object %llx is damaged", static_cast<Long>(id));
        if (maker >= words[threads] || number > finished_[maker]) DURASIM_VIOLATION("nobody has made object %llx", static_cast<Long>(id));
        const auto numbers = o.template get<&Node::words>(node);
        if (!numbers || o.length(numbers) != 3 * all) DURASIM_VIOLATION("object %llx has no words", static_cast<Long>(id));
        for (std::uint64_t i = 0; i < words[threads]; ++i) {
            const std::uint64_t first = o.at(numbers, i), second = o.at(numbers, all + i), target = o.at(numbers, 2 * all + i);
            if (second > first) DURASIM_VIOLATION("object %llx holds a store of thread %llu, but not the one before", static_cast<Long>(id), static_cast<Long>(i));
            if (first / rounds > finished_[i] + 1) DURASIM_VIOLATION("object %llx holds a number that thread %llu has not stored", static_cast<Long>(id), static_cast<Long>(i));
            const auto link = o.at(o.template get<&Node::links>(node), i);
            if (link && target != 0 && id_of(o, link) != target) {
                DURASIM_VIOLATION("object %llx has not the link that thread %llu has stored", static_cast<Long>(id), static_cast<Long>(i));
            }
        }
    }

    template <class Operation>
    static void check_account(Operation& o, const Words& words, std::uint64_t thread) {
        const auto account = account_of(o, thread);
        const auto acknowledged = o.template get<&Account::acknowledged>(account);
        const std::uint64_t pair = lanes(words[slots]);
        if (o.at(acknowledged, pair) != o.at(acknowledged, pair + 8)) DURASIM_VIOLATION("a region of thread %llu is torn", static_cast<Long>(thread));
        for (std::uint64_t slot = 0; slot < words[slots]; ++slot) {
            const auto node = o.at(o.template get<&Account::slots>(account), slot);
            const std::uint64_t number = node ? o.at(o.template get<&Node::words>(node), lanes(words[threads]) + thread) : 0;
            if (number < o.at(acknowledged, slot)) {
                DURASIM_VIOLATION("slot %llu of thread %llu refers to an object without what the thread has stored", static_cast<Long>(slot), static_cast<Long>(thread));
            }
        }
    }

    // The number of operations that each thread had finished, as the pool says, for the check of one object.
    static inline std::vector<std::uint64_t> finished_;

    const Arguments arguments_;
    Words words_{};
    std::uint64_t populated_ = 0;
    std::vector<Thread> states_;
    std::vector<std::uint64_t> own_words_;  // by thread
};

}  // namespace
}  // namespace durasim

int main(int argc, char** argv) { return durasim::workload_main<durasim::ObjectSharing>(argc, argv); }
