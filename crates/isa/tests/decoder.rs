//! The decoder against any bits, against the decoder of the riscv-isa crate, and the generated encodings against their
//! table.

use durasim_isa::encodings::{CUSTOM_0, CUSTOM_1};
use durasim_isa::{Op, decode, disassemble};
use durasim_types::Rng;
use proptest::prelude::*;
use riscv_isa::{Instruction, Target, decode_full};
use std::process::Command;
use std::str::FromStr;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(20_000) })]

    #[test]
    fn decoding_is_total(bits: u32) {
        if let Ok(inst) = decode(bits) {
            prop_assert!(inst.rd < 32 && inst.rs1 < 32 && inst.rs2 < 32 && inst.rs3 < 32);
            prop_assert!(inst.dest() < 64 && inst.sources().iter().all(|&id| id < 64));
            prop_assert_eq!(inst.len, if bits & 3 == 3 { 4 } else { 2 });
        }
        prop_assert!(!disassemble(bits).is_empty());
    }
}

#[test]
fn every_compressed_encoding_decodes_or_is_refused() {
    for bits in 0..=u16::MAX {
        if bits & 3 != 3 {
            // The bits above a 16-bit encoding do not matter.
            assert_eq!(decode(u32::from(bits)), decode(u32::from(bits) | 0xabcd_0000));
        }
    }
}

/// The name the other decoder gives, in our spelling: its own names have underscores for dots.
fn their_name(instruction: &Instruction) -> String {
    let text = format!("{instruction:?}");
    let name = text.split([' ', '{']).next().unwrap_or_default();
    name.to_lowercase().replace('_', ".")
}

/// Zicbom, Zicboz, Zbs, Zicond, Zfhmin and Zacas.
fn they_do_not_know(op: Op) -> bool {
    matches!(op, Op::CboInval | Op::CboClean | Op::CboFlush | Op::CboZero | Op::AmocasW | Op::AmocasD)
        || (Op::Bclr..=Op::CzeroNez).contains(&op)
        || (Op::Flh..=Op::FmvHX).contains(&op)
}

#[test]
fn names_agree_with_the_riscv_isa_crate() {
    let target = Target::from_str("RV64IMAFDZicsr_Zifencei_Zba_Zbb").expect("a target");
    let mut rng = Rng::new(5);
    let mut agreed = std::collections::BTreeSet::new();
    for _ in 0..2_000_000 {
        let mut bits = rng.next_u64() as u32 | 3;
        if rng.below(2) == 0 {
            bits = bits & 0x01ff_ffff | [0, 1, 0x20, 0x10, 4, 5, 0x30, 0x31][rng.below(8) as usize] << 25;
        }
        if rng.below(2) == 0 {
            bits = bits & !0x01f0_0000 | (rng.below(4) as u32) << 20;
        }
        let theirs = their_name(&decode_full(bits, &target));
        match decode(bits) {
            // Reserved fields of a fence have to be ignored, which that crate does not do.
            Ok(inst) if inst.op == Op::Fence => {}
            Ok(inst) if they_do_not_know(inst.op) => {}
            Ok(inst) if inst.op == Op::Marker => assert_eq!(theirs, "slti"),
            // Our own, in a space left to everyone.
            Ok(_) if matches!(bits & 0x7f, CUSTOM_0 | CUSTOM_1) => assert_eq!(theirs, "unimp"),
            Ok(inst) => {
                assert_eq!(inst.mnemonic(), theirs, "{bits:#010x}");
                agreed.insert(inst.op);
            }
            // That crate does not look at reserved rounding modes, and knows all control and status registers.
            Err(_) if matches!(bits & 0x7f, 0x43..=0x53) && matches!(bits >> 12 & 7, 5 | 6) => {}
            Err(_) if theirs.starts_with("csrr") => {}
            Err(_) => assert_eq!(theirs, "unimp", "{bits:#010x}"),
        }
    }
    assert!(agreed.len() > 140, "only {} operations seen", agreed.len());
}

#[test]
fn generated_encodings_are_fresh() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/gen_encodings.py");
    let check =
        Command::new("python3").args([script, "--check"]).output().expect("python3, which the build needs anyway");
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
}
