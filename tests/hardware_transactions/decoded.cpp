// A hardware transaction stores to code and does not commit. Prints how it ended, and what the code returned then.
//
//   other    another thread executes the code meanwhile
//   own      the transaction executes it behind a FENCE.I, then aborts itself with what it has returned
//   unfenced the same without the FENCE.I, when its store has left the store buffer
#include <pthread.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "durasim/htm.h"

namespace {

using Function = std::uint64_t (*)();

constexpr unsigned delay = 5000;
constexpr std::size_t page_bytes = 4096;
constexpr std::uint32_t load_immediate_a0 = 0x00000513, ret = 0x00008067;
constexpr std::uint32_t returning(std::uint32_t value) { return load_immediate_a0 | value << 20; }

volatile bool started = false;
volatile std::uint64_t returned = 0;

void wait_a_while(unsigned turns) {
    for (unsigned i = 0; i < turns; ++i) __asm__ volatile("");
}

void* execute(void* code) {
    while (!started) {
    }
    wait_a_while(delay);
    __asm__ volatile("fence.i" ::: "memory");
    returned = reinterpret_cast<Function>(code)();
    return nullptr;
}

Function allocate() {
    void* const page = ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) std::abort();
    static_cast<volatile std::uint32_t*>(page)[0] = returning(1);
    static_cast<volatile std::uint32_t*>(page)[1] = ret;
    __asm__ volatile("fence.i" ::: "memory");
    return reinterpret_cast<Function>(page);
}

int other() {
    const Function function = allocate();
    auto* const code = reinterpret_cast<volatile std::uint32_t*>(function);
    pthread_t thread;
    if (::pthread_create(&thread, nullptr, execute, reinterpret_cast<void*>(function)) != 0) return 1;
    started = true;
    const std::uint64_t status = durasim::htm_begin();
    if (status == durasim::htm_started) {
        code[0] = returning(2);
        wait_a_while(4 * delay);
        durasim::htm_end();
        std::printf("committed");
    } else {
        std::printf("aborted %d", static_cast<int>(status));
    }
    ::pthread_join(thread, nullptr);
    std::printf(", returned %d\n", static_cast<int>(returned));
    return 0;
}

int own(bool is_fenced) {
    const Function function = allocate();
    auto* const code = reinterpret_cast<volatile std::uint32_t*>(function);
    const std::uint64_t status = durasim::htm_begin();
    if (status == durasim::htm_started) {
        code[0] = returning(2);
        if (is_fenced) {
            __asm__ volatile("fence.i" ::: "memory");
        } else {
            wait_a_while(delay);
        }
        if (function() == 2) durasim::htm_abort<2>();
        durasim::htm_abort<1>();
    }
    std::printf("aborted %#x, returned %d\n", static_cast<unsigned>(status), static_cast<int>(function()));
    return 0;
}

}  // namespace

int main(int, char** argv) {
    const bool is_fenced = std::strcmp(argv[1], "own") == 0;
    return is_fenced || std::strcmp(argv[1], "unfenced") == 0 ? own(is_fenced) : other();
}
