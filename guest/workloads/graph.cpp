// durasim-workload: graph — adjacency lists of an undirected graph; each transaction inserts or deletes an edge
//
// The SDG of Hercules (TECS'23: "insert and delete edges" in a scalable graph) and, with --value-bytes 8 --erase-percent 0,
// the graph of TC (DAC'17: "insert in an adjacency list graph"). An edge is in the lists of both of its end points, each time
// as a record of its own with the data of the edge there (--value-bytes), and a vertex, on a line of its own, counts its
// edges and adds up their weights. An insertion puts the two records at the front of the lists. A deletion looks for the
// records in both lists, unlinks and wipes them, so that nothing of a deleted edge remains, and frees them.
//
// Lines per transaction, with records of R lines: 2 R for the records, 2 vertices, 1 or 2 of the allocator, the thread's
// count, and for a deletion the records in front of the two. Hercules (Table 4) has 33.8 lines on average. R = 14 comes
// closest, which is a value of 864 bytes: 32.9 lines are modified by one thread and 33.6 by four, always 32 to 35.
// With 8 bytes of value and no deletions it is 6, and with several threads 7.
//
// An edge belongs to the thread that inserted it, which alone deletes it: what a thread does depends on seed, thread and
// number alone, and a check replays it. Populating deals its edges to the threads in turn. The vertices belong to stripes,
// each with a lock and an arena; a thread takes the locks of both end points, the lower one first.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "durasim/random.h"
#include "structures/blocks.h"
#include "structures/shares.h"
#include "workloads/harness.h"

namespace {

using durasim::Arguments;
using durasim::Audit;
using durasim::Long;
using durasim::Pool;
using durasim::Progress;
using durasim::Tx;

constexpr std::uint64_t kind_of_root = 0x6870617267;  // "graph"

// An edge in the list of one of its end points; its data follow.
struct Record {
    Record* next;
    std::uint64_t end;  // the end and its edge; see end_of
    std::uint64_t neighbour;
    std::uint64_t weight;

    std::uint64_t* value() { return reinterpret_cast<std::uint64_t*>(this + 1); }
    const std::uint64_t* value() const { return reinterpret_cast<const std::uint64_t*>(this + 1); }
};

struct alignas(64) Vertex {
    Record* first;
    std::uint64_t degree;
    std::uint64_t weight;   // of all its edges
    std::uint64_t changes;  // edges inserted and deleted here
};

struct alignas(64) Graph {
    std::uint64_t kind;
    std::uint64_t seed;
    std::uint64_t populate;
    std::uint64_t ready;  // edges that populating has inserted
    std::uint32_t threads;
    std::uint32_t erase_percent;
    std::uint64_t value_bytes;
    std::uint64_t vertices;
    std::uint64_t stripes;
    Vertex** stripe;     // the vertices of each stripe: vertex v is number v / stripes in stripe v % stripes
    Progress* progress;  // of each thread
    std::uint64_t items_max;  // edges: an insertion beyond this number deletes one; 0: any number

    Vertex& vertex(std::uint64_t number) const { return stripe[number % stripes][number / stripes]; }
};

// An edge is named by the thread that owns it and its number there; it has two ends.
constexpr std::uint64_t end_of(std::uint64_t edge, std::uint64_t which) { return 2 * edge + which; }

struct Edge {
    std::uint64_t vertex[2];
    std::uint64_t weight;
};

Edge edge_of(std::uint64_t seed, std::uint64_t edge, std::uint64_t vertices) {
    durasim::Random random(durasim::mix(seed) + edge * 0x632BE59BD9B4E019u);
    const std::uint64_t first = random.below(vertices), second = random.below(vertices - 1);
    return {{first, second < first ? second : second + 1}, 1 + random.below(1 << 20)};
}

std::uint64_t value_word(std::uint64_t seed, std::uint64_t end, std::uint64_t word) {
    return durasim::mix(durasim::mix(seed ^ end) + word);
}

// The edges of a thread, in ordinary memory, and what its operations do to them.
class Owner {
public:
    // The owner of what populating dealt to `thread` when it had inserted `ready` edges.
    Owner(const Graph& graph, std::uint64_t thread, std::uint64_t ready)
        : seed_(graph.seed),
          erase_percent_(graph.erase_percent),
          thread_(thread),
          items_max_(durasim::share_of(graph.items_max, graph.threads, thread)) {
        for (std::uint64_t i = 0; i < durasim::share_of(ready, graph.threads, thread); ++i) live_.push_back(inserted_++);
    }

