//! Shared parts of the tests of this crate: a generator of random programs, a flat machine to run them on, and
//! qemu-riscv64 as the reference.
#![allow(dead_code, missing_docs, reason = "each test binary uses its own part")]

pub mod assemble;
pub mod elf;
pub mod flat;
pub mod generate;
pub mod operands;
pub mod probe;
pub mod qemu;
pub mod vectors;
