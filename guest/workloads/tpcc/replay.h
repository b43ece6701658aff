// All operations once more, in ordinary memory, for the check.
//
// Seed and numbers say what each thread did. In which order threads met is read from the pool: the rows that operations left
// carry their dates. An order is believed if every thread can go through its operations in their order and each finds its row
// to be the next one there; what comes out is then compared with the pool column by column. A single thread leaves no choice.
#ifndef DURASIM_WORKLOADS_TPCC_REPLAY_H
#define DURASIM_WORKLOADS_TPCC_REPLAY_H

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "workloads/tpcc/database.h"
#include "workloads/tpcc/operations.h"

namespace durasim::tpcc {

// The rows of a pool that grow in number, of each district; all of them may be read.
struct Grown {
    std::vector<const Order*> orders;
    std::vector<const History*> histories;
};

class Replay {
public:
    struct Delivery {
        std::uint64_t date;
        std::uint64_t district, order;

        bool operator<(const Delivery& other) const {
            return date != other.date ? date < other.date : district < other.district;
        }
    };

    struct OrderState {
        std::uint64_t entered;  // loading_date, or that of the operation
        std::uint64_t delivered = 0;
        std::uint32_t carrier = 0;
    };

    struct DistrictState {
        std::uint64_t ytd_cents = 0;
        std::uint64_t finished = 0;
        std::uint64_t oldest = 0;  // order that is not delivered, from 0
        std::vector<OrderState> orders;
        std::vector<std::uint64_t> histories;   // dates
        std::vector<std::uint32_t> of_customer;  // their C_PAYMENT_CNT
    };

    Replay(const Shape& shape, const Choices& choices, const std::vector<Grown>& grown)
        : shape_(shape), choices_(choices), grown_(grown), names_(shape, choices) {
        for (std::uint64_t d = 0; d < grown.size(); ++d) {
            for (std::uint64_t i = shape.delivered_at_first(); i < grown[d].orders.size(); ++i) {
                const std::uint64_t date = grown[d].orders[i]->lines()[0].delivered;
                if (date != 0) deliveries_.push_back({date, d, i});
            }
        }
        std::sort(deliveries_.begin(), deliveries_.end());
    }

    // The state after loading, which is complete if there are operations.
    void load(std::uint64_t steps) {
        warehouse_ytd_cents.assign(shape_.loaded(shape_.warehouses, steps),
                                   shape_.districts * shape_.customers * paid_at_first_cents);
        districts.resize(shape_.loaded(shape_.all_districts(), steps));
        for (std::uint64_t d = 0; d < districts.size(); ++d) {
            DistrictState& district = districts[d];
            district.ytd_cents = shape_.customers * paid_at_first_cents;
            district.oldest = shape_.delivered_at_first();
            district.orders.assign(shape_.loaded_orders(d, steps), {.entered = loading_date});
            for (std::uint64_t c = 0; c < shape_.loaded_customers(d, steps); ++c) {
                district.histories.push_back(loading_date);
                district.of_customer.push_back(1);
                customers.push_back(loaded_customer(shape_, choices_, d * shape_.customers + c));
            }
        }
        const std::uint64_t rows = shape_.loaded(shape_.warehouses * shape_.items(), steps);
        for (std::uint64_t i = 0; i < rows; ++i) stock.push_back(loaded_stock(shape_, i));
    }

    // Whether the operations fit together.
    bool run(const std::vector<std::uint64_t>& finished) {
        std::vector<std::uint64_t> done(finished.size());
        std::vector<std::uint64_t> terminals(shape_.warehouses);
        for (std::uint64_t thread = 0; thread < finished.size(); ++thread) ++terminals[thread % shape_.warehouses];
        if (draws_warehouse) std::fill(terminals.begin(), terminals.end(), finished.size());
        for (bool goes_on = true; goes_on;) {
            goes_on = false;
            for (std::uint64_t thread = 0; thread < finished.size(); ++thread) {
                while (done[thread] < finished[thread]) {
                    const Operation operation = operation_for(shape_, choices_, names_, thread, done[thread]);
                    if (!perform(operation, terminals[operation.warehouse] == 1)) break;
                    ++done[thread];
                    goes_on = true;
                }
            }
        }
        return done == finished;
    }

    // The row of ORDER, without its pointer, and its lines as they have to be.
    WholeOrder whole_order(std::uint64_t district, std::uint64_t number) const {
        const OrderState& state = districts[district].orders[number];
        WholeOrder whole{};
        if (number < shape_.customers) {
            whole = loaded_order(shape_, district, number, customers_of(district)[number]);
        } else {
            const std::uint64_t thread = thread_of_date(state.entered);
            const Operation from =
                operation_for(shape_, choices_, names_, thread, state.entered - date_of(thread, 0));
            whole.order = order_of(shape_, from, static_cast<std::uint32_t>(number + 1));
            for (std::uint64_t i = 0; i < from.line_count; ++i) {
                const Operation::Line& line = from.lines[i];
                whole.lines[i] = order_line_of(
                    whole.order, line, i, loaded_item(shape_, line.item).price_cents,
                    stock[line.supply_warehouse * shape_.items() + line.item].district[district % shape_.districts]);
            }
        }
        if (state.delivered != 0) {
            whole.order.carrier = static_cast<std::uint8_t>(state.carrier);
            for (std::uint64_t i = 0; i < whole.order.line_count; ++i) whole.lines[i].delivered = state.delivered;
        }
        return whole;
    }

