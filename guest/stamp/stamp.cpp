// The implementation of durasim/stamp/*.h: transactions, threads and memory of C programs written for STAMP, with the runtime
// of -DDURASIM_BACKEND=NAME. Compiled once for each program and linked to its C sources.
//
// Isolation is one lock around all transactions, held until the commit has returned. A runtime that isolates by itself has no
// lock, and an arena for each thread, so that threads that allocate at a time do not conflict; otherwise the whole pool is one
// arena, which belongs to the lock.
#include <setjmp.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "durasim/lock.h"
#include "durasim/markers.h"
#include "durasim/pool.h"
#include "durasim/random.h"
#include "durasim/retry.h"
#include "durasim/stamp/memory.h"
#include "durasim/stamp/thread.h"
#include "durasim/stamp/tm.h"
#include "durasim/threads.h"
#include "durasim/tx.h"

// The linker leads calls of free here (--wrap=free): programs give back with free what a transaction has allocated.
extern "C" void __wrap_free(void* block);
extern "C" void __real_free(void* block);

namespace {

using durasim::exit_runtime;
using durasim::exit_usage;
using durasim::fail;
using durasim::Pool;
using durasim::Tx;
using Address = std::uint64_t;

constexpr unsigned operation_bits = 40;
// In front of each block that a program gets: its size, and its arena where there are several. The block stays aligned for
// anything.
constexpr std::uint64_t block_header_bytes = 16;

Address address_of(const volatile void* place) { return reinterpret_cast<Address>(place); }

// A list in ordinary memory that threads end without giving back: they would have to be asked for it at each access.
template <class T>
struct List {
    T* items = nullptr;
    std::uint64_t size = 0;
    std::uint64_t capacity = 0;

    void push_back(const T& item) {
        if (size == capacity) {
            capacity = capacity == 0 ? 16 : 2 * capacity;
            items = static_cast<T*>(std::realloc(items, capacity * sizeof(T)));
            if (items == nullptr) fail(exit_runtime, "durasim: out of memory in a transaction");
        }
        items[size++] = item;
    }
};

// A variable in ordinary memory before the transaction changed it.
struct Kept {
    volatile void* place;
    std::uint64_t value;
    std::uint64_t size_bytes;
};

// Of the calling thread. Ordinary memory on purpose: it has to keep its value when an abort restores the registers.
struct Thread {
    long number = 0;
    bool open = false;
    bool restart_requested = false;
    Address frame = 0;  // what lies below it on the stack is gone when the transaction is executed again
    jmp_buf checkpoint{};
    durasim::Retry retry;
    std::uint64_t transactions = 0;
    List<Kept> kept;
    List<void*> to_free;  // ordinary memory, when the transaction has committed
};
constinit thread_local Thread self;

durasim::TxLock transactions_lock;
Pool* pool = nullptr;
std::uint64_t data_base = 0, data_bytes = 0;
long thread_count = 1;
std::unique_ptr<durasim::Barrier> all_threads;
enum class Region { before, inside, behind } region = Region::before;

std::uint64_t arena_of_this_thread() { return static_cast<std::uint64_t>(self.number) % pool->arenas(); }

// Whether hardware gives ordinary memory its content back if the open transaction does not commit.
template <class R>
bool hardware_restores(const R& runtime) {
    if constexpr (requires { runtime.is_in_hardware(); }) return runtime.is_in_hardware();
    return false;
}

bool is_in_pool(const volatile void* place) { return pool != nullptr && address_of(place) - data_base < data_bytes; }

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
    const char* text = std::getenv(variable);
    if (text == nullptr) return otherwise;
    char* end = nullptr;
    const unsigned long long value = std::strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != 0) fail(exit_usage, "durasim: %s has to be a number of bytes, not \"%s\"", variable, text);
    return value;
}

void want_open(const char* what) {
    if (!self.open) fail(exit_runtime, "durasim: %s outside of a transaction; it belongs between TM_BEGIN and TM_END", what);
}

template <class T>
T as(const void* value) {
    T result;
    std::memcpy(&result, value, sizeof(T));
    return result;
}

