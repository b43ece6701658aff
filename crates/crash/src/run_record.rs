//! Records all steps of a run without a power failure: what its threads do with persistent memory, what leaves the caches, and
//! all persist events.

use crate::crashed_run::{Interruptible, run_to_end};
use crate::request::CrashRequest;
use crate::run_record_document::{RecordedPlace, RecordedRegion, RecordedStep, RunRecord};
use durasim_contract::Variant;
use durasim_machine::{Machine, Observer, Prepared, SourceLines, System, prepare};
use durasim_types::{
    ConfigError, CoreId, Cycle, DataRange, Error, EventKind, Journal, LineAddr, PersistEvent, Site, TxId, Write,
};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Steps of a run that is recorded. A run with more is refused.
const STEPS_MAX: usize = 200_000;

/// Runs the program of a campaign without a power failure and records its steps. `stop` ends it from another thread.
///
/// # Errors
/// As from a run; a program that fails; a run with more steps than are recorded; and a run that was stopped.
pub fn record_run(request: &CrashRequest, registry: &[Variant], stop: &AtomicBool) -> Result<RunRecord, Error> {
    if request.run.functional {
        return Err(ConfigError::new("functional", "a functional run has no persist events to record").into());
    }
    let prepared = prepare(&request.run, registry)?;
    let mut machine = Machine::new(&prepared.config, &prepared.plan, &prepared.program)?;
    let recorder = StepRecorder::default();
    machine.system_mut().keep_journal(Box::new(recorder.clone()));
    machine.system_mut().observe(Box::new(recorder.clone()));
    let mut output = Interruptible::new(stop);
    let ending = run_to_end(&mut machine, request.run.budget(), &mut output)?;
    let steps = recorder.take();
    if steps.is_full {
        let problem = format!("the run makes more than {STEPS_MAX} steps on persistent memory: make it shorter");
        return Err(ConfigError::new("steps", problem).into());
    }
    if stop.load(Ordering::Relaxed) {
        return Err(ConfigError::new("steps", "the run was stopped before its end").into());
    }
    output.check_ending(ending)?;
    Ok(document(request, &prepared, steps, machine.cycle()))
}

/// The steps so far, with the moment and the instruction of the next one.
#[derive(Debug, Default)]
struct Recording {
    steps: Vec<RecordedStep>,
    events: u64,
    range: Option<DataRange>,
    is_full: bool,
    /// Core and cycle of the next step.
    moment: (u16, Cycle),
    site: Site,
    /// The index of each instruction among the places.
    places: BTreeMap<u64, u32>,
    /// The instructions, in the order of their first steps.
    instructions: Vec<u64>,
}

impl Recording {
    fn add(&mut self, step: RecordedStep) {
        if self.steps.len() < STEPS_MAX {
            self.steps.push(step);
        } else {
            self.is_full = true;
        }
    }

    /// A step of the thread whose instruction was announced.
    fn add_of_thread(&mut self, step: RecordedStep) {
        let next = self.instructions.len() as u32;
        let place = match self.places.entry(self.site.pc) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                self.instructions.push(self.site.pc);
                *new.insert(next)
            }
        };
        let ((core, cycle), thread) = (self.moment, Some(self.site.thread));
        self.add(RecordedStep { cycle, core: Some(core), thread, place: Some(place), ..step });
    }
}

/// Records the steps of a run. Clones record the same ones.
#[derive(Clone, Debug, Default)]
struct StepRecorder(Arc<Mutex<Recording>>);

impl StepRecorder {
    fn with<T>(&self, act: impl FnOnce(&mut Recording) -> T) -> T {
        act(&mut self.0.lock().expect("no thread panics while it holds the steps"))
    }

    fn take(&self) -> Recording {
        self.with(std::mem::take)
    }

    fn of_transaction(&self, what: &'static str, tx: TxId) {
        self.with(|recording| {
            recording.add_of_thread(RecordedStep { what, tx: Some(tx.0), ..RecordedStep::default() })
        });
    }

    fn of_thread(&self, what: &'static str, line: Option<LineAddr>) {
        let address = line.map(|line| line.base().0);
        self.with(|recording| recording.add_of_thread(RecordedStep { what, address, ..RecordedStep::default() }));
    }
}

impl Journal for StepRecorder {
    fn moment(&mut self, core: CoreId, cycle: Cycle) {
        self.with(|recording| recording.moment = (core.0, cycle));
    }

    fn site(&mut self, site: Site) {
        self.with(|recording| recording.site = site);
    }

    fn data_range(&mut self, range: DataRange) {
        self.with(|recording| recording.range = Some(range));
    }

    fn begin(&mut self, tx: TxId) {
        self.of_transaction("begin", tx);
    }

    fn store(&mut self, tx: Option<TxId>, write: Write) {
        let data = if write.len >= 8 { write.data } else { write.data & ((1 << (8 * write.len)) - 1) };
        self.with(|recording| {
            recording.add_of_thread(RecordedStep {
                what: "store",
                address: Some(write.addr.0),
                size_bytes: Some(write.len),
                value: Some(format!("{data:#x}")),
                tx: tx.map(|tx| tx.0),
                ..RecordedStep::default()
            });
        });
    }

