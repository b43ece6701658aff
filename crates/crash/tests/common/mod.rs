//! A random tester that drives the memory system without a core: it knows what every load has to return, and at
//! persist events it crashes the machine, recovers and judges the image.

#![allow(dead_code, reason = "each test program uses a part of this")]

pub mod faulty;
pub mod judge;
pub mod settings;

use durasim_core::{Outcome, PendingStore};
use durasim_crash::ByteOracle;
use durasim_isa::CacheBlockOp;
use durasim_machine::{DRAM_BASE, MachineConfig, PMEM_BASE, Plan, System, presets};
use durasim_types::{CoreId, Cycle, DataRange, PAGE_BYTES, Pages, PhysAddr, Rng, TxId};
use judge::{Findings, Shared, Watcher};
use settings::Setting;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

/// Bytes of persistent memory, and of DRAM, that a run touches.
pub const REGION_BYTES: u64 = 2 * PAGE_BYTES;
const CORE: CoreId = CoreId(0);
const DRAM_REGION: PhysAddr = DRAM_BASE.plus(1 << 20);
const CODE_REGION: PhysAddr = DRAM_BASE.plus(2 << 20);

/// How much a run does.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Operations of each life of the machine.
    pub ops: u64,
    /// Persist events that are crash points, in percent.
    pub crash_percent: u64,
    /// Crash points at which recovery is cut at each of its writes, in percent.
    pub cut_percent: u64,
    /// Times the machine is started; all but the first time from the recovered image of the last.
    pub lives: u64,
}

/// What a run did.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub ops: u64,
    pub loads: u64,
    pub committed: u64,
    pub aborted: u64,
    pub aborted_by_hardware: u64,
    pub findings: Findings,
    pub stats: durasim_types::Stats,
}

/// Runs with this seed. The error tells what went wrong; a panic inside is an error too.
pub fn run(setting: &Setting, seed: u64, effort: Effort) -> Result<Tally, String> {
    let place = format!("{} on {} with {:?}, seed {seed}", setting.row.name, setting.domain, setting.sets);
    let outcome = catch_unwind(AssertUnwindSafe(|| lives(setting, seed, effort)));
    match outcome {
        Ok(Ok(tally)) => Ok(tally),
        Ok(Err(what)) => Err(format!("{place}: {what}")),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
            Err(format!("{place}: panic: {}", text.unwrap_or_default()))
        }
    }
}

fn lives(setting: &Setting, seed: u64, effort: Effort) -> Result<Tally, String> {
    let overrides: Vec<String> = setting.sets.clone();
    let text = presets::text("tiny").expect("tiny is a preset");
    let config = MachineConfig::parse("tiny", text, &overrides).map_err(|e| e.to_string())?;
    let plan = Plan::new(&config, &setting.row, setting.domain).map_err(|e| e.to_string())?;
    let mut rng = Rng::new(seed);
    let mut pages = Pages::new(PMEM_BASE, config.pmem.capacity_mib << 20);
    let mut first = vec![0; REGION_BYTES as usize];
    rng.fill(&mut first);
    pages.write(PMEM_BASE, &first);
    let mut tally = Tally::default();
    for _ in 0..effort.lives {
        let mut life = Life::new(&config, &plan, setting, pages.clone(), rng.next_u64(), effort)?;
        life.run(effort.ops).map_err(|what| format!("after {} operations: {what}", life.tally.ops))?;
        life.finish(&mut tally);
        if setting.crashes {
            let (mut image, _) = life.system.crash_image(u64::MAX);
            let recover = setting.row.hardware.recover;
            recover(&plan.spec, &plan.geometry, &mut image).map_err(|_| "an uncut recovery was cut".to_owned())?;
            life.shared.lock().expect("nobody panics with it").judge(&image.pmem)?;
            pages = image.pmem;
        }
    }
    Ok(tally)
}

