// One hardware transaction for each way to abort. Prints what each finds behind its begin, and that nothing of it is left.
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>

#include "durasim/htm.h"
#include "durasim/lock.h"
#include "durasim/persist.h"

namespace {

using Word = volatile std::uint64_t;

struct alignas(64) Line {
    Word value = 0;
};
Line first, second;
alignas(4096) Line many[1024];
volatile bool started = false;

// What a transaction finds that stores to a line, does something, and ends; and what is left of the store.
template <class Body>
[[gnu::noinline]] void attempt(const char* name, Body&& body) {
    const std::uint64_t before = first.value;
    const std::uint64_t status = durasim::htm_begin();
    if (status == durasim::htm_started) {
        first.value = before + 1;
        body();
        durasim::htm_end();
        std::printf("%s committed, stored %llu, open %d\n", name, static_cast<unsigned long long>(first.value - before), durasim::htm_test());
        return;
    }
    std::printf("%s aborted, status %#llx, stored %llu, open %d\n", name, static_cast<unsigned long long>(status),
                static_cast<unsigned long long>(first.value - before), durasim::htm_test());
}

// So many transactions inside of the open one, the innermost around `body`. It aborts with 1 if one of them does not
// begin, and with 2 if their ends end the open one.
template <class Body>
void nest(unsigned depth, Body&& body) {
    for (unsigned i = 0; i < depth; ++i) {
        if (durasim::htm_begin() != durasim::htm_started) durasim::htm_abort<1>();
    }
    body();
    for (unsigned i = 0; i < depth; ++i) durasim::htm_end();
    if (!durasim::htm_test()) durasim::htm_abort<2>();
}

void* disturb(void*) {
    while (!started) durasim::detail::pause_hint();
    for (unsigned i = 0; i < 2000; ++i) durasim::detail::pause_hint();
    second.value = 1;
    return nullptr;
}

}  // namespace

int main() {
    using namespace durasim;
    std::printf("open %d\n", htm_test());
    attempt("nothing", [] {});
    attempt("open", [] {
        if (!htm_test()) htm_abort<1>();
    });
    attempt("explicit", [] { htm_abort<0xa5>(); });
    attempt("nested", [] {
        if (htm_begin() == htm_started) htm_abort<7>();
    });
    attempt("flat", [] {
        if (htm_begin() == htm_started) htm_end();
        if (!htm_test()) htm_abort<1>();
    });
    attempt("seven", [] { nest(6, [] {}); });
    attempt("seven aborted", [] { nest(6, [] { htm_abort<9>(); }); });
    attempt("system call", [] { ::getpid(); });
    attempt("breakpoint", [] { __asm__ volatile("ebreak"); });
    attempt("fault", [] { *reinterpret_cast<Word*>(8) = 1; });
    attempt("cache block", [] { durasim_clean(&second); });
    attempt("capacity", [] {
        for (Line& line : many) line.value = 1;
    });
    std::printf("left of the many %llu\n", static_cast<unsigned long long>(many[0].value + many[1023].value));

    pthread_t thread;
    pthread_create(&thread, nullptr, disturb, nullptr);
    started = true;
    attempt("conflict", [] {
        (void)second.value;
        for (std::uint64_t i = 0; i < 1000000; ++i) detail::pause_hint();
    });
    pthread_join(thread, nullptr);
    return 0;
}
