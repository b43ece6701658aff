// Operations on futexes, each made directly: WAIT, WAKE, REQUEUE, CMP_REQUEUE, WAIT_BITSET, WAKE_BITSET, WAKE_OP, with
// threads that wait. What is printed depends on how many wait for which futex, not on who comes first.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static atomic_int about_to_wait, woken[8];
static uint32_t first, second;

static long futex(uint32_t *word, int operation, uint32_t value, long timeout, uint32_t *other, uint32_t value3) {
    return syscall(SYS_futex, word, operation, value, timeout, other, value3);
}

static long told(const char *what, long result) {
    if (result < 0) printf("%s: error %d\n", what, errno);
    else printf("%s: %ld\n", what, result);
    return result;
}

struct Sleeper {
    uint32_t *word, bits;
    int number;
};

static void *sleeper(void *argument) {
    const struct Sleeper *self = argument;
    about_to_wait++;
    long result = self->bits ? futex(self->word, FUTEX_WAIT_BITSET_PRIVATE, 0, 0, NULL, self->bits)
                             : futex(self->word, FUTEX_WAIT_PRIVATE, 0, 0, NULL, 0);
    woken[self->number] = result == 0 ? 1 : -1;
    return NULL;
}

static pthread_t threads[8];
static struct Sleeper sleepers[8];

// Starts `count` threads that wait, with bits 1, 2, 4 ... if `with_bits`, and returns once all of them do.
static void sleep_on(uint32_t *word, int from, int count, int with_bits) {
    int wanted = about_to_wait + count;
    for (int i = from; i < from + count; i++) {
        woken[i] = 0;
        sleepers[i] = (struct Sleeper){word, with_bits ? 1u << i : 0, i};
        pthread_create(&threads[i], NULL, sleeper, &sleepers[i]);
    }
    while (about_to_wait < wanted) usleep(1000);
    usleep(100000);
}

static int awake(int from, int count) {
    int sum = 0;
    usleep(50000);
    for (int i = from; i < from + count; i++) sum += woken[i];
    return sum;
}

static void join(int from, int count) {
    for (int i = from; i < from + count; i++) pthread_join(threads[i], NULL);
}

int main(void) {
    struct timespec soon = {0, 3000000};
    told("wait for another value", futex(&first, FUTEX_WAIT_PRIVATE, 1, 0, NULL, 0));
    told("wait that ends", futex(&first, FUTEX_WAIT_PRIVATE, 0, (long)&soon, NULL, 0));
    told("wait for no bit", futex(&first, FUTEX_WAIT_BITSET_PRIVATE, 0, 0, NULL, 0));
    told("wake nobody", futex(&first, FUTEX_WAKE_PRIVATE, 9, 0, NULL, 0));
    told("misaligned", futex((uint32_t *)((char *)&first + 2), FUTEX_WAKE_PRIVATE, 9, 0, NULL, 0));

    sleep_on(&first, 0, 4, 1);
    told("wake bit 4", futex(&first, FUTEX_WAKE_BITSET_PRIVATE, 9, 0, NULL, 4));
    join(2, 1);
    told("wake bit 4 again", futex(&first, FUTEX_WAKE_BITSET_PRIVATE, 9, 0, NULL, 4));
    told("wake bits 1 and 8", futex(&first, FUTEX_WAKE_BITSET_PRIVATE, 9, 0, NULL, 9));
    join(0, 1), join(3, 1);
    told("wake the last", futex(&first, FUTEX_WAKE_PRIVATE, 9, 0, NULL, 0));
    join(1, 1);

    sleep_on(&first, 0, 5, 0);
    told("requeue", futex(&first, FUTEX_REQUEUE_PRIVATE, 1, 3, &second, 0));
    told("awake", awake(0, 5));
    told("compare and requeue another value", futex(&first, FUTEX_CMP_REQUEUE_PRIVATE, 1, 3, &second, 7));
    told("still at the first", futex(&first, FUTEX_WAKE_PRIVATE, 9, 0, NULL, 0));
    told("at the second", futex(&second, FUTEX_WAKE_PRIVATE, 2, 0, NULL, 0));
    told("and one more", futex(&second, FUTEX_WAKE_PRIVATE, 2, 0, NULL, 0));
    join(0, 5);

    sleep_on(&first, 0, 4, 0);
    told("compare and requeue", futex(&first, FUTEX_CMP_REQUEUE_PRIVATE, 0, 9, &second, 0));
    told("all at the second", futex(&second, FUTEX_WAKE_PRIVATE, 9, 0, NULL, 0));
    join(0, 4);

    sleep_on(&first, 0, 2, 0);
    sleep_on(&second, 2, 3, 0);
    told("add 5; wake two if it was 1", futex(&first, FUTEX_WAKE_OP_PRIVATE, 1, 2, &second,
                                              FUTEX_OP(FUTEX_OP_ADD, 5, FUTEX_OP_CMP_EQ, 1)));
    told("value", second);
    told("or 8; wake two if it was above 4", futex(&first, FUTEX_WAKE_OP_PRIVATE, 1, 2, &second,
                                                   FUTEX_OP(FUTEX_OP_OR, 8, FUTEX_OP_CMP_GT, 4)));
    told("value", second);
    told("awake", awake(0, 5));
    told("the last", futex(&second, FUTEX_WAKE_PRIVATE, 9, 0, NULL, 0));
    join(0, 5);
    told("set to 0", futex(&first, FUTEX_WAKE_OP_PRIVATE, 1, 1, &second, FUTEX_OP(FUTEX_OP_SET, 0, FUTEX_OP_CMP_NE, 0)));
    told("value", second);
    return 0;
}
