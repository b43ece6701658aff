// durasim-workload: vacation — a travel agency; each transaction makes reservations, deletes a customer or updates items
//
// The vacation of STAMP (Cao Minh, Chung, Kozyrakis, Olukotun: "STAMP: Stanford Transactional Applications for
// Multi-Processing", IISWC 2008), written anew. Four tables, of cars, flights, rooms and customers, are red-black trees that
// lead from a number to a record; populating gives each of them --populate records (r of STAMP; t is --ops). An operation is
// one of the following, where n is --queries, and items and customers are among the first --query-percent (q) of each table:
//   reservation  (u = --user-percent) asks for up to n items, and reserves for a customer, who comes into the table unless
//                there already, the dearest one of each kind; the customer has a sorted list of reservations
//   deletion     (half of the others) cancels all reservations of a customer and takes the customer out of the table
//   update       (the other half) adds 100 places to each of up to n items, at a new price, or takes 100 away; a flight
//                goes as a whole, if there is no passenger; what has no places left goes
// Inputs of STAMP for simulators: low contention -n2 -q90 -u98 -r16384 -t4096, high contention -n4 -q60 -u90 -r16384 -t4096.
//
// Deviations: each thread counts in a line of its own what its transactions did (Ledger), each record adds up who changed
// it (stamp), so that a check can compare the two: what an operation does depends on what those before it left. A
// reservation is one block, not two. Each thread takes blocks from an arena of its own. Those of populating come from
// others, which operations only give back to, so that this is no conflict with all that take blocks; all pages are touched
// then. Blocks take whole lines. Random numbers are ours. One lock guards all tables, where the runtime needs locks.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <vector>

#include "structures/blocks.h"
#include "structures/shares.h"
#include "workloads/harness.h"
#include "workloads/vacation/agency.h"
#include "workloads/vacation/manager.h"
#include "workloads/vacation/model.h"

namespace {

using durasim::Arguments;
using durasim::Audit;
using durasim::Long;
using durasim::Pool;
using durasim::Tx;
using namespace durasim::vacation;

class Vacation {
public:
    static std::uint64_t arenas(const Arguments& arguments) { return arenas_for(arguments.threads); }

    static std::uint64_t pool_bytes(const Arguments& arguments) {
        const std::uint64_t populated = (arguments.populate / arguments.threads + 1) * (items + 1) * 2;
        // A reservation makes a customer and three reservations at most, an update an item for each query; nodes come on top.
        const std::uint64_t made =
            durasim::share_of(arguments.ops, arguments.threads, 0) * std::max<std::uint64_t>(2 + items, 2 * arguments.queries);
        const std::uint64_t shared =
            sizeof(durasim::ArenaHeader) + durasim::block_bytes(sizeof(Agency)) + durasim::block_bytes(arguments.threads * sizeof(Ledger));
        return arenas(arguments) * ((std::max(populated, made) + 1) * durasim::line_bytes + shared);
    }

    // Deleting a customer writes to all that is reserved: a record, a block and the head of a list each, of up to four words.
    static std::uint64_t log_bytes_min(const Arguments& arguments) {
        const std::uint64_t range = std::max<std::uint64_t>(arguments.populate * arguments.query_percent / 100, 1);
        const std::uint64_t requests = durasim::share_max(arguments.ops, range);
        const std::uint64_t reserved = std::min(requests * std::min(arguments.queries, items), items * (range + 1));
        return durasim::log_bytes_default + std::max(reserved, arguments.queries) * 1024;
    }

