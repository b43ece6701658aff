// Tests of guest/structures. `structures_test PATH CASE` performs random operations on a map in a fresh pool and on a
// std::map, and compares the two, the map's invariants and the account of the pool's memory again and again. The case
// `zipfian` compares chosen numbers with their exact probabilities.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "durasim/audit.h"
#include "durasim/pool.h"
#include "durasim/random.h"
#include "durasim/tx.h"
#include "structures/bplus_tree.h"
#include "structures/hash_table.h"
#include "structures/linked_lists.h"
#include "structures/red_black_tree.h"
#include "workloads/zipfian.h"

namespace {

using durasim::MapShape;
using durasim::Pool;
using durasim::Tx;

#define REQUIRE(condition)                                                        \
    do {                                                                          \
        if (!(condition)) {                                                       \
            std::fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #condition); \
            std::exit(1);                                                         \
        }                                                                         \
    } while (0)

struct alignas(64) Root {
    std::uint64_t top;
};

using Model = std::map<std::uint64_t, std::uint64_t>;

template <class Map>
class Test {
public:
    Test(Pool& pool, const MapShape& shape) : pool_(pool), shape_(shape) {
        durasim::tx([&](Tx& t) {
            root_ = static_cast<Root*>(t.allocate(sizeof(Root)));
            map().make(t);
            pool_.set_root(t, root_);
        });
    }

    Map map() const { return Map(shape_, root_->top, 0); }

    void write(Tx& t, std::uint64_t* value, std::uint64_t content) {
        for (std::uint64_t i = 0; i < shape_.value_bytes / 8; ++i) t.write(value[i], content + i);
    }

    void put(std::uint64_t key, std::uint64_t content) {
        durasim::tx([&](Tx& t) {
            std::uint64_t* value = map().find(t, key);
            REQUIRE((value != nullptr) == model_.contains(key));
            write(t, value == nullptr ? map().insert(t, key) : value, content);
        });
        model_[key] = content;
    }

    void erase(std::uint64_t key) {
        bool found = false;
        durasim::tx([&](Tx& t) { found = map().erase(t, key); });
        REQUIRE(found == (model_.erase(key) == 1));
    }

    void compare() const {
        durasim::Audit audit(pool_);
        REQUIRE(audit.problem() == nullptr);
        REQUIRE(audit.claim(root_, sizeof(Root)));
        Model found;
        const char* problem = map().check(audit, [&](std::uint64_t key, const std::uint64_t* value) {
            for (std::uint64_t i = 0; i < shape_.value_bytes / 8; ++i) REQUIRE(value[i] == value[0] + i);
            REQUIRE(found.emplace(key, value[0]).second);
        });
        if (problem != nullptr) std::fprintf(stderr, "%s\n", problem);
        REQUIRE(problem == nullptr);
        REQUIRE(audit.lines_leaked() == 0);
        REQUIRE(found == model_);
        Model dumped;
        REQUIRE(map().dump(pool_, [&](std::uint64_t key, const std::uint64_t* value) { dumped[key] = value[0]; }));
        REQUIRE(dumped == model_);
    }

    // Operations that let the map grow to about half of `keys`, then shrink, again and again.
    void mix(std::uint64_t keys, std::uint64_t rounds, std::uint64_t seed) {
        durasim::Random random(seed);
        for (std::uint64_t round = 0; round < rounds; ++round) {
            const std::uint64_t puts = round % 2 == 0 ? 3 : 1;  // of four
            for (std::uint64_t i = 0; i < keys; ++i) {
                const std::uint64_t key = key_of(random.below(keys));
                if (random.below(4) < puts) {
                    put(key, random.next() >> 8);
                } else {
                    erase(key);
                }
                if (i % 97 == 0) compare();
            }
            compare();
        }
    }

    // One order in, another one out, until nothing is left.
    void drain(std::uint64_t keys) {
        for (unsigned order = 0; order < 4; ++order) {
            for (std::uint64_t i = 0; i < keys; ++i) put(key_of((order & 1) != 0 ? keys - 1 - i : i), i);
            compare();
            for (std::uint64_t i = 0; i < keys; ++i) {
                erase(key_of((order & 2) != 0 ? keys - 1 - i : i));
                if (i % 13 == 0) compare();
            }
            while (!model_.empty()) erase(model_.begin()->first);
            compare();
        }
    }

