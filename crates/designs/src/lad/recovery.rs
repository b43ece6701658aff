//! Power failure and recovery, sections 3.4 and 4.8. Recovery has three steps, which one core does for one controller after
//! the other.

use super::memory_controller::McExtension;
use super::planted;
use super::regions::{PurgatoryHeader, UndoRegion, purgatory_count, purgatory_record};
use super::spec::LadSpec;
use crate::dtx::{Dtx, Ids, THREADS};
use durasim_contract::{
    BudgetSpent, CrashImage, CrashSink, CrashView, Geometry, RecoveryCut, RecoveryReport, snapshot,
};
use durasim_types::{LINE_BYTES, PhysAddr};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The state that the controllers keep by themselves: DTX_CID, and the registers of the undo log.
pub(super) const CONTROLLERS: &str = "lad-controllers";

/// The battery-backed registers of a controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    pub committed: Vec<u8>,
    pub head: u64,
    pub records: u64,
}

impl Kept {
    pub fn of(mc: &McExtension) -> Self {
        Kept { committed: mc.committed.clone(), head: mc.head, records: mc.records.len() as u64 }
    }
}

/// Power fails (section 4.8): speculative entries go to the purgatory in chronological order, and so do the ordinary entries
/// that arrived after one of their line [D:lad-purgatory]. The others are at home.
pub(super) fn drain_queues(
    view: &CrashView<'_>,
    kept: &[Kept],
    geometry: &Geometry,
    sink: &mut CrashSink<'_>,
) -> Result<(), BudgetSpent> {
    sink.keep(CONTROLLERS, snapshot::to_bytes(&kept));
    let count = view.staged.len() as u64;
    for (index, write) in (0..).zip(view.staged) {
        let place = geometry.planted.swaps(planted::PURGATORY_NEWEST_FIRST, index, count - 1 - index);
        let at = purgatory_record(geometry, place);
        sink.write(at.plus(LINE_BYTES), &write.data)?;
        sink.write(at, &PurgatoryHeader::of(write).bytes())?;
    }
    sink.write(purgatory_count(geometry), &count.to_le_bytes())
}

/// Recovers. All of it can be repeated: what it reads is left as it is until everything is home.
pub(super) fn recover(
    spec: &LadSpec,
    geometry: &Geometry,
    image: &mut CrashImage,
) -> Result<RecoveryReport, RecoveryCut> {
    let mut recovery = Recovery::new(spec, geometry, image);
    if image.dirty_shutdown {
        recovery.report.losses.push("The energy ended before the queues were in the purgatory".to_owned());
    }
    if geometry.planted.skips(planted::RECOVERY_CLEARS_FIRST) {
        image.write_u64(purgatory_count(geometry), 0)?;
    }
    recovery.undo(image)?;
    recovery.write_purgatory(image)?;
    recovery.clear(image)?;
    Ok(recovery.report)
}

struct Recovery<'a> {
    spec: &'a LadSpec,
    geometry: &'a Geometry,
    ids: Ids,
    kept: Vec<Kept>,
    /// V_commit; `None` if the DTX_CIDs are damaged: nothing is known to have committed then.
    newest: Option<Vec<u8>>,
    entries: u64,
    report: RecoveryReport,
    replayed: BTreeSet<u64>,
    discarded: BTreeSet<u64>,
}

impl<'a> Recovery<'a> {
    /// Step 1: V_commit has the newest DTX_CID of each thread, so what one controller has committed all have.
    fn new(spec: &'a LadSpec, geometry: &'a Geometry, image: &CrashImage) -> Self {
        let ids = Ids::new(spec.dtx_id_bits);
        let kept: Option<Vec<Kept>> = image.structure(CONTROLLERS).and_then(|bytes| snapshot::from_bytes(bytes).ok());
        // A damaged record is ignored: no controller has that many threads, or that many entries.
        let is_sound = |kept: &Kept| kept.committed.len() == THREADS && kept.records <= spec.undo_log_entries_max;
        let mut kept: Vec<Kept> = kept.unwrap_or_default();
        let is_whole = kept.len() == usize::from(geometry.controllers) && kept.iter().all(is_sound);
        if !is_whole {
            kept.clear();
        }
        let mut newest = vec![0u8; THREADS];
        for (number, of) in kept.iter().enumerate() {
            for (newest, &id) in newest.iter_mut().zip(&of.committed) {
                let (is_newer, is_larger) = (ids.is_committed(*newest, id), id > *newest);
                let is_newer = geometry.planted.swaps(planted::RECOVERY_TAKES_NUMERIC_MAX, is_newer, is_larger);
                if number == 0 || is_newer {
                    *newest = id;
                }
            }
        }
        // A damaged count names no entries that there is no room for.
        let entries = image.read_u64(purgatory_count(geometry)).min(spec.purgatory(geometry));
        let mut report = RecoveryReport::default();
        // Nothing was kept where no power failed.
        if !is_whole && (image.structure(CONTROLLERS).is_some() || entries > 0) {
            report
                .losses
                .push("What the controllers kept, DTX_CID and the registers of the undo log, is damaged".to_owned());
        }
        Recovery {
            spec,
            geometry,
            ids,
            kept,
            newest: is_whole.then_some(newest),
            entries,
            report,
            replayed: BTreeSet::new(),
            discarded: BTreeSet::new(),
        }
    }

