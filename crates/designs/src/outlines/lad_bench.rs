//! A stand-in for the machine of the outline of LAD: L1Ds without limits, controllers with queues of a few entries,
//! messages that take their time. It asks as ARCHITECTURE.md says that the machine will.

use super::lad::{Lad, LadSpec, Protocol};
use super::planned::{
    Arrival, Departure, Layout, Occupancy, Place, Planned, PlannedAction, PlannedActions, StagedWrite,
};
use crate::testing::{geometry_of, line, word};
use durasim_design::{
    Accept, Action, Actions, CrashImage, CrashSink, Ctx, Design, Durability, Gate, Geometry, LevelId, LineTag, Message,
    Probe, Request, Signal, Store, Token, Wait,
};
use durasim_types::{Cause, CoreId, Cycle, Line, LineAddr, Pages, TxId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Clone, Debug)]
struct Entry {
    line: LineAddr,
    mask: u64,
    data: Line,
    token: Option<Token>,
    cause: Cause,
    held: Option<u64>,
    /// For the report of its departure: the group it was held for.
    group: Option<u64>,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    /// Writes that have arrived and wait for room, and signals that refused ones wait for.
    inbound: VecDeque<(Entry, Option<Signal>)>,
    entries: VecDeque<Entry>,
}

impl Queue {
    fn occupancy(&self, entries: u32) -> Occupancy {
        let held = self.entries.iter().filter(|e| e.held.is_some()).count() as u32;
        Occupancy { entries, held, ordinary: self.entries.len() as u32 - held }
    }
}

#[derive(Clone)]
pub(super) struct Bench {
    pub design: Protocol,
    /// The thread on each core.
    running: Vec<u32>,
    spec: LadSpec,
    geometry: Geometry,
    layout: Layout,
    entries: u32,
    media: Pages,
    queues: Vec<Queue>,
    /// Dirty lines of the L1Ds, with their tags.
    l1d: BTreeMap<(CoreId, LineAddr), (Line, LineTag)>,
    mail: BTreeMap<(Cycle, u64), (Place, Message)>,
    sent: u64,
    raised: BTreeSet<Signal>,
    pub now: Cycle,
    /// The images of all steps, if they are kept.
    pub images: Option<Vec<CrashImage>>,
}

impl Bench {
    pub fn new(spec: LadSpec, controllers: u16, entries: u32, layout: Layout) -> Self {
        let geometry = geometry_of::<Lad>(&spec, 4, controllers);
        Bench {
            design: Protocol::new(&spec, &geometry),
            running: (0..u32::from(geometry.cores)).collect(),
            media: Pages::new(geometry.pmem_base, geometry.pmem_bytes),
            spec,
            geometry,
            layout,
            entries,
            queues: vec![Queue::default(); usize::from(controllers)],
            l1d: BTreeMap::new(),
            mail: BTreeMap::new(),
            sent: 0,
            raised: BTreeSet::new(),
            now: 0,
            images: None,
        }
    }

    fn cx(&self, core: CoreId) -> Ctx {
        Ctx { core, thread: self.running[usize::from(core.0)], cycle: self.now, instructions: 0 }
    }

    fn run_actions_in_order(&mut self, from: Place, out: &Actions) {
        out.as_slice().iter().for_each(|action| self.act(from, PlannedAction::Today(*action)));
    }

    fn obey(&mut self, from: Place, out: PlannedActions) {
        out.0.into_iter().for_each(|action| self.act(from, action));
    }

