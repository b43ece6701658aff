//! Recovery: uncommitted transactions that used the fall-back path are undone from the shadow area, then committed
//! entries are written home, oldest first (section 3, "multiversioning"). Both may be repeated at will; the
//! nonvolatile contents are cleared last.
//!
//! The order of the cores does not matter: two transaction caches never hold committed entries of the same bytes
//! [D:tc-order].

use super::fifo::Saved;
use super::{TcSpec, planted};
use durasim_design::{CrashImage, Cut, Fault, Geometry, RecoveryReport};
use durasim_types::{CoreId, Line, LineAddr, PhysAddr};

/// The name of a core's transaction cache in a crash image.
pub(super) fn structure_name(core: CoreId) -> String {
    format!("tc.core{}", core.0)
}

/// The place in the shadow area of a slot of a core.
pub(super) fn shadow_slot(spec: &TcSpec, core: u64, slot: u64, fault: Fault) -> u64 {
    let core = if fault.is(planted::SHADOW_SLOTS_SHARED) { 0 } else { core };
    core * u64::from(spec.shadow_lines) + slot
}

pub(super) fn recover(spec: &TcSpec, geometry: &Geometry, image: &mut CrashImage) -> Result<RecoveryReport, Cut> {
    let mut report = RecoveryReport::default();
    let (data, homes) = (geometry.region("shadow_data").base, geometry.region("shadow_homes").base);
    let fault = geometry.planted;
    let saved = |image: &CrashImage, core| {
        let mut saved = Saved::load(image.structure(&structure_name(core)).unwrap_or(&[]));
        if fault.is(planted::RECOVERY_DROPS_ENTRY) {
            saved.committed.pop();
        }
        if fault.is(planted::RECOVERY_NEWEST_FIRST) {
            saved.committed.reverse();
        }
        if fault.is(planted::RECOVERY_FORGETS_SHADOWS) {
            saved.shadows.clear();
        }
        saved
    };
    let mut patch = |image: &mut CrashImage, line: LineAddr, mask: u64, data: &Line| {
        let mut merged = image.line(line.base());
        let mask = if fault.is(planted::RECOVERY_IGNORES_MASK) { u64::MAX } else { mask };
        for (i, byte) in merged.iter_mut().enumerate().filter(|(i, _)| mask >> i & 1 == 1) {
            *byte = data[i];
        }
        report.lines_written += 1;
        image.write(line.base(), &merged)
    };
    for core in (0..geometry.cores).map(CoreId) {
        for (slot, mask) in saved(image, core).shadows {
            let slot = shadow_slot(spec, core.0.into(), slot, fault);
            let home = PhysAddr(image.read_u64(homes.plus(slot * 8))).line();
            let old = image.line(data.plus(slot * 64));
            patch(image, home, mask, &old)?;
        }
    }
    let rounds = if fault.is(planted::RECOVERY_WRITES_TWICE) { 2 } else { 1 };
    for core in (0..rounds).flat_map(|_| (0..geometry.cores).map(CoreId)) {
        let saved = saved(image, core);
        if fault.is(planted::RECOVERY_CLEARS_FIRST) {
            image.keep(&structure_name(core), Vec::new())?;
        }
        for (line, mask, data) in &saved.committed {
            patch(image, *line, *mask, data)?;
        }
    }
    for core in (0..geometry.cores).map(CoreId) {
        let saved = saved(image, core);
        report.replayed += u64::from(!saved.committed.is_empty());
        report.discarded += u64::from(saved.active > 0);
    }
    for core in (0..geometry.cores).map(CoreId) {
        image.keep(&structure_name(core), Vec::new())?;
    }
    Ok(report)
}
