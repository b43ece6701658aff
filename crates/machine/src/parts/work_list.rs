//! The list of tasks that the memory system still has to do before the request being executed continues.

use super::agenda::Scan;
use super::background::Background;
use super::caches::Resident;
use durasim_cache::Version;
use durasim_contract::{AbortCause, Actions, LevelId, LineTag, Origin, Signal, Token, Wait};
use durasim_memory::{Write, WriteToken};
use durasim_types::{Cause, CoreId, Cycle, Line, LineAddr, TxId};

/// A step of the work list; the files of `system/work` carry them out.
pub(crate) enum Task {
    /// Carry out the actions of a design from `next` on.
    Act { core: CoreId, at: Cycle, list: Actions, next: usize },
    /// Make sure that the set of a line has a free way, and one for another live tag if `incoming` is one.
    MakeRoom { level: LevelId, core: CoreId, line: LineAddr, incoming: LineTag },
    /// A tagged line comes into a set with room: the design may want another tagged line of the set to leave.
    ObeyTagLimit { level: LevelId, core: CoreId, line: LineAddr, tag: LineTag },
    /// The design is asked about a version that leaves a private level, for the level `to` if it is not lost below.
    AskPrivate { from: LevelId, to: Option<LevelId>, core: CoreId, line: LineAddr },
    /// A version comes down to the level `to` if it counts, then it leaves its array.
    Move { from: LevelId, to: LevelId, core: CoreId, line: LineAddr },
    /// A line that left a private level is in the last level: its write-back buffer is free when it is written there.
    WrittenBack { core: CoreId },
    /// The L1 copies of a line leave because the L2 has lost it.
    LeaveL1 { core: CoreId, line: LineAddr },
    /// A line leaves the last level: the versions that leave with it are looked for.
    CollectVersions { line: LineAddr },
    /// The versions of a line from `next` on leave the caches, oldest first.
    LeaveVersions { line: LineAddr, versions: Vec<Resident>, next: usize },
    /// A copy leaves its array. The version below remains.
    TakeOut { level: LevelId, core: CoreId, line: LineAddr },
    /// Code of a line leaves the L1I of all cores.
    DropCode { line: LineAddr },
    /// The line that was pinned last is in service no more.
    Unpin,
    /// A dirty or tagged version leaves the caches once a write-back buffer has it.
    LeaveCaches { core: CoreId, version: Version },
    /// The design is asked about a version that leaves the last level.
    AskEvict { core: CoreId, version: Version },
    /// A dirty or tagged version comes down on a level.
    PutBelow { level: LevelId, core: CoreId, version: Version },
    /// The version that the last level has of a line stays there beside one with the tag `incoming` that comes down.
    KeepOlder { core: CoreId, line: LineAddr, incoming: LineTag },
    /// A version arrives in the level `level`, which has room for it.
    Arrive { level: LevelId, core: CoreId, version: Version },
    /// The newest private version of a line comes down to the last level.
    PushToLlc { line: LineAddr },
    /// The private version of one level comes down to the last level.
    PushLevel { level: LevelId, owner: CoreId, line: LineAddr },
    /// All versions of a line have come down.
    Pushed { owner: CoreId, line: LineAddr },
    /// A pushed line is in the last level: the design is notified of it when it is written there.
    AnnouncePush { core: CoreId, line: LineAddr, token: Token },
    /// Private copies become clean copies of a version that has come down.
    CleanPrivate { core: CoreId, line: LineAddr, data: Line },
    /// All copies become clean copies of a version that is being written home.
    CleanCopies { line: LineAddr, data: Line },
    /// A write is sent to the controller of its line.
    Submit { core: CoreId, from: Origin, write: Write, at: Cycle },
    /// Each controller of persistent memory is asked to acknowledge all that was sent to it before.
    Barrier { core: CoreId, token: Token, cause: Cause, at: Cycle, is_delayed: bool },
    /// A write has arrived at its controller.
    ArriveAtController { write: Write },
    /// The design is asked whether the controller takes it.
    AskAccept { controller: u16 },
    /// One write or read under a token is outstanding no more.
    ForgetOutstanding { token: u64, at: Cycle },
    /// Writes are acknowledged by the persistence domain, one after the other.
    Acknowledge { tokens: Vec<WriteToken>, line: LineAddr, at: Cycle },
    /// The oldest entry of a persist buffer drains.
    DrainOldest { core: CoreId, at: Cycle },
    /// The entry of a line in a persist buffer drains.
    DrainLine { line: LineAddr, at: Cycle },
    /// A transaction is aborted.
    Abort { tx: TxId, why: AbortCause },
    /// The design is asked about an abort.
    AskAbort { tx: TxId, why: AbortCause, core: CoreId },
    /// An abort is done.
    Aborted { tx: TxId, core: CoreId },
    /// Lines are shown to the design from `next` on.
    Show { at: Cycle, scan: Scan, lines: Vec<(CoreId, LineAddr)>, next: usize, is_last: bool },
    /// Let all pending events be processed up to a cycle.
    Advance { until: Cycle },
    /// Wait for what a design waits for.
    Await { wait: Wait },
    /// Let things happen, one after the other, until a condition holds.
    Until { condition: Condition, since: Cycle, now: Cycle },
}

