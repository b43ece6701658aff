// durasim-workload: ssca2 — kernel 1 of SSCA2 in STAMP: threads build the adjacency arrays of a directed multigraph
//
// The ssca2 of STAMP (Cao Minh, Chung, Kozyrakis, Olukotun: "STAMP: Stanford Transactional Applications for Multi-Processing",
// IISWC 2008, section III and Table IV). Its input for simulators, -s13 -i1.0 -u1.0 -l3 -p3, is --populate 8192 with all other
// arguments as they are; -l concerns other kernels. The graph is that of structures/clique_graph.h.
//
// Each thread has a part of the vertices and goes through the edges that leave them. If vertex i has edges to v, but v none
// to i, then a transaction puts i into the array of those that lead to v: it reads and counts up the in-degree of v, and
// writes one entry. An array has as many entries as the largest clique may have members; what does not fit goes into further
// arrays, which the transaction allocates. Two more transactions of each thread and graph gather the largest number of a
// vertex and the size of the outgoing lists.
//
// Deviations:
// - Populating makes the outgoing lists, one vertex in each transaction; STAMP's threads make them outside of transactions.
//   As there, parallel edges are one entry in these lists. Weights, which kernel 1 copies and nothing more, are missing.
// - A thread that has done its part builds the graph again, into fresh arrays, with the part of the next thread. Threads do
//   not wait for each other. So any number of operations is possible, and --ops decides how many graphs there are.
// - A further array begins with a link to the array before it (STAMP loses that one), so it has an entry less.
// - The transaction also counts the operations of its thread, on a line of the thread's own.
//
// The n-th operation of a thread depends on seed, thread and n alone; only the order within an array depends on the
// run. All transactions have one lock where the runtime does not isolate them; arenas belong to threads.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "structures/blocks.h"
#include "structures/clique_graph.h"
#include "workloads/harness.h"

namespace {

using durasim::Arguments;
using durasim::Audit;
using durasim::ImpliedEdge;
using durasim::ImpliedEdges;
using durasim::Long;
using durasim::Pool;
using durasim::Progress;
using durasim::Reader;
using durasim::Tx;

constexpr std::uint64_t kind_of_root = 0x3261637373;  // "ssca2"

// One graph under construction. The arrays follow: in-degrees, further arrays, and the entries.
struct alignas(64) Graph {
    Graph* next;
    std::uint64_t vertices_max;  // one more than the largest number of a vertex with an edge
    std::uint64_t list_size;     // of all outgoing lists
};

struct alignas(64) Root {
    std::uint64_t kind;
    std::uint64_t seed;
    std::uint64_t vertices;
    std::uint64_t ready;  // vertices whose outgoing edges are there
    std::uint32_t threads;
    std::uint8_t intercl_percent, unidirectional_percent, parallel_edges, unused;
    std::uint64_t edges;       // entries of the outgoing lists
    std::uint64_t* out_begin;  // of each vertex, and the end of the last
    std::uint64_t* out;        // see CliqueGraph::out
    Graph* first;
    Progress* progress;  // of each thread

