// The content of the tables when they are loaded (clause 4.3.3), each row computed from the seed and its place alone.
//
// Smaller tables than those of the specification keep its proportions: a third as many last names as customers of a
// district, the latest 30 % of the orders undelivered, and A of NURand as large as it is for the range's full size.
#ifndef DURASIM_WORKLOADS_TPCC_CONTENTS_H
#define DURASIM_WORKLOADS_TPCC_CONTENTS_H

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "durasim/random.h"
#include "workloads/tpcc/rows.h"

namespace durasim::tpcc {

// Whether each operation takes place in a warehouse that it draws, not in that of its thread.
#if defined(DURASIM_TPCC_ANY_WAREHOUSE)
inline constexpr bool draws_warehouse = true;
#else
inline constexpr bool draws_warehouse = false;
#endif

// The sizes and choices that a pool is made with.
struct Shape {
    std::uint64_t seed;
    std::uint64_t threads;
    std::uint64_t warehouses;
    std::uint64_t districts;        // of a warehouse
    std::uint64_t customers;        // of a district, and its orders at first
    std::uint64_t order_lines_max;  // of an order
    std::uint64_t payment_percent;
    std::uint64_t delivery_percent;
    std::uint64_t steps;  // transactions that load the tables, --populate

    // STOCK has a row for each step, more by less than there are warehouses.
    std::uint64_t items() const { return (steps + warehouses - 1) / warehouses; }
    std::uint64_t all_districts() const { return warehouses * districts; }
    std::uint64_t all_customers() const { return all_districts() * customers; }
    std::uint64_t last_names() const { return customers < 3 ? 1 : customers < 3000 ? customers / 3 : 1000; }
    std::uint64_t delivered_at_first() const { return customers * 7 / 10; }  // of a district's orders

    // Every table is loaded evenly: the number of `rows` that are there after this many steps.
    std::uint64_t loaded(std::uint64_t rows, std::uint64_t after_steps) const {
        __extension__ using Wide = unsigned __int128;
        return static_cast<std::uint64_t>((static_cast<Wide>(rows) * after_steps + steps - 1) / steps);
    }
    // A customer with its history, then an order, customer by customer: two things that are loaded one after the other.
    std::uint64_t loaded_things(std::uint64_t after_steps) const { return loaded(2 * all_customers(), after_steps); }
    std::uint64_t loaded_customers(std::uint64_t of_district, std::uint64_t after_steps) const {
        return (things_of(of_district, after_steps) + 1) / 2;
    }
    std::uint64_t loaded_orders(std::uint64_t of_district, std::uint64_t after_steps) const {
        return things_of(of_district, after_steps) / 2;
    }

    bool operator==(const Shape&) const = default;

private:
    std::uint64_t things_of(std::uint64_t district, std::uint64_t after_steps) const {
        const std::uint64_t things = loaded_things(after_steps), before = district * 2 * customers;
        if (things <= before) return 0;
        return things - before < 2 * customers ? things - before : 2 * customers;
    }
};

// Dates are numbers: 1 for what is loaded, and each operation has one of its own.
inline constexpr std::uint64_t loading_date = 1, first_operation_date = 2;

inline constexpr std::uint64_t paid_at_first_cents = 1000, credit_limit_cents = 5000000;

// Numbers for the row `number` of a table; `table` is any number that distinguishes tables.
inline Random random_for(std::uint64_t seed, std::uint64_t table, std::uint64_t number) {
    return Random(mix(mix(seed) + table) + mix(number));
}
enum RandomFor : std::uint64_t {
    for_constants, for_customer, for_warehouse, for_district, for_item, for_name, for_stock, for_order, for_order_of_customers,
    for_operation
};

inline std::uint64_t within(Random& random, std::uint64_t low, std::uint64_t high) {
    return low + random.below(high - low + 1);
}

// Clause 2.1.6, for a range from 0.
class NonUniform {
public:
    NonUniform(std::uint64_t a, std::uint64_t full_range, std::uint64_t range) : a_(a), range_(range) {
        while (a_ > 0 && (a_ + 1) * full_range > (a + 1) * range) a_ >>= 1;
    }

