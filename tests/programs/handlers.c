// Handlers of signals: their arguments, masks and stacks, calls that they interrupt or that begin again, and threads that are
// interrupted while they compute.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void say(const char *what, long value) { printf("%s %ld\n", what, value); }

static volatile sig_atomic_t seen, depth, deepest, value, code, on_stack;
static char stack[1 << 16];

static void count(int signal) { seen += signal; }

static void nest(int signal) {
    if (++depth > deepest) deepest = depth;
    if (signal == SIGUSR1) raise(SIGUSR2);
    --depth;
}

static void informed(int signal, siginfo_t *info, void *context) {
    char here;
    (void)context;
    seen += signal;
    code = info->si_code;
    value = info->si_value.sival_int;
    on_stack = &here > stack && &here < stack + sizeof stack;
}

static void install(int signal, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, NULL);
}

static void in_one_thread(void) {
    install(SIGUSR1, count, 0);
    double kept = 1.5;
    for (int i = 0; i < 10; ++i) {
        raise(SIGUSR1);
        kept *= 1.5;
    }
    say("seen", seen);
    say("kept", (long)(kept * 1000));
    install(SIGUSR1, nest, 0);
    install(SIGUSR2, nest, 0);
    raise(SIGUSR1);
    say("deepest", deepest);

    stack_t given = {.ss_sp = stack, .ss_size = sizeof stack};
    say("sigaltstack", sigaltstack(&given, NULL));
    struct sigaction action = {.sa_sigaction = informed, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    sigaction(SIGRTMIN + 1, &action, NULL);
    seen = 0;
    union sigval sent = {.sival_int = 77};
    say("sigqueue", sigqueue(getpid(), SIGRTMIN + 1, sent));
    say("seen", seen == SIGRTMIN + 1);
    say("value", value);
    say("code", code == SI_QUEUE);
    say("on the stack", on_stack);

    sigset_t blocked, before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGRTMIN + 1);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    seen = 0;
    for (int i = 0; i < 3; ++i) sigqueue(getpid(), SIGRTMIN + 1, sent);
    say("blocked", seen);
    sigprocmask(SIG_SETMASK, &before, NULL);
    say("three times", seen == 3 * (SIGRTMIN + 1));
    install(SIGUSR1, count, SA_RESETHAND);
    seen = 0;
    raise(SIGUSR1);
    struct sigaction after;
    sigaction(SIGUSR1, NULL, &after);
    say("once", seen == SIGUSR1 && after.sa_handler == SIG_DFL);
}

static sigjmp_buf back;

static void jump(int signal) { siglongjmp(back, signal); }

static void out_of_a_handler(void) {
    install(SIGUSR1, jump, 0);
    int from = sigsetjmp(back, 1);
    if (from == 0) raise(SIGUSR1);
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    say("jumped", from == SIGUSR1 && !sigismember(&now, SIGUSR1));
}

static int ends[2];
static sem_t ready, done;
static long results[4];

// Waits in a call while the other thread sends signals.
static void *wait_in_calls(void *argument) {
    (void)argument;
    char byte;
    sem_post(&ready);
    results[0] = read(ends[0], &byte, 1);
    results[1] = results[0] < 0 ? errno : 0;
    sem_post(&done);
    while (sem_wait(&ready) != 0) {}
    struct timespec length = {1000, 0}, rest = {0, 0};
    sem_post(&done);
    results[2] = nanosleep(&length, &rest) == -1 && errno == EINTR;
    results[3] = rest.tv_sec > 900;
    return NULL;
}

static void pause_ns(long ns) {
    struct timespec length = {0, ns};
    nanosleep(&length, NULL);
}

static void interrupted(int flags) {
    pthread_t thread;
    pipe(ends);
    sem_init(&ready, 0, 0);
    sem_init(&done, 0, 0);
    install(SIGUSR1, count, flags);
    pthread_create(&thread, NULL, wait_in_calls, NULL);
    while (sem_wait(&ready) != 0) {}
    pause_ns(20000000);
    seen = 0;
    pthread_kill(thread, SIGUSR1);
    pause_ns(20000000);
    say("handled", seen == SIGUSR1);
    if (flags & SA_RESTART) write(ends[1], "x", 1);
    while (sem_wait(&done) != 0) {}
    say("read", results[0]);
    say("interrupted", results[1] == EINTR);
    sem_post(&ready);
    while (sem_wait(&done) != 0) {}
    pause_ns(20000000);
    pthread_kill(thread, SIGUSR1);
    pthread_join(thread, NULL);
    say("no sleep", results[2]);
    say("rest", results[3]);
    close(ends[0]);
    close(ends[1]);
}

static atomic_int stop, started;
static atomic_long interrupts;

static void ask_to_stop(int signal) {
    (void)signal;
    if (++interrupts == 20) stop = 1;
}

// Only a handler can end this loop.
static void *compute(void *argument) {
    unsigned long sum = 0;
    started = 1;
    while (!stop) sum = sum * 6364136223846793005ul + 1;
    *(unsigned long *)argument = sum;
    return NULL;
}

static void running(void) {
    install(SIGUSR2, ask_to_stop, SA_RESTART);
    pthread_t thread;
    unsigned long sum = 0;
    pthread_create(&thread, NULL, compute, &sum);
    while (!started) sched_yield();
    for (long sent = 0; sent < 20; ++sent) {
        pthread_kill(thread, SIGUSR2);
        while (interrupts <= sent) sched_yield();
    }
    pthread_join(thread, NULL);
    say("stopped after", interrupts);
}

static void *send_later(void *argument) {
    pause_ns(5000000);
    kill(getpid(), SIGUSR1);
    return argument;
}

static void waiting(void) {
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, &before);
    pthread_t thread;
    pthread_create(&thread, NULL, send_later, NULL);
    siginfo_t info;
    say("sigwaitinfo", sigwaitinfo(&set, &info));
    pthread_join(thread, NULL);
    struct timespec length = {0, 1000000};
    say("time out", sigtimedwait(&set, &info, &length) == -1 && errno == EAGAIN);
    install(SIGUSR1, count, 0);
    seen = 0;
    raise(SIGUSR1);
    say("still blocked", seen);
    say("sigsuspend", sigsuspend(&before) == -1 && errno == EINTR);
    say("then", seen == SIGUSR1);
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, &before, &now);
    say("blocked again", sigismember(&now, SIGUSR1));
}

int main(void) {
    in_one_thread();
    out_of_a_handler();
    interrupted(0);
    interrupted(SA_RESTART);
    running();
    waiting();
    return 0;
}
