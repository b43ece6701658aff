//! What became of a trial: which oracles looked at it, and what they object.

use crate::unfinished::{Place, UnfinishedStage};
use std::collections::BTreeMap;

/// Who judges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Oracle {
    /// The hardware's recovery itself: it reports losses that it may not have, or depends on where it was cut.
    Recovery,
    /// The bytes of persistent memory.
    Bytes,
    /// What the program said of its operations.
    History,
    /// The program's own recovery and check.
    Guest,
    /// The limits within which the program's recovery, check and further work have to end.
    Termination,
}

impl Oracle {
    pub const fn name(self) -> &'static str {
        match self {
            Oracle::Recovery => "recovery",
            Oracle::Bytes => "bytes",
            Oracle::History => "history",
            Oracle::Guest => "guest",
            Oracle::Termination => "termination",
        }
    }
}

/// What became of a trial.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// What each oracle objects.
    pub objections: BTreeMap<Oracle, String>,
    /// The oracles that have looked at the recovered contents.
    pub judged: Vec<Oracle>,
    /// What recovery reported as lost, where a loss was to be expected.
    pub reported_loss: Option<String>,
    /// What of the program did not end within its limit.
    pub unfinished: Option<Box<UnfinishedStage>>,
}

impl Outcome {
    pub fn object(oracle: Oracle, what: String) -> Self {
        Outcome { objections: BTreeMap::from([(oracle, what)]), ..Outcome::default() }
    }

    /// Whether some oracles that have looked at the contents object and others do not.
    pub fn is_disagreement(&self) -> bool {
        !self.objections.is_empty() && self.objections.len() < self.judged.len()
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
