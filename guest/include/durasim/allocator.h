// The allocator of pools: Tx::allocate and Tx::free.
//
// Its data are in the arena's header and in the free blocks themselves, and are changed by the transaction that takes or
// gives a block, like everything else: after a crash a block is reachable, free, or was never taken, whatever happened.
// Nothing is leaked and nothing given out twice; a check proves it (durasim/audit.h). There is nothing to recover.
//
// - Small blocks have a power of two of lines. Each size has a list of free blocks; a free block begins with the next one.
// - Large blocks have any number of lines. They share one list; a free one begins with the next one and its size. The first
//   that fits is taken: whole, or its end if what is left is still large. Neighbours are not joined.
// - Whatever finds no free block is taken from the part of the arena that was never in use.
#ifndef DURASIM_ALLOCATOR_H
#define DURASIM_ALLOCATOR_H

#include <cstdint>

#include "durasim/error.h"
#include "durasim/layout.h"
#include "durasim/tx.h"

namespace durasim {

namespace detail {

// The class of a small block, which has line_bytes << class bytes.
inline unsigned block_class(std::uint64_t size_bytes) {
    unsigned c = 0;
    while ((line_bytes << c) < size_bytes) ++c;
    return c;
}

inline ArenaHeader* arena_of(const PoolHeader* pool, std::uint64_t number) {
    return reinterpret_cast<ArenaHeader*>(pool_address + pool->data_offset + number * pool->arena_bytes());
}

}  // namespace detail

// The bytes that a block of this size takes from the pool.
inline std::uint64_t block_bytes(std::uint64_t size_bytes) {
    if (size_bytes > small_block_bytes_max) return (size_bytes + line_bytes - 1) / line_bytes * line_bytes;
    return line_bytes << detail::block_class(size_bytes);
}

inline void* Tx::allocate(std::uint64_t size_bytes, std::uint64_t arena) {
    auto* pool = reinterpret_cast<const PoolHeader*>(pool_address);
    ArenaHeader* data = detail::arena_of(pool, arena);
    const std::uint64_t need = block_bytes(size_bytes);
    if (size_bytes <= small_block_bytes_max) {
        std::uint64_t& first = data->free_blocks[detail::block_class(size_bytes)];
        if (const std::uint64_t block = read(first)) {
            write(first, read(*reinterpret_cast<std::uint64_t*>(block)));
            return reinterpret_cast<void*>(block);
        }
    } else if (void* block = allocate_large(*data, need)) {
        return block;
    }
    std::uint64_t used = read(data->used_bytes);
    if (used == 0) used = sizeof(ArenaHeader);
    const std::uint64_t arena_bytes = pool->arena_bytes();
    if (need > arena_bytes - used) {
        fail(exit_runtime,
             "durasim: the pool is full: %llu of %llu bytes of its arena %llu are in use and a block of %llu is wanted; make it larger",
             static_cast<unsigned long long>(used), static_cast<unsigned long long>(arena_bytes),
             static_cast<unsigned long long>(arena), static_cast<unsigned long long>(need));
    }
    write(data->used_bytes, used + need);
    return reinterpret_cast<char*>(data) + used;
}

inline void* Tx::allocate_large(ArenaHeader& arena, std::uint64_t need_bytes) {
    std::uint64_t* link = &arena.free_large;
    while (const std::uint64_t address = read(*link)) {
        auto* block = reinterpret_cast<FreeLargeBlock*>(address);
        const std::uint64_t bytes = read(block->size_bytes);
        if (bytes == need_bytes) {
            write(*link, read(block->next));
            return block;
        }
        // The rest stays in the list, so it has to be a large block too.
        if (bytes > need_bytes + small_block_bytes_max) {
            write(block->size_bytes, bytes - need_bytes);
            return reinterpret_cast<char*>(block) + (bytes - need_bytes);
        }
        link = &block->next;
    }
    return nullptr;
}

inline void Tx::free(void* block, std::uint64_t size_bytes, std::uint64_t arena) {
    ArenaHeader* data = detail::arena_of(reinterpret_cast<const PoolHeader*>(pool_address), arena);
    if (size_bytes > small_block_bytes_max) {
        auto* large = static_cast<FreeLargeBlock*>(block);
        write(large->next, read(data->free_large));
        write(large->size_bytes, block_bytes(size_bytes));
        write(data->free_large, reinterpret_cast<std::uint64_t>(block));
        return;
    }
    std::uint64_t& first = data->free_blocks[detail::block_class(size_bytes)];
    write(*static_cast<std::uint64_t*>(block), read(first));
    write(first, reinterpret_cast<std::uint64_t>(block));
}

}  // namespace durasim

#endif
