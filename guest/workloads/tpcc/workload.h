// The workload TPC-C, for the programs tpcc.cpp and tpcc-any.cpp. Each includes it once, so its names are those of the program
// alone, and the compiler inlines what is called once.
#ifndef DURASIM_WORKLOADS_TPCC_WORKLOAD_H
#define DURASIM_WORKLOADS_TPCC_WORKLOAD_H

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "workloads/harness.h"
#include "workloads/tpcc/check.h"
#include "workloads/tpcc/database.h"
#include "workloads/tpcc/operations.h"
#include "workloads/tpcc/transactions.h"

namespace {

using durasim::Arguments;
using durasim::Dump;
using durasim::Long;
using durasim::Pool;
using durasim::Progress;
using durasim::Tx;
using namespace durasim::tpcc;

// The locks that an operation holds.
class Held {
public:
    Held(durasim::TxLock* locks, const std::uint64_t* numbers, std::uint64_t count)
        : locks_(locks), numbers_(numbers), count_(count) {
        for (std::uint64_t i = 0; i < count_; ++i) locks_[numbers_[i]].lock();
    }
    ~Held() {
        for (std::uint64_t i = count_; i-- > 0;) locks_[numbers_[i]].unlock();
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

private:
    durasim::TxLock* locks_;
    const std::uint64_t* numbers_;
    std::uint64_t count_;
};

class Tpcc {
public:
    static std::uint64_t arenas(const Arguments& arguments) {
        return arguments.warehouses != 0 ? arguments.warehouses : arguments.threads;
    }

    static std::uint64_t pool_bytes(const Arguments& arguments) {
        const Shape shape = shape_of(arguments);
        using durasim::block_bytes;
        // Every arena has room for its warehouse and what all share. Where operations take place, how long an order is and
        // how many nodes a directory has is taken as the worst it can be; nothing takes more than a New Order.
        const std::uint64_t terminals = (shape.threads + shape.warehouses - 1) / shape.warehouses;
        const std::uint64_t operations = draws_warehouse ? most_in_one_warehouse(shape, arguments.ops)
                                                         : std::min(arguments.ops, (arguments.ops / shape.threads + 1) * terminals);
        const std::uint64_t customers = shape.districts * shape.customers;
        const std::uint64_t tables = block_bytes(sizeof(Warehouse)) + block_bytes(shape.districts * sizeof(District)) +
                                     block_bytes(customers * sizeof(Customer)) + block_bytes(shape.items() * sizeof(Stock));
        const std::uint64_t orders = (customers + operations) *
                                     (block_bytes(Order::bytes(shape.order_lines_max)) + block_bytes(sizeof(NewOrder)));
        const std::uint64_t directories =
            shape.districts * 2 * durasim::PointerArray::pool_bytes(shape.customers + 1) + 10 * (operations + 32);
        const std::uint64_t histories = (customers + operations + shape.districts * rows_per_block) * sizeof(History);
        const std::uint64_t shared = sizeof(durasim::ArenaHeader) + block_bytes(sizeof(Root)) +
                                     block_bytes(shape.items() * sizeof(Item)) + block_bytes(shape.warehouses * sizeof(Tables)) +
                                     block_bytes(shape.threads * sizeof(Progress));
        return shape.warehouses * (tables + orders + directories + histories + shared + slack_bytes);
    }

    Tpcc(Pool& pool, const Arguments& arguments) {
        const Shape shape = shape_of(arguments);
        if (pool.root<Root>() == nullptr) make(pool, shape);
        Root* root = pool.root<Root>();
        if (root->kind != kind_of_root) durasim::fail(durasim::exit_usage, "tpcc: the pool belongs to another workload");
        if (root->shape != shape) refuse_shape(root->shape);
        database_ = Database(root);
        choices_ = std::make_unique<Choices>(shape);
        names_ = NameIndex(shape, *choices_);
        for (std::uint64_t i = 0; i < shape.threads; ++i) finished_.push_back(database_.finished(i));
        shown_.resize(shape.threads);
        if (shape.threads > 1) locks_ = std::make_unique<durasim::TxLock[]>(shape.warehouses);
    }

