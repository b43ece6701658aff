//! Aborts of transactions, whichever core they run on. A core processes its abort at its next step.

use crate::parts::work_list::Task;
use crate::system::System;
use durasim_contract::{AbortCause, Gate, Hooks};
use durasim_types::{CoreId, TxId};

impl System {
    pub(super) fn start_abort(&mut self, tx: TxId, why: AbortCause) {
        let at = self.work.now();
        let nested = self.transactions.is_nested_hardware(tx);
        let value = nested.map_or(why.code(), |nested| self.design.abort_status(why, nested));
        let Some(core) = self.transactions.start_abort(tx, value, at) else { return };
        let design_knows = match nested {
            Some(nested) => {
                self.transactions.count_hardware_abort(why, nested);
                self.observers.forget_deferred(core);
                true
            }
            None => {
                self.observers.aborted(core, at, tx);
                self.design.has(Hooks::TX)
            }
        };
        if design_knows && !self.halted() {
            self.ask_abort(tx, why, core);
        } else {
            self.end_abort(tx, core);
        }
    }

    pub(super) fn ask_abort(&mut self, tx: TxId, why: AbortCause, core: CoreId) {
        let at = self.work.now();
        let mut out = self.design.actions();
        let cx = self.cx(core, at);
        match self.design.tx_abort(&cx, tx, why, &mut out) {
            Gate::Done => self.work.push(Task::Aborted { tx, core }),
            Gate::After(wait) => {
                self.work.push(Task::Aborted { tx, core });
                self.work.push(Task::Await { wait });
            }
            Gate::Retry(wait) => {
                self.work.push(Task::AskAbort { tx, why, core });
                self.work.push(Task::Await { wait });
            }
            Gate::Abort(..) => unreachable!("an abort cannot be aborted"),
        }
        self.push_actions(core, at, out);
    }

    pub(super) fn end_abort(&mut self, tx: TxId, core: CoreId) {
        let at = self.work.now();
        if self.transactions.end_abort(core, tx, at) {
            self.agenda.interrupt(core, at);
        }
    }
}
