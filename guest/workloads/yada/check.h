// The right content of a pool of yada, and the part of it that is left if it is damaged.
#ifndef DURASIM_WORKLOADS_YADA_CHECK_H
#define DURASIM_WORKLOADS_YADA_CHECK_H

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "structures/blocks.h"
#include "workloads/yada/work_heap.h"

namespace yada {

using durasim::Audit;
using durasim::Long;
using durasim::Pool;

// The sizes that other parts of the pool can be looked for by.
inline bool is_possible(const Root* root, const Pool& pool) {
    return root->threads != 0 && root->threads <= durasim::threads_max && root->threads == pool.arenas() &&
           std::has_single_bit(root->buckets) && root->buckets <= pool.data_bytes() / sizeof(Bucket) && root->degrees != 0 &&
           root->degrees <= 20 && root->sine_squared == sine_squared_of(root->degrees) && root->is_whole <= 1 &&
           root->ready <= root->populate && root->ready <= pool.data_bytes() / sizeof(Element) &&
           root->heap.levels <= levels_max && root->heap.size < std::uint64_t{1} << root->heap.levels;
}

// Calls take(entry) for the entries of the work heap, in the order of their places.
template <class Take>
void visit_heap(const Root* root, Take&& take) {
    for (std::uint64_t place = 1; place <= root->heap.size; ++place) take(root->level[level_of(place)][place_in_level(place)]);
}

// The elements of a mesh. Follows an address only if `admit(address)` allows it, which is asked once for each.
class Survey {
public:
    template <class Admit>
    Survey(const Root* root, Admit&& admit) {
        for (std::uint64_t i = 0; i < root->buckets && whole_; ++i) {
            for (std::uint64_t at = root->bucket[i].first; at != 0 && whole_;) {
                whole_ = segments_.size() < segments_max && visit(at, segments_, admit);
                if (!whole_) break;
                buckets_.push_back(i);
                at = segments_.back()->link;
            }
        }
        for (std::uint64_t i = 0; i < segments_.size() && whole_; ++i) follow(segments_[i]->neighbour[0], admit);
        for (std::uint64_t i = 0; i < triangles_.size() && whole_; ++i) {
            for (const std::uint64_t neighbour : triangles_[i]->neighbour) {
                if (whole_ && !is_segment_word(neighbour)) follow(neighbour, admit);
            }
        }
    }

    // Whether everything could be followed.
    bool is_whole() const { return whole_; }
    const std::vector<Element*>& segments() const { return segments_; }
    const std::vector<std::uint64_t>& buckets() const { return buckets_; }  // of the segments
    const std::vector<Element*>& triangles() const { return triangles_; }
    bool has(std::uint64_t word) const { return seen_.contains(word & ~std::uint64_t{1}); }

private:
    static constexpr std::uint64_t segments_max = std::uint64_t{1} << 32;

    template <class Admit>
    bool visit(std::uint64_t address, std::vector<Element*>& list, Admit& admit) {
        if (seen_.contains(address) || !admit(element_at(address)) || is_segment_word(address)) return false;
        seen_.emplace(address, 0);
        list.push_back(element_at(address));
        return true;
    }
    template <class Admit>
    void follow(std::uint64_t address, Admit& admit) {
        if (!seen_.contains(address)) whole_ = visit(address, triangles_, admit);
    }

    bool whole_ = true;
    std::vector<Element*> segments_, triangles_;
    std::vector<std::uint64_t> buckets_;
    std::unordered_map<std::uint64_t, int> seen_;
};

class Check {
public:
    explicit Check(const Pool& pool) : pool_(pool), audit_(pool), root_(pool.root<Root>()) {}

