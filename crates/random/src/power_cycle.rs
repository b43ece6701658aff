//! One power cycle of a machine, from its start to the power failure: whose turn it is, how requests end, and what becomes of aborts.

use crate::REGION_BYTES;
use crate::judge::{Shared, Watcher};
use crate::model::{DRAM_REGION, Locks, Memory, OpenTx, Place, Port, Request, Thread, is_capacity};
use crate::settings::Setting;
use crate::tally::{Effort, Tally};
use crate::trace::Trace;
use durasim_contract::{Hooks, Locking, Promise, Trap};
use durasim_core::{Outcome, PendingStore};
use durasim_crash::ByteOracle;
use durasim_machine::{MachineConfig, PMEM_BASE, Plan, System};
use durasim_memory::MediaConfig;
use durasim_test_plans::test_plan;
use durasim_types::{CoreId, Cycle, DataRange, Pages, Rng, StoreKind, TxId};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Steps of the memory system without a request of a port, and repeated requests after the last operation, at most:
/// what takes more does not end.
const STEPS_MAX: u64 = 200_000;

/// Tasks of the memory system before its list is empty, at most.
const TASKS_MAX: u64 = 2_000_000;

/// A machine in one power cycle, with the model that it is compared with.
pub struct PowerCycle {
    pub system: System,
    /// Of DRAM and persistent memory.
    media: [MediaConfig; 2],
    pub shared: Arc<Mutex<Shared>>,
    pub rng: Rng,
    pub memory: Memory,
    pub ports: Vec<Port>,
    pub threads: Vec<Thread>,
    pub locks: Locks,
    pub locking: Locking,
    /// Lines of persistent memory and DRAM in use.
    pub pmem_lines: Vec<u64>,
    pub dram_lines: Vec<u64>,
    pub tx_ops_max: u64,
    pub transactions: bool,
    pub aborts: bool,
    /// Whether stores are made that persist: no design has to know of them, and they have to leave the caches for it.
    pub persists: bool,
    /// Whether the hardware keeps transactions from each other.
    pub isolated: bool,
    /// Whether transactions are those of the hardware, which programs begin and end by instructions.
    pub hardware: bool,
    /// Turns, in percent, that go to any port instead of the one with the smallest time.
    disorder_percent: u64,
    switch_percent: u64,
    /// Steps of the memory system since a port has made a request.
    steps: u64,
    aimed_percent: u64,
    /// Draws what is aimed, so that a run without aim draws the same otherwise.
    aim: Rng,
    pub tally: Tally,
    pub trace: Trace,
}

pub fn core(port: usize) -> CoreId {
    CoreId(port as u16)
}

fn persistent(place: Place, data: u64, tx: Option<TxId>, kind: StoreKind) -> PendingStore {
    PendingStore { kind, ..PendingStore::plain(place.addr(), place.len as u8, data, tx) }
}

/// An error if the caller wants the run to end.
fn ends_if(stop: &AtomicBool) -> Result<(), String> {
    if stop.load(Ordering::Relaxed) { Err("the caller has ended the run".to_owned()) } else { Ok(()) }
}

/// Lines of persistent memory and of DRAM: lines side by side, or lines that share a set of every cache, or both.
fn lines_in_use(rng: &mut Rng) -> (Vec<u64>, Vec<u64>) {
    let lines = REGION_BYTES / 64;
    let strided = rng.below(3);
    let pick = |rng: &mut Rng, n: u64| -> Vec<u64> {
        (0..n)
            .map(|_| match strided {
                0 => rng.below(n.min(lines)),
                1 => rng.below(lines / 8) * 8,
                _ => rng.below(lines / 4) * 4 + rng.below(2),
            })
            .collect()
    };
    let (pmem_count, dram_count) = (1 + rng.below(48), 1 + rng.below(12));
    (pick(rng, pmem_count), pick(rng, dram_count))
}

