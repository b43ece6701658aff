//! Versions of a line in the caches, which lines leave caches and eWPQ first, and what a search costs.

use super::Hercules;
use super::spec::HerculesSpec;
use crate::testing::{Bench, word};
use durasim_contract::{AbortCause, Action, Actions, Ctx, Evict, Fill, Gate, LevelId, LineTag, Merge, Store, Wait};
use durasim_types::{CoreId, TxId};

const NONE: LineTag = LineTag::NONE;
const ONE: LineTag = LineTag(1);
const TWO: LineTag = LineTag(2);

/// Shares of the three levels in percent, of sets of four ways.
fn bench(l2: u32, llc: u32) -> Bench<Hercules> {
    let spec = HerculesSpec {
        tx_id_bits: 4,
        ewpq_entries: 2,
        ewpq_extension_factor: 2,
        log_zone_bytes: 64 << 10,
        trans_tag_percent_l2: l2,
        trans_tag_percent_llc: llc,
        ..HerculesSpec::default()
    };
    bench_of(spec)
}

fn bench_of(spec: HerculesSpec) -> Bench<Hercules> {
    Bench::new(spec, 2)
}

/// The way that leaves a set; the lowest rank is the least recently used line.
fn victim(bench: &mut Bench<Hercules>, level: LevelId, incoming: LineTag, set: [(LineTag, u32); 4]) -> Option<usize> {
    let (tags, ranks) = (set.map(|(tag, _)| tag), set.map(|(_, rank)| rank));
    bench.design.victim(level, incoming, true, &tags, &ranks)
}

/// Listing 4: the normal LRU of the L1 is what the machine does by itself.
#[test]
fn the_l1d_replaces_the_least_recently_used_line() {
    let mut bench = bench(50, 25);
    for incoming in [NONE, TWO] {
        for set in [[(ONE, 0), (NONE, 1), (NONE, 2), (ONE, 3)], [(ONE, 0), (ONE, 1), (ONE, 2), (ONE, 3)]] {
            assert_eq!(victim(&mut bench, LevelId::L1d, incoming, set), None);
        }
    }
}

/// Section 4.1 has shares at all levels. An L1D with fewer TransTags than lines is still plain LRU except for the line
/// that gives up its TransTag; the rule says nothing about a line without one.
#[test]
fn a_share_of_the_l1d_makes_the_oldest_tagged_line_leave() {
    for (percent, tagged_max) in [(1, 1), (25, 1), (50, 2), (75, 3), (100, 4)] {
        let mut bench = bench_of(HerculesSpec { trans_tag_percent_l1d: percent, ..HerculesSpec::default() });
        assert_eq!(bench.design.tag_limit(LevelId::L1d), Some(tagged_max));
        for tagged in 0..=4 {
            // The oldest lines are those without tags, the oldest tagged one is in the way before them.
            let set = [3, 2, 1, 0].map(|rank| (if rank >= 4 - tagged { ONE } else { NONE }, rank));
            let expected = (percent < 100 && tagged >= tagged_max).then(|| tagged as usize - 1);
            assert_eq!(victim(&mut bench, LevelId::L1d, TWO, set), expected, "{percent} %, {tagged} tagged");
            assert_eq!(victim(&mut bench, LevelId::L1d, NONE, set), None, "{percent} %, {tagged} tagged, plain");
        }
    }
}

/// Listing 4: as long as TransTags are left, the oldest line without one goes, be older ones of transactions there or not.
#[test]
fn transactional_lines_stay_until_the_ratio_is_reached() {
    for (percent, tagged_max) in [(25, 1), (50, 2), (75, 3)] {
        for level in [LevelId::L2, LevelId::Llc] {
            let mut bench = bench(percent, percent);
            for tagged in 0..=4 {
                // The oldest lines are those of transactions, the very oldest is way 3.
                let set = [3, 2, 1, 0].map(|rank| (if rank < tagged { ONE } else { NONE }, rank));
                let oldest_plain = (tagged < 4).then(|| 3 - tagged as usize);
                let expected = if tagged < tagged_max { oldest_plain } else { Some(3) };
                let case = format!("{percent} % of {level:?}, {tagged} tagged");
                assert_eq!(victim(&mut bench, level, TWO, set), expected, "{case}");
                // A line that brings no TransTag takes none away.
                let expected = oldest_plain.or(Some(3));
                assert_eq!(victim(&mut bench, level, NONE, set), expected, "{case}, plain");
            }
        }
    }
}

