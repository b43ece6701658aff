// Programs try system calls that not every kernel has, and continue without them. Each attempt here has a second way, so what is
// printed is the same on all kernels: io_uring_setup, io_setup, openat2, copy_file_range, preadv2, close_range, memfd_create, statx,
// eventfd2, timerfd_create, signalfd4, inotify_init1, epoll_create1, futex_waitv, mutexes that inherit priorities, getxattr, mbind,
// pidfd_open, seccomp, landlock, userfaultfd, perf_event_open, splice, and a number without a call.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static const char text[] = "what is in the file";
enum { LENGTH = sizeof text - 1 };

static void say(const char *what, long value) { printf("%s %ld\n", what, value); }

// Tries a call that gives a descriptor, which is closed.
static void tried(const char *what, long result) {
    if (result >= 0) close((int)result);
    printf("%s: the program continues\n", what);
}

static int opened(void) {
    unsigned long how[3] = {O_RDONLY, 0, 0};
    long file = syscall(437 /* openat2 */, AT_FDCWD, "probes.data", how, sizeof how);
    return (int)(file >= 0 ? file : openat(AT_FDCWD, "probes.data", O_RDONLY));
}

static long read_whole(int file, char *to) {
    long params[15] = {0};
    long ring = syscall(425 /* io_uring_setup */, 1, params);
    if (ring >= 0) close((int)ring);
    struct iovec part = {to, LENGTH};
    long done = syscall(286 /* preadv2 */, file, &part, 1, 0L, 0L, 0);
    return done >= 0 ? done : preadv(file, &part, 1, 0);
}

static long copy(int from, int to) {
    long done = syscall(285 /* copy_file_range */, from, NULL, to, NULL, (long)LENGTH, 0);
    if (done > 0) return done;
    char bytes[64];
    long there = read(from, bytes, sizeof bytes);
    return write(to, bytes, (size_t)there);
}

static int close_from(int first) {
    if (syscall(436 /* close_range */, first, first + 2, 0) != 0)
        for (int file = first; file < first + 3; ++file) close(file);
    return fcntl(first, F_GETFD) == -1 && fcntl(first + 2, F_GETFD) == -1;
}

static int memory_file(void) {
    int file = (int)syscall(279 /* memfd_create */, "probes", 1);
    return file >= 0 ? file : open("probes.memory", O_RDWR | O_CREAT | O_TRUNC, 0600);
}

static long size_of(const char *path) {
    unsigned char extended[256];
    struct stat found;
    if (syscall(291 /* statx */, AT_FDCWD, path, 0, 0x7ff, extended) == 0) {
        unsigned long size;
        memcpy(&size, extended + 40, sizeof size);
        return (long)size;
    }
    return stat(path, &found) == 0 ? (long)found.st_size : -1;
}

static void lock_once(void) {
    pthread_mutexattr_t kind;
    pthread_mutex_t mutex;
    pthread_mutexattr_init(&kind);
    if (pthread_mutexattr_setprotocol(&kind, PTHREAD_PRIO_INHERIT) != 0) pthread_mutexattr_init(&kind);
    say("mutex", pthread_mutex_init(&mutex, &kind));
    say("locked", pthread_mutex_lock(&mutex));
    say("unlocked", pthread_mutex_unlock(&mutex));
}

int main(void) {
    int file = open("probes.data", O_RDWR | O_CREAT | O_TRUNC, 0600);
    say("written", write(file, text, LENGTH));
    char bytes[64] = "";
    int again = opened();
    say("read", read_whole(again, bytes));
    say("equal", strcmp(bytes, text) == 0);
    lseek(again, 0, SEEK_SET);
    int target = open("probes.copy", O_RDWR | O_CREAT | O_TRUNC, 0600);
    say("copied", copy(again, target));
    say("size", size_of("probes.copy"));
    say("size of nothing", size_of("probes.missing"));

    int shared = memory_file();
    say("truncated", ftruncate(shared, 4096));
    char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0);
    strcpy(map, "in memory");
    say("in the file", pread(shared, bytes, 9, 0) == 9 && memcmp(bytes, "in memory", 9) == 0);
    int first = dup2(file, 100);
    dup2(file, 101);
    dup2(file, 102);
    say("all closed", close_from(first));

    unsigned long set = 0;
    tried("eventfd2", syscall(SYS_eventfd2, 0, 0));
    tried("timerfd_create", syscall(SYS_timerfd_create, 1, 0));
    tried("signalfd4", syscall(SYS_signalfd4, -1, &set, 8L, 0));
    tried("inotify_init1", syscall(SYS_inotify_init1, 0));
    tried("epoll_create1", syscall(SYS_epoll_create1, 0));
    tried("userfaultfd", syscall(SYS_userfaultfd, 1));
    tried("landlock_create_ruleset", syscall(444, NULL, 0L, 1));
    tried("perf_event_open", syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0L));
    tried("pidfd_open", syscall(434, getpid(), 0));
    tried("bpf", syscall(SYS_bpf, 99, NULL, 0));
    unsigned long context = 0;
    if (syscall(SYS_io_setup, 1, &context) == 0) syscall(SYS_io_destroy, context);
    say("futex_waitv of nothing", syscall(449, NULL, 0, 0, NULL, 0) < 0);
    say("no such attribute", syscall(SYS_fgetxattr, file, "user.none", bytes, 8L) < 0);
    say("no such policy", syscall(SYS_mbind, 1L, 4096L, 99, NULL, 0L, 0) < 0);
    say("no such filter", syscall(SYS_seccomp, 99, 0, NULL) < 0);
    say("nothing spliced", syscall(SYS_splice, -1, NULL, -1, NULL, 1L, 0) < 0);
    say("mlockall", mlockall(MCL_CURRENT) == 0 || errno == EPERM || errno == ENOMEM);
    lock_once();
    long newest = syscall(9999);
    say("a number without a call", newest == -1 && errno == ENOSYS);
    unlink("probes.data");
    unlink("probes.copy");
    unlink("probes.memory");
    return 0;
}