impl PowerCycle {
    pub fn new(
        config: &MachineConfig,
        plan: &Plan,
        setting: &Setting,
        pages: Pages,
        seed: u64,
        effort: Effort,
        trace: &Trace,
    ) -> Result<Self, String> {
        let mut rng = Rng::new(seed);
        let mut system = System::new(config, plan).map_err(|e| e.to_string())?;
        system.load_pmem(&pages);
        system.limit_tasks(TASKS_MAX);
        if seed.is_multiple_of(4) {
            system.start_traces();
        }
        let mut pmem = vec![0; REGION_BYTES as usize];
        pages.read(PMEM_BASE, &mut pmem);
        let oracle = setting.crashes.then(|| match setting.variant.promise {
            Promise::Immediate => ByteOracle::new(pages),
            Promise::Epoch(further) => ByteOracle::of_epochs(pages, further),
        });
        let shared = Shared::new(plan, oracle, effort, trace.clone(), rng.next_u64());
        let shared = Arc::new(Mutex::new(shared));
        system.keep_journal(Box::new(Watcher(shared.clone())));
        system.observe(Box::new(Watcher(shared.clone())));
        if setting.variant.hardware.hooks == Hooks::NONE {
            system.track_unfenced_cleans();
        }
        system.declare_data(DataRange { base: PMEM_BASE, size_bytes: REGION_BYTES });
        let (pmem_lines, dram_lines) = lines_in_use(&mut rng);
        let cores = usize::from(config.hardware_threads());
        let threads = cores + if cores > 1 || rng.below(4) == 0 { rng.below(4) as usize } else { 0 };
        let ports = (0..cores).map(|i| Port { thread: Some(i), ..Port::default() }).collect();
        (0..cores).for_each(|i| system.assign_thread(core(i), i as u32));
        Ok(PowerCycle {
            system,
            media: [config.dram.media.clone(), config.pmem.media.clone()],
            shared,
            memory: Memory::new(pmem),
            ports,
            threads: (0..threads).map(|_| Thread::default()).collect(),
            locks: Locks::default(),
            locking: setting.locking,
            pmem_lines,
            dram_lines,
            tx_ops_max: 1 + rng.below(60),
            transactions: setting.transactions,
            aborts: setting.aborts,
            persists: setting.variant.hardware.hooks == Hooks::NONE && !plan.domain.stores_are_durable(),
            isolated: setting.variant.hardware.hooks.has(Hooks::PROBE)
                && !test_plan(setting.variant.name).random.probes_isolate_nothing,
            hardware: setting.variant.hardware.hooks.has(Hooks::HARDWARE_TX),
            disorder_percent: [0, 0, 5, 100][rng.below(4) as usize],
            switch_percent: if cores > 1 || threads > 1 { [0, 1, 5, 15][rng.below(4) as usize] } else { 0 },
            steps: 0,
            aimed_percent: setting.aimed_percent,
            aim: Rng::new(seed ^ 0x00a1_3ed0),
            tally: Tally::default(),
            trace: trace.clone(),
            rng,
        })
    }

    /// Makes this many operations, reads all of memory and checks it; with `stop` it ends before the next operation.
    pub fn run(&mut self, ops: u64, stop: &AtomicBool) -> Result<(), String> {
        while self.tally.ops < ops {
            ends_if(stop)?;
            if let Some(port) = self.turn()? {
                self.tally.ops += 1;
                self.act(port)?;
                if self.tally.ops.is_multiple_of(64) {
                    self.system.check_all_lines()?;
                }
            }
        }
        self.read_everything(stop)?;
        self.system.check_all_lines()?;
        self.check_traces()
    }

    /// The commands to the media have kept all times, if they were traced.
    fn check_traces(&mut self) -> Result<(), String> {
        let traces = self.system.take_traces();
        for (media, trace) in self.media.iter().zip(traces) {
            self.tally.commands += trace.len() as u64;
            if let Some(violation) = durasim_memory::checker::violations(media, &trace).first() {
                return Err(format!("a command breaks a rule: {violation:?}"));
            }
        }
        Ok(())
    }

