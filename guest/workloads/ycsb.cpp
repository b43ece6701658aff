// durasim-workload: ycsb — the core workloads A to F of YCSB over a hash table or a B+-tree, one transaction each operation
//
// The mixes are those of Cooper et al. (SoCC 2010): A reads and updates (50/50), B the same (95/5), C reads, D reads and
// inserts (95/5, the latest records), E scans and inserts (95/5, up to 100 records, on the tree), F reads and reads-modifies-
// writes (50/50). The default value of 1000 bytes is the record of YCSB, ten fields of 100 bytes; it is read and written as
// a whole. An update modifies value-bytes / 64 lines and the counter of its thread, a read that counter alone.
//
// Zipfian choices are made over the populated records (zipfian.h) and scattered over them, the latest ones over as many
// records as were populated, counted back from the newest that the thread knows: its own insertions and what was populated.
// A scan ends at the end of its shard, so that every operation holds one lock.
//
// Threads share all records. Each record counts its updates and says who wrote it last, so that the threads' own counts of
// operations say what has to be in the pool, except for the order in which threads met at a record.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "structures/either_map.h"
#include "workloads/shards.h"
#include "workloads/ycsb_steps.h"

namespace {

using durasim::Arguments;
using durasim::EitherMap;
using durasim::Long;
using durasim::MapShape;
using durasim::Pool;
using durasim::ShardsRoot;
using durasim::Tx;
using durasim::ycsb::Choices;
using durasim::ycsb::Kind;
using durasim::ycsb::Step;
using Shards = durasim::Shards<EitherMap>;

constexpr std::uint64_t kind_of_root = 0x62736379;  // "ycsb"

class Ycsb {
public:
    static std::uint64_t arenas(const Arguments& arguments) { return durasim::shards_of(arguments.shards, arguments.threads); }

    static std::uint64_t pool_bytes(const Arguments& arguments) {
        const ShardsRoot root = root_of(arguments);
        const std::uint64_t percent = mix_of(root).insert, ops = arguments.ops;
        const std::uint64_t inserts = percent == 0 ? 0 : std::min(ops, ops / 100 * percent + percent + durasim::spread_of(ops));
        const MapShape shape{root.value_bytes(), root.parameter, false};
        const std::uint64_t records = arguments.populate + inserts;
        return Shards::pool_bytes(shape, root.shards, root.threads, records, records);
    }

    Ycsb(Pool& pool, const Arguments& arguments) : choices_(choices_of(root_of(arguments))) {
        ShardsRoot wanted = root_of(arguments);
        if (pool.root<ShardsRoot>() == nullptr) Shards::make(pool, wanted, false);
        auto* root = pool.root<ShardsRoot>();
        if (root->kind != kind_of_root) durasim::fail(durasim::exit_usage, "ycsb: the pool belongs to another workload");
        const bool same_store = EitherMap::is_tree(root->parameter) == EitherMap::is_tree(wanted.parameter);
        if (arguments.buckets == 0 && same_store && !EitherMap::is_tree(root->parameter)) wanted.parameter = root->parameter;
        if (!root->is_like(wanted)) refuse(*root);
        shards_ = Shards(root, false);
        for (std::uint64_t i = 0; i < root->threads; ++i) {
            Counts counts{shards_.finished(i), 0, false};
            for (std::uint64_t n = first_of(*root, i); n < counts.finished; ++n) {
                counts.inserted += choices_.step(i, n, counts.inserted).kind == Kind::insert;
            }
            counts_.push_back(counts);
        }
        if (root->threads > 1) locks_ = std::make_unique<durasim::TxLock[]>(root->shards);
    }

    std::uint64_t populated() const { return std::min(shards_.finished(0), choices_.populated()); }

    // Of a thread.
    struct Counts {
        std::uint64_t finished;  // operations; those of the first thread begin with the populating ones
        std::uint64_t inserted;
        bool has_read_nonsense;
    };

    struct Thread {
        std::uint64_t number;
        Counts counts;
        std::uint64_t buffer[durasim::value_bytes_max / 8];  // what an operation has read
    };

    Thread enter(std::uint64_t number) const { return {number, counts_[number], {}}; }
    void leave(const Thread& thread) { counts_[thread.number] = thread.counts; }

    void populate_one(Thread& thread) {
        const std::uint64_t record = thread.counts.finished;
        perform(thread, {Kind::insert, record, choices_.populated_key(record), 0, 0});
    }

    void operation(Thread& thread) {
        const Step step = choices_.step(thread.number, thread.counts.finished, thread.counts.inserted);
        perform(thread, step);
        thread.counts.inserted += step.kind == Kind::insert;
    }

