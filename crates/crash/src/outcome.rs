//! The outcome of a trial: the oracles that judged it, and their objections.

use crate::check_output::CheckOutput;
use crate::unfinished::{Place, UnfinishedStage};
use std::collections::{BTreeMap, BTreeSet};

/// The oracles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Oracle {
    /// The hardware's recovery itself: it reports losses that it may not have, or depends on where it was cut.
    Recovery,
    /// The bytes of persistent memory.
    Bytes,
    /// The program's reports of its operations.
    History,
    /// The program's own recovery and check.
    Guest,
    /// The limits within which the program's recovery, check and further work have to end.
    Termination,
    /// The output of the check.
    Output,
}

impl Oracle {
    /// The one that gives the verdict: exit code and output of a check are its answer together.
    const fn judge(&self) -> Oracle {
        match self {
            Oracle::Output => Oracle::Guest,
            oracle => *oracle,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Oracle::Recovery => "recovery",
            Oracle::Bytes => "bytes",
            Oracle::History => "history",
            Oracle::Guest => "guest",
            Oracle::Termination => "termination",
            Oracle::Output => "output",
        }
    }
}

/// The outcome of a trial.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// The objection of each oracle.
    pub objections: BTreeMap<Oracle, String>,
    /// The oracles that have looked at the recovered contents.
    pub judged: Vec<Oracle>,
    /// The loss that recovery reported, where one was to be expected.
    pub reported_loss: Option<String>,
    /// The stage of the program that did not end within its limit.
    pub unfinished: Option<Box<UnfinishedStage>>,
    /// The outputs of the runs of the check, if the request asks for them.
    pub checks: Vec<CheckOutput>,
}

impl Outcome {
    pub fn object(oracle: Oracle, what: String) -> Self {
        Outcome { objections: BTreeMap::from([(oracle, what)]), ..Outcome::default() }
    }

    /// Whether some oracles that have looked at the contents object and others do not.
    pub fn is_disagreement(&self) -> bool {
        let judges =
            |oracles: &mut dyn Iterator<Item = &Oracle>| -> BTreeSet<Oracle> { oracles.map(Oracle::judge).collect() };
        let objecting = judges(&mut self.objections.keys());
        !objecting.is_empty() && objecting.len() < judges(&mut self.judged.iter()).len()
    }

    /// An outcome of a trial whose program was stopped at its limit.
    pub fn unfinished(stage: UnfinishedStage) -> Self {
        let objection = Outcome::object(Oracle::Termination, stage.text());
        Outcome { unfinished: Some(Box::new(stage)), ..objection }
    }

    /// Whether its program was stopped here.
    pub fn is_at(&self, place: &Place) -> bool {
        self.unfinished.as_ref().is_some_and(|unfinished| unfinished.place == *place)
    }
}
