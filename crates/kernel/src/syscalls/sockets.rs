//! Sockets that are connected to each other within the program. There is no network.

use super::files::{O_CLOEXEC, O_NONBLOCK};
use super::signals::sent;
use super::{Answer, Call, Stop};
use crate::files::{Kind, Opened};
use crate::links::{LINK_BYTES, Link};
use crate::poll_events::{READABLE, WRITABLE};
use crate::signals::SI_USER;
use ::syscalls::Errno;

const STREAM: u64 = 1;
const SEQUENCED: u64 = 5;
const PEEK: u64 = 2;
const DO_NOT_WAIT: u64 = 0x40;
const NO_SIGNAL: u64 = 0x4000;
/// MSG_TRUNC, of the flags that `recvmsg` returns.
const CUT_OFF: u32 = 0x20;
const AF_UNIX: u16 = 1;
const SIGPIPE: u8 = 13;

/// A message that was received.
struct Received {
    bytes: Vec<u8>,
    /// The length that the message had.
    whole: usize,
}

impl Call<'_> {
    pub(super) fn socketpair(&mut self, family: u64, kind: u64, protocol: u64, to: u64) -> Answer {
        const OPTIONS: u64 = O_CLOEXEC | O_NONBLOCK;
        const DATAGRAM: u64 = 2;
        if family != u64::from(AF_UNIX) {
            return Err(Errno::EAFNOSUPPORT.into());
        }
        let options = kind & OPTIONS;
        let kind = kind & !OPTIONS;
        if ![STREAM, DATAGRAM, SEQUENCED].contains(&kind) {
            return Err(Errno::ESOCKTNOSUPPORT.into());
        }
        if protocol > u64::from(AF_UNIX) {
            return Err(Errno::EPROTONOSUPPORT.into());
        }
        self.check_range(to, 8)?;
        let files = &mut self.process.files;
        files.free_from(files.free_from(0)? + 1)?;
        let link = files.add_link(Link::new(kind));
        let mut fds = [0; 2];
        for (side, fd) in fds.iter_mut().enumerate() {
            let opened = Opened::new(Kind::Socket { link, side }, true, true, options & O_NONBLOCK | 2);
            *fd = files.add(opened, options & O_CLOEXEC != 0)?;
        }
        self.bytes_to(to, &fds.map(i32::to_le_bytes).concat())?;
        Ok(0)
    }

    /// The link of a socket and the side that it is.
    fn socket_of(&self, fd: i32) -> Result<(u64, usize), Stop> {
        match self.process.files.get(fd)?.kind {
            Kind::Socket { link, side } => Ok((link, side)),
            _ => Err(Errno::ENOTSOCK.into()),
        }
    }

    /// `connect`, `bind`, `listen`, `accept`: what a socket that is connected already does not do.
    pub(super) fn is_connected(&self, fd: i32, errno: Errno) -> Answer {
        self.socket_of(fd)?;
        Err(errno.into())
    }

    /// Something was read or written, or the other side ended: both may have to look.
    fn note_link(&mut self, link: u64, side: usize, happened: [u64; 2]) {
        self.process
            .files
            .note(|kind| matches!(kind, Kind::Socket { link: l, side: s } if (*l, *s) == (link, side)), happened);
    }

    /// The bytes that a read of a socket gets.
    fn receive(&mut self, fd: i32, len: u64, flags: u64) -> Result<Received, Stop> {
        let (link, side) = self.socket_of(fd)?;
        let ends = self.process.files.link_mut(link);
        if len > 0 && !ends.is_readable(side) {
            return if flags & DO_NOT_WAIT != 0 { Err(Errno::EAGAIN.into()) } else { self.wait_for_file(fd, READABLE) };
        }
        let before = ends.held_bytes(side);
        let keep = flags & PEEK != 0;
        let bytes = ends.take(side, len as usize, keep);
        let taken = if ends.keeps_bounds && !keep { before - ends.held_bytes(side) } else { bytes.len() };
        if !keep {
            self.note_link(link, 1 - side, [0, 1]);
        }
        Ok(Received { bytes, whole: taken })
    }

    /// The bytes of `read`.
    pub(super) fn take_from_socket(&mut self, fd: i32, len: u64) -> Result<Vec<u8>, Stop> {
        Ok(self.receive(fd, len, 0)?.bytes)
    }

    /// Sends some of `bytes`, or a whole message; how many it were.
    pub(super) fn put_into_socket(&mut self, fd: i32, bytes: &[u8], flags: u64) -> Answer {
        let (link, side) = self.socket_of(fd)?;
        let ends = self.process.files.link_mut(link);
        if ends.has_ended[side] || ends.is_deaf[1 - side] {
            if flags & NO_SIGNAL == 0 && ends.kind == STREAM {
                self.send_to_thread(self.thread, sent(SIGPIPE, SI_USER))?;
            }
            return Err(Errno::EPIPE.into());
        }
        if bytes.is_empty() && !ends.keeps_bounds {
            return Ok(0);
        }
        let room = ends.room_bytes(side);
        let sent = if ends.keeps_bounds { bytes.len() } else { bytes.len().min(room) };
        if sent > LINK_BYTES {
            return Err(Errno::EMSGSIZE.into());
        }
        if ends.is_full(side) || sent > room {
            return if flags & DO_NOT_WAIT != 0 { Err(Errno::EAGAIN.into()) } else { self.wait_for_file(fd, WRITABLE) };
        }
        ends.give(side, &bytes[..sent]);
        self.note_link(link, 1 - side, [1, 0]);
        Ok(sent as u64)
    }

    pub(super) fn sendto(&mut self, fd: i32, from: u64, len: u64, flags: u64, to: u64) -> Answer {
        let (link, _) = self.socket_of(fd)?;
        if to != 0 && self.process.files.link(link).kind != STREAM {
            return Err(Errno::EISCONN.into());
        }
        let bytes = self.bytes_from(from, len)?;
        self.write_all(&bytes, |call, bytes| call.put_into_socket(fd, bytes, flags))
    }

    pub(super) fn recvfrom(&mut self, fd: i32, to: u64, len: u64, flags: u64, address: [u64; 2]) -> Answer {
        self.check_range(to, len)?;
        let received = self.receive(fd, len, flags)?;
        self.bytes_to(to, &received.bytes)?;
        if address[0] != 0 {
            // The sender has no name.
            self.bytes_to(address[1], &[0; 4])?;
        }
        let is_cut_off = u64::from(CUT_OFF) & flags != 0;
        Ok(if is_cut_off { received.whole } else { received.bytes.len() } as u64)
    }

    pub(super) fn sendmsg(&mut self, fd: i32, header: u64, flags: u64) -> Answer {
        self.socket_of(fd)?;
        // struct msghdr: name and its length, buffers and their number, control and its length, flags.
        let [_, _, vectors, count, _, control_bytes, _] = self.words_from(header)?;
        if control_bytes != 0 {
            // Descriptors and credentials are not passed on.
            return Err(Errno::EINVAL.into());
        }
        let bytes = self.gather(vectors, count)?;
        self.write_all(&bytes, |call, bytes| call.put_into_socket(fd, bytes, flags))
    }

    pub(super) fn recvmsg(&mut self, fd: i32, header: u64, flags: u64) -> Answer {
        self.socket_of(fd)?;
        let [name, _, vectors, count, ..] = self.words_from::<7>(header)?;
        let buffers = self.buffers(vectors, count)?;
        let len = buffers.iter().map(|&(_, len)| len).sum();
        let received = self.receive(fd, len, flags)?;
        let mut rest = &received.bytes[..];
        for (base, len) in buffers {
            let (here, after) = rest.split_at(rest.len().min(len as usize));
            self.bytes_to(base, here)?;
            rest = after;
        }
        if name != 0 {
            self.bytes_to(header.wrapping_add(8), &[0; 4])?;
        }
        let is_cut_off = received.whole > received.bytes.len();
        self.words_to(header.wrapping_add(40), &[0, u64::from(u32::from(is_cut_off) * CUT_OFF)])?;
        Ok(if flags & u64::from(CUT_OFF) != 0 { received.whole } else { received.bytes.len() } as u64)
    }

    pub(super) fn shutdown(&mut self, fd: i32, how: u64) -> Answer {
        let (link, side) = self.socket_of(fd)?;
        if how > 2 {
            return Err(Errno::EINVAL.into());
        }
        let ends = self.process.files.link_mut(link);
        ends.is_deaf[side] |= how != 1;
        ends.has_ended[side] |= how != 0;
        self.note_link(link, side, [1, 1]);
        self.note_link(link, 1 - side, [1, 1]);
        Ok(0)
    }

    /// Both ends of a pair have no name.
    pub(super) fn socket_name(&mut self, fd: i32, to: u64, len: u64) -> Answer {
        self.socket_of(fd)?;
        let room = self.word_from(len)? as usize;
        self.bytes_to(to, &AF_UNIX.to_le_bytes()[..room.min(2)])?;
        self.bytes_to(len, &2u32.to_le_bytes())?;
        Ok(0)
    }

    pub(super) fn getsockopt(&mut self, fd: i32, level: u64, option: u64, to: u64, len: u64) -> Answer {
        const SOCKET: u64 = 1;
        let (link, _) = self.socket_of(fd)?;
        let kind = self.process.files.link(link).kind as u32;
        let value = match (level, option) {
            // TYPE, then ERROR and PROTOCOL and ACCEPTCONN, SNDBUF and RCVBUF, DOMAIN.
            (SOCKET, 3) => kind,
            (SOCKET, 4 | 38 | 30) => 0,
            (SOCKET, 7 | 8) => LINK_BYTES as u32,
            (SOCKET, 39) => AF_UNIX.into(),
            (SOCKET, _) => return Err(Errno::ENOPROTOOPT.into()),
            _ => return Err(Errno::EOPNOTSUPP.into()),
        };
        let room = (self.word_from(len)? as usize).min(4);
        self.bytes_to(to, &value.to_le_bytes()[..room])?;
        self.bytes_to(len, &(room as u32).to_le_bytes())?;
        Ok(0)
    }

    /// Sizes of buffers and the like may be set; the buffers stay as they are.
    pub(super) fn setsockopt(&mut self, fd: i32, level: u64, option: u64) -> Answer {
        const SOCKET: u64 = 1;
        /// REUSEADDR, SNDBUF, RCVBUF, KEEPALIVE.
        const WITHOUT_EFFECT: [u64; 4] = [2, 7, 8, 9];
        self.socket_of(fd)?;
        match level {
            SOCKET if WITHOUT_EFFECT.contains(&option) => Ok(0),
            SOCKET => Err(Errno::ENOPROTOOPT.into()),
            _ => Err(Errno::EOPNOTSUPP.into()),
        }
    }
}
