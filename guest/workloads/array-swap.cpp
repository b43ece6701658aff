// durasim-workload: array-swap — an array of which two random elements are swapped in each transaction
//
// The default element has 256 bytes, four lines, so that a transaction modifies 8 lines and nothing else: the length that
// Hercules (TECS'23, Table 4) reports for its Array Swap. The number of swaps of a single thread needs no counter of its
// own, since every place counts its swaps.
//
// Several threads lock the stripes of the two places, the lower one first, and each counts its swaps, on a ninth line.
//
// growing-array is the same program with the macro DURASIM_GROWS: swaps begin with the first two elements and reach one more
// after each four, so that a run starts inside the caches, as it does with structures that are empty at first.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "durasim/random.h"
#include "workloads/harness.h"

#ifndef DURASIM_GROWS
#define DURASIM_GROWS 0
#endif

namespace {

using durasim::Arguments;
using durasim::Audit;
using durasim::Long;
using durasim::Pool;
using durasim::Progress;
using durasim::Tx;

constexpr std::uint64_t kind_of_root = 0x70617773;  // "swap"
constexpr std::uint64_t element_bytes_max = 4096;

struct alignas(64) Array {
    std::uint64_t kind;
    std::uint64_t seed;
    std::uint64_t element_bytes;
    std::uint64_t length;
    std::uint64_t ready;  // elements that have been filled in
    std::uint64_t* words;
    std::uint64_t threads;
    Progress* progress;  // of each thread; null for a single one
};

// An element: its identity, how often its place took part in a swap, a filling that only this element has, and a seal over
// the first two.
std::uint64_t filling(std::uint64_t seed, std::uint64_t id, std::uint64_t word) {
    return durasim::mix(durasim::mix(seed + id) + word);
}
std::uint64_t seal(std::uint64_t seed, std::uint64_t id, std::uint64_t swaps) {
    return durasim::mix(durasim::mix(seed ^ id) - swaps);
}

struct Choice {
    std::uint64_t first, second;
};

// The number of places that the n-th swap of a thread chooses from.
std::uint64_t reach(std::uint64_t number, std::uint64_t length) {
    constexpr std::uint64_t swaps_per_element = 4;
    if constexpr (DURASIM_GROWS != 0) length = std::min(length, 2 + number / swaps_per_element);
    return length;
}

// The two places that the n-th swap of a thread takes.
Choice choose(std::uint64_t seed, std::uint64_t thread, std::uint64_t number, std::uint64_t elements) {
    const std::uint64_t length = reach(number, elements);
    durasim::Random random(durasim::mix(seed) + durasim::operation_of(thread, number) * 0x632BE59BD9B4E019u);
    const std::uint64_t first = random.below(length);
    const std::uint64_t second = random.below(length - 1);
    return {first, second < first ? second : second + 1};
}

class ArraySwap {
public:
    static std::uint64_t arenas(const Arguments&) { return 1; }

    static std::uint64_t pool_bytes(const Arguments& arguments) {
        check_arguments(arguments);
        const std::uint64_t progress_bytes = durasim::block_bytes(arguments.threads * sizeof(Progress));
        return arguments.populate * arguments.element_bytes + progress_bytes + 64 * durasim::line_bytes;
    }

