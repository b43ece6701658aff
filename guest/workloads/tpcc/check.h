// The check of a pool of TPC-C: memory, every row against a replay, and the consistency conditions of the specification.
#ifndef DURASIM_WORKLOADS_TPCC_CHECK_H
#define DURASIM_WORKLOADS_TPCC_CHECK_H

#include <cstdint>
#include <cstring>
#include <vector>

#include "durasim/audit.h"
#include "workloads/harness.h"
#include "workloads/tpcc/database.h"
#include "workloads/tpcc/replay.h"

namespace durasim::tpcc {

// The error in the sizes that a root object names, null if there is none. No product of possible sizes overflows.
inline const char* problem_of(const Root& root, std::uint64_t data_bytes) {
    const Shape& shape = root.shape;
    if (root.kind != kind_of_root) return "the root object is not one of tpcc";
    if (shape.warehouses == 0 || shape.warehouses > 256 || shape.districts == 0 || shape.districts > districts_most ||
        shape.customers == 0 || shape.customers > data_bytes / sizeof(Customer) || shape.order_lines_max < order_lines_min ||
        shape.order_lines_max > order_lines_most || shape.payment_percent > 100 ||
        shape.delivery_percent > 100 - shape.payment_percent || shape.steps == 0 || shape.steps > data_bytes ||
        shape.threads == 0 || shape.threads > threads_max || root.loaded > shape.steps ||
        shape.items() > data_bytes / sizeof(Item)) {
        return "the root object has impossible sizes";
    }
    return nullptr;
}

class Checker {
public:
    explicit Checker(const Pool& pool) : audit_(pool), pool_(pool) {}

    // Returns the number of transactions, those that load the tables included.
    std::uint64_t check() {
        if (audit_.problem() != nullptr) DURASIM_VIOLATION("%s", audit_.problem());
        auto* root = pool_.root<Root>();
        if (!audit_.claim(root, sizeof(Root))) DURASIM_VIOLATION("the root object is not allocated");
        if (const char* problem = problem_of(*root, pool_.data_bytes())) DURASIM_VIOLATION("%s", problem);
        claim_tables(*root);
        for (std::uint64_t d = 0; d < shape_.loaded(shape_.all_districts(), root->loaded); ++d) claim_rows(d);
        if (audit_.lines_leaked() != 0) DURASIM_VIOLATION("%llu lines are leaked", static_cast<Long>(audit_.lines_leaked()));

        std::vector<std::uint64_t> finished(shape_.threads);
        std::uint64_t operations = 0;
        for (std::uint64_t thread = 0; thread < shape_.threads; ++thread) {
            finished[thread] = database_.finished(thread);
            if (finished[thread] >= thread_operations_max) {
                DURASIM_VIOLATION("thread %llu has an impossible count", static_cast<Long>(thread));
            }
            operations += finished[thread];
        }
        std::uint64_t counted = 0;
        for (std::uint64_t d = 0; d < grown_.size(); ++d) counted += database_.district(d).finished;
        if (counted != operations) {
            DURASIM_VIOLATION("threads finished %llu operations, but districts count %llu", static_cast<Long>(operations),
                              static_cast<Long>(counted));
        }
        if (operations != 0 && root->loaded != shape_.steps) {
            DURASIM_VIOLATION("there were operations before the tables were loaded");
        }

        const Choices choices(shape_);
        Replay replay(shape_, choices, grown_);
        replay.load(root->loaded);
        if (!replay.run(finished)) DURASIM_VIOLATION("the operations of the threads do not lead to these rows in any order");
        compare(replay);
        if (root->loaded == shape_.steps) {
            for (std::uint64_t w = 0; w < shape_.warehouses; ++w) check_conditions(w);
        }
        return root->loaded + operations;
    }

private:
    void claim_tables(Root& root) {
        const Shape& shape = root.shape;
        bool good = audit_.claim(root.items, shape.items() * sizeof(Item)) &&
                    audit_.claim(root.tables, shape.warehouses * sizeof(Tables)) &&
                    (shape.threads == 1 ? root.progress == nullptr : audit_.claim(root.progress, shape.threads * sizeof(Progress)));
        for (std::uint64_t w = 0; good && w < shape.warehouses; ++w) {
            const Tables& tables = root.tables[w];
            good = audit_.claim(tables.warehouse, sizeof(Warehouse)) &&
                   audit_.claim(tables.districts, shape.districts * sizeof(District)) &&
                   audit_.claim(tables.customers, shape.districts * shape.customers * sizeof(Customer)) &&
                   audit_.claim(tables.stock, shape.items() * sizeof(Stock));
        }
        if (!good) DURASIM_VIOLATION("a table is not allocated");
        database_ = Database(&root);
        shape_ = shape;
    }

