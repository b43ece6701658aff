// The machine behind a workload over objects with several threads, for guest programs that run natively on the host: linked
// to a program that was compiled with DURASIM_TEST_HOOKS. Threads lose their turns (turns.h) around stores, cleans and fences,
// and power may fail.
//
//   DURASIM_TEST_KILL_AT=N    power fails just before step N (stores to the pool, its cleans, and fences are steps, from 1),
//                             the pool then holds what has survived, and the program ends with exit code 42 (0: never)
//   DURASIM_TEST_SEED=N       which of the possible images it is, and who loses a turn
//   DURASIM_TEST_REPORT=FILE  where "steps operations" are written at the end: operations that the program has seen end
//
// What a thread has cleaned survives if it has made a fence behind that; of the rest any lines and any torn cleans may.
// power_failure.cpp is the same for transactions: objects are stored to outside of them, and to ordinary memory by the same
// functions.
#include <setjmp.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <random>
#include <vector>

#include "durasim/encodings.h"
#include "durasim/layout.h"
#include "turns.h"

namespace {

using Line = std::vector<unsigned char>;

constexpr std::uint64_t line_bytes = durasim::line_bytes;
constexpr std::uint64_t pool_bytes_max = std::uint64_t{1} << 32;

std::uint64_t number_from(const char* variable) {
    const char* text = std::getenv(variable);
    return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

unsigned char* memory(std::uint64_t address) { return reinterpret_cast<unsigned char*>(address); }
Line line_at(std::uint64_t address) { return Line(memory(address), memory(address) + line_bytes); }
bool is_in_pool(std::uint64_t address) { return address - durasim::pool_address < pool_bytes_max; }

thread_local const char own_thread = 0;  // its address stands for the calling thread

class Domain {
public:
    void store(std::uint64_t address) {
        step();
        // A line that is not durable yet; what is durable of it is what memory holds now, if it was clean.
        const std::uint64_t line = address / line_bytes * line_bytes;
        durable_.try_emplace(line, line_at(line));
        move_on();
    }
    void clean(std::uint64_t address, const void* thread) {
        step();
        const std::uint64_t line = address / line_bytes * line_bytes;
        if (durable_.contains(line)) pending_[line].push_back({thread, line_at(line)});
        move_on();
    }
    void fence(const void* thread) {
        step();
        for (auto place = pending_.begin(); place != pending_.end();) {
            auto& [line, cleans] = *place++;
            std::size_t last = cleans.size();
            while (last > 0 && cleans[last - 1].thread != thread) --last;
            if (last > 0) accept(line, last);
        }
    }
    void end_operation() { ++operations_; }

    void report() const {
        const char* path = std::getenv("DURASIM_TEST_REPORT");
        if (path == nullptr) return;
        std::FILE* const file = std::fopen(path, "w");
        if (file == nullptr) return;
        std::fprintf(file, "%llu %llu\n", static_cast<unsigned long long>(steps_), static_cast<unsigned long long>(operations_));
        std::fclose(file);
    }

private:
    struct Clean {
        const void* thread;
        Line content;
    };

    bool chance(unsigned one_in) { return random_() % one_in == 0; }

    void step() {
        if (++steps_ == kill_at_) fail();
    }

    // The caches evict and the controller accepts whenever they like.
    void move_on() {
        if (!durable_.empty() && chance(16)) {
            auto victim = durable_.begin();
            std::advance(victim, random_() % durable_.size());
            pending_.erase(victim->first);  // older content does not arrive later
            durable_.erase(victim);
        }
        if (!pending_.empty() && chance(16)) {
            auto chosen = pending_.begin();
            std::advance(chosen, random_() % pending_.size());
            accept(chosen->first, 1);
        }
    }

    // The first `count` cleans of a line, which are in order.
    void accept(std::uint64_t line, std::size_t count) {
        auto& cleans = pending_[line];
        const Line& content = cleans[count - 1].content;
        if (content == line_at(line)) {
            durable_.erase(line);
        } else {
            durable_[line] = content;
        }
        cleans.erase(cleans.begin(), cleans.begin() + static_cast<std::ptrdiff_t>(count));
        if (cleans.empty()) pending_.erase(line);
    }

    [[noreturn]] void fail() {
        for (auto& [line, cleans] : pending_) {
            const auto place = durable_.find(line);
            const std::size_t count = random_() % (cleans.size() + 1);
            if (place == durable_.end() || count == 0) continue;
            if (count > 1) place->second = cleans[count - 2].content;
            const bool torn = chance(2);
            for (std::uint64_t word = 0; word < line_bytes; word += 8) {
                if (!torn || chance(2)) std::memcpy(&place->second[word], &cleans[count - 1].content[word], 8);
            }
        }
        for (const auto& [line, content] : durable_) std::memcpy(memory(line), content.data(), line_bytes);
        report();
        std::_Exit(42);
    }

    const std::uint64_t kill_at_ = number_from("DURASIM_TEST_KILL_AT");
    std::mt19937_64 random_{number_from("DURASIM_TEST_SEED") * 1000003 + kill_at_};
    std::uint64_t steps_ = 0, operations_ = 0;
    std::map<std::uint64_t, Line> durable_;                // lines whose durable content may differ from memory
    std::map<std::uint64_t, std::vector<Clean>> pending_;  // cleans that no fence has waited for
};

// Never destroyed: the end of the program still stores.
Domain& domain() {
    static Domain& the_domain = *new Domain;
    return the_domain;
}

struct Report {
    ~Report() { domain().report(); }
} report_at_the_end;

}  // namespace

extern "C" {
// A store happens between these two.
void durasim_test_store(void* place, std::uint64_t) {
    turns::all.may_lose();
    const auto address = reinterpret_cast<std::uint64_t>(place);
    if (is_in_pool(address)) domain().store(address);
}
void durasim_test_stored(void) { turns::all.may_lose(); }
void durasim_test_clean(const void* line) {
    const auto address = reinterpret_cast<std::uint64_t>(line);
    if (is_in_pool(address)) domain().clean(address, &own_thread);
    turns::all.may_lose();
}
void durasim_test_fence(void) {
    domain().fence(&own_thread);
    turns::all.may_lose();
}
void durasim_test_marker(std::uint64_t imm, std::uint64_t) {
    if (imm == DURASIM_MARKER_OP_END) domain().end_operation();
}
jmp_buf* durasim_test_tx_frame(void) {
    static jmp_buf never_used;  // power failures abort no transaction
    return &never_used;
}
}
