//! Aborts. The paper has software replay the log; here the hardware does the same at the controllers [D:proteus-abort]: the
//! lines of the transaction go home and leave the caches, then each block gets the content of its oldest entry back, from
//! the log pending queue or from the log, and a tx-end record makes the entries stale. No other core acts meanwhile.

use super::entry::BLOCK_BYTES;
use super::state::State;
use super::structures::Phase;
use durasim_design::{Action, Actions, CopyRequest, Ctx, Gate, Origin, Wait};
use durasim_types::{Cause, TxId};

impl State {
    /// Takes a transaction back, step by step.
    pub fn undo(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        let Some(open) = self.open.get(&tx) else { return Gate::Done };
        let token = open.token;
        match open.phase {
            Phase::Open | Phase::Leaving if self.has_flights(cx) => return self.wait_for_logq(cx),
            Phase::Open | Phase::Leaving if self.has_to_be_undone(open) => {
                self.clean_lines(tx, self.changed_lines(tx), out);
                self.set_phase(tx, Phase::Cleaning);
                return Gate::Retry(Wait::Acked(token));
            }
            Phase::Cleaning => {
                self.discard_before_restoring(tx, out);
                self.restore(tx, out);
                self.set_phase(tx, Phase::Undoing);
                return Gate::Retry(Wait::Acked(token));
            }
            Phase::Undoing => return self.end_undone(cx, tx, out),
            Phase::Open | Phase::Leaving | Phase::Ready | Phase::Ending => {}
        }
        self.remove_entries(tx, out);
        self.close(tx);
        self.accept_waiting(out);
        Gate::Done
    }

    /// Hands over what restores each block that the transaction has logged.
    fn restore(&mut self, tx: TxId, out: &mut Actions) {
        let open = &self.open[&tx];
        self.invalidate_changed_lines(open, out);
        let oldest = self.oldest_entries(tx, open);
        let (token, cause) = (Some(open.token), Cause::Data);
        for (&block, &(number, old)) in &oldest {
            match old {
                Some(old) => out.append(Origin::Controller, block, &old, cause, token),
                None => {
                    let from = self.slot_of(open, number);
                    out.push(Action::Copy(CopyRequest {
                        by: Origin::Controller,
                        from,
                        to: block,
                        len: BLOCK_BYTES as u8,
                        below_held: false,
                        cause,
                        token,
                    }));
                }
            }
        }
        self.counters.undone_blocks += oldest.len() as u64;
    }
}
