//! The tables of P-INSPECT's paper, and its filters, on the outline.

use super::p_inspect::{
    Access, CHECK_H_AND_V, CHECK_V, Flow, HEAP_BASE, HEAP_LIMIT, LOAD_CHECK, LOG_STORE, PInspect, PInspectSpec, Side,
    Value, flow, number,
};
use super::planned::{Call, Effect, LinesWanted, PlannedDesign, PlannedHooks, Registers, StoreKind, enter_handler};
use durasim_design::{Design, Hooks};
use durasim_types::Line;

const NVM: bool = true;
const DRAM: bool = false;

/// A row of Table IV: an empty condition fits anything.
struct Row {
    holder_in_nvm: bool,
    holder_may_forward: Option<bool>,
    value_in_nvm: Option<bool>,
    value_may_forward: Option<bool>,
    value_may_be_queued: Option<bool>,
    in_transaction: Option<bool>,
    flow: Flow,
}

/// Table IV, with the rows that the text distinguishes (section V-D): handler 1 for either side, handler 2 for either reason.
const TABLE_IV: [Row; 8] = [
    Row::of(NVM, None, Some(NVM), None, Some(false), Some(false), Flow::PersistentWrite),
    Row::of(DRAM, Some(false), Some(DRAM), Some(false), None, None, Flow::Write),
    Row::of(DRAM, Some(false), Some(NVM), None, None, None, Flow::Write),
    Row::of(DRAM, Some(true), None, None, None, None, Flow::Handler(CHECK_H_AND_V)),
    Row::of(DRAM, Some(false), Some(DRAM), Some(true), None, None, Flow::Handler(CHECK_H_AND_V)),
    Row::of(NVM, None, Some(DRAM), None, None, None, Flow::Handler(CHECK_V)),
    Row::of(NVM, None, Some(NVM), None, Some(true), None, Flow::Handler(CHECK_V)),
    Row::of(NVM, None, Some(NVM), None, Some(false), Some(true), Flow::Handler(LOG_STORE)),
];

impl Row {
    const fn of(
        holder_in_nvm: bool,
        holder_may_forward: Option<bool>,
        value_in_nvm: Option<bool>,
        value_may_forward: Option<bool>,
        value_may_be_queued: Option<bool>,
        in_transaction: Option<bool>,
        flow: Flow,
    ) -> Self {
        Row {
            holder_in_nvm,
            holder_may_forward,
            value_in_nvm,
            value_may_forward,
            value_may_be_queued,
            in_transaction,
            flow,
        }
    }

    fn fits(&self, holder: Side, value: Value, in_transaction: bool) -> bool {
        let is = |wanted: Option<bool>, condition| wanted.is_none_or(|wanted| wanted == condition);
        self.holder_in_nvm == holder.in_nvm
            && is(self.holder_may_forward, holder.may_forward)
            && is(self.value_in_nvm, value.side.in_nvm)
            && is(self.value_may_forward, value.side.may_forward)
            && is(self.value_may_be_queued, value.may_be_queued)
            && is(self.in_transaction, in_transaction)
    }
}

#[test]
fn stores_of_references_go_by_table_iv() {
    for conditions in 0..64u32 {
        let bit = |n: u32| conditions >> n & 1 != 0;
        let holder = Side { in_nvm: bit(0), may_forward: bit(1) };
        let value = Value { side: Side { in_nvm: bit(2), may_forward: bit(3) }, may_be_queued: bit(4) };
        let rows: Vec<&Row> = TABLE_IV.iter().filter(|row| row.fits(holder, value, bit(5))).collect();
        assert_eq!(rows.len(), 1, "the rows cover {conditions:#b} once");
        assert_eq!(flow(holder, Access::StoreBoth(value), bit(5)), rows[0].flow, "{conditions:#b}");
    }
}

