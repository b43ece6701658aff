// A program that exits while its threads have transactions. `run WHERE` commits counters in several threads; once each has some, thread 0 exits:
// outside of a transaction, inside of one, or outside with a handler that begins one when the runtime has ended its work. At the very end it prints
// what had been acknowledged. `check` recovers and prints what is there.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "durasim/pool.h"
#include "durasim/threads.h"
#include "durasim/tx.h"

namespace {

constexpr unsigned threads = 4;

struct alignas(64) Counter {
    std::uint64_t value;
};
struct Root {
    Counter counters[threads];
};

std::uint64_t acknowledged[threads];

Root* counted = nullptr;

// Registered before the pool is opened, so called behind the runtime's own handler.
void store_behind_exit() {
    durasim::tx([](durasim::Tx& t) { t.write(counted->counters[0].value, 99); });
}

std::uint64_t acknowledged_by(unsigned thread) { return __atomic_load_n(&acknowledged[thread], __ATOMIC_SEQ_CST); }

void print_acknowledged() {
    for (unsigned i = 0; i < threads; ++i) std::printf("%llu ", static_cast<unsigned long long>(acknowledged_by(i)));
}

[[noreturn]] void leave(Root* root, bool is_inside) {
    while (acknowledged_by(1) < 20 || acknowledged_by(2) < 20 || acknowledged_by(3) < 20) durasim::detail::pause_hint();
    if (is_inside) {
        durasim::tx([&](durasim::Tx& t) {
            t.write(root->counters[0].value, 77);
            std::exit(0);
        });
    }
    std::exit(0);
}

void count(Root* root, unsigned thread) {
    for (std::uint64_t i = 1;; ++i) {
        durasim::tx([&](durasim::Tx& t) { t.write(root->counters[thread].value, i); });
        __atomic_store_n(&acknowledged[thread], i, __ATOMIC_SEQ_CST);
    }
}

}  // namespace

int main(int, char** arguments) {
    if (std::strcmp(arguments[1], "run") == 0) {
        std::atexit(print_acknowledged);  // what is registered first is called last
        if (std::strcmp(arguments[2], "behind") == 0) std::atexit(store_behind_exit);
        durasim::Pool& pool = durasim::Pool::open("/pmem/pool", 1 << 20, 4096, false, {.arenas = 1, .logs = threads});
        Root* root = nullptr;
        durasim::tx([&](durasim::Tx& t) {
            root = static_cast<Root*>(t.allocate(sizeof(Root)));
            for (Counter& counter : root->counters) t.write(counter.value, 0);
            pool.set_root(t, root);
        });
        counted = root;
        durasim::run_threads(threads, [&](unsigned thread) {
            durasim::enter_thread(thread);
            if (thread == 0) leave(root, std::strcmp(arguments[2], "inside") == 0);
            count(root, thread);
        });
    }
    durasim::Pool& pool = *durasim::Pool::open_existing("/pmem/pool");
    durasim::runtime.recover();
    for (const Counter& counter : pool.root<Root>()->counters) std::printf("%llu ", static_cast<unsigned long long>(counter.value));
    return 0;
}
