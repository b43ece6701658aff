//! A design for tests of the mesh: a transaction begins with one action, which its number describes, and the design notes when
//! the answer arrives.

use durasim_contract::{
    AbortCause, Action, Actions, BudgetSpent, CopyRequest, CrashImage, CrashSink, CrashView, Ctx, Design, Durability,
    Gate, Geometry, HardwareCost, Hooks, Message, Node, Origin, RecoveryCut, RecoveryReport, RegionRequest, SpecError,
    Stateful, Token, kept,
};
use durasim_machine::PMEM_BASE;
use durasim_types::{Cause, CoreId, Cycle, LINE_BYTES, Line, PhysAddr, Stats, TxId};

/// The design.
pub struct Prober;

/// First action of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A write of this many bytes by hardware beside the L1D of the core.
    AppendFromCore(u64),
    /// A write of this many bytes by hardware beside the last level.
    AppendFromLlc(u64),
    /// A read by hardware beside the L1D of the core.
    ReadByCore,
    /// A read by hardware beside the last level.
    ReadByLlc,
    /// A message with this many bytes to a controller and one without data back.
    Message(u64),
    /// A clean of a line that some core has.
    Clean,
    /// A copy of a line to the one 64 lines further.
    Copy,
    /// A message to a controller, from there to the next one, and back.
    Relay,
    /// A message without data to the bank of a line, and one back.
    BankMessage,
}

pub const KINDS: [Kind; 10] = [
    Kind::AppendFromCore(64),
    Kind::AppendFromCore(8),
    Kind::AppendFromLlc(64),
    Kind::ReadByCore,
    Kind::ReadByLlc,
    Kind::Message(64),
    Kind::Clean,
    Kind::Copy,
    Kind::Relay,
    Kind::BankMessage,
];

/// The number of a transaction of `core` with an action of a kind about a line or a controller.
pub fn tx_of(kind: Kind, core: CoreId, controller: u16, line: u64) -> TxId {
    let number = KINDS.iter().position(|other| *other == kind).expect("it is one of them") as u64;
    TxId((number + 1) << 48 | u64::from(core.0) << 40 | u64::from(controller) << 32 | line)
}

/// A line of persistent memory by its number.
pub fn line_of(number: u64) -> PhysAddr {
    PMEM_BASE.plus(number * LINE_BYTES)
}

impl Design for Prober {
    const NAME: &'static str = "prober";
    const HOOKS: Hooks = Hooks::TX.with(Hooks::READ);
    type Spec = ();

    fn reserve((): &(), _: &Geometry) -> Vec<RegionRequest> {
        Vec::new()
    }

    fn build((): &(), _: &Geometry) -> Result<impl Stateful, SpecError> {
        Ok(Answers::default())
    }

    fn recover((): &(), _: &Geometry, _: &mut CrashImage) -> Result<RecoveryReport, RecoveryCut> {
        Ok(RecoveryReport::default())
    }

    fn cost((): &(), _: &Geometry) -> HardwareCost {
        HardwareCost::default()
    }
}

/// Number of answers that have arrived, and the cycle of the last one.
#[derive(Clone, Debug, Default)]
struct Answers((u64, Cycle));

impl Answers {
    fn note(&mut self, cycle: Cycle) {
        self.0 = (self.0.0 + 1, cycle);
    }
}

impl Stateful for Answers {
    kept!(0: (u64, Cycle));
}

impl Durability for Answers {
    fn tx_begin(&mut self, cx: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        let kind = KINDS[(tx.0 >> 48) as usize - 1];
        let (controller, at) = ((tx.0 >> 32 & 0xff) as u16, line_of(tx.0 & 0xffff_ffff));
        let (cause, token, by) = (Cause::Log, Token(tx.0), Origin::Core(cx.core));
        match kind {
            Kind::AppendFromCore(bytes) => out.append(by, at, &[1; 64][..bytes as usize], cause, Some(token)),
            Kind::AppendFromLlc(bytes) => out.append(Origin::Llc, at, &[1; 64][..bytes as usize], cause, Some(token)),
            Kind::ReadByCore => out.push(Action::Read { by, at, token }),
            Kind::ReadByLlc => out.push(Action::Read { by: Origin::Llc, at, token }),
            Kind::Clean => out.push(Action::CleanTo { line: at.line(), to: None, token: Some(token) }),
            Kind::Copy => {
                let to = at.plus(64 * LINE_BYTES);
                out.push(Action::Copy(CopyRequest {
                    by,
                    from: at,
                    to,
                    len: 64,
                    below_held: false,
                    cause,
                    token: Some(token),
                }));
            }
            Kind::Message(size_bytes) => {
                let message = Message { kind: 0, a: cx.core.0.into(), b: 0 };
                let (from, to) = (Node::Core(cx.core), Node::Controller(controller));
                out.push(Action::Send { from, to, message, size_bytes });
            }
            Kind::BankMessage => {
                let message = Message { kind: 0, a: cx.core.0.into(), b: 0 };
                let (from, to) = (Node::Core(cx.core), Node::LlcBank((at.line().0 % 16) as u16));
                out.push(Action::Send { from, to, message, size_bytes: 0 });
            }
            Kind::Relay => {
                let message = Message { kind: 1, a: cx.core.0.into(), b: 0 };
                let (from, to) = (Node::Core(cx.core), Node::Controller(controller));
                out.push(Action::Send { from, to, message, size_bytes: 0 });
            }
        }
        Gate::Done
    }

    fn tx_commit(&mut self, _: &Ctx, _: TxId, _: &mut Actions) -> Gate {
        Gate::Done
    }

    fn tx_abort(&mut self, _: &Ctx, _: TxId, _: AbortCause, _: &mut Actions) -> Gate {
        Gate::Done
    }

    fn message(&mut self, cx: &Ctx, at: Node, message: Message, out: &mut Actions) {
        match at {
            Node::Controller(number) if message.kind == 1 => {
                let (to, message) = (Node::Controller((number + 1) % 4), Message { kind: 0, ..message });
                out.push(Action::Send { from: at, to, message, size_bytes: 64 });
            }
            Node::Controller(_) => {
                let to = Node::Core(CoreId(message.a as u16));
                out.push(Action::Send { from: at, to, message, size_bytes: 0 });
            }
            Node::LlcBank(_) => {
                let to = Node::Core(CoreId(message.a as u16));
                out.push(Action::Send { from: at, to, message, size_bytes: 0 });
            }
            Node::Core(_) => self.note(cx.cycle),
        }
    }

    fn acked(&mut self, cx: &Ctx, _: Token, _: PhysAddr, _: &mut Actions) {
        self.note(cx.cycle);
    }

    fn read_done(&mut self, cx: &Ctx, _: Token, _: PhysAddr, _: &Line, _: &mut Actions) {
        self.note(cx.cycle);
    }

    fn crash(&self, _: &CrashView<'_>, _: &mut CrashSink<'_>) -> Result<(), BudgetSpent> {
        Ok(())
    }

    fn stats(&self, stats: &mut Stats) {
        stats.count("prober.answers", self.0.0, "Answers that have arrived");
        stats.count("prober.answer_cycle", self.0.1, "When the last of them did");
    }
}
