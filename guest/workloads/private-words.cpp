// durasim-workload: private-words — transactions that read and write random words of a private part of the heap
//
// The synthetic benchmark of "Durable Hardware Transactional Memory for Extended Asynchronous DRAM Refresh Architectures"
// (thesis, Lisboa 2022, section 4.3.1): each thread has a part of the heap of its own, and each transaction reads and writes some words of it,
// uniformly at random. Nothing is shared, so nothing conflicts, and no lock is needed.
//
// The heap has --populate lines of eight words, dealt to the threads; populating writes each one once, so every page is touched
// before anything is measured; with --populate-by page one word of each page. Beside its words a transaction writes the count of its thread's operations, which the thesis
// does not. Which words an operation takes depends on seed, thread and number alone, so the counts say what each word holds.
#include <cstdint>
#include <cstring>
#include <vector>

#include "durasim/random.h"
#include "workloads/harness.h"

namespace {

using durasim::Arguments;
using durasim::Audit;
using durasim::Long;
using durasim::Pool;
using durasim::Progress;
using durasim::Tx;

constexpr std::uint64_t kind_of_root = 0x65746176697270;  // "private"
constexpr std::uint64_t words_of_line = durasim::line_bytes / 8, words_of_page = 512;

struct alignas(64) Heap {
    std::uint64_t kind;
    std::uint64_t seed;
    std::uint64_t lines;
    std::uint64_t ready;  // lines that have been written
    std::uint64_t writes, reads;
    std::uint64_t threads;
    std::uint64_t* words;
    Progress* progress;
    std::uint64_t touches_pages;
};

// The value of a word after populating.
std::uint64_t initial_word(const Heap& heap, std::uint64_t index) {
    return heap.touches_pages && index % words_of_page != 0 ? 0 : durasim::mix(heap.seed + index) >> 1;
}

// The start of the words of a thread, and their number.
std::uint64_t first_word(const Heap& heap, std::uint64_t thread) { return durasim::share_before(heap.lines, heap.threads, thread) * words_of_line; }
std::uint64_t words_of(const Heap& heap, std::uint64_t thread) { return durasim::share_of(heap.lines, heap.threads, thread) * words_of_line; }

// The words that the n-th operation of a thread writes and reads, as indices in its part, and what it writes there.
class Accesses {
public:
    Accesses(const Heap& heap, std::uint64_t thread, std::uint64_t number)
        : random_(durasim::mix(heap.seed) + durasim::operation_of(thread, number) * 0x632BE59BD9B4E019u), words_(words_of(heap, thread)) {}
    std::uint64_t next() { return random_.below(words_); }
    std::uint64_t value() { return random_.next() >> 1 | 1; }

private:
    durasim::Random random_;
    std::uint64_t words_;
};

class PrivateWords {
public:
    struct Thread {
        std::uint64_t number;
        std::uint64_t finished;
    };

    static std::uint64_t arenas(const Arguments&) { return 1; }
    static std::uint64_t pool_bytes(const Arguments& arguments) {
        return durasim::block_bytes(lines_of(arguments) * durasim::line_bytes) + durasim::block_bytes(arguments.threads * sizeof(Progress)) +
               64 * durasim::line_bytes;
    }

    PrivateWords(Pool& pool, const Arguments& arguments) {
        heap_ = pool.root<Heap>();
        if (heap_ == nullptr) {
            make(pool, arguments);
            heap_ = pool.root<Heap>();
        }
        if (heap_->kind != kind_of_root) durasim::fail(durasim::exit_usage, "private-words: the pool belongs to another workload");
        if (heap_->seed != arguments.seed || heap_->lines != lines_of(arguments) || heap_->threads != arguments.threads ||
            heap_->writes != arguments.writes || heap_->reads != arguments.reads || heap_->touches_pages != touches_pages(arguments)) {
            durasim::fail(durasim::exit_usage,
                          "private-words: the pool was made with --seed %llu --populate %llu --threads %llu --writes %llu --reads %llu%s; use these",
                          static_cast<Long>(heap_->seed), static_cast<Long>(heap_->lines), static_cast<Long>(heap_->threads),
                          static_cast<Long>(heap_->writes), static_cast<Long>(heap_->reads),
                          heap_->touches_pages != 0 ? " --populate-by page" : "");
        }
        copy_ = *heap_;
        for (std::uint64_t i = 0; i < copy_.threads; ++i) finished_.push_back(copy_.progress[i].finished);
    }

