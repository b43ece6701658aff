//! The choice of the next command: of all ready requests, the one that has waited longest (first ready, first come), so
//! that hits of open rows pass requests for other rows. Writes are gathered as the policy says.
//!
//! The scheduler goes from command to command. [`Scheduler::run`] gives all commands up to a time, for good; a request that
//! arrives is put to the others, and a copy that runs on says when it will be served if nothing else arrives.

use super::device::{Device, LineLocation, NextCommand, RowFound};
use super::policy::{Mode, Policy};
use super::{Direction, EntryUntil};
use crate::trace::{Command, CommandKind, Trace};
use durasim_types::Picos;
use serde::{Deserialize, Serialize};

/// A read or write that waits for its column command.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Request {
    /// The order of arrival among all requests.
    number: u64,
    place: LineLocation,
    direction: Direction,
    /// The time at which it arrived.
    arrived_ps: Picos,
    /// The time at which it took its entry of the queue; `None` while it waits outside.
    entered_ps: Option<Picos>,
    /// Its first command and what it found, once given.
    found: Option<(Picos, RowFound)>,
    /// Its bank was opened for it.
    is_opened: bool,
    /// It asks for a time before that of the scheduler: cores run ahead. It takes the gaps that are left.
    is_late: bool,
}

/// A request that got its column command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    pub number: u64,
    pub direction: Direction,
    /// The time at which it took its entry of the queue.
    pub entered_ps: Picos,
    /// Its first command, and what that found.
    pub first_ps: Picos,
    pub found: RowFound,
    /// The read or write command itself.
    pub column_ps: Picos,
    /// A read: its last data is there. A write: the cells hold it.
    pub done_ps: Picos,
}

/// The reason of the next command, in the order of precedence at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    /// A row was opened for the request.
    Opened,
    Refresh,
    Waiting,
}

/// The next command, and for whom.
#[derive(Clone, Copy, Debug)]
struct Choice {
    at_ps: Picos,
    turn: Turn,
    /// The number of the request, or the rank of the refresh.
    order: u64,
    /// The request's place in the list.
    index: usize,
    kind: CommandKind,
}

impl Choice {
    fn key(&self) -> (Picos, Turn, u64) {
        (self.at_ps, self.turn, self.order)
    }
}

/// The bound of the next command of a kind in a bank: the earliest time, after this number of commands of the channel.
type Bound = (Picos, u64);

/// Requests in front of a device, and the time up to which commands were given.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Scheduler {
    device: Device,
    policy: Policy,
    /// In the order of arrival.
    requests: Vec<Request>,
    next_number: u64,
    now_ps: Picos,
    /// The clock after the last command.
    free_clock_ps: Picos,
    mode: Mode,
    /// Drains so far.
    drains: u64,
    /// Held entries, which fill the queue and do not leave it.
    held: usize,
    /// The time at which each free entry of the read queue became free.
    free_entries_ps: Vec<Picos>,
    /// An entry of the read queue is taken until then.
    read_entry_until: EntryUntil,
    /// Commands given so far.
    given: u64,
    #[serde(skip)]
    bounds: Vec<[Bound; 4]>,
    /// Requests that were served since the last one was taken.
    #[serde(skip)]
    served: Vec<Served>,
}

impl Scheduler {
    pub fn new(device: Device, policy: Policy, read_queue_entries: usize, read_entry_until: EntryUntil) -> Self {
        Scheduler {
            device,
            policy,
            requests: Vec::new(),
            next_number: 0,
            now_ps: 0,
            free_clock_ps: 0,
            mode: Mode::default(),
            drains: 0,
            held: 0,
            free_entries_ps: vec![0; read_queue_entries],
            read_entry_until,
            given: 0,
            bounds: Vec::new(),
            served: Vec::new(),
        }
    }

    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Whether writes drain because there are many, not because no read waits.
    pub fn is_draining(&self) -> bool {
        self.mode.is_drain()
    }

    /// Drains so far.
    pub fn drains(&self) -> u64 {
        self.drains
    }

    /// Held entries fill so much of the write queue.
    pub fn set_held(&mut self, held: usize) {
        self.held = held;
    }