    // A violation, or the number of finished operations.
    std::uint64_t run() {
        claim_root();
        const auto claim = [this](const Element* element) { return audit_.claim(element, sizeof(Element)); };
        const Survey survey(root_, claim);
        if (!survey.is_whole()) DURASIM_VIOLATION("an element of the mesh is not allocated, or in the set of segments twice");
        for (std::uint64_t i = 0; i < survey.segments().size(); ++i) check_segment(survey, *survey.segments()[i], survey.buckets()[i]);
        std::int64_t area = 0;
        for (const Element* triangle : survey.triangles()) {
            check_triangle(survey, *triangle);
            area += cross(triangle->corner[0], triangle->corner[1], triangle->corner[2]);
        }
        if (area != 2 * side * side) DURASIM_VIOLATION("the triangles do not have the area of the domain");
        check_vertices(survey);
        check_heap(survey);
        for (std::uint64_t i = 0; i < root_->threads; ++i) check_slot(survey, root_->slot[i]);
        for (const Element* triangle : survey.triangles()) {
            const bool is_listed = references_.contains(word_of(triangle));
            if (is_listed != ((triangle->state & is_referenced) != 0)) {
                DURASIM_VIOLATION("a triangle does not know whether somebody refers to it");
            }
            if (root_->ready == root_->populate && is_listed != ((triangle->state & is_bad) != 0)) {
                DURASIM_VIOLATION("a bad triangle is not listed, or a good one is");
            }
        }
        if (audit_.lines_leaked() != 0) DURASIM_VIOLATION("%llu lines are leaked", static_cast<Long>(audit_.lines_leaked()));
        return check_counts();
    }

private:
    void claim_root() {
        if (audit_.problem() != nullptr) DURASIM_VIOLATION("%s", audit_.problem());
        if (!audit_.claim(root_, sizeof(Root))) DURASIM_VIOLATION("the root object is not allocated");
        if (root_->kind != kind_of_root) DURASIM_VIOLATION("the root object is not a mesh");
        if (!is_possible(root_, pool_)) DURASIM_VIOLATION("the mesh has impossible sizes");
        bool claimed = audit_.claim(root_->bucket, root_->buckets * sizeof(Bucket)) &&
                       audit_.claim(root_->slot, root_->threads * sizeof(Slot));
        for (std::uint64_t level = 0; claimed && level < root_->heap.levels; ++level) {
            claimed = audit_.claim(root_->level[level], level_bytes(level));
        }
        if (!claimed) DURASIM_VIOLATION("what belongs to the root object is not allocated");
    }

    void check_segment(const Survey& survey, const Element& segment, std::uint64_t bucket) const {
        const Point &a = segment.corner[0], &b = segment.corner[1];
        const bool is_at_side = (a.x == b.x && (a.x == 0 || a.x == side)) || (a.y == b.y && (a.y == 0 || a.y == side));
        if (segment.state != is_segment || !a.is_in_square() || !b.is_in_square() || a == b || !is_at_side) {
            DURASIM_VIOLATION("a segment is not on the boundary");
        }
        if ((hash_of(a, b) & (root_->buckets - 1)) != bucket) DURASIM_VIOLATION("a segment is in a bucket that is not its own");
        const Element& triangle = *element_at(segment.neighbour[0]);
        for (unsigned edge = 0; edge < 3; ++edge) {
            if (survey.has(word_of(&triangle)) && triangle.neighbour[edge] == segment_word_of(&segment)) return;
        }
        DURASIM_VIOLATION("a segment is not the neighbour of its triangle");
    }

    // Whether the triangle is one, knows its neighbours as they know it, and has no corner of them inside of its circle.
    void check_triangle(const Survey& survey, const Element& triangle) const {
        const Corners corners{{triangle.corner[0], triangle.corner[1], triangle.corner[2]}};
        for (const Point& corner : corners.at) {
            if (!corner.is_in_square()) DURASIM_VIOLATION("a triangle has a corner outside of the domain");
        }
        if (cross(corners.at[0], corners.at[1], corners.at[2]) <= 0) DURASIM_VIOLATION("a triangle is flat or turned over");
        std::uint64_t state = is_triangle | (triangle.state & is_referenced) | (is_skinny(corners, root_->sine_squared) ? is_bad : 0);
        for (unsigned edge = 0; edge < 3; ++edge) {
            const Point &a = corners.at[edge], &b = corners.at[next_of(edge)];
            const std::uint64_t word = triangle.neighbour[edge];
            const Element& outer = *element_at(word);
            if (!survey.has(word)) DURASIM_VIOLATION("a triangle has a neighbour that is not in the mesh");
            if (is_segment_word(word)) {
                if (outer.state != is_segment || outer.neighbour[0] != word_of(&triangle) || outer.corner[0] != a || outer.corner[1] != b) {
                    DURASIM_VIOLATION("a triangle has a segment that is not at its edge");
                }
                if (is_encroached(a, b, corners.at[before(edge)])) state |= has_encroached | is_bad;
                continue;
            }
            unsigned back = 0;
            while (back < 3 && outer.neighbour[back] != word_of(&triangle)) ++back;
            if (back == 3) DURASIM_VIOLATION("a triangle is not the neighbour of its neighbour");
            if (outer.corner[back] != b || outer.corner[next_of(back)] != a) DURASIM_VIOLATION("neighbours do not share an edge");
            if (!outer.corner[before(back)].is_in_square() || is_in_circle(corners, outer.corner[before(back)])) {
                DURASIM_VIOLATION("a triangle has the corner of a neighbour inside of its circle");
            }
        }
        if (triangle.state != state) {
            DURASIM_VIOLATION("a triangle has the state %llu, but should have %llu", static_cast<Long>(triangle.state),
                              static_cast<Long>(state));
        }
    }

