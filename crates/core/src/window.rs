//! The instruction window: when each instruction, taken in program order, is fetched, renamed, dispatched, issued and
//! committed. It bounds each by bandwidth, by room in the reorder buffer and the queues, by operands and by functional
//! units. Nothing of a wrong path is executed: a misprediction delays the next fetch, and what the reorder buffer would
//! hold of the wrong path by then has to be dropped before anything is renamed.

mod grid;
mod hardware_threads;
mod normal_form;
mod queues;

use crate::CoreConfig;
use crate::inst_info::InstInfo;
use durasim_isa::Class;
use durasim_types::Cycle;
use grid::Grid;
use queues::{CALENDAR, IssueQueue, Lane, Ring};
use serde::{Deserialize, Serialize};

const POOLS: usize = 5;
/// The pool of loads and stores.
const MEMORY: usize = 4;
/// From the execution of what causes a squash to the reorder buffer, and from there back through dispatch, rename and
/// decode to the front end.
const SQUASH_SIGNAL_CYCLES: Cycle = 5;
/// A longer gap between two fetches is a wait for something, not the pace of the front end.
const FETCH_STEP_MAX: Cycle = 2;

/// Numbers of operations that started in one cycle, by pool of units and in all: counters of five bits that reach 16 when there
/// is room for no more. The slot is empty for a later round of the calendar than its own.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Slot {
    round: u32,
    counts: u32,
}

const COUNT_BITS: u32 = 5;
const COUNT_FULL: u32 = 1 << (COUNT_BITS - 1);
/// The counter of all pools together.
const TOTAL: u32 = POOLS as u32 * COUNT_BITS;

/// Classes of instructions.
const CLASSES: usize = Class::CheckReturn as usize + 1;

/// Pool of units that a class uses.
const fn pool(class: Class) -> usize {
    match class {
        Class::IntMul | Class::IntDiv => 1,
        Class::FpAdd => 2,
        Class::FpMul | Class::FpFused | Class::FpDiv | Class::FpSqrt => 3,
        Class::Load
        | Class::Store
        | Class::Atomic
        | Class::CacheBlock
        | Class::CheckedLoad
        | Class::CheckedStore
        | Class::FilterUpdate => MEMORY,
        _ => 0,
    }
}

/// Entries between fetch and rename: the fetch queue, and what is in the stages before rename. Of several threads
/// each has its share of the queue.
fn front_entries(config: &CoreConfig, threads: u32) -> u32 {
    config.fetch_queue_entries / threads + config.width * config.fetch_to_rename_cycles as u32
}

/// The window of one core.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Window {
    fetch_to_rename_cycles: Cycle,
    rename_to_dispatch_cycles: Cycle,
    complete_to_commit_cycles: Cycle,
    fetch: Lane,
    /// Instructions fetched, and the cycles in which the front end waited for something.
    fetched: u64,
    waited_cycles: Cycle,
    rename: Lane,
    commit: Lane,
    /// Entries between fetch and rename.
    front: Ring,
    rob: Ring,
    loads: Ring,
    waiting: IssueQueue,
    /// A slot of the calendar in which nothing has started.
    empty_counts: u32,
    calendar: Grid<Slot, CALENDAR>,
    memory_floor: Cycle,
    /// Cycle in which each register has its value. Any number of eight bits is in range.
    #[serde(with = "crate::saved_array")]
    registers: [Cycle; 256],
    /// Cycle in which each unit that is not pipelined is free again.
    busy: [Vec<Cycle>; POOLS],
    squash_width: u64,
    latencies: [(Cycle, bool); CLASSES],
}

