//! How the timeline of one trial comes about: a first replay finds the lines involved, a second one follows them.

use crate::case::Case;
use crate::executor::Executor;
use crate::judge::{Context, Judge};
use crate::life::{Single, initial_pmem, shoot};
use crate::outcome::{Oracle, Outcome};
use crate::scribe::{Scribe, Told};
use crate::story::{Chapter, LineEnd, Objection, Program, Timeline, Transaction, words};
use durasim_types::{ConfigError, Error, LineAddr, TxId};
use std::collections::{BTreeMap, BTreeSet};

/// Lines that a timeline follows.
const LINES_MAX: usize = 4;

/// A case that was carried out once more.
pub(crate) struct Replayed {
    /// Simulated instructions of the crashed run.
    pub instructions: u64,
    /// Rare situations that the crash point fell into.
    pub marks: BTreeMap<String, u64>,
    pub outcome: Outcome,
    pub timeline: Timeline,
}

/// Carries a case out, and tells its timeline.
///
/// # Errors
/// As from a run.
pub(crate) fn replay(context: Context<'_>, case: &Case) -> Result<Replayed, Error> {
    let searching = Scribe::searching();
    let (instructions, marks, outcome) = execute(context, case, &searching)?;
    let (lines_because, lines) = choose(&outcome, &searching.told());
    let lines_in_question = lines.len() as u64;
    let lines: Vec<LineAddr> = lines.into_iter().take(LINES_MAX).collect();
    let following = Scribe::following(&lines);
    execute(context, case, &following)?;
    let told = following.told();
    let objection = |(oracle, message): (&Oracle, &String)| Objection {
        oracle: oracle.name().to_owned(),
        message: message.clone(),
    };
    let timeline = Timeline {
        id: case.to_string(),
        objections: outcome.objections.iter().map(objection).collect(),
        reported_loss: outcome.reported_loss.clone(),
        lines_because,
        lines_in_question,
        transactions: transactions(&told),
        lines: lines.iter().map(|line| line_end(&told, *line)).collect(),
        chapters: told.chapters,
    };
    Ok(Replayed { instructions, marks, outcome, timeline })
}

fn line_end(told: &Told, line: LineAddr) -> LineEnd {
    let (found, expected) =
        told.end.get(&line).map(|(found, expected)| (Some(found), expected.as_slice())).unwrap_or_default();
    LineEnd {
        line: line.base().0,
        data_offset: told.data_offset(line),
        found: found.map(|data| words(data, u64::MAX)),
        expected: expected.iter().map(|data| words(data, u64::MAX)).collect(),
    }
}

/// Runs the program from its begin up to the case's first failure, and carries the case out from there.
fn execute(context: Context<'_>, case: &Case, scribe: &Scribe) -> Result<(u64, BTreeMap<String, u64>, Outcome), Error> {
    let prepared = context.prepared;
    let single = Single::with(case.event, case.blow);
    let pmem = initial_pmem(prepared, &prepared.program);
    scribe.life_begins(Program::Run, pmem, &prepared.plan.geometry, context.history);
    let (instructions, single) = shoot(prepared, &prepared.program, single, None, Some(scribe), context.stop)?;
    let (shot, marks) = single.taken_with_marks();
    // The run has this event; it ends before it only if somebody ends the replay.
    let shot = shot.ok_or_else(|| ConfigError::new("campaign", "stopped before its first crash"))?;
    let mut judge = Judge::new(context)?;
    judge.scribe = Some(scribe.clone());
    let mut executor = Executor::new(judge);
    let outcome = match executor.crash_point(shot) {
        Ok(point) => executor.execute(&point, &mut case.then.iter()).expect("a case that is given is carried out"),
        Err(tried) => tried,
    };
    Ok((instructions, marks, outcome.1))
}