    // Members of the largest clique, and entries of an array.
    std::uint64_t cluster() const { return durasim::CliqueGraphShape::clique_for(vertices); }
    durasim::CliqueGraphShape shape() const {
        return {seed ^ kind_of_root, vertices, cluster(), intercl_percent, unidirectional_percent, parallel_edges};
    }
    std::uint64_t graph_bytes() const { return sizeof(Graph) + (2 + cluster()) * vertices * 8; }
    std::uint64_t further_bytes() const { return cluster() * 8; }
};

std::uint64_t* in_degrees(Graph* graph) { return reinterpret_cast<std::uint64_t*>(graph + 1); }
std::uint64_t** further_arrays(Graph* graph, std::uint64_t vertices) {
    return reinterpret_cast<std::uint64_t**>(in_degrees(graph) + vertices);
}
std::uint64_t* entries_of(Graph* graph, std::uint64_t vertices, std::uint64_t cluster, std::uint64_t vertex) {
    return in_degrees(graph) + 2 * vertices + vertex * cluster;
}

// The number of graphs that `operations` of a thread begin, and the number of operations in the last one.
struct Place {
    std::uint64_t graph, operations;
};

Place place_after(const ImpliedEdges& input, std::uint64_t thread, std::uint64_t operations) {
    std::uint64_t graph = 0;
    while (operations > input.part(thread, graph).operations()) operations -= input.part(thread, graph++).operations();
    return {graph, operations};
}

// Further arrays of a vertex with this in-degree; each has a link and `cluster` - 1 entries.
std::uint64_t further_for(std::uint64_t degree, std::uint64_t cluster) {
    return degree <= cluster ? 0 : (degree - cluster + cluster - 2) / (cluster - 1);
}

// Objects: what leads from a vertex, what leads to it in one of the graphs, and what is gathered in a graph.
constexpr std::uint64_t out_object(std::uint64_t vertex) { return std::uint64_t{1} << 62 | vertex; }
constexpr std::uint64_t gathered_object(std::uint64_t graph) { return std::uint64_t{1} << 61 | graph; }
constexpr std::uint64_t in_object(std::uint64_t graph, std::uint64_t vertex) { return graph << 32 | vertex; }

template <class Read>
std::uint64_t out_version(const std::uint64_t* begin, const std::uint64_t* end, Read&& read) {
    durasim::Version version;
    version.take(static_cast<std::uint64_t>(end - begin));
    for (; begin < end; ++begin) version.take(read(*begin));
    return version.value();
}

template <class Read>
std::uint64_t gathered_version(const Graph* graph, Read&& read) {
    durasim::Version version;
    version.take(read(graph->next) != nullptr);
    version.take(read(graph->vertices_max));
    version.take(read(graph->list_size));
    return version.value();
}

// The entries of a vertex; those of further arrays come newest array first. False if no such array can be where a link leads.
template <class Read, class Take>
bool visit_entries(const Root& root, Graph* graph, std::uint64_t vertex, Read&& read, Take&& take) {
    const std::uint64_t cluster = root.cluster(), degree = read(in_degrees(graph)[vertex]);
    const std::uint64_t* entries = entries_of(graph, root.vertices, cluster, vertex);
    for (std::uint64_t i = 0; i < std::min(degree, cluster); ++i) take(read(entries[i]));
    const std::uint64_t* further = read(further_arrays(graph, root.vertices)[vertex]);
    for (std::uint64_t left = further_for(degree, cluster); left > 0; --left) {
        if (further == nullptr) return false;
        const std::uint64_t before = cluster + (left - 1) * (cluster - 1);
        for (std::uint64_t i = 0; i < std::min(degree - before, cluster - 1); ++i) take(read(further[1 + i]));
        further = reinterpret_cast<const std::uint64_t*>(read(further[0]));
    }
    return further == nullptr;
}

// The in-degree makes each version new.
template <class Read>
std::uint64_t in_version(const Root& root, Graph* graph, std::uint64_t vertex, Read&& read) {
    durasim::Version version;
    const std::uint64_t degree = read(in_degrees(graph)[vertex]);
    version.take(degree);
    visit_entries(root, graph, vertex, read, [&](std::uint64_t entry) { version.take(entry); });
    return degree == 0 ? 0 : version.value();
}

class Ssca2 {
public:
    static std::uint64_t arenas(const Arguments& arguments) { return arguments.threads; }

