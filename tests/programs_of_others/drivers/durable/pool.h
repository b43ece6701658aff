/* The pool of the programs in this folder. */
#ifndef DURABLE_POOL_H
#define DURABLE_POOL_H

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define POOL_PATH "/pmem/pool"

/* Makes a file of zeros of this size, unless it exists. Returns 0, or -1 as from a system call. */
static inline int make_pool(off_t bytes) {
    int file = open(POOL_PATH, O_RDWR | O_CREAT, 0600);
    struct stat found;
    if (file < 0 || fstat(file, &found) < 0) return -1;
    if (found.st_size < bytes && ftruncate(file, bytes) < 0) return -1;
    return close(file);
}

/* Whether there is a pool. */
static inline int has_pool(void) {
    struct stat found;
    return stat(POOL_PATH, &found) == 0 && found.st_size > 0;
}

#endif
