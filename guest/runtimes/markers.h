// The runtime for hardware designs: plain stores between a begin and a commit marker. The machine makes them atomic and
// durable, or does not (`opt`). With DURASIM_LOG_OPERATIONS_ a pair of log operations stands before each store, where
// the compiler of Proteus puts it: repeats are the hardware's to drop.
#ifndef DURASIM_RUNTIMES_MARKERS_H
#define DURASIM_RUNTIMES_MARKERS_H

#include <cstdint>

#include "durasim/backend.h"
#include "durasim/error.h"
#include "durasim/layout.h"
#include "durasim/log.h"
#include "durasim/markers.h"
#include "durasim/retry.h"
#include "runtimes/store.h"

namespace durasim {

class Runtime {
public:
#if defined(DURASIM_LOG_OPERATIONS_)
    static constexpr const char* name = "log-operations";
#else
    static constexpr const char* name = "markers";
#endif
    static constexpr LogKind log_kind = LogKind::none;
    static constexpr bool marks = true;

    void attach(const PoolHeader&) {}
    void enter_thread(std::uint64_t) {}
    bool needs_recovery() const { return false; }
    std::uint64_t recover() { return 0; }

    // The header becomes durable as a transaction of its own: that is the one thing all hardware designs can do,
    // whichever caches and queues survive a power failure.
    [[gnu::noinline]] void format(PoolHeader* header, const PoolHeader& contents) {
        auto* to = reinterpret_cast<std::uint64_t*>(header);
        auto* from = reinterpret_cast<const std::uint64_t*>(&contents);
        format_retry_.start();
        while (const std::uint64_t cause = durasim_tx_begin()) format_retry_.again(cause);
        for (unsigned i = 1; i < sizeof(PoolHeader) / 8; ++i) store(to + i, from[i]);
        store(to, from[0]);
        durasim_tx_commit();
    }

    void begin() {}
    void commit() { durasim_tx_commit(); }

    void abort() {
        durasim_tx_abort(1);
        fail(exit_runtime, "durasim: this machine cannot abort a transaction, so its stores to the pool stand");
    }

    template <class T>
    T load(const T* place) const {
        return get(place);
    }
    template <class T>
    void store(T* place, T value) {
#if defined(DURASIM_LOG_OPERATIONS_)
        durasim_log_block(place);
#endif
        put(place, value);
    }

private:
    Retry format_retry_;
};

}  // namespace durasim

#endif
