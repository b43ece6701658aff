// durasim-workload: tatp — the UPDATE_LOCATION transaction of TATP: one subscriber gets a new location
//
// The TATP of LAD (MICRO'19, Table 2: 1 modified line per transaction). The subscriber table has the columns of the public
// TATP schema, a row on a line of its own; an index, which is only read once populating is over, leads from the subscriber's
// number in 15 digits to the row. Who is called follows TATP's non-uniform distribution. A transaction modifies the row and
// nothing else: it sets vlr_location and counts the update in the row.
//
// The n-th update of a subscriber sets a location that depends on seed, subscriber and n, so the row's count says what has to
// be there, in whatever order threads came to it. The row has a count for each of the four threads of a team
// (structures/teams.h): so the work of a thread is known without a line for it. With more than four threads each team
// calls its part of the subscribers.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <vector>

#include "durasim/random.h"
#include "structures/blocks.h"
#include "structures/teams.h"
#include "workloads/harness.h"

namespace {

using durasim::Arguments;
using durasim::Audit;
using durasim::Long;
using durasim::Pool;
using durasim::Teams;
using durasim::Tx;

constexpr std::uint64_t kind_of_root = 0x70746174;  // "tatp"
constexpr std::size_t digits = 15;

struct alignas(64) Subscriber {
    char sub_nbr[digits];  // s_id with zeros in front
    std::uint8_t hex[5];   // hex_1 to hex_10, two in a byte
    std::uint32_t s_id;    // from 1
    std::uint8_t byte2[10];
    std::uint16_t bits;  // bit_1 to bit_10
    std::uint32_t msc_location;
    std::uint32_t vlr_location;
    std::uint32_t seal;                       // over all the others
    std::uint32_t by[durasim::team_max];  // updates by each thread of the team

    std::uint64_t updates() const { return std::uint64_t{by[0]} + by[1] + by[2] + by[3]; }
};
static_assert(sizeof(Subscriber) == durasim::line_bytes);

// An entry of the index. The tag spares a look at rows of others.
struct Slot {
    std::uint32_t tag;
    std::uint32_t s_id;  // 0: nothing is here
};

struct alignas(64) Database {
    std::uint64_t kind;
    std::uint64_t seed;
    std::uint64_t subscribers;
    std::uint64_t ready;  // that populating has made
    std::uint64_t threads;
    std::uint64_t slots;  // of the index, a power of two
    Subscriber* row;      // that of s_id is s_id - 1
    Slot* slot;
};
static_assert(sizeof(Database) == durasim::line_bytes);

struct Number {
    char text[digits];
};

Number number_of(std::uint64_t s_id) {
    Number number;
    for (std::size_t i = digits; i-- > 0; s_id /= 10) number.text[i] = static_cast<char>('0' + s_id % 10);
    return number;
}

std::uint64_t hash_of(const Number& number) {
    std::uint64_t words[2] = {};
    std::memcpy(words, number.text, digits);
    return durasim::mix(durasim::mix(words[0]) ^ words[1]);
}

constexpr std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }
constexpr std::uint64_t slots_for(std::uint64_t subscribers) { return std::bit_ceil(2 * subscribers); }

std::uint32_t location_of(std::uint64_t seed, std::uint64_t s_id, std::uint64_t update) {
    return static_cast<std::uint32_t>(durasim::mix(durasim::mix(seed + s_id) + update) >> 32);
}

// A row as words. Transactions read and write rows so: the compiler may take for granted that what is written as a word is
// not read as anything else.
struct Words {
    std::uint64_t word[sizeof(Subscriber) / 8];

    std::uint64_t hash() const { return durasim::version_of(word, sizeof(Subscriber) / 8); }
};

Words words_of(const Subscriber& row) {
    Words words;
    std::memcpy(&words, &row, sizeof words);
    return words;
}

std::uint32_t seal_of(const Subscriber& row) {
    Subscriber unsealed = row;
    unsealed.seal = 0;
    return static_cast<std::uint32_t>(words_of(unsealed).hash() >> 32);
}

