//! Meaning of the hooks of LAD for its protocol.

use super::Lad;
use crate::harness::recorder::{Observe, Recorder};
use durasim_contract::{
    AbortCause, Accept, Action, Actions, ActiveFault, Arrival, CrashImage, CrashSink, CrashView, Ctx, Departure,
    FlushVerdict, Gate, LineTag, Message, Node, Store, Token, snapshot,
};
use durasim_types::{Domain, LineAddr, Pages, PhysAddr, TxId};
use std::collections::{BTreeMap, BTreeSet};

/// Threads that runs have at most.
const THREADS_MAX: usize = 8;
/// The kinds of tokens of the design.
const UNDO_TOKEN: u64 = 1 << 32;
const VOID_TOKEN: u64 = 1 << 34;
/// DTX_Commit among the messages of the design.
const DTX_COMMIT: u16 = 1;

/// LAD_TID and DTX_ID in a token, a group or a message of the design.
pub type Name = (u8, u8);

fn name(number: u64) -> Name {
    ((number >> 8) as u8, number as u8)
}

/// The state that a controller keeps through a power failure: DTX_CID, the place of the oldest undo entry, and their
/// number.
pub type Kept = (Vec<u8>, u64, u64);

/// A step of the design.
#[derive(Clone, Debug)]
pub enum Step {
    /// A transaction begins; the state that the controllers keep.
    Begin {
        thread: u8,
        kept: Vec<Kept>,
    },
    Store {
        thread: u8,
        line: u8,
        stamp: u64,
    },
    PlainStore {
        line: u8,
        stamp: u64,
    },
    /// A load finds this stamp.
    Load {
        line: u8,
        stamp: u64,
    },
    /// A line is flushed before its transaction ends.
    Flush {
        of: Name,
        line: u8,
    },
    /// The program cleans a line; the transaction that marks it.
    Clean {
        of: Option<Name>,
        line: u8,
    },
    /// A transaction ends: these lines are flushed.
    End {
        thread: u8,
        lines: Vec<u8>,
    },
    /// Its DTX_Commit is sent.
    Commit {
        thread: u8,
    },
    /// A queue accepts a write: a flush, or an ordinary one with the stamp that the observer finds.
    Accept {
        controller: u16,
        line: u8,
        of: Option<Name>,
        held: bool,
        stamp: Option<u64>,
    },
    /// A queue accepts a write of no bytes, by which a clean requests the acknowledgement of earlier writes.
    Empty {
        line: u8,
    },
    FlushAck {
        thread: u8,
    },
    CommitArrives {
        of: Name,
        controller: u16,
    },
    AckArrives {
        of: Name,
    },
    Drain {
        line: u8,
    },
    Log {
        line: u8,
    },
    OldValueWritten {
        controller: u16,
    },
    Recorded {
        controller: u16,
    },
    Void {
        controller: u16,
        line: u8,
        of: Name,
    },
    /// The state that the controllers keep at a crash point.
    PowerFails {
        kept: Vec<Kept>,
    },
}

/// Notes of the recorder between one hook and another.
#[derive(Default)]
pub struct Notes {
    /// Threads whose transactions have ended and are not committed.
    ending: BTreeSet<u32>,
    /// The line whose undo entry each controller makes.
    logging: BTreeMap<u16, u8>,
    /// The line and the transaction in each line of the undo logs that names them.
    headers: BTreeMap<u64, (u8, Name)>,
}

/// The lines that a list of actions flushes, with their transaction.
fn flushed(out: &Actions) -> Vec<(Name, u8)> {
    let flush = |action: &Action| match action {
        Action::CleanTo { line, token: Some(token), .. } => Some((name(token.0), Lad::number(*line)?)),
        _ => None,
    };
    out.as_slice().iter().filter_map(flush).collect()
}

/// The state of the controllers in a crash image.
pub fn kept_in(image: &CrashImage) -> Vec<Kept> {
    let bytes = image.structure("lad-controllers").expect("controllers keep their registers");
    let mut kept: Vec<Kept> = snapshot::from_bytes(bytes).expect("they are DTX_CID, head and number of undo entries");
    kept.iter_mut().for_each(|(committed, ..)| committed.truncate(THREADS_MAX));
    kept
}

fn kept(r: &Recorder<Lad>) -> Vec<Kept> {
    let mut image = CrashImage::new(Pages::new(r.geometry.pmem_base, r.geometry.pmem_bytes));
    let view = CrashView { domain: Domain::Adr, geometry: &r.geometry, lines: &[], staged: &[] };
    r.inner.crash(&view, &mut CrashSink::new(&mut image, u64::MAX)).expect("there is energy");
    kept_in(&image)
}

/// Undo entries that start.
fn note_logs(r: &Recorder<Lad>, out: &Actions) {
    for action in out.as_slice() {
        if let Action::Copy(copy) = action
            && let Some(line) = Lad::number(copy.from.line())
        {
            let controller = r.geometry.controller_of(copy.from.line());
            r.shared.with(|log| log.notes.logging.insert(controller, line));
            r.push(Step::Log { line });
        }
    }
}

