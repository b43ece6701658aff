// The plain store to the pool that every runtime ends in.
#ifndef DURASIM_RUNTIMES_STORE_H
#define DURASIM_RUNTIMES_STORE_H

#include <type_traits>

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

// The same, after all stores before it.
template <class T>
inline void put_last(T* place, std::type_identity_t<T> value) {
    DURASIM_TEST_HOOK_(durasim_test_store(place, sizeof(T)));
    __atomic_store(place, &value, __ATOMIC_RELEASE);
    DURASIM_TEST_HOOK_(durasim_test_stored());
}

// One atomic instruction, or a loop of a few: stores `value` if `expected` is there. Returns whether it was.
template <class T>
inline bool put_if(T* place, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
    DURASIM_TEST_HOOK_(durasim_test_store(place, sizeof(T)));
    const bool was_there = __atomic_compare_exchange(place, &expected, &value, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
    DURASIM_TEST_HOOK_(durasim_test_stored());
    return was_there;
}

// One load instruction.
template <class T>
inline T get(const T* place) {
    T value;
    __atomic_load(place, &value, __ATOMIC_RELAXED);
    return value;
}

// The same, before all accesses behind it.
template <class T>
inline T get_first(const T* place) {
    T value;
    __atomic_load(place, &value, __ATOMIC_ACQUIRE);
    return value;
}

}  // namespace durasim

#endif
