// New Order, Payment and Delivery (clauses 2.4 to 2.7) as bodies of transactions. The caller holds the locks of the
// warehouses that an operation changes, and counts the operation in the same transaction.
#ifndef DURASIM_WORKLOADS_TPCC_TRANSACTIONS_H
#define DURASIM_WORKLOADS_TPCC_TRANSACTIONS_H

#include <cstdint>

#include "durasim/history.h"
#include "durasim/tx.h"
#include "workloads/tpcc/database.h"
#include "workloads/tpcc/operations.h"

namespace durasim::tpcc {

// The output of a terminal, of all its transactions so far.
struct Shown {
    std::uint64_t orders = 0;
    std::uint64_t orders_rolled_back = 0;
    std::uint64_t order_cents = 0;    // with discounts and taxes
    std::uint64_t original_lines = 0;  // order lines with "brand-generic" B
    std::uint64_t payments = 0;
    std::uint64_t deliveries = 0;  // orders that were delivered

    void add(const Shown& more) {
        orders += more.orders;
        orders_rolled_back += more.orders_rolled_back;
        order_cents += more.order_cents;
        original_lines += more.original_lines;
        payments += more.payments;
        deliveries += more.deliveries;
    }
};

class Transactions {
public:
    Transactions(const Database& database, Tx& t) : database_(database), shape_(database.shape), t_(t) {}

    Shown perform(const Operation& operation) {
        if (operation.kind == Kind::new_order) return new_order(operation);
        if (operation.kind == Kind::payment) return payment(operation);
        return delivery(operation);
    }

    // Puts a loaded order, or that of an operation, into the pool: a block with its lines, and a row in NEW-ORDER unless it
    // is delivered already. D_NEXT_O_ID continues.
    void insert_order(District& district, std::uint64_t district_number, WholeOrder& whole) {
        const std::uint64_t arena = district_number / shape_.districts, count = whole.order.id - 1;
        auto* block = static_cast<Order*>(t_.allocate(Order::bytes(whole.order.line_count), arena));
        if (whole.order.carrier == 0) {
            whole.order.new_order = static_cast<NewOrder*>(t_.allocate(sizeof(NewOrder), arena));
            const NewOrder row = new_order_of(whole.order);
            put_row(t_, *whole.order.new_order, row);
        }
        put_row(t_, *block, whole.order);
        for (std::uint64_t i = 0; i < whole.order.line_count; ++i) put_row(t_, block->lines()[i], whole.lines[i]);
        district.orders.append(t_, count, reinterpret_cast<std::uint64_t>(block), arena);
        t_.write(district.next_order, whole.order.id + 1);
        if constexpr (has_history) {
            report_change(object_of(Table::order, district_number, count), 0, version(*block, whole.order.line_count));
        }
    }

    void insert_history(District& district, std::uint64_t district_number, const History& row) {
        const std::uint64_t arena = district_number / shape_.districts, count = t_.read(district.history_rows);
        const std::uint64_t blocks = (count + rows_per_block - 1) / rows_per_block;
        HistoryBlock* block;
        if (count % rows_per_block == 0) {
            block = static_cast<HistoryBlock*>(t_.allocate(sizeof(HistoryBlock), arena));
            district.histories.append(t_, blocks, reinterpret_cast<std::uint64_t>(block), arena);
        } else {
            block = reinterpret_cast<HistoryBlock*>(district.histories.at(t_, blocks, blocks - 1));
        }
        History& place = block->rows[count % rows_per_block];
        put_row(t_, place, row);
        t_.write(district.history_rows, static_cast<std::uint32_t>(count + 1));
        if constexpr (has_history) report_change(object_of(Table::history, district_number, count), 0, version(place));
    }

    template <class Row>
    std::uint64_t version(const Row& row) {
        return version_of_row(row, reader());
    }
    std::uint64_t version(const District& row) { return version_of_district(row, reader()); }
    std::uint64_t version(const Order& order, std::uint64_t line_count) {
        return version_of_order(order, line_count, t_.read(order.new_order), reader());
    }

private:
    struct Reader {
        Tx& t;
        std::uint64_t operator()(const std::uint64_t& word) const { return t.read(word); }
    };
    Reader reader() const { return {t_}; }

    template <class Row>
    Row copy(const Row& row) {
        Row read;
        get_row(t_, read, row);
        return read;
    }

