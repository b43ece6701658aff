// What transactions of Hercules do end to end, on words of a file of persistent memory, which has to be new.
//
//   abort LINES TIMES       a transaction of that many lines that aborts itself with another cause each time
//   long LINES              one transaction of that many lines
//   many THREADS OPS LINES  that many threads, bound to no core, each with lines of its own; says how many transactions
//                           changed cores while they were open
//   mixed OPS               a thread in transactions and one that stores without them
//
// What an earlier run has left, be it that the power failed in it:
//   nothing LINES           nothing of `long LINES` but what was before it
//   prefix LINES            of `abort LINES`: the transactions before the one that aborts itself, in their order
//   whole                   of `mixed`: all lines of the transactions as old, the others as old as their order allows
//
// It exits with 0 if the words are what they have to be, and prints one line of what it counted.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "durasim/tx.h"

namespace {

using durasim::fail;
using durasim::Tx;

constexpr std::uint64_t words_of_line = durasim::line_bytes / 8;
constexpr std::uint64_t lines_max = 8192;
constexpr unsigned lines_of_thread = 64;

std::uint64_t* words;  // persistent, zero at first

std::uint64_t& word_of(std::uint64_t line) { return words[line * words_of_line]; }

void expect(std::uint64_t line, std::uint64_t value) {
    if (word_of(line) != value) {
        fail(durasim::exit_violation, "hercules: line %llu holds %llx instead of %llx", static_cast<unsigned long long>(line),
             static_cast<unsigned long long>(word_of(line)), static_cast<unsigned long long>(value));
    }
}

void open_words(const char* path) {
    const int file = ::open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ::ftruncate(file, lines_max * durasim::line_bytes) != 0) fail(durasim::exit_runtime, "hercules: no %s", path);
    void* mapped = ::mmap(nullptr, lines_max * durasim::line_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) fail(durasim::exit_runtime, "hercules: %s cannot be mapped", path);
    words = static_cast<std::uint64_t*>(mapped);
    durasim_declare_data(words, lines_max * durasim::line_bytes);
}

// In a frame of its own, which an abort may leave at any point.
[[gnu::noinline]] void store_and_abort(std::uint64_t lines, std::uint64_t cause) {
    for (std::uint64_t line = 0; line < lines; ++line) word_of(line) = ~cause;
    durasim_tx_abort(cause);
    fail(durasim::exit_violation, "hercules: the transaction went on behind its abort");
}

[[gnu::noinline]] std::uint64_t cause_of_abort(std::uint64_t lines, std::uint64_t cause) {
    if (const std::uint64_t told = durasim_tx_begin()) return told;
    store_and_abort(lines, cause);
    return 0;
}

void abort_by_instruction(std::uint64_t lines, std::uint64_t times) {
    for (std::uint64_t line = 0; line < lines; ++line) {
        durasim::tx([&](Tx& t) { t.write(word_of(line), line + 1); });
    }
    for (std::uint64_t n = 1; n <= times; ++n) {
        if (const std::uint64_t told = cause_of_abort(lines, n); told != n) {
            fail(durasim::exit_violation, "hercules: cause %llx instead of %llx", static_cast<unsigned long long>(told),
                 static_cast<unsigned long long>(n));
        }
        for (std::uint64_t line = 0; line < lines; ++line) expect(line, line + 1);
    }
    std::printf("aborted=%llu\n", static_cast<unsigned long long>(times));
}

void one_long_transaction(std::uint64_t lines) {
    durasim::tx([&](Tx& t) { t.write(word_of(lines_max - 1), std::uint64_t{1}); });
    durasim::tx([&](Tx& t) {
        for (std::uint64_t line = 0; line < lines; ++line) t.write(word_of(line), line + 1);
    });
    for (std::uint64_t line = 0; line < lines; ++line) expect(line, line + 1);
    std::printf("lines=%llu\n", static_cast<unsigned long long>(lines));
}

void nothing_of_a_long_transaction(std::uint64_t lines) {
    for (std::uint64_t line = 0; line < lines; ++line) expect(line, 0);
    expect(lines_max - 1, 1);
    std::printf("lines=0\n");
}

void prefix(std::uint64_t lines) {
    std::uint64_t there = 0;
    while (there < lines && word_of(there) != 0) ++there;
    for (std::uint64_t line = 0; line < lines; ++line) expect(line, line < there ? line + 1 : 0);
    std::printf("lines=%llu\n", static_cast<unsigned long long>(there));
}

