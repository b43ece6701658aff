//! Clocks. All of them follow the simulated time.

use super::{Answer, Call, Stop};
use ::syscalls::Errno;

const NS_PER_S: u64 = 1_000_000_000;
/// The real-time clock at the start of a simulation: 2020-01-01 00:00 UTC.
const START_OF_REAL_TIME_NS: u64 = 1_577_836_800 * NS_PER_S;

const CLOCK_REALTIME: u64 = 0;
const CLOCK_REALTIME_COARSE: u64 = 5;
const CLOCK_TAI: u64 = 11;
/// CLOCK_MONOTONIC, PROCESS_CPUTIME, THREAD_CPUTIME, MONOTONIC_RAW, MONOTONIC_COARSE, BOOTTIME.
const CLOCKS_FROM_ZERO: [u64; 6] = [1, 2, 3, 4, 6, 7];
const TIMER_ABSTIME: u64 = 1;

/// The value of `clock` at the start of a simulation.
fn clock_origin_ns(clock: u64) -> Result<u64, Stop> {
    match clock {
        CLOCK_REALTIME | CLOCK_REALTIME_COARSE | CLOCK_TAI => Ok(START_OF_REAL_TIME_NS),
        _ if CLOCKS_FROM_ZERO.contains(&clock) => Ok(0),
        _ => Err(Errno::EINVAL.into()),
    }
}

impl Call<'_> {
    /// Whether a timer can follow `clock`: the clocks of processor time have none.
    pub(super) fn check_clock(&self, clock: u64) -> Result<(), Stop> {
        const MONOTONIC: u64 = 1;
        const BOOTTIME: u64 = 7;
        let is_known = [CLOCK_REALTIME, MONOTONIC, BOOTTIME].contains(&clock);
        if is_known { Ok(()) } else { Err(Errno::EINVAL.into()) }
    }

    pub(super) fn clock_gettime(&mut self, clock: u64, to: u64) -> Answer {
        let now_ns = clock_origin_ns(clock)? + self.now_ns;
        self.words_to(to, &[now_ns / NS_PER_S, now_ns % NS_PER_S])?;
        Ok(0)
    }

    pub(super) fn clock_getres(&mut self, clock: u64, to: u64) -> Answer {
        clock_origin_ns(clock)?;
        if to != 0 {
            self.words_to(to, &[0, 1])?;
        }
        Ok(0)
    }

    pub(super) fn gettimeofday(&mut self, to: u64, zone: u64) -> Answer {
        let now_ns = START_OF_REAL_TIME_NS + self.now_ns;
        if to != 0 {
            self.words_to(to, &[now_ns / NS_PER_S, now_ns % NS_PER_S / 1000])?;
        }
        if zone != 0 {
            self.bytes_to(zone, &[0; 8])?;
        }
        Ok(0)
    }

    pub(super) fn nanosleep(&mut self, request: u64) -> Answer {
        let length_ns = self.timespec_from(request)?;
        Err(Stop::Sleep { until_ns: self.now_ns.saturating_add(length_ns) })
    }

    pub(super) fn clock_nanosleep(&mut self, clock: u64, flags: u64, request: u64) -> Answer {
        Err(Stop::Sleep { until_ns: self.time_of(clock, flags & TIMER_ABSTIME != 0, request)? })
    }

    /// The simulated time, now or later, that the timespec at `addr` means: a point on `clock`, or a span from now on.
    pub(super) fn time_of(&mut self, clock: u64, absolute: bool, addr: u64) -> Answer {
        let origin_ns = clock_origin_ns(clock)?;
        let time_ns = self.timespec_from(addr)?;
        Ok(if absolute {
            time_ns.saturating_sub(origin_ns).max(self.now_ns)
        } else {
            self.now_ns.saturating_add(time_ns)
        })
    }

    /// Clock ticks (100 per second) of user time; nothing is charged to the kernel or to children.
    pub(super) fn times(&mut self, to: u64) -> Answer {
        let ticks = self.now_ns / (NS_PER_S / 100);
        if to != 0 {
            self.words_to(to, &[ticks, 0, 0, 0])?;
        }
        Ok(ticks)
    }

    /// Only the user time is known; the other fields are 0.
    pub(super) fn getrusage(&mut self, to: u64) -> Answer {
        let mut words = [0; 18];
        words[0] = self.now_ns / NS_PER_S;
        words[1] = self.now_ns % NS_PER_S / 1000;
        self.words_to(to, &words)?;
        Ok(0)
    }

    /// The time of a `struct timespec` in nanoseconds.
    pub(super) fn timespec_from(&mut self, addr: u64) -> Result<u64, Stop> {
        let [s, ns] = self.words_from(addr)?;
        if (s as i64) < 0 || ns >= NS_PER_S {
            return Err(Errno::EINVAL.into());
        }
        Ok(s.saturating_mul(NS_PER_S).saturating_add(ns))
    }
}
