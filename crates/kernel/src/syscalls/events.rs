//! Descriptors of counters, timers and signals: eventfd, timerfd and signalfd.

use super::files::{O_CLOEXEC, O_NONBLOCK};
use super::{Answer, Call, Stop};
use crate::files::{Kind, Opened, Timer};
use crate::poll_events::{READABLE, WRITABLE};
use crate::signals::{SI_TKILL, SignalInfo, bit};
use ::syscalls::Errno;

const NS_PER_S: u64 = 1_000_000_000;
const READ_WRITE: u64 = 2;
/// Bytes of `struct signalfd_siginfo`.
const SIGNAL_RECORD_BYTES: usize = 128;

impl Call<'_> {
    /// Gives an object that has no name a descriptor.
    fn add_unnamed(&mut self, kind: Kind, writable: bool, flags: u64) -> Answer {
        let opened = Opened::new(kind, true, writable, flags & O_NONBLOCK | READ_WRITE);
        Ok(self.process.files.add(opened, flags & O_CLOEXEC != 0)? as u64)
    }

    pub(super) fn eventfd2(&mut self, count: u64, flags: u64) -> Answer {
        const SEMAPHORE: u64 = 1;
        if flags & !(SEMAPHORE | O_CLOEXEC | O_NONBLOCK) != 0 {
            return Err(Errno::EINVAL.into());
        }
        let count = u64::from(count as u32);
        self.add_unnamed(Kind::Event { count, semaphore: flags & SEMAPHORE != 0 }, true, flags)
    }

    /// The bytes of a read of an eventfd.
    pub(super) fn take_events(&mut self, fd: i32, len: u64) -> Result<Vec<u8>, Stop> {
        if len < 8 {
            return Err(Errno::EINVAL.into());
        }
        let opened = self.process.files.get_mut(fd)?;
        let Kind::Event { count, semaphore } = &mut opened.kind else { return Err(Errno::EINVAL.into()) };
        if *count == 0 {
            return self.wait_for_file(fd, READABLE);
        }
        let taken = if *semaphore { 1 } else { *count };
        *count -= taken;
        opened.happened[1] += 1;
        Ok(taken.to_le_bytes().to_vec())
    }

    /// A write to an eventfd; the bytes that it took.
    pub(super) fn add_events(&mut self, fd: i32, bytes: &[u8]) -> Answer {
        let Some(&added) = bytes.first_chunk() else { return Err(Errno::EINVAL.into()) };
        let added = u64::from_le_bytes(added);
        let opened = self.process.files.get_mut(fd)?;
        let Kind::Event { count, .. } = &mut opened.kind else { return Err(Errno::EINVAL.into()) };
        match count.checked_add(added) {
            _ if added == u64::MAX => return Err(Errno::EINVAL.into()),
            Some(sum) if sum < u64::MAX => *count = sum,
            _ => return self.wait_for_file(fd, WRITABLE),
        }
        opened.happened[0] += 1;
        Ok(8)
    }

    pub(super) fn timerfd_create(&mut self, clock: u64, flags: u64) -> Answer {
        if flags & !(O_CLOEXEC | O_NONBLOCK) != 0 {
            return Err(Errno::EINVAL.into());
        }
        self.check_clock(clock)?;
        self.add_unnamed(Kind::Timer(Timer { clock, next_ns: None, interval_ns: 0, taken: 0 }), false, flags)
    }

    fn timer(&mut self, fd: i32) -> Result<&mut Timer, Stop> {
        match &mut self.process.files.get_mut(fd)?.kind {
            Kind::Timer(timer) => Ok(timer),
            _ => Err(Errno::EINVAL.into()),
        }
    }

    pub(super) fn timerfd_settime(&mut self, fd: i32, flags: u64, new: u64, old: u64) -> Answer {
        const ABSOLUTE: u64 = 1;
        const CANCELLED_BY_SETTING: u64 = 2;
        if flags & !(ABSOLUTE | CANCELLED_BY_SETTING) != 0 {
            return Err(Errno::EINVAL.into());
        }
        let clock = self.timer(fd)?.clock;
        // struct itimerspec: the interval, then the first expiration.
        let interval_ns = self.timespec_from(new)?;
        let value_at = new.wrapping_add(16);
        let next_ns = match self.timespec_from(value_at)? {
            0 => None,
            _ => Some(self.time_of(clock, flags & ABSOLUTE != 0, value_at)?),
        };
        if old != 0 {
            self.timerfd_gettime(fd, old)?;
        }
        let timer = self.timer(fd)?;
        *timer = Timer { next_ns, interval_ns, ..*timer };
        // Others that wait for it look again: its time is another one.
        self.process.looks_again = true;
        Ok(0)
    }

    pub(super) fn timerfd_gettime(&mut self, fd: i32, to: u64) -> Answer {
        let now_ns = self.now_ns;
        let timer = *self.timer(fd)?;
        let left_ns = timer.next_after(now_ns).map_or(0, |next_ns| next_ns.saturating_sub(now_ns));
        let words = [timer.interval_ns, left_ns].map(|ns| [ns / NS_PER_S, ns % NS_PER_S]).concat();
        self.words_to(to, &words)?;
        Ok(0)
    }

    /// The bytes of a read of a timerfd: its expirations.
    pub(super) fn take_expirations(&mut self, fd: i32, len: u64) -> Result<Vec<u8>, Stop> {
        if len < 8 {
            return Err(Errno::EINVAL.into());
        }
        let now_ns = self.now_ns;
        match self.timer(fd)?.take(now_ns) {
            0 => self.wait_for_file(fd, READABLE),
            expirations => Ok(expirations.to_le_bytes().to_vec()),
        }
    }

    /// A new signalfd, or another set of signals for the one at `fd`.
    pub(super) fn signalfd4(&mut self, fd: i32, set: u64, size: u64, flags: u64) -> Answer {
        const SIGKILL_AND_SIGSTOP: u64 = bit(9) | bit(19);
        if size != 8 || flags & !(O_CLOEXEC | O_NONBLOCK) != 0 {
            return Err(Errno::EINVAL.into());
        }
        let [mask] = self.words_from(set)?;
        let mask = mask & !SIGKILL_AND_SIGSTOP;
        if fd == -1 {
            return self.add_unnamed(Kind::Signals { mask }, false, flags);
        }
        match &mut self.process.files.get_mut(fd)?.kind {
            Kind::Signals { mask: before } => *before = mask,
            _ => return Err(Errno::EINVAL.into()),
        }
        self.process.looks_again = true;
        Ok(fd as u64)
    }

    /// The bytes of a read of a signalfd: a record for each signal that waits, as many as there is room for.
    pub(super) fn take_signals(&mut self, fd: i32, mask: u64, len: u64) -> Result<Vec<u8>, Stop> {
        let room = len as usize / SIGNAL_RECORD_BYTES;
        if room == 0 {
            return Err(Errno::EINVAL.into());
        }
        let mut records = Vec::new();
        while records.len() < room * SIGNAL_RECORD_BYTES
            && let Some(info) = self.take_pending(mask)
        {
            records.extend_from_slice(&record(info));
        }
        if records.is_empty() { self.wait_for_file(fd, READABLE) } else { Ok(records) }
    }

    /// Takes a signal of a set that waits for the thread, or for the process.
    pub(super) fn take_pending(&mut self, wanted: u64) -> Option<SignalInfo> {
        let own = self.thread().pending.take(wanted);
        own.or_else(|| self.process.signals.pending.take(wanted))
    }
}

/// `struct signalfd_siginfo`.
fn record(info: SignalInfo) -> [u8; SIGNAL_RECORD_BYTES] {
    let mut out = [0; SIGNAL_RECORD_BYTES];
    let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &u32::from(info.signal).to_le_bytes());
    put(8, &info.code.to_le_bytes());
    // Codes up to 0 are those of a sender.
    if (SI_TKILL..=0).contains(&info.code) {
        put(12, &info.origin.to_le_bytes());
    }
    put(44, &(info.value as u32).to_le_bytes());
    put(48, &info.value.to_le_bytes());
    out
}
