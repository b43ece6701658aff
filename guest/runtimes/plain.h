// No runtime at all: what a program does that knows nothing of persistence. Loads and stores go to the pool as they are,
// without markers, logs, cleans or fences, and nothing is promised: a power failure may leave any part of a transaction,
// and no machine sees where one begins or ends.
#ifndef DURASIM_RUNTIMES_PLAIN_H
#define DURASIM_RUNTIMES_PLAIN_H

#include <cstdint>

#include "durasim/error.h"
#include "durasim/layout.h"
#include "runtimes/store.h"

namespace durasim {

class Runtime {
public:
    static constexpr const char* name = "plain";
    static constexpr LogKind log_kind = LogKind::none;
    static constexpr bool marks = false;

    void attach(const PoolHeader&) {}
    void enter_thread(std::uint64_t) {}
    bool needs_recovery() const { return false; }
    std::uint64_t recover() { return 0; }

    void format(PoolHeader* header, const PoolHeader& contents) {
        auto* to = reinterpret_cast<std::uint64_t*>(header);
        auto* from = reinterpret_cast<const std::uint64_t*>(&contents);
        for (unsigned i = 1; i < sizeof(PoolHeader) / 8; ++i) put(to + i, from[i]);
        put(to, from[0]);
    }

    void begin() {}
    void commit() {}

    // Nobody has kept what the stores overwrote.
    [[noreturn]] void abort() {
        fail(exit_runtime, "durasim: the runtime plain cannot abort a transaction, so its stores to the pool stand");
    }

    template <class T>
    T load(const T* place) const {
        return get(place);
    }
    template <class T>
    void store(T* place, T value) {
        put(place, value);
    }
};

}  // namespace durasim

#endif