    pub fn finish(&mut self, tally: &mut Tally) {
        self.tally.findings = self.shared.lock().expect("no holder panics with it").findings.clone();
        self.tally.stats = self.system.stats();
        tally.add(&self.tally);
    }

    /// All of memory, as programs on any port would read it.
    fn read_everything(&mut self, stop: &AtomicBool) -> Result<(), String> {
        let mut line = 0;
        let mut busy = 0;
        while line < REGION_BYTES / 64 {
            ends_if(stop)?;
            let Some(port) = self.turn()? else { continue };
            if self.is_busy(port) {
                busy += 1;
                if busy > STEPS_MAX {
                    return Err(format!("port {port} makes the same request without end"));
                }
                self.act(port)?;
                continue;
            }
            for word in 0..8 {
                for base in [PMEM_BASE, DRAM_REGION] {
                    if !self.is_busy(port) {
                        self.load(port, Place { base, offset: line * 64 + word * 8, len: 8 })?;
                    }
                }
            }
            line += 1;
            self.check_health()?;
        }
        Ok(())
    }

    pub fn check_health(&self) -> Result<(), String> {
        if let Some(what) = &self.shared.lock().expect("no holder panics with it").failure {
            return Err(what.clone());
        }
        if let Some(error) = self.system.error() {
            return Err(error.to_string());
        }
        if self.system.halted() { Err("the machine halted".into()) } else { Ok(()) }
    }

    /// Whether the thread at a port has something to finish before its next operation.
    fn is_busy(&self, port: usize) -> bool {
        let thread = self.thread(port);
        thread.pending.is_some() || thread.tx.as_ref().is_some_and(|tx| tx.aborted)
    }

    pub fn thread(&self, port: usize) -> &Thread {
        &self.threads[self.ports[port].thread.expect("a thread has the port")]
    }

    pub fn thread_mut(&mut self, port: usize) -> &mut Thread {
        &mut self.threads[self.ports[port].thread.expect("a thread has the port")]
    }

    /// The transaction in whose name a port makes requests; the machine knows itself which core is in one of the hardware.
    pub fn tx(&self, port: usize) -> Option<TxId> {
        self.thread(port).tx.as_ref().map(|tx| tx.id).filter(|_| !self.hardware)
    }

    /// The port that acts next; `None` if it was the memory system.
    fn turn(&mut self) -> Result<Option<usize>, String> {
        let port = self.next_port()?;
        self.steps = if port.is_some() { 0 } else { self.steps + 1 };
        if self.steps > STEPS_MAX {
            return Err(format!("the memory system has made {STEPS_MAX} steps, and no port can continue"));
        }
        Ok(port)
    }

    fn next_port(&mut self) -> Result<Option<usize>, String> {
        let when = |port: usize| {
            let thread = &self.threads[self.ports[port].thread?];
            let resumes = if thread.pending.is_some() { self.system.resumes_at(core(port))? } else { 0 };
            Some((resumes.max(self.ports[port].now), port))
        };
        let ready: Vec<(Cycle, usize)> = (0..self.ports.len()).filter_map(when).collect();
        let Some(&first) = ready.iter().min() else {
            return self.check_for_deadlock().map(|()| None);
        };
        let disorder = self.rng.below(100) < self.disorder_percent;
        let (at, port) = if disorder { ready[self.rng.below(ready.len() as u64) as usize] } else { first };
        if !disorder && self.system.has_waiters() && self.system.due() <= at {
            self.system.step_once(Cycle::MAX);
            self.check_health()?;
            self.after_request(None)?;
            return Ok(None);
        }
        self.ports[port].now = at;
        Ok(Some(port))
    }

    /// All wait: for the memory system, or for a thread to take a port.
    fn check_for_deadlock(&mut self) -> Result<(), String> {
        let waiting = (0..self.ports.len()).filter(|&port| self.ports[port].thread.is_some());
        let waiting: Vec<usize> = waiting.collect();
        if waiting.is_empty() {
            self.seat(0);
            return Ok(());
        }
        if self.rng.below(2) == 0 {
            let port = waiting[self.rng.below(waiting.len() as u64) as usize];
            self.system.wait_alone(core(port));
        } else if self.system.step_once(Cycle::MAX).is_none() {
            return Err(format!("ports {waiting:?} wait, and nothing will happen"));
        }
        self.check_health()?;
        self.after_request(None)
    }

