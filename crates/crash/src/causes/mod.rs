//! Causes of violations: the stores that failing images lack, what the program lacks before what relies on them, and whether the
//! violations vanish once the machine inserts that.
//!
//! Nothing here knows what a program means. An image that fails gets the stores back that it lacks: those without which its
//! check still fails are the lost ones. Durable stores are undone from the last one back: the first one without which
//! the check passes is the one that relied on them.

mod contents;
mod document;
mod explanation;
mod missing_step;
mod needed;
mod places;
mod retaken;

pub use document::{Cause, Causes, Frame, InsertedOperation, Place, Relied, StorePlace, Tested};
pub use missing_step::Missing;

use self::contents::Words;
use self::explanation::{Explanation, Failing, Found};
use self::missing_step::first_clean;
use self::places::{SourceKey, key, place, store_place};
use self::retaken::{Case, Retaken, retake};
use crate::judge::Context;
use crate::outcome::Outcome;
use crate::store_log::{Step, StoreLog};
use crate::trial::Trial;
use durasim_machine::{Inserted, Insertion, SourceLines};
use durasim_types::Error;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Violations that are examined.
const EXAMINED_MAX: usize = 256;
/// Causes that are tested: each takes one more campaign.
const TESTED_MAX: usize = 6;
/// Questions to the program's check for all of a campaign.
const CHECKS_MAX: u64 = 20_000;

/// A campaign with operations inserted.
pub(crate) struct Rerun {
    /// All of its trials.
    pub trials: u64,
    /// Those that fail.
    pub failing: Vec<Trial>,
}

/// Whether failures of a campaign with operations inserted have the cause that is tested.
pub(crate) type CauseLook<'l> = dyn FnMut(Context<'_>, &Rerun) -> Result<bool, Error> + 'l;

/// Performs a campaign with operations inserted, and takes a look at its failures.
pub(crate) type Rerunner<'r> = dyn FnMut(&Inserted, &mut CauseLook<'_>) -> Result<(Rerun, bool), Error> + 'r;

/// A cause before it is written down.
struct Finding {
    keys: BTreeSet<SourceKey>,
    pcs: BTreeSet<u64>,
    first: Trial,
    violations: u64,
    explanation: Explanation,
    cause: Cause,
    insertions: BTreeMap<u64, Insertion>,
}

/// The search over one campaign.
struct Search {
    lines: SourceLines,
    findings: Vec<Finding>,
    unexplained: u64,
    examined: u64,
    checks_left: u64,
}

/// The causes of the violations among these trials. `elf` is the file of the program; without `rerun` no cause is tested.
///
/// # Errors
/// As from a run.
pub(crate) fn find(
    context: Context<'_>,
    elf: &Path,
    tried: &[(Trial, Outcome)],
    mut rerun: Option<&mut Rerunner<'_>>,
) -> Result<Causes, Error> {
    let failing: Vec<&Trial> =
        tried.iter().filter(|(_, outcome)| !outcome.objections.is_empty()).map(|(trial, _)| trial).collect();
    let mut search = Search {
        lines: SourceLines::of(elf, &context.prepared.program.elf),
        findings: Vec::new(),
        unexplained: 0,
        examined: 0,
        checks_left: CHECKS_MAX,
    };
    let retaken = retake(context, &failing, EXAMINED_MAX)?;
    if retaken.is_cut {
        let why = "the run makes more stores, cleans and fences than are kept to find causes in";
        let not_examined = failing.len() as u64;
        return Ok(Causes { not_searched: Some(why.to_owned()), not_examined, ..Causes::default() });
    }
    search.examine(context, retaken);
    for index in 0..search.findings.len() {
        search.test(index, rerun.as_deref_mut());
    }
    Ok(Causes {
        not_examined: failing.len() as u64 - search.examined,
        examined: search.examined,
        unexplained: search.unexplained,
        debug_information: if search.findings.is_empty() { None } else { search.lines.problem() },
        not_searched: None,
        found: search.findings.into_iter().map(|finding| finding.cause).collect(),
    })
}