    static std::uint64_t pool_bytes(const Arguments& arguments) {
        const Root root = root_of(arguments);
        const ImpliedEdges input(root.shape(), root.threads);
        std::vector<std::uint64_t> degrees(root.vertices);
        for (std::uint64_t part = 0; part < root.threads; ++part) {
            for (const ImpliedEdge& implied : input.part(part, 0).implied) ++degrees[implied.to];
        }
        std::uint64_t graph_bytes = durasim::block_bytes(root.graph_bytes()), graphs = 0;
        for (const std::uint64_t degree : degrees) {
            graph_bytes += further_for(degree, root.cluster()) * durasim::block_bytes(root.further_bytes());
        }
        for (std::uint64_t thread = 0; thread < root.threads; ++thread) {
            graphs = std::max(graphs, place_after(input, thread, durasim::share_of(arguments.ops, root.threads, thread)).graph + 1);
        }
        const std::uint64_t shared = durasim::block_bytes(sizeof(Root)) + durasim::block_bytes((root.vertices + 1) * 8) +
                                     durasim::block_bytes(input.graph().edges() * 8) +
                                     durasim::block_bytes(root.threads * sizeof(Progress));
        // Any thread may be the first in each graph, and take all further arrays.
        return arenas(arguments) * (graphs * graph_bytes + shared + 16 * durasim::line_bytes);
    }

    Ssca2(Pool& pool, const Arguments& arguments) {
        const Root wanted = root_of(arguments);
        root_ = pool.root<Root>();
        if (root_ != nullptr && root_->kind != kind_of_root) {
            durasim::fail(durasim::exit_usage, "ssca2: the pool belongs to another workload");
        }
        input_ = std::make_unique<ImpliedEdges>(wanted.shape(), wanted.threads);
        if (root_ == nullptr) {
            make(pool, wanted);
            root_ = pool.root<Root>();
        }
        if (root_->seed != wanted.seed || root_->vertices != wanted.vertices || root_->threads != wanted.threads ||
            root_->intercl_percent != wanted.intercl_percent || root_->unidirectional_percent != wanted.unidirectional_percent ||
            root_->parallel_edges != wanted.parallel_edges) {
            durasim::fail(durasim::exit_usage,
                          "ssca2: the pool was made with --seed %llu --populate %llu --threads %u --intercl-percent %u "
                          "--unidirectional-percent %u --parallel-edges %u; use these",
                          static_cast<Long>(root_->seed), static_cast<Long>(root_->vertices), root_->threads, root_->intercl_percent,
                          root_->unidirectional_percent, root_->parallel_edges);
        }
        copy_ = *root_;
        for (std::uint64_t i = 0; i < copy_.threads; ++i) finished_.push_back(copy_.progress[i].finished);
    }

    std::uint64_t populated() const { return root_->ready; }

    struct Thread {
        std::uint64_t number;
        std::uint64_t finished;  // operations
        std::uint64_t graph_number;
        Graph* graph;
        std::uint64_t step;            // operations in this graph
        std::uint64_t vertex, at, end;  // the edge to look at next: its vertex, and its place in the outgoing lists
    };

    Thread enter(std::uint64_t number) const {
        const std::uint64_t finished = finished_[number];
        const Place place = place_after(*input_, number, finished);
        Thread thread{number, finished, place.graph, copy_.first, place.operations, 0, 0, 0};
        for (std::uint64_t i = 0; i < place.graph; ++i) thread.graph = thread.graph->next;
        begin_part(thread);
        for (std::uint64_t i = 2; i < place.operations; ++i) next_implied(thread);
        return thread;
    }
    void leave(const Thread& thread) { finished_[thread.number] = thread.finished; }

    void populate_one(Thread&) {
        durasim::tx([&](Tx& t) {
            const std::uint64_t vertex = t.read(root_->ready), begin = t.read(copy_.out_begin[vertex]);
            const std::vector<std::uint64_t>& out = input_->graph().out(vertex);
            for (std::uint64_t i = 0; i < out.size(); ++i) t.write(copy_.out[begin + i], out[i]);
            t.write(copy_.out_begin[vertex + 1], begin + out.size());
            zero(t, vertex);
            t.write(root_->ready, vertex + 1);
            if constexpr (durasim::has_history) {
                const std::uint64_t* list = copy_.out + begin;
                durasim::report_change(out_object(vertex), 0, out_version(list, list + out.size(), Reader{t}));
                durasim::report_change(durasim::populated_object, vertex, vertex + 1);
            }
        });
    }