    void compare_with_model() const {
        // The check has replayed what the pool says was done; here remains whether that is what was done.
        for (std::uint64_t i = 0; i < counts_.size(); ++i) {
            if (counts_[i].finished != shards_.finished(i)) {
                DURASIM_VIOLATION("thread %llu made %llu operations, but the pool says %llu", static_cast<Long>(i),
                                  static_cast<Long>(counts_[i].finished), static_cast<Long>(shards_.finished(i)));
            }
            if (counts_[i].has_read_nonsense) DURASIM_VIOLATION("thread %llu found records that nobody wrote", static_cast<Long>(i));
        }
    }

    void print_result() const {
        std::uint64_t records = populated();
        for (const Counts& counts : counts_) records += counts.inserted;
        std::printf("records=%llu", static_cast<Long>(records));
    }

    static std::uint64_t check(const Pool& pool);
    static void dump(const Pool& pool, durasim::Dump& dump) { Shards::dump(pool, dump); }

private:
    static const durasim::ycsb::Mix& mix_of(const ShardsRoot& root) { return durasim::ycsb::mixes[root.settings[0]]; }
    static Choices choices_of(const ShardsRoot& root) {
        return {root.seed, mix_of(root), static_cast<durasim::ycsb::Distribution>(root.settings[1]), root.populated};
    }
    // The number of a thread's first operation after the populating ones.
    static std::uint64_t first_of(const ShardsRoot& root, std::uint64_t thread) { return thread == 0 ? root.populated : 0; }

    static ShardsRoot root_of(const Arguments& arguments) {
        using namespace durasim::ycsb;
        const bool is_tree = std::strcmp(arguments.store, "btree") == 0;
        if (arguments.populate == 0) durasim::fail(durasim::exit_usage, "ycsb: --populate has to be at least 1");
        if (arguments.value_bytes % 8 != 0 || arguments.node_bytes % durasim::line_bytes != 0) {
            durasim::fail(durasim::exit_usage, "ycsb: --value-bytes has to be a multiple of 8 and --node-bytes one of 64");
        }
        ShardsRoot root{};
        root.kind = kind_of_root;
        root.seed = arguments.seed;
        root.populated = static_cast<std::uint32_t>(arguments.populate);
        root.shards = static_cast<std::uint16_t>(arenas(arguments));
        root.threads = static_cast<std::uint8_t>(arguments.threads);
        root.value_words_more = static_cast<std::uint16_t>(arguments.value_bytes / 8 - 1);
        while (mixes[root.settings[0]].letter != arguments.mix[0]) ++root.settings[0];
        if (mix_of(root).scan != 0 && !is_tree) {
            durasim::fail(durasim::exit_usage, "ycsb: --mix %s scans in the order of the keys; use --store btree", arguments.mix);
        }
        root.settings[1] = mix_of(root).distribution;
        for (std::uint8_t i = 0; i < 3; ++i) {
            if (std::strcmp(arguments.distribution, distribution_names[i]) == 0) root.settings[1] = i;
        }
        const std::uint64_t buckets = arguments.buckets != 0 ? arguments.buckets : arguments.populate + arguments.ops * mix_of(root).insert / 100;
        const std::uint64_t parameter = is_tree ? EitherMap::of_tree(arguments.node_bytes)
                                                : EitherMap::of_table(durasim::HashTable::entries_for(buckets, root.shards));
        root.parameter = static_cast<std::uint32_t>(parameter);
        return root;
    }

    [[noreturn]] static void refuse(const ShardsRoot& root) {
        const bool is_tree = EitherMap::is_tree(root.parameter);
        const std::uint64_t size = EitherMap::size_of(root.parameter) * (is_tree ? 1 : root.shards);
        durasim::fail(durasim::exit_usage,
                      "ycsb: the pool was made with --seed %llu --populate %llu --threads %llu --shards %llu --mix %c "
                      "--distribution %s --value-bytes %llu --store %s --%s %llu; use these",
                      static_cast<Long>(root.seed), static_cast<Long>(root.populated), static_cast<Long>(root.threads),
                      static_cast<Long>(root.shards), mix_of(root).letter, durasim::ycsb::distribution_names[root.settings[1]],
                      static_cast<Long>(root.value_bytes()), is_tree ? "btree" : "hash-table", is_tree ? "node-bytes" : "buckets",
                      static_cast<Long>(size));
    }

