//! A stand-in for the machine in unit tests of designs: it calls hooks for several cores, keeps what they hand over to
//! the controller until it is delivered, and makes the power fail.

use durasim_contract::{
    AbortCause, Accept, Action, Actions, Arrival, CachedLine, CopyRequest, CrashImage, CrashSink, CrashView, Ctx,
    Design, Durability, Evict, Fill, Gate, Geometry, Inclusion, LevelGeometry, LevelId, LineTag, LogBlock, Message,
    Node, Occupancy, PmRegion, Probe, Request, Signal, StagedWrite, Store, Token, Wait, snapshot,
};
use durasim_types::{Cause, Clock, CoreId, Digest, Domain, EventKind, Line, LineAddr, Pages, PhysAddr, Stats, TxId};
use std::collections::VecDeque;

const BASE: PhysAddr = PhysAddr(1 << 40);
const DATA_BYTES: u64 = 1 << 20;
const PMEM_BYTES: u64 = 1 << 30;
const INTERLEAVE_BYTES: u64 = 128;

/// A small machine with the regions that the design asks for.
pub(crate) fn geometry<D: Design>(spec: &D::Spec, cores: u16) -> Geometry {
    geometry_of::<D>(spec, cores, 1)
}

/// The geometry for a number of controllers.
pub(crate) fn geometry_of<D: Design>(spec: &D::Spec, cores: u16, controllers: u16) -> Geometry {
    let level = |sets, latency_cycles| LevelGeometry {
        sets,
        ways: 4,
        missing_way_period: 0,
        latency_cycles,
        tag_latency_cycles: latency_cycles,
    };
    let mut geometry = Geometry {
        cores,
        controllers,
        domain: durasim_types::Domain::Adr,
        clock: Clock { frequency_mhz: 1000 },
        l1d: level(4, 2),
        l2: Some(level(8, 8)),
        llc: level(16, 30),
        llc_ports: None,
        llc_banks: 2,
        interleave_bytes: INTERLEAVE_BYTES,
        write_queue_entries: 64,
        inclusion: Inclusion::Inclusive,
        pmem_base: BASE,
        pmem_bytes: PMEM_BYTES,
        pmem_data_bytes: DATA_BYTES,
        regions: Vec::new(),
        planted: durasim_contract::ActiveFault::NONE,
    };
    let mut base = BASE.plus(DATA_BYTES);
    for request in D::reserve(spec, &geometry) {
        geometry.regions.push(PmRegion { name: request.name, base, size_bytes: request.size_bytes });
        base = base.plus(request.size_bytes.next_multiple_of(4096));
    }
    geometry
}

/// The address of a word of the program's data.
pub(crate) fn word(line: u64, index: u64) -> PhysAddr {
    BASE.plus(64 * line + 8 * index)
}

/// The data line of that number.
pub(crate) fn line(number: u64) -> LineAddr {
    word(number, 0).line()
}

/// A write in flight to persistent memory.
struct Inbound {
    line: LineAddr,
    mask: u64,
    data: Line,
    token: Option<Token>,
    /// The first half of a copy: its data was read, it is not written yet.
    reading: bool,
    /// A read of the design's own from this address: nothing is written.
    read: Option<PhysAddr>,
}

/// A design with a controller and persistent memory, and no caches.
pub(crate) struct Bench<D: Design> {
    pub spec: D::Spec,
    pub geometry: Geometry,
    pub design: Box<dyn Durability>,
    pub pmem: Pages,
    inbound: VecDeque<Inbound>,
    /// Entries that the queues of the controllers hold, oldest first.
    pub held: Vec<StagedWrite>,
    /// Writes that the queue has accepted and the media has not: acknowledged once more, oldest first.
    unwritten: VecDeque<(Token, PhysAddr)>,
    /// Messages in flight.
    mail: VecDeque<(Node, Message)>,
    /// Signals that were raised, oldest first.
    pub raised: Vec<Signal>,
    /// Lines that the design had invalidated.
    pub dropped: Vec<LineAddr>,
    /// Lines that the design had cleaned.
    pub cleaned: Vec<LineAddr>,
    /// Transactions whose lines the design had invalidated.
    pub invalidated: Vec<TxId>,
    /// Hardware stores through the caches: address and value.
    pub put: Vec<(PhysAddr, u64)>,
    /// Scans that the design has begun.
    pub scans: Vec<u64>,
    /// Commit events.
    pub commits: u64,
    /// Lines that the design had pushed into the last level, in order.
    pub pushed: Vec<LineAddr>,
    /// Whether to keep the image of a power failure at each step that the design reports, and before each of its writes.
    pub keep_steps: bool,
    /// The images that were kept.
    pub steps: Vec<CrashImage>,
}

