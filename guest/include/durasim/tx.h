// Transactions, written once for every way of making them atomically durable:
//
//     durasim::tx([&](auto& t) {
//         t.write(account.balance, t.read(account.balance) + 1);
//     });
//
// Everything in the pool is changed through `t`. The backend chosen when the program is built (-DDURASIM_BACKEND=NAME)
// decides what happens: markers around plain stores for hardware designs, an undo or redo log in software, and so on.
//
// A body must be re-executable: hardware may abort and repeat it, and rolls back the pool and the registers but no
// ordinary memory. Assigning to captured variables is fine, `count += 1` on one is not. A body that returns bool takes
// the transaction back by returning false. Transactions do not nest.
//
// Threads: each one but the first calls durasim::enter_thread(number) before its first transaction; what they share they
// guard by a TxLock that is held from before the transaction until after its commit.
#ifndef DURASIM_TX_H
#define DURASIM_TX_H

#include <cstdint>
#include <type_traits>

#include "durasim/backend.h"
#include "durasim/error.h"
#include "durasim/layout.h"
#include "durasim/lock.h"
#include "durasim/markers.h"
#include "durasim/retry.h"

#if !defined(DURASIM_BACKEND)
#error "choose a transaction backend: define DURASIM_BACKEND as the name of a file of guest/backends, for example markers"
#endif
#include DURASIM_RUNTIME_

namespace durasim {

// The interface of a backend; `runtime` is the one instance of it.
//   name, log_kind             for messages and the pool header
//   marks                      whether it reports to the machine where transactions begin and end
//   attach(header)             the pool is mapped; called before anything else
//   format(header, contents)   makes `contents` the header of a fresh pool, all of it or nothing
//   needs_recovery(), recover()
//   enter_thread(number)       prepares the calling thread for transactions; the one that attaches is number 0
//   begin(), commit(), abort() of a transaction of the calling thread; abort returns if the machine leaves it to software
//   load(place), store(place, value), naturally aligned values of 1, 2, 4 or 8 bytes
//   isolates                   optional: whether transactions of different threads are isolated without locks. begin() then says
//                              whether the body runs; false: it ran, and has rolled the transaction back
//   begin_work(path)           optional: the pool in this file is formatted and recovered, and transactions follow
inline Runtime runtime;

// Whether the runtime isolates transactions by itself.
namespace detail {

template <class R>
inline constexpr bool isolates = requires { R::isolates; };

}  // namespace detail

inline constexpr bool runtime_isolates = detail::isolates<Runtime>;

namespace detail {

// In place of a lock that no thread needs.
struct NoLock {
    void lock() {}
    void unlock() {}
};

}  // namespace detail

// The locks that threads hold around transactions on data that they share: one, unless the runtime isolates transactions by itself.
using TxLock = std::conditional_t<runtime_isolates, detail::NoLock, Lock>;

// The handle of an open transaction.
class Tx {
public:
    // The value at `place`, as this transaction sees it.
    template <class T>
    T read(const T& place) {
        check_type<T>();
        return runtime.load(&place);
    }

    // Makes `value` the content of `place`, which is in the pool, when the transaction commits.
    template <class T>
    void write(T& place, std::type_identity_t<T> value) {
        check_type<T>();
        runtime.store(&place, value);
    }

    // Writes `size_bytes` from `source` (ordinary memory, any object) to `place` (in the pool, aligned to 8 bytes). The size
    // is a multiple of 8.
    void write_words(void* place, const void* source, std::uint64_t size_bytes) {
        auto* to = static_cast<std::uint64_t*>(place);
        auto* from = static_cast<const unsigned char*>(source);
        for (std::uint64_t i = 0; i < size_bytes / 8; ++i) {
            std::uint64_t word;
            __builtin_memcpy(&word, from + 8 * i, 8);  // not a load of a word: the object there is of another type
            runtime.store(to + i, word);
        }
    }

    // Reads `size_bytes` from `place` into `target`; alignment as for write_words.
    void read_words(void* target, const void* place, std::uint64_t size_bytes) {
        auto* to = static_cast<unsigned char*>(target);
        auto* from = static_cast<const std::uint64_t*>(place);
        for (std::uint64_t i = 0; i < size_bytes / 8; ++i) {
            const std::uint64_t word = runtime.load(from + i);
            __builtin_memcpy(to + 8 * i, &word, 8);
        }
    }

