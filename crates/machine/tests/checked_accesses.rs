//! Checked accesses of programs on the functional machine, whose filters are in the memory of the program.

use durasim_contract::{ErasedDesign, Variant};
use durasim_designs::{PInspect, variant};
use durasim_isa::encodings::*;
use durasim_machine::{Budget, Captured, MachineConfig, Plan, Program, presets, run_functionally};
use durasim_types::CheckRegisters;

const CODE: u32 = 0x10_0000;
const ENTRY: u32 = CODE + 0x200;
/// Two pages: the first begins with filters.
const DATA: u32 = 0x20_0000;
const OTHER_PAGE: u32 = DATA + 0x1000;
/// Objects of the program: one in ordinary memory, and one that it takes for persistent.
const VOLATILE: u32 = DATA + 0x400;
const PERSISTENT: u32 = DATA + 0x800;

const A0: u8 = 10;
const A7: u8 = 17;
/// Handlers may use these.
const T5: u8 = 30;
const T6: u8 = 31;

fn r_type(opcode: u32, funct3: u32, funct7: u32, rd: u8, rs1: u8, rs2: u8) -> u32 {
    opcode | u32::from(rd) << 7 | funct3 << 12 | u32::from(rs1) << 15 | u32::from(rs2) << 20 | funct7 << 25
}

fn checked(funct3: u32, funct7: u32, rd: u8, rs1: u8, rs2: u8) -> u32 {
    r_type(CUSTOM_0, funct3, funct7, rd, rs1, rs2)
}

fn update((funct3, funct7): (u32, u32), rd: u8, rs1: u8) -> u32 {
    checked(funct3, funct7, rd, rs1, 0)
}

fn addi(rd: u8, rs1: u8, value: u32) -> u32 {
    0x13 | u32::from(rd) << 7 | u32::from(rs1) << 15 | value << 20
}

fn add(rd: u8, rs1: u8, rs2: u8) -> u32 {
    r_type(0x33, 0, 0, rd, rs1, rs2)
}

/// A value of 31 bits.
fn li(rd: u8, value: u32) -> [u32; 2] {
    [0x37 | u32::from(rd) << 7 | value.wrapping_add(0x800) & 0xffff_f000, addi(rd, rd, value & 0xfff)]
}

fn sd(base: u8, value: u8) -> u32 {
    r_type(0x23, 3, 0, 0, base, value)
}

fn ld(rd: u8, base: u8) -> u32 {
    r_type(0x03, 3, 0, rd, base, 0)
}

fn read(rd: u8, register: usize) -> u32 {
    checked(CHECK_READ, register as u32, rd, 0, 0)
}

fn write(register: usize, rs1: u8) -> u32 {
    checked(CHECK_WRITE, register as u32, 0, rs1, 0)
}

/// Sets a check register.
fn set(register: usize, value: u32) -> [u32; 3] {
    let [upper, lower] = li(T5, value);
    [upper, lower, write(register, T5)]
}

/// Ends the program with a0 as its exit code.
fn exit() -> [u32; 2] {
    [addi(A7, 0, 93), 0x73]
}

/// The program as an ELF file: a page of code and two pages of data.
fn elf(code: &[u32]) -> Vec<u8> {
    let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
    elf.resize(16, 0);
    elf.extend([2u16, 243].map(u16::to_le_bytes).concat());
    elf.extend(1u32.to_le_bytes());
    elf.extend([ENTRY.into(), 64, 0].map(u64::to_le_bytes).concat());
    elf.extend(0u32.to_le_bytes());
    elf.extend([64u16, 56, 2, 0, 0, 0].map(u16::to_le_bytes).concat());
    let file_bytes = 0x200 + 4 * code.len() as u64;
    for (flags, vaddr, in_file, in_memory) in [(5u32, CODE, file_bytes, 0x1000), (6, DATA, 0, 0x2000)] {
        elf.extend([1, flags].map(u32::to_le_bytes).concat());
        elf.extend([0, vaddr.into(), vaddr.into(), in_file, in_memory, 4096u64].map(u64::to_le_bytes).concat());
    }
    elf.resize(0x200, 0);
    elf.extend(code.iter().flat_map(|word| word.to_le_bytes()));
    elf
}