// Calls act(T{}) with the unsigned integer T of that size.
template <class Act>
void with_size(std::uint64_t size_bytes, Act&& act) {
    switch (size_bytes) {
        case 1: return act(std::uint8_t{});
        case 2: return act(std::uint16_t{});
        case 4: return act(std::uint32_t{});
        case 8: return act(std::uint64_t{});
        default:
            fail(exit_runtime, "durasim: a transaction reads and writes values of 1, 2, 4 or 8 bytes, not of %llu",
                 static_cast<unsigned long long>(size_bytes));
    }
}

// Notes what a variable in ordinary memory holds. Variables of functions that the transaction has called (between the
// caller's frame here and that of TM_BEGIN) need not be kept: when it is executed again they are no more, and code that
// restored them would write to its own stack.
[[gnu::noinline]] void keep(volatile void* place, std::uint64_t size_bytes) {
    const Address at = address_of(place), here = address_of(__builtin_frame_address(0));
    if (at >= here && at < self.frame) return;
    for (std::uint64_t done = 0; done < size_bytes; done += 8) {
        Kept kept{static_cast<volatile char*>(place) + done, 0, size_bytes - done < 8 ? size_bytes - done : 8};
        std::memcpy(&kept.value, const_cast<const void*>(kept.place), kept.size_bytes);
        self.kept.push_back(kept);
    }
}

void restore_kept() {
    for (std::uint64_t i = self.kept.size; i-- > 0;) {
        const Kept& kept = self.kept.items[i];
        std::memcpy(const_cast<void*>(kept.place), &kept.value, kept.size_bytes);
    }
    self.kept.size = 0;
    self.to_free.size = 0;
}

// Another thread may change what the transaction did not like.
void let_others() {
    transactions_lock.unlock();
    for (unsigned i = 0; i < 64; ++i) durasim::detail::pause_hint();
    transactions_lock.lock();
}

// The block after the header of what a program has got, and its size.
std::uint64_t* block_of(void* given) {
    auto* block = reinterpret_cast<std::uint64_t*>(static_cast<char*>(given) - block_header_bytes);
    if (!is_in_pool(block) || address_of(block) % durasim::line_bytes != 0) {
        fail(exit_runtime, "durasim: %p is freed, which is not what TM_MALLOC has given", given);
    }
    return block;
}

void free_in_pool(Tx& t, void* given) {
    std::uint64_t* block = block_of(given);
    const std::uint64_t size_bytes = t.read(block[0]), arena = pool->arenas() == 1 ? 0 : t.read(block[1]);
    t.free(block, size_bytes, arena);
}

}  // namespace

struct durasim_stamp_barrier {
    durasim::Barrier barrier;
};