    struct Step {
        std::uint64_t edge;
        bool erases;
        std::uint64_t place;  // among the edges there are
    };

    // The effect of the n-th operation. Where there is no edge to delete, it inserts one.
    Step step(std::uint64_t n) const {
        durasim::Random random(durasim::mix(~seed_) + durasim::operation_of(thread_, n));
        const bool is_full = items_max_ != 0 && live_.size() >= items_max_;
        if ((random.below(100) >= erase_percent_ && !is_full) || live_.empty()) return {durasim::operation_of(thread_, inserted_), false, 0};
        const std::uint64_t place = random.below(live_.size());
        return {durasim::operation_of(thread_, live_[place]), true, place};
    }

    void take(const Step& step) {
        if (step.erases) {
            live_[step.place] = live_.back();
            live_.pop_back();
        } else {
            live_.push_back(inserted_++);
        }
    }

    // The numbers of the edges there are.
    const std::vector<std::uint64_t>& live() const { return live_; }

private:
    std::uint64_t seed_, erase_percent_, thread_, items_max_;
    std::uint64_t inserted_ = 0;
    std::vector<std::uint64_t> live_;
};

// A vertex is an object; its counts make each version new. One without a past is not there.
constexpr std::uint64_t vertex_object(std::uint64_t vertex) { return std::uint64_t{1} << 62 | vertex; }

template <class Read>
std::uint64_t version_of(const Vertex& vertex, Read&& read) {
    durasim::Version version;
    version.take(read(vertex.changes));
    version.take(read(vertex.degree));
    version.take(read(vertex.weight));
    return read(vertex.changes) == 0 ? 0 : version.value();
}

// An end of an edge is an object, from its insertion until its deletion: what the end point has of it.
template <class Read>
std::uint64_t version_of(const Record* record, std::uint64_t value_words, Read&& read) {
    durasim::Version version;
    version.take(read(record->neighbour));
    version.take(read(record->weight));
    for (std::uint64_t w = 0; w < value_words; ++w) version.take(read(record->value()[w]));
    return version.value();
}

class GraphWorkload {
public:
    static std::uint64_t arenas(const Arguments& arguments) {
        if (arguments.stripes != 0) return arguments.stripes;
        return arguments.threads == 1 ? 1 : std::min(arguments.threads * stripes_per_thread, stripes_default_max);
    }

    static std::uint64_t pool_bytes(const Arguments& arguments) {
        const std::uint64_t stripes = arenas(arguments);
        std::uint64_t edges = durasim::items_max(arguments.populate, arguments.ops, arguments.erase_percent);
        if (arguments.items_max != 0) edges = std::min(edges, arguments.items_max);
        const std::uint64_t records = durasim::share_max(2 * edges, stripes);
        const std::uint64_t shared = sizeof(durasim::ArenaHeader) + sizeof(Graph) + durasim::block_bytes(stripes * sizeof(Vertex*)) +
                                     durasim::block_bytes(arguments.threads * sizeof(Progress));
        return stripes * (records * durasim::block_bytes(sizeof(Record) + arguments.value_bytes) + shared +
                          durasim::block_bytes((vertices_of(arguments) / stripes + 1) * sizeof(Vertex)) + durasim::line_bytes);
    }

