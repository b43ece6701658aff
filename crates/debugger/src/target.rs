//! A replay as a target of gdb.

use crate::connection::Client;
use crate::replay::{Replay, RunEnd};
use crate::riscv::{Rv64, Rv64Registers};
use crate::stops::{Stop, Watchpoint};
use durasim_machine::ThreadId;
use durasim_types::Error;
use gdbstub::common::{Signal, Tid};
use gdbstub::stub::MultiThreadStopReason;
use gdbstub::stub::run_blocking::{BlockingEventLoop, Event, WaitForStopReasonError};
use gdbstub::target::ext::base::BaseOps;
use gdbstub::target::ext::base::multithread::{
    MultiThreadBase, MultiThreadResume, MultiThreadResumeOps, MultiThreadSchedulerLocking,
    MultiThreadSchedulerLockingOps, MultiThreadSingleStep, MultiThreadSingleStepOps,
};
use gdbstub::target::ext::base::reverse_exec::{
    ReplayLogPosition, ReverseCont, ReverseContOps, ReverseStep, ReverseStepOps,
};
use gdbstub::target::ext::breakpoints::{
    Breakpoints, BreakpointsOps, HwWatchpoint, HwWatchpointOps, SwBreakpoint, SwBreakpointOps, WatchKind,
};
use gdbstub::target::ext::monitor_cmd::{ConsoleOutput, MonitorCmd, MonitorCmdOps, output};
use gdbstub::target::ext::thread_extra_info::{ThreadExtraInfo, ThreadExtraInfoOps};
use gdbstub::target::{Target, TargetError, TargetResult};
use std::io;
use std::marker::PhantomData;

/// Steps of the machine between two looks at the connection.
const STEPS_AT_ONCE: u64 = 20_000;

/// The way to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resumption {
    Continue,
    Step(ThreadId),
    StepBack(ThreadId),
    ContinueBack,
}

/// A replay that gdb drives.
pub(crate) struct GdbTarget {
    pub replay: Replay,
    resumption: Resumption,
    /// Whether the run, or the one after it, has to be looked at again before it goes on.
    has_resumed: bool,
}

/// The number of a thread as gdb has it, which counts from 1.
fn tid(thread: ThreadId) -> Tid {
    Tid::MIN.saturating_add(thread.0 as usize)
}

fn thread(tid: Tid) -> ThreadId {
    ThreadId((tid.get() - 1) as u32)
}

/// The refusal of a change: gdb prints its own sentence.
fn refused<T>() -> TargetResult<T, GdbTarget> {
    Err(TargetError::NonFatal)
}

impl GdbTarget {
    pub fn new(replay: Replay) -> Self {
        GdbTarget { replay, resumption: Resumption::Continue, has_resumed: false }
    }

    /// Goes on for a while; the reason to stop, if there is one.
    fn go_on(&mut self) -> Result<Option<MultiThreadStopReason<u64>>, Error> {
        let replay = &mut self.replay;
        let is_first = std::mem::take(&mut self.has_resumed);
        let stop = match self.resumption {
            Resumption::StepBack(thread) => Some(replay.step_back(thread)),
            Resumption::ContinueBack => Some(replay.continue_back()),
            Resumption::Continue | Resumption::Step(_) => {
                if is_first && replay.end().is_some() {
                    if !replay.next_run()? {
                        return Ok(Some(self.end_of_trial()));
                    }
                    if let Resumption::Step(_) = self.resumption {
                        return Ok(Some(self.reason(Stop::Step)));
                    }
                }
                if is_first {
                    replay.look_ahead();
                }
                let resumption = self.resumption;
                replay.forward(STEPS_AT_ONCE, |by| (resumption == Resumption::Step(by)).then_some(Stop::Step))
            }
        };
        Ok(stop.map(|stop| self.reason(stop)))
    }

    /// The last run has ended, and gdb goes on: there is nothing more.
    fn end_of_trial(&self) -> MultiThreadStopReason<u64> {
        match self.replay.end() {
            Some(RunEnd::Exited(code)) => MultiThreadStopReason::Exited(*code as u8),
            Some(RunEnd::Failed(_)) => MultiThreadStopReason::Terminated(Signal::SIGSEGV),
            _ => MultiThreadStopReason::Terminated(Signal::SIGPWR),
        }
    }

