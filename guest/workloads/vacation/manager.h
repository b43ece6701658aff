// The three transactions of vacation.
#ifndef DURASIM_WORKLOADS_VACATION_MANAGER_H
#define DURASIM_WORKLOADS_VACATION_MANAGER_H

#include <algorithm>
#include <cstdint>

#include "workloads/vacation/agency.h"

namespace durasim::vacation {

// The tables, as one open transaction sees and changes them.
class Manager {
public:
    Manager(Tx& t, const Pool& pool, Agency* agency, std::uint64_t arena, std::uint64_t stamp)
        : t_(t), pool_(pool), agency_(agency), arena_(arena), stamp_(stamp) {}

    // The work of the transaction so far.
    const Ledger& done() const { return done_; }

    void perform(const Request& request) {
        switch (request.action) {
            case Action::reserve: return reserve(request);
            case Action::erase_customer: return erase_customer(request.customer);
            case Action::update: return update(request);
        }
    }

    void insert_item(std::uint64_t kind, const Item& item) {
        auto* record = static_cast<Item*>(t_.allocate(sizeof(Item), arena_));
        for (unsigned w = 0; w < sizeof(Item) / 8; ++w) t_.write((&record->id)[w], (&item.id)[w]);
        t_.write(*tree_of(agency_, kind, arena_).insert(t_, item.id), reinterpret_cast<std::uint64_t>(record));
        ++done_.items;
        done_.places += item.total;
        done_.stamps += worth_of(item.stamp, item.price);
        if constexpr (has_history) report_change(object_of(kind, item.id), 0, version_of(*record, Reader{t_}));
    }

    void insert_customer(std::uint64_t id, std::uint64_t stamp) {
        auto* record = static_cast<Customer*>(t_.allocate(sizeof(Customer), arena_));
        t_.write(record->id, id);
        t_.write(record->first, nullptr);
        t_.write(record->count, 0);
        t_.write(record->stamp, stamp);
        t_.write(*tree_of(agency_, customers, arena_).insert(t_, id), reinterpret_cast<std::uint64_t>(record));
        ++done_.customers;
        done_.stamps += stamp;
        if constexpr (has_history) report_change(object_of(customers, id), 0, version(*record));
    }

private:
    std::uint64_t version(const Customer& customer) {
        return version_of(customer, Reader{t_}, [](const Reservation*) { return true; });
    }

    // Null if the number is not in the table.
    std::uint64_t record_of(std::uint64_t table, std::uint64_t id) {
        const std::uint64_t* value = tree_of(agency_, table).find(t_, id);
        return value == nullptr ? 0 : t_.read(*value);
    }

    Item* item_of(std::uint64_t kind, std::uint64_t id) {
        auto* item = reinterpret_cast<Item*>(record_of(kind, id));
        if constexpr (has_history) report_read(object_of(kind, id), item == nullptr ? 0 : version_of(*item, Reader{t_}));
        return item;
    }

    Customer* customer_of(std::uint64_t id) {
        auto* customer = reinterpret_cast<Customer*>(record_of(customers, id));
        if constexpr (has_history) report_read(object_of(customers, id), customer == nullptr ? 0 : version(*customer));
        return customer;
    }

    void give_back(void* block, std::uint64_t bytes) { t_.free(block, bytes, arena_of(pool_, block)); }

    // Takes a record that goes, and was worth so much, out of its table. Its node goes back where it came from, too.
    void erase(std::uint64_t table, std::uint64_t id, std::uint64_t worth) {
        const std::uint64_t* value = tree_of(agency_, table).find(t_, id);
        tree_of(agency_, table, arena_of(pool_, value)).erase(t_, id);
        done_.stamps -= worth;
    }

    template <class Record>
    void put_stamp(Record& record) {
        t_.write(record.stamp, t_.read(record.stamp) + stamp_);
        done_.stamps += stamp_;
    }

    // Moves places of an item from those that are free to those that are used, or back.
    void use(std::uint64_t kind, Item& item, std::uint64_t places) {
        [[maybe_unused]] std::uint64_t found = 0;
        if constexpr (has_history) found = version_of(item, Reader{t_});
        t_.write(item.used, t_.read(item.used) + places);
        t_.write(item.free, t_.read(item.free) - places);
        put_stamp(item);
        if constexpr (has_history) report_change(object_of(kind, t_.read(item.id)), found, version_of(item, Reader{t_}));
    }

