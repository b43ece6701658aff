// System calls on memory, each made directly: brk, mincore, mlock, mlock2, mlockall, munlock, munlockall,
// riscv_flush_icache (after code was written), mremap, madvise, mprotect, msync, mappings of files at their ends.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static long told(const char *what, long result) {
    if (result < 0) printf("%s: error %d\n", what, errno);
    else printf("%s: %ld\n", what, result);
    return result;
}

static char *map(size_t bytes, int prot, int flags, int file) {
    char *at = mmap(NULL, bytes, prot, flags, file, 0);
    if (at == MAP_FAILED) printf("mmap: %s\n", strerror(errno));
    return at;
}

int main(void) {
    // Before anything is printed: the buffers of a C library may come from the same heap.
    const long heap = syscall(SYS_brk, 0L), grown_by = syscall(SYS_brk, heap + 50000) - heap;
    memset((char *)heap, 7, 50000);
    const long shrunk_to = syscall(SYS_brk, heap + 10) - heap, below = syscall(SYS_brk, 1L) - heap;
    const int left = *(char *)(heap + 9);
    syscall(SYS_brk, heap);
    printf("brk: %ld %ld %ld %d\n", grown_by, shrunk_to, below, left);

    char *pages = map(8 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    memset(pages, 1, 8 * 4096);
    unsigned char present[8] = {0};
    told("mincore", syscall(SYS_mincore, pages, 8L * 4096, present));
    for (int i = 0; i < 8; i++) printf("%d", present[i] & 1);
    printf("\n");
    told("mincore inside a page", syscall(SYS_mincore, pages + 1, 4096L, present));
    told("mlock", syscall(SYS_mlock, pages, 4096L));
    printf("mlock2: %s\n", syscall(SYS_mlock2, pages, 4096L, 0) == 0 || errno == ENOSYS ? "done or absent" : strerror(errno));
    told("munlock", syscall(SYS_munlock, pages, 4096L));
    told("munlockall", syscall(SYS_munlockall));
    told("mlockall", syscall(SYS_mlockall, MCL_CURRENT));
    told("munlockall", syscall(SYS_munlockall));
    told("madvise", syscall(SYS_madvise, pages, 4096L, MADV_DONTNEED));
    printf("%d %d\n", pages[0], pages[4096]);
    told("munmap of the middle", syscall(SYS_munmap, pages + 2 * 4096, 2L * 4096));
    told("mprotect over a hole", syscall(SYS_mprotect, pages, 8L * 4096, PROT_READ));
    told("mprotect", syscall(SYS_mprotect, pages + 4 * 4096, 4L * 4096, PROT_READ));
    char *grown = (char *)syscall(SYS_mremap, pages, 2L * 4096, 6L * 4096, MREMAP_MAYMOVE);
    printf("mremap: %d %d %d\n", grown[0], grown[4096], grown[5 * 4096]);
    char *fewer = (char *)syscall(SYS_mremap, grown, 6L * 4096, 4096L, MREMAP_MAYMOVE);
    printf("mremap: %d\n", fewer[100]);

    // li a0, 42; ret. Then li a0, 43; ret.
    uint16_t *code = (uint16_t *)map(4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    const uint32_t answers[] = {0x02a00513, 0x02b00513};
    for (int i = 0; i < 2; i++) {
        memcpy(code, &answers[i], 4);
        code[2] = 0x8082;
        told("riscv_flush_icache", syscall(259, code, code + 3, 0L));
        printf("%d\n", ((int (*)(void))(void *)code)());
    }

    int file = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
    told("ftruncate", ftruncate(file, 5000));
    char *shared = map(8192, PROT_READ | PROT_WRITE, MAP_SHARED, file);
    char *own = map(8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, file);
    strcpy(shared, "shared"), strcpy(own + 4096, "own");
    told("msync", syscall(SYS_msync, shared, 8192L, MS_SYNC));
    char text[16] = "";
    told("pread", pread(file, text, 7, 0));
    printf("%s, %s, %d\n", text, own + 4096, shared[4096]);
    told("pwrite", pwrite(file, "written", 8, 100));
    printf("%s\n", shared + 100);
    told("msync of nothing", syscall(SYS_msync, fewer + (1L << 36), 4096L, MS_SYNC));
    void *read_only = mmap(NULL, 4096, PROT_READ, MAP_SHARED, open("second", O_RDONLY | O_CREAT, 0600), 0);
    told("mprotect of a file opened for reading", mprotect(read_only, 4096, PROT_READ | PROT_WRITE));
    void *synced = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE | MAP_SYNC, file, 0);
    printf("MAP_SYNC of an ordinary file: %s\n", synced == MAP_FAILED ? "refused" : "mapped");
    unlink("file"), unlink("second");
    return 0;
}
