// Seeded numbers: the same on every machine.
#ifndef DURASIM_RANDOM_H
#define DURASIM_RANDOM_H

#include <cstdint>

namespace durasim {

// The output function of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). A bijection: different numbers stay different.
constexpr std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

// SplitMix64.
class Random {
public:
    explicit constexpr Random(std::uint64_t seed) : state_(seed) {}

    constexpr std::uint64_t next() { return mix(state_ += 0x9E3779B97F4A7C15u); }

    // A number below `bound` (which is at least 1). The bias is below bound / 2^64.
    constexpr std::uint64_t below(std::uint64_t bound) {
        __extension__ using Wide = unsigned __int128;
        return static_cast<std::uint64_t>((static_cast<Wide>(next()) * bound) >> 64);
    }

private:
    std::uint64_t state_;
};

}  // namespace durasim

#endif
