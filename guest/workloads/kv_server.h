// A key-value server over any map of objects of guest/structures, under mixes of YCSB (Cooper et al., SoCC 2010): the
// key-value store of P-INSPECT (MICRO 2020, section VIII), which is QuickCached with its items in AutoPersist.
//
// Each thread is a client and the server's thread for it. The client writes a request as text, the server parses it, asks
// the map and writes its reply as text, and the client looks at that (kv_protocol.h). No network lies between them. A `set`
// makes a new value and stores the reference to it: one durable store outside of a region for most maps.
//
// Keys of records are mixed, so that their order is not that of the records; a request names a key by its 20 digits, and the
// maps have it as a number. Threads share all records. Each value says which operation has written it, so that the threads'
// own counts of operations say what has to be in the pool, except for the order in which threads met at a record.
//
// Each program says what is its own:
//
//     struct Program {
//         static constexpr std::uint64_t kind;                        // of the settings
//         static std::uint64_t parameter(const Arguments&, std::uint64_t shards);  // of each map in a new pool
//     };
#ifndef DURASIM_WORKLOADS_KV_SERVER_H
#define DURASIM_WORKLOADS_KV_SERVER_H

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "workloads/kv_protocol.h"
#include "workloads/object_shards.h"
#include "workloads/object_state.h"
#include "workloads/shards.h"
#include "workloads/ycsb_steps.h"

namespace durasim {

// Operations of 100. The last one is that of P-INSPECT's Table VIII: 5 % of insertions, 95 % of reads.
struct KvMix {
    const char* name;
    ycsb::Mix mix;
};
inline constexpr KvMix kv_mixes[] = {
    {"a", {'a', 50, 50, 0, 0, 0, ycsb::zipfian}},
    {"b", {'b', 95, 5, 0, 0, 0, ycsb::zipfian}},
    {"d", {'d', 95, 0, 5, 0, 0, ycsb::latest}},
    {"inserts", {'i', 95, 0, 5, 0, 0, ycsb::zipfian}},
};

template <class Map, class Program>
class KvServer {
    using Value = typename Map::Value;
    // The settings that a pool was made with.
    enum Setting : std::uint64_t { kind, seed, populated_records, threads, shards, mix_number, value_words, parameter, settings };
    using State = ObjectState<settings>;
    using Words = typename State::Words;
    using Shards = ObjectShards<Map, State::first_free_root>;
    using Step = ycsb::Step;
    using Kind = ycsb::Kind;

public:
    struct Thread {
        std::uint64_t number;
        std::uint64_t finished;  // operations; those of the first thread begin with the populating ones
        std::uint64_t inserted;
        bool has_read_nonsense;
    };

    // The number of records follows from the footprint, if that is given.
    static void complete(Arguments& arguments) {
        if (arguments.footprint_bytes == 0) return;
        constexpr std::uint64_t sample = std::uint64_t{1} << 20;
        arguments.populate = sample;
        const std::uint64_t bytes = bytes_of(arguments, sample, Program::parameter(arguments, 1)) / sample;
        arguments.populate = std::max<std::uint64_t>(1, arguments.footprint_bytes / bytes);
    }

    static std::uint64_t arenas(const Arguments&) { return 1; }

    static std::uint64_t pool_bytes(const Arguments& arguments) {
        check_arguments(arguments);
        const std::uint64_t live = live_bytes(arguments);
        // Replaced values are for the collector, which begins when half of the rest is taken.
        return live + std::max(live / 4, std::min(live, std::uint64_t{1} << 30)) + (std::uint64_t{8} << 20);
    }

