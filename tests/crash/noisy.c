/* `check` writes control characters and more than is kept, and changes the pool. Started again on that it objects. */
#include <durasim/persist.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int file = open("/pmem/noisy", O_RDWR | O_CREAT, 0600);
    if (argc != 2 || file < 0 || ftruncate(file, 4096) < 0) return 2;
    struct { uint64_t stored, rest[7], recovered; } *pool = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (pool == MAP_FAILED) return 2;
    if (strcmp(argv[1], "check") == 0) {
        if (pool->recovered) {
            fprintf(stderr, "it was recovered\n");
            return 1;
        }
        printf("\x1b[31mred\xff\n");
        for (int i = 0; i < 5000; ++i) putchar('a');
        pool->recovered = pool->stored;
    } else {
        pool->stored = 1;
    }
    durasim_clean(&pool->stored);
    durasim_clean(&pool->recovered);
    durasim_persist_fence();
    return 0;
}