    void operation(Thread& thread) {
        if (thread.step < 2) {
            gather(thread);
        } else if (const ImpliedEdge implied = next_implied(thread); implied.from != implied.to) {
            put_in(thread, implied);
        } else {
            begin_graph(thread);
        }
        ++thread.step;
        ++thread.finished;
    }

    void compare_with_model() const {
        // The check has compared all arrays with what the counts say; here remains whether these are right.
        for (std::uint64_t i = 0; i < finished_.size(); ++i) {
            if (copy_.progress[i].finished != finished_[i]) {
                DURASIM_VIOLATION("thread %llu finished %llu operations, but the pool says %llu", static_cast<Long>(i),
                                  static_cast<Long>(finished_[i]), static_cast<Long>(copy_.progress[i].finished));
            }
        }
    }

    void print_result() const {
        std::uint64_t graphs = 0, entries = 0;
        for (Graph* graph = copy_.first; graph != nullptr; graph = graph->next, ++graphs) {
            for (std::uint64_t v = 0; v < copy_.vertices; ++v) entries += in_degrees(graph)[v];
        }
        std::printf("vertices=%llu edges=%llu graphs=%llu implied=%llu", static_cast<Long>(copy_.vertices), static_cast<Long>(copy_.edges),
                    static_cast<Long>(graphs), static_cast<Long>(entries));
    }

    static std::uint64_t check(const Pool& pool);
    static void dump(const Pool& pool, durasim::Dump& dump);

private:
    static Root root_of(const Arguments& arguments) {
        if (arguments.populate < 2 || arguments.populate > std::uint64_t{1} << 28) {
            durasim::fail(durasim::exit_usage, "ssca2: --populate, the number of vertices, has to be from 2 to 268435456");
        }
        Root root{};
        root.kind = kind_of_root;
        root.seed = arguments.seed;
        root.vertices = arguments.populate;
        root.threads = static_cast<std::uint32_t>(arguments.threads);
        root.intercl_percent = static_cast<std::uint8_t>(arguments.intercl_percent);
        root.unidirectional_percent = static_cast<std::uint8_t>(arguments.unidirectional_percent);
        root.parallel_edges = static_cast<std::uint8_t>(arguments.parallel_edges);
        return root;
    }

    // Memory that was never given out before is zero, and so are the arrays of a graph without edges.
    void make(Pool& pool, const Root& wanted) {
        durasim::tx([&](Tx& t) {
            auto* root = static_cast<Root*>(t.allocate(sizeof(Root)));
            Root filled = wanted;
            filled.edges = input_->graph().edges();
            filled.out_begin = static_cast<std::uint64_t*>(t.allocate((wanted.vertices + 1) * 8));
            filled.out = static_cast<std::uint64_t*>(t.allocate(std::max<std::uint64_t>(1, filled.edges) * 8));
            filled.first = static_cast<Graph*>(t.allocate(wanted.graph_bytes()));
            filled.progress = static_cast<Progress*>(t.allocate(wanted.threads * sizeof(Progress)));
            t.write_words(root, &filled, sizeof filled);
            pool.set_root(t, root);
            if constexpr (durasim::has_history) {
                durasim::report_change(durasim::root_object, 0, kind_of_root);
                durasim::report_change(gathered_object(0), 0, gathered_version(filled.first, Reader{t}));
            }
        });
    }

    // Writes the zeros that are there, so that the arrays of the first graph are in pages that were touched: STAMP's threads fill
    // theirs with zeros before they begin with transactions.
    void zero(Tx& t, std::uint64_t vertex) {
        const std::uint64_t cluster = copy_.cluster();
        t.write(in_degrees(copy_.first)[vertex], 0);
        t.write(further_arrays(copy_.first, copy_.vertices)[vertex], nullptr);
        for (std::uint64_t i = 0; i < cluster; ++i) t.write(entries_of(copy_.first, copy_.vertices, cluster, vertex)[i], 0);
    }