    // The orders and the history of a district.
    void claim_rows(std::uint64_t number) {
        const District& district = database_.district(number);
        grown_.emplace_back();
        Grown& grown = grown_.back();
        auto claim_node = [this](std::uint64_t place) { return claim(place, PointerArray::node_bytes); };
        if (district.next_order == 0) refuse(number, "has an impossible D_NEXT_O_ID");
        const bool orders_good =
            district.orders.visit(district.next_order - std::uint64_t{1}, claim_node, [&](std::uint64_t, std::uint64_t place) {
                auto* order = reinterpret_cast<const Order*>(place);
                if (!pool_.holds(order, sizeof(Order)) || place % line_bytes != 0) return false;
                const std::uint64_t line_count = order->line_count;
                if (line_count < order_lines_min || line_count > shape_.order_lines_max) return false;
                if (!audit_.claim(order, Order::bytes(line_count))) return false;
                if (order->new_order != nullptr && !audit_.claim(order->new_order, sizeof(NewOrder))) return false;
                grown.orders.push_back(order);
                return true;
            });
        if (!orders_good) refuse(number, "has orders that are not allocated");
        const std::uint64_t rows = district.history_rows;
        const bool history_good = district.histories.visit(
            (rows + rows_per_block - 1) / rows_per_block, claim_node, [&](std::uint64_t, std::uint64_t place) {
                if (!claim(place, sizeof(HistoryBlock))) return false;
                auto* block = reinterpret_cast<const HistoryBlock*>(place);
                for (std::uint64_t i = 0; i < rows_per_block && grown.histories.size() < rows; ++i) {
                    grown.histories.push_back(&block->rows[i]);
                }
                return true;
            });
        if (!history_good) refuse(number, "has history that is not allocated");
    }

    bool claim(std::uint64_t place, std::uint64_t bytes) { return audit_.claim(reinterpret_cast<const void*>(place), bytes); }

    // Every column of every row.
    void compare(const Replay& replay) const {
        const Root& root = *database_.root;
        for (std::uint64_t i = 0; i < shape_.loaded(shape_.items(), root.loaded); ++i) {
            require_same(loaded_item(shape_, i), database_.items[i], "ITEM", i);
        }
        for (std::uint64_t i = 0; i < replay.stock.size(); ++i) {
            require_same(replay.stock[i], database_.stock(i / shape_.items(), i % shape_.items()), "STOCK", i);
        }
        for (std::uint64_t w = 0; w < replay.warehouse_ytd_cents.size(); ++w) {
            Warehouse row = loaded_warehouse(shape_, w);
            row.ytd_cents = replay.warehouse_ytd_cents[w];
            require_same(row, database_.warehouse(w), "WAREHOUSE", w);
        }
        for (std::uint64_t i = 0; i < replay.customers.size(); ++i) {
            require_same(replay.customers[i], database_.customer(i), "CUSTOMER", i);
        }
        for (std::uint64_t d = 0; d < replay.districts.size(); ++d) compare_district(replay, d);
    }

    void compare_district(const Replay& replay, std::uint64_t number) const {
        const Replay::DistrictState& state = replay.districts[number];
        const District& district = database_.district(number);
        const Grown& grown = grown_[number];
        District row = loaded_district(shape_, number);
        row.ytd_cents = state.ytd_cents;
        row.orders = district.orders;
        row.histories = district.histories;
        row.next_order = static_cast<std::uint32_t>(state.orders.size() + 1);
        row.oldest_new_order = static_cast<std::uint32_t>(state.oldest + 1);
        row.finished = static_cast<std::uint32_t>(state.finished);
        row.history_rows = static_cast<std::uint32_t>(state.histories.size());
        require_same(row, district, "DISTRICT", number);
        for (std::uint64_t i = 0; i < grown.orders.size(); ++i) {
            const Order& order = *grown.orders[i];
            WholeOrder whole = replay.whole_order(number, i);
            if ((order.new_order == nullptr) != (whole.order.carrier != 0)) {
                DURASIM_VIOLATION("order %llu of district %llu is not where it has to be in NEW-ORDER", static_cast<Long>(i),
                                  static_cast<Long>(number));
            }
            if (order.new_order != nullptr) require_same(new_order_of(whole.order), *order.new_order, "NEW-ORDER", i);
            whole.order.new_order = order.new_order;
            require_same(whole.order, order, "ORDER", i);
            for (std::uint64_t l = 0; l < order.line_count; ++l) require_same(whole.lines[l], order.lines()[l], "ORDER-LINE", i);
        }
        for (std::uint64_t i = 0; i < grown.histories.size(); ++i) {
            require_same(replay.history(number, i), *grown.histories[i], "HISTORY", i);
        }
    }

    template <class Row>
    static void require_same(const Row& expected, const Row& found, const char* table, std::uint64_t number) {
        if (std::memcmp(&expected, &found, sizeof(Row)) != 0) {
            DURASIM_VIOLATION("row %llu of %s is not what the operations make of it", static_cast<Long>(number), table);
        }
    }

