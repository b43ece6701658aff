//! Trials in which the program did not end within its limits. The first of them at each place runs once more with larger
//! limits: if it ends, the limit was too small, else none of them ends.

use crate::executor::{Executor, Retry};
use crate::outcome::{Oracle, Outcome};
use crate::trial::Trial;
use crate::unfinished::Place;
use durasim_types::Error;
use std::collections::BTreeMap;

/// The number of trials of each place that run once more, as long as each of them ends.
const RETRIES_MAX: usize = 8;

/// The trials that are to run once more, the first ones of each place.
#[derive(Default)]
pub(crate) struct Postponed(BTreeMap<Place, BTreeMap<Trial, Retry>>);

impl Postponed {
    /// Keeps what a trial needs to run once more, if it is one of the first that did not end at their place.
    pub fn keep(&mut self, trial: &Trial, outcome: &Outcome, retry: Option<Retry>) {
        let (Some(unfinished), Some(retry)) = (&outcome.unfinished, retry) else { return };
        let first = self.0.entry(unfinished.place.clone()).or_default();
        first.insert(trial.clone(), retry);
        if first.len() > RETRIES_MAX {
            first.pop_last();
        }
    }

    /// Runs them, in the order of their ids, until one of each place does not end: then the others do not either.
    ///
    /// # Errors
    /// Trials of one place end with larger limits, and more are there than run once more.
    pub fn settle(self, executor: &Executor<'_>, trials: &mut Vec<(Trial, Outcome)>) -> Result<(), Error> {
        for (place, retries) in self.0 {
            let tried = retries.len();
            let verdict = retries.into_iter().find_map(|(trial, retry)| {
                let again = executor.retry(&retry);
                let unfinished = again.iter().find_map(|(trial, outcome)| Some((trial, outcome.unfinished.as_ref()?)));
                if let Some((trial, unfinished)) = unfinished {
                    let text = |after: &str| {
                        format!(
                            "{} does not end: it is {} {after}; {trial} is at {} {}",
                            unfinished.place.stage, place.function, unfinished.at, unfinished.after
                        )
                    };
                    at_place(trials, &place).for_each(|(_, outcome)| {
                        let after = outcome.unfinished.as_ref().map_or("", |unfinished| &unfinished.after);
                        outcome.objections.insert(Oracle::Termination, text(after));
                    });
                    return Some(());
                }
                let first = trials.iter().position(|(other, outcome)| *other == trial && outcome.is_at(&place));
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

fn at_place<'a>(
    trials: &'a mut [(Trial, Outcome)],
    place: &'a Place,
) -> impl Iterator<Item = &'a mut (Trial, Outcome)> {
    trials.iter_mut().filter(|(_, outcome)| outcome.is_at(place))
}
