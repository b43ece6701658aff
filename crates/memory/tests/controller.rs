//! Queues of a controller in front of media with fixed latencies, and the state after many accesses.

use crate::common::{KINDS, drawn, write};
use durasim_contract::Origin;
use durasim_memory::{EntryUntil, Memory, MemoryConfig, Step, Write, WritePolicy, WriteToken};
use durasim_types::{LineAddr, Pages, PhysAddr, Picos, Rng};

/// A token of a party beside the controller.
fn token(number: u64) -> WriteToken {
    WriteToken::new(number, Origin::Controller)
}

fn controller(entries: u32, banks: u32) -> Memory {
    let mut config = MemoryConfig { capacity_mib: 1, ..MemoryConfig::default() };
    config.controller.write_queue_entries = entries;
    config.media.banks = Some(banks);
    Memory::new(&config, Pages::new(PhysAddr(0), 1 << 20))
}

fn drain(c: &mut Memory) -> Vec<Step> {
    std::iter::from_fn(|| c.step(Picos::MAX)).collect()
}

#[test]
fn a_read_takes_its_latency_and_sees_queued_data() {
    let mut c = controller(4, 1);
    assert_eq!(c.read(LineAddr(3), 1000).done_ps, 151_000);
    assert!(c.submit(write(5, 9), 200_000));
    let read = c.read(LineAddr(5), 200_000);
    assert_eq!((read.data, read.done_ps), ([9; 64], 200_000), "a queued line is forwarded at once");
}

#[test]
fn a_write_is_ready_at_its_latency_and_not_a_picosecond_earlier() {
    let mut c = controller(4, 1);
    assert!(c.submit(write(5, 9), 1000));
    assert_eq!(c.step(100_999), None);
    assert_eq!(c.media(0).line(LineAddr(5)), [0; 64]);
    let step = c.step(101_000);
    assert!(matches!(step, Some(Step::Written { at_ps: 101_000, .. })), "{step:?}");
    assert_eq!(c.media(0).line(LineAddr(5)), [9; 64]);
}

#[test]
fn a_full_queue_accepts_when_an_entry_leaves() {
    let mut c = controller(2, 1);
    assert!(c.submit(write(1, 1), 0));
    assert!(c.submit(write(2, 2), 0));
    assert!(!c.submit(write(3, 3), 0));
    assert_eq!(c.peek(LineAddr(3)), [3; 64], "a waiting write is visible to reads");
    let steps = drain(&mut c);
    assert!(matches!(steps[0], Step::Written { at_ps: 100_000, .. }));
    assert!(matches!(steps[1], Step::Accepted { at_ps: 100_000, .. }));
    assert_eq!(steps.len(), 4);
    assert_eq!(c.stats(0).0.media_write_bytes[0], 192);
}

#[test]
fn reads_go_before_waiting_writes_but_not_before_started_ones() {
    let mut c = controller(8, 1);
    for line in 0..3 {
        c.submit(write(line, 1), 0);
    }
    assert_eq!(c.step(50_000), None, "the first write is in service");
    assert_eq!(c.read(LineAddr(9), 50_000).done_ps, 250_000, "after one write, before two");
}

#[test]
fn held_entries_stay_until_released_and_vanish_when_discarded() {
    let mut c = controller(4, 4);
    c.submit(Write { held: Some(7), ..write(1, 1) }, 0);
    c.submit(Write { held: Some(8), ..write(2, 2) }, 0);
    assert!(drain(&mut c).is_empty());
    c.discard(0, 8, 0);
    c.release(0, 7, None, 0);
    assert_eq!(drain(&mut c).len(), 1);
    assert_eq!(c.media(0).line(LineAddr(1)), [1; 64]);
    assert_eq!(c.media(0).line(LineAddr(2)), [0; 64]);
}

/// A held entry that gives up its place.
fn yielding(line: u64, group: u64) -> Write {
    Write { held: Some(group), yields: true, ..write(line, line as u8) }
}