impl Window {
    /// An empty window at cycle 0.
    pub fn new(config: &CoreConfig) -> Self {
        let u = &config.units;
        let units = [u.int_alu, u.int_mul, u.fp_add, u.fp_mul, u.memory];
        let mut latencies = [(1, true); CLASSES];
        let rows = [
            (Class::IntMul, u.int_mul),
            (Class::IntDiv, u.int_div),
            (Class::FpAdd, u.fp_add),
            (Class::FpMul, u.fp_mul),
            (Class::FpFused, u.fp_fused),
            (Class::FpDiv, u.fp_div),
            (Class::FpSqrt, u.fp_sqrt),
            (Class::Load, u.memory),
            (Class::Store, u.memory),
            (Class::Atomic, u.memory),
            (Class::CacheBlock, u.memory),
            (Class::CheckedLoad, u.memory),
            (Class::CheckedStore, u.memory),
            (Class::FilterUpdate, u.memory),
            (Class::IntAlu, u.int_alu),
        ];
        for (class, unit) in rows {
            latencies[class as usize] = (unit.latency_cycles, unit.pipelined);
        }
        let limits = units.map(|unit| unit.count).into_iter().chain([config.width]);
        let empty_counts = limits.enumerate().map(|(n, limit)| (COUNT_FULL - limit) << (n as u32 * COUNT_BITS)).sum();
        Window {
            fetch_to_rename_cycles: config.fetch_to_rename_cycles,
            rename_to_dispatch_cycles: config.rename_to_dispatch_cycles,
            complete_to_commit_cycles: config.complete_to_commit_cycles,
            fetch: Lane::new(config.width),
            fetched: 0,
            waited_cycles: 0,
            rename: Lane::new(config.width),
            commit: Lane::new(config.width),
            front: Ring::new(front_entries(config, 1)),
            rob: Ring::new(config.rob_entries),
            loads: Ring::new(config.load_queue_entries),
            waiting: IssueQueue::new(config.issue_queue_entries),
            empty_counts,
            calendar: Grid::new(Slot { round: 0, counts: empty_counts }),
            memory_floor: 0,
            registers: [0; 256],
            busy: units.map(|unit| vec![0; unit.count as usize]),
            squash_width: config.squash_width.into(),
            latencies,
        }
    }

    /// A second window in the same state.
    pub(crate) fn fork(&mut self) -> Self {
        let (calendar, waiting) = (self.calendar.fork(), self.waiting.fork());
        Window {
            calendar,
            waiting,
            fetch: self.fetch.clone(),
            rename: self.rename.clone(),
            commit: self.commit.clone(),
            front: self.front.clone(),
            rob: self.rob.clone(),
            loads: self.loads.clone(),
            busy: self.busy.clone(),
            ..*self
        }
    }

    /// Fetches the next instruction, not before `ready` (its line in the instruction cache), and renames it, not before
    /// `room` (a free entry of the store queue); the cycle of its dispatch. Rename is notified of an entry that became free in
    /// the cycle after. With `LOAD` it needs an entry of the load queue.
    #[inline(always)]
    pub fn enter<const LOAD: bool>(&mut self, ready: Cycle, room: Cycle) -> Cycle {
        let fetched = self.fetch(ready.max(self.front.free_from()));
        let mut free = self.rob.free_from().max(room);
        if LOAD {
            free = free.max(self.loads.free_from());
        }
        let earliest = (fetched + self.fetch_to_rename_cycles).max(free + 1).max(self.rename.cycle);
        let renamed = self.rename.take(self.waiting.room(earliest));
        self.front.push(renamed);
        renamed + self.rename_to_dispatch_cycles
    }

    #[inline(always)]
    fn fetch(&mut self, earliest: Cycle) -> Cycle {
        self.fetched += 1;
        let waited_cycles = &mut self.waited_cycles;
        self.fetch.take_after(earliest, |before, cycle| {
            if cycle > before + FETCH_STEP_MAX {
                *waited_cycles += cycle - before - 1;
            }
        })
    }

    /// The cycle the front end has reached.
    #[inline]
    pub fn fetch_cycle(&self) -> Cycle {
        self.fetch.cycle
    }

    /// Nothing more is fetched in this cycle: a taken branch.
    #[inline]
    pub fn end_fetch_cycle(&mut self) {
        self.fetch.close_cycle();
    }

    /// The front end starts again at `cycle`.
    #[inline]
    pub fn redirect(&mut self, cycle: Cycle) {
        self.waited_cycles += cycle.saturating_sub(self.fetch.cycle);
        self.fetch.hold(cycle);
    }

