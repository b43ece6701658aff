// durasim-workload: array-swap — an array of which two random elements are swapped in each transaction
//
// The default element has 256 bytes, four lines, so that a transaction modifies 8 lines and nothing else: the length that
// Hercules (TECS'23, Table 4) reports for its Array Swap. The number of swaps needs no counter of its own, since every
// element counts how often it was moved.
#include <cstdint>
#include <vector>

#include "durasim/random.h"
#include "workloads/harness.h"

namespace {

using durasim::Arguments;
using durasim::Audit;
using durasim::Long;
using durasim::Pool;
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
};

// An element: its identity, how often it was moved, a filling that only this element has, and a seal over the first two.
std::uint64_t filling(std::uint64_t seed, std::uint64_t id, std::uint64_t word) {
    return durasim::mix(durasim::mix(seed + id) + word);
}
std::uint64_t seal(std::uint64_t seed, std::uint64_t id, std::uint64_t moves) {
    return durasim::mix(durasim::mix(seed ^ id) - moves);
}

struct Choice {
    std::uint64_t first, second;
};

// Which two places the n-th swap takes.
Choice choose(std::uint64_t seed, std::uint64_t number, std::uint64_t length) {
    durasim::Random random(durasim::mix(seed) + number * 0x632BE59BD9B4E019u);
    const std::uint64_t first = random.below(length);
    const std::uint64_t second = random.below(length - 1);
    return {first, second < first ? second : second + 1};
}

class ArraySwap {
public:
    static std::uint64_t pool_bytes(const Arguments& arguments) {
        check_arguments(arguments);
        return arguments.populate * arguments.element_bytes + 64 * durasim::line_bytes;
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
                pool.set_root(t, array);
            });
            array_ = pool.root<Array>();
        }
        if (array_->kind != kind_of_root) durasim::fail(durasim::exit_usage, "array-swap: the pool belongs to another workload");
        if (array_->seed != arguments.seed || array_->element_bytes != arguments.element_bytes ||
            array_->length != arguments.populate) {
            durasim::fail(durasim::exit_usage,
                          "array-swap: the pool was made with --seed %llu --populate %llu --element-bytes %llu; use these",
                          static_cast<Long>(array_->seed), static_cast<Long>(array_->length),
                          static_cast<Long>(array_->element_bytes));
        }
        seed_ = array_->seed;
        words_ = array_->element_bytes / 8;
        length_ = array_->length;
        swaps_ = count_moves() / 2;
    }

    std::uint64_t populated() const { return array_->ready; }

    void populate_one() {
        durasim::tx([&](Tx& t) {
            const std::uint64_t id = t.read(array_->ready);
            std::uint64_t* element = array_->words + id * words_;
            t.write(element[0], id);
            t.write(element[1], 0);
            for (std::uint64_t w = 2; w < words_ - 1; ++w) t.write(element[w], filling(seed_, id, w));
            t.write(element[words_ - 1], seal(seed_, id, 0));
            t.write(array_->ready, id + 1);
        });
    }

    void operation() {
        const Choice choice = choose(seed_, swaps_, length_);
        std::uint64_t* first = array_->words + choice.first * words_;
        std::uint64_t* second = array_->words + choice.second * words_;
        durasim::tx([&](Tx& t) {
            t.read_words(buffer_[0], first, words_ * 8);
            t.read_words(buffer_[1], second, words_ * 8);
            for (std::uint64_t* element : {buffer_[0], buffer_[1]}) {
                ++element[1];
                element[words_ - 1] = seal(seed_, element[0], element[1]);
            }
            t.write_words(first, buffer_[1], words_ * 8);
            t.write_words(second, buffer_[0], words_ * 8);
        });
        ++swaps_;
    }

    void compare_with_model() const {
        // The check has replayed the swaps that the pool holds; here remains whether these are all that were made.
        if (count_moves() != 2 * swaps_) {
            DURASIM_VIOLATION("%llu moves are counted after %llu swaps", static_cast<Long>(count_moves()), static_cast<Long>(swaps_));
        }
    }

    void print_result() const {
        std::printf("elements=%llu swaps=%llu", static_cast<Long>(length_), static_cast<Long>(swaps_));
    }

    static std::uint64_t check(const Pool& pool);

private:
    static void check_arguments(const Arguments& arguments) {
        if (arguments.element_bytes % durasim::line_bytes != 0) {
            durasim::fail(durasim::exit_usage, "array-swap: --element-bytes has to be a multiple of 64, not %llu",
                          static_cast<Long>(arguments.element_bytes));
        }
        if (arguments.populate < 2) durasim::fail(durasim::exit_usage, "array-swap: --populate has to be at least 2");
    }

    std::uint64_t count_moves() const {
        std::uint64_t moves = 0;
        for (std::uint64_t i = 0; i < array_->ready; ++i) moves += array_->words[i * words_ + 1];
        return moves;
    }

    Array* array_ = nullptr;
    std::uint64_t seed_ = 0;
    std::uint64_t words_ = 0;
    std::uint64_t length_ = 0;
    std::uint64_t swaps_ = 0;  // ordinary memory: what the pool must hold
    std::uint64_t buffer_[2][element_bytes_max / 8];
};

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
    if (!audit.claim(array->words, array->length * array->element_bytes)) DURASIM_VIOLATION("the array is not allocated");
    if (audit.lines_leaked() != 0) DURASIM_VIOLATION("%llu lines are leaked", static_cast<Long>(audit.lines_leaked()));

    // Every element is whole.
    const std::uint64_t words = array->element_bytes / 8;
    std::uint64_t moves = 0;
    for (std::uint64_t place = 0; place < array->ready; ++place) {
        const std::uint64_t* element = array->words + place * words;
        const std::uint64_t id = element[0];
        bool whole = id < array->ready && element[words - 1] == seal(array->seed, id, element[1]);
        for (std::uint64_t w = 2; whole && w < words - 1; ++w) whole = element[w] == filling(array->seed, id, w);
        if (!whole) DURASIM_VIOLATION("the element at place %llu is torn", static_cast<Long>(place));
        moves += element[1];
    }
    if (moves % 2 != 0) DURASIM_VIOLATION("half a swap is in the array");
    const std::uint64_t swaps = moves / 2;
    if (swaps != 0 && array->ready != array->length) DURASIM_VIOLATION("elements were swapped before all were there");

    // Replaying as many swaps in ordinary memory gives the same arrangement.
    struct Element {
        std::uint64_t id, moves;
    };
    std::vector<Element> model(array->ready);
    for (std::uint64_t i = 0; i < model.size(); ++i) model[i] = {i, 0};
    for (std::uint64_t n = 0; n < swaps; ++n) {
        const Choice choice = choose(array->seed, n, array->length);
        std::swap(model[choice.first], model[choice.second]);
        ++model[choice.first].moves;
        ++model[choice.second].moves;
    }
    for (std::uint64_t place = 0; place < model.size(); ++place) {
        const std::uint64_t* element = array->words + place * words;
        if (element[0] != model[place].id || element[1] != model[place].moves) {
            DURASIM_VIOLATION("place %llu holds element %llu, but after %llu swaps it should hold %llu", static_cast<Long>(place),
                              static_cast<Long>(element[0]), static_cast<Long>(swaps), static_cast<Long>(model[place].id));
        }
    }
    return array->ready + swaps;
}

}  // namespace

int main(int argc, char** argv) { return durasim::workload_main<ArraySwap>(argc, argv); }