impl Search {
    fn examine(&mut self, context: Context<'_>, retaken: Retaken<'_>) {
        let stores_survive = context.prepared.plan.domain.stores_are_durable();
        let Retaken { logs, mut judge, .. } = retaken;
        for (log, cases) in &logs {
            let words = Words::of(log);
            for case in cases {
                if self.checks_left == 0 {
                    return;
                }
                self.examined += case.trials;
                let mut failing = Failing::new(log, &words, case, &mut judge, &mut self.checks_left);
                let known = self.findings.iter().position(|finding| finding.repairs(&mut failing));
                if let Some(known) = known {
                    self.findings[known].violations += case.trials;
                    continue;
                }
                match failing.explain() {
                    Some(explanation) => self.add(log, case, explanation, stores_survive),
                    None => self.unexplained += case.trials,
                }
            }
        }
    }

    /// A violation has this cause: one that is known, or a new one.
    fn add(&mut self, log: &StoreLog, case: &Case, explanation: Explanation, stores_survive: bool) {
        let mut new: BTreeMap<u64, SourceKey> = BTreeMap::new();
        let mut known = None;
        for &pc in &explanation.pcs {
            let key = key(&mut self.lines, pc);
            let same = |finding: &Finding| finding.explanation.what == explanation.what && finding.keys.contains(&key);
            match self.findings.iter().position(same) {
                Some(finding) => known = known.or(Some(finding)),
                None => {
                    new.insert(pc, key);
                }
            }
        }
        if new.is_empty() {
            if let Some(known) = known {
                self.findings[known].violations += case.trials;
                self.findings[known].pcs.extend(&explanation.pcs);
            }
            return;
        }
        let pcs: BTreeSet<u64> = new.keys().copied().collect();
        let stores: Vec<usize> = explanation.stores_at(log, &pcs);
        let gaps: Vec<_> =
            stores.iter().map(|&store| (store, explanation.gap(store).missing(log, stores_survive))).collect();
        let Some(&(_, (missing, _))) = gaps.first() else { return };
        let missing = if explanation.what == Found::Early { Missing::Undo } else { missing };
        let is_repairable =
            explanation.what != Found::Early && gaps.iter().all(|(_, (_, insertion))| insertion.is_some());
        let insertions: BTreeMap<u64, Insertion> =
            gaps.iter().filter_map(|(_, (_, insertion))| *insertion).filter(|_| is_repairable).collect();
        let cause = self.cause(log, &case.trial, &explanation, &stores, missing, &insertions);
        self.findings.push(Finding {
            keys: new.into_values().collect(),
            pcs,
            first: case.trial.clone(),
            violations: case.trials,
            explanation,
            cause,
            insertions,
        });
    }

    fn cause(
        &mut self,
        log: &StoreLog,
        trial: &Trial,
        explanation: &Explanation,
        stores: &[usize],
        missing: Missing,
        insertions: &BTreeMap<u64, Insertion>,
    ) -> Cause {
        let lines = &mut self.lines;
        let mut seen = BTreeSet::new();
        let one_of_each_line = stores.iter().filter(|&&store| seen.insert(key(lines, log.steps[store].site.pc)));
        let one_of_each_line: Vec<usize> = one_of_each_line.copied().collect();
        let places = one_of_each_line.iter().filter_map(|&store| store_place(lines, log, store)).collect();
        let inserted = |(pc, insertion): (&u64, &Insertion)| {
            let logged = log.steps.iter().find(|logged| logged.site.pc == *pc)?;
            let what = match insertion {
                Insertion::Clean => "clean",
                Insertion::CleanAndFence => "clean-and-fence",
                Insertion::Fence => "fence",
            };
            Some(InsertedOperation { what: what.to_owned(), place: place(lines, log, logged.site) })
        };
        let inserted = insertions.iter().filter_map(inserted).collect();
        Cause {
            // Counted to the end of the search.
            violations: 0,
            first: trial.to_string(),
            what: explanation.what.name(trial).to_owned(),
            missing,
            stores: places,
            relied: explanation.relied.map(|relied| self.relied(log, relied, explanation.made)),
            inserted,
            confirmed: false,
            tested: None,
            unconfirmed_because: None,
        }
    }

