//! The timeline of one trial: for the lines involved who wrote what and when, where each copy lay when the power failed,
//! what was left, what recovery did, and what the oracles say. It is what JSON users see.

use crate::case::{Blow, Case};
use crate::life::{Single, shoot};
use crate::scribe::{Scribe, Told};
use crate::trial::{Judge, Outcome, Shared};
use durasim_machine::{Copy, Place};
use durasim_types::{Cycle, Error, Line, LineAddr, Pages, PersistEvent, TxId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Lines that a timeline follows.
const LINES_MAX: usize = 4;
const WORDS: usize = 8;

/// The timeline of a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// The id of the trial.
    pub id: String,
    /// What the oracles object; empty if they do not.
    pub objections: Vec<Objection>,
    /// What recovery reports as lost, where a loss was to be expected.
    pub reported_loss: Option<String>,
    /// Why these lines are followed.
    pub lines_because: String,
    /// Lines that could have been followed.
    pub lines_in_question: u64,
    /// The transactions that wrote to the lines.
    pub transactions: Vec<Transaction>,
    /// What happened, in order.
    pub chapters: Vec<Chapter>,
    /// The lines that are followed, in the end.
    pub lines: Vec<LineEnd>,
}

/// What an oracle objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Objection {
    /// Who: `bytes`, `history`, `guest`, `recovery`.
    pub oracle: String,
    /// What.
    pub message: String,
}

/// A transaction of the last life that ran the program's operations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transaction {
    /// Its number.
    pub tx: u64,
    /// The core on which it began.
    pub core: u16,
    /// Its thread, if the program reports its operations.
    pub thread: Option<u32>,
    /// The operation that it is part of.
    pub operation: Option<u64>,
    /// When it began, in cycles.
    pub begun: Cycle,
    /// When its commit began.
    pub committing: Option<Cycle>,
    /// When it was acknowledged.
    pub acknowledged: Option<Cycle>,
    /// What it was when the power failed: `open`, `committing`, `acknowledged` or `aborted`.
    pub state: String,
}

/// Which program lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    /// The run that is crashed.
    #[default]
    Run,
    /// The program's recovery, which fails too.
    Recovery,
    /// Further work after a recovery.
    Work,
}

/// A part of a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Chapter {
    /// A program ran, and the power failed.
    Life {
        /// Which.
        program: Program,
        /// What became of the lines, in order.
        happenings: Vec<Happening>,
        /// Earlier ones that are not listed.
        happenings_left_out: u64,
        /// The power failure.
        failure: PowerFailure,
        /// The copies of the lines when the power failed.
        copies: Vec<CopySeen>,
        /// The lines in the image that was left.
        left: Vec<Seen>,
        /// Where structures and regions of the design name the lines.
        traces: Vec<Trace>,
        /// Whether the crash flush came to its end.
        #[serde(flatten)]
        loss: Loss,
    },
    /// The hardware's recovery worked on the image.
    HardwareRecovery {
        /// The write at which it was cut.
        cut_at_write: Option<u64>,
        /// Writes that it made.
        writes_total: u64,
        /// Transactions carried through.
        replayed: u64,
        /// Transactions discarded.
        discarded: u64,
        /// What it reports as lost.
        losses: Vec<String>,
        /// Those of its writes that go to the lines.
        writes: Vec<RecoveryWrite>,
        /// The lines after it.
        lines: Vec<Seen>,
    },
    /// The program's own recovery worked on the image.
    ProgramRecovery {
        /// The lines after it.
        lines: Vec<Seen>,
    },
}

/// Whether a crash flush came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// Its energy ended before.
    pub dirty_shutdown: bool,
}

/// A power failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PowerFailure {
    /// The persist event after which it comes, before the next one.
    pub event: u64,
    /// The kind of that event.
    pub event_kind: String,
    /// Its cycle.
    pub cycle: Cycle,
    /// How the power fails.
    pub how: String,
}

impl PowerFailure {
    pub(crate) fn of(event: &PersistEvent, blow: Blow) -> Self {
        let how = match blow {
            Blow::Clean => "a clean cut".to_owned(),
            Blow::Torn(choice) => format!("lines in flight to the media are torn (choice {choice})"),
            Blow::Reorder(choice) => format!("another part of the unfenced cleans was accepted (choice {choice})"),
            Blow::Energy(bytes) => format!("the energy of the crash flush ends after {bytes} bytes"),
        };
        PowerFailure { event: event.number, event_kind: event.kind.name().to_owned(), cycle: event.cycle, how }
    }
}

/// A store, a persist event or a step of a transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Happening {
    /// When, in cycles.
    pub cycle: Cycle,
    /// `store`, the kind of a persist event, or `begin`, `committing`, `acknowledged`, `aborted`.
    pub what: String,
    /// The number of the persist event.
    pub event: Option<u64>,
    /// The line that it concerns, by its first byte.
    pub line: Option<u64>,
    /// The core.
    pub core: Option<u16>,
    /// The transaction.
    pub tx: Option<u64>,
    /// Of a store, the first byte in the line.
    pub offset: Option<u64>,
    /// Of a store, its bytes.
    pub size_bytes: Option<u64>,
    /// What the bytes were.
    pub old: Option<String>,
    /// What they became.
    pub new: Option<String>,
    /// Of a persist event, why something was written.
    pub cause: Option<String>,
    /// Of a persist event elsewhere, where.
    pub place: Option<String>,
    /// Whether it came behind the event of the power failure, before the next one.
    pub behind: bool,
}

impl Happening {
    pub(crate) fn new(what: &str, cycle: Cycle) -> Self {
        Happening { cycle, what: what.to_owned(), ..Happening::default() }
    }
}

/// The words of eight bytes of a line, as numbers; bytes that are not known are `..`, words of them null.
pub type Words = Vec<Option<String>>;

