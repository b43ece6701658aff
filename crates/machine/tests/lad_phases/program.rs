//! Phases of transactions that a run reports for a program on a core.

use super::{DESIGNS, QUIET, Sums, config};
use durasim_isa::Marker;
use durasim_machine::{Output, RunRequest, RunResult, Stream, run};
use std::io::Write;

const ADDRESS: u64 = 0x10_0000;
/// Of the path and of the code in the only segment.
const PATH: u64 = 0x300;
const CODE: u64 = 0x400;
const ECALL: u32 = 0x73;
const BLOCK: i32 = 4096;
const LINE: i32 = 64;
// Registers.
const RA: u32 = 1;
const COUNT: u32 = 5;
const LINES: u32 = 8;
const BLOCKS: u32 = 9;
const A0: u32 = 10;
const A7: u32 = 17;
const BASE: u32 = 18;
const AT: u32 = 19;

fn addi(rd: u32, rs: u32, immediate: i32) -> u32 {
    assert!((-2048..2048).contains(&immediate));
    (immediate as u32) << 20 | rs << 15 | rd << 7 | 0x13
}

fn li(rd: u32, value: i32) -> u32 {
    addi(rd, 0, value)
}

/// A value whose lower twelve bits are zero.
fn lui(rd: u32, value: i32) -> u32 {
    assert_eq!(value % 4096, 0);
    value as u32 | rd << 7 | 0x37
}

fn add(rd: u32, one: u32, other: u32) -> u32 {
    other << 20 | one << 15 | rd << 7 | 0x33
}

/// A double word to where a register points to.
fn sd(value: u32, base: u32) -> u32 {
    value << 20 | base << 15 | 3 << 12 | 0x23
}

fn marker(marker: Marker) -> u32 {
    (marker as u32) << 20 | 2 << 12 | 0x13
}

/// `bnez`, back by this many instructions.
fn loop_back(rs: u32, instructions: usize) -> u32 {
    let offset = (-4 * instructions as i32) as u32;
    let (sign, high, low, eleventh) = (offset >> 12 & 1, offset >> 5 & 63, offset >> 1 & 15, offset >> 11 & 1);
    sign << 31 | high << 25 | rs << 15 | 1 << 12 | low << 8 | eleventh << 7 | 0x63
}

/// `jal ra`, by this many instructions.
fn call(instructions: usize) -> u32 {
    let offset = 4 * instructions as u32;
    assert!(offset < 2048);
    (offset >> 1 & 0x3ff) << 21 | RA << 7 | 0x6f
}

/// Puts a body into a loop that counts a register down to zero.
fn repeated(register: u32, times: u32, body: &[u32]) -> Vec<u32> {
    let mut code = vec![li(register, times as i32)];
    code.extend(body);
    code.extend([addi(register, register, -1), loop_back(register, body.len() + 1)]);
    code
}

/// A program that makes one transaction for each of the first 16 lines of four blocks of persistent memory, and then the same
/// again, measured: its code and its lines are in the caches by then.
fn code() -> Vec<u32> {
    let wait = repeated(COUNT, 2047, &[]);
    let mut transaction = wait.clone();
    transaction.extend([li(A0, 0), marker(Marker::TxBegin), sd(AT, AT)]);
    // The line is there when the transaction ends.
    transaction.extend(wait);
    transaction.extend([marker(Marker::TxCommit), addi(AT, AT, LINE)]);
    let mut block = repeated(LINES, 16, &transaction);
    block.extend([lui(COUNT, BLOCK), addi(COUNT, COUNT, -16 * LINE), add(AT, AT, COUNT)]);
    let mut function = vec![addi(AT, BASE, 0)];
    function.extend(repeated(BLOCKS, 4, &block));
    // ret
    function.push(RA << 15 | 0x67);

    let system_call = |number| [li(A7, number), ECALL];
    let mut main = vec![li(A0, -100), lui(A0 + 1, ADDRESS as i32), addi(A0 + 1, A0 + 1, PATH as i32)];
    // openat(AT_FDCWD, path, O_RDWR | O_CREAT, 0600), ftruncate, mmap(0, 16384, read and write, MAP_SHARED, file, 0)
    main.extend([li(A0 + 2, 0x42), li(A0 + 3, 0o600)]);
    main.extend(system_call(56));
    main.extend([addi(A0 + 4, A0, 0), lui(A0 + 1, 4 * BLOCK)]);
    main.extend(system_call(46));
    main.extend([li(A0, 0), lui(A0 + 1, 4 * BLOCK), li(A0 + 2, 3), li(A0 + 3, 1), li(A0 + 5, 0)]);
    main.extend(system_call(222));
    main.push(addi(BASE, A0, 0));
    // The second call is followed by an exit.
    main.extend([call(7), marker(Marker::RoiBegin), call(5), marker(Marker::RoiEnd), li(A0, 0)]);
    main.extend(system_call(93));
    main.extend(function);
    main
}

