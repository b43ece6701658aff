// The pool of kmeans, and the versions of it that its transactions report.
#ifndef DURASIM_WORKLOADS_KMEANS_CLUSTERING_H
#define DURASIM_WORKLOADS_KMEANS_CLUSTERING_H

#include <cstdint>

#include "durasim/history.h"
#include "durasim/layout.h"
#include "workloads/kmeans_points.h"

namespace durasim::kmeans {

inline constexpr std::uint64_t chunk = 3;                      // points that a thread claims at a time
inline constexpr std::uint64_t points_max = 1 << 16;           // sums of more would not fit
inline constexpr std::uint64_t clusters_max = 1024;

struct alignas(64) Point {
    std::uint64_t coordinate[packed_words];
    std::uint64_t member;  // in which step, from 1, it came to which cluster; see member_of
};
static_assert(sizeof(Point) == line_bytes);

constexpr std::uint64_t member_of(std::uint64_t step, std::uint64_t cluster) { return (step + 1) << 32 | cluster; }

// The sums of a step for a cluster.
struct alignas(64) Sum {
    std::uint32_t step;
    std::uint32_t count;
    std::uint32_t sum[dimensions];
};
static_assert(sizeof(Sum) == 2 * line_bytes);

struct alignas(64) Queue {
    std::uint64_t step;
    std::uint64_t next;   // point that is not claimed
    std::uint64_t first;  // step of this clustering
    std::uint64_t round;  // clusterings before this one
};

// The results that threads have handed in.
struct alignas(64) Total {
    std::uint64_t points;
    std::uint64_t changed;
};

// The finished work and the present work of a thread.
struct alignas(64) Line {
    std::uint64_t added, claimed, handed, closed;  // transactions; `handed` counts those that take over, too
    std::uint32_t next, end;                       // points that are claimed and not added
    std::uint32_t points, changed;                 // claimed since the thread handed in, and how many of them changed their clusters

    std::uint64_t finished() const { return added + claimed + handed + closed; }
};

struct alignas(64) Clustering {
    std::uint64_t kind;
    std::uint64_t seed;
    std::uint64_t points;
    std::uint64_t ready;  // points that populating has made
    std::uint64_t threads;
    std::uint64_t clusters;
    std::uint64_t threshold_permille;
    Point* point;
    std::uint64_t* centre;  // packed, one after the other
    Sum* sum;               // of each cluster
    Queue* queue;
    Total* total;
    Line* line;  // of each thread
};

// Objects are the points, by their numbers, the sums, all centres together, the queue and what was handed in.
constexpr std::uint64_t sum_object(std::uint64_t cluster) { return std::uint64_t{1} << 62 | cluster; }
inline constexpr std::uint64_t centres_object = std::uint64_t{1} << 63;
inline constexpr std::uint64_t queue_object = centres_object + 1;
inline constexpr std::uint64_t total_object = centres_object + 2;

template <class Read>
std::uint64_t version_of(const Point& point, Read&& read) {
    Version version;
    for (const std::uint64_t& word : point.coordinate) version.take(read(word));
    version.take(read(point.member));
    return version.value();
}

template <class Read>
std::uint64_t version_of(const Sum& sum, Read&& read) {
    Version version;
    const std::uint64_t step = read(sum.step), count = read(sum.count);
    version.take(step);
    version.take(count);
    for (const std::uint32_t& word : sum.sum) version.take(read(word));
    return step == 0 && count == 0 ? 0 : version.value();
}

template <class Read>
std::uint64_t version_of(const Queue& queue, Read&& read) {
    Version version;
    const std::uint64_t step = read(queue.step), next = read(queue.next);
    for (const std::uint64_t word : {step, next, read(queue.first), read(queue.round)}) version.take(word);
    return step == 0 && next == 0 ? 0 : version.value();
}

template <class Read>
std::uint64_t version_of(const Total& total, std::uint64_t step, Read&& read) {
    Version version;
    const std::uint64_t points = read(total.points);
    for (const std::uint64_t word : {step, points, read(total.changed)}) version.take(word);
    return step == 0 && points == 0 ? 0 : version.value();
}

template <class Read>
std::uint64_t version_of_centres(const std::uint64_t* centre, std::uint64_t clusters, std::uint64_t step, Read&& read) {
    Version version;
    version.take(step);
    for (std::uint64_t i = 0; i < clusters * packed_words; ++i) version.take(read(centre[i]));
    return version.value();
}

template <class Read>
std::uint64_t version_of(const Line& line, Read&& read) {
    Version version;
    std::uint64_t finished = 0;
    for (const std::uint64_t* word : {&line.added, &line.claimed, &line.handed, &line.closed}) {
        version.take(read(*word));
        finished += read(*word);
    }
    for (const std::uint32_t* word : {&line.next, &line.end, &line.points, &line.changed}) version.take(read(*word));
    return finished == 0 ? 0 : version.value();
}

}  // namespace durasim::kmeans

#endif
