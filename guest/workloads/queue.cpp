// durasim-workload: queue — linked queues; each transaction puts an entry in at one end or takes one out at the other
//
// The CQ of LAD (MICRO'19, Table 2: "insert/delete entries in a queue", 4 modified lines per transaction). The queue is
// linked in both directions, and an entry with its links and its value of --value-bytes 40 is one line. Putting one in
// modifies the queue itself (its ends and counts), the entry, the entry before it and the allocator; taking one out the
// queue, the entry, the entry after it and the allocator. That is 4 lines each, and 3 if the queue is or becomes empty.
//
// Several threads share several queues, each with a lock and an arena of its own (structures/containers.h). These, too,
// modify 4 lines.
#include <cstdint>
#include <deque>

#include "structures/blocks.h"
#include "structures/containers.h"

namespace {

using durasim::Arguments;
using durasim::Audit;
using durasim::Long;
using durasim::Pool;
using durasim::Tx;

// An entry; its value follows.
struct Node {
    Node* next;  // towards the end where entries go in
    Node* before;
    std::uint64_t key;

    std::uint64_t* value() { return reinterpret_cast<std::uint64_t*>(this + 1); }
    const std::uint64_t* value() const { return reinterpret_cast<const std::uint64_t*>(this + 1); }
};

class Queue {
public:
    static constexpr std::uint64_t kind_of_root = 0x6575657571;  // "queue"
    static constexpr const char* option = "--queues";
    static constexpr std::uint64_t value_bytes_min = 8;
    static constexpr const char* percent_option = "--dequeue-percent";

    struct alignas(64) Container {
        durasim::Tally tally;
        Node* first;
        Node* last;
    };
    static_assert(sizeof(Container) == durasim::line_bytes);

    static std::uint64_t wanted(const Arguments& arguments) { return arguments.queues; }
    static std::uint64_t limit(const Arguments&) { return 0; }
    static std::uint64_t remove_percent(const Arguments& arguments) { return arguments.dequeue_percent; }

    static std::uint64_t arena_bytes(std::uint64_t items_max, std::uint64_t value_bytes) {
        return items_max * durasim::block_bytes(sizeof(Node) + value_bytes);
    }

    static const std::uint64_t* insert(Tx& t, Container& queue, std::uint64_t arena, durasim::Item item, std::uint64_t value_words) {
        auto* node = static_cast<Node*>(t.allocate(sizeof(Node) + value_words * 8, arena));
        Node* last = t.read(queue.last);
        t.write(node->next, nullptr);
        t.write(node->before, last);
        t.write(node->key, item.key);
        for (std::uint64_t w = 0; w < value_words; ++w) t.write(node->value()[w], item.word(w));
        t.write(last == nullptr ? queue.first : last->next, node);
        t.write(queue.last, node);
        return node->value();
    }

    static std::uint64_t remove(Tx& t, Container& queue, std::uint64_t arena, std::uint64_t* value, std::uint64_t value_words) {
        Node* node = t.read(queue.first);
        Node* next = t.read(node->next);
        const std::uint64_t key = t.read(node->key);
        t.read_words(value, node->value(), value_words * 8);
        t.write(queue.first, next);
        t.write(next == nullptr ? queue.last : next->before, nullptr);
        t.free(node, sizeof(Node) + value_words * 8, arena);
        return key;
    }

    class Model {
    public:
        void insert(std::uint64_t key) { keys_.push_back(key); }
        void remove() { keys_.pop_front(); }
        const std::deque<std::uint64_t>& keys() const { return keys_; }

    private:
        std::deque<std::uint64_t> keys_;
    };

    static void check(const Container& queue, const Model& model, Audit& audit, std::uint64_t value_bytes) {
        const Node* before = nullptr;
        const Node* node = queue.first;
        for (const std::uint64_t key : model.keys()) {
            if (!audit.claim(node, sizeof(Node) + value_bytes)) DURASIM_VIOLATION("an entry is reachable twice or not allocated");
            if (node->before != before) DURASIM_VIOLATION("an entry does not link back to the one before it");
            if (node->key != key) DURASIM_VIOLATION("an entry is not the one that should be there");
            if (!durasim::is_value_of(key, node->value(), value_bytes / 8)) DURASIM_VIOLATION("a value does not belong to its entry");
            before = node;
            node = node->next;
        }
        if (node != nullptr) DURASIM_VIOLATION("a queue holds more than its %zu entries", model.keys().size());
        if (queue.last != before) DURASIM_VIOLATION("the last entry of a queue is not its end");
    }

    template <class Take>
    static bool visit(const Container& queue, const Pool& pool, std::uint64_t value_bytes, Take&& take) {
        std::uint64_t nodes_left = pool.data_bytes() / durasim::line_bytes;  // a walk of more links goes in a circle
        for (const Node* node = queue.first; node != nullptr; node = node->next) {
            if (!durasim::can_be_block(pool, node, sizeof(Node) + value_bytes) || nodes_left-- == 0) return false;
            take(node->key, node->value());
        }
        return true;
    }
};

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<durasim::Containers<Queue>>(argc, argv); }
