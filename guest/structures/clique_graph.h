// The directed multigraph of the benchmark SSCA2 (D. A. Bader, K. Madduri: "Design and Implementation of the HPCS Graph Analysis
// Benchmark on Symmetric Multiprocessors", HiPC 2005), in ordinary memory.
//
// Vertices form cliques of 1 to `clique_max` members. Each two members have edges, in one direction or in both. A vertex has an
// edge to a clique at distance 1, 2, 4 and so on, to either side, with a chance that halves at each step. The numbers of the
// vertices are shuffled. An edge may have parallel ones. Kernel 1 adds to each vertex what leads there (ImpliedEdges).
#ifndef DURASIM_STRUCTURES_CLIQUE_GRAPH_H
#define DURASIM_STRUCTURES_CLIQUE_GRAPH_H

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "durasim/random.h"
#include "workloads/harness.h"

namespace durasim {

struct CliqueGraphShape {
    std::uint64_t seed;
    std::uint64_t vertices;
    std::uint64_t clique_max;
    std::uint64_t intercl_percent;         // chance of an edge to the next clique
    std::uint64_t unidirectional_percent;  // of two members: that they have edges in one direction only
    std::uint64_t parallel_edges;          // at most

    // The cube root of the number of vertices, in powers of two, as SSCA2 has it.
    static std::uint64_t clique_for(std::uint64_t vertices) {
        return std::max<std::uint64_t>(2, std::uint64_t{1} << (std::bit_width(vertices) - 1) / 3);
    }
};

class CliqueGraph {
public:
    explicit CliqueGraph(const CliqueGraphShape& shape) : out_(shape.vertices) {
        Random random(mix(shape.seed));
        const std::vector<std::uint64_t> names = shuffled(shape.vertices, random);
        // The start of each clique, and the end of the last.
        std::vector<std::uint64_t> begins;
        for (std::uint64_t begin = 0; begin < shape.vertices; begin += 1 + random.below(shape.clique_max)) begins.push_back(begin);
        begins.push_back(shape.vertices);
        const auto add = [&](std::uint64_t from, std::uint64_t to) {
            if (from != to) out_[names[from]].push_back(names[to] | (1 + random.below(shape.parallel_edges)) << copies_shift);
        };
        const std::uint64_t cliques = begins.size() - 1;
        for (std::uint64_t clique = 0; clique < cliques; ++clique) {
            for (std::uint64_t v = begins[clique]; v < begins[clique + 1]; ++v) {
                for (std::uint64_t w = v + 1; w < begins[clique + 1]; ++w) {
                    const bool single = random.below(100) < shape.unidirectional_percent, forward = random.below(2) == 0;
                    if (!single || forward) add(v, w);
                    if (!single || !forward) add(w, v);
                }
                for (std::uint64_t distance = 1; distance < cliques; distance *= 2) {
                    for (const std::uint64_t other : {(clique + distance) % cliques, (clique + cliques - distance) % cliques}) {
                        if (random.below(100 * distance) >= shape.intercl_percent) continue;
                        add(v, begins[other] + random.below(begins[other + 1] - begins[other]));
                    }
                }
            }
        }
        // Edges between the same two vertices that were drawn apart become one entry, the first.
        for (std::vector<std::uint64_t>& list : out_) {
            std::stable_sort(list.begin(), list.end(), [](std::uint64_t a, std::uint64_t b) { return end_of(a) < end_of(b); });
            const auto same = [](std::uint64_t a, std::uint64_t b) { return end_of(a) == end_of(b); };
            list.erase(std::unique(list.begin(), list.end(), same), list.end());
            edges_ += list.size();
        }
    }

    // The edges that leave a vertex, parallel ones as one entry: where it ends, and how many are parallel.
    const std::vector<std::uint64_t>& out(std::uint64_t vertex) const { return out_[vertex]; }
    static std::uint64_t end_of(std::uint64_t entry) { return entry & ((std::uint64_t{1} << copies_shift) - 1); }

    // Entries of all vertices.
    std::uint64_t edges() const { return edges_; }

private:
    static constexpr unsigned copies_shift = 32;

    static std::vector<std::uint64_t> shuffled(std::uint64_t count, Random& random) {
        std::vector<std::uint64_t> numbers(count);
        std::iota(numbers.begin(), numbers.end(), 0);
        for (std::uint64_t i = count; i-- > 1;) std::swap(numbers[i], numbers[random.below(i + 1)]);
        return numbers;
    }

    std::vector<std::vector<std::uint64_t>> out_;
    std::uint64_t edges_ = 0;
};

struct ImpliedEdge {
    std::uint64_t from, to;
};

// The edges that lead to vertices from which none leads back, by the threads that find them: each has a part of the vertices.
class ImpliedEdges {
public:
    ImpliedEdges(const CliqueGraphShape& shape, std::uint64_t threads) : graph_(shape), parts_(threads) {
        for (std::uint64_t number = 0; number < threads; ++number) {
            const std::uint64_t first = share_before(shape.vertices, threads, number);
            for (std::uint64_t v = first; v < first + share_of(shape.vertices, threads, number); ++v) take_in(parts_[number], v);
        }
    }

    const CliqueGraph& graph() const { return graph_; }

    struct Part {
        std::uint64_t vertices_max = 0;    // one more than the largest number of a vertex with an edge
        std::uint64_t list_size = 0;       // entries of its vertices
        std::vector<ImpliedEdge> implied;  // in the order in which the thread finds them

        std::uint64_t operations() const { return 2 + implied.size(); }
    };
    // The part of a thread when the graph is built for the `round`-th time: the parts go round.
    const Part& part(std::uint64_t thread, std::uint64_t round) const { return parts_[(thread + round) % parts_.size()]; }

private:
    void take_in(Part& part, std::uint64_t v) {
        part.list_size += graph_.out(v).size();
        if (!graph_.out(v).empty()) part.vertices_max = v + 1;
        for (const std::uint64_t entry : graph_.out(v)) {
            const std::uint64_t to = CliqueGraph::end_of(entry);
            const std::vector<std::uint64_t>& back = graph_.out(to);
            const auto leads_back = [v](std::uint64_t other) { return CliqueGraph::end_of(other) == v; };
            if (std::none_of(back.begin(), back.end(), leads_back)) part.implied.push_back({v, to});
        }
    }

    CliqueGraph graph_;
    std::vector<Part> parts_;
};

}  // namespace durasim

#endif
