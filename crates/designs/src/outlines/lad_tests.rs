//! Scenarios of LAD's paper on the outline.

use super::lad::{Dtx, LadSpec, State};
use super::lad_bench::Bench;
use super::planned::{BeginRule, Layout, Planned};
use durasim_design::{Gate, Signal, Token, Wait};
use durasim_types::CoreId;

fn uniform() -> Layout {
    Layout::Uniform { cycles: 10 }
}

/// Four tiles in a row: controller 0 on the first, controller 1 on the last.
fn row() -> Layout {
    let controllers = vec![(0, false), (3, false)];
    Layout::Mesh { columns: 4, hop_cycles: 3, controllers, socket_cycles: 100 }
}

fn numbers(bench: &mut Bench, core: u16) -> (u64, State) {
    let (dtx, state): (Dtx, State) = bench.design.dtx(CoreId(core));
    (dtx.number(), state)
}

/// The running example (section 4.5, Figure 6): A is evicted when C comes, B and C are flushed at the end.
#[test]
fn the_running_example() {
    let mut bench = Bench::new(LadSpec::default(), 2, 8, row());
    assert_eq!(bench.design.begin_rule(), BeginRule::Drained);
    let (a, b, c) = (0, 2, 4);
    bench.begin(0, 1);
    let (dtx, state) = numbers(&mut bench, 0);
    assert_eq!(state, State::Run);
    bench.store(0, a, 11, 1);
    bench.store(0, b, 12, 1);
    bench.evict(0, a);
    bench.store(0, c, 13, 1);
    bench.run();
    assert_eq!(bench.held(0), [(a, dtx)], "the evicted block is speculative at its controller");
    assert_eq!(bench.value(a), 11, "and serves loads");

    assert_eq!(bench.offer_commit(0, 1), Gate::Retry(Wait::Acked(Token(dtx))));
    assert_eq!(numbers(&mut bench, 0).1, State::Flush);
    bench.run();
    assert_eq!((bench.held(0), bench.held(1)), (vec![(a, dtx), (c, dtx)], vec![(b, dtx)]));
    assert_eq!(bench.recovered(&bench.crashed(), 5), [0; 5], "prepared, not committed");

    assert_eq!(bench.offer_commit(0, 1), Gate::After(Wait::Signal(Signal(dtx))));
    assert_eq!(numbers(&mut bench, 0).1, State::Commit);
    assert!(bench.deliver(), "DTX_Commit arrives at controller 0, which is on the same tile");
    assert!(bench.held(0).is_empty() && bench.held(1) == [(b, dtx)]);
    assert_eq!((bench.design.committed(0, 0), bench.design.committed(1, 0)), (1, 0));
    assert_eq!(bench.recovered(&bench.crashed(), 5), [11, 0, 12, 0, 13], "one controller knows, which is enough");
    bench.run();
    assert_eq!(numbers(&mut bench, 0).1, State::Off);
    assert_eq!([a, b, c].map(|line| bench.value(line)), [11, 12, 13]);
}

/// LAD ends at the first acknowledgement, LAD-Base at the last (section 5): hops decide.
#[test]
fn the_nearest_controller_ends_a_transaction() {
    let cycles = |first_ack| {
        let mut bench = Bench::new(LadSpec { first_ack, ..LadSpec::default() }, 2, 8, row());
        bench.begin(1, 1);
        bench.store(1, 0, 5, 1);
        bench.commit(1, 1);
        let done = bench.now;
        // The thread restarts while the other acknowledgement is in flight.
        bench.begin(1, 2);
        bench.store(1, 0, 6, 2);
        bench.commit(1, 2);
        bench.run();
        assert_eq!(bench.value(0), 6);
        done
    };
    assert_eq!(cycles(true), 2 * 3, "one hop to controller 0 and back");
    assert_eq!(cycles(false), 2 * 6, "two to controller 1");
}

/// LAD-LLC (section 5) is the same protocol towards the banks of the last level.
#[test]
fn lad_llc_commits_at_banks() {
    let mut bench = Bench::new(LadSpec { llc_banks: Some(4), ..LadSpec::default() }, 2, 8, row());
    bench.begin(2, 1);
    bench.store(2, 0, 5, 1);
    bench.store(2, 2, 6, 1);
    assert!(matches!(bench.offer_commit(2, 1), Gate::Retry(Wait::Acked(_))));
    bench.commit(2, 1);
    assert_eq!(bench.now, 0, "core 2 shares a tile with bank 2");
    bench.run();
    assert_eq!([0, 1, 2, 3].map(|bank| bench.design.committed(bank, 2)), [1; 4]);
    assert!(bench.held(0).is_empty() && bench.held(1).is_empty(), "nothing of it comes to the controllers");
}

