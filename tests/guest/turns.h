// Threads that take turns, for guest programs that run natively on the host: one thread of the program runs at a time, and
// sometimes hands its turn over to another one that is drawn. DURASIM_TEST_SEED chooses the draws, so a seed gives the same
// order of all accesses each time, whatever else runs on the host.
//
// A thread without the turn sleeps in the kernel. What guest programs wait with is defined here instead of in the C library:
// sched_yield hands the turn over, and a thread that waits for a futex or in pthread_join gets no turn until that has
// happened. All threads run on one core: the woken thread need not wait for another core. Addresses are not randomised,
// because filters hash them.
//
// Each store is visible to all threads at once. Stores that stay in a store buffer need threads that run in parallel.
#ifndef DURASIM_TEST_TURNS_H
#define DURASIM_TEST_TURNS_H

#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace turns {

// The functions of the C library that this file replaces. They are found before the program begins: a variable that is
// initialised at its first use would make threads without the turn wait for each other.
struct Library {
    long (*syscall)(long, ...);
    int (*create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    int (*join)(pthread_t, void**);
};
inline Library library;

inline void find_library() {
    library.syscall = reinterpret_cast<decltype(library.syscall)>(::dlsym(RTLD_NEXT, "syscall"));
    library.create = reinterpret_cast<decltype(library.create)>(::dlsym(RTLD_NEXT, "pthread_create"));
    library.join = reinterpret_cast<decltype(library.join)>(::dlsym(RTLD_NEXT, "pthread_join"));
}

enum class State : std::uint8_t { unused, ready, waits_for_word, waits_for_end, ended };

struct Thread {
    State state = State::unused;
    const void* awaited = nullptr;  // the word of a futex, or the thread that has to end
    std::uint64_t not_before = 0;   // the number of its next turn at least
    std::uint64_t look_bound = 1;   // turns between two looks at what it waits for
    std::uint32_t has_turn = 0;     // it sleeps while this is 0
    pthread_t handle{};
    void* (*body)(void*) = nullptr;
    void* argument = nullptr;
};

inline thread_local Thread* own = nullptr;  // null in the first thread

[[noreturn]] inline void end_program(const char* why) {
    std::fprintf(stderr, "turns: %s\n", why);
    std::_Exit(98);
}

// Only the thread that has the turn changes it.
class Turns {
public:
    // The calling thread does not run during the next `count` turns, unless no other thread can run.
    void lose(std::uint64_t count) {
        Thread& thread = current();
        thread.not_before = number_ + count + 1;
        hand_over(thread);
    }

    // The calling thread waits for another one: it looks again later each time.
    void look_later() {
        std::uint64_t& bound = current().look_bound;
        bound = std::min<std::uint64_t>(2 * bound, 16);
        lose(1 + (draw() >> 32) % bound);
    }

    // One in 16 calls loses the turn, and of these one in 16 for long.
    void may_lose() {
        if (threads_ == 1) return;
        current().look_bound = 1;
        const std::uint64_t drawn = draw();
        if (drawn >> 60 != 0) return;
        lose(((drawn >> 52 & 15) == 0 ? 64 : 1) + (drawn >> 56 & 3));
    }

    void wait(State why, const void* what) {
        Thread& thread = current();
        thread.state = why;
        thread.awaited = what;
        hand_over(thread);
    }

    long wake(State why, const void* what, long count_max) {
        long count = 0;
        for (Thread& thread : table_) {
            if (thread.state != why || thread.awaited != what || count == count_max) continue;
            thread.state = State::ready;
            ++count;
        }
        return count;
    }

    int create(pthread_t* handle, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
        Thread* const thread = std::ranges::find(table_, State::unused, &Thread::state);
        if (thread == table_.end()) end_program("there are too many threads");
        *thread = {.not_before = number_, .body = body, .argument = argument};
        const int error = library.create(&thread->handle, attributes, begin, thread);
        if (error != 0) return error;
        thread->state = State::ready;
        *handle = thread->handle;
        ++threads_;
        return 0;
    }

    int join(pthread_t handle, void** result) {
        for (Thread& thread : table_) {
            if (thread.body == nullptr || thread.state == State::unused || ::pthread_equal(thread.handle, handle) == 0) continue;
            if (thread.state != State::ended) wait(State::waits_for_end, &thread);
            thread.state = State::unused;
            --threads_;
        }
        return library.join(handle, result);
    }

private:
    std::uint64_t draw() {
        if (random_ == 0) {
            const char* const seed = std::getenv("DURASIM_TEST_SEED");
            random_ = 1 + (seed == nullptr ? 0 : std::strtoull(seed, nullptr, 10)) * 0x9E3779B97F4A7C15u;
        }
        random_ = random_ * 6364136223846793005u + 1442695040888963407u;
        return random_;
    }

