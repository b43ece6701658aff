//! What must always hold, and what must happen at least once, or the bounds are too narrow to mean anything.

use super::{Bounds, EntryState, Machine, Phase, Recovery, State, TransactionCaches};
use stateright::Property;

/// All lines are as the last committed transaction made them.
pub const COMMITTED_IS_KEPT: &str = "what was committed is kept";
/// What never committed is not found after recovery.
pub const NEVER_COMMITTED_IS_NOT_SEEN: &str = "what never committed is not seen";
/// Recovery that is cut and run again, and recovery of what is recovered, end in the image of the first, uncut one.
pub const RECOVERY_CONVERGES: &str = "recovery converges";
/// A load finds the newest version, in the caches or by a miss.
pub const LOADS_FIND_THE_NEWEST: &str = "a load finds the newest version";

/// The properties for these bounds: what bounds rule out need not happen.
pub(super) fn all(bounds: &Bounds) -> Vec<Property<TransactionCaches>> {
    let mut all = vec![
        Property::always(COMMITTED_IS_KEPT, |_, s| after(s, is_kept)),
        Property::always(NEVER_COMMITTED_IS_NOT_SEEN, |_, s| after(s, is_not_seen)),
        Property::always(RECOVERY_CONVERGES, converges),
        Property::always(LOADS_FIND_THE_NEWEST, |model, s| before(s, |m| finds_the_newest(model, m))),
        Property::sometimes("the transaction cache is full", |model: &TransactionCaches, s| {
            running(s, |m| m.fifos.iter().any(|fifo| fifo.len() == model.bounds.entries))
        }),
        Property::sometimes("a dropped line is fetched from an entry", |model, s| {
            running(s, |m| {
                let missing = |line: &u8| m.cached[usize::from(*line)].is_none();
                let mut lines = (0..model.bounds.lines).filter(missing);
                lines.any(|line| model.found(m, line) != m.home[usize::from(line)])
            })
        }),
        Property::sometimes("power fails while a committed entry is in flight", |_, s| {
            running(s, |m| m.flights.iter().flatten().any(|flight| !flight.written))
        }),
        Property::sometimes("an entry is available before the tail has come to it", |_, s| {
            running(s, |m| m.fifos.iter().flatten().any(|e| e.state == EntryState::Available))
        }),
        Property::sometimes("recovery is cut", |_, s| matches!(s, State::Recovering(r) if r.cut)),
    ];
    if bounds.copies_in_flight > 0 {
        all.extend([
            Property::sometimes("a line of an open transaction is home", |_, s| {
                running(s, |m| m.home.iter().any(|version| version.tx.is_some_and(|tx| m.is_open(tx))))
            }),
            Property::sometimes("a commit while an old line is in flight", |_, s| {
                running(s, |m| {
                    let copying = |e: &super::Entry| e.state == EntryState::Copying;
                    m.fifos.iter().flatten().any(|e| copying(e) && e.version.tx.is_some_and(|tx| m.is_open(tx)))
                })
            }),
            Property::sometimes("an abort brings old lines back", |_, s| {
                running(s, |m| m.overflows.iter().flat_map(|o| &o.shadows).any(|s| s.restored))
            }),
            Property::sometimes(
                "recovery brings old lines back",
                |_, s| matches!(s, State::Recovering(r) if r.durable.shadows.iter().any(|shadows| !shadows.is_empty())),
            ),
        ]);
    }
    if bounds.transactions_per_thread * u32::from(bounds.threads)
        > u32::from(bounds.largest_id) * u32::from(bounds.cores)
    {
        all.push(Property::sometimes("an identifier wraps around", |_, s| {
            running(s, |m| m.threads.iter().any(|t| t.phase == Phase::Running && t.number > 1 && t.id == 1))
        }));
    }
    if bounds.cores > 1 {
        all.push(Property::sometimes("a line has entries in two transaction caches, one after the other", |_, s| {
            running(s, |m| {
                let came_home = |line: u8| m.home[usize::from(line)].tx;
                let follows = |e: &super::Entry| match (came_home(e.line), e.version.tx) {
                    (Some(before), Some(tx)) => {
                        m.threads[usize::from(before.thread)].home != m.threads[usize::from(tx.thread)].home
                    }
                    _ => false,
                };
                (0..m.fifos.len()).any(|core| m.occupied(core).any(follows))
            })
        }));
    }
    if bounds.lives > 1 {
        all.push(Property::sometimes(
            "a second power failure after work",
            |_, s| matches!(s, State::Recovering(r) if r.lives_left == 0 && !r.judge.never.is_empty()),
        ));
    }
    all
}

fn running(state: &State, condition: impl Fn(&Machine) -> bool) -> bool {
    matches!(state, State::Running(machine) if condition(machine))
}

/// A condition on the running machine.
fn before(state: &State, condition: impl Fn(&Machine) -> bool) -> bool {
    !running(state, |machine| !condition(machine))
}

/// A condition on what recovery leaves.
fn after(state: &State, condition: impl Fn(&Recovery) -> bool) -> bool {
    !matches!(state, State::Recovering(recovery) if recovery.has_ended() && !condition(recovery))
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

fn converges(model: &TransactionCaches, state: &State) -> bool {
    let State::Recovering(r) = state else { return true };
    let again = model.recovered(r.durable.clone());
    let twice = model.recovered(again.clone());
    again.home == r.judge.uncut && twice == again && (!r.has_ended() || r.durable.home == r.judge.uncut)
}

fn finds_the_newest(model: &TransactionCaches, m: &Machine) -> bool {
    (0u8..).zip(&m.truth).all(|(line, truth)| {
        let mut writers = (0..model.bounds.threads).filter(|thread| m.written(*thread, line).is_some());
        let found = m.cached[usize::from(line)].unwrap_or_else(|| model.found(m, line));
        match writers.next() {
            // Nobody gets at its lines before its abort has ended.
            Some(thread) if m.thread(thread).phase == Phase::Aborting => true,
            Some(thread) => Some(found) == m.written(thread, line),
            None => found == *truth,
        }
    })
}
