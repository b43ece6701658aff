// Questions of checks and dumps about memory in a pool that they do not trust.
#ifndef DURASIM_STRUCTURES_BLOCKS_H
#define DURASIM_STRUCTURES_BLOCKS_H

#include <cstdint>

#include "durasim/layout.h"
#include "durasim/pool.h"

namespace durasim {

// Whether a block could be at `place`, so that it can be read: it begins on a line and is in the data range.
inline bool can_be_block(const Pool& pool, const void* place, std::uint64_t size_bytes) {
    return reinterpret_cast<std::uint64_t>(place) % line_bytes == 0 && pool.holds(place, size_bytes);
}

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
