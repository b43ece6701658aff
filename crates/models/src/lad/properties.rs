//! What must always hold, and what must happen at least once, or the bounds are too narrow to mean anything.

use super::{Bounds, Controller, Dtx, Entry, Lad, Machine, Phase, Recovery, Stage, State, Tx, Version};
use stateright::Property;

/// What was acknowledged, or seen by others, is found after recovery.
pub const ACKNOWLEDGED_IS_KEPT: &str = "what was acknowledged is kept";
/// A transaction that was committing is found as a whole or not at all.
pub const ALL_OR_NOTHING: &str = "all or nothing";
/// A transaction that was committing is found if and only if a controller has received its DTX_Commit (section 3.4).
pub const RECEIVED_IS_COMMITTED: &str = "what one controller has committed is committed";
/// What never committed is not found after recovery.
pub const NEVER_COMMITTED_IS_NOT_SEEN: &str = "what never committed is not seen";
/// Recovery that is cut and run again, and recovery of what is recovered, end in the image of the first, uncut one.
pub const RECOVERY_CONVERGES: &str = "recovery converges";
/// A load finds the newest version: in the caches, in flight, in a queue or in the media.
pub const LOADS_FIND_THE_NEWEST: &str = "a load finds the newest version";

/// The properties for these bounds: what bounds rule out need not happen.
pub(super) fn all(bounds: &Bounds) -> Vec<Property<Lad>> {
    let mut all = vec![
        Property::always(ACKNOWLEDGED_IS_KEPT, |_, s| after(s, is_kept)),
        Property::always(ALL_OR_NOTHING, |_, s| after(s, is_whole)),
        Property::always(RECEIVED_IS_COMMITTED, |_, s| after(s, is_committed)),
        Property::always(NEVER_COMMITTED_IS_NOT_SEEN, |_, s| after(s, is_not_seen)),
        Property::always(RECOVERY_CONVERGES, converges),
        Property::always(LOADS_FIND_THE_NEWEST, |model, s| {
            !running(s, |m| (0..model.bounds.lines).any(|line| model.found(m, line) != m.newest(line)))
        }),
        Property::sometimes("recovery is cut", |_, s| matches!(s, State::Recovering(r) if r.cut)),
        Property::sometimes("power fails before any receipt of DTX_Commit", |_, s| {
            failed(s, |r| r.judge.doubts.iter().any(|doubt| !doubt.is_received && !doubt.lines.is_empty()))
        }),
    ];
    all.extend(of_lines_and_commits(bounds));
    if bounds.log_entries > 0 {
        all.extend(of_undo_logs());
    }
    all.extend(of_identifiers(bounds));
    all
}

/// What happens to lines, and to commits in flight.
fn of_lines_and_commits(bounds: &Bounds) -> Vec<Property<Lad>> {
    let mut all = Vec::new();
    if bounds.stores_per_line > 1 {
        all.push(Property::sometimes("a line is marked again after a flush", |_, s| {
            running(s, |m| {
                (0u8..).zip(&m.marked).any(|(l, of)| of.is_some_and(|t| m.thread(t).flushed[usize::from(l)]))
            })
        }));
    }
    if bounds.threads > 1 {
        all.push(Property::sometimes("the purgatory has entries of committed and uncommitted transactions", |_, s| {
            failed(s, |r| {
                let has = |found| {
                    r.durable.purgatory.iter().any(|saved| saved.held.is_some() && of_never(r, saved.version) == found)
                };
                has(true) && has(false)
            })
        }));
    }
    if bounds.controllers > 1 {
        all.push(Property::sometimes("power fails between two receipts of DTX_Commit", |_, s| {
            failed(s, |r| {
                let doubts = r.judge.doubts.iter().filter(|doubt| doubt.is_received);
                doubts.map(|doubt| usize::from(doubt.tx.thread)).any(|thread| {
                    r.durable.kept.iter().any(|kept| kept.committed[thread] != r.durable.kept[0].committed[thread])
                })
            })
        }));
    }
    if bounds.first_ack && bounds.controllers > 1 {
        all.push(Property::sometimes(
            "a transaction is complete while a controller has not received its DTX_Commit",
            |_, s| running(s, |m| m.pending.iter().any(|p| p.stages.contains(&Stage::Sent) && !is_committing(m, p.tx))),
        ));
    }
    if (bounds.threads > 1 || may_be_late(bounds)) && bounds.first_ack && bounds.controllers > 1 {
        all.push(Property::sometimes("a speculative entry lies below an ordinary one of its line", |_, s| {
            running(s, |m| m.controllers.iter().any(has_held_below_ordinary))
        }));
    }
    all
}

