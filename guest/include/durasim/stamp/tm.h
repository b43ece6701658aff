/* The names of transactional memory that the STAMP benchmarks (0.9.10) use, on top of any transaction runtime of durasim:
 * C programs written with TM_BEGIN, TM_SHARED_READ and the others compile unchanged. Put this folder first on the include
 * path, choose a backend (-DDURASIM_BACKEND=NAME) and link guest/stamp/stamp.cpp; `toolchain.build_stamp` does all three.
 * docs/programs-of-others.md explains what a program can rely on.
 *
 * Isolation comes from one lock around all transactions, or from the runtime, where that isolates by hardware transactions. What
 * TM_MALLOC gives is in the pool, survives, and is found again by the root; everything else is ordinary memory. */
#ifndef DURASIM_STAMP_TM_H
#define DURASIM_STAMP_TM_H
#define TM_H /* that of STAMP is not read then */

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "durasim/backend.h"
#include "durasim/markers.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Not of STAMP: the object by which a program finds its data again, null in a fresh pool. It is set in a transaction. */
void *durasim_stamp_root(void);
void durasim_stamp_set_root(void *root);

/* The pool: the file that the variable DURASIM_POOL of the environment names (/pmem/stamp), made with DURASIM_POOL_BYTES
 * (16777216) and DURASIM_LOG_BYTES for each thread's log (65536). */
void durasim_stamp_startup(long thread_count);
void durasim_stamp_shutdown(void);
void durasim_stamp_thread_enter(void);
void durasim_stamp_thread_exit(void);

void durasim_stamp_enter(void);
int durasim_stamp_again(uint64_t cause);
void durasim_stamp_begin(void);
void durasim_stamp_end(void);
void durasim_stamp_restart(void) __attribute__((noreturn));
jmp_buf *durasim_stamp_frame(void);

void *durasim_stamp_allocate(size_t size_bytes);
void durasim_stamp_free(void *block);
void durasim_stamp_read(const volatile void *place, void *value, size_t size_bytes);
void durasim_stamp_write(volatile void *place, const void *value, size_t size_bytes);
void durasim_stamp_keep(volatile void *place, size_t size_bytes);

void durasim_stamp_go_to_simulation(void);
void durasim_stamp_go_to_reality(void);

#ifdef __cplusplus
}
#endif

#define TM_ARG
#define TM_ARG_ALONE
#define TM_ARGDECL
#define TM_ARGDECL_ALONE
#define TM_CALLABLE

#define TM_STARTUP(numThread) durasim_stamp_startup(numThread)
#define TM_SHUTDOWN() durasim_stamp_shutdown()
#define TM_THREAD_ENTER() durasim_stamp_thread_enter()
#define TM_THREAD_EXIT() durasim_stamp_thread_exit()

/* TM_BEGIN is in the frame of its caller, and there an aborted transaction continues: hardware returns a second
 * time from durasim_tx_begin, TM_RESTART of a software log jumps to the checkpoint before it. Both need the frame to be
 * alive, as setjmp does, so neither may be called by a function that has returned by then: hence macros. */
#if defined(DURASIM_NEVER_ABORTS_)
#define DURASIM_STAMP_OPEN_() ((void)0)
#elif defined(DURASIM_ABORTS_RETURN_TO_BEGIN_)
#define DURASIM_STAMP_OPEN_()                            \
    do {                                                 \
    } while (durasim_stamp_again(durasim_tx_begin()))
#else
#define DURASIM_STAMP_OPEN_()                            \
    (void)setjmp(*durasim_stamp_frame());                \
    do {                                                 \
    } while (durasim_stamp_again(durasim_tx_begin()))
#endif

#define TM_BEGIN()              \
    do {                        \
        durasim_stamp_enter();  \
        DURASIM_STAMP_OPEN_();  \
        durasim_stamp_begin();  \
    } while (0)
#define TM_BEGIN_RO() TM_BEGIN()
#define TM_END() durasim_stamp_end()
#define TM_RESTART() durasim_stamp_restart()
#define TM_EARLY_RELEASE(var) ((void)0)

#define TM_MALLOC(size) durasim_stamp_allocate(size)
#define TM_FREE(ptr) durasim_stamp_free(ptr)
#define P_MALLOC(size) malloc(size)
#define P_FREE(ptr) free(ptr)
#include <stdlib.h>

/* Variables of any plain type of 1, 2, 4 or 8 bytes. */
#define DURASIM_STAMP_READ_(var)                                                   \
    __extension__({                                                                \
        __typeof__(var) durasim_value_;                                            \
        durasim_stamp_read(&(var), (void *)&durasim_value_, sizeof durasim_value_); \
        durasim_value_;                                                            \
    })
#define DURASIM_STAMP_WRITE_(var, val)                                                    \
    __extension__({                                                                       \
        __typeof__(var) durasim_value_ = (val);                                           \
        durasim_stamp_write(&(var), (const void *)&durasim_value_, sizeof durasim_value_); \
        durasim_value_;                                                                   \
    })
#define TM_SHARED_READ(var) DURASIM_STAMP_READ_(var)
#define TM_SHARED_READ_P(var) DURASIM_STAMP_READ_(var)
#define TM_SHARED_READ_F(var) DURASIM_STAMP_READ_(var)
#define TM_SHARED_WRITE(var, val) DURASIM_STAMP_WRITE_(var, val)
#define TM_SHARED_WRITE_P(var, val) DURASIM_STAMP_WRITE_(var, val)
#define TM_SHARED_WRITE_F(var, val) DURASIM_STAMP_WRITE_(var, val)

/* A variable of the thread's own. It gets its old value back when the transaction is executed again. */
#define DURASIM_STAMP_LOCAL_(var, val)                \
    __extension__({                                   \
        durasim_stamp_keep(&(var), sizeof(var));      \
        (var) = (val);                                \
        (var);                                        \
    })
#define TM_LOCAL_WRITE(var, val) DURASIM_STAMP_LOCAL_(var, val)
#define TM_LOCAL_WRITE_P(var, val) DURASIM_STAMP_LOCAL_(var, val)
#define TM_LOCAL_WRITE_F(var, val) DURASIM_STAMP_LOCAL_(var, val)

#define TM_IFUNC_DECL
#define TM_IFUNC_CALL1(r, f, a1) r = f(a1)
#define TM_IFUNC_CALL2(r, f, a1, a2) r = f((a1), (a2))

/* The measured region is the first stretch between GOTO_SIM and GOTO_REAL. */
#define MAIN(argc, argv) int main(int argc, char **argv)
#define MAIN_RETURN(val) return val
#define GOTO_SIM() durasim_stamp_go_to_simulation()
#define GOTO_REAL() durasim_stamp_go_to_reality()
#define IS_IN_SIM() (0)
#define SIM_GET_NUM_CPU(var)
#define P_MEMORY_STARTUP(numThread)
#define P_MEMORY_SHUTDOWN()
#define TM_PRINTF printf
#define TM_PRINT0 printf
#define TM_PRINT1 printf
#define TM_PRINT2 printf
#define TM_PRINT3 printf

#endif