/// Section V-C: without a value object its conditions fall away; loads go by Table V and log nothing.
#[test]
fn stores_of_primitives_and_loads() {
    for in_transaction in [false, true] {
        for may_forward in [false, true] {
            let nvm = Side { in_nvm: NVM, may_forward };
            let stored = if in_transaction { Flow::Handler(LOG_STORE) } else { Flow::PersistentWrite };
            assert_eq!(flow(nvm, Access::StoreH, in_transaction), stored);
            assert_eq!(flow(nvm, Access::Load, in_transaction), Flow::Load);
            let dram = Side { in_nvm: DRAM, may_forward };
            let (stored, loaded) = if may_forward {
                (Flow::Handler(CHECK_H_AND_V), Flow::Handler(LOAD_CHECK))
            } else {
                (Flow::Write, Flow::Load)
            };
            assert_eq!(flow(dram, Access::StoreH, in_transaction), stored);
            assert_eq!(flow(dram, Access::Load, in_transaction), loaded);
        }
    }
}

/// The lines of a process and a hart with a persistent heap.
struct Process {
    lines: Vec<Line>,
    registers: Registers,
}

impl Process {
    fn new() -> Self {
        let mut registers = Registers::default();
        registers.0[Registers::LINES] =
            PInspect::regions(&PInspectSpec {})[0].mapped_at.expect("programs see the page");
        registers.0[HEAP_BASE] = 0x1000_0000;
        registers.0[HEAP_LIMIT] = 0x2000_0000;
        registers.0[Registers::HANDLERS] = 0x8000;
        Process { lines: vec![[0; 64]; PInspect::LINES], registers }
    }

    fn call(&self, number: u8, base: u64, value: u64) -> Effect {
        assert_eq!(PInspect::lines_wanted(number), LinesWanted::Read);
        PInspect::instruction(&Call { number, base, offset: 8, value }, &self.registers, &self.lines)
    }

    fn update(&mut self, number: u8, base: u64) -> u64 {
        assert_eq!(PInspect::lines_wanted(number), LinesWanted::Own { first: 3 }, "the seed line decides");
        PInspect::update(&Call { number, base, offset: 0, value: 0 }, &mut self.lines)
    }
}

const PERSISTENT: u64 = 0x1000_0400;
const VOLATILE: u64 = 0x4400;

#[test]
fn the_hardware_finishes_what_needs_no_look_at_objects() {
    let mut process = Process::new();
    for (flavour, kind) in [(0, StoreKind::Plain), (1, StoreKind::Persist), (2, StoreKind::PersistAndFence)] {
        let persistent = process.call(number::CHECK_STORE_BOTH + flavour, PERSISTENT, PERSISTENT + 64);
        assert_eq!(persistent, Effect::Store(kind));
        assert_eq!(process.call(number::CHECK_STORE_H + flavour, PERSISTENT, 7), Effect::Store(kind));
        let volatile = process.call(number::CHECK_STORE_BOTH + flavour, VOLATILE, PERSISTENT);
        assert_eq!(volatile, Effect::Store(StoreKind::Plain), "volatile objects may point to persistent ones");
    }
    assert_eq!(process.call(number::CHECK_LOAD, VOLATILE, 0), Effect::Load);
    process.registers.0[Registers::IN_TX] = 1;
    assert_eq!(process.call(number::CHECK_STORE_H, PERSISTENT, 7), Effect::Handler(LOG_STORE));
    assert_eq!(process.call(number::CHECK_LOAD, PERSISTENT, 0), Effect::Load);
}