// A row as populating makes it.
Subscriber subscriber_of(std::uint64_t seed, std::uint64_t s_id) {
    durasim::Random random(durasim::mix(seed) ^ s_id);
    Subscriber row{};
    std::memcpy(row.sub_nbr, number_of(s_id).text, digits);
    row.s_id = static_cast<std::uint32_t>(s_id);
    row.bits = static_cast<std::uint16_t>(random.below(1 << 10));
    for (std::uint8_t& two : row.hex) two = static_cast<std::uint8_t>(random.below(256));
    for (std::uint8_t& byte : row.byte2) byte = static_cast<std::uint8_t>(random.below(256));
    row.msc_location = static_cast<std::uint32_t>(random.next());
    row.vlr_location = location_of(seed, s_id, 0);
    row.seal = seal_of(row);
    return row;
}

// Whom the n-th operation of a thread calls: TATP's NURand(A, 1, P), moved into the part of the thread's team.
std::uint64_t choose(std::uint64_t seed, const Teams& teams, std::uint64_t subscribers, std::uint64_t thread, std::uint64_t n) {
    const std::uint64_t a = subscribers <= 1000000 ? 65535 : subscribers <= 10000000 ? 1048575 : 2097151;
    durasim::Random random(durasim::mix(seed) + durasim::operation_of(thread, n) * 0x632BE59BD9B4E019u);
    const std::uint64_t upper = random.below(a + 1);
    const std::uint64_t row = (upper | (1 + random.below(subscribers))) % subscribers;
    const std::uint64_t moved = row - row % teams.count() + teams.team_of(thread);
    return moved < subscribers ? moved + 1 : moved + 1 - teams.count();
}

// Follows the index with `read`; 0 if the number is not there.
template <class Read>
std::uint64_t find(const Database* database, const Number& number, Read&& read) {
    const std::uint64_t hash = hash_of(number), mask = database->slots - 1;
    for (std::uint64_t i = 0; i <= mask; ++i) {
        const Slot& slot = database->slot[(hash + i) & mask];
        const std::uint64_t s_id = read(slot.s_id);
        if (s_id == 0) return 0;
        if (read(slot.tag) != tag_of(hash) || s_id > database->subscribers) continue;
        const Subscriber& row = database->row[s_id - 1];
        bool same = true;
        for (std::size_t d = 0; same && d < digits; ++d) same = read(row.sub_nbr[d]) == number.text[d];
        if (same) return s_id;
    }
    return 0;
}

std::uint64_t entries_of(const Database* database) {
    std::uint64_t entries = 0;
    for (std::uint64_t i = 0; i < database->slots; ++i) entries += database->slot[i].s_id != 0 || database->slot[i].tag != 0;
    return entries;
}

class Tatp {
public:
    static std::uint64_t arenas(const Arguments&) { return 1; }

    static std::uint64_t pool_bytes(const Arguments& arguments) {
        return arguments.populate * sizeof(Subscriber) + slots_for(arguments.populate) * sizeof(Slot) + 64 * durasim::line_bytes;
    }

    Tatp(Pool& pool, const Arguments& arguments) : teams_(arguments.threads, arguments.populate) {
        if (arguments.populate < std::max<std::uint64_t>(teams_.count(), 2)) {
            durasim::fail(durasim::exit_usage, "tatp: --populate has to be at least 2, and one for each four threads");
        }
        database_ = pool.root<Database>();
        if (database_ == nullptr) {
            make(pool, arguments);
            database_ = pool.root<Database>();
        }
        if (database_->kind != kind_of_root) durasim::fail(durasim::exit_usage, "tatp: the pool belongs to another workload");
        if (database_->seed != arguments.seed || database_->subscribers != arguments.populate ||
            database_->threads != arguments.threads) {
            durasim::fail(durasim::exit_usage, "tatp: the pool was made with --seed %llu --populate %llu --threads %llu; use these",
                          static_cast<Long>(database_->seed), static_cast<Long>(database_->subscribers),
                          static_cast<Long>(database_->threads));
        }
        seed_ = database_->seed;
        for (std::uint64_t thread = 0; thread < database_->threads; ++thread) finished_.push_back(counted_for(thread));
        if (database_->threads > 1) {
            stripes_ = arguments.stripes;
            locks_ = std::make_unique<durasim::TxLock[]>(stripes_);
        }
    }

    std::uint64_t populated() const { return database_->ready; }

    struct Thread {
        std::uint64_t number;
        std::uint64_t finished;  // operations
    };

    Thread enter(std::uint64_t number) const { return {number, finished_[number]}; }
    void leave(const Thread& thread) { finished_[thread.number] = thread.finished; }

