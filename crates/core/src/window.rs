//! The instruction window: when each instruction, taken in program order, is fetched, renamed, dispatched, issued and
//! committed. It bounds each by bandwidth, by room in the reorder buffer and the queues, by operands and by functional
//! units. Nothing of a wrong path is executed: a misprediction delays the next fetch, and what the reorder buffer would
//! hold of the wrong path by then has to be dropped before anything is renamed.

use crate::shape::Shape;
use crate::{CoreConfig, UnitConfig};
use durasim_cache::Page;
use durasim_isa::Class;
use durasim_types::Cycle;
use serde::{Deserialize, Serialize};

/// Cycles the issue calendar looks ahead; claims further ahead share entries, which only ever delays.
const CALENDAR: usize = 8192;
const POOLS: usize = 5;
/// The pool of loads and stores.
const MEMORY: usize = 4;
/// From the execution of what causes a squash to the reorder buffer, and from there back through dispatch, rename and
/// decode to the front end.
const SQUASH_SIGNAL_CYCLES: Cycle = 5;
/// A longer gap between two fetches is a wait for something, not the pace of the front end.
const FETCH_STEP_MAX: Cycle = 2;

/// How many operations started in one cycle, by pool of units and in all: counters of five bits. The slot is empty for a
/// later round of the calendar than its own.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Slot {
    round: u32,
    counts: u32,
}

const COUNT_BITS: u32 = 5;
const COUNT_MASK: u32 = (1 << COUNT_BITS) - 1;
/// The counter of all pools together.
const TOTAL: u32 = POOLS as u32 * COUNT_BITS;

/// Which pool of units a class uses.
const fn pool(class: Class) -> usize {
    match class {
        Class::IntMul | Class::IntDiv => 1,
        Class::FpAdd => 2,
        Class::FpMul | Class::FpFused | Class::FpDiv | Class::FpSqrt => 3,
        Class::Load | Class::Store | Class::Atomic | Class::CacheBlock => MEMORY,
        _ => 0,
    }
}

/// At most `width` things per cycle, in order.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Lane {
    width: u32,
    cycle: Cycle,
    used: u32,
}

impl Lane {
    fn new(width: u32) -> Self {
        Lane { width, cycle: 0, used: 0 }
    }

    #[inline(always)]
    fn take(&mut self, earliest: Cycle) -> Cycle {
        if earliest > self.cycle {
            self.cycle = earliest;
            self.used = 0;
        }
        if self.used == self.width {
            self.cycle += 1;
            self.used = 0;
        }
        self.used += 1;
        self.cycle
    }

    fn close_cycle(&mut self) {
        self.used = self.width;
    }
}

/// A queue whose entries are freed in order: the entry of the n-th instruction is the entry of the (n - size)-th.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Ring {
    freed: Vec<Cycle>,
    next: usize,
}

impl Ring {
    fn new(entries: u32) -> Self {
        Ring { freed: vec![0; entries as usize], next: 0 }
    }

    #[inline(always)]
    fn free_from(&self) -> Cycle {
        self.freed[self.next]
    }

    /// How many entries are freed only after `cycle`, where they are freed in order of time.
    fn freed_after(&self, cycle: Cycle) -> usize {
        let (young, old) = self.freed.split_at(self.next);
        let after = |part: &[Cycle]| part.len() - part.partition_point(|&freed| freed <= cycle);
        after(young) + after(old)
    }

    #[inline(always)]
    fn push(&mut self, freed: Cycle) {
        self.freed[self.next] = freed;
        self.next += 1;
        if self.next == self.freed.len() {
            self.next = 0;
        }
    }
}

/// How many instructions wait in the issue queue: a calendar of the cycles in which they will leave it. It is brought to
/// the present only when that could matter.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct IssueQueue {
    entries: u32,
    /// Those that have not left up to `now`.
    waiting: u32,
    /// Every instruction that leaves up to this cycle has left.
    now: Cycle,
    /// The last cycle in which somebody asked for room.
    asked: Cycle,
    leaving: Page<u16>,
}

/// Twice what the calendar reaches from the present, so that the present may be ahead of `now`.
const LEAVING: usize = 2 * CALENDAR;

impl IssueQueue {
    fn new(entries: u32) -> Self {
        IssueQueue { entries, waiting: 0, now: 0, asked: 0, leaving: vec![0; LEAVING].into() }
    }

    /// Goes on to `cycle`.
    fn advance(&mut self, cycle: Cycle) {
        if cycle <= self.now {
            return;
        }
        if self.waiting > 0 {
            let last = cycle.min(self.now + LEAVING as Cycle);
            let leaving = self.leaving.write();
            for at in self.now + 1..=last {
                self.waiting -= u32::from(std::mem::take(&mut leaving[at as usize % LEAVING]));
            }
        }
        self.now = cycle;
    }

    /// The first cycle, not before `cycle`, in which there is room.
    #[inline(always)]
    fn room(&mut self, cycle: Cycle) -> Cycle {
        self.asked = self.asked.max(cycle);
        if self.waiting >= self.entries || self.asked - self.now >= CALENDAR as Cycle {
            self.find_room();
        }
        self.asked
    }

