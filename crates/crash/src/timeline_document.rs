//! The timeline as JSON users see it: for the lines involved the writers and times, the place of each copy when the power
//! failed, the contents that were left, the writes of recovery, and the objections of the oracles.

use crate::trial::PowerFault;
use durasim_machine::LineCopy;
use durasim_types::{Cycle, Line, LineAddr, Pages, PersistEvent};
use serde::{Deserialize, Serialize};

const WORDS: usize = 8;

/// The timeline of a trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// The id of the trial.
    pub id: String,
    /// The objections of the oracles.
    pub objections: Vec<Objection>,
    /// The loss that recovery reports, where one was to be expected.
    pub reported_loss: Option<String>,
    /// The reason for following these lines.
    pub lines_chosen_because: String,
    /// Lines that could have been followed.
    pub lines_in_question: u64,
    /// The transactions that wrote to the lines.
    pub transactions: Vec<Transaction>,
    /// The phases, in order.
    pub phases: Vec<TimelinePhase>,
    /// The lines that are followed, in the end.
    pub lines: Vec<FinalLine>,
}

/// The objection of an oracle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Objection {
    /// The oracle: `bytes`, `history`, `guest`, `recovery`.
    pub oracle: String,
    /// The objection.
    pub message: String,
}

/// A transaction of the last run that ran the program's operations.
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
    /// Its state when the power failed: `open`, `committing`, `acknowledged` or `aborted`.
    pub state: String,
}

/// The program that ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
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
pub enum TimelinePhase {
    /// A program ran, and the power failed.
    Run {
        /// The program.
        program: RunKind,
        /// The events of the lines, in order.
        events: Vec<TimelineEvent>,
        /// Earlier ones that are not listed.
        events_left_out: u64,
        /// The power failure.
        failure: PowerFailure,
        /// The copies of the lines when the power failed.
        copies: Vec<LineCopyRecord>,
        /// The lines in the image that was left.
        left: Vec<LineContents>,
        /// The places where structures and regions of the design name the lines.
        traces: Vec<Trace>,
        /// Whether the crash flush was complete.
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
        /// The losses that it reports.
        losses: Vec<String>,
        /// Those of its writes that go to the lines.
        writes: Vec<RecoveryWrite>,
        /// The lines after it.
        lines: Vec<LineContents>,
    },
    /// The program's own recovery worked on the image.
    ProgramRecovery {
        /// The lines after it.
        lines: Vec<LineContents>,
    },
}

/// Whether a crash flush was complete.
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
    /// The way in which the power fails.
    pub how: String,
}

impl PowerFailure {
    pub(crate) fn of(event: &PersistEvent, fault: PowerFault) -> Self {
        let how = match fault {
            PowerFault::Clean => "a clean power failure".to_owned(),
            PowerFault::Torn(choice) => format!("lines in flight to the media are torn (choice {choice})"),
            PowerFault::Reorder(choice) => {
                format!("another subset of the unfenced cleans was accepted (choice {choice})")
            }
            PowerFault::Image(number) => {
                format!(
                    "another subset of the unfenced cleans was accepted, and dirty lines have left early (image {number})"
                )
            }
            PowerFault::Evict(choice) => format!("dirty lines have left the caches early (choice {choice})"),
            PowerFault::Model(model, number) => {
                format!("persistent memory has an image that the persistency model {} permits ({number})", model.name())
            }
            PowerFault::Energy(bytes) => format!("the energy of the crash flush ends after {bytes} bytes"),
        };
        PowerFailure { event: event.number, event_kind: event.kind.name().to_owned(), cycle: event.cycle, how }
    }
}

/// A store, a clean, a fence, a persist event or a step of a transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelineEvent {
    /// When, in cycles.
    pub cycle: Cycle,
    /// `store`, `clean`, `fence`, the kind of a persist event, or `begin`, `suspended`, `resumed`, `committing`,
    /// `acknowledged`, `aborted`.
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
    /// The old bytes.
    pub old: Option<String>,
    /// The new bytes.
    pub new: Option<String>,
    /// Of a persist event, why something was written.
    pub cause: Option<String>,
    /// Of a persist event elsewhere, where.
    pub place: Option<String>,
    /// Whether it came after the event of the power failure, before the next one.
    pub after_failure_event: bool,
}

impl TimelineEvent {
    pub(crate) fn new(what: &str, cycle: Cycle) -> Self {
        TimelineEvent { cycle, what: what.to_owned(), ..TimelineEvent::default() }
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
pub struct LineCopyRecord {
    /// The line.
    pub line: u64,
    /// The place of the copy.
    pub place: String,
    /// Whether it was newer than what lay below.
    pub dirty: bool,
    /// The design's tag on it; 0 = none.
    pub tag: u64,
    /// Whether what is left shows this version.
    pub survived: bool,
    /// Its words.
    pub words: Words,
}

impl LineCopyRecord {
    pub(crate) fn of(line: LineAddr, copy: &LineCopy, left: &Line) -> Self {
        let same = |byte: &usize| copy.mask >> byte & 1 == 0 || copy.data[*byte] == left[*byte];
        LineCopyRecord {
            line: line.base().0,
            place: copy.place.to_string(),
            dirty: copy.dirty,
            tag: copy.tag.0,
            survived: (0..left.len()).all(|byte| same(&byte)),
            words: words(&copy.data, copy.mask),
        }
    }
}

/// A line at some moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineContents {
    /// The line.
    pub line: u64,
    /// Its words.
    pub words: Words,
}

impl LineContents {
    pub(crate) fn of(line: LineAddr, pmem: &Pages) -> Self {
        LineContents { line: line.base().0, words: words(&pmem.line(line), u64::MAX) }
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
    /// The words that were written.
    pub words: Words,
}

/// A line in the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinalLine {
    /// Its first byte.
    pub line: u64,
    /// The offset in the program's data, if the line is there.
    pub data_offset: Option<u64>,
    /// The words after all recovery; null if no recovery ended.
    pub found: Option<Words>,
    /// The words that the oracle of bytes allows: with and without transactions that are inside commit.
    pub expected: Vec<Words>,
}