struct Life {
    system: System,
    shared: Arc<Mutex<Shared>>,
    rng: Rng,
    now: Cycle,
    /// Newest bytes of persistent memory and of DRAM.
    pmem: Vec<u8>,
    dram: Vec<u8>,
    /// The open transaction, persistent memory at its begin, and how many operations it is to have at most.
    open: Option<(TxId, Vec<u8>, u64)>,
    /// Lines of persistent memory and DRAM in use.
    pmem_lines: Vec<u64>,
    dram_lines: Vec<u64>,
    tx_ops_max: u64,
    aborts: bool,
    tally: Tally,
}

impl Life {
    fn new(
        config: &MachineConfig,
        plan: &Plan,
        setting: &Setting,
        pages: Pages,
        seed: u64,
        effort: Effort,
    ) -> Result<Self, String> {
        let mut rng = Rng::new(seed);
        let mut system = System::new(config, plan).map_err(|e| e.to_string())?;
        system.load_pmem(&pages);
        let mut pmem = vec![0; REGION_BYTES as usize];
        pages.read(PMEM_BASE, &mut pmem);
        let oracle = ByteOracle::new(pages);
        let strict = plan.domain.caches_are_durable();
        let shared = Shared::new(plan, oracle, &pmem, strict, effort, rng.next_u64());
        let shared = Arc::new(Mutex::new(shared));
        if setting.crashes {
            system.keep_journal(Box::new(Watcher(shared.clone())));
            system.observe(Box::new(Watcher(shared.clone())));
            system.declare_data(DataRange { base: PMEM_BASE, size_bytes: REGION_BYTES });
        }
        // Either lines side by side, or lines that share a set of every cache, or both.
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
        let (pmem_lines, dram_lines) = (pick(&mut rng, pmem_count), pick(&mut rng, dram_count));
        Ok(Life {
            system,
            shared,
            now: 0,
            pmem,
            dram: vec![0; REGION_BYTES as usize],
            open: None,
            pmem_lines,
            dram_lines,
            tx_ops_max: 1 + rng.below(60),
            aborts: setting.aborts,
            tally: Tally::default(),
            rng,
        })
    }

    fn run(&mut self, ops: u64) -> Result<(), String> {
        for _ in 0..ops {
            self.tally.ops += 1;
            self.step()?;
            self.check_health()?;
            self.now += match self.rng.below(40) {
                0 => self.rng.below(20_000),
                1..=5 => self.rng.below(400),
                _ => self.rng.below(4),
            };
            let instructions = self.rng.below(12);
            self.system.retired(CORE, instructions, self.now);
            self.check_health()?;
        }
        // All of memory, as a program would read it.
        for line in 0..REGION_BYTES / 64 {
            for word in 0..8 {
                self.load(PMEM_BASE, line * 64 + word * 8, 8)?;
            }
            self.check_health()?;
        }
        Ok(())
    }

    fn check_health(&self) -> Result<(), String> {
        if let Some(what) = &self.shared.lock().expect("nobody panics with it").failure {
            return Err(what.clone());
        }
        if let Some(error) = self.system.error() {
            return Err(error.to_string());
        }
        if self.system.halted() { Err("the machine halted".into()) } else { Ok(()) }
    }

    fn finish(&mut self, tally: &mut Tally) {
        tally.ops += self.tally.ops;
        tally.loads += self.tally.loads;
        tally.committed += self.tally.committed;
        tally.aborted += self.tally.aborted;
        tally.aborted_by_hardware += self.tally.aborted_by_hardware;
        tally.findings.add(&self.shared.lock().expect("nobody panics with it").findings);
        for (path, stat) in self.system.stats().0 {
            let sum = tally.stats.get(&path).unwrap_or(0.0) + stat.value;
            tally.stats.set(path, sum, &stat.unit, &stat.description);
        }
    }

    fn tx(&self) -> Option<TxId> {
        self.open.as_ref().map(|(tx, ..)| *tx)
    }