    std::uint64_t a() const { return a_; }
    std::uint64_t draw(Random& random, std::uint64_t c) const {
        const std::uint64_t left = within(random, 0, a_), right = random.below(range_);
        return ((left | right) + c) % range_;
    }

private:
    std::uint64_t a_, range_;
};

// The distributions of a shape, with the constants C. That of C_LAST for the measured run differs from that for the load by
// 65 to 95, one of the distances that clause 2.1.6.1 allows, as far as small tables have room for that.
class Choices {
public:
    explicit Choices(const Shape& shape)
        : last_name_(255, 1000, shape.last_names()), customer_(1023, 3000, shape.customers), item_(8191, 100000, shape.items()) {
        Random random = random_for(shape.seed, for_constants, 0);
        c_last_name_load_ = within(random, 0, last_name_.a());
        const std::uint64_t distance = within(random, 65, 95);
        c_last_name_run_ = c_last_name_load_ + distance <= 255 ? c_last_name_load_ + distance : c_last_name_load_ - distance;
        c_customer_ = within(random, 0, customer_.a());
        c_item_ = within(random, 0, item_.a());
    }

    std::uint64_t loaded_last_name(Random& random) const { return last_name_.draw(random, c_last_name_load_); }
    std::uint64_t last_name(Random& random) const { return last_name_.draw(random, c_last_name_run_); }
    std::uint64_t customer(Random& random) const { return customer_.draw(random, c_customer_); }
    std::uint64_t item(Random& random) const { return item_.draw(random, c_item_); }

private:
    NonUniform last_name_, customer_, item_;
    std::uint64_t c_last_name_load_ = 0, c_last_name_run_ = 0, c_customer_ = 0, c_item_ = 0;
};

// Fills `place`, which is zero, with `low` to `high` letters and digits; returns how many.
inline std::uint64_t write_text(Random& random, char* place, std::uint64_t low, std::uint64_t high) {
    static constexpr char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";
    const std::uint64_t length = within(random, low, high);
    std::uint64_t bits = 0;
    for (std::uint64_t i = 0; i < length; ++i, bits >>= 6) {
        if (i % 10 == 0) bits = random.next();
        place[i] = letters[bits & 63];
    }
    return length;
}

inline void write_digits(Random& random, char* place, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) place[i] = static_cast<char>('0' + random.below(10));
}

// I_DATA and S_DATA: one in ten holds the word ORIGINAL.
inline void write_original(Random& random, char* place) {
    const std::uint64_t length = write_text(random, place, 26, 50);
    const std::uint64_t at = random.below(length - 8 + 1);
    if (random.below(10) == 0) std::memcpy(place + at, "ORIGINAL", 8);
}
inline bool is_original(const char* data, std::uint64_t bytes) {
    for (const char* end = data + bytes; data + 8 <= end; ++data) {
        data = static_cast<const char*>(std::memchr(data, 'O', static_cast<std::size_t>(end - data)));
        if (data == nullptr || data + 8 > end) return false;
        if (std::memcmp(data, "ORIGINAL", 8) == 0) return true;
    }
    return false;
}

inline void write_address(Random& random, Address& address) {
    write_text(random, address.name, 6, 10);
    write_text(random, address.street_1, 10, 20);
    write_text(random, address.street_2, 10, 20);
    write_text(random, address.city, 10, 20);
    write_text(random, address.state, 2, 2);
    write_digits(random, address.zip, 4);
    std::memcpy(address.zip + 4, "11111", 5);
}