/// A static executable with one segment.
fn elf() -> Vec<u8> {
    let code = code();
    let size = CODE + 4 * code.len() as u64;
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(16, 0);
    bytes.extend([2u16, 243].map(u16::to_le_bytes).concat());
    bytes.extend(1u32.to_le_bytes());
    bytes.extend([ADDRESS + CODE, 64, 0].map(u64::to_le_bytes).concat());
    bytes.extend(5u32.to_le_bytes());
    bytes.extend([64u16, 56, 1, 0, 0, 0].map(u16::to_le_bytes).concat());
    // To be loaded, readable and executable; offset, address twice, sizes in file and memory, alignment.
    bytes.extend([1u32, 5].map(u32::to_le_bytes).concat());
    bytes.extend([0, ADDRESS, ADDRESS, size, size, 4096].map(u64::to_le_bytes).concat());
    bytes.resize(PATH as usize, 0);
    bytes.extend(b"/pmem/lines\0");
    bytes.resize(CODE as usize, 0);
    code.iter().for_each(|instruction| bytes.extend(instruction.to_le_bytes()));
    bytes
}

struct Nothing;

impl Output for Nothing {
    fn write(&mut self, _: Stream, _: &[u8]) {}
}

fn result(machine: &str, design: &str, hop_cycles: u64) -> RunResult {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&elf()).unwrap();
    let request = serde_json::json!({
        "machine": machine,
        "design": design,
        "set": [format!("interconnect.hop_cycles={hop_cycles}")],
        "elf": file.path(),
        "elf_name": "phases",
        "seed": 1,
        "workload": "phases",
    });
    let request: RunRequest = serde_json::from_value(request).unwrap();
    run(&request, durasim_designs::VARIANTS, &mut Nothing).unwrap()
}

/// Four blocks in a row are of four controllers, wherever the first one is. All run on core 0.
#[test]
fn a_run_reports_the_sums_as_phases_of_its_transactions() {
    for machine in ["lad-micro19", "lad-micro19-dual"] {
        for hop_cycles in [1, 3, 7] {
            let config = config(machine, &[], hop_cycles);
            let sums = Sums(&config);
            let lines = sums.all().filter(|(core, ..)| *core == 0);
            let prepare: u64 = lines.map(|(core, bank, controller)| sums.prepare(core, bank, controller)).sum();
            for (design, until) in DESIGNS {
                let found = result(machine, design, hop_cycles);
                let phases = found.metrics.phases.expect("the design commits in two phases");
                assert_eq!((phases.execute.count, phases.prepare.count, phases.commit.count), (64, 64, 64));
                assert!(phases.execute.mean_cycles < QUIET as f64);
                assert_eq!(phases.prepare.mean_cycles, prepare as f64 / 64.0, "{machine}, {design}, {hop_cycles}");
                let commit = sums.commit(0, until) as f64;
                assert_eq!(phases.commit.mean_cycles, commit, "{machine}, {design}, {hop_cycles}");
            }
        }
    }
}