    // The vertices are those that threads say they inserted, and the corners of the domain.
    void check_vertices(const Survey& survey) const {
        std::vector<std::pair<std::int64_t, std::int64_t>> vertices;
        for (const Element* triangle : survey.triangles()) {
            for (const Point& corner : triangle->corner) vertices.emplace_back(corner.x, corner.y);
        }
        std::sort(vertices.begin(), vertices.end());
        vertices.erase(std::unique(vertices.begin(), vertices.end()), vertices.end());
        std::uint64_t inserted = 4, sum = 0, found = 0;
        for (const Point& corner : {Point{0, 0}, Point{side, 0}, Point{side, side}, Point{0, side}}) sum += corner.hash();
        for (std::uint64_t i = 0; i < root_->threads; ++i) inserted += root_->slot[i].inserted, sum += root_->slot[i].sum;
        for (const auto& [x, y] : vertices) found += Point{x, y}.hash();
        if (vertices.size() != inserted || found != sum) {
            DURASIM_VIOLATION("the mesh has %zu vertices, but they are not the %llu that were inserted", vertices.size(),
                              static_cast<Long>(inserted));
        }
        // Euler's formula: there is one part, and no hole in it.
        if (survey.triangles().size() + survey.segments().size() + 2 != 2 * inserted) {
            DURASIM_VIOLATION("%zu triangles and %zu segments cannot have %llu vertices", survey.triangles().size(),
                              survey.segments().size(), static_cast<Long>(inserted));
        }
        for (std::uint64_t i = 0; i < root_->ready; ++i) {
            const Point p = input_point(root_->seed, i);
            if (!std::binary_search(vertices.begin(), vertices.end(), std::pair{p.x, p.y})) {
                DURASIM_VIOLATION("point %llu of the input is not in the mesh", static_cast<Long>(i));
            }
        }
    }

    // A reference to a triangle, by the heap or a thread. Only one may refer to it.
    void take_reference(const Survey& survey, std::uint64_t address) {
        const Element* element = element_at(address);
        if (is_segment_word(address) || !references_.emplace(address, 0).second) DURASIM_VIOLATION("a triangle is listed twice");
        if (survey.has(address)) return;
        if (!audit_.claim(element, sizeof(Element))) DURASIM_VIOLATION("a listed triangle is not allocated");
        if ((element->state & ~has_encroached) != (is_triangle | is_garbage | is_referenced | is_bad)) {
            DURASIM_VIOLATION("a listed triangle is neither in the mesh nor garbage");
        }
    }

    void check_heap(const Survey& survey) {
        std::vector<std::uint64_t> ranks(1);
        visit_heap(root_, [&](std::uint64_t entry) {
            take_reference(survey, word_of(element_at(entry)));
            const bool comes_first = (element_at(entry)->state & has_encroached) != 0;
            if (rank_of(entry) != (comes_first ? 0 : 1)) DURASIM_VIOLATION("the work heap has an entry of a wrong rank");
            ranks.push_back(rank_of(entry));
            const std::uint64_t place = ranks.size() - 1;
            if (place > 1 && ranks[place / 2] > ranks[place]) DURASIM_VIOLATION("the work heap has an entry before its parent");
        });
    }

    void check_slot(const Survey& survey, const Slot& slot) {
        if (slot.held != 0) take_reference(survey, slot.held);
        for (std::uint64_t at = slot.bad; at != 0; at = element_at(at)->link) take_reference(survey, at);
        for (std::uint64_t at = slot.spare; at != 0; at = element_at(at)->link) {
            if (!audit_.claim(element_at(at), sizeof(Element)) || is_segment_word(at)) {
                DURASIM_VIOLATION("a spare block is in use or not allocated");
            }
            if (element_at(at)->state != 0) DURASIM_VIOLATION("a spare block has a state");
        }
    }