    // The outgoing lists do not change any more: they are read as STAMP reads them, outside of transactions.
    void begin_part(Thread& thread) const {
        const std::uint64_t part = (thread.number + thread.graph_number) % copy_.threads;
        thread.vertex = durasim::share_before(copy_.vertices, copy_.threads, part);
        thread.end = thread.vertex + durasim::share_of(copy_.vertices, copy_.threads, part);
        thread.at = copy_.out_begin[thread.vertex];
    }

    // The next edge of the thread's part that leads to a vertex from which none leads back. One from 0 to 0 if there is none.
    ImpliedEdge next_implied(Thread& thread) const {
        for (; thread.vertex < thread.end; ++thread.vertex) {
            while (thread.at < copy_.out_begin[thread.vertex + 1]) {
                const std::uint64_t to = durasim::CliqueGraph::end_of(copy_.out[thread.at++]);
                std::uint64_t back = copy_.out_begin[to];
                const std::uint64_t end = copy_.out_begin[to + 1];
                while (back < end && durasim::CliqueGraph::end_of(copy_.out[back]) != thread.vertex) ++back;
                if (back == end) return {thread.vertex, to};
            }
        }
        return {0, 0};
    }

    // The first operation in the next graph; the first thread there makes its arrays.
    void begin_graph(Thread& thread) {
        const std::lock_guard held(lock_);
        Graph* before = thread.graph;
        Graph* graph = nullptr;
        durasim::tx([&](Tx& t) {
            [[maybe_unused]] std::uint64_t found = 0, found_before = 0;
            if constexpr (durasim::has_history) found_before = gathered_version(before, Reader{t});
            graph = t.read(before->next);
            if (graph == nullptr) {
                graph = static_cast<Graph*>(t.allocate(copy_.graph_bytes(), thread.number));
                t.write(before->next, graph);
            } else if constexpr (durasim::has_history) {
                found = gathered_version(graph, Reader{t});
            }
            take_maximum(t, graph, thread.number, thread.graph_number + 1);
            count(t, thread);
            if constexpr (durasim::has_history) {
                durasim::report_change(gathered_object(thread.graph_number), found_before, gathered_version(before, Reader{t}));
                durasim::report_change(gathered_object(thread.graph_number + 1), found, gathered_version(graph, Reader{t}));
            }
        });
        thread.graph = graph;
        ++thread.graph_number;
        thread.step = 0;
        begin_part(thread);
    }

    void gather(Thread& thread) {
        const std::lock_guard held(lock_);
        durasim::tx([&](Tx& t) {
            [[maybe_unused]] std::uint64_t found = 0;
            if constexpr (durasim::has_history) found = gathered_version(thread.graph, Reader{t});
            if (thread.step == 0) {
                take_maximum(t, thread.graph, thread.number, thread.graph_number);
            } else {
                const std::uint64_t size = t.read(thread.graph->list_size);
                t.write(thread.graph->list_size, size + input_->part(thread.number, thread.graph_number).list_size);
            }
            count(t, thread);
            if constexpr (durasim::has_history) {
                durasim::report_change(gathered_object(thread.graph_number), found, gathered_version(thread.graph, Reader{t}));
            }
        });
    }

    void take_maximum(Tx& t, Graph* graph, std::uint64_t thread, std::uint64_t graph_number) {
        const std::uint64_t own = input_->part(thread, graph_number).vertices_max;
        if (t.read(graph->vertices_max) < own) t.write(graph->vertices_max, own);
    }