    fn has_committed(&self, dtx: Dtx, controller: u16) -> bool {
        let own = self.kept.get(usize::from(controller)).map(|kept| &kept.committed);
        let vector = self.geometry.planted.swaps(planted::RECOVERY_WITHOUT_CONSENSUS, self.newest.as_ref(), own);
        vector.is_some_and(|last| self.ids.is_committed(dtx.id, last[usize::from(dtx.tid)]))
    }

    /// Step 2: the undo log of each controller from its oldest entry to its newest. What an uncommitted DTX wrote in place is
    /// restored.
    fn undo(&mut self, image: &mut CrashImage) -> Result<(), RecoveryCut> {
        let fault = self.geometry.planted;
        let region = UndoRegion::new(self.geometry);
        for number in 0..self.kept.len() as u16 {
            let Kept { head, records, .. } = self.kept[usize::from(number)];
            for n in 0..fault.swaps(planted::RECOVERY_UNDOES_NOTHING, records, 0) {
                let slot = (head + n) % self.spec.undo_log_entries_max;
                let header = region.header(number, slot);
                let (home, group) = (PhysAddr(image.read_u64(header)), image.read_u64(header.plus(8)));
                let dtx = Dtx::of(group);
                let is_undone = fault.assumes(planted::RECOVERY_UNDOES_COMMITTED, !self.has_committed(dtx, number));
                if group == dtx.number() && is_undone && self.geometry.is_home(home) {
                    let old = image.line(region.old_value(number, slot));
                    image.write(home, &old)?;
                    self.report.lines_written += 1;
                    self.discarded.insert(group);
                }
            }
        }
        Ok(())
    }

    /// Step 3: the purgatory in chronological order. Entries of uncommitted DTXs are dropped.
    fn write_purgatory(&mut self, image: &mut CrashImage) -> Result<(), RecoveryCut> {
        let fault = self.geometry.planted;
        let entries = fault.swaps(planted::RECOVERY_DROPS_PURGATORY, self.entries, 0);
        let entries = fault.swaps(planted::RECOVERY_OVERLOOKS_LAST, entries, entries.saturating_sub(1));
        for index in 0..entries {
            let at = purgatory_record(self.geometry, index);
            let PurgatoryHeader { home, dtx, mask } = PurgatoryHeader::read(image, at);
            if !self.geometry.is_home(home) {
                continue;
            }
            let controller = self.geometry.controller_of(home.line());
            if let Some(dtx) = dtx {
                if fault.ignores(planted::RECOVERY_WRITES_UNCOMMITTED, !self.has_committed(dtx, controller)) {
                    self.discarded.insert(dtx.number());
                    continue;
                }
                self.replayed.insert(dtx.number());
            }
            let (mut line, data) = (image.line(home), image.line(at.plus(LINE_BYTES)));
            for byte in (0..64).filter(|byte| mask >> byte & 1 != 0) {
                line[byte] = data[byte];
            }
            image.write(home, &line)?;
            self.report.lines_written += 1;
        }
        Ok(())
    }

    /// The undo logs and the purgatory are empty; threads number their DTXs anew. In this order: a recovery that begins anew
    /// in between must not undo what the purgatory has written, nor judge it by other numbers.
    fn clear(&mut self, image: &mut CrashImage) -> Result<(), RecoveryCut> {
        for kept in &mut self.kept {
            kept.records = 0;
        }
        image.keep(CONTROLLERS, snapshot::to_bytes(&self.kept))?;
        if !self.geometry.planted.skips(planted::RECOVERY_KEEPS_PURGATORY) {
            image.write_u64(purgatory_count(self.geometry), 0)?;
        }
        let empty = Kept { committed: vec![0; THREADS], head: 0, records: 0 };
        image.keep(CONTROLLERS, snapshot::to_bytes(&vec![empty; usize::from(self.geometry.controllers)]))?;
        self.report.replayed = self.replayed.len() as u64;
        self.report.discarded = self.discarded.len() as u64;
        Ok(())
    }
}