    void populate_one(Thread&) {
        durasim::tx([&](Tx& t) {
            const std::uint64_t s_id = t.read(database_->ready) + 1;
            const Words row = words_of(subscriber_of(seed_, s_id));
            t.write_words(&database_->row[s_id - 1], row.word, sizeof row);
            const std::uint64_t hash = hash_of(number_of(s_id)), mask = database_->slots - 1;
            std::uint64_t at = hash & mask;
            while (t.read(database_->slot[at].s_id) != 0) at = (at + 1) & mask;
            t.write(database_->slot[at].tag, tag_of(hash));
            t.write(database_->slot[at].s_id, static_cast<std::uint32_t>(s_id));
            t.write(database_->ready, s_id);
            if constexpr (durasim::has_history) {
                durasim::report_change(s_id, 0, read_row(t, s_id).hash());
                durasim::report_change(durasim::populated_object, s_id - 1, s_id);
            }
        });
    }

    void operation(Thread& thread) {
        const std::uint64_t called = choose(seed_, teams_, database_->subscribers, thread.number, thread.finished);
        const Number number = number_of(called);
        std::unique_lock<durasim::TxLock> held;
        if (locks_ != nullptr) held = std::unique_lock(locks_[hash_of(number) % stripes_]);
        const std::uint64_t seat = teams_.seat_of(thread.number);
        durasim::tx([&](Tx& t) {
            const std::uint64_t s_id = find(database_, number, [&t](const auto& place) { return t.read(place); });
            if (s_id == 0) DURASIM_VIOLATION("subscriber %llu is not in the index", static_cast<Long>(called));
            const Words found = read_row(t, s_id);
            Subscriber row;
            std::memcpy(&row, &found, sizeof row);
            ++row.by[seat];
            row.vlr_location = location_of(seed_, s_id, row.updates());
            row.seal = seal_of(row);
            const Words left = words_of(row);
            auto* words = reinterpret_cast<std::uint64_t*>(&database_->row[s_id - 1]);
            for (std::size_t w = 0; w < std::size(left.word); ++w) {
                if (left.word[w] != found.word[w]) t.write(words[w], left.word[w]);
            }
            if constexpr (durasim::has_history) durasim::report_change(s_id, found.hash(), read_row(t, s_id).hash());
        });
        ++thread.finished;
    }

    void compare_with_model() const {
        // The check has compared each row with what its counts say; here remains whether these are right.
        for (std::uint64_t i = 0; i < finished_.size(); ++i) {
            if (counted_for(i) != finished_[i]) {
                DURASIM_VIOLATION("thread %llu made %llu updates, but the pool says %llu", static_cast<Long>(i),
                                  static_cast<Long>(finished_[i]), static_cast<Long>(counted_for(i)));
            }
        }
    }

    void print_result() const {
        std::uint64_t updates = 0;
        for (const std::uint64_t finished : finished_) updates += finished;
        std::printf("subscribers=%llu updates=%llu", static_cast<Long>(database_->ready), static_cast<Long>(updates));
    }

    static std::uint64_t check(const Pool& pool);

    static void dump(const Pool& pool, durasim::Dump& dump) {
        const Database* database = pool.root<Database>();
        if (!durasim::can_be_block(pool, database, sizeof(Database))) return dump.note_damage();
        dump.add(durasim::root_object, database->kind);
        dump.add(durasim::populated_object, database->ready);
        const std::uint64_t subscribers = database->subscribers, ready = database->ready;
        if (subscribers > pool.data_bytes() || ready > subscribers || database->slots != slots_for(subscribers) ||
            !durasim::can_be_block(pool, database->row, subscribers * sizeof(Subscriber)) ||
            !durasim::can_be_block(pool, database->slot, database->slots * sizeof(Slot)) || entries_of(database) > subscribers) {
            return dump.note_damage();
        }
        // A subscriber who is not in the index cannot be called.
        for (std::uint64_t s_id = 1; s_id <= ready; ++s_id) {
            if (find(database, number_of(s_id), [](const auto& place) { return place; }) != s_id) continue;
            dump.add(s_id, words_of(database->row[s_id - 1]).hash());
        }
    }

private:
    static void make(Pool& pool, const Arguments& arguments) {
        durasim::tx([&](Tx& t) {
            auto* database = static_cast<Database*>(t.allocate(sizeof(Database)));
            t.write(database->kind, kind_of_root);
            t.write(database->seed, arguments.seed);
            t.write(database->subscribers, arguments.populate);
            t.write(database->ready, 0);
            t.write(database->threads, arguments.threads);
            t.write(database->slots, slots_for(arguments.populate));
            // Memory that was never given out before is zero, and so is an empty index.
            t.write(database->row, static_cast<Subscriber*>(t.allocate(arguments.populate * sizeof(Subscriber))));
            t.write(database->slot, static_cast<Slot*>(t.allocate(slots_for(arguments.populate) * sizeof(Slot))));
            pool.set_root(t, database);
            if constexpr (durasim::has_history) durasim::report_change(durasim::root_object, 0, kind_of_root);
        });
    }

