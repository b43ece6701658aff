// The shadow of a pool (thesis, sections 2.4.1 and 3.4): the pool's own address shows a private copy of it, whose pages come
// into the DRAM when they are first written, and a second address shows persistent memory itself. Programs work on the copy;
// logs and their replay reach persistent memory at the second address.
#ifndef DURASIM_RUNTIMES_SHADOW_H
#define DURASIM_RUNTIMES_SHADOW_H

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "durasim/error.h"
#include "durasim/layout.h"

namespace durasim {

// Ends the program if the DRAM does not have the bytes that a shadow may come to take, and says what to do.
inline void refuse_shadow_without_dram(std::uint64_t bytes, const char* remedy) {
    struct sysinfo memory;
    if (::sysinfo(&memory) != 0) fail(exit_runtime, "durasim: cannot tell the size of the DRAM: %s", std::strerror(errno));
    const std::uint64_t dram_bytes = std::uint64_t{memory.totalram} * memory.mem_unit;
    if (bytes <= dram_bytes) return;
    fail(exit_usage, "durasim: a shadow of %llu bytes does not fit into the DRAM of %llu bytes; %s", static_cast<unsigned long long>(bytes),
         static_cast<unsigned long long>(dram_bytes), remedy);
}

// Puts the shadow in the place of the pool of `bytes` bytes in the file `path`, which is mapped there. Returns the second address.
inline std::uint64_t make_shadow(const char* path, std::uint64_t bytes) {
    const int file = ::open(path, O_RDWR);
    if (file < 0) fail(exit_usage, "durasim: cannot open the pool %s: %s", path, std::strerror(errno));
    void* const pool = reinterpret_cast<void*>(pool_address);
    if (::mmap(pool, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file, 0) != pool) {
        fail(exit_runtime, "durasim: cannot map a private copy of the pool %s: %s", path, std::strerror(errno));
    }
    void* const shared = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (shared == MAP_FAILED) fail(exit_runtime, "durasim: cannot map the pool %s beside its private copy: %s", path, std::strerror(errno));
    ::close(file);
    return reinterpret_cast<std::uint64_t>(shared);
}

// Has all pages of data copied into the DRAM at once, so that no transaction is the first to write one.
inline void touch_shadow(const PoolHeader& header) {
#if !defined(MADV_POPULATE_WRITE)
    constexpr int MADV_POPULATE_WRITE = 23;  // Linux 5.14
#endif
    if (::madvise(reinterpret_cast<void*>(pool_address), header.data_offset + header.data_bytes, MADV_POPULATE_WRITE) != 0) {
        fail(exit_runtime, "durasim: cannot copy all pages of the pool into the DRAM: %s", std::strerror(errno));
    }
}

}  // namespace durasim

#endif
