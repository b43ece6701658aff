// The set of granules (lines or words) that a transaction has touched: the volatile filter of a logging runtime.
#ifndef DURASIM_RUNTIMES_GRANULE_SET_H
#define DURASIM_RUNTIMES_GRANULE_SET_H

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "durasim/error.h"

namespace durasim {

// Insertion and emptying take constant time: a slot of the hash table counts only if it carries the current generation.
class GranuleSet {
public:
    // Adds a granule (a number below 2^40). Returns whether it was new.
    bool insert(std::uint64_t granule) {
        if (granule == last_) return false;
        last_ = granule;
        const std::uint64_t wanted = generation_ << granule_bits | granule;
        std::uint64_t at = hash(granule);
        while (slots_ != nullptr && slots_[at] >> granule_bits == generation_) {
            if (slots_[at] == wanted) return false;
            at = (at + 1) & (slot_count_ - 1);
        }
        add(at, granule, wanted);
        return true;
    }

    std::uint64_t size() const { return size_; }

    // The granules in the order in which they came.
    std::uint64_t operator[](std::uint64_t index) const { return members_[index]; }

    void clear() {
        size_ = 0;
        last_ = none;
        if (++generation_ == std::uint64_t{1} << (64 - granule_bits)) {
            std::memset(slots_, 0, slot_count_ * sizeof *slots_);
            generation_ = 1;
        }
    }

private:
    static constexpr unsigned granule_bits = 40;
    static constexpr std::uint64_t none = ~std::uint64_t{0};
    static constexpr std::uint64_t slot_count_first = 256;

    std::uint64_t hash(std::uint64_t granule) const {
        return (granule * 0x9E3779B97F4A7C15u >> 32) & (slot_count_ - 1);
    }

    void add(std::uint64_t at, std::uint64_t granule, std::uint64_t wanted) {
        if (2 * (size_ + 1) > slot_count_) {
            grow();
            for (at = hash(granule); slots_[at] != 0; at = (at + 1) & (slot_count_ - 1)) {
            }
        }
        slots_[at] = wanted;
        members_[size_++] = granule;
    }

    [[gnu::noinline]] void grow() {
        slot_count_ = slots_ == nullptr ? slot_count_first : slot_count_ * 2;
        std::free(slots_);
        slots_ = static_cast<std::uint64_t*>(std::calloc(slot_count_, sizeof *slots_));
        members_ = static_cast<std::uint64_t*>(std::realloc(members_, slot_count_ / 2 * sizeof *members_));
        if (slots_ == nullptr || members_ == nullptr) fail(exit_runtime, "durasim: out of memory in a transaction");
        for (std::uint64_t i = 0; i < size_; ++i) {
            std::uint64_t at = hash(members_[i]);
            while (slots_[at] != 0) at = (at + 1) & (slot_count_ - 1);
            slots_[at] = generation_ << granule_bits | members_[i];
        }
    }

    std::uint64_t* slots_ = nullptr;  // generation and granule
    std::uint64_t* members_ = nullptr;
    std::uint64_t slot_count_ = 1;
    std::uint64_t size_ = 0;
    std::uint64_t generation_ = 1;
    std::uint64_t last_ = none;
};

}  // namespace durasim

#endif
