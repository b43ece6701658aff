// The nine tables of TPC-C (Standard Specification, Revision 5.11, clause 1.3) as rows in the pool, each on lines of its
// own. Columns have the sizes of the specification; those that transactions change lie on the first line of a row, except
// C_DATA. Money is in cents, rates are in units of 1/10000, a date is a number (see contents.h), 0 where SQL has null. Text
// is filled up with zeros. Identifiers count from 1, as in the specification; the program counts from 0.
#ifndef DURASIM_WORKLOADS_TPCC_ROWS_H
#define DURASIM_WORKLOADS_TPCC_ROWS_H

#include <cstdint>

#include "durasim/layout.h"
#include "structures/pointer_array.h"

namespace durasim::tpcc {

inline constexpr std::uint64_t order_lines_min = 5, order_lines_most = 15;
inline constexpr std::uint64_t districts_most = 10;
inline constexpr std::uint64_t customer_data_bytes = 500;

struct Address {
    char name[10], street_1[20], street_2[20], city[20], state[2], zip[9];
};
static_assert(sizeof(Address) == 81);

struct alignas(64) Warehouse {
    std::uint64_t ytd_cents;
    std::uint32_t tax;
    std::uint32_t id;
    Address address;
    char unused[31];
};
static_assert(sizeof(Warehouse) == 2 * line_bytes);

// Beside its columns, a row has what leads to the orders and the history of the district.
struct alignas(64) District {
    std::uint64_t ytd_cents;
    PointerArray orders;     // to the Order of each O_ID, next_order - 1 of them
    PointerArray histories;  // to a HistoryBlock for every rows_per_block rows
    std::uint32_t next_order;
    std::uint32_t oldest_new_order;  // the least O_ID in NEW-ORDER, or next_order
    std::uint32_t finished;          // operations that took place here, those that changed nothing else too
    std::uint32_t history_rows;
    std::uint32_t tax;
    std::uint16_t warehouse;
    std::uint8_t id;
    Address address;
};
static_assert(sizeof(District) == 2 * line_bytes);

struct alignas(64) Customer {
    std::int64_t balance_cents;
    std::uint64_t ytd_payment_cents;
    std::uint32_t payments;    // C_PAYMENT_CNT
    std::uint32_t deliveries;  // C_DELIVERY_CNT
    std::uint64_t credit_limit_cents;
    std::uint64_t since;
    std::uint32_t discount;
    std::uint32_t id;
    std::uint16_t district, warehouse;
    char credit[2], middle[2], state[2], unused[6];
    char first[16], last[16], street_1[20], street_2[20], city[20], zip[9], phone[16], unused_too[11];
    char data[customer_data_bytes], unused_at_last[12];
};
static_assert(sizeof(Customer) == 11 * line_bytes);

struct alignas(64) Item {
    std::uint32_t id;
    std::uint32_t image;
    std::uint64_t price_cents;
    char name[24], data[50], unused[38];
};
static_assert(sizeof(Item) == 2 * line_bytes);

struct alignas(64) Stock {
    std::uint32_t item;
    std::uint16_t warehouse;
    std::uint16_t quantity;
    std::uint64_t ytd;
    std::uint32_t orders;         // S_ORDER_CNT
    std::uint32_t remote_orders;  // S_REMOTE_CNT
    char district[districts_most][24];
    char data[50], unused[6];
};
static_assert(sizeof(Stock) == 5 * line_bytes);

struct alignas(64) NewOrder {
    std::uint32_t order;
    std::uint16_t district, warehouse;
    std::uint64_t unused[7];
};
static_assert(sizeof(NewOrder) == line_bytes);

struct alignas(64) OrderLine {
    std::uint64_t delivered;  // OL_DELIVERY_D
    std::uint32_t order;
    std::uint32_t item;
    std::uint32_t amount_cents;
    std::uint16_t warehouse, supply_warehouse;
    std::uint8_t district, number, quantity, unused[5];
    char district_info[24];
    std::uint64_t unused_too;
};
static_assert(sizeof(OrderLine) == line_bytes);

// A row of ORDER, in one block with its lines.
struct alignas(64) Order {
    std::uint64_t entered;  // O_ENTRY_D
    NewOrder* new_order;    // its row in NEW-ORDER, null once it is delivered
    std::uint32_t id;
    std::uint32_t customer;
    std::uint16_t district, warehouse;
    std::uint8_t carrier, line_count, all_local, unused;
    std::uint64_t unused_too[4];

    OrderLine* lines() { return reinterpret_cast<OrderLine*>(this + 1); }
    const OrderLine* lines() const { return reinterpret_cast<const OrderLine*>(this + 1); }
    static constexpr std::uint64_t bytes(std::uint64_t line_count) { return sizeof(Order) + line_count * sizeof(OrderLine); }
};
static_assert(sizeof(Order) == line_bytes);

struct alignas(64) History {
    std::uint64_t date;
    std::uint32_t customer;
    std::uint32_t amount_cents;
    std::uint16_t customer_district, customer_warehouse, district, warehouse;
    std::uint32_t payment;  // the customer's C_PAYMENT_CNT with this one: shows a check in which order payments came
    std::uint32_t unused;
    char data[24];
    std::uint64_t unused_too;
};
static_assert(sizeof(History) == line_bytes);

inline constexpr std::uint64_t rows_per_block = 8;
struct HistoryBlock {
    History rows[rows_per_block];
};

}  // namespace durasim::tpcc

#endif