inline Item loaded_item(const Shape& shape, std::uint64_t item) {
    Random random = random_for(shape.seed, for_item, item);
    Item row{};
    row.id = static_cast<std::uint32_t>(item + 1);
    row.image = static_cast<std::uint32_t>(within(random, 1, 10000));
    row.price_cents = within(random, 100, 10000);
    write_text(random, row.name, 14, 24);
    write_original(random, row.data);
    return row;
}

// The `number`-th row of STOCK: those of the first warehouse come first.
inline Stock loaded_stock(const Shape& shape, std::uint64_t number) {
    Random random = random_for(shape.seed, for_stock, number);
    Stock row{};
    row.item = static_cast<std::uint32_t>(number % shape.items() + 1);
    row.warehouse = static_cast<std::uint16_t>(number / shape.items() + 1);
    row.quantity = static_cast<std::uint16_t>(within(random, 10, 100));
    for (auto& district : row.district) write_text(random, district, 24, 24);
    write_original(random, row.data);
    return row;
}

inline Warehouse loaded_warehouse(const Shape& shape, std::uint64_t warehouse) {
    Random random = random_for(shape.seed, for_warehouse, warehouse);
    Warehouse row{};
    row.id = static_cast<std::uint32_t>(warehouse + 1);
    row.tax = static_cast<std::uint32_t>(within(random, 0, 2000));
    row.ytd_cents = shape.districts * shape.customers * paid_at_first_cents;
    write_address(random, row.address);
    return row;
}

// Before its first order. `district` counts those of all warehouses.
inline District loaded_district(const Shape& shape, std::uint64_t district) {
    Random random = random_for(shape.seed, for_district, district);
    District row{};
    row.id = static_cast<std::uint8_t>(district % shape.districts + 1);
    row.warehouse = static_cast<std::uint16_t>(district / shape.districts + 1);
    row.tax = static_cast<std::uint32_t>(within(random, 0, 2000));
    row.ytd_cents = shape.customers * paid_at_first_cents;
    row.next_order = 1;
    row.oldest_new_order = static_cast<std::uint32_t>(shape.delivered_at_first() + 1);
    write_address(random, row.address);
    return row;
}

// Clause 4.3.2.3.
inline void write_last_name(std::uint64_t number, char* place) {
    static constexpr const char* syllables[] = {"BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"};
    for (const std::uint64_t digit : {number / 100 % 10, number / 10 % 10, number % 10}) {
        const std::uint64_t length = std::strlen(syllables[digit]);
        std::memcpy(place, syllables[digit], length);
        place += length;
    }
}

struct Name {
    std::uint64_t last;  // its number
    char first[16];
};

// Customers are counted through all districts.
inline Name name_of(const Shape& shape, const Choices& choices, std::uint64_t customer) {
    Random random = random_for(shape.seed, for_name, customer);
    const std::uint64_t number = customer % shape.customers;
    Name name{};
    name.last = number < shape.last_names() ? number : choices.loaded_last_name(random);
    write_text(random, name.first, 8, 16);
    return name;
}

inline Customer loaded_customer(const Shape& shape, const Choices& choices, std::uint64_t customer) {
    Random random = random_for(shape.seed, for_customer, customer);
    const Name name = name_of(shape, choices, customer);
    Customer row{};
    row.id = static_cast<std::uint32_t>(customer % shape.customers + 1);
    row.district = static_cast<std::uint16_t>(customer / shape.customers % shape.districts + 1);
    row.warehouse = static_cast<std::uint16_t>(customer / shape.customers / shape.districts + 1);
    row.balance_cents = -static_cast<std::int64_t>(paid_at_first_cents);
    row.ytd_payment_cents = paid_at_first_cents;
    row.payments = 1;
    row.credit_limit_cents = credit_limit_cents;
    row.since = loading_date;
    std::memcpy(row.credit, random.below(10) == 0 ? "BC" : "GC", 2);
    row.discount = static_cast<std::uint32_t>(within(random, 0, 5000));
    std::memcpy(row.middle, "OE", 2);
    std::memcpy(row.first, name.first, sizeof row.first);
    write_last_name(name.last, row.last);
    write_text(random, row.street_1, 10, 20);
    write_text(random, row.street_2, 10, 20);
    write_text(random, row.city, 10, 20);
    write_text(random, row.state, 2, 2);
    write_digits(random, row.zip, 4);
    std::memcpy(row.zip + 4, "11111", 5);
    write_digits(random, row.phone, 16);
    write_text(random, row.data, 300, customer_data_bytes);
    return row;
}

