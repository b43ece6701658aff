// The points of kmeans, the places of centres after a number of steps, and the cluster of each point.
#ifndef DURASIM_WORKLOADS_KMEANS_POINTS_H
#define DURASIM_WORKLOADS_KMEANS_POINTS_H

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "durasim/random.h"

namespace durasim::kmeans {

inline constexpr std::uint64_t dimensions = 16;
inline constexpr std::uint64_t natural_clusters = 16;  // that points are made around
inline constexpr std::uint64_t packed_words = dimensions / 4;
inline constexpr std::uint64_t steps_max = 500;  // of a clustering that does not come to an end

// Coordinates are whole numbers below 2^16: so sums of them do not depend on the order.
using Place = std::array<std::uint16_t, dimensions>;
// As the pool has them, four in a word.
using Packed = std::array<std::uint64_t, packed_words>;

inline Packed packed(const Place& place) {
    Packed words{};
    for (std::uint64_t d = 0; d < dimensions; ++d) words[d / 4] |= std::uint64_t{place[d]} << d % 4 * 16;
    return words;
}

inline Place unpacked(const Packed& words) {
    Place place;
    for (std::uint64_t d = 0; d < dimensions; ++d) place[d] = static_cast<std::uint16_t>(words[d / 4] >> d % 4 * 16);
    return place;
}

// Points lie around natural centres: each coordinate is off by the sum of four uniform numbers, which is nearly normal.
inline std::vector<Place> make_points(std::uint64_t seed, std::uint64_t count) {
    constexpr std::uint64_t middle = 1 << 15, reach = 1 << 13;
    Random random(mix(seed) ^ 0x736E61656D6B);
    std::array<std::array<std::uint64_t, dimensions>, natural_clusters> centres;
    for (auto& centre : centres) {
        for (std::uint64_t& at : centre) at = middle / 2 + random.below(middle);
    }
    std::vector<Place> points(count);
    for (Place& point : points) {
        const auto& centre = centres[random.below(natural_clusters)];
        for (std::uint64_t d = 0; d < dimensions; ++d) {
            std::uint64_t at = centre[d] + middle;  // by so much too far, so that it stays above zero
            for (unsigned i = 0; i < 4; ++i) at += random.below(2 * reach + 1);
            at -= 4 * reach;
            point[d] = static_cast<std::uint16_t>(std::clamp<std::uint64_t>(at, middle, middle + 0xffff) - middle);
        }
    }
    return points;
}

// A clustering begins with random points as centres.
inline std::vector<Place> first_centres(std::uint64_t seed, std::uint64_t round, std::uint64_t clusters, const std::vector<Place>& points) {
    Random random(mix(~seed) + round * 0x632BE59BD9B4E019u);
    std::vector<Place> centres(clusters);
    for (Place& centre : centres) centre = points[random.below(points.size())];
    return centres;
}

// The centre next to a point, of equally near ones the first.
inline std::uint64_t nearest(const Place& point, const std::vector<Place>& centres) {
    std::uint64_t best = 0, least = ~std::uint64_t{0};
    for (std::uint64_t c = 0; c < centres.size(); ++c) {
        std::int64_t distance = 0;
        for (std::uint64_t d = 0; d < dimensions; ++d) {
            const std::int64_t off = std::int64_t{point[d]} - centres[c][d];
            distance += off * off;
        }
        if (static_cast<std::uint64_t>(distance) < least) {
            least = static_cast<std::uint64_t>(distance);
            best = c;
        }
    }
    return best;
}

// Whether a clustering is at its end, after a step in which this many points changed their clusters.
constexpr bool is_last_step(std::uint64_t steps, std::uint64_t changed, std::uint64_t points, std::uint64_t threshold_permille) {
    return changed * 1000 <= threshold_permille * points || steps >= steps_max;
}

// The clustering by itself, one step after the other.
class Model {
public:
    Model(std::uint64_t seed, std::uint64_t clusters, std::uint64_t threshold_permille, const std::vector<Place>& points)
        : seed_(seed), clusters_(clusters), threshold_permille_(threshold_permille), points_(points) {
        begin_round();
        assign();
    }

    void next_step() {
        before_ = members_;
        ++step_;
        if (is_last_step(step_ - first_, changed_, points_.size(), threshold_permille_)) {
            ++round_;
            first_ = step_;
            begin_round();
        } else {
            std::vector<std::array<std::uint64_t, dimensions>> sums(clusters_);
            std::vector<std::uint64_t> counts(clusters_);
            for (std::uint64_t i = 0; i < points_.size(); ++i) {
                ++counts[members_[i]];
                for (std::uint64_t d = 0; d < dimensions; ++d) sums[members_[i]][d] += points_[i][d];
            }
            for (std::uint64_t c = 0; c < clusters_; ++c) {
                for (std::uint64_t d = 0; counts[c] != 0 && d < dimensions; ++d) {
                    centres_[c][d] = static_cast<std::uint16_t>(sums[c][d] / counts[c]);
                }
            }
        }
        assign();
    }

    std::uint64_t step() const { return step_; }
    std::uint64_t first() const { return first_; }  // step of this clustering
    std::uint64_t round() const { return round_; }
    const std::vector<Place>& centres() const { return centres_; }
    // The cluster of a point in this step, that in the last one, and whether the two differ.
    std::uint64_t member(std::uint64_t point) const { return members_[point]; }
    std::uint64_t member_before(std::uint64_t point) const { return before_[point]; }
    bool changes(std::uint64_t point) const { return step_ == first_ || before_[point] != members_[point]; }

private:
    void begin_round() { centres_ = first_centres(seed_, round_, clusters_, points_); }

    void assign() {
        members_.resize(points_.size());
        changed_ = 0;
        for (std::uint64_t i = 0; i < points_.size(); ++i) {
            members_[i] = nearest(points_[i], centres_);
            changed_ += changes(i);
        }
    }

    std::uint64_t seed_, clusters_, threshold_permille_;
    const std::vector<Place>& points_;
    std::vector<Place> centres_;
    std::vector<std::uint64_t> members_, before_;
    std::uint64_t step_ = 0, first_ = 0, round_ = 0, changed_ = 0;
};

}  // namespace durasim::kmeans

#endif