    fn act(&mut self, port: usize) -> Result<(), String> {
        for other in (0..self.ports.len()).filter(|other| *other != port) {
            if let Some(reserved) = &mut self.ports[other].reserved {
                reserved.undisturbed = false;
            }
        }
        if self.process_abort(port)? {
            return Ok(());
        }
        if let Some(request) = self.thread_mut(port).pending.take() {
            self.request(port, request)?;
        } else if self.rng.below(100) < self.switch_percent || self.is_aimed_switch() {
            self.switch(port)?;
        } else {
            self.step(port)?;
        }
        self.check_health()?;
        let passed = match self.rng.below(40) {
            0 => self.rng.below(20_000),
            1..=5 => self.rng.below(400),
            _ => self.rng.below(4),
        };
        self.ports[port].now += passed;
        self.aim(port);
        let instructions = self.rng.below(12);
        self.system.retired(core(port), instructions, self.ports[port].now);
        self.after_request(None)
    }

    /// At times a port pauses up to a few cycles before or after the next event of the memory system: between a write and its
    /// acceptance, between that and its acknowledgement, between two steps of a design.
    fn aim(&mut self, port: usize) {
        if self.aimed_percent == 0 || self.aim.below(100) >= self.aimed_percent {
            return;
        }
        let (due, now) = (self.system.due(), self.ports[port].now);
        if due != Cycle::MAX && due >= now {
            self.ports[port].now = now.max((due + self.aim.below(5)).saturating_sub(2));
            self.tally.aimed += 1;
        }
    }

    /// Whether a thread leaves now because writes are in flight.
    fn is_aimed_switch(&mut self) -> bool {
        let is_tried = self.switch_percent > 0 && self.aimed_percent > 0 && self.aim.below(10) == 0;
        is_tried && self.has_writes_in_flight()
    }

    /// Whether a write to persistent memory is in flight, be it a write of the design's own.
    fn has_writes_in_flight(&self) -> bool {
        let mut found = false;
        self.system.marks(&mut |mark| found |= mark.ends_with("in_flight"));
        found
    }

    /// The thread at a port processes an abort, if there was one.
    pub fn process_abort(&mut self, port: usize) -> Result<bool, String> {
        let Some(tx) = &self.thread(port).tx else { return Ok(false) };
        let (id, aborted) = (tx.id, tx.aborted);
        match self.system.take_abort(core(port)) {
            None if aborted => Err(format!("port {port} is not notified of the abort of transaction {}", id.0)),
            None => Ok(false),
            Some((cycle, code)) => self.abort_noticed(port, cycle, code).map(|()| true),
        }
    }

    pub fn abort_noticed(&mut self, port: usize, cycle: Cycle, code: u64) -> Result<(), String> {
        let index = self.ports[port].thread.expect("a thread has the port");
        if self.hardware {
            // The request that aborts it may be its own, and the reservation goes with what it has loaded.
            self.roll_back(index);
            self.system.take_reservation(core(port));
            self.ports[port].reserved = None;
        }
        let Some(tx) = self.threads[index].tx.take() else {
            return Err(format!("port {port} has no transaction that could abort"));
        };
        if !tx.aborted {
            return Err(format!("the journal does not know of the abort of transaction {}", tx.id.0));
        }
        self.threads[index].pending = None;
        self.locks.release(&mut self.threads[index].locks);
        self.ports[port].now = self.ports[port].now.max(cycle);
        self.tally.aborted += 1;
        let by_hardware = if self.hardware { is_capacity(code) } else { code >= 0x100 };
        self.tally.aborted_by_hardware += u64::from(by_hardware);
        Ok(())
    }

