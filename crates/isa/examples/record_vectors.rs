//! Records the test vectors anew: random programs and what qemu-riscv64 makes of them, for `tests/differential.rs`.
//!
//! Run it with `cargo run -p durasim-isa --example record_vectors [KIND...]` where qemu-riscv64 9 or later is installed. Without
//! names it records all kinds.

#[path = "../tests/common/mod.rs"]
mod common;

use common::generate::{Kind, program};
use common::{probe, qemu, vectors};

fn main() {
    let qemu = qemu::find().expect("qemu-riscv64 or qemu-riscv64-static on PATH, version 9 or later");
    let names: Vec<String> = std::env::args().skip(1).collect();
    for kind in Kind::ALL.into_iter().filter(|kind| names.is_empty() || names.iter().any(|name| name == kind.name())) {
        let record = |seed| {
            let elf = program(kind, seed);
            let output = qemu::run(&qemu, &elf).expect("a program that qemu runs");
            (elf, output)
        };
        let recorded: Vec<_> = (0..vectors::PROGRAMS).map(record).collect();
        vectors::write(kind, &recorded).expect("a writable folder of vectors");
        println!("{}: {} programs", kind.name(), recorded.len());
    }
    let (seed, count) = vectors::FULL_ENCODINGS;
    let compressed: Vec<u32> = probe::compressed().map(probe::padded).collect();
    for (name, encodings) in [("compressed", compressed), ("full", probe::full(seed, count))] {
        let output = qemu::run(&qemu, &probe::program(&encodings)).expect("a program that qemu runs");
        let legal = probe::legal(&output);
        assert_eq!(legal.len(), encodings.len());
        vectors::write_legality(name, &legal).expect("a writable folder of vectors");
        println!("{name}: {} of {} encodings are legal", legal.iter().filter(|&&l| l).count(), legal.len());
    }
}