impl<D: Design> Bench<D> {
    pub fn new(spec: D::Spec, cores: u16) -> Self {
        Bench::with_controllers(spec, cores, 1)
    }

    /// A bench whose lines are dealt out among this number of controllers.
    pub fn with_controllers(spec: D::Spec, cores: u16, controllers: u16) -> Self {
        let geometry = geometry_of::<D>(&spec, cores, controllers);
        Bench::on(spec, geometry)
    }

    /// A bench on such a machine.
    pub fn on(spec: D::Spec, geometry: Geometry) -> Self {
        let design = Box::new(D::build(&spec, &geometry).expect("the parameters are valid"));
        let pmem = Pages::new(BASE, PMEM_BYTES);
        let (inbound, invalidated, put) = (VecDeque::new(), Vec::new(), Vec::new());
        Bench {
            spec,
            geometry,
            design,
            pmem,
            inbound,
            held: Vec::new(),
            unwritten: VecDeque::new(),
            mail: VecDeque::new(),
            raised: Vec::new(),
            dropped: Vec::new(),
            cleaned: Vec::new(),
            invalidated,
            put,
            scans: Vec::new(),
            commits: 0,
            pushed: Vec::new(),
            keep_steps: false,
            steps: Vec::new(),
        }
    }

    /// A line as the controller has it, with the writes that are in flight.
    pub fn newest(&self, line: LineAddr) -> Line {
        let mut pmem = self.pmem.clone();
        let held = self.held.iter().filter(|held| held.line == line);
        held.for_each(|held| pmem.write_masked(held.line, held.mask, &held.data));
        self.inbound
            .iter()
            .filter(|w| w.line == line && !w.reading)
            .for_each(|w| pmem.write_masked(w.line, w.mask, &w.data));
        pmem.line(line)
    }

    fn hand_over(&mut self, at: PhysAddr, bytes: &[u8], mask: u64, token: Option<Token>) {
        let mut data = [0; 64];
        data[at.offset()..at.offset() + bytes.len()].copy_from_slice(bytes);
        self.inbound.push_back(Inbound {
            line: at.line(),
            mask: mask << at.offset(),
            data,
            token,
            reading: false,
            read: None,
        });
    }

    fn keep_step(&mut self) {
        if self.keep_steps {
            self.steps.push(self.crashed(&[], true));
        }
    }

    fn carry_out(&mut self, core: u16, actions: Actions) {
        for action in actions.as_slice() {
            match *action {
                Action::Append { at, payload, token, .. } => {
                    // The machine reports everything that has arrived so far: power may fail before the write is in
                    // flight.
                    self.keep_step();
                    self.hand_over(at, payload.bytes(), payload.mask(), token);
                }
                Action::Copy(CopyRequest { from, to, len, token, below_held, .. }) => {
                    assert!(!below_held, "a bench has nothing below held entries");
                    let source = self.newest(from.line());
                    let bytes = &source[from.offset()..from.offset() + usize::from(len)];
                    let mask = if len == 64 { u64::MAX } else { (1 << len) - 1 };
                    self.hand_over(to, bytes, mask, token);
                    self.inbound.back_mut().expect("it was just pushed").reading = true;
                }
                Action::Restore { addr, payload, token } => {
                    self.hand_over(addr, payload.bytes(), payload.mask(), token);
                }
                Action::Scan { id, .. } => self.scans.push(id),
                Action::Read { at, token, .. } => {
                    let data = self.newest(at.line());
                    let (line, token) = (at.line(), Some(token));
                    self.inbound.push_back(Inbound { line, mask: 0, data, token, reading: false, read: Some(at) });
                }
                Action::Resume { id } => self.call(core, |design, cx, out| design.woken(cx, id, out)),
                Action::PushToLlc { line, token } => {
                    self.keep_step();
                    self.pushed.push(line);
                    // An empty write: it is there in its turn.
                    if token.is_some() {
                        self.hand_over(line.base(), &[], 0, token);
                    }
                }
                Action::Send { to, message, .. } => self.mail.push_back((to, message)),
                // An empty write to each controller, after the writes in flight.
                Action::Barrier { token, .. } => {
                    for controller in 0..self.geometry.controllers {
                        self.hand_over(BASE.plus(u64::from(controller) * INTERLEAVE_BYTES), &[], 0, Some(token));
                    }
                }
                Action::ReleaseHeld { group, .. } => {
                    let released = self.held.iter().position(|held| held.group == Some(group));
                    released.into_iter().for_each(|at| self.yield_held(at));
                }
                Action::DiscardHeld { controller, group } => {
                    self.held.retain(|held| (held.controller, held.group) != (controller, Some(group)));
                }
                Action::Raise(signal) => self.raised.push(signal),
                Action::Invalidate(line) => self.dropped.push(line),
                Action::CleanTo { line, .. } => self.cleaned.push(line),
                Action::InvalidateTagged(tx) => self.invalidated.push(tx),
                Action::PutCached { addr, payload } => {
                    let mut value = [0; 8];
                    value[..payload.bytes().len()].copy_from_slice(payload.bytes());
                    self.put.push((addr, u64::from_le_bytes(value)));
                    self.pmem.write(addr, payload.bytes());
                }
                Action::Event(EventKind::Commit, _) => self.commits += 1,
                Action::Event(EventKind::DesignStep, _) => self.keep_step(),
                _ => {}
            }
        }
    }

