// Changes of the mesh within a transaction: a new vertex. All triangles that have it inside of their circles (its cavity)
// leave the mesh, and triangles around it take their place. That is the algorithm of Bowyer and Watson, and keeps the mesh a
// Delaunay triangulation.
//
// The new vertex follows Ruppert's algorithm ("A Delaunay Refinement Algorithm for Quality 2-Dimensional Mesh
// Generation", J. Algorithms 1995): the circumcentre of a bad triangle, unless that encroaches on a segment of the boundary,
// which is split at its middle instead.
//
// A block belongs to the thread that discards its element, wherever it came from: no two threads meet in the allocator.
#ifndef DURASIM_WORKLOADS_YADA_MESH_H
#define DURASIM_WORKLOADS_YADA_MESH_H

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "workloads/yada/elements.h"
#include "workloads/yada/recorder.h"

namespace yada {

using durasim::Tx;

struct CavityTriangle {
    Element* element;
    Corners corners;
};

// An edge of a cavity, which it has at its left, and what it meets there.
struct Border {
    Point a, b;
    std::uint64_t outer;  // the element outside, as a link
    unsigned outer_edge;  // of it, if that is a triangle
    Element* created;     // the new triangle at this edge
};

// The parts of a mesh, and what is bad: the same from its making on.
struct Shape {
    explicit Shape(Root* mesh) : Shape(mesh, mesh->bucket, mesh->buckets, mesh->slot, mesh->sine_squared) {}
    Shape(Root* mesh, Bucket* first_bucket, std::uint64_t bucket_count, Slot* first_slot, std::uint64_t sine)
        : root(mesh), bucket(first_bucket), buckets(bucket_count), slot(first_slot), sine_squared(sine) {}

    Root* root;
    Bucket* bucket;
    std::uint64_t buckets;
    Slot* slot;
    std::uint64_t sine_squared;
};

// The memory that a thread needs for a transaction, in ordinary memory. Only assigned to there, and never enlarged.
struct Scratch {
    explicit Scratch(std::uint64_t objects) : cavity(cavity_max), border(3 * cavity_max), seen(durasim::has_history ? objects : 0) {}

    static constexpr std::uint64_t cavity_max = 4096;
    std::vector<CavityTriangle> cavity;
    std::vector<Border> border;
    std::vector<Seen> seen;
};

class MeshTransaction {
public:
    // `lists_bad`: whether bad triangles are wanted, that is, the mesh is complete.
    MeshTransaction(Tx& t, const Shape& shape, std::uint64_t thread, Scratch& scratch, std::uint64_t stamp, bool lists_bad)
        : t_(t),
          shape_(shape),
          thread_(thread),
          slot_(shape.slot[thread]),
          scratch_(scratch),
          recorder_(t, scratch.seen, stamp),
          lists_bad_(lists_bad) {
        spare_ = get(slot_, slot_.spare);
        bad_ = get(slot_, slot_.bad);
    }

    // Writes what the transaction has kept to itself, and reports it.
    void finish() {
        if (t_.read(slot_.spare) != spare_) set(slot_, slot_.spare, spare_);
        if (t_.read(slot_.bad) != bad_) set(slot_, slot_.bad, bad_);
        if (inserted_ != 0) {
            set(slot_, slot_.inserted, t_.read(slot_.inserted) + inserted_);
            set(slot_, slot_.sum, t_.read(slot_.sum) + sum_);
        }
        recorder_.report();
    }

    // Vertices that the transaction has inserted, and the sum of their hashes.
    std::uint64_t inserted() const { return inserted_; }
    std::uint64_t sum() const { return sum_; }

    template <class Object, class Field>
    Field get(Object& object, const Field& field) {
        recorder_.see(object);
        return t_.read(field);
    }
    template <class Object, class Field>
    void set(Object& object, Field& field, std::type_identity_t<Field> value) {
        recorder_.change(object);
        t_.write(field, value);
    }