    fn act(&mut self, from: Place, action: PlannedAction) {
        match action {
            PlannedAction::Today(Action::CleanTo { line, token, .. }) => {
                let holder = self.l1d.keys().find(|(_, dirty)| *dirty == line).copied();
                let (data, _) = holder.and_then(|key| self.l1d.remove(&key)).expect("a marked line is dirty");
                self.submit(line, u64::MAX, data, Cause::Data, token);
            }
            // The line is in its bank at once, and stays there.
            PlannedAction::Today(Action::PushToLlc { line, token }) => {
                let holder = self.l1d.keys().find(|(_, dirty)| *dirty == line).copied();
                holder.and_then(|key| self.l1d.remove(&key)).expect("a marked line is dirty");
                let token = token.expect("LAD waits for all flushes");
                self.design.acked_of(&self.cx(CoreId(0)), token, line.base(), &mut PlannedActions::default());
            }
            PlannedAction::Today(Action::Append { at, payload, cause, token, .. }) => {
                let mut data = [0; 64];
                data[at.offset()..at.offset() + payload.bytes().len()].copy_from_slice(payload.bytes());
                self.submit(at.line(), payload.mask() << at.offset(), data, cause, token);
            }
            PlannedAction::CopyBelowHeld { from, to, cause, token, .. } => {
                let data = self.below_held(from.line());
                self.submit(to.line(), u64::MAX, data, cause, token);
            }
            PlannedAction::Today(Action::ReleaseHeld { controller, group }) => {
                let queue = &mut self.queues[usize::from(controller)];
                queue.entries.iter_mut().filter(|e| e.held == Some(group)).for_each(|e| e.held = None);
            }
            PlannedAction::ReleaseHeldLine { controller, group, line } => {
                let queue = &mut self.queues[usize::from(controller)];
                let mut entries = queue.entries.iter_mut();
                let oldest = entries.find(|e| e.held == Some(group) && e.line == line);
                oldest.expect("the design knows what is held").held = None;
            }
            PlannedAction::SendTo { to, message } => self.send(from, to, message),
            PlannedAction::Today(Action::Raise(signal)) => {
                // A signal ends the waits of all refused writes that wait for it.
                let waiting = self.queues.iter_mut().flat_map(|queue| &mut queue.inbound);
                waiting.filter(|(_, waits)| *waits == Some(signal)).for_each(|(_, waits)| *waits = None);
                self.raised.insert(signal);
            }
            PlannedAction::Today(Action::Event(..)) => {}
            PlannedAction::Today(other) => panic!("LAD does not ask for {other:?}"),
        }
    }

    fn send(&mut self, from: Place, to: Place, message: Message) {
        self.sent += 1;
        self.mail.insert((self.now + self.layout.cycles(from, to), self.sent), (to, message));
    }

    fn submit(&mut self, line: LineAddr, mask: u64, data: Line, cause: Cause, token: Option<Token>) {
        let controller = usize::from(self.geometry.controller_of(line));
        let entry = Entry { line, mask, data, token, cause, held: None, group: None };
        self.queues[controller].inbound.push_back((entry, None));
    }

    /// The media's bytes of a line, with the entries in front of the oldest held one.
    fn below_held(&self, line: LineAddr) -> Line {
        let mut pages = self.media.clone();
        let queue = &self.queues[usize::from(self.geometry.controller_of(line))];
        let below = queue.entries.iter().filter(|e| e.line == line).take_while(|e| e.held.is_none());
        below.for_each(|e| pages.write_masked(e.line, e.mask, &e.data));
        pages.line(line)
    }

    /// Takes the oldest write that the design does not refuse and that has no refused one of its line in front of it.
    fn take(&mut self, controller: u16) -> bool {
        let index = usize::from(controller);
        let (mut refused, mut acted) = (BTreeSet::new(), false);
        for position in 0..self.queues[index].inbound.len() {
            let queue = self.queues[index].occupancy(self.entries);
            if queue.free() == 0 {
                return acted;
            }
            let (entry, waits) = self.queues[index].inbound[position].clone();
            if refused.contains(&entry.line) || waits.is_some() {
                refused.insert(entry.line);
                continue;
            }
            let Entry { line, mask, token, .. } = entry;
            let arrival = Arrival { controller, line, mask, cause: entry.cause, token, queue };
            let mut out = PlannedActions::default();
            let answer = self.design.accept_arrival(&self.cx(CoreId(0)), &arrival, &mut out);
            match answer {
                Accept::Refuse(Wait::Signal(signal)) => {
                    self.queues[index].inbound[position].1 = Some(signal);
                    refused.insert(line);
                    acted |= !out.0.is_empty();
                    self.obey(Place::Controller(controller), out);
                    continue;
                }
                Accept::Refuse(wait) => panic!("LAD waits for {wait:?}"),
                Accept::QueueWhileRoom { .. } => panic!("LAD holds entries until it releases them"),
                Accept::Queue { held } => {
                    self.queues[index].inbound.remove(position);
                    self.queues[index].entries.push_back(Entry { held, group: held, ..entry });
                }
            }
            // The write is in the queue before what the design asked for, and acknowledged after.
            self.obey(Place::Controller(controller), out);
            if let Some(token) = token {
                let mut out = PlannedActions::default();
                self.design.acked_of(&self.cx(CoreId(0)), token, line.base(), &mut out);
                self.obey(Place::Controller(controller), out);
            }
            return true;
        }
        acted
    }