// Plain stores become visible and, on a machine whose caches survive, durable in their order.
void whole() {
    for (std::uint64_t line = 0; line < lines_of_thread; ++line) expect(line, word_of(0));
    const std::uint64_t newest = word_of(lines_of_thread);
    std::uint64_t there = 0;
    while (there < lines_of_thread && word_of(lines_of_thread + there) == newest) ++there;
    for (std::uint64_t line = there; line < lines_of_thread; ++line) expect(lines_of_thread + line, newest - 1);
    std::printf("transactions=%llu\n", static_cast<unsigned long long>(word_of(0)));
}

struct Worker {
    std::uint64_t number, ops, lines;
    pthread_barrier_t* start;
    std::uint64_t moved = 0;
    pthread_t thread{};
};

// Adds one to each of the thread's lines, `ops` times.
void* work(void* argument) {
    auto& worker = *static_cast<Worker*>(argument);
    durasim::enter_thread(worker.number);
    ::pthread_barrier_wait(worker.start);
    const std::uint64_t first = worker.number * lines_of_thread;
    for (std::uint64_t op = 0; op < worker.ops; ++op) {
        int before = 0, behind = 0;
        durasim::tx([&](Tx& t) {
            before = ::sched_getcpu();
            for (std::uint64_t line = 0; line < worker.lines; ++line) {
                t.write(word_of(first + line), t.read(word_of(first + line)) + 1);
            }
            behind = ::sched_getcpu();
        });
        worker.moved += before != behind;
    }
    return nullptr;
}

void run(std::vector<Worker>& workers) {
    pthread_barrier_t start{};
    ::pthread_barrier_init(&start, nullptr, static_cast<unsigned>(workers.size()));
    for (auto& worker : workers) {
        worker.start = &start;
        if (::pthread_create(&worker.thread, nullptr, work, &worker) != 0) fail(durasim::exit_runtime, "hercules: no thread");
    }
    for (auto& worker : workers) ::pthread_join(worker.thread, nullptr);
    for (const auto& worker : workers) {
        for (std::uint64_t line = 0; line < worker.lines; ++line) expect(worker.number * lines_of_thread + line, worker.ops);
    }
}

void many(std::uint64_t threads, std::uint64_t ops, std::uint64_t lines) {
    std::vector<Worker> workers(threads);
    for (std::uint64_t n = 0; n < threads; ++n) workers[n] = {n, ops, lines, nullptr};
    run(workers);
    std::uint64_t moved = 0;
    for (const auto& worker : workers) moved += worker.moved;
    std::printf("moved=%llu\n", static_cast<unsigned long long>(moved));
}

// Stores without transactions to lines that lie after those of the workers, until nobody works any more.
std::atomic<bool> is_over;

void* store_plainly(void* argument) {
    auto& rounds = *static_cast<std::uint64_t*>(argument);
    do {
        ++rounds;
        for (std::uint64_t line = 0; line < lines_of_thread; ++line) word_of(lines_of_thread + line) = rounds;
    } while (!is_over.load());
    return nullptr;
}

void mixed(std::uint64_t ops) {
    std::uint64_t rounds = 0;
    pthread_t plain{};
    if (::pthread_create(&plain, nullptr, store_plainly, &rounds) != 0) fail(durasim::exit_runtime, "hercules: no thread");
    std::vector<Worker> workers{{0, ops, lines_of_thread, nullptr}};
    run(workers);
    is_over.store(true);
    ::pthread_join(plain, nullptr);
    for (std::uint64_t line = 0; line < lines_of_thread; ++line) expect(lines_of_thread + line, rounds);
    std::printf("rounds=%llu\n", static_cast<unsigned long long>(rounds));
}

}  // namespace

int main(int count, char** arguments) {
    const auto number = [&](int n) { return n < count ? std::strtoull(arguments[n], nullptr, 10) : 0; };
    if (count < 3) fail(durasim::exit_usage, "usage: hercules FILE abort|long|many|mixed|nothing|prefix|whole NUMBER...");
    open_words(arguments[1]);
    const char* what = arguments[2];
    if (std::strcmp(what, "abort") == 0) {
        abort_by_instruction(number(3), number(4));
    } else if (std::strcmp(what, "long") == 0) {
        one_long_transaction(number(3));
    } else if (std::strcmp(what, "nothing") == 0) {
        nothing_of_a_long_transaction(number(3));
    } else if (std::strcmp(what, "prefix") == 0) {
        prefix(number(3));
    } else if (std::strcmp(what, "whole") == 0) {
        whole();
    } else if (std::strcmp(what, "many") == 0) {
        many(number(3), number(4), number(5));
    } else if (std::strcmp(what, "mixed") == 0) {
        mixed(number(3));
    } else {
        fail(durasim::exit_usage, "hercules: %s is nothing to do", what);
    }
    return 0;
}
