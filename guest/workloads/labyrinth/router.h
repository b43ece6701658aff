// The router of a thread of labyrinth, in memory of its own: C. Y. Lee, "An Algorithm for Path Connections and Its
// Applications" (IRE Transactions on Electronic Computers, 1961), with a price for layers and bends as in STAMP.
//
// All memory is there before a transaction begins, and each search starts from what prepare() puts in: it can be repeated.
#ifndef DURASIM_WORKLOADS_LABYRINTH_ROUTER_H
#define DURASIM_WORKLOADS_LABYRINTH_ROUTER_H

#include <cstdint>
#include <vector>

namespace durasim::labyrinth {

// The points of a maze, numbered along the rows of one layer after the other.
struct Space {
    std::uint64_t width, height, layers;

    std::uint64_t points() const { return width * height * layers; }

    static constexpr unsigned directions = 6;

    // The neighbours of a point by their direction; `points()` where there is none. The last two are in other layers.
    struct Neighbours {
        std::uint64_t in[directions];
    };
    Neighbours neighbours(std::uint64_t point) const {
        const std::uint64_t layer = width * height, none = layer * layers;
        const std::uint64_t x = point % width, in_layer = point % layer;
        return {{x + 1 < width ? point + 1 : none, x > 0 ? point - 1 : none, in_layer + width < layer ? point + width : none,
                 in_layer >= width ? point - width : none, point + layer < none ? point + layer : none,
                 point >= layer ? point - layer : none}};
    }

    bool are_neighbours(std::uint64_t a, std::uint64_t b) const {
        for (const std::uint64_t next : neighbours(a).in) {
            if (next == b) return true;
        }
        return false;
    }

    // The new place of a point if all are moved, around the edges.
    std::uint64_t moved(std::uint64_t point, std::uint64_t by_x, std::uint64_t by_y, std::uint64_t by_z) const {
        const std::uint64_t x = (point % width + by_x) % width, y = (point / width + by_y) % height;
        return ((point / (width * height) + by_z) % layers * height + y) * width + x;
    }
};

class Router {
public:
    explicit Router(const Space& space) : space_(space), cell_(space.points()), waiting_(space.points()), path_(space.points()) {}

    // The private copy of a point.
    void prepare(std::uint64_t point, bool is_taken) { cell_[point] = is_taken ? taken : unseen; }

    // Whether there is a way from `source` to `target`; afterwards its points in between, from the target's side, are in path(0) to
    // path(length() - 1).
    bool connect(std::uint64_t source, std::uint64_t target) {
        length_ = 0;
        cell_[source] = 0;
        cell_[target] = unseen;
        if (!expand(source, target)) return false;
        trace(source, target);
        return true;
    }

    std::uint64_t length() const { return length_; }
    std::uint64_t path(std::uint64_t i) const { return path_[i]; }

private:
    // A cell holds twice the cost of the way from the source to it, and 1 more while it waits in the queue.
    static constexpr std::uint64_t taken = ~std::uint64_t{0}, unseen = taken - 1;
    static constexpr std::uint64_t step_cost = 1, layer_cost = 2, bend_cost = 1;

    // Looks at ever farther points, until the target is the next one. A point waits once at most, which bounds the queue.
    bool expand(std::uint64_t source, std::uint64_t target) {
        const std::uint64_t points = space_.points();
        std::uint64_t first = 0, count = 1;
        waiting_[0] = source;
        cell_[source] |= 1;
        while (count != 0) {
            const std::uint64_t at = waiting_[first];
            first = first + 1 == points ? 0 : first + 1;
            --count;
            cell_[at] &= ~std::uint64_t{1};
            if (at == target) return true;
            const Space::Neighbours neighbours = space_.neighbours(at);
            for (unsigned d = 0; d < Space::directions; ++d) {
                const std::uint64_t next = neighbours.in[d];
                if (next == points || cell_[next] == taken) continue;
                const std::uint64_t cost = cell_[at] + 2 * (d < 4 ? step_cost : layer_cost);
                if (cost >= (cell_[next] & ~std::uint64_t{1})) continue;
                if ((cell_[next] & 1) == 0) {
                    const std::uint64_t place = first + count;
                    waiting_[place < points ? place : place - points] = next;
                    ++count;
                }
                cell_[next] = cost | 1;
            }
        }
        return false;
    }

    // Goes back to ever cheaper points: that which gave a point its cost is cheaper, so there always is one.
    void trace(std::uint64_t source, std::uint64_t target) {
        std::uint64_t at = target;
        unsigned before = Space::directions;
        while (true) {
            std::uint64_t best = unseen, to = source;
            unsigned chosen = before;
            const Space::Neighbours neighbours = space_.neighbours(at);
            for (unsigned d = 0; d < Space::directions; ++d) {
                const std::uint64_t next = neighbours.in[d];
                if (next == space_.points() || cell_[next] >= unseen || cell_[next] >> 1 >= cell_[at] >> 1) continue;
                const std::uint64_t cost = (cell_[next] >> 1) + (d == before || before == Space::directions ? 0 : bend_cost);
                if (cost < best) best = cost, to = next, chosen = d;
            }
            if (to == source) return;
            path_[length_++] = to;
            at = to;
            before = chosen;
        }
    }

    Space space_;
    std::vector<std::uint64_t> cell_;
    std::vector<std::uint64_t> waiting_;
    std::vector<std::uint64_t> path_;
    std::uint64_t length_ = 0;
};

}  // namespace durasim::labyrinth

#endif
