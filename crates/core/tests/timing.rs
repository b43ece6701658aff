//! Times of a core, against a memory that answers in two cycles.

use crate::common::{CODE, DATA, ECALL, LATENCY, Memory, load, store};
use durasim_core::{Core, CoreConfig, Exit, Fences, StoreSetsConfig};
use durasim_isa::Hart;
use durasim_types::{CoreId, Cycle};

const NOP: u32 = 0x13;
/// `fence r, rw`, which total store order gives for nothing.
const FENCE_R_RW: u32 = 0x0230_000f;
const ITERATIONS: u64 = 200;

/// `addi rd, rs, immediate`
const fn addi(rd: u32, rs: u32, immediate: i32) -> u32 {
    (immediate as u32) << 20 | rs << 15 | rd << 7 | 0x13
}

/// `div t0, t0, a2`, 20 cycles.
const DIV: u32 = 1 << 25 | 12 << 20 | 5 << 15 | 4 << 12 | 5 << 7 | 0x33;

/// `bnez a1, -4 * instructions`
const fn loop_back(instructions: u32) -> u32 {
    let offset = (-4 * instructions as i32) as u32;
    let (sign, high, low, eleventh) = (offset >> 12 & 1, offset >> 5 & 63, offset >> 1 & 15, offset >> 11 & 1);
    sign << 31 | high << 25 | 11 << 15 | 1 << 12 | low << 8 | eleventh << 7 | 0x63
}

fn run(config: &CoreConfig, code: Vec<u32>) -> (Core, Memory) {
    let mut memory = Memory { code, ..Memory::default() };
    let mut hart = Hart { pc: CODE, ..Hart::default() };
    (hart.x[5], hart.x[6], hart.x[11], hart.x[12]) = (77, DATA, ITERATIONS, 1);
    let mut core = Core::new(CoreId(0), config, LATENCY, hart);
    assert_eq!(core.run(&mut memory, Cycle::MAX, 100_000), Exit::SystemCall);
    (core, memory)
}

/// Cycles that `code` takes beyond the same without its first `n` instructions.
fn cost(config: &CoreConfig, code: &[u32], n: usize) -> Cycle {
    run(config, code.to_vec()).0.cycle() - run(config, code[n..].to_vec()).0.cycle()
}

/// A body in a loop of [`ITERATIONS`], `first` instructions after the begin of a line; cycles per iteration.
fn loop_cycles(config: &CoreConfig, first: usize, body: &[u32]) -> f64 {
    let mut code = vec![NOP; first];
    code.extend(body);
    code.extend([addi(11, 11, -1), loop_back(body.len() as u32 + 1), ECALL]);
    let (core, _) = run(config, code.clone());
    let mut once = code;
    once[first + body.len()] = addi(11, 0, 0);
    (core.cycle() - run(config, once).0.cycle()) as f64 / (ITERATIONS - 1) as f64
}

#[test]
fn a_dependent_load_follows_an_address_generation_and_the_answer() {
    // ld t1, 0(t1): the answer, a constant, is the next address.
    let chained = 6 << 15 | 3 << 12 | 6 << 7 | 3;
    let code = [vec![chained; 40], vec![ECALL]].concat();
    let config = CoreConfig::default();
    assert_eq!(cost(&config, &code, 20), 20 * (config.units.memory.latency_cycles + LATENCY));
}

#[test]
fn a_loop_within_a_line_iterates_every_cycle_and_one_across_two_waits_for_both() {
    let config = CoreConfig::default();
    let body = [NOP, NOP, NOP, NOP];
    assert!((loop_cycles(&config, 0, &body) - 1.0).abs() < 0.1, "six instructions, eight wide");
    // Line A, then two cycles for line B, then two for line A again.
    let across = loop_cycles(&config, 12, &body);
    assert!((across - 2.0 * LATENCY as f64).abs() < 0.1, "{across}");
}

#[test]
fn a_load_that_passes_a_store_to_its_block_is_squashed_once_and_waits_from_then_on() {
    let body = [DIV, store(0), load(8)];
    let sets = |violation_granularity_bytes| CoreConfig {
        store_sets: StoreSetsConfig { violation_granularity_bytes, ..StoreSetsConfig::default() },
        ..CoreConfig::default()
    };
    let code: Vec<u32> = [body.to_vec(), vec![addi(11, 11, -1), loop_back(4), ECALL]].concat();
    let (coarse, _) = run(&sets(16), code.clone());
    assert_eq!(coarse.stats().order_violations, 1);
    let (fine, memory) = run(&sets(8), code);
    assert_eq!(fine.stats().order_violations, 0, "eight bytes further nothing is stored");
    assert_eq!(memory.loads.len() as u64, ITERATIONS);
    assert!(coarse.cycle() > fine.cycle());
}

