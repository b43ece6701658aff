// A hardware transaction stores to code that another thread decodes meanwhile. Prints how the transaction ended, and what the code returned.
#include <pthread.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>

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

}  // namespace

int main() {
    void* const page = ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return 1;
    auto* const code = static_cast<volatile std::uint32_t*>(page);
    code[0] = returning(1);
    code[1] = ret;
    __asm__ volatile("fence.i" ::: "memory");
    pthread_t other;
    if (::pthread_create(&other, nullptr, execute, page) != 0) return 1;
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
    ::pthread_join(other, nullptr);
    std::printf(", returned %d\n", static_cast<int>(returned));
    return 0;
}
