//! Recovery: what committed transactions have left in the OOP region goes home.
//!
//! The address slices say which transactions are committed and in which order. They are dealt out to threads in turn; each
//! walks the slices of its transactions and keeps the newest version of every byte it finds. What the threads have found
//! is merged, newest commit first, and goes home line by line. Only then all commits are marked as collected, the
//! address slices cleared, and the mark set back: cut anywhere, recovery can begin again and comes to the same end.

use super::HoopSpec;
use super::address_slices::AddressSlices;
use super::newest::{Found, newest};
use super::slice::{END, SLICE_BYTES, Slice, Word};
use super::steps::{commits_to_replay, next_to_replay, write_home_and_clear};
use durasim_design::{CrashImage, Geometry, RecoveryCut, RecoveryReport};
use durasim_types::{Domain, PhysAddr};

/// The slices of a transaction, first to last; `None` if the chain is broken.
fn chain(spec: &HoopSpec, geometry: &Geometry, image: &CrashImage, first: u32) -> Option<Vec<Slice>> {
    let slices = spec.blocks(geometry) * spec.slices_per_block();
    let base = geometry.region("oop_region").base;
    let mut chain: Vec<Slice> = Vec::new();
    let mut next = first;
    while next != END {
        if next >= slices || chain.len() as u32 >= slices {
            return None;
        }
        let at = base.plus(u64::from(next) * SLICE_BYTES);
        let slice = Slice::decode(geometry.pmem_base, &image.line(at), &image.line(at.plus(64)))?;
        let is_next = slice.start == chain.is_empty() && chain.first().is_none_or(|first| first.tx == slice.tx);
        let is_believable = |word: &Word| geometry.is_home(PhysAddr(word.addr.0 & !63));
        if !is_next || !slice.words.iter().all(is_believable) {
            return None;
        }
        next = next_to_replay(&slice, geometry.planted);
        chain.push(slice);
    }
    Some(chain)
}

pub(super) fn recover(
    spec: &HoopSpec,
    geometry: &Geometry,
    image: &mut CrashImage,
) -> Result<RecoveryReport, RecoveryCut> {
    let fault = geometry.planted;
    let ring = AddressSlices::new(geometry.region("oop_address_slices"), spec.address_slices);
    let mut report = RecoveryReport::default();
    if geometry.domain == Domain::Eadr && image.dirty_shutdown {
        report
            .losses
            .push("the energy ended before the caches were flushed: stores beside transactions are lost".into());
    }
    let commits = ring.read(image, fault);
    let newest_number = commits.last().map(|(number, _)| *number);
    let threads = spec.recovery_threads as usize;
    let mut found: Vec<Found> = (0..threads).map(|_| Found::new()).collect();
    for (turn, &(number, first)) in commits_to_replay(&commits, fault).iter().enumerate() {
        let Some(slices) = chain(spec, geometry, image, first) else {
            report.losses.push(format!("the slices of commit {number} are damaged"));
            continue;
        };
        report.replayed += 1;
        for word in slices.iter().flat_map(|slice| &slice.words) {
            newest(&mut found[turn % threads], word.line()).take(number, word, fault);
        }
    }
    let mut merged = Found::new();
    for (line, bytes) in found.into_iter().flatten() {
        newest(&mut merged, line).merge(&bytes, fault);
    }
    write_home_and_clear(&merged, &ring, newest_number, image, &mut report, fault)?;
    Ok(report)
}
