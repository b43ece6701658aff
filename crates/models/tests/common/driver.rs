//! Short random runs of the memory system without cores: threads with transactions on machines so small that lines
//! leave the caches all the time.

use super::log::{Observed, Shared, line};
use super::recorder::{Planted, observed_variant};
use durasim_core::{Outcome, PendingStore};
use durasim_isa::CacheBlockOp;
use durasim_machine::{MachineConfig, PMEM_BASE, Plan, System, presets};
use durasim_types::{CoreId, Cycle, Domain, Pages, Rng, TxId};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A finished run.
pub struct Run {
    pub observed: Vec<Observed>,
    /// The parameters of the design.
    pub plan: Plan,
    pub threads: u8,
    /// The error tells where the machine got stuck, or that it panicked. What was observed until then is there.
    pub ending: Result<(), String>,
}

#[derive(Clone, Copy)]
enum Request {
    Store(u8, u64),
    Begin(TxId),
    Commit(TxId),
}

#[derive(Default)]
struct Thread {
    tx: Option<TxId>,
    pending: Option<Request>,
}

struct Port {
    thread: Option<usize>,
    now: Cycle,
}

struct Driver {
    system: System,
    rng: Rng,
    threads: Vec<Thread>,
    ports: Vec<Port>,
    lines: Vec<u8>,
    stamps: u64,
    switch_percent: u64,
    /// Requests, in percent, that are made at once instead of in the order of time.
    disorder_percent: u64,
}

fn core(port: usize) -> CoreId {
    CoreId(port as u16)
}

fn overrides(rng: &mut Rng, cores: u16) -> Vec<String> {
    let mut sets = vec![
        format!("cores={cores}"),
        "design.hercules.tx_id_bits=4".to_owned(),
        // The model's log is neither extended nor collected: with a chunk as large as that, a full one waits.
        "design.hercules.log_extension_bytes=0".to_owned(),
        "design.hercules.log_gc_chunk_entries=1048576".to_owned(),
        format!("design.hercules.ewpq_entries={}", 1 + rng.below(3)),
        format!("design.hercules.ewpq_extension_factor={}", 1 + rng.below(5)),
        // The model has one log.
        "design.hercules.log_extension_bytes=0".to_owned(),
        format!("design.hercules.extension_block_entries={}", 1 + rng.below(3)),
        format!("design.hercules.extension_lookup=\"{}\"", ["by_address", "scan"][rng.below(2) as usize]),
        format!("design.hercules.ewpq_home_bits={}", [1, 2, 21][rng.below(3) as usize]),
        format!("design.hercules.extension_chain_bytes={}", [0, 65536][rng.below(2) as usize]),
        format!("design.hercules.migration_period_instructions={}", [1, 20, 200][rng.below(3) as usize]),
        format!("design.hercules.conflict_loser=\"{}\"", ["owner", "requester"][rng.below(2) as usize]),
        format!("interconnect.inclusion=\"{}\"", ["inclusive", "non-inclusive"][rng.below(2) as usize]),
        format!("interconnect.write_back_buffers={}", 1 + rng.below(3)),
        format!("pmem.controller.write_queue_entries={}", 1 + rng.below(4)),
        format!("pmem.controller.coalesce_writes={}", rng.below(2) == 0),
        format!("l1d.size_bytes={}", [256, 512][rng.below(2) as usize]),
        format!("l2.size_bytes={}", [256, 512][rng.below(2) as usize]),
        format!("llc.size_bytes={}", [512, 1024][rng.below(2) as usize]),
    ];
    if rng.below(3) == 0 {
        sets.push("design.hercules.tx_len_store=\"controller\"".to_owned());
    }
    sets
}

/// A machine whose log zone is as small as the design accepts, and so many entries larger.
fn smallest_log(
    sets: &[String],
    shared: &Shared,
    planted: Option<Planted>,
    spare_entries: u64,
) -> Result<(Plan, System), String> {
    let text = presets::text("tiny").expect("tiny is a preset");
    let build = |bytes: u64| {
        let set = format!("design.hercules.log_zone_bytes={bytes}");
        let sets: Vec<String> = sets.iter().cloned().chain([set]).collect();
        let config = MachineConfig::parse("tiny", text, &sets)?;
        let variant = observed_variant(shared, planted);
        let plan = Plan::new(&config, &variant, Domain::Eadr)?;
        System::new(&config, &plan).map(|system| (plan, system))
    };
    let refused = |bytes: &u64| build(*bytes).is_err();
    let smallest = (2000..200_000).step_by(500).find(|bytes| !refused(bytes)).ok_or("no log zone is large enough")?;
    build(smallest + 80 * spare_entries).map_err(|e| e.to_string())
}

