//! Campaigns over programs that have no transactions: they store, clean and make fences.

use super::text::{AT, COUNT, FENCE, FENCE_W_W, addi, clean, program, repeated, sd};
use durasim_contract::{Variant, path_faults};
use durasim_crash::{CrashRequest, CrashResult, TimelinePhase, crash};
use std::sync::atomic::AtomicBool;

const LINES: i32 = 24;
const LINE: i32 = 64;

/// Each line gets two words, with these instructions between and after them.
fn lines(between: &[u32], after: &[u32]) -> Vec<u32> {
    let mut body = vec![sd(COUNT, AT, 0)];
    body.extend(between);
    body.push(sd(COUNT, AT, 8));
    body.extend(after);
    body.push(addi(AT, AT, LINE));
    repeated(LINES, &body)
}

fn campaign(body: &[u32], domain: &str, faults: &[&str], planted: Option<&str>) -> CrashResult {
    trials(body, domain, faults, planted, None)
}

/// All trials, or one of them once more.
fn trials(body: &[u32], domain: &str, faults: &[&str], planted: Option<&str>, replay: Option<&str>) -> CrashResult {
    let elf = program(body);
    let request = serde_json::json!({
        "machine": "tiny",
        "design": "opt",
        "domain": domain,
        "elf": elf.path(),
        "elf_name": "lines",
        "seed": 1,
        "workload": "lines",
        "points": "all",
        "faults": faults,
        "variants": 4,
        "planted": planted,
        "replay": replay,
        "history": false,
        "recover_args": [],
        "check_args": ["check"],
        "again_args": ["again"],
        "workers": 1,
    });
    let request: CrashRequest = serde_json::from_value(request).unwrap();
    let mut variants = durasim_designs::VARIANTS.to_vec();
    let variant: &mut Variant = variants.iter_mut().find(|variant| variant.name == "opt").unwrap();
    variant.path_faults = path_faults::ALL;
    crash(&request, &variants, &AtomicBool::new(false), &mut |_, _| true).unwrap()
}

const ALL: &[&str] = &["clean", "torn", "reorder", "energy"];
const CLEAN: u32 = clean(AT);

#[test]
fn a_sound_machine_keeps_what_fences_have_promised() {
    for domain in ["adr", "media", "eadr", "bbb", "nv-llc"] {
        for fence in [FENCE, FENCE_W_W] {
            let result = campaign(&lines(&[CLEAN, fence], &[CLEAN, fence]), domain, ALL, None);
            assert_eq!((result.violations, &result.failures[..]), (0, &[][..]), "{domain}");
            assert!(result.judged_by["bytes"] >= LINES as u64, "{domain}: {:?}", result.judged_by);
        }
    }
}

#[test]
fn programs_that_leave_fences_or_cleans_out_are_promised_nothing() {
    for domain in ["adr", "media"] {
        for (between, after) in [(&[CLEAN][..], &[CLEAN][..]), (&[FENCE], &[FENCE]), (&[], &[])] {
            let body = lines(between, after);
            let sound = campaign(&body, domain, ALL, None);
            let faulty = campaign(&body, domain, ALL, Some("path-acknowledged-on-sending"));
            assert_eq!((sound.violations, faulty.violations), (0, 0), "{domain}");
        }
    }
}

#[test]
fn a_machine_that_acknowledges_on_sending_is_caught_by_the_bytes() {
    for domain in ["adr", "media"] {
        let body = lines(&[CLEAN, FENCE], &[CLEAN, FENCE]);
        let result = campaign(&body, domain, &["clean"], Some("path-acknowledged-on-sending"));
        assert!(result.violations > 0, "{domain}");
        assert!(result.failures.iter().all(|failure| failure.oracle == "bytes"), "{domain}: {:?}", result.failures);
    }
}

/// Its timeline has the store, the clean and the fence that was let through too early, in this order.
#[test]
fn the_timeline_of_a_broken_promise_shows_the_fence() {
    let body = lines(&[CLEAN, FENCE], &[CLEAN, FENCE]);
    let planted = Some("path-acknowledged-on-sending");
    let found = campaign(&body, "adr", &["clean"], planted);
    let replayed = trials(&body, "adr", &["clean"], planted, Some(&found.failures[0].id));
    assert_eq!(replayed.failures[0].message, found.failures[0].message);
    let timeline = replayed.timeline.expect("a replay has one");
    let Some(TimelinePhase::Run { events, .. }) = timeline.phases.first() else { panic!("a run comes first") };
    let places = ["store", "clean", "fence"].map(|what| events.iter().position(|event| event.what == what));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}");
}

/// The fence that covers the second word is left out: the first word is promised alone.
#[test]
fn the_promise_is_held_word_by_word() {
    let body = lines(&[CLEAN, FENCE], &[CLEAN]);
    assert_eq!(campaign(&body, "adr", ALL, None).violations, 0);
    let unfenced = |fault| campaign(&lines(&[CLEAN], &[CLEAN]), "adr", &["reorder"], fault);
    let result = unfenced(None);
    assert!(result.trials_by_fault["reorder"] > 20, "{:?}", result.trials_by_fault);
    assert_eq!(result.violations, 0, "cleans are dropped, and no fence has promised them");
}
