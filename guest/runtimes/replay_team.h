// The replayers that apply a batch of transactions together, each on a core of its own (thesis, section 2.4.2: parallel log replay,
// in which replayers target disjoint regions of memory).
//
// All go through the whole batch in its order, and each makes the stores to its own pages. So no order between replayers is needed, and a word
// gets its values in the order of the transactions.
#ifndef DURASIM_RUNTIMES_REPLAY_TEAM_H
#define DURASIM_RUNTIMES_REPLAY_TEAM_H

#include <pthread.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "durasim/error.h"
#include "durasim/lock.h"
#include "durasim/threads.h"
#include "runtimes/planted.h"
#include "runtimes/store.h"

namespace durasim {

class ReplayTeam {
public:
    ReplayTeam() = default;
    ReplayTeam(const ReplayTeam&) = delete;
    ReplayTeam& operator=(const ReplayTeam&) = delete;
    ~ReplayTeam() { stop(); }

    // How many replayers there are, the caller of run() included.
    unsigned count() const { return static_cast<unsigned>(members_.size()) + 1; }

    // Ends the program if several replayers would share cores with each other or with its threads.
    static void refuse_without_cores(unsigned count, unsigned threads) {
        if (count <= 1 || threads + count <= core_count()) return;
        fail(exit_usage, "durasim: %u replayers beside %u threads need %u hardware threads of the machine, which has %u", count, threads,
             threads + count, core_count());
    }

    // Whether the calling thread is a replayer.
    static bool is_replayer() { return is_replayer_; }
    static void note_replayer() { is_replayer_ = true; }

    // Starts all but the first, on cores `core` + 1 and up, which they have for themselves.
    void start(unsigned count, unsigned core) {
        if (count <= 1) return;
        members_.resize(count - 1);
        for (unsigned i = 0; i + 1 < count; ++i) {
            members_[i] = {this, i + 1, core + i + 1, {}};
            const int error = ::pthread_create(&members_[i].thread, nullptr, [](void* of) -> void* { return follow(*static_cast<Member*>(of)), nullptr; }, &members_[i]);
            if (error != 0) fail(exit_runtime, "durasim: cannot start a replayer: %s", std::strerror(error));
        }
    }

    void stop() {
        if (members_.empty()) return;
        work_ = nullptr;
        begin_round();
        for (const Member& member : members_) ::pthread_join(member.thread, nullptr);
        members_.clear();
    }

    // Calls work(part) in each replayer with the number of its part, and returns when all have returned.
    template <class Work>
    void run(Work&& work) {
        if (members_.empty()) return work(0U);
        using Plain = std::remove_reference_t<Work>;
        work_ = [](void* of, unsigned part) { (*static_cast<Plain*>(of))(part); };
        of_ = &work;
        begin_round();
        work(0U);
        for (detail::Backoff backoff; __atomic_load_n(&done_, __ATOMIC_ACQUIRE) != members_.size() && !planted(Fault::replayers_not_awaited);) backoff.wait();
    }

    // Whether the page of a place in the pool is that of a part.
    bool has(unsigned part, std::uint64_t offset) const {
        if (members_.empty()) return true;
        if (planted(Fault::page_without_replayer) && part == 0) return false;
        return offset / page_bytes % count() == part;
    }

private:
    static constexpr std::uint64_t page_bytes = 4096;

    struct Member {
        ReplayTeam* team;
        unsigned part, core;
        pthread_t thread;
    };

    void begin_round() {
        __atomic_store_n(&done_, 0, __ATOMIC_RELAXED);
        __atomic_add_fetch(&round_, 1, __ATOMIC_SEQ_CST);
        durasim::detail::futex_wake(&round_, static_cast<int>(members_.size()));
    }

    static void follow(const Member& member) {
        ReplayTeam& team = *member.team;
        note_replayer();
        pin_to_core(member.core, allowed_cores());
        for (std::uint32_t seen = 0;;) {
            for (; __atomic_load_n(&team.round_, __ATOMIC_ACQUIRE) == seen;) durasim::detail::futex_wait(&team.round_, seen);
            seen = __atomic_load_n(&team.round_, __ATOMIC_ACQUIRE);
            if (team.work_ == nullptr) return;
            team.work_(team.of_, member.part);
            __atomic_add_fetch(&team.done_, 1, __ATOMIC_RELEASE);
        }
    }

    static inline thread_local bool is_replayer_ = false;

    std::vector<Member> members_;
    void (*work_)(void*, unsigned) = nullptr;
    void* of_ = nullptr;
    // How many rounds have begun, and how many members have ended the last one.
    std::uint32_t round_ = 0, done_ = 0;
};

}  // namespace durasim

#endif
