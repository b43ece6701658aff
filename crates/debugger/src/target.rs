//! A replay as a target of gdb.

use crate::connection::Client;
use crate::replay::{Replay, RunEnd, STEPS_AT_ONCE};
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

/// The way to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resumption {
    Continue,
    Step(ThreadId),
    StepBack(ThreadId),
    ContinueBack,
}

/// A replay that gdb drives.
pub(crate) struct GdbTarget<'a> {
    pub replay: Replay<'a>,
    resumption: Resumption,
    /// The thread that gdb lets go on, and the only one whose stops it takes; `None`: all of them.
    only: Option<ThreadId>,
    /// The thread that the last packet names.
    named: Option<ThreadId>,
    /// Whether the run, or the one after it, has to be looked at again before it goes on.
    has_resumed: bool,
}

/// The number of a thread as gdb has it, which counts from 1.
fn tid(thread: ThreadId) -> Tid {
    Tid::MIN.saturating_add(thread.0 as usize)
}

fn thread(tid: Tid) -> ThreadId {
    ThreadId(u32::try_from(tid.get() - 1).unwrap_or(u32::MAX))
}

/// The refusal of a change: gdb prints its own sentence.
fn refused<'a, T>() -> TargetResult<T, GdbTarget<'a>> {
    Err(TargetError::NonFatal)
}

impl<'a> GdbTarget<'a> {
    pub fn new(replay: Replay<'a>) -> Self {
        GdbTarget { replay, resumption: Resumption::Continue, only: None, named: None, has_resumed: false }
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
                    // The begin of a run follows no instruction that could reach the breakpoint.
                    if replay.is_at_breakpoint() {
                        return Ok(Some(self.reason(Stop::Breakpoint)));
                    }
                    if let Resumption::Step(_) = self.resumption {
                        return Ok(Some(self.reason(Stop::Step)));
                    }
                }
                let all_go_on = self.only.is_none() && self.resumption == Resumption::Continue;
                if is_first
                    && all_go_on
                    && let Some(stop) = replay.stop_at_passed_breakpoint()
                {
                    return Ok(Some(self.reason(stop)));
                }
                if is_first {
                    replay.look_ahead();
                }
                let resumption = self.resumption;
                replay
                    .forward(STEPS_AT_ONCE, self.only, |by| (resumption == Resumption::Step(by)).then_some(Stop::Step))
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
            Stop::End => match self.replay.end() {
                Some(RunEnd::Failed(what)) => {
                    eprintln!("durasim: {what}");
                    MultiThreadStopReason::SignalWithThread { tid, signal: Signal::SIGSEGV }
                }
                Some(RunEnd::Exited(_)) => MultiThreadStopReason::SignalWithThread { tid, signal: Signal::SIGCHLD },
                _ => MultiThreadStopReason::SignalWithThread { tid, signal: Signal::SIGPWR },
            },
        }
    }
}

impl Target for GdbTarget<'_> {
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

impl MultiThreadBase for GdbTarget<'_> {
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

impl MultiThreadResume for GdbTarget<'_> {
    fn resume(&mut self) -> Result<(), Error> {
        self.has_resumed = true;
        Ok(())
    }

    fn clear_resume_actions(&mut self) -> Result<(), Error> {
        (self.resumption, self.only, self.named) = (Resumption::Continue, None, None);
        Ok(())
    }

    fn set_resume_action_continue(&mut self, tid: Tid, _: Option<Signal>) -> Result<(), Error> {
        self.named = Some(thread(tid));
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

impl MultiThreadSingleStep for GdbTarget<'_> {
    fn set_resume_action_step(&mut self, tid: Tid, _: Option<Signal>) -> Result<(), Error> {
        self.resumption = Resumption::Step(thread(tid));
        self.named = Some(thread(tid));
        Ok(())
    }
}

impl MultiThreadSchedulerLocking for GdbTarget<'_> {
    /// The other threads run on all the same: the replay takes the course of the trial. They do not stop it: gdb ends itself with an
    /// internal error if a thread stops that it has not let go on.
    fn set_resume_action_scheduler_lock(&mut self) -> Result<(), Error> {
        self.only = self.named;
        Ok(())
    }
}

impl ReverseStep<Tid> for GdbTarget<'_> {
    fn reverse_step(&mut self, tid: Tid) -> Result<(), Error> {
        self.resumption = Resumption::StepBack(thread(tid));
        Ok(())
    }
}

impl ReverseCont<Tid> for GdbTarget<'_> {
    fn reverse_cont(&mut self) -> Result<(), Error> {
        self.resumption = Resumption::ContinueBack;
        Ok(())
    }
}

impl Breakpoints for GdbTarget<'_> {
    fn support_sw_breakpoint(&mut self) -> Option<SwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_watchpoint(&mut self) -> Option<HwWatchpointOps<'_, Self>> {
        Some(self)
    }
}

impl SwBreakpoint for GdbTarget<'_> {
    fn add_sw_breakpoint(&mut self, addr: u64, _: usize) -> TargetResult<bool, Self> {
        self.replay.add_breakpoint(addr);
        Ok(true)
    }

    fn remove_sw_breakpoint(&mut self, addr: u64, _: usize) -> TargetResult<bool, Self> {
        Ok(self.replay.remove_breakpoint(addr))
    }
}

fn watchpoint(addr: u64, size_bytes: u64, kind: WatchKind) -> Watchpoint {
    let at_loads = matches!(kind, WatchKind::Read | WatchKind::ReadWrite);
    let at_stores = matches!(kind, WatchKind::Write | WatchKind::ReadWrite);
    Watchpoint { addr, size_bytes, at_loads, at_stores }
}

impl HwWatchpoint for GdbTarget<'_> {
    fn add_hw_watchpoint(&mut self, addr: u64, size_bytes: u64, kind: WatchKind) -> TargetResult<bool, Self> {
        self.replay.watchpoints.add(watchpoint(addr, size_bytes, kind));
        Ok(true)
    }

    fn remove_hw_watchpoint(&mut self, addr: u64, size_bytes: u64, kind: WatchKind) -> TargetResult<bool, Self> {
        Ok(self.replay.watchpoints.remove(watchpoint(addr, size_bytes, kind)))
    }
}

impl ThreadExtraInfo for GdbTarget<'_> {
    fn thread_extra_info(&self, tid: Tid, into: &mut [u8]) -> Result<usize, Error> {
        let text = self.replay.describe_thread(thread(tid));
        let bytes = &text.as_bytes()[..text.len().min(into.len())];
        into[..bytes.len()].copy_from_slice(bytes);
        Ok(bytes.len())
    }
}

impl MonitorCmd for GdbTarget<'_> {
    fn handle_monitor_cmd(&mut self, command: &[u8], mut out: ConsoleOutput<'_>) -> Result<(), Error> {
        let answer = crate::monitor::answer(&mut self.replay, &String::from_utf8_lossy(command));
        output!(out, "{answer}");
        Ok(())
    }
}

/// Runs the machine while gdb waits.
pub(crate) struct EventLoop<'a>(PhantomData<&'a ()>);

impl<'a> BlockingEventLoop for EventLoop<'a> {
    type Target = GdbTarget<'a>;
    type Connection = Client<'a>;
    type StopReason = MultiThreadStopReason<u64>;

    fn wait_for_stop_reason(
        target: &mut GdbTarget<'a>,
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

    fn on_interrupt(target: &mut GdbTarget<'a>) -> Result<Option<Self::StopReason>, Error> {
        let tid = tid(target.replay.thread);
        Ok(Some(MultiThreadStopReason::SignalWithThread { tid, signal: Signal::SIGINT }))
    }
}
