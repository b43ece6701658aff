// The thread that empties redo logs in the background (thesis, section 2.4.2: the log replayer).
#ifndef DURASIM_RUNTIMES_REPLAY_THREAD_H
#define DURASIM_RUNTIMES_REPLAY_THREAD_H

#include <pthread.h>

#include <cstdint>
#include <cstring>

#include "durasim/error.h"
#include "durasim/lock.h"
#include "durasim/markers.h"
#include "durasim/threads.h"
#include "runtimes/replay_team.h"
#include "runtimes/store.h"

namespace durasim {

// A thread that empties the logs in the background, on a core of its own if there is one.
template <class Replay>
class ReplayThread {
public:
    std::uint64_t transactions = 0;

    // `replay` is its own from now on; so many replayers take part in it, from this core on.
    void start(Replay* replay, unsigned replayers, unsigned core) {
        replay->start(replayers, core);
        replay_ = replay;
        core_ = core;
        if (const int error = ::pthread_create(&thread_, nullptr, [](void* self) -> void* { return static_cast<ReplayThread*>(self)->run(), nullptr; }, this)) {
            fail(exit_runtime, "durasim: cannot start the replayer: %s", std::strerror(error));
        }
    }

    // Empties the logs, and ends.
    void stop() {
        if (replay_ == nullptr) return;
        put_last(&stopping_, 1);
        wake();
        ::pthread_join(thread_, nullptr);
        delete replay_;
        replay_ = nullptr;
    }

    // There is something for it to do.
    void wake() {
        __atomic_store_n(&asleep_, 0, __ATOMIC_SEQ_CST);
        durasim::detail::futex_wake(&asleep_, 1);
    }
    bool is_asleep() const { return __atomic_load_n(&asleep_, __ATOMIC_RELAXED) != 0; }

private:
    void run() {
        ReplayTeam::note_replayer();
        pin_to_core(core_, allowed_cores());
        for (;;) {
            const bool stops = get_first(&stopping_) != 0;
            const std::uint64_t applied = replay_->apply_all();
            transactions += applied;
            if (applied != 0) {
                durasim_replay_pass(applied);
                continue;
            }
            if (stops && replay_->is_empty()) return;
            __atomic_store_n(&asleep_, 1, __ATOMIC_SEQ_CST);
            if (replay_->is_empty() && __atomic_load_n(&stopping_, __ATOMIC_SEQ_CST) == 0) durasim::detail::futex_wait(&asleep_, 1);
            __atomic_store_n(&asleep_, 0, __ATOMIC_SEQ_CST);
        }
    }

    Replay* replay_ = nullptr;
    unsigned core_ = 0;
    std::uint32_t asleep_ = 0, stopping_ = 0;
    pthread_t thread_{};
};

}  // namespace durasim

#endif
