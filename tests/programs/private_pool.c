// A file mapped twice, shared and private: private stores stay private, shared ones are seen until a page is copied.
// The path is the first argument, so that the same program runs on persistent memory and on any other system.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGES = 16, PAGE = 4096 };

static volatile unsigned char *shared, *private;

static void *add(void *argument) {
    long me = (long)argument;
    for (int page = 0; page < PAGES; page++) {
        for (int i = 0; i < 50; i++) {
            __atomic_fetch_add(&private[page * PAGE + 64 * me], 1, __ATOMIC_SEQ_CST);
        }
        // Across the border of two pages.
        if (page > 0 && me == 0) {
            unsigned long word = 0x0807060504030201;
            memcpy((char *)private + page * PAGE - 4, &word, 8);
        }
    }
    return NULL;
}

static unsigned checksum(volatile unsigned char *bytes) {
    unsigned sum = 0;
    for (int i = 0; i < PAGES * PAGE; i++) {
        sum = sum * 31 + bytes[i];
    }
    return sum;
}

int main(int argc, char **argv) {
    int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
    int threads = argc > 2 ? argv[2][0] - '0' : 1;
    pthread_t thread[9];
    if (fd < 0 || ftruncate(fd, PAGES * PAGE) != 0) {
        perror(argv[1]);
        return 2;
    }
    shared = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    private = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (shared == MAP_FAILED || private == MAP_FAILED) {
        perror("mmap");
        return 2;
    }
    for (int i = 0; i < PAGES * PAGE; i++) {
        shared[i] = i * 7;
    }
    printf("equal %d\n", checksum(shared) == checksum(private));
    if (threads == 1) {
        add(NULL);
    }
    for (long i = 0; i < threads && threads > 1; i++) {
        pthread_create(&thread[i], NULL, add, (void *)i);
    }
    for (int i = 0; i < threads && threads > 1; i++) {
        pthread_join(thread[i], NULL);
    }
    shared[5] = 99;
    printf("shared %u private %u apart %d\n", checksum(shared), checksum(private), private[5] != 99);
    unsigned char byte = 200;
    // The kernel writes into a page that is copied already and into none other.
    lseek(fd, 100, SEEK_SET);
    if (read(fd, (void *)(private + 64 * 20), 30) != 30) {
        return 3;
    }
    printf("read %u\n", checksum(private));
    madvise((void *)private, PAGES * PAGE, MADV_DONTNEED);
    printf("dropped, equal %d\n", checksum(shared) == checksum(private));
    return write(fd, &byte, 1) == 1 && shared[130] == 200 ? 0 : 4;
}
