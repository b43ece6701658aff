//! Recovery reads the log from its head to the first record whose torn bit is not that of its round. Committed
//! transactions are redone in order, each at the place of its commit record; aborted ones are undone at theirs; those that
//! have neither are undone at the end, youngest record first. Where caches survive nothing is redone, and a transaction
//! that was rolled back is done with.
//!
//! The result is a function of the log alone, so a recovery that was cut comes to the same. When all of it is home the
//! log is marked as being erased, erased, and begins anew: a machine that starts finds a log as in fresh memory.

use super::log::torn_bit;
use super::record::{Kind, NO_TX, RECORD_BYTES, Record, bits_of};
use super::{FwbSpec, planted};
use durasim_design::{CrashImage, Cut, Geometry, RecoveryReport};
use durasim_types::{Domain, PAGE_BYTES, PhysAddr};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of the region with the head: its number, then whether the log is being erased.
pub(super) const HEAD_BYTES: u64 = 16;
const ERASING: u64 = 1;

/// Words that go home: those bits of the value that count.
type Words = BTreeMap<PhysAddr, (u64, u64)>;

fn put(words: &mut Words, record: &Record, value: u64, whole: bool) {
    let bits = if whole { u64::MAX } else { bits_of(record.mask) };
    let (mask, word) = words.entry(record.addr).or_default();
    *word = *word & !bits | value & bits;
    *mask |= bits;
}

/// What the log says.
#[derive(Default)]
struct Contents {
    words: Words,
    report: RecoveryReport,
}

fn read(spec: &FwbSpec, geometry: &Geometry, image: &CrashImage, head: u64) -> Contents {
    let (log, capacity, fault) = (geometry.region("log").base, spec.capacity(), geometry.planted);
    let redo = geometry.domain != Domain::Eadr;
    let whole = fault.is(planted::RECOVERY_IGNORES_MASK);
    let mut contents = Contents::default();
    let mut open: BTreeMap<u16, Vec<(u64, Record)>> = BTreeMap::new();
    let first = if fault.is(planted::RECOVERY_IGNORES_HEAD) { head / capacity * capacity } else { head };
    for number in first..first + capacity {
        let mut bytes = [0; RECORD_BYTES as usize];
        image.read(log.plus(number % capacity * RECORD_BYTES), &mut bytes);
        if Record::torn_bit(&bytes) != torn_bit(number, capacity, fault) {
            break;
        }
        let record = Record::decode(&bytes);
        let home = |record: &Record| geometry.is_home(record.addr.line().base());
        let Some(record) = record.filter(|r| r.kind != Kind::Update || home(r)) else {
            // Nothing behind it can be trusted to be in order.
            contents.report.losses.push(format!("record {number} of the log is damaged"));
            break;
        };
        let words = &mut contents.words;
        match record.kind {
            Kind::Update if record.id == NO_TX => put(words, &record, record.redo, whole),
            Kind::Update => open.entry(record.id).or_default().push((number, record)),
            Kind::Commit => {
                let records = open.remove(&record.id).unwrap_or_default();
                contents.report.replayed += 1;
                for (_, record) in records.iter().filter(|_| redo && !fault.is(planted::RECOVERY_REDOES_NOTHING)) {
                    put(words, record, record.redo, whole);
                }
            }
            Kind::Abort => {
                let records = open.remove(&record.id).unwrap_or_default();
                // The head passes the first of its records when all of its undoing is home; undoing the others alone would
                // bring back what it had stored first.
                let is_whole = record.first() >= head || fault.is(planted::RECOVERY_UNDOES_PARTS);
                for (_, record) in records.iter().rev().filter(|_| redo && is_whole) {
                    put(words, record, record.undo, whole);
                }
            }
        }
    }
    contents.report.discarded = open.len() as u64;
    let mut undone: Vec<(u64, Record)> = open.into_values().flatten().collect();
    undone.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    if fault.is(planted::RECOVERY_UNDOES_OLDEST_FIRST) {
        undone.reverse();
    }
    if fault.is(planted::RECOVERY_UNDOES_NOTHING) {
        undone.clear();
    }
    for (_, record) in &undone {
        let value = if fault.is(planted::RECOVERY_REDOES_OPEN) { record.redo } else { record.undo };
        put(&mut contents.words, record, value, whole);
    }
    contents
}

/// Brings all words home, line by line.
fn write_home(words: &Words, image: &mut CrashImage) -> Result<u64, Cut> {
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

/// Erases what is left in the log, line by line.
fn erase(spec: &FwbSpec, geometry: &Geometry, image: &mut CrashImage) -> Result<(), Cut> {
    let log = geometry.region("log").base;
    let end = log.plus(spec.capacity() * RECORD_BYTES);
    let pages: Vec<PhysAddr> = image.pmem.touched().map(|(page, _)| page).collect();
    for page in pages.into_iter().filter(|page| page.0 + PAGE_BYTES > log.0 && page.0 < end.0) {
        for line in (page.0.max(log.0)..(page.0 + PAGE_BYTES).min(end.0)).step_by(64).map(PhysAddr) {
            if image.line(line) != [0; 64] {
                image.write(line, &[0; 64])?;
            }
        }
    }
    Ok(())
}

pub(super) fn recover(spec: &FwbSpec, geometry: &Geometry, image: &mut CrashImage) -> Result<RecoveryReport, Cut> {
    let register = geometry.region("log_head").base;
    let (head, state) = (image.read_u64(register), image.read_u64(register.plus(8)));
    let fault = geometry.planted;
    let mut report = RecoveryReport::default();
    if geometry.domain == Domain::Eadr && image.dirty_shutdown {
        report.losses.push("the caches were not saved whole: stores are missing that no record has".into());
    }
    if state != ERASING {
        if head > u64::MAX / 2 || state != 0 {
            report.losses.push("the head of the log is damaged".into());
        } else {
            let contents = read(spec, geometry, image, head);
            report.losses.extend(contents.report.losses);
            (report.replayed, report.discarded) = (contents.report.replayed, contents.report.discarded);
            if fault.is(planted::RECOVERY_ERASES_FIRST) {
                erase(spec, geometry, image)?;
            }
            report.lines_written = write_home(&contents.words, image)?;
            if fault.is(planted::RECOVERY_WRITES_TWICE) {
                write_home(&contents.words, image)?;
            }
        }
        if fault.is(planted::RECOVERY_KEEPS_LOG) {
            image.write(register, &[0; HEAD_BYTES as usize])?;
            return Ok(report);
        }
        if !fault.is(planted::RECOVERY_FORGETS_ERASING) {
            let mut bytes = [0; HEAD_BYTES as usize];
            bytes[8..].copy_from_slice(&ERASING.to_le_bytes());
            image.write(register, &bytes)?;
        }
    }
    erase(spec, geometry, image)?;
    image.write(register, &[0; HEAD_BYTES as usize])?;
    Ok(report)
}