    KvServer(Pool& pool, const Arguments& arguments) {
        check_arguments(arguments);
        const Words wanted = words_of(arguments);
        // Objects that are not durable yet, and what a map keeps in ordinary memory.
        const std::uint64_t volatile_bytes = live_bytes(arguments) / 4 + (std::uint64_t{16} << 20);
        const bool is_plain = !object_runtime.is_durable;
        object_runtime.attach(pool, detail::object_options(arguments, is_plain ? pool_bytes(arguments) : volatile_bytes), static_cast<unsigned>(arguments.threads));
        if (!State::is_made()) make(wanted);
        words_ = State::words();
        if (words_[kind] != Program::kind) fail(exit_usage, "%s: the pool belongs to another workload", program_name);
        for (std::uint64_t i = 0; i < settings; ++i) {
            if (words_[i] == wanted[i] || i == parameter) continue;
            fail(exit_usage, "%s: the pool was made with other arguments", program_name);
        }
        choices_ = std::make_unique<ycsb::Choices>(choices_of(words_));
        Shards::open(words_[shards]);
        load_states();
        finish_cut_operations();
        if (words_[threads] > 1) locks_ = std::make_unique<Lock[]>(words_[shards]);
        const std::uint64_t room = 8 * words_[value_words] + 2 * kv::line_bytes_max;
        for (std::uint64_t i = 0; i < words_[threads]; ++i) buffers_.push_back({std::vector<char>(room), std::vector<char>(room)});
    }

    std::uint64_t populated() const { return std::min(states_[0].finished, words_[populated_records]); }

    Thread enter(std::uint64_t number) {
        object_runtime.enter_thread(number);
        return states_[number];
    }
    void leave(const Thread& thread) {
        states_[thread.number] = thread;
        if constexpr (!has_history) State::leave(thread.number, thread.finished);
    }

    void populate_one(Thread& thread) {
        perform(thread, populating_step(*choices_, thread.finished));
        states_[0] = thread;
    }
    void operation(Thread& thread) {
        const Step step = choices_->step(thread.number, thread.finished, thread.inserted);
        perform(thread, step);
        thread.inserted += step.kind == Kind::insert;
    }

    void compare_with_model() {
        object_runtime.stop();
        object_runtime.enter_thread(0);
        for (const Thread& thread : states_) {
            State::expect_finished(thread.number, thread.finished);
            if (thread.has_read_nonsense) DURASIM_VIOLATION("thread %llu got replies that nobody wrote", static_cast<Long>(thread.number));
        }
        compare(words_, false);
    }

    void print_result() const {
        std::uint64_t records = populated();
        for (const Thread& thread : states_) records += thread.inserted;
        std::printf("records=%llu forwarders=%llu sweeps=%llu collections=%llu", static_cast<Long>(records), static_cast<Long>(object_runtime.forwarders()),
                    static_cast<Long>(object_runtime.sweeps()), static_cast<Long>(object_runtime.collections()));
        detail::print_handlers(object_runtime);
    }

    static void recover(const Pool& pool) { objects::ObjectRuntime::recover(pool); }

    static std::uint64_t check(const Pool& pool) {
        const auto made_with = State::open_for_check(pool);
        if (!made_with) return 0;
        const Words& words = *made_with;
        if (words[kind] != Program::kind || words[threads] == 0 || words[threads] > threads_max || words[shards] == 0 ||
            words[mix_number] >= std::size(kv_mixes) || words[populated_records] == 0) {
            DURASIM_VIOLATION("the settings of the pool are damaged");
        }
        return compare(words, true);
    }

    static void dump(const Pool& pool, Dump& dump) {
        const auto made_with = State::open_for_dump(pool, dump);
        if (!made_with) return;
        const Words& words = *made_with;
        const bool whole = Shards::each(words[shards], words[value_words], [&](auto& o, std::uint64_t key, Ref<Value> value) {
            dump.add(key, Shards::version_of(o, value));
        });
        if (!whole) dump.note_damage();
    }

private:
    struct Buffers {
        std::vector<char> request, reply;
    };

    static void check_arguments(const Arguments& arguments) {
        if (arguments.populate == 0) fail(exit_usage, "%s: --populate has to be at least 1", program_name);
        if (arguments.value_bytes % 8 != 0) {
            fail(exit_usage, "%s: --value-bytes has to be a multiple of 8, not %llu", program_name, static_cast<Long>(arguments.value_bytes));
        }
    }

    static std::uint64_t number_of_mix(const Arguments& arguments) {
        std::uint64_t number = 0;
        while (std::strcmp(kv_mixes[number].name, arguments.mix) != 0) ++number;
        return number;
    }

