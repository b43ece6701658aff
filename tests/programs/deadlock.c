// Two threads take two mutexes in opposite order and never continue; the first thread waits for them.
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

static pthread_mutex_t mutexes[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static sem_t has[2];

static void *take(void *argument) {
    int first = (int)(long)argument;
    pthread_mutex_lock(&mutexes[first]);
    sem_post(&has[first]);
    sem_wait(&has[!first]);
    pthread_mutex_lock(&mutexes[!first]);
    puts("never");
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    for (long i = 0; i < 2; i++) {
        sem_init(&has[i], 0, 0);
    }
    puts("start");
    fflush(stdout);
    for (long i = 0; i < 2; i++) {
        pthread_create(&threads[i], NULL, take, (void *)i);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