    Vacation(Pool& pool, const Arguments& arguments) : pool_(&pool) {
        if (arguments.populate == 0) durasim::fail(durasim::exit_usage, "vacation: --populate has to be at least 1");
        agency_ = pool.root<Agency>();
        if (agency_ == nullptr) {
            make(pool, arguments);
            agency_ = pool.root<Agency>();
        }
        if (agency_->kind != kind_of_root) durasim::fail(durasim::exit_usage, "vacation: the pool belongs to another workload");
        if (agency_->seed != arguments.seed || agency_->populate != arguments.populate || agency_->threads != arguments.threads ||
            agency_->queries != arguments.queries || agency_->query_percent != arguments.query_percent ||
            agency_->user_percent != arguments.user_percent) {
            durasim::fail(durasim::exit_usage,
                          "vacation: the pool was made with --seed %llu --populate %llu --threads %u --queries %u --query-percent %u "
                          "--user-percent %u; use these",
                          static_cast<Long>(agency_->seed), static_cast<Long>(agency_->populate), agency_->threads, agency_->queries,
                          agency_->query_percent, agency_->user_percent);
        }
        copy_ = *agency_;
        for (std::uint64_t i = 0; i < copy_.threads; ++i) ledgers_.push_back(copy_.ledger[i]);
        if (copy_.ready == copy_.populate) return;
        for (std::uint64_t table = 0; table <= items; ++table) order_.push_back(order_of(copy_.seed, table, copy_.populate));
    }

    std::uint64_t populated() const { return agency_->ready; }

    struct Thread {
        std::uint64_t number;
        Ledger ledger;
    };

    Thread enter(std::uint64_t number) const { return {number, ledgers_[number]}; }
    void leave(const Thread& thread) { ledgers_[thread.number] = thread.ledger; }

    void populate_one(Thread&) {
        durasim::tx([&](Tx& t) {
            const std::uint64_t ready = t.read(agency_->ready);
            Manager manager(t, *pool_, agency_, copy_.threads + ready % copy_.threads, 0);
            for (std::uint64_t kind = 0; kind < items; ++kind) {
                manager.insert_item(kind, initial_item(copy_.seed, kind, order_[kind][ready]));
            }
            manager.insert_customer(order_[customers][ready], 0);
            touch_pages(t, ready);
            t.write(agency_->ready, ready + 1);
            durasim::report_change(durasim::populated_object, ready, ready + 1);
        });
    }

    void operation(Thread& thread) {
        Request request;
        choose(copy_, thread.number, thread.ledger.finished, request);
        std::unique_lock<durasim::TxLock> held;
        if (copy_.threads > 1) held = std::unique_lock(lock_);
        Ledger left;
        durasim::tx([&](Tx& t) {
            Manager manager(t, *pool_, agency_, thread.number, stamp_of(copy_.seed, thread.number, thread.ledger.finished));
            manager.perform(request);
            left = conclude(t, thread, manager.done());
        });
        thread.ledger = left;
    }

    void compare_with_model() const {
        // The check has compared the tables with what the ledgers say, and those of one thread with a model; here remains
        // whether the ledgers are right.
        durasim::compare_ledgers(copy_.ledger, ledgers_);
    }

    void print_result() const {
        Ledger sum{};
        for (const Ledger& ledger : ledgers_) {
            sum.finished += ledger.finished;
            sum.reserved += ledger.reserved;
            sum.customers += ledger.customers;
        }
        std::printf("operations=%llu customers=%llu reservations=%llu", static_cast<Long>(sum.finished),
                    static_cast<Long>(copy_.populate + sum.customers), static_cast<Long>(sum.reserved));
    }

    static std::uint64_t check(const Pool& pool);
    static void dump(const Pool& pool, durasim::Dump& dump);

private:
    static void make(Pool& pool, const Arguments& arguments) {
        durasim::tx([&](Tx& t) {
            auto* agency = static_cast<Agency*>(t.allocate(sizeof(Agency)));
            auto* ledger = static_cast<Ledger*>(t.allocate(arguments.threads * sizeof(Ledger)));
            // Memory that was never given out before is zero, and so are the ledgers.
            t.write(agency->kind, kind_of_root);
            t.write(agency->seed, arguments.seed);
            t.write(agency->populate, arguments.populate);
            t.write(agency->ready, 0);
            t.write(agency->threads, static_cast<std::uint16_t>(arguments.threads));
            t.write(agency->queries, static_cast<std::uint16_t>(arguments.queries));
            t.write(agency->query_percent, static_cast<std::uint16_t>(arguments.query_percent));
            t.write(agency->user_percent, static_cast<std::uint16_t>(arguments.user_percent));
            t.write(agency->ledger, ledger);
            for (std::uint64_t table = 0; table <= items; ++table) tree_of(agency, table).make(t);
            pool.set_root(t, agency);
            durasim::report_change(durasim::root_object, 0, kind_of_root);
        });
    }

