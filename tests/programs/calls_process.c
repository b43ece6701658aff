// System calls about the process, its rights, limits, scheduling and time, each made directly: getuid and its family,
// getppid, getpgid, getsid, getgroups, getpriority, sched_* , getrlimit, setrlimit, personality, wait4, waitid, times,
// gettimeofday, clock_getres, clock_nanosleep; and those that C libraries try and do without: clone3, membarrier, rseq,
// riscv_hwprobe, set_robust_list, sockets. What differs between systems is only told to be one of what is right.
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

static long told(const char *what, long result) {
    if (result < 0) printf("%s: error %d\n", what, errno);
    else printf("%s: %ld\n", what, result);
    return result;
}

static void either(const char *what, int right) {
    printf("%s: %s\n", what, right ? "right" : strerror(errno));
}

int main(void) {
    const long user = syscall(SYS_getuid), group = syscall(SYS_getgid);
    unsigned ids[3], groups[64];
    told("same user", syscall(SYS_geteuid) == user);
    told("same group", syscall(SYS_getegid) == group);
    told("getresuid", syscall(SYS_getresuid, &ids[0], &ids[1], &ids[2]));
    told("three alike", ids[0] == user && ids[1] == user && ids[2] == user);
    told("getresgid", syscall(SYS_getresgid, &ids[0], &ids[1], &ids[2]));
    either("getgroups", syscall(SYS_getgroups, 64, groups) >= 0);
    either("getppid", syscall(SYS_getppid) >= 0);
    told("getpgid", syscall(SYS_getpgid, 0) >= 0);
    told("getpgid of nobody", syscall(SYS_getpgid, 0x3fffffff));
    told("getsid", syscall(SYS_getsid, 0) >= 0);
    told("wait4", syscall(SYS_wait4, -1, NULL, 0, NULL));
    told("waitid", syscall(SYS_waitid, 0, 0, NULL, 4, NULL));
    told("personality", syscall(SYS_personality, 0xffffffffL));

    told("getpriority", syscall(SYS_getpriority, PRIO_PROCESS, 0));
    struct sched_param parameters = {0};
    told("sched_getscheduler", syscall(SYS_sched_getscheduler, 0));
    told("sched_getparam", syscall(SYS_sched_getparam, 0, &parameters));
    told("priority", parameters.sched_priority);
    told("sched_setscheduler", syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &parameters));
    told("sched_get_priority_max", syscall(SYS_sched_get_priority_max, SCHED_FIFO));
    told("sched_get_priority_min", syscall(SYS_sched_get_priority_min, SCHED_FIFO));
    unsigned long cores[16] = {0}, one[16] = {0};
    told("sched_getaffinity", syscall(SYS_sched_getaffinity, 0, sizeof cores, cores) >= 8);
    one[0] = cores[0] & -cores[0];
    told("sched_setaffinity", syscall(SYS_sched_setaffinity, 0, sizeof one, one));
    memset(cores, 0, sizeof cores);
    syscall(SYS_sched_getaffinity, 0, sizeof cores, cores);
    told("one core", cores[0] == one[0]);
    told("sched_yield", syscall(SYS_sched_yield));
    unsigned core;
    told("getcpu", syscall(SYS_getcpu, &core, NULL, NULL));
    told("that core", 1ul << core == one[0]);

    struct rlimit limit = {0, 0};
    told("getrlimit", syscall(SYS_getrlimit, RLIMIT_NOFILE, &limit));
    told("files", limit.rlim_cur >= 256);
    told("setrlimit", syscall(SYS_setrlimit, RLIMIT_NOFILE, &limit));
    struct rusage usage;
    told("getrusage", syscall(SYS_getrusage, RUSAGE_SELF, &usage));

    struct timeval day;
    struct timespec before, after, resolution, pause = {0, 2000000};
    told("gettimeofday", syscall(SYS_gettimeofday, &day, NULL));
    told("microseconds", day.tv_usec < 1000000);
    told("clock_getres", syscall(SYS_clock_getres, CLOCK_MONOTONIC, &resolution));
    told("fine", resolution.tv_sec == 0 && resolution.tv_nsec <= 10000000);
    told("clock_getres of nonsense", syscall(SYS_clock_getres, 999, &resolution));
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &before);
    told("clock_nanosleep", syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, NULL));
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &after);
    told("two milliseconds", (after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec >= 2000000);
    told("until a time that is over", syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &before, NULL));
    struct tms spent;
    either("times", syscall(SYS_times, &spent) >= 0);

    either("clone3", syscall(435, NULL, 0L) < 0);
    either("membarrier", syscall(SYS_membarrier, 0, 0, 0) >= 0 || errno == ENOSYS);
    either("rseq", syscall(SYS_rseq, NULL, 0, 0, 0) < 0);
    either("riscv_hwprobe", syscall(258, NULL, 0L, 0L, NULL, 0) == 0 || errno == ENOSYS);
    // Whatever is answered, musl and glibc continue.
    static long head[3] = {0, 0, 0};
    head[0] = (long)head;
    either("set_robust_list", syscall(SYS_set_robust_list, head, 24L) == 0 || errno == ENOSYS);
    struct sockaddr address = {AF_UNIX, "/none"};
    told("bind of a file", syscall(SYS_bind, 1, &address, 8));
    told("connect of nothing", syscall(SYS_connect, 99, &address, 8));
    told("listen", syscall(SYS_listen, 1, 1));
    told("sendto", syscall(SYS_sendto, 1, "x", 1L, 0, NULL, 0));
    char byte;
    told("recvfrom", syscall(SYS_recvfrom, 0, &byte, 1L, 0, NULL, NULL));
    told("setsockopt", syscall(SYS_setsockopt, 1, SOL_SOCKET, SO_REUSEADDR, &core, 4));
    told("socket of nonsense", syscall(SYS_socket, 999, SOCK_STREAM, 0));
    int pair[2];
    told("socketpair of nonsense", syscall(SYS_socketpair, 999, SOCK_STREAM, 0, pair));
    return 0;
}
