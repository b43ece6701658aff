// A heap of objects: a range of addresses in chunks, each for objects of one size or for a part of a large object.
//
// Memory in use is recorded in ordinary memory only. In persistent memory that is enough: an object is in use if a durable root
// reaches it, so recovery and the collector find it out, and a crash can leave neither a leak nor a block given out twice.
#ifndef DURASIM_OBJECTS_SPACE_H
#define DURASIM_OBJECTS_SPACE_H

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "durasim/error.h"
#include "durasim/lock.h"
#include "objects/header.h"
#include "objects/pages.h"

namespace durasim::objects {

inline constexpr std::uint64_t chunk_bytes = 32 * 1024;
inline constexpr std::uint64_t small_room_bytes_max = chunk_bytes / 4;

// Sizes of cells: every multiple of 16 bytes up to 256, then four for each power of two.
inline constexpr unsigned size_classes = 16 + 4 * 5;
constexpr std::uint64_t cell_bytes(unsigned size_class) {
    if (size_class < 16) return 16 * (size_class + std::uint64_t{1});
    const unsigned step = size_class - 16;
    return (std::uint64_t{256} << step / 4) + (std::uint64_t{64} << step / 4) * (step % 4 + 1);
}
static_assert(cell_bytes(size_classes - 1) == small_room_bytes_max);
constexpr unsigned size_class_of(std::uint64_t bytes) {
    if (bytes <= 256) return static_cast<unsigned>((bytes + 15) / 16 - 1);
    const unsigned power = 63 - static_cast<unsigned>(__builtin_clzll(bytes - 1));  // 2^power < bytes <= 2^(power + 1)
    const std::uint64_t quarter = std::uint64_t{1} << (power - 2);
    return 16 + 4 * (power - 8) + static_cast<unsigned>((bytes - (std::uint64_t{1} << power) + quarter - 1) / quarter - 1);
}

// Cells side by side that are free; a thread has one for each size.
struct Run {
    char* next = nullptr;
    char* end = nullptr;
    std::uint64_t chunk = 0;  // the part of this chunk after `end` has not been looked at
    bool has_chunk = false;
};

class Space {
public:
    // Takes [base, base + size_bytes), parts may be in use already. `option` is the one that makes it larger.
    void attach(char* base, std::uint64_t size_bytes, const char* name, const char* option, bool walked) {
        base_ = base;
        chunk_count_ = size_bytes / chunk_bytes;
        chunks_ = zero_pages<Chunk>(chunk_count_, "the table of a heap");
        name_ = name;
        option_ = option;
        walked_ = walked;
        found_end_ = fresh_ = 0;
        rebuilt();
    }

    bool holds(const void* place) const { return static_cast<std::uint64_t>(static_cast<const char*>(place) - base_) < chunk_count_ * chunk_bytes; }
    char* base() const { return base_; }
    std::uint64_t size_bytes() const { return chunk_count_ * chunk_bytes; }
    std::uint64_t used_bytes() const { return get(&used_chunks_) * chunk_bytes; }

    // Gives the run of `size_class` free cells. It has none left.
    [[gnu::noinline]] void refill(Run& run, unsigned size_class) {
        const std::uint64_t cell = cell_bytes(size_class);
        if (run.has_chunk && next_run(run, cell)) return;
        for (;;) {
            lock_.lock();
            if (!given_back_[size_class].empty()) {
                run.next = given_back_[size_class].back();
                run.end = run.next + cell;
                run.has_chunk = false;
                given_back_[size_class].pop_back();
                lock_.unlock();
                return;
            }
            const bool partial = !partial_[size_class].empty();
            if (partial) {
                run.chunk = partial_[size_class].back();
                partial_[size_class].pop_back();
            } else {
                run.chunk = take_chunks(1, cell);
                if (walked_) clear_headers(run.chunk, cell);
                put_last(&chunks_[run.chunk].kind, kind_of(size_class));
            }
            lock_.unlock();
            run.has_chunk = true;
            run.end = address(run.chunk);
            if (next_run(run, cell)) return;
        }
    }

    // Room for an object that is larger than any cell.
    [[gnu::noinline]] char* take_large(std::uint64_t bytes) {
        const std::uint64_t count = (bytes + chunk_bytes - 1) / chunk_bytes;
        lock_.lock();
        const std::uint64_t first = take_chunks(count, bytes);
        char* place = address(first);
        if (walked_) put(reinterpret_cast<std::uint64_t*>(place), std::uint64_t{0});
        for (std::uint64_t i = 1; i < count; ++i) chunks_[first + i].kind = chunk_large_rest;
        put_last(&chunks_[first].kind, chunk_large);
        lock_.unlock();
        return place;
    }

