// Cache-block operations, fences and stores whose numbers are known, one kind on each marked line.
#include <durasim/persist.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROUNDS = 10, WORDS = 8 };

static uint64_t *map(void) {
    int fd = open("/pmem/pool", O_CREAT | O_RDWR, 0600);
    if (fd < 0 || ftruncate(fd, 4096) != 0) return 0;
    void *pool = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return pool == MAP_FAILED ? 0 : pool;
}

int main(void) {
    static uint64_t elsewhere[WORDS] __attribute__((aligned(64)));
    uint64_t *pool = map();
    if (!pool) return 1;
    for (uint64_t i = 1; i <= ROUNDS; ++i) {
        pool[0] = i;
        durasim_clean(pool);     /* right */
        durasim_persist_fence(); /* waits */
    }
    for (uint64_t i = 1; i <= ROUNDS; ++i) {
        pool[WORDS] = i;
        durasim_clean(&pool[WORDS]);
        durasim_clean(&pool[WORDS]); /* again */
        durasim_persist_fence();
    }
    for (int i = 0; i < ROUNDS; ++i) {
        durasim_clean(elsewhere);  /* volatile */
        durasim_clean(&pool[256]); /* never stored */
        durasim_persist_fence();   /* in vain */
    }
    for (int i = 0; i < ROUNDS; ++i) durasim_persist_fence(); /* idle */
    pool[2 * WORDS] = 1;                                      /* replaced */
    __asm__ volatile("" : : : "memory");
    pool[2 * WORDS] = 2;                   /* never cleaned */
    *(uint32_t *)&pool[2 * WORDS + 1] = 3;                    /* four bytes */
    durasim_full_fence();
    return 0;
}
