/* A bank, written with the names of the STAMP benchmarks: an example of a program that knows nothing of durasim but the
 * root by which it finds its data again (docs/programs-of-others.md).
 *
 *     bank run   [-a ACCOUNTS] [-n TRANSFERS] [-t THREADS] [-s SEED]
 *     bank check [-n TRANSFERS]
 *
 * Threads move money between accounts. Each transfer is an order at the end of a list, which keeps the newest ones; the
 * oldest order is settled and freed when there are too many. An account knows what settled orders have done to it, so the
 * orders of the list have to explain the rest of its balance: `check` opens the pool, which recovers it, and looks whether
 * they do, and whether there are as many transfers as -n says at least. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory.h"
#include "thread.h"
#include "timer.h"
#include "tm.h"

enum { FIRST_BALANCE = 1000, ORDERS_KEPT = 8, THREADS_MAX = 64, ACCOUNTS_MAX = 4096 };

typedef struct account {
    long balance;
    long settled; /* what orders that are no longer in the list have brought */
    char *name;
} account_t;

typedef struct order {
    struct order *next;
    long number;
    long from, to;
    long amount;
} order_t;

typedef struct bank {
    long account_count;
    account_t *accounts;
    order_t *first, *last;
    long order_count;        /* in the list */
    long order_count_total;  /* ever made */
    float turnover;          /* in thousands; never far from the sum of amounts */
    long made_by[THREADS_MAX];
} bank_t;

typedef struct work {
    bank_t *bank;
    long transfer_count;
    unsigned long seed;
} work_t;

static unsigned long
next_random (unsigned long *state)
{
    *state = *state * 6364136223846793005ul + 1442695040888963407ul;
    return *state >> 33;
}

/* In a transaction. */
static TM_CALLABLE bank_t *
open_bank (TM_ARGDECL  long account_count)
{
    long i;
    bank_t *bank = (bank_t *)TM_MALLOC(sizeof(bank_t));
    account_t *accounts = (account_t *)TM_MALLOC(account_count * sizeof(account_t));

    TM_SHARED_WRITE(bank->account_count, account_count);
    TM_SHARED_WRITE_P(bank->accounts, accounts);
    TM_SHARED_WRITE_P(bank->first, NULL);
    TM_SHARED_WRITE_P(bank->last, NULL);
    TM_SHARED_WRITE(bank->order_count, 0);
    TM_SHARED_WRITE(bank->order_count_total, 0);
    TM_SHARED_WRITE_F(bank->turnover, 0.0f);
    for (i = 0; i < THREADS_MAX; i++) {
        TM_SHARED_WRITE(bank->made_by[i], 0);
    }
    for (i = 0; i < account_count; i++) {
        TM_SHARED_WRITE(accounts[i].balance, FIRST_BALANCE);
        TM_SHARED_WRITE(accounts[i].settled, 0);
        TM_SHARED_WRITE_P(accounts[i].name, NULL);
    }
    durasim_stamp_set_root(bank);
    return bank;
}

/* In a transaction. */
static TM_CALLABLE void
settle_oldest (TM_ARGDECL  bank_t *bank)
{
    order_t *order = TM_SHARED_READ_P(bank->first);
    account_t *accounts = TM_SHARED_READ_P(bank->accounts);
    account_t *from = &accounts[TM_SHARED_READ(order->from)];
    account_t *to = &accounts[TM_SHARED_READ(order->to)];
    long amount = TM_SHARED_READ(order->amount);

    TM_SHARED_WRITE(from->settled, TM_SHARED_READ(from->settled) - amount);
    TM_SHARED_WRITE(to->settled, TM_SHARED_READ(to->settled) + amount);
    TM_SHARED_WRITE_P(bank->first, TM_SHARED_READ_P(order->next));
    TM_SHARED_WRITE(bank->order_count, TM_SHARED_READ(bank->order_count) - 1);
    TM_FREE(order);
}

/* In a transaction. */
static TM_CALLABLE void
append (TM_ARGDECL  bank_t *bank, long from, long to, long amount)
{
    order_t *order = (order_t *)TM_MALLOC(sizeof(order_t));
    order_t *last = TM_SHARED_READ_P(bank->last);
    long count = TM_SHARED_READ(bank->order_count);

    TM_SHARED_WRITE_P(order->next, NULL);
    TM_SHARED_WRITE(order->number, TM_SHARED_READ(bank->order_count_total));
    TM_SHARED_WRITE(order->from, from);
    TM_SHARED_WRITE(order->to, to);
    TM_SHARED_WRITE(order->amount, amount);
    if (count == 0) {
        TM_SHARED_WRITE_P(bank->first, order);
    } else {
        TM_SHARED_WRITE_P(last->next, order);
    }
    TM_SHARED_WRITE_P(bank->last, order);
    TM_SHARED_WRITE(bank->order_count, count + 1);
    TM_SHARED_WRITE(bank->order_count_total, TM_SHARED_READ(bank->order_count_total) + 1);
    if (count + 1 > ORDERS_KEPT) {
        settle_oldest(TM_ARG  bank);
    }
}