    std::uint64_t state_of(Element& element) { return get(element, element.state); }
    Slot& slot() { return slot_; }
    Root* root() { return shape_.root; }
    std::uint64_t& bad_list() { return bad_; }
    void* allocate(std::uint64_t bytes) { return t_.allocate(bytes, thread_); }

    // The square, as two triangles. Corners are counted as vertices of no thread.
    void make_square() {
        const Point corner[4] = {{0, 0}, {side, 0}, {side, side}, {0, side}};
        Element* lower = take_block();
        Element* upper = take_block();
        Element* segment[4];
        for (unsigned i = 0; i < 4; ++i) {
            segment[i] = make_segment(corner[i], corner[(i + 1) % 4]);
            set(*segment[i], segment[i]->neighbour[0], word_of(i < 2 ? lower : upper));
        }
        write_triangle(*lower, {{corner[0], corner[1], corner[2]}},
                       {segment_word_of(segment[0]), segment_word_of(segment[1]), word_of(upper)});
        write_triangle(*upper, {{corner[0], corner[2], corner[3]}},
                       {word_of(lower), segment_word_of(segment[2]), segment_word_of(segment[3])});
    }

    // Refines a bad triangle that this thread holds: afterwards it is no longer in the mesh, and its block is spare.
    void refine(Element& bad) {
        while ((state_of(bad) & is_garbage) == 0) {
            Element* blocking = encroached_segment_of(bad);
            if (blocking == nullptr) {
                const Point centre = circumcentre(corners_of(bad));
                blocking = grow(bad, centre, true);
                if (blocking == nullptr) {
                    retriangulate(centre, nullptr);
                    continue;
                }
            }
            split(*blocking);
        }
        give_back(bad);
    }

    // Inserts a point of the input. Not if it comes so close to a vertex that whole numbers might run out; whether it did.
    bool insert_input(const Point& p) {
        Element* around = locate(p);
        const Corners corners = corners_of(*around);
        for (const Point& corner : corners.at) {
            if (square_of_distance(corner, p) < grid * grid / 16) return false;
        }
        grow(*around, p, false);
        retriangulate(p, nullptr);
        return true;
    }

    // The block becomes spare.
    void give_back(Element& element) {
        set(element, element.state, 0);
        set(element, element.link, spare_);
        recorder_.set_gone(element, true);
        spare_ = word_of(&element);
    }

private:
    Element* take_block() {
        Element* block = element_at(spare_);
        if (block == nullptr) {
            block = static_cast<Element*>(t_.allocate(sizeof(Element), thread_));
        } else {
            spare_ = get(*block, block->link);
        }
        recorder_.set_gone(*block, false);
        return block;
    }

    Corners corners_of(Element& element) {
        Corners corners;
        for (unsigned i = 0; i < 3; ++i) corners.at[i] = point_of(element, i);
        return corners;
    }
    Point point_of(Element& element, unsigned corner) {
        return {get(element, element.corner[corner].x), get(element, element.corner[corner].y)};
    }
    void write_point(Element& element, unsigned corner, const Point& p) {
        set(element, element.corner[corner].x, p.x);
        set(element, element.corner[corner].y, p.y);
    }

    // Whether a corner encroaches on a segment is known when a triangle is made: its segments change with it only.
    Element* encroached_segment_of(Element& triangle) {
        if ((state_of(triangle) & has_encroached) == 0) return nullptr;
        const Corners corners = corners_of(triangle);
        for (unsigned edge = 0; edge < 3; ++edge) {
            const std::uint64_t outer = get(triangle, triangle.neighbour[edge]);
            if (is_segment_word(outer) && is_encroached(corners.at[edge], corners.at[next_of(edge)], corners.at[before(edge)])) {
                return element_at(outer);
            }
        }
        return nullptr;
    }

    bool is_in_cavity(const Element* element) const {
        for (std::uint64_t i = 0; i < cavity_count_; ++i) {
            if (scratch_.cavity[i].element == element) return true;
        }
        return false;
    }