/// The parts of a program one after the other. They begin with the handler table: each handler is a jump of the part of that
/// number, in `handlers`, after everything else.
fn program(main: &[u32], handlers: [&[u32]; 4]) -> Vec<u32> {
    const TABLE: u32 = 1;
    const WORDS: u32 = 8;
    let jal = |from: u32, to: u32| {
        let o = 4 * (to - from);
        0x6f | o & 0xff000 | (o >> 11 & 1) << 20 | (o >> 1 & 0x3ff) << 21
    };
    let mut code = vec![jal(0, TABLE + WORDS)];
    let mut at = TABLE + WORDS + main.len() as u32;
    for (place, handler) in (TABLE..).step_by(2).zip(handlers) {
        code.extend([jal(place, at), addi(0, 0, 0)]);
        at += handler.len() as u32;
    }
    code.extend(main);
    handlers.iter().for_each(|handler| code.extend(*handler));
    code
}

const HANDLERS: u32 = ENTRY + 4;

/// Filters, handlers and a persistent heap.
fn start() -> Vec<u32> {
    [
        set(CheckRegisters::FILTERS, DATA),
        set(CheckRegisters::HANDLERS, HANDLERS),
        set(CheckRegisters::HEAP_BASE, PERSISTENT),
        set(CheckRegisters::HEAP_LIMIT, PERSISTENT + 0x400),
    ]
    .concat()
}

/// Leaves a handler.
const RETURN: u32 = 7 << 12 | CUSTOM_0;

fn run_on(variant: &Variant, settings: &[&str], code: &[u32]) -> Result<i32, String> {
    let settings: Vec<String> = settings.iter().map(|s| s.to_string()).collect();
    let config = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &settings).unwrap();
    let plan = Plan::new(&config, variant, variant.default_domain()).map_err(|e| e.to_string())?;
    let program = Program { elf: elf(code), elf_name: "program".into(), ..Program::default() };
    let ending = run_functionally(&config, &plan, &program, Budget::of_instructions(100_000), &mut Captured::default());
    ending.map(|ending| ending.exit_code.expect("the program ends")).map_err(|e| e.to_string())
}

fn run(settings: &[&str], code: &[u32]) -> Result<i32, String> {
    let variant = Variant { name: "checked", hardware: ErasedDesign::of::<PInspect>(), ..*variant("opt").unwrap() };
    run_on(&variant, settings, code)
}

/// A load of an object that forwards: the handler finds the copy, 0x400 bytes after it, and loads from there. What
/// follows the load is executed once.
fn forwarded_load(after: &[u32]) -> Vec<u32> {
    let handler = [
        &[read(T5, CheckRegisters::BASE), read(T6, CheckRegisters::OFFSET), add(T5, T5, T6), addi(T5, T5, 0x400)][..],
        &[ld(T5, T5), write(CheckRegisters::RESULT, T5), RETURN],
    ]
    .concat();
    let main = [
        &start()[..],
        &li(8, VOLATILE),
        &li(9, PERSISTENT + 8),
        &[addi(7, 0, 41), sd(9, 7), addi(7, 0, 30), addi(9, 8, 8), sd(9, 7)],
        // 30 from ordinary memory, then 41 from the copy.
        &[checked(CHECK_LOAD, 0x43, A0, 8, 1), update(INSERT_FWD, 6, 8), checked(CHECK_LOAD, 0x43, 5, 8, 1)],
        &[add(A0, A0, 5)],
        after,
        &exit(),
    ]
    .concat();
    program(&main, [&[], &[], &[], &handler])
}

