//! The work list: what the memory system still has to do before the request being executed continues.
//!
//! A line that leaves a level makes room below, where another line may have to leave; a design that is asked answers with
//! actions, which move further lines or wait. Instead of calling each other, these steps put tasks on a list: a step does
//! what it can and pushes what has to come before, the last one on top. So the order is that of calls, and what has to be
//! looked at again after anything else has happened is looked at in one place:
//!
//! - a machine that was stopped or has failed does none of the tasks that are left ([`System::work_off`]);
//! - a line is pinned as long as a task that moves it is on the list ([`Task::Unpin`]);
//! - a version that has waited in flight is looked at again before it arrives or leaves ([`System::still_to_move`]).
//!
//! Each task begins at the cycle in which the one before it has ended ([`WorkList::now`]). Requests push a task and work the
//! list off ([`System::complete`]); steps never do.

mod abort;
mod actions;
mod arrive;
mod background;
mod complete;
mod events;
mod leave;
mod persist;
mod push;
mod read;
mod scan;
mod submit;
mod wait;

use super::System;
use super::agenda::Scan;
use super::caches::Resident;
use durasim_cache::Version;
use durasim_contract::{AbortCause, Actions, LevelId, LineTag, Origin, Token, Wait};
use durasim_memory::{Write, WriteToken};
use durasim_types::{Cause, CoreId, Cycle, Line, LineAddr, TxId};

use background::Background;
pub(super) use wait::Condition;

/// Something to do, in the folder's file of that name.
pub(super) enum Task {
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
    /// A copy leaves its array, and what lies below is all that is left there.
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
    /// It has room there.
    Arrive { level: LevelId, core: CoreId, version: Version },
    /// The newest private version of a line comes down to the last level.
    PushToLlc { line: LineAddr },
    /// The private version of a level does so.
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
    Barrier { core: CoreId, token: Token, cause: Cause, at: Cycle },
    /// It has arrived there.
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

/// The tasks, the next one on top, and the cycle that they have come to.
#[derive(Default)]
pub(super) struct WorkList {
    tasks: Vec<Task>,
    now: Cycle,
    background: Background,
}

impl WorkList {
    /// Puts a task on top: it comes before those that are there.
    #[inline]
    pub(super) fn push(&mut self, task: Task) {
        self.tasks.push(task);
    }

    /// The cycle in which the last task has ended.
    #[inline]
    pub(super) fn now(&self) -> Cycle {
        self.now
    }

    /// The task being executed ends, or the next one begins, at this cycle.
    #[inline]
    pub(super) fn set_now(&mut self, now: Cycle) {
        self.now = now;
    }

    fn pop(&mut self) -> Option<Task> {
        self.tasks.pop()
    }

    fn clear(&mut self) {
        self.tasks.clear();
    }
}

impl System {
    /// Does all tasks that are on the list. A machine that stops on the way leaves the rest undone.
    fn work_off(&mut self) {
        while let Some(task) = self.work.pop() {
            if self.halted() {
                self.work.clear();
                break;
            }
            self.step(task);
        }
    }

    fn step(&mut self, task: Task) {
        match task {
            Task::Act { core, at, list, next } => self.act_next(core, at, list, next),
            Task::MakeRoom { level, core, line, incoming } => self.make_room_in(level, core, line, incoming),
            Task::ObeyTagLimit { level, core, line, tag } => self.enforce_tag_limit(level, core, line, tag),
            Task::AskPrivate { from, to, core, line } => self.ask_private(from, to, core, line),
            Task::Move { from, to, core, line } => self.move_to(to, from, core, line),
            Task::WrittenBack { core } => self.caches.release_write_back_buffer(core, self.work.now()),
            Task::LeaveL1 { core, line } => self.leave_l1(core, line),
            Task::CollectVersions { line } => self.collect_versions(line),
            Task::LeaveVersions { line, versions, next } => self.leave_versions(line, versions, next),
            Task::TakeOut { level, core, line } => self.caches.take_out(level, core, line),
            Task::DropCode { line } => self.caches.cores().for_each(|core| self.caches.drop_code(core, line)),
            Task::Unpin => self.caches.unpin(),
            Task::LeaveCaches { core, version } => self.leave_caches(core, version),
            Task::AskEvict { core, version } => self.ask_evict(core, version),
            Task::PutBelow { level, core, version } => self.put_below(level, core, version),
            Task::Arrive { level, core, version } => self.arrive(level, core, version),
            Task::KeepOlder { core, line, incoming } => self.keep_older(core, line, incoming),
            Task::PushToLlc { line } => self.push_to_llc(line),
            Task::PushLevel { level, owner, line } => self.push_level(level, owner, line),
            Task::Pushed { owner, line } => self.pushed(owner, line),
            Task::AnnouncePush { core, line, token } => self.announce_push(core, line, token),
            Task::CleanPrivate { core, line, data } => self.caches.clean_private_copies(core, line, data),
            Task::CleanCopies { line, data } => {
                self.caches.clean_copies(line, data, self.design.tags_follow_newest_data());
            }
            Task::Submit { core, from, write, at } => self.submit_write(core, from, write, at),
            Task::Barrier { core, token, cause, at } => self.submit_barrier(core, token, cause, at),
            Task::ArriveAtController { write } => self.arrive_at_controller(write),
            Task::AskAccept { controller } => self.ask_accept(controller),
            Task::ForgetOutstanding { token, at } => self.agenda.forget_outstanding(token, at),
            Task::Acknowledge { tokens, line, at } => self.acknowledge_all(tokens, line, at),
            Task::DrainOldest { core, at } => self.drain_oldest(core, at),
            Task::DrainLine { line, at } => self.drain_line(line, at),
            Task::Abort { tx, why } => self.start_abort(tx, why),
            Task::AskAbort { tx, why, core } => self.ask_abort(tx, why, core),
            Task::Aborted { tx, core } => self.end_abort(tx, core),
            Task::Show { at, scan, lines, next, is_last } => self.show_next(at, scan, lines, next, is_last),
            Task::Advance { until } => self.advance_to(until),
            Task::Await { wait } => self.await_design(wait),
            Task::Until { condition, since, now } => self.process_until(condition, since, now),
        }
    }
}
