// Durable transactions of several threads, whose attempts abort for each cause: they share numbers, some store to more
// lines than a set of the L1D has ways, some abort a transaction that is nested in theirs, and some roll themselves
// back. Prints what was added to the numbers, what is there, and what all threads have counted.
#include <cstdint>
#include <cstdio>

#include "durasim/pool.h"
#include "durasim/threads.h"
#include "durasim/tx.h"

namespace {

using durasim::Tx;

constexpr unsigned threads = 4, rounds = 48, numbers = 4, pages = 12;

struct alignas(64) Number {
    std::uint64_t value;
};
// Lines of all pages are of a few sets.
struct Page {
    std::uint64_t value;
    char rest[durasim::page_bytes - 8];
};
struct Root {
    Number numbers[numbers];
    Page pages[threads][pages];
};

// What the threads have done and counted.
struct Sums {
    durasim::Lock lock;
    std::uint64_t added = 0;
    durasim::HtmCounts counts;
};
Sums sums;

void add_to_each(Tx& t, Root& root) {
    for (Number& number : root.numbers) t.write(number.value, t.read(number.value) + 1);
}

// Whether it has added.
bool transact(Root& root, unsigned thread, unsigned round) {
    const unsigned kind = round % 8;
    return durasim::tx([&](Tx& t) {
        if (kind == 1) {
            for (Page& page : root.pages[thread]) t.write(page.value, round);
        } else if (kind == 3) {
            t.write(root.pages[thread][0].value, round);
            // Each attempt in hardware does: the transaction takes the lock.
            if (durasim::runtime.is_in_hardware() && durasim::htm_begin() == durasim::htm_started) {
                durasim::htm_abort<7>();
            }
        } else {
            add_to_each(t, root);
        }
        return kind != 5;
    }) && kind != 1 && kind != 3;
}

void work(Root& root, unsigned thread) {
    std::uint64_t added = 0;
    for (unsigned round = 0; round < rounds; ++round) {
        added += transact(root, thread, round);
        for (unsigned i = 0; i < 300 * thread; ++i) durasim::detail::pause_hint();
    }
    sums.lock.lock();
    sums.added += numbers * added;
    sums.counts.add(durasim::runtime.htm_counts());
    sums.lock.unlock();
}

}  // namespace

int main() {
    durasim::Pool& pool = durasim::Pool::open("/pmem/pool", 1 << 20, 4096, false, {.arenas = 1, .logs = threads});
    Root* root = nullptr;
    durasim::tx([&](Tx& t) {
        root = static_cast<Root*>(t.allocate(sizeof(Root)));
        for (Number& number : root->numbers) t.write(number.value, 0);
        pool.set_root(t, root);
    });
    durasim::run_threads(threads, [&](unsigned thread) {
        // The first thread has counted the transaction above.
        if (thread != 0) durasim::enter_thread(thread);
        work(*root, thread);
    });
    std::uint64_t found = 0;
    for (const Number& number : root->numbers) found += number.value;
    const durasim::HtmCounts& c = sums.counts;
    using Long = unsigned long long;
    std::printf("added=%llu found=%llu hardware=%llu lock=%llu ", static_cast<Long>(sums.added),
                static_cast<Long>(found), static_cast<Long>(c.hardware), static_cast<Long>(c.lock));
    std::printf("conflict=%llu capacity=%llu explicitly=%llu nested=%llu other=%llu\n", static_cast<Long>(c.conflict),
                static_cast<Long>(c.capacity), static_cast<Long>(c.explicitly), static_cast<Long>(c.nested),
                static_cast<Long>(c.other));
    return 0;
}
