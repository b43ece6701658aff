/* Litmus programs for persistency models: `run SHAPE` stores to two words, then makes both durable. `check SHAPE` prints the words that
 * a power failure has left and fails unless both are there. */
#include <durasim/persist.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct pool { uint64_t x, near_x, rest[6], y, rest_of_y[7]; };
static struct pool *pool;
static uint64_t *second;

/* A store after `ntl.all` (Zihintntl), spelt so that the compiler needs no -march with the extension. */
static void store_non_temporal(uint64_t *place, uint64_t value) {
    __asm__ volatile(".insn r 0x33, 0, 0, x0, x0, x5\n\tsd %1, 0(%0)" : : "r"(place), "r"(value) : "memory");
}

static void store(uint64_t *place, uint64_t value) { *(volatile uint64_t *)place = value; }

static void no_fence(void) {
    store(&pool->x, 1);
    store(second, 1);
}

static void fence(void) {
    store(&pool->x, 1);
    durasim_persist_fence();
    store(second, 1);
}

static void clean(void) {
    store(&pool->x, 1);
    durasim_clean(&pool->x);
    store(second, 1);
}

static void clean_and_fence(void) {
    store(&pool->x, 1);
    durasim_clean(&pool->x);
    durasim_persist_fence();
    store(second, 1);
}

static void flush(void) {
    store(&pool->x, 1);
    durasim_flush(&pool->x);
    store(second, 1);
}

static void non_temporal(void) {
    store_non_temporal(&pool->x, 1);
    store(second, 1);
}

static void non_temporal_and_fence(void) {
    store_non_temporal(&pool->x, 1);
    durasim_persist_fence();
    store(second, 1);
}

static void both_non_temporal(void) {
    store_non_temporal(&pool->x, 1);
    store_non_temporal(second, 1);
}

/* Another thread stores the second word when it has seen a flag in the DRAM. */
static atomic_int flag;

static void *receives(void *unused) {
    while (!atomic_load(&flag)) {}
    store(second, 1);
    durasim_clean(second);
    durasim_persist_fence();
    return unused;
}

static void passes(int cleans) {
    pthread_t receiver;
    if (pthread_create(&receiver, NULL, receives, NULL) != 0) exit(70);
    store(&pool->x, 1);
    if (cleans) durasim_clean(&pool->x);
    durasim_persist_fence();
    atomic_store(&flag, 1);
    pthread_join(receiver, NULL);
}

static void message(void) { passes(0); }

static void message_and_clean(void) { passes(1); }

static const struct shape {
    const char *name;
    void (*run)(void);
    int is_one_line;
} shapes[] = {
    {"no-fence", no_fence, 0},
    {"fence", fence, 0},
    {"clean", clean, 0},
    {"clean-and-fence", clean_and_fence, 0},
    {"flush", flush, 0},
    {"non-temporal", non_temporal, 0},
    {"non-temporal-and-fence", non_temporal_and_fence, 0},
    {"message", message, 0},
    {"message-and-clean", message_and_clean, 0},
    {"one-line", no_fence, 1},
    {"one-line-non-temporal", both_non_temporal, 1},
};

int main(int argc, char **argv) {
    const struct shape *shape = shapes, *end = shapes + sizeof(shapes) / sizeof(*shapes);
    while (argc == 3 && shape < end && strcmp(shape->name, argv[2]) != 0) ++shape;
    if (argc != 3 || shape == end) return 2;
    int file = open("/pmem/persistency", O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof(struct pool)) != 0) return 70;
    pool = mmap(NULL, sizeof(struct pool), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (pool == MAP_FAILED) return 70;
    second = shape->is_one_line ? &pool->near_x : &pool->y;
    if (strcmp(argv[1], "check") == 0) {
        fprintf(stderr, "left: %d %d\n", (int)pool->x, (int)*second);
        return pool->x == 1 && *second == 1 ? 0 : 1;
    }
    shape->run();
    durasim_clean(&pool->x);
    durasim_clean(second);
    durasim_persist_fence();
    return 0;
}