/// Section 4.1: a set never has more transactional lines than TransTags, even while ways are free.
#[test]
fn a_set_with_free_ways_obeys_the_ratio_too() {
    let mut bench = bench(50, 25);
    let mut choose = |level, incoming, tags: &[LineTag; 4]| {
        bench.design.victim(level, incoming, false, tags, &[u32::MAX, 1, 0, u32::MAX])
    };
    assert_eq!(choose(LevelId::L2, TWO, &[NONE, ONE, ONE, NONE]), Some(2));
    assert_eq!(choose(LevelId::L2, TWO, &[NONE, ONE, NONE, NONE]), None, "a TransTag is left");
    assert_eq!(choose(LevelId::L2, NONE, &[NONE, ONE, ONE, NONE]), None, "it needs no TransTag");
    assert_eq!(choose(LevelId::Llc, TWO, &[NONE, ONE, NONE, NONE]), Some(1));
}

#[test]
fn what_is_pinned_stays() {
    let mut bench = bench(25, 25);
    let set = [(ONE, u32::MAX), (NONE, 2), (NONE, u32::MAX), (NONE, 3)];
    assert_eq!(victim(&mut bench, LevelId::L2, NONE, set), Some(1));
    let set = [(ONE, u32::MAX), (ONE, 2), (NONE, 0), (NONE, 1)];
    assert_eq!(victim(&mut bench, LevelId::L2, TWO, set), Some(1));
}

/// Section 4.2: the least recently used entry goes to the extension area. A hit takes its entry out, so an entry that comes again is
/// the youngest.
#[test]
fn the_oldest_entry_of_the_ewpq_is_spilled() {
    let mut bench = bench(50, 25);
    bench.begin(0, 1);
    for number in 0..4 {
        bench.store(0, word(number, 0), 5, Some(1), &mut LineTag(0));
    }
    let evict = |bench: &mut Bench<Hercules>, number| assert!(matches!(bench.evict(number, ONE, 5), Evict::To { .. }));
    let reload = |bench: &mut Bench<Hercules>, number| {
        assert!(matches!(bench.fill(0, number, Some(1)), Fill::From { tag: ONE, .. }));
        ["ewpq_hits", "extension_hits", "ewpq_spills"].map(|name| bench.counter(&format!("hercules.{name}")))
    };
    evict(&mut bench, 0);
    evict(&mut bench, 1);
    assert_eq!(reload(&mut bench, 0), [1.0, 0.0, 0.0]);
    evict(&mut bench, 0);
    // Two entries are full; 1 is the oldest now.
    evict(&mut bench, 2);
    assert_eq!(reload(&mut bench, 0), [2.0, 0.0, 1.0]);
    assert_eq!(reload(&mut bench, 2), [3.0, 0.0, 1.0]);
    assert_eq!(reload(&mut bench, 1), [3.0, 1.0, 1.0]);
}

/// Listing 2, "write-allocate at L1": a dirty line that is no transaction's, or that of a transaction that has committed,
/// goes down before a transaction writes to it; its own line stays.
#[test]
fn an_older_dirty_version_goes_down_before_a_transactional_store() {
    let mut bench = bench(50, 25);
    bench.begin(0, 1);
    let cx = Ctx { core: CoreId(0), thread: 0, cycle: 0, instructions: 0 };
    let mut copies_down = |tx: Option<u64>, dirty, tag: LineTag| {
        let (mut out, mut tag) = (Actions::default(), tag);
        let store = Store { addr: word(3, 1), len: 8, data: 7, tx: tx.map(TxId), before: &[0; 64], dirty };
        assert_eq!(bench.design.store(&cx, &store, &mut tag, &mut out), Gate::Done);
        (out.as_slice().contains(&Action::CopyDown(word(3, 0).line())), tag)
    };
    assert_eq!(copies_down(Some(1), true, NONE), (true, ONE));
    assert_eq!(copies_down(Some(1), false, NONE), (false, ONE), "the version below is as new");
    assert_eq!(copies_down(Some(1), true, ONE), (false, ONE), "it has gone down before");
    assert_eq!(copies_down(None, true, NONE), (false, NONE));
}

