/* A store that is never cleaned, in a function that is reached by several calls. `run` makes it in the main thread, `run thread` in
 * another one. Comments mark the lines of the calls. The stack is overwritten right after the store. */
#include <durasim/markers.h>
#include <durasim/persist.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct pool { uint64_t value, value_rest[7], count, count_rest[7]; };

static struct pool *pool;

__attribute__((noinline)) static void set(uint64_t *place, uint64_t value) { *place = value; /* store */ }

__attribute__((noinline)) static uint64_t overwrite(uint64_t seed) {
    volatile uint64_t words[64];
    for (int i = 0; i < 64; ++i) words[i] = seed + i;
    return words[seed % 64];
}

/* Its frame has a size that is known when it runs. */
__attribute__((noinline)) static uint64_t descend(int levels, uint64_t value) {
    volatile char room[16 + levels];
    room[levels] = 1;
    if (levels > 0) {
        uint64_t below = descend(levels - 1, value); /* deeper */
        return below + room[levels];
    }
    set(&pool->value, value); /* lost */
    return room[levels];
}

static inline __attribute__((always_inline)) uint64_t inlined(uint64_t value) {
    return descend(2, value); /* inlined */
}

__attribute__((noinline)) static void *work(void *value) {
    uint64_t levels = inlined((uint64_t)value); /* work */
    pool->count = overwrite(levels) > 0;
    durasim_clean(&pool->count);
    durasim_persist_fence();
    return NULL;
}

int main(int argc, char **argv) {
    int file = open("/pmem/pool", O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof *pool) != 0) return 2;
    pool = mmap(NULL, sizeof *pool, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (pool == MAP_FAILED || argc < 2) return 2;
    if (strcmp(argv[1], "check") == 0) return pool->count == 1 && pool->value != 7;
    if (argc == 2) {
        work((void *)7); /* main */
        return 0;
    }
    pthread_t thread;
    return pthread_create(&thread, NULL, work, (void *)7) != 0 || pthread_join(thread, NULL) != 0;
}
