//! Distance and waiting on a mesh, as programs meet them.

use super::{L1, L2, LLC, REQUEST, TAIL, UP, machine};
use durasim_machine::{DRAM_BASE, System};
use durasim_types::{CoreId, Cycle, PhysAddr};

const T: Cycle = 10_000_000;
const HOP: Cycle = 3;
const KEYS: &str =
    "mesh_columns = 4, mesh_rows = 4, hop_cycles = 3, link_width_bytes = 16, controller_tiles = [0, 3, 12, 15, 0]";

fn line(number: u64) -> PhysAddr {
    DRAM_BASE.plus(64 * number)
}

fn load(system: &mut System, core: u16, number: u64, at: Cycle) -> Cycle {
    system.load(CoreId(core), line(number), 8, None, at).1
}

/// A machine whose last level has lines 0 to 255, and no private cache any of the first 128.
fn warm() -> System {
    let mut system = machine(KEYS);
    for number in 0..256 {
        load(&mut system, 0, number, 2000 * number);
    }
    system.reset_stats(2000 * 256);
    system
}

fn stat(system: &System, path: &str) -> f64 {
    system.stats().get(path).unwrap_or_else(|| panic!("no {path}"))
}

/// Cycles that messages waited for links, and for ports.
fn waited(system: &System) -> [f64; 2] {
    ["wait_cycles", "port_wait_cycles"].map(|name| stat(system, &format!("interconnect.{name}")))
}

/// A hit in the last level that far away.
fn hit(hops: u64) -> Cycle {
    L1 + L2 + 2 * REQUEST + LLC + 2 * hops * HOP + if hops > 0 { TAIL } else { 0 } + 2 * UP
}

#[test]
fn a_bank_far_away_takes_longer_than_a_near_one() {
    let mut system = warm();
    // From the corner: banks in the first row, then the opposite corner.
    for (bank, hops) in [(0, 0), (1, 1), (2, 2), (3, 3), (4, 1), (5, 2), (15, 6)] {
        assert_eq!(load(&mut system, 0, 16 + bank, T + 1000 * bank), T + 1000 * bank + hit(hops), "bank {bank}");
    }
    assert_eq!(stat(&system, "interconnect.wait_cycles"), 0.0);
    // A request and a line each, and each passes as many links as there are hops.
    assert_eq!(stat(&system, "interconnect.hops"), 2.0 * 15.0);
    assert_eq!((stat(&system, "interconnect.messages"), stat(&system, "interconnect.data_messages")), (7.0, 7.0));
    assert_eq!(stat(&system, "interconnect.busy_cycles"), 15.0 * (1.0 + 4.0));
}

#[test]
fn lines_from_one_bank_wait_for_each_other_on_the_way_back() {
    let mut system = warm();
    for n in 0..6 {
        assert_eq!(load(&mut system, 0, 15 + 16 * n, T), T + hit(6) + (TAIL + 1) * n, "line {n} of bank 15");
    }
    // The requests wait one cycle for each one before at the port of the core, and the lines for the rest of four at that of the
    // bank.
    assert_eq!(waited(&system), [0.0, 15.0 + 3.0 * 15.0]);
}

#[test]
fn many_cores_that_send_over_one_link_wait_and_others_do_not() {
    let mut system = warm();
    let mut last = 0;
    // All of the first three columns ask banks of the last one: what starts in a row shares its links.
    for core in (0..16).filter(|core| core % 4 != 3) {
        last = last.max(load(&mut system, core, 3 + 16 * u64::from(core / 4), T));
    }
    let waits: f64 = waited(&system).iter().sum();
    assert!(waits > 0.0 && last > T + hit(6), "{waits} cycles, the last one at {last}");
    // Each core asks the bank beside it, over a link of its own.
    let mut system = warm();
    for core in 0..16 {
        let number = 16 * u64::from(core) % 128 + u64::from(core ^ 1);
        assert_eq!(load(&mut system, core, number, T), T + hit(1));
    }
    assert_eq!(waited(&system), [0.0, 0.0]);
}

#[test]
fn narrow_links_take_longer_and_wide_ones_have_no_tail() {
    for (width, tail) in [(1, 63), (8, 7), (64, 0)] {
        let keys = KEYS.replace("link_width_bytes = 16", &format!("link_width_bytes = {width}"));
        let mut system = machine(&keys);
        for number in 0..256 {
            load(&mut system, 0, number, 2000 * number);
        }
        assert_eq!(load(&mut system, 0, 17, T), T + hit(1) - TAIL + tail, "{width} bytes");
    }
}
