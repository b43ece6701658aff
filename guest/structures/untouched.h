// Memory of the pool that was never written.
#ifndef DURASIM_STRUCTURES_UNTOUCHED_H
#define DURASIM_STRUCTURES_UNTOUCHED_H

#include <cstdint>

namespace durasim {

// Whether [begin, begin + size_bytes), which the allocator gave out for the first time, is as it was then: all zeros. What
// an unfinished transaction wrote there must be gone, too. Alignment and size as for words.
inline bool is_untouched(const void* begin, std::uint64_t size_bytes) {
    const auto* words = static_cast<const std::uint64_t*>(begin);
    for (std::uint64_t i = 0; i < size_bytes / 8; ++i) {
        if (words[i] != 0) return false;
    }
    return true;
}

}  // namespace durasim

#endif