    Thread& current() { return own == nullptr ? table_[0] : *own; }

    static void* begin(void* given);

    void hand_over(Thread& from) {
        Thread& to = next();
        if (&from == &to) return;
        give_turn(to);
        sleep(from);
    }

    void end(Thread& thread) {
        thread.state = State::ended;
        wake(State::waits_for_end, &thread, 1);
        give_turn(next());
    }

    // One of those that may run; if there is none, the one that may run first.
    Thread& next() {
        ++number_;
        std::array<Thread*, threads_max> may_run;
        std::size_t count = 0;
        Thread* first = nullptr;
        for (Thread& thread : table_) {
            if (thread.state != State::ready) continue;
            if (thread.not_before <= number_) may_run[count++] = &thread;
            if (first == nullptr || thread.not_before < first->not_before) first = &thread;
        }
        if (count != 0) return *may_run[(draw() >> 32) % count];
        if (first == nullptr) end_program("each thread waits for another");
        number_ = first->not_before;
        return *first;
    }

    static void give_turn(Thread& thread) {
        __atomic_store_n(&thread.has_turn, 1, __ATOMIC_SEQ_CST);
        library.syscall(SYS_futex, &thread.has_turn, FUTEX_WAKE_PRIVATE, 1);
    }

    static void sleep(Thread& thread) {
        while (__atomic_exchange_n(&thread.has_turn, 0, __ATOMIC_SEQ_CST) == 0) {
            library.syscall(SYS_futex, &thread.has_turn, FUTEX_WAIT_PRIVATE, 0, nullptr);
        }
    }

    static constexpr std::size_t threads_max = 160;

    std::array<Thread, threads_max> table_{{{.state = State::ready}}};
    std::size_t threads_ = 1;
    std::uint64_t number_ = 0;  // of the turn
    std::uint64_t random_ = 0;
};

inline constinit Turns all;

inline void* Turns::begin(void* given) {
    own = static_cast<Thread*>(given);
    sleep(*own);
    void* const result = own->body(own->argument);
    all.end(*own);
    return result;
}

// Runs before the program: binds it to the core that it is on, and starts it again where addresses are not randomised. Some
// containers forbid that; the orders then differ between runs.
[[gnu::constructor(101)]] static void prepare(int, char** arguments, char** environment) {
    find_library();
    const int core = ::sched_getcpu();
    cpu_set_t chosen;
    CPU_ZERO(&chosen);
    if (core >= 0) CPU_SET(core, &chosen);
    ::sched_setaffinity(0, sizeof chosen, &chosen);
    constexpr unsigned long read_only = 0xFFFFFFFF;
    const auto kind = static_cast<unsigned long>(::personality(read_only));
    if ((kind & ADDR_NO_RANDOMIZE) != 0 || ::personality(kind | ADDR_NO_RANDOMIZE) == -1) return;
    if ((::personality(read_only) & ADDR_NO_RANDOMIZE) != 0) ::execve("/proc/self/exe", arguments, environment);
}

}  // namespace turns

extern "C" {
int sched_yield() noexcept {
    turns::all.look_later();
    return 0;
}

int pthread_create(pthread_t* handle, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) noexcept {
    return turns::all.create(handle, attributes, body, argument);
}

int pthread_join(pthread_t handle, void** result) { return turns::all.join(handle, result); }

long syscall(long number, ...) noexcept {
    std::array<long, 6> words;
    va_list list;
    va_start(list, number);
    for (long& word : words) word = va_arg(list, long);
    va_end(list);
    if (number != SYS_futex) return turns::library.syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
    const auto* const word = reinterpret_cast<const std::uint32_t*>(words[0]);
    switch (words[1] & FUTEX_CMD_MASK) {
        case FUTEX_WAKE:
            return turns::all.wake(turns::State::waits_for_word, word, static_cast<int>(words[2]));
        case FUTEX_WAIT:
            if (__atomic_load_n(word, __ATOMIC_SEQ_CST) == static_cast<std::uint32_t>(words[2])) {
                turns::all.wait(turns::State::waits_for_word, word);
                return 0;
            }
            errno = EAGAIN;
            return -1;
        default:
            turns::end_program("no such operation of a futex is known");
    }
}
}

#endif
