/* Mistakes in persistence, each beside the same work done right: `run MISTAKE` and `run MISTAKE right`. A comment with the name of a
 * mistake marks the line of the store that a power failure loses. `check MISTAKE [right]` recovers and checks. */
#include <durasim/markers.h>
#include <durasim/persist.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RECORDS = 6 };
struct record { uint64_t square, rest[7], valid, valid_rest[7]; };
struct pool {
    uint64_t count, count_rest[7], allocated, allocated_rest[7], linked, linked_rest[7];
    struct record records[RECORDS + 1];
};

/* Counts one more record, durably. */
__attribute__((noinline)) static void publish(struct pool *pool, uint64_t count) {
    pool->count = count; /* published */
    durasim_clean(&pool->count);
    durasim_persist_fence();
}

static uint64_t square(uint64_t i) { return i * i + 1; }

static void missing_clean(struct pool *pool, uint64_t i, int right) {
    pool->records[i].square = square(i); /* missing-clean */
    if (right) durasim_clean(&pool->records[i]);
    durasim_persist_fence();
    publish(pool, i + 1);
}

static void misplaced_clean(struct pool *pool, uint64_t i, int right) {
    if (!right) durasim_clean(&pool->records[i]);
    pool->records[i].square = square(i); /* misplaced-clean */
    if (right) durasim_clean(&pool->records[i]);
    durasim_persist_fence();
    publish(pool, i + 1);
}

static void clean_of_another_line(struct pool *pool, uint64_t i, int right) {
    pool->records[i].square = square(i); /* clean-of-another-line */
    durasim_clean(right ? &pool->records[i] : &pool->records[i + 1]);
    durasim_persist_fence();
    publish(pool, i + 1);
}

static void missing_fence(struct pool *pool, uint64_t i, int right) {
    pool->records[i].square = square(i); /* missing-fence */
    durasim_clean(&pool->records[i]);
    if (right) durasim_persist_fence();
    publish(pool, i + 1);
}

static void fence_of_another_kind(struct pool *pool, uint64_t i, int right) {
    pool->records[i].square = square(i); /* fence-of-another-kind */
    durasim_clean(&pool->records[i]);
    if (right) durasim_persist_fence();
    else __asm__ volatile("fence r, rw" : : : "memory");
    publish(pool, i + 1);
}

static void wrong_order(struct pool *pool, uint64_t i, int right) {
    pool->records[i].square = square(i); /* wrong-order */
    if (right) {
        durasim_clean(&pool->records[i].square);
        durasim_persist_fence();
    }
    pool->records[i].valid = 1;
    durasim_clean(&pool->records[i].valid);
    if (!right) durasim_clean(&pool->records[i].square);
    durasim_persist_fence();
    publish(pool, i + 1);
}

static void fields_apart(struct pool *pool, uint64_t i, int right) {
    pool->records[i].square = square(i);
    pool->records[i].valid = 1; /* fields-apart */
    durasim_clean(&pool->records[i].square);
    if (right) durasim_clean(&pool->records[i].valid);
    durasim_persist_fence();
    publish(pool, i + 1);
}

static void count_before_contents(struct pool *pool, uint64_t i, int right) {
    if (!right) publish(pool, i + 1);
    pool->records[i].square = square(i); /* count-before-contents */
    durasim_clean(&pool->records[i]);
    durasim_persist_fence();
    if (right) publish(pool, i + 1);
}

/* Done right, recovery frees what is allocated and not linked. */
static void allocation_before_link(struct pool *pool, uint64_t i, int right) {
    (void)right;
    pool->allocated = i + 1;
    durasim_clean(&pool->allocated);
    durasim_persist_fence();
    pool->linked = i + 1; /* allocation-before-link */
    durasim_clean(&pool->linked);
    durasim_persist_fence();
}

/* The commit of the markers promises what the program has not cleaned. */
static void transaction(struct pool *pool, uint64_t i, int right) {
    durasim_tx_begin();
    durasim_tx_committing();
    pool->records[i].square = square(i); /* transaction */
    if (right) {
        durasim_clean(&pool->records[i]);
        durasim_persist_fence();
    }
    durasim_tx_commit();
    publish(pool, i + 1);
}

static const struct mistake {
    const char *name;
    void (*make)(struct pool *, uint64_t, int);
} mistakes[] = {
    {"missing-clean", missing_clean},
    {"misplaced-clean", misplaced_clean},
    {"clean-of-another-line", clean_of_another_line},
    {"missing-fence", missing_fence},
    {"fence-of-another-kind", fence_of_another_kind},
    {"wrong-order", wrong_order},
    {"fields-apart", fields_apart},
    {"count-before-contents", count_before_contents},
    {"allocation-before-link", allocation_before_link},
    {"transaction", transaction},
};

static struct pool *map(void) {
    int file = open("/pmem/causes", O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof(struct pool)) != 0) exit(70);
    void *base = mmap(NULL, sizeof(struct pool), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return base == MAP_FAILED ? exit(70), NULL : base;
}

static int is_wrong(const struct pool *pool, const char *name) {
    for (uint64_t i = 0; i < RECORDS; ++i) {
        int is_counted = i < pool->count, is_valid = pool->records[i].valid == 1;
        int is_whole = pool->records[i].square == square(i);
        if (strcmp(name, "wrong-order") == 0 ? is_valid && !is_whole : is_counted && !is_whole) return 1;
        if (strcmp(name, "fields-apart") == 0 && is_counted && !is_valid) return 1;
    }
    return pool->allocated != pool->linked;
}

int main(int argc, char **argv) {
    int right = argc == 4 && strcmp(argv[3], "right") == 0;
    const struct mistake *mistake = mistakes, *end = mistakes + sizeof(mistakes) / sizeof(*mistakes);
    while (argc > 2 && mistake < end && strcmp(mistake->name, argv[2]) != 0) ++mistake;
    if (argc < 3 || mistake == end || (argc == 4 && !right)) return 2;
    struct pool *pool = map();
    if (right && pool->allocated != pool->linked) {
        pool->allocated = pool->linked;
        durasim_clean(&pool->allocated);
        durasim_persist_fence();
    }
    if (strcmp(argv[1], "check") == 0) {
        if (strcmp(mistake->name, "transaction") == 0) return 0; /* the bytes alone decide */
        return is_wrong(pool, mistake->name) ? fprintf(stderr, "violation: a record is broken\n"), 1 : 0;
    }
    if (strcmp(mistake->name, "transaction") == 0) durasim_declare_data(pool, sizeof *pool);
    for (uint64_t i = pool->count; i < RECORDS; ++i) mistake->make(pool, i, right);
    return 0;
}