    ArraySwap(Pool& pool, const Arguments& arguments) {
        check_arguments(arguments);
        array_ = pool.root<Array>();
        if (array_ == nullptr) {
            durasim::tx([&](Tx& t) {
                auto* array = static_cast<Array*>(t.allocate(sizeof(Array)));
                t.write(array->kind, kind_of_root);
                t.write(array->seed, arguments.seed);
                t.write(array->element_bytes, arguments.element_bytes);
                t.write(array->length, arguments.populate);
                t.write(array->ready, 0);
                t.write(array->words, static_cast<std::uint64_t*>(t.allocate(arguments.populate * arguments.element_bytes)));
                t.write(array->threads, arguments.threads);
                Progress* progress = nullptr;
                if (arguments.threads > 1) {
                    progress = static_cast<Progress*>(t.allocate(arguments.threads * sizeof(Progress)));
                    for (std::uint64_t i = 0; i < arguments.threads; ++i) t.write(progress[i].finished, 0);
                }
                t.write(array->progress, progress);
                pool.set_root(t, array);
                if constexpr (durasim::has_history) durasim::report_change(durasim::root_object, 0, kind_of_root);
            });
            array_ = pool.root<Array>();
        }
        if (array_->kind != kind_of_root) durasim::fail(durasim::exit_usage, "array-swap: the pool belongs to another workload");
        if (array_->seed != arguments.seed || array_->element_bytes != arguments.element_bytes ||
            array_->length != arguments.populate || array_->threads != arguments.threads) {
            durasim::fail(durasim::exit_usage,
                          "array-swap: the pool was made with --seed %llu --populate %llu --element-bytes %llu --threads %llu; "
                          "use these",
                          static_cast<Long>(array_->seed), static_cast<Long>(array_->length),
                          static_cast<Long>(array_->element_bytes), static_cast<Long>(array_->threads));
        }
        seed_ = array_->seed;
        words_ = array_->element_bytes / 8;
        length_ = array_->length;
        progress_ = array_->progress;
        swaps_.resize(array_->threads);
        for (std::uint64_t i = 0; i < array_->threads; ++i) {
            swaps_[i] = progress_ == nullptr ? count_places() / 2 : progress_[i].finished;
        }
        if (array_->threads > 1) {
            stripes_ = arguments.stripes;
            locks_ = std::make_unique<durasim::TxLock[]>(stripes_);
        }
    }

    std::uint64_t populated() const { return array_->ready; }

    struct Thread {
        std::uint64_t number;
        std::uint64_t swaps;
        std::uint64_t buffer[2][element_bytes_max / 8];
    };

    Thread enter(std::uint64_t number) const { return {number, swaps_[number], {}}; }
    void leave(const Thread& thread) { swaps_[thread.number] = thread.swaps; }

    void populate_one(Thread&) {
        durasim::tx([&](Tx& t) {
            const std::uint64_t id = t.read(array_->ready);
            std::uint64_t* element = array_->words + id * words_;
            t.write(element[0], id);
            t.write(element[1], 0);
            for (std::uint64_t w = 2; w < words_ - 1; ++w) t.write(element[w], filling(seed_, id, w));
            t.write(element[words_ - 1], seal(seed_, id, 0));
            t.write(array_->ready, id + 1);
            if constexpr (durasim::has_history) {
                durasim::Version version;
                for (std::uint64_t w = 0; w < words_; ++w) version.take(t.read(element[w]));
                durasim::report_change(id, 0, version.value());
                durasim::report_change(durasim::populated_object, id, id + 1);
            }
        });
    }

    void operation(Thread& thread) {
        const Choice choice = choose(seed_, thread.number, thread.swaps, length_);
        if (locks_ == nullptr) {
            swap_places(thread, choice);
            return;
        }
        const std::uint64_t a = choice.first % stripes_, b = choice.second % stripes_;
        const std::lock_guard lower(locks_[a < b ? a : b]);
        std::unique_lock<durasim::TxLock> upper;
        if (a != b) upper = std::unique_lock(locks_[a < b ? b : a]);
        swap_places(thread, choice);
    }

    void compare_with_model() const {
        // The check has replayed the swaps that the pool holds; here remains whether these are all that were made.
        if (count_places() != 2 * swaps()) {
            DURASIM_VIOLATION("places count %llu swaps after %llu", static_cast<Long>(count_places()), static_cast<Long>(swaps()));
        }
        for (std::uint64_t i = 0; progress_ != nullptr && i < array_->threads; ++i) {
            if (progress_[i].finished != swaps_[i]) {
                DURASIM_VIOLATION("thread %llu made %llu swaps, but the pool says %llu", static_cast<Long>(i),
                                  static_cast<Long>(swaps_[i]), static_cast<Long>(progress_[i].finished));
            }
        }
    }

    void print_result() const {
        std::printf("elements=%llu swaps=%llu", static_cast<Long>(length_), static_cast<Long>(swaps()));
    }

    static std::uint64_t check(const Pool& pool);

