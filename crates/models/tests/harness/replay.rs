//! A recorded run as a run of the model: every observation is a step that the model allows, and what recovery finds at
//! a crash point is what the model's recovery finds. The transition function is the one that the checker explores.

use super::driver::Run;
use super::log::Observed;
use super::{ModelOf, Subject};
use durasim_models::protocol::Protocol;
use durasim_types::TxId;
use std::collections::BTreeMap;

/// The number of times that each step was seen, by name.
pub type Tally = BTreeMap<String, u64>;

type VersionOf<S> = <<S as Subject>::Protocol as Protocol>::Version;
type MachineOf<S> = <<S as Subject>::Protocol as Protocol>::Machine;

/// The model beside a recorded run.
pub struct Replay<S: Subject> {
    pub model: ModelOf<S>,
    /// The running machine of the model. Power failures are tried on copies.
    pub machine: MachineOf<S>,
    /// The thread of each open transaction in the model.
    pub threads: BTreeMap<TxId, u8>,
    pub follower: S::Follower,
    /// Threads of the run.
    thread_count: u8,
    /// Versions that stores have made, by stamp.
    versions: BTreeMap<u64, VersionOf<S>>,
    tally: Tally,
}

/// Replays a run against the model with this fault. The error names the first observation that the model does not
/// allow.
pub fn replay<S: Subject>(run: &Run<S>, fault: Option<<S::Protocol as Protocol>::Fault>) -> Result<Tally, String> {
    let bounds = S::bounds(run);
    let mut replay = Replay::<S> {
        machine: S::Protocol::start(&bounds),
        model: ModelOf::<S> { bounds, fault },
        threads: BTreeMap::new(),
        follower: S::follower(run),
        thread_count: run.threads,
        versions: BTreeMap::from([(0, VersionOf::<S>::default())]),
        tally: Tally::new(),
    };
    for (index, observed) in run.observed.iter().enumerate() {
        let followed = match observed {
            Observed::Step(step) => S::follow(&mut replay, step),
            Observed::Crash { found } => replay.crash(found),
        };
        followed.map_err(|what| {
            let first = index.saturating_sub(12);
            let before: Vec<String> = run.observed[first..index].iter().map(|o| format!("{o:?}")).collect();
            format!("observation {index}, {observed:?}: {what}\n  before it: {}", before.join("\n    "))
        })?;
    }
    Ok(replay.tally)
}

impl<S: Subject> Replay<S> {
    /// A step of the model.
    pub fn step(&mut self, action: <S::Protocol as Protocol>::Action) -> Result<(), String> {
        if let Some(what) = S::rarity(self, &action) {
            self.count(what);
        }
        match S::Protocol::run(&self.model, &self.machine, action) {
            Some(next) => self.machine = next,
            None => return Err(format!("the model does not allow {action:?}: {}", S::about(&self.machine))),
        }
        self.count(format!("{action:?}").split('(').next().expect("a name"));
        Ok(())
    }

    pub fn count(&mut self, what: &str) {
        *self.tally.entry(what.to_owned()).or_default() += 1;
    }

    /// The thread of an open transaction.
    pub fn thread(&self, tx: TxId) -> Result<u8, String> {
        self.threads.get(&tx).copied().ok_or_else(|| format!("transaction {} is not open", tx.0))
    }

    /// The first thread that fulfils a condition.
    pub fn idle_thread(&self, is_idle: impl Fn(&MachineOf<S>, usize) -> bool) -> Result<u8, String> {
        let idle = (0..self.thread_count).find(|thread| is_idle(&self.machine, usize::from(*thread)));
        idle.ok_or_else(|| "more transactions than threads".to_owned())
    }

    /// A store has made this version.
    pub fn stamped(&mut self, stamp: u64, version: VersionOf<S>) {
        self.versions.insert(stamp, version);
    }

    /// The version that a store has made.
    pub fn version(&self, stamp: u64) -> Result<VersionOf<S>, String> {
        self.versions.get(&stamp).copied().ok_or_else(|| format!("no store has written {stamp}"))
    }

    /// The lines that recovery would leave.
    pub fn recovered(&self, machine: &MachineOf<S>) -> Vec<VersionOf<S>> {
        self.model.fail(machine).uncut
    }

    fn crash(&mut self, found: &[u64]) -> Result<(), String> {
        let found: Vec<VersionOf<S>> = found.iter().map(|stamp| self.version(*stamp)).collect::<Result<_, _>>()?;
        self.count("Crash");
        S::decide(self, &found)?;
        let expected = self.recovered(&self.machine);
        match (0..).zip(expected.iter().zip(&found)).find(|(_, (expected, found))| expected != found) {
            None => Ok(()),
            Some((line, (expected, found))) => {
                let line: u8 = line;
                let about = S::about(&self.machine);
                Err(format!("recovery finds {found:?} in line {line}, the model {expected:?}: {about}"))
            }
        }
    }
}
