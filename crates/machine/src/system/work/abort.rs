//! Aborts of transactions, whichever core they run on. A core processes its abort at its next step.

use super::Task;
use crate::system::System;
use durasim_design::{AbortCause, Gate, Hooks};
use durasim_types::{CoreId, TxId};

impl System {
    pub(super) fn start_abort(&mut self, tx: TxId, why: AbortCause) {
        let at = self.work.now();
        let Some(core) = self.transactions.start_abort(tx, why.code(), at) else { return };
        self.observers.aborted(core, at, tx);
        if self.design.has(Hooks::TX) && !self.halted() {
            self.ask_abort(tx, why, core);
        } else {
            self.end_abort(tx, why, core);
        }
    }

    pub(super) fn ask_abort(&mut self, tx: TxId, why: AbortCause, core: CoreId) {
        let at = self.work.now();
        let mut out = self.design.actions();
        let cx = self.cx(core, at);
        match self.design.tx_abort(&cx, tx, why, &mut out) {
            Gate::Done => self.work.push(Task::Aborted { tx, why, core }),
            Gate::After(wait) => {
                self.work.push(Task::Aborted { tx, why, core });
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

    pub(super) fn end_abort(&mut self, tx: TxId, why: AbortCause, core: CoreId) {
        let at = self.work.now();
        if self.transactions.end_abort(core, tx, why.code(), at) {
            self.agenda.interrupt(core, at);
        }
    }
}
