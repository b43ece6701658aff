//! Recovery reads the log from its head to the first record whose torn bit is not that of its round. Committed
//! transactions are redone in order, each at the place of its commit record; aborted ones are undone at theirs; those that
//! have neither are undone at the end, youngest record first. Where caches survive nothing is redone, and a transaction
//! that was rolled back is done with.
//!
//! The result is a function of the log alone, so a recovery that was cut leads to the same image. When all of it is home the
//! log is marked as being erased, erased, and restarts: a machine that starts finds a log as in fresh memory.

use super::log::torn_bit;
use super::log_region::{ERASING, HEAD_BYTES, erase};
use super::record::{Kind, NO_TX, RECORD_BYTES, Record, bits_of};
use super::{FwbSpec, planted};
use durasim_contract::{ActiveFault, CrashImage, Geometry, RecoveryCut, RecoveryReport};
use durasim_types::{Domain, PhysAddr};
use std::collections::{BTreeMap, BTreeSet};

/// Words that go home: those bits of the value that count.
type Words = BTreeMap<PhysAddr, (u64, u64)>;

/// The contents of the log: words that go home, and what recovery reports.
#[derive(Default)]
struct Contents {
    words: Words,
    report: RecoveryReport,
    /// Whether caches survive, so that nothing is redone.
    undo_only: bool,
    fault: ActiveFault,
}

impl Contents {
    /// A word of a record is written to its home address, only the bytes that were stored.
    fn put(&mut self, record: &Record, value: u64) {
        let bits = self.fault.swaps(planted::RECOVERY_IGNORES_MASK, bits_of(record.mask), u64::MAX);
        let (mask, word) = self.words.entry(record.addr).or_default();
        *word = *word & !bits | value & bits;
        *mask |= bits;
    }

    /// A committed transaction is redone at the place of its commit record.
    fn redo(&mut self, records: &[(u64, Record)]) {
        if self.fault.ignores(planted::RECOVERY_REDOES_NOTHING, !self.undo_only) {
            records.iter().for_each(|(_, record)| self.put(record, record.redo));
        }
    }

    /// An aborted transaction is undone at the place of its abort record, if the log has all of its records. The head
    /// passes the first of them when all of its undoing is home; undoing the others alone would bring back what it had
    /// stored first.
    fn undo_aborted(&mut self, records: &[(u64, Record)], first: u64, head: u64) {
        let is_whole = self.fault.assumes(planted::RECOVERY_UNDOES_PARTS, first >= head);
        if is_whole && !self.undo_only {
            records.iter().rev().for_each(|(_, record)| self.put(record, record.undo));
        }
    }

    /// Transactions that never ended are undone, the youngest record of all first.
    fn undo_open(&mut self, open: BTreeMap<u16, Vec<(u64, Record)>>) {
        if self.fault.skips(planted::RECOVERY_UNDOES_NOTHING) {
            return;
        }
        let mut records: Vec<(u64, Record)> = open.into_values().flatten().collect();
        records.sort_by_key(|(number, _)| *number);
        if !self.fault.skips(planted::RECOVERY_UNDOES_OLDEST_FIRST) {
            records.reverse();
        }
        for (_, record) in &records {
            self.put(record, self.fault.swaps(planted::RECOVERY_REDOES_OPEN, record.undo, record.redo));
        }
    }
}

/// Brings all words home, line by line.
fn write_home(words: &Words, image: &mut CrashImage) -> Result<u64, RecoveryCut> {
    let lines: BTreeSet<PhysAddr> = words.keys().map(|addr| addr.line().base()).collect();
    for &line in &lines {
        let mut data = image.line(line);
        for (addr, (mask, word)) in words.range(line..line.plus(64)) {
            let place = &mut data[addr.offset()..addr.offset() + 8];
            let old = u64::from_le_bytes((&*place).try_into().expect("eight bytes"));
            place.copy_from_slice(&(old & !mask | word & mask).to_le_bytes());
        }
        image.write(line, &data)?;
    }
    Ok(lines.len() as u64)
}

fn read(spec: &FwbSpec, geometry: &Geometry, image: &CrashImage, head: u64) -> Contents {
    let (log, capacity, fault) = (geometry.region("log").base, spec.capacity(), geometry.planted);
    let mut contents = Contents { undo_only: geometry.domain == Domain::Eadr, fault, ..Contents::default() };
    let mut open: BTreeMap<u16, Vec<(u64, Record)>> = BTreeMap::new();
    let first = fault.swaps(planted::RECOVERY_IGNORES_HEAD, head, head / capacity * capacity);
    for number in first..first + capacity {
        let mut bytes = [0; RECORD_BYTES as usize];
        image.read(log.plus(number % capacity * RECORD_BYTES), &mut bytes);
        if Record::torn_bit(&bytes) != torn_bit(number, capacity, fault) {
            break;
        }
        let record = Record::decode(&bytes);
        let home = |record: &Record| geometry.is_home(record.addr.line().base());
        let Some(record) = record.filter(|r| r.kind != Kind::Update || home(r)) else {
            // Nothing after it can be trusted to be in order.
            contents.report.losses.push(format!("record {number} of the log is damaged"));
            break;
        };
        match record.kind {
            Kind::Update if record.id == NO_TX => contents.put(&record, record.redo),
            Kind::Update => open.entry(record.id).or_default().push((number, record)),
            Kind::Commit => {
                contents.report.replayed += 1;
                contents.redo(&open.remove(&record.id).unwrap_or_default());
            }
            Kind::Filler => {}
            Kind::Abort => {
                contents.undo_aborted(&open.remove(&record.id).unwrap_or_default(), record.first(), head);
            }
        }
    }
    contents.report.discarded = open.len() as u64;
    contents.undo_open(open);
    contents
}

pub(super) fn recover(
    spec: &FwbSpec,
    geometry: &Geometry,
    image: &mut CrashImage,
) -> Result<RecoveryReport, RecoveryCut> {
    let (register, fault) = (geometry.region("log_head").base, geometry.planted);
    let (head, state) = (image.read_u64(register), image.read_u64(register.plus(8)));
    let mut report = RecoveryReport::default();
    if geometry.domain == Domain::Eadr && image.dirty_shutdown {
        report.losses.push("the crash flush did not finish: stores without a log record are lost".into());
    }
    if state != ERASING {
        if head > u64::MAX / 2 || state != 0 {
            report.losses.push("the head of the log is damaged".into());
        } else {
            let contents = read(spec, geometry, image, head);
            report.losses.extend(contents.report.losses);
            (report.replayed, report.discarded) = (contents.report.replayed, contents.report.discarded);
            // The log stays until all words are home.
            if fault.skips(planted::RECOVERY_ERASES_FIRST) {
                erase(spec, geometry, image)?;
            }
            for _ in 0..fault.swaps(planted::RECOVERY_WRITES_TWICE, 1, 2) {
                report.lines_written = write_home(&contents.words, image)?;
            }
        }
    }
    // All is home: the log is marked as being erased, if it is not already, erased, and restarts.
    let is_marked = state == ERASING;
    if is_marked || !fault.skips(planted::RECOVERY_KEEPS_LOG) {
        if !is_marked && !fault.skips(planted::RECOVERY_FORGETS_ERASING) {
            let mut bytes = [0; HEAD_BYTES as usize];
            bytes[8..].copy_from_slice(&ERASING.to_le_bytes());
            image.write(register, &bytes)?;
        }
        erase(spec, geometry, image)?;
    }
    image.write(register, &[0; HEAD_BYTES as usize])?;
    Ok(report)
}
