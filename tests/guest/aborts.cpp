// A model of a machine that aborts transactions, for guest programs that run natively on the host: linked to a program
// that was compiled with DURASIM_TEST_HOOKS and the runtime of markers, it rolls back what the transaction stored to the
// pool and lets durasim_tx_begin return again.
//
//   DURASIM_TEST_ABORT_ONE_IN=N   of N stores in a transaction, and of N commits, about one aborts (0: none does)
//   DURASIM_TEST_ABORT_CAUSE=N    what is returned then, 256 (a conflict) unless given
//   DURASIM_TEST_REPORT=FILE      where "aborts commits" are written at the end
#include <setjmp.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "durasim/encodings.h"
#include "durasim/random.h"

namespace {

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
    const char* text = std::getenv(variable);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

const std::uint64_t one_in = number_from("DURASIM_TEST_ABORT_ONE_IN", 0);
const std::uint64_t cause = number_from("DURASIM_TEST_ABORT_CAUSE", 0x100);
std::atomic<std::uint64_t> aborts, commits, threads;

struct Report {
    ~Report() {
        if (const char* path = std::getenv("DURASIM_TEST_REPORT")) {
            if (std::FILE* file = std::fopen(path, "w")) {
                std::fprintf(file, "%llu %llu\n", static_cast<unsigned long long>(aborts.load()),
                             static_cast<unsigned long long>(commits.load()));
                std::fclose(file);
            }
        }
    }
} report;

struct Old {
    unsigned char* place;
    unsigned char bytes[8];
    std::uint64_t size_bytes;
};

// Of the thread that looks. Its locks keep others away from what it has stored.
struct Transaction {
    jmp_buf frame;
    bool open = false;
    std::vector<Old> stored;
    durasim::Random random{threads.fetch_add(1) + 1};
};
thread_local Transaction transaction;

void abort_with(std::uint64_t code) {
    for (std::size_t i = transaction.stored.size(); i-- > 0;) {
        const Old& old = transaction.stored[i];
        std::memcpy(old.place, old.bytes, old.size_bytes);
    }
    transaction.stored.clear();
    transaction.open = false;
    ++aborts;
    longjmp(transaction.frame, static_cast<int>(code));
}

void maybe_abort() {
    if (transaction.open && one_in != 0 && transaction.random.below(one_in) == 0) abort_with(cause);
}

}  // namespace

extern "C" {
void durasim_test_store(void* place, std::uint64_t size_bytes) {
    if (!transaction.open) return;
    maybe_abort();
    Old old{static_cast<unsigned char*>(place), {}, size_bytes};
    std::memcpy(old.bytes, place, size_bytes);
    transaction.stored.push_back(old);
}

void durasim_test_stored(void) {}
void durasim_test_clean(const void*) {}
void durasim_test_fence(void) {}

void durasim_test_marker(std::uint64_t imm, std::uint64_t argument) {
    switch (imm) {
        case DURASIM_MARKER_TX_BEGIN:
            transaction.open = true;
            transaction.stored.clear();
            break;
        case DURASIM_MARKER_TX_COMMIT:
            maybe_abort();
            transaction.open = false;
            ++commits;
            break;
        case DURASIM_MARKER_TX_ABORT:
            abort_with(argument);
            break;
        default:
            break;
    }
}

jmp_buf* durasim_test_tx_frame(void) { return &transaction.frame; }
}
