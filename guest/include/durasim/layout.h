// The layout of a pool in persistent memory.
//
//   offset 0            PoolHeader, one line; then words of a software runtime that concern all logs, if it has any
//   data_offset         the arenas, one after the other and of equal size, each an ArenaHeader and blocks: the declared
//                       data range, changed by transactions only
//   log_offset          the logs of a software runtime, one for each thread and of equal size (absent if log_bytes is 0),
//                       outside the declared data range
//
// All zeros is a valid, empty data range: formatting a pool writes the header and nothing else.
//
// An arena belongs to a lock of the program, as the data in it does: designs that isolate whole lines must not find data
// of two locks on one line, and the allocator's own data is data too. A program with one thread has one arena and one log.
#ifndef DURASIM_LAYOUT_H
#define DURASIM_LAYOUT_H

#include <cstdint>

namespace durasim {

inline constexpr std::uint64_t line_bytes = 64;
inline constexpr std::uint64_t page_bytes = 4096;

// Every machine maps the pool here, so that persistent data can hold plain pointers.
inline constexpr std::uint64_t pool_address = 0x10'0000'0000;

// The page of the filters of a program's checked accesses, if it makes any (durasim/checked.h).
inline constexpr std::uint64_t filter_page_address = 0xf'0000'0000;

inline constexpr std::uint64_t pool_magic = 0x4C4F4F504D495344;  // "DSIMPOOL" read as bytes
inline constexpr std::uint16_t layout_version = 1;

// The log, if any, that has to be looked at before the data of a pool may be trusted.
enum class LogKind : std::uint16_t { none = 0, undo = 1, redo = 2, write_ahead = 3, spht_eadr = 4, spht = 5, nv_htm = 6 };

struct alignas(64) PoolHeader {
    std::uint64_t magic;  // pool_magic, written last: 0 means the pool was never completely formatted
    std::uint16_t version;
    std::uint16_t logs_more;  // logs beyond the first
    LogKind log_kind;
    std::uint16_t arenas_more;  // arenas beyond the first
    std::uint64_t pool_bytes;
    std::uint64_t data_offset;
    std::uint64_t data_bytes;
    std::uint64_t root_offset;  // of the pointer to the program's root object; inside the data range
    std::uint64_t log_offset;
    std::uint64_t log_bytes;  // of all logs together

    std::uint64_t arenas() const { return arenas_more + std::uint64_t{1}; }
    std::uint64_t arena_bytes() const { return arenas_more == 0 ? data_bytes : data_bytes / arenas() / line_bytes * line_bytes; }
    std::uint64_t logs() const { return logs_more + std::uint64_t{1}; }
    std::uint64_t bytes_per_log() const { return log_bytes / logs() / line_bytes * line_bytes; }
};
static_assert(sizeof(PoolHeader) == line_bytes);

// The shape of a new pool.
struct PoolShape {
    std::uint64_t arenas = 1;  // at most arenas_max
    std::uint64_t logs = 1;    // threads that have transactions, at most threads_max
};
inline constexpr std::uint64_t arenas_max = 1024;
inline constexpr std::uint64_t threads_max = 64;

// Small blocks have a power of two of lines: 1 (64 bytes) to 128 (8 KiB).
inline constexpr unsigned block_classes = 8;
inline constexpr std::uint64_t small_block_bytes_max = line_bytes << (block_classes - 1);

struct alignas(64) ArenaHeader {
    std::uint64_t root;        // in the first arena: address of the program's root object, 0 if there is none
    std::uint64_t used_bytes;  // how much of the arena is in use, this header included; 0 means only this header
    std::uint64_t free_large;  // the first free block that is not small
    std::uint64_t unused[5];
    std::uint64_t free_blocks[block_classes];  // per class the first free block; a free block starts with the next one
};
static_assert(sizeof(ArenaHeader) == 2 * line_bytes);

// The first words of a free block that is not small.
struct FreeLargeBlock {
    std::uint64_t next;        // 0 for the last
    std::uint64_t size_bytes;  // a multiple of line_bytes, above small_block_bytes_max
};

}  // namespace durasim

#endif
