// How threads begin and end: return, pthread_exit with clean-up, detached, joined in the other order, made by threads,
// keys with destructors, once, and a first thread that leaves before the others.
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static int initialised, destroyed, cleaned;
static sem_t detached_done;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void destroy(void *value) {
    pthread_mutex_lock(&mutex);
    destroyed += *(int *)value;
    pthread_mutex_unlock(&mutex);
    free(value);
}

static void initialise(void) {
    initialised++;
    pthread_key_create(&key, destroy);
}

static void clean(void *argument) {
    cleaned += *(int *)argument;
}

static void *leave(void *argument) {
    int weight = 7;
    pthread_once(&once, initialise);
    int *value = malloc(sizeof *value);
    *value = (int)(long)argument;
    pthread_setspecific(key, value);
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(clean, &weight);
    pthread_cleanup_pop(1);
    pthread_mutex_unlock(&mutex);
    pthread_exit((void *)((long)argument * 10));
}

static void *nest(void *argument) {
    long depth = (long)argument;
    void *below = NULL;
    if (depth > 0) {
        pthread_t child;
        pthread_create(&child, NULL, nest, (void *)(depth - 1));
        pthread_join(child, &below);
    }
    return (void *)((long)below + depth);
}

static void *run_detached(void *argument) {
    sem_post(&detached_done);
    return argument;
}

static void *say_goodbye(void *argument) {
    void *value;
    pthread_join(*(pthread_t *)argument, &value);
    printf("the first thread left with %ld\n", (long)value);
    return NULL;
}

int main(void) {
    enum { THREADS = 6 };
    pthread_t threads[THREADS], nested, last;
    static pthread_t first;
    long sum = 0;
    for (long i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, leave, (void *)(i + 1));
    }
    for (int i = THREADS - 1; i >= 0; i--) {
        void *value;
        pthread_join(threads[i], &value);
        sum = sum * 3 + (long)value;
    }
    printf("sum %ld once %d destroyed %d cleaned %d\n", sum, initialised, destroyed, cleaned);

    void *depth;
    pthread_create(&nested, NULL, nest, (void *)9);
    pthread_join(nested, &depth);
    printf("nested %ld\n", (long)depth);

    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 65536);
    sem_init(&detached_done, 0, 0);
    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        pthread_create(&thread, &attributes, run_detached, NULL);
        sem_wait(&detached_done);
    }
    puts("detached 50");
    fflush(stdout);

    first = pthread_self();
    pthread_create(&last, NULL, say_goodbye, &first);
    pthread_exit((void *)42);
}