    GraphWorkload(Pool& pool, const Arguments& arguments) {
        if (arguments.value_bytes % 8 != 0) {
            durasim::fail(durasim::exit_usage, "graph: --value-bytes has to be a multiple of 8, not %llu",
                          static_cast<Long>(arguments.value_bytes));
        }
        if (arguments.items_max != 0 && (arguments.items_max < arguments.threads || arguments.items_max < arguments.populate)) {
            durasim::fail(durasim::exit_usage, "graph: --items-max has to be 0, or as large as --populate and --threads");
        }
        if (arguments.vertices == 1) durasim::fail(durasim::exit_usage, "graph: --vertices has to be at least 2, or 0");
        graph_ = pool.root<Graph>();
        if (graph_ == nullptr) {
            make(pool, arguments);
            graph_ = pool.root<Graph>();
        }
        if (graph_->kind != kind_of_root) durasim::fail(durasim::exit_usage, "graph: the pool belongs to another workload");
        if (graph_->seed != arguments.seed || graph_->populate != arguments.populate ||
            graph_->erase_percent != arguments.erase_percent || graph_->value_bytes != arguments.value_bytes ||
            graph_->vertices != vertices_of(arguments) || graph_->stripes != arenas(arguments) ||
            graph_->threads != arguments.threads || graph_->items_max != arguments.items_max) {
            durasim::fail(durasim::exit_usage,
                          "graph: the pool was made with --seed %llu --populate %llu --erase-percent %u --value-bytes %llu "
                          "--vertices %llu --stripes %llu --threads %u --items-max %llu; use these",
                          static_cast<Long>(graph_->seed), static_cast<Long>(graph_->populate), graph_->erase_percent,
                          static_cast<Long>(graph_->value_bytes), static_cast<Long>(graph_->vertices),
                          static_cast<Long>(graph_->stripes), graph_->threads, static_cast<Long>(graph_->items_max));
        }
        value_words_ = graph_->value_bytes / 8;
        for (std::uint64_t i = 0; i < graph_->threads; ++i) finished_.push_back(graph_->progress[i].finished);
        if (graph_->threads > 1) locks_ = std::make_unique<durasim::TxLock[]>(graph_->stripes);
    }

    std::uint64_t populated() const { return graph_->ready; }

    struct Thread {
        std::uint64_t number;
        std::uint64_t finished;  // operations
        Owner owner;
    };

    Thread enter(std::uint64_t number) const {
        Thread thread{number, finished_[number], Owner(*graph_, number, graph_->ready)};
        for (std::uint64_t n = 0; n < thread.finished; ++n) thread.owner.take(thread.owner.step(n));
        return thread;
    }
    void leave(const Thread& thread) { finished_[thread.number] = thread.finished; }

    void populate_one(Thread&) {
        durasim::tx([&](Tx& t) {
            const std::uint64_t ready = t.read(graph_->ready);
            insert(t, durasim::operation_of(ready % graph_->threads, ready / graph_->threads));
            t.write(graph_->ready, ready + 1);
            if constexpr (durasim::has_history) durasim::report_change(durasim::populated_object, ready, ready + 1);
        });
    }

    void operation(Thread& thread) {
        const Owner::Step step = thread.owner.step(thread.finished);
        if (locks_ == nullptr) {
            perform(thread, step);
        } else {
            const Edge edge = edge_of(graph_->seed, step.edge, graph_->vertices);
            const std::uint64_t a = edge.vertex[0] % graph_->stripes, b = edge.vertex[1] % graph_->stripes;
            const std::lock_guard lower(locks_[a < b ? a : b]);
            std::unique_lock<durasim::TxLock> upper;
            if (a != b) upper = std::unique_lock(locks_[a < b ? b : a]);
            perform(thread, step);
        }
        thread.owner.take(step);
        ++thread.finished;
    }

    void compare_with_model() const {
        // The check has compared the graph with what the counts say; here remains whether these are right.
        for (std::uint64_t i = 0; i < finished_.size(); ++i) {
            if (graph_->progress[i].finished != finished_[i]) {
                DURASIM_VIOLATION("thread %llu finished %llu operations, but the pool says %llu", static_cast<Long>(i),
                                  static_cast<Long>(finished_[i]), static_cast<Long>(graph_->progress[i].finished));
            }
        }
    }

    void print_result() const {
        std::uint64_t ends = 0;
        for (std::uint64_t v = 0; v < graph_->vertices; ++v) ends += graph_->vertex(v).degree;
        std::printf("vertices=%llu edges=%llu", static_cast<Long>(graph_->vertices), static_cast<Long>(ends / 2));
    }

    static std::uint64_t check(const Pool& pool);
    static void dump(const Pool& pool, durasim::Dump& dump);

private:
    // Stripes for each thread if several share the vertices: few enough to meet, many enough not to queue. All are made in
    // one transaction, which sets a bound.
    static constexpr std::uint64_t stripes_per_thread = 4;
    static constexpr std::uint64_t stripes_default_max = 64;

    // By default, as many as give a vertex eight edges after populating.
    static std::uint64_t vertices_of(const Arguments& arguments) {
        return arguments.vertices != 0 ? arguments.vertices : std::max<std::uint64_t>(arguments.populate / 4, 2);
    }