#[test]
fn a_handler_loads_from_where_an_object_has_gone() {
    assert_eq!(run(&[], &forwarded_load(&[])), Ok(71));
    // One insert is no reason for the pointer update thread, unless two bits are.
    assert_eq!(run(&[], &forwarded_load(&[addi(A0, 6, 0)])), Ok(0));
    let small = ["design.p-inspect.fwd_bits=31", "design.p-inspect.wake_percent=4"];
    assert_eq!(run(&small, &forwarded_load(&[addi(A0, 6, 0)])), Ok(1));
}

/// The flavours and kinds of stores, the transaction bit, and the handlers of stores: each adds its number to x20.
#[test]
fn stores_go_through_the_hardware_or_a_handler() {
    let handlers: Vec<[u32; 2]> = [1, 2, 4].map(|number| [addi(20, 20, number), RETURN]).to_vec();
    let fence = 0x53;
    let main = [
        &start()[..],
        &li(8, VOLATILE),
        &li(9, PERSISTENT),
        &[addi(7, 0, 100)],
        // By the hardware: a number and null to either memory, and a reference to a persistent object.
        &[checked(CHECK_STORE_H, fence, 1, 9, 7), checked(CHECK_STORE_H, fence, 2, 8, 7)],
        &[checked(CHECK_STORE_BOTH, fence, 2, 9, 0), checked(CHECK_STORE_BOTH, fence, 3, 8, 9)],
        &[checked(PERSIST_STORE, fence, 3, 9, 7)],
        // By handler 2: a reference from persistent memory to ordinary memory. It does not store.
        &[checked(CHECK_STORE_BOTH, fence, 1, 9, 8)],
        // By handler 3, inside of a transaction.
        &[addi(5, 0, 1), write(CheckRegisters::XACTION, 5), checked(CHECK_STORE_H, fence, 4, 9, 7)],
        &[write(CheckRegisters::XACTION, 0)],
        // By handler 1: a holder that may forward, and a value that may.
        &[update(INSERT_FWD, 0, 8), checked(CHECK_STORE_H, fence, 2, 8, 0)],
        &[addi(6, 8, 0x40), checked(CHECK_STORE_BOTH, fence, 0, 6, 8)],
        // The stores of the hardware have arrived: 100 in words 1 and 3 of the one and in word 2 of the other.
        &[checked(CHECK_LOAD, 0x43, 11, 9, 1), checked(CHECK_LOAD, 0x43, 12, 9, 3), addi(13, 8, 16), ld(13, 13)],
        &[add(A0, 11, 12), add(A0, A0, 13), addi(A0, A0, 0xf00), add(A0, A0, 20)],
        &exit(),
    ]
    .concat();
    let code = program(&main, [&handlers[0], &handlers[1], &handlers[2], &[]]);
    // 2 + 4 + 1 + 1 of the handlers; 0xf00 is -256.
    assert_eq!(run(&[], &code), Ok(300 - 256 + 8));
}

/// A value whose closure is in progress, until TRANS is cleared; a filter that is emptied when the other one is active.
#[test]
fn filters_are_cleared() {
    let count = [addi(20, 20, 1), RETURN];
    let load = checked(CHECK_LOAD, 0x43, 5, 8, 0);
    let main = [
        &start()[..],
        &li(8, VOLATILE),
        &li(9, PERSISTENT),
        &[addi(6, 9, 0x40), update(INSERT_TRANS, 0, 6), checked(CHECK_STORE_BOTH, 3, 0, 9, 6)],
        &[update(CLEAR_TRANS, 0, 0), checked(CHECK_STORE_BOTH, 3, 0, 9, 6)],
        &[update(INSERT_FWD, 0, 8), load, update(CLEAR_FWD, 0, 0), load, update(CHANGE_ACTIVE, 0, 0), load],
        &[update(CLEAR_FWD, 0, 0), load, addi(A0, 20, 0)],
        &exit(),
    ]
    .concat();
    let code = program(&main, [&[], &count, &[], &count]);
    assert_eq!(run(&[], &code), Ok(4));
}

