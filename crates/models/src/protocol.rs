//! The part that all models share: a machine runs, power fails, recovery makes one durable write after the other and
//! may be interrupted at each of them, and the machine starts again.
//!
//! A [`Protocol`] gives the steps of the running machine, the state that survives a power failure, and the writes of
//! recovery. [`ProtocolModel`] makes of them the state machine that the checker explores.

use stateright::{Model, Property};
use std::fmt::Debug;
use std::hash::Hash;

/// Recovery that is interrupted and run again, and recovery of what is recovered, end in the image of the first,
/// uninterrupted one.
pub const RECOVERY_CONVERGES: &str = "recovery converges";

/// A transaction: the thread and how many of its transactions came before, plus one. No hardware knows this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tx {
    /// The thread.
    pub thread: u8,
    /// From 1.
    pub number: u32,
}

/// The rules of one durability design, as steps of an abstract machine.
pub trait Protocol: Copy + Debug + Eq + Hash + Send + Sync + 'static {
    /// The size of the model.
    type Bounds: Clone + Debug + Send + Sync;
    /// Mistakes that can be planted in the protocol.
    type Fault: Copy + Debug + Eq + Send + Sync;
    /// A step of the running machine.
    type Action: Copy + Debug + Eq + Hash + Send + Sync;
    /// The state of the running machine.
    type Machine: Clone + Debug + Eq + Hash + Send + Sync;
    /// The version of a line.
    type Version: Copy + Debug + Eq + Hash + Ord + Default + Send + Sync;
    /// The state that a power failure leaves.
    type Durable: Clone + Debug + Eq + Hash + Send + Sync;
    /// One durable write of recovery.
    type Write: Clone + Debug + Eq + Hash + Send + Sync;
    /// The outcomes of recovery that are right after one power failure.
    type Judge: Clone + Debug + Eq + Hash + Send + Sync;

    /// The machine before the first step.
    fn start(bounds: &Self::Bounds) -> Self::Machine;
    /// All steps that could be allowed; [`Protocol::run`] decides.
    fn candidates(model: &ProtocolModel<Self>, machine: &Self::Machine, actions: &mut Vec<Self::Action>);
    /// The machine after a step, or `None` if the protocol does not allow the step there.
    fn run(model: &ProtocolModel<Self>, machine: &Self::Machine, action: Self::Action) -> Option<Self::Machine>;
    /// A power failure.
    fn crash(model: &ProtocolModel<Self>, machine: &Self::Machine) -> PowerFailure<Self>;
    /// The writes of a recovery from this state, in order.
    fn plan(model: &ProtocolModel<Self>, durable: &Self::Durable) -> Vec<Self::Write>;
    /// Makes one write of recovery.
    fn write(durable: &mut Self::Durable, write: &Self::Write);
    /// Each line at its home address.
    fn home(durable: &Self::Durable) -> &Vec<Self::Version>;
    /// The machine that starts again from the state that recovery left.
    fn restart(bounds: &Self::Bounds, recovery: &Recovery<Self>) -> Self::Machine;
    /// The properties that these bounds can show.
    fn properties(bounds: &Self::Bounds) -> Vec<Property<ProtocolModel<Self>>>;
}

/// The state that a power failure leaves, and what is right after it.
pub struct PowerFailure<P: Protocol> {
    /// The state that survives.
    pub durable: P::Durable,
    /// The outcomes that are right.
    pub judge: P::Judge,
    /// Numbers for the next life of the machine.
    pub carried: Carried,
}

/// Numbers that the next life of the machine continues: they name versions, and no hardware has them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Carried {
    /// The number of the last transaction of each thread.
    pub numbers: Vec<u32>,
    /// The number of stores outside of transactions.
    pub plain_stores: u32,
    /// The number of lives after this one.
    pub lives_left: u8,
}

/// The state from a power failure until the end of recovery.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Recovery<P: Protocol> {
    /// The durable state.
    pub durable: P::Durable,
    /// The writes that recovery has still to make, last write first.
    pub todo: Vec<P::Write>,
    /// Whether it was ever interrupted.
    pub cut: bool,
    /// The outcomes that are right.
    pub judge: P::Judge,
    /// The lines that an uninterrupted recovery leaves.
    pub uncut: Vec<P::Version>,
    /// Numbers for the next life.
    pub carried: Carried,
}

