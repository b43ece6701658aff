// Numbers below n; the r-th is chosen with a probability proportional to 1 / (r + 1)^0.99, by the method of Gray,
// Sundaresan, Englert, Baclawski and Weinberger, "Quickly Generating Billion-Record Synthetic Databases" (SIGMOD 1994): the
// first two exactly, the others by a continuous distribution that comes close.
//
// The numbers are equal on every machine: logarithm and exponential are made here, of operations that IEEE 754 rounds
// in one way only. Where a product is added to something, fma says so, which leaves compilers nothing to contract.
#ifndef DURASIM_WORKLOADS_ZIPFIAN_H
#define DURASIM_WORKLOADS_ZIPFIAN_H

#include <bit>
#include <cstdint>
#include <numeric>

namespace durasim {

namespace detail {

inline constexpr double ln_2 = 0.69314718055994530942;
inline constexpr double log2_e = 1.44269504088896340736;

// The natural logarithm of a positive number that is not subnormal.
inline double log_of(double x) {
    constexpr std::uint64_t one = std::uint64_t{1023} << 52, fraction = (std::uint64_t{1} << 52) - 1;
    const auto bits = std::bit_cast<std::uint64_t>(x);
    auto exponent = static_cast<double>(static_cast<std::int64_t>(bits >> 52) - 1023);
    auto m = std::bit_cast<double>((bits & fraction) | one);
    if (m > 1.41421356237309504880) {
        m *= 0.5;
        exponent += 1;
    }
    // log m = 2 artanh s = 2 (s + s^3 / 3 + s^5 / 5 ...), and s^2 is below 0.03.
    const double s = (m - 1) / (m + 1), z = s * s;
    double sum = 0;
    for (int k = 23; k >= 1; k -= 2) sum = __builtin_fma(sum, z, 1.0 / k);
    return __builtin_fma(exponent, ln_2, 2 * s * sum);
}

// e^x where that is neither subnormal nor infinite.
inline double exp_of(double x) {
    const double wanted = __builtin_fma(x, log2_e, 0.5);
    auto k = static_cast<std::int64_t>(wanted);
    if (wanted < static_cast<double>(k)) --k;
    const double r = __builtin_fma(-static_cast<double>(k), ln_2, x);  // at most 0.35
    double sum = 1;
    for (int i = 14; i >= 1; --i) sum = __builtin_fma(sum * r, 1.0 / i, 1);
    return sum * std::bit_cast<double>(static_cast<std::uint64_t>(k + 1023) << 52);
}

inline double power_of(double x, double exponent) { return exp_of(exponent * log_of(x)); }

}  // namespace detail

class Zipfian {
public:
    static constexpr double exponent = 0.99;

    Zipfian() = default;

    // Takes a number of steps in proportion to `n`, which is at least 1.
    explicit Zipfian(std::uint64_t n) : n_(n), as_double_(static_cast<double>(n)) {
        for (std::uint64_t i = 1; i <= n; ++i) zeta_ += detail::power_of(static_cast<double>(i), -exponent);
        if (n > 2) {
            const double first_two = 1 + detail::power_of(2, -exponent);
            eta_ = (1 - detail::power_of(2 / as_double_, 1 - exponent)) / (1 - first_two / zeta_);
        }
        second_ = 1 + detail::power_of(2, -exponent);
    }

    // The number that belongs to 64 random bits.
    std::uint64_t rank(std::uint64_t random) const {
        const double u = static_cast<double>(random >> 11) * 0x1p-53;
        const double scaled = u * zeta_;
        if (scaled < 1) return 0;
        if (scaled < second_ || n_ < 3) return n_ == 1 ? 0 : 1;
        const double part = detail::power_of(__builtin_fma(eta_, u, 1 - eta_), 1 / (1 - exponent));
        const auto at = static_cast<std::uint64_t>(as_double_ * part);
        return at < n_ ? at : n_ - 1;
    }

private:
    std::uint64_t n_ = 1;
    double as_double_ = 1;
    double zeta_ = 0;    // the sum of all 1 / i^0.99
    double second_ = 0;  // of the first two
    double eta_ = 0;
};

// An order of the numbers below n in which neighbours are far from each other.
class Scrambled {
public:
    Scrambled() = default;
    explicit Scrambled(std::uint64_t n) : n_(n), step_(n * 5 / 8 + 1) {
        while (std::gcd(step_, n_) != 1) ++step_;
    }

    std::uint64_t operator[](std::uint64_t number) const {
        return (number * step_ + n_ / 3) % n_;
    }

private:
    std::uint64_t n_ = 1;
    std::uint64_t step_ = 1;
};

}  // namespace durasim

#endif
