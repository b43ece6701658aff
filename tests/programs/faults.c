// Handlers of faults: what they learn of an instruction that fails, how they repair it, skip it or leave it, and the stack on
// which they run.
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

static void say(const char *what, long value) { printf("%s %ld\n", what, value); }

static volatile sig_atomic_t number, code, times, on_stack;
static void *volatile address;
static char *page;
static char stack[1 << 16];

static void remember(int signal, siginfo_t *info) {
    char here;
    ++times;
    number = signal;
    code = info->si_code;
    address = info->si_addr;
    on_stack = &here > stack && &here < stack + sizeof stack;
}

static uint64_t *registers(void *context) { return (uint64_t *)((ucontext_t *)context)->uc_mcontext.__gregs; }

// The instruction is executed again, and succeeds.
static void repair(int signal, siginfo_t *info, void *context) {
    (void)context;
    remember(signal, info);
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

// The program goes on after the instruction, with another value in a0.
static void skip(int signal, siginfo_t *info, void *context) {
    remember(signal, info);
    uint64_t *x = registers(context);
    x[0] += (*(uint16_t *)x[0] & 3) == 3 ? 4 : 2;
    x[10] = 4711;
}

// The program goes on where a call would return.
static void go_back(int signal, siginfo_t *info, void *context) {
    remember(signal, info);
    uint64_t *x = registers(context);
    x[0] = x[1];
}

static sigjmp_buf back;

static void jump(int signal, siginfo_t *info, void *context) {
    (void)context;
    remember(signal, info);
    siglongjmp(back, signal);
}

static void install(int signal, void (*handler)(int, siginfo_t *, void *), int flags) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, NULL);
}

static long load(volatile long *from) {
    register long result asm("a0") = (long)from;
    asm volatile("ld a0, 0(a0)" : "+r"(result) : : "memory");
    return result;
}

static long illegal(void) {
    register long result asm("a0") = 1;
    asm volatile(".4byte 0x0000006b" : "+r"(result) : : "memory");
    return result;
}

static long half_illegal(void) {
    register long result asm("a0") = 1;
    asm volatile(".2byte 0" : "+r"(result) : : "memory");
    return result;
}

static void report(const char *what, void *expected) {
    printf("%s: signal %d code %d address %d\n", what, (int)number, (int)code, address == expected);
}

static void repaired(void) {
    install(SIGSEGV, repair, 0);
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    double kept = 2.5;
    *(volatile long *)(page + 8) = 77;
    report("store", page + 8);
    say("stored", *(long *)(page + 8));
    say("kept", (long)(kept * 2));
    mprotect(page, 4096, PROT_READ);
    asm volatile("amoadd.d zero, %1, (%0)" : : "r"(page + 16), "r"(5l) : "memory");
    report("atomic", page + 16);
    say("added", *(long *)(page + 16));
    mprotect(page, 4096, PROT_NONE);
    say("loaded", load((long *)(page + 8)));
    report("load", page + 8);
    // Twice in a loop with stores before, which have to be there.
    for (int i = 0; i < 100; ++i) {
        if (i % 50 == 0) mprotect(page, 4096, PROT_READ);
        ((volatile char *)page)[i] = (char)i;
    }
    long sum = 0;
    for (int i = 0; i < 100; ++i) sum += page[i];
    say("sum", sum);
    say("times", times);
}

static void skipped(void) {
    install(SIGSEGV, skip, 0);
    install(SIGILL, skip, 0);
    install(SIGTRAP, skip, 0);
    say("load", load((long *)16));
    report("unmapped", (void *)16);
    say("illegal", illegal());
    say("signal", number);
    say("half", half_illegal());
    say("signal", number);
    asm volatile("ebreak" : : : "a0", "memory");
    say("signal", number);
    say("code", code);
    // An address that no user has.
    say("far", load((long *)0x7fffffffffff8));
    say("signal", number);
}

static void left(void) {
    install(SIGSEGV, go_back, 0);
    ((void (*)(void))0x40)();
    report("call", (void *)0x40);
    munmap(page, 4096);
    mmap(page, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    ((void (*)(void))page)();
    report("no code", page);
    install(SIGSEGV, jump, 0);
    volatile int rounds = 0;
    for (int i = 0; i < 3; ++i) {
        if (sigsetjmp(back, 1) == 0) *(volatile int *)0 = 1;
        ++rounds;
    }
    say("rounds", rounds);
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    say("blocked", sigismember(&now, SIGSEGV));
}

static long deep(volatile char *below) {
    volatile char here[4096];
    here[0] = below ? below[0] : 1;
    return deep(here) + here[0];
}

static void *overflow(void *argument) {
    stack_t given = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&given, NULL);
    if (sigsetjmp(back, 1) == 0) say("never", deep(argument));
    return NULL;
}

static void overflown(void) {
    install(SIGSEGV, jump, SA_ONSTACK);
    pthread_t thread;
    pthread_create(&thread, NULL, overflow, NULL);
    pthread_join(thread, NULL);
    say("overflow", number);
    say("on the stack", on_stack);
}

int main(void) {
    repaired();
    skipped();
    left();
    overflown();

    return 0;
}
