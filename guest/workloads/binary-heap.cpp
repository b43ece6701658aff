// durasim-workload: binary-heap — a binary min-heap in arrays; each transaction inserts an item or takes out the smallest one
//
// The Binary Heap of Hercules (TECS'23, Table 3). The paper does not say how its heap looks, and its text names
// insertions, so --extract-percent is 0 unless given. An entry of the heap is a priority and a pointer to a block with the
// payload: what moves when items change places is 16 bytes, whatever the size of the payload. With 64 bytes of that, an
// insertion modifies 5.3 lines on average: the heap's own with its counts, the allocator, the payload, and 2.6 entries, some
// on one line, since a random item moves up by 1.6 places; without a payload (--value-bytes 0) it modifies 3.3. Taking the smallest out moves an entry on each level: with half
// of the operations doing that, a transaction in a heap of 100,000 items modifies 13 lines.
//
// Each level of the heap is a block of its own, allocated when the heap first grows so high and kept; so nothing is copied
// as the heap grows. Several threads share several heaps, each with a lock and an arena of its own
// (structures/containers.h).
#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "structures/blocks.h"
#include "structures/containers.h"

namespace {

using durasim::Arguments;
using durasim::Audit;
using durasim::Long;
using durasim::Pool;
using durasim::Tx;

struct Entry {
    std::uint64_t priority;
    std::uint64_t* payload;
};

constexpr std::uint64_t levels_max = 56;

// Places are numbered from 1: the children of place i are 2 * i and 2 * i + 1. Level n begins with place 2^n.
constexpr std::uint64_t level_of(std::uint64_t place) { return static_cast<std::uint64_t>(std::bit_width(place)) - 1; }
constexpr std::uint64_t level_bytes(std::uint64_t level) { return sizeof(Entry) << level; }

class BinaryHeap {
public:
    static constexpr std::uint64_t kind_of_root = 0x70616568;  // "heap"
    static constexpr const char* option = "--heaps";
    static constexpr std::uint64_t value_bytes_min = 0;
    static constexpr const char* percent_option = "--extract-percent";

    struct alignas(64) Container {
        durasim::Tally tally;
        std::uint64_t levels;  // that have been allocated
        std::uint64_t unused;
        Entry* level[levels_max];

        const Entry& entry(std::uint64_t place) const { return level[level_of(place)][place - (std::uint64_t{1} << level_of(place))]; }
    };
    static_assert(sizeof(Container) == 8 * durasim::line_bytes);

    static std::uint64_t wanted(const Arguments& arguments) { return arguments.heaps; }
    static std::uint64_t limit(const Arguments& arguments) { return arguments.items_max; }
    static std::uint64_t remove_percent(const Arguments& arguments) { return arguments.extract_percent; }

    static std::uint64_t arena_bytes(std::uint64_t items_max, std::uint64_t value_bytes) {
        std::uint64_t bytes = value_bytes == 0 ? 0 : items_max * durasim::block_bytes(value_bytes);
        for (std::uint64_t level = 0; items_max >> level != 0; ++level) bytes += durasim::block_bytes(level_bytes(level));
        return bytes;
    }

    static const std::uint64_t* insert(Tx& t, Container& heap, std::uint64_t arena, durasim::Item item, std::uint64_t value_words) {
        auto* payload = value_words == 0 ? nullptr : static_cast<std::uint64_t*>(t.allocate(value_words * 8, arena));
        for (std::uint64_t w = 0; w < value_words; ++w) t.write(payload[w], item.word(w));
        std::uint64_t place = size(t, heap) + 1;
        if (const std::uint64_t level = level_of(place); level == t.read(heap.levels)) {
            t.write(heap.level[level], static_cast<Entry*>(t.allocate(level_bytes(level), arena)));
            t.write(heap.levels, level + 1);
        }
        // The free place moves up until the item may stay there.
        for (; place > 1; place /= 2) {
            const Entry parent = read(t, heap, place / 2);
            if (parent.priority <= item.key) break;
            write(t, heap, place, parent);
        }
        write(t, heap, place, {item.key, payload});
        return payload;
    }

