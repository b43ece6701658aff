// Threads that wait for each other through descriptors: pipes, eventfd, timerfd, signalfd, epoll and sockets of a pair.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 200000, ROUNDS = 50 };

static void say(const char *what, long value) { printf("%s %ld\n", what, value); }

static long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

// Writes more than a pipe holds.
static void *produce(void *end) {
    static char bytes[BYTES];
    for (int i = 0; i < BYTES; ++i) bytes[i] = (char)(i * 7);
    say("written", write(*(int *)end, bytes, BYTES));
    close(*(int *)end);
    return NULL;
}

static void pipes(void) {
    int ends[2];
    say("pipe", pipe(ends));
    pthread_t producer;
    pthread_create(&producer, NULL, produce, &ends[1]);
    char bytes[999];
    long total = 0, sum = 0, got;
    while ((got = read(ends[0], bytes, sizeof bytes)) > 0) {
        for (long i = 0; i < got; ++i) sum += (unsigned char)bytes[i];
        total += got;
    }
    pthread_join(producer, NULL);
    say("total", total);
    say("sum", sum);
    say("end", read(ends[0], bytes, 1));
    close(ends[0]);
}

struct counters { int there, back; };

static void *answer(void *argument) {
    struct counters *counters = argument;
    for (uint64_t value; read(counters->there, &value, 8) == 8 && value < 1000;) {
        value *= 2;
        write(counters->back, &value, 8);
    }
    return NULL;
}

static void counters(void) {
    struct counters counters = {eventfd(0, 0), eventfd(0, EFD_CLOEXEC)};
    pthread_t thread;
    pthread_create(&thread, NULL, answer, &counters);
    uint64_t sum = 0, value;
    for (uint64_t round = 1; round <= ROUNDS; ++round) {
        value = round;
        write(counters.there, &value, 8);
        read(counters.back, &value, 8);
        sum += value;
    }
    value = 1000;
    write(counters.there, &value, 8);
    pthread_join(thread, NULL);
    say("doubled", (long)sum);
    close(counters.there);
    close(counters.back);
    int semaphore = eventfd(2, EFD_SEMAPHORE | EFD_NONBLOCK);
    say("one", read(semaphore, &value, 8) == 8 && value == 1);
    say("one more", read(semaphore, &value, 8) == 8 && value == 1);
    say("none", read(semaphore, &value, 8) == -1 && errno == EAGAIN);
    close(semaphore);
}

static void timers(void) {
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec set = {{0, 2000000}, {0, 3000000}}, left;
    long begin = now_ns();
    say("set", timerfd_settime(timer, 0, &set, NULL));
    say("left", timerfd_gettime(timer, &left) == 0 && left.it_value.tv_nsec <= 3000000 && left.it_interval.tv_nsec == 2000000);
    uint64_t expirations, all = 0;
    for (int i = 0; i < 3; ++i) {
        read(timer, &expirations, 8);
        all += expirations;
    }
    say("three at least", all >= 3);
    say("seven milliseconds", now_ns() - begin >= 7000000);
    struct pollfd wait = {timer, POLLIN, 0};
    say("poll", poll(&wait, 1, 1000));
    say("readable", wait.revents == POLLIN);
    memset(&set, 0, sizeof set);
    say("stopped", timerfd_settime(timer, 0, &set, NULL));
    say("nothing", poll(&wait, 1, 1));
    close(timer);
}

static void *send_signals(void *argument) {
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGUSR2);
    return argument;
}

static void signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int descriptor = signalfd(-1, &set, 0);
    pthread_t thread;
    pthread_create(&thread, NULL, send_signals, NULL);
    long seen = 0;
    for (int i = 0; i < 2; ++i) {
        struct signalfd_siginfo info;
        say("record", read(descriptor, &info, sizeof info));
        seen += info.ssi_signo;
        say("from here", info.ssi_pid == (uint32_t)getpid());
    }
    pthread_join(thread, NULL);
    say("both", seen == SIGUSR1 + SIGUSR2);
    close(descriptor);
    signal(SIGPIPE, SIG_IGN);
    int ends[2];
    pipe(ends);
    close(ends[0]);
    say("no reader", write(ends[1], "x", 1) == -1 && errno == EPIPE);
    close(ends[1]);
}

// An echo over a socket, with an event loop that also has a timer and a counter to stop it.
struct loop { int socket, stop; };

