//! Properties that must always hold, and those that must hold at least once, or the bounds are too narrow to mean
//! anything.

use super::{Bounds, Cause, Hercules, HerculesProtocol, Machine, Phase, ProtocolFault};
use crate::protocol;
use stateright::Property;

type Recovery = protocol::Recovery<HerculesProtocol>;
type State = protocol::State<HerculesProtocol>;

/// All writes of a transaction survive, or none.
pub const ALL_OR_NOTHING: &str = "all or nothing";
/// Acknowledged transactions, and those seen by others, survive.
pub const ACKNOWLEDGED_IS_KEPT: &str = "what was acknowledged or seen is kept";
/// Transactions that never committed are neither at home nor found after recovery.
pub const NEVER_COMMITTED_IS_NOT_SEEN: &str = "what never committed is not seen";
/// A load finds the newest version.
pub const LOADS_FIND_THE_NEWEST: &str = "a load finds the newest version";

/// The properties for these bounds: what bounds rule out need not happen.
pub(super) fn all(bounds: &Bounds) -> Vec<Property<Hercules>> {
    let mut all = vec![
        Property::always(ALL_OR_NOTHING, |_, s: &State| s.if_recovered(all_or_nothing)),
        Property::always(ACKNOWLEDGED_IS_KEPT, |_, s: &State| s.if_recovered(is_kept)),
        Property::always(NEVER_COMMITTED_IS_NOT_SEEN, |_, s: &State| {
            s.if_recovered(is_not_seen) && s.if_running(is_not_home)
        }),
        Hercules::convergence(),
        Property::always(LOADS_FIND_THE_NEWEST, |model, s: &State| s.if_running(|m| finds_the_newest(model, m))),
        Property::sometimes("a line of an open transaction is in the log", |_, s: &State| {
            s.is_running(|m| m.entries.iter().any(|entry| m.is_open(entry.tx)))
        }),
        Property::sometimes("an entry of an open transaction is reloaded", |_, s: &State| {
            s.is_running(|m| {
                let tops = m.on_chip.iter().filter_map(|stack| stack.first());
                tops.filter(|top| top.tag.is_some()).any(|top| m.log.values().any(|slot| slot.version == top.version))
            })
        }),
        Property::sometimes("a commit with all lines in the caches", |_, s: &State| {
            s.is_running(|m| reset(m).any(|(tx, lines)| lines > 0 && m.entries.iter().all(|entry| entry.tx != tx)))
        }),
        Property::sometimes("a commit with lines in the log", |_, s: &State| {
            s.is_running(|m| reset(m).any(|(tx, _)| m.entries.iter().any(|entry| entry.tx == tx)))
        }),
        Property::sometimes("power fails while a migration is in flight", |_, s: &State| {
            s.is_running(|m| m.flights.values().any(|flight| !flight.written))
        }),
        Property::sometimes("an entry is reloaded while it migrates", |_, s: &State| {
            s.is_running(|m| m.flights.keys().any(|line| m.entry(*line).is_none()))
        }),
        Hercules::interruption(),
        Property::sometimes("a transaction in doubt is found committed", |_, s: &State| {
            s.has_recovered(|r| r.judge.in_doubt.iter().any(|tx| survivors(r, tx) == tx.len()))
        }),
        Property::sometimes("a transaction in doubt is found uncommitted", |_, s: &State| {
            s.has_recovered(|r| r.judge.in_doubt.iter().any(|tx| survivors(r, tx) == 0))
        }),
        Property::sometimes("an abort with lines in the log", |_, s: &State| {
            s.is_running(|m| {
                let aborting = |t: usize| matches!(m.threads[t].phase, Phase::Aborting(_));
                m.entries.iter().any(|e| aborting(usize::from(e.tx.thread)) && m.is_open(e.tx))
            })
        }),
    ];
    if bounds.threads > 1 {
        all.push(Property::sometimes("an abort by conflict", |_, s: &State| {
            s.is_running(|m| m.threads.iter().any(|t| t.phase == Phase::Aborting(Cause::Conflict)))
        }));
    }
    if bounds.threads > 1 && bounds.lines > 1 {
        all.push(Property::sometimes("two transactions in doubt", |_, s: &State| {
            s.has_recovered(|r| r.judge.in_doubt.len() > 1)
        }));
    }
    if bounds.extension_entries > 0 && bounds.ewpq_entries < usize::from(bounds.lines) {
        all.push(Property::sometimes("an entry is in the extension area", |_, s: &State| {
            s.is_running(|m| m.entries.iter().any(|entry| entry.extended))
        }));
    }
    if bounds.transactions_per_thread * u32::from(bounds.threads) > bounds.tx_ids {
        all.push(Property::sometimes("an identifier wraps around", |_, s: &State| {
            s.is_running(|m| m.threads.iter().any(|t| t.phase == Phase::Begun && m.tx_lens.contains(&t.tx_id)))
        }));
    }
    if bounds.context_switches {
        all.push(Property::sometimes("an open transaction is off its core", |_, s: &State| {
            s.is_running(|m| m.threads.iter().any(|t| t.is_open() && !t.on_core))
        }));
    }
    if bounds.lives > 1 {
        all.push(Property::sometimes(
            "a second power failure after work",
            |_, s: &State| matches!(s, State::Recovering(r) if r.carried.lives_left == 0 && !r.judge.in_doubt.is_empty()),
        ));
    }
    all
}