    // Frees the cell of an object that no thread knows any more, while others continue. Its header says that it is none.
    void give_back(Object* object, std::uint64_t room) {
        put(&object->header, std::uint64_t{0});
        if (room > small_room_bytes_max) return;  // the collector takes chunks back
        lock_.lock();
        given_back_[size_class_of(room)].push_back(reinterpret_cast<char*>(object));
        lock_.unlock();
    }

    // Forgets what is in use. After it and a mark() for each object that is, rebuilt() makes the rest available.
    void forget() {
        for (std::uint64_t i = 0; i < found_end_; ++i) {
            if (chunks_[i].found == chunk_free) continue;
            chunks_[i].marks.fill(0);
            chunks_[i].found = chunk_free;
        }
        found_end_ = 0;
    }

    // Notes that an object of this many bytes is in use. False if it is noted already, or if objects lie over each other;
    // `consistent` distinguishes the two.
    bool mark(const Object* object, std::uint64_t room, bool& consistent) {
        const std::uint64_t offset = static_cast<std::uint64_t>(reinterpret_cast<const char*>(object) - base_);
        const std::uint64_t first = offset / chunk_bytes, inside = offset % chunk_bytes;
        Chunk& chunk = chunks_[first];
        std::uint64_t& word = chunk.marks[inside / object_align_bytes / 64];
        const std::uint64_t bit = std::uint64_t{1} << (inside / object_align_bytes % 64);
        found_end_ = std::max(found_end_, first + 1);
        if (room > small_room_bytes_max) {
            const std::uint64_t count = (room + chunk_bytes - 1) / chunk_bytes;
            consistent = inside == 0 && count <= chunk_count_ - first;
            if (!consistent) return false;
            if (chunk.found == chunk_large) {
                consistent = (word & bit) != 0;
                return false;
            }
            for (std::uint64_t i = 0; i < count; ++i) {
                consistent = chunks_[first + i].found == chunk_free;
                if (!consistent) return false;
                chunks_[first + i].found = i == 0 ? chunk_large : chunk_large_rest;
                found_end_ = std::max(found_end_, first + i + 1);
            }
        } else {
            const unsigned size_class = size_class_of(room);
            if (chunk.found == chunk_free) chunk.found = kind_of(size_class);
            consistent = chunk.found == kind_of(size_class) && inside % cell_bytes(size_class) == 0 && inside + cell_bytes(size_class) <= chunk_bytes;
            if (!consistent) return false;
        }
        const bool fresh = (word & bit) == 0;
        word |= bit;
        return fresh;
    }

    bool is_marked(const Object* object) const {
        const std::uint64_t offset = static_cast<std::uint64_t>(reinterpret_cast<const char*>(object) - base_);
        return chunks_[offset / chunk_bytes].marks[offset % chunk_bytes / object_align_bytes / 64] >> (offset / object_align_bytes % 64) & 1;
    }

    // Makes everything available that is not marked. No thread has a run then.
    void rebuilt() {
        used_chunks_ = 0;
        free_chunks_.clear();
        for (auto& list : given_back_) list.clear();
        for (auto& list : partial_) list.clear();
        for (std::uint64_t i = found_end_; i < fresh_; ++i) chunks_[i].kind = chunk_free;
        fresh_ = found_end_;
        for (std::uint64_t i = fresh_; i-- > 0;) {
            Chunk& chunk = chunks_[i];
            if (walked_) sweep(i);
            chunk.kind = chunk.found;
            if (chunk.found == chunk_free) {
                free_chunks_.push_back(i);
                continue;
            }
            ++used_chunks_;
            if (chunk.found != chunk_large && chunk.found != chunk_large_rest) partial_[chunk.found - 1].push_back(i);
        }
    }

    // Calls each(object) for every object; new ones may come and be left out meanwhile. Stops if it returns false.
    template <class Each>
    bool walk(Each&& each) {
        for (std::uint64_t i = 0; i < chunk_count_; ++i) {
            const std::uint8_t kind = get_first(&chunks_[i].kind);
            if (kind == chunk_free || kind == chunk_large_rest) continue;
            const std::uint64_t cell = kind == chunk_large ? chunk_bytes : cell_bytes(kind - 1u);
            for (std::uint64_t at = 0; at + cell <= chunk_bytes; at += cell) {
                auto* object = reinterpret_cast<Object*>(address(i) + at);
                if (get(&object->header) != 0 && !each(object)) return false;
            }
        }
        return true;
    }

private:
    // The use of a chunk: one of these, or a size class plus 1.
    static constexpr std::uint8_t chunk_free = 0, chunk_large = 0xfe, chunk_large_rest = 0xfd;
    static constexpr std::uint8_t kind_of(unsigned size_class) { return static_cast<std::uint8_t>(size_class + 1); }