    std::uint64_t populated() const { return heap_->ready; }

    Thread enter(std::uint64_t number) const { return {number, finished_[number]}; }
    void leave(const Thread& thread) { finished_[thread.number] = thread.finished; }

    void populate_one(Thread&) {
        durasim::tx([&](Tx& t) {
            const std::uint64_t line = t.read(heap_->ready);
            const std::uint64_t step = copy_.touches_pages != 0 ? words_of_page / words_of_line : 1, left = copy_.lines - line;
            const std::uint64_t end = line + (step < left ? step : left);
            for (std::uint64_t i = line * words_of_line; i < end * words_of_line; i += step == 1 ? 1 : words_of_page) {
                const std::uint64_t word = initial_word(copy_, i);
                t.write(copy_.words[i], word);
                durasim::report_change(i, 0, word);
            }
            t.write(heap_->ready, end);
            durasim::report_change(durasim::populated_object, line, end);
        });
    }

    void operation(Thread& thread) {
        const std::uint64_t base = first_word(copy_, thread.number);
        std::uint64_t* const words = copy_.words + base;
        std::uint64_t sum = 0;
        durasim::tx([&](Tx& t) {
            sum = 0;
            Accesses accesses(copy_, thread.number, thread.finished);
            for (std::uint64_t i = 0; i < copy_.writes; ++i) {
                const std::uint64_t at = accesses.next(), value = accesses.value();
                if constexpr (durasim::has_history) durasim::report_change(base + at, t.read(words[at]), value);
                t.write(words[at], value);
            }
            for (std::uint64_t i = 0; i < copy_.reads; ++i) sum += t.read(words[accesses.next()]);
            t.write(copy_.progress[thread.number].finished, thread.finished + 1);
            durasim::report_change(durasim::progress_object(thread.number), thread.finished, thread.finished + 1);
        });
        sum_ = sum;
        ++thread.finished;
    }

    void compare_with_model() const {
        for (std::uint64_t i = 0; i < finished_.size(); ++i) {
            if (copy_.progress[i].finished != finished_[i]) {
                DURASIM_VIOLATION("thread %llu finished %llu operations, but the pool says %llu", static_cast<Long>(i),
                                  static_cast<Long>(finished_[i]), static_cast<Long>(copy_.progress[i].finished));
            }
        }
    }

    void print_result() const {
        std::uint64_t operations = 0;
        for (const std::uint64_t finished : finished_) operations += finished;
        std::printf("words=%llu operations=%llu", static_cast<Long>(copy_.lines * words_of_line), static_cast<Long>(operations));
    }

    static std::uint64_t check(const Pool& pool) {
        Audit audit(pool);
        if (audit.problem() != nullptr) DURASIM_VIOLATION("%s", audit.problem());
        const Heap* heap = pool.root<Heap>();
        if (!audit.claim(heap, sizeof(Heap))) DURASIM_VIOLATION("the root object is not allocated");
        if (heap->kind != kind_of_root) DURASIM_VIOLATION("the root object is not a heap of words");
        if (heap->threads == 0 || heap->threads > durasim::threads_max || heap->lines < heap->threads ||
            heap->lines > pool.data_bytes() / durasim::line_bytes || heap->ready > heap->lines ||
            heap->writes > accesses_max || heap->reads > accesses_max) {
            DURASIM_VIOLATION("the heap has impossible sizes");
        }
        if (!audit.claim(heap->words, heap->lines * durasim::line_bytes) || !audit.claim(heap->progress, heap->threads * sizeof(Progress))) {
            DURASIM_VIOLATION("what belongs to the root object is not allocated");
        }
        if (audit.lines_leaked() != 0) DURASIM_VIOLATION("%llu lines are leaked", static_cast<Long>(audit.lines_leaked()));
        std::uint64_t operations = 0;
        for (std::uint64_t i = 0; i < heap->threads; ++i) operations += check_thread(*heap, i);
        if (operations != 0 && heap->ready != heap->lines) DURASIM_VIOLATION("there were operations before all lines were there");
        return heap->ready + operations;
    }

