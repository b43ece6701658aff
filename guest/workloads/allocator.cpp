// durasim-workload: allocator — slots that take blocks of random sizes from the persistent allocator and give them back
//
// The promises of the allocator are what this program checks: after any crash each line of the pool belongs to one block that
// a slot holds, or is free, or was never in use; no block is lost and none is held twice, and each holds what was put there.
// An operation looks at a random slot of its thread. An empty slot gets a block; a full one gives its block back or gets a
// block of another size, which is taken before the old one is given back, all in one transaction.
//
// Slots belong to threads (slot modulo threads) and to shards (slot modulo shards); threads meet in the allocator's data,
// whose lock is that of the shard.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "durasim/random.h"
#include "workloads/harness.h"

namespace {

using durasim::Arguments;
using durasim::Audit;
using durasim::Long;
using durasim::Pool;
using durasim::Progress;
using durasim::Tx;

constexpr std::uint64_t kind_of_root = 0x636F6C6C61;  // "alloc"

// One line each: slots of different locks lie side by side.
struct alignas(64) Slot {
    std::uint64_t* block;  // null if it is empty
    std::uint64_t size_bytes;
    std::uint64_t stamp;  // of the operation that changed it last, 0 if none has
};

struct alignas(64) Root {
    std::uint64_t kind;
    std::uint64_t seed;
    std::uint64_t slots;
    std::uint64_t filled;  // by populating, which fills one slot after the other
    std::uint64_t block_bytes_max;
    std::uint16_t free_percent;
    std::uint16_t shards;
    std::uint32_t threads;
    Slot* slot;
    Progress* progress;  // of each thread
};
static_assert(sizeof(Root) == durasim::line_bytes);

// Populating slot n has stamp n + 1; operation n of thread t has a stamp with t + 1 in its upper bits.
constexpr std::uint64_t stamp_of_populating(std::uint64_t slot) { return slot + 1; }
constexpr std::uint64_t stamp_of(std::uint64_t thread, std::uint64_t number) { return durasim::operation_of(thread + 1, number); }

std::uint64_t word_of(std::uint64_t seed, std::uint64_t stamp, std::uint64_t index) {
    return durasim::mix(durasim::mix(seed ^ stamp) + index);
}

std::uint64_t size_of(std::uint64_t seed, std::uint64_t stamp, std::uint64_t block_bytes_max) {
    return 8 + 8 * (durasim::mix(seed + 0x9E3779B97F4A7C15u * stamp) % (block_bytes_max / 8));
}

// The effect of an operation: a slot, and whether a block in it is given back.
struct Choice {
    std::uint64_t slot;
    bool frees;
};

Choice choose(const Root& root, std::uint64_t thread, std::uint64_t number) {
    durasim::Random random(durasim::mix(root.seed) ^ stamp_of(thread, number));
    const std::uint64_t own = (root.slots - thread + root.threads - 1) / root.threads;
    return {thread + root.threads * random.below(own), random.below(100) < root.free_percent};
}

class Allocator {
public:
    static std::uint64_t arenas(const Arguments& arguments) {
        if (arguments.shards != 0) return arguments.shards;
        return arguments.threads == 1 ? 1 : arguments.threads * 2;
    }

    static std::uint64_t pool_bytes(const Arguments& arguments) {
        check_arguments(arguments);
        const std::uint64_t shards = arenas(arguments);
        const std::uint64_t own = arguments.populate / shards + 2;  // and a block that is taken before another is given back
        const std::uint64_t largest = durasim::block_bytes(arguments.block_bytes_max);
        // At some time every slot may hold a block of the same small size, and what was in use stays with that size: the
        // sizes are a geometric series. Large blocks that are split leave gaps.
        const std::uint64_t blocks = own * (arguments.block_bytes_max > durasim::small_block_bytes_max ? 4 : 2) * largest;
        const std::uint64_t shared = sizeof(durasim::ArenaHeader) + sizeof(Root) + durasim::block_bytes(arguments.populate * sizeof(Slot)) +
                                     durasim::block_bytes(arguments.threads * sizeof(Progress));
        return shards * (blocks + shared + 2 * durasim::small_block_bytes_max);
    }

