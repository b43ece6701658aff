//! Pairs of sockets that are connected to each other (`socketpair`).

use crate::poll_events::{HANG_UP, READ_HANG_UP, READABLE, WRITABLE, when};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The most bytes that wait for one side, as in Linux by default.
pub(crate) const LINK_BYTES: usize = 212_992;
/// The room that each message takes beside its bytes, so that empty ones fill a socket too. Linux counts its own header.
const MESSAGE_BYTES: usize = 256;

/// Two sockets. Each side has the messages that the other one has sent; a stream has no bounds between them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Link {
    /// Messages keep their bounds (SOCK_DGRAM, SOCK_SEQPACKET).
    pub(crate) keeps_bounds: bool,
    /// SOCK_STREAM 1, SOCK_DGRAM 2 or SOCK_SEQPACKET 5.
    pub(crate) kind: u64,
    waiting: [VecDeque<Vec<u8>>; 2],
    /// The side sends nothing more.
    pub(crate) has_ended: [bool; 2],
    /// The side takes nothing more.
    pub(crate) is_deaf: [bool; 2],
    open: [bool; 2],
}

impl Link {
    pub(crate) fn new(kind: u64) -> Self {
        const STREAM: u64 = 1;
        Link {
            keeps_bounds: kind != STREAM,
            kind,
            waiting: Default::default(),
            has_ended: [false; 2],
            is_deaf: [false; 2],
            open: [true; 2],
        }
    }

    pub(crate) fn close(&mut self, side: usize) {
        self.open[side] = false;
        self.has_ended[side] = true;
        self.is_deaf[side] = true;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.open == [false; 2]
    }

    /// Bytes that wait for a side.
    pub(crate) fn held_bytes(&self, side: usize) -> usize {
        self.waiting[side].iter().map(Vec::len).sum()
    }

    /// Room for what a side sends.
    pub(crate) fn room_bytes(&self, side: usize) -> usize {
        LINK_BYTES.saturating_sub(self.taken_bytes(side))
    }

    /// The room that is taken by what a side has sent.
    fn taken_bytes(&self, side: usize) -> usize {
        self.held_bytes(1 - side) + MESSAGE_BYTES * self.waiting[1 - side].len()
    }

    /// Whether a side can send nothing, not even an empty message.
    pub(crate) fn is_full(&self, side: usize) -> bool {
        self.taken_bytes(side) >= LINK_BYTES
    }

    /// Whether a side has something to read, if only the end.
    pub(crate) fn is_readable(&self, side: usize) -> bool {
        !self.waiting[side].is_empty() || self.has_ended[1 - side] || self.is_deaf[side]
    }

    /// The bytes that a side gets from a read of up to `len`; the rest of a message is lost. `keep` leaves them.
    pub(crate) fn take(&mut self, side: usize, len: usize, keep: bool) -> Vec<u8> {
        let mut taken = Vec::new();
        let mut place = 0;
        while let Some(message) = self.waiting[side].get(place) {
            if !self.keeps_bounds && taken.len() == len {
                break;
            }
            let wanted = message.len().min(len - taken.len());
            taken.extend_from_slice(&message[..wanted]);
            match (keep, self.keeps_bounds || wanted == message.len()) {
                (true, _) => place += 1,
                (false, true) => drop(self.waiting[side].pop_front()),
                (false, false) => drop(self.waiting[side][0].drain(..wanted)),
            }
            if self.keeps_bounds {
                break;
            }
        }
        taken
    }

    /// Gives the other side a message, or as much of it as there is room for.
    pub(crate) fn give(&mut self, side: usize, bytes: &[u8]) {
        self.waiting[1 - side].push_back(bytes.to_vec());
    }

    /// The events of a side.
    pub(crate) fn readiness(&self, side: usize) -> u16 {
        let (is_over, is_done) = (self.has_ended[1 - side] || self.is_deaf[side], self.has_ended[side]);
        let has_room = self.room_bytes(side) > LINK_BYTES / 4 || self.is_deaf[1 - side];
        when(self.is_readable(side), READABLE)
            | when(has_room, WRITABLE)
            | when(is_over, READ_HANG_UP)
            | when(is_over && is_done || !self.open[1 - side], HANG_UP)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_has_no_bounds_and_messages_keep_theirs() {
        let mut stream = Link::new(1);
        stream.give(0, b"one");
        stream.give(0, b"two");
        assert_eq!(stream.take(1, 4, true), b"onet");
        assert_eq!(stream.take(1, 4, false), b"onet");
        assert_eq!((stream.take(1, 9, false), stream.take(1, 9, false)), (b"wo".to_vec(), Vec::new()));
        let mut messages = Link::new(2);
        messages.give(1, b"first");
        messages.give(1, b"");
        messages.give(1, b"third");
        assert_eq!((messages.take(0, 2, false), messages.take(0, 9, false)), (b"fi".to_vec(), Vec::new()));
        assert_eq!((messages.take(0, 9, false), messages.held_bytes(0)), (b"third".to_vec(), 0));
    }

    #[test]
    fn empty_messages_fill_a_socket() {
        let mut messages = Link::new(2);
        let mut sent = 0;
        while !messages.is_full(0) {
            messages.give(0, b"");
            sent += 1;
        }
        assert_eq!((sent, messages.held_bytes(1)), (832, 0));
        assert_eq!((messages.room_bytes(0), messages.is_full(1)), (0, false));
        assert_eq!(messages.readiness(0) & WRITABLE, 0);
        messages.take(1, 0, false);
        assert!(!messages.is_full(0));
    }

    #[test]
    fn a_closed_side_is_seen_from_the_other() {
        let mut link = Link::new(1);
        assert_eq!((link.readiness(0), link.readiness(1)), (WRITABLE, WRITABLE));
        link.has_ended[0] = true;
        assert_eq!(link.readiness(1), READABLE | WRITABLE | READ_HANG_UP);
        link.close(0);
        assert_eq!(link.readiness(1) & HANG_UP, HANG_UP);
        link.close(1);
        assert!(link.is_closed());
    }
}