    // Clause 2.4.2.2. An order that has to be rolled back, since its last item does not exist, is found out before the first
    // write: not every machine can take stores back. Its reads are made; what it leaves is that the district counts it.
    Shown new_order(const Operation& operation) {
        District& district = database_.district(operation.district);
        const Customer& customer = database_.customer(operation.customer);
        [[maybe_unused]] std::uint64_t found_district = 0, found_stock[order_lines_most];
        if constexpr (has_history) {
            found_district = version(district);
            report_read(object_of(Table::warehouse, operation.warehouse), version(database_.warehouse(operation.warehouse)));
            report_read(object_of(Table::customer, operation.customer), version(customer));
            for (std::uint64_t i = 0; i < operation.line_count; ++i) {
                const Operation::Line& line = operation.lines[i];
                if (line.item == shape_.items() || is_repeated(operation, i)) continue;
                report_read(object_of(Table::item, line.item), version(database_.items[line.item]));
                found_stock[i] = version(stock_of(line));
            }
        }
        const std::uint64_t warehouse_tax = t_.read(database_.warehouse(operation.warehouse).tax);
        const std::uint64_t district_tax = t_.read(district.tax);
        const std::uint64_t discount = t_.read(customer.discount);
        constexpr std::uint64_t item_words = (offsetof(Item, unused) + 7) / 8;
        std::uint64_t prices_cents[order_lines_most];
        bool originals[order_lines_most];
        for (std::uint64_t i = 0; i < operation.line_count; ++i) {
            const std::uint64_t number = operation.lines[i].item;
            if (number >= shape_.items()) {
                count(district);
                if constexpr (has_history) {
                    report_change(object_of(Table::district, operation.district), found_district, version(district));
                }
                return {.orders_rolled_back = 1};
            }
            Item item{};
            get_row(t_, item, database_.items[number], item_words * 8);
            prices_cents[i] = item.price_cents;
            originals[i] = is_original(item.data, sizeof item.data);
        }
        WholeOrder whole;
        whole.order = order_of(shape_, operation, t_.read(district.next_order));
        Shown shown{.orders = 1};
        std::uint64_t sum_cents = 0;
        Stock row{};
        for (std::uint64_t i = 0; i < operation.line_count; ++i) {
            const Operation::Line& line = operation.lines[i];
            Stock& stock = stock_of(line);
            // Of S_DIST_01 to S_DIST_10 the one for this district only.
            const std::uint64_t info = offsetof(Stock, district) + operation.district % shape_.districts * sizeof row.district[0];
            get_row(t_, row, stock, offsetof(Stock, district));
            get_row(t_, row, stock, info + sizeof row.district[0], info);
            get_row(t_, row, stock, sizeof(Stock), offsetof(Stock, data));
            take_from_stock(row, line.quantity, line.supply_warehouse != operation.warehouse);
            t_.write(stock.quantity, row.quantity);
            t_.write(stock.ytd, row.ytd);
            t_.write(stock.orders, row.orders);
            if (line.supply_warehouse != operation.warehouse) t_.write(stock.remote_orders, row.remote_orders);
            whole.lines[i] =
                order_line_of(whole.order, line, i, prices_cents[i], row.district[operation.district % shape_.districts]);
            sum_cents += whole.lines[i].amount_cents;
            shown.original_lines += originals[i] && is_original(row.data, sizeof row.data);
        }
        insert_order(district, operation.district, whole);
        count(district);
        if constexpr (has_history) {
            report_change(object_of(Table::district, operation.district), found_district, version(district));
            for (std::uint64_t i = 0; i < operation.line_count; ++i) {
                const Operation::Line& line = operation.lines[i];
                if (is_repeated(operation, i)) continue;
                report_change(object_of(Table::stock, line.supply_warehouse * shape_.items() + line.item), found_stock[i],
                              version(stock_of(line)));
            }
        }
        shown.order_cents = sum_cents * (10000 - discount) / 10000 * (10000 + warehouse_tax + district_tax) / 10000;
        return shown;
    }