#[test]
fn held_entries_yield_oldest_first_when_a_write_waits_for_room_and_not_before() {
    let mut c = controller(3, 4);
    assert!((1..4).all(|line| c.submit(yielding(line, line), 0)), "there is room");
    assert_eq!(c.step(50_000), None);
    assert_eq!(c.stats(0).0.yielded, 0, "a full queue keeps them as long as nothing waits");
    // The oldest starts when the first write waits, the next one only for a second write.
    assert!(!c.submit(write(8, 8), 60_000));
    assert_eq!(c.stats(0).0.yielded, 1);
    assert!(!c.submit(write(9, 9), 70_000));
    assert_eq!(c.stats(0).0.yielded, 2);
    let steps = drain(&mut c);
    let at = |line| {
        steps.iter().find_map(|step| match *step {
            Step::Written { at_ps, line: of, .. } if of == LineAddr(line) => Some(at_ps),
            _ => None,
        })
    };
    assert_eq!([1, 2, 3].map(at), [Some(160_000), Some(170_000), None], "the youngest stays");
    assert_eq!([8, 9].map(at), [Some(260_000), Some(270_000)]);
    c.discard(0, 3, 300_000);
    assert_eq!((c.stats(0).0.discarded, c.stats(0).0.media_write_bytes[0]), (1, 4 * 64));
}

#[test]
fn an_entry_that_leaves_anyway_saves_the_held_ones() {
    let mut c = controller(3, 4);
    assert!(c.submit(yielding(1, 7), 0) && c.submit(write(2, 2), 0) && c.submit(yielding(3, 7), 0));
    assert!(!c.submit(write(4, 4), 0));
    assert_eq!(drain(&mut c).len(), 3, "a write leaves, another is accepted in its place and leaves");
    assert_eq!(c.stats(0).0.yielded, 0);
    // An arriving write may be held itself; then one of them has to go for the next.
    assert!(c.submit(yielding(5, 7), 300_000) && !c.submit(yielding(6, 7), 300_000));
    assert_eq!((drain(&mut c).len(), c.stats(0).0.yielded), (2, 1));
}

/// An entry whose command is given has left its place already where places are free from then on.
#[test]
fn an_entry_that_has_left_its_place_saves_no_held_one() {
    let mut config = MemoryConfig { capacity_mib: 1, ..MemoryConfig::default() };
    config.controller.write_queue_entries = 4;
    config.controller.write_entry_until = Some(EntryUntil::Command);
    config.media.banks = Some(8);
    let mut c = Memory::new(&config, Pages::new(PhysAddr(0), 1 << 20));
    assert!(c.submit(write(0, 1), 0));
    assert_eq!(c.step(1000), None, "its command is given");
    assert!((1..5).all(|line| c.submit(yielding(line, line), 2000)), "four places are free");
    assert!(!c.submit(write(8, 8), 3000));
    assert_eq!(c.stats(0).0.yielded, 1);
    assert_eq!(drain(&mut c).iter().filter(|step| matches!(step, Step::Written { .. })).count(), 3);
    assert_eq!(c.media(0).line(LineAddr(8)), [8; 64]);
}

#[test]
fn a_write_after_a_held_entry_of_its_line_does_not_count_as_one_that_leaves() {
    let mut c = controller(2, 4);
    assert!(c.submit(yielding(1, 7), 0) && c.submit(write(1, 2), 0) && !c.submit(write(3, 3), 0));
    assert_eq!(c.stats(0).0.yielded, 1);
    assert_eq!(drain(&mut c).iter().filter(|step| matches!(step, Step::Written { .. })).count(), 3);
    assert_eq!(c.media(0).line(LineAddr(1)), [2; 64]);
}

#[test]
fn joined_writes_reach_the_media_once_and_acknowledge_everybody() {
    let mut c = controller(4, 1);
    c.submit(write(9, 0), 0);
    c.step(0);
    c.submit(Write { mask: 0xff, token: Some(token(1)), ..write(1, 1) }, 0);
    c.submit(Write { mask: 0xff00, token: Some(token(2)), ..write(1, 2) }, 0);
    let steps = drain(&mut c);
    let tokens = vec![token(1), token(2)];
    assert!(matches!(&steps[1], Step::Written { tokens: t, .. } if *t == tokens), "{steps:?}");
    assert_eq!(c.stats(0).0.media_write_bytes[0], 128);
}

/// A memory of any kind, by seed.
fn any(seed: u64, rng: &mut Rng) -> Memory {
    crate::common::memory(&drawn(KINDS[seed as usize % KINDS.len()], rng))
}

/// Random traffic over few lines: the newest write always wins, in the queue and at the end in the media.
#[test]
fn the_newest_copy_is_always_reachable() {
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let mut c = any(seed, &mut rng);
        let mut expected = [[0u8; 64]; 6];
        let mut now = 0;
        for n in 0..300u64 {
            // Cores run ahead: some requests come from a while ago.
            now += rng.below(120_000);
            while c.step(now).is_some() {}
            let line = rng.below(6);
            let now = now.saturating_sub(rng.below(2) * rng.below(500_000));
            if rng.below(3) == 0 {
                assert_eq!(c.read(LineAddr(line), now).data, expected[line as usize], "seed {seed}");
            } else {
                let mask = if rng.below(2) == 0 { u64::MAX } else { 0xffff << (8 * rng.below(6)) };
                let w = Write { mask, ..write(line, n as u8) };
                w.overlay(&mut expected[line as usize]);
                c.submit(w, now);
            }
        }
        drain(&mut c);
        for (line, data) in expected.iter().enumerate() {
            assert_eq!(c.media(0).line(LineAddr(line as u64)), *data, "seed {seed}");
        }
    }
}

