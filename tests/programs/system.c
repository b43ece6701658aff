// Facts about the process, its threads and signals that nobody receives.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void say(const char *what, long value) {
    printf("%s %ld\n", what, value);
    // The signal at the end takes what is not written yet.
    fflush(stdout);
}

static void handler(int signal) { say("never", signal); }

static void *name_thread(void *argument) {
    char name[16] = "";
    pthread_setname_np(pthread_self(), "worker");
    prctl(PR_GET_NAME, name);
    say("named", strcmp(name, "worker"));
    say("not the first", gettid() != getpid());
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, NULL, &blocked);
    say("inherits the mask", sigismember(&blocked, SIGUSR1));
    return argument;
}

int main(void) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, before;
    sigemptyset(&action.sa_mask);
    say("sigaction", sigaction(SIGUSR1, &action, NULL));
    sigaction(SIGUSR1, NULL, &before);
    say("kept", before.sa_handler == handler);
    say("ignore", signal(SIGPIPE, SIG_IGN) == SIG_DFL);
    say("ignored", raise(SIGPIPE));
    sigset_t set, pending;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    say("raise", raise(SIGUSR1));
    sigpending(&pending);
    say("pending", sigismember(&pending, SIGUSR1));
    signal(SIGUSR1, SIG_IGN);
    stack_t stack;
    say("sigaltstack", sigaltstack(NULL, &stack));
    say("disabled", stack.ss_flags == SS_DISABLE);

    pthread_t thread;
    pthread_create(&thread, NULL, name_thread, NULL);
    pthread_join(thread, NULL);
    say("gone", getpid() == gettid());

    cpu_set_t cores;
    say("affinity", sched_getaffinity(0, sizeof cores, &cores));
    say("some core", CPU_COUNT(&cores) > 0);
    say("yield", sched_yield());
    say("scheduler", sched_getscheduler(0));
    say("on a core", sched_getcpu() >= 0);
    say("kill", kill(getpid(), 0));
    say("nobody", syscall(SYS_tgkill, getpid(), 999999, 0) == -1 && errno == ESRCH);
    say("children", wait(NULL) == -1 && errno == ECHILD);

    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    say("usleep", usleep(2000));
    clock_gettime(CLOCK_MONOTONIC, &end);
    say("time passed", (end.tv_sec - start.tv_sec) * 1000000000L + end.tv_nsec - start.tv_nsec >= 2000000);
    struct timeval now, nothing = {0, 1000};
    say("gettimeofday", gettimeofday(&now, NULL));
    say("select", select(0, NULL, NULL, NULL, &nothing));
    struct rusage usage;
    say("getrusage", getrusage(RUSAGE_SELF, &usage));
    struct rlimit limit;
    say("getrlimit", getrlimit(RLIMIT_STACK, &limit));
    say("stack", limit.rlim_cur >= 8 << 20);
    struct utsname name;
    say("uname", uname(&name));
    say("machine", strcmp(name.machine, "riscv64"));
    struct sysinfo info;
    say("sysinfo", sysinfo(&info));
    say("memory", info.totalram > 0);
    unsigned char random[16] = {0}, zero[16] = {0};
    say("getrandom", getrandom(random, sizeof random, 0));
    say("random", memcmp(random, zero, 16) != 0);
    say("page", sysconf(_SC_PAGESIZE));
    raise(SIGTERM);
    puts("never");
    return 0;
}
