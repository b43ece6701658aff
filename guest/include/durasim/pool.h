// Pools: files of persistent memory. A program opens one pool and keeps all its persistent data there.
#ifndef DURASIM_POOL_H
#define DURASIM_POOL_H

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "durasim/error.h"
#include "durasim/layout.h"
#include "durasim/markers.h"
#include "durasim/tx.h"

namespace durasim {

inline constexpr std::uint64_t log_bytes_default = 64 * 1024;
inline constexpr std::uint64_t log_bytes_min = 4 * line_bytes;

class Pool {
public:
    // Opens the pool at `path`, creating and formatting it if it is not there or was never completely formatted, recovers an
    // interrupted transaction, and declares the data range to the machine. A pool that holds data but has lost its header is refused.
    // `size_bytes` is the size of a new pool, rounded up to pages; an existing one keeps its size, and is refused if that differs and `exact_size` is set.
    // A software runtime gets `log_bytes` of a new pool for each of its logs.
    static Pool& open(const char* path, std::uint64_t size_bytes, std::uint64_t log_bytes = log_bytes_default,
                      bool exact_size = false, const PoolShape& shape = {}) {
        Pool& pool = instance();
        const std::uint64_t pages_bytes = (size_bytes + page_bytes - 1) / page_bytes * page_bytes;
        const std::uint64_t used_log_bytes = log_bytes_for(log_bytes) * shape.logs;
        pool.map(path, pages_bytes, least_bytes(used_log_bytes, shape));
        if (exact_size && pool.mapped_bytes_ != pages_bytes) {
            fail(exit_usage, "durasim: the pool %s has %llu bytes, but %llu are wanted", path,
                 static_cast<unsigned long long>(pool.mapped_bytes_), static_cast<unsigned long long>(pages_bytes));
        }
        PoolHeader contents{};
        const bool fresh = pool.header()->magic == 0;
        if (fresh) {
            contents = layout(pool.mapped_bytes_, used_log_bytes, shape);
            if (pool.has_remains() || pool.has_remains_of_logs(contents)) refuse_remains(path);
        }
        pool.attach(fresh ? contents : *pool.header(), fresh);
        if (fresh) {
            runtime.format(pool.header(), contents);
        } else {
            runtime.recover();
        }
        detail::begin_work(runtime, path);
        return pool;
    }

    // Opens the pool at `path` as it is, for recovery and checks. Returns null if there is nothing: no file, an empty
    // one, or a header that was never completed.
    static Pool* open_existing(const char* path) {
        Pool& pool = instance();
        if (!pool.map(path, 0, 0)) return nullptr;
        if (pool.header()->magic == 0) {
            if (pool.has_remains()) refuse_remains(path);
            return nullptr;
        }
        pool.attach(*pool.header(), false);
        return &pool;
    }

    std::uint64_t data_bytes() const { return header()->data_bytes; }
    // The head of the data range, which is that of the first arena.
    ArenaHeader* data() const { return arena(0); }
    std::uint64_t arenas() const { return header()->arenas(); }
    std::uint64_t arena_bytes() const { return header()->arena_bytes(); }
    ArenaHeader* arena(std::uint64_t number) const {
        return reinterpret_cast<ArenaHeader*>(pool_address + header()->data_offset + number * arena_bytes());
    }

    // Whether [place, place + size_bytes) is in the data range.
    bool holds(const void* place, std::uint64_t size_bytes) const {
        const std::uint64_t offset = reinterpret_cast<std::uint64_t>(place) - reinterpret_cast<std::uint64_t>(data());
        return offset <= data_bytes() && size_bytes <= data_bytes() - offset;
    }

    // The program's root object, null in a fresh pool.
    template <class Root>
    Root* root() const {
        return reinterpret_cast<Root*>(data()->root);
    }

    template <class Root>
    void set_root(Tx& t, Root* root) {
        t.write(data()->root, reinterpret_cast<std::uint64_t>(root));
    }

private:
    static Pool& instance() {
        static Pool pool;
        return pool;
    }

    PoolHeader* header() const { return reinterpret_cast<PoolHeader*>(pool_address); }

    static std::uint64_t log_bytes_for(std::uint64_t wanted_bytes) {
        if (Runtime::log_kind == LogKind::none) return 0;
        const std::uint64_t lines = wanted_bytes / line_bytes + (wanted_bytes % line_bytes != 0);
        return lines * line_bytes < log_bytes_min ? log_bytes_min : lines * line_bytes;
    }

    // One page for the header and at least one for each arena.
    static std::uint64_t least_bytes(std::uint64_t log_bytes, const PoolShape& shape) {
        return log_bytes + (1 + shape.arenas) * page_bytes;
    }

    [[noreturn]] static void refuse_small(std::uint64_t pool_bytes, std::uint64_t minimum_bytes) {
        fail(exit_usage, "durasim: a pool of %llu bytes is too small; with its log it takes at least %llu",
             static_cast<unsigned long long>(pool_bytes), static_cast<unsigned long long>(minimum_bytes));
    }

    // The data comes before the log, so that it has the same addresses whichever runtime is used.
    static PoolHeader layout(std::uint64_t pool_bytes, std::uint64_t log_bytes, const PoolShape& shape) {
        const std::uint64_t least = least_bytes(log_bytes, shape);
        if (pool_bytes < least) refuse_small(pool_bytes, least);
        PoolHeader h{};
        h.magic = pool_magic;
        h.version = layout_version;
        h.logs_more = static_cast<std::uint16_t>(log_bytes == 0 ? 0 : shape.logs - 1);
        h.log_kind = Runtime::log_kind;
        h.arenas_more = static_cast<std::uint16_t>(shape.arenas - 1);
        h.pool_bytes = pool_bytes;
        h.data_offset = page_bytes;
        h.data_bytes = pool_bytes - page_bytes - log_bytes;
        h.root_offset = h.data_offset;
        h.log_offset = h.data_offset + h.data_bytes;
        h.log_bytes = log_bytes;
        return h;
    }