static void *serve(void *argument) {
    struct loop *loop = argument;
    int epoll = epoll_create1(EPOLL_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct itimerspec every = {{0, 1000000}, {0, 1000000}};
    timerfd_settime(timer, 0, &every, NULL);
    int watched[3] = {loop->socket, timer, loop->stop};
    for (int i = 0; i < 3; ++i) {
        struct epoll_event event = {.events = i == 0 ? EPOLLIN | EPOLLET : EPOLLIN, .data.fd = watched[i]};
        epoll_ctl(epoll, EPOLL_CTL_ADD, watched[i], &event);
    }
    long ticks = 0, echoed = 0;
    for (int on = 1; on;) {
        struct epoll_event events[4];
        int count = epoll_wait(epoll, events, 4, -1);
        for (int i = 0; i < count; ++i) {
            char bytes[16];
            uint64_t value;
            if (events[i].data.fd == loop->stop) on = 0;
            else if (events[i].data.fd == timer) ticks += read(timer, &value, 8) == 8;
            else
                for (long got; (got = recv(loop->socket, bytes, sizeof bytes, MSG_DONTWAIT)) > 0; echoed += got)
                    send(loop->socket, bytes, (size_t)got, 0);
        }
    }
    say("echoed", echoed);
    say("ticked", ticks > 0);
    close(epoll);
    close(timer);
    return NULL;
}

static void sockets(void) {
    int pair[2];
    say("socketpair", socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    struct loop loop = {pair[1], eventfd(0, 0)};
    pthread_t server;
    pthread_create(&server, NULL, serve, &loop);
    long equal = 0;
    for (int round = 0; round < ROUNDS; ++round) {
        char bytes[32], back[32];
        int length = snprintf(bytes, sizeof bytes, "message %d", round);
        send(pair[0], bytes, (size_t)length, 0);
        int got = 0;
        while (got < length) got += (int)recv(pair[0], back + got, sizeof back - (size_t)got, 0);
        equal += memcmp(bytes, back, (size_t)length) == 0;
    }
    say("equal", equal);
    struct timespec pause = {0, 3000000};
    nanosleep(&pause, NULL);
    uint64_t one = 1;
    write(loop.stop, &one, 8);
    pthread_join(server, NULL);
    say("shutdown", shutdown(pair[1], SHUT_WR));
    char byte;
    say("end", recv(pair[0], &byte, 1, 0));
    close(pair[0]);
    close(pair[1]);
    close(loop.stop);

    socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair);
    char parts[2][4] = {"one", "two"}, got[8] = "";
    struct iovec vectors[2] = {{parts[0], 3}, {parts[1], 3}};
    struct msghdr message = {.msg_iov = vectors, .msg_iovlen = 2};
    say("sent", sendmsg(pair[0], &message, 0));
    send(pair[0], "next", 4, 0);
    say("first", recv(pair[1], got, 4, 0));
    say("cut off", memcmp(got, "onet", 4) == 0);
    say("second", recv(pair[1], got, sizeof got, 0));
    close(pair[0]);
    close(pair[1]);
}

static void *write_later(void *end) {
    struct timespec pause = {0, 2000000};
    nanosleep(&pause, NULL);
    write(*(int *)end, "late", 4);
    return NULL;
}

static void several(void) {
    int one[2], two[2];
    pipe(one);
    pipe2(two, O_NONBLOCK);
    char bytes[8];
    say("would wait", read(two[0], bytes, 1) == -1 && errno == EAGAIN);
    pthread_t writer;
    pthread_create(&writer, NULL, write_later, &two[1]);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(one[0], &set);
    FD_SET(two[0], &set);
    say("select", select(two[1] + 1, &set, NULL, NULL, NULL));
    say("which", FD_ISSET(two[0], &set) && !FD_ISSET(one[0], &set));
    say("late", read(two[0], bytes, sizeof bytes));
    pthread_join(writer, NULL);
    struct pollfd waits[2] = {{one[0], POLLIN, 0}, {one[1], POLLOUT, 0}};
    say("poll", poll(waits, 2, -1));
    say("writable", waits[0].revents == 0 && waits[1].revents == POLLOUT);
    int file = memfd_create("scratch", MFD_CLOEXEC);
    say("memory", ftruncate(file, 4096));
    char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    strcpy(map, "mapped");
    say("seen", pread(file, bytes, 6, 0) == 6 && memcmp(bytes, "mapped", 6) == 0);
}

int main(void) {
    pipes();
    counters();
    timers();
    signals();
    sockets();
    several();
    return 0;
}
