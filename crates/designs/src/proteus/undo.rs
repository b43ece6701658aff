//! Aborts. The paper has software replay the log; here the hardware does the same at the controllers [D:proteus-abort]: the
//! lines of the transaction go home and leave the caches, then each block gets the content of its oldest entry back, from
//! the log pending queue or from the log, and a tx-end record makes the entries stale. No other core acts meanwhile.

use super::entry::BLOCK_BYTES;
use super::planted;
use super::state::State;
use super::structures::Phase;
use durasim_design::{Action, Actions, Ctx, Gate, Wait};
use durasim_types::{Cause, PhysAddr, TxId};
use std::collections::BTreeMap;

impl State {
    /// Takes a transaction back, step by step.
    pub fn undo(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        let Some(open) = self.open.get(&tx) else { return Gate::Done };
        let (phase, token, entries) = (open.phase, open.token, open.entries);
        match phase {
            Phase::Open | Phase::Leaving if self.has_flights(cx) => return self.wait_for_logq(cx),
            Phase::Open | Phase::Leaving if entries > 0 && !self.fault.is(planted::ABORT_NOT_UNDONE) => {
                self.clean_lines(tx, false, out);
                self.set_phase(tx, Phase::Cleaning);
                return Gate::Retry(Wait::Acked(token));
            }
            Phase::Cleaning => {
                self.restore(tx, out);
                self.set_phase(tx, Phase::Undoing);
                return Gate::Retry(Wait::Acked(token));
            }
            Phase::Undoing if !self.fault.is(planted::ABORT_NOT_ENDED) => {
                self.write_end(tx, out);
                self.set_phase(tx, Phase::Ending);
                return Gate::Retry(Wait::Acked(token));
            }
            _ => {}
        }
        self.remove_entries(tx);
        self.close(tx);
        self.accept_waiting(out);
        Gate::Done
    }

    /// Hands over what restores each block that the transaction has logged.
    fn restore(&mut self, tx: TxId, out: &mut Actions) {
        let open = &self.open[&tx];
        if !self.fault.is(planted::ABORT_KEEPS_LINES) {
            open.lines.keys().for_each(|line| out.push(Action::Invalidate(*line)));
        }
        // The oldest entry of each block, by its number; the content of those in the LPQs.
        let held = self.queues.iter().flat_map(|queue| &queue.entries).map(|pending| pending.entry);
        let held = held.filter(|entry| entry.tx == tx).map(|entry| (entry.block, entry.number, Some(entry.old)));
        let forgets = self.fault.is(planted::ABORT_FORGETS_LOG);
        let in_log = open.spilled.iter().filter(|_| !forgets).map(|&(number, block)| (block, number, None));
        let newest = self.fault.is(planted::ABORT_NEWEST_WINS);
        let mut oldest: BTreeMap<PhysAddr, (u32, Option<[u8; BLOCK_BYTES as usize]>)> = BTreeMap::new();
        for (block, number, old) in held.chain(in_log) {
            let found = oldest.entry(block).or_insert((number, old));
            if (number < found.0) != newest && number != found.0 {
                *found = (number, old);
            }
        }
        let (token, cause) = (Some(open.token), Cause::Data);
        for (&block, &(number, old)) in &oldest {
            match old {
                Some(old) => out.append(block, &old, cause, token),
                None => {
                    let from = self.slot_of(open, number);
                    out.push(Action::Copy { from, to: block, len: BLOCK_BYTES as u8, cause, token });
                }
            }
        }
        self.counters.undone_blocks += oldest.len() as u64;
    }
}