    fn rolled_back(&mut self, at: Cycle) {
        let (_, before, _) = self.open.take().expect("only an open transaction is aborted");
        self.pmem = before;
        self.now = self.now.max(at);
        // Volatile stores are not rolled back, and the last one may or may not have happened.
        self.system.read_newest(CORE, DRAM_REGION, &mut self.dram, None, self.now);
        self.tally.aborted += 1;
    }

    /// Makes a request, again and again while it is pending.
    fn request(&mut self, mut ask: impl FnMut(&mut System, Cycle) -> Outcome) -> Outcome {
        let mut at = self.now;
        loop {
            match ask(&mut self.system, at) {
                Outcome::Pending => at = self.system.wait_alone(CORE),
                outcome => return outcome,
            }
            if self.system.halted() {
                return Outcome::Done(at);
            }
        }
    }

    /// Takes notice of how a request ended; true if it was done.
    fn done(&mut self, outcome: Outcome) -> bool {
        match outcome {
            Outcome::Pending => unreachable!("requests are made until they are not pending"),
            Outcome::Done(cycle) => {
                self.now = self.now.max(cycle);
                true
            }
            Outcome::Aborted(cycle, code) => {
                self.tally.aborted_by_hardware += u64::from(code >= 0x100);
                self.rolled_back(cycle);
                false
            }
        }
    }

    fn place(&mut self) -> (PhysAddr, u64) {
        let (base, lines) =
            if self.rng.below(5) == 0 { (DRAM_REGION, &self.dram_lines) } else { (PMEM_BASE, &self.pmem_lines) };
        (base, lines[self.rng.below(lines.len() as u64) as usize])
    }

    fn bytes(&mut self, base: PhysAddr) -> &mut Vec<u8> {
        if base == PMEM_BASE { &mut self.pmem } else { &mut self.dram }
    }

    fn step(&mut self) -> Result<(), String> {
        if let Some((_, _, left)) = &mut self.open {
            *left = left.saturating_sub(1);
            if *left == 0 {
                return self.end_transaction();
            }
        }
        let (base, line) = self.place();
        let len = 1 + self.rng.below(8);
        let offset = line * 64 + self.rng.below(64 - len + 1);
        match self.rng.below(100) {
            0..=34 => self.load(base, offset, len),
            35..=69 => self.store(base, offset, len),
            70..=75 if self.open.is_none() => self.begin(),
            70..=71 => self.end_transaction(),
            72..=77 => {
                let tx = self.tx();
                self.system.prefetch_own(CORE, base.plus(line * 64).line(), tx, self.now);
                Ok(())
            }
            78..=80 => {
                let line = CODE_REGION.plus(self.rng.below(64) * 64).line();
                self.system.fetch_code(CORE, line, self.now);
                Ok(())
            }
            81..=87 => {
                let op = [CacheBlockOp::Clean, CacheBlockOp::Flush, CacheBlockOp::Inval][self.rng.below(3) as usize];
                self.now = self.now.max(self.system.cache_block(CORE, op, base.plus(line * 64).line(), self.now));
                Ok(())
            }
            88..=91 => {
                let orders_writes = self.rng.below(4) > 0;
                let outcome = self.request(|system, at| system.fence(CORE, orders_writes, at));
                self.done(outcome);
                Ok(())
            }
            92..=93 => {
                let word = self.rng.below(8) * 8;
                self.swap(base, line * 64 + word)
            }
            94..=95 => self.kernel_write(base, offset, len),
            96..=98 => {
                let mut bytes = vec![0; len as usize];
                let tx = self.tx();
                self.system.read_newest(CORE, base.plus(offset), &mut bytes, tx, self.now);
                if let Some((cycle, _)) = self.system.take_abort(CORE) {
                    self.tally.aborted_by_hardware += 1;
                    self.rolled_back(cycle);
                    return Ok(());
                }
                self.compare(base, offset, &bytes, "the kernel")
            }
            _ => {
                self.now = self.system.drain_queues(self.now);
                Ok(())
            }
        }
    }

