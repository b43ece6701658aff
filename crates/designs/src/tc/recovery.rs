//! Recovery: uncommitted transactions that used the fall-back path are undone from the shadow area, then committed
//! entries are written home, oldest first (section 3, "multiversioning"). Both may be repeated at will; the
//! nonvolatile contents are cleared last.
//!
//! The order of the cores does not matter: two transaction caches never hold committed entries of the same bytes
//! [D:tc-order].

use super::TcSpec;
use super::fifo::Saved;
use durasim_design::{CrashImage, Cut, Geometry, RecoveryReport};
use durasim_types::{CoreId, Line, LineAddr, PhysAddr};

/// The name of a core's transaction cache in a crash image.
pub(super) fn structure_name(core: CoreId) -> String {
    format!("tc.core{}", core.0)
}

/// What a core's transaction cache holds that can be believed: nothing of it, if any part is damaged or would be written
/// to where no line of the program lies.
fn saved(spec: &TcSpec, geometry: &Geometry, image: &CrashImage, core: CoreId) -> Option<Saved> {
    let saved = Saved::load(image.structure(&structure_name(core)).unwrap_or(&[]))?;
    let sound = |&(slot, _): &(u64, u64)| {
        slot < u64::from(spec.shadow_lines) && geometry.is_home(shadow_home(spec, geometry, image, core, slot))
    };
    let homes = saved.committed.iter().all(|(line, ..)| line.0 < 1 << 58 && geometry.is_home(line.base()));
    (homes && saved.shadows.iter().all(sound)).then_some(saved)
}

/// The place of a core's slot in the shadow area.
fn shadow_place(spec: &TcSpec, core: CoreId, slot: u64) -> u64 {
    u64::from(core.0) * u64::from(spec.shadow_lines) + slot
}

/// Where the line in a slot of the shadow area belongs.
fn shadow_home(spec: &TcSpec, geometry: &Geometry, image: &CrashImage, core: CoreId, slot: u64) -> PhysAddr {
    PhysAddr(image.read_u64(geometry.region("shadow_homes").base.plus(shadow_place(spec, core, slot) * 8)))
}

pub(super) fn recover(spec: &TcSpec, geometry: &Geometry, image: &mut CrashImage) -> Result<RecoveryReport, Cut> {
    let mut report = RecoveryReport::default();
    let data = geometry.region("shadow_data").base;
    let mut caches = Vec::new();
    for core in (0..geometry.cores).map(CoreId) {
        match saved(spec, geometry, image, core) {
            Some(saved) => caches.push((core, saved)),
            None => report.losses.push(format!("what the transaction cache of core {} held is damaged", core.0)),
        }
    }
    let mut patch = |image: &mut CrashImage, line: LineAddr, mask: u64, data: &Line| {
        let mut merged = image.line(line.base());
        for (i, byte) in merged.iter_mut().enumerate().filter(|(i, _)| mask >> i & 1 == 1) {
            *byte = data[i];
        }
        report.lines_written += 1;
        image.write(line.base(), &merged)
    };
    for (core, saved) in &caches {
        for &(slot, mask) in &saved.shadows {
            let home = shadow_home(spec, geometry, image, *core, slot).line();
            let old = image.line(data.plus(shadow_place(spec, *core, slot) * 64));
            patch(image, home, mask, &old)?;
        }
    }
    for (_, saved) in &caches {
        for (line, mask, data) in &saved.committed {
            patch(image, *line, *mask, data)?;
        }
    }
    for (_, saved) in &caches {
        report.replayed += u64::from(!saved.committed.is_empty());
        report.discarded += u64::from(saved.active > 0);
    }
    for core in (0..geometry.cores).map(CoreId) {
        image.keep(&structure_name(core), Vec::new())?;
    }
    Ok(report)
}
