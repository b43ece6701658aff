//! Memories under load: beside Ramulator 2.1 on the same traces, and no request waits without end.

use crate::common::replay::replay;
use crate::common::{KINDS, drawn, memory, write};
use durasim_memory::{MediaKind, MemoryConfig, Step, WritePolicy};
use durasim_types::{LineAddr, Picos, Rng};

/// The generator of the traces.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Clocks until the next arrival, geometric with this mean.
    fn gap(&mut self, mean: f64) -> u64 {
        let u = ((self.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        1 + (u.ln() / (1.0 - 1.0 / mean).ln()).floor() as u64
    }
}

const LINES: u64 = 1 << 24;

/// A trace of 20,000 requests as `tests/timing/memory/traces.py` makes it.
fn trace(pattern: &str, number: u64, load_percent: u64) -> String {
    let mut rng = SplitMix(1000 * number + load_percent);
    let third = LINES / 3 / 2048 * 2048;
    let mut at: Vec<u64> = match pattern {
        "streams8" => (0..8).map(|s| s * (LINES / 8) + rng.next() % (1 << 16)).collect(),
        "seq-2r1w" => (0..3).map(|s| s * third + rng.next() % (1 << 16)).collect(),
        _ => Vec::new(),
    };
    let (mut clock, mut out) = (40, String::new());
    for n in 0..20_000 {
        let (is_write, line) = match pattern {
            "streams8" => {
                let s = (rng.next() % 8) as usize;
                at[s] += 1;
                (false, at[s] - 1)
            }
            "seq-2r1w" => {
                at[n % 3] += 1;
                (n % 3 == 2, (at[n % 3] - 1) % LINES)
            }
            "rand-2r1w" => (rng.next().is_multiple_of(3), rng.next() % LINES),
            _ => (false, rng.next() % LINES),
        };
        out += &format!("{clock} {} {line}\n", if is_write { "W" } else { "R" });
        clock += rng.gap(400.0 / load_percent as f64);
    }
    out
}

/// The mean and the 95th percentile in nanoseconds that Ramulator 2.1 gives.
fn ramulator(memory: &str, pattern: &str, load_percent: u64) -> (f64, f64) {
    let all = include_str!("../../../tests/timing/memory/ramulator.csv");
    let name = format!("{memory},{pattern},{load_percent},");
    let row = all.lines().find_map(|row| row.strip_prefix(&name)).expect("a row");
    let fields: Vec<f64> = row.split(',').map(|field| field.parse().expect("a number")).collect();
    (fields[0], fields[1])
}

/// `make validate` replays all patterns and loads; the numbers of the patterns are their seeds.
#[test]
fn reads_take_as_long_as_ramulator_says() {
    let ddr4_row = ("ddr4,row", include_str!("../../../tests/timing/memory/ddr4-row.toml"), 625);
    let ddr4_line = ("ddr4,line", include_str!("../../../tests/timing/memory/ddr4-line.toml"), 625);
    let ddr3_row = ("ddr3,row", include_str!("../../../tests/timing/memory/ddr3-row.toml"), 1250);
    for ((memory, config, clock_ps), pattern, number, load) in [
        (ddr4_row, "rand-read", 2, 30),
        (ddr4_row, "rand-2r1w", 3, 20),
        (ddr4_row, "seq-2r1w", 4, 20),
        (ddr4_row, "seq-2r1w", 4, 40),
        (ddr4_row, "streams8", 6, 50),
        (ddr4_line, "seq-2r1w", 4, 40),
        (ddr3_row, "rand-read", 2, 50),
        (ddr3_row, "seq-2r1w", 4, 50),
    ] {
        let config: MemoryConfig = toml::from_str(config).expect("TOML");
        let ours = replay(&config, clock_ps, &trace(pattern, number, load)).expect("a trace");
        let (mean_ns, p95_ns) = ramulator(memory, pattern, load);
        let (our_mean_ns, our_p95_ns) = (ours.read_mean_ps as f64 / 1000.0, ours.read_p95_ps as f64 / 1000.0);
        let case = format!("{memory}, {pattern} at {load} %");
        assert!((our_mean_ns / mean_ns - 1.0).abs() < 0.03, "{case}: {our_mean_ns} for {mean_ns} ns");
        assert!((our_p95_ns / p95_ns - 1.0).abs() < 0.20, "{case}: {our_p95_ns} for {p95_ns} ns");
    }
}

/// The longest time that an access takes a bank or channel for itself, refresh included, whatever the media.
const LONGEST_ACCESS_PS: Picos = 1_500_000;

/// No request waits longer than all that fit into the queues before it, each served alone: that of reads, one drain, and the
/// requests that pass those for another row. Random requests, as many as there is room for.
#[test]
fn no_request_waits_longer_than_full_queues_take() {
    for kind in KINDS {
        for seed in 0..20 {
            let mut rng = Rng::new(seed);
            let mut config = drawn(kind, &mut rng);
            config.controllers = 1;
            let controller = &config.controller;
            let entries = u64::from(controller.read_queue_entries + controller.write_queue_entries) + 2;
            let hits = u64::from(controller.row_hits_max.unwrap_or(16));
            let bound_ps = 2 * entries * (if kind.is_ddr() { hits } else { 1 }) * LONGEST_ACCESS_PS;
            let mut memory = memory(&config);
            let mut now_ps = 0;
            for n in 0..1500u64 {
                while memory.step(now_ps).is_some() {}
                while memory.inbound_len() > 0 {
                    let Some(step) = memory.step(Picos::MAX) else {
                        panic!("{kind:?}, seed {seed}: a write waits without end")
                    };
                    if let Step::Accepted { at_ps, .. } = step {
                        assert!(at_ps < now_ps + bound_ps, "{kind:?}, seed {seed}: a write waits until {at_ps}");
                        now_ps = now_ps.max(at_ps);
                    }
                }
                if rng.below(2) == 0 {
                    memory.submit(write(rng.below(512), n as u8), now_ps);
                } else {
                    let read = memory.read(LineAddr(rng.below(512)), now_ps);
                    assert!(read.done_ps < now_ps + bound_ps, "{kind:?}, seed {seed}: {} ps", read.done_ps - now_ps);
                    now_ps = now_ps.max(read.queued_ps);
                }
            }
        }
    }
}

/// Half of 16 entries may wait as long as no read does; reads wait for as many writes as are served in one go.
#[test]
fn gem5_gathers_writes() {
    let mut config = crate::common::controller_of(durasim_memory::MediaConfig::of(MediaKind::Ddr4));
    config.controller.write_policy = Some(WritePolicy::Gem5);
    config.controller.write_queue_entries = 16;
    config.controller.drain_writes_min = Some(4);
    config.controller.coalesce_writes = false;
    let mut memory = memory(&config);
    for line in 0..8 {
        assert!(memory.submit(write(line, 1), 0));
    }
    assert_eq!(memory.step(Picos::MAX), None, "half of the queue waits for more");
    assert!(memory.submit(write(8, 1), 1_000_000));
    let written = std::iter::from_fn(|| memory.step(Picos::MAX)).count();
    assert_eq!(written, 6, "until four less than half are left");
    // 85 percent of the queue go before reads, four of them.
    for line in 100..111 {
        assert!(memory.submit(write(line, 1), 2_000_000));
    }
    assert_eq!(memory.queue().count(), 14);
    let alone_ps = crate::common::memory(&config).read(LineAddr(5000), 2_000_000).done_ps;
    let read = memory.read(LineAddr(5000), 2_000_000);
    assert!(read.done_ps > alone_ps, "{} ps", read.done_ps);
}