    /// Everything younger than the youngest instruction is dropped because of something that was executed in `resolved`,
    /// fetched from `from` on. What of it has been renamed by then has entered the reorder buffer, as far as there was
    /// room, and is dropped from there step by step.
    pub fn squash(&mut self, from: Cycle, resolved: Cycle) {
        let cycles = (resolved + 1).saturating_sub(from + self.fetch_to_rename_cycles);
        let room = self.rob.entries() - self.rob.freed_after(resolved);
        // The pace of the front end while it waited for nothing.
        let fetching_cycles = 1 + self.fetch.cycle - self.waited_cycles;
        let wrong = (cycles * self.fetched / fetching_cycles).min(room as u64);
        let steps = wrong.div_ceil(self.squash_width);
        if steps < 2 {
            return;
        }
        // Dispatch stops meanwhile, and so do the stages before it, one cycle later each; the front end is the last
        // to be notified that it may continue.
        self.rename.hold(resolved + steps + SQUASH_SIGNAL_CYCLES + self.fetch_to_rename_cycles);
    }

    /// Cycle in which the operands in these registers are available.
    #[inline(always)]
    pub fn operands(&self, sources: &[u8; 3]) -> Cycle {
        let [a, b, c] = sources;
        let at = |register: &u8| self.registers[usize::from(*register)];
        at(a).max(at(b)).max(at(c))
    }

    /// Issues an instruction dispatched in `dispatched` whose operands are there at `ready`.
    #[inline(always)]
    pub fn issue(&mut self, shape: &InstInfo, dispatched: Cycle, ready: Cycle) -> Cycle {
        if usize::from(shape.pool) == MEMORY {
            return self.issue_to_memory(shape, dispatched, ready);
        }
        self.issue_from(shape, ready.max(dispatched))
    }

    /// Schedules an access to memory.
    #[inline(always)]
    pub fn issue_to_memory(&mut self, shape: &InstInfo, dispatched: Cycle, ready: Cycle) -> Cycle {
        self.issue_from(shape, ready.max(dispatched).max(self.memory_floor))
    }

    /// Schedules a computing instruction whose operands are ready and which is dispatched at `earliest`.
    #[inline(always)]
    pub fn issue_from(&mut self, shape: &InstInfo, earliest: Cycle) -> Cycle {
        if shape.pipelined { self.claim(shape.units, earliest) } else { self.issue_alone(shape, earliest) }
    }

    /// Schedules an instruction on a unit that takes nothing else meanwhile.
    #[inline(never)]
    fn issue_alone(&mut self, shape: &InstInfo, earliest: Cycle) -> Cycle {
        let pool = usize::from(shape.pool);
        let busy = &self.busy[pool];
        let unit = (0..busy.len()).min_by_key(|&i| busy[i]).expect("every pool has a unit");
        let cycle = self.claim(shape.units, earliest.max(busy[unit]));
        self.busy[pool][unit] = cycle + Cycle::from(shape.latency_cycles);
        cycle
    }

    /// The first cycle from `earliest` on in which the pool and the issue width, whose counters `units` names, have room
    /// for one more.
    #[inline(always)]
    fn claim(&mut self, units: u32, earliest: Cycle) -> Cycle {
        let mut cycle = earliest;
        let calendar = self.calendar.write();
        loop {
            let slot = &mut calendar[cycle as usize % CALENDAR];
            let round = (cycle / CALENDAR as Cycle) as u32;
            if slot.round < round {
                *slot = Slot { round, counts: self.empty_counts };
            }
            if slot.counts & (units * COUNT_FULL) == 0 {
                slot.counts += units;
                return cycle;
            }
            cycle += 1;
        }
    }

    /// An instruction leaves the issue queue in `cycle`: at its issue, a load when its data is there, since it may have to
    /// issue again until then.
    #[inline(always)]
    pub fn leave_issue_queue(&mut self, cycle: Cycle) {
        self.waiting.push(cycle);
    }

    /// The pool of units of a class and its counters, the cycles from issue to result, and whether the units are
    /// pipelined.
    pub(crate) fn unit(&self, class: Class) -> (u8, u32, u32, bool) {
        let (latency, pipelined) = self.latencies[class as usize];
        let pool = pool(class);
        (pool as u8, 1 << (pool as u32 * COUNT_BITS) | 1 << TOTAL, latency as u32, pipelined)
    }