/// Which lines matter, and why.
fn choose(outcome: &Outcome, told: &Told) -> (String, Vec<LineAddr>) {
    if !told.in_question.is_empty() && !outcome.objections.is_empty() {
        return ("their bytes are not what they have to be".into(), told.in_question.clone());
    }
    let inside_first = |lines: Vec<LineAddr>| -> Vec<LineAddr> {
        let (inside, outside): (Vec<_>, Vec<_>) = lines.into_iter().partition(|line| told.data_offset(*line).is_some());
        if inside.is_empty() { outside } else { inside }
    };
    let named: BTreeSet<TxId> = outcome.objections.values().flat_map(|what| transactions_in(what)).collect();
    let mut lines = Vec::new();
    for tale in named.iter().filter_map(|tx| told.transactions.get(tx)) {
        for line in tale.lines.iter().rev().filter(|line| !lines.contains(*line)).copied().collect::<Vec<_>>() {
            lines.push(line);
        }
    }
    if !lines.is_empty() {
        return ("transactions that the objections name wrote them".into(), inside_first(lines));
    }
    let last = told.last.and_then(|tx| Some((tx, told.transactions.get(&tx)?)));
    match last {
        Some((tx, tale)) => {
            let because = format!("transaction {}, the last one before the power failure, wrote them", tx.0);
            (because, inside_first(tale.lines.clone()))
        }
        None => ("no transaction had stored anything when the power failed".into(), Vec::new()),
    }
}

/// The numbers behind the word "transaction".
fn transactions_in(text: &str) -> Vec<TxId> {
    let behind = text.split("transaction ").skip(1);
    let digits = behind.map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default());
    digits.filter_map(|digits| digits.parse().ok().map(TxId)).collect()
}

fn transactions(told: &Told) -> Vec<Transaction> {
    let mut wrote = BTreeSet::new();
    for chapter in &told.chapters {
        if let Chapter::Life { happenings, program, .. } = chapter
            && *program != Program::Recovery
        {
            wrote.extend(happenings.iter().filter(|happening| happening.what == "store").filter_map(|h| h.tx));
        }
    }
    let tale = |tx: u64| {
        let tale = told.transactions.get(&TxId(tx))?;
        let place = told.names.as_ref().and_then(|names| names.place_of(TxId(tx)));
        Some(Transaction {
            tx,
            core: tale.core,
            thread: place.map(|(thread, _)| thread),
            operation: place.and_then(|(_, operation)| operation),
            begun: tale.begun,
            committing: tale.committing,
            acknowledged: tale.acknowledged,
            state: tale.state().to_owned(),
        })
    };
    wrote.into_iter().filter_map(tale).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scribe::Tale;

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
        let tale = |lines: &[u64]| {
            let mut tale = Tale::default();
            tale.lines.extend(lines.iter().map(|&n| line(n)));
            tale
        };
        let mut told = Told {
            in_question: vec![line(9)],
            transactions: BTreeMap::from([(TxId(1), tale(&[1, 2, 3])), (TxId(2), tale(&[0x80, 4]))]),
            last: Some(TxId(2)),
            data_base: Some(line(0).base()),
            data_bytes: 64 * 0x40,
            ..Told::default()
        };
        let mut outcome = Outcome::default();
        outcome.objections.insert(Oracle::History, "transaction 1 of thread 0 is lost".into());
        let chosen =
            |outcome: &Outcome, told: &Told| choose(outcome, told).1.iter().map(|l| l.0 - 0x400).collect::<Vec<_>>();
        assert_eq!(chosen(&outcome, &told), [9]);
        told.in_question.clear();
        assert_eq!(chosen(&outcome, &told), [3, 2, 1], "what it wrote last comes first");
        outcome.objections.clear();
        assert_eq!(chosen(&outcome, &told), [4], "a line outside of the data is its log");
        told.data_bytes = 0;
        assert_eq!(chosen(&outcome, &told), [0x80, 4]);
        told.last = None;
        assert!(chosen(&outcome, &told).is_empty());
    }

    #[test]
    fn objections_name_transactions() {
        let text = "operation 3 of thread 0 (transaction 17) is lost, which transaction 4 of thread 1 read";
        assert_eq!(transactions_in(text), [TxId(17), TxId(4)]);
        assert_eq!(transactions_in("2 acknowledged transactions, first at 0x40"), []);
    }
}
