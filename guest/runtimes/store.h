// The plain store to the pool that every runtime ends in.
#ifndef DURASIM_RUNTIMES_STORE_H
#define DURASIM_RUNTIMES_STORE_H

#include "durasim/persist.h"

namespace durasim {

// One store instruction, never merged, split or turned into memcpy by the compiler: persistent memory is written as the
// program says.
template <class T>
inline void put(T* place, T value) {
    DURASIM_TEST_HOOK_(durasim_test_store(place, sizeof(T)));
    __atomic_store(place, &value, __ATOMIC_RELAXED);
    DURASIM_TEST_HOOK_(durasim_test_stored());
}

// One load instruction.
template <class T>
inline T get(const T* place) {
    T value;
    __atomic_load(place, &value, __ATOMIC_RELAXED);
    return value;
}

}  // namespace durasim

#endif