impl<P: Protocol> Recovery<P> {
    /// Whether nothing is left to do.
    pub fn has_ended(&self) -> bool {
        self.todo.is_empty()
    }
}

/// A state of the model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum State<P: Protocol> {
    /// The machine runs.
    Running(Box<P::Machine>),
    /// Power has failed.
    Recovering(Box<Recovery<P>>),
}

/// A step of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step<A> {
    /// A step of the running machine.
    Run(A),
    /// A power failure: what survives is flushed.
    Crash,
    /// The next write of recovery.
    RecoveryStep,
    /// A power failure during recovery.
    RecoveryCut,
    /// The start of the machine with what recovery left.
    Restart,
}

/// A protocol in some bounds, with at most one fault.
#[derive(Clone, Debug)]
pub struct ProtocolModel<P: Protocol> {
    /// The bounds.
    pub bounds: P::Bounds,
    /// The planted mistake.
    pub fault: Option<P::Fault>,
}

impl<P: Protocol> ProtocolModel<P> {
    /// The protocol as it is meant.
    pub fn new(bounds: P::Bounds) -> Self {
        ProtocolModel { bounds, fault: None }
    }

    /// The protocol with a planted fault.
    pub fn with_fault(bounds: P::Bounds, fault: P::Fault) -> Self {
        ProtocolModel { bounds, fault: Some(fault) }
    }

    /// Whether this fault is planted.
    pub(crate) fn has(&self, fault: P::Fault) -> bool {
        self.fault == Some(fault)
    }

    /// The state after a power failure, before the first write of recovery.
    pub fn fail(&self, machine: &P::Machine) -> Recovery<P> {
        let PowerFailure { durable, judge, carried } = P::crash(self, machine);
        let uncut = P::home(&self.recovered(durable.clone())).clone();
        Recovery { todo: self.todo(&durable), durable, cut: false, judge, uncut, carried }
    }

    /// The state that an uninterrupted recovery leaves.
    pub fn recovered(&self, mut durable: P::Durable) -> P::Durable {
        P::plan(self, &durable).iter().for_each(|write| P::write(&mut durable, write));
        durable
    }

    fn todo(&self, durable: &P::Durable) -> Vec<P::Write> {
        P::plan(self, durable).into_iter().rev().collect()
    }

    fn recover(&self, recovery: &Recovery<P>, step: Step<P::Action>) -> Option<State<P>> {
        let mut next = recovery.clone();
        match step {
            Step::RecoveryStep => {
                let write = next.todo.pop()?;
                P::write(&mut next.durable, &write);
            }
            Step::RecoveryCut if !recovery.has_ended() => {
                next.todo = self.todo(&next.durable);
                next.cut = true;
            }
            Step::Restart if recovery.has_ended() && recovery.carried.lives_left > 0 => {
                return Some(State::Running(Box::new(P::restart(&self.bounds, recovery))));
            }
            _ => return None,
        }
        Some(State::Recovering(Box::new(next)))
    }

    /// The property that recovery converges.
    pub(crate) fn convergence() -> Property<Self> {
        Property::always(RECOVERY_CONVERGES, |model: &Self, state: &State<P>| {
            let State::Recovering(r) = state else { return true };
            let again = model.recovered(r.durable.clone());
            let twice = model.recovered(again.clone());
            *P::home(&again) == r.uncut && twice == again && (!r.has_ended() || *P::home(&r.durable) == r.uncut)
        })
    }

    /// The property that recovery is interrupted at least once.
    pub(crate) fn interruption() -> Property<Self> {
        Property::sometimes("recovery is cut", |_, state: &State<P>| matches!(state, State::Recovering(r) if r.cut))
    }
}

impl<P: Protocol> State<P> {
    /// Whether the machine runs and a condition holds.
    pub(crate) fn is_running(&self, condition: impl Fn(&P::Machine) -> bool) -> bool {
        matches!(self, State::Running(machine) if condition(machine))
    }

    /// Whether power has failed and a condition holds.
    pub(crate) fn has_failed(&self, condition: impl Fn(&Recovery<P>) -> bool) -> bool {
        matches!(self, State::Recovering(recovery) if condition(recovery))
    }

