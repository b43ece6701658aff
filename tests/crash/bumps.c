/* Two threads call one function in turns that no lock decides. */
#include <durasim/persist.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { THREADS = 2, CALLS = 10 };
static volatile uint64_t started, sums[THREADS][8];

__attribute__((noinline)) static void bump(volatile uint64_t *sum) { *sum += 1; }

static void *work(void *argument) {
    uint64_t thread = (uint64_t)argument;
    __atomic_fetch_add(&started, 1, __ATOMIC_SEQ_CST);
    while (started < THREADS) {}
    for (int i = 0; i < CALLS; i++) bump(sums[thread]);
    return 0;
}

int main(int argc, char **argv) {
    int file = open("/pmem/sum", O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, 4096)) return 2;
    uint64_t *pool = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (pool == MAP_FAILED) return 2;
    if (argc < 2 || strcmp(argv[1], "run")) return pool[0] != 0 && pool[0] != THREADS * CALLS;
    pthread_t threads[THREADS];
    for (uint64_t i = 0; i < THREADS; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
    pool[0] = sums[0][0] + sums[1][0];
    durasim_clean(pool);
    durasim_persist_fence();
    return 0;
}
