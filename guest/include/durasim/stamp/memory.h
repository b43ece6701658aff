/* Ordinary memory of threads as the STAMP benchmarks ask for it, given back all at once; see tm.h. */
#ifndef DURASIM_STAMP_MEMORY_H
#define DURASIM_STAMP_MEMORY_H
#define MEMORY_H /* that of STAMP is not read then */

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns whether there is memory. Sizes of blocks are left to malloc. */
long memory_init(long thread_count, size_t block_bytes_first, long block_growth_factor);
void *memory_get(long thread, size_t size_bytes);
void memory_destroy(void);

#ifdef __cplusplus
}
#endif

#endif
