use durasim_types::{Digest, Rng};
use serde::de::value::{Error, MapDeserializer};

use super::BranchKind::{Call, Conditional, Direct, Indirect as IndirectJump, IndirectCall, Return};
use super::*;

const PC: u64 = 0x1_0000;

fn predictor() -> Predictor {
    Predictor::new(&PredictorConfig::default())
}

fn tage_alone() -> Predictor {
    Predictor::new(&PredictorConfig { loop_entries: 0, ..PredictorConfig::default() })
}

fn branch(p: &mut Predictor, pc: u64, taken: bool) -> bool {
    p.predict_and_train(pc, Conditional, taken, pc + 64, pc + 4).mispredicted
}

/// Mispredictions per 1000 in the second half of `count` executions of one branch.
fn misses_per_mille(p: &mut Predictor, count: usize, mut outcome: impl FnMut(usize) -> bool) -> usize {
    let half = count / 2;
    (0..count).filter(|&i| branch(p, PC, outcome(i)) && i >= half).count() * 1000 / half
}

/// Runs a loop whose body holds `inner` random branches; counts mispredictions of the loop branch over `visits`.
fn loop_misses(p: &mut Predictor, trips: usize, inner: u64, visits: usize, rng: &mut Rng) -> usize {
    let mut misses = 0;
    for _ in 0..visits {
        for trip in 1..=trips {
            for i in 0..inner {
                branch(p, PC + 0x100 + 8 * i, rng.below(2) == 0);
            }
            misses += usize::from(branch(p, PC, trip < trips));
        }
    }
    misses
}

fn digest(p: &Predictor) -> String {
    let mut digest = Digest::default();
    p.digest(&mut digest);
    digest.hex()
}

#[test]
fn learns_branches_with_one_direction() {
    for taken in [true, false] {
        let mut p = predictor();
        let misses = (0..1000).filter(|_| branch(&mut p, PC, taken)).count();
        assert!(misses <= 2, "{misses} misses with taken = {taken}");
    }
}

#[test]
fn learns_periodic_patterns_without_the_loop_predictor() {
    let period_7 = [true, true, false, true, false, false, false];
    assert_eq!(misses_per_mille(&mut tage_alone(), 4000, |i| i % 2 == 0), 0);
    assert_eq!(misses_per_mille(&mut tage_alone(), 4000, |i| period_7[i % 7]), 0);
    for trips in [3, 5, 10, 60] {
        let misses = misses_per_mille(&mut tage_alone(), 40_000, |i| i % trips != trips - 1);
        assert_eq!(misses, 0, "loop of {trips}");
    }
}

#[test]
fn a_bimodal_predictor_cannot_learn_alternation() {
    let config = PredictorConfig { history_bits: vec![], loop_entries: 0, ..PredictorConfig::default() };
    assert!(misses_per_mille(&mut Predictor::new(&config), 4000, |i| i % 2 == 0) >= 500);
}

#[test]
fn longer_histories_reach_longer_patterns() {
    let random: Vec<bool> = {
        let mut rng = Rng::new(5);
        (0..400).map(|_| rng.below(2) == 0).collect()
    };
    // 39 of 40 outcomes look alike: a history of 8 bits does not determine the position in the loop.
    let short = PredictorConfig { history_bits: vec![4, 8], loop_entries: 0, ..PredictorConfig::default() };
    let misses = misses_per_mille(&mut Predictor::new(&short), 40_000, |i| i % 40 != 39);
    assert!((24..=26).contains(&misses), "{misses}");
    // A random pattern is learned from some bits of history on, however long it is.
    let misses = misses_per_mille(&mut tage_alone(), 80_000, |i| random[i % random.len()]);
    assert!(misses <= 5, "{misses}");
}