    std::uint64_t populated() const { return database_.root->loaded; }

    struct Thread {
        std::uint64_t number;
        std::uint64_t finished;  // operations
        Shown shown;
    };

    Thread enter(std::uint64_t number) const { return {number, finished_[number], shown_[number]}; }
    void leave(const Thread& thread) {
        finished_[thread.number] = thread.finished;
        shown_[thread.number] = thread.shown;
    }

    void populate_one(Thread&) {
        const std::uint64_t step = database_.root->loaded;
        durasim::tx([&](Tx& t) { load(t, step); });
    }

    void operation(Thread& thread) {
        const Operation operation = operation_for(database_.shape, *choices_, names_, thread.number, thread.finished);
        if (locks_ == nullptr) {
            perform(thread, operation);
        } else {
            std::uint64_t warehouses[1 + order_lines_most];
            const std::uint64_t count = operation.warehouses(database_.shape, warehouses);
            const Held held(locks_.get(), warehouses, count);
            perform(thread, operation);
        }
    }

    void compare_with_model() const {
        // The check has replayed what the pool says was done; here remains whether that is what was done.
        for (std::uint64_t i = 0; i < finished_.size(); ++i) {
            if (database_.finished(i) != finished_[i]) {
                DURASIM_VIOLATION("thread %llu finished %llu operations, but the pool says %llu", static_cast<Long>(i),
                                  static_cast<Long>(finished_[i]), static_cast<Long>(database_.finished(i)));
            }
        }
    }

    void print_result() const {
        Shown sum;
        for (const Shown& shown : shown_) sum.add(shown);
        std::printf("orders=%llu rolled_back=%llu order_cents=%llu original_lines=%llu payments=%llu deliveries=%llu",
                    static_cast<Long>(sum.orders), static_cast<Long>(sum.orders_rolled_back),
                    static_cast<Long>(sum.order_cents), static_cast<Long>(sum.original_lines),
                    static_cast<Long>(sum.payments), static_cast<Long>(sum.deliveries));
    }

    static std::uint64_t check(const Pool& pool) { return Checker(pool).check(); }

    static void dump(const Pool& pool, Dump& dump);

private:
    // Rounding in pool_bytes, and the highest nodes of directories.
    static constexpr std::uint64_t slack_bytes = 8192;

    // Of operations that draw their warehouse.
    static std::uint64_t most_in_one_warehouse(const Shape& shape, std::uint64_t ops) {
        std::vector<std::uint64_t> operations(shape.warehouses);
        for (std::uint64_t thread = 0; thread < shape.threads; ++thread) {
            // A share of the unmeasured operations and one of the measured ones, each rounded up.
            for (std::uint64_t i = 0; i < ops / shape.threads + 2; ++i) ++operations[warehouse_of(shape, thread, i)];
        }
        return *std::max_element(operations.begin(), operations.end());
    }

    static Shape shape_of(const Arguments& arguments) {
        if (arguments.populate == 0) durasim::fail(durasim::exit_usage, "tpcc: --populate has to be at least 1");
        if (arguments.payment_percent + arguments.delivery_percent > 100) {
            durasim::fail(durasim::exit_usage, "tpcc: --payment-percent and --delivery-percent together are at most 100, not %llu",
                          static_cast<Long>(arguments.payment_percent + arguments.delivery_percent));
        }
        Shape shape{.seed = arguments.seed,
                    .threads = arguments.threads,
                    .warehouses = arenas(arguments),
                    .districts = arguments.districts,
                    .customers = arguments.customers,
                    .order_lines_max = arguments.order_lines_max,
                    .payment_percent = arguments.payment_percent,
                    .delivery_percent = arguments.delivery_percent,
                    .steps = arguments.populate};
        if (shape.customers == 0) shape.customers = std::clamp<std::uint64_t>(shape.items() * 3 / 100, 3, 99999);
        return shape;
    }