#[test]
fn a_read_that_waits_for_its_bank_does_not_keep_others_from_theirs() {
    let mut c = controller(4, 2);
    assert_eq!(c.read(LineAddr(0), 0).done_ps, 150_000);
    assert_eq!(c.read(LineAddr(2), 0).done_ps, 300_000, "after the first on bank 0");
    assert_eq!(c.read(LineAddr(1), 0).done_ps, 155_000, "second on the channel, first on bank 1");
    assert_eq!(c.read(LineAddr(3), 1_000_000).done_ps, 1_150_000);
    assert_eq!(c.read(LineAddr(5), 500_000).done_ps, 650_000, "a request from the past takes the gap");
}

#[test]
fn nothing_happens_before_its_time_although_a_write_came_meanwhile() {
    let mut c = controller(4, 2);
    c.submit(write(0, 1), 0);
    assert_eq!(c.step(10_000), None, "the first write is in service until 100 ns");
    c.submit(Write { held: Some(1), ..write(1, 2) }, 20_000);
    c.submit(write(0, 3), 20_000);
    assert_eq!(c.step(99_999), None);
    assert_eq!(c.media(0).line(LineAddr(0)), [0; 64]);
    assert!(matches!(c.step(100_000), Some(Step::Written { at_ps: 100_000, .. })));
    assert_eq!(drain(&mut c).len(), 1);
    assert_eq!(c.next_ps(), Picos::MAX, "a held entry announces nothing");
}

#[test]
fn held_writes_that_wait_for_room_are_released_and_discarded_too() {
    let held = |line, group| Write { held: Some(group), token: Some(token(line)), ..write(line, 1) };
    let mut c = controller(1, 1);
    assert!(c.submit(held(1, 7), 0));
    assert!(!c.submit(held(2, 7), 0) && !c.submit(held(3, 8), 0));
    assert_eq!(c.discard(0, 8, 0), [token(3)]);
    c.release(0, 7, None, 0);
    drain(&mut c);
    assert_eq!([1, 2, 3].map(|line| c.media(0).line(LineAddr(line))[0]), [1, 1, 0]);
}

fn digest(c: &Memory) -> String {
    let mut digest = durasim_types::Digest::default();
    c.digest(&mut digest);
    digest.hex()
}

/// Random traffic with held writes; what each step and read answered, and the state at the end.
fn traffic(c: &mut Memory, rng: &mut Rng, rounds: u64, now: &mut u64) -> Vec<String> {
    let mut seen = Vec::new();
    for n in 0..rounds {
        *now += rng.below(120_000);
        seen.extend(std::iter::from_fn(|| c.step(*now)).map(|step| format!("{step:?}")));
        let line = rng.below(8);
        match rng.below(8) {
            0..3 => seen.push(format!("{:?}", c.read(LineAddr(line), *now))),
            3 => (0..c.controllers()).for_each(|number| c.release(number, line % 2, None, *now)),
            4 => {
                let number = c.controller_of(LineAddr(line));
                seen.push(format!("{:?}", c.discard(number, line % 2, *now)));
            }
            _ => {
                let held = (rng.below(3) == 0).then_some(line % 2);
                let mask = if rng.below(2) == 0 { u64::MAX } else { 0xff00 };
                let w = Write { mask, held, token: Some(token(n)), ..write(line, n as u8) };
                seen.push(c.submit(w, *now).to_string());
            }
        }
    }
    seen.push(format!("{} {:?}", digest(c), c.stats(0)));
    seen
}