    fn reason(&self, stop: Stop) -> MultiThreadStopReason<u64> {
        let tid = tid(self.replay.thread);
        match stop {
            Stop::Step => MultiThreadStopReason::SignalWithThread { tid, signal: Signal::SIGTRAP },
            Stop::Breakpoint => MultiThreadStopReason::SwBreak(tid),
            Stop::Watchpoint(Watchpoint { addr, at_loads, at_stores, .. }) => {
                let kind = match (at_loads, at_stores) {
                    (true, true) => WatchKind::ReadWrite,
                    (true, false) => WatchKind::Read,
                    (false, _) => WatchKind::Write,
                };
                MultiThreadStopReason::Watch { tid, kind, addr }
            }
            Stop::Begin => MultiThreadStopReason::ReplayLog { tid: Some(tid), pos: ReplayLogPosition::Begin },
            Stop::End => {
                let is_last = self.replay.run() + 1 == self.replay.runs().len();
                match self.replay.end() {
                    Some(RunEnd::Exited(_)) if is_last => self.end_of_trial(),
                    Some(RunEnd::Failed(what)) => {
                        eprintln!("durasim: {what}");
                        MultiThreadStopReason::SignalWithThread { tid, signal: Signal::SIGSEGV }
                    }
                    Some(RunEnd::Exited(_)) => MultiThreadStopReason::SignalWithThread { tid, signal: Signal::SIGCHLD },
                    _ => MultiThreadStopReason::SignalWithThread { tid, signal: Signal::SIGPWR },
                }
            }
        }
    }
}

impl Target for GdbTarget {
    type Arch = Rv64;
    type Error = Error;

    fn base_ops(&mut self) -> BaseOps<'_, Rv64, Error> {
        BaseOps::MultiThread(self)
    }

    /// Breakpoints change no memory.
    fn guard_rail_implicit_sw_breakpoints(&self) -> bool {
        true
    }

    fn support_breakpoints(&mut self) -> Option<BreakpointsOps<'_, Self>> {
        Some(self)
    }

    fn support_monitor_cmd(&mut self) -> Option<MonitorCmdOps<'_, Self>> {
        Some(self)
    }
}

impl MultiThreadBase for GdbTarget {
    fn read_registers(&mut self, registers: &mut Rv64Registers, tid: Tid) -> TargetResult<(), Self> {
        match self.replay.machine().program_thread(thread(tid)) {
            Some(view) => *registers = view.into(),
            // It has ended, and gdb has not learnt it yet.
            None => *registers = Rv64Registers::default(),
        }
        Ok(())
    }

    fn write_registers(&mut self, _: &Rv64Registers, _: Tid) -> TargetResult<(), Self> {
        refused()
    }

    fn read_addrs(&mut self, addr: u64, bytes: &mut [u8], tid: Tid) -> TargetResult<usize, Self> {
        match self.replay.machine().read_as(thread(tid), addr, bytes) {
            0 if !bytes.is_empty() => refused(),
            read => Ok(read),
        }
    }

    fn write_addrs(&mut self, _: u64, _: &[u8], _: Tid) -> TargetResult<(), Self> {
        refused()
    }

    fn list_active_threads(&mut self, is_active: &mut dyn FnMut(Tid)) -> Result<(), Error> {
        let shown = self.replay.thread;
        let threads = self.replay.machine().program_threads();
        if threads.is_empty() {
            is_active(tid(shown));
        }
        threads.iter().for_each(|view| is_active(tid(view.thread)));
        Ok(())
    }

    fn support_resume(&mut self) -> Option<MultiThreadResumeOps<'_, Self>> {
        Some(self)
    }

    fn support_thread_extra_info(&mut self) -> Option<ThreadExtraInfoOps<'_, Self>> {
        Some(self)
    }
}

impl MultiThreadResume for GdbTarget {
    fn resume(&mut self) -> Result<(), Error> {
        self.has_resumed = true;
        Ok(())
    }

    fn clear_resume_actions(&mut self) -> Result<(), Error> {
        self.resumption = Resumption::Continue;
        Ok(())
    }

    fn set_resume_action_continue(&mut self, _: Tid, _: Option<Signal>) -> Result<(), Error> {
        Ok(())
    }

    fn support_single_step(&mut self) -> Option<MultiThreadSingleStepOps<'_, Self>> {
        Some(self)
    }

    fn support_scheduler_locking(&mut self) -> Option<MultiThreadSchedulerLockingOps<'_, Self>> {
        Some(self)
    }

    fn support_reverse_step(&mut self) -> Option<ReverseStepOps<'_, Tid, Self>> {
        Some(self)
    }

    fn support_reverse_cont(&mut self) -> Option<ReverseContOps<'_, Tid, Self>> {
        Some(self)
    }
}

