// What a transaction with a redo log has stored so far, in ordinary memory: words of the pool with their new content.
#ifndef DURASIM_RUNTIMES_WRITE_SET_H
#define DURASIM_RUNTIMES_WRITE_SET_H

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "durasim/error.h"

namespace durasim {

// A hash table of lines over a list in the order of the first stores; most accesses go to the line of the one before.
// Finding, adding and emptying take constant time: a slot counts only if it carries the current generation.
class WriteSet {
public:
    static constexpr unsigned words_per_line = 8;

    struct Line {
        std::uint64_t number;  // below 2^40
        std::uint64_t stored;  // which of its words are in the set, as bits
        std::uint64_t word[words_per_line];
    };

    // The line of that number, null if no word of it is in the set.
    Line* find(std::uint64_t number) {
        if (size_ == 0) return nullptr;
        if (last_->number == number) return last_;
        const std::uint64_t wanted = generation_ << number_bits | number;
        for (std::uint64_t at = hash(number); slots_[at].tag >> number_bits == generation_; at = next(at)) {
            if (slots_[at].tag == wanted) return last_ = &lines_[slots_[at].index];
        }
        return nullptr;
    }

    // Adds a line that is not in the set yet, without words.
    Line* add(std::uint64_t number) {
        if (2 * (size_ + 1) > slot_count_) grow();
        insert(number, size_);
        last_ = &lines_[size_++];
        last_->number = number;
        last_->stored = 0;
        return last_;
    }

    const Line* begin() const { return lines_; }
    const Line* end() const { return lines_ + size_; }

    void clear() {
        if (size_ == 0) return;
        size_ = 0;
        if (++generation_ == std::uint64_t{1} << (64 - number_bits)) {
            std::memset(slots_, 0, slot_count_ * sizeof *slots_);
            generation_ = 1;
        }
    }

private:
    struct Slot {
        std::uint64_t tag;  // generation and number
        std::uint64_t index;
    };
    static constexpr unsigned number_bits = 40;
    static constexpr std::uint64_t slot_count_first = 128;

    std::uint64_t hash(std::uint64_t number) const { return (number * 0x9E3779B97F4A7C15u >> 32) & (slot_count_ - 1); }
    std::uint64_t next(std::uint64_t at) const { return (at + 1) & (slot_count_ - 1); }

    void insert(std::uint64_t number, std::uint64_t index) {
        std::uint64_t at = hash(number);
        while (slots_[at].tag >> number_bits == generation_) at = next(at);
        slots_[at] = {generation_ << number_bits | number, index};
    }

    [[gnu::noinline]] void grow() {
        slot_count_ = slots_ == nullptr ? slot_count_first : slot_count_ * 2;
        std::free(slots_);
        slots_ = static_cast<Slot*>(std::calloc(slot_count_, sizeof *slots_));
        lines_ = static_cast<Line*>(std::realloc(lines_, slot_count_ / 2 * sizeof *lines_));
        if (slots_ == nullptr || lines_ == nullptr) fail(exit_runtime, "durasim: out of memory in a transaction");
        for (std::uint64_t i = 0; i < size_; ++i) insert(lines_[i].number, i);
    }

    Slot* slots_ = nullptr;
    Line* lines_ = nullptr;
    Line* last_ = nullptr;  // the line that was looked at last
    std::uint64_t slot_count_ = 0;
    std::uint64_t size_ = 0;
    std::uint64_t generation_ = 1;
};

}  // namespace durasim

#endif