    static void make(Pool& pool, const Arguments& arguments) {
        durasim::tx([&](Tx& t) {
            const std::uint64_t stripes = arenas(arguments), vertices = vertices_of(arguments);
            auto* graph = static_cast<Graph*>(t.allocate(sizeof(Graph)));
            auto* stripe = static_cast<Vertex**>(t.allocate(stripes * sizeof(Vertex*)));
            auto* progress = static_cast<Progress*>(t.allocate(arguments.threads * sizeof(Progress)));
            for (std::uint64_t i = 0; i < arguments.threads; ++i) t.write(progress[i].finished, 0);
            // Memory that was never given out before is zero, and so are vertices without edges.
            for (std::uint64_t i = 0; i < stripes; ++i) {
                t.write(stripe[i], static_cast<Vertex*>(t.allocate((vertices / stripes + 1) * sizeof(Vertex), i)));
            }
            t.write(graph->kind, kind_of_root);
            t.write(graph->seed, arguments.seed);
            t.write(graph->populate, arguments.populate);
            t.write(graph->ready, 0);
            t.write(graph->threads, static_cast<std::uint32_t>(arguments.threads));
            t.write(graph->erase_percent, static_cast<std::uint32_t>(arguments.erase_percent));
            t.write(graph->value_bytes, arguments.value_bytes);
            t.write(graph->vertices, vertices);
            t.write(graph->stripes, stripes);
            t.write(graph->items_max, arguments.items_max);
            t.write(graph->stripe, stripe);
            t.write(graph->progress, progress);
            pool.set_root(t, graph);
            if constexpr (durasim::has_history) durasim::report_change(durasim::root_object, 0, kind_of_root);
        });
    }

    void perform(Thread& thread, const Owner::Step& step) {
        durasim::tx([&](Tx& t) {
            if (step.erases) {
                erase(t, step.edge);
            } else {
                insert(t, step.edge);
            }
            std::uint64_t& finished = graph_->progress[thread.number].finished;
            if constexpr (durasim::has_history) {
                durasim::report_change(durasim::progress_object(thread.number), t.read(finished), thread.finished + 1);
            }
            t.write(finished, thread.finished + 1);
        });
    }

    std::uint64_t record_bytes() const { return sizeof(Record) + value_words_ * 8; }

    void insert(Tx& t, std::uint64_t edge) {
        const auto read = [&t](const auto& place) { return t.read(place); };
        const Edge about = edge_of(graph_->seed, edge, graph_->vertices);
        for (std::uint64_t which = 0; which < 2; ++which) {
            const std::uint64_t number = about.vertex[which], end = end_of(edge, which);
            Vertex& vertex = graph_->vertex(number);
            [[maybe_unused]] std::uint64_t found = 0;
            if constexpr (durasim::has_history) found = version_of(vertex, read);
            auto* record = static_cast<Record*>(t.allocate(record_bytes(), number % graph_->stripes));
            t.write(record->next, t.read(vertex.first));
            t.write(record->end, end);
            t.write(record->neighbour, about.vertex[1 - which]);
            t.write(record->weight, about.weight);
            for (std::uint64_t w = 0; w < value_words_; ++w) t.write(record->value()[w], value_word(graph_->seed, end, w));
            t.write(vertex.first, record);
            t.write(vertex.degree, t.read(vertex.degree) + 1);
            t.write(vertex.weight, t.read(vertex.weight) + about.weight);
            t.write(vertex.changes, t.read(vertex.changes) + 1);
            if constexpr (durasim::has_history) {
                durasim::report_change(end, 0, version_of(record, value_words_, read));
                durasim::report_change(vertex_object(number), found, version_of(vertex, read));
            }
        }
    }

    void erase(Tx& t, std::uint64_t edge) {
        const auto read = [&t](const auto& place) { return t.read(place); };
        const Edge about = edge_of(graph_->seed, edge, graph_->vertices);
        for (std::uint64_t which = 0; which < 2; ++which) {
            const std::uint64_t number = about.vertex[which], end = end_of(edge, which);
            Vertex& vertex = graph_->vertex(number);
            [[maybe_unused]] std::uint64_t found = 0;
            if constexpr (durasim::has_history) found = version_of(vertex, read);
            Record** link = &vertex.first;
            Record* record = t.read(*link);
            while (record != nullptr && t.read(record->end) != end) {
                link = &record->next;
                record = t.read(*link);
            }
            if (record == nullptr) DURASIM_VIOLATION("an edge of vertex %llu is missing", static_cast<Long>(number));
            if constexpr (durasim::has_history) durasim::report_change(end, version_of(record, value_words_, read), 0);
            t.write(*link, t.read(record->next));
            t.write(vertex.degree, t.read(vertex.degree) - 1);
            t.write(vertex.weight, t.read(vertex.weight) - t.read(record->weight));
            t.write(vertex.changes, t.read(vertex.changes) + 1);
            t.write(record->end, 0);
            t.write(record->neighbour, 0);
            t.write(record->weight, 0);
            for (std::uint64_t w = 0; w < value_words_; ++w) t.write(record->value()[w], 0);
            t.free(record, record_bytes(), number % graph_->stripes);
            if constexpr (durasim::has_history) durasim::report_change(vertex_object(number), found, version_of(vertex, read));
        }
    }

