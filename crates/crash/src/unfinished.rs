//! The part of a program that did not end within its limits, and its place.

use crate::limits::{Limits, Stage, used_up};
use durasim_machine::{Symbols, Unfinished};

/// The place of a program after a crash, for sentences: its function, or the program counter if that has no name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub stage: Stage,
    pub function: String,
}

/// The part of a program that did not end in a trial.
#[derive(Clone, Debug)]
pub(crate) struct UnfinishedStage {
    pub place: Place,
    /// The whole of it: program counter, and offset in the function.
    pub at: String,
    /// The limit that it reached.
    pub after: String,
}

impl UnfinishedStage {
    /// The part that reached its limit in this stage.
    pub fn new(stage: Stage, limits: &Limits, unfinished: Unfinished, symbols: &Symbols) -> Self {
        let Unfinished { exceeded, pc } = unfinished;
        let (function, at) = match symbols.function_at(pc) {
            Some((name, offset)) => (format!("in {name}"), format!("pc {pc:#x} ({name}+{offset:#x})")),
            None => (format!("at pc {pc:#x}"), format!("pc {pc:#x}")),
        };
        let budget = limits.of(stage);
        UnfinishedStage { place: Place { stage, function }, at, after: used_up(exceeded, budget) }
    }

    /// The objection as long as no trial has run once more.
    pub fn text(&self) -> String {
        format!("{} does not end: it is at {} {}", self.place.stage, self.at, self.after)
    }
}
