//! Stores that are written to persistent memory as they are made: what they take, to the cycle; what is written and what is
//! left in the caches; how cores that write one line follow each other; and what power failures leave.

mod failures;
mod lines;
mod times;

use durasim_core::{Outcome, PendingStore};
use durasim_machine::{MachineConfig, PMEM_BASE, Plan, System, presets};
use durasim_types::{CoreId, Cycle, Domain, PhysAddr, StoreKind};

/// A time at which nothing is rounded: whole nanoseconds of a clock of 2 GHz.
const T: Cycle = 30_000;
// In cycles of 2 GHz: what `tiny` says of its levels, and the media of persistent memory below.
const L1: Cycle = 2;
const L2: Cycle = 8;
const LLC: Cycle = 30;
const READ: Cycle = 2 * 150;
const WRITE: Cycle = 2 * 100;

/// The domains in which a store is durable only when it has left the caches.
const WRITTEN: [Domain; 3] = [Domain::Adr, Domain::Media, Domain::NvLlc];

/// Cycles between levels on the way down, up, to memory and back, and to another core.
#[derive(Clone, Copy, Debug)]
struct Links {
    request: Cycle,
    response: Cycle,
    to_memory: Cycle,
    from_memory: Cycle,
    snoop: Cycle,
}

const LINKS: [Links; 3] = [
    Links { request: 0, response: 1, to_memory: 0, from_memory: 0, snoop: 10 },
    Links { request: 1, response: 2, to_memory: 3, from_memory: 1, snoop: 0 },
    Links { request: 7, response: 5, to_memory: 20, from_memory: 11, snoop: 140 },
];

impl Links {
    fn machine(self, cores: u16, domain: Domain, others: &[&str]) -> System {
        let sets = [
            "frequency_mhz=2000".to_owned(),
            format!("cores={cores}"),
            "interconnect.controller_link_bytes=64".to_owned(),
            "pmem.media={ read_latency_ns = 150, write_latency_ns = 100, banks = 64, bandwidth_mb_per_s = 10000000 }"
                .to_owned(),
            format!("interconnect.request_cycles={}", self.request),
            format!("interconnect.response_cycles={}", self.response),
            format!("interconnect.memory_request_cycles={}", self.to_memory),
            format!("interconnect.memory_response_cycles={}", self.from_memory),
            format!("interconnect.snoop_cycles={}", self.snoop),
        ];
        build(domain, sets.into_iter().chain(others.iter().map(|set| (*set).to_owned())).collect())
    }

    /// A request from its look-up in the L1D through that in the last level.
    fn down(self) -> Cycle {
        L1 + self.request + L2 + self.request + LLC
    }

    /// From the directory to memory and all the way up, without what memory does.
    fn memory(self) -> Cycle {
        self.to_memory + self.from_memory + 3 * self.response
    }
}

fn build(domain: Domain, sets: Vec<String>) -> System {
    let config = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &sets).unwrap();
    let plan = Plan::new(&config, durasim_designs::variant("opt").unwrap(), domain).unwrap();
    System::new(&config, &plan).unwrap()
}

fn machine(domain: Domain) -> System {
    LINKS[1].machine(4, domain, &[])
}

fn line(n: u64) -> PhysAddr {
    PMEM_BASE.plus(64 * n)
}

fn load(system: &mut System, core: u16, addr: PhysAddr, at: Cycle) -> (u64, Cycle) {
    system.load(CoreId(core), addr, 8, None, at)
}

fn pending(addr: PhysAddr, data: u64, kind: StoreKind) -> PendingStore {
    PendingStore { kind, ..PendingStore::plain(addr, 8, data, None) }
}

/// A store leaves the store buffer; the cycle in which the next one may.
fn store_as(system: &mut System, core: u16, addr: PhysAddr, data: u64, kind: StoreKind, at: Cycle) -> Cycle {
    let store = pending(addr, data, kind);
    let mut at = at;
    loop {
        match system.store(CoreId(core), &store, at) {
            Outcome::Done(done) => break done,
            Outcome::Pending => at = system.wait_alone(CoreId(core)),
            Outcome::Aborted(..) => panic!("no transaction is open"),
        }
    }
}

fn store(system: &mut System, core: u16, addr: PhysAddr, data: u64, at: Cycle) -> Cycle {
    store_as(system, core, addr, data, StoreKind::Plain, at)
}

/// A store with its clean and a fence; the cycle in which it is acknowledged.
fn persist(system: &mut System, core: u16, addr: PhysAddr, data: u64, at: Cycle) -> Cycle {
    store_as(system, core, addr, data, StoreKind::CleanAndFence, at)
}

fn fence(system: &mut System, core: u16, at: Cycle) -> Cycle {
    let mut at = at;
    loop {
        match system.fence(CoreId(core), true, at) {
            Outcome::Done(done) => break done,
            Outcome::Pending => at = system.wait_alone(CoreId(core)),
            Outcome::Aborted(..) => panic!("no transaction is open"),
        }
    }
}

/// A word after a power failure.
fn survivor(system: &System, addr: PhysAddr) -> u64 {
    system.crash_image(u64::MAX).0.read_u64(addr)
}

fn counter(system: &System, name: &str) -> u64 {
    system.stats().get(&format!("persistent_writes.{name}")).map_or(0, |n| n as u64)
}

/// The channel takes some picoseconds for a line, which may come to a cycle.
fn assert_near(cycles: Cycle, expected: Cycle, what: &str) {
    assert!((expected..=expected + 1).contains(&cycles), "{what}: {cycles}, not {expected}");
}