/// Tasks without an end of the list: far more than any work that ends takes, with structures of any size.
const TASKS_MAX: u64 = 1 << 30;

/// The tasks, the next one on top, and the cycle that they have come to.
pub(crate) struct WorkList {
    tasks: Vec<Task>,
    now: Cycle,
    background: Background,
    /// Tasks done since the list was last empty, or since pending events were last processed up to a later cycle.
    done: u64,
    /// Largest allowed value of `done`.
    done_max: u64,
    /// Cycle of the last pending event that was processed on the way to a given cycle.
    event_at: Cycle,
}

impl Default for WorkList {
    fn default() -> Self {
        let (tasks, now, background) = (Vec::new(), 0, Background::default());
        WorkList { tasks, now, background, done: 0, done_max: TASKS_MAX, event_at: 0 }
    }
}

impl WorkList {
    /// Puts a task on top: it comes before those that are there.
    #[inline]
    pub(crate) fn push(&mut self, task: Task) {
        self.tasks.push(task);
    }

    /// Whether a write is to be sent by this cycle, once what happens before it is done.
    pub(crate) fn has_write_to_send(&self, by: Cycle) -> bool {
        self.tasks.iter().any(|task| matches!(task, Task::Submit { at, .. } if *at <= by))
    }

    /// The cycle in which the last task has ended.
    #[inline]
    pub(crate) fn now(&self) -> Cycle {
        self.now
    }

    /// The task being executed ends, or the next one begins, at this cycle.
    #[inline]
    pub(crate) fn set_now(&mut self, now: Cycle) {
        self.now = now;
    }

    /// Takes the task on top.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Task> {
        self.tasks.pop()
    }

    /// Drops all tasks: the machine has stopped.
    pub(crate) fn clear(&mut self) {
        self.tasks.clear();
    }

    /// An empty list with the same limit.
    pub(crate) fn fork(&self) -> WorkList {
        WorkList { done_max: self.done_max, ..WorkList::default() }
    }

    /// Limits the tasks that may be done before the list is empty.
    pub(crate) fn limit_tasks(&mut self, tasks: u64) {
        self.done_max = tasks;
    }

    /// The list starts to be worked off.
    #[inline]
    pub(crate) fn start_count(&mut self) {
        self.done = 0;
    }

    /// Counts a task; `Err` with the limit if it exceeds it.
    #[inline]
    pub(crate) fn count_task(&mut self) -> Result<(), u64> {
        self.done += 1;
        if self.done > self.done_max { Err(self.done_max) } else { Ok(()) }
    }

    /// An event is processed on the way to a given cycle. If time passes, the events do not continue without end, however
    /// many there are.
    pub(crate) fn note_event_on_the_way(&mut self, at: Cycle) {
        if at > self.event_at {
            (self.event_at, self.done) = (at, 0);
        }
    }

    /// A wait begins.
    pub(crate) fn begin_wait(&mut self) {
        self.background.restart();
    }

    /// The background work of the wait, to be given back.
    pub(crate) fn take_background(&mut self) -> Background {
        std::mem::take(&mut self.background)
    }

    pub(crate) fn put_background(&mut self, background: Background) {
        self.background = background;
    }
}

/// Condition that ends a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// A design waits for acknowledgements.
    Acked(Token),
    /// A design waits for a signal.
    Raised(Signal),
    /// A line that leaves the last level waits for a write-back buffer.
    WriteBackBuffer,
    /// A core waits for the acknowledgements of its cache-block operations.
    CleansAcked(CoreId),
    /// The suspended request of a core waits until it can be made again.
    Resumes(CoreId),
    /// A request waits until a persistent write unlocks its line.
    Unlocked(LineAddr),
    /// The queues are to drain, and what the design reads is to arrive.
    QueuesDrained,
}

impl std::fmt::Display for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Condition::Acked(token) => write!(f, "a design waits for the acknowledgement {}", token.0),
            Condition::Raised(signal) => write!(f, "a design waits for the signal {}", signal.0),
            Condition::WriteBackBuffer => f.write_str("a line waits for a write-back buffer"),
            Condition::CleansAcked(_) => f.write_str("the acknowledgement of a cache-block operation is waited for"),
            Condition::Resumes(_) => f.write_str("a request of a core waits"),
            Condition::Unlocked(line) => write!(f, "a request waits for {line}, which a persistent write has locked"),
            Condition::QueuesDrained => f.write_str("the queues have to drain"),
        }
    }
}
