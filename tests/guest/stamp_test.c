/* Tests of the headers in durasim/stamp: `stamp_test CASE` runs one case on a fresh pool; a case that must end the program is judged
 * by the caller. Compiled as C, once per runtime. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "thread.h"
#include "timer.h"
#include "tm.h"

#define REQUIRE(condition)                                                            \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #condition);     \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)

typedef struct mixed {
    char byte;
    unsigned char other_byte;
    short half;
    int word;
    float real;
    double large;
    long number;
    struct mixed *next;
} mixed_t;

static long shared_outside; /* in ordinary memory */

static mixed_t *
make (void)
{
    mixed_t *made;
    TM_BEGIN();
    made = (mixed_t *)TM_MALLOC(sizeof(mixed_t));
    TM_SHARED_WRITE(made->byte, (char)-1);
    TM_SHARED_WRITE(made->other_byte, 200);
    TM_SHARED_WRITE(made->half, -2);
    TM_SHARED_WRITE(made->word, -3);
    TM_SHARED_WRITE_F(made->real, 0.5f);
    TM_SHARED_WRITE_F(made->large, -0.25);
    TM_SHARED_WRITE(made->number, 1L << 40);
    TM_SHARED_WRITE_P(made->next, made);
    durasim_stamp_set_root(made);
    TM_END();
    return made;
}

static void
values (void)
{
    mixed_t *m = make();
    long seen = 0;
    REQUIRE(durasim_stamp_root() == m);
    REQUIRE(m->byte == (char)-1 && m->other_byte == 200 && m->half == -2 && m->word == -3 && m->real == 0.5f);
    REQUIRE(m->large == -0.25 && m->number == 1L << 40 && m->next == m);
    TM_BEGIN_RO();
    seen = TM_SHARED_READ(m->word) + TM_SHARED_READ(m->half) + TM_SHARED_READ(m->other_byte);
    REQUIRE(TM_SHARED_READ_F(m->real) == 0.5f && TM_SHARED_READ_F(m->large) == -0.25 && TM_SHARED_READ_P(m->next) == m);
    TM_EARLY_RELEASE(m->word);
    TM_END();
    REQUIRE(seen == 195);
    TM_BEGIN();
    REQUIRE(TM_SHARED_WRITE(m->word, 9) == 9);
    REQUIRE(TM_SHARED_READ(m->word) == 9);
    TM_SHARED_WRITE(m->byte, 'x');
    REQUIRE(TM_SHARED_READ(m->byte) == 'x' && TM_SHARED_READ(m->other_byte) == 200 && TM_SHARED_READ(m->half) == -2);
    TM_END();
    REQUIRE(m->word == 9 && m->byte == 'x' && m->other_byte == 200);
    REQUIRE(TM_SHARED_READ(m->word) == 9); /* also outside of transactions */
}

static void __attribute__((noinline))
change_locals (long *kept, long *in_pool)
{
    long mine = 0;
    TM_LOCAL_WRITE(mine, 5); /* no more when the transaction is executed again */
    REQUIRE(mine == 5);
    TM_LOCAL_WRITE(*kept, *kept + 1);
    TM_SHARED_WRITE(*in_pool, TM_SHARED_READ(*in_pool) + mine);
}

/* What a transaction that starts again has done is undone: in the pool, in shared and in local variables. */
static void
restart (void)
{
    mixed_t *m = make();
    volatile int attempts = 0;
    long kept = 10, round;
    for (round = 0; round < 3; round++) {
        attempts = 0;
        TM_BEGIN();
        attempts = attempts + 1;
        change_locals(&kept, &m->number);
        TM_SHARED_WRITE(shared_outside, TM_SHARED_READ(shared_outside) + 1);
        REQUIRE(kept == 11 + round && TM_SHARED_READ(shared_outside) == round + 1);
        REQUIRE(TM_SHARED_READ(m->number) == (1L << 40) + 5 * (round + 1));
        TM_FREE(TM_MALLOC(100));
        TM_FREE(malloc(10)); /* given back by the attempt that commits; the others lose their own */
        if (attempts < 4) {
            TM_RESTART();
        }
        TM_END();
        REQUIRE(attempts >= 4 && kept == 11 + round && shared_outside == round + 1);
        REQUIRE(m->number == (1L << 40) + 5 * (round + 1));
    }
}

