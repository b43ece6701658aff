//! An independent witness for media without rows: a plain model that goes from clock to clock, with queues, banks, a bus and the
//! policies of writes, beside the controllers on the same random requests. It shares the configuration and where lines lie.

use crate::common::replay::{Replayed, replay};
use durasim_memory::{MediaConfig, MediaKind, Memory, MemoryConfig, WritePolicy};
use durasim_types::{LineAddr, Pages, PhysAddr, Rng};
use std::collections::VecDeque;

const LINES: u64 = 1 << 12;
/// Clocks are nanoseconds.
const CLOCK_PS: u64 = 1000;

#[derive(Clone, Copy)]
struct Request {
    at: u64,
    is_write: bool,
    line: usize,
}

/// Controller, rank and bank of a line.
type Place = (usize, u16, u16);

/// The places of lines, by the commands that reads of them cause.
fn places(config: &MemoryConfig) -> Vec<Place> {
    let place = |line| {
        let mut memory = Memory::new(config, Pages::new(PhysAddr(0), LINES * 64));
        memory.start_trace();
        memory.read(LineAddr(line), 0);
        let command = memory.take_trace(0)[0];
        (usize::from(command.controller), command.rank, command.bank)
    };
    (0..LINES).map(place).collect()
}

/// The time of an access, in clocks: the bank for `latency`, the bus for `burst` from `burst_after` on.
struct Times {
    read: u64,
    write: u64,
    burst: u64,
    rank_switch: u64,
    /// Reads send their line at the end, not at the start.
    at_end: bool,
}

#[derive(Default)]
struct Controller {
    /// Reads that wait, and the ends of those in service.
    reads: VecDeque<usize>,
    read_ends: Vec<u64>,
    /// Writes, with their end once they have started.
    writes: VecDeque<(usize, Option<u64>)>,
    /// The time at which each bank is free.
    banks: Vec<((u16, u16), u64)>,
    /// Begin and rank of bursts.
    bursts: VecDeque<(u64, u16)>,
    drains: bool,
}

impl Controller {
    /// Takes bank and bus for an access that starts now, if both are free.
    fn start(&mut self, now: u64, (_, rank, bank): Place, is_write: bool, t: &Times) -> Option<u64> {
        let latency = if is_write { t.write } else { t.read };
        let burst = now + if t.at_end && !is_write { latency - t.burst } else { 0 };
        let is_apart = |&(other, of): &(u64, u16)| {
            let apart = t.burst + if of == rank { 0 } else { t.rank_switch };
            other + apart <= burst || burst + apart <= other
        };
        let index = self.banks.iter().position(|&(of, _)| of == (rank, bank)).unwrap_or(self.banks.len());
        if self.banks.get(index).is_some_and(|&(_, free)| free > now) || !self.bursts.iter().all(is_apart) {
            return None;
        }
        if index == self.banks.len() {
            self.banks.push(((rank, bank), 0));
        }
        self.banks[index].1 = now + latency;
        self.bursts.push_back((burst, rank));
        if self.bursts.len() > 64 {
            self.bursts.pop_front();
        }
        Some(now + latency)
    }
}

