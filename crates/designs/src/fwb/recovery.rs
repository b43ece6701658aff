//! Recovery reads the log from its head to the first record whose torn bit is not that of its round. Committed
//! transactions are redone in order, each at the place of its commit record; aborted ones are undone at theirs; those that
//! have neither are undone at the end, youngest record first. Where caches survive nothing is redone, and a transaction
//! that was rolled back is done with.
//!
//! The result is a function of the log alone, so a recovery that was cut comes to the same. When all of it is home the
//! log is marked as being erased, erased, and begins anew: a machine that starts finds a log as in fresh memory.

use super::FwbSpec;
use super::record::{Kind, NO_TX, RECORD_BYTES, Record};
use super::steps::{begin_anew, bring_home, first_to_read, torn_bit};
use durasim_design::{CrashImage, Cut, Fault, Geometry, RecoveryReport};
use durasim_types::{Domain, PAGE_BYTES, PhysAddr};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of the region with the head: its number, then whether the log is being erased.
pub(super) const HEAD_BYTES: u64 = 16;
pub(super) const ERASING: u64 = 1;

/// Words that go home: those bits of the value that count.
pub(super) type Words = BTreeMap<PhysAddr, (u64, u64)>;

/// What the log says.
#[derive(Default)]
pub(super) struct Contents {
    pub words: Words,
    report: RecoveryReport,
    /// Where caches survive nothing is redone.
    pub undo_only: bool,
    pub fault: Fault,
}

fn read(spec: &FwbSpec, geometry: &Geometry, image: &CrashImage, head: u64) -> Contents {
    let (log, capacity, fault) = (geometry.region("log").base, spec.capacity(), geometry.planted);
    let mut contents = Contents { undo_only: geometry.domain == Domain::Eadr, fault, ..Contents::default() };
    let mut open: BTreeMap<u16, Vec<(u64, Record)>> = BTreeMap::new();
    let first = first_to_read(head, capacity, fault);
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
        match record.kind {
            Kind::Update if record.id == NO_TX => contents.put(&record, record.redo),
            Kind::Update => open.entry(record.id).or_default().push((number, record)),
            Kind::Commit => {
                contents.report.replayed += 1;
                contents.redo(&open.remove(&record.id).unwrap_or_default());
            }
            Kind::Abort => {
                contents.undo_aborted(&open.remove(&record.id).unwrap_or_default(), record.first(), head);
            }
        }
    }
    contents.report.discarded = open.len() as u64;
    contents.undo_open(open);
    contents
}

/// Brings all words home, line by line.
pub(super) fn write_home(words: &Words, image: &mut CrashImage) -> Result<u64, Cut> {
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
pub(super) fn erase(spec: &FwbSpec, geometry: &Geometry, image: &mut CrashImage) -> Result<(), Cut> {
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
            report.lines_written = bring_home(&contents.words, spec, geometry, image)?;
        }
    }
    begin_anew(state == ERASING, spec, geometry, image)?;
    Ok(report)
}
