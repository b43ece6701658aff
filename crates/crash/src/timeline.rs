//! Records the timeline of one trial: a first replay finds the lines involved, a second one follows them.

use crate::crash_points::SingleCrashPoint;
use crate::crashed_run::{CrashedRun, EndedRun, initial_pmem, run_with_crashes};
use crate::executor::Executor;
use crate::judge::{Context, Judge};
use crate::limits::RecoveryLimits;
use crate::outcome::{Oracle, Outcome};
use crate::postponed::Postponed;
use crate::timeline_document::{FinalLine, Objection, RunKind, Timeline, TimelinePhase, Transaction, words};
use crate::timeline_recorder::{RecordedTimeline, TimelineRecorder};
use crate::trial::Trial;
use durasim_machine::PMEM_BASE;
use durasim_types::{ConfigError, Error, LineAddr, PhysAddr, TxId};
use std::collections::{BTreeMap, BTreeSet};

/// Lines that a timeline follows if the request names none.
const LINES_MAX: usize = 4;
/// Lines that a request may name.
const FOLLOWED_MAX: usize = 16;

/// A trial that was carried out once more.
pub(crate) struct Replayed {
    /// Simulated instructions of the crashed run.
    pub instructions: u64,
    /// Rare situations that the crash point fell into.
    pub marks: BTreeMap<String, u64>,
    pub outcome: Outcome,
    pub timeline: Timeline,
    pub limits: RecoveryLimits,
}

/// Checks the lines that a request names.
///
/// # Errors
/// There are too many, or one is not in persistent memory.
pub(crate) fn check_followed(follow: &[u64]) -> Result<(), ConfigError> {
    if follow.len() > FOLLOWED_MAX {
        let problem = format!("{} lines are more than the {FOLLOWED_MAX} that a timeline follows", follow.len());
        return Err(ConfigError::new("follow", problem));
    }
    match follow.iter().find(|address| **address < PMEM_BASE.0) {
        Some(address) => Err(ConfigError::new("follow", format!("{address:#x} is no address of persistent memory"))),
        None => Ok(()),
    }
}

/// Executes a trial and records its timeline, of the lines `follow` or, if it is empty, of those that matter.
///
/// # Errors
/// As from a run.
pub(crate) fn replay(context: Context<'_>, trial: &Trial, follow: &[u64]) -> Result<Replayed, Error> {
    let searching = TimelineRecorder::searching();
    let Executed { instructions, marks, mut executor, mut tried } = execute(context, trial, &searching, false)?;
    let mut postponed = Postponed::default();
    let mut retries = executor.take_retries();
    tried.iter().for_each(|(trial, outcome)| postponed.keep(trial, outcome, retries.remove(trial)));
    let was_unfinished = tried[0].1.unfinished.is_some();
    postponed.settle(&executor, &mut tried)?;
    let outcome = tried.remove(0).1;
    let ends_later = was_unfinished && outcome.unfinished.is_none();
    let (mut lines_chosen_because, lines) = choose(&outcome, &searching.recorded());
    let lines_in_question = lines.len() as u64;
    if !follow.is_empty() {
        "the request names them".clone_into(&mut lines_chosen_because);
    }
    let named: BTreeSet<LineAddr> = follow.iter().map(|address| PhysAddr(*address).line()).collect();
    let lines: Vec<LineAddr> =
        if named.is_empty() { lines.into_iter().take(LINES_MAX).collect() } else { named.into_iter().collect() };
    let following = TimelineRecorder::following(&lines);
    execute(context, trial, &following, ends_later)?;
    let recorded = following.recorded();
    let objection = |(oracle, message): (&Oracle, &String)| Objection {
        oracle: oracle.name().to_owned(),
        message: message.clone(),
    };
    let timeline = Timeline {
        id: trial.to_string(),
        objections: outcome.objections.iter().map(objection).collect(),
        reported_loss: outcome.reported_loss.clone(),
        lines_chosen_because,
        lines_in_question,
        transactions: transactions(&recorded),
        lines: lines.iter().map(|line| line_end(&recorded, *line)).collect(),
        phases: recorded.phases,
    };
    let limits = executor.judge().limits.document();
    Ok(Replayed { instructions, marks, outcome, timeline, limits })
}

