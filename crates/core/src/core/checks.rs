//! Instructions that look at filters, or lead into handlers and back.

use super::{Core, NO_LINE, StallPlace};
use crate::Port;
use durasim_isa::{Class, Inst, Op};
use durasim_types::Cycle;

impl Core {
    /// Whether an instruction can be executed as far as filters are concerned.
    #[inline]
    pub(super) fn may_look_at_filters<P: Port>(&mut self, port: &mut P, inst: Inst) -> bool {
        match inst.class() {
            Class::CheckedLoad | Class::CheckedStore | Class::FilterUpdate if port.has_checks() => {
                let at = self.window.commit_cycle();
                match inst.op {
                    Op::PersistStore => true,
                    Op::CheckLoad | Op::CheckStoreH | Op::CheckStoreBoth => port.may_check(self.unit.id, at),
                    _ => port.may_change_filters(self.unit.id, at),
                }
            }
            _ => true,
        }
    }

    /// The wait of an instruction for filters is over.
    pub(super) fn end_filter_wait<P: Port>(&mut self, port: &mut P, at: Cycle) {
        let before = self.window.commit_cycle();
        if at > before {
            self.count_wait(port, StallPlace::Atomic, None, before, at);
            self.hold(at);
        }
    }

    /// An access leads into a handler, as a branch that was predicted wrong, or a handler ends. Where that leads is in a
    /// register of the hart, which the decoder reads.
    pub(super) fn redirect_fetch<P: Port>(&mut self, port: &mut P, class: Class, complete: Cycle) {
        if class == Class::CheckReturn {
            if let Some(register) = self.hart.handled_load() {
                self.window.write_register(register, complete);
            }
            self.window.end_fetch_cycle();
            self.window.redirect(self.window.fetch_cycle() + self.config.decode_redirect_cycles);
        } else {
            self.stats.mispredictions += 1;
            self.window.squash(self.window.fetch_cycle() + 1, complete);
            let redirected = complete + self.config.mispredict_redirect_cycles;
            self.window.redirect(redirected + port.handler_entry_cycles());
        }
        self.fetched_line = NO_LINE;
    }
}
