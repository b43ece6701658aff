//! Recovery reads the log from its head to the first record whose torn bit is not that of its round. Committed
//! transactions are redone in order, each at the place of its commit record; aborted ones are undone at theirs; those that
//! have neither are undone at the end, youngest record first. Where caches survive nothing is redone, and a transaction
//! that was rolled back is done with.
//!
//! The result is a function of the log alone, so a recovery that was cut comes to the same. When all of it is home the
//! log is marked as being erased, erased, and restarts: a machine that starts finds a log as in fresh memory.

use super::FwbSpec;
use super::contents::Contents;
use super::log_region::ERASING;
use super::record::{Kind, NO_TX, RECORD_BYTES, Record};
use super::steps::torn_bit::torn_bit;
use super::steps::{bring_home, first_to_read, start_empty_log};
use durasim_design::{CrashImage, Geometry, RecoveryCut, RecoveryReport};
use durasim_types::Domain;
use std::collections::BTreeMap;

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
    let register = geometry.region("log_head").base;
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
            report.lines_written = bring_home(&contents.words, spec, geometry, image)?;
        }
    }
    start_empty_log(state == ERASING, spec, geometry, image)?;
    Ok(report)
}
