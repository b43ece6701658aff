// The pool of yada: triangles and segments of the boundary, the set of these segments, the work heap, and what each
// thread has at hand.
//
// All fields are words, and addresses are kept as such, so that an object can be looked at as an array of words. The first one
// is a stamp that each change renews; builds with a history have it, others leave it 0.
#ifndef DURASIM_WORKLOADS_YADA_ELEMENTS_H
#define DURASIM_WORKLOADS_YADA_ELEMENTS_H

#include <cstdint>

#include "workloads/harness.h"
#include "workloads/yada/geometry.h"

namespace yada {

constexpr std::uint64_t kind_of_root = 0x61646179;  // "yada"

// The state of an element, as a sum. 0: its block is spare.
constexpr std::uint64_t is_triangle = 1, is_segment = 2;
constexpr std::uint64_t is_garbage = 4;     // no longer in the mesh, but still referenced
constexpr std::uint64_t is_referenced = 8;  // by the work heap or by a thread
constexpr std::uint64_t is_bad = 16;        // to be refined
constexpr std::uint64_t has_encroached = 32;  // a corner encroaches on the segment at the opposite edge

// A triangle with its corners in counterclockwise order, or a segment between its first two corners with its triangle at the
// left. Edge i leads from corner i to the next one.
struct alignas(64) Element {
    std::uint64_t stamp;
    std::uint64_t state;
    std::uint64_t link;          // the next element of a thread's list or of a bucket
    std::uint64_t neighbour[3];  // at each edge; a segment has its triangle as the first
    Point corner[3];

    static constexpr std::uint64_t words = 12;
};

// Links say whether they lead to a segment.
inline std::uint64_t word_of(const Element* element) { return reinterpret_cast<std::uint64_t>(element); }
inline std::uint64_t segment_word_of(const Element* element) { return word_of(element) | 1; }
constexpr bool is_segment_word(std::uint64_t word) { return (word & 1) != 0; }
inline Element* element_at(std::uint64_t word) { return reinterpret_cast<Element*>(word & ~std::uint64_t{1}); }

// A bucket of the set of segments.
struct Bucket {
    std::uint64_t stamp;
    std::uint64_t first;

    static constexpr std::uint64_t words = 2;
};

inline std::uint64_t hash_of(const Point& a, const Point& b) { return durasim::mix(a.hash() + 3 * b.hash()); }

// Data that a thread alone changes. Its transactions hand over to each other by it.
struct alignas(64) Slot {
    std::uint64_t stamp;
    std::uint64_t finished;  // operations
    std::uint64_t held;      // taken from the work heap and not refined yet
    std::uint64_t bad;       // list of bad triangles that are to be put into the work heap
    std::uint64_t spare;     // list of blocks
    std::uint64_t inserted;  // vertices, populating included
    std::uint64_t sum;       // of the hashes of these vertices
    std::uint64_t counts;    // elements taken from the work heap, and how often bad ones were put there, in 32 bits each

    static constexpr std::uint64_t words = 8;
    std::uint64_t taken() const { return counts & 0xffffffff; }
    std::uint64_t puts() const { return counts >> 32; }
};
constexpr std::uint64_t one_taken = 1, one_put = std::uint64_t{1} << 32;

struct alignas(64) HeapHeader {
    std::uint64_t stamp;
    std::uint64_t size;
    std::uint64_t levels;  // that have been allocated

    static constexpr std::uint64_t words = 3;
};

// The number of points of the input that have been given to the mesh.
struct alignas(64) Given {
    std::uint64_t stamp;
    std::uint64_t points;

    static constexpr std::uint64_t words = 2;
};

constexpr std::uint64_t levels_max = 40;
constexpr std::uint64_t level_bytes(std::uint64_t level) { return std::uint64_t{8} << level; }

struct alignas(64) Root {
    std::uint64_t kind;
    std::uint64_t seed;
    std::uint64_t populate;
    std::uint64_t threads;
    std::uint64_t degrees;  // the smallest angle allowed
    std::uint64_t sine_squared;
    std::uint64_t is_whole;  // whether a refinement is one transaction
    std::uint64_t buckets;   // a power of two
    alignas(64) Bucket* bucket;
    Slot* slot;
    std::uint64_t ready;  // points that populating has inserted
    HeapHeader heap;
    std::uint64_t* level[levels_max];  // of the heap; level n begins with place 2^n
    Given given;
};

}  // namespace yada

#endif
