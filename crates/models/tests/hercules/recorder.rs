//! Meaning of the hooks of Hercules for its protocol. A fault can be planted on the way, to see that the replay finds
//! it.

use super::Hercules;
use crate::harness::Planted;
use crate::harness::log::stamp_of;
use crate::harness::recorder::{Observe, Recorder};
use durasim_contract::{
    AbortCause, Action, Actions, ActiveFault, BudgetSpent, CopyRequest, CrashSink, CrashView, Ctx, Evict, Fill,
    FlushVerdict, Gate, LevelId, LineTag, Merge, Origin, Probe, Request, Store, Token,
};
use durasim_types::{Cause, CoreId, EventKind, Line, LineAddr, PhysAddr, TxId};
use std::collections::BTreeMap;

/// A fault of the design under observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Commits do not store TxLen.
    TxLenNotStored,
    /// Tagged lines that leave the LLC are written home.
    TaggedLinesGoHome,
    /// A pre-image is overwritten instead of pushed down.
    MergeAlwaysOverwrites,
    /// No pre-image goes down before a transactional store.
    CopyDownForgotten,
    /// Misses do not search the log.
    FillIgnoresEntries,
    /// Aborts leave the tagged lines in the caches.
    AbortKeepsLines,
    /// Every core gets every line.
    ProbeGrants,
    /// The crash flush loses the newest line.
    FlushDropsLine,
    /// A line does not wait for the migration of an older version.
    MigrationOvertaken,
    /// The migration engine writes an entry of an open transaction home, too.
    OpenEntryMigrates,
}

impl Planted for Fault {
    /// The design is sound: the recorder changes the calls, verdicts and actions.
    fn in_design(self) -> ActiveFault {
        ActiveFault::NONE
    }
}

/// A step of the design.
#[derive(Clone, Debug)]
pub enum Step {
    /// tx_begin was let through; the address of its TxLen.
    Begin {
        tx: TxId,
        tx_len: PhysAddr,
    },
    /// Its TxLen is zero.
    TxLenCleared {
        tx: TxId,
    },
    TaggedStore {
        tx: TxId,
        line: u8,
        stamp: u64,
    },
    PlainStore {
        line: u8,
        stamp: u64,
    },
    CommitRequested {
        tx: TxId,
    },
    TxLenStored {
        tx: TxId,
    },
    StatesReset {
        tx_len: PhysAddr,
    },
    Acknowledged {
        tx: TxId,
    },
    Abort {
        tx: TxId,
        conflict: bool,
    },
    Forgotten {
        tx: TxId,
    },
    /// A version replaced the one below it.
    Overwrite {
        line: u8,
    },
    WriteHome {
        line: u8,
        stamp: u64,
    },
    Clean {
        line: u8,
    },
    PrematureFlush {
        line: u8,
        stamp: u64,
        at: PhysAddr,
    },
    Spill {
        slot: u32,
    },
    Reload {
        line: u8,
        by: Option<TxId>,
        from: PhysAddr,
    },
    Fetch {
        line: u8,
        by: Option<TxId>,
    },
    Access {
        line: u8,
        by: Option<TxId>,
    },
    MigrationStarted {
        line: u8,
        from: PhysAddr,
    },
    MigrationWritten {
        line: u8,
    },
    EntryFreed {
        line: u8,
    },
    Leave {
        tx: TxId,
    },
    Come {
        tx: TxId,
    },
}

/// Notes of the recorder between one hook and another.
#[derive(Default)]
pub struct Notes {
    /// TxLens that are about to be stored through the caches, and whether they are zero.
    pub tx_lens: BTreeMap<PhysAddr, (TxId, bool)>,
    /// The latest store of each core outside of transactions: line and stamp.
    pub plain: BTreeMap<CoreId, (u8, u64)>,
    /// Second steps of aborts, by the number under which the design is woken.
    forgets: BTreeMap<u64, TxId>,
    /// Lines that migrations write home.
    migrations: BTreeMap<Token, u8>,
    /// The last premature flush: home address, place in the log.
    last: Option<(LineAddr, PhysAddr)>,
}

/// Removes actions from a list.
fn without(out: &mut Actions, drop: impl Fn(&Action) -> bool) {
    let kept: Vec<Action> = out.as_slice().iter().filter(|action| !drop(action)).copied().collect();
    out.clear();
    kept.into_iter().for_each(|action| out.push(action));
}

/// A TxLen that is in flight, and whether it goes through the caches or else straight to the controller.
fn tx_len(out: &Actions) -> Option<(PhysAddr, bool)> {
    out.as_slice().iter().find_map(|action| match action {
        Action::PutCached { addr, .. } => Some((*addr, true)),
        Action::Append { at, payload, .. } if payload.bytes().len() == 4 => Some((*at, false)),
        _ => None,
    })
}