    Allocator(Pool& pool, const Arguments& arguments) {
        check_arguments(arguments);
        root_ = pool.root<Root>();
        if (root_ == nullptr) {
            make(pool, arguments);
            root_ = pool.root<Root>();
        }
        if (root_->kind != kind_of_root) durasim::fail(durasim::exit_usage, "allocator: the pool belongs to another workload");
        if (root_->seed != arguments.seed || root_->slots != arguments.populate || root_->threads != arguments.threads ||
            root_->block_bytes_max != arguments.block_bytes_max || root_->free_percent != arguments.free_percent ||
            root_->shards != arenas(arguments)) {
            durasim::fail(durasim::exit_usage,
                          "allocator: the pool was made with --seed %llu --populate %llu --threads %llu --block-bytes-max %llu "
                          "--free-percent %llu --shards %llu; use these",
                          static_cast<Long>(root_->seed), static_cast<Long>(root_->slots), static_cast<Long>(root_->threads),
                          static_cast<Long>(root_->block_bytes_max), static_cast<Long>(root_->free_percent),
                          static_cast<Long>(root_->shards));
        }
        finished_.resize(root_->threads);
        for (std::uint64_t i = 0; i < finished_.size(); ++i) finished_[i] = root_->progress[i].finished;
        if (root_->threads > 1) locks_ = std::make_unique<durasim::TxLock[]>(root_->shards);
    }

    std::uint64_t populated() const { return root_->filled; }

    struct Thread {
        std::uint64_t number;
        std::uint64_t finished;
    };

    Thread enter(std::uint64_t number) const { return {number, finished_[number]}; }
    void leave(const Thread& thread) { finished_[thread.number] = thread.finished; }

    void populate_one(Thread&) {
        durasim::tx([&](Tx& t) {
            const std::uint64_t slot = t.read(root_->filled);
            change(t, slot, stamp_of_populating(slot), false);
            t.write(root_->filled, slot + 1);
            if constexpr (durasim::has_history) durasim::report_change(durasim::populated_object, slot, slot + 1);
        });
    }

    void operation(Thread& thread) {
        const Choice choice = choose(*root_, thread.number, thread.finished);
        std::unique_lock<durasim::TxLock> held;
        if (locks_ != nullptr) held = std::unique_lock(locks_[choice.slot % root_->shards]);
        durasim::tx([&](Tx& t) {
            change(t, choice.slot, stamp_of(thread.number, thread.finished), choice.frees);
            std::uint64_t& finished = root_->progress[thread.number].finished;
            if constexpr (durasim::has_history) {
                durasim::report_change(durasim::progress_object(thread.number), t.read(finished), thread.finished + 1);
            }
            t.write(finished, thread.finished + 1);
        });
        ++thread.finished;
    }

    void compare_with_model() const {
        for (std::uint64_t i = 0; i < finished_.size(); ++i) {
            if (root_->progress[i].finished != finished_[i]) {
                DURASIM_VIOLATION("thread %llu made %llu operations, but the pool says %llu", static_cast<Long>(i),
                                  static_cast<Long>(finished_[i]), static_cast<Long>(root_->progress[i].finished));
            }
        }
    }

    void print_result() const {
        std::uint64_t blocks = 0, bytes = 0;
        for (std::uint64_t i = 0; i < root_->slots; ++i) {
            blocks += root_->slot[i].block != nullptr;
            bytes += root_->slot[i].size_bytes;
        }
        std::printf("blocks=%llu bytes=%llu", static_cast<Long>(blocks), static_cast<Long>(bytes));
    }

    static std::uint64_t check(const Pool& pool);
    static void dump(const Pool& pool, durasim::Dump& dump);

private:
    static void check_arguments(const Arguments& arguments) {
        if (arguments.populate < arguments.threads) {
            durasim::fail(durasim::exit_usage, "allocator: --populate has to be at least --threads: each thread has slots of its own");
        }
        if (arenas(arguments) > durasim::arenas_max) durasim::fail(durasim::exit_usage, "allocator: --shards is too large");
    }