static void
transfer_money (void *argument)
{
    TM_THREAD_ENTER();

    work_t *work = (work_t *)argument;
    bank_t *bank = work->bank;
    long id = thread_getId();
    long threads = thread_getNumThread();
    long mine = work->transfer_count / threads + (id < work->transfer_count % threads);
    unsigned long random = work->seed * 1000003 + (unsigned long)id;
    long poor = 0;
    long i;

    thread_barrier_wait();
    for (i = 0; i < mine; i++) {
        long from = (long)(next_random(&random) % (unsigned long)bank->account_count);
        long to = (long)(next_random(&random) % (unsigned long)bank->account_count);
        long wanted = 1 + (long)(next_random(&random) % 400);
        long amount;
        account_t *source, *target;

        TM_BEGIN();
        amount = wanted;
        source = &TM_SHARED_READ_P(bank->accounts)[from];
        target = &TM_SHARED_READ_P(bank->accounts)[to];
        if (TM_SHARED_READ(source->balance) < amount) {
            amount = TM_SHARED_READ(source->balance);
            TM_LOCAL_WRITE(poor, poor + 1);
        }
        TM_SHARED_WRITE(source->balance, TM_SHARED_READ(source->balance) - amount);
        TM_SHARED_WRITE(target->balance, TM_SHARED_READ(target->balance) + amount);
        append(TM_ARG  bank, from, to, amount);
        TM_SHARED_WRITE_F(bank->turnover, TM_SHARED_READ_F(bank->turnover) + (float)amount / 1000);
        TM_SHARED_WRITE(bank->made_by[id], TM_SHARED_READ(bank->made_by[id]) + 1);
        TM_END();
    }
    assert(poor <= mine);

    TM_THREAD_EXIT();
}

static void
require (int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "bank: violation: %s\n", what);
        exit(1);
    }
}

/* Whether the pool holds a bank that transfers can have made, and how many. Nothing in it is taken for granted. */
static long
check_bank (bank_t *bank)
{
    long i, count, sum = 0, made = 0;
    long *explained;
    order_t *order;

    if (bank == NULL) {
        return 0;
    }
    count = bank->account_count;
    require(count >= 1 && count <= ACCOUNTS_MAX, "the number of accounts is impossible");
    explained = (long *)calloc(count, sizeof(long));
    assert(explained != NULL);
    for (i = 0; i < count; i++) {
        require(bank->accounts[i].balance >= 0, "an account is overdrawn");
        sum += bank->accounts[i].balance;
        explained[i] = FIRST_BALANCE + bank->accounts[i].settled;
    }
    require(sum == count * FIRST_BALANCE, "money has come or gone");
    require(bank->order_count >= 0 && bank->order_count <= ORDERS_KEPT, "the list has an impossible length");
    order = bank->first;
    for (i = 0; i < bank->order_count; i++) {
        require(order != NULL, "the list of orders ends early");
        require(order->number == bank->order_count_total - bank->order_count + i, "an order is missing");
        require(order->from >= 0 && order->from < count && order->to >= 0 && order->to < count, "an order has no account");
        explained[order->from] -= order->amount;
        explained[order->to] += order->amount;
        require((order->next == NULL) == (i == bank->order_count - 1), "the list of orders has another length");
        require(order->next != NULL || bank->last == order, "the last order is another one");
        order = order->next;
    }
    for (i = 0; i < count; i++) {
        require(bank->accounts[i].balance == explained[i], "the orders do not explain a balance");
    }
    for (i = 0; i < THREADS_MAX; i++) {
        made += bank->made_by[i];
    }
    require(made == bank->order_count_total, "the threads have made another number of orders");
    free(explained);
    return made;
}

MAIN(argc, argv)
{
    long account_count = 16, transfer_count = -1, threads = 1;
    unsigned long seed = 1;
    int option, is_check;
    TIMER_T start, stop;
    bank_t *bank;

    GOTO_REAL();
    is_check = argc > 1 && strcmp(argv[1], "check") == 0;
    if (!is_check && (argc < 2 || strcmp(argv[1], "run") != 0)) {
        fprintf(stderr, "usage: bank run|check [-a ACCOUNTS] [-n TRANSFERS] [-t THREADS] [-s SEED]\n");
        return 2;
    }
    optind = 2;
    while ((option = getopt(argc, argv, "a:n:t:s:")) != -1) {
        switch (option) {
            case 'a': account_count = atol(optarg); break;
            case 'n': transfer_count = atol(optarg); break;
            case 't': threads = atol(optarg); break;
            case 's': seed = strtoul(optarg, NULL, 10); break;
            default: return 2;
        }
    }
    if (account_count < 1 || account_count > ACCOUNTS_MAX || threads < 1 || threads > THREADS_MAX) {
        fprintf(stderr, "bank: from 1 to %d accounts and 1 to %d threads\n", ACCOUNTS_MAX, THREADS_MAX);
        return 2;
    }
    SIM_GET_NUM_CPU(threads);
    TM_STARTUP(is_check ? 1 : threads);
    bank = (bank_t *)durasim_stamp_root();
    if (is_check) {
        long made = check_bank(bank);
        require(made >= transfer_count, "an acknowledged transfer is lost");
        printf("bank: %ld transfers, consistent\n", made);
        TM_SHUTDOWN();
        MAIN_RETURN(0);
    }

    P_MEMORY_STARTUP(threads);
    thread_startup(threads);
    if (bank == NULL) {
        TM_BEGIN();
        bank = open_bank(TM_ARG  account_count);
        TM_END();
    }
    work_t *work = (work_t *)P_MALLOC(sizeof(work_t));
    long before = check_bank(bank);
    work->bank = bank;
    work->transfer_count = transfer_count < 0 ? 100 : transfer_count;
    work->seed = seed + (unsigned long)before;
    TIMER_READ(start);
    GOTO_SIM();
    thread_start(transfer_money, work);
    GOTO_REAL();
    TIMER_READ(stop);
    long made = check_bank(bank) - before;
    require(made == work->transfer_count, "not all transfers were made");
    assert(TIMER_DIFF_SECONDS(start, stop) >= 0);
    printf("bank: made %ld transfers with %ld threads, ok\n", made, threads);
    P_FREE(work);
    P_MEMORY_SHUTDOWN();
    TM_SHUTDOWN();
    GOTO_SIM();
    thread_shutdown();
    MAIN_RETURN(0);
}