    std::uint64_t counted_for(std::uint64_t thread) const {
        return teams_.sum(thread, [&](std::uint64_t row, std::uint64_t seat) { return database_->row[row].by[seat]; });
    }

    // An object is a subscriber, its version the hash of the row: its counts make each one new.
    Words read_row(Tx& t, std::uint64_t s_id) const {
        Words words;
        t.read_words(words.word, &database_->row[s_id - 1], sizeof words);
        return words;
    }

    Database* database_ = nullptr;
    Teams teams_;
    std::uint64_t seed_ = 0;
    std::unique_ptr<durasim::TxLock[]> locks_;  // of the numbers; a single thread needs none
    std::uint64_t stripes_ = 0;
    std::vector<std::uint64_t> finished_;  // by each thread: what the pool must hold
};

std::uint64_t Tatp::check(const Pool& pool) {
    Audit audit(pool);
    if (audit.problem() != nullptr) DURASIM_VIOLATION("%s", audit.problem());
    const Database* database = pool.root<Database>();
    if (!audit.claim(database, sizeof(Database))) DURASIM_VIOLATION("the root object is not allocated");
    if (database->kind != kind_of_root) DURASIM_VIOLATION("the root object is not a database");
    const std::uint64_t subscribers = database->subscribers;
    const Teams teams(database->threads, subscribers);
    if (subscribers < 2 || subscribers > pool.data_bytes() / sizeof(Subscriber) || database->ready > subscribers ||
        database->slots != slots_for(subscribers) || database->threads == 0 || database->threads > durasim::threads_max ||
        teams.count() > subscribers) {
        DURASIM_VIOLATION("the database has impossible sizes");
    }
    if (!audit.claim(database->row, subscribers * sizeof(Subscriber)) || !audit.claim(database->slot, database->slots * sizeof(Slot))) {
        DURASIM_VIOLATION("what belongs to the root object is not allocated");
    }
    if (audit.lines_leaked() != 0) DURASIM_VIOLATION("%llu lines are leaked", static_cast<Long>(audit.lines_leaked()));

    for (std::uint64_t s_id = 1; s_id <= database->ready; ++s_id) {
        const Subscriber& row = database->row[s_id - 1];
        Subscriber expected = subscriber_of(database->seed, s_id);
        std::memcpy(expected.by, row.by, sizeof row.by);
        expected.vlr_location = location_of(database->seed, s_id, row.updates());
        expected.seal = seal_of(expected);
        if (std::memcmp(&row, &expected, sizeof row) != 0) {
            DURASIM_VIOLATION("the row of subscriber %llu is not that of %llu updates", static_cast<Long>(s_id),
                              static_cast<Long>(row.updates()));
        }
    }
    if (!durasim::is_untouched(database->row + database->ready, (subscribers - database->ready) * sizeof(Subscriber))) {
        DURASIM_VIOLATION("a row that populating has not reached is not empty");
    }
    const std::uint64_t entries = entries_of(database);
    if (entries != database->ready) DURASIM_VIOLATION("the index has %llu entries", static_cast<Long>(entries));
    for (std::uint64_t s_id = 1; s_id <= database->ready; ++s_id) {
        if (find(database, number_of(s_id), [](const auto& place) { return place; }) != s_id) {
            DURASIM_VIOLATION("the index does not lead to subscriber %llu", static_cast<Long>(s_id));
        }
    }
    const std::uint64_t updates = teams.check(
        1, [&](std::uint64_t row, std::uint64_t seat) { return database->row[row].by[seat]; },
        [&](std::uint64_t thread, std::uint64_t n, auto&& take) {
            take(choose(database->seed, teams, subscribers, thread, n) - 1);
        });
    if (updates != 0 && database->ready != subscribers) DURASIM_VIOLATION("there were updates before all subscribers were there");
    return database->ready + updates;
}

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<Tatp>(argc, argv); }