/// A run of so many operations. The error says what the machine refused.
pub fn run(seed: u64, cores: u16, operations: u64, planted: Option<Planted>) -> Result<Run, String> {
    let mut rng = Rng::new(seed);
    let sets = overrides(&mut rng, cores);
    let shared = Shared::new(rng.next_u64(), 10);
    let spare_entries = [0, 10, 100][rng.below(3) as usize];
    let (plan, mut system) = smallest_log(&sets, &shared, planted, spare_entries)?;
    system.load_pmem(&Pages::new(PMEM_BASE, plan.geometry.pmem_data_bytes));
    let observer = shared.with_plan(&plan);
    system.observe(Box::new(observer.clone()));
    system.keep_journal(Box::new(observer.clone()));
    // Few lines that are often in each other's way, or many.
    let count = 2 + rng.below(u64::from(super::log::LINES) - 2) as u8;
    let stride = 1 + rng.below(4) as u8;
    let lines = (0..count).map(|n| n * stride % super::log::LINES).collect();
    let threads = usize::from(cores) + rng.below(2) as usize;
    let mut driver = Driver {
        system,
        threads: (0..threads).map(|_| Thread::default()).collect(),
        ports: (0..usize::from(cores)).map(|port| Port { thread: Some(port), now: 0 }).collect(),
        lines,
        stamps: 0,
        switch_percent: [0, 2, 8][rng.below(3) as usize],
        disorder_percent: [0, 5, 50][rng.below(3) as usize],
        rng,
    };
    let ending = catch_unwind(AssertUnwindSafe(|| {
        driver.go(operations)?;
        observer.crash(&driver.system);
        Ok(())
    }));
    let ending = ending.unwrap_or_else(|_| Err("the machine panicked".to_owned()));
    let observed = observer.with(|log| std::mem::take(&mut log.observed));
    Ok(Run { observed, plan, threads: threads as u8, ending })
}

impl Driver {
    fn go(&mut self, operations: u64) -> Result<(), String> {
        let mut done = 0;
        let mut turns = 0u64;
        while done < operations {
            turns += 1;
            if turns > 1000 * operations {
                return Err("the machine makes no progress".into());
            }
            if let Some(port) = self.turn()? {
                done += 1;
                self.act(port);
            }
            if let Some(error) = self.system.error() {
                return Err(error.to_string());
            }
        }
        Ok(())
    }

    fn thread(&mut self, port: usize) -> &mut Thread {
        &mut self.threads[self.ports[port].thread.expect("a thread has the port")]
    }

    /// The port that acts next; `None` if it was the memory system's turn.
    fn turn(&mut self) -> Result<Option<usize>, String> {
        let when = |port: usize| {
            let thread = &self.threads[self.ports[port].thread?];
            let resumes = if thread.pending.is_some() { self.system.resumes_at(core(port))? } else { 0 };
            Some((resumes.max(self.ports[port].now), port))
        };
        let ready: Vec<(Cycle, usize)> = (0..self.ports.len()).filter_map(when).collect();
        let Some(&first) = ready.iter().min() else {
            if self.ports.iter().all(|port| port.thread.is_none()) {
                self.seat(0);
            } else if self.system.step_once(Cycle::MAX).is_none() {
                return Err("all wait, and nothing will happen".into());
            }
            return Ok(None);
        };
        let disorder = self.rng.below(100) < self.disorder_percent;
        let (at, port) = if disorder { ready[self.rng.below(ready.len() as u64) as usize] } else { first };
        if !disorder && self.system.has_waiters() && self.system.due() <= at {
            self.system.step_once(Cycle::MAX);
            return Ok(None);
        }
        self.ports[port].now = at;
        Ok(Some(port))
    }