    static void make(Pool& pool, const Arguments& arguments) {
        durasim::tx([&](Tx& t) {
            auto* root = static_cast<Root*>(t.allocate(sizeof(Root)));
            t.write(root->kind, kind_of_root);
            t.write(root->seed, arguments.seed);
            t.write(root->slots, arguments.populate);
            t.write(root->filled, 0);
            t.write(root->block_bytes_max, arguments.block_bytes_max);
            t.write(root->free_percent, static_cast<std::uint16_t>(arguments.free_percent));
            t.write(root->shards, static_cast<std::uint16_t>(arenas(arguments)));
            t.write(root->threads, static_cast<std::uint32_t>(arguments.threads));
            // Populating empties each slot before it fills it: blocks that were never in use are all zeros.
            t.write(root->slot, static_cast<Slot*>(t.allocate(arguments.populate * sizeof(Slot))));
            auto* progress = static_cast<Progress*>(t.allocate(arguments.threads * sizeof(Progress)));
            for (std::uint64_t i = 0; i < arguments.threads; ++i) t.write(progress[i].finished, 0);
            t.write(root->progress, progress);
            pool.set_root(t, root);
            if constexpr (durasim::has_history) durasim::report_change(durasim::root_object, 0, kind_of_root);
        });
    }

    // An empty slot gets a block; a full one gives its block back (`frees`), or gets another.
    void change(Tx& t, std::uint64_t number, std::uint64_t stamp, bool frees) {
        Slot& slot = root_->slot[number];
        const std::uint64_t arena = number % root_->shards;
        std::uint64_t* old = t.read(slot.block);
        const std::uint64_t old_bytes = t.read(slot.size_bytes);
        std::uint64_t* block = nullptr;
        std::uint64_t bytes = 0;
        if (old == nullptr || !frees) {
            bytes = size_of(root_->seed, stamp, root_->block_bytes_max);
            block = static_cast<std::uint64_t*>(t.allocate(bytes, arena));
            for (std::uint64_t i = 0; i < bytes / 8; ++i) t.write(block[i], word_of(root_->seed, stamp, i));
        }
        if (old != nullptr) t.free(old, old_bytes, arena);
        if constexpr (durasim::has_history) durasim::report_change(number, t.read(slot.stamp), stamp);
        t.write(slot.block, block);
        t.write(slot.size_bytes, bytes);
        t.write(slot.stamp, stamp);
    }