    fn relied(&mut self, log: &StoreLog, relied: usize, made: usize) -> Relied {
        let logged = log.steps[relied];
        let (kind, line) = match logged.step {
            Step::Store(_, write) => ("store", Some(write.addr.line())),
            Step::Acknowledged(_) => ("commit", None),
            _ => ("fence", None),
        };
        let clean = line.and_then(|line| first_clean(log, line, relied + 1..made.max(relied + 1)));
        Relied {
            kind: kind.to_owned(),
            place: place(&mut self.lines, log, logged.site),
            cleaned_by: clean.map(|clean| place(&mut self.lines, log, log.steps[clean].site)),
        }
    }

    /// Runs the campaign again with what a cause lacks.
    fn test(&mut self, index: usize, rerun: Option<&mut Rerunner<'_>>) {
        let finding = &mut self.findings[index];
        finding.cause.violations = finding.violations;
        let because = |finding: &mut Finding, why: &str| finding.cause.unconfirmed_because = Some(why.to_owned());
        if finding.insertions.is_empty() {
            let why = match (finding.cause.missing, finding.explanation.what) {
                (Missing::Nothing, _) => {
                    "the program lacks no clean and no fence here: the machine or the design has lost the store"
                }
                (_, Found::Early) => "no clean and no fence keeps a store from becoming durable",
                _ => "no clean and no fence makes a later store durable before an earlier one",
            };
            because(finding, why);
            return;
        }
        let Some(rerun) = rerun else {
            because(finding, "a replay does not repeat the campaign");
            return;
        };
        if index >= TESTED_MAX {
            because(finding, "only the first causes are tested");
            return;
        }
        let checks_left = &mut self.checks_left;
        let inserted = Inserted::new(finding.insertions.clone());
        let mut is_left = |context: Context<'_>, rerun: &Rerun| finding.is_left(context, rerun, checks_left);
        let (rerun, is_left) = match rerun(&inserted, &mut is_left) {
            Ok(tested) => tested,
            Err(error) => {
                because(finding, &format!("the campaign with what is inserted fails: {error}"));
                return;
            }
        };
        let violations = rerun.failing.len() as u64;
        finding.cause.tested = Some(Tested { trials: rerun.trials, violations });
        finding.cause.confirmed = !is_left;
        if is_left {
            because(finding, "violations of this cause are left with what is inserted");
        }
    }
}

impl Finding {
    /// Whether an image passes once it has the stores of this cause.
    fn repairs(&self, failing: &mut Failing<'_, '_>) -> bool {
        self.explanation.what == Found::Lost && failing.passes_with(&self.pcs)
    }

    /// Whether failures of another campaign have this cause.
    fn is_left(&self, context: Context<'_>, rerun: &Rerun, checks_left: &mut u64) -> Result<bool, Error> {
        if rerun.failing.is_empty() {
            return Ok(false);
        }
        let failing: Vec<&Trial> = rerun.failing.iter().collect();
        if !self.first.then.is_empty() {
            return Ok(failing.iter().any(|trial| !trial.then.is_empty()));
        }
        let Retaken { logs, mut judge, .. } = retake(context, &failing, EXAMINED_MAX)?;
        for (log, cases) in &logs {
            let words = Words::of(log);
            for case in cases {
                let mut failing = Failing::new(log, &words, case, &mut judge, checks_left);
                if failing.passes_with(&self.pcs) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}
