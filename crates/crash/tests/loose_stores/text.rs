//! Small programs for the machine: instructions, and an executable with one segment.

use durasim_isa::Marker;
use std::io::Write;

pub const ADDRESS: u64 = 0x10_0000;
/// Of the path and of the code in the only segment.
const PATH: u64 = 0x300;
const CODE: u64 = 0x400;

// Registers.
pub const SP: u32 = 2;
pub const T0: u32 = 5;
pub const A0: u32 = 10;
const A7: u32 = 17;
/// The persistent memory of the program.
pub const BASE: u32 = 18;
pub const AT: u32 = 19;
pub const COUNT: u32 = 20;
/// Its size.
pub const SIZE: u32 = 21;

pub const FENCE: u32 = 0x0330_000f;
/// `fence w, w`: it waits for no store.
pub const FENCE_W_W: u32 = 0x0110_000f;

pub fn addi(rd: u32, rs: u32, immediate: i32) -> u32 {
    assert!((-2048..2048).contains(&immediate));
    (immediate as u32) << 20 | rs << 15 | rd << 7 | 0x13
}

pub fn li(rd: u32, value: i32) -> u32 {
    addi(rd, 0, value)
}

/// A value whose lower twelve bits are zero.
fn lui(rd: u32, value: i32) -> u32 {
    assert_eq!(value % 4096, 0);
    value as u32 | rd << 7 | 0x37
}

/// A double word to the address in a register, at an offset in bytes.
pub fn sd(value: u32, base: u32, offset: u32) -> u32 {
    assert!(offset < 2048);
    offset >> 5 << 25 | value << 20 | base << 15 | 3 << 12 | (offset & 31) << 7 | 0x23
}

pub fn ld(rd: u32, base: u32) -> u32 {
    base << 15 | 3 << 12 | rd << 7 | 3
}

/// `amoadd.d zero, value, (base)`
pub fn amoadd(value: u32, base: u32) -> u32 {
    value << 20 | base << 15 | 3 << 12 | 0x2f
}

/// `cbo.clean (base)`
pub const fn clean(base: u32) -> u32 {
    1 << 20 | base << 15 | 2 << 12 | 0xf
}

pub fn marker(marker: Marker) -> u32 {
    marker_with(marker, 0)
}

pub fn marker_with(marker: Marker, argument: u32) -> u32 {
    (marker as u32) << 20 | argument << 15 | 2 << 12 | 0x13
}

pub fn call(number: i32) -> [u32; 2] {
    [li(A7, number), 0x73]
}

pub fn exit(code: i32) -> Vec<u32> {
    [vec![li(A0, code)], call(93).to_vec()].concat()
}

/// A branch over this number of instructions, or back, if a register is zero or, with `funct3` 1, is not.
fn branch(funct3: u32, rs: u32, instructions: i32) -> u32 {
    let offset = (4 * instructions) as u32;
    let (sign, high, low, eleventh) = (offset >> 12 & 1, offset >> 5 & 63, offset >> 1 & 15, offset >> 11 & 1);
    sign << 31 | high << 25 | rs << 15 | funct3 << 12 | low << 8 | eleventh << 7 | 0x63
}

/// Puts a body into a loop that counts a register down to zero.
pub fn repeated(times: i32, body: &[u32]) -> Vec<u32> {
    let mut code = vec![li(COUNT, times)];
    code.extend(body);
    code.extend([addi(COUNT, COUNT, -1), branch(1, COUNT, -(body.len() as i32 + 1))]);
    code
}

/// A program that maps two pages of persistent memory at [`BASE`], declares them as its data, executes the body and exits
/// with 0. With an argument it exits at once.
pub fn program(body: &[u32]) -> tempfile::NamedTempFile {
    let end = exit(0);
    let mut code = vec![ld(T0, SP), addi(T0, T0, -1), branch(0, T0, 1 + end.len() as i32)];
    code.extend(&end);
    // openat(AT_FDCWD, path, O_RDWR | O_CREAT, 0600), ftruncate, mmap(0, 8192, read and write, MAP_SHARED, file, 0)
    code.extend([li(A0, -100), lui(A0 + 1, ADDRESS as i32), addi(A0 + 1, A0 + 1, PATH as i32)]);
    code.extend([li(A0 + 2, 0x42), li(A0 + 3, 0o600)]);
    code.extend(call(56));
    code.extend([addi(A0 + 4, A0, 0), lui(SIZE, 8192), addi(A0 + 1, SIZE, 0)]);
    code.extend(call(46));
    code.extend([li(A0, 0), addi(A0 + 1, SIZE, 0), li(A0 + 2, 3), li(A0 + 3, 1), li(A0 + 5, 0)]);
    code.extend(call(222));
    code.extend([addi(BASE, A0, 0), addi(AT, A0, 0)]);
    code.extend([marker_with(Marker::DataBase, BASE), marker_with(Marker::DataSize, SIZE)]);
    code.extend(body);
    code.extend(end);
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&elf(&code)).unwrap();
    file
}

/// A static executable with one segment.
fn elf(code: &[u32]) -> Vec<u8> {
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
