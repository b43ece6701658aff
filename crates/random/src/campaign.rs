//! Many runs: of all designs in turn, each with another seed, until a number of runs or the caller ends it.

use crate::run::{distinct_variants, run_until};
use crate::settings::Setting;
use crate::tally::{Effort, Tally};
use crate::trace::Trace;
use durasim_contract::{Hooks, PlantedFault, Variant};
use durasim_test_plans::test_plan;
use durasim_types::ConfigError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;

/// Failures that a result lists.
const FAILURES_MAX: usize = 50;

/// The request of a campaign.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomRequest {
    /// Names of variants; all that differ in what is tried if there are none.
    #[serde(default)]
    pub designs: Vec<String>,
    /// The first seed. Each design gets this one and those after it.
    pub seed: u64,
    /// Runs in all. Without a number they continue until the caller ends them.
    #[serde(default)]
    pub runs: Option<u64>,
    /// The planted fault that the designs have.
    #[serde(default)]
    pub planted: Option<String>,
}

/// The trials and findings. The runs alone determine them: equal ones give equal results.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RandomResult {
    /// The first seed.
    pub seed: u64,
    /// Machines that were drawn and run.
    pub runs: u64,
    /// Crashes whose image was recovered and judged, those of interrupted recoveries included.
    pub trials: u64,
    /// Runs in which something was wrong; each ends there.
    pub violations: u64,
    /// By design, in the order of the registry.
    pub designs: Vec<RandomDesign>,
    /// The errors, in the order of the runs; 50 at most.
    pub failures: Vec<RandomFailure>,
}

/// The trials of one design.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RandomDesign {
    /// The variant.
    pub design: String,
    /// Machines that were drawn and run.
    pub runs: u64,
    /// Operations of all ports.
    pub operations: u64,
    /// Loads, each compared with the newest bytes.
    pub loads: u64,
    /// Transactions that committed.
    pub commits: u64,
    /// Transactions that aborted.
    pub aborts: u64,
    /// Times a thread left its core inside a transaction.
    pub switches: u64,
    /// Images that were recovered and judged.
    pub images: u64,
    /// Images in which another part of the unfenced cleans survived.
    pub reordered: u64,
    /// Recoveries that were interrupted and run again.
    pub interrupted: u64,
    /// Rare situations, and how many images fell into each.
    pub marks: BTreeMap<&'static str, u64>,
    /// Runs in which something was wrong.
    pub violations: u64,
}

/// A run in which something was wrong.
#[derive(Clone, Debug, Serialize)]
pub struct RandomFailure {
    /// The variant.
    pub design: String,
    /// Its persistence domain.
    pub domain: &'static str,
    /// The argument of `--replay`.
    pub id: String,
    /// The differences of the machine from `tiny`.
    pub settings: Vec<String>,
    /// The error.
    pub message: String,
}

/// One run that was made again.
#[derive(Clone, Debug, Serialize)]
pub struct RandomReplay {
    /// The variant.
    pub design: String,
    /// Its persistence domain.
    pub domain: &'static str,
    /// The run.
    pub id: String,
    /// The differences of the machine from `tiny`.
    pub settings: Vec<String>,
    /// The error, if there was one.
    pub message: Option<String>,
    /// The last steps, oldest first.
    pub steps: Vec<String>,
}

/// The number of a run of a design. Its text is `one-7` on a machine of one core, `many-7` on one of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RunId {
    is_many: bool,
    seed: u64,
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", if self.is_many { "many" } else { "one" }, self.seed)
    }
}

impl FromStr for RunId {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let parts = text.split_once('-').and_then(|(cores, seed)| Some((cores, seed.parse().ok()?)));
        match parts {
            Some(("one", seed)) => Ok(RunId { is_many: false, seed }),
            Some(("many", seed)) => Ok(RunId { is_many: true, seed }),
            _ => Err(ConfigError::new("replay", format!("'{text}' is no run: one-SEED or many-SEED is one"))),
        }
    }
}

impl RunId {
    /// The machine that is drawn for this run of a variant.
    fn setting(self, variant: Variant, planted: Option<PlantedFault>) -> Setting {
        let drawn =
            if self.is_many { Setting::drawn_for_many(variant, self.seed) } else { Setting::drawn(variant, self.seed) };
        Setting { planted, ..drawn.tightened(self.seed) }
    }

    fn effort(self, variant: &Variant) -> Effort {
        let (ops, crash_percent) = if self.is_many { (400, 6) } else { (250, 10) };
        let cut_percent = if variant.hardware.hooks == Hooks::NONE { 0 } else { 4 };
        Effort { ops, crash_percent, cut_percent, power_cycles: 2 }
    }
}

/// A variant with the fault that is planted in it.
type Subject = (Variant, Option<PlantedFault>);

