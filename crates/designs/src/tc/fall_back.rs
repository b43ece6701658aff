//! The fall-back path for transactions that exceed the capacity (section 4.1, "transaction cache overflow"): updates go
//! home before their commit, with hardware-controlled copy-on-write [D:tc-overflow].

use super::fifo::{Entry, EntryState};
use super::shadow::{Overflow, shadow_place};
use super::{State, planted};
use durasim_contract::{Action, Actions, CopyRequest, Origin, Token};
use durasim_types::{Cause, CoreId, EventKind, LineAddr, TxId};

impl State {
    /// Whether the fall-back path has to make room: the cache is almost full and its oldest entry, being of an open
    /// transaction, cannot drain (section 4.1, "transaction cache overflow").
    pub(super) fn overflowing(&self, core: usize) -> bool {
        let cache = &self.contents.caches[core];
        let threshold = (u64::from(self.spec.entries) * u64::from(self.spec.overflow_percent)).div_ceil(100);
        cache.entries.len() as u64 >= threshold && cache.entries.front().is_some_and(|e| !e.state.drains())
    }

    /// The fall-back path, hardware-controlled copy-on-write: the old line is copied to the shadow area, and only when
    /// that is acknowledged the new data is written to its home address. Copies begin with the oldest entries; entries of
    /// one line are written home in the order of their stores, those of different lines as their copies are acknowledged,
    /// for the shadows cover them in any order. False if the shadow area is full.
    pub(super) fn copy_on_write(&mut self, core: usize, out: &mut Actions) -> bool {
        let mut in_flight = self.contents.caches[core].entries.iter().filter(|e| e.state.in_flight()).count();
        for index in 0..self.contents.caches[core].entries.len() {
            if in_flight >= self.spec.copies_in_flight as usize || !self.overflowing(core) {
                break;
            }
            let entry = self.contents.caches[core].entries[index];
            if entry.state != EntryState::Active {
                continue;
            }
            let line = entry.line;
            let cache = &self.contents.caches[core];
            // A younger entry of a line goes after the older one's copy is safe, and after what others have committed of
            // it is in flight: the copy has to find that.
            let not_in_flight = |e: &Entry| e.state.copying() || matches!(e.state, EntryState::Committed { .. });
            if cache.entries.iter().take(index).any(|e| e.line == line && not_in_flight(e)) {
                break;
            }
            in_flight += 1;
            // The entries of a line go home in one write, gathered in the array as for a miss [D:tc-overflow].
            let (entry, joining) = self.contents.caches[core].gathered(index);
            // The bytes whose old version goes to the shadow area first: those without one.
            let mask = self.fault.swaps(planted::COPY_SKIPPED, self.contents.caches[core].not_shadowed(&entry), 0);
            if mask == 0 {
                self.gather(core, index, entry, &joining, out);
                self.issue_entry(core, index, out);
                continue;
            }
            let Some(slot) = self.contents.caches[core].take_slot(self.spec.shadow_lines.into()) else { return false };
            let slot = self.fault.swaps(planted::SHADOW_SLOT_REUSED, slot, 0);
            if self.contents.caches[core].overflow_of(entry.tx).is_none() {
                self.counters.overflows += 1;
                self.contents.caches[core].overflows.push(Overflow::new(entry.tx));
            }
            self.contents.caches[core].overflow_of(entry.tx).expect("it was just made").add(line, slot, mask);
            let slot = shadow_place(&self.spec, core as u64, slot, self.fault);
            self.counters.shadowed_lines += 1;
            let token = self.token();
            // The new data is written to its home address when the old line and the address of its home have both been
            // acknowledged.
            let left = self.fault.swaps(planted::COPY_NOT_AWAITED, 2, 1);
            self.gather(core, index, entry, &joining, out);
            self.contents.caches[core].entries[index].state = EntryState::Copying { token, left };
            out.append(
                Origin::Core(CoreId(core as u16)),
                self.shadow_homes.base.plus(slot * 8),
                &line.base().0.to_le_bytes(),
                Cause::Metadata,
                Some(token),
            );
            out.push(Action::Copy(CopyRequest {
                by: Origin::Core(CoreId(core as u16)),
                from: line.base(),
                to: self.shadow_data.base.plus(slot * 64),
                len: 64,
                below_held: false,
                cause: Cause::Log,
                token: Some(token),
            }));
        }
        true
    }

    fn gather(&mut self, core: usize, index: usize, entry: Entry, joining: &[usize], out: &mut Actions) {
        if joining.is_empty() {
            return;
        }
        self.counters.gathered += joining.len() as u64;
        self.contents.caches[core].gather(index, entry, joining);
        out.event(EventKind::DesignStep, entry.line.base());
    }

    /// The token of the old lines that an abort restores at the home addresses, if there are any.
    pub(super) fn undo(&mut self, core: usize, tx: TxId, out: &mut Actions) -> Option<Token> {
        let token = self.token();
        let is_due = |overflow: &Overflow| overflow.restoring.is_none() && !self.fault.skips(planted::ABORT_NOT_UNDONE);
        let overflow = self.contents.caches[core].overflow_of(tx).filter(|overflow| is_due(overflow))?;
        overflow.restoring = Some(token);
        for (line, shadow) in overflow.homes() {
            let slot = shadow_place(&self.spec, core as u64, shadow.slot, self.fault);
            let (old, home) = (self.shadow_data.base.plus(slot * 64), line.base());
            for (offset, len) in shadow.runs() {
                let (from, to) = (old.plus(offset), home.plus(offset));
                out.push(Action::Copy(CopyRequest {
                    by: Origin::Core(CoreId(core as u16)),
                    from,
                    to,
                    len,
                    below_held: false,
                    cause: Cause::Data,
                    token: Some(token),
                }));
            }
        }
        Some(token)
    }

    /// The old lines are back: a transaction that has copied one of them meanwhile has copied what is undone now.
    pub(super) fn undone(&mut self, core: usize, tx: TxId) {
        let overflow = self.contents.caches[core].overflow_of(tx);
        let lines: Vec<LineAddr> = overflow.into_iter().flat_map(|o| o.homes()).map(|(line, _)| line).collect();
        lines.into_iter().for_each(|line| self.close_shadows(line, tx));
        self.contents.caches[core].clear_overflow(tx);
    }
}
