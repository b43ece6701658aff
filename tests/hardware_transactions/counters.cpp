// Threads increment two shared numbers in hardware transactions, each with a lock behind it, and a third with a plain atomic
// operation that also stands in every transaction.
//
// In each attempt, also in those that abort, the first two numbers are equal: a transaction never sees half of another one. What it
// finds otherwise it says by the code of its abort. Prints the sums, and how often attempts committed.
#include <pthread.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "durasim/htm.h"
#include "durasim/lock.h"

namespace {

constexpr unsigned threads_max = 64, attempts_max = 10;
constexpr unsigned code_locked = 1, code_torn = 2;

struct alignas(64) Number {
    volatile std::uint64_t value = 0;
};
Number x, y, plain;
durasim::Lock lock;
unsigned threads, rounds;

struct alignas(64) Count {
    std::uint64_t hardware = 0, locked = 0, torn = 0;
};
Count counts[threads_max];

bool in_hardware(Count& count) {
    const std::uint64_t status = durasim::htm_begin();
    if (status == durasim::htm_started) {
        if (lock.is_held()) durasim::htm_abort<code_locked>();
        const std::uint64_t first = x.value;
        for (unsigned i = 0; i < 8; ++i) durasim::detail::pause_hint();
        if (y.value != first) durasim::htm_abort<code_torn>();
        x.value = first + 1;
        for (unsigned i = 0; i < 8; ++i) durasim::detail::pause_hint();
        y.value = first + 1;
        plain.value = plain.value + 1;
        durasim::htm_end();
        ++count.hardware;
        return true;
    }
    if ((status & durasim::htm_explicit) != 0 && durasim::htm_code(status) == code_torn) ++count.torn;
    return false;
}

void increment(Count& count) {
    for (unsigned attempt = 0; attempt < attempts_max; ++attempt) {
        while (lock.is_held()) durasim::detail::pause_hint();
        if (in_hardware(count)) return;
    }
    lock.lock();
    x.value = x.value + 1;
    y.value = y.value + 1;
    __atomic_fetch_add(&plain.value, 1, __ATOMIC_RELAXED);
    ++count.locked;
    lock.unlock();
}

void* work(void* argument) {
    Count& count = counts[reinterpret_cast<std::uintptr_t>(argument)];
    for (unsigned i = 0; i < rounds; ++i) {
        increment(count);
        // Outside of transactions: it conflicts with all that have the line.
        if (i % 4 == 0) __atomic_fetch_add(&plain.value, 1, __ATOMIC_RELAXED);
    }
    return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
    threads = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 4;
    rounds = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 100;
    pthread_t handles[threads_max];
    for (unsigned i = 1; i < threads; ++i) pthread_create(&handles[i], nullptr, work, reinterpret_cast<void*>(std::uintptr_t{i}));
    work(nullptr);
    for (unsigned i = 1; i < threads; ++i) pthread_join(handles[i], nullptr);
    Count sum;
    for (const Count& count : counts) sum.hardware += count.hardware, sum.locked += count.locked, sum.torn += count.torn;
    std::printf("x=%llu y=%llu plain=%llu hardware=%llu locked=%llu torn=%llu\n", static_cast<unsigned long long>(x.value),
                static_cast<unsigned long long>(y.value), static_cast<unsigned long long>(plain.value), static_cast<unsigned long long>(sum.hardware),
                static_cast<unsigned long long>(sum.locked), static_cast<unsigned long long>(sum.torn));
    return 0;
}