    // Maps the file. If it does not exist or is empty: makes it `size_bytes` long, which has to be at least
    // `minimum_bytes`, or returns false if `minimum_bytes` is 0.
    bool map(const char* path, std::uint64_t size_bytes, std::uint64_t minimum_bytes) {
        if (mapped_bytes_ != 0) fail(exit_usage, "durasim: a program opens one pool only, and %s is the second", path);
        int file = ::open(path, O_RDWR);
        if (file < 0 && errno == ENOENT) {
            if (minimum_bytes == 0) return false;
            if (size_bytes < minimum_bytes) refuse_small(size_bytes, minimum_bytes);
            file = ::open(path, O_RDWR | O_CREAT, 0644);
        }
        if (file < 0) fail(exit_usage, "durasim: cannot open the pool %s: %s", path, std::strerror(errno));
        struct stat status;
        if (::fstat(file, &status) != 0) fail(exit_usage, "durasim: cannot examine the pool %s: %s", path, std::strerror(errno));
        auto file_bytes = static_cast<std::uint64_t>(status.st_size);
        if (file_bytes == 0) {
            if (minimum_bytes == 0) {
                ::close(file);
                return false;
            }
            if (size_bytes < minimum_bytes) refuse_small(size_bytes, minimum_bytes);
            if (::ftruncate(file, static_cast<off_t>(size_bytes)) != 0) {
                fail(exit_usage, "durasim: cannot make the pool %s %llu bytes long: %s", path,
                     static_cast<unsigned long long>(size_bytes), std::strerror(errno));
            }
            file_bytes = size_bytes;
        }
        if (file_bytes < 2 * page_bytes) {
            fail(exit_usage, "durasim: %s has %llu bytes, too few for a pool", path, static_cast<unsigned long long>(file_bytes));
        }
        // The address is a wish, which is fulfilled unless something else is there; replacing that would be worse.
        void* at = ::mmap(reinterpret_cast<void*>(pool_address), file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (at == MAP_FAILED) fail(exit_usage, "durasim: cannot map the pool %s: %s", path, std::strerror(errno));
        if (at != reinterpret_cast<void*>(pool_address)) {
            fail(exit_usage, "durasim: the pool %s was mapped at %p instead of %#llx, so its pointers do not hold", path, at,
                 static_cast<unsigned long long>(pool_address));
        }
        ::close(file);
        mapped_bytes_ = file_bytes;
        return true;
    }

    // Refuses the header of an existing pool if this program cannot work with it; names the runtime and the machine.
    void attach(const PoolHeader& h, bool fresh) {
        if (!fresh) {
            if (h.magic != pool_magic) fail(exit_usage, "durasim: the file is not a pool of durasim");
            if (h.version != layout_version) {
                fail(exit_usage, "durasim: the pool has layout version %u, and this program knows version %u only", h.version,
                     layout_version);
            }
            if (h.pool_bytes != mapped_bytes_) {
                fail(exit_usage, "durasim: the pool was made with %llu bytes, but its file has %llu",
                     static_cast<unsigned long long>(h.pool_bytes), static_cast<unsigned long long>(mapped_bytes_));
            }
            if (h.log_kind != Runtime::log_kind) {
                fail(exit_usage, "durasim: the pool was made by a runtime with another kind of log than %s", Runtime::name);
            }
            const bool in_order = h.data_offset == page_bytes && h.root_offset == h.data_offset &&
                                  h.data_bytes <= h.pool_bytes && h.arenas() <= arenas_max &&
                                  h.arena_bytes() >= sizeof(ArenaHeader) &&
                                  h.log_offset == h.data_offset + h.data_bytes && h.log_bytes <= h.pool_bytes &&
                                  h.log_offset + h.log_bytes == h.pool_bytes &&
                                  h.logs() <= threads_max &&
                                  (h.log_kind == LogKind::none || h.bytes_per_log() >= log_bytes_min);
            if (!in_order) fail(exit_violation, "durasim: violation: the header of the pool is damaged");
        }
        durasim_declare_data(reinterpret_cast<const void*>(pool_address + h.data_offset), h.data_bytes);
        runtime.attach(h);
    }

    // A pool is new up to the moment when its header is durable: nothing else has been stored there before. So a pool without
    // a header that holds anything has lost it: words of a runtime after the header, or the head of the first arena.
    static bool has_remains() { return is_written(line_bytes, page_bytes + sizeof(ArenaHeader)); }

    // Whether anything is left in the first lines of each log of a pool that `contents` describes. Those of the pool that has lost its header need not have been there.
    static bool has_remains_of_logs(const PoolHeader& contents) {
        if (contents.log_bytes == 0) return false;
        for (std::uint64_t log = 0; log < contents.logs(); ++log) {
            const std::uint64_t begin = contents.log_offset + log * contents.bytes_per_log();
            if (is_written(begin, begin + log_bytes_min)) return true;
        }
        return false;
    }

    // Whether a byte between two offsets of the pool, multiples of 8, is not 0.
    static bool is_written(std::uint64_t begin, std::uint64_t end) {
        std::uint64_t found = 0;
        for (std::uint64_t at = begin; at < end; at += 8) found |= *reinterpret_cast<const std::uint64_t*>(pool_address + at);
        return found != 0;
    }

    [[noreturn]] static void refuse_remains(const char* path) {
        fail(exit_violation, "durasim: violation: %s holds data, but the header of the pool is gone", path);
    }

    std::uint64_t mapped_bytes_ = 0;
};

}  // namespace durasim

#endif
