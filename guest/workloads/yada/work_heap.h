// The work heap: a binary heap of bad triangles that all threads share. Those that encroach on a segment come first.
//
// An entry is the address of the triangle, plus 1 if it does not come first. Each level is a block of its own, allocated when
// the heap first grows so high and kept.
#ifndef DURASIM_WORKLOADS_YADA_WORK_HEAP_H
#define DURASIM_WORKLOADS_YADA_WORK_HEAP_H

#include <bit>
#include <cstdint>

#include "workloads/yada/mesh.h"

namespace yada {

// Places are numbered from 1: the children of place i are 2 * i and 2 * i + 1.
constexpr std::uint64_t level_of(std::uint64_t place) { return static_cast<std::uint64_t>(std::bit_width(place)) - 1; }
constexpr std::uint64_t place_in_level(std::uint64_t place) { return place - (std::uint64_t{1} << level_of(place)); }

constexpr std::uint64_t rank_of(std::uint64_t entry) { return entry & 1; }

class WorkHeap {
public:
    explicit WorkHeap(Tx& t, MeshTransaction& mesh) : t_(t), mesh_(mesh), root_(mesh.root()), header_(root_->heap) {}

    void put(Element& bad) {
        const std::uint64_t entry = word_of(&bad) | ((mesh_.state_of(bad) & has_encroached) != 0 ? 0 : 1);
        std::uint64_t place = mesh_.get(header_, header_.size) + 1;
        mesh_.set(header_, header_.size, place);
        if (const std::uint64_t level = level_of(place); level == mesh_.get(header_, header_.levels)) {
            if (level == levels_max) durasim::fail(durasim::exit_runtime, "yada: the work heap has too many levels");
            t_.write(root_->level[level], static_cast<std::uint64_t*>(mesh_.allocate(level_bytes(level))));
            mesh_.set(header_, header_.levels, level + 1);
        }
        for (; place > 1; place /= 2) {
            const std::uint64_t parent = t_.read(at(place / 2));
            if (rank_of(parent) <= rank_of(entry)) break;
            t_.write(at(place), parent);
        }
        t_.write(at(place), entry);
    }

    // The first one, or null.
    Element* take() {
        const std::uint64_t size = mesh_.get(header_, header_.size);
        if (size == 0) return nullptr;
        const std::uint64_t first = t_.read(at(1)), last = t_.read(at(size)), left = size - 1;
        mesh_.set(header_, header_.size, left);
        std::uint64_t place = 1;
        while (2 * place <= left) {
            std::uint64_t child = 2 * place, smaller = t_.read(at(child));
            if (child < left) {
                const std::uint64_t other = t_.read(at(child + 1));
                if (rank_of(other) < rank_of(smaller)) smaller = other, ++child;
            }
            if (rank_of(last) <= rank_of(smaller)) break;
            t_.write(at(place), smaller);
            place = child;
        }
        if (left != 0) t_.write(at(place), last);
        return element_at(first);
    }

    // Puts all bad triangles of this thread there that are still in the mesh.
    void put_all() {
        std::uint64_t& list = mesh_.bad_list();
        while (list != 0) {
            Element& bad = *element_at(list);
            list = mesh_.get(bad, bad.link);
            if ((mesh_.state_of(bad) & is_garbage) != 0) {
                mesh_.give_back(bad);
            } else {
                put(bad);
            }
        }
    }

private:
    std::uint64_t& at(std::uint64_t place) { return t_.read(root_->level[level_of(place)])[place_in_level(place)]; }

    Tx& t_;
    MeshTransaction& mesh_;
    Root* root_;
    HeapHeader& header_;
};

}  // namespace yada

#endif
