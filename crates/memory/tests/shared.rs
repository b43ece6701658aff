//! Two ranges of addresses at the same controllers: one queue, the same banks and channels, contents and counters of
//! their own.

use crate::common::{KINDS, drawn_media, write};
use durasim_memory::checker::violations;
use durasim_memory::{Memory, MemoryConfig, Step};
use durasim_types::{LINE_BYTES, LineAddr, Pages, PhysAddr, Picos, Rng};

const LINES: u64 = 1 << 12;
/// The first line of the second range.
const SECOND: u64 = 1 << 20;

fn shared(config: &MemoryConfig) -> Memory {
    let pages = |first_line: u64| Pages::new(PhysAddr(first_line * LINE_BYTES), LINES * LINE_BYTES);
    Memory::shared(config, pages(0), pages(SECOND))
}

fn one_bank(entries: u32) -> MemoryConfig {
    let mut config = MemoryConfig { capacity_mib: 1, ..MemoryConfig::default() };
    config.controller.write_queue_entries = entries;
    config.media.banks = Some(1);
    config
}

#[test]
fn writes_to_both_ranges_share_one_queue_and_one_bank() {
    let mut memory = shared(&one_bank(2));
    assert!(memory.submit(write(1, 1), 0));
    assert!(memory.submit(write(SECOND + 1, 2), 0));
    assert!(!memory.submit(write(SECOND + 2, 3), 0), "the queue is full");
    assert_eq!((memory.inbound_len(), memory.inbound_len_of(0), memory.inbound_len_of(1)), (1, 0, 1));
    assert_eq!((memory.owed_bytes(0), memory.owed_bytes(1)), (64, 128));
    assert_eq!([1, SECOND + 1, SECOND + 2].map(|line| memory.range_of(LineAddr(line))), [0, 1, 1]);
    // The bank takes 100 ns for each write, one after the other.
    let mut finished = Vec::new();
    while let Some(step) = memory.step(Picos::MAX) {
        if let Step::Written { at_ps, line, .. } = step {
            finished.push((at_ps, line.0));
        }
    }
    assert_eq!(finished, [(100_000, 1), (200_000, SECOND + 1), (300_000, SECOND + 2)]);
    assert_eq!(memory.media(0).line(LineAddr(1)), [1; 64]);
    assert_eq!([1, 2].map(|n| memory.media(1).line(LineAddr(SECOND + n))[0]), [2, 3]);
}

#[test]
fn counters_belong_to_the_range_of_the_line() {
    let mut memory = shared(&one_bank(1));
    assert!(memory.submit(write(SECOND, 1), 0));
    assert!(!memory.submit(write(7, 1), 0));
    assert_eq!(memory.read(LineAddr(SECOND), 10).data, [1; 64]);
    memory.read(LineAddr(3), 10);
    while memory.step(Picos::MAX).is_some() {}
    let (first, second) = (memory.stats(0).0, memory.stats(1).0);
    assert_eq!((first.reads, first.forwards, first.writes, first.queue_full), (1, 0, 1, 1));
    assert_eq!((second.reads, second.forwards, second.writes, second.queue_full), (1, 1, 1, 0));
    assert_eq!((first.media_write_bytes[0], second.media_write_bytes[0]), (64, 64));
    assert!(first.read_latency_ps > 0 && second.read_latency_ps == 0);
    memory.reset_stats();
    assert_eq!((memory.stats(0).0.reads, memory.stats(1).0.writes), (0, 0));
}

#[test]
fn lines_of_the_ranges_are_dealt_out_alike_and_lie_in_rows_of_their_own() {
    for controllers in [1, 3, 4] {
        let mut config = MemoryConfig { controllers, interleave_bytes: 256, ..one_bank(4) };
        config.media = durasim_memory::MediaConfig::of(durasim_memory::MediaKind::Ddr4);
        let mut memory = shared(&config);
        for n in 0..LINES {
            let expected = (n / 4 % u64::from(controllers)) as u16;
            assert_eq!([n, SECOND + n].map(|line| memory.controller_of(LineAddr(line))), [expected; 2]);
        }
        let first: Vec<u64> = memory.a_line_of_each_controller(1).map(|line| line.0).collect();
        assert_eq!(first, (0..u64::from(controllers)).map(|n| SECOND + 4 * n).collect::<Vec<_>>());
        // The same line of each range: no row is open, then another one is or the bank is another one; never a hit.
        memory.read(LineAddr(0), 10_000_000);
        memory.read(LineAddr(SECOND), 20_000_000);
        let rows = [0, 1].map(|range| memory.stats(range).1.expect("DDR has rows"));
        assert_eq!(rows.map(|rows| rows.hits), [0, 0]);
        assert_eq!(rows.map(|rows| rows.misses + rows.conflicts), [1, 1]);
    }
}

#[test]
fn random_requests_to_both_ranges_keep_all_rules_of_the_media() {
    for kind in KINDS {
        for seed in 0..20 {
            let mut rng = Rng::new(seed);
            let config = MemoryConfig {
                controllers: 1 + rng.below(4) as u16,
                interleave_bytes: 64 << rng.below(4),
                media: drawn_media(kind, &mut rng),
                ..one_bank(4)
            };
            let mut memory = shared(&config);
            memory.start_trace();
            let (mut at_ps, mut expected) = (0, vec![[0u8; 2]; LINES as usize]);
            for n in 0..600u64 {
                at_ps += rng.below(60_000);
                while memory.step(at_ps).is_some() {}
                let (range, line) = (rng.below(2), rng.below(LINES / 16));
                let addr = if range == 0 { line } else { SECOND + line };
                let kept = &mut expected[line as usize][range as usize];
                if rng.below(2) == 0 {
                    assert_eq!(memory.read(LineAddr(addr), at_ps).data, [*kept; 64], "seed {seed} of {kind:?}");
                } else {
                    *kept = n as u8;
                    memory.submit(write(addr, *kept), at_ps);
                }
            }
            while memory.step(Picos::MAX).is_some() {}
            for (line, [first, second]) in (0..LINES).zip(&expected) {
                assert_eq!(memory.media(0).line(LineAddr(line)), [*first; 64]);
                assert_eq!(memory.media(1).line(LineAddr(SECOND + line)), [*second; 64]);
            }
            let trace = memory.take_trace(at_ps);
            assert_eq!(violations(&config.media, &trace).first(), None, "seed {seed} of {kind:?}");
        }
    }
}
