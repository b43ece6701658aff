//! The outputs of checks that the result of a campaign lists: those of its first failing trials.

use crate::check_output::CheckOutput;
use crate::outcome::Outcome;
use crate::trial::Trial;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The runs of the check in a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialChecks {
    /// The trial, as `--replay` takes it.
    pub id: String,
    /// Each run of the check, in order: one on what the power failure left, and a second one on what that has recovered. Empty if
    /// the trial ended before a check.
    pub checks: Vec<CheckOutput>,
}

/// Those of the trials that a result lists: the first ones that fail, or that of a replay.
pub(crate) fn listed(tried: &[(Trial, Outcome)], is_replay: bool, trials_max: usize) -> Vec<TrialChecks> {
    let is_listed = |(_, outcome): &&(Trial, Outcome)| is_replay || !outcome.objections.is_empty();
    let checks =
        |(trial, outcome): &(Trial, Outcome)| TrialChecks { id: trial.to_string(), checks: outcome.checks.clone() };
    tried.iter().filter(is_listed).take(trials_max).map(checks).collect()
}

/// The outputs of trials of a campaign while it runs. Only the first failing trials are listed, so further ones need no memory.
pub(crate) struct FirstChecks {
    first: BTreeMap<Trial, Vec<CheckOutput>>,
    trials_max: usize,
}

impl FirstChecks {
    /// For a result that lists this number of failing trials.
    pub fn new(trials_max: usize) -> Self {
        FirstChecks { first: BTreeMap::new(), trials_max }
    }

    /// Takes the outputs out of these trials. A trial that did not end keeps them: it may run once more.
    pub fn take(&mut self, tried: &mut [(Trial, Outcome)]) {
        for (trial, outcome) in tried.iter_mut().filter(|(_, outcome)| outcome.unfinished.is_none()) {
            let checks = std::mem::take(&mut outcome.checks);
            if outcome.objections.is_empty() || checks.is_empty() {
                continue;
            }
            self.first.insert(trial.clone(), checks);
            if self.first.len() > self.trials_max {
                self.first.pop_last();
            }
        }
    }

    /// Gives the outputs back to the first failing trials.
    pub fn give_back(mut self, tried: &mut [(Trial, Outcome)]) {
        for (trial, outcome) in tried {
            if let Some(checks) = self.first.remove(trial) {
                outcome.checks = checks;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Oracle;

    fn tried(text: &str, fails: bool) -> (Trial, Outcome) {
        let mut outcome = if fails { Outcome::object(Oracle::Guest, "no".into()) } else { Outcome::default() };
        outcome.checks.push(CheckOutput { stdout: text.to_owned(), ..CheckOutput::default() });
        (text.parse().expect("an id of a trial"), outcome)
    }

    #[test]
    fn the_first_failing_trials_keep_their_outputs() {
        let mut first = FirstChecks::new(2);
        let mut late = vec![tried("e7", true), tried("e9", true), tried("e8", false)];
        first.take(&mut late);
        let mut early = vec![tried("e2", true)];
        first.take(&mut early);
        let mut all: Vec<(Trial, Outcome)> = early.into_iter().chain(late).collect();
        first.give_back(&mut all);
        let kept = |listed: Vec<TrialChecks>| -> Vec<(String, usize)> {
            listed.into_iter().map(|trial| (trial.id, trial.checks.len())).collect()
        };
        assert_eq!(kept(listed(&all, false, 2)), [("e2".to_owned(), 1), ("e7".to_owned(), 1)]);
        assert_eq!(kept(listed(&[tried("e8", false)], true, 2)), [("e8".to_owned(), 1)], "a replay that passes");
    }
}