    Graph* graph_ = nullptr;
    std::uint64_t value_words_ = 0;
    std::unique_ptr<durasim::TxLock[]> locks_;  // of the stripes; a single thread needs none
    std::vector<std::uint64_t> finished_;     // by each thread: what the pool must hold
};

constexpr std::uint64_t value_bytes_max = durasim::small_block_bytes_max - sizeof(Record);

// Whether the root object is one that its parts can be looked for by.
bool is_possible(const Graph* graph, const Pool& pool) {
    return graph->stripes == pool.arenas() && graph->vertices >= 2 && graph->vertices <= pool.data_bytes() / sizeof(Vertex) &&
           graph->threads != 0 && graph->threads <= durasim::threads_max && graph->erase_percent <= 100 &&
           graph->value_bytes % 8 == 0 && graph->value_bytes != 0 && graph->value_bytes <= value_bytes_max &&
           graph->ready <= graph->populate && graph->ready <= pool.data_bytes();
}

std::uint64_t stripe_bytes(const Graph* graph) { return (graph->vertices / graph->stripes + 1) * sizeof(Vertex); }

void GraphWorkload::dump(const Pool& pool, durasim::Dump& dump) {
    const Graph* graph = pool.root<Graph>();
    if (!durasim::can_be_block(pool, graph, sizeof(Graph))) return dump.note_damage();
    dump.add(durasim::root_object, graph->kind);
    dump.add(durasim::populated_object, graph->ready);
    if (!is_possible(graph, pool) || !durasim::can_be_block(pool, graph->progress, graph->threads * sizeof(Progress)) ||
        !durasim::can_be_block(pool, graph->stripe, graph->stripes * sizeof(Vertex*))) {
        return dump.note_damage();
    }
    for (std::uint64_t i = 0; i < graph->threads; ++i) dump.add(durasim::progress_object(i), graph->progress[i].finished);
    for (std::uint64_t i = 0; i < graph->stripes; ++i) {
        if (!durasim::can_be_block(pool, graph->stripe[i], stripe_bytes(graph))) return dump.note_damage();
    }
    const auto read = [](const auto& place) { return place; };
    std::uint64_t records_left = pool.data_bytes() / durasim::line_bytes;  // a walk of more links goes in a circle
    for (std::uint64_t v = 0; v < graph->vertices; ++v) {
        dump.add(vertex_object(v), version_of(graph->vertex(v), read));
        for (const Record* record = graph->vertex(v).first; record != nullptr; record = record->next) {
            if (!durasim::can_be_block(pool, record, sizeof(Record) + graph->value_bytes) || records_left-- == 0) {
                return dump.note_damage();
            }
            dump.add(record->end, version_of(record, graph->value_bytes / 8, read));
        }
    }
}

// The right content of the vertices, by replaying all operations.
struct Model {
    std::vector<std::uint64_t> changes;                         // of each vertex
    std::unordered_map<std::uint64_t, std::uint64_t> vertices;  // by the end of an edge