    void put_in(Thread& thread, const ImpliedEdge& implied) {
        const std::uint64_t cluster = copy_.cluster(), vertices = copy_.vertices;
        Graph* graph = thread.graph;
        const std::lock_guard held(lock_);
        durasim::tx([&](Tx& t) {
            [[maybe_unused]] std::uint64_t found = 0;
            if constexpr (durasim::has_history) found = in_version(copy_, graph, implied.to, Reader{t});
            std::uint64_t& in_degree = in_degrees(graph)[implied.to];
            const std::uint64_t degree = t.read(in_degree);
            t.write(in_degree, degree + 1);
            if (degree < cluster) {
                t.write(entries_of(graph, vertices, cluster, implied.to)[degree], implied.from);
            } else {
                std::uint64_t*& last = further_arrays(graph, vertices)[implied.to];
                const std::uint64_t place = (degree - cluster) % (cluster - 1);
                std::uint64_t* further = t.read(last);
                if (place == 0) {
                    auto* fresh = static_cast<std::uint64_t*>(t.allocate(copy_.further_bytes(), thread.number));
                    t.write(fresh[0], reinterpret_cast<std::uint64_t>(further));
                    t.write(last, fresh);
                    further = fresh;
                }
                t.write(further[1 + place], implied.from);
            }
            count(t, thread);
            if constexpr (durasim::has_history) {
                const std::uint64_t left = in_version(copy_, graph, implied.to, Reader{t});
                durasim::report_change(in_object(thread.graph_number, implied.to), found, left);
            }
        });
    }

    void count(Tx& t, const Thread& thread) {
        std::uint64_t& finished = copy_.progress[thread.number].finished;
        if constexpr (durasim::has_history) {
            durasim::report_change(durasim::progress_object(thread.number), t.read(finished), thread.finished + 1);
        }
        t.write(finished, thread.finished + 1);
    }

