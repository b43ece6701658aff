//! Properties that must always hold, and those that must hold at least once, or the bounds are too narrow to mean
//! anything.

use super::{Bounds, Controller, Dtx, Entry, Lad, LadProtocol, Machine, Phase, Stage, Tx, Version};
use crate::protocol;
use stateright::Property;

type Recovery = protocol::Recovery<LadProtocol>;
type State = protocol::State<LadProtocol>;

/// Acknowledged transactions, and those seen by others, are found after recovery.
pub const ACKNOWLEDGED_IS_KEPT: &str = "what was acknowledged is kept";
/// A transaction that was committing is found as a whole or not at all.
pub const ALL_OR_NOTHING: &str = "all or nothing";
/// A transaction that was committing is found if and only if a controller has received its DTX_Commit (section 3.4).
pub const RECEIVED_IS_COMMITTED: &str = "what one controller has committed is committed";
/// Transactions that never committed are not found after recovery.
pub const NEVER_COMMITTED_IS_NOT_SEEN: &str = "what never committed is not seen";
/// A load finds the newest version: in the caches, in flight, in a queue or in the media.
pub const LOADS_FIND_THE_NEWEST: &str = "a load finds the newest version";

/// The properties for these bounds: what bounds rule out need not happen.
pub(super) fn all(bounds: &Bounds) -> Vec<Property<Lad>> {
    let mut all = vec![
        Property::always(ACKNOWLEDGED_IS_KEPT, |_, s: &State| s.if_recovered(is_kept)),
        Property::always(ALL_OR_NOTHING, |_, s: &State| s.if_recovered(is_whole)),
        Property::always(RECEIVED_IS_COMMITTED, |_, s: &State| s.if_recovered(is_committed)),
        Property::always(NEVER_COMMITTED_IS_NOT_SEEN, |_, s: &State| s.if_recovered(is_not_seen)),
        Lad::convergence(),
        Property::always(LOADS_FIND_THE_NEWEST, |model, s: &State| {
            !s.is_running(|m| (0..model.bounds.lines).any(|line| model.found(m, line) != m.newest(line)))
        }),
        Lad::interruption(),
        Property::sometimes("power fails before any receipt of DTX_Commit", |_, s: &State| {
            s.has_failed(|r| r.judge.doubts.iter().any(|doubt| !doubt.is_received && !doubt.lines.is_empty()))
        }),
    ];
    all.extend(of_lines_and_commits(bounds));
    if bounds.log_entries > 0 {
        all.extend(of_undo_logs());
    }
    all.extend(of_identifiers(bounds));
    all
}

