//! Short random runs of every variant on machines of many shapes, thousands in all: loads return the newest bytes, nothing
//! panics or gets stuck, and every crash recovers to what was acknowledged.
//!
//! `make test-all` tries 1,500 seeds of each variant and kind. `DURASIM_SEEDS=100000 cargo test -p durasim-crash --test
//! random` tries 100,000, and `DURASIM_VARIANT=tc` no other variant with hardware of its own.

mod common;

use common::{is_of_its_own, is_wanted, seeds, sweep};
use durasim_contract::{Hooks, Variant};
use durasim_designs::VARIANTS;
use durasim_random::{Effort, Setting, Tally, has_hardware_transactions};
use durasim_test_plans::test_plan;
use durasim_types::Domain;

fn report(variant: &Variant, tally: &Tally) {
    let Tally { ops, loads, committed, aborted, aborted_by_others, pending, conditionals, switches, findings, .. } =
        tally;
    println!(
        "{}: {ops} operations, {loads} loads, {committed} commits, {aborted} aborts ({aborted_by_others} by others), \
         {pending} waits, {conditionals:?} store-conditionals done and not, {switches:?} switches",
        variant.name
    );
    println!("{}: {findings:?}", variant.name);
}

/// The variants with hardware of their own; `DURASIM_VARIANT` names the one that is wanted.
fn hardware_variants() -> impl Iterator<Item = &'static Variant> {
    VARIANTS
        .iter()
        .filter(|variant| variant.hardware.hooks != Hooks::NONE && is_of_its_own(variant) && is_wanted(variant))
}

/// The seeds of a variant: variants over the same hardware share them, as what differs is the domain alone.
fn shared_seeds(variant: &Variant, usual: u64) -> u64 {
    let sharing =
        VARIANTS.iter().filter(|other| other.hardware.name == variant.hardware.name && is_of_its_own(other)).count();
    seeds(usual / sharing as u64)
}

/// Of the variants without hardware of their own, which differ in software alone, the one that runs on every domain.
fn plain_variant() -> &'static Variant {
    let plain = || VARIANTS.iter().filter(|variant| variant.hardware.hooks == Hooks::NONE);
    let variant = plain().max_by_key(|variant| variant.domains.len()).expect("there is a design without hardware");
    assert!(plain().flat_map(|variant| variant.domains).all(|domain| variant.domains.contains(domain)));
    variant
}

#[test]
fn hardware_designs_survive_everything() {
    for variant in hardware_variants() {
        let seeds = shared_seeds(variant, 160);
        let effort = Effort { ops: 250, crash_percent: 10, cut_percent: 4, power_cycles: 2 };
        let tally = sweep(seeds, |seed| Setting::drawn(*variant, seed), effort);
        report(variant, &tally);
        let findings = &tally.findings;
        assert!(tally.commands > 10 * seeds, "the checker saw {} commands to media", tally.commands);
        assert!(findings.images > 10 * seeds && tally.committed > seeds);
        assert!(findings.cuts > seeds || has_hardware_transactions(variant));
        // The rare situations are not rare here.
        assert!(
            (tally.aborted_by_hardware > 0) != test_plan(variant.name).random.never_aborts,
            "transactions that found structures full: {}",
            tally.aborted_by_hardware
        );
        let often = |marks: &[&'static str], runs_for_one: u64| {
            for mark in marks {
                let met = findings.marks.get(mark).copied().unwrap_or(0);
                assert!(met > seeds / runs_for_one, "{mark}: {:?}", findings.marks);
            }
        };
        often(test_plan(variant.name).random.common_marks, 10);
        often(test_plan(variant.name).random.rare_marks, 20);
    }
}

#[test]
fn machines_without_design_keep_the_newest_bytes() {
    let variant = plain_variant();
    let seeds = seeds(200);
    let tally = sweep(seeds, |seed| Setting::drawn(*variant, seed), EFFORT_WITHOUT_DESIGN);
    report(variant, &tally);
    assert!(tally.findings.reordered > seeds / 2, "{} images of unfenced cleans", tally.findings.reordered);
    let persistent = |counter: &str| tally.stats.get(&format!("persistent_writes.{counter}")).unwrap_or(0.0);
    for counter in ["writes", "fenced", "whole_lines", "from_memory"] {
        assert!(persistent(counter) > seeds as f64, "{counter} is rare");
    }
}

const EFFORT_WITHOUT_DESIGN: Effort = Effort { ops: 400, crash_percent: 5, cut_percent: 0, power_cycles: 2 };

#[test]
fn caches_of_many_cores_are_coherent() {
    let (variant, seeds) = (plain_variant(), seeds(300));
    let tally = sweep(seeds, |seed| Setting::drawn_for_many(*variant, seed), EFFORT_WITHOUT_DESIGN);
    report(variant, &tally);
    let stats = &tally.stats;
    for counter in ["coherence.transfers", "coherence.invalidations", "coherence.upgrades"] {
        assert!(stats.get(counter).is_some_and(|n| n > 10.0 * seeds as f64), "{counter} is rare");
    }
    for counter in ["persistent_writes.writes", "persistent_writes.whole_lines", "persistent_writes.lock_waits"] {
        assert!(stats.get(counter).is_some_and(|n| n > seeds as f64), "{counter} is rare");
    }
    for counter in ["bbb.moved", "bbb.full", "bbb.forced", "bbb.dropped"] {
        assert!(stats.get(counter).is_some_and(|n| n > seeds as f64 / 2.0), "{counter} is rare");
    }
    assert!(stats.get("interconnect.hops").is_some_and(|n| n > 10.0 * seeds as f64), "meshes are rare");
    assert!(variant.domains.contains(&Domain::NvLlc));
    assert!(stats.get("events.cache_arrival").is_some_and(|n| n > seeds as f64));
    assert!(tally.conditionals.iter().all(|n| *n > seeds / 4) && tally.findings.images > seeds);
    assert!(tally.findings.reordered > seeds / 2, "{} images of unfenced cleans", tally.findings.reordered);
}

#[test]
fn hardware_designs_of_many_cores_survive_everything() {
    for variant in hardware_variants() {
        let seeds = shared_seeds(variant, 100);
        let effort = Effort { ops: 400, crash_percent: 6, cut_percent: 4, power_cycles: 2 };
        let tally = sweep(seeds, |seed| Setting::drawn_for_many(*variant, seed), effort);
        report(variant, &tally);
        assert!(tally.findings.images > 5 * seeds && tally.committed > seeds);
        assert!(tally.findings.cuts > seeds || has_hardware_transactions(variant));
        assert!(
            (tally.pending > seeds || test_plan(variant.name).random.never_waits)
                && tally.switches[1] > seeds
                && tally.conditionals.iter().all(|n| *n > seeds / 4)
        );
        if variant.hardware.hooks.has(Hooks::LOG) {
            assert!(tally.logged_ahead > seeds, "hardly a flush left ahead of a store");
        }
        if variant.hardware.hooks.has(Hooks::PROBE) && !test_plan(variant.name).random.probes_isolate_nothing {
            assert!(tally.aborted_by_others > seeds, "hardly a transaction lost a line to another core");
        }
    }
}
