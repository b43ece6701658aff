//! The oracle `output`: what the check prints of recovered contents has to be what it prints of the contents after a number of
//! whole operations, and none that had ended may be missing. The program needs no annotation but the ends of its operations:
//! markers, or else the lines that it prints. The idea is that of X. Fu, W.-H. Kim, A. P. Shreepathi, M. Ismail, S. Wadkar,
//! D. Lee, C. Min: Witcher: Systematic Crash Consistency Testing for Non-Volatile Memory Key-Value Stores, SOSP 2021.
//!
//! The contents after each operation come from a functional run of the program, in which every store is durable at once.

use crate::byte_oracle::Verdict;
use crate::history::{HistoryRecorder, RecordedMoment};
use durasim_machine::{Budget, LoadedProgram, Output, Prepared, Program, Stream};
use durasim_types::{Boundary, BoundaryKind, Error, Pages};
use std::sync::{Arc, OnceLock};

/// The output of the check on some contents; the error is the sentence with which it refuses them.
pub(crate) type Printed = Result<Vec<u8>, String>;

/// Lines of outputs in messages are cut to this number of characters.
const LINE_SHOWN_MAX: usize = 80;
/// Times the instructions and memory of the run on the machine that the functional run may take: threads may wait longer.
const TIMES_RUN: u64 = 20;

/// The expectations for one run of the program. Clones share them.
#[derive(Clone)]
pub(crate) struct OutputOracle(Arc<Expected>);

struct Expected {
    kind: BoundaryKind,
    /// The persist event before each boundary that the run has passed on the machine.
    after: Vec<u64>,
    /// The contents before the run, at each boundary, and after the run.
    states: Vec<State>,
}

/// The contents of persistent memory at a moment of the run.
struct State {
    moment: Moment,
    pmem: Pages,
    /// The output of the check on it, once that has been asked.
    printed: OnceLock<Printed>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    Start,
    At(Boundary),
    End,
}

impl Moment {
    /// Whether all that happened before has been promised to survive.
    fn promises(self) -> bool {
        matches!(self, Moment::Start | Moment::At(Boundary::Ends(_) | Boundary::Printed(_)))
    }

    fn name(self) -> String {
        match self {
            Moment::Start => "before the run".to_owned(),
            Moment::At(Boundary::Begins(number)) => format!("when operation {number} begins"),
            Moment::At(Boundary::Ends(number)) => format!("after operation {number}"),
            Moment::At(Boundary::Printed(1)) => "after it has printed once".to_owned(),
            Moment::At(Boundary::Printed(times)) => format!("after it has printed {times} times"),
            Moment::End => "at the end of the run".to_owned(),
        }
    }
}

/// A moment of a run on the machine: the number of boundaries that it has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passed(usize);

fn refuse<T>(what: &str) -> Result<T, Error> {
    Err(Error::Failed(format!("--oracle output: {what}")))
}

impl OutputOracle {
    /// The expectations for a run on `pmem` that has been recorded without a power failure; `taken` is what it has taken.
    ///
    /// # Errors
    /// As from a run; a program whose operations are not known, or those of several threads, or that does something else in
    /// a functional run.
    pub fn of_run(prepared: &Prepared, pmem: Pages, recorder: &HistoryRecorder, taken: Budget) -> Result<Self, Error> {
        let Some(kind) = recorder.kind_of_boundaries() else {
            return refuse("the program neither marks operations (durasim_op_begin, durasim_op_end) nor prints lines");
        };
        Self::new(kind, prepared, &prepared.program, pmem, recorder, taken.times(TIMES_RUN))
    }

    /// The expectations for a run of the program after a crash, recorded up to the next one.
    ///
    /// # Errors
    /// As from [`OutputOracle::of_run`].
    pub fn of_later_run(
        &self,
        prepared: &Prepared,
        program: &Program,
        pmem: Pages,
        recorder: &HistoryRecorder,
        budget: Budget,
    ) -> Result<Self, Error> {
        Self::new(self.0.kind, prepared, program, pmem, recorder, budget)
    }

    fn new(
        kind: BoundaryKind,
        prepared: &Prepared,
        program: &Program,
        pmem: Pages,
        recorder: &HistoryRecorder,
        budget: Budget,
    ) -> Result<Self, Error> {
        let (passed, threads) = recorder.boundaries(kind);
        if threads > 1 {
            return refuse("more than one thread has operations: the contents after a number of them are not defined");
        }
        let mut program = LoadedProgram::new(&prepared.config, &prepared.plan, program)?;
        let (ending, functional) = program.run_with_boundaries(kind, pmem.clone(), budget, &mut Nowhere)?;
        if ending.exit_code != Some(0) {
            return refuse("the program does not exit with 0 in a functional run");
        }
        let are_alike = passed.len() <= functional.len()
            && passed.iter().zip(&functional).all(|((_, machine), (functional, _))| are_one(*machine, *functional));
        if !are_alike {
            return refuse("the program has other operations in a functional run: what it does depends on time");
        }
        let state = |moment, pmem| State { moment, pmem, printed: OnceLock::new() };
        let mut states = vec![state(Moment::Start, pmem)];
        states.extend(functional.into_iter().map(|(boundary, pmem)| state(Moment::At(boundary), pmem)));
        states.push(state(Moment::End, ending.pool.pages));
        let after = passed.into_iter().map(|(after, _)| after).collect();
        Ok(OutputOracle(Arc::new(Expected { kind, after, states })))
    }

    /// The moment just before the persist event after `event`.
    pub fn passed_after(&self, event: u64) -> Passed {
        Passed(self.0.after.partition_point(|&after| after <= event))
    }