/// The log entry, which counts from one, of the eight-byte record of an entry that moves to the extension area.
fn spilled(r: &Recorder<Hercules>, action: &Action) -> Option<u32> {
    let Action::Append { payload, .. } = action else { return None };
    let record = u64::from_le_bytes(payload.bytes().try_into().ok()?);
    // A record that chains a block to the extension area, or indexes a chunk of the log, is an address.
    let pmem = r.geometry.pmem_base.0..r.geometry.pmem_base.0 + r.geometry.pmem_bytes;
    let log = (record & ((1 << 21) - 1)).checked_sub(1)?;
    (!pmem.contains(&record)).then_some(log as u32)
}

impl Observe for Hercules {
    type Step = Step;
    type Notes = Notes;
    type Planted = Fault;
    const LINES: u8 = 32;

    /// Migrations, and the end of a commit.
    fn note(r: &Recorder<Self>, out: &Actions) {
        for action in out.as_slice() {
            match action {
                Action::Copy(CopyRequest { from, to, token: Some(token), .. }) => {
                    if let Some(line) = Self::number(to.line()) {
                        r.shared.with(|log| log.notes.migrations.insert(*token, line));
                        r.push(Step::MigrationStarted { line, from: *from });
                    }
                }
                Action::Event(EventKind::Commit, tx_len) => r.push(Step::StatesReset { tx_len: *tx_len }),
                _ => {}
            }
        }
    }

    fn tx_begin(r: &mut Recorder<Self>, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        let gate = r.inner.tx_begin(cx, tx, out);
        if gate == Gate::Done {
            let (addr, cached) = tx_len(out).expect("tx_start clears TxLen");
            r.push(Step::Begin { tx, tx_len: addr });
            if cached {
                r.shared.with(|log| log.notes.tx_lens.insert(addr, (tx, true)));
            } else {
                // With eADR a write survives once it is handed to the controller, in whatever buffer it waits.
                r.push(Step::TxLenCleared { tx });
            }
        }
        Self::note(r, out);
        gate
    }

    fn store(r: &mut Recorder<Self>, cx: &Ctx, store: &Store<'_>, tag: &mut LineTag, out: &mut Actions) -> Gate {
        let before = *tag;
        let gate = r.inner.store(cx, store, tag, out);
        if r.has(Fault::CopyDownForgotten) {
            without(out, |action| matches!(action, Action::CopyDown(_)));
        }
        if let (Gate::Done, Some(line)) = (gate, Self::number(store.line())) {
            let stamp = store.data;
            if let Some(tx) = store.tx {
                r.push(Step::TaggedStore { tx, line, stamp });
                let copied = out.as_slice().contains(&Action::CopyDown(store.line()));
                if store.dirty && before != *tag && !copied {
                    r.push(Step::Overwrite { line });
                }
            } else {
                r.shared.with(|log| log.notes.plain.insert(cx.core, (line, stamp)));
            }
        }
        Self::note(r, out);
        gate
    }

    fn tx_commit(r: &mut Recorder<Self>, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        let gate = r.inner.tx_commit(cx, tx, out);
        if r.has(Fault::TxLenNotStored) {
            without(out, |action| matches!(action, Action::PutCached { .. }));
        }
        let first = out.as_slice().iter().any(|action| matches!(action, Action::Resume { .. }));
        let tx_len = tx_len(out);
        if first || tx_len.is_some() {
            r.push(Step::CommitRequested { tx });
        }
        if let Some((addr, true)) = tx_len {
            r.shared.with(|log| log.notes.tx_lens.insert(addr, (tx, false)));
        }
        Self::note(r, out);
        gate
    }

    fn tx_abort(r: &mut Recorder<Self>, cx: &Ctx, tx: TxId, why: AbortCause, out: &mut Actions) -> Gate {
        let gate = r.inner.tx_abort(cx, tx, why, out);
        if r.has(Fault::AbortKeepsLines) {
            without(out, |action| matches!(action, Action::InvalidateTagged(_)));
        }
        r.push(Step::Abort { tx, conflict: why == AbortCause::Conflict });
        r.shared.with(|log| {
            // Its TxLen, if it was about to be stored, is not.
            log.notes.tx_lens.retain(|_, (other, _)| *other != tx);
            for action in out.as_slice() {
                if let Action::Resume { id } = action {
                    log.notes.forgets.insert(*id, tx);
                }
            }
        });
        Self::note(r, out);
        gate
    }