    fn begin(&mut self) -> Result<(), String> {
        let tx = self.system.new_tx();
        let ops = 1 + self.rng.below(self.tx_ops_max);
        self.open = Some((tx, self.pmem.clone(), ops));
        let outcome = self.request(|system, at| system.tx_begin(CORE, tx, at));
        self.done(outcome);
        Ok(())
    }

    fn end_transaction(&mut self) -> Result<(), String> {
        let tx = self.tx().expect("the caller saw one");
        if self.aborts && self.rng.below(4) == 0 {
            let Outcome::Aborted(cycle, code) = self.system.tx_abort(CORE, tx, 7, self.now) else {
                return Err("an abort was done, not aborted".into());
            };
            if code != 7 && code < 0x100 {
                return Err(format!("an abort with code 7 ended with {code}"));
            }
            self.rolled_back(cycle);
            return Ok(());
        }
        let outcome = self.request(|system, at| system.tx_commit(CORE, tx, at));
        if self.done(outcome) {
            self.tally.committed += 1;
            self.open = None;
        }
        Ok(())
    }

    fn compare(&mut self, base: PhysAddr, offset: u64, found: &[u8], who: &str) -> Result<(), String> {
        let range = offset as usize..offset as usize + found.len();
        let expected = self.bytes(base)[range].to_vec();
        if expected == found || self.check_health().is_err() {
            return Ok(());
        }
        let addr = base.plus(offset);
        Err(format!("{who} read {found:02x?} at {addr} in cycle {}, expected {expected:02x?}", self.now))
    }

    fn load(&mut self, base: PhysAddr, offset: u64, len: u64) -> Result<(), String> {
        self.tally.loads += 1;
        let tx = self.tx();
        let (value, done) = self.system.load(CORE, base.plus(offset), len as u8, tx, self.now);
        if self.rng.below(2) == 0 {
            self.now = self.now.max(done);
        }
        if let Some((cycle, _)) = self.system.take_abort(CORE) {
            self.tally.aborted_by_hardware += 1;
            self.rolled_back(cycle);
            return Ok(());
        }
        self.compare(base, offset, &value.to_le_bytes()[..len as usize], "a load")
    }

    fn store(&mut self, base: PhysAddr, offset: u64, len: u64) -> Result<(), String> {
        let mut data = [0; 8];
        self.rng.fill(&mut data[..len as usize]);
        let pending =
            PendingStore { addr: base.plus(offset), len: len as u8, data: u64::from_le_bytes(data), tx: self.tx() };
        let outcome = self.request(|system, at| system.store(CORE, &pending, at));
        if self.done(outcome) {
            let range = offset as usize..(offset + len) as usize;
            self.bytes(base)[range].copy_from_slice(&data[..len as usize]);
        }
        Ok(())
    }

    fn swap(&mut self, base: PhysAddr, offset: u64) -> Result<(), String> {
        let new = self.rng.next_u64();
        let writes = self.rng.below(3) > 0;
        let place = PendingStore { addr: base.plus(offset), len: 8, data: new, tx: self.tx() };
        let mut update = |_| writes.then_some(new);
        let (old, outcome) = self.system.atomic(CORE, &place, writes, self.now, &mut update);
        if self.done(outcome) {
            self.compare(base, offset, &old.to_le_bytes(), "an atomic operation")?;
            if writes {
                self.bytes(base)[offset as usize..offset as usize + 8].copy_from_slice(&new.to_le_bytes());
            }
        }
        Ok(())
    }

    fn kernel_write(&mut self, base: PhysAddr, offset: u64, len: u64) -> Result<(), String> {
        let mut data = vec![0; len as usize];
        self.rng.fill(&mut data);
        let tx = self.tx();
        self.system.write_newest(CORE, base.plus(offset), &data, tx, self.now);
        if let Some((cycle, _)) = self.system.take_abort(CORE) {
            self.tally.aborted_by_hardware += 1;
            self.rolled_back(cycle);
        } else {
            self.bytes(base)[offset as usize..(offset + len) as usize].copy_from_slice(&data);
        }
        Ok(())
    }
}
