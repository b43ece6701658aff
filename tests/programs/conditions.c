// Condition variables: a bounded queue with signals, a start that is broadcast, strict turns.
#include <pthread.h>
#include <stdio.h>

enum { PRODUCERS = 3, CONSUMERS = 4, ITEMS = 300, CAPACITY = 5, PLAYERS = 4, TURNS = 12 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static pthread_cond_t go = PTHREAD_COND_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static int queue[CAPACITY], head, used, open_gate, arrived, turn;
static long total;

static void pass_gate(void) {
    pthread_mutex_lock(&mutex);
    arrived++;
    while (!open_gate) {
        pthread_cond_wait(&go, &mutex);
    }
    pthread_mutex_unlock(&mutex);
}

static void *produce(void *argument) {
    pass_gate();
    for (int i = 1; i <= ITEMS; i++) {
        pthread_mutex_lock(&mutex);
        while (used == CAPACITY) {
            pthread_cond_wait(&not_full, &mutex);
        }
        queue[(head + used++) % CAPACITY] = i;
        pthread_cond_signal(&not_empty);
        pthread_mutex_unlock(&mutex);
    }
    return argument;
}

static void *consume(void *argument) {
    pass_gate();
    for (;;) {
        pthread_mutex_lock(&mutex);
        while (used == 0) {
            pthread_cond_wait(&not_empty, &mutex);
        }
        int item = queue[head];
        head = (head + 1) % CAPACITY;
        used--;
        if (item > 0) {
            total += item;
        }
        pthread_cond_signal(&not_full);
        pthread_mutex_unlock(&mutex);
        if (item < 0) {
            return argument;
        }
    }
}

static void *play(void *argument) {
    int me = (int)(long)argument;
    for (int i = 0; i < TURNS; i++) {
        pthread_mutex_lock(&mutex);
        while (turn % PLAYERS != me) {
            pthread_cond_wait(&turned, &mutex);
        }
        putchar('a' + me);
        turn++;
        pthread_cond_broadcast(&turned);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[PRODUCERS + CONSUMERS], players[PLAYERS];
    for (int i = 0; i < PRODUCERS + CONSUMERS; i++) {
        pthread_create(&threads[i], NULL, i < PRODUCERS ? produce : consume, NULL);
    }
    for (int all = 0; !all;) {
        pthread_mutex_lock(&mutex);
        all = arrived == PRODUCERS + CONSUMERS;
        pthread_mutex_unlock(&mutex);
    }
    pthread_mutex_lock(&mutex);
    open_gate = 1;
    pthread_cond_broadcast(&go);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < PRODUCERS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < CONSUMERS; i++) {
        pthread_mutex_lock(&mutex);
        while (used == CAPACITY) {
            pthread_cond_wait(&not_full, &mutex);
        }
        queue[(head + used++) % CAPACITY] = -1;
        pthread_cond_signal(&not_empty);
        pthread_mutex_unlock(&mutex);
    }
    for (int i = PRODUCERS; i < PRODUCERS + CONSUMERS; i++) {
        pthread_join(threads[i], NULL);
    }
    printf("consumed %ld\n", total);
    for (long i = 0; i < PLAYERS; i++) {
        pthread_create(&players[i], NULL, play, (void *)i);
    }
    for (int i = 0; i < PLAYERS; i++) {
        pthread_join(players[i], NULL);
    }
    printf("\nturns %d\n", turn);
    return 0;
}