    /// The moment of this persist event.
    pub fn passed_at(&self, event: u64) -> Passed {
        Passed(self.0.after.partition_point(|&after| after < event))
    }

    /// The moment of a run that was recorded up to there.
    pub fn passed_until(&self, moment: RecordedMoment) -> Passed {
        Passed(moment.boundaries(self.0.kind))
    }

    /// Judges what the check printed of an image of this moment. `print` is the check.
    pub fn judge(&self, Passed(passed): Passed, found: &[u8], print: &mut dyn FnMut(Pages) -> Printed) -> Verdict {
        let states = &self.0.states;
        // An operation in progress may be there as a whole.
        let next = (passed + 1).min(states.len() - 1);
        let first = states[..=passed].iter().rposition(|state| state.moment.promises()).unwrap_or(0);
        let mut objections: Vec<(String, String)> = Vec::new();
        for state in &states[first..=next] {
            let what = match state.printed.get_or_init(|| print(state.pmem.clone())) {
                Ok(expected) if expected == found => return Verdict::Right,
                Ok(expected) => difference(found, expected),
                Err(refusal) => format!("the check itself says there: {refusal}"),
            };
            match objections.iter_mut().find(|(known, _)| *known == what) {
                Some((_, moments)) => *moments = format!("{moments} and {}", state.moment.name()),
                None => objections.push((what, state.moment.name())),
            }
        }
        let texts: Vec<String> = objections.into_iter().map(|(what, moments)| format!("{moments} ({what})")).collect();
        Verdict::Wrong(format!("the check prints something else than {}", texts.join(", or ")))
    }
}

/// Whether these are one boundary. Programs may leave the number of an end out.
fn are_one(machine: Boundary, functional: Boundary) -> bool {
    match (machine, functional) {
        (Boundary::Ends(_), Boundary::Ends(_)) => true,
        _ => machine == functional,
    }
}

/// The first line in which two outputs differ.
fn difference(found: &[u8], expected: &[u8]) -> String {
    let (found, expected) = (String::from_utf8_lossy(found), String::from_utf8_lossy(expected));
    let (mut found, mut expected) = (found.lines(), expected.lines());
    let mut number = 1;
    loop {
        match (found.next(), expected.next()) {
            (Some(found), Some(expected)) if found == expected => number += 1,
            (None, None) => return "other ends of lines".to_owned(),
            (found, expected) => return format!("line {number}: {} in place of {}", shown(found), shown(expected)),
        }
    }
}

fn shown(line: Option<&str>) -> String {
    match line {
        None => "the end".to_owned(),
        Some(line) if line.chars().count() > LINE_SHOWN_MAX => {
            format!("'{}...'", line.chars().take(LINE_SHOWN_MAX).collect::<String>())
        }
        Some(line) => format!("'{line}'"),
    }
}

/// Drops the output of the functional run, which was seen before.
struct Nowhere;

impl Output for Nowhere {
    fn write(&mut self, _: Stream, _: &[u8]) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use durasim_machine::PMEM_BASE;

    /// A run with two marked operations. The machine has passed their boundaries after these persist events. The check prints the
    /// number of the state.
    fn oracle(after: &[u64]) -> OutputOracle {
        let boundaries =
            [Boundary::Begins(0), Boundary::Ends(0), Boundary::Begins(1), Boundary::Ends(1)].map(Moment::At);
        let moments = [&[Moment::Start][..], &boundaries, &[Moment::End]].concat();
        let printed = |number: usize| {
            let text = OnceLock::new();
            text.get_or_init(|| Ok(format!("state\n{number}\n").into_bytes()));
            text
        };
        let pages = || Pages::new(PMEM_BASE, 1 << 20);
        let state = |(number, &moment): (usize, &Moment)| State { moment, pmem: pages(), printed: printed(number) };
        let states = moments.iter().enumerate().map(state).collect();
        OutputOracle(Arc::new(Expected { kind: BoundaryKind::Markers, after: after.to_vec(), states }))
    }

    fn allowed(oracle: &OutputOracle, passed: Passed) -> Vec<usize> {
        let is_right = |number: &usize| {
            let found = format!("state\n{number}\n");
            oracle.judge(passed, found.as_bytes(), &mut |_| unreachable!("all is known")) == Verdict::Right
        };
        (0..6).filter(is_right).collect()
    }

    #[test]
    fn what_has_ended_is_there_and_what_is_in_progress_may_be() {
        let oracle = oracle(&[3, 7, 7, 9]);
        assert_eq!(oracle.passed_after(2), Passed(0));
        assert_eq!(allowed(&oracle, Passed(0)), [0, 1], "the set-up before the first operation");
        assert_eq!(oracle.passed_after(3), Passed(1));
        assert_eq!(allowed(&oracle, Passed(1)), [0, 1, 2]);
        assert_eq!((oracle.passed_at(7), oracle.passed_after(7)), (Passed(1), Passed(3)));
        assert_eq!(allowed(&oracle, Passed(3)), [2, 3, 4], "the first operation has to be there");
        assert_eq!(allowed(&oracle, Passed(4)), [4, 5]);
    }

    #[test]
    fn an_objection_names_moments_and_lines() {
        let Verdict::Wrong(what) = oracle(&[3, 7]).judge(Passed(2), b"state\n", &mut |_| unreachable!()) else {
            panic!("two states are allowed");
        };
        assert_eq!(
            what,
            "the check prints something else than after operation 0 (line 2: the end in place of '2'), or when operation 1 \
             begins (line 2: the end in place of '3')"
        );
    }
}
