// A model of power failure for guest programs that run natively on the host: linked to a program that was compiled with
// DURASIM_TEST_HOOKS, it sees every store to the pool, every clean, fence and marker.
//
//   DURASIM_TEST_KILL_AT=N    power fails just before step N (stores, cleans and fences are steps, from 1); the pool file
//                             then holds what survived, and the program ends with exit code 42
//                             (0: never; exit: when the program ends)
//   DURASIM_TEST_DOMAIN=adr   what was cleaned and fenced survives; of the rest any lines and any torn cleans may
//                       eadr  all stores survive but those still in the store buffer, which drains in order
//   DURASIM_TEST_SEED=N       which of the possible images it is
//   DURASIM_TEST_REPORT=FILE  where "steps commits" are written at the end
//
// It also asserts the protocol of markers. Several threads take turns at the steps, so that an image is that of a moment.
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "durasim/encodings.h"
#include "durasim/layout.h"

namespace {

using Line = std::vector<unsigned char>;

constexpr std::uint64_t line_bytes = durasim::line_bytes;

unsigned char* memory(std::uint64_t address) { return reinterpret_cast<unsigned char*>(address); }

Line line_at(std::uint64_t address) { return Line(memory(address), memory(address) + line_bytes); }

[[noreturn]] void broken(const char* what) {
    std::fprintf(stderr, "power_failure: %s\n", what);
    std::_Exit(99);
}

std::uint64_t number_from(const char* variable) {
    const char* text = std::getenv(variable);
    return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

std::string text_from(const char* variable) {
    const char* text = std::getenv(variable);
    return text == nullptr ? "" : text;
}

std::atomic<std::size_t> stopped_threads{0};

// Nobody executes anything behind a power failure: other threads would read what has just been lost, follow it, and crash.
void stop_other_threads() {
    struct sigaction stop{};
    stop.sa_handler = [](int) {
        ++stopped_threads;
        for (;;) ::pause();
    };
    ::sigaction(SIGUSR1, &stop, nullptr);
    std::set<long> told;
    for (;;) {
        std::size_t running = 0;
        for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
            const long thread = std::stol(task.path().filename());
            if (thread == ::gettid()) continue;
            ++running;
            if (told.insert(thread).second) ::syscall(SYS_tgkill, ::getpid(), thread, SIGUSR1);
        }
        // One that ended meanwhile is not listed any more.
        if (stopped_threads == running) return;
        ::sched_yield();
    }
}

thread_local bool in_transaction = false;
std::mutex turn;
jmp_buf never_used;  // power failures abort no transaction

class Model {
public:
    Model()
        : kill_at_(number_from("DURASIM_TEST_KILL_AT")),
          random_(number_from("DURASIM_TEST_SEED") * 1000003 + kill_at_),
          eadr_(text_from("DURASIM_TEST_DOMAIN").starts_with("eadr")),
          cleans_(text_from("DURASIM_TEST_DOMAIN") == "eadr-with-cleans") {}

    ~Model() {
        const char* kill_at = std::getenv("DURASIM_TEST_KILL_AT");
        if (kill_at != nullptr && std::strcmp(kill_at, "exit") == 0) fail();
        report();
    }

    void store(std::uint64_t address, std::uint64_t size_bytes) {
        step();
        if (address < durasim::pool_address) broken("a store to the pool lies below it");
        if (address / line_bytes != (address + size_bytes - 1) / line_bytes) broken("a store crosses a line");
        const bool in_data = data_bytes_ != 0 && address >= data_base_ && address - data_base_ < data_bytes_;
        if (in_data && !in_transaction && !recovering_) broken("data was changed outside of a transaction");
        const std::uint64_t line = address / line_bytes * line_bytes;
        if (eadr_) {
            std::vector<unsigned char> old(memory(address), memory(address) + size_bytes);
            store_buffer_.emplace_back(address, old);
            if (store_buffer_.size() > 16) store_buffer_.erase(store_buffer_.begin());
            return;
        }
        // A line that is not durable yet; what is durable of it is what memory holds now, if it was clean.
        durable_.try_emplace(line, line_at(line));
        maybe_move_on();
    }

    void clean(std::uint64_t address) {
        step();
        if (eadr_ && !cleans_) broken("a cache-block operation where the caches are durable");
        if (eadr_) return;
        const std::uint64_t line = address / line_bytes * line_bytes;
        pending_[line] = line_at(line);
        maybe_move_on();
    }