    // All zero at first.
    struct Chunk {
        std::uint8_t kind;
        std::uint8_t found;  // the same, by the marks
        std::array<std::uint64_t, chunk_bytes / object_align_bytes / 64> marks;  // all 0 unless something is found
    };

    char* address(std::uint64_t chunk) const { return base_ + chunk * chunk_bytes; }

    // The next free cells after `run.end` in its chunk.
    bool next_run(Run& run, std::uint64_t cell) {
        char* const first = address(run.chunk);
        const auto is_free = [&](char* place) {
            const std::uint64_t unit = static_cast<std::uint64_t>(place - first) / object_align_bytes;
            return (chunks_[run.chunk].marks[unit / 64] >> unit % 64 & 1) == 0;
        };
        char* at = run.end;
        const auto is_inside = [&](char* place) { return static_cast<std::uint64_t>(place - first) + cell <= chunk_bytes; };
        while (is_inside(at) && !is_free(at)) at += cell;
        run.next = at;
        while (is_inside(at) && is_free(at)) at += cell;
        run.end = at;
        return run.next != run.end;
    }

    // The first of `count` free chunks side by side. The lock is held.
    std::uint64_t take_chunks(std::uint64_t count, std::uint64_t wanted_bytes) {
        std::uint64_t first = 0;
        if (count == 1 && !free_chunks_.empty()) {
            first = free_chunks_.back();
            free_chunks_.pop_back();
        } else if (count <= chunk_count_ - fresh_) {
            first = fresh_;
            fresh_ += count;
        } else {
            first = find_side_by_side(count, wanted_bytes);
        }
        put(&used_chunks_, used_chunks_ + count);
        return first;
    }

    std::uint64_t find_side_by_side(std::uint64_t count, std::uint64_t wanted_bytes) {
        std::uint64_t length = 0;
        for (std::uint64_t i = 0; i < chunk_count_; ++i) {
            length = chunks_[i].kind == chunk_free ? length + 1 : 0;
            if (length != count) continue;
            const std::uint64_t first = i + 1 - count;
            std::erase_if(free_chunks_, [&](std::uint64_t chunk) { return chunk >= first && chunk <= i; });
            if (i + 1 > fresh_) fresh_ = i + 1;
            return first;
        }
        fail(exit_runtime, "durasim: the %s heap is full: %llu of %llu bytes are in use and an object of %llu is wanted; make it larger (%s)", name_,
             static_cast<unsigned long long>(used_bytes()), static_cast<unsigned long long>(size_bytes()),
             static_cast<unsigned long long>(wanted_bytes), option_);
    }

    void clear_headers(std::uint64_t chunk, std::uint64_t cell) {
        for (std::uint64_t at = 0; at + cell <= chunk_bytes; at += cell) put(reinterpret_cast<std::uint64_t*>(address(chunk) + at), std::uint64_t{0});
    }

    // Says of the objects that are not in use any more that they are none.
    void sweep(std::uint64_t number) {
        const std::uint8_t kind = chunks_[number].kind;
        if (kind == chunk_free || kind == chunk_large_rest) return;
        const std::uint64_t cell = kind == chunk_large ? chunk_bytes : cell_bytes(kind - 1u);
        for (std::uint64_t at = 0; at + cell <= chunk_bytes; at += cell) {
            auto* object = reinterpret_cast<Object*>(address(number) + at);
            if (get(&object->header) != 0 && !is_marked(object)) put(&object->header, std::uint64_t{0});
        }
    }

    char* base_ = nullptr;
    const char* name_ = "";
    const char* option_ = "";
    bool walked_ = false;  // a thread walks over all objects: the headers of free cells are 0
    Chunk* chunks_ = nullptr;
    std::uint64_t chunk_count_ = 0;
    std::uint64_t found_end_ = 0;             // from here on nothing is found
    std::uint64_t fresh_ = 0;                 // from here on no chunk has been used
    std::vector<std::uint64_t> free_chunks_;  // those before
    std::uint64_t used_chunks_ = 0;
    std::array<std::vector<std::uint64_t>, size_classes> partial_;   // chunks in which cells may be free
    std::array<std::vector<char*>, size_classes> given_back_;
    Lock lock_;
};

}  // namespace durasim::objects

#endif
