//! The log buffer and the circular log after it. Records are numbered from 0 in the order in which they enter the buffer,
//! whatever core they come from; the number decides the place in the log and the torn bit.
//!
//! A record counts as durable when it and all older ones are accepted: recovery reads up to the first gap. With several
//! controllers a younger line may be accepted first.

use super::planted;
use super::record::{Kind, RECORD_BYTES, Record};
use super::spec::Reached;
use durasim_contract::{Actions, ActiveFault, Origin, Token};
use durasim_types::{Cause, CoreId, LineAddr, PhysAddr};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The torn bit of a record: it changes each time the log wraps around, and is set in the first round, as fresh memory
/// holds zeros.
pub(super) fn torn_bit(number: u64, capacity: u64, fault: ActiveFault) -> bool {
    fault.assumes(planted::TORN_BIT_KEPT, (number / capacity).is_multiple_of(2))
}

/// Records in flight to the log, in one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RecordsInFlight {
    /// The number after the last of them.
    pub end: u64,
    pub token: Token,
    pub acked: bool,
}

/// Records that the medium may not have written, in one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RecordsUnwritten {
    end: u64,
    token: Token,
    written: bool,
}

/// The manner in which records leave the buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drain {
    /// Two that share a line leave in one write.
    pub combine: bool,
    /// All of them leave; else a last half line stays.
    pub all: bool,
    /// Something waits until the medium has written them.
    pub to_medium: bool,
}

/// Log buffer, log and the registers of its ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Log {
    /// Records that the log holds.
    capacity: u64,
    base: PhysAddr,
    /// Head register: records before this one are not needed, and persistent memory knows that.
    pub head: u64,
    /// Tail register: the number of the next record.
    pub tail: u64,
    /// All records before this one are durable.
    pub durable: u64,
    /// All records before this one have been handed to the controller.
    handed: u64,
    /// Records that wait in the buffer.
    waiting: VecDeque<Record>,
    pub in_flight: VecDeque<RecordsInFlight>,
    /// The line of each record that is not durable.
    lines: VecDeque<LineAddr>,
    /// The medium has written all records before this one; counted only where something waits for it.
    pub written: u64,
    /// Records that the medium may not have written; empty unless something waits for it.
    unwritten: VecDeque<RecordsUnwritten>,
    /// The numbers of records that fill up lines and may not have come to the medium, oldest first: the buffer has none of them.
    fillers: VecDeque<u64>,
}

impl Log {
    pub fn new(base: PhysAddr, capacity: u64) -> Self {
        Log {
            capacity,
            base,
            head: 0,
            tail: 0,
            durable: 0,
            handed: 0,
            waiting: VecDeque::new(),
            in_flight: VecDeque::new(),
            written: 0,
            unwritten: VecDeque::new(),
            lines: VecDeque::new(),
            fillers: VecDeque::new(),
        }
    }

    /// Whether what was loaded can be a state of this log.
    pub fn is_state_of(&self, log: &Log) -> bool {
        (self.capacity, self.base) == (log.capacity, log.base)
            && self.head <= self.durable
            && self.durable <= self.handed
            && self.written <= self.handed
            && self.handed <= self.tail
            && self.tail - self.head <= self.capacity
            && self.waiting.len() as u64 == self.tail - self.handed
            && self.lines.len() as u64 == self.tail - self.durable
    }

    /// Records in the log that may still be needed.
    pub fn used(&self) -> u64 {
        self.tail - self.head
    }

    /// Records in the buffer: those that are not durable, or not in the medium.
    pub fn buffered(&self, free_at: Reached) -> u64 {
        let first = self.reached(free_at);
        self.tail - first - self.fillers.iter().filter(|&&number| number >= first).count() as u64
    }

    /// All records before this one have come so far.
    pub fn reached(&self, what: Reached) -> u64 {
        match what {
            Reached::Domain => self.durable,
            Reached::Medium => self.written,
        }
    }

    /// Whether the log has wrapped around.
    pub fn has_wrapped(&self) -> bool {
        self.tail > self.capacity
    }

    /// Whether a younger record was accepted before an older one.
    pub fn is_out_of_order(&self) -> bool {
        self.in_flight.iter().any(|flight| flight.acked)
    }

    /// Whether a record of the line is not durable.
    pub fn is_pending(&self, line: LineAddr) -> bool {
        self.lines.contains(&line)
    }

