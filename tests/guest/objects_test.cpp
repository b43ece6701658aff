// Tests of objects: `objects_test PATH CASE` runs one case on a fresh pool; a case that must end the program is judged by the
// caller. Compiled once per backend.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "durasim/objects.h"
#include "durasim/pool.h"

namespace {

using durasim::Array;
using durasim::object_runtime;
using durasim::Placement;
using durasim::Pool;
using durasim::Ref;
using durasim::Site;

#define REQUIRE(condition)                                                        \
    do {                                                                          \
        if (!(condition)) {                                                       \
            std::fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #condition); \
            std::_Exit(1);                                                        \
        }                                                                         \
    } while (0)

constexpr std::uint64_t heap_bytes = 1 << 20;

struct Node {
    static constexpr Placement placement = Placement::durable;
    static constexpr std::uint64_t references = 2;
    Ref<Node> left, right;
    std::uint64_t number;
};
using Words = Array<std::uint64_t, Placement::durable>;
using OrdinaryWords = Array<std::uint64_t, Placement::ordinary>;
Site node_sites(Placement::durable), word_sites(Placement::durable), ordinary_sites(Placement::ordinary);

template <class Operation>
Ref<Node> node(Operation& o, std::uint64_t number, Ref<Node> left, Ref<Node> right) {
    auto made = o.template make<Node>(node_sites);
    made.template set<&Node::left>(left);
    made.template set<&Node::right>(right);
    made.template set<&Node::number>(number);
    return made.finish();
}

// A closure with a cycle becomes durable, and the references that were taken before it moved refer to it still.
void closure() {
    object_runtime.operation([&](auto& o) {
        const auto leaf = node(o, 3, {}, {}), child = node(o, 2, leaf, leaf), root = node(o, 1, child, leaf);
        o.template set<&Node::right>(leaf, root);
        o.set_durable_root(0, root);
        const auto found = o.template durable_root<Node>(0);
        REQUIRE(o.same(found, root));
        REQUIRE(o.same(o.template get<&Node::right>(o.template get<&Node::right>(found)), root));
        o.template set<&Node::number>(leaf, 4);
        REQUIRE(o.template get<&Node::number>(o.template get<&Node::left>(child)) == 4);
    });
}

// What roots reach survives collections, what they do not reach makes room.
void collections() {
    constexpr std::uint64_t rounds = 200'000;
    for (std::uint64_t i = 0; i < rounds; ++i) {
        object_runtime.operation([&](auto& o) {
            const auto old = o.template durable_root<Node>(0);
            o.set_durable_root(0, node(o, i, i % 7 == 0 ? Ref<Node>() : old, {}));
        });
    }
    REQUIRE(object_runtime.collections() != 0);
    object_runtime.operation([&](auto& o) {
        std::uint64_t expected = rounds;
        for (auto at = o.template durable_root<Node>(0); at; at = o.template get<&Node::left>(at)) {
            REQUIRE(o.template get<&Node::number>(at) == --expected);
        }
        REQUIRE(expected % 7 == 0);
    });
}

// A region undoes nothing of what it has stored when it ends, and shows it before.
void region() {
    object_runtime.operation([&](auto& o) { o.set_durable_root(0, node(o, 1, {}, {})); });
    object_runtime.operation([&](auto& o) {
        const auto root = o.template durable_root<Node>(0);
        o.region([&] {
            o.template set<&Node::number>(root, 2);
            REQUIRE(o.template get<&Node::number>(root) == 2);
            o.template set<&Node::left>(root, node(o, 3, {}, {}));
        });
        REQUIRE(o.template get<&Node::number>(o.template get<&Node::left>(root)) == 3);
    });
}

void large_array(std::uint64_t words) {
    object_runtime.operation([&](auto& o) { o.set_durable_root(0, o.template make_array<Words>(word_sites, words).finish()); });
}

void full_heap(bool is_durable) {
    object_runtime.operation([&](auto& o) {
        for (;;) {
            if (is_durable) {
                o.set_durable_root(0, node(o, 0, o.template durable_root<Node>(0), {}));
            } else {
                (void)o.template make_array<OrdinaryWords>(ordinary_sites, 100).finish();
            }
        }
    });
}

void nested_region() {
    object_runtime.operation([&](auto& o) { o.region([&] { o.region([] {}); }); });
}

void store_before_region() {
    object_runtime.operation([&](auto& o) {
        o.set_durable_root(0, node(o, 1, {}, {}));
        o.region([] {});
    });
}

void operation_ends_in_region() {
    struct Leave {};
    object_runtime.operation([&](auto& o) {
        try {
            o.region([] { throw Leave(); });
        } catch (const Leave&) {
        }
    });
}

void unknown_root() {
    object_runtime.operation([&](auto& o) { o.set_durable_root(15, node(o, 1, {}, {})); });
}
void unknown_root_read() {
    object_runtime.operation([&](auto& o) { REQUIRE(!o.template volatile_root<Node>(15)); });
}

// An array stands where a node is expected.
void other_shape() {
    object_runtime.operation([&](auto& o) { o.set_durable_root(0, o.template make_array<Words>(word_sites, 9).finish()); });
    object_runtime.examine([&](auto& o) { (void)o.template get<&Node::number>(o.template durable_root<Node>(0)); });
}
void beyond_the_end() {
    object_runtime.operation([&](auto& o) { o.set_durable_root(0, o.template make_array<Words>(word_sites, 9).finish()); });
    object_runtime.examine([&](auto& o) {
        const auto array = o.template durable_root<Words>(0);
        REQUIRE(o.at(array, 8) == 0);
        (void)o.at(array, 9);
    });
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 64;
    Pool& pool = Pool::open(argv[1], 3 * heap_bytes, 4096);
    durasim::ObjectOptions options;
    options.volatile_heap_bytes = heap_bytes;
    object_runtime.attach(pool, options, 1);
    const struct {
        const char* name;
        void (*run)();
    } cases[] = {
        {"closure", closure},
        {"collections", collections},
        {"region", region},
        {"full-volatile-heap", [] { full_heap(false); }},
        {"full-persistent-heap", [] { full_heap(true); }},
        {"larger-than-heap", [] { large_array(heap_bytes); }},
        {"larger-than-possible", [] { large_array(std::uint64_t{1} << 24); }},
        {"nested-region", nested_region},
        {"store-before-region", store_before_region},
        {"operation-ends-in-region", operation_ends_in_region},
        {"unknown-root", unknown_root},
        {"unknown-root-read", unknown_root_read},
        {"other-shape", other_shape},
        {"beyond-the-end", beyond_the_end},
    };
    for (const auto& one : cases) {
        if (std::strcmp(one.name, argv[2]) != 0) continue;
        one.run();
        if (const char* problem = object_runtime.problem_in(pool)) {
            std::fprintf(stderr, "%s\n", problem);
            return 1;
        }
        std::printf("ok\n");
        return 0;
    }
    return 64;
}
