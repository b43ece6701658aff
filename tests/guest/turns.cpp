// Threads that lose their turns in the middle of stores, cleans and fences: on a host with few cores, threads would hardly ever
// meet otherwise. Linked with a workload as the machine behind it.
#include <sched.h>
#include <setjmp.h>

#include <cstdint>

namespace {

// One in 16 is given away. Each thread draws on its own.
void may_lose_turn() {
    static thread_local std::uint64_t state = reinterpret_cast<std::uint64_t>(&state);
    state = state * 6364136223846793005u + 1442695040888963407u;
    if (state >> 60 != 0) return;
    for (std::uint64_t turns = 1 + (state >> 56 & 3); turns != 0; --turns) ::sched_yield();
}

}  // namespace

extern "C" {
void durasim_test_store(void*, std::uint64_t) { may_lose_turn(); }
void durasim_test_stored(void) { may_lose_turn(); }
void durasim_test_clean(const void*) { may_lose_turn(); }
void durasim_test_fence(void) { may_lose_turn(); }
void durasim_test_marker(std::uint64_t, std::uint64_t) {}
jmp_buf* durasim_test_tx_frame(void) {
    static jmp_buf never_used;  // nothing aborts
    return &never_used;
}
}
