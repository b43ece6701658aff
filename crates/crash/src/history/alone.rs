//! The history oracle by itself: a run is recorded, run again, crashed at some persist events, recovered, dumped and
//! judged. Campaigns do the same beside the other oracles and faster.

use super::{Dump, HistoryOracle, HistoryRecorder};
use crate::byte_oracle::Verdict;
use crate::campaign::CrashRequest;
use durasim_design::{Promise, Row};
use durasim_machine::{
    Captured, Ending, Machine, Observer, PmemPool, PoolContents, Prepared, Program, System, prepare, run_functionally,
};
use durasim_types::{Error, GuestFault, Pages, PersistEvent, Rng};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// Instructions that a guest's recovery, check and dump may take.
const GUEST_INSTRUCTIONS_MAX: u64 = 2_000_000_000;

/// What the history oracle and the guest's check say of some crashes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HistoryReport {
    /// Persist events of the run.
    pub events: u64,
    /// Transactions with reports.
    pub transactions: u64,
    /// Objects that were reported.
    pub objects: u64,
    /// The crashes, in the order of their events.
    pub trials: Vec<HistoryTrial>,
}

/// A crash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HistoryTrial {
    /// The persist event after which it came.
    pub event: u64,
    /// Why the recovered pool is wrong by the history of operations, if it is.
    pub history: Option<String>,
    /// Why it is wrong by the guest's own check, if it is.
    pub guest: Option<String>,
    /// Objects in the dump.
    pub dumped: u64,
}

/// Crashes a run at `points` of its persist events, drawn by its seed. The program has to be built with a history, and
/// its `check_args` have to ask for a dump.
///
/// # Errors
/// As from a run, and a program that fails without any crash.
pub fn judge_history(request: &CrashRequest, points: u64, registry: &[Row]) -> Result<HistoryReport, Error> {
    let prepared = prepare(&request.run, registry)?;
    let recorder = HistoryRecorder::default();
    let mut machine = Machine::new(&prepared.config, &prepared.plan, &prepared.program)?;
    machine.system_mut().keep_history(recorder.for_machine());
    let mut output = Captured::default();
    let ending = machine.run(request.run.max_instructions, &mut output)?;
    if ending != Ending::Exited(0) {
        let said = output.text().lines().last().unwrap_or("it said nothing").to_owned();
        let what = format!("the workload fails without any crash ({ending:?}): {said}");
        return Err(GuestFault { pc: 0, what, last_syscall: None }.into());
    }
    let events = machine.system().event_count();
    let trials = Trials { prepared: &prepared, check_args: &request.check_args, files: machine.pool().clone() };
    let fresh = Pages::new(durasim_machine::PMEM_BASE, prepared.config.pmem.capacity_mib << 20);
    let initial = prepared.program.pool.as_ref().map_or(fresh, |pool| pool.pages.clone());
    let (initial, _) = trials.dump(initial);
    let initial = initial.map_err(|what| GuestFault { pc: 0, what, last_syscall: None })?;
    let epochs = match prepared.plan.row.promise {
        Promise::Immediate => None,
        Promise::Epoch(further) => Some(further),
    };
    let oracle = HistoryOracle::new(&recorder, &initial, epochs);
    let mut random = Rng::new(request.run.seed);
    let mut drawn = BTreeSet::new();
    while (drawn.len() as u64) < points.min(events) {
        drawn.insert(1 + random.below(events));
    }
    let images = images(&prepared, drawn)?;
    let judged = images.into_iter().map(|(event, pmem)| {
        let (dump, guest) = trials.dump(pmem);
        let dumped = dump.as_ref().map_or(0, |dump| dump.pairs().len() as u64);
        let verdict = dump.map(|dump| oracle.judge(oracle.position_after(event), &dump));
        let history = match verdict {
            Ok(Verdict::Right) => None,
            Ok(Verdict::Wrong(what)) => Some(what),
            Err(what) => Some(guest.as_ref().map_or(what.clone(), |guest| format!("{what}: {guest}"))),
        };
        HistoryTrial { event, history, guest, dumped }
    });
    let (transactions, objects) = (oracle.transactions() as u64, oracle.objects() as u64);
    Ok(HistoryReport { events, transactions, objects, trials: judged.collect() })
}

/// What trials have in common.
struct Trials<'a> {
    prepared: &'a Prepared,
    check_args: &'a [String],
    files: PmemPool,
}

impl Trials<'_> {
    /// Lets the guest recover, dump and check; the dump, and what the check objects to.
    fn dump(&self, pmem: Pages) -> (Result<Dump, String>, Option<String>) {
        let program = Program {
            args: self.check_args.to_vec(),
            pool: Some(PoolContents { files: self.files.clone(), pages: pmem }),
            ..self.prepared.program.clone()
        };
        let mut output = Captured::default();
        let (config, plan) = (&self.prepared.config, &self.prepared.plan);
        let ending = run_functionally(config, plan, &program, GUEST_INSTRUCTIONS_MAX, &mut output);
        let objection = match ending {
            Ok(ending) if ending.exit_code == Some(0) => None,
            Ok(_) => Some(output.text().lines().last().unwrap_or("it said nothing").to_owned()),
            Err(error) => Some(error.to_string()),
        };
        (Dump::find(output.bytes()), objection)
    }
}

/// Runs the program and takes the image after each of these events, recovered by the hardware.
fn images(prepared: &Prepared, events: BTreeSet<u64>) -> Result<BTreeMap<u64, Pages>, Error> {
    let taken = Arc::new(Mutex::new(BTreeMap::new()));
    let mut machine = Machine::new(&prepared.config, &prepared.plan, &prepared.program)?;
    machine.system_mut().observe(Box::new(Taker { events, taken: taken.clone() }));
    machine.run(None, &mut Captured::default())?;
    let images = std::mem::take(&mut *taken.lock().expect("nobody panics with the images"));
    let plan = &prepared.plan;
    let recovered = images.into_iter().map(|(event, mut image): (u64, durasim_design::CrashImage)| {
        image.cut_at(None);
        (plan.row.hardware.recover)(&plan.spec, &plan.geometry, &mut image).expect("nothing cuts this recovery");
        (event, image.pmem)
    });
    Ok(recovered.collect())
}

struct Taker {
    events: BTreeSet<u64>,
    taken: Arc<Mutex<BTreeMap<u64, durasim_design::CrashImage>>>,
}

impl Observer for Taker {
    fn event(&mut self, event: &PersistEvent, system: &System) -> bool {
        if self.events.remove(&event.number) {
            let (image, complete) = system.crash_image(u64::MAX);
            complete.expect("unlimited energy suffices");
            self.taken.lock().expect("nobody panics with the images").insert(event.number, image);
        }
        !self.events.is_empty()
    }
}