    /// Builds the design again, for a geometry that has changed.
    pub fn rebuild(&mut self) {
        self.design = Box::new(D::build(&self.spec, &self.geometry).expect("the parameters are valid"));
    }

    /// Calls a hook for a core and carries out what it asks for.
    pub fn call<T>(&mut self, core: u16, hook: impl FnOnce(&mut dyn Durability, &Ctx, &mut Actions) -> T) -> T {
        let mut out = Actions::default();
        let cx = Ctx { core: CoreId(core), thread: 0, cycle: 0, instructions: 0 };
        let answer = hook(&mut *self.design, &cx, &mut out);
        self.carry_out(core, out);
        answer
    }

    /// Delivers the oldest write, or lets a copy take its second half; else the media finish the oldest write that a design
    /// awaits there. False if there is nothing in flight.
    pub fn deliver(&mut self) -> bool {
        let Some(write) = self.inbound.pop_front() else { return self.write_out() };
        if write.reading {
            self.inbound.push_back(Inbound { reading: false, ..write });
            return true;
        }
        if let (Some(at), Some(token)) = (write.read, write.token) {
            self.call(0, |design, cx, out| design.read_done(cx, token, at, &write.data, out));
            return true;
        }
        let Inbound { line, mask, data, token, .. } = write;
        let controller = self.geometry.controller_of(line);
        match self.accept(line, token) {
            Accept::Queue { held: None } => self.pmem.write_masked(line, mask, &data),
            Accept::Queue { held: Some(group) } | Accept::QueueWhileRoom { group } => {
                self.held.push(StagedWrite { controller, group: Some(group), line, mask, data });
            }
            Accept::Refuse => panic!("no design on a bench refuses a write"),
        }
        if let Some(token) = write.token {
            if token.is_when_written() {
                self.unwritten.push_back((token, write.line.base()));
            }
            self.call(0, |design, cx, out| design.acked(cx, token.when_accepted(), write.line.base(), out));
        }
        true
    }

    /// The media finish the oldest accepted write that a design awaits there; false if there is none.
    pub fn write_out(&mut self) -> bool {
        let Some((token, at)) = self.unwritten.pop_front() else { return false };
        self.call(0, |design, cx, out| design.acked(cx, token, at, out));
        true
    }

    /// Asks about a write of a whole line that the queue of its controller has room for.
    pub fn accept(&mut self, line: LineAddr, token: Option<Token>) -> Accept {
        let controller = self.geometry.controller_of(line);
        let queue = Occupancy { entries: 64, held: self.held.len() as u32, ordinary: 0 };
        let arrival = Arrival { controller, line, mask: u64::MAX, cause: Cause::Data, token, queue };
        self.call(0, |design, cx, out| design.accept(cx, &arrival, out))
    }

    /// A held entry becomes an ordinary one, which the media has at once.
    pub fn yield_held(&mut self, at: usize) {
        let StagedWrite { line, mask, data, .. } = self.held.remove(at);
        self.pmem.write_masked(line, mask, &data);
    }

    pub fn deliver_all(&mut self) {
        while self.deliver() {}
    }

    /// Delivers the oldest message; false if there is none in flight.
    pub fn deliver_message(&mut self) -> bool {
        let Some((to, message)) = self.mail.pop_front() else { return false };
        let core = if let Node::Core(core) = to { core.0 } else { 0 };
        self.call(core, |design, cx, out| design.message(cx, to, message, out));
        true
    }

    /// Delivers what is needed until the wait is over.
    fn wait(&mut self, wait: Wait) {
        match wait {
            Wait::Acked(token) => {
                while self.outstanding(token) {
                    self.deliver();
                }
            }
            Wait::Signal(signal) => {
                while !self.raised.contains(&signal) {
                    assert!(self.deliver_message() || self.deliver(), "nothing raises {signal:?}");
                }
                self.raised.retain(|raised| *raised != signal);
            }
            Wait::Cycles(_) => self.deliver_all(),
        }
    }