/// What happens to undo logs.
fn of_undo_logs() -> Vec<Property<Lad>> {
    vec![
        Property::sometimes("power fails with an undo entry of an open transaction", |_, s| {
            failed(s, |r| records(r).any(|is_open| is_open))
        }),
        Property::sometimes("power fails with an undo entry of a committed transaction", |_, s| {
            failed(s, |r| records(r).any(|is_open| !is_open))
        }),
        Property::sometimes("the undo log is full", |model: &Lad, s| {
            running(s, |m| m.controllers.iter().any(|mc| mc.log.len() == model.bounds.log_entries))
        }),
        Property::sometimes("a transaction commits while its undo entry is in the making", |model: &Lad, s| {
            running(s, |m| {
                let over = |mc: &Controller| mc.logging.is_some_and(|l| mc.has_committed(l.of.1, model.bounds.ids()));
                m.controllers.iter().any(over)
            })
        }),
        Property::sometimes("a flush of a logged line is in flight", |_, s| {
            running(s, |m| {
                let logged = |line, dtx| m.controllers.iter().any(|mc| mc.logged.contains(&(line, dtx)));
                let flights = (0u8..).zip(&m.flights);
                flights.into_iter().any(|(line, of)| of.iter().any(|f| f.dtx.is_some_and(|dtx| logged(line, dtx))))
            })
        }),
    ]
}