    // The row of HISTORY as it has to be.
    History history(std::uint64_t district, std::uint64_t number) const {
        const DistrictState& state = districts[district];
        const std::uint64_t date = state.histories[number], warehouse = district / shape_.districts;
        std::uint64_t customer = district * shape_.customers + number, amount_cents = paid_at_first_cents;
        if (date != loading_date) {
            const std::uint64_t thread = thread_of_date(date);
            const Operation from = operation_for(shape_, choices_, names_, thread, date - date_of(thread, 0));
            customer = from.customer;
            amount_cents = from.amount_cents;
        }
        return history_of(loaded_warehouse(shape_, warehouse).address, loaded_district(shape_, district).address, warehouse + 1,
                          district % shape_.districts + 1, customers[customer], state.of_customer[number], amount_cents, date);
    }

    std::vector<std::uint64_t> warehouse_ytd_cents;
    std::vector<DistrictState> districts;
    std::vector<Customer> customers;
    std::vector<Stock> stock;

private:
    // Performs an operation unless its turn has not come.
    bool perform(const Operation& operation, bool is_only_terminal) {
        DistrictState& district = districts[operation.district];
        const Grown& rows = grown_[operation.district];
        if (operation.kind == Kind::new_order) {
            if (!operation.rolls_back) {
                const std::uint64_t number = district.orders.size();
                if (number >= rows.orders.size() || rows.orders[number]->entered != operation.date) return false;
                district.orders.push_back({.entered = operation.date});
                for (std::uint64_t i = 0; i < operation.line_count; ++i) {
                    const Operation::Line& line = operation.lines[i];
                    take_from_stock(stock[line.supply_warehouse * shape_.items() + line.item], line.quantity,
                                    line.supply_warehouse != operation.warehouse);
                }
            }
        } else if (operation.kind == Kind::payment) {
            const std::uint64_t number = district.histories.size();
            Customer& customer = customers[operation.customer];
            if (number >= rows.histories.size() || rows.histories[number]->date != operation.date ||
                rows.histories[number]->payment != customer.payments + 1) {
                return false;
            }
            take_payment(customer, shape_, operation);
            warehouse_ytd_cents[operation.warehouse] += operation.amount_cents;
            district.ytd_cents += operation.amount_cents;
            district.histories.push_back(operation.date);
            district.of_customer.push_back(customer.payments);
        } else if (!deliver(operation, is_only_terminal)) {
            return false;
        }
        ++district.finished;
        return true;
    }

    // Delivers what the pool says that this operation delivered, if these are the oldest orders. Only where no other terminal
    // shares the warehouse it is certain that a district that was passed over had no new order.
    bool deliver(const Operation& operation, bool is_only_terminal) {
        const std::uint64_t first = operation.warehouse * shape_.districts;
        std::uint64_t order_of_district[districts_most];
        constexpr std::uint64_t none = ~std::uint64_t{0};
        for (std::uint64_t i = 0; i < shape_.districts; ++i) {
            const auto found = std::lower_bound(deliveries_.begin(), deliveries_.end(), Delivery{operation.date, first + i, 0});
            const bool is_there = found != deliveries_.end() && found->date == operation.date && found->district == first + i;
            order_of_district[i] = is_there ? found->order : none;
            const DistrictState& district = districts[first + i];
            const bool has_orders = district.oldest < district.orders.size();
            if (is_there ? !has_orders || found->order != district.oldest : is_only_terminal && has_orders) return false;
        }
        for (std::uint64_t i = 0; i < shape_.districts; ++i) {
            if (order_of_district[i] == none) continue;
            DistrictState& district = districts[first + i];
            OrderState& order = district.orders[district.oldest++];
            order.delivered = operation.date;
            order.carrier = operation.carrier;
            const WholeOrder whole = whole_order(first + i, order_of_district[i]);
            Customer& customer = customers[(first + i) * shape_.customers + whole.order.customer - 1];
            for (std::uint64_t l = 0; l < whole.order.line_count; ++l) customer.balance_cents += whole.lines[l].amount_cents;
            ++customer.deliveries;
        }
        return true;
    }

    const std::vector<std::uint32_t>& customers_of(std::uint64_t district) const {
        if (permuted_district_ != district) {
            permuted_ = order_of_customers(shape_, district);
            permuted_district_ = district;
        }
        return permuted_;
    }

    const Shape& shape_;
    const Choices& choices_;
    const std::vector<Grown>& grown_;
    NameIndex names_;
    std::vector<Delivery> deliveries_;
    // The last permutation that was asked for.
    mutable std::vector<std::uint32_t> permuted_;
    mutable std::uint64_t permuted_district_ = ~std::uint64_t{0};
};

}  // namespace durasim::tpcc

#endif