    // Each page of the pool has been written before operations take blocks from it: the first writer of a page has a page
    // fault, which aborts hardware transactions again and again. Step `ready` of populating takes its share of the pages.
    void touch_pages(Tx& t, std::uint64_t ready) const {
        const std::uint64_t pages = pool_->data_bytes() / durasim::page_bytes, first = durasim::share_before(pages, copy_.populate, ready);
        auto* const words = reinterpret_cast<std::uint64_t*>(pool_->data());
        for (std::uint64_t i = first; i < first + durasim::share_of(pages, copy_.populate, ready); ++i) {
            std::uint64_t& word = words[i * (durasim::page_bytes / 8)];
            t.write(word, t.read(word));
        }
    }

    // Adds what was done to the thread's ledger. Words that keep their content need not be written.
    Ledger conclude(Tx& t, const Thread& thread, const Ledger& done) const {
        Ledger& ledger = copy_.ledger[thread.number];
        Ledger left = thread.ledger;
        ++left.finished;
        left.seal = seal_of(copy_.seed, thread.number, left.finished);
        t.write(ledger.finished, left.finished);
        t.write(ledger.seal, left.seal);
        const auto add = [&](std::uint64_t Ledger::*word) {
            left.*word += done.*word;
            if (done.*word != 0) t.write(ledger.*word, left.*word);
        };
        for (const auto word : {&Ledger::stamps, &Ledger::items, &Ledger::customers, &Ledger::places, &Ledger::reserved, &Ledger::bill}) {
            add(word);
        }
        durasim::report_change(durasim::progress_object(thread.number), thread.ledger.finished, left.finished);
        return left;
    }

