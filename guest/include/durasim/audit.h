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
    explicit Audit(const Pool& pool) : pool_(pool) {
        const DataHeader* data = pool.data();
        used_bytes_ = data->used_bytes == 0 ? sizeof(DataHeader) : data->used_bytes;
        if (used_bytes_ > pool.data_bytes() || used_bytes_ < sizeof(DataHeader) || used_bytes_ % line_bytes != 0) {
            problem_ = "the allocator says that an impossible number of bytes is in use";
            return;
        }
        taken_.resize(used_bytes_ / line_bytes);
        lines_left_ = taken_.size();
        claim(data, sizeof(DataHeader));
        for (unsigned c = 0; c < block_classes; ++c) {
            std::uint64_t block = data->free_blocks[c];
            while (block != 0) {
                if (!claim(reinterpret_cast<const void*>(block), line_bytes << c)) {
                    problem_ = "a free list of the allocator holds a block twice or one that does not exist";
                    return;
                }
                block = *reinterpret_cast<const std::uint64_t*>(block);
            }
        }
    }

    // Says that the object at `block`, allocated with `size_bytes`, is reachable. False if it is not memory that the
    // allocator gave out, or is free or reachable a second time; then it must not be followed.
    bool claim(const void* block, std::uint64_t size_bytes) {
        const std::uint64_t offset = reinterpret_cast<std::uint64_t>(block) - reinterpret_cast<std::uint64_t>(pool_.data());
        const std::uint64_t bytes = block_bytes(size_bytes);
        if (offset % line_bytes != 0 || offset >= used_bytes_ || bytes > used_bytes_ - offset) return false;
        for (std::uint64_t i = 0; i < bytes / line_bytes; ++i) {
            if (taken_[offset / line_bytes + i]) return false;
            taken_[offset / line_bytes + i] = true;
        }
        lines_left_ -= bytes / line_bytes;
        return true;
    }

    // Lines in use that are neither reachable nor free, once everything is claimed: leaked.
    std::uint64_t lines_leaked() const { return lines_left_; }

    // What is wrong with the allocator itself, null if nothing is.
    const char* problem() const { return problem_; }

private:
    const Pool& pool_;
    std::uint64_t used_bytes_ = 0;
    std::uint64_t lines_left_ = 0;
    std::vector<bool> taken_;
    const char* problem_ = nullptr;
};

}  // namespace durasim

#endif
