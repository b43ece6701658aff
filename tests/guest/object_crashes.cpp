// Power failures of a map of objects: one program over the map OBJECT_MAP of the header OBJECT_MAP_HEADER.
//
//   object_crashes POOL [operations=N] [keys=N] [stride=N] [seeds=N] [pool-bytes=N] [profile=0|1]
//
// A child process puts and erases random keys of two maps, and power fails just before one of its steps; stores to the pool,
// cleans and fences are steps. What was cleaned and fenced survives; of the rest any lines and any torn cleans may. Other
// children then recover what survived, which may be cut too, hold it against a model, and go on with the operations. That
// happens for each `stride`-th step and for `seeds` possible images.
//
// power_failure.cpp has the same persistence domain, but for transactions: objects are stored to outside of them, and to
// ordinary memory by the same functions.
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "durasim/objects.h"
#include "durasim/pool.h"
#include "durasim/random.h"
#include OBJECT_MAP_HEADER

namespace {

using durasim::Array;
using durasim::ObjectOptions;
using durasim::object_runtime;
using durasim::Placement;
using durasim::Pool;
using durasim::Ref;
using Map = durasim::OBJECT_MAP;
using Line = std::vector<unsigned char>;

constexpr int exit_cut = 42, exit_wrong = 1;

// Arguments, and what the children tell.
struct Plan {
    const char* pool_path = nullptr;
    std::uint64_t operations = 200, keys = 24, stride = 1, seeds = 1, pool_bytes = 2 << 20, profile = 1;
};
struct Told {
    std::uint64_t steps;
    std::uint64_t acknowledged;  // operations, and one more for making the maps
};
Plan plan;
Told* told = nullptr;

[[noreturn]] void wrong(const char* what, std::uint64_t number) {
    std::fprintf(stderr, "object_crashes: %s (%llu)\n", what, static_cast<unsigned long long>(number));
    std::_Exit(exit_wrong);
}

// The persistence domain. Only one thread stores to the pool.
class Domain {
public:
    // 0: power does not fail.
    void fail_at(std::uint64_t step, std::uint64_t seed) {
        fail_at_ = step;
        random_.seed(seed * 1000003 + step);
    }

    void store(const void* place) {
        if (!is_in_pool(place)) return;
        step();
        // A line that is not durable yet; what is durable of it is what memory holds now, if it was clean.
        const std::uint64_t line = line_of(place);
        durable_.try_emplace(line, line_at(line));
        move_on();
    }

    void clean(const void* place) {
        if (!is_in_pool(place)) return;
        step();
        pending_[line_of(place)] = line_at(line_of(place));
        move_on();
    }

    void fence() {
        step();
        for (const auto& [line, content] : pending_) accept(line, content);
        pending_.clear();
    }

private:
    static std::uint64_t line_of(const void* place) { return reinterpret_cast<std::uint64_t>(place) / durasim::line_bytes * durasim::line_bytes; }
    static unsigned char* memory(std::uint64_t address) { return reinterpret_cast<unsigned char*>(address); }
    static Line line_at(std::uint64_t address) { return Line(memory(address), memory(address) + durasim::line_bytes); }
    static bool is_in_pool(const void* place) { return reinterpret_cast<std::uint64_t>(place) - durasim::pool_address < plan.pool_bytes; }
    bool chance(unsigned one_in) { return random_() % one_in == 0; }

    void step() {
        if (++told->steps == fail_at_) fail();
    }

    // The caches evict and the controller accepts whenever they like.
    void move_on() {
        if (!durable_.empty() && chance(8)) {
            auto victim = durable_.begin();
            std::advance(victim, random_() % durable_.size());
            victim->second = line_at(victim->first);
            pending_.erase(victim->first);  // the older content must not arrive later
        }
        if (!pending_.empty() && chance(8)) {
            auto chosen = pending_.begin();
            std::advance(chosen, random_() % pending_.size());
            accept(chosen->first, chosen->second);
            pending_.erase(chosen);
        }
    }

    void accept(std::uint64_t line, const Line& content) {
        if (content == line_at(line)) {
            durable_.erase(line);
        } else {
            durable_[line] = content;
        }
    }

    [[noreturn]] void fail() {
        for (auto& [line, content] : pending_) {
            const auto place = durable_.find(line);
            if (place == durable_.end() || chance(2)) continue;
            const bool torn = chance(2);
            for (std::uint64_t word = 0; word < durasim::line_bytes; word += 8) {
                if (!torn || chance(2)) std::memcpy(&place->second[word], &content[word], 8);
            }
        }
        for (const auto& [line, content] : durable_) std::memcpy(memory(line), content.data(), durasim::line_bytes);
        std::_Exit(exit_cut);
    }

