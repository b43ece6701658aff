//! Steps of PiCL that a planted fault can break: each is what the design does, with the faults of that step beside it.

use super::epochs::{Epochs, Phase};
use super::log_region::{ERASING, REGISTER_BYTES, erase};
use super::undo_log::{Burst, UndoLog};
use super::{OpenTx, PiclSpec, State, planted, spec};
use crate::undo::Undo;
use durasim_design::{Action, Actions, ActiveFault, CrashImage, Geometry, LineTag, RecoveryCut, Store, Token, Wait};
use durasim_types::{Cause, Line, LineAddr, PhysAddr};
use std::collections::BTreeMap;

/// Pre-images.
impl State {
    /// Whether a store makes a pre-image: it is the first to its line in the current epoch, inside of a transaction or not.
    #[inline]
    pub(super) fn is_first_of_epoch(&self, store: &Store<'_>, note: LineTag, current: LineTag) -> bool {
        note != current
            && !(self.fault.is(planted::LINE_NOT_LOGGED) && store.line().0.is_multiple_of(4))
            && !(self.fault.is(planted::PLAIN_STORE_NOT_LOGGED) && store.tx.is_none())
    }

    /// The line as it was before a store.
    pub(super) fn line_before(&self, store: &Store<'_>) -> Line {
        let mut data = *store.before;
        if self.fault.is(planted::PRE_IMAGE_TAKES_NEW) {
            let offset = store.addr.offset();
            data[offset..][..usize::from(store.len)].copy_from_slice(&store.bytes()[..usize::from(store.len)]);
        }
        data
    }

    /// ValidFrom: the epoch in which the line was last stored to, or PersistedEID if that is persisted.
    pub(super) fn valid_from(&self, note: LineTag) -> u64 {
        if self.fault.is(planted::VALID_FROM_ZERO) {
            return 0;
        }
        self.epoch_of(note).unwrap_or(self.protocol.epochs.persisted)
    }

    /// ValidTill: the current epoch.
    pub(super) fn valid_till(&self, valid_from: u64) -> u64 {
        let Epochs { system, .. } = self.protocol.epochs;
        if self.fault.is(planted::VALID_TILL_EARLY) && system > valid_from + 1 {
            return system - 1;
        }
        system
    }
}

/// The undo buffer and the log.
impl State {
    /// What a line waits for that leaves the caches: if its pre-image may be in the buffer, that is durable before it.
    pub(super) fn hold_eviction(&mut self, line: LineAddr, out: &mut Actions) -> Option<Wait> {
        if self.fault.is(planted::EVICTION_NOT_HELD) {
            return None;
        }
        self.hold_back(line, out)
    }

    /// What a line waits for that the program cleans.
    pub(super) fn hold_clean(&mut self, line: LineAddr, out: &mut Actions) -> Option<Wait> {
        if self.fault.is(planted::CLEAN_NOT_HELD) {
            return None;
        }
        self.hold_back(line, out)
    }

    /// Whether stores may make more pre-images: a superblock for them, and spare ones for what is in the buffer.
    pub(super) fn has_room(&self) -> bool {
        self.protocol.log.used() + spec::SPARE_SUPERBLOCKS < self.spec.superblocks()
            || self.fault.is(planted::LOG_OVERRUN)
    }

    /// The first superblock that is needed when this epoch is persisted.
    pub(super) fn first_needed(&self, persisted: u64) -> u64 {
        if self.fault.is(planted::GARBAGE_TOO_EARLY) {
            return self.protocol.log.first_needed(persisted + 1);
        }
        self.protocol.log.first_needed(persisted)
    }
}

impl UndoLog {
    /// So many writes of a burst are in flight. Its header follows when all of them are accepted, and the filter knows
    /// the lines until that is too.
    pub fn await_burst(
        &mut self,
        token: Token,
        left: u32,
        spec: &PiclSpec,
        log: PhysAddr,
        fault: ActiveFault,
        out: &mut Actions,
    ) {
        self.burst = Some(Burst { token, left, header: false });
        if fault.is(planted::HEADER_TOO_EARLY) {
            self.write_header(spec, log, token, out);
            self.burst = Some(Burst { token, left: left + 1, header: true });
        }
        if fault.is(planted::FILTER_CLEARED_EARLY) {
            self.filter.clear();
        }
    }
}

/// The end of an epoch [D:picl-epoch-boundary].
impl State {
    /// Whether the scan is far enough for another epoch to end.
    pub(super) fn may_end(&self) -> bool {
        let Epochs { system, persisted, .. } = self.protocol.epochs;
        persisted + u64::from(self.spec.scan_gap_epochs) + 1 >= system || self.fault.is(planted::EPOCH_OVERTAKES_SCAN)
    }

    /// Whether begins are delayed: the epoch is about to end.
    pub(super) fn begins_wait(&self) -> bool {
        self.is_ending() && !self.protocol.epochs.let_go && !self.fault.is(planted::EPOCH_INSIDE_TRANSACTION)
    }

