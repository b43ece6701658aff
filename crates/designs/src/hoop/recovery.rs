//! Recovery: the bytes of committed transactions in the OOP region are written to their home addresses.
//!
//! The address slices name the committed transactions in their order. They are dealt out to threads in turn; each walks
//! the slices of its transactions and keeps the newest version of every byte it finds. The results of the threads are
//! merged, newest commit first, and written to the home addresses line by line. Only then all commits are marked as
//! collected, the address slices cleared, and the mark set back: cut anywhere, recovery can begin again and leads to the
//! same image.

use super::address_slices::AddressSlices;
use super::slice::{END, SLICE_BYTES, Slice, Word};
use super::{HoopSpec, planted};
use durasim_contract::{ActiveFault, CrashImage, Geometry, RecoveryCut, RecoveryReport};
use durasim_types::{Domain, Line, LineAddr, PhysAddr};
use std::collections::BTreeMap;

/// Bytes with the numbers of the commits that they are of; 0: no byte.
struct Newest {
    numbers: [u64; 64],
    data: [u8; 64],
}

impl Newest {
    /// Whether a version of a byte is newer than the known one: the numbers of commits give their order.
    fn is_newer(number: u64, known: u64, fault: ActiveFault) -> bool {
        fault.swaps(planted::RECOVERY_OLDEST_FIRST_WINS, number >= known, known == 0 || number < known)
    }

    /// A thread has found a word of a commit; it visits commits in their order.
    fn take(&mut self, number: u64, word: &Word, fault: ActiveFault) {
        let bytes = word.value.to_le_bytes();
        for i in (0..8).filter(|i| word.mask >> i & 1 == 1) {
            let at = 8 * word.index() + i;
            if Self::is_newer(number, self.numbers[at], fault) {
                (self.numbers[at], self.data[at]) = (number, bytes[i]);
            }
        }
    }

    /// Merges what another thread has found of the line: the newest commit decides each byte.
    fn merge(&mut self, other: &Newest, fault: ActiveFault) {
        for i in (0..64).filter(|i| other.numbers[*i] > 0) {
            let is_newer = Self::is_newer(other.numbers[i], self.numbers[i], fault);
            if fault.assumes(planted::RECOVERY_MERGES_BY_THREAD, is_newer) {
                (self.numbers[i], self.data[i]) = (other.numbers[i], other.data[i]);
            }
        }
    }

    /// Those bytes of a line that were found replace what is at home.
    fn cover(&self, home: &mut Line, fault: ActiveFault) {
        for (i, byte) in home.iter_mut().enumerate() {
            if fault.assumes(planted::RECOVERY_IGNORES_MASKS, self.numbers[i] > 0) {
                *byte = self.data[i];
            }
        }
    }
}

/// The newest bytes of lines found so far.
type Found = BTreeMap<LineAddr, Newest>;

/// The newest bytes of a line found so far, for additions.
fn newest(found: &mut Found, line: LineAddr) -> &mut Newest {
    found.entry(line).or_insert(Newest { numbers: [0; 64], data: [0; 64] })
}

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
        next = geometry.planted.swaps(planted::RECOVERY_FIRST_SLICES_ONLY, slice.next, END);
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
    let count = fault.swaps(planted::RECOVERY_DROPS_LAST, commits.len(), commits.len().saturating_sub(1));
    for (turn, &(number, first)) in commits.iter().take(count).enumerate() {
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
    if fault.skips(planted::RECOVERY_CLEARS_FIRST) {
        ring.clear(newest_number, image)?;
    }
    for (line, newest) in (0..fault.swaps(planted::RECOVERY_WRITES_TWICE, 1, 2)).flat_map(|_| &merged) {
        let mut data = image.line(line.base());
        newest.cover(&mut data, fault);
        report.lines_written += 1;
        image.write(line.base(), &data)?;
    }
    // The address slices are cleared when everything is home.
    ring.clear(newest_number, image)?;
    Ok(report)
}