    std::uint64_t fail_at_ = 0;
    std::mt19937_64 random_;
    std::map<std::uint64_t, Line> durable_;  // lines whose durable content may differ from memory
    std::map<std::uint64_t, Line> pending_;  // cleans that no fence has waited for
};

Domain domain;

// The maps and what they should hold.
constexpr std::uint64_t maps = 2;
using Content = std::map<std::uint64_t, std::uint64_t>;  // key to the number of the operation that put it
using Model = std::array<Content, maps>;

struct Change {
    std::uint64_t map, key;
    bool erases;
};

// Operation `number`, from 1 on. Maps grow in the first half, shrink then, and in the last quarter lose one key after the
// other: all of them if there are four times as many operations as keys of all maps.
Change change_of(std::uint64_t number) {
    durasim::Random random(durasim::mix(number) ^ 0x2545F4914F6CDD1D);
    const bool grows = number <= plan.operations / 2, clears = number > plan.operations - plan.operations / 4;
    const bool erases = clears || random.below(100) < (grows ? 15 : 85);
    const std::uint64_t index = clears ? number % plan.keys : random.below(plan.keys);
    const std::uint64_t map = clears ? number / plan.keys % maps : random.below(maps);
    // The ends of the numbers are keys too.
    return {map, index == 0 ? 0 : index == 1 ? ~std::uint64_t{0} : durasim::mix(index), erases};
}

void apply(Model& model, std::uint64_t number) {
    const Change change = change_of(number);
    if (change.erases) {
        model[change.map].erase(change.key);
    } else {
        model[change.map][change.key] = number;
    }
}

using Maps = Array<Ref<Map::Root>, Placement::durable>;

void attach(Pool& pool) {
    ObjectOptions options;
    options.volatile_heap_bytes = 1 << 20;
    options.profile = plan.profile != 0;
    object_runtime.attach(pool, options, 1);
}

bool are_made() {
    bool made = false;
    object_runtime.operation([&](auto& o) { made = static_cast<bool>(o.template durable_root<Maps>(0)); });
    return made;
}

void make_maps() {
    static durasim::Site sites(Placement::durable);
    object_runtime.operation([&](auto& o) {
        auto array = o.template make_array<Maps>(sites, maps);
        for (std::uint64_t i = 0; i < maps; ++i) array.set_at(i, Map::make(o, 4));
        o.set_durable_root(0, array.finish());
    });
}

// Some maps have a part in ordinary memory.
template <class OneMap>
void open_maps() {
    if constexpr (requires(durasim::objects::Operation& o, Ref<typename OneMap::Root> root) { OneMap::open(o, root, 0, 1); }) {
        object_runtime.operation([&](auto& o) {
            for (std::uint64_t i = 0; i < maps; ++i) OneMap::open(o, o.at(o.template durable_root<Maps>(0), i), i, maps);
        });
    }
}

void perform(std::uint64_t number) {
    static durasim::Site sites(Placement::durable);
    const Change change = change_of(number);
    object_runtime.operation([&](auto& o) {
        const auto map = o.at(o.template durable_root<Maps>(0), change.map);
        if (change.erases) {
            Map::erase(o, map, change.key);
            return;
        }
        auto value = o.template make_array<Map::Value>(sites, 2);
        value.set_at(0, change.key);
        value.set_at(1, number);
        Map::put(o, map, change.key, value.finish());
    });
}

// What the maps hold, by each() and by find().
Model content_of_maps() {
    Model found;
    object_runtime.operation([&](auto& o) {
        for (std::uint64_t i = 0; i < maps; ++i) {
            const auto map = o.at(o.template durable_root<Maps>(0), i);
            const bool whole = Map::each(o, map, [&](std::uint64_t key, Ref<Map::Value> value) {
                if (!value || o.length(value) != 2 || o.at(value, 0) != key) return false;
                return found[i].emplace(key, o.at(value, 1)).second;
            });
            if (!whole) wrong("a map is damaged", i);
            for (std::uint64_t number = 1; number <= plan.operations; ++number) {
                const std::uint64_t key = change_of(number).key;
                const auto value = Map::find(o, map, key);
                const auto there = found[i].find(key);
                if (static_cast<bool>(value) != (there != found[i].end())) wrong("find() and each() differ", key);
                if (value && o.at(value, 1) != there->second) wrong("find() and each() find different values", key);
            }
        }
    });
    return found;
}

void go_on(std::uint64_t from) {
    for (std::uint64_t number = from; number <= plan.operations; ++number) {
        perform(number);
        told->acknowledged = 1 + number;
    }
}

// Child: all operations.
void run() {
    Pool& pool = Pool::open(plan.pool_path, plan.pool_bytes, 4096);
    attach(pool);
    make_maps();
    told->acknowledged = 1;
    open_maps<Map>();
    go_on(1);
}

Pool* recovered() {
    Pool* const pool = Pool::open_existing(plan.pool_path);
    if (pool == nullptr) return nullptr;
    durasim::runtime.recover();
    durasim::objects::ObjectRuntime::recover(*pool);
    return pool->data()->root == 0 ? nullptr : pool;
}

// Child: what survived is what the acknowledged operations leave, or those and the next one; the rest can be done.
void recover_and_check() {
    const std::uint64_t acknowledged = told->acknowledged;
    Pool* const pool = recovered();
    if (pool != nullptr) {
        if (const char* problem = object_runtime.problem_in(*pool)) wrong(problem, 0);
        attach(*pool);
    }
    if (pool == nullptr || !are_made()) {
        if (acknowledged != 0) wrong("the maps are gone", acknowledged);
        return;
    }
    open_maps<Map>();
    Model model;
    std::uint64_t done = acknowledged == 0 ? 0 : acknowledged - 1;
    for (std::uint64_t number = 1; number <= done; ++number) apply(model, number);
    const Model found = content_of_maps();
    if (found != model) {
        if (acknowledged == 0 || done == plan.operations) wrong("the maps hold something else", done);
        apply(model, ++done);
        if (found != model) wrong("the maps hold neither what was there before the operation nor what it leaves", done);
    }
    go_on(done + 1);
    while (done < plan.operations) apply(model, ++done);
    if (content_of_maps() != model) wrong("the maps hold something else after further operations", done);
}

// Runs `body` in a child process in which power fails at a step. Returns its exit code.
template <class Body>
int in_child(std::uint64_t fail_at, std::uint64_t seed, Body&& body) {
    told->steps = 0;
    const pid_t child = ::fork();
    if (child == 0) {
        domain.fail_at(fail_at, seed);
        body();
        std::_Exit(0);
    }
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child) wrong("cannot run a child process", 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Power fails at `step` of the run, then in its recovery.
void cut(std::uint64_t step, std::uint64_t seed) {
    ::unlink(plan.pool_path);
    told->acknowledged = 0;
    if (in_child(step, seed, run) != exit_cut) wrong("power did not fail at step", step);
    const int cut_recovery = in_child(1 + (step + seed) % 5, seed, [] { recovered(); });
    if (cut_recovery != 0 && cut_recovery != exit_cut) wrong("recovery failed behind step", step);
    if (in_child(0, seed, recover_and_check) != 0) wrong("the failure was at step", step);
}

void parse(int argc, char** argv) {
    const std::map<std::string, std::uint64_t*> known = {{"operations", &plan.operations}, {"keys", &plan.keys},
                                                         {"stride", &plan.stride},         {"seeds", &plan.seeds},
                                                         {"pool-bytes", &plan.pool_bytes}, {"profile", &plan.profile}};
    plan.pool_path = argv[1];
    for (int i = 2; i < argc; ++i) {
        const std::string argument = argv[i];
        const auto place = known.find(argument.substr(0, argument.find('=')));
        if (place == known.end() || argument.find('=') == std::string::npos) wrong("there is no such argument", static_cast<std::uint64_t>(i));
        *place->second = std::strtoull(argument.c_str() + argument.find('=') + 1, nullptr, 10);
    }
}

}  // namespace

extern "C" {
void durasim_test_store(void* place, std::uint64_t) { domain.store(place); }
void durasim_test_stored(void) {}
void durasim_test_clean(const void* line) { domain.clean(line); }
void durasim_test_fence(void) { domain.fence(); }
void durasim_test_marker(std::uint64_t, std::uint64_t) {}
jmp_buf* durasim_test_tx_frame(void) {
    static jmp_buf never_used;  // power failures abort no transaction
    return &never_used;
}
}

int main(int argc, char** argv) {
    if (argc < 2) wrong("the path of the pool is missing", 0);
    parse(argc, argv);
    told = static_cast<Told*>(::mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ::unlink(plan.pool_path);
    if (in_child(0, 0, run) != 0 || in_child(0, 0, recover_and_check) != 0) wrong("the maps fail without a power failure", 0);
    ::unlink(plan.pool_path);
    in_child(0, 0, run);
    const std::uint64_t steps = told->steps;
    std::uint64_t cuts = 0;
    for (std::uint64_t step = 1; step <= steps; step += plan.stride) {
        for (std::uint64_t seed = 0; seed < plan.seeds; ++seed, ++cuts) cut(step, seed);
    }
    ::unlink(plan.pool_path);
    std::printf("steps=%llu cuts=%llu ok\n", static_cast<unsigned long long>(steps), static_cast<unsigned long long>(cuts));
    return 0;
}