    /// Writes the oldest entry that is not held, nor after a held one of its line.
    fn drain(&mut self, controller: u16) -> bool {
        let index = usize::from(controller);
        let queue = &mut self.queues[index];
        let behind = |at: usize| queue.entries.iter().take(at).any(|e| e.line == queue.entries[at].line);
        let Some(at) = (0..queue.entries.len()).find(|&at| queue.entries[at].held.is_none() && !behind(at)) else {
            return false;
        };
        let Entry { line, mask, data, group, .. } = queue.entries.remove(at).expect("it was found");
        self.media.write_masked(line, mask, &data);
        let queue = self.queues[index].occupancy(self.entries);
        let departure = Departure { controller, line, group, queue };
        let mut out = PlannedActions::default();
        self.design.drained(&self.cx(CoreId(0)), &departure, &mut out);
        self.obey(Place::Controller(controller), out);
        true
    }

    /// The next event: a write is taken, an entry is written, a message arrives.
    pub fn step(&mut self) -> bool {
        let controllers = 0..self.geometry.controllers;
        let queues = controllers.clone().any(|c| self.take(c)) || controllers.clone().any(|c| self.drain(c));
        if !queues && !self.deliver() {
            return false;
        }
        if let Some(mut images) = self.images.take() {
            images.push(self.crashed());
            self.images = Some(images);
        }
        true
    }

    /// Delivers the message that arrives first.
    pub fn deliver(&mut self) -> bool {
        let Some(((cycle, _), (to, message))) = self.mail.pop_first() else { return false };
        self.now = self.now.max(cycle);
        let core = if let Place::Core(core) = to { core } else { CoreId(0) };
        let mut out = PlannedActions::default();
        self.design.message_at(&self.cx(core), to, message, &mut out);
        self.obey(to, out);
        true
    }

    pub fn run(&mut self) {
        while self.step() {}
    }

    pub fn begin(&mut self, core: u16, tx: u64) {
        let cx = self.cx(CoreId(core));
        assert_eq!(self.design.tx_begin(&cx, TxId(tx), &mut Actions::default()), Gate::Done);
    }

    pub fn store(&mut self, core: u16, number: u64, value: u64, tx: u64) {
        let cached = self.l1d.get(&(CoreId(core), line(number))).copied();
        let (before, mut tag) = cached.unwrap_or_else(|| (self.newest(number), LineTag::NONE));
        let (addr, tx) = (word(number, 0), Some(TxId(tx)));
        let store = Store { addr, len: 8, data: value, tx, before: &before, dirty: false };
        let cx = self.cx(CoreId(core));
        let gate = self.design.store(&cx, &store, &mut tag, &mut Actions::default());
        assert_eq!(gate, Gate::Done);
        let mut after = before;
        after[..8].copy_from_slice(&value.to_le_bytes());
        self.l1d.insert((CoreId(core), line(number)), (after, tag));
    }

    /// The line as the controllers have it newest.
    fn newest(&self, number: u64) -> Line {
        let mut pages = self.media.clone();
        let queue = &self.queues[usize::from(self.geometry.controller_of(line(number)))];
        let entries = queue.entries.iter().chain(queue.inbound.iter().map(|(entry, _)| entry));
        entries.filter(|e| e.line == line(number)).for_each(|e| pages.write_masked(e.line, e.mask, &e.data));
        pages.line(line(number))
    }

    pub fn value(&self, number: u64) -> u64 {
        u64::from_le_bytes(self.newest(number)[..8].try_into().expect("eight bytes"))
    }

    /// The L1D of a core gives up a line.
    pub fn evict(&mut self, core: u16, number: u64) {
        let cx = self.cx(CoreId(core));
        let (data, tag) = self.l1d[&(CoreId(core), line(number))];
        let mut out = PlannedActions::default();
        self.design.evict_from(&cx, LevelId::L1d, line(number), tag, &data, &mut out);
        self.obey(Place::Core(CoreId(core)), out);
    }

    /// Another core asks for a line that this one has.
    pub fn probe(&mut self, core: u16, holder: u16, number: u64) {
        let (_, tag) = self.l1d[&(CoreId(holder), line(number))];
        assert!(self.design.live(tag), "the design is asked about lines with live tags");
        let request = Request { line: line(number), tag, tx: None, write: true, holder: Some(CoreId(holder)) };
        let cx = self.cx(CoreId(core));
        let mut out = Actions::default();
        assert_eq!(self.design.probe(&cx, &request, &mut out), Probe::Grant);
        self.run_actions_in_order(Place::Core(CoreId(holder)), &out);
    }