#[test]
fn the_loop_predictor_learns_loops_with_noisy_bodies() {
    let (trips, visits) = (60, 200);
    let mut rng = Rng::new(1);
    let mut with = predictor();
    loop_misses(&mut with, trips, 6, 100, &mut rng);
    let misses_with = loop_misses(&mut with, trips, 6, visits, &mut rng);
    let mut without = tage_alone();
    loop_misses(&mut without, trips, 6, 100, &mut rng);
    let misses_without = loop_misses(&mut without, trips, 6, visits, &mut rng);
    assert!(misses_with <= 10, "{misses_with} misses in {visits} visits");
    assert!(misses_without >= visits, "{misses_without} misses in {visits} visits");
}

#[test]
fn the_loop_predictor_gives_up_loops_that_change() {
    let mut p = predictor();
    let mut rng = Rng::new(2);
    for trips in [20, 33, 20, 47] {
        loop_misses(&mut p, trips, 4, 100, &mut rng);
        let misses = loop_misses(&mut p, trips, 4, 100, &mut rng);
        assert!(misses <= 20, "{misses} misses with {trips} trips");
    }
    let misses: usize =
        (0..200).map(|_| loop_misses(&mut p, 20 + rng.below(20) as usize, 0, 1, &mut Rng::new(0))).sum();
    assert!(misses <= 500, "{misses} misses in 200 visits of unpredictable length");
}

#[test]
fn learns_branches_that_follow_from_others() {
    let mut p = predictor();
    let mut rng = Rng::new(3);
    let mut misses = [0; 3];
    for i in 0..20_000 {
        let (a, b) = (rng.below(2) == 0, rng.below(2) == 0);
        for (branch_number, outcome) in [a, b, a != b].into_iter().enumerate() {
            let missed = branch(&mut p, PC + 16 * branch_number as u64, outcome);
            misses[branch_number] += u32::from(missed && i >= 10_000);
        }
    }
    assert!(misses[0] > 4500 && misses[1] > 4500, "{misses:?}");
    assert!(misses[2] < 100, "{misses:?}");
}

#[test]
fn random_branches_stay_unpredictable() {
    let mut rng = Rng::new(4);
    let fair = misses_per_mille(&mut predictor(), 100_000, |_| rng.below(2) == 0);
    assert!((480..=520).contains(&fair), "{fair}");
    let biased = misses_per_mille(&mut predictor(), 100_000, |_| rng.below(10) != 0);
    assert!((95..=150).contains(&biased), "{biased}");
}

#[test]
fn useful_entries_survive_a_flood_and_age_after_it() {
    let config = PredictorConfig { tagged_entries: 64, useful_ageing_branches: 4096, ..PredictorConfig::default() };
    let mut p = Predictor::new(&config);
    let mut rng = Rng::new(8);
    for _ in 0..50_000 {
        branch(&mut p, PC + 2 * rng.below(4000), rng.below(2) == 0);
    }
    assert_eq!(misses_per_mille(&mut p, 20_000, |i| i % 5 == 0), 0);
}

#[test]
fn direct_branches_miss_the_btb_once() {
    let mut p = predictor();
    for kind in [Direct, Call] {
        let pc = PC + 8 * kind as u64;
        let first = p.predict_and_train(pc, kind, true, 0x2000, pc + 4);
        let second = p.predict_and_train(pc, kind, true, 0x2000, pc + 4);
        assert_eq!(first, Prediction { mispredicted: false, btb_miss: true });
        assert_eq!(second, Prediction::default());
    }
    // A conditional branch that is not taken needs no target; one that is mispredicted pays for that alone.
    assert_eq!(p.predict_and_train(PC + 64, Conditional, false, PC, PC + 68), Prediction::default());
    let first_taken = p.predict_and_train(PC + 64, Conditional, true, PC, PC + 68);
    assert_eq!(first_taken, Prediction { mispredicted: true, btb_miss: false });
}

#[test]
fn the_btb_replaces_the_least_recently_used_way() {
    let mut p = Predictor::new(&PredictorConfig { btb_entries: 16, btb_ways: 2, ..PredictorConfig::default() });
    // 8 sets of 2-byte slots: these share a set.
    let mut jump = |n: u64| p.predict_and_train(PC + 16 * n, Direct, true, 0x2000 + n, 0).btb_miss;
    assert!(jump(0) && jump(1));
    assert!(!jump(0));
    assert!(jump(2), "replaces 1");
    assert!(!jump(0));
    assert!(jump(1));
}

