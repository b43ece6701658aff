//! Short random runs of the memory system without cores: threads whose transactions keep off each other's lines, on
//! machines so small that lines leave the caches and transactions overflow all the time.

use super::recorder::{LINES, Observed, Shared, core, line, observed_variant};
use durasim_contract::ActiveFault;
use durasim_core::{Outcome, PendingStore};
use durasim_machine::{MachineConfig, PMEM_BASE, Plan, System, presets};
use durasim_types::{Cycle, Domain, Pages, Rng, TxId};
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
    /// The thread whose transaction has locked each line.
    owners: Vec<Option<usize>>,
    stamps: u64,
    switch_percent: u64,
}

fn overrides(rng: &mut Rng, cores: u16) -> Vec<String> {
    let mut one_of = |path: &str, values: &[&str]| {
        let value = values[rng.below(values.len() as u64) as usize];
        format!("{path}={value}")
    };
    vec![
        format!("cores={cores}"),
        one_of("design.tc.entries", &["2", "3", "4", "8"]),
        one_of("design.tc.overflow_percent", &["1", "50", "90", "100"]),
        one_of("design.tc.tx_id_bits", &["1", "2", "3"]),
        one_of("design.tc.shadow_lines", &["2", "4", "64"]),
        one_of("design.tc.copies_in_flight", &["1", "2", "4"]),
        one_of("design.tc.latency_read_cycles", &["0", "1", "40", "400"]),
        one_of("design.tc.latency_write_cycles", &["0", "1", "50", "400"]),
        one_of("interconnect.inclusion", &["\"inclusive\"", "\"non-inclusive\""]),
        one_of("interconnect.write_back_buffers", &["1", "3"]),
        one_of("pmem.controller.write_queue_entries", &["1", "2", "4"]),
        one_of("pmem.controller.coalesce_writes", &["false", "true"]),
        one_of("pmem.media.write_latency_ns", &["100", "2000"]),
        one_of("l1d.size_bytes", &["256", "512"]),
        one_of("l2.size_bytes", &["256", "512"]),
        one_of("llc.size_bytes", &["512", "1024"]),
    ]
}

/// A run of so many operations. The error says what the machine refused.
pub fn run(seed: u64, cores: u16, operations: u64, fault: ActiveFault) -> Result<Run, String> {
    let mut rng = Rng::new(seed);
    let sets = overrides(&mut rng, cores);
    let shared = Shared::new(rng.next_u64(), 10);
    let text = presets::text("tiny").expect("tiny is a preset");
    let config = MachineConfig::parse("tiny", text, &sets).map_err(|e| e.to_string())?;
    let variant = observed_variant(&shared, fault);
    let plan = Plan::new(&config, &variant, Domain::NvTc).map_err(|e| e.to_string())?;
    let mut system = System::new(&config, &plan).map_err(|e| e.to_string())?;
    system.load_pmem(&Pages::new(PMEM_BASE, plan.geometry.pmem_data_bytes));
    let observer = shared.with_plan(&plan);
    system.observe(Box::new(observer.clone()));
    let threads = usize::from(cores) + rng.below(3) as usize;
    let mut driver = Driver {
        system,
        threads: (0..threads).map(|_| Thread::default()).collect(),
        ports: (0..usize::from(cores)).map(|port| Port { thread: Some(port), now: 0 }).collect(),
        owners: vec![None; usize::from(LINES)],
        stamps: 0,
        switch_percent: [0, 2, 10][rng.below(3) as usize],
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
        let (mut done, mut turns) = (0, 0u64);
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
        let Some((at, port)) = (0..self.ports.len()).filter_map(when).min() else {
            if self.ports.iter().all(|port| port.thread.is_none()) {
                self.seat(0);
            } else if self.system.step_once(Cycle::MAX).is_none() {
                return Err("all wait, and nothing will happen".into());
            }
            return Ok(None);
        };
        if self.system.has_waiters() && self.system.due() <= at {
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
        self.ports[port].now += match self.rng.below(20) {
            0 => self.rng.below(20_000),
            1..=4 => self.rng.below(400),
            _ => self.rng.below(4),
        };
    }

    /// The transaction of the thread at a port is over.
    fn over(&mut self, port: usize, at: Cycle) {
        let index = self.ports[port].thread;
        self.owners.iter_mut().filter(|owner| **owner == index).for_each(|owner| *owner = None);
        let thread = self.thread(port);
        (thread.tx, thread.pending) = (None, None);
        self.ports[port].now = self.ports[port].now.max(at);
    }

    fn request(&mut self, port: usize, request: Request) {
        let (at, tx, id) = (self.ports[port].now, self.thread(port).tx, core(port));
        let outcome = match request {
            Request::Store(n, stamp) => self.system.store(id, &PendingStore::plain(line(n).base(), 8, stamp, tx), at),
            Request::Begin(tx) => self.system.tx_begin(id, tx, at),
            Request::Commit(tx) => self.system.tx_commit(id, tx, at),
        };
        match outcome {
            Outcome::Pending => self.thread(port).pending = Some(request),
            Outcome::Done(cycle) if matches!(request, Request::Commit(_)) => self.over(port, cycle),
            Outcome::Done(cycle) => self.ports[port].now = at.max(cycle),
            Outcome::Aborted(cycle, _) => self.over(port, cycle),
        }
    }

    fn step(&mut self, port: usize) {
        let n = self.rng.below(u64::from(LINES)) as u8;
        let (at, tx, id) = (self.ports[port].now, self.thread(port).tx, core(port));
        let thread = self.ports[port].thread;
        match (self.rng.below(100), tx) {
            (0..=29, _) => {
                self.system.load(id, line(n).base(), 8, tx, at);
            }
            (_, None) => {
                let tx = self.system.new_tx();
                self.thread(port).tx = Some(tx);
                self.request(port, Request::Begin(tx));
            }
            (30..=84, Some(_)) => {
                let owner = &mut self.owners[usize::from(n)];
                if owner.is_none() || *owner == thread {
                    *owner = thread;
                    self.stamps += 1;
                    self.request(port, Request::Store(n, self.stamps));
                }
            }
            (85..=95, Some(tx)) => self.request(port, Request::Commit(tx)),
            (_, Some(tx)) => {
                if let Outcome::Aborted(cycle, _) = self.system.tx_abort(id, tx, 7, at) {
                    self.over(port, cycle);
                }
            }
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
