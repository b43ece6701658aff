//! The work list: what the memory system still has to do before the request being executed continues.
//!
//! A line that leaves a level makes room below, where another line may have to leave; a design that is asked answers with
//! actions, which move further lines or wait. Instead of calling each other, these steps put tasks on a list: a step does
//! what it can and pushes what has to come before, the last one on top. So the order is that of calls, and what has to be
//! looked at again after anything else has happened is looked at in one place:
//!
//! - a machine that was stopped or has failed does none of the tasks that are left ([`System::work_off`]);
//! - a line is pinned as long as a task that moves it is on the list ([`Task::Unpin`]);
//! - a version that has waited in flight is looked at again before it arrives or leaves (`was_discarded`, `current_version`).
//!
//! Each task begins at the cycle in which the one before it has ended ([`now`](crate::parts::work_list::WorkList::now)). Requests push a task and work the
//! list off ([`System::complete`]); steps never do.

mod abort;
mod actions;
mod arrive;
mod background;
mod complete;
mod leave;
mod pending_events;
mod persist;
mod push;
mod read;
mod scan;
mod submit;
mod wait;

use super::System;
use crate::parts::work_list::Task;
use durasim_types::Error;

impl System {
    /// Makes work that takes more tasks than this an error: a design keeps the memory system busy without end. Events up to
    /// a given cycle count from each later cycle on.
    pub fn limit_tasks(&mut self, tasks: u64) {
        self.work.limit_tasks(tasks);
    }

    /// Does all tasks that are on the list. A machine that stops on the way leaves the rest undone.
    fn work_off(&mut self) {
        self.work.start_count();
        while let Some(task) = self.work.pop() {
            if self.halted() {
                self.work.clear();
                break;
            }
            if let Err(tasks) = self.work.count_task() {
                let what = format!("the memory system has done {tasks} steps of one request and does not end");
                self.observers.fail(Error::Stuck { cycle: self.work.now(), what });
                continue;
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
            Task::Barrier { core, token, cause, at, is_delayed } => {
                self.submit_barrier(core, token, cause, at, is_delayed);
            }
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