#[test]
fn returns_follow_nested_calls() {
    let mut p = Predictor::new(&PredictorConfig { ras_entries: 8, ..PredictorConfig::default() });
    let mut nest = |depth: u64| {
        for level in 0..depth {
            let kind = if level % 2 == 0 { Call } else { IndirectCall };
            p.predict_and_train(PC + 32 * level, kind, true, PC + 32 * (level + 1), PC + 32 * level + 4);
        }
        let back = |level: u64| PC + 32 * level + 4;
        let wrong = |level: &u64| p.predict_and_train(PC + 30, Return, true, back(*level), 0).mispredicted;
        (0..depth).rev().filter(wrong).count()
    };
    assert_eq!(nest(1), 0);
    assert_eq!(nest(8), 0);
    assert_eq!(nest(12), 4, "the four oldest were overwritten");
    assert_eq!(nest(8), 0);
}

#[test]
fn deep_recursion_returns_to_one_place() {
    let mut p = Predictor::new(&PredictorConfig { ras_entries: 8, ..PredictorConfig::default() });
    for _ in 0..100 {
        p.predict_and_train(PC, Call, true, PC - 64, PC + 4);
    }
    assert!((0..100).all(|_| !p.predict_and_train(PC + 8, Return, true, PC + 4, PC + 10).mispredicted));
}

#[test]
fn indirect_jumps_follow_their_last_target_or_their_history() {
    let targets: Vec<u64> = (0..4).map(|i| 0x4_0000 + 0x48 * i).collect();
    let run = |indirect_entries: u32, next: &mut dyn FnMut(usize) -> usize| {
        let mut p = Predictor::new(&PredictorConfig { indirect_entries, ..PredictorConfig::default() });
        let mut jump = |i: usize| p.predict_and_train(PC, IndirectJump, true, targets[next(i)], PC + 4).mispredicted;
        (0..4000).filter(|&i| jump(i) && i >= 2000).count()
    };
    for entries in [0, 512] {
        assert_eq!(run(entries, &mut |_| 0), 0);
        assert!(run(entries, &mut |i| i / 1000) <= 10);
    }
    assert_eq!(run(0, &mut |i| i % 4), 2000, "the last target is always wrong");
    assert_eq!(run(512, &mut |i| i % 4), 0, "the history determines the next one");
    let mut rng = Rng::new(6);
    let misses = run(512, &mut |_| rng.below(4) as usize);
    assert!((1350..=1650).contains(&misses), "{misses} of 2000 random targets");
}

#[test]
fn folded_histories_equal_those_folded_afresh() {
    let config = PredictorConfig {
        history_bits: vec![1, 3, 10, 11, 12, 33, 150, 1000],
        tagged_entries: 1 << 16,
        tag_bits: 15,
        ..PredictorConfig::default()
    };
    let mut history = History::new(&config);
    let mut rng = Rng::new(9);
    let mut bits = Vec::new();
    for _ in 0..3000 {
        bits.push(rng.below(2) == 1);
        history.push(PC, bits[bits.len() - 1]);
    }
    for (lane, &length) in config.history_bits.iter().enumerate() {
        let fold = |width: usize| {
            let youngest_first = bits.iter().rev().take(length as usize).enumerate();
            youngest_first.fold(0u16, |fold, (age, &bit)| fold ^ u16::from(bit) << (age % width))
        };
        assert_eq!(history.index.value[lane], fold(16), "length {length}");
        assert_eq!(history.tag.value[lane], fold(15), "length {length}");
        assert_eq!(history.tag_narrow.value[lane], fold(14), "length {length}");
    }
}