    Root* root_ = nullptr;
    Root copy_{};  // what does not change
    std::unique_ptr<ImpliedEdges> input_;
    durasim::TxLock lock_;
    std::vector<std::uint64_t> finished_;  // by each thread: what the pool must hold
};

// Whether the root object is one that its parts can be looked for by.
bool is_possible(const Root* root, const Pool& pool) {
    const std::uint64_t words = pool.data_bytes() / 8;
    return root->threads != 0 && root->threads <= durasim::threads_max && root->threads == pool.arenas() && root->vertices >= 2 &&
           root->vertices <= words && root->edges <= words && root->ready <= root->vertices && root->intercl_percent <= 100 &&
           root->unidirectional_percent <= 100 && root->parallel_edges != 0;
}

void Ssca2::dump(const Pool& pool, durasim::Dump& dump) {
    const Root* root = pool.root<Root>();
    if (!durasim::can_be_block(pool, root, sizeof(Root))) return dump.note_damage();
    dump.add(durasim::root_object, root->kind);
    dump.add(durasim::populated_object, root->ready);
    if (!is_possible(root, pool) || !durasim::can_be_block(pool, root->out_begin, (root->vertices + 1) * 8) ||
        !durasim::can_be_block(pool, root->out, root->edges * 8) ||
        !durasim::can_be_block(pool, root->progress, root->threads * sizeof(Progress))) {
        return dump.note_damage();
    }
    const auto read = [](const auto& word) { return word; };
    for (std::uint64_t i = 0; i < root->threads; ++i) dump.add(durasim::progress_object(i), root->progress[i].finished);
    for (std::uint64_t v = 0; v < root->ready; ++v) {
        const std::uint64_t begin = root->out_begin[v], end = root->out_begin[v + 1];
        if (begin > end || end > root->edges) return dump.note_damage();
        dump.add(out_object(v), out_version(root->out + begin, root->out + end, read));
    }
    std::uint64_t number = 0, left = pool.data_bytes() / durasim::line_bytes;  // a walk of more links goes in a circle
    for (Graph* graph = root->first; graph != nullptr; graph = graph->next, ++number) {
        if (!durasim::can_be_block(pool, graph, root->graph_bytes()) || left-- == 0) return dump.note_damage();
        dump.add(gathered_object(number), gathered_version(graph, read));
        for (std::uint64_t v = 0; v < root->vertices; ++v) {
            const std::uint64_t degree = in_degrees(graph)[v];
            std::uint64_t arrays = degree > root->vertices ? ~std::uint64_t{0} : further_for(degree, root->cluster());
            const std::uint64_t* further = further_arrays(graph, root->vertices)[v];
            for (; arrays > 0 && durasim::can_be_block(pool, further, root->further_bytes()); --arrays) {
                further = reinterpret_cast<const std::uint64_t*>(further[0]);
            }
            if (arrays > 0) return dump.note_damage();
            dump.add(in_object(number, v), in_version(*root, graph, v, read));
        }
    }
}

// The content that one graph must have after this many operations of each thread there.
void check_graph(const Root& root, Graph* graph, std::uint64_t number, const ImpliedEdges& input,
                 const std::vector<std::uint64_t>& operations, Audit& audit) {
    std::vector<std::vector<std::pair<std::uint64_t, std::uint64_t>>> expected(root.vertices);  // by vertex: from where, by which thread
    std::uint64_t vertices_max = 0, list_size = 0;
    for (std::uint64_t thread = 0; thread < root.threads; ++thread) {
        const ImpliedEdges::Part& part = input.part(thread, number);
        if (operations[thread] > 0) vertices_max = std::max(vertices_max, part.vertices_max);
        if (operations[thread] > 1) list_size += part.list_size;
        for (std::uint64_t i = 2; i < operations[thread]; ++i) {
            expected[part.implied[i - 2].to].emplace_back(part.implied[i - 2].from, thread);
        }
    }
    if (graph->vertices_max != vertices_max || graph->list_size != list_size) {
        DURASIM_VIOLATION("graph %llu has gathered other numbers than its threads had", static_cast<Long>(number));
    }
    const auto read = [](const auto& word) { return word; };
    for (std::uint64_t v = 0; v < root.vertices; ++v) {
        const std::uint64_t degree = in_degrees(graph)[v], arrays = further_for(expected[v].size(), root.cluster());
        if (degree != expected[v].size()) {
            DURASIM_VIOLATION("vertex %llu of graph %llu counts %llu edges that lead there, not %zu", static_cast<Long>(v),
                              static_cast<Long>(number), static_cast<Long>(degree), expected[v].size());
        }
        const std::uint64_t* further = further_arrays(graph, root.vertices)[v];
        for (std::uint64_t i = 0; i < arrays; ++i) {
            if (!audit.claim(further, root.further_bytes())) DURASIM_VIOLATION("a further array is reachable twice or not allocated");
            further = reinterpret_cast<const std::uint64_t*>(further[0]);
        }
        std::vector<std::uint64_t> found;
        if (!visit_entries(root, graph, v, read, [&](std::uint64_t entry) { found.push_back(entry); })) {
            DURASIM_VIOLATION("vertex %llu of graph %llu has a wrong number of arrays", static_cast<Long>(v), static_cast<Long>(number));
        }
        // The first array, then the others from the newest to the oldest: put the oldest in front.
        const std::uint64_t cluster = root.cluster();
        for (std::uint64_t i = 0; i + 1 < arrays; ++i) {
            const auto oldest = found.end() - static_cast<std::int64_t>(cluster - 1);
            std::rotate(found.begin() + static_cast<std::int64_t>(cluster + i * (cluster - 1)), oldest, found.end());
        }
        // Threads take turns as it happens, but each puts its own in in order: its vertices rise.
        std::sort(expected[v].begin(), expected[v].end());
        std::vector<std::uint64_t> last(root.threads);
        std::vector<bool> taken(expected[v].size());
        for (const std::uint64_t entry : found) {
            const auto at = std::lower_bound(expected[v].begin(), expected[v].end(), std::pair<std::uint64_t, std::uint64_t>(entry, 0));
            const auto place = static_cast<std::uint64_t>(at - expected[v].begin());
            if (at == expected[v].end() || at->first != entry || taken[place] || last[at->second] > entry) {
                DURASIM_VIOLATION("vertex %llu of graph %llu has an entry that should not be there", static_cast<Long>(v),
                                  static_cast<Long>(number));
            }
            taken[place] = true;
            last[at->second] = entry;
        }
        const std::uint64_t* entries = entries_of(graph, root.vertices, cluster, v);
        for (std::uint64_t i = degree; i < cluster; ++i) {
            if (entries[i] != 0) DURASIM_VIOLATION("vertex %llu has an entry that it does not count", static_cast<Long>(v));
        }
    }
}

std::uint64_t Ssca2::check(const Pool& pool) {
    Audit audit(pool);
    if (audit.problem() != nullptr) DURASIM_VIOLATION("%s", audit.problem());
    const Root* root = pool.root<Root>();
    if (!audit.claim(root, sizeof(Root))) DURASIM_VIOLATION("the root object is not allocated");
    if (root->kind != kind_of_root) DURASIM_VIOLATION("the root object is not a graph");
    if (!is_possible(root, pool)) DURASIM_VIOLATION("the graph has impossible sizes");
    if (!audit.claim(root->out_begin, (root->vertices + 1) * 8) || !audit.claim(root->out, std::max<std::uint64_t>(1, root->edges) * 8) ||
        !audit.claim(root->progress, root->threads * sizeof(Progress))) {
        DURASIM_VIOLATION("what belongs to the root object is not allocated");
    }
    std::vector<Graph*> graphs;
    for (Graph* graph = root->first; graph != nullptr; graph = graph->next) {
        if (!audit.claim(graph, root->graph_bytes())) DURASIM_VIOLATION("a graph is reachable twice or not allocated");
        graphs.push_back(graph);
    }
    const ImpliedEdges input(root->shape(), root->threads);
    if (input.graph().edges() != root->edges) DURASIM_VIOLATION("the graph has an impossible number of edges");
    std::uint64_t end = 0;
    for (std::uint64_t v = 0; v < root->ready; ++v) {
        const std::vector<std::uint64_t>& out = input.graph().out(v);
        const bool whole = root->out_begin[v] == end && root->out_begin[v + 1] == end + out.size() &&
                           std::equal(out.begin(), out.end(), root->out + end);
        if (!whole) DURASIM_VIOLATION("the edges that leave vertex %llu are not what populating wrote", static_cast<Long>(v));
        end += out.size();
    }
    if (!durasim::is_untouched(root->out_begin + root->ready + 1, (root->vertices - root->ready) * 8) ||
        !durasim::is_untouched(root->out + end, (root->edges - end) * 8)) {
        DURASIM_VIOLATION("the edges of a vertex that populating has not reached are not empty");
    }

    // The operations that each thread has finished in each graph.
    std::vector<std::vector<std::uint64_t>> operations(graphs.size(), std::vector<std::uint64_t>(root->threads));
    std::uint64_t sum = 0;
    for (std::uint64_t thread = 0; thread < root->threads; ++thread) {
        std::uint64_t left = root->progress[thread].finished;
        sum += left;
        for (std::uint64_t k = 0; k < graphs.size(); ++k) {
            operations[k][thread] = std::min(left, input.part(thread, k).operations());
            left -= operations[k][thread];
        }
        if (left != 0) DURASIM_VIOLATION("thread %llu has finished operations in graphs that are not there", static_cast<Long>(thread));
    }
    if (sum != 0 && root->ready != root->vertices) DURASIM_VIOLATION("there were operations before all edges were there");
    for (std::uint64_t k = 0; k < graphs.size(); ++k) {
        const bool begun = std::any_of(operations[k].begin(), operations[k].end(), [](std::uint64_t n) { return n != 0; });
        if (k != 0 && !begun) DURASIM_VIOLATION("there is a graph that no thread has begun");
        check_graph(*root, graphs[k], k, input, operations[k], audit);
    }
    if (audit.lines_leaked() != 0) DURASIM_VIOLATION("%llu lines are leaked", static_cast<Long>(audit.lines_leaked()));
    return root->ready + sum;
}

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<Ssca2>(argc, argv); }