    /// Follows what a request, or the memory system by itself, has done to transactions: their bytes are rolled back.
    pub fn after_request(&mut self, by: Option<usize>) -> Result<(), String> {
        let aborted = std::mem::take(&mut self.shared.lock().expect("no holder panics with it").aborted);
        for id in aborted {
            let of = |thread: &Thread| thread.tx.as_ref().is_some_and(|tx| tx.id == id);
            let Some(index) = self.threads.iter().position(of) else {
                return Err(format!("transaction {} aborted, which is not open", id.0));
            };
            if !self.roll_back(index) {
                return Err(format!("transaction {} aborted twice", id.0));
            }
            let others = by.is_some_and(|port| self.ports[port].thread != Some(index));
            self.tally.aborted_by_others += u64::from(others);
        }
        if self.hardware {
            self.roll_back_hardware(by);
        }
        Ok(())
    }

    /// Removes the stores of the transaction of a thread; false if they have been removed before.
    pub fn roll_back(&mut self, thread: usize) -> bool {
        let Some(tx) = &mut self.threads[thread].tx else { return false };
        for (place, before) in tx.undo.drain(..).rev() {
            self.memory.write(place, &before);
        }
        !std::mem::replace(&mut tx.aborted, true)
    }

    /// Makes a request that can be pending.
    pub fn request(&mut self, port: usize, request: Request) -> Result<(), String> {
        let at = self.ports[port].now;
        let tx = self.tx(port);
        let id = core(port);
        let place = match request {
            Request::Store(place, _) | Request::Persist(place, ..) => Some(place),
            _ => None,
        };
        self.expect_store(port, place);
        let outcome = match request {
            Request::Store(place, data) => {
                let store = PendingStore::plain(place.addr(), place.len as u8, data, tx);
                self.system.store(id, &store, at)
            }
            Request::Persist(place, data, kind) => self.system.store(id, &persistent(place, data, tx, kind), at),
            Request::Persisting(place, data) => {
                self.system.store(id, &persistent(place, data, tx, StoreKind::CleanAndFence), at)
            }
            Request::Begin(tx) => self.system.tx_begin(id, tx, at),
            Request::Commit(tx) => self.system.tx_commit(id, tx, at),
            Request::Fence(orders_writes) => self.system.fence(id, orders_writes, at),
            Request::HardwareBegin => self.system.htm_begin(id, at),
            Request::HardwareEnd => self.system.htm_end(id, at),
        };
        self.trace.note(|| format!("{at} port {port}: {tx:?} {request:x?} {outcome:?}"));
        self.after_request(Some(port))?;
        match outcome {
            Outcome::Pending => {
                self.tally.pending += u64::from(self.thread(port).pending.is_none());
                let mut request = request;
                if let Request::Persist(place, data, _) = request {
                    self.sent(port, place, data)?;
                    request = Request::Persisting(place, data);
                }
                self.thread_mut(port).pending = Some(request);
                return Ok(());
            }
            Outcome::Done(cycle) => {
                self.ports[port].now = at.max(cycle);
                if !self.system.halted() {
                    self.request_done(port, request)?;
                }
            }
            Outcome::Aborted(cycle, code) => {
                if let Request::Store(place, data) = request {
                    self.store_aborted(port, place, &data.to_le_bytes()[..place.len as usize])?;
                }
                self.abort_noticed(port, cycle, code)?;
            }
        }
        self.release_if_plain(port);
        Ok(())
    }

    fn request_done(&mut self, port: usize, request: Request) -> Result<(), String> {
        match request {
            Request::Store(place, data) => self.stored(port, place, &data.to_le_bytes()[..place.len as usize])?,
            Request::Persist(place, data, kind) => {
                self.sent(port, place, data)?;
                if kind == StoreKind::CleanAndFence {
                    self.fenced(port)?;
                }
            }
            Request::Persisting(..) => self.fenced(port)?,
            Request::Begin(_) => {}
            Request::Commit(tx) => {
                let index = self.ports[port].thread.expect("a thread has the port");
                if self.threads[index].tx.take().is_some_and(|tx| tx.aborted) {
                    return Err(format!("transaction {} is acknowledged after its abort", tx.0));
                }
                self.locks.release(&mut self.threads[index].locks);
                self.tally.committed += 1;
            }
            Request::HardwareBegin => self.hardware_begun(port),
            Request::HardwareEnd => self.hardware_ended(port)?,
            Request::Fence(false) => {}
            Request::Fence(true) => self.fenced(port)?,
        }
        Ok(())
    }