/// Situations of lines, and of commits in flight.
fn of_lines_and_commits(bounds: &Bounds) -> Vec<Property<Lad>> {
    let mut all = Vec::new();
    if bounds.stores_per_line > 1 {
        all.push(Property::sometimes("a line is marked again after a flush", |_, s: &State| {
            s.is_running(|m| {
                (0u8..).zip(&m.marked).any(|(l, of)| of.is_some_and(|t| m.thread(t).flushed[usize::from(l)]))
            })
        }));
    }
    if bounds.threads > 1 {
        all.push(Property::sometimes(
            "the purgatory has entries of committed and uncommitted transactions",
            |_, s: &State| {
                s.has_failed(|r| {
                    let has = |found| {
                        r.durable
                            .purgatory
                            .iter()
                            .any(|saved| saved.held.is_some() && of_never(r, saved.version) == found)
                    };
                    has(true) && has(false)
                })
            },
        ));
    }
    if bounds.controllers > 1 {
        all.push(Property::sometimes("power fails between two receipts of DTX_Commit", |_, s: &State| {
            s.has_failed(|r| {
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
            |_, s: &State| {
                s.is_running(|m| m.pending.iter().any(|p| p.stages.contains(&Stage::Sent) && !is_committing(m, p.tx)))
            },
        ));
    }
    if (bounds.threads > 1 || may_be_late(bounds)) && bounds.first_ack && bounds.controllers > 1 {
        all.push(Property::sometimes("a speculative entry lies below an ordinary one of its line", |_, s: &State| {
            s.is_running(|m| m.controllers.iter().any(has_held_below_ordinary))
        }));
    }
    all
}

/// Situations of undo logs.
fn of_undo_logs() -> Vec<Property<Lad>> {
    vec![
        Property::sometimes("power fails with an undo entry of an open transaction", |_, s: &State| {
            s.has_failed(|r| records(r).any(|is_open| is_open))
        }),
        Property::sometimes("power fails with an undo entry of a committed transaction", |_, s: &State| {
            s.has_failed(|r| records(r).any(|is_open| !is_open))
        }),
        Property::sometimes("the undo log is full", |model: &Lad, s: &State| {
            s.is_running(|m| m.controllers.iter().any(|mc| mc.log.len() == model.bounds.log_entries))
        }),
        Property::sometimes("a transaction commits before its undo entry is complete", |model: &Lad, s: &State| {
            s.is_running(|m| {
                let over = |mc: &Controller| mc.logging.is_some_and(|l| mc.has_committed(l.of.1, model.bounds.ids()));
                m.controllers.iter().any(over)
            })
        }),
        Property::sometimes("a flush of a logged line is in flight", |_, s: &State| {
            s.is_running(|m| {
                let logged = |line, dtx| m.controllers.iter().any(|mc| mc.logged.contains(&(line, dtx)));
                let flights = (0u8..).zip(&m.flights);
                flights.into_iter().any(|(line, of)| of.iter().any(|f| f.dtx.is_some_and(|dtx| logged(line, dtx))))
            })
        }),
    ]
}

/// Situations of identifiers.
fn of_identifiers(bounds: &Bounds) -> Vec<Property<Lad>> {
    let mut all = Vec::new();
    if bounds.transactions_per_thread + u32::from(bounds.last_id) >= 1 << bounds.id_bits {
        all.push(Property::sometimes("identifiers wrap around", |_, s: &State| {
            s.is_running(|m| m.threads.iter().any(|t| t.phase == Phase::Run && t.id == 0))
        }));
        if bounds.first_ack
            && bounds.controllers > 1
            && bounds.transactions_per_thread >= u32::from(bounds.ids().half())
        {
            all.push(Property::sometimes(
                "the start of a transaction waits for identifiers",
                |model: &Lad, s: &State| {
                    s.is_running(|m| {
                        (0..model.bounds.threads).any(|thread| {
                            let (t, ids) = (m.thread(thread), model.bounds.ids());
                            let may_begin = t.phase == Phase::Off && t.number < model.bounds.transactions_per_thread;
                            may_begin && model.age(m, thread, ids.next(t.id)) >= ids.half()
                        })
                    })
                },
            ));
        }
    }
    if may_be_late(bounds) && bounds.first_ack && bounds.controllers > 1 {
        all.push(Property::sometimes("a DTX_Commit comes late", |model: &Lad, s: &State| {
            s.is_running(|m| {
                m.pending.iter().any(|p| {
                    let mut stages = p.stages.iter().zip(&m.controllers);
                    stages.any(|(stage, mc)| *stage == Stage::Sent && mc.has_committed(p.dtx, model.bounds.ids()))
                })
            })
        }));
    }
    if bounds.aborts {
        all.push(Property::sometimes("an aborted transaction commits its old values", |_, s: &State| {
            s.is_running(|m| m.threads.iter().any(|t| t.is_aborted && t.phase == Phase::Commit))
        }));
    }
    if bounds.plain_stores > 0 {
        all.push(Property::sometimes(
            "an ordinary write follows a speculative one in the purgatory",
            |_, s: &State| {
                s.has_failed(|r| r.durable.purgatory.iter().any(|saved| matches!(saved.version, Version::Plain(_))))
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

/// Two commits of a thread are in flight to a controller at a time only if there are more than four identifiers.
fn may_be_late(bounds: &Bounds) -> bool {
    bounds.transactions_per_thread > 1 && bounds.id_bits > 2
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

/// The number of lines of a transaction in doubt that have its version.
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