    static void dump(const Pool& pool, durasim::Dump& dump) {
        const Heap* heap = pool.root<Heap>();
        if (!pool.holds(heap, sizeof(Heap))) return dump.note_damage();
        dump.add(durasim::root_object, heap->kind);
        dump.add(durasim::populated_object, heap->ready);
        if (heap->ready > pool.data_bytes() / durasim::line_bytes || heap->threads > durasim::threads_max || !pool.holds(heap->words, heap->ready * durasim::line_bytes) ||
            !pool.holds(heap->progress, heap->threads * sizeof(Progress))) {
            return dump.note_damage();
        }
        for (std::uint64_t i = 0; i < heap->ready * words_of_line; ++i) {
            if (heap->touches_pages == 0 || heap->words[i] != 0) dump.add(i, heap->words[i]);
        }
        for (std::uint64_t i = 0; i < heap->threads; ++i) dump.add(durasim::progress_object(i), heap->progress[i].finished);
    }

private:
    static constexpr std::uint64_t accesses_max = 4096;

    static std::uint64_t lines_of(const Arguments& arguments) {
        if (arguments.populate < arguments.threads) {
            durasim::fail(durasim::exit_usage, "private-words: --populate has to be at least --threads: each thread needs a line");
        }
        return arguments.populate;
    }

    static std::uint64_t touches_pages(const Arguments& arguments) { return std::strcmp(arguments.populate_by, "page") == 0; }

    static void make(Pool& pool, const Arguments& arguments) {
        durasim::tx([&](Tx& t) {
            auto* heap = static_cast<Heap*>(t.allocate(sizeof(Heap)));
            auto* progress = static_cast<Progress*>(t.allocate(arguments.threads * sizeof(Progress)));
            for (std::uint64_t i = 0; i < arguments.threads; ++i) t.write(progress[i].finished, 0);
            t.write(heap->kind, kind_of_root);
            t.write(heap->seed, arguments.seed);
            t.write(heap->lines, lines_of(arguments));
            t.write(heap->ready, 0);
            t.write(heap->writes, arguments.writes);
            t.write(heap->reads, arguments.reads);
            t.write(heap->threads, arguments.threads);
            t.write(heap->words, static_cast<std::uint64_t*>(t.allocate(lines_of(arguments) * durasim::line_bytes)));
            t.write(heap->progress, progress);
            t.write(heap->touches_pages, touches_pages(arguments));
            pool.set_root(t, heap);
            durasim::report_change(durasim::root_object, 0, kind_of_root);
        });
    }

    // Each word of a thread is what its operations leave.
    static std::uint64_t check_thread(const Heap& heap, std::uint64_t thread) {
        const std::uint64_t finished = heap.progress[thread].finished, base = first_word(heap, thread);
        if (finished >> durasim::operation_bits != 0) DURASIM_VIOLATION("thread %llu has an impossible count", static_cast<Long>(thread));
        std::vector<std::uint64_t> model(words_of(heap, thread));
        const std::uint64_t written = heap.ready * words_of_line;
        for (std::uint64_t i = 0; i < model.size(); ++i) model[i] = base + i < written ? initial_word(heap, base + i) : 0;
        for (std::uint64_t n = 0; n < finished; ++n) {
            Accesses accesses(heap, thread, n);
            for (std::uint64_t i = 0; i < heap.writes; ++i) {
                const std::uint64_t at = accesses.next();
                model[at] = accesses.value();
            }
        }
        for (std::uint64_t i = 0; i < model.size(); ++i) {
            if (heap.words[base + i] != model[i] && base + i < written) {
                DURASIM_VIOLATION("word %llu of thread %llu is not that of %llu operations", static_cast<Long>(i), static_cast<Long>(thread),
                                  static_cast<Long>(finished));
            }
        }
        return finished;
    }

    Heap* heap_ = nullptr;
    Heap copy_{};  // what does not change
    volatile std::uint64_t sum_ = 0;
    std::vector<std::uint64_t> finished_;
};

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<PrivateWords>(argc, argv); }
