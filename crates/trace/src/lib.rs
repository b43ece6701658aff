//! A run as a trace that Perfetto shows: transactions, stalls, commits, evictions, persist events and occupancies over time.
//!
//! The run is that of `durasim run`: a journal, an observer and the counters of stalls also write down when they count. One cycle of
//! the machine is one nanosecond of the trace, so that nothing is rounded.

mod assemble;
mod encode;
mod lanes;
mod perfetto;
mod recorder;

use assemble::Parts;
use durasim_contract::Variant;
use durasim_crash::Trial;
use durasim_machine::{Output, RunRequest, RunResult, Session, Stream, prepare};
use durasim_types::{ConfigError, Cycle, Error, EventRoom};
use recorder::Recorder;
use serde::{Deserialize, Serialize};

/// Slices, instants and values of counters of a trace. A window with more is refused.
pub const EVENTS_MAX: u64 = 1_000_000;

/// The request of a trace.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceRequest {
    /// The run.
    pub run: RunRequest,
    /// The first cycle of the window.
    pub from_cycle: Cycle,
    /// The cycle after its last one; the end of the run if not given.
    pub to_cycle: Option<Cycle>,
    /// The id of a power failure, with which the trace ends; see [`Trial`]. The run continues, as in a campaign.
    pub replay: Option<String>,
}

/// A traced run.
#[derive(Clone, Debug, Serialize)]
pub struct TracedRun {
    /// The result of the run, which is that without a trace.
    pub run: RunResult,
    /// Number of slices, instants and values of counters of the trace.
    pub events: u64,
    /// The first cycle of the window.
    pub from_cycle: Cycle,
    /// The cycle after its last one.
    pub to_cycle: Cycle,
    /// The trace in Perfetto's format.
    #[serde(skip)]
    pub trace: Vec<u8>,
}

/// Runs a program and traces a window of the run.
///
/// # Errors
/// As from a run; a window that is empty or outside of the run, or has more events than are traced; a power failure that the run does
/// not have; and options of the run that a trace does not support.
pub fn trace(request: &TraceRequest, registry: &[Variant], output: &mut dyn Output) -> Result<TracedRun, Error> {
    let failure = check(request)?;
    let window = request.from_cycle..request.to_cycle.unwrap_or(Cycle::MAX);
    let room = EventRoom::new(EVENTS_MAX);
    let recorder = Recorder::new(window.clone(), room.clone(), failure.as_ref().map(|trial| trial.event));
    let mut session = Session::start(&request.run, prepare(&request.run, registry)?, registry, output)?;
    let machine = session.machine();
    machine.start_stall_traces(&window, &room);
    machine.system_mut().keep_journal(Box::new(recorder.clone()));
    machine.system_mut().observe(Box::new(recorder.clone()));
    let ending = session.run(None, request.run.max_instructions, &mut Bounded { output, room: &room })?;
    let machine = session.machine();
    let (cycles, stalls) = (machine.cycle(), machine.take_stall_traces());
    if room.is_exceeded() {
        let problem = format!(
            "the window has more than {EVENTS_MAX} events from cycle {} to {cycles}: end it earlier",
            request.from_cycle
        );
        return Err(ConfigError::new("to_cycle", problem).into());
    }
    if request.from_cycle >= cycles {
        let problem = format!("the run ends in cycle {cycles}: no part of it is in the window");
        return Err(ConfigError::new("from_cycle", problem).into());
    }
    let events = machine.system().event_count();
    let recording = recorder.take();
    let end = match (&failure, recording.power_failure()) {
        (Some(trial), None) => {
            let problem = format!("the run has {events} persist events, and power fails after event {}", trial.event);
            return Err(ConfigError::new("replay", problem).into());
        }
        (_, Some(cycle)) if cycle < request.from_cycle => {
            let problem = format!("power fails in cycle {cycle}, before the window begins");
            return Err(ConfigError::new("from_cycle", problem).into());
        }
        (_, Some(cycle)) => window.end.min(cycle + 1),
        // The queues may still write when the cores have ended.
        (_, None) => window.end.min(recording.last_cycle().max(cycles) + 1),
    };
    let parts = Parts {
        stalls,
        structures: machine.system().structures(),
        interleave: machine.system().geometry().interleave(),
        recording,
        window: window.start..end,
        failure: failure.map(|trial| trial.to_string()),
    };
    let run = session.finish(&ending)?;
    let (events, trace) = encode::encode(&assemble::assemble(parts, &run));
    Ok(TracedRun { run, events, from_cycle: window.start, to_cycle: end, trace })
}

/// Checks the options; the power failure that the trace ends with.
fn check(request: &TraceRequest) -> Result<Option<Trial>, ConfigError> {
    let refuse = |field, problem: &str| Err(ConfigError::new(field, problem));
    let TraceRequest { run, from_cycle, to_cycle, replay } = request;
    if to_cycle.is_some_and(|to_cycle| to_cycle <= *from_cycle) {
        return refuse("to_cycle", &format!("the window is empty: it begins in cycle {from_cycle}"));
    }
    if run.functional {
        return refuse("functional", "a functional run has no cycles to trace");
    }
    if run.persistence_report {
        return refuse("persistence_report", "is a report of `durasim run`: leave it out of a trace");
    }
    if run.snapshot_at.is_some() {
        return refuse("snapshot_at", "snapshots are saved by `durasim run`: a trace may begin with one");
    }
    let parsed = replay.as_ref().map(|id| id.parse().map_err(|problem: String| ConfigError::new("replay", problem)));
    parsed.transpose()
}

/// The receiver of the output of a traced run, which is stopped if the trace has no more room.
struct Bounded<'a> {
    output: &'a mut dyn Output,
    room: &'a EventRoom,
}

impl Output for Bounded<'_> {
    fn write(&mut self, stream: Stream, bytes: &[u8]) {
        self.output.write(stream, bytes);
    }

    fn stopped(&self) -> bool {
        self.room.is_exceeded() || self.output.stopped()
    }

    fn kept_bytes(&self) -> u64 {
        self.output.kept_bytes()
    }

    fn progress(&mut self, ops: u64) {
        self.output.progress(ops);
    }
}