extern "C" {

void* durasim_stamp_root(void) {
    if (pool == nullptr) fail(exit_runtime, "durasim: there is no pool before TM_STARTUP");
    return self.open ? reinterpret_cast<void*>(durasim::runtime.load(&pool->data()->root)) : pool->root<void>();
}

void durasim_stamp_set_root(void* root) {
    want_open("durasim_stamp_set_root");
    Tx t;
    pool->set_root(t, root);
}

void durasim_stamp_startup(long wanted_threads) {
    if (pool != nullptr) fail(exit_runtime, "durasim: TM_STARTUP comes once");
    if (wanted_threads < 1 || wanted_threads > static_cast<long>(durasim::threads_max)) {
        fail(exit_usage, "durasim: TM_STARTUP takes from 1 to %llu threads, not %ld",
             static_cast<unsigned long long>(durasim::threads_max), wanted_threads);
    }
    const char* path = std::getenv("DURASIM_POOL");
    const std::uint64_t log_bytes = number_from("DURASIM_LOG_BYTES", durasim::log_bytes_default);
    const auto threads = static_cast<std::uint64_t>(wanted_threads);
    pool = &Pool::open(path == nullptr ? "/pmem/stamp" : path, number_from("DURASIM_POOL_BYTES", 16 << 20), log_bytes, false,
                       durasim::PoolShape{.arenas = durasim::runtime_isolates ? threads : 1, .logs = threads});
    const auto* header = reinterpret_cast<const durasim::PoolHeader*>(durasim::pool_address);
    if (durasim::Runtime::log_kind != durasim::LogKind::none && header->logs() < threads) {
        fail(exit_usage, "durasim: the pool was made for %llu threads and has no logs for %ld",
             static_cast<unsigned long long>(header->logs()), wanted_threads);
    }
    data_base = address_of(pool->data());
    data_bytes = pool->data_bytes();
}

void durasim_stamp_shutdown(void) {}

void durasim_stamp_thread_enter(void) {
    if (pool == nullptr) fail(exit_runtime, "durasim: TM_THREAD_ENTER comes after TM_STARTUP");
    if (self.number == 0) return;  // has opened the pool
    self.retry = durasim::Retry(static_cast<std::uint64_t>(self.number));
    durasim::enter_thread(static_cast<std::uint64_t>(self.number));
}

void durasim_stamp_thread_exit(void) {}

// Everything before the first attempt of a transaction. Its caller is that of TM_BEGIN.
[[gnu::noinline]] void durasim_stamp_enter(void) {
    if (self.open) fail(exit_runtime, "durasim: a transaction was begun inside a transaction; transactions do not nest");
    if (pool == nullptr) fail(exit_runtime, "durasim: TM_BEGIN comes after TM_STARTUP");
    self.frame = address_of(__builtin_frame_address(0));
    self.retry.start();
    durasim_op_begin(static_cast<std::uint64_t>(self.number) << operation_bits | self.transactions);
    transactions_lock.lock();
}

// The result of durasim_tx_begin: whether it has to be called again, because a transaction was aborted.
int durasim_stamp_again(std::uint64_t cause) {
    if (cause == 0) return 0;
    self.open = false;
    restore_kept();
    if (self.restart_requested) {
        self.restart_requested = false;
        let_others();
        return 1;
    }
    if (durasim::Runtime::log_kind != durasim::LogKind::none) {
        fail(exit_runtime, "durasim: the machine aborted a transaction that is kept by software (cause %llu)",
             static_cast<unsigned long long>(cause));
    }
    self.retry.again(cause);
    return 1;
}

// The transaction is executed again from TM_BEGIN, whose caller has not returned.
[[noreturn]] static void start_again() {
    self.open = false;
    restore_kept();
    let_others();
    longjmp(self.checkpoint, 1);
}

void durasim_stamp_begin(void) {
    self.open = true;
    if (durasim::detail::begin(durasim::runtime)) return;
    // TM_RESTART in a hardware transaction leads here.
    durasim_tx_abort(1);
    start_again();
}

void durasim_stamp_end(void) {
    want_open("TM_END");
    durasim::runtime.commit();
    self.open = false;
    self.kept.size = 0;
    transactions_lock.unlock();
    durasim_op_end(static_cast<std::uint64_t>(self.number) << operation_bits | self.transactions);
    ++self.transactions;
    for (std::uint64_t i = 0; i < self.to_free.size; ++i) __real_free(self.to_free.items[i]);
    self.to_free.size = 0;
}

void durasim_stamp_restart(void) {
    want_open("TM_RESTART");
    self.restart_requested = true;
    durasim::runtime.abort();  // a machine with transactions continues in durasim_stamp_again
    self.restart_requested = false;
    start_again();
}

jmp_buf* durasim_stamp_frame(void) { return &self.checkpoint; }

void* durasim_stamp_allocate(std::size_t size_bytes) {
    want_open("TM_MALLOC");
    if (size_bytes > data_bytes) return nullptr;
    Tx t;
    const std::uint64_t arena = arena_of_this_thread();
    auto* block = static_cast<std::uint64_t*>(t.allocate(size_bytes + block_header_bytes, arena));
    t.write(block[0], size_bytes + block_header_bytes);
    if (pool->arenas() != 1) t.write(block[1], arena);
    return reinterpret_cast<char*>(block) + block_header_bytes;
}

void durasim_stamp_free(void* given) {
    want_open("TM_FREE");
    if (given == nullptr) return;
    if (!is_in_pool(given)) return self.to_free.push_back(given);
    Tx t;
    free_in_pool(t, given);
}

void durasim_stamp_read(const volatile void* place, void* value, std::size_t size_bytes) {
    with_size(size_bytes, [&](auto zero) {
        using T = decltype(zero);
        auto* from = const_cast<const T*>(static_cast<const volatile T*>(place));
        const T found = self.open && is_in_pool(place) ? durasim::runtime.load(from) : *static_cast<const volatile T*>(place);
        std::memcpy(value, &found, sizeof(T));
    });
}

void durasim_stamp_write(volatile void* place, const void* value, std::size_t size_bytes) {
    want_open("TM_SHARED_WRITE");
    if (!is_in_pool(place) && !hardware_restores(durasim::runtime)) keep(place, size_bytes);
    with_size(size_bytes, [&](auto zero) {
        using T = decltype(zero);
        auto* to = static_cast<volatile T*>(place);
        if (is_in_pool(place)) {
            durasim::runtime.store(const_cast<T*>(to), as<T>(value));
        } else {
            *to = as<T>(value);
        }
    });
}

void durasim_stamp_keep(volatile void* place, std::size_t size_bytes) {
    if (self.open && !hardware_restores(durasim::runtime)) keep(place, size_bytes);
}

void durasim_stamp_go_to_simulation(void) {
    if (region != Region::before) return;
    region = Region::inside;
    durasim_roi_begin();
}

void durasim_stamp_go_to_reality(void) {
    if (region != Region::inside) return;
    region = Region::behind;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);  // commits that are in flight belong to the region
    durasim_roi_end();
}

