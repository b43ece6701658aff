//! Properties that must always hold, and those that must hold at least once, or the bounds are too narrow to mean
//! anything.

use super::{Bounds, EntryState, Machine, Phase, TcProtocol, TransactionCaches};
use crate::protocol;
use stateright::Property;

type Recovery = protocol::Recovery<TcProtocol>;
type State = protocol::State<TcProtocol>;

/// All lines are as the last committed transaction made them.
pub const COMMITTED_IS_KEPT: &str = "what was committed is kept";
/// Transactions that never committed are not found after recovery.
pub const NEVER_COMMITTED_IS_NOT_SEEN: &str = "what never committed is not seen";
/// A load finds the newest version, in the caches or by a miss.
pub const LOADS_FIND_THE_NEWEST: &str = "a load finds the newest version";

/// The properties for these bounds: what bounds rule out need not happen.
pub(super) fn all(bounds: &Bounds) -> Vec<Property<TransactionCaches>> {
    let mut all = vec![
        Property::always(COMMITTED_IS_KEPT, |_, s: &State| s.if_recovered(is_kept)),
        Property::always(NEVER_COMMITTED_IS_NOT_SEEN, |_, s: &State| s.if_recovered(is_not_seen)),
        TransactionCaches::convergence(),
        Property::always(LOADS_FIND_THE_NEWEST, |model, s: &State| s.if_running(|m| finds_the_newest(model, m))),
        Property::sometimes("the transaction cache is full", |model: &TransactionCaches, s: &State| {
            s.is_running(|m| m.fifos.iter().any(|fifo| fifo.len() == model.bounds.entries))
        }),
        Property::sometimes("a dropped line is fetched from an entry", |model, s: &State| {
            s.is_running(|m| {
                let missing = |line: &u8| m.cached[usize::from(*line)].is_none();
                let mut lines = (0..model.bounds.lines).filter(missing);
                lines.any(|line| model.found(m, line) != m.home[usize::from(line)])
            })
        }),
        Property::sometimes("power fails while a committed entry is in flight", |_, s: &State| {
            s.is_running(|m| m.flights.iter().flatten().any(|flight| !flight.written))
        }),
        Property::sometimes("an entry is available before the tail has come to it", |_, s: &State| {
            s.is_running(|m| m.fifos.iter().flatten().any(|e| e.state == EntryState::Available))
        }),
        TransactionCaches::interruption(),
    ];
    if bounds.copies_in_flight > 0 {
        all.extend([
            Property::sometimes("a line of an open transaction is home", |_, s: &State| {
                s.is_running(|m| m.home.iter().any(|version| version.tx.is_some_and(|tx| m.is_open(tx))))
            }),
            Property::sometimes("a commit while an old line is in flight", |_, s: &State| {
                s.is_running(|m| {
                    let copying = |e: &super::Entry| e.state == EntryState::Copying;
                    m.fifos.iter().flatten().any(|e| copying(e) && e.version.tx.is_some_and(|tx| m.is_open(tx)))
                })
            }),
            Property::sometimes("an abort brings old lines back", |_, s: &State| {
                s.is_running(|m| m.overflows.iter().flat_map(|o| &o.shadows).any(|s| s.restored))
            }),
            Property::sometimes(
                "recovery brings old lines back",
                |_, s: &State| matches!(s, State::Recovering(r) if r.durable.shadows.iter().any(|shadows| !shadows.is_empty())),
            ),
        ]);
    }
    if bounds.transactions_per_thread * u32::from(bounds.threads)
        > u32::from(bounds.largest_id) * u32::from(bounds.cores)
    {
        all.push(Property::sometimes("an identifier wraps around", |_, s: &State| {
            s.is_running(|m| m.threads.iter().any(|t| t.phase == Phase::Running && t.number > 1 && t.id == 1))
        }));
    }
    if bounds.cores > 1 {
        all.push(Property::sometimes(
            "a line has entries in two transaction caches, one after the other",
            |_, s: &State| {
                s.is_running(|m| {
                    let came_home = |line: u8| m.home[usize::from(line)].tx;
                    let follows = |e: &super::Entry| match (came_home(e.line), e.version.tx) {
                        (Some(before), Some(tx)) => {
                            m.threads[usize::from(before.thread)].home != m.threads[usize::from(tx.thread)].home
                        }
                        _ => false,
                    };
                    (0..m.fifos.len()).any(|core| m.occupied(core).any(follows))
                })
            },
        ));
    }
    if bounds.lives > 1 {
        all.push(Property::sometimes(
            "a second power failure after work",
            |_, s: &State| matches!(s, State::Recovering(r) if r.carried.lives_left == 0 && !r.judge.never.is_empty()),
        ));
    }
    all
}

fn is_kept(r: &Recovery) -> bool {
    r.durable.home.iter().zip(&r.judge.truth).all(|(found, truth)| {
        // Versions that should not be there at all break another property.
        found == truth || found.tx.is_some_and(|tx| r.judge.never.contains(&tx))
    })
}

fn is_not_seen(r: &Recovery) -> bool {
    r.durable.home.iter().all(|version| version.tx.is_none_or(|tx| !r.judge.never.contains(&tx)))
}

fn finds_the_newest(model: &TransactionCaches, m: &Machine) -> bool {
    (0u8..).zip(&m.truth).all(|(line, truth)| {
        let mut writers = (0..model.bounds.threads).filter(|thread| m.written(*thread, line).is_some());
        let found = m.cached[usize::from(line)].unwrap_or_else(|| model.found(m, line));
        match writers.next() {
            // No thread accesses its lines before its abort has ended.
            Some(thread) if m.thread(thread).phase == Phase::Aborting => true,
            Some(thread) => Some(found) == m.written(thread, line),
            None => found == *truth,
        }
    })
}