impl MultiThreadSingleStep for GdbTarget {
    fn set_resume_action_step(&mut self, tid: Tid, _: Option<Signal>) -> Result<(), Error> {
        self.resumption = Resumption::Step(thread(tid));
        Ok(())
    }
}

impl MultiThreadSchedulerLocking for GdbTarget {
    /// The other threads run on all the same: the replay takes the course of the trial.
    fn set_resume_action_scheduler_lock(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

impl ReverseStep<Tid> for GdbTarget {
    fn reverse_step(&mut self, tid: Tid) -> Result<(), Error> {
        self.resumption = Resumption::StepBack(thread(tid));
        Ok(())
    }
}

impl ReverseCont<Tid> for GdbTarget {
    fn reverse_cont(&mut self) -> Result<(), Error> {
        self.resumption = Resumption::ContinueBack;
        Ok(())
    }
}

impl Breakpoints for GdbTarget {
    fn support_sw_breakpoint(&mut self) -> Option<SwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_watchpoint(&mut self) -> Option<HwWatchpointOps<'_, Self>> {
        Some(self)
    }
}

impl SwBreakpoint for GdbTarget {
    fn add_sw_breakpoint(&mut self, addr: u64, _: usize) -> TargetResult<bool, Self> {
        self.replay.breakpoints.insert(addr);
        Ok(true)
    }

    fn remove_sw_breakpoint(&mut self, addr: u64, _: usize) -> TargetResult<bool, Self> {
        Ok(self.replay.breakpoints.remove(&addr))
    }
}

fn watchpoint(addr: u64, size_bytes: u64, kind: WatchKind) -> Watchpoint {
    let at_loads = matches!(kind, WatchKind::Read | WatchKind::ReadWrite);
    let at_stores = matches!(kind, WatchKind::Write | WatchKind::ReadWrite);
    Watchpoint { addr, size_bytes, at_loads, at_stores }
}

impl HwWatchpoint for GdbTarget {
    fn add_hw_watchpoint(&mut self, addr: u64, size_bytes: u64, kind: WatchKind) -> TargetResult<bool, Self> {
        self.replay.watchpoints.add(watchpoint(addr, size_bytes, kind));
        Ok(true)
    }

    fn remove_hw_watchpoint(&mut self, addr: u64, size_bytes: u64, kind: WatchKind) -> TargetResult<bool, Self> {
        Ok(self.replay.watchpoints.remove(watchpoint(addr, size_bytes, kind)))
    }
}

impl ThreadExtraInfo for GdbTarget {
    fn thread_extra_info(&self, tid: Tid, into: &mut [u8]) -> Result<usize, Error> {
        let text = self.replay.describe_thread(thread(tid));
        let bytes = &text.as_bytes()[..text.len().min(into.len())];
        into[..bytes.len()].copy_from_slice(bytes);
        Ok(bytes.len())
    }
}

impl MonitorCmd for GdbTarget {
    fn handle_monitor_cmd(&mut self, command: &[u8], mut out: ConsoleOutput<'_>) -> Result<(), Error> {
        let answer = crate::monitor::answer(&mut self.replay, &String::from_utf8_lossy(command));
        output!(out, "{answer}");
        Ok(())
    }
}

/// Runs the machine while gdb waits.
pub(crate) struct EventLoop<'a>(PhantomData<&'a ()>);

impl<'a> BlockingEventLoop for EventLoop<'a> {
    type Target = GdbTarget;
    type Connection = Client<'a>;
    type StopReason = MultiThreadStopReason<u64>;

    fn wait_for_stop_reason(
        target: &mut GdbTarget,
        connection: &mut Client<'a>,
    ) -> Result<Event<Self::StopReason>, WaitForStopReasonError<Error, io::Error>> {
        use gdbstub::conn::ConnectionExt;
        loop {
            if connection.peek().map_err(WaitForStopReasonError::Connection)?.is_some() {
                let byte = connection.read().map_err(WaitForStopReasonError::Connection)?;
                return Ok(Event::IncomingData(byte));
            }
            if let Some(stop) = target.go_on().map_err(WaitForStopReasonError::Target)? {
                return Ok(Event::TargetStopped(stop));
            }
        }
    }

    fn on_interrupt(target: &mut GdbTarget) -> Result<Option<Self::StopReason>, Error> {
        let tid = tid(target.replay.thread);
        Ok(Some(MultiThreadStopReason::SignalWithThread { tid, signal: Signal::SIGINT }))
    }
}
