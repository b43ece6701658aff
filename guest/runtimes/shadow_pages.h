// A shadow of a pool that may be larger than the DRAM (thesis, section 5.2, whose proposal this is): only so many of its pages lie in the DRAM, and
// the price is paid when a page leaves it. A page may leave once persistent memory has all that was stored to it, so nothing has to be
// restored when it comes back: reads then go to persistent memory, and the next store copies the page again.
//
// A hardware transaction that stores to a page outside of the DRAM faults and aborts, so it need not look. Pages come and go under the
// global lock, when no hardware transaction is open and all that have committed are in the logs. Those that have been in the DRAM for the longest time
// leave first.
#ifndef DURASIM_RUNTIMES_SHADOW_PAGES_H
#define DURASIM_RUNTIMES_SHADOW_PAGES_H

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <deque>
#include <vector>

#include "durasim/error.h"
#include "durasim/layout.h"
#include "durasim/markers.h"
#include "runtimes/planted.h"
#include "runtimes/shadow.h"

namespace durasim {

class ShadowPages {
public:
    static constexpr std::uint64_t page_bytes = 4096;

    // The shadow of a pool of `pool_bytes` may have `limit_bytes` in the DRAM; 0: all of it. Ends the program if the DRAM has less.
    void start(std::uint64_t limit_bytes, std::uint64_t pool_bytes) {
        const std::uint64_t wanted = limit_bytes == 0 || limit_bytes > pool_bytes ? pool_bytes : limit_bytes;
        refuse_shadow_without_dram(wanted, "let less of it lie there (shadow-bytes)");
        if (wanted == pool_bytes) return;
        limit_ = wanted < page_bytes ? 1 : wanted / page_bytes;
        stored_by_.assign((pool_bytes + page_bytes - 1) / page_bytes, 0);
    }

    // A transaction begins under the lock.
    void begin_transaction() { ++transaction_; }

    // It is about to store to this place of the pool. Calls empty_logs() before pages leave.
    template <class EmptyLogs>
    [[gnu::always_inline]] void bring_in(std::uint64_t offset, EmptyLogs&& empty_logs) {
        if (limit_ == 0) return;
        std::uint64_t& stored_by = stored_by_[offset / page_bytes];
        if (stored_by == 0) {
            if (present_.size() == limit_) make_room(empty_logs);
            present_.push_back(offset / page_bytes);
        }
        stored_by = transaction_;
    }

private:
    // At once, so that logs are emptied seldom.
    std::uint64_t pages_of_batch() const { return limit_ < 8 ? 1 : limit_ / 8; }

    template <class EmptyLogs>
    [[gnu::noinline]] void make_room(EmptyLogs&& empty_logs) {
        durasim_situation_begin(DURASIM_SITUATION_PAGE_OUT);
        if (!planted(Fault::page_out_before_replay)) empty_logs();
        std::uint64_t left = 0;
        for (std::uint64_t looked_at = present_.size(); looked_at != 0 && left < pages_of_batch(); --looked_at) {
            const std::uint64_t page = present_.front();
            present_.pop_front();
            // What the open transaction has stored is in no log that is replayed.
            if (stored_by_[page] == transaction_ && !planted(Fault::page_out_of_open_transaction)) {
                present_.push_back(page);
                continue;
            }
            void* const place = reinterpret_cast<void*>(pool_address + page * page_bytes);
            if (::madvise(place, page_bytes, MADV_DONTNEED) != 0) fail(exit_runtime, "durasim: cannot give up a page of the shadow: %s", std::strerror(errno));
            stored_by_[page] = 0;
            ++left;
        }
        durasim_situation_end(DURASIM_SITUATION_PAGE_OUT);
        if (left == 0) {
            fail(exit_runtime, "durasim: a transaction stores to more than the %llu pages that the shadow may have; give it more (shadow-bytes)",
                 static_cast<unsigned long long>(limit_));
        }
    }

    std::uint64_t limit_ = 0;  // pages; 0: all
    // Of each page of the pool: the last transaction under the lock that has stored to it since it came; 0 if it is not in the DRAM.
    std::vector<std::uint64_t> stored_by_;
    std::deque<std::uint64_t> present_;
    std::uint64_t transaction_ = 0;
};

}  // namespace durasim

#endif
