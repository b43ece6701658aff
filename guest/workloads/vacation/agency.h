// The pool of vacation, and the requests of its clients: each request computed from the seed, the thread and its number.
#ifndef DURASIM_WORKLOADS_VACATION_AGENCY_H
#define DURASIM_WORKLOADS_VACATION_AGENCY_H

#include <algorithm>
#include <cstdint>
#include <vector>

#include "durasim/random.h"
#include "structures/blocks.h"
#include "structures/red_black_tree.h"
#include "workloads/harness.h"

namespace durasim::vacation {

constexpr std::uint64_t kind_of_root = 0x6e6f697461636176;  // "vacation"
constexpr std::uint64_t items = 3;                          // kinds of items: cars, flights and rooms
constexpr std::uint64_t flight = 1, customers = items;      // tables
constexpr std::uint64_t places_step = 100;                  // of an update
constexpr std::uint64_t queries_max = 64;

// One for each thread, then as many that populating fills in turn.
constexpr std::uint64_t arenas_for(std::uint64_t threads) { return 2 * threads; }

// A car, a flight or a room.
struct Item {
    std::uint64_t id;
    std::uint64_t used;
    std::uint64_t free;
    std::uint64_t total;
    std::uint64_t price;
    std::uint64_t stamp;  // sum over all changes; see stamp_of
};

struct Reservation {
    Reservation* next;
    std::uint64_t key;  // what is reserved; see key_of
    std::uint64_t price;
};

struct Customer {
    std::uint64_t id;
    Reservation* first;  // in the order of the keys
    std::uint64_t count;
    std::uint64_t stamp;
};

// The sum of the operations of a thread, modulo 2^64.
struct alignas(64) Ledger {
    std::uint64_t finished;
    std::uint64_t seal;      // over finished; see seal_of
    std::uint64_t stamps;    // on all records, with prices: given less taken away; see worth_of
    std::uint64_t items;     // inserted less removed
    std::uint64_t customers;
    std::uint64_t places;
    std::uint64_t reserved;
    std::uint64_t bill;  // what is reserved costs
};
static_assert(sizeof(Ledger) == line_bytes);

struct alignas(64) Table {
    std::uint64_t top;
};

struct alignas(64) Agency {
    std::uint64_t kind;
    std::uint64_t seed;
    std::uint64_t populate;
    std::uint64_t ready;  // records of each table that populating has made
    std::uint16_t threads;
    std::uint16_t queries;
    std::uint16_t query_percent;
    std::uint16_t user_percent;
    Ledger* ledger;  // of each thread
    Table table[items + 1];
};

constexpr std::uint64_t key_of(std::uint64_t kind, std::uint64_t id) { return kind << 40 | id; }

// A record is an object; its stamp makes each version new.
constexpr std::uint64_t object_of(std::uint64_t table, std::uint64_t id) { return key_of(table, id); }

inline std::uint64_t stamp_of(std::uint64_t seed, std::uint64_t thread, std::uint64_t n) {
    return mix(mix(seed ^ kind_of_root) + operation_of(thread, n)) | 1;
}

// The share of an item in the sum of stamps: so the sum shows when a price is wrong, too.
constexpr std::uint64_t worth_of(std::uint64_t stamp, std::uint64_t price) { return stamp + price * 0x9E3779B97F4A7C15u; }

// A check replays what a thread has finished: it has to know that this many is not nonsense.
inline std::uint64_t seal_of(std::uint64_t seed, std::uint64_t thread, std::uint64_t finished) {
    return finished == 0 ? 0 : mix(~mix(seed) + operation_of(thread, finished));
}

constexpr bool is_price(std::uint64_t price) { return price >= 50 && price <= 90 && price % 10 == 0; }

// An item as populating makes it.
inline Item initial_item(std::uint64_t seed, std::uint64_t kind, std::uint64_t id) {
    Random random(mix(seed) ^ key_of(kind + 1, id));
    const std::uint64_t places = (random.below(5) + 1) * places_step;
    return {id, 0, places, places, random.below(5) * 10 + 50, 0};
}

// In which order populating makes the records of a table.
inline std::vector<std::uint64_t> order_of(std::uint64_t seed, std::uint64_t table, std::uint64_t populate) {
    Random random(mix(seed) + table);
    std::vector<std::uint64_t> ids(populate);
    for (std::uint64_t i = 0; i < populate; ++i) {
        const std::uint64_t other = random.below(i + 1);
        ids[i] = ids[other];
        ids[other] = i + 1;
    }
    return ids;
}

enum class Action { reserve, erase_customer, update };

// The request of an operation.
struct Request {
    struct Line {
        std::uint64_t kind, id;
        std::uint64_t price;  // of an update that adds places; 0: of one that takes some away
    };

    Action action;
    std::uint64_t customer;
    std::uint64_t count;
    Line line[queries_max];
};

// The n-th request of a thread.
inline void choose(const Agency& agency, std::uint64_t thread, std::uint64_t n, Request& request) {
    Random random(mix(agency.seed) + operation_of(thread, n) * 0x632BE59BD9B4E019u);
    const std::uint64_t range = std::max<std::uint64_t>((agency.populate * agency.query_percent + 50) / 100, 1);
    const bool by_user = random.below(100) < agency.user_percent;
    request.action = by_user ? Action::reserve : random.below(2) != 0 ? Action::erase_customer : Action::update;
    request.customer = request.action == Action::update ? 0 : random.below(range) + 1;
    request.count = request.action == Action::erase_customer ? 0 : random.below(agency.queries) + 1;
    for (std::uint64_t i = 0; i < request.count; ++i) {
        Request::Line& line = request.line[i];
        line = {random.below(items), random.below(range) + 1, 0};
        if (request.action == Action::update && random.below(2) != 0) line.price = random.below(5) * 10 + 50;
    }
}

template <class Read>
std::uint64_t version_of(const Item& item, Read&& read) {
    Version version;
    version.take(read(item.used));
    version.take(read(item.free));
    version.take(read(item.total));
    version.take(read(item.price));
    version.take(read(item.stamp));
    return version.value();
}

// `follow` says whether a reservation may be read.
template <class Read, class Follow>
std::uint64_t version_of(const Customer& customer, Read&& read, Follow&& follow) {
    Version version;
    version.take(read(customer.count));
    version.take(read(customer.stamp));
    for (const Reservation* at = read(customer.first); at != nullptr && follow(at); at = read(at->next)) {
        version.take(read(at->key));
        version.take(read(at->price));
    }
    return version.value();
}

inline std::uint64_t arena_of(const Pool& pool, const void* block) {
    return (reinterpret_cast<std::uint64_t>(block) - reinterpret_cast<std::uint64_t>(pool.data())) / pool.arena_bytes();
}

inline RedBlackTree tree_of(Agency* agency, std::uint64_t table, std::uint64_t arena = 0) {
    return RedBlackTree(MapShape{}, agency->table[table].top, arena);
}

inline bool is_possible(const Agency* agency, const Pool& pool) {
    return agency->threads != 0 && agency->threads <= threads_max && arenas_for(agency->threads) == pool.arenas() && agency->queries != 0 &&
           agency->queries <= queries_max && agency->query_percent != 0 && agency->query_percent <= 100 && agency->user_percent <= 100 &&
           agency->populate <= pool.data_bytes() / (2 * (items + 1) * line_bytes) && agency->ready <= agency->populate;
}

}  // namespace durasim::vacation

#endif