    /// Whether an epoch would end where no transaction is open.
    pub(super) fn is_between_transactions(&self) -> bool {
        self.protocol.open.is_empty() || self.fault.is(planted::EPOCH_INSIDE_TRANSACTION)
    }
}

/// The asynchronous cache scan [D:picl-scan].
impl State {
    /// Whether the scan writes a line home that was not stored to since its epoch.
    pub(super) fn scan_writes(&self, line: LineAddr, dirty: bool) -> bool {
        dirty && !(self.fault.is(planted::SCAN_SKIPS_LINES) && line.0 % 4 == 1)
    }

    /// The scan removes the EID of a line. What a clean line was last stored to in does not matter any more, and its
    /// identifier will come again.
    pub(super) fn forget_eid(&self, dirty: bool, note: &mut LineTag) {
        if !dirty && self.fault.is(planted::STALE_EID_KEPT) {
            return;
        }
        *note = LineTag::NONE;
    }

    /// Behind the lines the pre-images become durable that lines got which were stored to meanwhile; what to wait for.
    pub(super) fn flush_behind_lines(&mut self, out: &mut Actions) -> Option<Token> {
        if self.fault.is(planted::SCAN_FORGETS_BUFFER) {
            return None;
        }
        self.flush(out)
    }

    /// PersistedEID waits until every controller has accepted what was written before: an empty write comes after it.
    pub(super) fn await_controllers(&mut self, out: &mut Actions) {
        let token = self.token();
        if self.fault.is(planted::SCAN_NOT_AWAITED) {
            self.enter(Phase::Barrier(token, 0));
            return self.go_on(out);
        }
        self.enter(Phase::Barrier(token, self.interleave.controllers));
        out.push(Action::Barrier { token, cause: Cause::Checkpoint });
    }

    /// PersistedEID when the scan of an epoch has ended: that epoch.
    pub(super) fn new_persisted(&self, scanned: u64) -> u64 {
        if self.fault.is(planted::PERSISTED_TOO_FAR) {
            return scanned + 1;
        }
        scanned
    }
}

/// Aborts [D:picl-abort].
impl State {
    /// The stores of a transaction as an abort takes them back: youngest first.
    pub(super) fn undo_order(&self, open: &OpenTx) -> Vec<Undo> {
        if self.fault.is(planted::ABORT_NOT_UNDONE) {
            return Vec::new();
        }
        if self.fault.is(planted::ABORT_OLDEST_FIRST) {
            return open.undo.clone();
        }
        open.undo.iter().rev().copied().collect()
    }
}

// Recovery.

/// The epoch to whose end recovery comes.
pub(super) fn epoch_to_recover(persisted: u64, fault: ActiveFault) -> u64 {
    if fault.is(planted::RECOVERY_IGNORES_PERSISTED) {
        return 0;
    }
    persisted
}

/// The superblocks as recovery comes to them: backwards from the last, so that the oldest pre-image of a line has the last
/// word.
pub(super) fn recovery_order(mut superblocks: Vec<u64>, fault: ActiveFault) -> Vec<u64> {
    if fault.is(planted::RECOVERY_OVERLOOKS_LAST) {
        superblocks.pop();
    }
    if !fault.is(planted::RECOVERY_GOES_FORWARDS) {
        superblocks.reverse();
    }
    superblocks
}

/// Whether a pre-image is that of its line at the end of this epoch: ValidFrom <= PersistedEID < ValidTill.
pub(super) fn is_applied(valid_from: u64, valid_till: u64, persisted: u64, fault: ActiveFault) -> bool {
    if fault.is(planted::RECOVERY_RESTORES_NOTHING) {
        return false;
    }
    valid_from <= persisted && (persisted < valid_till || fault.is(planted::RECOVERY_IGNORES_VALID_TILL))
}

/// Brings lines home; the log stays until they are.
pub(super) fn bring_home(
    lines: &BTreeMap<PhysAddr, Line>,
    spec: &PiclSpec,
    geometry: &Geometry,
    image: &mut CrashImage,
) -> Result<(), RecoveryCut> {
    if geometry.planted.is(planted::RECOVERY_ERASES_FIRST) {
        erase(spec, geometry, image)?;
    }
    let rounds = if geometry.planted.is(planted::RECOVERY_WRITES_TWICE) { 2 } else { 1 };
    (0..rounds).flat_map(|_| lines).try_for_each(|(home, data)| image.write(*home, data))
}

/// All is home: the log is marked as being erased, if it is not already, erased, and epochs restart.
pub(super) fn start_empty_log(
    is_marked: bool,
    spec: &PiclSpec,
    geometry: &Geometry,
    image: &mut CrashImage,
) -> Result<(), RecoveryCut> {
    let register = geometry.region("registers").base;
    if is_marked || !geometry.planted.is(planted::RECOVERY_KEEPS_LOG) {
        if !is_marked {
            let mut bytes = [0; REGISTER_BYTES as usize];
            bytes[16..].copy_from_slice(&ERASING.to_le_bytes());
            image.write(register, &bytes)?;
        }
        erase(spec, geometry, image)?;
    }
    image.write(register, &[0; REGISTER_BYTES as usize])
}