    // False: the customer has this reservation already.
    bool insert_reservation(Customer& customer, std::uint64_t key, std::uint64_t price) {
        Reservation** link = &customer.first;
        Reservation* next = t_.read(*link);
        while (next != nullptr) {
            const std::uint64_t at = t_.read(next->key);
            if (at == key) return false;
            if (at > key) break;
            link = &next->next;
            next = t_.read(*link);
        }
        [[maybe_unused]] std::uint64_t found = 0;
        if constexpr (has_history) found = version(customer);
        auto* made = static_cast<Reservation*>(t_.allocate(sizeof(Reservation), arena_));
        t_.write(made->next, next);
        t_.write(made->key, key);
        t_.write(made->price, price);
        t_.write(*link, made);
        t_.write(customer.count, t_.read(customer.count) + 1);
        put_stamp(customer);
        ++done_.reserved;
        done_.bill += price;
        if constexpr (has_history) report_change(object_of(customers, t_.read(customer.id)), found, version(customer));
        return true;
    }

    void reserve(const Request& request) {
        std::uint64_t dearest[items] = {}, price[items] = {};
        for (std::uint64_t i = 0; i < request.count; ++i) {
            const auto [kind, id, unused] = request.line[i];
            // Two questions to the table, as in STAMP: whether it knows the item, and what that costs.
            if (item_of(kind, id) == nullptr) continue;
            const std::uint64_t asked = t_.read(item_of(kind, id)->price);
            if (asked > price[kind]) dearest[kind] = id, price[kind] = asked;
        }
        if (std::ranges::all_of(dearest, [](std::uint64_t id) { return id == 0; })) return;
        if (customer_of(request.customer) == nullptr) insert_customer(request.customer, stamp_);
        for (std::uint64_t kind = 0; kind < items; ++kind) {
            if (dearest[kind] == 0) continue;
            Customer* customer = customer_of(request.customer);
            Item* item = item_of(kind, dearest[kind]);
            if (t_.read(item->free) == 0) continue;
            use(kind, *item, 1);
            if (!insert_reservation(*customer, key_of(kind, dearest[kind]), t_.read(item->price))) use(kind, *item, ~std::uint64_t{0});
        }
    }

    void erase_customer(std::uint64_t id) {
        Customer* customer = customer_of(id);
        if (customer == nullptr) return;
        // The bill comes first, by itself.
        std::uint64_t bill = 0, count = 0;
        for (const Reservation* at = t_.read(customer->first); at != nullptr; at = t_.read(at->next)) bill += t_.read(at->price);
        [[maybe_unused]] std::uint64_t found = 0;
        if constexpr (has_history) found = version(*customer);
        for (Reservation* at = t_.read(customer->first); at != nullptr; ++count) {
            const std::uint64_t key = t_.read(at->key), kind = key >> 40;
            Item* item = kind < items ? item_of(kind, key - key_of(kind, 0)) : nullptr;
            if (item == nullptr) DURASIM_VIOLATION("customer %llu has reserved what is not there", static_cast<Long>(id));
            use(kind, *item, ~std::uint64_t{0});
            Reservation* next = t_.read(at->next);
            give_back(at, sizeof *at);
            at = next;
        }
        erase(customers, id, t_.read(customer->stamp));
        give_back(customer, sizeof *customer);
        --done_.customers;
        done_.reserved -= count;
        done_.bill -= bill;
        report_change(object_of(customers, id), found, 0);
    }

    void update(const Request& request) {
        for (std::uint64_t i = 0; i < request.count; ++i) {
            const auto [kind, id, price] = request.line[i];
            Item* item = item_of(kind, id);
            if (item == nullptr) {
                if (price != 0) insert_item(kind, {id, 0, places_step, places_step, price, stamp_});
            } else if (price != 0) {
                add_places(kind, id, *item, places_step, price);
            } else if (kind == flight) {
                if (t_.read(item->used) == 0) add_places(kind, id, *item, -t_.read(item->total), 0);
            } else if (t_.read(item->free) >= places_step) {
                add_places(kind, id, *item, -places_step, 0);
            }
        }
    }

    // A price of 0 leaves the old one. An item without places goes.
    void add_places(std::uint64_t kind, std::uint64_t id, Item& item, std::uint64_t places, std::uint64_t price) {
        [[maybe_unused]] std::uint64_t found = 0;
        if constexpr (has_history) found = version_of(item, Reader{t_});
        done_.places += places;
        const std::uint64_t total = t_.read(item.total) + places;
        if (total == 0) {
            erase(kind, id, worth_of(t_.read(item.stamp), t_.read(item.price)));
            give_back(&item, sizeof item);
            --done_.items;
            report_change(object_of(kind, id), found, 0);
            return;
        }
        t_.write(item.free, t_.read(item.free) + places);
        t_.write(item.total, total);
        if (price != 0) {
            done_.stamps += worth_of(0, price) - worth_of(0, t_.read(item.price));
            t_.write(item.price, price);
        }
        put_stamp(item);
        if constexpr (has_history) report_change(object_of(kind, id), found, version_of(item, Reader{t_}));
    }

    Tx& t_;
    const Pool& pool_;
    Agency* agency_;
    std::uint64_t arena_;
    std::uint64_t stamp_;
    Ledger done_{};
};

}  // namespace durasim::vacation

#endif