    [[noreturn]] static void refuse_shape(const Shape& shape) {
        durasim::fail(durasim::exit_usage,
                      "tpcc: the pool was made with --seed %llu --threads %llu --warehouses %llu --populate %llu --districts %llu "
                      "--customers %llu --order-lines-max %llu --payment-percent %llu --delivery-percent %llu; use these",
                      static_cast<Long>(shape.seed), static_cast<Long>(shape.threads), static_cast<Long>(shape.warehouses),
                      static_cast<Long>(shape.steps), static_cast<Long>(shape.districts), static_cast<Long>(shape.customers),
                      static_cast<Long>(shape.order_lines_max), static_cast<Long>(shape.payment_percent),
                      static_cast<Long>(shape.delivery_percent));
    }

    // The root object, and room for the tables.
    static void make(Pool& pool, const Shape& shape) {
        durasim::tx([&](Tx& t) {
            auto* root = static_cast<Root*>(t.allocate(sizeof(Root)));
            Root contents{};
            contents.kind = kind_of_root;
            contents.shape = shape;
            contents.items = static_cast<Item*>(t.allocate(shape.items() * sizeof(Item)));
            contents.tables = static_cast<Tables*>(t.allocate(shape.warehouses * sizeof(Tables)));
            if (shape.threads > 1) {
                contents.progress = static_cast<Progress*>(t.allocate(shape.threads * sizeof(Progress)));
                for (std::uint64_t i = 0; i < shape.threads; ++i) t.write(contents.progress[i].finished, 0);
            }
            for (std::uint64_t w = 0; w < shape.warehouses; ++w) {
                Tables& tables = contents.tables[w];
                t.write(tables.warehouse, static_cast<Warehouse*>(t.allocate(sizeof(Warehouse), w)));
                t.write(tables.districts, static_cast<District*>(t.allocate(shape.districts * sizeof(District), w)));
                t.write(tables.customers,
                        static_cast<Customer*>(t.allocate(shape.districts * shape.customers * sizeof(Customer), w)));
                t.write(tables.stock, static_cast<Stock*>(t.allocate(shape.items() * sizeof(Stock), w)));
            }
            put_row(t, *root, contents);
            pool.set_root(t, root);
            if constexpr (durasim::has_history) durasim::report_change(durasim::root_object, 0, kind_of_root);
        });
    }

    // Step number `step` of loading: the rows that are there after it and were not before.
    void load(Tx& t, std::uint64_t step) {
        const Shape& shape = database_.shape;
        auto each = [&](std::uint64_t rows, auto&& one) {
            for (std::uint64_t i = shape.loaded(rows, step); i < shape.loaded(rows, step + 1); ++i) one(i);
        };
        Transactions pool(database_, t);
        auto put = [&](Table table, std::uint64_t number, auto& place, const auto& row) {
            put_row(t, place, row);
            if constexpr (durasim::has_history) durasim::report_change(object_of(table, number), 0, pool.version(place));
        };
        each(shape.items(), [&](std::uint64_t i) { put(Table::item, i, database_.items[i], loaded_item(shape, i)); });
        each(shape.warehouses * shape.items(), [&](std::uint64_t i) {
            put(Table::stock, i, database_.stock(i / shape.items(), i % shape.items()), loaded_stock(shape, i));
        });
        each(shape.warehouses, [&](std::uint64_t w) {
            put(Table::warehouse, w, database_.warehouse(w), loaded_warehouse(shape, w));
        });
        // Districts change with what is loaded into them, and are reported afterwards.
        const std::uint64_t known = shape.loaded(shape.all_districts(), step);
        const std::uint64_t things = shape.loaded_things(step), things_after = shape.loaded_things(step + 1);
        std::uint64_t first = things / (2 * shape.customers), last = shape.loaded(shape.all_districts(), step + 1);
        if (first > known) first = known;
        std::vector<std::uint64_t> found;
        if constexpr (durasim::has_history) {
            for (std::uint64_t d = first; d < last; ++d) found.push_back(d < known ? pool.version(database_.district(d)) : 0);
        }
        each(shape.all_districts(), [&](std::uint64_t d) {
            put_row(t, database_.district(d), loaded_district(shape, d));
        });
        for (std::uint64_t thing = things; thing < things_after; ++thing) {
            const std::uint64_t customer = thing / 2, district = customer / shape.customers;
            District& place = database_.district(district);
            if (thing % 2 == 0) {
                const Customer row = loaded_customer(shape, *choices_, customer);
                put(Table::customer, customer, database_.customer(customer), row);
                const Address warehouse = loaded_warehouse(shape, district / shape.districts).address;
                const Address address = loaded_district(shape, district).address;
                pool.insert_history(place, district,
                                    history_of(warehouse, address, row.warehouse, row.district, row, 1, paid_at_first_cents,
                                               loading_date));
            } else {
                const std::uint64_t number = customer % shape.customers;
                WholeOrder whole = loaded_order(shape, district, number, customers_of(district)[number]);
                pool.insert_order(place, district, whole);
            }
        }
        t.write(database_.root->loaded, step + 1);
        if constexpr (durasim::has_history) {
            for (std::uint64_t d = first; d < last; ++d) {
                durasim::report_change(object_of(Table::district, d), found[d - first], pool.version(database_.district(d)));
            }
            durasim::report_change(durasim::populated_object, step, step + 1);
        }
    }

