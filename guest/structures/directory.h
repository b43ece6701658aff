// An array of entries in persistent memory that is never in the way of a transaction: it consists of segments, which come
// into being when the first of their entries is wanted.
//
// Creating it modifies one line for each 8 segments, creating a segment at most 128. Entries are of a few words, zero at
// first. No two directories share a line.
#ifndef DURASIM_STRUCTURES_DIRECTORY_H
#define DURASIM_STRUCTURES_DIRECTORY_H

#include <algorithm>
#include <bit>
#include <cstdint>

#include "structures/map_shape.h"

namespace durasim {

template <std::uint64_t entry_words>
class Directory {
    static constexpr std::uint64_t entry_bytes = entry_words * 8;
    static constexpr std::uint64_t segments_max = small_block_bytes_max / 8;
    static constexpr std::uint64_t segment_entries_max = small_block_bytes_max / entry_bytes;

public:
    static_assert(std::has_single_bit(entry_words));
    static constexpr std::uint64_t entries_max = segments_max * segment_entries_max;

    // `entries` is a power of two. `top` is in the pool and leads to the segments.
    Directory(std::uint64_t& top, std::uint64_t entries, std::uint64_t arena)
        : top_(top), entries_(entries), segment_entries_(segment_entries(entries)), arena_(arena) {}

    static std::uint64_t bytes(std::uint64_t entries) {
        const std::uint64_t segments = entries / segment_entries(entries);
        return block_bytes(segments * 8) + segments * block_bytes(segment_entries(entries) * entry_bytes);
    }

    void make(Tx& t) {
        auto* segments = static_cast<std::uint64_t*>(t.allocate(segments_count() * 8, arena_));
        for (std::uint64_t i = 0; i < segments_count(); ++i) t.write(segments[i], 0);
        t.write(top_, reinterpret_cast<std::uint64_t>(segments));
    }

    // The words of an entry, null if its segment is not there.
    std::uint64_t* find(Tx& t, std::uint64_t number) const {
        auto* segments = reinterpret_cast<std::uint64_t*>(t.read(top_));
        auto* segment = reinterpret_cast<std::uint64_t*>(t.read(segments[number / segment_entries_]));
        return segment == nullptr ? nullptr : segment + number % segment_entries_ * entry_words;
    }

    std::uint64_t* find_or_make(Tx& t, std::uint64_t number) {
        if (std::uint64_t* entry = find(t, number)) return entry;
        auto* segment = static_cast<std::uint64_t*>(t.allocate(segment_entries_ * entry_bytes, arena_));
        for (std::uint64_t i = 0; i < segment_entries_ * entry_words; ++i) t.write(segment[i], 0);
        auto* segments = reinterpret_cast<std::uint64_t*>(t.read(top_));
        t.write(segments[number / segment_entries_], reinterpret_cast<std::uint64_t>(segment));
        return segment + number % segment_entries_ * entry_words;
    }

    // Calls each(number, words) for the entries of all segments; null, or what is wrong, here or in the answer of `each`.
    template <class Each>
    const char* check(Audit& audit, Each&& each) const {
        const auto* segments = reinterpret_cast<const std::uint64_t*>(top_);
        if (!audit.claim(segments, segments_count() * 8)) return "a directory is not allocated";
        for (std::uint64_t i = 0; i < segments_count(); ++i) {
            const auto* segment = reinterpret_cast<const std::uint64_t*>(segments[i]);
            if (segment == nullptr) continue;
            if (!audit.claim(segment, segment_entries_ * entry_bytes)) {
                return "a segment of a directory is reachable twice or not allocated";
            }
            for (std::uint64_t e = 0; e < segment_entries_; ++e) {
                if (const char* problem = each(i * segment_entries_ + e, segment + e * entry_words)) return problem;
            }
        }
        return nullptr;
    }

    // Calls each(words) for what can be reached; whether that is all, and `each` always said so.
    template <class Each>
    bool dump(const Pool& pool, Each&& each) const {
        const auto* segments = reinterpret_cast<const std::uint64_t*>(top_);
        if (!pool.holds(segments, segments_count() * 8)) return false;
        for (std::uint64_t i = 0; i < segments_count(); ++i) {
            const auto* segment = reinterpret_cast<const std::uint64_t*>(segments[i]);
            if (segment == nullptr) continue;
            if (!pool.holds(segment, segment_entries_ * entry_bytes)) return false;
            for (std::uint64_t e = 0; e < segment_entries_; ++e) {
                if (!each(segment + e * entry_words)) return false;
            }
        }
        return true;
    }

private:
    // A line at least, and as large as the list of the segments where that gets long.
    static constexpr std::uint64_t segment_entries(std::uint64_t entries) {
        const std::uint64_t of_a_line = line_bytes / entry_bytes;
        return std::min({entries, segment_entries_max, std::max(of_a_line, entries / 16)});
    }

    std::uint64_t segments_count() const { return entries_ / segment_entries_; }

    std::uint64_t& top_;
    std::uint64_t entries_;
    std::uint64_t segment_entries_;
    std::uint64_t arena_;
};

}  // namespace durasim

#endif
