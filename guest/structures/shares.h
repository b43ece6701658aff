// The room that a part needs if chance decides what falls into it.
#ifndef DURASIM_STRUCTURES_SHARES_H
#define DURASIM_STRUCTURES_SHARES_H

#include <algorithm>
#include <cstdint>

namespace durasim {

// The smallest number whose square is at least `square`.
inline std::uint64_t root_above(std::uint64_t square) {
    std::uint64_t root = 1;
    while (root * root < square) root += root < 1024 ? 1 : root / 1024;
    return root;
}

// More of `items` random items than this do not fall into one of `parts` equal parts, but with a chance below 10^-15:
// eight standard deviations above the mean.
inline std::uint64_t share_max(std::uint64_t items, std::uint64_t parts) {
    const std::uint64_t mean = items / parts + 1;
    return parts == 1 ? items : std::min(items, mean + 8 * root_above(mean) + 16);
}

// The largest number of items after `ops` operations, when `remove_percent` in a hundred of them remove one (if there is
// one) and the others insert one. Again eight standard deviations.
inline std::uint64_t items_max(std::uint64_t populate, std::uint64_t ops, std::uint64_t remove_percent) {
    const std::uint64_t drift = remove_percent < 50 ? ops / 100 * (100 - 2 * remove_percent) + 100 : 0;
    return populate + std::min(ops, drift + 8 * root_above(ops) + 16);
}

}  // namespace durasim

#endif
