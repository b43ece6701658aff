//! The amount of work of a run, before and after.

use durasim_types::Stats;
use std::collections::BTreeMap;

/// The amount of work that a run is to do.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Operations of each run of the machine.
    pub ops: u64,
    /// Persist events that are crash points, in percent.
    pub crash_percent: u64,
    /// Crash points at which recovery is cut at each of its writes, in percent.
    pub cut_percent: u64,
    /// Times the machine is started; all but the first time from the recovered image of the last.
    pub power_cycles: u64,
}

/// The kinds of crash points of a run.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Images that were recovered and judged.
    pub images: u64,
    /// Recoveries that were cut and run again.
    pub cuts: u64,
    /// Images in which another part of the unfenced cleans survived.
    pub reordered: u64,
    /// Transactions that recovery carried through.
    pub replayed: u64,
    /// Transactions that recovery discarded.
    pub discarded: u64,
    /// Rare situations, and how many crash points fell into each.
    pub marks: BTreeMap<&'static str, u64>,
}

impl Findings {
    /// Adds what another run has found.
    pub fn add(&mut self, other: &Findings) {
        self.images += other.images;
        self.cuts += other.cuts;
        self.reordered += other.reordered;
        self.replayed += other.replayed;
        self.discarded += other.discarded;
        for (mark, n) in &other.marks {
            *self.marks.entry(mark).or_default() += n;
        }
    }
}

/// The work of a run.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Operations.
    pub ops: u64,
    /// Loads, each compared with the newest bytes.
    pub loads: u64,
    /// Transactions that committed.
    pub committed: u64,
    /// Transactions that aborted.
    pub aborted: u64,
    /// Transactions that the hardware aborted because a structure was full.
    pub aborted_by_hardware: u64,
    /// Transactions aborted by a request of another port.
    pub aborted_by_others: u64,
    /// Requests that were pending at least once.
    pub pending: u64,
    /// Stores whose log operations had left ahead of a store in front of them.
    pub logged_ahead: u64,
    /// Requests that were aimed at the next event of the memory system.
    pub aimed: u64,
    /// Store-conditionals that were done, and those that had lost their reservation.
    pub conditionals: [u64; 2],
    /// Times a thread left its port, and times it left inside a transaction.
    pub switches: [u64; 2],
    /// Times a thread left its port while writes were in flight, in runs with aimed switches.
    pub switches_amid_writes: u64,
    /// The findings of its crashes.
    pub findings: Findings,
    /// Counters of the machine.
    pub stats: Stats,
    /// Commands to media that the checker has seen.
    pub commands: u64,
}

impl Tally {
    /// Adds what another run has done.
    pub fn add(&mut self, other: &Tally) {
        self.ops += other.ops;
        self.loads += other.loads;
        self.committed += other.committed;
        self.aborted += other.aborted;
        self.aborted_by_hardware += other.aborted_by_hardware;
        self.aborted_by_others += other.aborted_by_others;
        self.pending += other.pending;
        self.logged_ahead += other.logged_ahead;
        self.aimed += other.aimed;
        self.switches_amid_writes += other.switches_amid_writes;
        self.commands += other.commands;
        for i in 0..2 {
            self.conditionals[i] += other.conditionals[i];
            self.switches[i] += other.switches[i];
        }
        self.findings.add(&other.findings);
        for (path, stat) in &other.stats.0 {
            let sum = self.stats.get(path).unwrap_or(0.0) + stat.value;
            self.stats.set(path.clone(), sum, &stat.unit, &stat.description);
        }
    }
}
