//! Recovery: uncommitted transactions that used the fall-back path are undone from the shadow area, then committed
//! entries are written home, oldest first (section 3, "multiversioning"). Both may be repeated at will; the
//! nonvolatile contents are cleared last.
//!
//! The order of the cores does not matter: two transaction caches never hold committed entries of the same bytes
//! [D:tc-order].

use super::fifo::{Saved, structure_name};
use super::shadow::shadow_place;
use super::{TcSpec, planted};
use durasim_contract::{ActiveFault, CrashImage, Geometry, RecoveryCut, RecoveryReport};
use durasim_types::{CoreId, Line, LineAddr, PhysAddr};

/// The home address of the line in a place of the shadow area.
fn shadow_home(geometry: &Geometry, image: &CrashImage, place: u64) -> PhysAddr {
    PhysAddr(image.read_u64(geometry.region("shadow_homes").base.plus(place * 8)))
}

/// The contents of a core's transaction cache that can be believed: none, if any part is damaged or would be written to
/// an address outside of the program's lines. Shadows come with their places in the shadow area.
fn saved(spec: &TcSpec, geometry: &Geometry, image: &CrashImage, core: CoreId) -> Option<Saved> {
    let mut saved = Saved::load(image.structure(&structure_name(core)).unwrap_or(&[]))?;
    for (slot, _) in &mut saved.shadows {
        if *slot >= u64::from(spec.shadow_lines) {
            return None;
        }
        *slot = shadow_place(spec, core.0.into(), *slot, geometry.planted);
    }
    let shadows = saved.shadows.iter().all(|&(place, _)| geometry.is_home(shadow_home(geometry, image, place)));
    let homes = saved.committed.iter().all(|(line, ..)| line.0 < 1 << 58 && geometry.is_home(line.base()));
    (homes && shadows).then_some(saved)
}

pub(super) fn recover(
    spec: &TcSpec,
    geometry: &Geometry,
    image: &mut CrashImage,
) -> Result<RecoveryReport, RecoveryCut> {
    let mut report = RecoveryReport::default();
    let data = geometry.region("shadow_data").base;
    let fault = geometry.planted;
    let mut caches = Vec::new();
    for core in (0..geometry.cores).map(CoreId) {
        match saved(spec, geometry, image, core) {
            Some(saved) => caches.push((core, saved)),
            None => report.losses.push(format!("what the transaction cache of core {} held is damaged", core.0)),
        }
    }
    for &(place, mask) in caches.iter().flat_map(|(_, saved)| &saved.shadows) {
        if !fault.skips(planted::RECOVERY_FORGETS_SHADOWS) {
            let old = image.line(data.plus(place * 64));
            patch(image, shadow_home(geometry, image, place).line(), mask, &old, fault)?;
            report.lines_written += 1;
        }
    }
    for _ in 0..fault.swaps(planted::RECOVERY_WRITES_TWICE, 1, 2) {
        for (core, saved) in &caches {
            if fault.skips(planted::RECOVERY_CLEARS_FIRST) {
                image.keep(&structure_name(*core), Vec::new())?;
            }
            let entries = saved.committed.len();
            let entries = fault.swaps(planted::RECOVERY_DROPS_ENTRY, entries, entries.saturating_sub(1));
            for nth in 0..entries {
                let oldest_first = fault.swaps(planted::RECOVERY_NEWEST_FIRST, nth, entries - 1 - nth);
                let (line, mask, data) = &saved.committed[oldest_first];
                patch(image, *line, *mask, data, fault)?;
                report.lines_written += 1;
            }
        }
    }
    for core in (0..geometry.cores).map(CoreId) {
        image.keep(&structure_name(core), Vec::new())?;
    }
    for (_, saved) in &caches {
        report.replayed += u64::from(!saved.committed.is_empty());
        report.discarded += u64::from(saved.active > 0);
    }
    Ok(report)
}

/// Writes bytes of a line home: bit `i` of the mask stands for byte `i`.
fn patch(
    image: &mut CrashImage,
    line: LineAddr,
    mask: u64,
    data: &Line,
    fault: ActiveFault,
) -> Result<(), RecoveryCut> {
    let mask = fault.swaps(planted::RECOVERY_IGNORES_MASK, mask, u64::MAX);
    let mut merged = image.line(line.base());
    for (i, byte) in merged.iter_mut().enumerate().filter(|(i, _)| mask >> i & 1 == 1) {
        *byte = data[i];
    }
    image.write(line.base(), &merged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tc;
    use crate::testing::{geometry, word};
    use durasim_types::{PAGE_BYTES, Pages};

    /// The contents of a transaction cache: slots of shadows, each to be undone whole, and homes of committed lines.
    fn contents(shadows: &[u64], homes: &[u64]) -> Vec<u8> {
        let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let mut bytes = words(&[shadows.len() as u64]);
        shadows.iter().for_each(|&slot| bytes.extend(words(&[slot, u64::MAX])));
        homes.iter().for_each(|&home| bytes.extend([words(&[home / 64, u64::MAX, 1]), vec![7; 64]].concat()));
        bytes
    }

    /// A cache that cannot be believed is a loss, and the others are recovered.
    #[test]
    fn damaged_contents_are_losses_and_not_written() {
        let spec = TcSpec::default();
        let geometry = geometry::<Tc>(&spec, 2);
        let regions: u64 = geometry.regions.iter().map(|region| region.size_bytes).sum();
        let pmem = Pages::new(geometry.pmem_base, geometry.pmem_data_bytes + regions);
        let (slots, own) = (u64::from(spec.shadow_lines), word(1, 0).0);
        let outside = geometry.pmem_base.0 + geometry.pmem_data_bytes;
        let damaged = [
            contents(&[], &[own, outside]),
            contents(&[], &[own, 0]),
            contents(&[], &[own, u64::MAX]),
            contents(&[slots], &[own]),
            // The shadow's home is a word of zeros.
            contents(&[0], &[own]),
            contents(&[], &[own])[1..].to_vec(),
            vec![1; PAGE_BYTES as usize],
            vec![0xff; 8],
        ];
        for bytes in damaged {
            let mut image = CrashImage::new(pmem.clone());
            image.keep(&structure_name(CoreId(0)), bytes.clone()).unwrap();
            image.keep(&structure_name(CoreId(1)), contents(&[], &[word(0, 0).0])).unwrap();
            let report = recover(&spec, &geometry, &mut image).unwrap();
            assert_eq!(report.losses, ["what the transaction cache of core 0 held is damaged"], "{bytes:x?}");
            assert_eq!((report.replayed, report.lines_written), (1, 1));
            assert_eq!([0, 1].map(|n| image.read_u64(word(n, 0)) & 0xff), [7, 0]);
            assert_eq!(recover(&spec, &geometry, &mut image), Ok(RecoveryReport::default()));
        }
    }
}
