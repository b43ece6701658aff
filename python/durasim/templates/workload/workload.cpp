// durasim-workload: @NAME@ — accounts; each transaction moves an amount from one account to another
//
// A small, complete workload to start from: change the data and the operation, keep the shape. The harness
// (workloads/harness.h, which lists what such a class has) provides main's commands: run, check, recover and
// recover-and-check. The arguments of the program are in @NAME@.toml, beside this file.
//
//     durasim run --design hercules --workload @PATH@
//     durasim crash --design hercules --workload @PATH@ --machine tiny
//
// Three rules make its crashes meaningful:
// 1. Persistent data change only through the transaction: t.write(place, value). Each design and each runtime in
//    software is put below these calls.
// 2. A transaction reports each object that it reads or changes (durasim/history.h), and `dump` lists the objects of a
//    pool. After a crash durasim looks for transactions that explain the dump; it needs no model of the workload.
// 3. `check` and `dump` read a pool that may be damaged: they test counts and pointers before they use them.
#include <cstdint>
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

constexpr std::uint64_t kind_of_root = 0x73746e756f636361;  // "accounts"
constexpr std::uint64_t first_balance = 1000;

// The content of the pool. Structures start on a line of 64 bytes, so that locks and lines fit together.
struct alignas(64) Account {
    std::uint64_t balance;
    std::uint64_t changes;  // makes each content of the account a different one
};

struct alignas(64) Root {
    std::uint64_t kind;
    std::uint64_t seed, accounts, threads, amount_max;
    std::uint64_t ready;  // accounts that have been populated
    Account* account;
    Progress* progress;  // of each thread, the number of its finished operations
};

// What operation `number` of a thread does follows from the seed, the thread and the number alone, so the counts of finished
// operations say what the pool has to hold.
struct Transfer {
    std::uint64_t from, to, amount;

    Transfer(const Root& root, std::uint64_t thread, std::uint64_t number) {
        durasim::Random random(durasim::mix(root.seed) + durasim::operation_of(thread, number));
        from = random.below(root.accounts);
        to = (from + 1 + random.below(root.accounts - 1)) % root.accounts;
        amount = 1 + random.below(root.amount_max);
    }
};

// The version of an account for the history: it never comes again.
std::uint64_t version_of(std::uint64_t balance, std::uint64_t changes) {
    const std::uint64_t words[] = {balance, changes};
    return durasim::version_of(words, 2);
}

class Accounts {
public:
    // The state of a thread, in ordinary memory.
    struct Thread {
        std::uint64_t number;
        std::uint64_t finished;
    };

    // One arena of the allocator: only the first transaction allocates.
    static std::uint64_t arenas(const Arguments&) { return 1; }
    static std::uint64_t pool_bytes(const Arguments& arguments) {
        return durasim::block_bytes(sizeof(Root)) + durasim::block_bytes(arguments.populate * sizeof(Account)) +
               durasim::block_bytes(arguments.threads * sizeof(Progress)) + 64 * durasim::line_bytes;
    }

    // Makes the root object, or finds that of a run before.
    Accounts(Pool& pool, const Arguments& arguments) {
        if (arguments.populate < 2) durasim::fail(durasim::exit_usage, "%s: --populate has to be at least 2", durasim::program_name);
        root_ = pool.root<Root>();
        if (root_ == nullptr) {
            make(pool, arguments);
            root_ = pool.root<Root>();
        }
        if (root_->kind != kind_of_root || root_->seed != arguments.seed || root_->accounts != arguments.populate ||
            root_->threads != arguments.threads || root_->amount_max != arguments.amount_max) {
            durasim::fail(durasim::exit_usage, "%s: the pool was made with other arguments", durasim::program_name);
        }
        for (std::uint64_t i = 0; i < root_->threads; ++i) finished_.push_back(root_->progress[i].finished);
    }

    std::uint64_t populated() const { return root_->ready; }
    Thread enter(std::uint64_t number) const { return {number, finished_[number]}; }
    void leave(const Thread& thread) { finished_[thread.number] = thread.finished; }

    // One transaction of the populating thread: one account.
    void populate_one(Thread&) {
        durasim::tx([&](Tx& t) {
            const std::uint64_t number = t.read(root_->ready);
            t.write(root_->account[number].balance, first_balance);
            t.write(root_->account[number].changes, 1);
            t.write(root_->ready, number + 1);
            durasim::report_change(number, 0, version_of(first_balance, 1));
            durasim::report_change(durasim::populated_object, number, number + 1);
        });
    }

    // One transaction of the measured region. The body may run several times: it changes nothing but the pool.
    void operation(Thread& thread) {
        const Transfer transfer(*root_, thread.number, thread.finished);
        const std::lock_guard held(lock_);  // from before the transaction until its commit has returned
        durasim::tx([&](Tx& t) {
            add(t, transfer.from, 0 - transfer.amount);
            add(t, transfer.to, transfer.amount);
            t.write(root_->progress[thread.number].finished, thread.finished + 1);
            durasim::report_change(durasim::progress_object(thread.number), thread.finished, thread.finished + 1);
        });
        ++thread.finished;
    }