// A row of HISTORY of a payment at `place`, by `payer` (a customer's row before it). H_DATA are the two names and four
// blanks between.
inline History history_of(const Address& warehouse, const Address& district, std::uint64_t warehouse_id, std::uint64_t district_id,
                          const Customer& payer, std::uint32_t payment, std::uint64_t amount_cents, std::uint64_t date) {
    History row{};
    row.date = date;
    row.customer = payer.id;
    row.amount_cents = static_cast<std::uint32_t>(amount_cents);
    row.customer_district = payer.district;
    row.customer_warehouse = payer.warehouse;
    row.district = static_cast<std::uint16_t>(district_id);
    row.warehouse = static_cast<std::uint16_t>(warehouse_id);
    row.payment = payment;
    std::memcpy(row.data, warehouse.name, 10);
    std::memset(row.data + 10, ' ', 4);
    std::memcpy(row.data + 14, district.name, 10);
    return row;
}

// The customers of a district in the order of their first orders: a random permutation.
inline std::vector<std::uint32_t> order_of_customers(const Shape& shape, std::uint64_t district) {
    Random random = random_for(shape.seed, for_order_of_customers, district);
    std::vector<std::uint32_t> customers(shape.customers);
    for (std::uint32_t i = 0; i < customers.size(); ++i) {
        customers[i] = i;
        std::swap(customers[i], customers[random.below(i + 1)]);
    }
    return customers;
}

// An order with its lines, as a block in the pool holds them.
struct WholeOrder {
    Order order;
    OrderLine lines[order_lines_most];
};

// The `number`-th order of a district, by customer `customer` of it, as it is loaded.
inline WholeOrder loaded_order(const Shape& shape, std::uint64_t district, std::uint64_t number, std::uint64_t customer) {
    Random random = random_for(shape.seed, for_order, district * shape.customers + number);
    const bool is_delivered = number < shape.delivered_at_first();
    WholeOrder whole{};
    Order& order = whole.order;
    order.entered = loading_date;
    order.id = static_cast<std::uint32_t>(number + 1);
    order.customer = static_cast<std::uint32_t>(customer + 1);
    order.district = static_cast<std::uint16_t>(district % shape.districts + 1);
    order.warehouse = static_cast<std::uint16_t>(district / shape.districts + 1);
    order.carrier = static_cast<std::uint8_t>(is_delivered ? within(random, 1, 10) : 0);
    order.line_count = static_cast<std::uint8_t>(within(random, order_lines_min, shape.order_lines_max));
    order.all_local = 1;
    for (std::uint64_t i = 0; i < order.line_count; ++i) {
        OrderLine& line = whole.lines[i];
        line.delivered = is_delivered ? loading_date : 0;
        line.order = order.id;
        line.item = static_cast<std::uint32_t>(within(random, 1, shape.items()));
        line.amount_cents = static_cast<std::uint32_t>(is_delivered ? 0 : within(random, 1, 999999));
        line.warehouse = order.warehouse;
        line.supply_warehouse = order.warehouse;
        line.district = static_cast<std::uint8_t>(order.district);
        line.number = static_cast<std::uint8_t>(i + 1);
        line.quantity = 5;
        write_text(random, line.district_info, 24, 24);
    }
    return whole;
}

inline NewOrder new_order_of(const Order& order) {
    NewOrder row{};
    row.order = order.id;
    row.district = order.district;
    row.warehouse = order.warehouse;
    return row;
}

}  // namespace durasim::tpcc

#endif