    static std::uint64_t remove(Tx& t, Container& heap, std::uint64_t arena, std::uint64_t* value, std::uint64_t value_words) {
        const Entry smallest = read(t, heap, 1);
        if (value_words != 0) {
            t.read_words(value, smallest.payload, value_words * 8);
            t.free(smallest.payload, value_words * 8, arena);
        }
        const std::uint64_t left = size(t, heap) - 1;
        if (left == 0) return smallest.priority;
        // The free place moves down until the last item may go there.
        const Entry last = read(t, heap, left + 1);
        std::uint64_t place = 1;
        while (2 * place <= left) {
            std::uint64_t child = 2 * place;
            Entry smaller = read(t, heap, child);
            if (child < left) {
                const Entry other = read(t, heap, child + 1);
                if (other.priority < smaller.priority) {
                    smaller = other;
                    ++child;
                }
            }
            if (last.priority <= smaller.priority) break;
            write(t, heap, place, smaller);
            place = child;
        }
        write(t, heap, place, last);
        return smallest.priority;
    }

    class Model {
    public:
        void insert(std::uint64_t key) {
            keys_.push(key);
            if (keys_.size() > size_max_) size_max_ = keys_.size();
        }
        void remove() { keys_.pop(); }
        std::uint64_t levels() const { return static_cast<std::uint64_t>(std::bit_width(size_max_)); }

        std::vector<std::uint64_t> sorted_keys() const {
            std::vector<std::uint64_t> sorted;
            for (auto left = keys_; !left.empty(); left.pop()) sorted.push_back(left.top());
            return sorted;
        }

    private:
        std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>> keys_;
        std::uint64_t size_max_ = 0;
    };

    static void check(const Container& heap, const Model& model, Audit& audit, std::uint64_t value_bytes) {
        if (heap.levels != model.levels() || heap.levels > levels_max) {
            DURASIM_VIOLATION("a heap has %llu levels allocated, but should have %llu", static_cast<Long>(heap.levels),
                              static_cast<Long>(model.levels()));
        }
        for (std::uint64_t level = 0; level < heap.levels; ++level) {
            if (!audit.claim(heap.level[level], level_bytes(level))) DURASIM_VIOLATION("a level of a heap is not allocated");
        }
        std::vector<std::uint64_t> priorities;
        for (std::uint64_t place = 1; place <= heap.tally.size(); ++place) {
            const Entry& entry = heap.entry(place);
            if (value_bytes != 0 && !audit.claim(entry.payload, value_bytes)) DURASIM_VIOLATION("a payload is reachable twice or not allocated");
            if (!durasim::is_value_of(entry.priority, entry.payload, value_bytes / 8)) {
                DURASIM_VIOLATION("a payload does not belong to its item");
            }
            if (place > 1 && heap.entry(place / 2).priority > entry.priority) {
                DURASIM_VIOLATION("place %llu of a heap comes before its parent", static_cast<Long>(place));
            }
            priorities.push_back(entry.priority);
        }
        std::sort(priorities.begin(), priorities.end());
        if (priorities != model.sorted_keys()) DURASIM_VIOLATION("a heap does not hold the items that it should");
    }

    template <class Take>
    static bool visit(const Container& heap, const Pool& pool, std::uint64_t value_bytes, Take&& take) {
        const std::uint64_t size = heap.tally.size();
        if (size > pool.data_bytes() / sizeof(Entry)) return false;
        for (std::uint64_t level = 0; size >> level != 0; ++level) {
            if (!durasim::can_be_block(pool, heap.level[level], level_bytes(level))) return false;
        }
        for (std::uint64_t place = 1; place <= size; ++place) {
            const Entry& entry = heap.entry(place);
            if (value_bytes != 0 && !durasim::can_be_block(pool, entry.payload, value_bytes)) return false;
            take(entry.priority, entry.payload);
        }
        return true;
    }

private:
    static std::uint64_t size(Tx& t, const Container& heap) { return t.read(heap.tally.inserted) - t.read(heap.tally.removed); }

    static Entry* at(Tx& t, Container& heap, std::uint64_t place) {
        return t.read(heap.level[level_of(place)]) + (place - (std::uint64_t{1} << level_of(place)));
    }

    static Entry read(Tx& t, Container& heap, std::uint64_t place) {
        const Entry* entry = at(t, heap, place);
        return {t.read(entry->priority), t.read(entry->payload)};
    }

    static void write(Tx& t, Container& heap, std::uint64_t place, const Entry& content) {
        Entry* entry = at(t, heap, place);
        t.write(entry->priority, content.priority);
        t.write(entry->payload, content.payload);
    }
};

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<durasim::Containers<BinaryHeap>>(argc, argv); }