    /// A thread leaves its core for another one, and its transaction with it.
    pub fn migrate(&mut self, thread: u32, from: u16, to: u16, tx: u64) {
        self.through(from, |design, cx, planned| {
            let mut out = Actions::default();
            let gate = design.context_switch(cx, Some(TxId(tx)), None, &mut out);
            out.as_slice().iter().for_each(|action| planned.push(*action));
            gate
        });
        self.running[usize::from(to)] = thread;
        let cx = self.cx(CoreId(to));
        assert_eq!(self.design.context_switch(&cx, None, Some(TxId(tx)), &mut Actions::default()), Gate::Done);
    }

    /// One offer of a commit: what it waits for.
    pub fn offer_commit(&mut self, core: u16, tx: u64) -> Gate {
        self.offer(core, &mut |design, cx, out| design.tx_commit_at(cx, TxId(tx), out))
    }

    /// A commit with all its waiting.
    pub fn commit(&mut self, core: u16, tx: u64) {
        self.through(core, |design, cx, out| design.tx_commit_at(cx, TxId(tx), out));
    }

    fn offer(&mut self, core: u16, hook: &mut impl FnMut(&mut Protocol, &Ctx, &mut PlannedActions) -> Gate) -> Gate {
        let cx = self.cx(CoreId(core));
        let mut out = PlannedActions::default();
        let gate = hook(&mut self.design, &cx, &mut out);
        self.obey(Place::Core(CoreId(core)), out);
        gate
    }

    fn through(&mut self, core: u16, mut hook: impl FnMut(&mut Protocol, &Ctx, &mut PlannedActions) -> Gate) {
        loop {
            match self.offer(core, &mut hook) {
                Gate::Done => return,
                Gate::Retry(Wait::Acked(token)) => {
                    while self.is_outstanding(token) {
                        assert!(self.step(), "nobody acknowledges {token:?}");
                    }
                }
                Gate::After(Wait::Signal(signal)) => {
                    while !self.raised.remove(&signal) {
                        assert!(self.step(), "nobody raises {signal:?}");
                    }
                    return;
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn is_outstanding(&self, token: Token) -> bool {
        self.queues.iter().any(|queue| queue.inbound.iter().any(|(entry, _)| entry.token == Some(token)))
    }

    /// Held entries of a controller: line number and group.
    pub fn held(&self, controller: u16) -> Vec<(u64, u64)> {
        let entries = self.queues[usize::from(controller)].entries.iter();
        entries.filter_map(|e| e.held.map(|group| (e.line.0 - line(0).0, group))).collect()
    }

    /// What a power failure leaves: ordinary entries go home, but not past a held one of their line.
    pub fn crashed(&self) -> CrashImage {
        self.crashed_in_order(true)
    }

    /// The same if all ordinary entries went home, as they do today.
    pub fn crashed_in_present_order(&self) -> CrashImage {
        self.crashed_in_order(false)
    }

    fn crashed_in_order(&self, in_order: bool) -> CrashImage {
        let mut pages = self.media.clone();
        let mut staged = Vec::new();
        for (controller, queue) in (0..).zip(&self.queues) {
            let mut lines = BTreeSet::new();
            for e in &queue.entries {
                if e.held.is_none() && !(in_order && lines.contains(&e.line)) {
                    pages.write_masked(e.line, e.mask, &e.data);
                } else {
                    lines.insert(e.line);
                    staged.push(StagedWrite { controller, group: e.held, line: e.line, mask: e.mask, data: e.data });
                }
            }
        }
        let mut image = CrashImage::new(pages);
        self.design.crash_staged(&staged, &mut CrashSink::new(&mut image, u64::MAX)).expect("there is energy enough");
        image
    }

    /// The first words of so many lines after recovery of an image.
    pub fn recovered(&self, image: &CrashImage, lines: u64) -> Vec<u64> {
        let mut image = image.clone();
        Lad::recover(&self.spec, &self.geometry, &mut image).expect("nothing cuts it");
        (0..lines).map(|number| image.read_u64(word(number, 0))).collect()
    }

    /// The same, cut in the middle and made again.
    pub fn recovered_twice(&self, image: &CrashImage, lines: u64) -> Vec<u64> {
        let mut image = image.clone();
        image.cut_at(Some(3));
        let _ = Lad::recover(&self.spec, &self.geometry, &mut image);
        image.cut_at(None);
        self.recovered(&image, lines)
    }
}
