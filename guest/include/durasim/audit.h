// The account of a pool's memory that a check keeps: every line belongs to one block that is reachable or free.
#ifndef DURASIM_AUDIT_H
#define DURASIM_AUDIT_H

#include <cstdint>
#include <vector>

#include "durasim/layout.h"
#include "durasim/pool.h"

namespace durasim {

// Reads the pool only, and trusts nothing it reads: addresses are tested before they are followed.
class Audit {
public:
    // Takes in the allocator's own data. Look at problem() afterwards.
    explicit Audit(const Pool& pool) : pool_(pool), arena_bytes_(pool.arena_bytes()) {
        for (std::uint64_t a = 0; a < pool.arenas() && problem_ == nullptr; ++a) take_in(a);
    }

    // Says that the object at `block`, allocated with `size_bytes`, is reachable. False if it is not memory that the
    // allocator gave out, or is free or reachable a second time; then it must not be followed.
    bool claim(const void* block, std::uint64_t size_bytes) {
        const std::uint64_t arena = arena_of(block);
        return arena < taken_.size() && claim_in(arena, block, size_bytes);
    }

    // Lines in use that are neither reachable nor free, once everything is claimed: leaked.
    std::uint64_t lines_leaked() const { return lines_left_; }

    // The error in the allocator itself, null if there is none.
    const char* problem() const { return problem_; }

private:
    void take_in(std::uint64_t number) {
        const ArenaHeader* arena = pool_.arena(number);
        const std::uint64_t used_bytes = arena->used_bytes == 0 ? sizeof(ArenaHeader) : arena->used_bytes;
        if (used_bytes > arena_bytes_ || used_bytes < sizeof(ArenaHeader) || used_bytes % line_bytes != 0) {
            problem_ = "the allocator says that an impossible number of bytes is in use";
            return;
        }
        taken_.emplace_back(used_bytes / line_bytes);
        lines_left_ += used_bytes / line_bytes;
        claim_in(number, arena, sizeof(ArenaHeader));
        for (unsigned c = 0; c < block_classes; ++c) {
            std::uint64_t block = arena->free_blocks[c];
            while (block != 0) {
                const auto* place = reinterpret_cast<const void*>(block);
                if (arena_of(place) != number || !claim_in(number, place, line_bytes << c)) {
                    problem_ = "a free list of the allocator holds a block twice or one that does not exist";
                    return;
                }
                block = *reinterpret_cast<const std::uint64_t*>(block);
            }
        }
        for (std::uint64_t block = arena->free_large; block != 0;) {
            const auto* large = reinterpret_cast<const FreeLargeBlock*>(block);
            if (block % line_bytes != 0 || arena_of(large) != number || !pool_.holds(large, sizeof *large) ||
                large->size_bytes <= small_block_bytes_max || large->size_bytes % line_bytes != 0 || !claim_in(number, large, large->size_bytes)) {
                problem_ = "the free list of large blocks holds a block twice or one that does not exist";
                return;
            }
            block = large->next;
        }
    }

    std::uint64_t arena_of(const void* block) const {
        return (reinterpret_cast<std::uint64_t>(block) - reinterpret_cast<std::uint64_t>(pool_.data())) / arena_bytes_;
    }

    bool claim_in(std::uint64_t arena, const void* block, std::uint64_t size_bytes) {
        std::vector<bool>& taken = taken_[arena];
        const std::uint64_t offset = reinterpret_cast<std::uint64_t>(block) - reinterpret_cast<std::uint64_t>(pool_.arena(arena));
        const std::uint64_t bytes = block_bytes(size_bytes), used_bytes = taken.size() * line_bytes;
        if (offset % line_bytes != 0 || offset >= used_bytes || bytes > used_bytes - offset) return false;
        for (std::uint64_t i = 0; i < bytes / line_bytes; ++i) {
            if (taken[offset / line_bytes + i]) return false;
            taken[offset / line_bytes + i] = true;
        }
        lines_left_ -= bytes / line_bytes;
        return true;
    }

    const Pool& pool_;
    std::uint64_t arena_bytes_;
    std::uint64_t lines_left_ = 0;
    std::vector<std::vector<bool>> taken_;  // of each arena
    const char* problem_ = nullptr;
};

}  // namespace durasim

#endif