    // Clause 3.3.2.1 to 3.3.2.12 for a warehouse, on the rows of the pool alone.
    void check_conditions(std::uint64_t warehouse) const {
        std::uint64_t district_ytd_cents = 0, paid_cents = 0;
        for (std::uint64_t i = 0; i < shape_.districts; ++i) {
            const std::uint64_t number = warehouse * shape_.districts + i;
            district_ytd_cents += database_.district(number).ytd_cents;
            paid_cents += check_district_conditions(number);
        }
        if (database_.warehouse(warehouse).ytd_cents != district_ytd_cents) refuse_condition(1, warehouse);
        if (database_.warehouse(warehouse).ytd_cents != paid_cents) refuse_condition(8, warehouse);
    }

    // Returns the sum of H_AMOUNT.
    std::uint64_t check_district_conditions(std::uint64_t number) const {
        const District& district = database_.district(number);
        const Grown& grown = grown_[number];
        std::uint64_t greatest = 0, greatest_new = 0, least_new = ~std::uint64_t{0}, new_orders = 0, delivered_later = 0;
        std::uint64_t lines_named = 0, lines_there = 0, paid_cents = 0;
        std::vector<std::uint64_t> delivered_cents(shape_.customers);
        for (std::uint64_t i = 0; i < grown.orders.size(); ++i) {
            const Order& order = *grown.orders[i];
            const bool is_new = order.new_order != nullptr;
            if (order.id > greatest) greatest = order.id;
            if (is_new) {
                if (order.new_order->order > greatest_new) greatest_new = order.new_order->order;
                if (order.new_order->order < least_new) least_new = order.new_order->order;
                ++new_orders;
            }
            if (is_new != (order.carrier == 0)) refuse_condition(5, number);
            lines_named += order.line_count;
            std::uint64_t lines = 0;
            for (std::uint64_t l = 0; l < order.line_count; ++l) {
                const OrderLine& line = order.lines()[l];
                if (line.order != order.id || line.district != order.district || line.warehouse != order.warehouse) continue;
                ++lines;
                if ((line.delivered == 0) != (order.carrier == 0)) refuse_condition(7, number);
                if (line.delivered != 0) delivered_cents[(order.customer - 1) % shape_.customers] += line.amount_cents;
            }
            if (lines != order.line_count) refuse_condition(6, number);
            lines_there += lines;
            delivered_later += !is_new && i >= shape_.delivered_at_first();
        }
        if (district.next_order - std::uint64_t{1} != greatest || (new_orders != 0 && greatest_new != greatest)) {
            refuse_condition(2, number);
        }
        if (new_orders != 0 && greatest_new - least_new + 1 != new_orders) refuse_condition(3, number);
        if (lines_named != lines_there) refuse_condition(4, number);
        for (const History* row : grown.histories) paid_cents += row->amount_cents;
        if (district.ytd_cents != paid_cents) refuse_condition(9, number);
        // For deliveries of the measured region the specification's 2100 goes up.
        if (grown.orders.size() - new_orders - delivered_later != shape_.delivered_at_first()) refuse_condition(11, number);
        for (std::uint64_t c = 0; c < shape_.customers; ++c) {
            const Customer& customer = database_.customer(number * shape_.customers + c);
            const std::int64_t delivered = static_cast<std::int64_t>(delivered_cents[c]);
            const std::int64_t paid = static_cast<std::int64_t>(paid_by(number * shape_.customers + c));
            if (customer.balance_cents != delivered - paid) refuse_condition(10, number);
            if (customer.balance_cents + static_cast<std::int64_t>(customer.ytd_payment_cents) != delivered) {
                refuse_condition(12, number);
            }
        }
        return paid_cents;
    }

    // The payments of a customer, by HISTORY.
    std::uint64_t paid_by(std::uint64_t customer) const {
        if (paid_cents_.empty()) {
            paid_cents_.resize(shape_.all_customers());
            for (const Grown& grown : grown_) {
                for (const History* row : grown.histories) {
                    const std::uint64_t warehouse = row->customer_warehouse - std::uint64_t{1};
                    const std::uint64_t district = warehouse * shape_.districts + row->customer_district - 1;
                    const std::uint64_t payer = district * shape_.customers + row->customer - 1;
                    if (payer < paid_cents_.size()) paid_cents_[payer] += row->amount_cents;
                }
            }
        }
        return paid_cents_[customer];
    }

    [[noreturn]] static void refuse(std::uint64_t district, const char* what) {
        DURASIM_VIOLATION("district %llu %s", static_cast<Long>(district), what);
    }
    [[noreturn]] static void refuse_condition(int condition, std::uint64_t number) {
        DURASIM_VIOLATION("consistency condition %d of clause 3.3.2 does not hold at %llu", condition, static_cast<Long>(number));
    }

    Audit audit_;
    const Pool& pool_;
    Database database_;
    Shape shape_{};
    std::vector<Grown> grown_;  // of each district
    mutable std::vector<std::uint64_t> paid_cents_;
};

}  // namespace durasim::tpcc

#endif