    const std::vector<std::uint32_t>& customers_of(std::uint64_t district) {
        if (permuted_.empty() || permuted_district_ != district) permuted_ = order_of_customers(database_.shape, district);
        permuted_district_ = district;
        return permuted_;
    }

    void perform(Thread& thread, const Operation& operation) {
        Shown shown;
        durasim::tx([&](Tx& t) {
            shown = Transactions(database_, t).perform(operation);
            if (database_.progress == nullptr) return;
            if constexpr (durasim::has_history) {
                const std::uint64_t finished = t.read(database_.progress[thread.number].finished);
                durasim::report_change(durasim::progress_object(thread.number), finished, thread.finished + 1);
            }
            t.write(database_.progress[thread.number].finished, thread.finished + 1);
        });
        thread.shown.add(shown);
        ++thread.finished;
    }

    Database database_;
    std::unique_ptr<Choices> choices_;
    NameIndex names_;
    std::unique_ptr<durasim::TxLock[]> locks_;  // of the warehouses; a single thread needs none
    std::vector<std::uint64_t> finished_;     // by each thread: what the pool must hold
    std::vector<Shown> shown_;
    // The order of customers in the last district that was asked for.
    std::vector<std::uint32_t> permuted_;
    std::uint64_t permuted_district_ = 0;
};

void Tpcc::dump(const Pool& pool, Dump& dump) {
    // Whether there may be a row: they all start on lines, and the compiler counts on that.
    auto holds = [&pool](const void* place, std::uint64_t bytes) {
        return reinterpret_cast<std::uint64_t>(place) % durasim::line_bytes == 0 && pool.holds(place, bytes);
    };
    // Blocks that are given out twice are damage that no row shows.
    durasim::Audit audit(pool);
    auto reaches = [&](const void* place, std::uint64_t bytes) {
        if (!audit.claim(place, bytes)) dump.note_damage();
        return holds(place, bytes);
    };
    auto* root = pool.root<Root>();
    if (!reaches(root, sizeof(Root))) return dump.note_damage();
    dump.add(durasim::root_object, root->kind);
    dump.add(durasim::populated_object, root->loaded);
    const Shape& shape = root->shape;
    const std::uint64_t warehouses = shape.warehouses, threads = shape.threads;
    if (problem_of(*root, pool.data_bytes()) != nullptr || !reaches(root->items, shape.items() * sizeof(Item)) ||
        !reaches(root->tables, warehouses * sizeof(Tables))) {
        return dump.note_damage();
    }
    for (std::uint64_t w = 0; w < warehouses; ++w) {
        const Tables& tables = root->tables[w];
        if (!reaches(tables.warehouse, sizeof(Warehouse)) ||
            !reaches(tables.districts, shape.districts * sizeof(District)) ||
            !reaches(tables.customers, shape.districts * shape.customers * sizeof(Customer)) ||
            !reaches(tables.stock, shape.items() * sizeof(Stock))) {
            return dump.note_damage();
        }
    }
    const Database database(root);
    auto read = [](const std::uint64_t& word) { return word; };
    auto add_rows = [&](Table table, std::uint64_t rows, auto&& row) {
        for (std::uint64_t i = 0; i < shape.loaded(rows, root->loaded); ++i) {
            dump.add(object_of(table, i), version_of_row(row(i), read));
        }
    };
    add_rows(Table::item, shape.items(), [&](std::uint64_t i) -> const Item& { return database.items[i]; });
    add_rows(Table::stock, warehouses * shape.items(),
             [&](std::uint64_t i) -> const Stock& { return database.stock(i / shape.items(), i % shape.items()); });
    add_rows(Table::warehouse, warehouses, [&](std::uint64_t i) -> const Warehouse& { return database.warehouse(i); });
    for (std::uint64_t d = 0; d < shape.loaded(shape.all_districts(), root->loaded); ++d) {
        const District& district = database.district(d);
        dump.add(object_of(Table::district, d), version_of_district(district, read));
        for (std::uint64_t c = 0; c < shape.loaded_customers(d, root->loaded); ++c) {
            const std::uint64_t number = d * shape.customers + c;
            dump.add(object_of(Table::customer, number), version_of_row(database.customer(number), read));
        }
        const std::uint64_t orders = district.next_order - std::uint64_t{1}, rows = district.history_rows;
        // Each takes a line at least; whatever is in the pool, this ends.
        if (orders > pool.data_bytes() / durasim::line_bytes || rows > pool.data_bytes() / durasim::line_bytes) {
            dump.note_damage();
            continue;
        }
        auto may_follow = [&](std::uint64_t place) {
            return reaches(reinterpret_cast<const void*>(place), durasim::PointerArray::node_bytes);
        };
        const bool orders_good = district.orders.visit(orders, may_follow, [&](std::uint64_t i, std::uint64_t place) {
            auto* order = reinterpret_cast<const Order*>(place);
            if (!holds(order, sizeof(Order)) || !reaches(order, Order::bytes(order->line_count))) return false;
            const NewOrder* row = order->new_order;
            if (row != nullptr && !reaches(row, sizeof(NewOrder))) return false;
            dump.add(object_of(Table::order, d, i), version_of_order(*order, order->line_count, row, read));
            return true;
        });
        const std::uint64_t blocks = (rows + rows_per_block - 1) / rows_per_block;
        const bool history_good = district.histories.visit(blocks, may_follow, [&](std::uint64_t b, std::uint64_t place) {
            auto* block = reinterpret_cast<const HistoryBlock*>(place);
            if (!reaches(block, sizeof(HistoryBlock))) return false;
            for (std::uint64_t i = 0; i < rows_per_block && b * rows_per_block + i < rows; ++i) {
                dump.add(object_of(Table::history, d, b * rows_per_block + i), version_of_row(block->rows[i], read));
            }
            return true;
        });
        if (!orders_good || !history_good) dump.note_damage();
    }
    if (root->progress != nullptr) {
        if (!reaches(root->progress, threads * sizeof(Progress))) return dump.note_damage();
        for (std::uint64_t i = 0; i < threads; ++i) dump.add(durasim::progress_object(i), root->progress[i].finished);
    }
    if (audit.problem() != nullptr) return dump.note_damage();
    // Blocks that belong to no object: an object that is never there.
    dump.add(object_of(Table::leaked_memory, 0), audit.lines_leaked());
}

}  // namespace

#endif
