// A robust mutex whose owner ends without releasing it goes to a waiter, which repairs it.
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t mutex;

static void *hold_and_leave(void *argument) {
    pthread_mutex_lock(&mutex);
    usleep(3000);
    return argument;
}

static void *inherit(void *argument) {
    usleep(1000);
    int code = pthread_mutex_lock(&mutex);
    if (code == EOWNERDEAD) {
        pthread_mutex_consistent(&mutex);
    }
    pthread_mutex_unlock(&mutex);
    *(int *)argument = code == EOWNERDEAD;
    return NULL;
}

int main(void) {
    pthread_mutexattr_t attributes;
    pthread_t owner, heir;
    int inherited = 0;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&mutex, &attributes);
    pthread_create(&owner, NULL, hold_and_leave, NULL);
    pthread_create(&heir, NULL, inherit, &inherited);
    pthread_join(owner, NULL);
    pthread_join(heir, NULL);
    printf("inherited %d, free again %d\n", inherited, pthread_mutex_lock(&mutex));
    return 0;
}
