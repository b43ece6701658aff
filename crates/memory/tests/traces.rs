//! Traces of commands keep all times of their media, as an independent checker sees them, and the checker sees what is
//! wrong with traces that do not.

use crate::common::{KINDS, controller_of, drawn, drawn_media, every_rule_counts, traced};
use durasim_memory::checker::{Violation, violations};
use durasim_memory::{Command, CommandKind, DdrTiming, MediaConfig, MediaKind, MemoryConfig, PagePolicy};
use durasim_types::Rng;
use std::collections::BTreeSet;

#[test]
fn random_requests_of_all_kinds_keep_all_rules() {
    for kind in KINDS {
        let (mut commands, mut kinds) = (0, BTreeSet::new());
        for seed in 0..100 {
            let config = drawn(kind, &mut Rng::new(seed));
            let trace = traced(&config, seed, 600);
            let found = violations(&config.media, &trace);
            assert_eq!(found.first(), None, "seed {seed} of {kind:?}, {config:?}");
            commands += trace.len();
            kinds.extend(trace.iter().map(|command| command.kind));
            let controllers: BTreeSet<u16> = trace.iter().map(|command| command.controller).collect();
            assert!(controllers.iter().all(|&controller| controller < config.controllers));
        }
        let expected = match kind {
            MediaKind::Ddr3 | MediaKind::Ddr4 => 6,
            MediaKind::PmemModule => 4,
            MediaKind::Fixed | MediaKind::SttRam => 2,
        };
        assert_eq!(kinds.len(), expected, "{kinds:?}");
        assert!(commands > 30_000, "{commands} commands");
    }
}

/// Media in which every rule counts, of one or two ranks.
fn strict(kind: MediaKind, ranks: u32, policy: PagePolicy) -> MediaConfig {
    let mut media = MediaConfig::of(kind);
    media.timing = Some(every_rule_counts(kind).to_config());
    media.ranks = Some(ranks);
    media.rank_switch_ps = Some(2 * 1250);
    media.banks = Some(8);
    media.row_bytes = Some(256);
    media.page_policy = Some(policy);
    media
}

/// The complaints of the checker about a model with the times of `model` when the times of `truth` are to be kept.
fn judged(model: &MediaConfig, truth: &MediaConfig) -> Vec<Violation> {
    let mut found = Vec::new();
    for seed in 0..5 {
        let config = MemoryConfig { interleave_bytes: 64, ..controller_of(model.clone()) };
        found.extend(violations(truth, &traced(&config, seed, 1500)));
    }
    found
}

/// A model that is one clock too fast in one of its times is found out, and by the rule of that time.
#[test]
fn every_time_that_is_a_clock_too_short_is_noticed() {
    for kind in [MediaKind::Ddr3, MediaKind::Ddr4] {
        for policy in [PagePolicy::Open, PagePolicy::Closed] {
            let truth = strict(kind, 2, policy);
            assert_eq!(judged(&truth, &truth), []);
            for &name in DdrTiming::NAMES {
                // Without groups of banks the times of different groups are never asked for.
                if kind == MediaKind::Ddr3 && name.ends_with("_s_ps") {
                    continue;
                }
                let mut wrong = every_rule_counts(kind);
                let time = wrong.named_mut(name).unwrap();
                let rules: &[&str] = match name {
                    "t_ck_ps" => &["commands begin with a clock"],
                    "t_cas_ps" => &["the data bus turns around"],
                    "t_cwl_ps" => &["tWR", "tRP"],
                    "t_burst_ps" => &["the data bus is free", "the data bus changes ranks"],
                    "t_rcd_ps" => &["tRCD"],
                    "t_rp_ps" => &["tRP"],
                    // With auto-precharge the bank closes by itself: what comes too early is the next ACT.
                    "t_ras_ps" => &["tRAS", "tRP"],
                    "t_wr_ps" => &["tWR", "tRP"],
                    "t_rtp_ps" => &["tRTP", "tRP"],
                    "t_ccd_s_ps" => &["tCCD_S"],
                    "t_ccd_l_ps" => &["tCCD_L"],
                    "t_rrd_s_ps" => &["tRRD_S"],
                    "t_rrd_l_ps" => &["tRRD_L"],
                    "t_faw_ps" => &["tFAW"],
                    "t_wtr_s_ps" => &["tWTR_S"],
                    "t_wtr_l_ps" => &["tWTR_L"],
                    "t_rtw_ps" => &["the data bus turns around"],
                    "t_refi_ps" => &["tREFI between refreshes"],
                    "t_rfc_ps" => &["tRFC"],
                    _ => panic!("no rule for {name}"),
                };
                match name {
                    // Refreshes may come early, and one of them may be postponed.
                    "t_refi_ps" => *time *= 2,
                    "t_ck_ps" => *time -= 50,
                    _ => *time -= 1250,
                }
                let model = MediaConfig { timing: Some(wrong.to_config()), ..truth.clone() };
                let found: BTreeSet<&str> = judged(&model, &truth).iter().map(|violation| violation.rule).collect();
                assert!(rules.iter().any(|rule| found.contains(rule)), "{kind:?} {policy:?} {name}: {found:?}");
            }
            let model = MediaConfig { rank_switch_ps: Some(1250), ..truth.clone() };
            let found = judged(&model, &truth);
            assert!(found.iter().all(|v| v.rule == "the data bus changes ranks") && !found.is_empty(), "{found:?}");
        }
    }
}

