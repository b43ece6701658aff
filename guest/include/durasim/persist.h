/* Cache-block operations and fences: what a program on a machine without transactional hardware makes data durable
 * with. Usable from C and C++. On hosts other than RISC-V the cache-block operations are empty. */
#ifndef DURASIM_PERSIST_H
#define DURASIM_PERSIST_H

#include <stdint.h>

#define DURASIM_LINE_BYTES 64

#ifdef __cplusplus
extern "C" {
#endif

#ifdef DURASIM_TEST_HOOKS
/* Tests on the host connect a model of the persistence domain to the operations. */
void durasim_test_store(void *place, uint64_t size_bytes); /* just before a store, */
void durasim_test_stored(void);                            /* and just after it */
void durasim_test_clean(const void *line);
void durasim_test_fence(void);
#define DURASIM_TEST_HOOK_(call) call
#else
#define DURASIM_TEST_HOOK_(call) ((void)0)
#endif

#if defined(__riscv)
/* Spelt as .insn so that the compiler needs no -march with Zicbom: 1 is clean, 2 is flush. */
#define DURASIM_CBO_(operation, place) \
    __asm__ volatile(".insn i MISC_MEM, 2, x0, %0, " #operation : : "r"(place) : "memory")
#else
#define DURASIM_CBO_(operation, place)       \
    do {                                     \
        (void)(place);                       \
        __asm__ volatile("" : : : "memory"); \
    } while (0)
#endif

/* Starts writing the line that holds `place` back to persistent memory; the caches keep it. */
static inline void durasim_clean(const void *place) {
    DURASIM_CBO_(1, place);
    DURASIM_TEST_HOOK_(durasim_test_clean(place));
}

/* As durasim_clean, but the caches give the line up. */
static inline void durasim_flush(const void *place) {
    DURASIM_CBO_(2, place);
    DURASIM_TEST_HOOK_(durasim_test_clean(place));
}

/* Waits until the persistence domain has acknowledged all earlier cleans and flushes of this hart, and orders later
 * accesses after its earlier stores. Any fence with W in its predecessor set waits for the acknowledgements. */
static inline void durasim_persist_fence(void) {
#if defined(__riscv)
    __asm__ volatile("fence w, rw" : : : "memory");
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
    DURASIM_TEST_HOOK_(durasim_test_fence());
}

/* Orders everything before with everything after and empties the store buffer. Where the caches belong to the
 * persistence domain, earlier stores are durable once it has completed. */
static inline void durasim_full_fence(void) {
#if defined(__riscv)
    __asm__ volatile("fence rw, rw" : : : "memory");
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
    DURASIM_TEST_HOOK_(durasim_test_fence());
}

#ifdef __cplusplus
}
#endif

#endif
