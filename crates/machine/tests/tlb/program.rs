//! A program that measures loads: for each, the cycles between two reads of the cycle counter, one before it, on which its
//! address depends, and one after it.

use durasim_isa::Marker;
use durasim_machine::{MachineConfig, Output, RunRequest, RunResult, Stream, run};
use std::io::Write;

const CODE: u64 = 0x10_0000;
/// Of the function that measures, on a line of its own.
const PROBE: u64 = CODE + 0x400;
const MAIN: u64 = CODE + 0x440;
/// Address of the results.
pub const RESULTS: u64 = 0x80_0000;
const RESULTS_BYTES: u64 = 0x4000;
/// Pages to be loaded from; two areas, in different tables of the first three levels from the leaves up.
pub const NEAR: u64 = 0x100_0000;
pub const FAR: u64 = 0x9_4000_0000;
const AREA_BYTES: u64 = 96 << 20;
const ECALL: u32 = 0x73;
const RET: u32 = 1 << 15 | 0x67;
/// `rdcycle`
const fn read_cycle(rd: u32) -> u32 {
    0xc00 << 20 | 2 << 12 | rd << 7 | 0x73
}

fn addi(rd: u32, rs: u32, immediate: i32) -> u32 {
    assert!((-2048..2048).contains(&immediate));
    (immediate as u32) << 20 | rs << 15 | rd << 7 | 0x13
}

fn register(op: u32, rd: u32, one: u32, other: u32) -> u32 {
    (op >> 3) << 25 | other << 20 | one << 15 | (op & 7) << 12 | rd << 7 | 0x33
}

fn slli(rd: u32, rs: u32, bits: u32) -> u32 {
    bits << 20 | rs << 15 | 1 << 12 | rd << 7 | 0x13
}

fn marker(marker: Marker) -> u32 {
    (marker as u32) << 20 | 2 << 12 | 0x13
}

/// An address of up to 44 bits.
fn address(rd: u32, value: u64) -> Vec<u32> {
    assert!(value < 1 << 44);
    let part = |shift: u32| (value >> shift & 0x7ff) as i32;
    vec![
        addi(rd, 0, part(33)),
        slli(rd, rd, 11),
        addi(rd, rd, part(22)),
        slli(rd, rd, 11),
        addi(rd, rd, part(11)),
        slli(rd, rd, 11),
        addi(rd, rd, part(0)),
    ]
}

/// `jal ra` from one place to another.
fn call(from: u64, to: u64) -> u32 {
    let offset = to.wrapping_sub(from) as u32;
    let (sign, high, eleventh, low) = (offset >> 20 & 1, offset >> 12 & 0xff, offset >> 11 & 1, offset >> 1 & 0x3ff);
    sign << 31 | low << 21 | eleventh << 20 | high << 12 | 1 << 7 | 0x6f
}

/// The cycles between the counters if the load finds its translation and its line at once: two operations, the address,
/// the L1D, the commit, and the second counter, which is read `serialize_cycles` after it.
pub fn of_hits(config: &MachineConfig) -> u64 {
    let core = &config.core;
    2 + 1 + config.l1d.latency_cycles + core.complete_to_commit_cycles + core.serialize_cycles + 1
}

fn code(before: &[u64], loads: &[u64]) -> Vec<u32> {
    // a1 = cycles of a load from a0
    let probe = [
        read_cycle(5),
        register(7, 6, 5, 0),
        register(0, 10, 10, 6),
        3 << 12 | 10 << 15 | 7 << 7 | 3,
        read_cycle(11),
        register(0x100, 11, 11, 5),
        RET,
    ];
    let mut main = address(18, RESULTS);
    for (number, &load) in before.iter().chain(loads).enumerate() {
        if number == before.len() {
            main.push(marker(Marker::RoiBegin));
        }
        main.extend(address(10, load));
        main.push(call(MAIN + 4 * main.len() as u64, PROBE));
        // sd a1, 0(s2); s2 += 8
        main.extend([11 << 20 | 18 << 15 | 3 << 12 | 0x23, addi(18, 18, 8)]);
    }
    main.push(marker(Marker::RoiEnd));
    // write(1, RESULTS, s2 - RESULTS), exit(0)
    main.extend(address(11, RESULTS));
    main.extend([register(0x100, 12, 18, 11), addi(10, 0, 1), addi(17, 0, 64), ECALL]);
    main.extend([addi(10, 0, 0), addi(17, 0, 93), ECALL]);
    let mut code = probe.to_vec();
    code.resize((MAIN - PROBE) as usize / 4, addi(0, 0, 0));
    code.extend(main);
    code
}

/// A static executable.
fn elf(code: &[u32]) -> Vec<u8> {
    let code: Vec<u8> = code.iter().flat_map(|instruction| instruction.to_le_bytes()).collect();
    let first = PROBE - CODE;
    let size = first + code.len() as u64;
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(16, 0);
    bytes.extend([2u16, 243].map(u16::to_le_bytes).concat());
    bytes.extend(1u32.to_le_bytes());
    bytes.extend([MAIN, 64, 0].map(u64::to_le_bytes).concat());
    bytes.extend(5u32.to_le_bytes());
    bytes.extend([64u16, 56, 4, 0, 0, 0].map(u16::to_le_bytes).concat());
    // Flags; offset, address twice, sizes in file and memory, alignment.
    let mut segment = |flags: u32, at: u64, in_file: u64, in_memory: u64| {
        bytes.extend([1, flags].map(u32::to_le_bytes).concat());
        bytes.extend([0, at, at, in_file, in_memory, 4096].map(u64::to_le_bytes).concat());
    };
    segment(5, CODE, size, size);
    segment(6, RESULTS, 0, RESULTS_BYTES);
    segment(6, NEAR, 0, AREA_BYTES);
    segment(6, FAR, 0, AREA_BYTES);
    bytes.resize(first as usize, 0);
    bytes.extend(code);
    bytes
}

/// Results that the program writes.
struct Bytes(Vec<u8>);

impl Output for Bytes {
    fn write(&mut self, _: Stream, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

impl Bytes {
    fn words(&self) -> Vec<u64> {
        self.0.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
    }
}

/// Loads to be made one after the other, those of `loads` in the region of interest.
pub struct Loads<'a> {
    pub machine: &'a str,
    pub set: &'a [&'a str],
    pub before: &'a [u64],
    pub loads: &'a [u64],
    /// Whether those before are executed functionally.
    pub fast_forward: bool,
}

impl Loads<'_> {
    /// A request, and the file of its program.
    pub fn request(&self) -> (RunRequest, tempfile::NamedTempFile) {
        assert!(8 * (self.before.len() + self.loads.len()) as u64 <= RESULTS_BYTES);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&elf(&code(self.before, self.loads))).unwrap();
        let request = serde_json::json!({
            "machine": self.machine,
            "design": "opt",
            "control": true,
            "set": self.set,
            "elf": file.path(),
            "elf_name": "loads",
            "seed": 1,
            "workload": "loads",
            "fast_forward": self.fast_forward.then_some("roi"),
        });
        (serde_json::from_value(request).unwrap(), file)
    }

    /// Cycles of the loads in the region, and the result of the run.
    pub fn measure(&self) -> (Vec<u64>, RunResult) {
        let (request, _file) = self.request();
        let mut output = Bytes(Vec::new());
        let result = run(&request, durasim_designs::VARIANTS, &mut output).unwrap();
        (output.words()[self.before.len()..].to_vec(), result)
    }
}
