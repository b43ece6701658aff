// What durable hardware transactions on a shadow of the pool have in common (thesis, sections 2.4 and 3.4): a thread stores to the shadow
// in the DRAM and appends place and value to a redo log of its own in persistent memory. How a log commits, when a transaction is
// durable and who empties the logs is what the runtimes differ in.
//
// - A transaction that has used up its attempts takes the global lock. It then remembers what it overwrites in the shadow.
// - Logs are circular. A thread waits until the replayer has made room before it begins; one that runs out of room inside
//   aborts, and waits until its log is empty.
#ifndef DURASIM_RUNTIMES_SHADOW_TRANSACTIONS_H
#define DURASIM_RUNTIMES_SHADOW_TRANSACTIONS_H

#include <cstdint>
#include <vector>

#include "durasim/error.h"
#include "durasim/layout.h"
#include "durasim/markers.h"
#include "runtimes/htm_attempts.h"
#include "runtimes/planted.h"
#include "runtimes/shadow.h"
#include "runtimes/store.h"

namespace durasim {

namespace detail {

// Of the calling thread.
template <class Log>
struct ShadowThread {
    static constexpr unsigned code_log_full = 0xfd;

    HtmAttempts attempts;
    Log log;
    HtmPath path = HtmPath::hardware;
    bool was_full = false;  // the last attempt ran out of room
    // Of the open transaction: where its entries begin, where the next one goes, and where the room ends.
    std::uint64_t begin = 0, position = 0, limit = 0;
    // The places of the first two in the ring.
    std::uint64_t first_slot = 0, slot = 0;
    bool is_odd_round = false;  // of the ring, at the begin; of logs whose ends tell it
    bool is_wrapped = false;  // the transaction before lies at both ends of the ring
    // What it has overwritten in the shadow, if it runs under the lock.
    struct Old {
        std::uint64_t* place;
        std::uint64_t word;
    };
    std::vector<Old>* old = nullptr;
};
template <class Log>
inline constinit thread_local ShadowThread<Log> shadow_thread;

// Timestamps: the cycle counters of all cores count one clock. The read waits for earlier instructions to complete; their stores may still be in
// the store buffer.
inline std::uint64_t read_timestamp() {
#if defined(__riscv)
    std::uint64_t cycle;
    __asm__ volatile("rdcycle %0" : "=r"(cycle) : : "memory");
    return cycle;
#elif defined(__x86_64__) && !defined(DURASIM_TEST_HOOKS)
    // A counter in memory would have all hardware transactions conflict.
    unsigned core;
    return __builtin_ia32_rdtscp(&core);
#else
    static std::uint64_t clock = 0;
    return __atomic_add_fetch(&clock, 1, __ATOMIC_SEQ_CST);
#endif
}

}  // namespace detail

// `Self` has the log's room (room_end, wake_replayer), says where a transaction commits, and has pages come that a transaction under the
// lock is about to store to.
template <class Self, class Log>
class ShadowTransactions {
public:
    using Thread = detail::ShadowThread<Log>;

    template <class T>
    T load(const T* place) const {
        return get(place);
    }

    // Logs hold whole words.
    template <class T>
    [[gnu::always_inline]] void store(T* place, T value) {
        Thread& thread = this_thread();
        const auto address = reinterpret_cast<std::uint64_t>(place);
        auto* const word = reinterpret_cast<std::uint64_t*>(address & ~std::uint64_t{7});
        if (thread.path == HtmPath::lock) {
            self().bring_in_page(address - pool_address);
            thread.old->push_back({word, get(word)});
        }
#if defined(TRY_LOAD)
        { auto seen = get(word); __asm__ volatile("" : : "r"(seen) : "memory"); }
#endif
        put(place, value);
        if (planted(Fault::begin_stores)) note_store(word);
        if (!planted(Fault::store_not_logged)) append(thread, reinterpret_cast<std::uint64_t>(word) - pool_address, get(word));
    }

    static AttemptOptions& attempt_options() { return HtmAttempts::options; }

    // As published, a transaction reads the clock although its stores may still be in the store buffer (read_commit_clock).
    static inline bool reads_clock_early = false;

    // What the calling thread has counted.
    const HtmCounts& htm_counts() const { return this_thread().attempts.counts; }

    // Whether the open transaction of the calling thread is a hardware transaction.
    bool is_in_hardware() const { return this_thread().path == HtmPath::hardware; }

protected:
    // Words that a log has free when a transaction begins, if it has as many (SPHT, FAST 2021).
    static constexpr std::uint64_t reserved_words = 128;

    static Thread& this_thread() { return detail::shadow_thread<Log>; }

    std::vector<Log> logs() const {
        std::vector<Log> logs(header_.logs());
        for (std::uint64_t i = 0; i < header_.logs(); ++i) logs[i].attach(header_, shared_, i);
        return logs;
    }

    // A thread uses log `number` from where it ends.
    void attach_log(std::uint64_t number, std::uint64_t end) {
        Thread& thread = this_thread();
        thread.log.attach(header_, shared_, number);
        thread.position = end;
        thread.first_slot = thread.slot = thread.log.slot(end);
        if (thread.old == nullptr) thread.old = new std::vector<typename Thread::Old>;
    }

