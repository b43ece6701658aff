// Counters that several threads increment, each in its own way; not one increment may be lost.
//
//     counters [ITERATIONS [THREADS]]    a line for each way: amoadd: total=4000 expected=4000
#include "litmus.h"

namespace {

using litmus::Cell;
using litmus::Spin;

struct Shared {
    Cell counter;
    Cell lock;     // of the spin lock
    Cell tickets;  // of the ticket lock: the next one handed out,
    Cell serving;  // and the one whose turn it is
};

#if defined(__riscv)
std::uint64_t fetch_add(Cell& cell, std::uint64_t amount) {
    std::uint64_t old;
    __asm__ volatile("amoadd.d.aqrl %0, %2, %1" : "=r"(old), "+A"(cell.word) : "r"(amount) : "memory");
    return old;
}

std::uint64_t swap(Cell& cell, std::uint64_t value) {
    std::uint64_t old;
    __asm__ volatile("amoswap.d.aq %0, %2, %1" : "=r"(old), "+A"(cell.word) : "r"(value) : "memory");
    return old;
}

void release(Cell& cell, std::uint64_t value) { __asm__ volatile("fence rw, w\n\tsd %1, %0" : "=m"(cell.word) : "r"(value) : "memory"); }

// Without a loop in assembly: the caller repeats.
bool add_if_undisturbed(Cell& cell) {
    std::uint64_t value, failed;
    __asm__ volatile("lr.d.aq %0, %2\n\taddi %0, %0, 1\n\tsc.d.rl %1, %0, %2"
                     : "=&r"(value), "=&r"(failed), "+A"(cell.word)
                     :
                     : "memory");
    return failed == 0;
}
#else
std::uint64_t fetch_add(Cell& cell, std::uint64_t amount) { return __atomic_fetch_add(&cell.word, amount, __ATOMIC_SEQ_CST); }
std::uint64_t swap(Cell& cell, std::uint64_t value) { return __atomic_exchange_n(&cell.word, value, __ATOMIC_ACQUIRE); }
void release(Cell& cell, std::uint64_t value) { __atomic_store_n(&cell.word, value, __ATOMIC_RELEASE); }
bool add_if_undisturbed(Cell& cell) {
    std::uint64_t value = __atomic_load_n(&cell.word, __ATOMIC_RELAXED);
    return __atomic_compare_exchange_n(&cell.word, &value, value + 1, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}
#endif

void by_amoadd(Shared& shared) { fetch_add(shared.counter, 1); }

void by_lr_sc(Shared& shared) {
    while (!add_if_undisturbed(shared.counter)) {
    }
}

// Load and store of their own: only the lock keeps increments apart.
void increment(Shared& shared) { litmus::store(shared.counter, litmus::load(shared.counter) + 1); }

void by_spin_lock(Shared& shared) {
    Spin spin;
    while (swap(shared.lock, 1) != 0) spin();
    increment(shared);
    release(shared.lock, 0);
}

void by_ticket_lock(Shared& shared) {
    Spin spin;
    const std::uint64_t mine = fetch_add(shared.tickets, 1);
    while (litmus::load(shared.serving) != mine) spin();
    litmus::fence();
    increment(shared);
    release(shared.serving, mine + 1);
}

constexpr struct {
    const char* name;
    void (*once)(Shared&);
} ways[] = {{"amoadd", by_amoadd}, {"lr-sc", by_lr_sc}, {"spin-lock", by_spin_lock}, {"ticket-lock", by_ticket_lock}};

}  // namespace

int main(int argc, char** argv) {
    const std::uint64_t iterations = litmus::number_at(argc, argv, 1, 1000);
    const auto threads = static_cast<unsigned>(litmus::number_at(argc, argv, 2, 4));
    for (const auto& way : ways) {
        static Shared shared;
        shared = Shared{};
        durasim::Barrier barrier(threads, litmus::barrier_spins(threads));
        durasim::run_threads(threads, [&](unsigned thread) {
            durasim::Random random(thread);
            barrier.wait();
            for (std::uint64_t i = 0; i < iterations; ++i) {
                way.once(shared);
                litmus::delay(random.below(16));
            }
        });
        std::printf("%s: total=%llu expected=%llu\n", way.name, static_cast<unsigned long long>(litmus::load(shared.counter)),
                    static_cast<unsigned long long>(iterations * threads));
    }
    return 0;
}
