//! L1Ds of one and two ways, whose lines are always in each other's way, on all kinds of hierarchies: requests of all kinds
//! end, loads return the newest bytes, and the invariants of every line hold after each request. Debug builds also check
//! that room in an L1D never depends on a second way (`Caches::victim`).

use durasim_core::{Outcome, PendingStore};
use durasim_isa::CacheBlockOp;
use durasim_machine::{DRAM_BASE, MachineConfig, PMEM_BASE, Plan, System, presets};
use durasim_types::{CoreId, Cycle, PhysAddr, Rng, TxId};
use std::collections::BTreeMap;

const CORES: u64 = 4;
const REQUESTS: u64 = 1500;

fn machine(variant: &str, sets: &[&str]) -> System {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let config = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &sets).unwrap();
    let variant = durasim_designs::variant(variant).unwrap();
    System::new(&config, &Plan::new(&config, variant, variant.default_domain()).unwrap()).unwrap()
}

/// Every combination of what decides which lines meet in a set and which of them leaves.
fn hierarchies() -> impl Iterator<Item = Vec<&'static str>> {
    let choices: [&[&str]; 5] = [
        &["interconnect.inclusion=inclusive", "interconnect.inclusion=non-inclusive"],
        &["l1d.replacement=lru", "l1d.replacement=random"],
        &["llc.replacement=lru", "llc.replacement=random"],
        &["l2.size_bytes=256", "l2=none"],
        &["l1d.ways=1", "l1d.ways=2"],
    ];
    let all = choices.iter().map(|choice| choice.len()).product::<usize>();
    (0..all).map(move |mut number| {
        let mut sets = vec!["cores=4", "l1d.size_bytes=128", "llc.ways=4", "llc.size_bytes=512"];
        sets.extend(choices.iter().map(|choice| {
            let chosen = choice[number % choice.len()];
            number /= choice.len();
            chosen
        }));
        sets
    })
}

struct Stress {
    system: System,
    rng: Rng,
    memory: BTreeMap<u64, u64>,
    now: Cycle,
}

impl Stress {
    /// A word of one of twelve lines, of DRAM or persistent memory, nearly all of one set of the L1D.
    fn place(&mut self) -> PhysAddr {
        let base = if self.rng.below(3) == 0 { DRAM_BASE } else { PMEM_BASE };
        let line = self.rng.below(6) * 2 + u64::from(self.rng.below(8) == 0);
        base.plus(64 * line + 8 * self.rng.below(8))
    }

    fn newest(&self, addr: PhysAddr) -> u64 {
        self.memory.get(&addr.0).copied().unwrap_or(0)
    }

    fn load(&mut self, core: CoreId, addr: PhysAddr) {
        let (value, done) = self.system.load(core, addr, 8, None, self.now);
        assert_eq!(value, self.newest(addr), "{addr}");
        self.now = done;
    }

    fn store(&mut self, core: CoreId, addr: PhysAddr, data: u64, tx: Option<TxId>) {
        let store = PendingStore::plain(addr, 8, data, tx);
        loop {
            match self.system.store(core, &store, self.now) {
                Outcome::Done(done) => self.now = done,
                Outcome::Pending => {
                    self.now = self.system.wait_alone(core);
                    continue;
                }
                Outcome::Aborted(..) => panic!("no transaction aborts"),
            }
            break;
        }
        self.memory.insert(addr.0, data);
    }

    fn request(&mut self) {
        let core = CoreId(self.rng.below(CORES) as u16);
        let (addr, data) = (self.place(), self.rng.next_u64());
        match self.rng.below(9) {
            0..=1 => self.load(core, addr),
            2..=3 => self.store(core, addr, data, None),
            // A misaligned access over two lines is one to each of them.
            4 => {
                self.load(core, addr);
                self.load(core, addr.plus(64));
                self.store(core, addr, data, None);
                self.store(core, addr.plus(64), !data, None);
            }
            5 => {
                let place = PendingStore::plain(addr, 8, 0, None);
                let (old, outcome) =
                    self.system.atomic(core, &place, true, self.now, &mut |old| Some(old.wrapping_add(data)));
                let Outcome::Done(done) = outcome else { panic!("{outcome:?}") };
                assert_eq!(old, self.newest(addr));
                self.memory.insert(addr.0, old.wrapping_add(data));
                self.now = done;
            }
            6 => self.now = self.system.fetch_code(core, addr.line(), self.now),
            7 => {
                let op = if data % 2 == 0 { CacheBlockOp::Clean } else { CacheBlockOp::Flush };
                self.now = self.system.cache_block(core, op, addr.line(), self.now);
            }
            // The kernel.
            _ => {
                let bytes: [u8; 16] = std::array::from_fn(|i| data.to_le_bytes()[i % 8]);
                self.system.write_newest(core, addr, &bytes, None, self.now);
                self.memory.insert(addr.0, data);
                self.memory.insert(addr.0 + 8, data);
                let mut read = [0; 8];
                self.system.read_newest(core, addr, &mut read, None, self.now);
                assert_eq!(u64::from_le_bytes(read), data);
            }
        }
        self.now += 1 + self.rng.below(40);
    }
}

#[test]
fn requests_of_all_kinds_end_and_lines_stay_coherent() {
    for (seed, sets) in hierarchies().enumerate() {
        let system = machine("opt", &sets);
        let mut stress = Stress { system, rng: Rng::new(seed as u64), memory: BTreeMap::new(), now: 10_000 };
        for _ in 0..REQUESTS {
            stress.request();
            assert_eq!(stress.system.check_all_lines(), Ok(()), "{sets:?}");
        }
        let stat = |path: &str| stress.system.stats().get(path).unwrap();
        assert!(stat("l1d.evictions") > REQUESTS as f64 / 4.0 && stat("coherence.transfers") > 100.0, "{sets:?}");
        assert_eq!(stress.system.stats().get("l2.accesses").is_none(), sets.contains(&"l2=none"));
    }
}

/// Transactions that write more lines of a set than its L1D has ways: each variant's hardware moves their versions down.
#[test]
fn transactions_overflow_a_set_of_two_ways_on_every_variant() {
    let core = CoreId(0);
    for variant in durasim_designs::VARIANTS {
        for sets in hierarchies().filter(|sets| sets.contains(&"l1d.ways=2")) {
            let mut stress =
                Stress { system: machine(variant.name, &sets), rng: Rng::new(7), memory: BTreeMap::new(), now: 10_000 };
            for round in 0..6 {
                let tx = stress.system.new_tx();
                while let Outcome::Pending = stress.system.tx_begin(core, tx, stress.now) {
                    stress.now = stress.system.wait_alone(core);
                }
                for n in 0..3 {
                    stress.store(core, PMEM_BASE.plus(256 * n + 8 * round), round + n, Some(tx));
                    assert_eq!(stress.system.check_all_lines(), Ok(()), "{} {sets:?}", variant.name);
                }
                while let Outcome::Pending = stress.system.tx_commit(core, tx, stress.now) {
                    stress.now = stress.system.wait_alone(core);
                }
                stress.now += 10_000;
            }
            for addr in stress.memory.keys().copied().collect::<Vec<_>>() {
                stress.load(core, PhysAddr(addr));
            }
            assert_eq!(stress.system.check_all_lines(), Ok(()), "{} {sets:?}", variant.name);
        }
    }
}
