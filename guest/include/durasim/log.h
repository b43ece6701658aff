/* Log operations: how a program hands the old content of persistent memory over to the hardware's log before it stores
 * there. They are instructions of designs that log so (Proteus); on every other machine they are illegal. On other hosts
 * the functions are empty. Usable from C and C++. */
#ifndef DURASIM_LOG_H
#define DURASIM_LOG_H

#include <stdint.h>

#include "durasim/encodings.h"

/* The block of this many bytes that holds an address is loaded. */
#define DURASIM_LOG_BLOCK_BYTES 32

#if defined(__riscv)
#define DURASIM_LOG_TEXT_OF_(number) #number
#define DURASIM_LOG_TEXT_(number) DURASIM_LOG_TEXT_OF_(number)
/* The memory clobber keeps the compiler from moving the store before the flush. One log register is enough for all pairs:
 * the core renames them. */
#define DURASIM_LOG_BLOCK_(place)                                                                                     \
    __asm__ volatile(".insn i " DURASIM_LOG_TEXT_(DURASIM_OPCODE_LOG_LOAD) ", " DURASIM_LOG_TEXT_(                    \
                         DURASIM_FUNCT3_LOG_LOAD) ", x0, %0, 0\n\t"                                                   \
                     ".insn i " DURASIM_LOG_TEXT_(DURASIM_OPCODE_LOG_FLUSH) ", " DURASIM_LOG_TEXT_(                   \
                         DURASIM_FUNCT3_LOG_FLUSH) ", x0, x0, 0"                                                      \
                     :                                                                                                \
                     : "r"(place)                                                                                     \
                     : "memory")
#else
#define DURASIM_LOG_BLOCK_(place) ((void)(place))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Logs the block that holds `place`: log-load and log-flush. */
static inline void durasim_log_block(const void *place) { DURASIM_LOG_BLOCK_(place); }

#ifdef __cplusplus
}
#endif

#endif