    // After the run: the pool holds what the threads have noted in ordinary memory.
    void compare_with_model() const {
        for (std::uint64_t i = 0; i < finished_.size(); ++i) {
            if (root_->progress[i].finished != finished_[i]) {
                DURASIM_VIOLATION("thread %llu finished %llu operations, but the pool says %llu", static_cast<Long>(i),
                                  static_cast<Long>(finished_[i]), static_cast<Long>(root_->progress[i].finished));
            }
        }
    }

    void print_result() const { std::printf("accounts=%llu", static_cast<Long>(root_->accounts)); }

    // The invariants, after a run and after each recovery. Returns the number of finished operations.
    static std::uint64_t check(const Pool& pool) {
        Audit audit(pool);
        if (audit.problem() != nullptr) DURASIM_VIOLATION("%s", audit.problem());
        const Root* root = pool.root<Root>();
        if (!audit.claim(root, sizeof(Root)) || root->kind != kind_of_root) DURASIM_VIOLATION("the root object is damaged");
        if (root->threads == 0 || root->threads > durasim::threads_max || root->accounts < 2 || root->amount_max == 0 ||
            root->accounts > pool.data_bytes() / sizeof(Account) || root->ready > root->accounts) {
            DURASIM_VIOLATION("the pool has impossible sizes");
        }
        if (!audit.claim(root->account, root->accounts * sizeof(Account)) ||
            !audit.claim(root->progress, root->threads * sizeof(Progress))) {
            DURASIM_VIOLATION("what belongs to the root object is not allocated");
        }
        if (audit.lines_leaked() != 0) DURASIM_VIOLATION("%llu lines are leaked", static_cast<Long>(audit.lines_leaked()));
        std::vector<std::uint64_t> balance(root->accounts, first_balance);
        std::uint64_t operations = 0;
        for (std::uint64_t thread = 0; thread < root->threads; ++thread) {
            const std::uint64_t finished = root->progress[thread].finished;
            if (finished >> durasim::operation_bits != 0) DURASIM_VIOLATION("thread %llu has an impossible count", static_cast<Long>(thread));
            for (std::uint64_t number = 0; number < finished; ++number) {
                const Transfer transfer(*root, thread, number);
                balance[transfer.from] -= transfer.amount;
                balance[transfer.to] += transfer.amount;
            }
            operations += finished;
        }
        for (std::uint64_t i = 0; i < root->ready; ++i) {
            if (root->account[i].balance != balance[i]) {
                DURASIM_VIOLATION("account %llu does not have the balance of the finished operations", static_cast<Long>(i));
            }
        }
        return root->ready + operations;
    }

    // All objects of the pool with their versions.
    static void dump(const Pool& pool, durasim::Dump& dump) {
        const Root* root = pool.root<Root>();
        if (!pool.holds(root, sizeof(Root))) return dump.note_damage();
        dump.add(durasim::root_object, root->kind);
        dump.add(durasim::populated_object, root->ready);
        if (root->threads > durasim::threads_max || root->ready > pool.data_bytes() / sizeof(Account) ||
            !pool.holds(root->account, root->ready * sizeof(Account)) || !pool.holds(root->progress, root->threads * sizeof(Progress))) {
            return dump.note_damage();
        }
        for (std::uint64_t i = 0; i < root->ready; ++i) dump.add(i, version_of(root->account[i].balance, root->account[i].changes));
        for (std::uint64_t i = 0; i < root->threads; ++i) dump.add(durasim::progress_object(i), root->progress[i].finished);
    }

private:
    static void make(Pool& pool, const Arguments& arguments) {
        durasim::tx([&](Tx& t) {
            auto* root = static_cast<Root*>(t.allocate(sizeof(Root)));
            auto* progress = static_cast<Progress*>(t.allocate(arguments.threads * sizeof(Progress)));
            for (std::uint64_t i = 0; i < arguments.threads; ++i) t.write(progress[i].finished, 0);
            t.write(root->kind, kind_of_root);
            t.write(root->seed, arguments.seed);
            t.write(root->accounts, arguments.populate);
            t.write(root->threads, arguments.threads);
            t.write(root->amount_max, arguments.amount_max);
            t.write(root->ready, 0);
            t.write(root->account, static_cast<Account*>(t.allocate(arguments.populate * sizeof(Account))));
            t.write(root->progress, progress);
            pool.set_root(t, root);
            durasim::report_change(durasim::root_object, 0, kind_of_root);
        });
    }

    void add(Tx& t, std::uint64_t number, std::uint64_t amount) {
        Account& account = root_->account[number];
        const std::uint64_t balance = t.read(account.balance), changes = t.read(account.changes);
        t.write(account.balance, balance + amount);
        t.write(account.changes, changes + 1);
        durasim::report_change(number, version_of(balance, changes), version_of(balance + amount, changes + 1));
    }

    Root* root_ = nullptr;
    durasim::TxLock lock_;
    std::vector<std::uint64_t> finished_;
};

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<Accounts>(argc, argv); }
