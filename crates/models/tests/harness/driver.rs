//! Short random runs of the memory system without cores: threads with transactions on machines so small that lines
//! leave the caches all the time.

use super::Subject;
use super::log::{Observed, Shared, line};
use durasim_core::{Outcome, PendingStore};
use durasim_machine::{PMEM_BASE, Plan, System};
use durasim_types::{CoreId, Cycle, Pages, Rng, TxId};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A finished run.
pub struct Run<S: Subject> {
    pub observed: Vec<Observed<S::Step>>,
    /// The parameters of the design.
    pub plan: Plan,
    pub threads: u8,
    pub subject: S,
    /// The error says where the machine got stuck, or that it panicked. What was observed until then is recorded.
    pub ending: Result<(), String>,
}

impl<S: Subject> Run<S> {
    /// A number among the parameters of the design.
    pub fn parameter(&self, name: &str) -> u64 {
        self.plan.spec[name].as_u64().expect("it is a number")
    }

    /// The recorded steps without the power failures.
    pub fn steps(&self) -> impl Iterator<Item = &S::Step> {
        self.observed.iter().filter_map(|observed| match observed {
            Observed::Step(step) => Some(step),
            Observed::Crash { .. } => None,
        })
    }
}

#[derive(Clone, Copy)]
pub enum Request {
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

/// The threads of a run, on ports in the place of cores.
pub struct Driver<S: Subject> {
    pub system: System,
    pub log: Shared<S>,
    pub rng: Rng,
    subject: S,
    threads: Vec<Thread>,
    ports: Vec<Port>,
    /// The thread whose transaction has locked each line.
    owners: Vec<Option<usize>>,
    stamps: u64,
    switch_percent: u64,
    disorder_percent: Option<u64>,
}

/// The core at a port.
pub fn core(port: usize) -> CoreId {
    CoreId(port as u16)
}

/// One setting with a value of these.
pub fn one_of(rng: &mut Rng, path: &str, values: &[&str]) -> String {
    format!("{path}={}", values[rng.below(values.len() as u64) as usize])
}

/// A run of this many operations. The error says what the machine refused.
pub fn run<S: Subject>(seed: u64, cores: u16, operations: u64, planted: Option<S::Planted>) -> Result<Run<S>, String> {
    let mut rng = Rng::new(seed);
    let sets = S::overrides(&mut rng, cores);
    let shared = Shared::new(rng.next_u64());
    let subject = S::draw(&mut rng);
    let (plan, mut system) = subject.build(&sets, &shared, planted).map_err(|e| e.to_string())?;
    system.load_pmem(&Pages::new(PMEM_BASE, plan.geometry.pmem_data_bytes));
    let observer = shared.with_plan(&plan);
    system.observe(Box::new(observer.clone()));
    system.keep_journal(Box::new(observer.clone()));
    for port in 0..cores {
        system.assign_thread(CoreId(port), port.into());
    }
    let threads = u64::from(cores) + rng.below(S::SPARE_THREADS);
    let switch_percent = S::SWITCH_PERCENT[rng.below(3) as usize];
    let disorder_percent = S::DISORDER_PERCENT.map(|percent| percent[rng.below(3) as usize]);
    let mut driver = Driver {
        system,
        log: observer.clone(),
        subject,
        threads: (0..threads).map(|_| Thread::default()).collect(),
        ports: (0..usize::from(cores)).map(|port| Port { thread: Some(port), now: 0 }).collect(),
        owners: vec![None; usize::from(S::LINES)],
        stamps: 0,
        switch_percent,
        disorder_percent,
        rng,
    };
    let ending = catch_unwind(AssertUnwindSafe(|| {
        driver.go(operations)?;
        observer.crash(&driver.system);
        Ok(())
    }));
    let ending = ending.unwrap_or_else(|_| Err("the machine panicked".to_owned()));
    let observed = observer.with(|log| std::mem::take(&mut log.observed));
    Ok(Run { observed, plan, threads: threads as u8, subject: driver.subject, ending })
}

impl<S: Subject> Driver<S> {
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

    /// The transaction of the thread at a port.
    pub fn tx(&self, port: usize) -> Option<TxId> {
        self.threads[self.ports[port].thread?].tx
    }

    /// The time at a port.
    pub fn now(&mut self, port: usize) -> &mut Cycle {
        &mut self.ports[port].now
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
                return Err("all wait, and no event is pending".into());
            }
            return Ok(None);
        };
        let disorder = self.disorder_percent.is_some_and(|percent| self.rng.below(100) < percent);
        let (at, port) = if disorder { ready[self.rng.below(ready.len() as u64) as usize] } else { first };
        if !disorder && self.system.has_waiters() && self.system.due() <= at {
            self.system.step_once(Cycle::MAX);
            return Ok(None);
        }
        self.ports[port].now = at;
        Ok(Some(port))
    }

    fn act(&mut self, port: usize) {
        if self.tx(port).is_some()
            && let Some((cycle, _)) = self.system.take_abort(core(port))
        {
            self.over(port, cycle);
        } else if let Some(request) = self.thread(port).pending.take() {
            self.request(port, request);
        } else if self.rng.below(100) < self.switch_percent {
            self.switch(port);
        } else {
            let line = self.subject.line(&mut self.rng);
            let choice = self.rng.below(100);
            S::operate(self, port, line, choice);
        }
        self.ports[port].now += match self.rng.below(20) {
            0 => self.rng.below(20_000),
            1..=4 => self.rng.below(400),
            _ => self.rng.below(4),
        };
        S::operated(self, port);
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
        let (at, tx, id) = (self.ports[port].now, self.tx(port), core(port));
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

    /// A load; the stamp that it finds.
    pub fn load(&mut self, port: usize, n: u8) -> u64 {
        self.system.load(core(port), line(n).base(), 8, self.tx(port), self.ports[port].now).0
    }

    /// A store of a new stamp.
    pub fn store(&mut self, port: usize, n: u8) {
        self.stamps += 1;
        self.request(port, Request::Store(n, self.stamps));
    }

    /// Whether no transaction has locked a line.
    pub fn is_free(&self, n: u8) -> bool {
        self.owners[usize::from(n)].is_none()
    }

    /// A store in a transaction that locks the line first; no step if another thread has it.
    pub fn store_locked(&mut self, port: usize, n: u8) {
        let thread = self.ports[port].thread;
        let owner = &mut self.owners[usize::from(n)];
        if owner.is_none() || *owner == thread {
            *owner = thread;
            self.store(port, n);
        }
    }

    pub fn begin(&mut self, port: usize) {
        let tx = self.system.new_tx();
        self.thread(port).tx = Some(tx);
        self.request(port, Request::Begin(tx));
    }

    pub fn commit(&mut self, port: usize, tx: TxId) {
        self.request(port, Request::Commit(tx));
    }

    /// An abort that the program asks for.
    pub fn abort(&mut self, port: usize, tx: TxId) {
        if let Outcome::Aborted(cycle, _) = self.system.tx_abort(core(port), tx, 7, self.ports[port].now) {
            self.over(port, cycle);
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
        self.system.assign_thread(core(port), thread as u32);
        self.ports[port].now = self.system.context_switch(core(port), None, self.threads[thread].tx, latest);
    }
}