    fn cleaned(&mut self, _core: CoreId, line: LineAddr) {
        self.of_thread("clean", Some(line));
    }

    fn fenced(&mut self, _core: CoreId) {
        self.of_thread("fence", None);
    }

    fn fenced_without_writes(&mut self, _core: CoreId) {
        self.of_thread("other_fence", None);
    }

    fn evicted(&mut self, core: CoreId, level: &'static str, line: LineAddr) {
        self.with(|recording| {
            let (cycle, address) = (recording.moment.1, Some(line.base().0));
            let (core, level) = (Some(core.0), Some(level));
            recording.add(RecordedStep { what: "evict", cycle, core, level, address, ..RecordedStep::default() });
        });
    }

    fn suspended(&mut self, tx: TxId) {
        self.of_transaction("suspended", tx);
    }

    fn resumed(&mut self, tx: TxId) {
        self.of_transaction("resumed", tx);
    }

    fn committing(&mut self, tx: TxId) {
        self.of_transaction("committing", tx);
    }

    fn acknowledged(&mut self, tx: TxId) {
        self.of_transaction("acknowledged", tx);
    }

    fn aborted(&mut self, tx: TxId) {
        self.of_transaction("aborted", tx);
    }
}

impl Observer for StepRecorder {
    fn event(&mut self, event: &PersistEvent, system: &System) -> bool {
        let is_of_controller =
            matches!(event.kind, EventKind::QueueAccept | EventKind::MediaWrite | EventKind::MediaWriteStart);
        let controller = is_of_controller.then(|| system.geometry().controller_of(event.addr.line()));
        self.with(|recording| {
            recording.events = event.number;
            recording.add(RecordedStep {
                what: event.kind.name(),
                cycle: event.cycle,
                event: Some(event.number),
                core: event.core.map(|core| core.0),
                address: Some(event.addr.0),
                controller,
                cause: event.cause.map(|cause| cause.name()),
                ..RecordedStep::default()
            });
            !recording.is_full
        })
    }
}

fn document(request: &CrashRequest, prepared: &Prepared, recording: Recording, cycles: Cycle) -> RunRecord {
    let mut lines = SourceLines::of(&request.run.elf, &prepared.program.elf);
    let place = |pc: u64| RecordedPlace { pc, frames: lines.frames(pc).into_iter().map(Into::into).collect() };
    let places = recording.instructions.into_iter().map(place).collect();
    let geometry = &prepared.plan.geometry;
    let region = |region: &durasim_contract::PmRegion| RecordedRegion {
        name: region.name.to_owned(),
        base: region.base.0,
        size_bytes: region.size_bytes,
    };
    RunRecord {
        schema: "durasim-run-record/1".into(),
        design: prepared.plan.variant.name.into(),
        workload: request.run.workload.clone(),
        machine: prepared.config.name.clone(),
        domain: prepared.plan.domain.name().into(),
        cores: geometry.cores,
        controllers: geometry.controllers,
        survives: prepared.plan.domain.into(),
        events: recording.events,
        cycles,
        data: recording.range,
        regions: geometry.regions.iter().map(region).collect(),
        debug_information: lines.problem(),
        places,
        steps: recording.steps,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durasim_types::PhysAddr;

    #[test]
    fn steps_have_their_moment_and_one_place_for_each_instruction() {
        let mut recorder = StepRecorder::default();
        let write = Write { addr: PhysAddr(0x1004), len: 4, data: 0xffff_ffff_0000_0007 };
        recorder.moment(CoreId(2), 10);
        recorder.site(Site { pc: 0x40, thread: 3, ..Site::default() });
        recorder.store(Some(TxId(9)), write);
        recorder.store(None, write);
        recorder.moment(CoreId(1), 12);
        recorder.evicted(CoreId(1), "l1d", write.addr.line());
        recorder.site(Site { pc: 0x44, thread: 3, ..Site::default() });
        recorder.fenced(CoreId(1));
        let Recording { steps, instructions, is_full, .. } = recorder.take();
        assert_eq!(instructions, [0x40, 0x44]);
        assert!(!is_full);
        let stored = RecordedStep {
            what: "store",
            cycle: 10,
            core: Some(2),
            thread: Some(3),
            address: Some(0x1004),
            size_bytes: Some(4),
            value: Some("0x7".into()),
            tx: Some(9),
            place: Some(0),
            ..RecordedStep::default()
        };
        assert_eq!(steps[0], stored);
        assert_eq!(steps[1], RecordedStep { tx: None, ..stored });
        let evicted = (steps[2].what, steps[2].level, steps[2].address, steps[2].place);
        assert_eq!(evicted, ("evict", Some("l1d"), Some(0x1000), None));
        assert_eq!((steps[3].what, steps[3].cycle, steps[3].place), ("fence", 12, Some(1)));
    }

    #[test]
    fn no_more_steps_are_kept_than_the_limit() {
        let recorder = StepRecorder::default();
        (0..=STEPS_MAX).for_each(|_| recorder.of_thread("fence", None));
        let recording = recorder.take();
        assert_eq!((recording.steps.len(), recording.is_full), (STEPS_MAX, true));
    }
}
