/* The clock as the STAMP benchmarks read it: simulated time under durasim; see tm.h. */
#ifndef DURASIM_STAMP_TIMER_H
#define DURASIM_STAMP_TIMER_H
#define TIMER_H /* that of STAMP is not read then */

#include <stddef.h>
#include <sys/time.h>

#define TIMER_T struct timeval
#define TIMER_READ(time) gettimeofday(&(time), NULL)
#define TIMER_DIFF_SECONDS(start, stop)                                   \
    ((double)((stop).tv_sec - (start).tv_sec) + (double)((stop).tv_usec - (start).tv_usec) / 1000000.0)

#endif
