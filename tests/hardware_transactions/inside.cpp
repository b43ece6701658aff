// A transaction of the program (durasim/markers.h) and a hardware transaction that aborts. `inside` begins the one
// inside of the other, `outside` the other way round. Then a transaction of the program with a hardware transaction in
// it commits.
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "durasim/htm.h"
#include "durasim/lock.h"
#include "durasim/markers.h"

namespace {

using namespace durasim;

volatile std::uint64_t word = 0;

// The begin leaves the store buffer.
void wait_a_while() {
    for (unsigned i = 0; i < 100; ++i) detail::pause_hint();
}

void store_and_abort() {
    word = 7;
    wait_a_while();
    htm_abort<1>();
}

}  // namespace

int main(int, char** argv) {
    if (std::strcmp(argv[1], "inside") == 0) {
        if (htm_begin() == htm_started) {
            durasim_tx_begin();
            store_and_abort();
        }
    } else {
        durasim_tx_begin();
        if (htm_begin() == htm_started) store_and_abort();
        durasim_tx_commit();
    }
    durasim_tx_begin();
    if (htm_begin() == htm_started) {
        word = word + 1;
        htm_end();
    }
    durasim_tx_commit();
    std::printf("%llu\n", static_cast<unsigned long long>(word));
    return 0;
}