    /// The register holds its new value at `cycle`; nothing happens for [`crate::inst_info::NO_REGISTER`].
    #[inline(always)]
    pub fn write_register(&mut self, register: u8, cycle: Cycle) {
        self.registers[usize::from(register)] = cycle;
    }

    /// Commits the oldest instruction, complete at `complete`. If nothing commits in the cycles before, `idle` gets the
    /// cycle of the commit before and that of this one.
    #[inline(always)]
    pub fn commit<const LOAD: bool>(&mut self, complete: Cycle, idle: impl FnOnce(Cycle, Cycle)) -> Cycle {
        let cycle = self.commit.take_after(complete + self.complete_to_commit_cycles, |before, committed| {
            if committed > before + 1 {
                idle(before, committed);
            }
        });
        self.rob.push(cycle);
        if LOAD {
            self.loads.push(cycle);
        }
        cycle
    }

    /// The cycle of the youngest commit.
    #[inline]
    pub fn commit_cycle(&self) -> Cycle {
        self.commit.cycle
    }

    /// The youngest committed instruction leaves the reorder buffer only at `cycle`.
    pub fn hold_commit(&mut self, cycle: Cycle) {
        if cycle > self.commit.cycle {
            self.commit.hold(cycle);
            self.rob.correct_last(cycle);
        }
    }

    /// No younger access to memory issues before `cycle`.
    pub fn hold_memory(&mut self, cycle: Cycle) {
        self.memory_floor = self.memory_floor.max(cycle);
    }

    /// The pipeline is empty and starts again at `cycle`.
    pub fn restart(&mut self, cycle: Cycle) {
        self.hold_commit(cycle);
        self.redirect(cycle + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inst_info::{Kind, NO_REGISTER};

    fn shape(window: &Window, class: Class) -> InstInfo {
        let (pool, units, latency_cycles, pipelined) = window.unit(class);
        let (kind, dest) = (Kind::Plain, NO_REGISTER);
        InstInfo { class, kind, pool, units, pipelined, sources: [0; 3], dest, latency_cycles, bytes: 0 }
    }

    fn run(window: &mut Window, n: usize, class: Class, chain: bool) -> Cycle {
        let mut last = 0;
        for _ in 0..n {
            let dispatched = window.enter::<false>(0, 0);
            let ready = window.operands(&if chain { [5, 0, 0] } else { [0; 3] });
            let shape = shape(window, class);
            let issued = window.issue(&shape, dispatched, ready);
            window.leave_issue_queue(issued);
            let complete = issued + Cycle::from(shape.latency_cycles);
            window.write_register(if chain { 5 } else { 6 }, complete);
            last = window.commit::<false>(complete, |_, _| {});
        }
        last
    }

    fn window() -> Window {
        Window::new(&CoreConfig::default())
    }

    #[test]
    fn independent_additions_are_bound_by_the_six_units() {
        let cycles = run(&mut window(), 6000, Class::IntAlu, false);
        assert!((1000..1020).contains(&cycles), "{cycles}");
    }

    #[test]
    fn a_chain_of_operations_takes_the_sum_of_their_latencies() {
        let cycles = run(&mut window(), 1000, Class::IntMul, true);
        assert!((3000..3020).contains(&cycles), "{cycles}");
    }

    #[test]
    fn divisions_are_not_pipelined() {
        let cycles = run(&mut window(), 1000, Class::IntDiv, false);
        assert!((10_000..10_040).contains(&cycles), "{cycles}");
    }

    #[test]
    fn a_full_reorder_buffer_waits_for_its_oldest_instruction() {
        let mut w = window();
        let dispatched = w.enter::<true>(0, 0);
        let load = shape(&w, Class::Load);
        let issued = w.issue(&load, dispatched, 0);
        w.commit::<true>(issued + 500, |_, _| {});
        for _ in 0..191 {
            assert!(w.enter::<false>(0, 0) < 100);
            w.commit::<false>(0, |_, _| {});
        }
        assert!(w.enter::<false>(0, 0) >= 500);
    }
}