    // Clause 2.5.2.2.
    Shown payment(const Operation& operation) {
        Warehouse& warehouse = database_.warehouse(operation.warehouse);
        District& district = database_.district(operation.district);
        Customer& customer = database_.customer(operation.customer);
        [[maybe_unused]] std::uint64_t found[3];
        if constexpr (has_history) found[0] = version(warehouse), found[1] = version(district), found[2] = version(customer);
        const Warehouse paid_warehouse = copy(warehouse);
        const District paid_district = copy(district);
        t_.write(warehouse.ytd_cents, paid_warehouse.ytd_cents + operation.amount_cents);
        t_.write(district.ytd_cents, paid_district.ytd_cents + operation.amount_cents);
        static_assert(offsetof(Customer, data) % 8 == 0);
        Customer row{};
        get_row(t_, row, customer, offsetof(Customer, data));
        if (has_bad_credit(row)) get_row(t_, row, customer, sizeof(Customer), offsetof(Customer, data));
        const bool data_changed = take_payment(row, shape_, operation);
        t_.write(customer.balance_cents, row.balance_cents);
        t_.write(customer.ytd_payment_cents, row.ytd_payment_cents);
        t_.write(customer.payments, row.payments);
        if (data_changed) put_row(t_, customer, row, sizeof(Customer), offsetof(Customer, data));
        insert_history(district, operation.district,
                       history_of(paid_warehouse.address, paid_district.address, paid_warehouse.id, paid_district.id, row,
                                  row.payments, operation.amount_cents, operation.date));
        count(district);
        if constexpr (has_history) {
            report_change(object_of(Table::warehouse, operation.warehouse), found[0], version(warehouse));
            report_change(object_of(Table::district, operation.district), found[1], version(district));
            report_change(object_of(Table::customer, operation.customer), found[2], version(customer));
        }
        return {.payments = 1};
    }

    // Clause 2.7.4.2, all districts in one transaction (2.7.2.1 leaves open how many). One without a new order is passed over.
    Shown delivery(const Operation& operation) {
        Shown shown;
        for (std::uint64_t i = 0; i < shape_.districts; ++i) {
            const std::uint64_t number = operation.warehouse * shape_.districts + i;
            District& district = database_.district(number);
            [[maybe_unused]] std::uint64_t found = 0;
            if constexpr (has_history) found = version(district);
            if (number == operation.district) count(district);
            const std::uint32_t next = t_.read(district.next_order), oldest = t_.read(district.oldest_new_order);
            if (oldest < next) {
                deliver(operation, number, *reinterpret_cast<Order*>(district.orders.at(t_, next - 1, oldest - 1)));
                t_.write(district.oldest_new_order, oldest + 1);
                ++shown.deliveries;
            }
            if constexpr (has_history) report_change(object_of(Table::district, number), found, version(district));
        }
        return shown;
    }

    void deliver(const Operation& operation, std::uint64_t district, Order& order) {
        const std::uint64_t line_count = t_.read(order.line_count);
        const std::uint64_t number = district * shape_.customers + t_.read(order.customer) - 1;
        Customer& customer = database_.customer(number);
        [[maybe_unused]] std::uint64_t found[2];
        if constexpr (has_history) found[0] = version(order, line_count), found[1] = version(customer);
        t_.free(t_.read(order.new_order), sizeof(NewOrder), operation.warehouse);
        t_.write(order.new_order, nullptr);
        t_.write(order.carrier, static_cast<std::uint8_t>(operation.carrier));
        std::int64_t sum_cents = 0;
        for (std::uint64_t i = 0; i < line_count; ++i) {
            OrderLine& line = order.lines()[i];
            t_.write(line.delivered, operation.date);
            sum_cents += t_.read(line.amount_cents);
        }
        t_.write(customer.balance_cents, t_.read(customer.balance_cents) + sum_cents);
        t_.write(customer.deliveries, t_.read(customer.deliveries) + 1);
        if constexpr (has_history) {
            report_change(object_of(Table::order, district, t_.read(order.id) - 1), found[0], version(order, line_count));
            report_change(object_of(Table::customer, number), found[1], version(customer));
        }
    }

    void count(District& district) { t_.write(district.finished, t_.read(district.finished) + 1); }

    Stock& stock_of(const Operation::Line& line) const { return database_.stock(line.supply_warehouse, line.item); }

    // Whether an earlier line takes from the same row of STOCK: an object is reported once.
    static bool is_repeated(const Operation& operation, std::uint64_t line) {
        for (std::uint64_t i = 0; i < line; ++i) {
            if (operation.lines[i].item == operation.lines[line].item &&
                operation.lines[i].supply_warehouse == operation.lines[line].supply_warehouse) {
                return true;
            }
        }
        return false;
    }

    const Database& database_;
    const Shape& shape_;
    Tx& t_;
};

}  // namespace durasim::tpcc

#endif