    fn find_room(&mut self) {
        self.advance(self.asked);
        while self.waiting >= self.entries {
            self.advance(self.now + 1);
        }
        self.asked = self.now;
    }

    /// An instruction that was let in leaves at `cycle`. One that waits longer than the calendar reaches counts as
    /// leaving at its end.
    #[inline(always)]
    fn push(&mut self, cycle: Cycle) {
        if cycle > self.asked {
            let at = cycle.min(self.asked + CALENDAR as Cycle - 1);
            self.leaving.write()[at as usize % LEAVING] += 1;
            self.waiting += 1;
        }
    }
}

/// The window of one core.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Window {
    fetch_to_rename_cycles: Cycle,
    rename_to_dispatch_cycles: Cycle,
    complete_to_commit_cycles: Cycle,
    squash_width: u64,
    width: u8,
    units: [UnitConfig; POOLS],
    /// How many units each pool has.
    limits: [u8; POOLS],
    latencies: [(Cycle, bool); 20],
    fetch: Lane,
    /// Instructions fetched, and the cycles that took without what the front end waited for.
    fetched: u64,
    fetching_cycles: u64,
    /// Entries between fetch and rename.
    front: Ring,
    rename: Lane,
    commit: Lane,
    rob: Ring,
    loads: Ring,
    waiting: IssueQueue,
    calendar: Page<Slot>,
    /// When each unit that is not pipelined is free again.
    busy: [Vec<Cycle>; POOLS],
    #[serde(with = "crate::saved_array")]
    registers: [Cycle; 64],
    memory_floor: Cycle,
}

