// Threads one after the other, each with one transaction: the first argument says how many.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "durasim/markers.h"

static void *transact(void *argument) {
    if (durasim_tx_begin() == 0) {
        durasim_tx_commit();
    }
    return argument;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    for (int n = 1; n < threads; n++) {
        pthread_t thread;
        pthread_create(&thread, NULL, transact, NULL);
        pthread_join(thread, NULL);
    }
    transact(NULL);
    printf("%d threads\n", threads);
    return 0;
}