/// Listing 2, "write victim at L2 or L3".
#[test]
fn an_older_version_leaves_a_level_before_an_uncommitted_one_comes() {
    let mut bench = bench(50, 25);
    let mut merge = |resident, incoming| bench.design.merge(LevelId::L2, word(0, 0).line(), resident, incoming);
    assert_eq!(merge(NONE, ONE), Merge::PushDownFirst);
    assert_eq!(merge(ONE, ONE), Merge::Overwrite, "a version of the same transaction");
    assert_eq!(merge(NONE, NONE), Merge::Overwrite);
}

/// Listing 3 and section 5: a search of the eWPQ takes 10 cycles beside the load from the home address. Home data may be
/// used only after a search of the extension area, if that holds anything (section 4.2).
#[test]
fn a_miss_searches_beside_the_load_from_home() {
    let mut bench = bench(50, 25);
    bench.begin(0, 1);
    for number in 0..3 {
        bench.store(0, word(number, 0), 5, Some(1), &mut LineTag(0));
    }
    bench.evict(0, ONE, 5);
    bench.evict(1, ONE, 5);
    assert_eq!(bench.fill(0, 9, None), Fill::Home { search_cycles: 10, serial: false });
    bench.evict(2, ONE, 5);
    let Fill::Home { search_cycles, serial: true } = bench.fill(0, 9, None) else { panic!("the extension is in use") };
    assert!(search_cycles >= 10 + bench.spec.extension_search_first_cycles);
    let Fill::From { search_cycles, .. } = bench.fill(0, 2, Some(1)) else { panic!("the eWPQ has it") };
    assert_eq!(search_cycles, 10, "what the eWPQ has is not looked for in its extension");
    let Fill::From { search_cycles, .. } = bench.fill(0, 0, Some(1)) else { panic!("the extension has it") };
    assert!(search_cycles >= 10 + bench.spec.extension_search_first_cycles);
}

/// Section 4.2: every three million instructions.
#[test]
fn the_migration_is_asked_for_each_period() {
    let mut bench = bench(50, 25);
    let period = bench.spec.migration_period_instructions;
    assert_eq!(period, 3_000_000);
    let cx = Ctx { core: CoreId(0), thread: 0, cycle: 0, instructions: 0 };
    let timers = |out: &Actions| -> Vec<u64> {
        let timer = |action: &Action| match action {
            Action::InstructionTimer { after_instructions, .. } => Some(*after_instructions),
            _ => None,
        };
        out.as_slice().iter().filter_map(timer).collect()
    };
    let mut out = Actions::default();
    bench.design.tx_begin(&cx, TxId(1), &mut out);
    assert_eq!(timers(&out), [period], "the first transaction starts it");
    for _ in 0..3 {
        out.clear();
        bench.design.woken(&cx, super::MIGRATE, &mut out);
        assert_eq!(timers(&out), [period]);
    }
}

/// Section 5: 10 cycles at commit and abort; Figure 11 goes from 0 to 90.
#[test]
fn the_reset_of_states_takes_as_long_as_is_set() {
    for state_reset_cycles in [0, 10, 90] {
        let mut bench = bench_of(HerculesSpec { state_reset_cycles, ..HerculesSpec::default() });
        let expected = Gate::After(Wait::Cycles(state_reset_cycles));
        bench.begin(0, 1);
        assert_eq!(bench.call(0, |design, cx, out| design.tx_commit(cx, TxId(1), out)), expected);
        bench.begin(0, 2);
        let why = AbortCause::Requested(1);
        assert_eq!(bench.call(0, |design, cx, out| design.tx_abort(cx, TxId(2), why, out)), expected);
    }
}
