//! A design for tests of the machine: it sends what the number of a transaction says, and notes when the answers arrive.

use durasim_contract::{
    AbortCause, Action, Actions, BudgetSpent, CopyRequest, CrashImage, CrashSink, CrashView, Ctx, Design, Durability,
    Gate, Geometry, HardwareCost, Hooks, LineTag, Message, Node, Origin, Payload, RecoveryCut, RecoveryReport,
    RegionRequest, Scanned, SpecError, Stateful, Token, kept,
};
use durasim_machine::PMEM_BASE;
use durasim_types::{Cause, CoreId, Cycle, LINE_BYTES, Line, LineAddr, PhysAddr, Stats, TxId};

/// The design.
pub struct Sender;

/// First actions of a transaction: `count` of these at once, each of another line from line 100 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A write of this many bytes.
    Append(Origin, u64),
    /// A copy of a line.
    Copy(Origin),
    /// A read of a line.
    Read(Origin),
    /// A message with this many bytes there and one without back.
    Message(u64),
    /// A clean of what is dirty.
    Clean,
    /// The undoing of a word of a line that no cache has.
    Restore,
    Barrier,
    /// A scan that writes home what is dirty; its writes are not acknowledged.
    Scan,
}

pub const CORE: CoreId = CoreId(0);
pub const KINDS: [Kind; 17] = [
    Kind::Append(Origin::Core(CORE), 64),
    Kind::Append(Origin::Core(CORE), 8),
    Kind::Append(Origin::Llc, 64),
    Kind::Append(Origin::Llc, 8),
    Kind::Append(Origin::Controller, 64),
    Kind::Copy(Origin::Core(CORE)),
    Kind::Copy(Origin::Llc),
    Kind::Copy(Origin::Controller),
    Kind::Read(Origin::Core(CORE)),
    Kind::Read(Origin::Llc),
    Kind::Read(Origin::Controller),
    Kind::Message(0),
    Kind::Message(64),
    Kind::Clean,
    Kind::Restore,
    Kind::Barrier,
    Kind::Scan,
];

/// The transaction that starts two timers of one cycle: a line is cleaned at the first, a barrier sent at the second.
pub const CLEAN_THEN_BARRIER: TxId = TxId(10_000);

/// Its timers. Scans have smaller numbers.
const CLEAN: u64 = 100;
const BARRIER: u64 = 101;

/// The line of an action.
pub fn line_of(number: u64) -> PhysAddr {
    PMEM_BASE.plus((100 + number) * LINE_BYTES)
}

impl Design for Sender {
    const NAME: &'static str = "sender";
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

/// The cycles in which answers have arrived.
#[derive(Clone, Debug, Default)]
struct Answers(Vec<Cycle>);

impl Stateful for Answers {
    kept!(0: Vec<Cycle>);
}

impl Durability for Answers {
    /// Transaction 100 k + n begins with n actions of kind k.
    fn tx_begin(&mut self, _: &Ctx, tx: TxId, out: &mut Actions) -> Gate {
        if tx == CLEAN_THEN_BARRIER {
            (CLEAN..=BARRIER).for_each(|id| out.push(Action::Timer { id, after_cycles: 10 }));
            return Gate::Done;
        }
        let kind = KINDS[(tx.0 / 100) as usize];
        let cause = Cause::Log;
        for number in 0..tx.0 % 100 {
            let (at, token) = (line_of(number), Token(number));
            match kind {
                Kind::Append(from, bytes) => out.append(from, at, &[1; 64][..bytes as usize], cause, Some(token)),
                Kind::Copy(by) => {
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
                Kind::Read(by) => out.push(Action::Read { by, at, token }),
                Kind::Message(size_bytes) => {
                    let message = Message { kind: 0, a: 0, b: 0 };
                    let (from, to) = (Node::Core(CORE), Node::Controller(0));
                    out.push(Action::Send { from, to, message, size_bytes });
                }
                Kind::Restore => {
                    let payload = Payload::new(&[1; 8]);
                    out.push(Action::Restore { addr: at, payload, token: Some(token) });
                }
                Kind::Scan => out.push(Action::Scan { id: number, lines_per_cycle: u32::MAX, takes_ports: false }),
                Kind::Clean => out.push(Action::CleanTo { line: at.line(), to: None, token: Some(token) }),
                Kind::Barrier => out.push(Action::Barrier { token, cause }),
            }
        }
        Gate::Done
    }

    fn woken(&mut self, _: &Ctx, id: u64, out: &mut Actions) {
        match id {
            CLEAN => out.push(Action::CleanTo { line: line_of(0).line(), to: None, token: None }),
            BARRIER => out.push(Action::Barrier { token: Token(0), cause: Cause::Log }),
            _ => {}
        }
    }

    fn tx_commit(&mut self, _: &Ctx, _: TxId, _: &mut Actions) -> Gate {
        Gate::Done
    }

    fn tx_abort(&mut self, _: &Ctx, _: TxId, _: AbortCause, _: &mut Actions) -> Gate {
        Gate::Done
    }

    fn message(&mut self, cx: &Ctx, at: Node, message: Message, out: &mut Actions) {
        match at {
            Node::Controller(_) | Node::LlcBank(_) => {
                out.push(Action::Send { from: at, to: Node::Core(CORE), message, size_bytes: 0 });
            }
            Node::Core(_) => self.0.push(cx.cycle),
        }
    }

    fn acked(&mut self, cx: &Ctx, _: Token, _: PhysAddr, _: &mut Actions) {
        self.0.push(cx.cycle);
    }

    fn read_done(&mut self, cx: &Ctx, _: Token, _: PhysAddr, _: &Line, _: &mut Actions) {
        self.0.push(cx.cycle);
    }

    fn scanned(&mut self, _: &Ctx, _: u64, _: LineAddr, _: bool, _: &mut LineTag) -> Scanned {
        Scanned::Clean
    }

    fn crash(&self, _: &CrashView<'_>, _: &mut CrashSink<'_>) -> Result<(), BudgetSpent> {
        Ok(())
    }

    fn stats(&self, stats: &mut Stats) {
        for (number, cycle) in self.0.iter().enumerate() {
            stats.count(format!("sender.answer_{number}"), *cycle, "When this answer arrived");
        }
    }
}