impl Observe for Lad {
    type Step = Step;
    type Notes = Notes;
    type Planted = ActiveFault;
    const LINES: u8 = 12;

    /// Flushes before the end of a transaction, and undo entries.
    fn note(r: &Recorder<Self>, out: &Actions) {
        flushed(out).into_iter().for_each(|(of, line)| r.push(Step::Flush { of, line }));
        note_logs(r, out);
    }

    fn tx_begin(r: &mut Recorder<Self>, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        let gate = r.inner.tx_begin(cx, tx, out);
        if gate == Gate::Done {
            r.push(Step::Begin { thread: cx.thread as u8, kept: kept(r) });
        }
        Self::note(r, out);
        gate
    }

    fn store(r: &mut Recorder<Self>, cx: &Ctx, store: &Store<'_>, tag: &mut LineTag, out: &mut Actions) -> Gate {
        let gate = r.inner.store(cx, store, tag, out);
        if let Some(line) = Self::number(store.line()) {
            let (thread, stamp) = (cx.thread as u8, store.data);
            r.push(match store.tx {
                Some(_) => Step::Store { thread, line, stamp },
                None => Step::PlainStore { line, stamp },
            });
        }
        gate
    }

    fn tx_commit(r: &mut Recorder<Self>, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        let gate = r.inner.tx_commit(cx, tx, out);
        let thread = cx.thread as u8;
        if r.shared.with(|log| log.notes.ending.insert(cx.thread)) {
            let lines = flushed(out).into_iter().map(|(_, line)| line).collect();
            r.push(Step::End { thread, lines });
        }
        if out.as_slice().iter().any(|action| matches!(action, Action::Send { .. })) {
            r.push(Step::Commit { thread });
            r.shared.with(|log| log.notes.ending.remove(&cx.thread));
        }
        gate
    }

    fn tx_abort(_: &mut Recorder<Self>, _: &Ctx, _: TxId, _: AbortCause, _: &mut Actions) -> Gate {
        unreachable!("the driver aborts nothing")
    }

    fn flush(r: &mut Recorder<Self>, cx: &Ctx, line: LineAddr, tag: LineTag, out: &mut Actions) -> FlushVerdict {
        let verdict = r.inner.flush(cx, line, tag, out);
        if let Some(line) = Self::number(line) {
            let of = flushed(out).first().map(|(of, _)| *of);
            r.push(Step::Clean { of, line });
        }
        verdict
    }

    fn accept(r: &mut Recorder<Self>, cx: &Ctx, arrival: &Arrival, out: &mut Actions) -> Accept {
        let verdict = r.inner.accept(cx, arrival, out);
        Self::note(r, out);
        if let (Accept::Queue { held }, Some(line)) = (&verdict, Self::number(arrival.line)) {
            let of = arrival.token.map(|token| name(token.0));
            let held = held.is_some();
            r.push(match arrival.mask {
                0 => Step::Empty { line },
                _ => Step::Accept { controller: arrival.controller, line, of, held, stamp: None },
            });
        }
        verdict
    }

    fn drained(r: &mut Recorder<Self>, cx: &Ctx, departure: &Departure, out: &mut Actions) {
        r.inner.drained(cx, departure, out);
        if let Some(line) = Self::number(departure.line) {
            r.push(Step::Drain { line });
        }
        Self::note(r, out);
    }

    fn acked(r: &mut Recorder<Self>, cx: &Ctx, token: Token, addr: PhysAddr, out: &mut Actions) {
        r.inner.acked(cx, token, addr, out);
        let controller = (token.0 & 0xffff) as u16;
        let header = out.as_slice().iter().find_map(|action| match action {
            Action::Append { at, payload, .. } => Some((at.line().0, payload.bytes().to_vec())),
            _ => None,
        });
        let step = r.shared.with(|log| match header {
            Some((at, bytes)) if token.0 & UNDO_TOKEN != 0 => {
                let dtx = u64::from_le_bytes(bytes[8..16].try_into().expect("it names a DTX"));
                let line = log.notes.logging[&controller];
                log.notes.headers.insert(at, (line, name(dtx)));
                Step::OldValueWritten { controller }
            }
            None if token.0 & UNDO_TOKEN != 0 => Step::Recorded { controller },
            _ if token.0 & VOID_TOKEN != 0 => {
                let (line, of) = log.notes.headers[&addr.line().0];
                Step::Void { controller, line, of }
            }
            _ => Step::FlushAck { thread: name(token.0).0 },
        });
        r.push(step);
        Self::note(r, out);
    }

    fn message(r: &mut Recorder<Self>, cx: &Ctx, at: Node, message: Message, out: &mut Actions) {
        r.inner.message(cx, at, message, out);
        let of = name(message.a);
        r.push(match at {
            Node::Controller(controller) if message.kind == DTX_COMMIT => Step::CommitArrives { of, controller },
            _ => Step::AckArrives { of },
        });
        Self::note(r, out);
    }
}
