// The classic shapes: threads with a few accesses each, run many times from the same start, and which results came out.
//
//     shapes [ITERATIONS [SEED [NAME]...]]    a line for each shape: SB: 0,0=12 0,1=480 1,0=508 forbidden=0 observed=12
//     shapes --list                           a line for each shape: its name, its program, what TSO allows, what is relaxed
//
// `forbidden` counts results that total store order does not allow, `observed` those that it allows and sequential
// consistency does not. Names and shapes are those of Alglave, Maranget and Tautschnig, "Herding Cats" (TOPLAS 2014).
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "litmus.h"

namespace {

using litmus::Cell;
using litmus::fence;
using litmus::load;
using litmus::store;

// What the threads of a shape work on. Everything starts as 0.
struct Cells {
    Cell x, y;
    Cell r[4];
};

struct Shape {
    const char* name;
    // Accesses of the threads, between |, and behind > what makes up the result: registers, or cells at the end.
    const char* program;
    // Results that total store order allows.
    const char* allowed;
    // Those of them that sequential consistency does not allow.
    const char* relaxed;
    std::vector<void (*)(Cells&)> bodies;
};

template <bool fenced>
void between() {
    if constexpr (fenced) fence();
}

// Every shape with two accesses in some thread, without and with fences between them.
template <bool fenced>
std::vector<Shape> shapes() {
    constexpr const char* f = fenced ? "+fences" : "";
    static std::vector<std::string> texts;
    auto text = [](std::string program) {
        const std::string fence_text = fenced ? " F" : "";
        for (std::size_t at; (at = program.find(" ~")) != std::string::npos;) program.replace(at, 2, fence_text);
        texts.push_back(program);
        return texts.back().c_str();
    };
    texts.reserve(64);
    auto name = [](const char* base) {
        texts.push_back(std::string(base) + f);
        return texts.back().c_str();
    };
    return {
        {name("SB"), text("x=1 ~ r0=y | y=1 ~ r1=x > r0 r1"), fenced ? "0,1 1,0 1,1" : "0,0 0,1 1,0 1,1", fenced ? "" : "0,0",
         {[](Cells& c) { store(c.x, 1), between<fenced>(), c.r[0].word = load(c.y); },
          [](Cells& c) { store(c.y, 1), between<fenced>(), c.r[1].word = load(c.x); }}},
        {name("MP"), text("x=1 ~ y=1 | r0=y ~ r1=x > r0 r1"), "0,0 0,1 1,1", "",
         {[](Cells& c) { store(c.x, 1), between<fenced>(), store(c.y, 1); },
          [](Cells& c) {
              const std::uint64_t r0 = load(c.y);
              between<fenced>();
              c.r[1].word = load(c.x), c.r[0].word = r0;
          }}},
        {name("LB"), text("r0=x ~ y=1 | r1=y ~ x=1 > r0 r1"), "0,0 0,1 1,0", "",
         {[](Cells& c) {
              const std::uint64_t r0 = load(c.x);
              between<fenced>();
              store(c.y, 1), c.r[0].word = r0;
          },
          [](Cells& c) {
              const std::uint64_t r1 = load(c.y);
              between<fenced>();
              store(c.x, 1), c.r[1].word = r1;
          }}},
        {name("R"), text("x=1 ~ y=1 | y=2 ~ r0=x > r0 y"), fenced ? "0,1 1,1 1,2" : "0,1 0,2 1,1 1,2", fenced ? "" : "0,2",
         {[](Cells& c) { store(c.x, 1), between<fenced>(), store(c.y, 1); },
          [](Cells& c) { store(c.y, 2), between<fenced>(), c.r[0].word = load(c.x); }}},
        {name("S"), text("x=2 ~ y=1 | r0=y ~ x=1 > r0 x"), "0,1 0,2 1,1", "",
         {[](Cells& c) { store(c.x, 2), between<fenced>(), store(c.y, 1); },
          [](Cells& c) {
              const std::uint64_t r0 = load(c.y);
              between<fenced>();
              store(c.x, 1), c.r[0].word = r0;
          }}},
        {name("2+2W"), text("x=1 ~ y=2 | y=1 ~ x=2 > x y"), "1,2 2,1 2,2", "",
         {[](Cells& c) { store(c.x, 1), between<fenced>(), store(c.y, 2); },
          [](Cells& c) { store(c.y, 1), between<fenced>(), store(c.x, 2); }}},
        {name("WRC"), text("x=1 | r0=x ~ y=1 | r1=y ~ r2=x > r0 r1 r2"), "0,0,0 0,0,1 0,1,0 0,1,1 1,0,0 1,0,1 1,1,1", "",
         {[](Cells& c) { store(c.x, 1); },
          [](Cells& c) {
              const std::uint64_t r0 = load(c.x);
              between<fenced>();
              store(c.y, 1), c.r[0].word = r0;
          },
          [](Cells& c) {
              const std::uint64_t r1 = load(c.y);
              between<fenced>();
              c.r[2].word = load(c.x), c.r[1].word = r1;
          }}},
        {name("IRIW"), text("x=1 | y=1 | r0=x ~ r1=y | r2=y ~ r3=x > r0 r1 r2 r3"),
         "0,0,0,0 0,0,0,1 0,0,1,0 0,0,1,1 0,1,0,0 0,1,0,1 0,1,1,0 0,1,1,1 1,0,0,0 1,0,0,1 1,0,1,1 1,1,0,0 1,1,0,1 1,1,1,0 1,1,1,1",
         "",
         {[](Cells& c) { store(c.x, 1); }, [](Cells& c) { store(c.y, 1); },
          [](Cells& c) {
              const std::uint64_t r0 = load(c.x);
              between<fenced>();
              c.r[1].word = load(c.y), c.r[0].word = r0;
          },
          [](Cells& c) {
              const std::uint64_t r2 = load(c.y);
              between<fenced>();
              c.r[3].word = load(c.x), c.r[2].word = r2;
          }}},
    };
}

// Coherence: each cell for itself behaves in order, with or without fences.
std::vector<Shape> coherence() {
    return {
        {"CoRR", "x=1 | r0=x r1=x > r0 r1", "0,0 0,1 1,1", "",
         {[](Cells& c) { store(c.x, 1); },
          [](Cells& c) {
              const std::uint64_t r0 = load(c.x);
              c.r[1].word = load(c.x), c.r[0].word = r0;
          }}},
        {"CoWW", "x=1 x=2 | r0=x > r0 x", "0,2 1,2 2,2", "",
         {[](Cells& c) { store(c.x, 1), store(c.x, 2); }, [](Cells& c) { c.r[0].word = load(c.x); }}},
        {"CoRW", "x=1 | r0=x x=2 > r0 x", "0,1 0,2 1,2", "",
         {[](Cells& c) { store(c.x, 1); },
          [](Cells& c) {
              const std::uint64_t r0 = load(c.x);
              store(c.x, 2), c.r[0].word = r0;
          }}},
        {"CoWR", "x=1 r0=x | x=2 > r0 x", "1,1 1,2 2,2", "",
         {[](Cells& c) { store(c.x, 1), c.r[0].word = load(c.x); }, [](Cells& c) { store(c.x, 2); }}},
    };
}

// The names behind >.
std::vector<std::string> outputs(const Shape& shape) {
    std::vector<std::string> names;
    const char* at = std::strchr(shape.program, '>') + 1;
    while (*at != 0) {
        at += std::strspn(at, " ");
        const std::size_t length = std::strcspn(at, " ");
        names.emplace_back(at, length);
        at += length;
    }
    return names;
}

bool contains(const char* list, const std::string& word) {
    return (" " + std::string(list) + " ").find(" " + word + " ") != std::string::npos;
}

void run(const Shape& shape, std::uint64_t iterations, std::uint64_t seed) {
    const auto threads = static_cast<unsigned>(shape.bodies.size());
    const std::vector<std::string> names = outputs(shape);
    std::map<std::string, std::uint64_t> histogram;
    static Cells cells;
    durasim::Barrier barrier(threads, litmus::barrier_spins(threads));
    durasim::run_threads(threads, [&](unsigned thread) {
        durasim::Random random(durasim::mix(seed) + thread);
        for (std::uint64_t i = 0; i < iterations; ++i) {
            if (thread == 0) cells = Cells{};
            barrier.wait();
            // Some cells are in some caches; threads come a little earlier or later, often hardly.
            const std::uint64_t chance = random.next();
            if (chance & 1) load(cells.x);
            if (chance & 2) load(cells.y);
            barrier.wait();
            litmus::delay(random.below(std::uint64_t{1} << (chance >> 2) % 12));
            shape.bodies[thread](cells);
            barrier.wait();
            if (thread != 0) continue;
            std::string result;
            for (const std::string& name : names) {
                const Cell& cell = name == "x" ? cells.x : name == "y" ? cells.y : cells.r[name[1] - '0'];
                result += (result.empty() ? "" : ",") + std::to_string(load(cell));
            }
            ++histogram[result];
        }
    });
    std::uint64_t forbidden = 0, observed = 0;
    std::printf("%s:", shape.name);
    for (const auto& [result, count] : histogram) {
        std::printf(" %s=%llu", result.c_str(), static_cast<unsigned long long>(count));
        if (!contains(shape.allowed, result)) forbidden += count;
        if (contains(shape.relaxed, result)) observed += count;
    }
    std::printf(" forbidden=%llu observed=%llu\n", static_cast<unsigned long long>(forbidden),
                static_cast<unsigned long long>(observed));
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<Shape> all = shapes<false>();
    for (const auto& more : {shapes<true>(), coherence()}) all.insert(all.end(), more.begin(), more.end());
    const bool list = argc > 1 && std::strcmp(argv[1], "--list") == 0;
    for (const Shape& shape : all) {
        if (list) {
            std::printf("%s: %s; allowed %s; relaxed %s\n", shape.name, shape.program, shape.allowed, shape.relaxed);
            continue;
        }
        bool wanted = argc <= 3;
        for (int i = 3; i < argc; ++i) wanted |= std::strcmp(argv[i], shape.name) == 0;
        if (wanted) run(shape, litmus::number_at(argc, argv, 1, 1000), litmus::number_at(argc, argv, 2, 1));
    }
    return 0;
}