    fn merge(r: &Recorder<Self>, line: LineAddr, verdict: Merge, resident: LineTag, incoming: LineTag) -> Merge {
        let verdict = if r.has(Fault::MergeAlwaysOverwrites) { Merge::Overwrite } else { verdict };
        if let (Merge::Overwrite, Some(line)) = (verdict, Self::number(line))
            && incoming.is_some()
            && !resident.is_some()
        {
            r.push(Step::Overwrite { line });
        }
        verdict
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
        let mut verdict = match r.has(Fault::TaggedLinesGoHome) {
            true => Evict::Proceed,
            false => r.inner.evict(cx, from, line, tag, data, out),
        };
        if r.has(Fault::MigrationOvertaken) && matches!(verdict, Evict::After(_)) && !tag.is_some() {
            verdict = Evict::Proceed;
        }
        for slot in out.as_slice().iter().filter_map(|action| spilled(r, action)) {
            r.push(Step::Spill { slot });
        }
        let stamp = stamp_of(data);
        match (&verdict, Self::number(line)) {
            (Evict::Proceed, Some(line)) => r.push(Step::WriteHome { line, stamp }),
            (Evict::To { at, .. }, Some(line)) => r.push(Step::PrematureFlush { line, stamp, at: *at }),
            _ => {}
        }
        if let Evict::To { at, .. } = verdict {
            r.shared.with(|log| log.notes.last = Some((line, at)));
        }
        Self::note(r, out);
        verdict
    }

    fn fill(r: &mut Recorder<Self>, cx: &Ctx, line: LineAddr, tx: Option<TxId>, out: &mut Actions) -> Fill {
        let verdict = match r.has(Fault::FillIgnoresEntries) {
            true => Fill::Home { search_cycles: 0, serial: false },
            false => r.inner.fill(cx, line, tx, out),
        };
        match (&verdict, Self::number(line)) {
            (Fill::Home { .. }, Some(line)) => r.push(Step::Fetch { line, by: tx }),
            (Fill::From { at, .. }, Some(line)) => r.push(Step::Reload { line, by: tx, from: *at }),
            _ => {}
        }
        Self::note(r, out);
        verdict
    }

    fn probe(r: &mut Recorder<Self>, cx: &Ctx, request: &Request, out: &mut Actions) -> Probe {
        let verdict = match r.has(Fault::ProbeGrants) {
            true => Probe::Grant,
            false => r.inner.probe(cx, request, out),
        };
        if let (Probe::Grant, Some(line)) = (verdict, Self::number(request.line)) {
            r.push(Step::Access { line, by: request.tx });
        }
        Self::note(r, out);
        verdict
    }

    fn acked(r: &mut Recorder<Self>, cx: &Ctx, token: Token, addr: PhysAddr, out: &mut Actions) {
        r.inner.acked(cx, token, addr, out);
        if let Some(line) = r.shared.with(|log| log.notes.migrations.remove(&token)) {
            r.push(Step::EntryFreed { line });
        }
        Self::note(r, out);
    }

    fn woken(r: &mut Recorder<Self>, cx: &Ctx, id: u64, out: &mut Actions) {
        r.inner.woken(cx, id, out);
        if let Some(tx) = r.shared.with(|log| log.notes.forgets.remove(&id)) {
            r.push(Step::Forgotten { tx });
        }
        if r.has(Fault::OpenEntryMigrates)
            && let Some((line, from)) = r.shared.with(|log| log.notes.last.take())
        {
            // As if the engine did not compare TxStates; the token is one that the design never uses.
            let (by, cause, token) = (Origin::Controller, Cause::Migration, Some(Token(1 << 60)));
            let (to, len, below_held) = (line.base(), 64, false);
            out.push(Action::Copy(CopyRequest { by, from, to, len, below_held, cause, token }));
        }
        Self::note(r, out);
    }

    fn flush(r: &mut Recorder<Self>, cx: &Ctx, line: LineAddr, tag: LineTag, out: &mut Actions) -> FlushVerdict {
        let verdict = r.inner.flush(cx, line, tag, out);
        if let (FlushVerdict::Proceed, Some(line)) = (verdict, Self::number(line)) {
            r.push(Step::Clean { line });
        }
        verdict
    }

    fn context_switch(
        r: &mut Recorder<Self>,
        cx: &Ctx,
        leaving: Option<TxId>,
        coming: Option<TxId>,
        out: &mut Actions,
    ) -> Gate {
        let gate = r.inner.context_switch(cx, leaving, coming, out);
        leaving.into_iter().for_each(|tx| r.push(Step::Leave { tx }));
        coming.into_iter().for_each(|tx| r.push(Step::Come { tx }));
        gate
    }

    fn crash(r: &Recorder<Self>, view: &CrashView<'_>, sink: &mut CrashSink<'_>) -> Result<(), BudgetSpent> {
        let lines = match (r.has(Fault::FlushDropsLine), view.lines) {
            (true, [lines @ .., _]) => lines,
            (_, lines) => lines,
        };
        r.inner.crash(&CrashView { domain: view.domain, geometry: view.geometry, lines, staged: view.staged }, sink)
    }
}
