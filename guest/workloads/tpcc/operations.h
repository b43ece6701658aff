// The transactions that terminals ask for (clauses 2.4.1, 2.5.1 and 2.7.1): each computed from the seed, the thread and its
// number. A thread is a terminal of one warehouse, or of all (tpcc-any.cpp), and its districts are drawn at random, as for
// Payment in the specification and for all transactions where terminals share a connection.
#ifndef DURASIM_WORKLOADS_TPCC_OPERATIONS_H
#define DURASIM_WORKLOADS_TPCC_OPERATIONS_H

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "workloads/tpcc/contents.h"

namespace durasim::tpcc {

// The customers of each last name of each district, by first name: a secondary index. It is in ordinary memory and is made
// anew when a pool is opened, since names never change.
class NameIndex {
public:
    NameIndex() = default;

    NameIndex(const Shape& shape, const Choices& choices) : customers_(shape.customers), last_names_(shape.last_names()) {
        std::vector<Name> names(customers_);
        for (std::uint64_t district = 0; district < shape.all_districts(); ++district) {
            const std::size_t first = sorted_.size();
            for (std::uint32_t i = 0; i < customers_; ++i) {
                names[i] = name_of(shape, choices, district * customers_ + i);
                sorted_.push_back(i);
            }
            std::sort(sorted_.begin() + static_cast<std::ptrdiff_t>(first), sorted_.end(), [&](std::uint32_t a, std::uint32_t b) {
                if (names[a].last != names[b].last) return names[a].last < names[b].last;
                const int order = std::memcmp(names[a].first, names[b].first, sizeof names[a].first);
                return order != 0 ? order < 0 : a < b;
            });
            std::uint32_t at = 0;
            for (std::uint64_t name = 0; name < last_names_; ++name) {
                starts_.push_back(at);
                while (at < customers_ && names[sorted_[first + at]].last == name) ++at;
            }
            starts_.push_back(at);
        }
    }

    // The customer in the middle of those with this last name (clause 2.5.2.2, case 2). Each name has at least one.
    std::uint64_t middle(std::uint64_t district, std::uint64_t last_name) const {
        const std::uint32_t* starts = &starts_[district * (last_names_ + 1) + last_name];
        return sorted_[district * customers_ + starts[0] + (starts[1] - starts[0] - 1) / 2];
    }

private:
    std::uint64_t customers_ = 0, last_names_ = 0;
    std::vector<std::uint32_t> sorted_;  // of each district
    std::vector<std::uint32_t> starts_;  // of each name of each district, and where the last one ends
};

enum class Kind { new_order, payment, delivery };

struct Operation {
    Kind kind;
    std::uint64_t date;
    std::uint64_t warehouse, district;  // where it takes place; the district counts those of all warehouses
    std::uint64_t customer;             // counts those of all districts

    struct Line {
        std::uint32_t item;
        std::uint16_t supply_warehouse;
        std::uint16_t quantity;
    };
    bool rolls_back;  // the last item does not exist
    std::uint64_t line_count;
    Line lines[order_lines_most];

    std::uint64_t amount_cents;
    std::uint32_t carrier;

