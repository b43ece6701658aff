/* Bugs of published persistent-memory software by their mechanism, each beside the same work done right: `run BUG [right]` and
 * `check BUG [right]`. A comment with the name of a bug marks the line of the store that a power failure loses. Work goes on where it
 * was after a crash. */
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

enum { ROUNDS = 4, ENTRIES = 4, CELLS = 5 };
struct word { uint64_t value, rest[7]; };
struct entry { uint64_t cell, value, is_valid, rest[5]; };
struct pool {
    struct word magic, root, lock, committed, done;
    struct entry log[ENTRIES];
    struct word cells[CELLS + 1];
    struct word second[2];
    struct { uint64_t low, high, rest[6]; } pair;
    struct word acknowledged;
};
static struct pool *pool;

static void persist(const void *place) {
    durasim_clean(place);
    durasim_persist_fence();
}

static void set(struct word *word, uint64_t value) {
    word->value = value;
    persist(word);
}

/* A lock in persistent memory that nothing releases after a crash. */
static void lock_persisted(int right) {
    (void)right;
    for (uint64_t i = pool->done.value; i < ROUNDS; ++i) {
        set(&pool->lock, 1);
        set(&pool->done, i + 1);
        pool->lock.value = 0; /* lock-persisted */
        persist(&pool->lock);
    }
}

static int lock_persisted_is_wrong(int right) {
    if (right) set(&pool->lock, 0);
    return pool->lock.value != 0;
}

/* Ranges to clean that touch each other are merged; the last line of the second one is dropped. */
static void merged_ranges(int right) {
    for (uint64_t i = pool->done.value; i < ROUNDS; ++i) {
        pool->cells[0].value = i + 1;
        pool->cells[1].value = i + 1;
        pool->cells[2].value = i + 1; /* merged-ranges */
        size_t first = 0, lines[2] = {2, 1};
        size_t merged = right ? lines[0] + lines[1] : lines[0];
        for (size_t line = first; line < first + merged; ++line) durasim_clean(&pool->cells[line]);
        durasim_persist_fence();
        set(&pool->done, i + 1);
    }
}

static int merged_ranges_is_wrong(int right) {
    (void)right;
    return pool->done.value > 0 && pool->cells[2].value < pool->done.value;
}

/* A redo log: entries up to the first invalid one. Of its cells, the last one counts transactions. */
static void log_entry(size_t number, uint64_t cell, uint64_t value) {
    pool->log[number] = (struct entry){.cell = cell, .value = value, .is_valid = 1};
    durasim_clean(&pool->log[number]);
}

static void apply_log(size_t most, int cleans) {
    for (size_t i = 0; i < most && pool->log[i].is_valid; ++i) {
        pool->cells[pool->log[i].cell].value = pool->log[i].value; /* recovery-without-fences */
        if (cleans) durasim_clean(&pool->cells[pool->log[i].cell]);
    }
    if (cleans) durasim_persist_fence();
}

static void forget_log(size_t entries) {
    for (size_t i = 0; i < entries; ++i) {
        pool->log[i].is_valid = 0;
        durasim_clean(&pool->log[i]);
    }
    durasim_persist_fence();
    set(&pool->committed, 0);
}

/* Transactions change two cells or one, and the count. */
static void transactions(int right) {
    (void)right;
    for (uint64_t i = pool->cells[CELLS].value; i < ROUNDS; ++i) {
        size_t entries = 0;
        if (i % 2 == 0) log_entry(entries++, 0, i);
        log_entry(entries++, 1, i);
        log_entry(entries++, CELLS, i + 1);
        durasim_persist_fence();
        set(&pool->committed, 1);
        apply_log(entries, 1);
        forget_log(ENTRIES);
    }
}

/* Recovery leaves valid entries behind the first one: after a second crash they follow the entries of a shorter log. */
static int stale_log_is_wrong(int right) {
    if (pool->committed.value) {
        apply_log(ENTRIES, 1);
        forget_log(right ? ENTRIES : 1);
    }
    return pool->cells[CELLS].value > 0 && pool->cells[1].value != pool->cells[CELLS].value - 1;
}

/* Recovery cleans nothing before it forgets the log. */
static int recovery_without_fences_is_wrong(int right) {
    if (pool->committed.value) {
        apply_log(ENTRIES, right);
        forget_log(ENTRIES);
    }
    return pool->cells[CELLS].value > 0 && pool->cells[1].value != pool->cells[CELLS].value - 1;
}

/* Another thread persists what it has made of a value that is not durable yet. */
static atomic_int turn;
static int thread_is_right;

static void await(int wanted) {
    while (atomic_load(&turn) != wanted) {}
}

static void *reads_value(void *unused) {
    await(1);
    set(&pool->cells[1], pool->cells[0].value);
    atomic_store(&turn, 2);
    return unused;
}

static void dirty_read(int right) {
    pthread_t reader;
    if (pthread_create(&reader, NULL, reads_value, NULL) != 0) exit(70);
    pool->cells[0].value = 7; /* dirty-read */
    if (right) persist(&pool->cells[0]);
    atomic_store(&turn, 1);
    await(2);
    persist(&pool->cells[0]);
    pthread_join(reader, NULL);
}

static int dirty_read_is_wrong(int right) {
    (void)right;
    return pool->cells[1].value != 0 && pool->cells[0].value != pool->cells[1].value;
}

