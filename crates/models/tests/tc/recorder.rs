//! Meaning of the hooks of the transaction cache for its protocol.

use super::Tc;
use crate::harness::log::stamp_of;
use crate::harness::recorder::{Observe, Recorder};
use durasim_contract::{
    AbortCause, Action, Actions, ActiveFault, CopyRequest, Ctx, Evict, Fill, Gate, LevelId, LineTag, Store, Token,
};
use durasim_types::{Cause, Line, LineAddr, PhysAddr, TxId};
use std::collections::BTreeMap;

/// A step of the design.
#[derive(Clone, Debug)]
pub enum Step {
    Begin {
        tx: TxId,
        core: u8,
    },
    Store {
        tx: TxId,
        line: u8,
        stamp: u64,
    },
    Commit {
        tx: TxId,
    },
    /// The design was asked to abort it, perhaps again.
    Abort {
        tx: TxId,
    },
    /// Its abort has ended.
    Forgotten {
        tx: TxId,
    },
    /// An entry was sent to its home address.
    Issue {
        line: u8,
        stamp: u64,
    },
    /// The acknowledgement of an entry.
    Acknowledged {
        line: u8,
    },
    CopyStarted {
        line: u8,
    },
    Copied {
        line: u8,
    },
    /// The LLC dropped the line.
    Drop {
        line: u8,
    },
    /// A miss; the stamp that entries give it.
    Fetch {
        line: u8,
        stamp: Option<u64>,
    },
}

/// Notes of the recorder between one hook and another.
#[derive(Default)]
pub struct Notes {
    /// Entries in flight to the home address.
    issued: BTreeMap<Token, u8>,
    /// Old lines in flight to the shadow area, and the number of acknowledgements that are missing.
    copies: BTreeMap<Token, (u8, u8)>,
}

impl Observe for Tc {
    type Step = Step;
    type Notes = Notes;
    type Planted = ActiveFault;
    const LINES: u8 = 12;

    /// Entries that are written home, and copies to the shadow area.
    fn note(r: &Recorder<Self>, out: &Actions) {
        r.shared.with(|log| {
            for action in out.as_slice() {
                match action {
                    Action::Append { at, payload, cause: Cause::Data, token: Some(token), .. } => {
                        let Some(line) = Self::number(at.line()) else { continue };
                        log.notes.issued.insert(*token, line);
                        log.push(Step::Issue { line, stamp: stamp_of(payload.bytes()) });
                    }
                    Action::Copy(CopyRequest { from, cause: Cause::Log, token: Some(token), .. }) => {
                        let Some(line) = Self::number(from.line()) else { continue };
                        log.notes.copies.insert(*token, (line, 2));
                        log.push(Step::CopyStarted { line });
                    }
                    _ => {}
                }
            }
        });
    }

    fn tx_begin(r: &mut Recorder<Self>, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        let gate = r.inner.tx_begin(cx, tx, out);
        if gate == Gate::Done {
            r.push(Step::Begin { tx, core: cx.core.0 as u8 });
        }
        gate
    }

    fn store(r: &mut Recorder<Self>, cx: &Ctx, store: &Store<'_>, tag: &mut LineTag, out: &mut Actions) -> Gate {
        let gate = r.inner.store(cx, store, tag, out);
        Self::note(r, out);
        if let (Gate::Done, Some(line), Some(tx)) = (gate, Self::number(store.line()), store.tx) {
            r.push(Step::Store { tx, line, stamp: store.data });
        }
        gate
    }

    fn tx_commit(r: &mut Recorder<Self>, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        let gate = r.inner.tx_commit(cx, tx, out);
        if matches!(gate, Gate::Done | Gate::After(_)) {
            r.push(Step::Commit { tx });
        }
        Self::note(r, out);
        gate
    }

    fn tx_abort(r: &mut Recorder<Self>, cx: &Ctx, tx: TxId, why: AbortCause, out: &mut Actions) -> Gate {
        let gate = r.inner.tx_abort(cx, tx, why, out);
        r.push(Step::Abort { tx });
        if gate == Gate::Done {
            r.push(Step::Forgotten { tx });
        }
        gate
    }

    fn evict(
        r: &mut Recorder<Self>,
        cx: &Ctx,
        from: LevelId,
        line: LineAddr,
        tag: LineTag,
        data: &Line,
        out: &mut Actions,
    ) -> Evict {
        let verdict = r.inner.evict(cx, from, line, tag, data, out);
        if let (Evict::Drop, Some(line)) = (&verdict, Self::number(line)) {
            r.push(Step::Drop { line });
        }
        verdict
    }

    fn fill(r: &mut Recorder<Self>, cx: &Ctx, line: LineAddr, tx: Option<TxId>, out: &mut Actions) -> Fill {
        let verdict = r.inner.fill(cx, line, tx, out);
        if let Some(line) = Self::number(line) {
            let overlay = match &verdict {
                Fill::Gather { gather, .. } => gather.overlay.as_ref().filter(|overlay| overlay.mask & 1 == 1),
                _ => None,
            };
            r.push(Step::Fetch { line, stamp: overlay.map(|overlay| stamp_of(&overlay.data)) });
        }
        verdict
    }

    fn acked(r: &mut Recorder<Self>, cx: &Ctx, token: Token, addr: PhysAddr, out: &mut Actions) {
        r.inner.acked(cx, token, addr, out);
        r.shared.with(|log| {
            if let Some(line) = log.notes.issued.remove(&token) {
                log.push(Step::Acknowledged { line });
            }
            match log.notes.copies.remove(&token) {
                Some((line, 1)) => log.push(Step::Copied { line }),
                Some((line, left)) => drop(log.notes.copies.insert(token, (line, left - 1))),
                None => {}
            }
        });
        Self::note(r, out);
    }
}