static void
blocks (void)
{
    void *first, *again, *ordinary = malloc(30);
    TM_BEGIN();
    first = TM_MALLOC(40);
    TM_END();
    REQUIRE((uintptr_t)first % 16 == 0);
    TM_BEGIN();
    TM_FREE(first);
    TM_FREE(ordinary);
    TM_FREE(NULL);
    again = TM_MALLOC(48);
    TM_END();
    REQUIRE(again == first);
    free(again); /* a block of the pool, in a transaction of its own */
    TM_BEGIN();
    REQUIRE(TM_MALLOC(33) == first);
    free(first);
    REQUIRE(TM_MALLOC(33) == first);
    REQUIRE(TM_MALLOC((size_t)1 << 40) == NULL);
    TM_END();
    REQUIRE(memory_init(2, 1024, 2));
    first = memory_get(0, 5000);
    memset(first, 1, 5000);
    REQUIRE(first != NULL && memory_get(1, 3) != first);
    memory_destroy();
    ordinary = P_MALLOC(10);
    P_FREE(ordinary);
}

enum { THREADS = 4, INCREMENTS = 100, INCREMENTS_OF_ROUND = 20 }; /* of each thread */
static THREAD_BARRIER_T *barrier;
static long rounds_seen[8];

static void
count (void *argument)
{
    mixed_t *m = (mixed_t *)argument;
    long id, i;
    TM_THREAD_ENTER();
    id = thread_getId();
    thread_barrier_wait();
    for (i = 0; i < INCREMENTS; i++) {
        TM_BEGIN();
        TM_SHARED_WRITE(m->number, TM_SHARED_READ(m->number) + 1);
        TM_SHARED_WRITE(shared_outside, TM_SHARED_READ(shared_outside) + 1);
        TM_END();
        if (i % INCREMENTS_OF_ROUND == 0) {
            rounds_seen[id] = i;
            THREAD_BARRIER(barrier, id);
            REQUIRE(rounds_seen[(id + 1) % thread_getNumThread()] == i);
            THREAD_BARRIER(barrier, id);
        }
    }
    TM_THREAD_EXIT();
}

static void
threads (void)
{
    mixed_t *m = make();
    TIMER_T start, stop;
    thread_startup(THREADS);
    barrier = THREAD_BARRIER_ALLOC(THREADS);
    THREAD_BARRIER_INIT(barrier, THREADS);
    TIMER_READ(start);
    GOTO_SIM();
    thread_start(count, m);
    thread_start(count, m); /* other threads with the same numbers */
    GOTO_REAL();
    TIMER_READ(stop);
    GOTO_SIM(); /* behind the region: nothing */
    REQUIRE(TIMER_DIFF_SECONDS(start, stop) >= 0);
    THREAD_BARRIER_FREE(barrier);
    thread_shutdown();
    REQUIRE(m->number == (1L << 40) + 2 * THREADS * INCREMENTS && shared_outside == 2 * THREADS * INCREMENTS);
}

MAIN(argc, argv)
{
    const char *name = argc == 2 ? argv[1] : "";
    mixed_t *m = NULL;
    if (strcmp(name, "early") == 0) {
        TM_BEGIN();
    }
    TM_STARTUP(strcmp(name, "many-threads") == 0 ? 65 : 4);
    if (strcmp(name, "values") == 0) {
        values();
    } else if (strcmp(name, "restart") == 0) {
        restart();
    } else if (strcmp(name, "blocks") == 0) {
        blocks();
    } else if (strcmp(name, "threads") == 0) {
        threads();
    } else if (strcmp(name, "nested") == 0) {
        TM_BEGIN();
        TM_BEGIN();
    } else if (strcmp(name, "no-begin") == 0) {
        TM_END();
    } else if (strcmp(name, "write-outside") == 0) {
        m = make();
        TM_SHARED_WRITE(m->word, 1);
    } else if (strcmp(name, "free-inside-block") == 0) {
        m = make();
        TM_BEGIN();
        TM_FREE(&m->word);
    } else if (strcmp(name, "twice") == 0) {
        TM_STARTUP(1);
    } else {
        return 2;
    }
    TM_SHUTDOWN();
    puts("ok");
    MAIN_RETURN(0);
}
