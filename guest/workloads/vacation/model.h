// The model that a check of vacation compares the tables with.
#ifndef DURASIM_WORKLOADS_VACATION_MODEL_H
#define DURASIM_WORKLOADS_VACATION_MODEL_H

#include <cstdint>
#include <map>
#include <utility>

#include "durasim/audit.h"
#include "workloads/vacation/agency.h"

namespace durasim::vacation {

// The tables in ordinary memory, and what operations one after the other leave in them.
class Model {
public:
    explicit Model(const Agency& agency) {
        for (std::uint64_t table = 0; table <= items; ++table) {
            const auto order = order_of(agency.seed, table, agency.populate);
            for (std::uint64_t i = 0; i < agency.ready; ++i) {
                if (table == customers) {
                    customer[order[i]];
                } else {
                    item[key_of(table, order[i])] = initial_item(agency.seed, table, order[i]);
                }
            }
        }
    }

    void perform(const Request& request) {
        if (request.action == Action::reserve) reserve(request);
        if (request.action == Action::update) update(request);
        const auto found = customer.find(request.customer);
        if (request.action != Action::erase_customer || found == customer.end()) return;
        for (const auto& [key, price] : found->second) --item[key].used, ++item[key].free;
        customer.erase(found);
    }

    std::map<std::uint64_t, Item> item;                                        // by key_of
    std::map<std::uint64_t, std::map<std::uint64_t, std::uint64_t>> customer;  // prices by key_of, by the customer's number

private:
    void reserve(const Request& request) {
        std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> dearest;  // price and number by the kind
        for (std::uint64_t i = 0; i < request.count; ++i) {
            const auto found = item.find(key_of(request.line[i].kind, request.line[i].id));
            if (found == item.end()) continue;
            auto& best = dearest[request.line[i].kind];
            if (found->second.price > best.first) best = {found->second.price, request.line[i].id};
        }
        for (const auto& [kind, best] : dearest) {
            auto& reserved = customer[request.customer];
            Item& chosen = item[key_of(kind, best.second)];
            if (chosen.free == 0 || !reserved.emplace(key_of(kind, best.second), best.first).second) continue;
            ++chosen.used;
            --chosen.free;
        }
    }

    void update(const Request& request) {
        for (std::uint64_t i = 0; i < request.count; ++i) {
            const auto [kind, id, price] = request.line[i];
            const auto found = item.find(key_of(kind, id));
            if (price != 0) {
                Item& updated = found == item.end() ? item[key_of(kind, id)] : found->second;
                updated = {id, updated.used, updated.free + places_step, updated.total + places_step, price, 0};
            } else if (found != item.end()) {
                Item& updated = found->second;
                const std::uint64_t places = kind == flight ? updated.total : places_step;
                if (updated.free < places) continue;
                updated.free -= places;
                updated.total -= places;
                if (updated.total == 0) item.erase(found);
            }
        }
    }
};

// Claims all records. Leaves what they hold in the model, and what the ledgers have to say in the sum.
inline void take_in(const Pool& pool, Audit& audit, Model& found, Ledger& sum) {
    Agency* agency = pool.root<Agency>();
    found.item.clear();
    found.customer.clear();
    const auto visit = [&](std::uint64_t table, std::uint64_t id, const void* record) {
        if (id == 0 || id > agency->populate) DURASIM_VIOLATION("a table has an impossible number");
        if (table == customers) {
            const auto* customer = static_cast<const Customer*>(record);
            if (!audit.claim(customer, sizeof *customer)) DURASIM_VIOLATION("a customer is reachable twice or not allocated");
            if (customer->id != id) DURASIM_VIOLATION("customer %llu has another's record", static_cast<Long>(id));
            auto& reserved = found.customer[id];
            std::uint64_t last = 0;
            for (const Reservation* at = customer->first; at != nullptr; at = at->next) {
                if (!audit.claim(at, sizeof *at)) DURASIM_VIOLATION("a reservation is reachable twice or not allocated");
                if ((at != customer->first && at->key <= last) || !is_price(at->price)) {
                    DURASIM_VIOLATION("a reservation is torn or out of order");
                }
                last = at->key;
                reserved[at->key] = at->price;
                sum.bill += at->price;
            }
            if (customer->count != reserved.size()) DURASIM_VIOLATION("customer %llu miscounts the reservations", static_cast<Long>(id));
            sum.reserved += reserved.size();
            sum.stamps += customer->stamp;
            ++sum.customers;
        } else {
            const auto* item = static_cast<const Item*>(record);
            if (!audit.claim(item, sizeof *item)) DURASIM_VIOLATION("an item is reachable twice or not allocated");
            if (item->id != id || !is_price(item->price) || item->total == 0 || item->total % places_step != 0 ||
                item->used > item->total || item->free != item->total - item->used) {
                DURASIM_VIOLATION("the record of item %llu is torn", static_cast<Long>(id));
            }
            found.item[key_of(table, id)] = *item;
            sum.places += item->total;
            sum.stamps += worth_of(item->stamp, item->price);
            ++sum.items;
        }
    };
    for (std::uint64_t table = 0; table <= items; ++table) {
        const char* problem = tree_of(agency, table).check(
            audit, [&](std::uint64_t id, const std::uint64_t* value) { visit(table, id, reinterpret_cast<const void*>(*value)); });
        if (problem != nullptr) DURASIM_VIOLATION("%s", problem);
    }
    if (audit.lines_leaked() != 0) DURASIM_VIOLATION("%llu lines are leaked", static_cast<Long>(audit.lines_leaked()));
    std::map<std::uint64_t, std::uint64_t> used;
    for (const auto& [id, reserved] : found.customer) {
        for (const auto& [key, price] : reserved) ++used[key];
    }
    for (const auto& [key, item] : found.item) {
        if (item.used != used[key]) DURASIM_VIOLATION("item %llu is used more or less often than reserved", static_cast<Long>(item.id));
        used.erase(key);
    }
    if (!used.empty()) DURASIM_VIOLATION("a customer has reserved what is not there");
}

}  // namespace durasim::vacation

#endif
