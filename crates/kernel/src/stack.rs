//! The initial stack: arguments, environment and the auxiliary vector, laid out as Linux does.
//!
//! C libraries walk through all of it before `main`, so it decides how many instructions a program executes. Where Linux
//! leaves a choice (entries, their order, alignment), this is what `qemu-riscv64` 7.2 gives in user mode.

use crate::PhysMemory;
use crate::elf::{HEADER_BYTES, Image};
use crate::space::{AddressSpace, Backing, Rights, STACK_TOP};
use durasim_types::{ConfigError, PAGE_BYTES, Rng};

/// Size of the stack of the first thread.
pub(crate) const STACK_BYTES: u64 = 8 << 20;

/// User and group of every process.
pub(crate) const USER_ID: u64 = 1000;

/// One bit per letter of the extensions I, M, A, F, D and C.
const HWCAP_IMAFDC: u64 = letters(b"imafdc");

const fn letters(names: &[u8]) -> u64 {
    let mut bits = 0;
    let mut i = 0;
    while i < names.len() {
        bits |= 1 << (names[i] - b'a');
        i += 1;
    }
    bits
}

/// The keys of the auxiliary vector (linux/auxvec.h).
mod at {
    pub(super) const NULL: u64 = 0;
    pub(super) const PHDR: u64 = 3;
    pub(super) const PHENT: u64 = 4;
    pub(super) const PHNUM: u64 = 5;
    pub(super) const PAGESZ: u64 = 6;
    pub(super) const BASE: u64 = 7;
    pub(super) const FLAGS: u64 = 8;
    pub(super) const ENTRY: u64 = 9;
    pub(super) const UID: u64 = 11;
    pub(super) const EUID: u64 = 12;
    pub(super) const GID: u64 = 13;
    pub(super) const EGID: u64 = 14;
    pub(super) const HWCAP: u64 = 16;
    pub(super) const CLKTCK: u64 = 17;
    pub(super) const SECURE: u64 = 23;
    pub(super) const RANDOM: u64 = 25;
    pub(super) const EXECFN: u64 = 31;
}

/// Refuses arguments and environment that do not fit, or that cannot be passed on.
fn check_texts(argv: &[String], env: &[String]) -> Result<(), ConfigError> {
    let text_bytes: usize = argv.iter().chain(env).map(|s| s.len() + 1 + 8).sum();
    if text_bytes as u64 > STACK_BYTES / 4 {
        return Err(ConfigError::new("args", "arguments and environment exceed a quarter of the 8 MB stack"));
    }
    if argv.iter().chain(env).any(|s| s.contains('\0')) {
        return Err(ConfigError::new("args", "arguments and environment must not contain a zero byte"));
    }
    Ok(())
}

/// Maps the stack, fills it and returns the stack pointer. `argv` includes the name of the program; the base of the dynamic
/// linker is 0 without one.
pub(crate) fn build(
    space: &mut AddressSpace,
    mem: &mut dyn PhysMemory,
    image: &Image,
    interpreter_base: u64,
    argv: &[String],
    env: &[String],
    rng: &mut Rng,
) -> Result<u64, ConfigError> {
    check_texts(argv, env)?;
    let bottom = STACK_TOP - STACK_BYTES;
    space.map_area(bottom - PAGE_BYTES, bottom, Rights::default(), Backing::Private);
    space.map_area(bottom, STACK_TOP, Rights::READ_WRITE, Backing::Private);

    let mut random = [0; 16];
    rng.fill(&mut random);
    // Linux ends the stack with eight zero bytes.
    let mut top = STACK_TOP - 8;
    let mut push = |bytes: &[u8]| {
        top -= bytes.len() as u64;
        space.fill(mem, top, bytes).map(|()| top)
    };
    let mut push_text = |text: &String| push(&[text.as_bytes(), &[0]].concat());
    let no_memory = |_| ConfigError::new("memory", "the DRAM is too small for the stack of the program");

    let name_vaddr = push_text(&argv[0]).map_err(no_memory)?;
    let mut vaddrs = |texts: &[String]| -> Result<Vec<u64>, _> {
        let mut found = texts.iter().rev().map(&mut push_text).collect::<Result<Vec<u64>, _>>()?;
        found.reverse();
        Ok(found)
    };
    let env_vaddrs = vaddrs(env).map_err(no_memory)?;
    let arg_vaddrs = vaddrs(argv).map_err(no_memory)?;
    top &= !15;
    let random_vaddr = top - random.len() as u64;
    space.fill(mem, random_vaddr, &random).map_err(no_memory)?;

    let auxv = [
        (at::PHDR, image.headers_vaddr),
        (at::PHENT, HEADER_BYTES),
        (at::PHNUM, image.header_count),
        (at::PAGESZ, PAGE_BYTES),
        (at::BASE, interpreter_base),
        (at::FLAGS, 0),
        (at::ENTRY, image.entry),
        (at::UID, USER_ID),
        (at::EUID, USER_ID),
        (at::GID, USER_ID),
        (at::EGID, USER_ID),
        (at::HWCAP, HWCAP_IMAFDC),
        (at::CLKTCK, 100),
        (at::RANDOM, random_vaddr),
        (at::SECURE, 0),
        (at::EXECFN, name_vaddr),
        (at::NULL, 0),
    ];
    let mut words = vec![argv.len() as u64];
    words.extend(arg_vaddrs.iter().chain(&[0]).chain(&env_vaddrs).chain(&[0]));
    words.extend(auxv.iter().flat_map(|&(key, value)| [key, value]));

    let sp = (random_vaddr - 8 * words.len() as u64) & !15;
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    space.fill(mem, sp, &bytes).map_err(no_memory)?;
    Ok(sp)
}
