//! The events of open files in the bits of `poll`, and the options of an interest of epoll.

/// Something to read, there under two names (IN, RDNORM).
pub(crate) const READABLE: u16 = 0x1 | 0x40;
/// Room to write (OUT, WRNORM).
pub(crate) const WRITABLE: u16 = 0x4 | 0x100;
/// The other end of a pipe is closed: seen from the end that writes, and from the end that reads.
pub(crate) const ERROR: u16 = 0x8;
pub(crate) const HANG_UP: u16 = 0x10;
/// The other side of a socket sends nothing more.
pub(crate) const READ_HANG_UP: u16 = 0x2000;
pub(crate) const INVALID: u16 = 0x20;
pub(crate) const ALWAYS_REPORTED: u16 = ERROR | HANG_UP | INVALID;

/// EPOLLET: events are reported once, when they happen.
pub(crate) const EDGE_TRIGGERED: u32 = 1 << 31;
/// EPOLLONESHOT: after a report nothing is reported until the interest is set again.
pub(crate) const ONE_SHOT: u32 = 1 << 30;
/// Bits of an interest that are no events: the above, EPOLLWAKEUP and EPOLLEXCLUSIVE.
pub(crate) const INTEREST_OPTIONS: u32 = EDGE_TRIGGERED | ONE_SHOT | 1 << 29 | 1 << 28;

/// `events` if `there`, else none.
pub(crate) fn when(there: bool, events: u16) -> u16 {
    if there { events } else { 0 }
}
