//! The front end: fetch lines of code, follow predictions, restart after mispredictions.

use super::{Core, NO_LINE};
use crate::Port;
use crate::branch::BranchKind;
use crate::code::Decoded;
use durasim_isa::{Access, Inst, Stop};
use durasim_types::{Cycle, LINE_BYTES};

impl Core {
    /// Whether the front end is at the line of an instruction, and has all of it.
    #[inline(always)]
    pub(super) fn is_fetched(&self, inst: Inst) -> bool {
        let pc = self.hart.pc;
        pc / LINE_BYTES == self.fetched_line && pc % LINE_BYTES + u64::from(inst.len) <= LINE_BYTES
    }

    /// Fetches the line(s) of an instruction. A line is fetched once for all instructions executed from it in a row; both
    /// halves of an instruction that crosses a line are needed.
    #[inline(never)]
    pub(super) fn fetch_lines<P: Port>(&mut self, port: &mut P, inst: Inst) -> Result<(), Stop> {
        let pc = self.hart.pc;
        let last = pc + u64::from(inst.len) - 1;
        if pc / LINE_BYTES != self.fetched_line {
            self.fetch_line(port, pc)?;
        }
        if last / LINE_BYTES != pc / LINE_BYTES {
            self.fetch_line(port, last)?;
        }
        Ok(())
    }

    #[inline]
    fn fetch_line<P: Port>(&mut self, port: &mut P, addr: u64) -> Result<(), Stop> {
        let phys = self.unit.translate(port, addr, Access::Execute)?;
        let at = self.unit.access_begins(port, addr, Access::Execute, self.window.fetch_cycle())?;
        self.line_ready = port.fetch(self.unit.id, phys.line(), at);
        self.fetched_line = addr / LINE_BYTES;
        Ok(())
    }

    /// Predicts a control transfer that was complete at `complete`, and follows the prediction.
    #[inline]
    pub(super) fn branch(&mut self, decoded: &Decoded, taken: bool, target: u64, next_pc: u64, complete: Cycle) {
        let kind = decoded.branch;
        self.stats.branches += u64::from(kind == BranchKind::Conditional);
        let prediction = self.predictor.predict_and_train(self.hart.pc, kind, taken, target, next_pc);
        if prediction.mispredicted {
            self.stats.mispredictions += 1;
            self.window.squash(self.window.fetch_cycle() + 1, complete);
            self.window.redirect(complete + self.config.mispredict_redirect_cycles);
        } else if taken {
            self.window.end_fetch_cycle();
            if prediction.btb_miss {
                self.window.redirect(self.window.fetch_cycle() + self.config.decode_redirect_cycles);
            }
        }
        // The wrong path has moved on to other lines.
        if prediction.mispredicted {
            self.fetched_line = NO_LINE;
        }
    }
}