    void fence() {
        step();
        store_buffer_.clear();
        for (const auto& [line, content] : pending_) accept(line, content);
        pending_.clear();
    }

    void marker(std::uint64_t imm, std::uint64_t argument) {
        switch (imm) {
            case DURASIM_MARKER_DATA_BASE:
                data_base_ = argument;
                break;
            case DURASIM_MARKER_DATA_SIZE:
                data_bytes_ = argument;
                break;
            case DURASIM_MARKER_TX_BEGIN:
                if (in_transaction) broken("a transaction begins inside another");
                if (data_bytes_ == 0) broken("a transaction begins before the data range is declared");
                in_transaction = true;
                recovering_ = false;
                break;
            case DURASIM_MARKER_TX_COMMIT:
            case DURASIM_MARKER_TX_ABORT:
                if (!in_transaction) broken("a transaction ends that has not begun");
                in_transaction = false;
                commits_ += imm == DURASIM_MARKER_TX_COMMIT;
                break;
            case DURASIM_MARKER_ROI_BEGIN:
            case DURASIM_MARKER_ROI_END:
            case DURASIM_MARKER_OP_BEGIN:
            case DURASIM_MARKER_OP_END:
                if (in_transaction) broken("a marker of measurement inside a transaction");
                break;
            default:
                break;
        }
    }

private:
    bool chance(unsigned one_in) { return random_() % one_in == 0; }

    void step() {
        if (++steps_ == kill_at_) fail();
    }

    // The caches evict and the controller accepts whenever they like.
    void maybe_move_on() {
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
        stop_other_threads();
        if (eadr_) {
            for (std::uint64_t lost = random_() % (store_buffer_.size() + 1); lost > 0; --lost) {
                const auto& [address, old] = store_buffer_.back();
                std::memcpy(memory(address), old.data(), old.size());
                store_buffer_.pop_back();
            }
        } else {
            for (auto& [line, content] : pending_) {
                auto place = durable_.find(line);
                if (place == durable_.end() || chance(2)) continue;
                const bool torn = chance(2);
                for (std::uint64_t word = 0; word < line_bytes; word += 8) {
                    if (!torn || chance(2)) std::memcpy(&place->second[word], &content[word], 8);
                }
            }
            for (const auto& [line, content] : durable_) std::memcpy(memory(line), content.data(), line_bytes);
        }
        report();
        std::_Exit(42);
    }

    void report() {
        const char* path = std::getenv("DURASIM_TEST_REPORT");
        if (path == nullptr) return;
        // Renamed when it is whole: the power may fail in one thread while another ends the program.
        const std::string partial = std::string(path) + ".partial";
        std::FILE* const file = std::fopen(partial.c_str(), "w");
        if (file == nullptr) return;
        std::fprintf(file, "%llu %llu\n", static_cast<unsigned long long>(steps_), static_cast<unsigned long long>(commits_));
        std::fclose(file);
        std::rename(partial.c_str(), path);
    }

    std::uint64_t kill_at_;
    std::mt19937_64 random_;
    bool eadr_;
    bool cleans_;  // cleans are no error there
    std::uint64_t steps_ = 0;
    std::uint64_t commits_ = 0;
    std::uint64_t data_base_ = 0, data_bytes_ = 0;
    bool recovering_ = true;  // until the first transaction
    std::map<std::uint64_t, Line> durable_;  // lines whose durable content may differ from memory
    std::map<std::uint64_t, Line> pending_;  // cleans that no fence has waited for
    std::vector<std::pair<std::uint64_t, std::vector<unsigned char>>> store_buffer_;  // what memory held before
};

Model& model() {
    static Model the_model;
    return the_model;
}

}  // namespace

extern "C" {
// A store happens between these two.
void durasim_test_store(void* place, std::uint64_t size_bytes) {
    turn.lock();
    model().store(reinterpret_cast<std::uint64_t>(place), size_bytes);
}
void durasim_test_stored(void) { turn.unlock(); }
void durasim_test_clean(const void* line) {
    const std::lock_guard held(turn);
    model().clean(reinterpret_cast<std::uint64_t>(line));
}
void durasim_test_fence(void) {
    const std::lock_guard held(turn);
    model().fence();
}
void durasim_test_marker(std::uint64_t imm, std::uint64_t argument) {
    const std::lock_guard held(turn);
    model().marker(imm, argument);
}
jmp_buf* durasim_test_tx_frame(void) { return &never_used; }
}