impl Window {
    /// An empty window at cycle 0.
    pub fn new(config: &CoreConfig) -> Self {
        let u = &config.units;
        let units = [u.int_alu, u.int_mul, u.fp_add, u.fp_mul, u.memory];
        let mut latencies = [(1, true); 20];
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
            (Class::IntAlu, u.int_alu),
        ];
        for (class, unit) in rows {
            latencies[class as usize] = (unit.latency_cycles, unit.pipelined);
        }
        Window {
            fetch_to_rename_cycles: config.fetch_to_rename_cycles,
            rename_to_dispatch_cycles: config.rename_to_dispatch_cycles,
            complete_to_commit_cycles: config.complete_to_commit_cycles,
            squash_width: config.squash_width.into(),
            width: config.width as u8,
            units,
            limits: units.map(|unit| unit.count as u8),
            latencies,
            fetch: Lane::new(config.width),
            fetched: 0,
            fetching_cycles: 1,
            front: Ring::new(config.fetch_queue_entries + config.width * config.fetch_to_rename_cycles as u32),
            rename: Lane::new(config.width),
            commit: Lane::new(config.width),
            rob: Ring::new(config.rob_entries),
            loads: Ring::new(config.load_queue_entries),
            waiting: IssueQueue::new(config.issue_queue_entries),
            calendar: vec![Slot::default(); CALENDAR].into(),
            busy: units.map(|unit| vec![0; unit.count as usize]),
            registers: [0; 64],
            memory_floor: 0,
        }
    }

    /// A second window in the same state.
    pub(crate) fn fork(&mut self) -> Self {
        self.calendar.share();
        self.waiting.leaving.share();
        self.clone()
    }

    /// Fetches the next instruction, not before `ready` (its line in the instruction cache).
    #[inline(always)]
    pub fn fetch(&mut self, ready: Cycle) -> Cycle {
        let last = self.fetch.cycle;
        let cycle = self.fetch.take(ready.max(self.front.free_from()));
        self.fetched += 1;
        let step = cycle - last;
        self.fetching_cycles += if step > FETCH_STEP_MAX { 1 } else { step };
        cycle
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
        if cycle > self.fetch.cycle {
            self.fetch.cycle = cycle;
            self.fetch.used = 0;
        }
    }

    /// Renames an instruction fetched in `fetched`, not before `room` (a free entry of the store queue); the cycle of its
    /// dispatch. Rename hears of an entry that became free in the cycle after.
    #[inline(always)]
    pub fn dispatch(&mut self, class: Class, fetched: Cycle, room: Cycle) -> Cycle {
        let mut free = self.rob.free_from().max(room);
        if class == Class::Load {
            free = free.max(self.loads.free_from());
        }
        let earliest = (fetched + self.fetch_to_rename_cycles).max(free + 1).max(self.rename.cycle);
        let earliest = self.waiting.room(earliest);
        let renamed = self.rename.take(earliest);
        self.front.push(renamed);
        renamed + self.rename_to_dispatch_cycles
    }

    /// Everything younger than the youngest instruction is dropped because of something that was executed in `resolved`,
    /// fetched from `from` on. What of it has been renamed by then has entered the reorder buffer, as far as there was
    /// room, and is dropped from there step by step.
    pub fn squash(&mut self, from: Cycle, resolved: Cycle) {
        let cycles = (resolved + 1).saturating_sub(from + self.fetch_to_rename_cycles);
        let room = self.rob.freed.len() - self.rob.freed_after(resolved);
        let wrong = (cycles * self.fetched / self.fetching_cycles).min(room as u64);
        let steps = wrong.div_ceil(self.squash_width);
        if steps < 2 {
            return;
        }
        // Dispatch stands still meanwhile, and so do the stages before it, one cycle later each; the front end is the last
        // to hear that it may go on.
        let dropped = resolved + steps + SQUASH_SIGNAL_CYCLES + self.fetch_to_rename_cycles;
        if dropped > self.rename.cycle {
            self.rename.cycle = dropped;
            self.rename.used = 0;
        }
    }

    /// When the operands in these registers are there.
    #[inline(always)]
    pub fn operands(&self, sources: [u8; 3]) -> Cycle {
        let [a, b, c] = sources.map(|r| self.registers[usize::from(r) & 63]);
        a.max(b).max(c)
    }

    /// Issues an instruction dispatched in `dispatched` whose operands are there at `ready`.
    #[inline(always)]
    pub fn issue(&mut self, shape: Shape, dispatched: Cycle, ready: Cycle) -> Cycle {
        let pool = usize::from(shape.pool) % POOLS;
        let mut earliest = ready.max(dispatched);
        if pool == MEMORY {
            earliest = earliest.max(self.memory_floor);
        }
        if !shape.pipelined {
            return self.issue_alone(shape, earliest);
        }
        self.claim(pool, earliest)
    }

    /// The same on a unit that takes nothing else meanwhile.
    #[inline(never)]
    fn issue_alone(&mut self, shape: Shape, earliest: Cycle) -> Cycle {
        let pool = usize::from(shape.pool) % POOLS;
        let busy = &self.busy[pool];
        let unit = (0..busy.len()).min_by_key(|&i| busy[i]).expect("every pool has a unit");
        let cycle = self.claim(pool, earliest.max(busy[unit]));
        self.busy[pool][unit] = cycle + Cycle::from(shape.latency_cycles);
        cycle
    }

    /// The first cycle from `earliest` on in which the pool and the issue width have room for one more.
    #[inline(always)]
    fn claim(&mut self, pool: usize, earliest: Cycle) -> Cycle {
        let (width, limit) = (u32::from(self.width), u32::from(self.limits[pool]));
        let shift = pool as u32 * COUNT_BITS;
        let mut cycle = earliest;
        let calendar = self.calendar.write();
        loop {
            let slot = &mut calendar[cycle as usize % CALENDAR];
            let round = (cycle / CALENDAR as Cycle) as u32;
            if slot.round < round {
                *slot = Slot { round, counts: 0 };
            }
            if slot.counts >> shift & COUNT_MASK < limit && slot.counts >> TOTAL < width {
                slot.counts += 1 << shift | 1 << TOTAL;
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

    /// The pool of units of a class, the cycles from issue to result, and whether the units are pipelined.
    pub(crate) fn unit(&self, class: Class) -> (u8, u32, bool) {
        let (latency, pipelined) = self.latencies[class as usize];
        (pool(class) as u8, latency as u32, pipelined)
    }

    /// The register holds its new value at `cycle`.
    #[inline(always)]
    pub fn write_register(&mut self, register: u8, cycle: Cycle) {
        if register != 0 {
            self.registers[usize::from(register) & 63] = cycle;
        }
    }

    /// Commits the oldest instruction, complete at `complete`.
    #[inline(always)]
    pub fn commit(&mut self, class: Class, complete: Cycle) -> Cycle {
        let cycle = self.commit.take(complete + self.complete_to_commit_cycles);
        self.rob.push(cycle);
        if class == Class::Load {
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
            self.commit.cycle = cycle;
            self.commit.used = 0;
            let last = (self.rob.next + self.rob.freed.len() - 1) % self.rob.freed.len();
            self.rob.freed[last] = cycle;
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

    fn shape(window: &Window, class: Class) -> Shape {
        let (pool, latency_cycles, pipelined) = window.unit(class);
        Shape { class, plain: false, pool, pipelined, sources: [0; 3], dest: 0, latency_cycles }
    }

    fn run(window: &mut Window, n: usize, class: Class, chain: bool) -> Cycle {
        let mut last = 0;
        for _ in 0..n {
            let fetched = window.fetch(0);
            let dispatched = window.dispatch(class, fetched, 0);
            let ready = window.operands(if chain { [5, 0, 0] } else { [0; 3] });
            let shape = shape(window, class);
            let issued = window.issue(shape, dispatched, ready);
            window.leave_issue_queue(issued);
            let complete = issued + Cycle::from(shape.latency_cycles);
            window.write_register(if chain { 5 } else { 6 }, complete);
            last = window.commit(class, complete);
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
        let fetched = w.fetch(0);
        let dispatched = w.dispatch(Class::Load, fetched, 0);
        let load = shape(&w, Class::Load);
        let issued = w.issue(load, dispatched, 0);
        w.commit(Class::Load, issued + 500);
        for _ in 0..191 {
            assert!(w.dispatch(Class::IntAlu, 0, 0) < 100);
            w.commit(Class::IntAlu, 0);
        }
        assert!(w.dispatch(Class::IntAlu, 0, 0) >= 500);
    }
}
