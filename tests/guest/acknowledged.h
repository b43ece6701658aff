// Included in front of a guest program that runs natively on the host: counts the operations that have returned, in the
// first word of the file that DURASIM_TEST_REPORT names, which outlives the process however it ends.
#ifndef DURASIM_TESTS_ACKNOWLEDGED_H
#define DURASIM_TESTS_ACKNOWLEDGED_H

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "durasim/markers.h"

namespace durasim_test {

inline std::uint64_t* map_count() {
    const char* path = std::getenv("DURASIM_TEST_REPORT");
    const int file = path == nullptr ? -1 : ::open(path, O_RDWR | O_CREAT, 0644);
    void* place = MAP_FAILED;
    if (file >= 0 && ::ftruncate(file, sizeof(std::uint64_t)) == 0) {
        place = ::mmap(nullptr, sizeof(std::uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    }
    if (place == MAP_FAILED) {
        std::perror("acknowledged");
        std::_Exit(99);
    }
    return static_cast<std::uint64_t*>(place);
}

inline void acknowledge(std::uint64_t) {
    static std::uint64_t* const count = map_count();
    __atomic_fetch_add(count, 1, __ATOMIC_SEQ_CST);
}

}  // namespace durasim_test

#define durasim_op_end(number) durasim_test::acknowledge(number)

#endif
