//! The order of loads after older stores: loads are issued as soon as they can be, pass stores whose addresses are not
//! yet known, and are executed again if that was wrong.

use super::Core;
use crate::Port;
use crate::code::Decoded;
use crate::inst_info::InstInfo;
use durasim_isa::{Access, Inst, LOG_BLOCK_BYTES, Op, Stop};
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
            let dispatched = self.fetch_again(port, *inst, passed)?;
            let issued = self.window.issue_to_memory(shape, dispatched, ready);
            let executed = issued + Cycle::from(shape.latency_cycles);
            match self.unit.buffer.passed_by(phys, shape.bytes, executed, granularity) {
                None => return Ok(issued),
                Some(again) => passed = again,
            }
        }
    }

    /// A load that passed a store is squashed and fetched again; when it is dispatched.
    fn fetch_again<P: Port>(&mut self, port: &mut P, inst: Inst, passed: (u64, Cycle)) -> Result<Cycle, Stop> {
        let (store_pc, resolved) = passed;
        self.stats.order_violations += 1;
        self.store_sets.violation(store_pc, self.hart.pc);
        self.window.squash(self.window.fetch_cycle(), resolved);
        self.window.redirect(resolved + self.config.mispredict_redirect_cycles);
        self.fetched_line = super::NO_LINE;
        self.fetch_lines(port, inst)?;
        Ok(self.window.enter::<true>(self.line_ready, 0))
    }

    /// Issues a load as [`Core::issue_load`] does on a machine with TLBs, where it waits for its translation before it accesses
    /// memory; when its address is known, and when it does.
    #[inline(never)]
    pub(super) fn issue_translated_load<P: Port>(
        &mut self,
        port: &mut P,
        decoded: &Decoded,
        phys: Option<PhysAddr>,
        dispatched: Cycle,
        ready: Cycle,
    ) -> Result<(Cycle, Cycle), Stop> {
        let Decoded { inst, shape, .. } = decoded;
        let (addr, latency) = (self.load_address(*inst), Cycle::from(shape.latency_cycles));
        let predicted = self.store_sets.last_store(self.hart.pc).map_or(0, |(_, executed)| executed);
        let granularity = self.config.store_sets.violation_granularity_bytes;
        let mut issued = self.window.issue_to_memory(shape, dispatched, ready.max(predicted));
        loop {
            let addressed = issued + latency;
            let Some(phys) = phys else { return Ok((addressed, addressed)) };
            let executed = self.unit.access_of_bytes_begins(port, addr, shape.bytes, Access::Read, addressed)?;
            match self.unit.buffer.passed_by(phys, shape.bytes, executed, granularity) {
                Some(passed) if !self.unit.buffer.all_executed_by(executed) => {
                    let dispatched = self.fetch_again(port, *inst, passed)?;
                    issued = self.window.issue_to_memory(shape, dispatched, ready);
                }
                _ => return Ok((addressed, executed)),
            }
        }
    }

    /// The address of a load; that of a block for a log register.
    pub(super) fn load_address(&self, inst: Inst) -> u64 {
        if inst.op == Op::CheckLoad {
            return self.hart.x[usize::from(inst.rs1 & 31)].wrapping_add(inst.checked_offset(&self.hart));
        }
        let addr = self.hart.x[usize::from(inst.rs1 & 31)].wrapping_add(inst.imm as u64);
        if inst.op == Op::LogLoad { addr & !(LOG_BLOCK_BYTES - 1) } else { addr }
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

    /// A store was executed later than its issue said: it waited for its translation.
    pub(super) fn store_waited(&mut self, executed: Cycle) {
        if let Some((set, _)) = self.store_sets.last_store(self.hart.pc) {
            self.store_sets.executes(set, executed);
        }
    }
}