/// Gives the words of the bytes in `mask`.
pub(crate) fn words(data: &Line, mask: u64) -> Words {
    let word = |index: usize| {
        let known = |byte: usize| mask >> (WORDS * index + byte) & 1 == 1;
        let text = |byte: usize| if known(byte) { format!("{:02x}", data[WORDS * index + byte]) } else { "..".into() };
        (0..WORDS).any(known).then(|| (0..WORDS).rev().map(text).collect())
    };
    (0..WORDS).map(word).collect()
}

/// A copy of a line when the power failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopySeen {
    /// The line.
    pub line: u64,
    /// Where it lay.
    pub place: String,
    /// Whether it was newer than what lay below.
    pub dirty: bool,
    /// The design's tag on it; 0 = none.
    pub tag: u64,
    /// Whether what is left shows this version.
    pub survived: bool,
    /// What it was.
    pub words: Words,
}

impl CopySeen {
    pub(crate) fn of(line: LineAddr, copy: &Copy, left: &Line) -> Self {
        let place = match copy.place {
            Place::Cache(level, Some(core)) => format!("{} of core {}", level.name(), core.0),
            Place::Cache(level, None) => level.name().to_owned(),
            Place::PersistBuffer(core) => format!("persist buffer of core {}", core.0),
            Place::Unfenced => "possible, unfenced".to_owned(),
            Place::BeforeQueue(controller) => format!("before write queue {controller}"),
            Place::Queue { controller, in_service, held } => {
                let how = if held {
                    ", held"
                } else if in_service {
                    ", to media"
                } else {
                    ""
                };
                format!("write queue {controller}{how}")
            }
            Place::Media => "media".to_owned(),
        };
        let same = |byte: &usize| copy.mask >> byte & 1 == 0 || copy.data[*byte] == left[*byte];
        CopySeen {
            line: line.base().0,
            place,
            dirty: copy.dirty,
            tag: copy.tag.0,
            survived: (0..left.len()).all(|byte| same(&byte)),
            words: words(&copy.data, copy.mask),
        }
    }
}

/// A line at some moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The line.
    pub line: u64,
    /// What it is.
    pub words: Words,
}

impl Seen {
    pub(crate) fn of(line: LineAddr, pmem: &Pages) -> Self {
        Seen { line: line.base().0, words: words(&pmem.line(line), u64::MAX) }
    }
}

/// A place of a nonvolatile structure or of a region of the design that names a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// The line.
    pub line: u64,
    /// The structure or region.
    pub place: String,
    /// The byte in it.
    pub offset: u64,
}

/// A write of the hardware's recovery to a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryWrite {
    /// Its number among the writes of that recovery, from 1.
    pub number: u64,
    /// The line.
    pub line: u64,
    /// What was written.
    pub words: Words,
}

/// A line in the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineEnd {
    /// Its first byte.
    pub line: u64,
    /// Where that lies in the program's data, if it does.
    pub data_offset: Option<u64>,
    /// What it is after all recovery; null if nobody came to look at it.
    pub found: Option<Words>,
    /// What it may be, as the oracle of bytes says: with and without transactions that are inside commit.
    pub expected: Vec<Words>,
}

/// Tells the timeline of a trial.
///
/// # Errors
/// As from a run.
pub(crate) fn timeline(shared: Shared<'_>, case: &Case) -> Result<Timeline, Error> {
    let searching = Scribe::searching();
    let outcome = replay(shared, case, &searching)?;
    let (lines_because, lines) = choose(&outcome, &searching.told());
    let lines_in_question = lines.len() as u64;
    let lines: Vec<LineAddr> = lines.into_iter().take(LINES_MAX).collect();
    let following = Scribe::following(&lines);
    replay(shared, case, &following)?;
    let told = following.told();
    let objection = |(oracle, message): (&crate::trial::Oracle, &String)| Objection {
        oracle: oracle.name().to_owned(),
        message: message.clone(),
    };
    let end = |line: &LineAddr| {
        let (found, expected) =
            told.end.get(line).map(|(found, expected)| (Some(found), expected.as_slice())).unwrap_or_default();
        LineEnd {
            line: line.base().0,
            data_offset: told.data_offset(*line),
            found: found.map(|data| words(data, u64::MAX)),
            expected: expected.iter().map(|data| words(data, u64::MAX)).collect(),
        }
    };
    Ok(Timeline {
        id: case.to_string(),
        objections: outcome.objections.iter().map(objection).collect(),
        reported_loss: outcome.reported_loss.clone(),
        lines_because,
        lines_in_question,
        transactions: transactions(&told),
        lines: lines.iter().map(end).collect(),
        chapters: told.chapters,
    })
}

fn replay(shared: Shared<'_>, case: &Case, scribe: &Scribe) -> Result<Outcome, Error> {
    let single = Single::with(case.event, case.blow);
    let prepared = shared.prepared;
    let names = shared.history;
    let pmem = match &prepared.program.pool {
        Some(pool) => pool.pages.clone(),
        None => Pages::new(durasim_machine::PMEM_BASE, prepared.config.pmem.capacity_mib << 20),
    };
    scribe.life_begins(Program::Run, pmem, &prepared.plan.geometry, names);
    let (_, single) = shoot(prepared, &prepared.program, single, None, Some(scribe), shared.stop)?;
    let shot = single.taken().expect("the schedule has checked that the run has this event");
    let mut judge = Judge::new(shared)?;
    judge.tell(scribe.clone());
    let outcome = judge.replay(shot, case).into_iter().next().map(|(_, outcome)| outcome);
    Ok(outcome.expect("a replay is one trial"))
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
    use crate::trial::Oracle;
    use std::collections::BTreeMap;

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