/// What happens to identifiers.
fn of_identifiers(bounds: &Bounds) -> Vec<Property<Lad>> {
    let mut all = Vec::new();
    if bounds.transactions_per_thread + u32::from(bounds.last_id) >= 1 << bounds.id_bits {
        all.push(Property::sometimes("identifiers wrap around", |_, s| {
            running(s, |m| m.threads.iter().any(|t| t.phase == Phase::Run && t.id == 0))
        }));
        if bounds.first_ack
            && bounds.controllers > 1
            && bounds.transactions_per_thread >= u32::from(bounds.ids().half())
        {
            all.push(Property::sometimes("a begin waits for identifiers", |model: &Lad, s| {
                running(s, |m| {
                    (0..model.bounds.threads).any(|thread| {
                        let (t, ids) = (m.thread(thread), model.bounds.ids());
                        let may_begin = t.phase == Phase::Off && t.number < model.bounds.transactions_per_thread;
                        may_begin && model.age(m, thread, ids.next(t.id)) >= ids.half()
                    })
                })
            }));
        }
    }
    if may_be_late(bounds) && bounds.first_ack && bounds.controllers > 1 {
        all.push(Property::sometimes("a DTX_Commit comes late", |model: &Lad, s| {
            running(s, |m| {
                m.pending.iter().any(|p| {
                    let mut stages = p.stages.iter().zip(&m.controllers);
                    stages.any(|(stage, mc)| *stage == Stage::Sent && mc.has_committed(p.dtx, model.bounds.ids()))
                })
            })
        }));
    }
    if bounds.aborts {
        all.push(Property::sometimes("an aborted transaction commits its old values", |_, s| {
            running(s, |m| m.threads.iter().any(|t| t.is_aborted && t.phase == Phase::Commit))
        }));
    }
    if bounds.plain_stores > 0 {
        all.push(Property::sometimes("an ordinary write lies behind a speculative one in the purgatory", |_, s| {
            failed(s, |r| r.durable.purgatory.iter().any(|saved| matches!(saved.version, Version::Plain(_))))
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

/// Two commits of a thread are in flight to a controller at a time only if there are more than four identifiers.
fn may_be_late(bounds: &Bounds) -> bool {
    bounds.transactions_per_thread > 1 && bounds.id_bits > 2
}

fn running(state: &State, condition: impl Fn(&Machine) -> bool) -> bool {
    matches!(state, State::Running(machine) if condition(machine))
}

/// A condition on what a power failure has left.
fn failed(state: &State, condition: impl Fn(&Recovery) -> bool) -> bool {
    matches!(state, State::Recovering(recovery) if condition(recovery))
}

/// A condition on what recovery leaves.
fn after(state: &State, condition: impl Fn(&Recovery) -> bool) -> bool {
    !matches!(state, State::Recovering(recovery) if recovery.has_ended() && !condition(recovery))
}

fn is_committing(m: &Machine, tx: Tx) -> bool {
    m.tx(tx.thread) == tx && m.thread(tx.thread).phase == Phase::Commit
}

fn has_held_below_ordinary(mc: &Controller) -> bool {
    mc.queue.iter().enumerate().any(|(at, entry)| {
        let held = |below: &Entry| below.held.is_some() && below.line == entry.line;
        entry.held.is_none() && mc.queue[..at].iter().any(held)
    })
}

/// Undo entries that are left: whether the transaction of each is open.
fn records(r: &Recovery) -> impl Iterator<Item = bool> {
    let all = r.durable.kept.iter().flat_map(|kept| &kept.log);
    all.filter_map(|record| {
        let Dtx { thread, id } = record.dtx?;
        let has_open = r.judge.never.iter().any(|tx| tx.thread == thread);
        let last = r.durable.kept.iter().map(|kept| kept.committed[usize::from(thread)]);
        Some(has_open && last.into_iter().all(|last| last != id))
    })
}

fn of_never(r: &Recovery, version: Version) -> bool {
    version.tx().is_some_and(|tx| r.judge.never.contains(&tx))
}

fn of_doubt(r: &Recovery, version: Version) -> bool {
    version.tx().is_some_and(|tx| r.judge.doubts.iter().any(|doubt| doubt.tx == tx))
}

fn is_kept(r: &Recovery) -> bool {
    (0..r.durable.home.len()).all(|at| {
        let found = r.durable.home[at];
        // Versions that should not be there at all, or are in doubt, are the concern of other properties.
        found == r.judge.truth[at] || r.judge.loose[at].contains(&found) || of_never(r, found) || of_doubt(r, found)
    })
}

/// How many lines of a transaction in doubt have its version.
fn found_lines(r: &Recovery, lines: &[(u8, Version)]) -> usize {
    lines.iter().filter(|(line, version)| r.durable.home[usize::from(*line)] == *version).count()
}

fn is_whole(r: &Recovery) -> bool {
    r.judge.doubts.iter().all(|doubt| {
        let found = found_lines(r, &doubt.lines);
        // Older versions of its own are none of the two states.
        let own = r.durable.home.iter().filter(|version| version.tx() == Some(doubt.tx)).count();
        own == found && (found == 0 || found == doubt.lines.len())
    })
}

fn is_committed(r: &Recovery) -> bool {
    r.judge.doubts.iter().all(|doubt| doubt.lines.is_empty() || (found_lines(r, &doubt.lines) > 0) == doubt.is_received)
}

fn is_not_seen(r: &Recovery) -> bool {
    r.durable.home.iter().all(|version| !of_never(r, *version))
}

fn converges(model: &Lad, state: &State) -> bool {
    let State::Recovering(r) = state else { return true };
    let again = model.recovered(r.durable.clone());
    let twice = model.recovered(again.clone());
    again.home == r.judge.uncut && twice == again && (!r.has_ended() || r.durable.home == r.judge.uncut)
}