#[test]
fn equal_streams_give_equal_predictions_and_digests() {
    let run = |last_taken: bool| {
        let mut p = predictor();
        let mut rng = Rng::new(7);
        let mut predictions = Vec::new();
        for _ in 0..50_000 {
            let kind = [Conditional, Conditional, Conditional, Direct, Call, IndirectCall, IndirectJump, Return]
                [rng.below(8) as usize];
            let pc = PC + 2 * rng.below(5000);
            let taken = kind != Conditional || rng.below(3) == 0;
            predictions.push(p.predict_and_train(pc, kind, taken, PC + 2 * rng.below(5000), pc + 4));
        }
        branch(&mut p, PC, last_taken);
        assert_eq!(digest(&p), digest(&p.clone()));
        (predictions, digest(&p))
    };
    let (first, second, other) = (run(true), run(true), run(false));
    assert_eq!(first, second);
    assert_eq!(first.0, other.0);
    assert_ne!(first.1, other.1, "one outcome makes a difference");
}

#[test]
fn extreme_sizes_work() {
    let small = PredictorConfig {
        base_entries: 16,
        history_bits: (1..=15).collect(),
        tagged_entries: 16,
        tag_bits: 4,
        useful_ageing_branches: 1024,
        loop_entries: 4,
        btb_entries: 1,
        btb_ways: 1,
        indirect_entries: 16,
        indirect_history_bits: 1,
        ras_entries: 1,
        compressed_branches_stay_taken: false,
    };
    let large = PredictorConfig {
        base_entries: 1 << 20,
        history_bits: (986..=1000).collect(),
        tagged_entries: 1 << 16,
        tag_bits: 15,
        indirect_entries: 1 << 16,
        indirect_history_bits: 1000,
        ..PredictorConfig::default()
    };
    for config in [small, large] {
        let mut p = Predictor::new(&config);
        let mut rng = Rng::new(10);
        for i in 0..200_000u64 {
            let kind = [Conditional, Direct, Call, IndirectCall, IndirectJump, Return][rng.below(6) as usize];
            p.predict_and_train(u64::MAX - 1 - 2 * rng.below(3000), kind, kind != Conditional || i % 3 == 0, i, i);
        }
        // A loop longer than its 16-bit counter.
        loop_misses(&mut p, 70_000, 0, 5, &mut rng);
    }
}

#[test]
fn refuses_sizes_that_cannot_be_built() {
    let good = PredictorConfig::default;
    assert_eq!(good().check("core.predictor"), Ok(()));
    let cases = [
        ("base_entries", PredictorConfig { base_entries: 1000, ..good() }),
        ("history_bits", PredictorConfig { history_bits: vec![4, 4], ..good() }),
        ("history_bits", PredictorConfig { history_bits: vec![0, 4], ..good() }),
        ("history_bits", PredictorConfig { history_bits: vec![1001], ..good() }),
        ("history_bits", PredictorConfig { history_bits: (1..=16).collect(), ..good() }),
        ("tagged_entries", PredictorConfig { tagged_entries: 8, ..good() }),
        ("tag_bits", PredictorConfig { tag_bits: 16, ..good() }),
        ("useful_ageing_branches", PredictorConfig { useful_ageing_branches: 0, ..good() }),
        ("loop_entries", PredictorConfig { loop_entries: 2, ..good() }),
        ("btb_ways", PredictorConfig { btb_ways: 0, ..good() }),
        ("btb_entries", PredictorConfig { btb_entries: 0, ..good() }),
        ("btb_entries", PredictorConfig { btb_entries: 4098, ..good() }),
        ("btb_entries", PredictorConfig { btb_entries: 12, ..good() }),
        ("indirect_entries", PredictorConfig { indirect_entries: 100, ..good() }),
        ("indirect_history_bits", PredictorConfig { indirect_history_bits: 0, ..good() }),
        ("ras_entries", PredictorConfig { ras_entries: 0, ..good() }),
    ];
    for (field, config) in cases {
        let error = config.check("core.predictor").expect_err(field);
        assert_eq!(error.field, format!("core.predictor.{field}"));
    }
    let unknown = MapDeserializer::<_, Error>::new([("btb_size", 1u32)].into_iter());
    let error = PredictorConfig::deserialize(unknown).expect_err("unknown fields are refused");
    assert!(error.to_string().contains("btb_size"), "{error}");
}