    fn act(&mut self, port: usize) {
        if self.thread(port).tx.is_some()
            && let Some((cycle, _)) = self.system.take_abort(core(port))
        {
            self.over(port, cycle);
        } else if let Some(request) = self.thread(port).pending.take() {
            self.request(port, request);
        } else if self.rng.below(100) < self.switch_percent {
            self.switch(port);
        } else {
            self.step(port);
        }
        let passed = match self.rng.below(20) {
            0 => self.rng.below(20_000),
            1..=4 => self.rng.below(400),
            _ => self.rng.below(4),
        };
        self.ports[port].now += passed;
        let instructions = self.rng.below(8);
        let now = self.ports[port].now;
        self.system.retired(core(port), instructions, now);
    }

    /// The transaction of the thread at a port has aborted.
    fn over(&mut self, port: usize, at: Cycle) {
        let thread = self.thread(port);
        (thread.tx, thread.pending) = (None, None);
        self.ports[port].now = self.ports[port].now.max(at);
    }

    fn request(&mut self, port: usize, request: Request) {
        let (at, tx, id) = (self.ports[port].now, self.thread(port).tx, core(port));
        let outcome = match request {
            Request::Store(n, stamp) => {
                let store = PendingStore::plain(line(n).base(), 8, stamp, tx);
                self.system.store(id, &store, at)
            }
            Request::Begin(tx) => self.system.tx_begin(id, tx, at),
            Request::Commit(tx) => self.system.tx_commit(id, tx, at),
        };
        match outcome {
            Outcome::Pending => self.thread(port).pending = Some(request),
            Outcome::Done(cycle) => {
                if let Request::Commit(_) = request {
                    self.thread(port).tx = None;
                }
                self.ports[port].now = at.max(cycle);
            }
            Outcome::Aborted(cycle, _) => self.over(port, cycle),
        }
    }

    fn step(&mut self, port: usize) {
        let n = self.lines[self.rng.below(self.lines.len() as u64) as usize];
        let (at, tx, id) = (self.ports[port].now, self.thread(port).tx, core(port));
        match (self.rng.below(100), tx) {
            (0..=49, _) => {
                self.stamps += 1;
                self.request(port, Request::Store(n, self.stamps));
            }
            (50..=69, _) => {
                self.system.load(id, line(n).base(), 8, tx, at);
            }
            (70..=76, _) => {
                let op = [CacheBlockOp::Clean, CacheBlockOp::Flush, CacheBlockOp::Inval][self.rng.below(3) as usize];
                self.ports[port].now = at.max(self.system.cache_block(id, op, line(n), at));
            }
            (77..=78, _) => self.ports[port].now = self.system.drain_queues(at),
            (_, None) => {
                let tx = self.system.new_tx();
                self.thread(port).tx = Some(tx);
                self.request(port, Request::Begin(tx));
            }
            (79..=87, Some(tx)) => self.request(port, Request::Commit(tx)),
            (88, Some(tx)) => {
                if let Outcome::Aborted(cycle, _) = self.system.tx_abort(id, tx, 7, at) {
                    self.over(port, cycle);
                }
            }
            _ => {}
        }
    }

    fn switch(&mut self, port: usize) {
        let thread = self.ports[port].thread.take().expect("a thread has the port");
        let now = self.ports[port].now;
        self.ports[port].now = self.system.context_switch(core(port), self.threads[thread].tx, None, now);
        for port in 0..self.ports.len() {
            if self.ports[port].thread.is_none() && self.rng.below(3) > 0 {
                self.seat(port);
            }
        }
    }

    /// A thread that waits takes a free port.
    fn seat(&mut self, port: usize) {
        let seated = |thread: &usize| self.ports.iter().any(|port| port.thread == Some(*thread));
        let waiting: Vec<usize> = (0..self.threads.len()).filter(|thread| !seated(thread)).collect();
        if waiting.is_empty() {
            return;
        }
        let thread = waiting[self.rng.below(waiting.len() as u64) as usize];
        let latest = self.ports.iter().map(|port| port.now).max().unwrap_or(0);
        self.ports[port].thread = Some(thread);
        self.ports[port].now = self.system.context_switch(core(port), None, self.threads[thread].tx, latest);
    }
}
