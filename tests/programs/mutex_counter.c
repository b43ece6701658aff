// Threads count under a mutex, a spin lock and with atomics; no increment may be lost.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { THREADS = 8, ROUNDS = 2000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_spinlock_t spin;
static long under_mutex, under_spin;
static atomic_long atomic;

static void *count(void *argument) {
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&mutex);
        long seen = under_mutex;
        if (i % 64 == 0) {
            sched_yield();
        }
        under_mutex = seen + 1;
        pthread_mutex_unlock(&mutex);
        pthread_spin_lock(&spin);
        under_spin++;
        pthread_spin_unlock(&spin);
        atomic_fetch_add(&atomic, 1);
    }
    return (char *)argument + 100;
}

int main(void) {
    pthread_t threads[THREADS];
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    for (long i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, count, (void *)i) != 0) {
            puts("pthread_create failed");
            return 2;
        }
    }
    long returned = 0;
    for (int i = 0; i < THREADS; i++) {
        void *value;
        pthread_join(threads[i], &value);
        returned += (long)value;
    }
    printf("mutex %ld spin %ld atomic %ld returned %ld\n", under_mutex, under_spin, (long)atomic, returned);
    return 0;
}