    // The clock for the timestamp of a transaction that has made its stores. Transactions that conflict commit in the order of their timestamps if
    // each access that conflicts is known to the hardware before the clock is read. A load is in the read set when it completes. A store
    // enters the write set when it leaves the store buffer, so a fence waits for that: a transaction that only writes a word which others
    // write too would otherwise have its timestamp before it conflicts with anybody.
    static std::uint64_t read_commit_clock() {
        if (!reads_clock_early && !planted(Fault::clock_before_stores)) empty_store_buffer();
        return detail::read_timestamp();
    }

    // The open transaction has not happened: of the shadow and the log nothing is left of it. Under the lock.
    void undo_stores(Thread& thread) {
        for (std::size_t i = thread.old->size(); i-- > 0;) put((*thread.old)[i].place, (*thread.old)[i].word);
        thread.old->clear();
        thread.position = thread.begin;
        thread.slot = thread.first_slot;
    }

    // The open transaction is in the log for good.
    void keep(Thread& thread) {
        if (thread.slot < thread.first_slot) note_wrapped(thread, true);
        thread.first_slot = thread.slot;
    }

    // Before an attempt, of which the one before ended with `status`: waits until the log, which ends at `end`, has room.
    void await_room(Thread& thread, std::uint64_t status, std::uint64_t end) {
        const Log& log = thread.log;
        if (thread.is_wrapped) note_wrapped(thread, false);
        thread.begin = thread.position = end;
        thread.slot = thread.first_slot;
        const bool was_full = (status & htm_explicit) != 0 && htm_code(status) == Thread::code_log_full;
        const std::uint64_t wanted = was_full ? log.ring_words() - self().words_kept() : reserved_words < log.ring_words() / 2 ? reserved_words : log.ring_words() / 2;
        if (was_full && thread.limit - thread.begin >= log.ring_words() - self().words_kept()) refuse_large(log);
        await_words(thread, wanted);
        thread.limit = planted(Fault::log_overwritten) ? ~std::uint64_t{0} : self().room_end(thread);
    }

    // A fault, the line 7 of Algorithm 5 as printed: address and value are those of the last store of the thread.
    static void store_again() {
#if defined(DURASIM_PLANTED)
        if (last_store_.place != nullptr) put(last_store_.place, last_store_.word);
#endif
    }

    static void note_store([[maybe_unused]] std::uint64_t* word) {
#if defined(DURASIM_PLANTED)
        last_store_ = {word, get(word)};
#endif
    }

    [[noreturn]] static void refuse_large(const Log& log) {
        fail(exit_runtime, "durasim: the redo log of %llu words is too small for one transaction; give the pool a larger log (log-bytes)",
             static_cast<unsigned long long>(log.ring_words()));
    }

    PoolHeader header_{};
    std::uint64_t shared_ = pool_address;

private:
    static void empty_store_buffer() {
#if defined(__riscv)
        __asm__ volatile("fence rw, rw" : : : "memory");
#else
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
    }

#if defined(DURASIM_PLANTED)
    static inline thread_local typename Thread::Old last_store_{};
#endif

    Self& self() { return static_cast<Self&>(*this); }

    void await_words(Thread& thread, std::uint64_t wanted) {
        if (planted(Fault::log_overwritten)) return;
        if (self().room_end(thread) - thread.begin >= wanted) return;
        durasim_situation_begin(DURASIM_SITUATION_LOG_FULL);
        for (detail::Backoff backoff; self().room_end(thread) - thread.begin < wanted;) {
            self().wake_replayer();
            backoff.wait();
        }
        durasim_situation_end(DURASIM_SITUATION_LOG_FULL);
    }

    void append(Thread& thread, std::uint64_t offset, std::uint64_t value) {
        if (thread.limit - thread.position < Log::words_of_store + Log::words_of_end) make_room(thread);
        const std::uint64_t behind = thread.log.next(thread.slot);
        thread.log.put_word(thread.slot, offset);
        thread.log.put_word(behind, value);
        thread.slot = thread.log.next(behind);
        thread.position += Log::words_of_store;
    }

    [[gnu::noinline]] void make_room(Thread& thread) {
        if (thread.path == HtmPath::hardware) htm_abort<Thread::code_log_full>();
        const std::uint64_t ring_words = thread.log.ring_words() - self().words_kept();
        if (ring_words - (thread.position - thread.begin) < Log::words_of_store + Log::words_of_end) refuse_large(thread.log);
        await_words(thread, ring_words);
        thread.limit = self().room_end(thread);
    }

    [[gnu::noinline]] static void note_wrapped(Thread& thread, bool is_wrapped) {
        thread.is_wrapped = is_wrapped;
        if (is_wrapped) {
            durasim_situation_begin(DURASIM_SITUATION_LOG_WRAPPED);
        } else {
            durasim_situation_end(DURASIM_SITUATION_LOG_WRAPPED);
        }
    }
};

}  // namespace durasim

#endif