#[test]
fn a_controller_restored_or_cloned_in_the_middle_goes_on_as_the_original() {
    let mut waited = 0;
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let mut c = any(seed, &mut rng);
        let mut now = 0;
        let rounds = 20 + rng.below(100);
        traffic(&mut c, &mut rng, rounds, &mut now);
        waited += c.inbound_len();
        let bytes = postcard::to_stdvec(&c).unwrap();
        let mut restored: Memory = postcard::from_bytes(&bytes).unwrap();
        let mut cloned = c.clone();
        assert_eq!(postcard::to_stdvec(&restored).unwrap(), bytes);
        let [first, second, third] = [&mut c, &mut restored, &mut cloned].map(|c| {
            let (mut rng, mut now) = (rng.clone(), now);
            traffic(c, &mut rng, 200, &mut now)
        });
        assert_eq!(first, second, "seed {seed}");
        assert_eq!(first, third, "seed {seed}");
    }
    assert!(waited > 0, "some were saved while writes waited for room");
}

/// Writes that arrive in a drain once pushed its end out, and all reads waited for that end.
#[test]
fn a_drain_ends_although_writes_keep_arriving() {
    let mut config = MemoryConfig { capacity_mib: 1, ..MemoryConfig::default() };
    config.controller.write_queue_entries = 8;
    config.controller.write_policy = Some(WritePolicy::ReadFirst);
    config.media.banks = Some(1);
    let mut c = Memory::new(&config, Pages::new(PhysAddr(0), 1 << 20));
    let (mut at_ps, mut longest_ps) = (0, 0);
    for n in 0..500u64 {
        // Two writes for each read, and no more outside the queue than cores would have there.
        for line in [2 * n, 2 * n + 1] {
            while c.inbound_len() > 1 {
                match c.step(Picos::MAX) {
                    Some(Step::Accepted { at_ps: accepted_ps, .. }) => at_ps = at_ps.max(accepted_ps),
                    step => assert!(step.is_some(), "the queue is stuck"),
                }
            }
            c.submit(write(line, 1), at_ps);
        }
        longest_ps = longest_ps.max(c.read(LineAddr(2000 + n), at_ps).done_ps - at_ps);
    }
    assert!(c.stats(0).0.drains > 20, "{} drains", c.stats(0).0.drains);
    // A drain of five writes, the reads that wait for its end, and the one in service.
    assert!(longest_ps < 3_000_000, "{longest_ps} ps");
}

#[test]
fn a_write_without_bytes_is_acknowledged_with_the_youngest_write_of_its_line_and_takes_no_room() {
    let mut c = controller(2, 1);
    let empty = |line, number| Write { mask: 0, token: Some(token(number)), ..write(line, 0) };
    assert!(c.submit(write(1, 1), 0) && c.submit(write(2, 2), 0));
    assert!(c.submit(empty(1, 7), 0), "the queue is full, and it needs no room");
    assert!(!c.submit(write(3, 3), 0));
    assert!(!c.submit(empty(2, 8), 0), "it stays after what waits");
    let mut written = Vec::new();
    let mut accepted = Vec::new();
    for step in drain(&mut c) {
        match step {
            Step::Written { line, tokens, .. } => written.push((line.0, tokens)),
            Step::Accepted { line, mask, .. } => accepted.push((line.0, mask)),
            Step::HasRoom { .. } | Step::Started { .. } => unreachable!("it neither asks nor reports starts"),
        }
    }
    assert_eq!(accepted, [(3, u64::MAX), (2, 0)]);
    assert_eq!(written.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(written[0].1, [token(7)]);
    assert_eq!((c.stats(0).0.writes, c.stats(0).0.media_write_bytes.iter().sum::<u64>()), (3, 192));
}

/// For power failures a line has one write in progress at most, also where an open row takes the next one earlier.
#[test]
fn a_reported_write_of_a_line_starts_after_the_one_before_it_has_ended() {
    for (kind, seed) in KINDS.into_iter().flat_map(|kind| (0..20).map(move |seed| (kind, seed))) {
        let mut rng = Rng::new(seed);
        let mut config = drawn(kind, &mut rng);
        config.controller.coalesce_writes = false;
        let mut c = crate::common::memory(&config);
        c.report_starts();
        let (mut writing, mut ended) = (std::collections::BTreeSet::new(), 0);
        let mut now_ps = 0;
        for n in 0..100 {
            now_ps += rng.below(60_000);
            c.submit(write(rng.below(4), n), now_ps);
            let until_ps = if n == 99 { Picos::MAX } else { now_ps };
            while let Some(step) = c.step(until_ps) {
                match step {
                    Step::Started { line, .. } => assert!(writing.insert(line), "{kind:?}, seed {seed}: {line} twice"),
                    Step::Written { line, .. } => {
                        assert!(writing.remove(&line), "{kind:?}, seed {seed}: {line} ended without a start");
                        ended += 1;
                    }
                    _ => {}
                }
            }
        }
        assert!(ended > 50, "{kind:?}, seed {seed}: {ended}");
    }
}
