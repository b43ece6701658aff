// Tests of the guest API. `api_test PATH CASE` runs one case on a fresh pool; a case that must end the program is judged
// by the caller. Compiled once per backend, for the host and for RISC-V.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "durasim/audit.h"
#include "durasim/lock.h"
#include "durasim/pool.h"
#include "durasim/random.h"
#include "durasim/threads.h"
#include "durasim/tx.h"

namespace {

using durasim::Pool;
using durasim::Tx;

#define REQUIRE(condition)                                                        \
    do {                                                                          \
        if (!(condition)) {                                                       \
            std::fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #condition); \
            std::exit(1);                                                         \
        }                                                                         \
    } while (0)

struct alignas(64) Mixed {
    std::uint8_t byte;
    std::uint16_t half;
    std::int32_t word;
    double real;
    Mixed* pointer;
    std::uint64_t words[8];
};

Mixed* make(Pool& pool) {
    durasim::tx([&](Tx& t) {
        auto* object = static_cast<Mixed*>(t.allocate(sizeof(Mixed)));
        t.write(object->byte, 1);
        t.write(object->half, 2);
        t.write(object->word, -3);
        t.write(object->real, 4.5);
        t.write(object->pointer, object);
        for (std::uint64_t i = 0; i < 8; ++i) t.write(object->words[i], i);
        pool.set_root(t, object);
    });
    return pool.root<Mixed>();
}

void values(Pool& pool) {
    Mixed* m = make(pool);
    REQUIRE(m->byte == 1 && m->half == 2 && m->word == -3 && m->real == 4.5 && m->pointer == m && m->words[7] == 7);
    REQUIRE(reinterpret_cast<std::uint64_t>(m) % 64 == 0);
    std::uint64_t seen = 0;
    REQUIRE(durasim::tx([&](Tx& t) {
        t.write(m->word, t.read(m->word) + 10);
        seen = static_cast<std::uint64_t>(t.read(m->word));
    }));
    REQUIRE(seen == 7 && m->word == 7);
    std::uint64_t buffer[8];
    durasim::tx([&](Tx& t) {
        t.read_words(buffer, m->words, sizeof buffer);
        for (auto& word : buffer) word *= 2;
        t.write_words(m->words, buffer, sizeof buffer);
    });
    REQUIRE(m->words[7] == 14);
    REQUIRE(durasim::tx([&](Tx& t) { (void)t.read(m->byte); }));
}

// A body that returns false leaves nothing behind, allocations included.
void roll_back(Pool& pool) {
    Mixed* m = make(pool);
    const std::uint64_t used = pool.data()->used_bytes;
    for (int round = 0; round < 3; ++round) {
        const bool committed = durasim::tx([&](Tx& t) -> bool {
            t.write(m->word, 99);
            for (auto& word : m->words) t.write(word, 1000);
            t.allocate(256);
            return false;
        });
        REQUIRE(!committed);
        REQUIRE(m->word == -3 && m->words[0] == 0 && m->words[7] == 7 && pool.data()->used_bytes == used);
    }
    REQUIRE(durasim::tx([&](Tx& t) -> bool {
        t.write(m->word, 5);
        return true;
    }));
    REQUIRE(m->word == 5);
}

// A transaction that stores to more lines than a log remembers, several times each, is rolled back to what was before it.
void many_lines(Pool& pool) {
    constexpr std::uint64_t count = 50, step = 8;
    std::uint64_t* words = nullptr;
    const auto store_all = [&](Tx& t, std::uint64_t base) {
        for (std::uint64_t i = 0; i < count; ++i) t.write(words[i * step], base + i);
    };
    const auto all_are = [&](std::uint64_t base) {
        for (std::uint64_t i = 0; i < count; ++i) {
            if (words[i * step] != base + i) return false;
        }
        return true;
    };
    durasim::tx([&](Tx& t) {
        words = static_cast<std::uint64_t*>(t.allocate(count * step * sizeof(std::uint64_t)));
        pool.set_root(t, words);
    });
    durasim::tx([&](Tx& t) { store_all(t, 100); });
    for (std::uint64_t round = 1; round < 4; ++round) {
        const bool committed = durasim::tx([&](Tx& t) -> bool {
            for (std::uint64_t times = 0; times < 3; ++times) store_all(t, 1000 * round + 200 * times);
            return false;
        });
        REQUIRE(!committed);
        REQUIRE(all_are(100 * round));
        durasim::tx([&](Tx& t) { store_all(t, 100 * (round + 1)); });
        REQUIRE(all_are(100 * (round + 1)));
    }
}

void allocator(Pool& pool) {
    struct Block {
        void* place;
        std::uint64_t size_bytes;
    };
    Block blocks[40] = {};
    durasim::Random random(5);
    for (int round = 0; round < 400; ++round) {
        Block& block = blocks[random.below(40)];
        const std::uint64_t size_bytes = 1 + random.below(600);
        void* fresh = nullptr;
        durasim::tx([&](Tx& t) {
            if (block.place != nullptr) {
                t.free(block.place, block.size_bytes);
                fresh = nullptr;
            } else {
                fresh = t.allocate(size_bytes);
            }
        });
        block = {fresh, size_bytes};
        if (round % 20 == 0) {
            durasim::Audit audit(pool);
            REQUIRE(audit.problem() == nullptr);
            for (const Block& b : blocks) REQUIRE(b.place == nullptr || audit.claim(b.place, b.size_bytes));
            REQUIRE(audit.lines_leaked() == 0);
            REQUIRE(blocks[0].place == nullptr || !audit.claim(blocks[0].place, blocks[0].size_bytes));
        }
    }
    void* first = nullptr;
    void* second = nullptr;
    durasim::tx([&](Tx& t) { first = t.allocate(65), t.free(first, 65), second = t.allocate(128); });
    REQUIRE(first == second);
    durasim::Audit audit(pool);
    REQUIRE(!audit.claim(reinterpret_cast<void*>(durasim::pool_address), 64));
    REQUIRE(!audit.claim(static_cast<char*>(second) + 8, 64));
    REQUIRE(!audit.claim(nullptr, 64));
}

constexpr unsigned threads = 4;
constexpr unsigned rounds = 2000;

// Of the first entry of a transaction a power failure may leave a part. The number of that transaction is not used again.
void torn_undo_entry(Pool& pool) {
    Mixed* m = make(pool);
    auto* state = reinterpret_cast<std::uint64_t*>(durasim::pool_address + reinterpret_cast<const durasim::PoolHeader*>(durasim::pool_address)->log_offset);
    const std::uint64_t number = *state >> 24, tail = *state & 0xffffff;
    std::uint64_t* entry = state + 8 + tail;
    for (std::uint64_t part = 0; part < 2; ++part) {
        entry[0] = part == 0 ? reinterpret_cast<std::uint64_t>(m->words) | 1 : 0;
        entry[1] = part;
        REQUIRE(!durasim::runtime.needs_recovery());
        REQUIRE(durasim::runtime.recover() == 0);
        REQUIRE(*state >> 24 == number + 1 + part && (*state & 0xffffff) == tail);
    }
    durasim::tx([&](Tx& t) { t.write(m->word, 5); });
    REQUIRE(m->word == 5 && *state >> 24 == number + 3);
}

// So it is with words of a commit record.
void torn_redo_entry(Pool& pool) {
    Mixed* m = make(pool);
    auto* head = reinterpret_cast<std::uint64_t*>(reinterpret_cast<const durasim::PoolHeader*>(durasim::pool_address)->log_offset + durasim::pool_address);
    const std::uint64_t state = head[0], sum = head[4];
    REQUIRE(durasim::runtime.recover() == 0 && head[0] == state);
    head[4] = sum + 1;
    REQUIRE(!durasim::runtime.needs_recovery());
    REQUIRE(durasim::runtime.recover() == 0);
    REQUIRE(head[0] != state);
    durasim::tx([&](Tx& t) { t.write(m->word, 5); });
    REQUIRE(m->word == 5 && head[4] != sum + 1);
}

void torn_entry(Pool& pool) {
    constexpr auto kind = durasim::Runtime::log_kind;
    REQUIRE(kind == durasim::LogKind::undo || kind == durasim::LogKind::redo);
    kind == durasim::LogKind::undo ? torn_undo_entry(pool) : torn_redo_entry(pool);
}

// Increments by several threads under one lock are all there, whether made in transactions or not.
void locks(Pool& pool) {
    Mixed* m = make(pool);
    durasim::Lock lock;
    std::uint64_t plain = 0;
    durasim::run_threads(threads, [&](unsigned thread) {
        if (thread != 0) durasim::enter_thread(thread);
        for (unsigned i = 0; i < rounds; ++i) {
            lock.lock();
            plain = plain + 1;
            durasim::tx([&](Tx& t) { t.write(m->words[1], t.read(m->words[1]) + 1); });
            lock.unlock();
        }
    });
    REQUIRE(plain == threads * rounds);
    REQUIRE(m->words[1] == 1 + threads * rounds);
}

// Nobody passes a barrier before all have come, round after round; also if they have to sleep.
void barriers(Pool&) {
    for (const unsigned spins : {0u, 1000u}) {
        durasim::Barrier barrier(threads, spins);
        std::uint64_t arrived = 0;
        durasim::run_threads(threads, [&](unsigned) {
            for (unsigned i = 1; i <= rounds; ++i) {
                __atomic_fetch_add(&arrived, 1, __ATOMIC_RELAXED);
                barrier.wait();
                REQUIRE(__atomic_load_n(&arrived, __ATOMIC_RELAXED) == i * threads);
                barrier.wait();
            }
        });
    }
}

// Threads with an arena each allocate and free at once; memory stays accounted for and arenas apart.
void arenas(Pool& pool) {
    struct Kept {
        void* blocks[20] = {};
    };
    Kept kept[threads];
    REQUIRE(pool.arenas() == threads);
    durasim::run_threads(threads, [&](unsigned thread) {
        if (thread != 0) durasim::enter_thread(thread);
        durasim::Random random(thread);
        for (unsigned i = 0; i < rounds; ++i) {
            void*& block = kept[thread].blocks[random.below(20)];
            void* fresh = nullptr;
            durasim::tx([&](Tx& t) {
                if (block != nullptr) {
                    t.free(block, 200, thread);
                    fresh = nullptr;
                } else {
                    fresh = t.allocate(200, thread);
                    t.write(*static_cast<std::uint64_t*>(fresh), thread);
                }
            });
            block = fresh;
        }
    });
    durasim::Audit audit(pool);
    REQUIRE(audit.problem() == nullptr);
    for (unsigned thread = 0; thread < threads; ++thread) {
        for (void* block : kept[thread].blocks) {
            if (block == nullptr) continue;
            REQUIRE(audit.claim(block, 200));
            REQUIRE(*static_cast<std::uint64_t*>(block) == thread);
            REQUIRE(block > pool.arena(thread) && static_cast<char*>(block) < reinterpret_cast<char*>(pool.arena(thread)) + pool.arena_bytes());
        }
    }
    REQUIRE(audit.lines_leaked() == 0);
}

void nested(Pool&) {
    durasim::tx([&](Tx&) { durasim::tx([](Tx&) {}); });
}

void full_pool(Pool&) {
    durasim::tx([&](Tx& t) { t.allocate(1 << 30); });
}

// Blocks of any number of lines are found again, whole or in parts.
void large_blocks(Pool& pool) {
    char* blocks[3] = {};
    durasim::tx([&](Tx& t) {
        for (char*& block : blocks) block = static_cast<char*>(t.allocate(40000));
    });
    const std::uint64_t used = pool.data()->used_bytes;
    durasim::tx([&](Tx& t) {
        t.free(blocks[1], 40000);
        t.free(blocks[2], 40000);
    });
    void* parts[3] = {};
    durasim::tx([&](Tx& t) {
        parts[0] = t.allocate(40000);  // the last one given back fits
        parts[1] = t.allocate(10000);  // the end of the other
        parts[2] = t.allocate(39000);  // fits nowhere
    });
    REQUIRE(parts[0] == blocks[2]);
    REQUIRE(parts[1] == blocks[1] + 40000 - durasim::block_bytes(10000));
    REQUIRE(pool.data()->used_bytes == used + durasim::block_bytes(39000));
    durasim::Audit audit(pool);
    REQUIRE(audit.problem() == nullptr);
    REQUIRE(audit.claim(blocks[0], 40000) && audit.claim(parts[0], 40000) && audit.claim(parts[1], 10000));
    REQUIRE(audit.claim(parts[2], 39000));
    REQUIRE(!audit.claim(blocks[1], 20000));
    REQUIRE(audit.lines_leaked() == 0);
}

void full_log(Pool&) {
    durasim::tx([&](Tx& t) {
        for (int i = 0; i < 100; ++i) t.write(*static_cast<std::uint64_t*>(t.allocate(64)), 1);
    });
}

void second_pool(Pool&) { Pool::open("/dev/null", 1 << 20); }

constexpr struct {
    const char* name;
    void (*run)(Pool&);
} cases[] = {
    {"values", values},       {"take-back", roll_back},   {"many-lines", many_lines},   {"allocator", allocator},
    {"locks", locks},         {"barriers", barriers},     {"arenas", arenas},       {"nested", nested},       {"full-pool", full_pool},   {"large-blocks", large_blocks},
    {"full-log", full_log},   {"second-pool", second_pool}, {"torn-entry", torn_entry},
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    for (const auto& c : cases) {
        if (std::strcmp(c.name, argv[2]) != 0) continue;
        const std::uint64_t log_bytes = std::strcmp(c.name, "full-log") == 0 ? 256 : durasim::log_bytes_default;
        durasim::PoolShape shape{.arenas = 1, .logs = threads};
        if (std::strcmp(c.name, "arenas") == 0) shape.arenas = threads;
        c.run(Pool::open(argv[1], 1 << 20, log_bytes, false, shape));
        std::puts("ok");
        return 0;
    }
    return 2;
}
