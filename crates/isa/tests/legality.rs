//! The legality of encodings: our decoder against qemu-riscv64 (recorded, and fresh where it is installed) and
//! against the decoder of the riscv-isa crate.

mod common;

use common::{probe, qemu, vectors};
use durasim_isa::encodings::CUSTOM_0;
use durasim_isa::{decode, disassemble};

fn report(bits: u32, legal: bool) -> Option<String> {
    // No other decoder knows durasim's instructions in the spaces left to everyone; `checked.rs` has all of custom-0.
    let legal = legal || bits & 0x7f == CUSTOM_0 && decode(bits).is_ok();
    let ours = decode(bits).is_ok();
    (ours != legal)
        .then(|| format!("{bits:#010x} is {} for us: {}", if ours { "legal" } else { "illegal" }, disassemble(bits)))
}

fn assert_agree(encodings: impl IntoIterator<Item = (u32, bool)>) {
    let differences: Vec<_> = encodings.into_iter().filter_map(|(bits, legal)| report(bits, legal)).collect();
    assert!(
        differences.is_empty(),
        "{} differences:\n{}",
        differences.len(),
        differences[..differences.len().min(20)].join("\n")
    );
}

#[test]
fn compressed_encodings_are_legal_where_recorded() {
    assert_agree(probe::compressed().map(u32::from).zip(vectors::read_legality("compressed")));
}

#[test]
fn full_encodings_are_legal_where_recorded() {
    let (seed, count) = vectors::FULL_ENCODINGS;
    assert_agree(probe::full(seed, count).into_iter().zip(vectors::read_legality("full")));
}

#[test]
fn fresh_encodings_are_legal_where_qemu_says_so() {
    let Some(qemu) = qemu::find() else {
        println!("skipped: no qemu-riscv64 or qemu-riscv64-static of version 9 or later is on PATH");
        return;
    };
    let seed = std::env::var("DURASIM_ISA_SEED").map_or(1_000_000, |v| v.parse().expect("a number"));
    let words = probe::full(seed, 20_000);
    let legal = probe::legal(&qemu::run(&qemu, &probe::program(&words)).expect("qemu runs the probe"));
    assert_eq!(legal.len(), words.len());
    assert_agree(words.into_iter().zip(legal));
}
