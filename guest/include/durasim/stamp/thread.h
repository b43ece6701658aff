/* Threads as the STAMP benchmarks use them, each on a core of its own; see tm.h. */
#ifndef DURASIM_STAMP_THREAD_H
#define DURASIM_STAMP_THREAD_H
#define THREAD_H /* that of STAMP is not read then */

#include <pthread.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sets the number of threads, the calling one included. */
void thread_startup(long thread_count);

/* All threads, the calling one included, execute function(argument); returns when all have. */
void thread_start(void (*function)(void *), void *argument);

void thread_shutdown(void);

/* Of the threads that thread_start runs: which one this is, from 0, how many there are, and a barrier of them all. */
long thread_getId(void);
long thread_getNumThread(void);
void thread_barrier_wait(void);

/* Barriers of other numbers of threads. */
typedef struct durasim_stamp_barrier thread_barrier_t;
thread_barrier_t *thread_barrier_alloc(long thread_count);
void thread_barrier_init(thread_barrier_t *barrier);
void thread_barrier(thread_barrier_t *barrier, long thread);
void thread_barrier_free(thread_barrier_t *barrier);

#ifdef __cplusplus
}
#endif

#define THREAD_MUTEX_T pthread_mutex_t
#define THREAD_MUTEX_INIT(lock) pthread_mutex_init(&(lock), NULL)
#define THREAD_MUTEX_LOCK(lock) pthread_mutex_lock(&(lock))
#define THREAD_MUTEX_UNLOCK(lock) pthread_mutex_unlock(&(lock))

#define THREAD_LOCAL_T pthread_key_t
#define THREAD_LOCAL_INIT(key) pthread_key_create(&(key), NULL)
#define THREAD_LOCAL_SET(key, val) pthread_setspecific(key, (void *)(val))
#define THREAD_LOCAL_GET(key) pthread_getspecific(key)

#define THREAD_BARRIER_T thread_barrier_t
#define THREAD_BARRIER_ALLOC(N) thread_barrier_alloc(N)
#define THREAD_BARRIER_INIT(bar, N) thread_barrier_init(bar)
#define THREAD_BARRIER(bar, tid) thread_barrier(bar, tid)
#define THREAD_BARRIER_FREE(bar) thread_barrier_free(bar)

#endif