#[test]
fn a_load_from_a_late_store_is_squashed_once_and_then_forwarded() {
    let code: Vec<u32> = [DIV, store(0), load(0), addi(11, 11, -1), loop_back(4), ECALL].to_vec();
    let (core, memory) = run(&CoreConfig::default(), code);
    assert_eq!((core.stats().order_violations, core.stats().forwards), (1, ITERATIONS));
    assert_eq!((core.hart.x[7], memory.loads.len()), (77, 0));
}

#[test]
fn stores_leave_every_cycle_or_after_each_others_answers() {
    let code: Vec<u32> = [vec![store(0); 20], vec![ECALL]].concat();
    for (pipelined_stores, apart) in [(true, 1), (false, LATENCY)] {
        let config = CoreConfig { pipelined_stores, ownership_prefetch: false, ..CoreConfig::default() };
        let (_, memory) = run(&config, code.clone());
        let gaps: Vec<Cycle> = memory.store_cycles.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(gaps[1..], vec![apart; 18]);
    }
}

#[test]
fn ownership_is_asked_for_ahead_or_not_at_all() {
    // The memory of these tests takes 1000 cycles to hand a line over, if it is asked for it.
    for (ownership_prefetch, first) in [(true, 1000..1100), (false, 0..100)] {
        let config = CoreConfig { ownership_prefetch, ..CoreConfig::default() };
        let (_, memory) = run(&config, vec![store(0), ECALL]);
        assert!(first.contains(&memory.store_cycles[0]), "{:?}", memory.store_cycles);
    }
}

#[test]
fn only_cores_whose_fences_all_wait_pay_for_a_fence_that_orders_loads() {
    let code: Vec<u32> = [vec![FENCE_R_RW; 40], vec![ECALL]].concat();
    let ordering = CoreConfig::default();
    // Two lines of code, each fetched in two steps below the L1I.
    assert_eq!(cost(&ordering, &code, 32), 2 * (LATENCY + 1));
    let all = CoreConfig { fences: Fences::All, ..CoreConfig::default() };
    let each = all.serialize_cycles + 1 + all.complete_to_commit_cycles;
    assert_eq!(cost(&all, &code, 32), 32 * each);
}

#[test]
fn a_misprediction_costs_the_way_back_to_the_front_end_and_through_it() {
    let code: Vec<u32> = [NOP, addi(11, 11, -1), loop_back(2), ECALL].to_vec();
    let near = CoreConfig::default();
    let far = CoreConfig { mispredict_redirect_cycles: near.mispredict_redirect_cycles + 100, ..near.clone() };
    let (a, b) = (run(&near, code.clone()).0, run(&far, code).0);
    let count = a.stats().mispredictions;
    assert!(count > 0 && count == b.stats().mispredictions);
    // Some cycles of each overlap with what the instructions before have still to do.
    let longer = b.cycle() - a.cycle();
    assert!((98 * count..=100 * count).contains(&longer), "{longer} for {count}");
}

#[test]
fn loads_of_one_bank_follow_each_other_and_those_of_many_do_not() {
    let same: Vec<u32> = [(0..32).map(|_| load(0)).collect(), vec![ECALL]].concat();
    let spread: Vec<u32> = [(0..32).map(|n| load(8 * (n % 4))).collect(), vec![ECALL]].concat();
    let banked = |l1d_bank_ports| CoreConfig { l1d_banks: Some(4), l1d_bank_ports, ..CoreConfig::default() };
    for ports in [1, 2, 4] {
        let (core, memory) = run(&banked(ports), same.clone());
        let cycles = memory.loads[31].1 - memory.loads[0].1;
        let bound = (32 / ports).max(32 / core.config().units.memory.count);
        assert!(cycles.abs_diff(Cycle::from(bound)) <= 1, "{ports} ports: {cycles}");
    }
    // Four ports of the core, four banks.
    let (_, memory) = run(&banked(1), spread);
    let (_, unlimited) = run(&CoreConfig::default(), same);
    let cycles = |memory: &Memory| memory.loads[31].1 - memory.loads[0].1;
    assert_eq!(cycles(&memory), cycles(&unlimited));
}