    static Words words_of(const Arguments& arguments) {
        const std::uint64_t maps = shards_of(arguments.shards, arguments.threads);
        return {Program::kind, arguments.seed, arguments.populate, arguments.threads, maps, number_of_mix(arguments),
                arguments.value_bytes / 8, Program::parameter(arguments, maps)};
    }

    static std::uint64_t bytes_of(const Arguments& arguments, std::uint64_t records, std::uint64_t parameter_of_map) {
        return Map::bytes_of(records, arguments.value_bytes / 8, parameter_of_map);
    }
    static std::uint64_t live_bytes(const Arguments& arguments) {
        const std::uint64_t maps = shards_of(arguments.shards, arguments.threads);
        const std::uint64_t percent = kv_mixes[number_of_mix(arguments)].mix.insert;
        const std::uint64_t records = arguments.populate + arguments.ops / 100 * percent + percent + spread_of(arguments.ops);
        return maps * bytes_of(arguments, records / maps + 1, Program::parameter(arguments, maps));
    }

    static void make(const Words& words) {
        object_runtime.operation([&](auto& o) {
            Shards::make(o, words[shards], words[parameter]);
            State::make(o, words, words[threads]);
        });
    }

    static ycsb::Choices choices_of(const Words& words) {
        const ycsb::Mix& mix = kv_mixes[words[mix_number]].mix;
        return {words[seed], mix, mix.distribution, words[populated_records]};
    }
    static Step populating_step(const ycsb::Choices& choices, std::uint64_t record) {
        return {Kind::insert, record, choices.populated_key(record), 0, operation_of(0, record) + 1};
    }
    // The number of a thread's first operation after the populating ones.
    static std::uint64_t first_of(const Words& words, std::uint64_t thread) { return thread == 0 ? words[populated_records] : 0; }
    static Step next_step(const Words& words, const ycsb::Choices& choices, std::uint64_t thread, std::uint64_t finished, std::uint64_t inserted) {
        if (finished < first_of(words, thread)) return populating_step(choices, finished);
        return choices.step(thread, finished, inserted);
    }

    void load_states() {
        for (std::uint64_t i = 0; i < words_[threads]; ++i) {
            Thread thread{i, State::finished(i), 0, false};
            for (std::uint64_t n = first_of(words_, i); n < thread.finished; ++n) thread.inserted += choices_->step(i, n, thread.inserted).kind == Kind::insert;
            states_.push_back(thread);
        }
    }

    // An operation that took effect and was not counted before the power failed is counted now. To do it again would be
    // right too, but not what happened.
    void finish_cut_operations() {
        if constexpr (!has_history) return;
        for (Thread& thread : states_) {
            if (thread.number != 0 && populated() < words_[populated_records]) break;
            const bool is_populating = thread.finished < first_of(words_, thread.number);
            const Step step = next_step(words_, *choices_, thread.number, thread.finished, thread.inserted);
            if (step.kind == Kind::read) continue;
            bool has_taken_effect = false;
            object_runtime.examine([&](auto& o) {
                const auto value = Map::find(o, Shards::map(o, Shards::shard_of(step.key, words_[shards])), step.key);
                has_taken_effect = value && o.at(value, 0) == step.writer;
            });
            if (!has_taken_effect) continue;
            ++thread.finished;
            thread.inserted += !is_populating && step.kind == Kind::insert;
            State::leave(thread.number, thread.finished);
        }
    }

    // The client's side.
    void perform(Thread& thread, const Step& step) {
        Buffers& buffers = buffers_[thread.number];
        const std::uint64_t request_bytes = write_request(step, buffers.request.data());
        const std::uint64_t reply_bytes = serve(thread, buffers.request.data(), request_bytes, buffers.reply.data());
        const kv::Reply reply = kv::parse_reply(buffers.reply.data(), reply_bytes, step.key);
        if (step.kind == Kind::read ? !is_value(reply, step.key) : !reply.is_stored) thread.has_read_nonsense = true;
        ++thread.finished;
    }