fn subject(variant: &Variant, planted: Option<&String>) -> Result<Subject, ConfigError> {
    let Some(name) = planted else { return Ok((*variant, None)) };
    let further = test_plan(variant.name).random.further_faults.iter().copied().find(|further| further == name);
    let further = further.map(|name| PlantedFault { name, summary: "", equivalent: None });
    let fault = variant.planted().find(|fault| fault.name == name).or(further);
    fault
        .map(|fault| (*variant, Some(fault)))
        .ok_or_else(|| ConfigError::new("planted", format!("{} has no fault '{name}'", variant.name)))
}

fn subjects(designs: &[String], planted: Option<&String>, variants: &[Variant]) -> Result<Vec<Subject>, ConfigError> {
    if designs.is_empty() {
        return distinct_variants(variants).iter().map(|variant| subject(variant, planted)).collect();
    }
    designs.iter().map(|name| subject(variant_of(name, variants)?, planted)).collect()
}

fn variant_of<'a>(name: &str, variants: &'a [Variant]) -> Result<&'a Variant, ConfigError> {
    let found = variants.iter().find(|variant| variant.name == name || variant.aliases.contains(&name));
    found.ok_or_else(|| {
        let names: Vec<&str> = variants.iter().map(|variant| variant.name).collect();
        ConfigError::new("design", format!("'{name}' is none of {}", names.join(", ")))
    })
}

/// The design of the `n`th run, by its place, and the run. Designs take turns, and so do machines of one core and of several.
fn nth(n: u64, designs: usize, first_seed: u64) -> (usize, RunId) {
    let round = n / designs as u64;
    ((n % designs as u64) as usize, RunId { is_many: round % 2 == 1, seed: first_seed.wrapping_add(round / 2) })
}