    void add_to_cavity(Element& element, const Corners& corners) {
        if (cavity_count_ == Scratch::cavity_max) durasim::fail(durasim::exit_runtime, "yada: a cavity has too many triangles");
        scratch_.cavity[cavity_count_++] = {&element, corners};
    }

    // Collects the cavity of `p`, which lies inside of the circle of `start`, and its border. If segments matter: returns the
    // one that `p` encroaches on, or that keeps `p` outside of the domain; then the cavity is of no use.
    Element* grow(Element& start, const Point& p, bool segments_matter) {
        cavity_count_ = border_count_ = 0;
        add_to_cavity(start, corners_of(start));
        Element* beyond = nullptr;
        for (std::uint64_t i = 0; i < cavity_count_; ++i) {
            for (unsigned edge = 0; edge < 3; ++edge) {
                CavityTriangle& inner = scratch_.cavity[i];
                const std::uint64_t outer = get(*inner.element, inner.element->neighbour[edge]);
                Border border{inner.corners.at[edge], inner.corners.at[next_of(edge)], outer, 0, nullptr};
                if (!is_segment_word(outer)) {
                    Element& triangle = *element_at(outer);
                    if (is_in_cavity(&triangle)) continue;
                    const Corners corners = corners_of(triangle);
                    if (is_in_circle(corners, p)) {
                        add_to_cavity(triangle, corners);
                        continue;
                    }
                    while (border.outer_edge < 2 && corners.at[border.outer_edge] != border.b) ++border.outer_edge;
                } else if (segments_matter) {
                    if (is_encroached(border.a, border.b, p)) return element_at(outer);
                    if (beyond == nullptr && cross(border.a, border.b, p) <= 0) beyond = element_at(outer);
                }
                scratch_.border[border_count_++] = border;
            }
        }
        return beyond;
    }

    // Gives up the cavity for triangles around `p`, which lies on `segment` if there is one.
    void retriangulate(const Point& p, Element* segment) {
        for (std::uint64_t i = 0; i < cavity_count_; ++i) discard(*scratch_.cavity[i].element);
        Element* half[2] = {};
        if (segment != nullptr) {
            const Point a = point_of(*segment, 0), b = point_of(*segment, 1);
            take_out(*segment, a, b);
            give_back(*segment);
            half[0] = make_segment(a, p);
            half[1] = make_segment(p, b);
            drop_border(a);
        }
        for (std::uint64_t i = 0; i < border_count_; ++i) scratch_.border[i].created = take_block();
        for (std::uint64_t i = 0; i < border_count_; ++i) {
            const Border& border = scratch_.border[i];
            Element* created = border.created;
            std::uint64_t after = segment_word_of(half[0]), ahead = segment_word_of(half[1]);
            for (std::uint64_t j = 0; j < border_count_; ++j) {
                if (scratch_.border[j].a == border.b) after = word_of(scratch_.border[j].created);
                if (scratch_.border[j].b == border.a) ahead = word_of(scratch_.border[j].created);
            }
            write_triangle(*created, {{border.a, border.b, p}}, {border.outer, after, ahead});
            Element& outer = *element_at(border.outer);
            set(outer, outer.neighbour[is_segment_word(border.outer) ? 0 : border.outer_edge], word_of(created));
            if (is_segment_word(after)) set(*half[0], half[0]->neighbour[0], word_of(created));
            if (is_segment_word(ahead)) set(*half[1], half[1]->neighbour[0], word_of(created));
        }
        ++inserted_;
        sum_ += p.hash();
    }

    // The edge that begins at `a` is the segment that is split.
    void drop_border(const Point& a) {
        std::uint64_t at = 0;
        while (scratch_.border[at].a != a) ++at;
        scratch_.border[at] = scratch_.border[--border_count_];
    }

