// Memory of zeros straight from the system, which costs nothing until it is used: tables as large as a heap may become.
#ifndef DURASIM_OBJECTS_PAGES_H
#define DURASIM_OBJECTS_PAGES_H

#include <sys/mman.h>

#include <cstdint>
#include <type_traits>

#include "durasim/error.h"

namespace durasim::objects {

// Room for `count` values whose bytes are all 0, for the rest of the program. The error names `what` it is for.
template <class T>
T* zero_pages(std::uint64_t count, const char* what) {
    static_assert(std::is_trivially_destructible_v<T> && std::is_trivially_copyable_v<T>);
    const std::uint64_t size_bytes = count * sizeof(T);
    void* const pages = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) {
        fail(exit_runtime, "durasim: there is no memory for %s of %llu bytes", what, static_cast<unsigned long long>(size_bytes));
    }
    return static_cast<T*>(pages);
}

}  // namespace durasim::objects

#endif
