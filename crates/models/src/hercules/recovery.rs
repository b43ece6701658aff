//! Power failure and recovery (section 4.2, "flush on a power-off", and section 4.3).

use super::{Bounds, Hercules, HerculesProtocol, LogSlot, Machine, ProtocolFault, Tx, Version};
use crate::protocol::{Carried, PowerFailure, Recovery};
use std::collections::{BTreeMap, BTreeSet};

/// The state of the log zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flag {
    /// The crash flush finished.
    Flushed,
    /// Recovery finished.
    Recovered,
}

/// The state that a power failure leaves. A mapping is an identifier and the number of a log entry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Durable {
    /// Each line at its home address.
    pub home: Vec<Version>,
    /// Identifiers whose TxLen is not zero.
    pub tx_lens: BTreeSet<u32>,
    /// The log.
    pub log: BTreeMap<u32, LogSlot>,
    /// The eWPQ as the crash flush saved it.
    pub ewpq: Vec<(u32, u32)>,
    /// The extension area.
    pub extension: Vec<(u32, u32)>,
    /// The emergency area: identifier and line.
    pub emergency: Vec<(u32, LogSlot)>,
    /// The state of the log zone.
    pub flag: Flag,
}

/// One durable write of recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecoveryWrite {
    /// A line is written home.
    Home(LogSlot),
    /// A TxLen becomes zero.
    ClearTxLen(u32),
    /// A record of the extension area becomes invalid.
    ClearExtension((u32, u32)),
    /// The zone is marked as recovered.
    SetRecovered,
}

/// The outcomes that are right after this power failure.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Judge {
    /// Versions that are acknowledged or were seen.
    pub truth: Vec<Version>,
    /// Transactions that may have committed, with the newest versions that they made.
    pub in_doubt: Vec<Vec<(u8, Version)>>,
    /// Transactions that have not.
    pub never: BTreeSet<Tx>,
}

impl Durable {
    pub(super) fn write(&mut self, write: RecoveryWrite) {
        match write {
            RecoveryWrite::Home(LogSlot { line, version }) => self.home[usize::from(line)] = version,
            RecoveryWrite::ClearTxLen(tx_id) => {
                self.tx_lens.remove(&tx_id);
            }
            RecoveryWrite::ClearExtension(mapping) => self.extension.retain(|m| *m != mapping),
            RecoveryWrite::SetRecovered => self.flag = Flag::Recovered,
        }
    }
}

impl Hercules {
    /// Power fails: the crash flush saves the eWPQ, then the caches, oldest versions first.
    pub(super) fn crash(&self, m: &Machine) -> PowerFailure<HerculesProtocol> {
        let saved = |extended: bool| {
            let entries = m.entries.iter().filter(move |entry| entry.extended == extended);
            entries.map(|entry| (entry.tx_id, entry.slot)).collect::<Vec<_>>()
        };
        let mut durable = Durable {
            home: m.home.clone(),
            tx_lens: m.tx_lens.clone(),
            log: m.log.clone(),
            ewpq: if self.has(ProtocolFault::EwpqNotSaved) { Vec::new() } else { saved(false) },
            extension: saved(true),
            emergency: Vec::new(),
            flag: Flag::Flushed,
        };
        for (line, stack) in (0u8..).zip(&m.on_chip) {
            let mut versions = stack.clone();
            if !self.has(ProtocolFault::FlushNewestFirst) {
                versions.reverse();
            }
            for copy in versions {
                match copy.tag {
                    Some(tx) => {
                        let tx_id = m.threads[usize::from(tx.thread)].tx_id;
                        durable.emergency.push((tx_id, LogSlot { line, version: copy.version }));
                    }
                    None => durable.home[usize::from(line)] = copy.version,
                }
            }
        }
        let in_doubt = |thread: u8| {
            let t = &m.threads[usize::from(thread)];
            let lines: Vec<_> = t.lines().filter_map(|line| Some((line, m.written(thread, line)?))).collect();
            (t.is_in_doubt() && !lines.is_empty()).then_some(lines)
        };
        let open = |thread: &u8| {
            let t = &m.threads[usize::from(*thread)];
            t.is_open() && !t.is_in_doubt() && !t.acknowledged
        };
        let threads = 0..self.bounds.threads;
        let judge = Judge {
            truth: m.truth.clone(),
            in_doubt: threads.clone().filter_map(in_doubt).collect(),
            never: m.aborted.iter().copied().chain(threads.filter(open).map(|thread| m.tx(thread))).collect(),
        };
        let numbers = m.threads.iter().map(|t| t.number).collect();
        let carried = Carried { numbers, plain_stores: m.plain_stores, lives_left: m.lives_left };
        PowerFailure { judge, durable, carried }
    }

    /// The writes of a recovery from this state, in order.
    pub(super) fn plan(&self, durable: &Durable) -> Vec<RecoveryWrite> {
        if durable.flag == Flag::Recovered {
            return Vec::new();
        }
        let mappings = durable.ewpq.iter().chain(&durable.extension);
        let mut found: Vec<(u32, LogSlot)> =
            mappings.filter_map(|(tx_id, slot)| Some((*tx_id, *durable.log.get(slot)?))).collect();
        found.extend(&durable.emergency);
        found.retain(|(tx_id, _)| durable.tx_lens.contains(tx_id));
        let committed: BTreeSet<u32> = found.iter().map(|(tx_id, _)| *tx_id).collect();
        let home = found.into_iter().map(|(_, slot)| RecoveryWrite::Home(slot));
        let tx_lens = committed.into_iter().map(RecoveryWrite::ClearTxLen);
        let extension = durable.extension.iter().copied().map(RecoveryWrite::ClearExtension);
        let end = std::iter::once(RecoveryWrite::SetRecovered);
        let writes: Vec<RecoveryWrite> = match self.fault {
            Some(ProtocolFault::RecoveredTooEarly) => end.chain(home).chain(tx_lens).chain(extension).collect(),
            Some(ProtocolFault::TxLenClearedBeforeHome) => tx_lens.chain(home).chain(extension).chain(end).collect(),
            Some(ProtocolFault::ExtensionClearedBeforeHome) => {
                extension.chain(home).chain(tx_lens).chain(end).collect()
            }
            _ => home.chain(tx_lens).chain(extension).chain(end).collect(),
        };
        writes
    }
}

/// The next run: what recovery left is what is right from now on.
pub(super) fn restart(bounds: &Bounds, recovery: &Recovery<HerculesProtocol>) -> Machine {
    let Durable { home, tx_lens, log, .. } = recovery.durable.clone();
    let mut m = Machine::new(bounds);
    m.truth.clone_from(&home);
    (m.home, m.tx_lens, m.log) = (home, tx_lens, log);
    (m.plain_stores, m.lives_left) = (recovery.carried.plain_stores, recovery.carried.lives_left - 1);
    for (thread, number) in m.threads.iter_mut().zip(&recovery.carried.numbers) {
        thread.number = *number;
    }
    m
}
