// A pool with logs for two threads, and a thread with the number that is the argument. Prints what its transaction has
// stored.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "durasim/pool.h"
#include "durasim/tx.h"

int main(int, char** argv) {
    durasim::Pool& pool = durasim::Pool::open("/pmem/pool", 1 << 20, 4096, false, {.arenas = 1, .logs = 2});
    std::uint64_t* word = nullptr;
    durasim::tx([&](durasim::Tx& t) {
        word = static_cast<std::uint64_t*>(t.allocate(sizeof *word));
        t.write(*word, 0);
        pool.set_root(t, word);
    });
    durasim::enter_thread(std::strtoull(argv[1], nullptr, 10));
    durasim::tx([&](durasim::Tx& t) { t.write(*word, 5); });
    std::printf("%d\n", static_cast<int>(*word));
    return 0;
}