    Root* root_ = nullptr;
    std::unique_ptr<durasim::TxLock[]> locks_;  // of the shards; a single thread needs none
    std::vector<std::uint64_t> finished_;     // by each thread: what the pool must hold
};

// The content of a slot after all operations: the stamp of the last one, and whether it left a block.
struct Expected {
    std::uint64_t stamp = 0;
    bool full = false;
};

std::vector<Expected> replay(const Root& root) {
    std::vector<Expected> slots(root.slots);
    for (std::uint64_t i = 0; i < root.filled; ++i) slots[i] = {stamp_of_populating(i), true};
    for (std::uint64_t thread = 0; thread < root.threads; ++thread) {
        for (std::uint64_t n = 0; n < root.progress[thread].finished; ++n) {
            const Choice choice = choose(root, thread, n);
            Expected& slot = slots[choice.slot];
            slot = {stamp_of(thread, n), !slot.full || !choice.frees};
        }
    }
    return slots;
}

std::uint64_t Allocator::check(const Pool& pool) {
    Audit audit(pool);
    if (audit.problem() != nullptr) DURASIM_VIOLATION("%s", audit.problem());
    const Root* root = pool.root<Root>();
    if (!audit.claim(root, sizeof(Root))) DURASIM_VIOLATION("the root object is not allocated");
    if (root->kind != kind_of_root) DURASIM_VIOLATION("the root object is not one of slots");
    if (root->slots > pool.data_bytes() / sizeof(Slot) || root->filled > root->slots || root->threads == 0 ||
        root->threads > durasim::threads_max || root->slots < root->threads || root->shards != pool.arenas() ||
        root->block_bytes_max < 8 || root->block_bytes_max > pool.data_bytes()) {
        DURASIM_VIOLATION("the root object has impossible sizes");
    }
    if (!audit.claim(root->slot, root->slots * sizeof(Slot))) DURASIM_VIOLATION("the slots are not allocated");
    if (!audit.claim(root->progress, root->threads * sizeof(Progress))) {
        DURASIM_VIOLATION("the counts of the threads are not allocated");
    }
    // The last operation of a thread is the last one of some slot.
    std::vector<std::uint64_t> made(root->threads);
    for (std::uint64_t i = 0; i < root->slots; ++i) {
        const std::uint64_t stamp = root->slot[i].stamp, thread = stamp >> durasim::operation_bits;
        if (thread > root->threads) DURASIM_VIOLATION("slot %llu was changed by a thread that there is not", static_cast<Long>(i));
        if (thread == 0) continue;
        const std::uint64_t number = stamp & ((std::uint64_t{1} << durasim::operation_bits) - 1);
        made[thread - 1] = std::max(made[thread - 1], number + 1);
    }
    std::uint64_t operations = root->filled;
    for (std::uint64_t i = 0; i < root->threads; ++i) {
        if (root->progress[i].finished != made[i]) {
            DURASIM_VIOLATION("thread %llu counts %llu operations, but the last one that a slot knows of is %llu", static_cast<Long>(i),
                              static_cast<Long>(root->progress[i].finished), static_cast<Long>(made[i]));
        }
        operations += made[i];
    }
    const std::vector<Expected> expected = replay(*root);
    for (std::uint64_t i = 0; i < root->slots; ++i) {
        const Slot& slot = root->slot[i];
        const Long number = i;
        if (slot.stamp != expected[i].stamp) {
            DURASIM_VIOLATION("slot %llu was changed by operation %#llx last, but after the operations that were counted this "
                              "should be %#llx",
                              number, static_cast<Long>(slot.stamp), static_cast<Long>(expected[i].stamp));
        }
        const std::uint64_t bytes = expected[i].full ? size_of(root->seed, slot.stamp, root->block_bytes_max) : 0;
        if ((slot.block != nullptr) != expected[i].full || slot.size_bytes != bytes) {
            DURASIM_VIOLATION("slot %llu holds %llu bytes, but should hold %llu", number, static_cast<Long>(slot.size_bytes),
                              static_cast<Long>(bytes));
        }
        if (slot.block == nullptr) continue;
        if (!audit.claim(slot.block, bytes)) DURASIM_VIOLATION("the block of slot %llu is not allocated, or held twice", number);
        for (std::uint64_t w = 0; w < bytes / 8; ++w) {
            if (slot.block[w] != word_of(root->seed, slot.stamp, w)) DURASIM_VIOLATION("the block of slot %llu is torn", number);
        }
    }
    if (audit.lines_leaked() != 0) DURASIM_VIOLATION("%llu lines are leaked", static_cast<Long>(audit.lines_leaked()));
    return operations;
}

void Allocator::dump(const Pool& pool, durasim::Dump& dump) {
    const Root* root = pool.root<Root>();
    if (!pool.holds(root, sizeof(Root))) return dump.note_damage();
    dump.add(durasim::root_object, root->kind);
    dump.add(durasim::populated_object, root->filled);
    if (root->slots > pool.data_bytes() / sizeof(Slot) || root->threads > durasim::threads_max ||
        !pool.holds(root->slot, root->slots * sizeof(Slot)) || !pool.holds(root->progress, root->threads * sizeof(Progress))) {
        return dump.note_damage();
    }
    for (std::uint64_t i = 0; i < root->threads; ++i) dump.add(durasim::progress_object(i), root->progress[i].finished);
    for (std::uint64_t i = 0; i < root->slots; ++i) dump.add(i, root->slot[i].stamp);
}

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<Allocator>(argc, argv); }
