// A list of records whose check prints what it finds and always exits with 0: only the oracle `output` knows what is wrong.
//
// run KIND MISTAKE [NUMBER]: KIND says how operations are known (markers, lines, pmemcheck, nothing, threads); NUMBER of operations.
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "durasim/markers.h"
#include "durasim/persist.h"
#include "valgrind/pmemcheck.h"

enum { RECORDS = 6, POOL_BYTES = 4096 };

struct line {
    uint64_t value;
    uint64_t rest[7];
};
struct pool {
    struct line count;
    struct line sum;
    struct line records[RECORDS];
};

static struct pool *pool;
static const char *mistake;
static uint64_t operations = RECORDS;

static void persist(struct line *line) {
    durasim_clean(line);
    durasim_persist_fence();
}

static int made(const char *name) { return strcmp(mistake, name) == 0; }

static void append(uint64_t number) {
    pool->records[number].value = 100 + number;
    if (!made("record-not-cleaned")) persist(&pool->records[number]);
    if (made("sum-apart")) {
        pool->sum.value += 100 + number;
        persist(&pool->sum);
    }
    pool->count.value = number + 1;
    if (!made("count-not-cleaned")) persist(&pool->count);
}

/* Makes lines dirty that nothing cleans. */
static void scatter(void) {
    for (size_t line = 16; line < 36; line++) ((volatile char *)pool)[64 * line] = 1;
    pool->count.value = 1;
    persist(&pool->count);
}

static void *one_operation(void *number) {
    durasim_op_begin((uintptr_t)number);
    append((uintptr_t)number);
    durasim_op_end((uintptr_t)number);
    return NULL;
}

static void work(const char *kind) {
    for (uint64_t number = 0; number < operations; number++) {
        if (strcmp(kind, "markers") == 0) {
            one_operation((void *)(uintptr_t)number);
        } else if (strcmp(kind, "threads") == 0) {
            pthread_t thread;
            pthread_create(&thread, NULL, one_operation, (void *)(uintptr_t)number);
            pthread_join(thread, NULL);
        } else if (strcmp(kind, "pmemcheck") == 0) {
            VALGRIND_PMC_START_TX_N(number);
            VALGRIND_PMC_ADD_TO_TX(&pool->records[number], sizeof(struct line));
            append(number);
            VALGRIND_PMC_END_TX_N(number);
        } else {
            append(number);
            if (strcmp(kind, "lines") == 0) {
                char text[32];
                int length = snprintf(text, sizeof text, "appended %lu\n", number);
                if (write(1, text, (size_t)length) != length) _exit(3);
            }
        }
    }
}

static void print(void) {
    printf("%lu records, sum %lu\n", pool->count.value, pool->sum.value);
    for (uint64_t number = 0; number < pool->count.value && number < RECORDS; number++)
        printf("record %lu: %lu\n", number, pool->records[number].value);
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    int file = open("/pmem/list", O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, POOL_BYTES) != 0) return 2;
    pool = mmap(NULL, POOL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (pool == MAP_FAILED) return 2;
    if (strcmp(argv[1], "refuse") == 0) {
        puts("refused");
        return 1;
    }
    if (strcmp(argv[1], "check") == 0) {
        print();
        return 0;
    }
    mistake = argc > 3 ? argv[3] : "none";
    if (argc > 4) operations = strtoul(argv[4], NULL, 10);
    if (operations > RECORDS) return 2;
    if (strcmp(argv[2], "scatter") == 0) return scatter(), 0;
    work(argv[2]);
    return 0;
}
