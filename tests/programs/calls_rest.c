// Calls that few programs make: identity, priorities, vectors with flags, names and options of sockets. Numbers that depend
// on the user or the host are compared with others of the same run.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static void say(const char *what, long value) { printf("%s %ld\n", what, value); }

// The result of a call, 0 where an old kernel lacks it.
static long or_absent(long result, long expected) {
    return result == -1 && errno == ENOSYS ? expected : result;
}

static void identity(void) {
    say("setuid", setuid(getuid()));
    say("setgid", setgid(getgid()));
    say("setreuid", syscall(SYS_setreuid, getuid(), geteuid()));
    say("setregid", syscall(SYS_setregid, getgid(), getegid()));
    say("setresuid", syscall(SYS_setresuid, -1, -1, -1));
    say("setresgid", syscall(SYS_setresgid, -1, -1, -1));
    say("setfsuid", syscall(SYS_setfsuid, geteuid()) == geteuid());
    say("setfsgid", syscall(SYS_setfsgid, getegid()) == getegid());
    struct {
        uint32_t version;
        int pid;
    } header = {0x20080522, 0};
    uint32_t capabilities[6];
    say("capget", syscall(SYS_capget, &header, capabilities));
}

static void scheduling(void) {
    int nice = getpriority(PRIO_PROCESS, 0);
    say("setpriority", setpriority(PRIO_PROCESS, 0, nice));
    struct sched_param none = {0};
    say("sched_setparam", syscall(SYS_sched_setparam, 0, &none));
    struct timespec interval = {-1, -1};
    say("sched_rr_get_interval", syscall(SYS_sched_rr_get_interval, 0, &interval));
    say("seconds", interval.tv_sec);
}

static void vectors(void) {
    int file = open("vectors", O_RDWR | O_CREAT | O_TRUNC, 0600);
    struct iovec out[2] = {{"hello ", 6}, {"world", 5}};
    char first[4] = "", second[16] = "";
    struct iovec in[2] = {{first, 3}, {second, 8}};
    say("pwritev2", or_absent(syscall(SYS_pwritev2, file, out, 2, 0L, 0L, 0), pwritev(file, out, 2, 0)));
    say("preadv2", or_absent(syscall(SYS_preadv2, file, in, 2, 0L, 0L, 0), preadv(file, in, 2, 0)));
    printf("%s|%s\n", first, second);
    say("sync_file_range", sync_file_range(file, 0, 0, SYNC_FILE_RANGE_WRITE));
    close(file);
    unlink("vectors");
}

static void sockets(void) {
    int ends[2];
    say("socketpair", socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    struct sockaddr_un address;
    socklen_t length = sizeof address;
    say("getsockname", getsockname(ends[0], (struct sockaddr *)&address, &length));
    say("family", address.sun_family == AF_UNIX);
    say("length", length);
    length = sizeof address;
    say("getpeername", getpeername(ends[0], (struct sockaddr *)&address, &length));
    int type = 0;
    length = sizeof type;
    say("getsockopt", getsockopt(ends[0], SOL_SOCKET, SO_TYPE, &type, &length));
    say("type", type == SOCK_STREAM);
    say("accept", syscall(SYS_accept, ends[0], NULL, NULL));
    say("error", errno);
    say("accept4", syscall(SYS_accept4, ends[0], NULL, NULL, 0));
    say("error", errno);
    say("write", write(ends[0], "message", 7));
    char text[16] = "";
    struct iovec part = {text, sizeof text - 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    say("recvmsg", recvmsg(ends[1], &message, 0));
    printf("%s\n", text);

    int epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = 5};
    epoll_ctl(epoll, EPOLL_CTL_ADD, ends[1], &event);
    say("write", write(ends[0], "more", 4));
    struct timespec limit = {1, 0};
    say("epoll_pwait2", or_absent(syscall(SYS_epoll_pwait2, epoll, &event, 1, &limit, NULL, 8L), 1));
    say("data", event.data.u32);
}

static void signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    siginfo_t sent = {.si_signo = SIGUSR1, .si_code = SI_QUEUE};
    sent.si_value.sival_int = 42;
    say("rt_tgsigqueueinfo", syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGUSR1, &sent));
    siginfo_t taken;
    say("sigwaitinfo", sigwaitinfo(&set, &taken));
    say("value", taken.si_value.sival_int);
}

int main(void) {
    identity();
    scheduling();
    vectors();
    sockets();
    signals();
    // A process that leads its session may not, which depends on who starts it.
    long moved = setpgid(0, 0);
    say("setpgid", moved == 0 || errno == EPERM);
    return 0;
}