    /// Offers the old content of a block to the log once.
    pub fn offer_block(&mut self, core: u16, addr: PhysAddr, old: u64, tx: Option<u64>) -> Gate {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&old.to_le_bytes());
        let block = LogBlock { addr, old: bytes, tx: tx.map(TxId) };
        self.call(core, |design, cx, out| design.log_flush(cx, &block, out))
    }

    /// Offers it ahead of stores in front of it; whether it was taken.
    pub fn offer_block_early(&mut self, core: u16, addr: PhysAddr, old: u64, tx: Option<u64>) -> bool {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&old.to_le_bytes());
        let block = LogBlock { addr, old: bytes, tx: tx.map(TxId) };
        self.call(core, |design, cx, out| design.log_flush_early(cx, &block, out))
    }

    /// Offers it to the log with all the waiting it takes.
    pub fn log_block(&mut self, core: u16, addr: PhysAddr, old: u64, tx: u64) {
        loop {
            match self.offer_block(core, addr, old, Some(tx)) {
                Gate::Done => return,
                Gate::Retry(wait) => self.wait(wait),
                gate => panic!("{gate:?}"),
            }
        }
    }

    /// Whether a write under this token is in flight.
    pub fn outstanding(&self, token: Token) -> bool {
        let in_flight = |of: Token| of == token || of.when_accepted() == token;
        self.inbound.iter().any(|write| write.token.is_some_and(in_flight))
            || self.unwritten.iter().any(|(of, _)| *of == token)
    }

    /// Calls a hook until it lets the request through, delivering what it waits for. An abort is the answer.
    pub fn through(
        &mut self,
        core: u16,
        mut hook: impl FnMut(&mut dyn Durability, &Ctx, &mut Actions) -> Gate,
    ) -> Option<(TxId, AbortCause)> {
        loop {
            match self.call(core, &mut hook) {
                Gate::Retry(wait) => self.wait(wait),
                Gate::Abort(tx, why) => return Some((tx, why)),
                Gate::Done | Gate::After(_) => return None,
            }
        }
    }

    pub fn begin(&mut self, core: u16, tx: u64) {
        let aborted = self.through(core, |design, cx, out| design.tx_begin(cx, TxId(tx), out));
        assert_eq!(aborted, None);
    }

    pub fn commit(&mut self, core: u16, tx: u64) {
        let aborted = self.through(core, |design, cx, out| design.tx_commit(cx, TxId(tx), out));
        assert_eq!(aborted, None);
    }

    pub fn abort(&mut self, core: u16, tx: u64) {
        self.through(core, |design, cx, out| design.tx_abort(cx, TxId(tx), AbortCause::Requested(1), out));
    }

    /// Offers a store of eight bytes once; the tag of the line changes only if the store is taken.
    pub fn offer(&mut self, core: u16, addr: PhysAddr, data: u64, tx: Option<u64>, tag: &mut LineTag) -> Gate {
        let store = Store { addr, len: 8, data, tx: tx.map(TxId), before: &[0; 64], dirty: false };
        let mut changed = *tag;
        let gate = self.call(core, |design, cx, out| design.store(cx, &store, &mut changed, out));
        if matches!(gate, Gate::Done | Gate::After(_)) {
            *tag = changed;
        }
        gate
    }

    /// A store of eight bytes, with all the waiting it takes.
    pub fn store(&mut self, core: u16, addr: PhysAddr, data: u64, tx: Option<u64>, tag: &mut LineTag) {
        loop {
            match self.offer(core, addr, data, tx, tag) {
                Gate::Retry(wait) => self.wait(wait),
                Gate::Done => return,
                gate => panic!("{gate:?}"),
            }
        }
    }

    /// Another core or the LLC is asked for a line.
    pub fn probe(&mut self, core: u16, number: u64, tag: LineTag, tx: Option<u64>, holder: Option<u16>) -> Probe {
        let holder = holder.map(CoreId);
        let request = Request { line: line(number), tag, tx: tx.map(TxId), write: true, holder };
        self.call(core, |design, cx, out| design.probe(cx, &request, out))
    }

    pub fn fill(&mut self, core: u16, number: u64, tx: Option<u64>) -> Fill {
        self.call(core, |design, cx, out| design.fill(cx, line(number), tx.map(TxId), out))
    }

    /// A line leaves the LLC and is written where the design wants it. Like the machine, asks again at once where the
    /// design waits for no more than the writes of its answer.
    pub fn evict(&mut self, number: u64, tag: LineTag, data: u64) -> Evict {
        loop {
            let verdict = self.offer_line(number, tag, data);
            if verdict != Evict::After(Wait::Cycles(0)) {
                return verdict;
            }
        }
    }

    /// Asks once where a line that leaves the LLC goes.
    pub fn offer_line(&mut self, number: u64, tag: LineTag, data: u64) -> Evict {
        let mut bytes = [0; 64];
        bytes[..8].copy_from_slice(&data.to_le_bytes());
        let verdict = self.call(0, |design, cx, out| design.evict(cx, LevelId::Llc, line(number), tag, &bytes, out));
        match verdict {
            Evict::To { at, token, .. } => self.hand_over(at, &bytes, u64::MAX, token),
            Evict::Proceed => self.hand_over(line(number).base(), &bytes, u64::MAX, None),
            _ => {}
        }
        verdict
    }

    pub fn switch(&mut self, core: u16, leaving: Option<u64>, coming: Option<u64>) {
        let (leaving, coming) = (leaving.map(TxId), coming.map(TxId));
        assert_eq!(self.call(core, |design, cx, out| design.context_switch(cx, leaving, coming, out)), Gate::Done);
    }

    /// The image of a power failure at this moment. Writes that are in flight survive if `queue` says so.
    pub fn crashed(&self, lines: &[CachedLine], queue: bool) -> CrashImage {
        let mut pmem = self.pmem.clone();
        if queue {
            let accepted = self.inbound.iter().filter(|w| !w.reading);
            accepted.for_each(|w| pmem.write_masked(w.line, w.mask, &w.data));
        }
        let mut image = CrashImage::new(pmem);
        let view = CrashView { domain: Domain::Eadr, geometry: &self.geometry, lines, staged: &self.held };
        self.design.crash(&view, &mut CrashSink::new(&mut image, u64::MAX)).expect("there is energy enough");
        image
    }

    /// The image of a power failure after recovery.
    pub fn recovered(&self, lines: &[CachedLine], queue: bool) -> Pages {
        let mut image = self.crashed(lines, queue);
        let mut cut = image.clone();
        D::recover(&self.spec, &self.geometry, &mut image).expect("nothing cuts it");
        // Interrupted in the middle and run again, recovery leads to the same image.
        cut.cut_at(Some(image.writes() / 2 + 1));
        let _ = D::recover(&self.spec, &self.geometry, &mut cut);
        cut.cut_at(None);
        D::recover(&self.spec, &self.geometry, &mut cut).expect("nothing cuts it");
        let digest = |pages: &Pages| {
            let mut digest = Digest::default();
            pages.digest(&mut digest);
            digest.hex()
        };
        assert_eq!(digest(&cut.pmem), digest(&image.pmem), "recovery depends on where it was cut");
        image.pmem
    }

    pub fn state_digest(&self) -> String {
        let mut digest = Digest::default();
        self.design.digest(&mut digest);
        digest.hex()
    }

    pub fn counter(&self, name: &str) -> f64 {
        let mut stats = Stats::default();
        self.design.stats(&mut stats);
        stats.get(name).unwrap_or_else(|| panic!("{name} is not counted"))
    }

    /// Saves the design, continues with what is loaded, and holds both to be the same.
    pub fn save_and_load(&mut self) {
        let bytes = self.design.save();
        let before = self.state_digest();
        self.design = D::load(&self.spec, &self.geometry, &bytes).expect("it was just saved");
        assert_eq!(self.design.save(), bytes);
        assert_eq!(self.state_digest(), before);
    }

    /// A snapshot that is truncated, too long or of another machine is refused.
    pub fn refuses_other_snapshots(&self) {
        let bytes = self.design.save();
        let load = |geometry: &Geometry, bytes: &[u8]| D::load(&self.spec, geometry, bytes).map(drop);
        for cut in [0, 1, bytes.len() / 2, bytes.len() - 1] {
            assert!(load(&self.geometry, &bytes[..cut]).is_err(), "cut to {cut} of {} bytes", bytes.len());
        }
        let longer = load(&self.geometry, &[&bytes[..], &[0]].concat()).unwrap_err();
        assert_eq!(longer, snapshot::refuse("1 bytes follow it"));
    }
}

/// A dirty line in the L1D of a core, for a power failure.
pub(crate) fn cached(core: u16, number: u64, tag: LineTag, data: u64) -> CachedLine {
    let mut bytes = [0; 64];
    bytes[..8].copy_from_slice(&data.to_le_bytes());
    CachedLine { level: LevelId::L1d, core: Some(CoreId(core)), line: line(number), tag, dirty: true, data: bytes }
}
