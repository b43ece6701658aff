// The pool of TPC-C: the root, the tables of each warehouse, and what stands for their rows in a history.
#ifndef DURASIM_WORKLOADS_TPCC_DATABASE_H
#define DURASIM_WORKLOADS_TPCC_DATABASE_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "durasim/history.h"
#include "durasim/tx.h"
#include "workloads/harness.h"
#include "workloads/tpcc/contents.h"

namespace durasim::tpcc {

inline constexpr std::uint64_t kind_of_root = draws_warehouse ? 0x6163637074 : 0x63637074;  // "tpcc" or "tpcca"

// The tables of a warehouse, all in its arena.
struct alignas(64) Tables {
    Warehouse* warehouse;
    District* districts;
    Customer* customers;  // of one district after another
    Stock* stock;
};

struct alignas(64) Root {
    std::uint64_t kind;
    Shape shape;
    std::uint64_t loaded;  // steps of loading the tables
    Item* items;
    Tables* tables;      // of each warehouse
    Progress* progress;  // of each thread; null for a single one, whose operations the districts count
};
static_assert(sizeof(Root) == 2 * line_bytes);

// The places of tables, in ordinary memory: they never change.
struct Database {
    Root* root = nullptr;
    Shape shape{};
    Item* items = nullptr;
    std::vector<Tables> tables;
    Progress* progress = nullptr;

    Database() = default;
    explicit Database(Root* at) : root(at), shape(at->shape), items(at->items), progress(at->progress) {
        tables.assign(at->tables, at->tables + shape.warehouses);
    }

    Warehouse& warehouse(std::uint64_t number) const { return *tables[number].warehouse; }
    District& district(std::uint64_t number) const {
        return tables[number / shape.districts].districts[number % shape.districts];
    }
    Customer& customer(std::uint64_t number) const {
        const std::uint64_t per_warehouse = shape.districts * shape.customers;
        return tables[number / per_warehouse].customers[number % per_warehouse];
    }
    Stock& stock(std::uint64_t warehouse, std::uint64_t item) const { return tables[warehouse].stock[item]; }

    // The operations of a thread that the pool says are finished.
    std::uint64_t finished(std::uint64_t thread) const {
        if (progress != nullptr) return progress[thread].finished;
        std::uint64_t sum = 0;
        for (std::uint64_t i = 0; i < shape.loaded(shape.all_districts(), root->loaded); ++i) sum += district(i).finished;
        return sum;
    }
};

// Rows pass between pool and ordinary memory as words. A copy of the words in between keeps the compiler's rules for types.
// The words of `row` from `from_byte` to `to_byte`, into `place`.
template <class Row>
void put_row(Tx& t, Row& place, const Row& row, std::uint64_t to_byte = sizeof(Row), std::uint64_t from_byte = 0) {
    std::uint64_t words[sizeof(Row) / 8];
    std::memcpy(words, reinterpret_cast<const char*>(&row) + from_byte, to_byte - from_byte);
    t.write_words(reinterpret_cast<std::uint64_t*>(&place) + from_byte / 8, words, to_byte - from_byte);
}

// The words of `place` from `from_byte` to `to_byte`, into `row`.
template <class Row>
void get_row(Tx& t, Row& row, const Row& place, std::uint64_t to_byte = sizeof(Row), std::uint64_t from_byte = 0) {
    std::uint64_t words[sizeof(Row) / 8];
    t.read_words(words, reinterpret_cast<const std::uint64_t*>(&place) + from_byte / 8, to_byte - from_byte);
    std::memcpy(reinterpret_cast<char*>(&row) + from_byte, words, to_byte - from_byte);
}

// The objects of a history are rows; an order has its lines and its row of NEW-ORDER with it. A row that changes counts
// something that only grows (W_YTD, S_ORDER_CNT, C_PAYMENT_CNT and C_DELIVERY_CNT, the operations of a district), so its
// content is a version; pointers are left out.
enum class Table : std::uint64_t { warehouse = 1, district, customer, item, stock, order, history, leaked_memory };

constexpr std::uint64_t object_of(Table table, std::uint64_t number) {
    return static_cast<std::uint64_t>(table) << 56 | number;
}
// The `number`-th row of ORDER or HISTORY in a district.
constexpr std::uint64_t object_of(Table table, std::uint64_t district, std::uint64_t number) {
    return object_of(table, district << 40 | number);
}

// Versions of rows as `read` sees their words.
template <class Row, class Read>
std::uint64_t version_of_row(const Row& row, Read&& read) {
    auto* words = reinterpret_cast<const std::uint64_t*>(&row);
    Version version;
    for (std::uint64_t i = 0; i < sizeof(Row) / 8; ++i) version.take(read(words[i]));
    return version.value();
}

template <class Read>
std::uint64_t version_of_district(const District& row, Read&& read) {
    static_assert(offsetof(District, orders) == 8 && offsetof(District, histories) == 16);
    auto* words = reinterpret_cast<const std::uint64_t*>(&row);
    Version version;
    version.take(read(words[0]));
    for (std::uint64_t i = 3; i < sizeof(District) / 8; ++i) version.take(read(words[i]));
    return version.value();
}

template <class Read>
std::uint64_t version_of_order(const Order& order, std::uint64_t line_count, const NewOrder* new_order, Read&& read) {
    static_assert(offsetof(Order, new_order) == 8);
    auto* words = reinterpret_cast<const std::uint64_t*>(&order);
    Version version;
    version.take(read(words[0]));
    for (std::uint64_t i = 2; i < Order::bytes(line_count) / 8; ++i) version.take(read(words[i]));
    if (new_order != nullptr) version.take(version_of_row(*new_order, read));
    return version.value();
}

}  // namespace durasim::tpcc

#endif