/// An object moves (section V-A): queued while its closure is being copied, then forwarding.
#[test]
fn a_move_goes_through_both_filters() {
    let mut process = Process::new();
    let moved = PERSISTENT + 0x800;
    assert_eq!(
        process.call(number::CHECK_STORE_BOTH, PERSISTENT, VOLATILE),
        Effect::Handler(CHECK_V),
        "it has to move"
    );
    process.update(number::INSERT_TRANS, moved);
    assert_eq!(process.update(number::INSERT_FWD, VOLATILE), 0);
    assert_eq!(
        process.call(number::CHECK_STORE_BOTH, PERSISTENT, moved),
        Effect::Handler(CHECK_V),
        "its closure may lack"
    );
    assert_eq!(process.call(number::CHECK_LOAD, VOLATILE, 0), Effect::Handler(LOAD_CHECK));
    let other = VOLATILE + 0x1000;
    assert_eq!(process.call(number::CHECK_STORE_BOTH, other, VOLATILE), Effect::Handler(CHECK_H_AND_V));
    process.update(number::CLEAR_TRANS, 0);
    let store = process.call(number::CHECK_STORE_BOTH + 2, PERSISTENT, moved);
    assert_eq!(store, Effect::Store(StoreKind::PersistAndFence));
    assert_eq!(
        process.call(number::CHECK_LOAD, VOLATILE, 0),
        Effect::Handler(LOAD_CHECK),
        "it forwards until all follow"
    );
}

/// Section VI-A: the thread that updates pointers empties one filter while the other one fills, and nothing is lost.
#[test]
fn the_inactive_filter_is_emptied_in_the_background() {
    let mut process = Process::new();
    let forwards =
        |process: &Process, object| process.call(number::CHECK_LOAD, object, 0) == Effect::Handler(LOAD_CHECK);
    let object = |n: u64| VOLATILE + 16 * (n * 7919 % 65_536);
    let inserted = (1..).find(|n| process.update(number::INSERT_FWD, object(*n)) == 1).unwrap();
    // Section IX-B: 357 objects on average before 30 % of the bits are set.
    assert!((330..400).contains(&inserted), "{inserted}");
    process.update(number::CHANGE_ACTIVE, 0);
    let late = 0x900_0000;
    process.update(number::INSERT_FWD, late);
    assert!((1..=inserted).all(|n| forwards(&process, object(n))) && forwards(&process, late));
    process.update(number::CLEAR_FWD, 0);
    assert!(forwards(&process, late), "what was inserted meanwhile stays");
    let left = (1..=inserted).filter(|n| forwards(&process, object(*n))).count();
    assert!(left < 3, "{left} of the old ones are taken for {late:#x}");
    process.update(number::CHANGE_ACTIVE, 0);
    process.update(number::CLEAR_FWD, 0);
    assert!(!forwards(&process, late));
}

/// A handler finds what the access was to do in registers of the hart, and how to continue.
#[test]
fn a_handler_has_the_operands_and_the_way_back() {
    let mut process = Process::new();
    process.update(number::INSERT_FWD, VOLATILE);
    let call = Call { number: number::CHECK_STORE_BOTH, base: VOLATILE, offset: -16, value: PERSISTENT };
    let effect = PInspect::instruction(&call, &process.registers, &process.lines);
    let Effect::Handler(handler) = effect else { panic!("{effect:?}") };
    assert_eq!(enter_handler(handler, &call, 0x500, &mut process.registers), 0x8000 + 8);
    let Registers(registers) = process.registers;
    assert_eq!(registers[Registers::RETURN_PC], 0x504);
    assert_eq!((registers[Registers::ADDRESS], registers[Registers::VALUE]), (VOLATILE - 16, PERSISTENT));
}

#[test]
fn it_asks_for_lines_and_instructions_and_for_no_hook() {
    assert_eq!(PInspect::HOOKS, Hooks::NONE);
    assert_eq!(PInspect::PLANNED, PlannedHooks::INSTRUCTION);
    let regions = PInspect::regions(&PInspectSpec {});
    let [region] = regions.as_slice() else { panic!("{regions:?}") };
    assert!(region.dram && region.mapped_at.is_some());
    assert!(PInspect::LINES as u64 * 64 <= region.request.size_bytes);
    assert_eq!(PInspect::lines_wanted(99), LinesWanted::None);
    let unknown = Call { number: 99, base: 0, offset: 0, value: 0 };
    let Process { lines, registers } = Process::new();
    assert_eq!(PInspect::instruction(&unknown, &registers, &lines), Effect::Illegal);
}