    void perform(Thread& thread, const Step& step) {
        const std::uint64_t shard = durasim::shard_of(step.key, shards_.shards());
        std::unique_lock<durasim::TxLock> held;
        if (locks_ != nullptr) held = std::unique_lock(locks_[shard]);
        bool makes_sense = true;
        durasim::tx([&](Tx& t) {
            makes_sense = true;
            EitherMap map = shards_.map(shard);
            switch (step.kind) {
                case Kind::scan:
                    map.scan(t, step.key, step.scan_records, [&](std::uint64_t key, const std::uint64_t* value) {
                        makes_sense = read(t, thread, key, value) && makes_sense;
                    });
                    break;
                case Kind::read:
                    makes_sense = read(t, thread, step.key, map.find(t, step.key));
                    break;
                case Kind::insert: {
                    std::uint64_t* value = map.insert(t, step.key);
                    write(t, value, step, 0);
                    if constexpr (durasim::has_history) durasim::report_change(step.key, 0, shards_.version(t, value));
                    break;
                }
                case Kind::update:
                case Kind::modify: {
                    std::uint64_t* value = map.find(t, step.key);
                    [[maybe_unused]] const std::uint64_t before = durasim::has_history ? shards_.version(t, value) : 0;
                    if (value == nullptr || step.kind == Kind::modify) makes_sense = read(t, thread, step.key, value);
                    if (value != nullptr) write(t, value, step, t.read(value[durasim::ycsb::word_updates]) + 1);
                    if constexpr (durasim::has_history) durasim::report_change(step.key, before, shards_.version(t, value));
                    break;
                }
            }
            shards_.count(t, thread.number, thread.counts.finished + 1, true);
        });
        ++thread.counts.finished;
        thread.counts.has_read_nonsense |= !makes_sense;
    }

    void write(Tx& t, std::uint64_t* value, const Step& step, std::uint64_t updates) {
        using namespace durasim::ycsb;
        t.write(value[word_updates], updates);
        t.write(value[word_writer], step.writer);
        for (std::uint64_t i = words_head; i < shards_.words(); ++i) t.write(value[i], filling(step.key, updates, step.writer, i));
    }

    // Reads a record, null if it was not found, and says whether its end belongs to its beginning.
    bool read(Tx& t, Thread& thread, std::uint64_t key, const std::uint64_t* value) {
        using namespace durasim::ycsb;
        if (value == nullptr) return false;
        const std::uint64_t* found = thread.buffer;
        t.read_words(thread.buffer, value, shards_.words() * 8);
        if constexpr (durasim::has_history) durasim::report_read(key, durasim::version_of(found, shards_.words()));
        const std::uint64_t last = shards_.words() - 1;
        return found[last] == filling(key, found[word_updates], found[word_writer], last);
    }

    class Checker;

    Choices choices_;
    Shards shards_;
    std::unique_ptr<durasim::TxLock[]> locks_;  // of the shards; a single thread needs none
    std::vector<Counts> counts_;              // of each thread: what the pool must hold
};

// Compares the records of a pool, whose root and maps are in order, with what the threads have done.
class Ycsb::Checker {
public:
    struct Found {
        std::uint64_t key;
        const std::uint64_t* value;
    };

    Checker(const Shards& shards, std::vector<Found> found) : shards_(shards), root_(shards.root()), found_(std::move(found)) {
        std::sort(found_.begin(), found_.end(), [](const Found& a, const Found& b) { return a.key < b.key; });
    }

    std::uint64_t check() {
        using namespace durasim::ycsb;
        const std::uint64_t present = std::min<std::uint64_t>(shards_.finished(0), root_.populated);
        if (present > found_.size()) DURASIM_VIOLATION("only %llu records are there", static_cast<Long>(found_.size()));
        Choices choices = choices_of(root_, present);
        for (const Found& record : found_) check_filling(record);
        for (std::uint64_t i = 0; i < present; ++i) records_.push_back({value_of(choices.populated_key(i)), 0, 0});
        std::uint64_t operations = 0, inserted = 0;
        for (std::uint64_t thread = 0; thread < root_.threads; ++thread) {
            const std::uint64_t finished = shards_.finished(thread);
            operations += finished;
            if (thread != 0 && finished != 0 && present < root_.populated) {
                DURASIM_VIOLATION("there were operations before the pool was populated");
            }
            inserted += replay(choices, thread, finished);
        }
        if (found_.size() != present + inserted) {
            DURASIM_VIOLATION("%llu records are there, but %llu were made", static_cast<Long>(found_.size()),
                              static_cast<Long>(present + inserted));
        }
        for (std::uint64_t i = 0; i < present; ++i) {
            if (records_[i].value[word_updates] == records_[i].updates) continue;
            DURASIM_VIOLATION("record %llu says %llu updates, but the threads made %llu", static_cast<Long>(i),
                              static_cast<Long>(records_[i].value[word_updates]), static_cast<Long>(records_[i].updates));
        }
        return operations;
    }

private:
    // A populated record.
    struct Record {
        const std::uint64_t* value;
        std::uint64_t updates;  // by all threads so far
        std::uint64_t last;     // the last writer among these
    };