    // Each operation takes an element, refines the one it holds, puts bad ones into the heap, or is given a point of the
    // input.
    std::uint64_t check_counts() const {
        std::uint64_t finished = 0, explained = root_->given.points - root_->ready, inserted = 0;
        for (std::uint64_t i = 0; i < root_->threads; ++i) {
            const Slot& slot = root_->slot[i];
            const auto thread = static_cast<Long>(i);
            if (slot.finished >> durasim::operation_bits != 0) DURASIM_VIOLATION("thread %llu has an impossible count", thread);
            const std::uint64_t refined = slot.taken() - (slot.held != 0 ? 1 : 0);
            if (root_->is_whole != 0 && (slot.held != 0 || slot.bad != 0 || slot.puts() != 0)) {
                DURASIM_VIOLATION("a transaction of thread %llu is not whole", thread);
            }
            if (slot.held != 0 && slot.bad != 0) {
                DURASIM_VIOLATION("thread %llu took an element before it had put its bad ones away", thread);
            }
            finished += slot.finished;
            inserted += slot.inserted;
            explained += slot.taken() + (root_->is_whole != 0 ? 0 : refined + slot.puts());
        }
        if (finished != explained) {
            DURASIM_VIOLATION("the threads finished %llu operations, but the pool has the traces of %llu", static_cast<Long>(finished),
                              static_cast<Long>(explained));
        }
        if (finished != 0 && root_->ready != root_->populate) DURASIM_VIOLATION("there were operations before the input was there");
        if (finished == 0 && inserted != root_->ready) DURASIM_VIOLATION("vertices were inserted by no operation");
        return root_->ready + finished;
    }

    const Pool& pool_;
    Audit audit_;
    const Root* root_;
    std::unordered_map<std::uint64_t, int> references_;
};

template <class Object>
void dump_object(const Object& object, durasim::Dump& dump) {
    const auto* words = reinterpret_cast<const std::uint64_t*>(&object);
    dump.add(reinterpret_cast<std::uint64_t>(words), version_of(words, Object::words, [](const std::uint64_t& place) { return place; }));
}

inline void dump_mesh(const Pool& pool, durasim::Dump& dump) {
    const Root* root = pool.root<Root>();
    if (!durasim::can_be_block(pool, root, sizeof(Root))) return dump.note_damage();
    dump.add(durasim::root_object, root->kind);
    dump.add(durasim::populated_object, root->ready);
    bool is_whole = is_possible(root, pool) && durasim::can_be_block(pool, root->bucket, root->buckets * sizeof(Bucket)) &&
                    durasim::can_be_block(pool, root->slot, root->threads * sizeof(Slot));
    for (std::uint64_t level = 0; is_whole && level < root->heap.levels; ++level) {
        is_whole = durasim::can_be_block(pool, root->level[level], level_bytes(level));
    }
    if (!is_whole) return dump.note_damage();
    dump_object(root->heap, dump);
    dump_object(root->given, dump);
    for (std::uint64_t i = 0; i < root->buckets; ++i) dump_object(root->bucket[i], dump);
    const auto can_be = [&](const Element* element) { return durasim::can_be_block(pool, element, sizeof(Element)); };
    const Survey survey(root, can_be);
    for (const Element* segment : survey.segments()) dump_object(*segment, dump);
    for (const Element* triangle : survey.triangles()) dump_object(*triangle, dump);
    if (!survey.is_whole()) return dump.note_damage();
    // Elements that are only referenced. Each list ends where it meets itself or another one.
    std::unordered_map<std::uint64_t, int> seen;
    const auto add = [&](std::uint64_t address) {
        if (is_segment_word(address) || !can_be(element_at(address)) || !seen.emplace(address, 0).second) {
            dump.note_damage();
            return false;
        }
        if (!survey.has(address)) dump_object(*element_at(address), dump);
        return true;
    };
    visit_heap(root, [&](std::uint64_t entry) { add(word_of(element_at(entry))); });
    for (std::uint64_t i = 0; i < root->threads; ++i) {
        const Slot& slot = root->slot[i];
        dump_object(slot, dump);
        dump.add(durasim::progress_object(i), slot.finished);
        if (slot.held != 0) add(slot.held);
        for (std::uint64_t at = slot.bad; at != 0 && add(at);) at = element_at(at)->link;
    }
}

}  // namespace yada

#endif
