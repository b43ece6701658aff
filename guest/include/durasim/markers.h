/* Markers: reports of a program to the machine on what it is doing.
 *
 * A marker is `slti x0, rs1, imm`: imm says which marker, rs1 holds its argument. The encoding is a HINT that the RISC-V
 * manual leaves to custom use, so the same binary runs on every RV64 machine, where a marker does nothing. On other
 * hosts the functions are empty. Usable from C and C++. */
#ifndef DURASIM_MARKERS_H
#define DURASIM_MARKERS_H

#include <stdint.h>

#include "durasim/encodings.h"

#if defined(__riscv)
/* The memory clobber keeps the compiler from moving stores across the marker. J and z make x0 of an argument of 0. */
#define DURASIM_MARKER_(imm, argument) \
    __asm__ volatile("slti x0, %z0, %1" : : "rJ"((uint64_t)(argument)), "i"(imm) : "memory")
#elif defined(DURASIM_TEST_HOOKS)
/* Tests on the host watch the markers. */
#include <setjmp.h>
#ifdef __cplusplus
extern "C"
#endif
void durasim_test_marker(uint64_t imm, uint64_t argument);
#define DURASIM_MARKER_(imm, argument) durasim_test_marker((imm), (uint64_t)(argument))
#else
#define DURASIM_MARKER_(imm, argument)       \
    do {                                     \
        (void)(imm);                         \
        (void)(argument);                    \
        __asm__ volatile("" : : : "memory"); \
    } while (0)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The region of interest begins: measurement starts. */
static inline void durasim_roi_begin(void) { DURASIM_MARKER_(DURASIM_MARKER_ROI_BEGIN, 0); }

/* The region of interest ends. */
static inline void durasim_roi_end(void) { DURASIM_MARKER_(DURASIM_MARKER_ROI_END, 0); }

/* Operation `number` begins; its latency is measured up to the matching durasim_op_end. */
static inline void durasim_op_begin(uint64_t number) { DURASIM_MARKER_(DURASIM_MARKER_OP_BEGIN, number); }

/* Operation `number` ends. */
static inline void durasim_op_end(uint64_t number) { DURASIM_MARKER_(DURASIM_MARKER_OP_END, number); }

/* A place where a snapshot of the machine may be taken. */
static inline void durasim_snapshot_point(uint64_t place) { DURASIM_MARKER_(DURASIM_MARKER_SNAPSHOT_POINT, place); }

/* Declares the persistent data that crash checks compare byte for byte. Logs of a software runtime stay outside. */
static inline void durasim_declare_data(const void *base, uint64_t size_bytes) {
    DURASIM_MARKER_(DURASIM_MARKER_DATA_BASE, (uintptr_t)base);
    DURASIM_MARKER_(DURASIM_MARKER_DATA_SIZE, size_bytes);
}

/* Begins a transaction. Returns 0; RETURNS AGAIN with the cause, which is not 0, if the machine aborts the transaction.
 *
 * The second return finds every integer and floating-point register as it was at the first, and persistent data as it
 * was before the transaction. Ordinary memory (stack, heap, globals) keeps what the transaction wrote there. Hence:
 * - the code of a transaction must be re-executable: it may not rely on ordinary variables it has already changed;
 * - the function that calls durasim_tx_begin must still be running when the abort arrives, as for setjmp, and a local
 *   variable it changes in between has an unknown value afterwards.
 * durasim::tx (durasim/tx.h) arranges this for C++. A machine without transactions always returns 0, once.
 *
 * This is a function and not inline assembly because the compiler has to know that it returns twice: only then does it
 * keep the stack slots of values that are needed after the second return. The body is bare so that the registers at the
 * marker are those of the caller. */
#if defined(__riscv)
#define DURASIM_TEXT_OF_(number) #number
#define DURASIM_TEXT_(number) DURASIM_TEXT_OF_(number)
static __attribute__((naked, noinline, returns_twice, unused)) uint64_t durasim_tx_begin(void) {
    __asm__ volatile("li a0, 0\n\tslti x0, x0, " DURASIM_TEXT_(DURASIM_MARKER_TX_BEGIN) "\n\tret");
}
#elif defined(DURASIM_TEST_HOOKS)
/* A test that aborts transactions returns here by longjmp. */
jmp_buf *durasim_test_tx_frame(void);
#define durasim_tx_begin() \
    (durasim_test_marker(DURASIM_MARKER_TX_BEGIN, 0), (uint64_t)setjmp(*durasim_test_tx_frame()))
#else
static inline uint64_t durasim_tx_begin(void) {
    DURASIM_MARKER_(DURASIM_MARKER_TX_BEGIN, 0);
    return 0;
}
#endif

/* Commits the open transaction. */
static inline void durasim_tx_commit(void) { DURASIM_MARKER_(DURASIM_MARKER_TX_COMMIT, 0); }

/* Says that a transaction kept by software starts to commit: from here until durasim_tx_commit a crash may leave either
 * all of it or nothing. Software runtimes need the pair because their commit takes many instructions. Emitted when the
 * table of encodings has such a marker. */
static inline void durasim_tx_committing(void) {
#ifdef DURASIM_MARKER_TX_COMMITTING
    DURASIM_MARKER_(DURASIM_MARKER_TX_COMMITTING, 0);
#endif
}

/* From here until durasim_tx_resume the stores of this thread are not part of its open transaction, which stays open: a
 * runtime that keeps transactions in software does work of its own. A machine whose hardware keeps transactions refuses
 * both. A transaction has to resume before it is suspended again, commits or aborts. */
static inline void durasim_tx_suspend(void) { DURASIM_MARKER_(DURASIM_MARKER_TX_SUSPEND, 0); }

/* The stores of this thread are part of its open transaction again. */
static inline void durasim_tx_resume(void) { DURASIM_MARKER_(DURASIM_MARKER_TX_RESUME, 0); }

/* Aborts the open transaction: durasim_tx_begin returns again with `cause`, which must not be 0. A machine without
 * transactions continues after this call, and so does a transaction kept by software. */
static inline void durasim_tx_abort(uint64_t cause) { DURASIM_MARKER_(DURASIM_MARKER_TX_ABORT, cause); }

/* Reports to campaigns that this thread is in a rare situation, one of DURASIM_SITUATION_*, and that it has left it. */
static inline void durasim_situation_begin(uint64_t situation) { DURASIM_MARKER_(DURASIM_MARKER_SITUATION_BEGIN, situation); }
static inline void durasim_situation_end(uint64_t situation) { DURASIM_MARKER_(DURASIM_MARKER_SITUATION_END, situation); }

/* Reports that a replayer has read the redo logs once, and the number of transactions that it applied. */
static inline void durasim_replay_pass(uint64_t transactions) { DURASIM_MARKER_(DURASIM_MARKER_REPLAY_PASS, transactions); }

#ifdef __cplusplus
}
#endif

#endif
