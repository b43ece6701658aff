//! Trials in which the program did not end within its limits. The first of them at each place runs once more with larger
//! limits: if it ends, the limit was too small, else none of them ends.

use crate::case::{Case, Then};
use crate::executor::{Begun, CrashPoint, Executor, Failures, LaterDraw, LaterRun};
use crate::limits::{Limits, Stage, used_up};
use crate::outcome::{Oracle, Outcome};
use durasim_guest::Symbols;
use durasim_machine::Unfinished;
use durasim_types::Error;
use std::collections::BTreeMap;
use std::sync::Arc;

/// At each place so many trials run once more, as long as each of them ends.
const RETRIES_MAX: usize = 8;

/// Where a program is in what it does after a crash, as sentences say it: its function, or the program counter if that has no name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    stage: Stage,
    function: String,
}

/// What of the program did not end in a trial.
#[derive(Clone, Debug)]
pub(crate) struct UnfinishedStage {
    place: Place,
    /// The whole of it: program counter, and offset in the function.
    at: String,
    /// The limit that it reached.
    after: String,
    /// To run it once more.
    retry: Option<Retry>,
}

impl UnfinishedStage {
    /// What reached its limit in this stage.
    pub fn new(stage: Stage, limits: &Limits, unfinished: Unfinished, symbols: &Symbols) -> Self {
        let Unfinished { exceeded, pc } = unfinished;
        let (function, at) = match symbols.function_at(pc) {
            Some((name, offset)) => (format!("in {name}"), format!("pc {pc:#x} ({name}+{offset:#x})")),
            None => (format!("at pc {pc:#x}"), format!("pc {pc:#x}")),
        };
        let budget = limits.of(stage);
        UnfinishedStage { place: Place { stage, function }, at, after: used_up(exceeded, budget), retry: None }
    }

    /// What is objected as long as nothing has run once more.
    pub fn text(&self) -> String {
        format!("{} does not end: it is at {} {}", self.place.stage, self.at, self.after)
    }

    /// How this trial comes about again.
    pub fn retry_with(&mut self, retry: Retry) {
        self.retry = Some(retry);
    }
}

/// What runs once more.
#[derive(Clone)]
pub(crate) enum Retry {
    /// A trial: its failures up to a point, and the further ones as they came.
    Case { point: Arc<CrashPoint>, failures: Vec<Then> },
    /// A run of the program in which power was to fail: that many trials begin with it.
    Run { point: Arc<CrashPoint>, run: LaterRun, draw: LaterDraw },
}

impl std::fmt::Debug for Retry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Retry::Case { failures, .. } => failures.fmt(f),
            Retry::Run { run, draw, .. } => write!(f, "{run:?}, {draw:?}"),
        }
    }
}

/// The further failures of a trial that runs once more.
struct Again(std::vec::IntoIter<Then>);

impl Failures for Again {
    fn next(&mut self, _recovery_writes: u64) -> Option<Then> {
        self.0.next()
    }
}

impl Retry {
    /// The same with larger limits; a run of the program without persist events comes to no trial.
    fn run(&self, executor: &Executor<'_>) -> Vec<(Case, Outcome)> {
        let mut executor = executor.once_more().without_timeline();
        match self {
            Retry::Case { point, failures } => {
                vec![executor.execute(point, &mut Again(failures.clone().into_iter()))]
            }
            Retry::Run { point, run, draw } => {
                let points = executor.fail_again(point, *run, draw.clone());
                let conclude = |later: Begun| match later {
                    Ok(later) => executor.execute(&later, &mut Again(Vec::new().into_iter())),
                    Err(tried) => *tried,
                };
                points.into_iter().map(conclude).collect()
            }
        }
    }
}

/// The trials that are to run once more, the first ones of each place.
#[derive(Default)]
pub(crate) struct Postponed(BTreeMap<Place, BTreeMap<Case, Retry>>);

impl Postponed {
    /// Keeps what a trial needs to run once more, if it did not end and is one of the first at its place.
    pub fn keep(&mut self, case: &Case, outcome: &mut Outcome) {
        let Some(unfinished) = &mut outcome.unfinished else { return };
        let Some(retry) = unfinished.retry.take() else { return };
        let first = self.0.entry(unfinished.place.clone()).or_default();
        first.insert(case.clone(), retry);
        if first.len() > RETRIES_MAX {
            first.pop_last();
        }
    }

    /// Runs them, in the order of their ids, until one of each place does not end: then the others do not either.
    ///
    /// # Errors
    /// Trials of one place end with larger limits, and more are there than run once more.
    pub fn settle(self, executor: &Executor<'_>, trials: &mut Vec<(Case, Outcome)>) -> Result<(), Error> {
        for (place, retries) in self.0 {
            let tried = retries.len();
            let verdict = retries.into_iter().find_map(|(case, retry)| {
                let again = retry.run(executor);
                let unfinished = again.iter().find_map(|(case, outcome)| Some((case, outcome.unfinished.as_ref()?)));
                if let Some((case, unfinished)) = unfinished {
                    let text = |after: &str| {
                        format!(
                            "{} does not end: it is {} {after}; {case} is at {} {}",
                            unfinished.place.stage, place.function, unfinished.at, unfinished.after
                        )
                    };
                    at_place(trials, &place).for_each(|(_, outcome)| {
                        let after = outcome.unfinished.as_ref().map_or("", |unfinished| &unfinished.after);
                        outcome.objections.insert(Oracle::Termination, text(after));
                    });
                    return Some(());
                }
                let first = trials.iter().position(|(other, outcome)| *other == case && outcome.is_at(&place));
                trials.remove(first.expect("the trial is one of those"));
                trials.extend(again);
                None
            });
            if verdict.is_none() && at_place(trials, &place).next().is_some() {
                return Err(Error::Failed(format!(
                    "{} reaches its limit {} in many trials, and {tried} of them end with {} times the limit: give a \
                     larger --recovery-limit",
                    place.stage,
                    place.function,
                    executor.once_more().judge().limits.of(place.stage).instructions
                        / executor.judge().limits.of(place.stage).instructions.max(1),
                )));
            }
        }
        Ok(())
    }
}

fn at_place<'a>(trials: &'a mut [(Case, Outcome)], place: &'a Place) -> impl Iterator<Item = &'a mut (Case, Outcome)> {
    trials.iter_mut().filter(|(_, outcome)| outcome.is_at(place))
}

impl Outcome {
    /// An outcome of a trial whose program was stopped at its limit.
    pub fn unfinished(stage: UnfinishedStage) -> Self {
        let objection = Outcome::object(Oracle::Termination, stage.text());
        Outcome { unfinished: Some(Box::new(stage)), ..objection }
    }

    fn is_at(&self, place: &Place) -> bool {
        self.unfinished.as_ref().is_some_and(|unfinished| unfinished.place == *place)
    }
}
