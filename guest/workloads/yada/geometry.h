// Points of the mesh and the predicates over them, in whole numbers and without rounding.
//
// The domain is a square with a corner at the origin. Coordinates inside are below 2^27, and a point that is only tested (the
// circumcentre of a flat triangle) is at most 2^27 away from a corner of its triangle. So products of two differences fit 64
// bits, and the rest 128.
#ifndef DURASIM_WORKLOADS_YADA_GEOMETRY_H
#define DURASIM_WORKLOADS_YADA_GEOMETRY_H

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "durasim/random.h"

namespace yada {

__extension__ using Wide = __int128;

// Points of the input lie on a grid, so that refinement, which cuts distances, never runs out of whole numbers.
inline constexpr std::int64_t grid = 1024, side = grid * 65537, test_distance_max = std::int64_t{1} << 27;
// Sines are kept as squares, in units of 2^-20.
inline constexpr unsigned sine_bits = 20;

struct Point {
    std::int64_t x, y;

    bool operator==(const Point&) const = default;
    std::uint64_t hash() const { return durasim::mix(static_cast<std::uint64_t>(x) << 32 ^ static_cast<std::uint64_t>(y)); }
    bool is_inside() const { return x > 0 && y > 0 && x < side && y < side; }
    bool is_in_square() const { return x >= 0 && y >= 0 && x <= side && y <= side; }
};

struct Corners {
    Point at[3];
};

constexpr unsigned next_of(unsigned edge) { return edge == 2 ? 0 : edge + 1; }
constexpr unsigned before(unsigned edge) { return edge == 0 ? 2 : edge - 1; }

// Twice the area of the triangle a, b, c; positive if they are in counterclockwise order.
constexpr std::int64_t cross(const Point& a, const Point& b, const Point& c) {
    return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

constexpr std::int64_t square_of_distance(const Point& a, const Point& b) {
    return (a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y);
}

// Whether p lies inside of the circle over the segment a, b: it encroaches on the segment.
constexpr bool is_encroached(const Point& a, const Point& b, const Point& p) {
    return (a.x - p.x) * (b.x - p.x) + (a.y - p.y) * (b.y - p.y) < 0;
}

// Whether p lies inside of the circle through the corners, which are in counterclockwise order.
constexpr bool is_in_circle(const Corners& corners, const Point& p) {
    std::int64_t x[3] = {}, y[3] = {};
    for (unsigned i = 0; i < 3; ++i) x[i] = corners.at[i].x - p.x, y[i] = corners.at[i].y - p.y;
    Wide sum = 0;
    for (unsigned i = 0; i < 3; ++i) {
        const unsigned j = next_of(i), k = before(i);
        sum += Wide{x[j] * y[k] - x[k] * y[j]} * (x[i] * x[i] + y[i] * y[i]);
    }
    return sum > 0;
}

// Whether an angle is below the one whose sine has this square. The smallest angle lies between the two longest edges.
constexpr bool is_skinny(const Corners& corners, std::uint64_t sine_squared) {
    std::int64_t squares[3] = {};
    for (unsigned i = 0; i < 3; ++i) squares[i] = square_of_distance(corners.at[i], corners.at[next_of(i)]);
    std::sort(squares, squares + 3);
    const Wide area = cross(corners.at[0], corners.at[1], corners.at[2]);
    return area * area << sine_bits < Wide{squares[1]} * squares[2] * static_cast<Wide>(sine_squared);
}

inline std::uint64_t sine_squared_of(std::uint64_t degrees) {
    const double sine = std::sin(static_cast<double>(degrees) * 3.14159265358979323846 / 180);
    return static_cast<std::uint64_t>(std::llround(sine * sine * (1 << sine_bits)));
}

constexpr Wide rounded_quotient(Wide dividend, Wide divisor) {
    const Wide twice = 2 * dividend + divisor;
    return twice / (2 * divisor) - (twice % (2 * divisor) < 0 ? 1 : 0);
}

// The centre of the circle through the corners, rounded. If it is far away, a point on the way there: that one, too, is inside
// of the circle, and outside of the domain.
inline Point circumcentre(const Corners& corners) {
    const Point& a = corners.at[0];
    const std::int64_t bx = corners.at[1].x - a.x, by = corners.at[1].y - a.y, cx = corners.at[2].x - a.x, cy = corners.at[2].y - a.y;
    const Wide b = bx * bx + by * by, c = cx * cx + cy * cy, divisor = Wide{2} * (bx * cy - by * cx);
    Wide x = rounded_quotient(cy * b - by * c, divisor), y = rounded_quotient(bx * c - cx * b, divisor);
    while (x > test_distance_max || x < -test_distance_max || y > test_distance_max || y < -test_distance_max) x /= 2, y /= 2;
    return {a.x + static_cast<std::int64_t>(x), a.y + static_cast<std::int64_t>(y)};
}

// A bijection of 32 bits.
constexpr std::uint32_t scramble(std::uint32_t z) {
    z = (z ^ (z >> 16)) * 0x7feb352du;
    z = (z ^ (z >> 15)) * 0x846ca68bu;
    return z ^ (z >> 16);
}

// Point `number` of the input: uniform on the grid inside of the domain. Different numbers have different points.
constexpr Point input_point(std::uint64_t seed, std::uint64_t number) {
    const std::uint64_t key = durasim::mix(seed + 1);
    const std::uint32_t place = scramble(scramble(static_cast<std::uint32_t>(number + key)) ^ static_cast<std::uint32_t>(key >> 32));
    return {grid * (1 + (place & 0xffff)), grid * (1 + (place >> 16))};
}

}  // namespace yada

#endif