/// Makes many runs on all cores of this computer. `progress` takes how many are done; with the answer false no further one
/// begins. With `stop` those that have begun end too, and count for nothing.
///
/// # Errors
/// A name that is unknown, or a number of runs that is 0.
pub fn campaign(
    request: &RandomRequest,
    variants: &[Variant],
    stop: &AtomicBool,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<RandomResult, ConfigError> {
    if request.runs == Some(0) {
        return Err(ConfigError::new("runs", "0 is less than 1"));
    }
    let subjects = subjects(&request.designs, request.planted.as_ref(), variants)?;
    let runs = request.runs.unwrap_or(u64::MAX);
    let (next, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let mut outcomes = Outcomes::new(&subjects, request.seed);
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        for _ in 0..workers {
            let (sender, next, subjects, is_over) = (sender.clone(), &next, &subjects, &is_over);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) && !is_over.load(Ordering::Relaxed) {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= runs {
                        return;
                    }
                    let (place, id) = nth(n, subjects.len(), request.seed);
                    let (variant, planted) = subjects[place];
                    let setting = id.setting(variant, planted);
                    let outcome = run_until(stop, &setting, id.seed, id.effort(&variant), &Trace::default());
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let outcome = outcome.map_err(|message| failure(&setting, id, message));
                    if sender.send((n, place, outcome)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for (n, place, outcome) in receiver {
            outcomes.add(n, place, outcome);
            if !progress(outcomes.result.runs) {
                is_over.store(true, Ordering::Relaxed);
            }
        }
    });
    Ok(outcomes.finish())
}

fn failure(setting: &Setting, id: RunId, message: String) -> RandomFailure {
    RandomFailure {
        design: setting.variant.name.to_owned(),
        domain: setting.domain.name(),
        id: id.to_string(),
        settings: setting.sets.clone(),
        message,
    }
}

/// The findings of runs so far. They end in any order.
struct Outcomes {
    result: RandomResult,
    failures: BTreeMap<u64, RandomFailure>,
}

impl Outcomes {
    fn new(subjects: &[Subject], seed: u64) -> Self {
        let designs =
            subjects.iter().map(|(variant, _)| RandomDesign { design: variant.name.to_owned(), ..Default::default() });
        let result = RandomResult { seed, designs: designs.collect(), ..RandomResult::default() };
        Outcomes { result, failures: BTreeMap::new() }
    }

    fn add(&mut self, n: u64, place: usize, outcome: Result<Tally, RandomFailure>) {
        let of = &mut self.result.designs[place];
        of.runs += 1;
        self.result.runs += 1;
        match outcome {
            Ok(tally) => {
                let findings = tally.findings;
                of.operations += tally.ops;
                of.loads += tally.loads;
                of.commits += tally.committed;
                of.aborts += tally.aborted;
                of.switches += tally.switches[1];
                of.images += findings.images;
                of.reordered += findings.reordered;
                of.interrupted += findings.cuts;
                self.result.trials += findings.images + findings.reordered + findings.cuts;
                for (mark, count) in findings.marks {
                    *of.marks.entry(mark).or_default() += count;
                }
            }
            Err(failure) => {
                of.violations += 1;
                self.result.violations += 1;
                self.failures.insert(n, failure);
                if self.failures.len() > FAILURES_MAX {
                    self.failures.pop_last();
                }
            }
        }
    }

    fn finish(mut self) -> RandomResult {
        self.result.failures = self.failures.into_values().collect();
        self.result
    }
}

/// Makes one run again, and keeps its last steps. With `stop` it ends early, and that is what its message says.
///
/// # Errors
/// A name that is unknown, or a text that names no run.
pub fn replay(
    design: &str,
    id: &str,
    planted: Option<&String>,
    variants: &[Variant],
    stop: &AtomicBool,
) -> Result<RandomReplay, ConfigError> {
    let (variant, planted) = subject(variant_of(design, variants)?, planted)?;
    let id: RunId = id.parse()?;
    let setting = id.setting(variant, planted);
    let trace = Trace::wanted();
    let message = run_until(stop, &setting, id.seed, id.effort(&variant), &trace).err();
    Ok(RandomReplay {
        design: variant.name.to_owned(),
        domain: setting.domain.name(),
        id: id.to_string(),
        settings: setting.sets,
        message,
        steps: trace.lines(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use durasim_designs::VARIANTS;

    #[test]
    fn designs_and_numbers_of_cores_take_turns() {
        let ids: Vec<String> = (0..6).map(|n| nth(n, 2, 5)).map(|(place, id)| format!("{place}:{id}")).collect();
        assert_eq!(ids, ["0:one-5", "1:one-5", "0:many-5", "1:many-5", "0:one-6", "1:one-6"]);
    }

    #[test]
    fn the_text_of_a_run_is_what_a_replay_takes() {
        for text in ["one-0", "many-18446744073709551615"] {
            assert_eq!(text.parse::<RunId>().unwrap().to_string(), text);
        }
        for text in ["", "7", "two-7", "one-", "many-x"] {
            assert_eq!(text.parse::<RunId>().unwrap_err().field, "replay", "{text}");
        }
    }

    fn request(designs: &[&str], runs: u64, planted: Option<&str>) -> RandomRequest {
        let designs = designs.iter().map(|&name| name.to_owned()).collect();
        RandomRequest { designs, seed: 1, runs: Some(runs), planted: planted.map(str::to_owned) }
    }

    /// Results are those of the runs, whatever order they end in; a failure ends the same way when it is made again.
    #[test]
    fn equal_requests_have_equal_results_and_failures_are_replayed() {
        let is_canary =
            |variant: &&Variant| variant.planted().any(|fault| Some(fault.name) == test_plan(variant.name).canary);
        let variant = VARIANTS.iter().find(is_canary).expect("the hardware of one has a canary");
        let request = request(&[variant.name], 30, test_plan(variant.name).canary);
        let result = || campaign(&request, VARIANTS, &AtomicBool::new(false), &mut |_| true).unwrap();
        let [first, second] = [result(), result()];
        assert_eq!(serde_json::to_string(&first).unwrap(), serde_json::to_string(&second).unwrap());
        assert_eq!(
            (first.runs, first.violations, first.failures.len()),
            (30, first.violations, first.violations as usize)
        );
        let failure = first.failures.first().expect("a recovery that overlooks an entry is noticed");
        let again =
            replay(&failure.design, &failure.id, request.planted.as_ref(), VARIANTS, &AtomicBool::new(false)).unwrap();
        assert_eq!(again.message.as_ref(), Some(&failure.message));
        assert_eq!(again.settings, failure.settings);
        assert!(!again.steps.is_empty());
    }

    #[test]
    fn runs_that_have_begun_end_when_the_caller_stops_and_count_for_nothing() {
        let stop = AtomicBool::new(true);
        let variant = VARIANTS.iter().find(|variant| variant.name == "opt").unwrap();
        let id: RunId = "many-1".parse().unwrap();
        let error =
            run_until(&stop, &id.setting(*variant, None), id.seed, id.effort(variant), &Trace::default()).unwrap_err();
        assert!(error.ends_with("after 0 operations: the caller has ended the run"), "{error}");
        assert_eq!(campaign(&request(&["opt"], 5, None), VARIANTS, &stop, &mut |_| true).unwrap().runs, 0);
    }

    #[test]
    fn a_campaign_ends_at_its_limit_and_refuses_what_it_does_not_know() {
        let without_end = RandomRequest { runs: None, ..request(&["opt"], 1, None) };
        let result = campaign(&without_end, VARIANTS, &AtomicBool::new(false), &mut |done| done < 3).unwrap();
        assert!(result.runs >= 3 && result.violations == 0, "{result:?}");
        let refused =
            |request: &RandomRequest| campaign(request, VARIANTS, &AtomicBool::new(false), &mut |_| true).unwrap_err();
        assert_eq!(refused(&request(&["unknown"], 1, None)).field, "design");
        assert_eq!(refused(&request(&["opt"], 0, None)).field, "runs");
        assert_eq!(refused(&request(&["opt"], 1, Some("nothing"))).field, "planted");
    }
}