    // A block of at least `size_bytes` that starts on a line and shares no line with another block; its content is
    // arbitrary. Given back if the transaction does not commit (durasim/allocator.h). The caller holds the lock that the
    // arena belongs to.
    void* allocate(std::uint64_t size_bytes, std::uint64_t arena = 0);

    // Gives back a block that was allocated with this size from this arena.
    void free(void* block, std::uint64_t size_bytes, std::uint64_t arena = 0);

private:
    // A free block of that many bytes, or null.
    void* allocate_large(ArenaHeader& arena, std::uint64_t need_bytes);

    template <class T>
    static void check_type() {
        static_assert(std::is_trivially_copyable_v<T> && (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8),
                      "transactions read and write plain values of 1, 2, 4 or 8 bytes");
    }
};

namespace detail {

// Of the calling thread. Ordinary memory on purpose: it has to keep its value when an abort restores the registers.
struct TxState {
    bool open = false;
    bool abort_requested = false;
    Retry retry;
};
inline constinit thread_local TxState tx_state;

// Begins a transaction of the calling thread. False: its body ran, and has rolled it back.
template <class R>
[[gnu::always_inline]] inline bool begin(R& runtime) {
    if constexpr (isolates<R>) {
        return runtime.begin();
    } else {
        runtime.begin();
        return true;
    }
}

template <class R>
void begin_work([[maybe_unused]] R& runtime, [[maybe_unused]] const char* path) {
    if constexpr (requires { runtime.begin_work(path); }) runtime.begin_work(path);
}

// The frame of this function is the only one that an abort returns into while the body may have run: the body runs in
// a frame of its own further down, which a repetition builds anew, and callers see an ordinary call.
[[gnu::noinline]] inline bool run_transaction(bool (*body)(void*), void* context) {
    if (tx_state.open) fail(exit_runtime, "durasim: a transaction was begun inside a transaction; transactions do not nest");
    tx_state.abort_requested = false;
    tx_state.retry.start();
    if constexpr (Runtime::marks) {
        while (const std::uint64_t cause = durasim_tx_begin()) {
            tx_state.open = false;
            if (tx_state.abort_requested) return false;
            if (Runtime::log_kind != LogKind::none) {
                fail(exit_runtime, "durasim: the machine aborted a transaction that is kept by software (cause %llu)",
                     static_cast<unsigned long long>(cause));
            }
            tx_state.retry.again(cause);
        }
    }
    tx_state.open = true;
    if (!begin(runtime)) {
        tx_state.abort_requested = true;
        tx_state.open = false;
        durasim_tx_abort(1);
        return false;
    }
    if (body(context)) {
        runtime.commit();
        tx_state.open = false;
        return true;
    }
    tx_state.abort_requested = true;
    runtime.abort();
    tx_state.open = false;
    return false;
}

}  // namespace detail

// Makes the calling thread ready for transactions. Two threads never have the same number at once; numbers are below
// the `logs` of the pool's shape. The thread that opened the pool is number 0 and need not call this.
inline void enter_thread(std::uint64_t number) {
    detail::tx_state.retry = Retry(number);
    runtime.enter_thread(number);
}

// Runs `body(t)` as one atomic and durable transaction. Returns whether it committed: false only if the body said so.
template <class Body>
bool tx(Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    auto call = [](void* context) {
        Tx t;
        Plain& f = *static_cast<Plain*>(context);
        if constexpr (std::is_same_v<decltype(f(t)), bool>) {
            return f(t);
        } else {
            f(t);
            return true;
        }
    };
    void* context = const_cast<void*>(static_cast<const void*>(&body));
#if defined(DURASIM_REHEARSALS)
    // Every transaction is undone once before it may commit: campaigns with planted faults want to see aborts.
    auto rehearse = [](void* rehearsed) {
        Tx t;
        (*static_cast<Plain*>(rehearsed))(t);
        return false;
    };
    detail::run_transaction(rehearse, context);
#endif
    return detail::run_transaction(call, context);
}

}  // namespace durasim

#include "durasim/allocator.h"

#endif
