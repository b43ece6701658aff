// The common interface of all maps of guest/structures. A map gives each key of 64 bits a value of `value_bytes`:
//
//     Map(const MapShape&, std::uint64_t& top, std::uint64_t arena)   // a handle of a few words; `top` is in the pool
//     static bool is_possible(const MapShape&)          // whether such a map can be, as far as the parameter goes
//     void make(Tx&)                                    // an empty map; before anything else
//     std::uint64_t* find(Tx&, key)                     // where the value of the key lies, null if the key is not there
//     std::uint64_t* insert(Tx&, key)                   // makes room for a key that is not there; the caller writes the value
//     bool erase(Tx&, key)                              // whether the key was there
//     const char* check(Audit&, each) const             // claims all blocks and calls each(key, value); or what is wrong
//     bool dump(const Pool&, each) const                // calls each(key, value) for what can be reached; false: not all
//     static std::uint64_t bytes(const MapShape&, live, inserted)  // of the pool: for the keys at once, and ever
//
// All of them are used inside a transaction, under the lock that the map and its arena belong to. `check` and `dump` take
// pools with any content: they end, and read nothing outside of the pool.
#ifndef DURASIM_STRUCTURES_MAP_SHAPE_H
#define DURASIM_STRUCTURES_MAP_SHAPE_H

#include <cstdint>

#include "durasim/audit.h"
#include "durasim/pool.h"
#include "durasim/tx.h"

namespace durasim {

// The sizes of a map, the same in each run over a pool.
struct MapShape {
    std::uint64_t value_bytes = 8;  // a multiple of 8
    std::uint64_t parameter = 0;    // of the structure: bytes of a node, or how many buckets or lists there are
    bool erases = false;            // whether keys may go, so that nodes may become emptier than insertions leave them
};

inline constexpr std::uint64_t value_bytes_max = 4096;

}  // namespace durasim

#endif
