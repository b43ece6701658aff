// The program ends from a thread that is not the first, while one waits, one computes and one sleeps.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile long spins;

static void *block(void *argument) {
    pthread_mutex_lock(&mutex);
    puts("never");
    return argument;
}

static void *compute(void *argument) {
    for (;;) {
        spins++;
    }
    return argument;
}

static void *doze(void *argument) {
    sleep(3600);
    return argument;
}

static void at_end(void) {
    puts("at exit");
}

static void *end(void *argument) {
    usleep(1000);
    printf("ending, spun %d\n", spins > 0);
    exit(23);
    return argument;
}

int main(void) {
    pthread_t thread;
    atexit(at_end);
    pthread_mutex_lock(&mutex);
    pthread_create(&thread, NULL, block, NULL);
    pthread_create(&thread, NULL, compute, NULL);
    pthread_create(&thread, NULL, doze, NULL);
    pthread_create(&thread, NULL, end, NULL);
    pthread_join(thread, NULL);
    puts("never");
    return 0;
}