    static void dump(const Pool& pool, durasim::Dump& dump) {
        const Array* array = pool.root<Array>();
        if (!pool.holds(array, sizeof(Array))) return dump.note_damage();
        dump.add(durasim::root_object, array->kind);
        dump.add(durasim::populated_object, array->ready);
        const std::uint64_t bytes = array->element_bytes, ready = array->ready, threads = array->threads;
        if (bytes % 8 != 0 || bytes > element_bytes_max || ready > pool.data_bytes() || threads > durasim::threads_max ||
            !pool.holds(array->words, ready * bytes)) {
            return dump.note_damage();
        }
        for (std::uint64_t place = 0; place < ready; ++place) {
            dump.add(place, durasim::version_of(array->words + place * (bytes / 8), bytes / 8));
        }
        if (array->progress == nullptr) return;
        if (!pool.holds(array->progress, threads * sizeof(Progress))) return dump.note_damage();
        for (std::uint64_t i = 0; i < threads; ++i) dump.add(durasim::progress_object(i), array->progress[i].finished);
    }

private:
    static void check_arguments(const Arguments& arguments) {
        if (arguments.element_bytes % durasim::line_bytes != 0) {
            durasim::fail(durasim::exit_usage, "array-swap: --element-bytes has to be a multiple of 64, not %llu",
                          static_cast<Long>(arguments.element_bytes));
        }
        if (arguments.populate < 2) durasim::fail(durasim::exit_usage, "array-swap: --populate has to be at least 2");
    }

    void swap_places(Thread& thread, const Choice& choice) {
        std::uint64_t* first = array_->words + choice.first * words_;
        std::uint64_t* second = array_->words + choice.second * words_;
        durasim::tx([&](Tx& t) {
            std::uint64_t* from_first = thread.buffer[0];
            std::uint64_t* from_second = thread.buffer[1];
            t.read_words(from_first, first, words_ * 8);
            t.read_words(from_second, second, words_ * 8);
            [[maybe_unused]] std::uint64_t found[2];
            if constexpr (durasim::has_history) {
                found[0] = durasim::version_of(from_first, words_);
                found[1] = durasim::version_of(from_second, words_);
            }
            std::swap(from_first[1], from_second[1]);  // this count stays at its place
            for (std::uint64_t* element : {from_first, from_second}) {
                ++element[1];
                element[words_ - 1] = seal(seed_, element[0], element[1]);
            }
            t.write_words(first, from_second, words_ * 8);
            t.write_words(second, from_first, words_ * 8);
            if constexpr (durasim::has_history) {
                durasim::report_change(choice.first, found[0], durasim::version_of(from_second, words_));
                durasim::report_change(choice.second, found[1], durasim::version_of(from_first, words_));
                if (progress_ != nullptr) {
                    const std::uint64_t finished = t.read(progress_[thread.number].finished);
                    durasim::report_change(durasim::progress_object(thread.number), finished, thread.swaps + 1);
                }
            }
            if (progress_ != nullptr) t.write(progress_[thread.number].finished, thread.swaps + 1);
        });
        ++thread.swaps;
    }

    std::uint64_t swaps() const {
        std::uint64_t sum = 0;
        for (const std::uint64_t swaps : swaps_) sum += swaps;
        return sum;
    }

    std::uint64_t count_places() const {
        std::uint64_t sum = 0;
        for (std::uint64_t i = 0; i < array_->ready; ++i) sum += array_->words[i * words_ + 1];
        return sum;
    }

