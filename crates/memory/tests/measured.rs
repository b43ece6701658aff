//! The module of persistent memory beside published measurements of real ones (`pmem.csv`; sources in DEVIATIONS.md,
//! pmem-module): each row within 10 %.
//!
//! - `amp-BYTES`: write amplification where one half of each block of a region is written and then the other. Each round
//!   has a region of its own, so nothing of a round is left in the buffer for the next one.
//! - `chase-BYTES`: mean latency of reads of lines in random order in a region, to the core or as a multiple of another region.
//! - `idle-sequential`: that of lines in order.
//! - `read-BYTES`, `write-BYTES`: bandwidth of pieces of that size at random places, of 64-byte lines that are always offered.
//! - `writers-N`: bandwidth of N sequential writers.

use crate::common::controller_of;
use durasim_memory::{MediaConfig, MediaKind, Memory, MemoryConfig, Step, Write};
use durasim_types::{Cause, LineAddr, Pages, PhysAddr, Picos, Rng};

/// From the core to the module and back, which the module does not have.
const WAY_PS: Picos = 55_000;
const MODULE_LINES: u64 = (1 << 30) / 64;
/// Within so much of what was measured.
const TOLERANCE: f64 = 0.10;

fn module(change: impl Fn(&mut MediaConfig)) -> Memory {
    let mut media = MediaConfig::of(MediaKind::PmemModule);
    change(&mut media);
    let mut config: MemoryConfig = controller_of(media);
    config.capacity_mib = 1024;
    config.controller.read_queue_entries = 64;
    config.controller.write_queue_entries = 64;
    config.check("pmem").unwrap();
    Memory::new(&config, Pages::new(PhysAddr(0), MODULE_LINES * 64))
}

/// Mean latency of reads, one after the other, once every page was read.
fn idle_ns(warm: impl Iterator<Item = u64>, lines: impl Iterator<Item = u64>) -> f64 {
    let mut memory = module(|_| {});
    let mut at = 0;
    let mut read = |line: u64| {
        at += 1_000_000;
        memory.read(LineAddr(line), at).done_ps - at + WAY_PS
    };
    warm.for_each(|line| _ = read(line));
    let all: Vec<Picos> = lines.map(read).collect();
    all.iter().sum::<Picos>() as f64 / all.len() as f64 / 1000.0
}

fn chase_ns(region: u64) -> f64 {
    let (mut rng, lines) = (Rng::new(region), region / 64);
    let warm = (0..lines).step_by(64);
    let mut order: Vec<u64> = (0..8192).map(|n| if lines > 8192 { rng.below(lines) } else { n % lines }).collect();
    for n in (1..order.len()).rev() {
        order.swap(n, rng.below(n as u64 + 1) as usize);
    }
    idle_ns(warm, order.into_iter())
}

/// The time at which the last of these lines has arrived, offered one a nanosecond as the queue takes them.
fn read_all(lines: impl Iterator<Item = u64>) -> Picos {
    let mut memory = module(|_| {});
    let (mut at, mut last, mut in_flight) = (0, 0, Vec::new());
    for line in lines {
        at += 1000;
        in_flight.retain(|&end| end > at);
        if in_flight.len() == 64 {
            at = *in_flight.iter().min().unwrap();
            in_flight.retain(|&end| end > at);
        }
        let done = memory.read(LineAddr(line), at).done_ps;
        in_flight.push(done);
        last = last.max(done);
    }
    last
}

/// The time at which the module has the last of these lines, offered so often, as the queue takes them.
fn write_all(memory: &mut Memory, every_ps: Picos, lines: impl Iterator<Item = u64>) -> Picos {
    let (mut at, mut last) = (0, 0);
    for line in lines {
        at += every_ps;
        while memory.step(at).is_some() {}
        if memory.submit(Write::line(LineAddr(line), [1; 64], Cause::Data), at) {
            continue;
        }
        while let Some(step) = memory.step(Picos::MAX) {
            if let Step::Accepted { at_ps, .. } = step {
                at = at_ps;
                break;
            }
        }
    }
    while let Some(step) = memory.step(Picos::MAX) {
        if let Step::Written { at_ps, .. } = step {
            last = last.max(at_ps);
        }
    }
    last
}

/// Lines of pieces of this many bytes at random places.
fn pieces(bytes: u64, count: u64) -> impl Iterator<Item = u64> {
    let (mut rng, lines) = (Rng::new(bytes), bytes / 64);
    (0..count / lines).flat_map(move |_| {
        let first = rng.below(MODULE_LINES / lines) * lines;
        first..first + lines
    })
}

/// The next line of one of this many writers, who are drawn.
fn writers(threads: u64, count: u64) -> impl Iterator<Item = u64> {
    let mut rng = Rng::new(threads);
    let mut at: Vec<u64> = (0..threads).map(|thread| (thread << 17) + rng.below(1 << 10) * 4).collect();
    (0..count).map(move |_| {
        let thread = rng.below(threads) as usize;
        at[thread] += 1;
        at[thread] - 1
    })
}

fn gb_per_s(lines: u64, took_ps: Picos) -> f64 {
    (lines * 64) as f64 * 1000.0 / took_ps as f64
}

fn amplification(region: u64) -> f64 {
    let blocks = region / 256;
    let rounds = (20_000 / (4 * blocks)).max(3);
    let mut memory = module(|_| {});
    let halves = (0..rounds).flat_map(|round| [0, 2].map(|half| (round * blocks, half)));
    let lines =
        halves.flat_map(|(first, half)| (first..first + blocks).flat_map(move |b| [0, 1].map(|n| 4 * b + half + n)));
    write_all(&mut memory, 400_000, lines);
    // Each write that joined no block is a block that the cells write, at once or later.
    let written = rounds * blocks * 4 - memory.module_stats(0).unwrap().combined_writes;
    written as f64 / (rounds * blocks) as f64
}

fn found(trace: &str, unit: &str) -> f64 {
    let (name, number) = trace.split_once('-').unwrap();
    let number: u64 = number.parse().unwrap_or(0);
    let count = 10_000;
    match name {
        "amp" => amplification(number),
        "chase" if unit == "ns" => chase_ns(number),
        "chase" => chase_ns(number) / chase_ns(8192),
        "idle" => idle_ns(0..0, 0..4000),
        "read" => gb_per_s(count, read_all(pieces(number, count))),
        "write" => gb_per_s(count, write_all(&mut module(|_| {}), 1000, pieces(number, count))),
        "writers" => gb_per_s(count, write_all(&mut module(|_| {}), 1000, writers(number, count))),
        _ => panic!("no trace {trace}"),
    }
}

#[test]
fn every_row_is_within_ten_percent_of_what_was_measured() {
    let mut wrong = Vec::new();
    for row in include_str!("pmem.csv").lines().skip(1) {
        let fields: Vec<&str> = row.split(',').collect();
        let (trace, unit, measured) = (fields[0], fields[1], fields[2].parse::<f64>().unwrap());
        let here = found(trace, unit);
        let difference = here / measured - 1.0;
        println!("{trace} {unit}: {here:.3}, measured {measured}, {:+.1} %", 100.0 * difference);
        if difference.abs() > TOLERANCE {
            wrong.push(format!("{trace}: {here:.3} for {measured} {unit}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