    void split(Element& segment) {
        const Point a = point_of(segment, 0), b = point_of(segment, 1), middle = {(a.x + b.x) / 2, (a.y + b.y) / 2};
        if (middle == a || middle == b) durasim::fail(durasim::exit_runtime, "yada: the coordinates are too coarse for this input");
        grow(*element_at(get(segment, segment.neighbour[0])), middle, false);
        retriangulate(middle, &segment);
    }

    void write_triangle(Element& triangle, const Corners& corners, const std::uint64_t (&neighbours)[3]) {
        std::uint64_t state = is_triangle;
        for (unsigned edge = 0; edge < 3; ++edge) {
            write_point(triangle, edge, corners.at[edge]);
            set(triangle, triangle.neighbour[edge], neighbours[edge]);
            if (is_segment_word(neighbours[edge]) && is_encroached(corners.at[edge], corners.at[next_of(edge)], corners.at[before(edge)])) {
                state |= has_encroached | is_bad;
            }
        }
        if (is_skinny(corners, shape_.sine_squared)) state |= is_bad;
        std::uint64_t link = 0;
        if ((state & is_bad) != 0 && lists_bad_) {
            state |= is_referenced;
            link = bad_;
            bad_ = word_of(&triangle);
        }
        set(triangle, triangle.state, state);
        set(triangle, triangle.link, link);
    }

    // A triangle leaves the mesh. Triangles that refer to it have to find out.
    void discard(Element& triangle) {
        const std::uint64_t state = state_of(triangle);
        if ((state & is_referenced) != 0) {
            set(triangle, triangle.state, state | is_garbage);
        } else {
            give_back(triangle);
        }
    }

    Bucket& bucket_of(const Point& a, const Point& b) { return shape_.bucket[hash_of(a, b) & (shape_.buckets - 1)]; }

    // A segment without a triangle yet, in the set.
    Element* make_segment(const Point& a, const Point& b) {
        Element* segment = take_block();
        Bucket& bucket = bucket_of(a, b);
        write_point(*segment, 0, a);
        write_point(*segment, 1, b);
        set(*segment, segment->state, is_segment);
        set(*segment, segment->link, get(bucket, bucket.first));
        set(bucket, bucket.first, word_of(segment));
        return segment;
    }

    void take_out(Element& segment, const Point& a, const Point& b) {
        Bucket& bucket = bucket_of(a, b);
        std::uint64_t at = get(bucket, bucket.first);
        if (at == word_of(&segment)) return set(bucket, bucket.first, get(segment, segment.link));
        while (at != 0) {
            Element& element = *element_at(at);
            at = get(element, element.link);
            if (at == word_of(&segment)) return set(element, element.link, get(segment, segment.link));
        }
        DURASIM_VIOLATION("a segment is not in the set of segments");
    }

    // The triangle that has `p` inside or on an edge: from some segment on, across edges that have `p` on the other side. In a
    // Delaunay triangulation such a walk ends.
    Element* locate(const Point& p) {
        std::uint64_t number = p.hash() & (shape_.buckets - 1), found = 0;
        while ((found = get(shape_.bucket[number], shape_.bucket[number].first)) == 0) number = (number + 1) & (shape_.buckets - 1);
        Element* at = element_at(get(*element_at(found), element_at(found)->neighbour[0]));
        for (;;) {
            const Corners corners = corners_of(*at);
            unsigned edge = 0;
            while (edge < 3 && cross(corners.at[edge], corners.at[next_of(edge)], p) >= 0) ++edge;
            if (edge == 3) return at;
            at = element_at(get(*at, at->neighbour[edge]));
        }
    }

    Tx& t_;
    const Shape& shape_;
    std::uint64_t thread_;
    Slot& slot_;
    Scratch& scratch_;
    Recorder recorder_;
    bool lists_bad_;
    std::uint64_t spare_, bad_;
    std::uint64_t cavity_count_ = 0, border_count_ = 0;
    std::uint64_t inserted_ = 0, sum_ = 0;
};

}  // namespace yada

#endif