/* A transaction has more changes than its log has entries: the rest is applied without a log, and not cleaned. */
static void truncated_log(int right) {
    for (uint64_t i = pool->done.value; i < ROUNDS; ++i) {
        for (size_t cell = 0; cell < CELLS; ++cell) {
            if (cell < ENTRIES) log_entry(cell, cell, i + 1);
        }
        durasim_persist_fence();
        set(&pool->committed, 1);
        apply_log(ENTRIES, 1);
        pool->cells[ENTRIES].value = i + 1; /* truncated-log */
        if (right) persist(&pool->cells[ENTRIES]);
        set(&pool->done, i + 1);
        forget_log(ENTRIES);
    }
}

static int truncated_log_is_wrong(int right) {
    (void)right;
    return pool->cells[ENTRIES].value < pool->done.value;
}

/* The mark of a complete pool is durable before its root. */
static void root_missing(int right) {
    if (!right) set(&pool->magic, 0x706f6f6c);
    pool->root.value = 1; /* root-missing */
    persist(&pool->root);
    if (right) set(&pool->magic, 0x706f6f6c);
    for (uint64_t i = pool->done.value; i < 2; ++i) set(&pool->done, i + 1);
}

static int root_missing_is_wrong(int right) {
    (void)right;
    return pool->magic.value == 0x706f6f6c && pool->root.value == 0;
}

/* Two words of eight bytes are taken for one that is stored at once. Done right, one word says both. */
static void sixteen_bytes(int right) {
    for (uint64_t i = pool->pair.low & 0xffff; i < ROUNDS; ++i) {
        if (right) {
            pool->pair.low = (i + 1) << 32 | (i + 1);
        } else {
            pool->pair.low = i + 1;
            pool->pair.high = i + 1; /* sixteen-bytes */
        }
        persist(&pool->pair);
    }
}

static int sixteen_bytes_is_wrong(int right) {
    return right ? pool->pair.low >> 32 != (pool->pair.low & 0xffff) : pool->pair.low != pool->pair.high;
}

/* The checksum of a record does not cover its second line. */
static uint64_t checksum(int covers_all) {
    return pool->cells[0].value * 31 + (covers_all ? pool->cells[1].value * 17 : 0) + 5;
}

static void short_checksum(int right) {
    for (uint64_t i = pool->done.value; i < ROUNDS; ++i) {
        pool->cells[0].value = i + 1;
        pool->cells[1].value = i + 1; /* short-checksum */
        pool->cells[2].value = checksum(right);
        for (size_t line = 0; line < 3; ++line) durasim_clean(&pool->cells[line]);
        durasim_persist_fence();
        set(&pool->done, i + 1);
    }
}

static int short_checksum_is_wrong(int right) {
    int is_accepted = pool->cells[0].value != 0 && pool->cells[2].value == checksum(right);
    return is_accepted && pool->cells[0].value != pool->cells[1].value;
}

/* A writer inserts into a table whose buckets have been copied already, and again into the new one once that is published. */
static void *inserts(void *unused) {
    await(1);
    if (!thread_is_right) {
        set(&pool->cells[0], 9);
        set(&pool->acknowledged, 1);
    }
    atomic_store(&turn, 2);
    await(3);
    pool->second[0].value = 9; /* two-writers */
    persist(&pool->second[0]);
    set(&pool->acknowledged, 1);
    return unused;
}

static void two_writers(int right) {
    pthread_t writer;
    thread_is_right = right;
    if (pthread_create(&writer, NULL, inserts, NULL) != 0) exit(70);
    set(&pool->second[1], pool->cells[1].value + 1);
    atomic_store(&turn, 1);
    await(2);
    set(&pool->root, 1);
    atomic_store(&turn, 3);
    pthread_join(writer, NULL);
}

static int two_writers_is_wrong(int right) {
    (void)right;
    const struct word *table = pool->root.value ? pool->second : pool->cells;
    return pool->acknowledged.value && table[0].value != 9;
}

static const struct bug {
    const char *name;
    void (*work)(int);
    int (*is_wrong)(int);
} bugs[] = {
    {"lock-persisted", lock_persisted, lock_persisted_is_wrong},
    {"merged-ranges", merged_ranges, merged_ranges_is_wrong},
    {"stale-log", transactions, stale_log_is_wrong},
    {"recovery-without-fences", transactions, recovery_without_fences_is_wrong},
    {"dirty-read", dirty_read, dirty_read_is_wrong},
    {"truncated-log", truncated_log, truncated_log_is_wrong},
    {"root-missing", root_missing, root_missing_is_wrong},
    {"sixteen-bytes", sixteen_bytes, sixteen_bytes_is_wrong},
    {"short-checksum", short_checksum, short_checksum_is_wrong},
    {"two-writers", two_writers, two_writers_is_wrong},
};

int main(int argc, char **argv) {
    int right = argc == 4 && strcmp(argv[3], "right") == 0;
    const struct bug *bug = bugs, *end = bugs + sizeof(bugs) / sizeof(*bugs);
    while (argc > 2 && bug < end && strcmp(bug->name, argv[2]) != 0) ++bug;
    if (argc < 3 || bug == end) return 2;
    int file = open("/pmem/bugs", O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof(struct pool)) != 0) return 70;
    pool = mmap(NULL, sizeof(struct pool), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (pool == MAP_FAILED) return 70;
    if (bug->is_wrong(right)) return fprintf(stderr, "violation: %s\n", bug->name), 1;
    if (strcmp(argv[1], "check") != 0) bug->work(right);
    return 0;
}
