// What reaches a hardware transaction from outside, or from before its begin.
//
//   copy PATH       another thread stores to a private page that the transaction has read from the file
//   pinned N        N other threads take turns on the other core, where this thread may not run
//   reservation     an LR inside of an aborted transaction, and an SC outside
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "durasim/htm.h"

namespace {

using durasim::htm_begin;
using durasim::htm_end;
using durasim::htm_started;

constexpr std::size_t page_bytes = 4096;
constexpr unsigned delay = 20000;

alignas(64) volatile bool over = false;
alignas(64) volatile std::uint64_t counts[8 * 8];

void wait_a_while(unsigned turns) {
    for (unsigned i = 0; i < turns; ++i) __asm__ volatile("");
}

void stay_on(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    if (::sched_setaffinity(0, sizeof set, &set) != 0) std::abort();
}

void* store_to(void* page) {
    wait_a_while(delay);
    *static_cast<volatile std::uint64_t*>(page) = 7;
    return nullptr;
}

int copy(const char* path) {
    const int file = ::open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ::ftruncate(file, page_bytes) != 0) return 1;
    void* const mapped = ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    if (mapped == MAP_FAILED) return 1;
    const auto* const page = static_cast<volatile std::uint64_t*>(mapped);
    pthread_t other;
    if (::pthread_create(&other, nullptr, store_to, mapped) != 0) return 1;
    const std::uint64_t status = htm_begin();
    if (status == htm_started) {
        const std::uint64_t first = *page;
        wait_a_while(4 * delay);
        const std::uint64_t second = *page;
        htm_end();
        std::printf("committed %d %d\n", static_cast<int>(first), static_cast<int>(second));
    } else {
        std::printf("aborted %d\n", static_cast<int>(status));
    }
    ::pthread_join(other, nullptr);
    return 0;
}

void* count(void* place) {
    stay_on(1);
    auto* const counter = static_cast<volatile std::uint64_t*>(place);
    while (!over) *counter = *counter + 1;
    return nullptr;
}

int pinned(unsigned others) {
    stay_on(0);
    pthread_t threads[8];
    for (unsigned i = 0; i < others; ++i) {
        if (::pthread_create(&threads[i], nullptr, count, const_cast<std::uint64_t*>(counts + 8 * i)) != 0) return 1;
    }
    wait_a_while(delay);
    int committed = 0;
    for (int i = 0; i < 50; ++i) {
        if (htm_begin() == htm_started) {
            wait_a_while(50);
            htm_end();
            ++committed;
        }
    }
    over = true;
    for (unsigned i = 0; i < others; ++i) ::pthread_join(threads[i], nullptr);
    std::printf("committed %d\n", committed);
    return 0;
}

int reservation() {
    alignas(64) static std::uint64_t word = 3;
    if (htm_begin() == htm_started) {
        std::uint64_t ignored;
        __asm__ volatile("lr.d %0, (%1)" : "=r"(ignored) : "r"(&word) : "memory");
        durasim::htm_abort<1>();
    }
    std::uint64_t failed;
    __asm__ volatile("sc.d %0, %2, (%1)" : "=&r"(failed) : "r"(&word), "r"(std::uint64_t{77}) : "memory");
    std::printf("failed %d, word %d\n", static_cast<int>(failed), static_cast<int>(word));
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (std::strcmp(argv[1], "copy") == 0) return copy(argv[2]);
    if (std::strcmp(argv[1], "pinned") == 0) return pinned(static_cast<unsigned>(std::atoi(argv[2])));
    return argc == 2 ? reservation() : 1;
}
