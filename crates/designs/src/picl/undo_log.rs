//! The undo buffer on the chip, and the undo log in persistent memory, which takes what the buffer holds in one burst.
//!
//! A superblock of the log has a header with its number and the count of its entries, the addresses of lines with ValidFrom
//! and ValidTill, and the pre-images. The header comes last, when all else is accepted: it makes the superblock valid.

use super::bloom::Bloom;
use super::{PiclSpec, planted};
use durasim_contract::{Actions, ActiveFault, Origin, Token};
use durasim_types::{Cause, LINE_BYTES, Line, LineAddr, PhysAddr};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Bytes of the header of a superblock.
pub(super) const HEADER_BYTES: u64 = LINE_BYTES;
/// Bytes of an entry's address and epochs.
pub(super) const ENTRY_BYTES: u64 = 16;

/// The first byte of a superblock.
pub(super) fn superblock(spec: &PiclSpec, log: PhysAddr, number: u64) -> PhysAddr {
    log.plus(number % spec.superblocks() * spec.superblock_bytes())
}

/// A pre-image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PreImage {
    pub line: LineAddr,
    #[serde(with = "serde_bytes")]
    pub data: Line,
    pub valid_from: u64,
    pub valid_till: u64,
}

/// A burst in flight to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Burst {
    pub token: Token,
    /// Writes that are not accepted; the header follows after the others.
    pub left: u32,
    pub header: bool,
}

/// Undo buffer, Bloom filter, and the ends of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UndoLog {
    buffer: Vec<PreImage>,
    pub filter: Bloom,
    pub burst: Option<Burst>,
    /// The number of the next superblock.
    pub tail: u64,
    /// The last ValidTill of each superblock that is needed, from the oldest on.
    last_till: VecDeque<u64>,
}

impl UndoLog {
    pub fn new(spec: &PiclSpec) -> Self {
        let filter = Bloom::new(spec.bloom_bits, spec.bloom_hashes);
        UndoLog { buffer: Vec::new(), filter, burst: None, tail: 0, last_till: VecDeque::new() }
    }

    /// Whether this can be the state of a log with these parameters.
    pub fn is_sound(&self, spec: &PiclSpec) -> bool {
        self.buffer.len() <= spec.undo_buffer_entries as usize
            && self.last_till.len() as u64 <= spec.superblocks()
            && self.last_till.len() as u64 <= self.tail
            && self.filter.is_of(spec.bloom_bits, spec.bloom_hashes)
    }

    /// The oldest superblock that is needed.
    pub fn head(&self) -> u64 {
        self.tail - self.last_till.len() as u64
    }

    /// Superblocks in use.
    pub fn used(&self) -> u64 {
        self.last_till.len() as u64
    }

    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// The acknowledgement to wait for while a burst is in flight.
    pub fn bursting(&self) -> Option<Token> {
        self.burst.map(|burst| burst.token)
    }

    /// Whether the filter says that a pre-image of the line is not durable.
    pub fn may_hold(&self, line: LineAddr) -> bool {
        self.filter.may_have(line)
    }

    /// Whether that is so.
    pub fn holds(&self, line: LineAddr) -> bool {
        self.buffer.iter().any(|entry| entry.line == line)
    }

    /// Takes a pre-image, between bursts.
    pub fn push(&mut self, entry: PreImage) {
        debug_assert!(self.burst.is_none(), "what is in flight does not change");
        self.filter.add(entry.line);
        self.buffer.push(entry);
    }

    /// Sends what the buffer holds to the log, if it is not in flight; what to wait for. The buffer keeps it until then.
    pub fn flush(
        &mut self,
        spec: &PiclSpec,
        log: PhysAddr,
        tokens: &mut u64,
        fault: ActiveFault,
        out: &mut Actions,
    ) -> Option<Token> {
        if self.burst.is_some() || self.buffer.is_empty() {
            return self.bursting();
        }
        *tokens += 1;
        let token = Token(*tokens);
        let base = superblock(spec, log, self.tail);
        let data = base.plus(spec.superblock_bytes() - u64::from(spec.undo_buffer_entries) * LINE_BYTES);
        for (number, entry) in (0..).zip(&self.buffer) {
            out.append(Origin::Llc, data.plus(number * LINE_BYTES), &entry.data, Cause::Log, Some(token));
        }
        for (number, entries) in (0..).zip(self.buffer.chunks(4)) {
            let mut bytes = [0; LINE_BYTES as usize];
            for (place, entry) in bytes.chunks_exact_mut(ENTRY_BYTES as usize).zip(entries) {
                place[..8].copy_from_slice(&entry.line.base().0.to_le_bytes());
                place[8..12].copy_from_slice(&(entry.valid_from as u32).to_le_bytes());
                place[12..].copy_from_slice(&(entry.valid_till as u32).to_le_bytes());
            }
            let bytes = &bytes[..entries.len() * ENTRY_BYTES as usize];
            out.append(Origin::Llc, base.plus(HEADER_BYTES + number * LINE_BYTES), bytes, Cause::Log, Some(token));
        }
        let left = (self.buffer.len() + self.buffer.len().div_ceil(4)) as u32;
        let last = self.buffer.last().expect("it is not empty");
        self.last_till.push_back(last.valid_till);
        self.tail += 1;
        // The header follows when all writes are accepted, and the filter knows the lines until that is too.
        self.burst = Some(Burst { token, left, header: false });
        if fault.skips(planted::HEADER_TOO_EARLY) {
            self.write_header(spec, log, token, out);
            self.burst = Some(Burst { token, left: left + 1, header: true });
        }
        if fault.skips(planted::FILTER_CLEARED_EARLY) {
            self.filter.clear();
        }
        Some(token)
    }

    /// The header of the last superblock.
    pub fn write_header(&self, spec: &PiclSpec, log: PhysAddr, token: Token, out: &mut Actions) {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.tail.to_le_bytes());
        bytes[8..].copy_from_slice(&(self.buffer.len() as u64).to_le_bytes());
        out.append(Origin::Llc, superblock(spec, log, self.tail - 1), &bytes, Cause::Log, Some(token));
    }

    /// A write of a burst is accepted; whether the burst is over.
    pub fn acked(&mut self, token: Token, spec: &PiclSpec, log: PhysAddr, tokens: &mut u64, out: &mut Actions) -> bool {
        let Some(burst) = self.burst.as_mut().filter(|burst| burst.token == token) else { return false };
        burst.left -= 1;
        if burst.left > 0 {
            return false;
        }
        if !burst.header {
            *tokens += 1;
            let token = Token(*tokens);
            self.burst = Some(Burst { token, left: 1, header: true });
            self.write_header(spec, log, token, out);
            return false;
        }
        self.burst = None;
        self.buffer.clear();
        self.filter.clear();
        true
    }

    /// The first superblock with a pre-image that is valid beyond this epoch.
    pub fn first_needed(&self, persisted: u64) -> u64 {
        let garbage = self.last_till.iter().take_while(|till| **till <= persisted).count();
        // Requests wait for entries in flight, so these stay.
        self.head() + (garbage as u64).min(self.used() - u64::from(self.burst.is_some()))
    }

    /// Gives up the superblocks before this one.
    pub fn collect(&mut self, first: u64) {
        self.last_till.drain(..(first - self.head()) as usize);
    }
}