    /// A request arrives; its number.
    pub fn push(&mut self, line: u64, direction: Direction, at_ps: Picos) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        self.requests.push(Request {
            number,
            place: self.device.place(line),
            direction,
            arrived_ps: at_ps,
            entered_ps: (direction == Direction::Write).then_some(at_ps),
            found: None,
            is_opened: false,
            is_late: at_ps < self.now_ps,
        });
        self.now_ps = self.now_ps.max(at_ps);
        number
    }

    /// Gives commands before `before_ps`, refreshes too, up to the next that serves a request.
    pub fn run_to_served(&mut self, before_ps: Picos, trace: &mut Trace) -> Option<Served> {
        while self.step(before_ps, trace) {
            if let Some(served) = self.served.pop() {
                return Some(served);
            }
        }
        if before_ps < Picos::MAX {
            self.now_ps = self.now_ps.max(before_ps);
        }
        None
    }

    /// The time at which the next command is given if nothing else arrives, or an earlier time; `Picos::MAX`: never.
    pub fn next_command_ps(&mut self) -> Picos {
        self.enter();
        let mode = self.mode;
        let (next, wake_ps) = self.next_mode();
        self.mode = next;
        let choice = self.choose(Picos::MAX);
        self.mode = mode;
        choice.map_or(Picos::MAX, |choice| choice.at_ps).min(wake_ps)
    }

    /// Goes on in `ahead`, which becomes a copy, until the request that is wanted is served, if nothing else arrives; what was
    /// served. The wanted one is the last.
    pub fn run_ahead<'a>(
        &self,
        ahead: &'a mut Option<Box<Scheduler>>,
        is_wanted: impl Fn(&Served) -> bool,
    ) -> &'a [Served] {
        let ahead = match ahead {
            Some(ahead) => {
                self.copy_into(ahead);
                ahead
            }
            None => ahead.insert(Box::new(self.clone())),
        };
        while ahead.served.last().is_none_or(|served| !is_wanted(served))
            && ahead.step(Picos::MAX, &mut Trace::default())
        {}
        &ahead.served
    }

    /// Makes `ahead` a copy, in the memory that it has. It gives commands from now on alone, if no request waits that has an
    /// earlier time.
    fn copy_into(&self, ahead: &mut Scheduler) {
        let from_ps = if self.requests.iter().any(|request| request.is_late) { 0 } else { self.now_ps };
        self.device.copy_into(&mut ahead.device, from_ps);
        ahead.requests.clone_from(&self.requests);
        ahead.free_entries_ps.clone_from(&self.free_entries_ps);
        ahead.bounds.clone_from(&self.bounds);
        ahead.served.clear();
        let Scheduler { next_number, now_ps, free_clock_ps, mode, drains, held, given, .. } = *self;
        (ahead.next_number, ahead.now_ps, ahead.free_clock_ps, ahead.mode) = (next_number, now_ps, free_clock_ps, mode);
        (ahead.drains, ahead.held, ahead.given) = (drains, held, given);
    }

    /// Whether writes wait.
    pub fn has_writes(&self) -> bool {
        self.requests.iter().any(|request| request.direction == Direction::Write)
    }

    /// Serves the reads that wait as if nothing else arrived, then refreshes up to `until_ps`, and notes all of that.
    pub fn run_out(&self, until_ps: Picos, trace: &mut Trace) {
        let mut ahead = self.clone();
        for write in ahead.requests.iter().filter(|request| request.direction == Direction::Write && request.is_opened)
        {
            ahead.device.forget(write.place);
        }
        ahead.requests.retain(|request| request.direction == Direction::Read);
        while !ahead.requests.is_empty() && ahead.step(Picos::MAX, trace) {}
        while ahead.run_to_served(until_ps, trace).is_some() {}
    }

    /// Gives the next command if it comes before `before_ps`; whether there may be another one.
    fn step(&mut self, before_ps: Picos, trace: &mut Trace) -> bool {
        // The next kind of request is decided in the first clock that has no command yet, with all that has arrived by
        // then.
        let is_decided = self.now_ps.max(self.free_clock_ps) >= before_ps;
        if is_decided && !self.requests.iter().any(|request| request.is_late) {
            return false;
        }
        self.enter();
        let (mode, wake_ps) = self.next_mode();
        self.drains += u64::from(mode.is_drain() && !self.mode.is_drain());
        self.mode = mode;
        let choice = self.choose(before_ps);
        // A read takes its entry meanwhile: that may change which requests have their turn.
        if wake_ps < before_ps && choice.is_none_or(|choice| wake_ps <= choice.at_ps) {
            self.now_ps = wake_ps;
            return true;
        }
        match choice {
            Some(choice) if choice.at_ps < before_ps => {
                self.give(choice, trace);
                true
            }
            _ => false,
        }
    }

    /// Reads outside take free entries, in the order of arrival.
    fn enter(&mut self) {
        if self.free_entries_ps.is_empty() {
            return;
        }
        for request in self.requests.iter_mut().filter(|request| request.entered_ps.is_none()) {
            let first = (0..self.free_entries_ps.len()).min_by_key(|&n| self.free_entries_ps[n]);
            let Some(first) = first else { break };
            let free_ps = self.free_entries_ps.swap_remove(first);
            request.entered_ps = Some(free_ps.max(request.arrived_ps));
        }
    }

    /// The kind of request that is served now, and the time at which the next request takes its entry: `Picos::MAX` if
    /// all that can have theirs.
    fn next_mode(&self) -> (Mode, Picos) {
        let (mut reads, mut writes, mut wake_ps) = (0, 0, Picos::MAX);
        for request in &self.requests {
            match request.entered_ps {
                Some(entered_ps) if entered_ps > self.now_ps => wake_ps = wake_ps.min(entered_ps),
                Some(_) if !request.is_opened && request.direction == Direction::Read => reads += 1,
                Some(_) if !request.is_opened => writes += 1,
                _ => {}
            }
        }
        (self.policy.next_mode(self.mode, reads, writes, self.held), wake_ps)
    }

    /// The next command of all.
    fn choose(&mut self, before_ps: Picos) -> Option<Choice> {
        let mut best: Option<Choice> = None;
        self.bounds.resize(self.device.banks(), [(0, 0); 4]);
        for index in 0..self.requests.len() {
            let Some(choice) = self.choice(index, best.map_or(before_ps, |best| best.at_ps)) else { continue };
            if best.is_none_or(|best| choice.key() < best.key()) {
                best = Some(choice);
            }
        }
        for rank in 0..self.device.ranks() {
            let limit_ps = best.map_or(before_ps, |best| best.at_ps);
            let due_ps = self.device.refresh_due_ps(rank);
            // Without a limit refreshes would never end: only those that a request waits for count.
            if due_ps > limit_ps
                || due_ps == Picos::MAX
                || (best.is_none() && before_ps == Picos::MAX && !self.is_blocked(rank))
            {
                continue;
            }
            let Some(NextCommand { kind, at_ps }) = self.device.refresh(rank, self.now_ps) else { continue };
            let choice = Choice { at_ps, turn: Turn::Refresh, order: rank.into(), index: rank as usize, kind };
            if best.is_none_or(|best| choice.key() < best.key()) {
                best = Some(choice);
            }
        }
        best
    }

    /// Whether a request waits for a rank whose refresh is due.
    fn is_blocked(&self, rank: u32) -> bool {
        self.requests.iter().any(|r| r.place.rank == rank && self.may_go(r))
    }

    /// Whether the policy lets a request have a command.
    fn may_go(&self, request: &Request) -> bool {
        request.entered_ps.is_some() && (request.is_opened || request.is_late || self.mode.serves(request.direction))
    }

    /// The next command of a request, if it may have one, no later than `limit_ps`.
    fn choice(&mut self, index: usize, limit_ps: Picos) -> Option<Choice> {
        let request = &self.requests[index];
        if !self.may_go(request) {
            return None;
        }
        let Request { number, place, direction, is_opened, is_late, .. } = *request;
        let entered_ps = request.entered_ps?;
        let kind = self.device.next_kind(place, direction);
        let is_column = matches!(kind, CommandKind::Rd | CommandKind::Wr);
        let opened_for_other = !is_opened && self.device.is_opened_for_one(place);
        // A row is neither closed nor, if each access closes its row, used before it has served the request it was opened for.
        if opened_for_other && (kind == CommandKind::Pre || (is_column && self.device.closes_rows())) {
            return None;
        }
        if is_column && !is_opened && self.has_had_its_hits(request) {
            return None;
        }
        // Neither does one with an earlier time pass an older one of its line.
        if is_late && self.requests[..index].iter().any(|older| older.place == place && older.direction == direction) {
            return None;
        }
        let from_ps = if is_late { entered_ps } else { entered_ps.max(self.now_ps) };
        let at_ps = self.first_ps(place, kind, from_ps, limit_ps, is_late)?;
        // A refresh that is due lets only those pass for which a row is open.
        if !is_opened && at_ps >= self.device.refresh_due_ps(place.rank) {
            return None;
        }
        let turn = if is_opened { Turn::Opened } else { Turn::Waiting };
        Some(Choice { at_ps, turn, order: number, index, kind })
    }

    /// Whether the row had its number of accesses, so that an older request for another row of the bank goes first.
    fn has_had_its_hits(&self, request: &Request) -> bool {
        self.device.columns_in_row(request.place) >= self.policy.row_hits_max
            && self.requests.iter().any(|other| {
                let is_older = other.number < request.number && other.place.index == request.place.index;
                is_older && other.place.row != request.place.row && self.may_go(other)
            })
    }

    /// The first time for a command, if that is not after `limit_ps`. Bounds only grow, as commands are added.
    fn first_ps(
        &mut self,
        place: LineLocation,
        kind: CommandKind,
        from_ps: Picos,
        limit_ps: Picos,
        is_late: bool,
    ) -> Option<Picos> {
        if is_late {
            return Some(self.device.first_ps(place, kind, from_ps)).filter(|&at_ps| at_ps <= limit_ps);
        }
        let which = match kind {
            CommandKind::Act => 0,
            CommandKind::Rd => 1,
            CommandKind::Wr => 2,
            CommandKind::Pre | CommandKind::PreAll | CommandKind::Ref => 3,
        };
        let (bound_ps, given) = self.bounds[place.index as usize][which];
        if bound_ps > limit_ps {
            return None;
        }
        if given == self.given && bound_ps >= from_ps {
            return Some(bound_ps);
        }
        let at_ps = self.device.first_ps(place, kind, from_ps);
        // One that takes its entry later says nothing about the others.
        if from_ps <= self.now_ps {
            self.bounds[place.index as usize][which] = (at_ps, self.given);
        }
        Some(at_ps).filter(|&at_ps| at_ps <= limit_ps)
    }

    fn give(&mut self, choice: Choice, trace: &mut Trace) {
        let Choice { at_ps, turn, index, kind, .. } = choice;
        self.given += 1;
        self.now_ps = self.now_ps.max(at_ps);
        self.free_clock_ps = self.free_clock_ps.max(at_ps + self.device.clock_ps());
        let command = NextCommand { kind, at_ps };
        if turn == Turn::Refresh {
            self.device.give_refresh(index as u32, command);
            let all = Command {
                at_ps,
                controller: 0,
                kind,
                rank: index as u16,
                bank: 0,
                row: 0,
                column: 0,
                auto_precharge: false,
            };
            trace.note(|| all);
            return;
        }
        let request = &mut self.requests[index];
        let (place, was_opened) = (request.place, request.is_opened);
        self.device.give(place, command, was_opened);
        let found = match kind {
            CommandKind::Rd | CommandKind::Wr => RowFound::Hit,
            CommandKind::Act => RowFound::Miss,
            CommandKind::Pre | CommandKind::PreAll | CommandKind::Ref => RowFound::Conflict,
        };
        let (first_ps, found) = *request.found.get_or_insert((at_ps, found));
        let is_column = matches!(kind, CommandKind::Rd | CommandKind::Wr);
        let is_read = request.direction == Direction::Read;
        let leaves = is_column || kind == CommandKind::Act;
        if is_read && leaves && !request.is_opened && self.read_entry_until == EntryUntil::Command {
            self.free_entries_ps.push(at_ps);
        }
        request.is_opened |= kind == CommandKind::Act;
        let closes_rows = self.device.closes_rows();
        trace.note(|| Command {
            at_ps,
            controller: 0,
            kind,
            rank: place.rank as u16,
            bank: place.bank as u16,
            row: if kind == CommandKind::Pre { 0 } else { place.row },
            column: if is_column { place.column } else { 0 },
            auto_precharge: is_column && closes_rows,
        });
        if is_column {
            let request = self.requests.remove(index);
            self.mode.count(request.direction);
            let done_ps = self.device.done_ps(request.direction, at_ps);
            if is_read && self.read_entry_until == EntryUntil::Data {
                self.free_entries_ps.push(done_ps);
            }
            let entered_ps = request.entered_ps.unwrap_or(request.arrived_ps);
            let (number, direction) = (request.number, request.direction);
            self.served.push(Served { number, direction, entered_ps, first_ps, found, column_ps: at_ps, done_ps });
        }
    }
}
