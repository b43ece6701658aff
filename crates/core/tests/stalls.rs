//! Cycles in which a core commits nothing, against a memory whose stores wait for their line for a thousand cycles: half of
//! it on the path, half in the media.

use crate::common::{CODE, DATA, ECALL, LATENCY, Memory, load, store};
use durasim_core::{Core, CoreConfig, Exit, StallPlace};
use durasim_isa::Hart;
use durasim_types::{CoreId, Cycle, PhysAddr, StallCause};

const FENCE: u32 = 0x0ff0_000f;
const NOP: u32 = 0x13;
/// `div t0, t0, a2`, 20 cycles.
const DIV: u32 = 1 << 25 | 12 << 20 | 5 << 15 | 4 << 12 | 5 << 7 | 0x33;

fn run(config: &CoreConfig, mut memory: Memory, code: &[u32]) -> Core {
    memory.code = code.to_vec();
    let mut hart = Hart { pc: CODE, ..Hart::default() };
    (hart.x[5], hart.x[6], hart.x[12]) = (77, DATA, 1);
    let mut core = Core::new(CoreId(0), config, LATENCY, hart);
    assert_eq!(core.run(&mut memory, Cycle::MAX, 100_000), Exit::SystemCall);
    core
}

/// All cycles but those of the stalls: in each of them something commits.
fn committing_cycles(core: &Core) -> u64 {
    // Nothing commits in cycle 0.
    core.cycle() - core.stats().stalls.total()
}

#[test]
fn a_fence_after_a_store_waits_for_what_the_store_waits_for() {
    let config = CoreConfig::default();
    let core = run(&config, Memory::default(), &[store(0), FENCE, ECALL]);
    let stalls = core.stats().stalls;
    let of = |cause| stalls.of(StallPlace::Fence, cause);
    let waited = of(StallCause::Path) + of(StallCause::Pmem);
    assert!((980..=1000).contains(&waited), "{stalls:?}");
    assert!(of(StallCause::Path).abs_diff(of(StallCause::Pmem)) <= 20, "{stalls:?}");
    assert_eq!(
        stalls.total() - stalls.front_end - stalls.execution,
        waited + of(StallCause::StoreBuffer),
        "{stalls:?}"
    );
}

#[test]
fn a_full_store_queue_has_the_causes_of_its_front_entry() {
    let config = CoreConfig { store_queue_entries: 4, ownership_prefetch: false, ..CoreConfig::default() };
    let memory = Memory { refusing: Some((PhysAddr(DATA), 3000)), ..Memory::default() };
    let code = [vec![store(0); 8], vec![ECALL]].concat();
    let stalls = run(&config, memory, &code).stats().stalls;
    let of = |cause| stalls.of(StallPlace::StoreQueue, cause);
    assert!((2900..3000).contains(&(of(StallCause::Path) + of(StallCause::Pmem))), "{stalls:?}");
    assert_eq!(stalls.of(StallPlace::Load, StallCause::Pmem), 0);
}

#[test]
fn loads_that_hit_wait_for_private_caches_and_computations_for_nothing() {
    let config = CoreConfig::default();
    // ld t1, 0(t1): the answer is the next address.
    let chained = 6 << 15 | 3 << 12 | 6 << 7 | 3;
    let stalls = run(&config, Memory::default(), &[vec![chained; 40], vec![ECALL]].concat()).stats().stalls;
    // Each waits for the answer after its address generation; one of these cycles is that of a commit.
    assert_eq!(stalls.of(StallPlace::Load, StallCause::PrivateCaches) / 39, LATENCY, "{stalls:?}");
    assert!(stalls.execution < 10, "{stalls:?}");
    let stalls = run(&config, Memory::default(), &[vec![DIV; 10], vec![ECALL]].concat()).stats().stalls;
    assert!((9 * 19..=10 * 20).contains(&stalls.execution), "{stalls:?}");
}

#[test]
fn each_cycle_is_one_of_a_commit_or_of_a_stall() {
    let config = CoreConfig { width: 1, ..CoreConfig::default() };
    for code in [
        [vec![NOP; 200], vec![ECALL]].concat(),
        [vec![NOP, DIV, NOP, load(0), NOP, store(8), NOP, FENCE, NOP, store(64), load(64)], vec![ECALL]].concat(),
        [[store(0), FENCE].repeat(20), vec![ECALL]].concat(),
    ] {
        let core = run(&config, Memory::default(), &code);
        // One instruction commits in a cycle, except one that follows a fence in the cycle in which that leaves.
        let fences = code.iter().filter(|&&inst| inst == FENCE).count() as u64;
        let committing = committing_cycles(&core);
        let instructions = code.len() as u64;
        assert!((instructions - fences..=instructions).contains(&committing), "{committing} of {instructions}");
    }
}