    const Pool* pool_;
    Agency* agency_ = nullptr;
    Agency copy_{};  // what does not change, and what was there at first
    std::vector<std::vector<std::uint64_t>> order_;  // of each table, while there is something to populate
    durasim::TxLock lock_;  // of all tables; a single thread needs none
    std::vector<Ledger> ledgers_;  // of each thread: what the pool must hold
};

void Vacation::dump(const Pool& pool, durasim::Dump& dump) {
    Agency* agency = pool.root<Agency>();
    if (!durasim::can_be_block(pool, agency, sizeof(Agency))) return dump.note_damage();
    dump.add(durasim::root_object, agency->kind);
    dump.add(durasim::populated_object, agency->ready);
    if (!is_possible(agency, pool) || !durasim::can_be_block(pool, agency->ledger, agency->threads * sizeof(Ledger))) {
        return dump.note_damage();
    }
    for (std::uint64_t i = 0; i < agency->threads; ++i) dump.add(durasim::progress_object(i), agency->ledger[i].finished);
    const auto read = [](const auto& place) { return place; };
    std::uint64_t reservations_left = pool.data_bytes() / durasim::line_bytes;  // a walk of more links goes in a circle
    bool whole = true;
    const auto follow = [&](const Reservation* at) {
        whole = whole && durasim::can_be_block(pool, at, sizeof(Reservation)) && reservations_left-- != 0;
        return whole;
    };
    for (std::uint64_t table = 0; table <= items; ++table) {
        const bool reached = tree_of(agency, table).dump(pool, [&](std::uint64_t id, const std::uint64_t* value) {
            const auto* record = reinterpret_cast<const void*>(*value);
            if (!whole || !durasim::can_be_block(pool, record, durasim::line_bytes)) {
                whole = false;
            } else if (table == customers) {
                dump.add(object_of(table, id), version_of(*static_cast<const Customer*>(record), read, follow));
            } else {
                dump.add(object_of(table, id), version_of(*static_cast<const Item*>(record), read));
            }
        });
        if (!reached || !whole) return dump.note_damage();
    }
}

std::uint64_t Vacation::check(const Pool& pool) {
    Audit audit(pool);
    if (audit.problem() != nullptr) DURASIM_VIOLATION("%s", audit.problem());
    const Agency* agency = pool.root<Agency>();
    if (!audit.claim(agency, sizeof(Agency))) DURASIM_VIOLATION("the root object is not allocated");
    if (agency->kind != kind_of_root) DURASIM_VIOLATION("the root object is not a travel agency");
    if (!is_possible(agency, pool)) DURASIM_VIOLATION("the agency has impossible sizes");
    if (!audit.claim(agency->ledger, agency->threads * sizeof(Ledger))) {
        DURASIM_VIOLATION("what belongs to the root object is not allocated");
    }
    Model model(*agency), found(*agency);
    Ledger expected{}, sum{};
    expected.items = items * agency->ready;
    expected.customers = agency->ready;
    for (const auto& [key, item] : model.item) {
        expected.places += item.total;
        expected.stamps += worth_of(0, item.price);
    }
    for (std::uint64_t i = 0; i < agency->threads; ++i) {
        const Ledger& ledger = agency->ledger[i];
        if (ledger.finished >> durasim::operation_bits != 0 || ledger.seal != seal_of(agency->seed, i, ledger.finished)) {
            DURASIM_VIOLATION("thread %llu cannot have finished %llu operations", static_cast<Long>(i), static_cast<Long>(ledger.finished));
        }
        for (const auto word : {&Ledger::finished, &Ledger::stamps, &Ledger::items, &Ledger::customers, &Ledger::places, &Ledger::reserved,
                                &Ledger::bill}) {
            expected.*word += ledger.*word;
        }
    }
    if (expected.finished != 0 && agency->ready != agency->populate) {
        DURASIM_VIOLATION("there were operations before all records were there");
    }
    take_in(pool, audit, found, sum);
    sum.finished = expected.finished;
    if (std::memcmp(&sum, &expected, sizeof sum) != 0) {
        DURASIM_VIOLATION("the tables hold %llu items with %llu places, %llu customers and %llu reservations of %llu, but the threads left "
                          "%llu, %llu, %llu, %llu and %llu, or other changes",
                          static_cast<Long>(sum.items), static_cast<Long>(sum.places), static_cast<Long>(sum.customers),
                          static_cast<Long>(sum.reserved), static_cast<Long>(sum.bill), static_cast<Long>(expected.items),
                          static_cast<Long>(expected.places), static_cast<Long>(expected.customers), static_cast<Long>(expected.reserved),
                          static_cast<Long>(expected.bill));
    }
    // With one thread, or none yet, the order of the operations is known.
    if (agency->threads > 1 && expected.finished != 0) return agency->ready + expected.finished;
    Request request;
    for (std::uint64_t n = 0; n < expected.finished; ++n) {
        choose(*agency, 0, n, request);
        model.perform(request);
    }
    const auto same = [](const auto& a, const auto& b) {
        const Item &x = a.second, &y = b.second;
        return a.first == b.first && x.used == y.used && x.free == y.free && x.total == y.total && x.price == y.price;
    };
    if (found.customer != model.customer) DURASIM_VIOLATION("the customers are not those that the operations leave");
    if (!std::ranges::equal(found.item, model.item, same)) DURASIM_VIOLATION("the items are not those that the operations leave");
    return agency->ready + expected.finished;
}

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<Vacation>(argc, argv); }