/// Two places of filters, on one page or on two: what is inserted into the one is not in the other.
#[test]
fn filters_are_where_the_register_says() {
    for other in [DATA + 0x240, OTHER_PAGE, OTHER_PAGE + 4096 - 576] {
        let load = checked(CHECK_LOAD, 0x43, 5, 8, 0);
        let main = [
            &start()[..],
            &li(8, VOLATILE + 0x200),
            &[update(INSERT_FWD, 0, 8)],
            &set(CheckRegisters::FILTERS, other),
            &[load, update(INSERT_TRANS, 0, 8)],
            &set(CheckRegisters::FILTERS, DATA),
            &[load, addi(A0, 20, 0)],
            &exit(),
        ]
        .concat();
        let code = program(&main, [&[], &[], &[], &[addi(20, 20, 1), RETURN]]);
        assert_eq!(run(&[], &code), Ok(1), "{other:#x}");
    }
}

/// Filters that hold everything by mistake: the handler is entered, looks, and all goes well.
#[test]
fn false_positives_cost_time_alone() {
    let handler =
        [read(T5, CheckRegisters::BASE), ld(T5, T5), write(CheckRegisters::RESULT, T5), addi(20, 20, 1), RETURN];
    let main = [
        &start()[..],
        &li(8, VOLATILE),
        &li(9, VOLATILE + 0x40),
        &[addi(7, 0, 5), sd(9, 7), update(INSERT_FWD, 0, 8), checked(CHECK_LOAD, 0x43, 5, 9, 0)],
        &[add(A0, 5, 20)],
        &exit(),
    ]
    .concat();
    let code = program(&main, [&[], &[], &[], &handler]);
    assert_eq!(run(&[], &code), Ok(5));
    assert_eq!(run(&["design.p-inspect.hash=constant"], &code), Ok(6));
}

#[test]
fn what_is_not_set_or_not_there_is_one_sentence() {
    let load = |filters: u32, handlers: u32| {
        let main = [
            &start()[..],
            &li(8, VOLATILE),
            &[update(INSERT_FWD, 0, 8)],
            &set(CheckRegisters::FILTERS, filters),
            &set(CheckRegisters::HANDLERS, handlers),
            &[checked(CHECK_LOAD, 0x43, A0, 8, 0)],
            &exit(),
        ]
        .concat();
        program(&main, [&[], &[], &[], &[RETURN]])
    };
    assert_eq!(run(&[], &load(DATA, HANDLERS)), Ok(0));
    let refused = [
        (0, HANDLERS, "the check register of the filters does not hold the address of nine lines in one page"),
        (DATA + 8, HANDLERS, "the check register of the filters"),
        (DATA + 4096 - 512, HANDLERS, "the check register of the filters"),
        (0x7000_0000, HANDLERS, "0x70000000"),
        (DATA, 0, "a checked access needs a handler, but the check register of the handlers is not set"),
        (DATA, 0x7000_0000, "0x70000018"),
        (DATA, HANDLERS + 1, "illegal instruction"),
    ];
    for (filters, handlers, problem) in refused {
        let message = run(&[], &load(filters, handlers)).unwrap_err();
        assert!(message.contains(problem), "{filters:#x}, {handlers:#x}: {message}");
    }
    // Pages that only may be read have filters, whatever they hold; they do not change.
    let change = [&start()[..], &set(CheckRegisters::FILTERS, CODE), &[update(CHANGE_ACTIVE, 0, 0)], &exit()].concat();
    let message = run(&[], &program(&change, [&[]; 4])).unwrap_err();
    assert!(message.contains("0x100000"), "{message}");
}

#[test]
fn other_designs_have_no_checked_accesses() {
    let message = run_on(variant("opt").unwrap(), &[], &forwarded_load(&[])).unwrap_err();
    assert!(
        message.contains("checked accesses are instructions of designs that check accesses in hardware"),
        "{message}"
    );
    let message = run(&["design.p-inspect.fwd_bits=30"], &forwarded_load(&[])).unwrap_err();
    assert!(message.contains("design.p-inspect.fwd_bits") && message.contains("between 31 and 2047"), "{message}");
}