    std::uint64_t write_request(const Step& step, char* buffer) const {
        kv::Writer writer(buffer);
        if (step.kind == Kind::read) return writer.text("get ").key(step.key).text(kv::line_end).size_bytes();
        const std::uint64_t bytes = 8 * words_[value_words];
        writer.text("set ").key(step.key).text(" 0 0 ").number(bytes).text(kv::line_end);
        char* const data = writer.room(bytes);
        for (std::uint64_t i = 0; i < words_[value_words]; ++i) {
            const std::uint64_t word = word_of(step.key, step.writer, i);
            std::memcpy(data + 8 * i, &word, 8);
        }
        return writer.text(kv::line_end).size_bytes();
    }

    static std::uint64_t word_of(std::uint64_t key, std::uint64_t writer, std::uint64_t index) { return index == 0 ? writer : ycsb::filling(key, 0, writer, index); }

    // Whether the end of a value belongs to its beginning.
    bool is_value(const kv::Reply& reply, std::uint64_t key) const {
        const std::uint64_t last = words_[value_words] - 1;
        if (!reply.is_found || reply.data_bytes != 8 * words_[value_words]) return false;
        std::uint64_t writer = 0, end = 0;
        std::memcpy(&writer, reply.data, 8);
        std::memcpy(&end, reply.data + 8 * last, 8);
        return end == word_of(key, writer, last);
    }

    // The server's side. Returns the size of its reply.
    std::uint64_t serve(const Thread& thread, const char* text, std::uint64_t size_bytes, char* buffer) {
        const kv::Request request = kv::parse(text, size_bytes);
        kv::Writer reply(buffer);
        if (request.command == kv::Command::none || (request.command == kv::Command::set && request.data_bytes != 8 * words_[value_words])) {
            return reply.text("ERROR\r\n").size_bytes();
        }
        const std::uint64_t shard = Shards::shard_of(request.key, words_[shards]);
        std::unique_lock<Lock> held;
        if (locks_ != nullptr) held = std::unique_lock(locks_[shard]);
        object_runtime.operation([&](auto& o) {
            const auto map = Shards::map(o, shard);
            if (request.command == kv::Command::get) {
                get(o, map, request, reply);
            } else {
                set(o, map, request);
                reply.text("STORED\r\n");
            }
            State::count(o, thread.number, thread.finished + 1);
        });
        return reply.size_bytes();
    }

    template <class Operation>
    static void get(Operation& o, Ref<typename Map::Root> map, const kv::Request& request, kv::Writer& reply) {
        const auto value = Map::find(o, map, request.key);
        if (value) {
            const std::uint64_t words = o.length(value);
            reply.text("VALUE ").key(request.key).text(" 0 ").number(8 * words).text(kv::line_end);
            char* const data = reply.room(8 * words);
            for (std::uint64_t i = 0; i < words; ++i) {
                const std::uint64_t word = o.at(value, i);
                std::memcpy(data + 8 * i, &word, 8);
            }
            reply.text(kv::line_end);
        }
        reply.text("END\r\n");
    }

    template <class Operation>
    static void set(Operation& o, Ref<typename Map::Root> map, const kv::Request& request) {
        static Site sites(Value::placement);
        std::uint64_t before = 0;
        if constexpr (has_history) before = Shards::version_of(o, Map::find(o, map, request.key));
        auto value = o.template make_array<Value>(sites, request.data_bytes / 8);
        for (std::uint64_t i = 0; i < request.data_bytes / 8; ++i) {
            std::uint64_t word = 0;
            std::memcpy(&word, request.data + 8 * i, 8);
            value.set_at(i, word);
        }
        Map::put(o, map, request.key, value.finish());
        if constexpr (has_history) report_change(request.key, before, Shards::version_of(o, Map::find(o, map, request.key)));
    }

    // The content of the pool: the writer of each key.
    using Writers = std::unordered_map<std::uint64_t, std::uint64_t>;

    static Writers writers_in(const Words& words) {
        Writers found;
        const bool whole = Shards::each(words[shards], words[value_words], [&](auto& o, std::uint64_t key, Ref<Value> value) {
            const std::uint64_t writer = o.at(value, 0);
            for (std::uint64_t i = 1; i < words[value_words]; ++i) {
                if (o.at(value, i) != word_of(key, writer, i)) DURASIM_VIOLATION("word %llu of key %llx is not what its writer wrote", static_cast<Long>(i), static_cast<Long>(key));
            }
            if (!found.emplace(key, writer).second) DURASIM_VIOLATION("key %llx is there twice", static_cast<Long>(key));
        });
        if (!whole) DURASIM_VIOLATION("a map is damaged");
        return found;
    }

