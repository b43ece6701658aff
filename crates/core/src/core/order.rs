//! The order of loads behind older stores: loads are issued as soon as they can be, pass stores whose addresses are not
//! yet known, and are executed again if that was wrong.

use super::Core;
use crate::Port;
use crate::code::Decoded;
use crate::inst_info::InstInfo;
use durasim_isa::Stop;
use durasim_types::{Cycle, PhysAddr};

impl Core {
    /// Issues a load from `phys`, if that is known, again from its fetch on as long as it passes an older store to the same
    /// place.
    #[inline(always)]
    pub(super) fn issue_load<P: Port>(
        &mut self,
        port: &mut P,
        decoded: &Decoded,
        phys: Option<PhysAddr>,
        dispatched: Cycle,
        ready: Cycle,
    ) -> Result<Cycle, Stop> {
        let shape = &decoded.shape;
        let mut wait = ready;
        if let Some((_, executed)) = self.store_sets.last_store(self.hart.pc) {
            wait = wait.max(executed);
        }
        let issued = self.window.issue_to_memory(shape, dispatched, wait);
        let executed = issued + Cycle::from(shape.latency_cycles);
        if self.unit.buffer.all_executed_by(executed) {
            return Ok(issued);
        }
        let Some(phys) = phys else { return Ok(issued) };
        let granularity = self.config.store_sets.violation_granularity_bytes;
        match self.unit.buffer.passed_by(phys, shape.bytes, executed, granularity) {
            None => Ok(issued),
            Some(passed) => self.issue_again(port, decoded, phys, ready, passed),
        }
    }

    /// Issues a load again that passed a store: `passed` is the store's address in the program and the cycle of its
    /// execution.
    #[cold]
    #[inline(never)]
    fn issue_again<P: Port>(
        &mut self,
        port: &mut P,
        decoded: &Decoded,
        phys: PhysAddr,
        ready: Cycle,
        mut passed: (u64, Cycle),
    ) -> Result<Cycle, Stop> {
        let Decoded { inst, shape, .. } = decoded;
        let granularity = self.config.store_sets.violation_granularity_bytes;
        loop {
            let (store_pc, resolved) = passed;
            self.stats.order_violations += 1;
            self.store_sets.violation(store_pc, self.hart.pc);
            self.window.squash(self.window.fetch_cycle(), resolved);
            self.window.redirect(resolved + self.config.mispredict_redirect_cycles);
            self.fetched_line = super::NO_LINE;
            self.fetch_lines(port, *inst)?;
            let dispatched = self.window.enter::<true>(self.line_ready, 0);
            let issued = self.window.issue_to_memory(shape, dispatched, ready);
            let executed = issued + Cycle::from(shape.latency_cycles);
            match self.unit.buffer.passed_by(phys, shape.bytes, executed, granularity) {
                None => return Ok(issued),
                Some(again) => passed = again,
            }
        }
    }

    /// Issues a store, after the last one of its set.
    #[inline(always)]
    pub(super) fn issue_store(&mut self, shape: &InstInfo, dispatched: Cycle, ready: Cycle) -> Cycle {
        match self.store_sets.last_store(self.hart.pc) {
            Some((set, executed)) => {
                let issued = self.window.issue_to_memory(shape, dispatched, ready.max(executed));
                self.store_sets.executes(set, issued + Cycle::from(shape.latency_cycles));
                issued
            }
            None => self.window.issue_to_memory(shape, dispatched, ready),
        }
    }
}