    // The warehouses whose rows it changes, in ascending order. Returns how many; there is room for 1 + line_count.
    std::uint64_t warehouses(const Shape& shape, std::uint64_t* numbers) const {
        std::uint64_t count = 0;
        numbers[count++] = warehouse;
        if (kind == Kind::payment) numbers[count++] = customer / shape.customers / shape.districts;
        if (kind == Kind::new_order) {
            for (std::uint64_t i = 0; i < line_count; ++i) numbers[count++] = lines[i].supply_warehouse;
        }
        std::sort(numbers, numbers + count);
        return static_cast<std::uint64_t>(std::unique(numbers, numbers + count) - numbers);
    }
};

// The number of operations that a thread can have.
inline constexpr std::uint64_t thread_operations_max = std::uint64_t{1} << 40;

constexpr std::uint64_t date_of(std::uint64_t thread, std::uint64_t number) {
    return first_operation_date + thread * thread_operations_max + number;
}
// A date of this thread's operations?
constexpr std::uint64_t thread_of_date(std::uint64_t date) { return (date - first_operation_date) / thread_operations_max; }

namespace detail {

inline std::uint64_t other_warehouse(Random& random, const Shape& shape, std::uint64_t home) {
    const std::uint64_t other = random.below(shape.warehouses - 1);
    return other < home ? other : other + 1;
}

}  // namespace detail

// The place of an operation whose warehouse is drawn.
inline std::uint64_t warehouse_of(const Shape& shape, std::uint64_t thread, std::uint64_t number) {
    return random_for(shape.seed, for_operation, date_of(thread, number)).below(shape.warehouses);
}

inline Operation operation_for(const Shape& shape, const Choices& choices, const NameIndex& names, std::uint64_t thread,
                               std::uint64_t number) {
    Operation made{};
    made.date = date_of(thread, number);
    Random random = random_for(shape.seed, for_operation, made.date);
    made.warehouse = draws_warehouse ? random.below(shape.warehouses) : thread % shape.warehouses;
    made.district = made.warehouse * shape.districts + random.below(shape.districts);
    const std::uint64_t of_hundred = random.below(100);
    if (of_hundred >= 100 - shape.delivery_percent) {
        made.kind = Kind::delivery;
        made.carrier = static_cast<std::uint32_t>(within(random, 1, 10));
    } else if (of_hundred >= 100 - shape.delivery_percent - shape.payment_percent) {
        made.kind = Kind::payment;
        std::uint64_t district = made.district;
        if (shape.warehouses > 1 && random.below(100) >= 85) {
            district = detail::other_warehouse(random, shape, made.warehouse) * shape.districts + random.below(shape.districts);
        }
        const bool is_by_name = random.below(100) < 60;
        const std::uint64_t customer = is_by_name ? names.middle(district, choices.last_name(random)) : choices.customer(random);
        made.customer = district * shape.customers + customer;
        made.amount_cents = within(random, 100, 500000);
    } else {
        made.kind = Kind::new_order;
        made.customer = made.district * shape.customers + choices.customer(random);
        made.line_count = within(random, order_lines_min, shape.order_lines_max);
        made.rolls_back = random.below(100) == 0;
        for (std::uint64_t i = 0; i < made.line_count; ++i) {
            Operation::Line& line = made.lines[i];
            line.item = static_cast<std::uint32_t>(choices.item(random));
            const bool is_remote = shape.warehouses > 1 && random.below(100) == 0;
            line.supply_warehouse =
                static_cast<std::uint16_t>(is_remote ? detail::other_warehouse(random, shape, made.warehouse) : made.warehouse);
            line.quantity = static_cast<std::uint16_t>(within(random, 1, 10));
        }
        if (made.rolls_back) made.lines[made.line_count - 1].item = static_cast<std::uint32_t>(shape.items());
    }
    return made;
}

// The items that an order takes from the stock (clause 2.4.2.2).
inline void take_from_stock(Stock& counts, std::uint64_t quantity, bool is_remote) {
    counts.quantity = static_cast<std::uint16_t>(counts.quantity >= quantity + 10 ? counts.quantity - quantity
                                                                                  : counts.quantity + 91 - quantity);
    counts.ytd += quantity;
    ++counts.orders;
    counts.remote_orders += is_remote;
}

// The row of ORDER that an operation inserts, without its place in NEW-ORDER, and a line of it.
inline Order order_of(const Shape& shape, const Operation& from, std::uint32_t id) {
    Order row{};
    row.entered = from.date;
    row.id = id;
    row.customer = static_cast<std::uint32_t>(from.customer % shape.customers + 1);
    row.district = static_cast<std::uint16_t>(from.district % shape.districts + 1);
    row.warehouse = static_cast<std::uint16_t>(from.warehouse + 1);
    row.line_count = static_cast<std::uint8_t>(from.line_count);
    row.all_local = 1;
    for (std::uint64_t i = 0; i < from.line_count; ++i) row.all_local &= from.lines[i].supply_warehouse == from.warehouse;
    return row;
}

inline OrderLine order_line_of(const Order& order, const Operation::Line& from, std::uint64_t number, std::uint64_t price_cents,
                               const char* district_info) {
    OrderLine row{};
    row.order = order.id;
    row.item = from.item + 1;
    row.amount_cents = static_cast<std::uint32_t>(from.quantity * price_cents);
    row.warehouse = order.warehouse;
    row.supply_warehouse = static_cast<std::uint16_t>(from.supply_warehouse + 1);
    row.district = static_cast<std::uint8_t>(order.district);
    row.number = static_cast<std::uint8_t>(number + 1);
    row.quantity = static_cast<std::uint8_t>(from.quantity);
    std::memcpy(row.district_info, district_info, sizeof row.district_info);
    return row;
}

inline bool has_bad_credit(const Customer& customer) { return std::memcmp(customer.credit, "BC", 2) == 0; }

// The effect of a payment on its customer (clause 2.5.2.2). Returns whether C_DATA changed: the payment is written in front, as
// text of a fixed length, and what passes the end is lost.
inline bool take_payment(Customer& customer, const Shape& shape, const Operation& from) {
    customer.balance_cents -= static_cast<std::int64_t>(from.amount_cents);
    customer.ytd_payment_cents += from.amount_cents;
    ++customer.payments;
    if (!has_bad_credit(customer)) return false;
    static constexpr unsigned text_bytes = 32;
    char text[text_bytes];
    std::memset(text, ' ', sizeof text);
    char* end = text;
    auto put_number = [&end](std::uint64_t value, unsigned digits) {
        for (unsigned i = digits; i-- > 0; value /= 10) end[i] = static_cast<char>('0' + value % 10);
        end += digits + 1;
    };
    put_number(customer.id, 5);
    put_number(customer.district, 2);
    put_number(customer.warehouse, 4);
    put_number(from.district % shape.districts + 1, 2);
    put_number(from.warehouse + 1, 4);
    put_number(from.amount_cents, 7);
    std::memmove(customer.data + text_bytes, customer.data, customer_data_bytes - text_bytes);
    std::memcpy(customer.data, text, text_bytes);
    return true;
}

}  // namespace durasim::tpcc

#endif