    // Holds the maps against what the counted operations leave; the operation of each thread after them may have taken
    // effect too if `is_cut`. Returns the number of counted operations.
    static std::uint64_t compare(const Words& words, bool is_cut) {
        const Writers found = writers_in(words);
        const std::uint64_t populated = std::min(State::finished(0), words[populated_records]);
        // With fewer records than are populated in the end there were no choices yet.
        const ycsb::Choices choices = populated == words[populated_records]
                                          ? choices_of(words)
                                          : ycsb::Choices(words[seed], kv_mixes[words[mix_number]].mix, ycsb::uniform, words[populated_records]);
        // Of each thread the last writer of each key, and of all threads the keys that are there.
        std::vector<Writers> own(words[threads]);
        std::unordered_map<std::uint64_t, std::uint64_t> known;  // key to the number of threads' writes of it
        std::uint64_t operations = 0;
        for (std::uint64_t thread = 0; thread < words[threads]; ++thread) {
            const std::uint64_t finished = State::finished(thread);
            if (thread != 0 && finished != 0 && populated < words[populated_records]) DURASIM_VIOLATION("there were operations before the pool was populated");
            operations += finished;
            std::uint64_t inserted = 0;
            const auto write = [&](const Step& step) {
                if (step.kind == Kind::read) return;
                own[thread][step.key] = step.writer;
                ++known[step.key];
            };
            for (std::uint64_t n = 0; n < finished; ++n) {
                const Step step = next_step(words, choices, thread, n, inserted);
                write(step);
                inserted += n >= first_of(words, thread) && step.kind == Kind::insert;
            }
            if (!is_cut || (thread != 0 && populated < words[populated_records])) continue;
            const Step next = next_step(words, choices, thread, finished, inserted);
            const auto there = found.find(next.key);
            if (there != found.end() && there->second == next.writer) write(next);
        }
        check_keys(found, known);
        for (const auto& [key, writer] : found) check_writer(words, own, key, writer);
        return operations;
    }

    static void check_keys(const Writers& found, const std::unordered_map<std::uint64_t, std::uint64_t>& known) {
        for (const auto& [key, writes] : known) {
            if (!found.contains(key)) DURASIM_VIOLATION("key %llx is not there, but an operation has inserted it", static_cast<Long>(key));
        }
        for (const auto& [key, writer] : found) {
            if (!known.contains(key)) DURASIM_VIOLATION("key %llx is there, but no operation left it", static_cast<Long>(key));
        }
    }

    // The last write of a key among all threads is also the last one of its own thread. What populating has
    // written stays until a thread writes the key.
    static void check_writer(const Words& words, const std::vector<Writers>& own, std::uint64_t key, std::uint64_t writer) {
        const std::uint64_t thread = (writer - 1) >> operation_bits;
        const auto last = thread < own.size() ? own[thread].find(key) : own[0].end();
        if (writer == 0 || thread >= own.size() || last == own[thread].end() || last->second != writer) {
            DURASIM_VIOLATION("key %llx was not last written by the operation that its value names", static_cast<Long>(key));
        }
        const bool is_populated = thread == 0 && ((writer - 1) & ((std::uint64_t{1} << operation_bits) - 1)) < words[populated_records];
        for (std::uint64_t other = 1; is_populated && other < own.size(); ++other) {
            if (own[other].contains(key)) DURASIM_VIOLATION("key %llx is as it was populated, but thread %llu has written it", static_cast<Long>(key), static_cast<Long>(other));
        }
    }

    Words words_{};
    std::unique_ptr<ycsb::Choices> choices_;
    std::unique_ptr<Lock[]> locks_;  // of the maps; a single thread needs none
    std::vector<Thread> states_;
    std::vector<Buffers> buffers_;  // by thread
};

}  // namespace durasim

#endif