fn line_end(recorded: &RecordedTimeline, line: LineAddr) -> FinalLine {
    let (found, expected) =
        recorded.end.get(&line).map(|(found, expected)| (Some(found), expected.as_slice())).unwrap_or_default();
    FinalLine {
        line: line.base().0,
        data_offset: recorded.data_offset(line),
        found: found.map(|data| words(data, u64::MAX)),
        expected: expected.iter().map(|data| words(data, u64::MAX)).collect(),
    }
}

/// A trial that was carried out, with the worker that did it.
pub(crate) struct Executed<'a> {
    instructions: u64,
    marks: BTreeMap<String, u64>,
    executor: Executor<'a>,
    pub tried: Vec<(Trial, Outcome)>,
}

/// Runs the program from its begin up to the trial's first failure, and carries the trial out from there.
pub(crate) fn execute<'a>(
    context: Context<'a>,
    trial: &Trial,
    timeline_recorder: &TimelineRecorder,
    once_more: bool,
) -> Result<Executed<'a>, Error> {
    let prepared = context.prepared;
    let single = SingleCrashPoint::with(trial.event, trial.fault);
    let pmem = initial_pmem(prepared, &prepared.program);
    timeline_recorder.run_begins(RunKind::Run, pmem.clone(), &prepared.plan.geometry, context.history);
    let declares = context.crash_free.declares;
    let program = &prepared.program;
    let run = CrashedRun {
        prepared,
        program,
        expected: pmem,
        declares,
        recovers_first: false,
        limits: None,
        store_recorder: None,
        persistency: context.persistency,
    };
    let EndedRun { instructions, selector: single, ended } =
        run_with_crashes(run, single, None, Some(timeline_recorder), context.stop)?;
    ended?;
    if let Some(ways) = single.too_few_choices {
        let problem = format!(
            "'{trial}' does not exist: persist event {} has {ways} choices of {}",
            trial.event,
            trial.fault.name()
        );
        return Err(ConfigError::new("replay", problem).into());
    }
    if let Some((refusal, persistency)) = single.refusal.zip(context.persistency) {
        let problem = format!("'{trial}' does not exist: {}", refusal.sentence(trial.event, persistency.model));
        return Err(ConfigError::new("replay", problem).into());
    }
    let (crash, marks) = single.crash_and_marks();
    // The run has this event; it ends before it only if the replay is cancelled.
    let crash = crash.ok_or_else(|| ConfigError::new("campaign", "the campaign was stopped before its first crash"))?;
    let mut judge = Judge::new(context)?;
    judge.timeline_recorder = Some(timeline_recorder.clone());
    let mut executor = Executor::new(judge);
    if once_more {
        executor = executor.once_more();
    }
    let outcome = match executor.crash_point(crash) {
        Ok(point) => executor.execute(&point, &mut trial.then.iter()),
        Err(tried) => *tried,
    };
    Ok(Executed { instructions, marks, executor, tried: vec![outcome] })
}

/// The lines that matter, and why.
fn choose(outcome: &Outcome, recorded: &RecordedTimeline) -> (String, Vec<LineAddr>) {
    if !recorded.in_question.is_empty() && !outcome.objections.is_empty() {
        return ("their bytes differ from what the byte oracle allows".into(), recorded.in_question.clone());
    }
    let inside_first = |lines: Vec<LineAddr>| -> Vec<LineAddr> {
        let (inside, outside): (Vec<_>, Vec<_>) =
            lines.into_iter().partition(|line| recorded.data_offset(*line).is_some());
        if inside.is_empty() { outside } else { inside }
    };
    let named: BTreeSet<TxId> = outcome.objections.values().flat_map(|what| transactions_in(what)).collect();
    let mut lines = Vec::new();
    for transaction in named.iter().filter_map(|tx| recorded.transactions.get(tx)) {
        for line in transaction.lines.iter().rev().filter(|line| !lines.contains(*line)).copied().collect::<Vec<_>>() {
            lines.push(line);
        }
    }
    if !lines.is_empty() {
        return ("transactions that the objections name wrote them".into(), inside_first(lines));
    }
    let last = recorded.last.and_then(|tx| Some((tx, recorded.transactions.get(&tx)?)));
    match last {
        Some((tx, transaction)) => {
            let because = format!("transaction {}, the last one before the power failure, wrote them", tx.0);
            (because, inside_first(transaction.lines.clone()))
        }
        None => ("no transaction had stored anything when the power failed".into(), Vec::new()),
    }
}