#[test]
fn media_without_rows_that_are_too_fast_are_noticed() {
    for kind in [MediaKind::Fixed, MediaKind::SttRam] {
        let mut truth = MediaConfig::of(kind);
        truth.banks = Some(4);
        truth.complete();
        assert_eq!(judged(&truth, &truth), []);
        let less = |ns: Option<u64>| ns.map(|ns| ns - 1);
        let wrong = [
            (MediaConfig { read_latency_ns: less(truth.read_latency_ns), ..truth.clone() }, "the bank is free"),
            (MediaConfig { write_latency_ns: less(truth.write_latency_ns), ..truth.clone() }, "the bank is free"),
            (MediaConfig { bandwidth_mb_per_s: Some(12_900), ..truth.clone() }, "the data bus is free"),
            (MediaConfig { banks: Some(8), ..truth.clone() }, "the bank exists"),
        ];
        for (model, rule) in wrong {
            let found = judged(&model, &truth);
            assert!(found.iter().any(|violation| violation.rule == rule), "{kind:?} {rule}: {:?}", found.first());
        }
        if kind == MediaKind::SttRam {
            let found = judged(&MediaConfig { rank_switch_ps: Some(2499), ..truth.clone() }, &truth);
            assert!(!found.is_empty() && found.iter().all(|v| v.rule == "the data bus changes ranks"));
        }
    }
}

/// The rules that a trace breaks once something is done to its `n`-th command of a kind.
fn spoilt(media: &MediaConfig, kind: CommandKind, spoil: impl Fn(&mut Vec<Command>, usize)) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    for seed in 0..6 {
        let trace = traced(&controller_of(media.clone()), seed, 400);
        assert_eq!(violations(media, &trace), []);
        let places: Vec<usize> = (0..trace.len()).filter(|&n| trace[n].kind == kind).collect();
        // With few rows some traces have no conflict.
        let Some(&place) = places.get(places.len() / 2) else { continue };
        let mut trace = trace;
        spoil(&mut trace, place);
        found.extend(violations(media, &trace).iter().map(|violation| violation.rule));
    }
    found
}

#[test]
fn commands_that_are_lost_moved_or_changed_are_noticed() {
    let media = strict(MediaKind::Ddr4, 2, PagePolicy::Open);
    let remove = |trace: &mut Vec<Command>, n: usize| {
        trace.retain({
            let gone = trace[n];
            move |&command| command != gone
        })
    };
    assert!(spoilt(&media, CommandKind::Act, remove).contains("the row is open"));
    assert!(spoilt(&media, CommandKind::Pre, remove).contains("ACT finds no row open"));
    assert!(spoilt(&media, CommandKind::Ref, remove).contains("tREFI between refreshes"));
    assert!(spoilt(&media, CommandKind::PreAll, remove).contains("a refresh finds all rows closed"));
    let other_row = |trace: &mut Vec<Command>, n: usize| trace[n].row += 1;
    assert!(spoilt(&media, CommandKind::Rd, other_row).contains("the row is open"));
    assert!(spoilt(&media, CommandKind::Act, other_row).contains("the row is open"));
    let other_bank = |trace: &mut Vec<Command>, n: usize| trace[n].bank = 8;
    assert!(spoilt(&media, CommandKind::Wr, other_bank).contains("the bank exists"));
    let other_rank = |trace: &mut Vec<Command>, n: usize| trace[n].rank = 2;
    assert!(spoilt(&media, CommandKind::Act, other_rank).contains("the rank exists"));
    let no_column = |trace: &mut Vec<Command>, n: usize| trace[n].column = 4;
    assert!(spoilt(&media, CommandKind::Rd, no_column).contains("the column exists"));
    let off_the_clock = |trace: &mut Vec<Command>, n: usize| trace[n].at_ps += 1;
    assert!(spoilt(&media, CommandKind::Wr, off_the_clock).contains("commands begin with a clock"));
    let twice = |trace: &mut Vec<Command>, n: usize| trace.insert(n, trace[n]);
    assert!(spoilt(&media, CommandKind::Pre, twice).contains("one command in a clock"));
    let closed = strict(MediaKind::Ddr3, 1, PagePolicy::Closed);
    let stays_open = |trace: &mut Vec<Command>, n: usize| trace[n].auto_precharge = false;
    let found = spoilt(&closed, CommandKind::Wr, stays_open);
    assert!(found.contains("ACT finds no row open"), "{found:?}");
    let early = |trace: &mut Vec<Command>, n: usize| trace[n].at_ps -= 3 * 1250;
    assert!(
        spoilt(&media, CommandKind::Act, early).contains("tRP") || spoilt(&media, CommandKind::Pre, early).len() > 1
    );
}

#[test]
fn a_trace_belongs_to_the_memory_that_was_asked_for_it() {
    let config = controller_of(drawn_media(MediaKind::Ddr4, &mut Rng::new(1)));
    let mut memory = crate::common::memory(&config);
    memory.read(durasim_types::LineAddr(1), 0);
    assert_eq!(memory.take_trace(0), [], "no trace was requested");
    memory.start_trace();
    memory.read(durasim_types::LineAddr(2), 100_000);
    let mut copy = memory.clone();
    copy.read(durasim_types::LineAddr(3), 200_000);
    assert_eq!(copy.take_trace(0), []);
    assert!(memory.take_trace(0).iter().any(|command| command.kind == CommandKind::Rd));
    assert_eq!(memory.take_trace(0), [], "it was taken");
}