    explicit Model(const Graph& graph) : changes(graph.vertices) {
        const auto count = [&](std::uint64_t edge) {
            for (const std::uint64_t vertex : edge_of(graph.seed, edge, graph.vertices).vertex) ++changes[vertex];
        };
        for (std::uint64_t thread = 0; thread < graph.threads; ++thread) {
            Owner owner(graph, thread, graph.ready);
            for (const std::uint64_t number : owner.live()) count(durasim::operation_of(thread, number));
            for (std::uint64_t n = 0; n < graph.progress[thread].finished; ++n) {
                const Owner::Step step = owner.step(n);
                count(step.edge);
                owner.take(step);
            }
            for (const std::uint64_t number : owner.live()) {
                const std::uint64_t edge = durasim::operation_of(thread, number);
                const Edge about = edge_of(graph.seed, edge, graph.vertices);
                for (std::uint64_t which = 0; which < 2; ++which) vertices[end_of(edge, which)] = about.vertex[which];
            }
        }
    }
};

void check_vertex(const Graph* graph, std::uint64_t number, Model& model, Audit& audit) {
    const Vertex& vertex = graph->vertex(number);
    std::uint64_t degree = 0, weight = 0;
    for (const Record* record = vertex.first; record != nullptr; record = record->next) {
        if (!audit.claim(record, sizeof(Record) + graph->value_bytes)) DURASIM_VIOLATION("a record is reachable twice or not allocated");
        const auto found = model.vertices.find(record->end);
        if (found == model.vertices.end() || found->second != number) {
            DURASIM_VIOLATION("vertex %llu has an edge that should not be there", static_cast<Long>(number));
        }
        model.vertices.erase(found);
        const Edge about = edge_of(graph->seed, record->end / 2, graph->vertices);
        bool whole = record->neighbour == about.vertex[1 - record->end % 2] && record->weight == about.weight;
        for (std::uint64_t w = 0; whole && w < graph->value_bytes / 8; ++w) {
            whole = record->value()[w] == value_word(graph->seed, record->end, w);
        }
        if (!whole) DURASIM_VIOLATION("a record of vertex %llu is torn", static_cast<Long>(number));
        ++degree;
        weight += about.weight;
    }
    if (vertex.degree != degree || vertex.weight != weight || vertex.changes != model.changes[number]) {
        DURASIM_VIOLATION("vertex %llu counts %llu edges of weight %llu after %llu changes, but should count %llu, %llu and %llu",
                          static_cast<Long>(number), static_cast<Long>(vertex.degree), static_cast<Long>(vertex.weight),
                          static_cast<Long>(vertex.changes), static_cast<Long>(degree), static_cast<Long>(weight),
                          static_cast<Long>(model.changes[number]));
    }
}

std::uint64_t GraphWorkload::check(const Pool& pool) {
    Audit audit(pool);
    if (audit.problem() != nullptr) DURASIM_VIOLATION("%s", audit.problem());
    const Graph* graph = pool.root<Graph>();
    if (!audit.claim(graph, sizeof(Graph))) DURASIM_VIOLATION("the root object is not allocated");
    if (graph->kind != kind_of_root) DURASIM_VIOLATION("the root object is not a graph");
    if (!is_possible(graph, pool)) DURASIM_VIOLATION("the graph has impossible sizes");
    bool claimed = audit.claim(graph->stripe, graph->stripes * sizeof(Vertex*)) &&
                   audit.claim(graph->progress, graph->threads * sizeof(Progress));
    for (std::uint64_t i = 0; claimed && i < graph->stripes; ++i) claimed = audit.claim(graph->stripe[i], stripe_bytes(graph));
    if (!claimed) DURASIM_VIOLATION("what belongs to the root object is not allocated");

    // Each operation changes two vertices: this bounds how many there can have been, before they are replayed.
    std::uint64_t changes = 0, operations = graph->ready;
    for (std::uint64_t v = 0; v < graph->vertices; ++v) {
        if (graph->vertex(v).changes >> durasim::operation_bits != 0) {
            DURASIM_VIOLATION("a vertex counts an impossible number of changes");
        }
        changes += graph->vertex(v).changes;
    }
    for (std::uint64_t i = 0; i < graph->threads; ++i) {
        const std::uint64_t finished = graph->progress[i].finished;
        operations = finished > changes ? ~std::uint64_t{0} : operations + finished;
        if (operations > changes) break;
    }
    if (changes != 2 * operations) {
        DURASIM_VIOLATION("the vertices count %llu changes, but the threads %llu operations", static_cast<Long>(changes),
                          static_cast<Long>(operations));
    }
    if (operations != graph->ready && graph->ready != graph->populate) {
        DURASIM_VIOLATION("there were operations before all edges were there");
    }
    Model model(*graph);
    for (std::uint64_t v = 0; v < graph->vertices; ++v) check_vertex(graph, v, model, audit);
    if (!model.vertices.empty()) DURASIM_VIOLATION("%zu ends of edges are missing", model.vertices.size());
    if (audit.lines_leaked() != 0) DURASIM_VIOLATION("%llu lines are leaked", static_cast<Long>(audit.lines_leaked()));
    return operations;
}

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<GraphWorkload>(argc, argv); }