    // With fewer records than are populated in the end there were no choices yet.
    static Choices choices_of(const ShardsRoot& root, std::uint64_t present) {
        if (present == root.populated) return Ycsb::choices_of(root);
        return {root.seed, mix_of(root), durasim::ycsb::uniform, root.populated};
    }

    void check_filling(const Found& record) const {
        using namespace durasim::ycsb;
        for (std::uint64_t i = words_head; i < shards_.words(); ++i) {
            if (record.value[i] == filling(record.key, record.value[word_updates], record.value[word_writer], i)) continue;
            DURASIM_VIOLATION("word %llu of the record with key %llx is not what its last writer wrote", static_cast<Long>(i),
                              static_cast<Long>(record.key));
        }
        const std::uint64_t writer = record.value[word_writer];
        if (writer != 0 && (writer - 1) >> durasim::operation_bits >= root_.threads) {
            DURASIM_VIOLATION("the record with key %llx was written by no thread", static_cast<Long>(record.key));
        }
    }

    const std::uint64_t* value_of(std::uint64_t key) const {
        const auto at = std::lower_bound(found_.begin(), found_.end(), key, [](const Found& f, std::uint64_t k) { return f.key < k; });
        if (at == found_.end() || at->key != key) DURASIM_VIOLATION("the record with key %llx is missing", static_cast<Long>(key));
        return at->value;
    }

    // Returns how many records the thread has inserted.
    std::uint64_t replay(const Choices& choices, std::uint64_t thread, std::uint64_t finished) {
        using namespace durasim::ycsb;
        std::uint64_t inserted = 0;
        for (std::uint64_t n = first_of(root_, thread); n < finished; ++n) {
            const Step step = choices.step(thread, n, inserted);
            if (step.kind == Kind::insert) {
                const std::uint64_t* value = value_of(step.key);
                ++inserted;
                if (value[word_updates] != 0 || value[word_writer] != step.writer) {
                    DURASIM_VIOLATION("the record with key %llx is not as it was inserted", static_cast<Long>(step.key));
                }
            } else if (step.kind == Kind::update || step.kind == Kind::modify) {
                ++records_[step.record].updates;
                records_[step.record].last = step.writer;
            }
        }
        // The last write of a record among all threads is also the last one of its own thread.
        for (const Record& record : records_) {
            const std::uint64_t writer = record.value[word_writer];
            const bool is_own = writer != 0 && (writer - 1) >> durasim::operation_bits == thread;
            if (is_own && writer != record.last) {
                DURASIM_VIOLATION("a record was last written by operation %llu of thread %llu, which the thread does not know",
                                  static_cast<Long>((writer - 1) & ((std::uint64_t{1} << durasim::operation_bits) - 1)),
                                  static_cast<Long>(thread));
            }
        }
        return inserted;
    }

    const Shards& shards_;
    const ShardsRoot& root_;
    std::vector<Found> found_;  // all records, by key
    std::vector<Record> records_;
};

std::uint64_t Ycsb::check(const Pool& pool) {
    std::vector<Checker::Found> found;
    const auto erases = [](const ShardsRoot& root) {
        const bool is_possible = root.top != nullptr && root.settings[0] < durasim::ycsb::mixes_count &&
                                 root.settings[1] <= durasim::ycsb::uniform && root.setting_more == 0 && root.populated != 0 &&
                                 root.value_bytes() >= durasim::line_bytes;
        if (!is_possible) DURASIM_VIOLATION("the root object has impossible settings");
        return false;
    };
    const auto shards = Shards::check(pool, kind_of_root, erases, [&](std::uint64_t key, const std::uint64_t* value) {
        found.push_back({key, value});
    });
    for (std::uint64_t i = 0; i < shards.threads(); ++i) {
        if (!shards.is_sealed(i)) DURASIM_VIOLATION("thread %llu has not written its count of operations", static_cast<Long>(i));
    }
    return Checker(shards, std::move(found)).check();
}

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<Ycsb>(argc, argv); }