void thread_startup(long wanted_threads) {
    if (wanted_threads < 1 || wanted_threads > static_cast<long>(durasim::threads_max)) {
        fail(exit_usage, "durasim: thread_startup takes from 1 to %llu threads, not %ld",
             static_cast<unsigned long long>(durasim::threads_max), wanted_threads);
    }
    thread_count = wanted_threads;
    all_threads = std::make_unique<durasim::Barrier>(static_cast<unsigned>(wanted_threads));
}

void thread_start(void (*function)(void*), void* argument) {
    durasim::run_threads(static_cast<unsigned>(thread_count), [&](unsigned number) {
        self.number = static_cast<long>(number);
        function(argument);
    });
}

void thread_shutdown(void) { all_threads.reset(); }

long thread_getId(void) { return self.number; }
long thread_getNumThread(void) { return thread_count; }
void thread_barrier_wait(void) {
    if (all_threads) all_threads->wait();
}

thread_barrier_t* thread_barrier_alloc(long threads) {
    return new thread_barrier_t{durasim::Barrier(static_cast<unsigned>(threads))};
}
void thread_barrier_init(thread_barrier_t*) {}
void thread_barrier(thread_barrier_t* barrier, long) { barrier->barrier.wait(); }
void thread_barrier_free(thread_barrier_t* barrier) { delete barrier; }

namespace {

struct alignas(16) Chunk {
    Chunk* next;
};
Chunk* chunks = nullptr;
durasim::Lock chunks_lock;

}  // namespace

long memory_init(long, std::size_t, long) { return 1; }

void* memory_get(long, std::size_t size_bytes) {
    auto* chunk = static_cast<Chunk*>(std::malloc(sizeof(Chunk) + size_bytes));
    if (chunk == nullptr) return nullptr;
    chunks_lock.lock();
    chunk->next = chunks;
    chunks = chunk;
    chunks_lock.unlock();
    return chunk + 1;
}

void memory_destroy(void) {
    while (chunks != nullptr) {
        Chunk* chunk = chunks;
        chunks = chunk->next;
        std::free(chunk);
    }
}

// Ordinary memory goes where it belongs; a block of the pool is given back as if by TM_FREE, in a transaction of its own if
// none is open.
void __wrap_free(void* block) {
    if (!is_in_pool(block)) return __real_free(block);
    if (self.open) return durasim_stamp_free(block);
    transactions_lock.lock();
    durasim::tx([block](Tx& t) { free_in_pool(t, block); });
    transactions_lock.unlock();
}
}
