//! Persist events. Their observer sees the whole system exactly as it is at that moment.

use super::System;
use durasim_types::{Cause, CoreId, Cycle, EventKind, PhysAddr};

impl System {
    /// Records a persist event at `cycle`, or at the last stamp if that is later.
    #[inline]
    pub(super) fn event(&mut self, kind: EventKind, cycle: Cycle, addr: PhysAddr, core: Option<CoreId>) {
        self.event_of(kind, cycle, addr, core, None);
    }

    /// Records the persist event of a write with its cause.
    pub(super) fn event_of(
        &mut self,
        kind: EventKind,
        cycle: Cycle,
        addr: PhysAddr,
        core: Option<CoreId>,
        cause: Option<Cause>,
    ) {
        if let Some((mut observer, event)) = self.observers.count(kind, cycle, addr, core, cause) {
            if !observer.event(&event, self) {
                self.observers.halt();
            }
            self.observers.observe(observer);
        }
    }
}