    /// A store that persists has been made and sent: the next fence covers it.
    fn sent(&mut self, port: usize, place: Place, data: u64) -> Result<(), String> {
        if self.system.halted() {
            return Ok(());
        }
        self.stored(port, place, &data.to_le_bytes()[..place.len as usize])?;
        let last = self.shared.lock().expect("no holder panics with it").last_store();
        self.thread_mut(port).cleans.push((place.line(), last, true));
        Ok(())
    }

    /// A fence of a port has waited for what its thread has cleaned.
    fn fenced(&mut self, port: usize) -> Result<(), String> {
        let cleans = std::mem::take(&mut self.thread_mut(port).cleans);
        let mut shared = self.shared.lock().expect("no holder panics with it");
        for (line, last, is_promised) in cleans {
            if shared.made_durable(line.base(), 64, last) && is_promised {
                return Err(format!("the journal does not know that the fence of port {port} covers {line}"));
            }
        }
        Ok(())
    }

    /// Outside of transactions a lock is held for one store.
    pub fn release_if_plain(&mut self, port: usize) {
        let index = self.ports[port].thread.expect("a thread has the port");
        if self.threads[index].tx.is_none() && self.threads[index].pending.is_none() {
            self.locks.release(&mut self.threads[index].locks);
        }
    }

    /// The thread at a port leaves it, and another one that waits may come.
    fn switch(&mut self, port: usize) -> Result<(), String> {
        self.tally.switches[0] += 1;
        if self.aimed_percent > 0 {
            self.tally.switches_amid_writes += u64::from(self.has_writes_in_flight());
        }
        self.tally.switches[1] += u64::from(self.thread(port).tx.is_some());
        self.trap(port, Trap::Interrupt)?;
        let thread = self.ports[port].thread.take().expect("a thread has the port");
        let id = core(port);
        let leaving = self.threads[thread].tx.as_ref().map(|tx| tx.id);
        self.system.take_reservation(id);
        self.ports[port].reserved = None;
        self.trace.note(|| format!("{} port {port}: thread {thread} leaves {leaving:?}", self.ports[port].now));
        let at = self.system.context_switch(id, leaving, None, self.ports[port].now);
        self.ports[port].now = at;
        self.after_request(Some(port))?;
        let free: Vec<usize> = (0..self.ports.len()).filter(|&port| self.ports[port].thread.is_none()).collect();
        for port in free {
            if self.rng.below(3) > 0 {
                self.seat(port);
                self.after_request(Some(port))?;
            }
        }
        Ok(())
    }

    /// A thread that waits takes a free port.
    fn seat(&mut self, port: usize) {
        let seated = |thread: &usize| self.ports.iter().any(|port| port.thread == Some(*thread));
        let waiting: Vec<usize> = (0..self.threads.len()).filter(|thread| !seated(thread)).collect();
        if waiting.is_empty() {
            return;
        }
        let thread = waiting[self.rng.below(waiting.len() as u64) as usize];
        self.ports[port].thread = Some(thread);
        self.system.assign_thread(core(port), thread as u32);
        let coming = self.threads[thread].tx.as_ref().map(|tx| tx.id);
        let latest = self.ports.iter().map(|port| port.now).max().unwrap_or(0);
        let at = self.system.context_switch(core(port), None, coming, latest);
        self.ports[port].now = at;
    }

    pub fn begin(&mut self, port: usize) -> Result<(), String> {
        if self.hardware {
            return self.begin_hardware(port);
        }
        let id = self.system.new_tx();
        let left = 1 + self.rng.below(self.tx_ops_max);
        self.thread_mut(port).tx = Some(OpenTx::new(id, left));
        self.request(port, Request::Begin(id))
    }
}
