//! Checked accesses in the pipeline: verdicts, ways into handlers and back, and what waits for filters.

use crate::common::{CODE, DATA, ECALL, Memory};
use durasim_core::{Core, CoreConfig, Exit, PersistentStores};
use durasim_isa::encodings::CUSTOM_0;
use durasim_isa::{Hart, Stop};
use durasim_types::{CheckRegisters, CheckVerdict, CoreId, FilterOperation};

const HANDLERS: u64 = CODE + 0x100;

/// An instruction of custom-0.
const fn custom(funct3: u32, funct7: u32, rd: u32, rs1: u32, rs2: u32) -> u32 {
    funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | CUSTOM_0
}

/// `check.load t2, 8(t1)` of a doubleword.
const LOAD: u32 = custom(0, 0x43, 7, 6, 1);
/// `check.store.h t0, 8(t1)` of a doubleword.
const STORE: u32 = custom(1, 0x43, 1, 6, 5);
/// `insert.fwd t3, t1`
const INSERT: u32 = custom(4, 0, 28, 6, 0);
const RETURN: u32 = custom(7, 0, 0, 0, 0);
/// `check.write RESULT, t0`
const RESULT_IS_T0: u32 = custom(6, CheckRegisters::RESULT as u32, 0, 5, 0);
/// `addi t4, t4, 1`
const COUNT: u32 = 1 << 20 | 29 << 15 | 29 << 7 | 0x13;

/// Runs `code` with a handler table after it, in which each handler starts with an instruction and returns.
fn run(code: Vec<u32>, memory: Memory) -> (Memory, Exit, Core) {
    let mut code = code;
    code.resize((HANDLERS - CODE) as usize / 4, COUNT);
    code.extend([RESULT_IS_T0, RETURN].repeat(4));
    let mut memory = Memory { code, persistent_stores: Some(PersistentStores::Plain), ..memory };
    let mut hart = Hart { pc: CODE, ..Hart::default() };
    hart.x[5] = 0x77;
    hart.x[6] = DATA;
    let mut registers = CheckRegisters::default();
    registers.0[CheckRegisters::FILTERS] = DATA + 0x40;
    registers.0[CheckRegisters::HANDLERS] = HANDLERS;
    hart.checks = Some(Box::new(registers));
    let mut core = Core::new(CoreId(0), &CoreConfig::default(), 2, hart);
    let exit = core.run(&mut memory, u64::MAX, 1000);
    (memory, exit, core)
}

fn with(verdict: CheckVerdict) -> Memory {
    Memory { verdict: Some(verdict), ..Memory::default() }
}

#[test]
fn the_hardware_makes_an_access_that_its_checks_let_pass() {
    let (memory, exit, core) = run(vec![LOAD, STORE, COUNT, ECALL], Memory::default());
    assert_eq!(exit, Exit::SystemCall);
    assert_eq!(core.hart.x[7], 0xabcd, "what the memory answers");
    assert_eq!((memory.stores[0].data, memory.stores[0].checked), (0x77, true));
    assert_eq!((memory.checked_stores, core.stats().mispredictions), (1, 0));
    assert_eq!((core.stats().loads, core.stats().stores), (1, 1));
}

#[test]
fn a_handler_makes_the_access_and_leads_back() {
    let (memory, exit, core) = run(vec![LOAD, STORE, COUNT, ECALL], with(CheckVerdict::Handler(2)));
    assert_eq!(exit, Exit::SystemCall);
    assert_eq!((core.hart.x[7], core.hart.x[29]), (0x77, 1), "the result of the handler, and what follows it, once");
    assert!(memory.stores.is_empty() && memory.checked_stores == 0);
    let registers = core.hart.checks.as_ref().expect("they were set").0;
    assert_eq!(registers[CheckRegisters::BASE], DATA);
    assert_eq!((registers[CheckRegisters::OFFSET], registers[CheckRegisters::VALUE]), (8, 0x77));
    assert_eq!(registers[CheckRegisters::RETURN_PC], CODE + 8);
    assert_eq!(core.stats().mispredictions, 2);
}

#[test]
fn a_handler_costs_a_misprediction_and_what_the_machine_says() {
    let code = || vec![LOAD, COUNT, ECALL];
    let cycles = |memory| run(code(), memory).2.cycle();
    let (plain, entered) = (cycles(Memory::default()), cycles(with(CheckVerdict::Handler(4))));
    assert!(entered > plain + CoreConfig::default().mispredict_redirect_cycles, "{entered} against {plain}");
    let slow = Memory { handler_entry_cycles: 40, ..with(CheckVerdict::Handler(4)) };
    assert_eq!(cycles(slow), entered + 40);
}

#[test]
fn a_change_of_filters_comes_after_all_stores_and_gives_its_value() {
    let (memory, exit, core) = run(vec![STORE, INSERT, ECALL], Memory::default());
    assert_eq!(exit, Exit::SystemCall);
    assert_eq!(memory.changes, [(FilterOperation::InsertFwd, DATA)]);
    assert_eq!(core.hart.x[28], 1);
    assert!(core.cycle() > memory.store_cycles[0] + 100, "the store has left before");
}

#[test]
fn accesses_and_changes_wait_until_filters_are_free() {
    for instruction in [LOAD, STORE, INSERT] {
        let waiting = Memory { filters_free_from: Some(5000), ..Memory::default() };
        let (memory, exit, core) = run(vec![COUNT, instruction, COUNT, ECALL], waiting);
        assert_eq!((exit, core.hart.x[29]), (Exit::SystemCall, 2));
        assert!((5000..7500).contains(&core.cycle()), "{}", core.cycle());
        assert_eq!(memory.changes.len(), usize::from(instruction == INSERT));
    }
}

#[test]
fn without_checks_the_instructions_are_illegal() {
    for instruction in [LOAD, STORE, INSERT, RETURN] {
        let mut memory = Memory { code: vec![instruction, ECALL], ..Memory::default() };
        let mut core = Core::new(CoreId(0), &CoreConfig::default(), 2, Hart { pc: CODE, ..Hart::default() });
        assert_eq!(core.run(&mut memory, u64::MAX, 10), Exit::AccessFault(Stop::NoCheckedAccesses));
    }
}
