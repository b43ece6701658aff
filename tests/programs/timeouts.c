// Waits that end by time: mutexes, conditions on two clocks, semaphores, raw futexes, and sleeping in order.
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, output = PTHREAD_MUTEX_INITIALIZER;
static int word;
static char order[8];

static long long now_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static struct timespec after_ms(clockid_t clock, int ms) {
    long long t = now_ns(clock) + ms * 1000000LL;
    return (struct timespec){t / 1000000000, t % 1000000000};
}

static void *sleep_and_say(void *argument) {
    int rank = (int)(long)argument;
    usleep(rank * 20000);
    pthread_mutex_lock(&output);
    strncat(order, &"abcdef"[rank], 1);
    pthread_mutex_unlock(&output);
    return NULL;
}

static void *try_lock(void *argument) {
    struct timespec end = after_ms(CLOCK_REALTIME, 15);
    (void)argument;
    return (void *)(long)pthread_mutex_timedlock(&mutex, &end);
}

static void *wake_later(void *argument) {
    usleep(10000);
    word = 1;
    syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0);
    return argument;
}

int main(void) {
    long long start = now_ns(CLOCK_MONOTONIC);
    pthread_t thread, sleepers[4];
    void *result;
    pthread_mutex_lock(&mutex);
    pthread_create(&thread, NULL, try_lock, NULL);
    pthread_join(thread, &result);
    pthread_mutex_unlock(&mutex);
    printf("timedlock %d waited %d\n", (long)result == ETIMEDOUT, now_ns(CLOCK_MONOTONIC) - start >= 15000000);

    pthread_cond_t condition;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    for (int monotonic = 0; monotonic < 2; monotonic++) {
        clockid_t clock = monotonic ? CLOCK_MONOTONIC : CLOCK_REALTIME;
        pthread_condattr_setclock(&attributes, clock);
        pthread_cond_init(&condition, &attributes);
        pthread_mutex_lock(&mutex);
        struct timespec end = after_ms(clock, 5);
        int code = pthread_cond_timedwait(&condition, &mutex, &end);
        pthread_mutex_unlock(&mutex);
        printf("timedwait %d\n", code == ETIMEDOUT);
    }

    sem_t semaphore;
    sem_init(&semaphore, 0, 1);
    struct timespec end = after_ms(CLOCK_REALTIME, 5);
    int first = sem_timedwait(&semaphore, &end);
    int second = sem_timedwait(&semaphore, &end);
    printf("sem_timedwait %d %d %d\n", first, second, errno == ETIMEDOUT);

    struct timespec span = {0, 3000000};
    long code = syscall(SYS_futex, &word, FUTEX_WAIT, 0, &span, NULL, 0);
    printf("futex timeout %ld %d\n", code, errno == ETIMEDOUT);
    code = syscall(SYS_futex, &word, FUTEX_WAIT, 1, &span, NULL, 0);
    printf("futex changed %ld %d\n", code, errno == EAGAIN);
    pthread_create(&thread, NULL, wake_later, NULL);
    span.tv_sec = 60;
    code = syscall(SYS_futex, &word, FUTEX_WAIT, 0, &span, NULL, 0);
    printf("futex woken %ld early %d\n", code, now_ns(CLOCK_MONOTONIC) - start < 30000000000LL);
    pthread_join(thread, NULL);

    for (int i = 0; i < 4; i++) {
        pthread_create(&sleepers[i], NULL, sleep_and_say, (void *)(long)(4 - i));
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(sleepers[i], NULL);
    }
    printf("order %s\n", order);
    return 0;
}
