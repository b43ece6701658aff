// What a program may not do with hardware transactions.
#include <cstdint>
#include <cstring>

#include "durasim/htm.h"
#include "durasim/markers.h"

int main(int, char** argv) {
    using namespace durasim;
    if (std::strcmp(argv[1], "begin") == 0) return htm_begin() == htm_started;
    if (std::strcmp(argv[1], "end") == 0) {
        htm_end();
        return 0;
    }
    if (std::strcmp(argv[1], "abort") == 0) {
        htm_abort<1>();
        return 0;
    }
    if (std::strcmp(argv[1], "test") == 0) return htm_test();
    if (std::strcmp(argv[1], "commit") == 0) {
        durasim_tx_begin();
        if (htm_begin() != htm_started) return 0;
        durasim_tx_commit();
        return 0;
    }
    for (unsigned depth = 0; depth < 8; ++depth) {
        if (htm_begin() != htm_started) return 0;
    }
    return 1;
}