    void scans(std::uint64_t keys) {
        durasim::Random random(5);
        for (int i = 0; i < 300; ++i) {
            const std::uint64_t from = key_of(random.below(keys + 2)) - random.below(2), count = random.below(40);
            Model found;
            std::uint64_t before = 0, seen = 0;
            durasim::tx([&](Tx& t) {
                found.clear();
                before = from;
                seen = map().scan(t, from, count, [&](std::uint64_t key, const std::uint64_t* value) {
                    REQUIRE(key >= before);
                    before = key + 1;
                    found[key] = t.read(*value);
                });
            });
            Model expected;
            for (auto at = model_.lower_bound(from); at != model_.end() && expected.size() < count; ++at) expected.insert(*at);
            REQUIRE(seen == expected.size() && found == expected);
        }
    }

    static std::uint64_t key_of(std::uint64_t number) { return number * 3 + 1; }

private:
    Pool& pool_;
    MapShape shape_;
    Root* root_ = nullptr;
    Model model_;
};

template <class Map>
void operate(Pool& pool, const MapShape& shape, std::uint64_t keys) {
    Test<Map> test(pool, shape);
    test.compare();
    test.mix(keys, 6, shape.value_bytes + shape.parameter);
    if constexpr (requires { &Map::template scan<void (*)(std::uint64_t, const std::uint64_t*)>; }) test.scans(keys);
    test.mix(20, 40, 3);
    test.drain(keys / 4);
}

// Takes evenly spaced points of all 64-bit numbers in place of random ones, which leaves no chance.
void zipfian() {
    for (std::uint64_t i = 1; i < 100'000; ++i) {
        const double x = static_cast<double>(i) * 0.037, y = (static_cast<double>(i) - 50'000) * 1e-3;
        REQUIRE(std::fabs(durasim::detail::log_of(x) - std::log(x)) < 4e-15 * std::max(1.0, std::fabs(std::log(x))));
        REQUIRE(std::fabs(durasim::detail::exp_of(y) / std::exp(y) - 1) < 4e-15);
    }
    for (const std::uint64_t n : {1, 2, 3, 4, 10, 1000, 30'000}) {
        constexpr unsigned points_log2 = 18;
        const durasim::Zipfian choice(n);
        std::vector<double> share(n);
        for (std::uint64_t i = 0; i < std::uint64_t{1} << points_log2; ++i) {
            share.at(choice.rank(i << (64 - points_log2) | 1)) += std::ldexp(1.0, -static_cast<int>(points_log2));
        }
        double zeta = 0, sum = 0, exact_sum = 0;
        for (std::uint64_t i = 1; i <= n; ++i) zeta += std::pow(static_cast<double>(i), -0.99);
        for (std::uint64_t i = 0; i < n; ++i) {
            const double exact = std::pow(static_cast<double>(i + 1), -0.99) / zeta;
            // The method is exact for the first two. The third gets up to 19 % too much, which the following ones pay.
            if (i < 2) REQUIRE(std::fabs(share[i] - exact) < 1e-5);
            if (exact > 1e-3) REQUIRE(std::fabs(share[i] / exact - 1) < 0.2);
            sum += share[i];
            exact_sum += exact;
            REQUIRE(std::fabs(sum - exact_sum) < 0.02);
        }
        const durasim::Scrambled scrambled(n);
        std::vector<bool> seen(n);
        for (std::uint64_t i = 0; i < n; ++i) seen.at(scrambled[i]) = true;
        REQUIRE(std::count(seen.begin(), seen.end(), true) == static_cast<std::ptrdiff_t>(n));
    }
}

}  // namespace

int main(int argc, char** argv) {
    REQUIRE(argc == 3);
    Pool& pool = Pool::open(argv[1], 16 << 20, 1 << 20);
    const std::string name = argv[2];
    if (name == "bplus-tree-64") operate<durasim::BPlusTree>(pool, {8, 64, true}, 600);
    else if (name == "bplus-tree-128-blocks") operate<durasim::BPlusTree>(pool, {72, 128, true}, 900);
    else if (name == "bplus-tree-1024") operate<durasim::BPlusTree>(pool, {8, 1024, true}, 1500);
    else if (name == "red-black-tree") operate<durasim::RedBlackTree>(pool, {8, 0, true}, 600);
    else if (name == "red-black-tree-4096") operate<durasim::RedBlackTree>(pool, {4096, 0, true}, 200);
    else if (name == "hash-table-1") operate<durasim::HashTable>(pool, {8, 1, true}, 100);
    else if (name == "hash-table-256") operate<durasim::HashTable>(pool, {48, 256, true}, 600);
    else if (name == "linked-lists-1") operate<durasim::LinkedLists>(pool, {8, 1, true}, 100);
    else if (name == "linked-lists-32") operate<durasim::LinkedLists>(pool, {104, 32, true}, 600);
    else if (name == "zipfian") zipfian();
    else return 2;
    std::puts("ok");
    return 0;
}