    /// A record enters the buffer; its number.
    pub fn push(&mut self, record: Record) -> u64 {
        let number = self.tail;
        self.tail += 1;
        // A line that no program has stands for records that no line waits for.
        let line = if record.kind == Kind::Update { record.addr.line() } else { LineAddr(u64::MAX) };
        self.lines.push_back(line);
        self.waiting.push_back(record);
        number
    }

    /// Fills up what the records leave of the last line.
    pub fn fill_up(&mut self) {
        if self.tail % 2 == 1 {
            let number = self.push(Record::FILLER);
            self.fillers.push_back(number);
        }
    }

    /// Hands the oldest records to the controller, as lines of two where they are combined; a last half line only if all
    /// are to go.
    pub fn drain(&mut self, spec: Drain, tokens: &mut u64, fault: ActiveFault, out: &mut Actions) {
        let Drain { combine, all, to_medium } = spec;
        while self.handed < self.tail {
            let line_end = if combine { (self.handed / 2 + 1) * 2 } else { self.handed + 1 };
            if line_end > self.tail && !all {
                return;
            }
            let end = line_end.min(self.tail);
            let count = (end - self.handed) as usize;
            let mut bytes = [0; 2 * RECORD_BYTES as usize];
            let mut core = CoreId(0);
            for (number, place) in (self.handed..end).zip(bytes.chunks_exact_mut(RECORD_BYTES as usize)) {
                let record = self.waiting.pop_front().expect("records that were not handed over wait");
                if record.kind == Kind::Filler {
                    if fault.skips(planted::FILLER_FORGOTTEN) {
                        continue;
                    }
                } else {
                    core = CoreId(record.thread.into());
                }
                place.copy_from_slice(&record.encode(torn_bit(number, self.capacity, fault)));
            }
            *tokens += 1;
            let mut token = Token(*tokens);
            self.in_flight.push_back(RecordsInFlight { end, token, acked: false });
            if to_medium {
                token = token.when_written();
                self.unwritten.push_back(RecordsUnwritten { end, token, written: false });
            }
            let at = self.base.plus(self.handed % self.capacity * RECORD_BYTES);
            // The core that has stored last sends the line.
            out.append(Origin::Core(core), at, &bytes[..count * RECORD_BYTES as usize], Cause::Log, Some(token));
            self.handed = end;
        }
    }

    /// The records that were not handed over, with their places in the log.
    pub fn waiting(&self, fault: ActiveFault) -> impl Iterator<Item = (PhysAddr, [u8; RECORD_BYTES as usize])> {
        (self.handed..self.tail).zip(&self.waiting).map(move |(number, record)| {
            let at = self.base.plus(number % self.capacity * RECORD_BYTES);
            (at, record.encode(torn_bit(number, self.capacity, fault)))
        })
    }

    /// The medium has written what was sent under this token: with it, all records up to the first gap.
    pub fn is_written(&mut self, token: Token) {
        let write = self.unwritten.iter_mut().find(|write| write.token == token);
        write.into_iter().for_each(|write| write.written = true);
        while let Some(write) = self.unwritten.front().filter(|write| write.written) {
            self.written = write.end;
            self.unwritten.pop_front();
        }
        self.forget_fillers();
    }

    /// A write under this token is accepted.
    pub fn acked(&mut self, token: Token, fault: ActiveFault) {
        // It stands for its own records alone: older ones may still be in flight.
        if let Some(flight) = self.in_flight.iter_mut().find(|flight| flight.token == token) {
            flight.acked = true;
            let end = flight.end;
            let others = self.in_flight.iter_mut().filter(|older| older.end <= end);
            others.for_each(|older| older.acked = fault.assumes(planted::DURABLE_OUT_OF_ORDER, older.acked));
        }
        while let Some(flight) = self.in_flight.front().filter(|flight| flight.acked) {
            self.lines.drain(..(flight.end - self.durable) as usize);
            self.durable = flight.end;
            self.in_flight.pop_front();
        }
        self.forget_fillers();
    }

    /// Fillers that nothing waits for are forgotten.
    fn forget_fillers(&mut self) {
        let come = if self.unwritten.is_empty() { self.durable } else { self.written };
        while self.fillers.front().is_some_and(|number| *number < come) {
            self.fillers.pop_front();
        }
    }

    /// The acknowledgement after which the oldest record in the buffer has come so far; all must have been handed over.
    pub fn oldest_write(&self, what: Reached) -> Option<Token> {
        match what {
            Reached::Domain => self.in_flight.iter().find(|flight| !flight.acked).map(|flight| flight.token),
            Reached::Medium => self.unwritten.iter().find(|write| !write.written).map(|write| write.token),
        }
    }
}