/// Transactions whose states are reset and whose commit has not ended, with the number of their lines.
fn reset(m: &Machine) -> impl Iterator<Item = (super::Tx, usize)> {
    let threads = (0u8..).zip(&m.threads).filter(|(_, t)| t.phase == Phase::Reset);
    threads.map(|(thread, t)| (m.tx(thread), t.lines().count()))
}

/// The number of lines of a transaction in doubt that are as it made them.
fn survivors(r: &Recovery, tx: &[(u8, super::Version)]) -> usize {
    tx.iter().filter(|(line, version)| r.durable.home[usize::from(*line)] == *version).count()
}

fn all_or_nothing(r: &Recovery) -> bool {
    r.judge.in_doubt.iter().all(|tx| [0, tx.len()].contains(&survivors(r, tx)))
}

fn is_kept(r: &Recovery) -> bool {
    (0u8..).zip(&r.durable.home).all(|(line, version)| {
        let doubtful = r.judge.in_doubt.iter().flatten().any(|doubtful| *doubtful == (line, *version));
        // Versions that should not be there at all break another property.
        let forbidden = version.tx.is_some_and(|tx| r.judge.never.contains(&tx));
        *version == r.judge.truth[usize::from(line)] || doubtful || forbidden
    })
}

fn is_not_seen(r: &Recovery) -> bool {
    r.durable.home.iter().all(|version| version.tx.is_none_or(|tx| !r.judge.never.contains(&tx)))
}

fn is_not_home(m: &Machine) -> bool {
    let mut written = m.home.iter().filter_map(|version| version.tx);
    written.all(|tx| !m.is_open(tx) && !m.aborted.contains(&tx))
}

fn finds_the_newest(model: &Hercules, m: &Machine) -> bool {
    (0u8..).zip(&m.truth).all(|(line, truth)| {
        let entry = m.entry(line).filter(|_| !model.has(ProtocolFault::LogNotSearched));
        if entry.is_some_and(|e| m.aborted.contains(&e.tx) && m.is_open(e.tx)) {
            // No thread accesses it before the abort has ended.
            return true;
        }
        let top = m.on_chip[usize::from(line)].first().map(|top| top.version);
        let found = top
            .or_else(|| entry.and_then(|e| m.log.get(&e.slot)).map(|slot| slot.version))
            .unwrap_or(m.home[usize::from(line)]);
        let open = |thread: &u8| {
            let t = &m.threads[usize::from(*thread)];
            t.is_open() && !matches!(t.phase, Phase::Aborting(_))
        };
        let mut writers = (0..m.threads.len() as u8).filter(open).filter_map(|thread| m.written(thread, line));
        found == writers.next().unwrap_or(*truth)
    })
}