/// Mean latency of reads in clocks, and the clock in which everything is done.
fn witness(config: &MemoryConfig, t: &Times, places: &[Place], requests: &[Request]) -> (f64, u64) {
    let queues = &config.controller;
    let (room_r, room_w) = (queues.read_queue_entries as usize, queues.write_queue_entries as usize);
    let percent = |percent: Option<u32>| percent.map(|percent| room_w * percent as usize);
    let marks = percent(queues.drain_start_percent).zip(percent(queues.drain_stop_percent));
    let marks = marks.map(|(start, stop)| (start.div_ceil(100), stop / 100));
    let mut controllers: Vec<Controller> = (0..config.controllers).map(|_| Controller::default()).collect();
    let (mut next, mut now, mut end, mut sum, mut reads) = (0, 0, 0, 0, 0u64);
    while next < requests.len() || controllers.iter().any(|c| !c.reads.is_empty() || !c.writes.is_empty()) {
        for c in &mut controllers {
            c.read_ends.retain(|&end| end > now);
            c.writes.retain(|&(_, end)| end.is_none_or(|end| end > now));
        }
        // Requests enter in order.
        while let Some(request) = requests.get(next).filter(|request| request.at <= now) {
            let c = &mut controllers[places[request.line].0];
            let is_queued = c.writes.iter().any(|&(w, _)| requests[w].line == request.line);
            match (request.is_write, is_queued) {
                (true, _) if c.writes.len() < room_w => c.writes.push_back((next, None)),
                (false, true) => (sum, reads) = (sum + now - request.at, reads + 1),
                (false, false) if c.reads.len() + c.read_ends.len() < room_r => c.reads.push_back(next),
                _ => break,
            }
            next += 1;
        }
        for c in &mut controllers {
            let waiting = |c: &Controller| c.writes.iter().filter(|(_, end)| end.is_none()).count();
            if let Some((start, stop)) = marks {
                c.drains = if c.drains { waiting(c) > stop } else { c.writes.len() >= start && waiting(c) > stop };
            }
            let mut waiting_reads = std::mem::take(&mut c.reads);
            if !c.drains {
                waiting_reads.retain(|&r| match c.start(now, places[requests[r].line], false, t) {
                    Some(done) => {
                        c.read_ends.push(done);
                        (sum, reads, end) = (sum + done - requests[r].at, reads + 1, end.max(done));
                        false
                    }
                    None => true,
                });
            }
            c.reads = waiting_reads;
            let is_held = marks.is_some() && !c.drains && (!c.reads.is_empty() || !c.read_ends.is_empty());
            for index in 0..c.writes.len() {
                let (w, started) = c.writes[index];
                let is_bank_taken =
                    || !c.drains && c.reads.iter().any(|&r| places[requests[r].line] == places[requests[w].line]);
                if started.is_some() || is_held || is_bank_taken() {
                    continue;
                }
                if marks.is_some_and(|(_, stop)| c.drains && waiting(c) <= stop) {
                    break;
                }
                c.writes[index].1 = c.start(now, places[requests[w].line], true, t);
                end = end.max(c.writes[index].1.unwrap_or(0));
            }
        }
        now += 1;
    }
    (sum as f64 / reads.max(1) as f64, end)
}

/// Up to some 70 % of the bandwidth reads take as long; with full queues (`gap` 0) placing reads when they arrive costs bandwidth.
fn compare(config: &MemoryConfig, t: &Times, seed: u64, gap: u64) {
    let places = places(config);
    let (mut rng, mut at) = (Rng::new(seed), 0);
    let mut draw = || {
        at += rng.below(2 * gap + 1);
        Request { at, is_write: rng.below(3) == 0, line: rng.below(LINES) as usize }
    };
    let requests: Vec<Request> = (0..4000).map(|_| draw()).collect();
    let line = |r: &Request| format!("{} {} {}\n", r.at, if r.is_write { "W" } else { "R" }, r.line);
    let trace: String = requests.iter().map(line).collect();
    let Replayed { read_mean_ps, mb_per_s, .. } = replay(config, CLOCK_PS, &trace).expect("a trace");
    let (mean, end) = witness(config, t, &places, &requests);
    let (ours, theirs) = (read_mean_ps as f64 / 1000.0, requests.len() as f64 * 64_000.0 / end as f64);
    let what = format!("gap {gap}, {config:?}");
    let bound = if gap == 0 { 0.20 } else { 0.02 };
    assert!((mb_per_s as f64 / theirs - 1.0).abs() < bound, "{mb_per_s} MB/s for {theirs}: {what}");
    assert!(gap == 0 || (ours / mean - 1.0).abs() < 0.10, "{ours} for {mean} ns: {what}");
}

#[test]
fn controllers_serve_as_a_plain_model_does() {
    for kind in [MediaKind::Fixed, MediaKind::SttRam] {
        for (controllers, policy) in [
            (1, WritePolicy::WhenFree),
            (4, WritePolicy::WhenFree),
            (1, WritePolicy::ReadFirst),
            (2, WritePolicy::ReadFirst),
        ] {
            let mut media = MediaConfig::of(kind);
            (media.read_latency_ns, media.write_latency_ns) = (Some(60), Some(90));
            (media.banks, media.bandwidth_mb_per_s) = (Some(8), Some(16_000));
            let at_end = kind == MediaKind::SttRam;
            if at_end {
                (media.ranks, media.rank_switch_ps) = (Some(4), Some(3000));
            }
            let mut config = MemoryConfig { capacity_mib: 1, controllers, media, ..MemoryConfig::default() };
            config.interleave_bytes = 256;
            config.controller.coalesce_writes = false;
            config.controller.write_queue_entries = 16;
            config.controller.write_policy = Some(policy);
            config.complete();
            config.check("memory").expect("a memory");
            let t = Times { read: 60, write: 90, burst: 4, rank_switch: 3, at_end };
            for (seed, gap) in [(1, 60u64), (2, 20), (3, 15), (4, 0)] {
                compare(&config, &t, seed, gap.div_ceil(u64::from(controllers)));
            }
        }
    }
}