/// The numbers after the word "transaction".
fn transactions_in(text: &str) -> Vec<TxId> {
    let rest = text.split("transaction ").skip(1);
    let digits = rest.map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default());
    digits.filter_map(|digits| digits.parse().ok().map(TxId)).collect()
}

fn transactions(recorded: &RecordedTimeline) -> Vec<Transaction> {
    let mut wrote = BTreeSet::new();
    for phase in &recorded.phases {
        if let TimelinePhase::Run { events, program, .. } = phase
            && *program != RunKind::Recovery
        {
            wrote.extend(events.iter().filter(|event| event.what == "store").filter_map(|h| h.tx));
        }
    }
    let transaction = |tx: u64| {
        let transaction = recorded.transactions.get(&TxId(tx))?;
        let place = recorded.names.as_ref().and_then(|names| names.place_of(TxId(tx)));
        Some(Transaction {
            tx,
            core: transaction.core,
            thread: place.map(|(thread, _)| thread),
            operation: place.and_then(|(_, operation)| operation),
            begun: transaction.begun,
            committing: transaction.committing,
            acknowledged: transaction.acknowledged,
            state: transaction.state().to_owned(),
        })
    };
    wrote.into_iter().filter_map(transaction).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline_recorder::TransactionRecord;

    #[test]
    fn words_are_numbers_and_unknown_bytes_dots() {
        let mut line = [0; 64];
        line[8] = 0x80;
        line[9] = 1;
        assert_eq!(words(&line, u64::MAX)[1].as_deref(), Some("0000000000000180"));
        assert_eq!(words(&line, 0x100)[1].as_deref(), Some("..............80"));
        assert_eq!(words(&line, 0x100)[0], None);
    }

    #[test]
    fn lines_are_those_in_question_or_of_the_transactions_named_or_of_the_last_one() {
        let line = |n: u64| LineAddr(0x400 + n);
        let transaction = |lines: &[u64]| {
            let mut transaction = TransactionRecord::default();
            transaction.lines.extend(lines.iter().map(|&n| line(n)));
            transaction
        };
        let mut recorded = RecordedTimeline {
            in_question: vec![line(9)],
            transactions: BTreeMap::from([(TxId(1), transaction(&[1, 2, 3])), (TxId(2), transaction(&[0x80, 4]))]),
            last: Some(TxId(2)),
            data_base: Some(line(0).base()),
            data_bytes: 64 * 0x40,
            ..RecordedTimeline::default()
        };
        let mut outcome = Outcome::default();
        outcome.objections.insert(Oracle::History, "transaction 1 of thread 0 is lost".into());
        let chosen = |outcome: &Outcome, recorded: &RecordedTimeline| {
            choose(outcome, recorded).1.iter().map(|l| l.0 - 0x400).collect::<Vec<_>>()
        };
        assert_eq!(chosen(&outcome, &recorded), [9]);
        recorded.in_question.clear();
        assert_eq!(chosen(&outcome, &recorded), [3, 2, 1], "what it wrote last comes first");
        outcome.objections.clear();
        assert_eq!(chosen(&outcome, &recorded), [4], "a line outside of the data is its log");
        recorded.data_bytes = 0;
        assert_eq!(chosen(&outcome, &recorded), [0x80, 4]);
        recorded.last = None;
        assert!(chosen(&outcome, &recorded).is_empty());
    }

    #[test]
    fn objections_name_transactions() {
        let text = "operation 3 of thread 0 (transaction 17) is lost, which transaction 4 of thread 1 read";
        assert_eq!(transactions_in(text), [TxId(17), TxId(4)]);
        assert_eq!(transactions_in("2 acknowledged transactions, first at 0x40"), []);
    }
}