/// Table 1: a coherence request flushes and is served; a thread that leaves its core has everything flushed (4.2).
#[test]
fn marked_blocks_leave_for_others() {
    let mut bench = Bench::new(LadSpec::default(), 1, 8, uniform());
    bench.begin(0, 1);
    bench.store(0, 0, 1, 1);
    bench.store(0, 1, 2, 1);
    bench.probe(2, 0, 0);
    bench.run();
    assert_eq!(bench.held(0).len(), 1);
    bench.migrate(0, 0, 3, 1);
    assert_eq!(bench.held(0).len(), 2);
    bench.store(3, 2, 3, 1);
    bench.commit(3, 1);
    assert_eq!(bench.recovered(&bench.crashed(), 3), [1, 2, 3]);
    assert_eq!(bench.design.committed(0, 0), 1, "DTX_CID is the thread's, whatever core it ended on");
    assert_eq!(bench.design.committed(0, 3), 0);
}

/// Section 4.6: a DTX of 20 blocks passes a queue of eight entries, and a crash at any step finds all of it or nothing.
#[test]
fn a_transaction_larger_than_the_queue_is_logged() {
    let mut bench = Bench::new(LadSpec::default(), 1, 8, uniform());
    bench.begin(0, 1);
    (0..20).for_each(|number| bench.store(0, number, 100 + number, 1));
    bench.commit(0, 1);
    bench.run();
    bench.images = Some(Vec::new());
    bench.begin(0, 2);
    for number in 0..20 {
        bench.store(0, number, 200 + number, 2);
        if number % 3 == 0 {
            // Evicted, written again: the second entry lies over bytes of the same DTX, and is not logged.
            bench.evict(0, number);
            bench.step();
            bench.store(0, number, 300 + number, 2);
        }
    }
    bench.commit(0, 2);
    let old: Vec<u64> = (0..20).map(|number| 100 + number).collect();
    let new: Vec<u64> = (0..20).map(|number| if number % 3 == 0 { 300 + number } else { 200 + number }).collect();
    let images = bench.images.take().unwrap();
    let recovered: Vec<Vec<u64>> = images.iter().map(|image| bench.recovered(image, 20)).collect();
    let first_new = recovered.iter().position(|values| *values == new).expect("it commits");
    assert!(first_new > 60, "the log takes steps: {first_new}");
    assert!(recovered[..first_new].iter().all(|values| *values == old));
    assert!(recovered[first_new..].iter().all(|values| *values == new));
    assert!(images.iter().zip(&recovered).all(|(image, once)| bench.recovered_twice(image, 20) == *once));
    bench.run();
    assert_eq!((0..20).map(|number| bench.value(number)).collect::<Vec<_>>(), new);
    assert!(bench.held(0).is_empty());
}

/// A DTX_Commit that is late leaves an older entry held while a newer one of its line is released. Written home at the
/// failure, the newer one would be overwritten by recovery.
#[test]
fn a_late_commit_message_does_not_undo_a_later_transaction() {
    let mut bench = Bench::new(LadSpec::default(), 2, 8, row());
    let (near, shared) = (0, 2);
    bench.begin(0, 1);
    bench.store(0, near, 1, 1);
    bench.store(0, shared, 1, 1);
    bench.commit(0, 1);
    let first = numbers(&mut bench, 0).0;
    assert_eq!(bench.held(1), [(shared, first)], "controller 1 is three hops away from core 0");
    bench.begin(3, 2);
    bench.store(3, shared, 2, 2);
    bench.commit(3, 2);
    assert_eq!(bench.held(1), [(shared, first)], "and none from core 3");
    assert_eq!(bench.recovered(&bench.crashed(), 3)[shared as usize], 2);
    assert_eq!(
        bench.recovered(&bench.crashed_in_present_order(), 3)[shared as usize],
        1,
        "today's order would lose it"
    );
}

/// Eight bits of DTX_ID wrap around.
#[test]
fn identifiers_wrap_around() {
    let mut bench = Bench::new(LadSpec::default(), 1, 8, uniform());
    for tx in 1..=600 {
        bench.begin(0, tx);
        bench.store(0, tx % 7, tx, tx);
        bench.commit(0, tx);
        assert_eq!(bench.recovered(&bench.crashed(), 7)[(tx % 7) as usize], tx);
    }
}