    Array* array_ = nullptr;
    std::uint64_t seed_ = 0;
    std::uint64_t words_ = 0;
    std::uint64_t length_ = 0;
    Progress* progress_ = nullptr;
    std::unique_ptr<durasim::TxLock[]> locks_;  // of the stripes; a single thread needs none
    std::uint64_t stripes_ = 0;
    std::vector<std::uint64_t> swaps_;  // by each thread: what the pool must hold
};

// Replaying the swaps in ordinary memory gives how often each place took part and, if one thread made them all, which
// element it holds. Where several threads met at a place, their order decides that; a half swap still shows: an element is
// then there twice, or a place counts too few.
void replay(const Array* array, std::uint64_t swaps) {
    struct Place {
        std::uint64_t id, swaps;
    };
    const std::uint64_t words = array->element_bytes / 8;
    std::vector<Place> model(array->ready);
    for (std::uint64_t i = 0; i < model.size(); ++i) model[i] = {i, 0};
    for (std::uint64_t thread = 0; swaps != 0 && thread < array->threads; ++thread) {
        const std::uint64_t finished = array->progress == nullptr ? swaps : array->progress[thread].finished;
        for (std::uint64_t n = 0; n < finished; ++n) {
            const Choice choice = choose(array->seed, thread, n, array->length);
            std::swap(model[choice.first].id, model[choice.second].id);
            ++model[choice.first].swaps;
            ++model[choice.second].swaps;
        }
    }
    std::vector<bool> seen(array->ready);
    for (std::uint64_t place = 0; place < model.size(); ++place) {
        const std::uint64_t* element = array->words + place * words;
        if (element[1] != model[place].swaps) {
            DURASIM_VIOLATION("place %llu took part in %llu swaps, but after %llu swaps these should be %llu", static_cast<Long>(place),
                              static_cast<Long>(element[1]), static_cast<Long>(swaps), static_cast<Long>(model[place].swaps));
        }
        if (array->threads == 1 && element[0] != model[place].id) {
            DURASIM_VIOLATION("place %llu holds element %llu, but after %llu swaps it should hold %llu", static_cast<Long>(place),
                              static_cast<Long>(element[0]), static_cast<Long>(swaps), static_cast<Long>(model[place].id));
        }
        if (seen[element[0]]) DURASIM_VIOLATION("element %llu is there twice", static_cast<Long>(element[0]));
        seen[element[0]] = true;
    }
}

std::uint64_t ArraySwap::check(const Pool& pool) {
    Audit audit(pool);
    if (audit.problem() != nullptr) DURASIM_VIOLATION("%s", audit.problem());
    const Array* array = pool.root<Array>();
    if (!audit.claim(array, sizeof(Array))) DURASIM_VIOLATION("the root object is not allocated");
    if (array->kind != kind_of_root) DURASIM_VIOLATION("the root object is not an array");
    if (array->element_bytes < 64 || array->element_bytes % 64 != 0 || array->element_bytes > element_bytes_max ||
        array->length < 2 || array->length > pool.data_bytes() / array->element_bytes || array->ready > array->length) {
        DURASIM_VIOLATION("the array has impossible sizes");
    }
    if (array->threads == 0 || array->threads > durasim::threads_max || (array->threads == 1) != (array->progress == nullptr)) {
        DURASIM_VIOLATION("the array has an impossible number of threads");
    }
    if (!audit.claim(array->words, array->length * array->element_bytes)) DURASIM_VIOLATION("the array is not allocated");
    if (array->progress != nullptr && !audit.claim(array->progress, array->threads * sizeof(Progress))) {
        DURASIM_VIOLATION("the counts of the threads are not allocated");
    }
    if (audit.lines_leaked() != 0) DURASIM_VIOLATION("%llu lines are leaked", static_cast<Long>(audit.lines_leaked()));

    // Every element is whole.
    const std::uint64_t words = array->element_bytes / 8;
    std::uint64_t sum = 0;
    for (std::uint64_t place = 0; place < array->ready; ++place) {
        const std::uint64_t* element = array->words + place * words;
        const std::uint64_t id = element[0];
        bool whole = id < array->ready && element[words - 1] == seal(array->seed, id, element[1]);
        for (std::uint64_t w = 2; whole && w < words - 1; ++w) whole = element[w] == filling(array->seed, id, w);
        if (!whole) DURASIM_VIOLATION("the element at place %llu is torn", static_cast<Long>(place));
        sum += element[1];
    }
    if (sum % 2 != 0) DURASIM_VIOLATION("half a swap is in the array");
    const std::uint64_t swaps = sum / 2;
    if (swaps != 0 && array->ready != array->length) DURASIM_VIOLATION("elements were swapped before all were there");

    std::uint64_t counted = 0;
    for (std::uint64_t i = 0; array->progress != nullptr && i < array->threads; ++i) {
        const std::uint64_t finished = array->progress[i].finished;
        counted = finished > swaps ? ~std::uint64_t{0} : counted + finished;
        if (counted > swaps) break;
    }
    if (array->progress != nullptr && counted != swaps) {
        DURASIM_VIOLATION("places count %llu swaps, but the threads another number", static_cast<Long>(swaps));
    }
    replay(array, swaps);
    return array->ready + swaps;
}

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<ArraySwap>(argc, argv); }