    /// Whether recovery has ended and a condition holds.
    pub(crate) fn has_recovered(&self, condition: impl Fn(&Recovery<P>) -> bool) -> bool {
        self.has_failed(|recovery| recovery.has_ended() && condition(recovery))
    }

    /// Whether a condition holds if the machine runs.
    pub(crate) fn if_running(&self, condition: impl Fn(&P::Machine) -> bool) -> bool {
        !self.is_running(|machine| !condition(machine))
    }

    /// Whether a condition holds if recovery has ended.
    pub(crate) fn if_recovered(&self, condition: impl Fn(&Recovery<P>) -> bool) -> bool {
        !self.has_recovered(|recovery| !condition(recovery))
    }
}

impl<P: Protocol> Model for ProtocolModel<P> {
    type State = State<P>;
    type Action = Step<P::Action>;

    fn init_states(&self) -> Vec<State<P>> {
        vec![State::Running(Box::new(P::start(&self.bounds)))]
    }

    fn actions(&self, state: &State<P>, actions: &mut Vec<Step<P::Action>>) {
        match state {
            State::Running(machine) => {
                let mut candidates = Vec::new();
                P::candidates(self, machine, &mut candidates);
                actions.extend(candidates.into_iter().map(Step::Run));
                actions.push(Step::Crash);
            }
            State::Recovering(recovery) if recovery.has_ended() => actions.push(Step::Restart),
            State::Recovering(_) => actions.extend([Step::RecoveryStep, Step::RecoveryCut]),
        }
    }

    fn next_state(&self, state: &State<P>, step: Step<P::Action>) -> Option<State<P>> {
        match (state, step) {
            (State::Running(machine), Step::Run(action)) => {
                P::run(self, machine, action).map(|next| State::Running(Box::new(next)))
            }
            (State::Running(machine), Step::Crash) => Some(State::Recovering(Box::new(self.fail(machine)))),
            (State::Running(_), _) => None,
            (State::Recovering(recovery), step) => self.recover(recovery, step),
        }
    }

    fn properties(&self) -> Vec<Property<Self>> {
        P::properties(&self.bounds)
    }
}

/// Continues if a condition holds; else the step is not allowed.
pub(crate) fn only_if(condition: bool) -> Option<()> {
    condition.then_some(())
}

/// Defines a protocol and its model from a module with the parts of the usual names: `Bounds`, `ProtocolFault`,
/// `Action`, `Machine`, `Version`, `Durable`, `RecoveryWrite`, `Judge`, methods of the model for steps and power failures,
/// and the functions `recovery::restart` and `properties::all`.
macro_rules! protocol {
    ($protocol:ident, $model:ident) => {
        /// The rules of the protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $protocol;

        /// The model of the protocol.
        pub type $model = crate::protocol::ProtocolModel<$protocol>;

        impl crate::protocol::Protocol for $protocol {
            type Bounds = Bounds;
            type Fault = ProtocolFault;
            type Action = Action;
            type Machine = Machine;
            type Version = Version;
            type Durable = Durable;
            type Write = RecoveryWrite;
            type Judge = Judge;

            fn start(bounds: &Bounds) -> Machine {
                Machine::new(bounds)
            }

            fn candidates(model: &$model, machine: &Machine, actions: &mut Vec<Action>) {
                model.candidates(machine, actions);
            }

            fn run(model: &$model, machine: &Machine, action: Action) -> Option<Machine> {
                model.run(machine, action)
            }

            fn crash(model: &$model, machine: &Machine) -> crate::protocol::PowerFailure<Self> {
                model.crash(machine)
            }

            fn plan(model: &$model, durable: &Durable) -> Vec<RecoveryWrite> {
                model.plan(durable)
            }

            fn write(durable: &mut Durable, write: &RecoveryWrite) {
                durable.write(*write);
            }

            fn home(durable: &Durable) -> &Vec<Version> {
                &durable.home
            }

            fn restart(bounds: &Bounds, recovery: &Recovery<Self>) -> Machine {
                recovery::restart(bounds, recovery)
            }

            fn properties(bounds: &Bounds) -> Vec<stateright::Property<$model>> {
                properties::all(bounds)
            }
        }
    };
}
pub(crate) use protocol;
