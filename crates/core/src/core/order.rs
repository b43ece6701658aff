//! The order of loads behind older stores: loads are issued as soon as they can be, pass stores whose addresses are not
//! yet known, and are executed again if that was wrong.

use super::Core;
use crate::Port;
use crate::shape::Shape;
use durasim_isa::{Access, Class, Inst, Op, Stop};
use durasim_types::Cycle;

/// How many bytes a load reads.
fn load_bytes(op: Op) -> u8 {
    match op {
        Op::Lb | Op::Lbu => 1,
        Op::Lh | Op::Lhu => 2,
        Op::Lw | Op::Lwu | Op::Flw => 4,
        _ => 8,
    }
}

impl Core {
    /// Issues a load, again from its fetch on as long as it passes an older store to the same place.
    #[inline]
    pub(super) fn issue_load<P: Port>(
        &mut self,
        port: &mut P,
        inst: Inst,
        shape: Shape,
        dispatched: Cycle,
        ready: Cycle,
    ) -> Result<Cycle, Stop> {
        let mut wait = ready;
        if let Some((_, executed)) = self.store_sets.last_store(self.hart.pc) {
            wait = wait.max(executed + self.config.store_wakeup_cycles);
        }
        let issued = self.window.issue(shape, dispatched, wait);
        if self.unit.buffer.all_executed_by(issued + Cycle::from(shape.latency_cycles)) {
            return Ok(issued);
        }
        self.issue_behind_stores(port, inst, shape, ready, issued)
    }

    #[inline(never)]
    fn issue_behind_stores<P: Port>(
        &mut self,
        port: &mut P,
        inst: Inst,
        shape: Shape,
        ready: Cycle,
        mut issued: Cycle,
    ) -> Result<Cycle, Stop> {
        let addr = self.hart.x[usize::from(inst.rs1)].wrapping_add(inst.imm as u64);
        // A load that faults does so when it is executed.
        let Ok(phys) = self.unit.translate(port, addr, Access::Read) else { return Ok(issued) };
        let granularity = self.config.store_sets.violation_granularity_bytes.into();
        loop {
            let executed = issued + Cycle::from(shape.latency_cycles);
            let Some((store_pc, resolved)) =
                self.unit.buffer.passed_by(phys, load_bytes(inst.op), executed, granularity)
            else {
                return Ok(issued);
            };
            self.stats.order_violations += 1;
            self.store_sets.violation(store_pc, self.hart.pc);
            self.window.squash(self.window.fetch_cycle(), resolved);
            self.window.redirect(resolved + self.config.mispredict_redirect_cycles);
            self.fetched_line = super::NO_LINE;
            self.fetch_lines(port, inst)?;
            let fetched = self.window.fetch(self.line_ready);
            let dispatched = self.window.dispatch(Class::Load, fetched, 0);
            issued = self.window.issue(shape, dispatched, ready);
        }
    }
}
