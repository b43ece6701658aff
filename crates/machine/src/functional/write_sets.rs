//! Write sets of the transactions of a program, on any machine: an input of every comparison.

use super::bus::FlatBus;
use super::observer::ExecutionObserver;
use super::threads::RunQueue;
use super::{Stopped, load, run_threads};
use crate::setup::budget::Budget;
use crate::setup::memory_map::PMEM_BASE;
use crate::setup::request::Prepared;
use durasim_isa::{BlockCache, Marker};
use durasim_kernel::{Output, ThreadId};
use durasim_types::{ConfigError, Error, LINE_BYTES, LineAddr, PhysAddr};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Lines of persistent memory that a transaction writes, each counted once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TxLines {
    /// Of the smallest transaction.
    pub min: u64,
    /// The arithmetic mean.
    pub avg: f64,
    /// Of the largest transaction.
    pub max: u64,
}

/// Accesses to persistent memory in the region of interest of a program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TxProfile {
    /// Transactions that began and committed inside the region.
    pub transactions: u64,
    /// Number of lines that they write; none if there are no transactions.
    pub tx_lines: Option<TxLines>,
    /// Lines of the declared data range that the program has used up to the region's end, in bytes.
    pub footprint_bytes: u64,
    /// Instructions of the region for each transaction, with those between transactions.
    pub instructions_per_tx: Option<f64>,
}

/// Runs a program functionally to its end, and says what its transactions write. They have to be marked, as the programs
/// for hardware designs do.
///
/// # Errors
/// Refusals before the first instruction, faults of the guest, and a program that fails.
pub(crate) fn profile(prepared: &Prepared, output: &mut dyn Output) -> Result<TxProfile, Error> {
    let (mut bus, hart) = load(&prepared.config, &prepared.plan, &prepared.program, WriteSets::default())?;
    let budget = Budget::of_instructions(u64::MAX);
    let stopped = run_threads(&mut RunQueue::new(hart), &mut bus, &mut BlockCache::new(), budget, output)?;
    let FlatBus { observer, data_range, .. } = bus;
    match stopped {
        Stopped::Exit(0) => {}
        Stopped::Exit(code) => {
            return Err(ConfigError::new("elf", format!("the program ended with exit code {code}")).into());
        }
        Stopped::Early | Stopped::Limit(_) => return Err(ConfigError::new("elf", "the program was stopped").into()),
    }
    let lines = data_range.map_or(0..0, |range| {
        let first = range.base.line().0 - PMEM_BASE.line().0;
        first..first + range.size_bytes.div_ceil(LINE_BYTES)
    });
    let used =
        lines.filter(|&line| observer.used.get(line as usize / 64).is_some_and(|word| word >> (line % 64) & 1 == 1));
    let WriteSets { transactions, lines_min, lines_max, lines_total, instructions, .. } = observer;
    let each = |total: u64| (transactions != 0).then(|| total as f64 / transactions as f64);
    Ok(TxProfile {
        transactions,
        tx_lines: each(lines_total).map(|avg| TxLines { min: lines_min, avg, max: lines_max }),
        footprint_bytes: used.count() as u64 * LINE_BYTES,
        instructions_per_tx: each(instructions),
    })
}

/// Looks on at transactions.
#[derive(Default)]
struct WriteSets {
    thread: Option<ThreadId>,
    /// Write set of the open transaction of each thread.
    open: BTreeMap<ThreadId, BTreeSet<LineAddr>>,
    /// The threads whose transaction is suspended.
    suspended: BTreeSet<ThreadId>,
    /// The last line that was written, and by whom: most stores go to the same line again.
    last: Option<(ThreadId, LineAddr)>,
    /// A bit for each line of persistent memory that was used.
    used: Vec<u64>,
    /// Start of the region, in instructions.
    since: Option<u64>,
    over: bool,
    instructions: u64,
    transactions: u64,
    lines_min: u64,
    lines_max: u64,
    lines_total: u64,
}

impl WriteSets {
    fn commit(&mut self, lines: u64) {
        self.lines_min = if self.transactions == 0 { lines } else { self.lines_min.min(lines) };
        self.lines_max = self.lines_max.max(lines);
        self.lines_total += lines;
        self.transactions += 1;
    }
}

impl ExecutionObserver for WriteSets {
    const SEES: bool = true;

    fn thread(&mut self, thread: ThreadId) {
        self.thread = Some(thread);
    }

    fn data(&mut self, addr: PhysAddr, write: bool) {
        if self.over || addr < PMEM_BASE {
            return;
        }
        let line = addr.line();
        let number = line.0 - PMEM_BASE.line().0;
        let (word, bit) = (number as usize / 64, number % 64);
        if word >= self.used.len() {
            self.used.resize(word + 1, 0);
        }
        self.used[word] |= 1 << bit;
        let Some(thread) = self.thread else { return };
        if write
            && self.last != Some((thread, line))
            && !self.suspended.contains(&thread)
            && let Some(lines) = self.open.get_mut(&thread)
        {
            lines.insert(line);
            self.last = Some((thread, line));
        }
    }

    fn marker(&mut self, marker: Marker, instructions: u64) {
        let Some(thread) = self.thread else { return };
        match marker {
            Marker::RoiBegin => self.since = Some(instructions),
            Marker::RoiEnd => {
                if let Some(since) = self.since.take() {
                    self.instructions += instructions - since;
                    self.over = true;
                }
            }
            Marker::TxBegin => {
                self.last = None;
                self.suspended.remove(&thread);
                self.open.insert(thread, BTreeSet::new());
            }
            Marker::TxSuspend => drop(self.suspended.insert(thread)),
            Marker::TxResume => drop(self.suspended.remove(&thread)),
            Marker::TxAbort => drop(self.open.remove(&thread)),
            Marker::TxCommit => {
                if let Some(lines) = self.open.remove(&thread)
                    && self.since.is_some()
                {
                    self.commit(lines.len() as u64);
                }
            }
            _ => {}
        }
    }
}
