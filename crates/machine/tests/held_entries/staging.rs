//! A design for tests of the machine: the writes of a transaction are staged in held entries of the write queues until
//! messages to the controllers release them. What it sees of the queues it keeps through a power failure.

use durasim_contract::{
    AbortCause, Accept, Action, Actions, Arrival, BudgetSpent, CrashImage, CrashSink, CrashView, Ctx, Design,
    Durability, Evict, Gate, Geometry, HardwareCost, Hooks, LevelId, LineTag, Message, Node, RecoveryCut,
    RecoveryReport, RegionRequest, Signal, SpecError, Stateful, Store, Token, Wait, kept, snapshot,
};
use durasim_types::{Cause, CoreId, Line, LineAddr, Stats, TxId};
use serde::{Deserialize, Serialize};

/// The design.
pub struct Staging;

impl Design for Staging {
    const NAME: &'static str = "staging";
    const HOOKS: Hooks = Hooks::TX.with(Hooks::STORE).with(Hooks::EVICT).with(Hooks::ACCEPT);
    type Spec = ();

    fn reserve((): &(), _: &Geometry) -> Vec<RegionRequest> {
        Vec::new()
    }

    fn build((): &(), geometry: &Geometry) -> Result<impl Stateful, SpecError> {
        let cores = vec![Core::default(); usize::from(geometry.cores)];
        Ok(Protocol { controllers: geometry.controllers, contents: Contents { cores, arrived: Vec::new() } })
    }

    fn recover((): &(), _: &Geometry, _: &mut CrashImage) -> Result<RecoveryReport, RecoveryCut> {
        Ok(RecoveryReport::default())
    }

    fn cost((): &(), _: &Geometry) -> HardwareCost {
        HardwareCost::default()
    }
}

/// Held entries that a power failure finds in the queues: controller, group and line of each.
pub type Held = Vec<(u16, u64, u64)>;
/// The controllers at which writes have arrived so far, with their lines.
pub type Arrived = Vec<(u16, u64)>;

/// Message kinds of the two-phase commit.
const COMMIT: u16 = 1;
const COMMIT_ACK: u16 = 2;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Core {
    tx: Option<TxId>,
    /// Lines that the commit will flush.
    marked: Vec<LineAddr>,
    /// The flushes are handed over; the commit messages are next.
    prepared: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Contents {
    cores: Vec<Core>,
    arrived: Arrived,
}

#[derive(Clone, Debug)]
struct Protocol {
    controllers: u16,
    contents: Contents,
}

impl Stateful for Protocol {
    kept!(contents: Contents);

    fn fits(&self, contents: &Contents) -> Result<(), &'static str> {
        if contents.cores.len() != self.contents.cores.len() {
            return Err("another number of cores");
        }
        Ok(())
    }
}

impl Durability for Protocol {
    fn tx_begin(&mut self, cx: &Ctx, tx: TxId, _: &mut Actions) -> Gate {
        self.contents.cores[cx.core.0 as usize] = Core { tx: Some(tx), ..Core::default() };
        Gate::Done
    }

    fn store(&mut self, cx: &Ctx, store: &Store<'_>, tag: &mut LineTag, out: &mut Actions) -> Gate {
        if let Some(tx) = store.tx
            && tag.0 != tx.0
        {
            // An abort finds at home what was there before the transaction.
            out.push(Action::CleanTo { line: store.line(), to: None, token: None });
            *tag = LineTag(tx.0);
            self.contents.cores[cx.core.0 as usize].marked.push(store.line());
        }
        Gate::Done
    }

    /// Prepare: every marked line is flushed to its controller, where it is held. Commit: when all are acknowledged,
    /// each controller is notified; the first acknowledgement completes the transaction.
    fn tx_commit(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        let core = &mut self.contents.cores[cx.core.0 as usize];
        if !core.prepared {
            core.prepared = true;
            for line in core.marked.drain(..) {
                out.push(Action::CleanTo { line, to: None, token: Some(Token(tx.0)) });
            }
            return Gate::Retry(Wait::Acked(Token(tx.0)));
        }
        for controller in 0..self.controllers {
            let message = Message { kind: COMMIT, a: tx.0, b: u64::from(cx.core.0) };
            let (from, to) = (Node::Core(cx.core), Node::Controller(controller));
            out.push(Action::Send { from, to, message, size_bytes: 0 });
        }
        core.tx = None;
        Gate::After(Wait::Signal(Signal(tx.0)))
    }

    /// Held entries of the controllers are discarded, lines in the caches are invalidated.
    fn tx_abort(&mut self, cx: &Ctx, tx: TxId, _: AbortCause, out: &mut Actions) -> Gate {
        for controller in 0..self.controllers {
            out.push(Action::DiscardHeld { controller, group: tx.0 });
        }
        out.push(Action::InvalidateTagged(tx));
        self.contents.cores[cx.core.0 as usize] = Core::default();
        Gate::Done
    }

    /// A line that a commit has flushed may keep its tag: it is an ordinary line from then on.
    fn live(&self, tag: LineTag) -> bool {
        self.contents.cores.iter().any(|core| core.tx == Some(TxId(tag.0)))
    }

    fn belongs_to(&self, tag: LineTag, tx: TxId) -> bool {
        tag.0 == tx.0
    }

    fn evict(&mut self, _: &Ctx, _: LevelId, line: LineAddr, tag: LineTag, _: &Line, _: &mut Actions) -> Evict {
        if tag.is_some() {
            Evict::To { at: line.base(), cause: Cause::Data, token: Some(Token(tag.0)) }
        } else {
            Evict::Proceed
        }
    }

    fn accept(&mut self, _: &Ctx, arrival: &Arrival, _: &mut Actions) -> Accept {
        self.contents.arrived.push((arrival.controller, arrival.line.0));
        Accept::Queue { held: arrival.token.map(|token| token.0) }
    }

    fn message(&mut self, _: &Ctx, at: Node, message: Message, out: &mut Actions) {
        match (at, message.kind) {
            (Node::Controller(controller), COMMIT) => {
                out.push(Action::ReleaseHeld { controller, group: message.a, line: None });
                let to = Node::Core(CoreId(message.b as u16));
                let answer = Message { kind: COMMIT_ACK, ..message };
                out.push(Action::Send { from: at, to, message: answer, size_bytes: 0 });
            }
            (Node::Core(_), COMMIT_ACK) => out.push(Action::Raise(Signal(message.a))),
            _ => unreachable!("no message of this kind is sent"),
        }
    }

    fn crash(&self, view: &CrashView<'_>, sink: &mut CrashSink<'_>) -> Result<(), BudgetSpent> {
        let held: Held = view.staged.iter().filter_map(|h| Some((h.controller, h.group?, h.line.0))).collect();
        sink.keep("held", snapshot::to_bytes(&held));
        sink.keep("arrived", snapshot::to_bytes(&self.contents.arrived));
        Ok(())
    }

    fn stats(&self, _: &mut Stats) {}
}
