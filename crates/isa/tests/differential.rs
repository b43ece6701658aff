//! Random programs of every extension must leave the same registers, memory and floating-point flags as under
//! qemu-riscv64. The recorded ones run always, fresh ones where qemu is installed.

mod common;

use common::generate::{DATA_BYTES, Kind, program};
use common::{flat, qemu, vectors};
use durasim_isa::Op;
use std::collections::BTreeSet;

/// Runs our side and compares; the error says where the first difference lies.
fn compare(elf: &[u8], expected: &[u8]) -> Result<flat::Outcome, String> {
    assert_eq!(expected.len(), DATA_BYTES as usize);
    let outcome = flat::run(elf)?;
    if outcome.exit_code != 0 {
        return Err(format!("exit code {}", outcome.exit_code));
    }
    let doubles = |bytes: &[u8]| bytes.chunks(8).map(|b| u64::from_le_bytes(b.try_into().unwrap())).collect::<Vec<_>>();
    let (ours, theirs) = (doubles(&outcome.stdout), doubles(expected));
    // The trace comes last and is the better witness: it shows the first instruction that went wrong.
    match (0..theirs.len()).rev().filter(|&i| ours[i] != theirs[i]).min_by_key(|&i| (i < 200, i)) {
        None => Ok(outcome),
        Some(i) => Err(format!("doubleword {i}: ours {:#018x}, qemu {:#018x}", ours[i], theirs[i])),
    }
}

#[test]
fn recorded_programs_give_what_qemu_gave() {
    let mut ops = BTreeSet::new();
    for kind in Kind::ALL {
        let recorded = vectors::read(kind);
        assert_eq!(recorded.len() as u64, vectors::PROGRAMS, "{}", kind.name());
        for (index, (elf, expected)) in recorded.iter().enumerate() {
            let outcome = compare(elf, expected).unwrap_or_else(|e| panic!("{} program {index}: {e}", kind.name()));
            ops.extend(outcome.ops);
        }
    }
    // qemu knows no markers, log operations, hardware transactions and checked accesses and not all versions know Zicbom; the rest has unit
    // tests, having no effect to compare.
    let unknown = [Op::Marker, Op::LogLoad, Op::LogFlush, Op::CboInval, Op::CboClean, Op::CboFlush];
    let checked = [
        Op::CheckLoad,
        Op::CheckStoreH,
        Op::CheckStoreBoth,
        Op::PersistStore,
        Op::InsertFwd,
        Op::InsertTrans,
        Op::ClearFwd,
        Op::ClearTrans,
        Op::ChangeActive,
        Op::CheckRead,
        Op::CheckWrite,
        Op::CheckReturn,
    ];
    let transactions = [Op::HtmBegin, Op::HtmEnd, Op::HtmAbort, Op::HtmTest];
    let exempt = [&unknown[..], &checked, &transactions, &[Op::Ebreak, Op::Fence, Op::FenceI, Op::Pause]].concat();
    let missing: Vec<_> = Op::ALL.iter().filter(|op| !ops.contains(op) && !exempt.contains(op)).collect();
    assert!(missing.is_empty(), "no recorded program executes {missing:?}");
}

/// `DURASIM_ISA_SEED` sets the first seed and `DURASIM_ISA_PROGRAMS` the programs for each kind.
#[test]
fn fresh_programs_give_what_qemu_gives() {
    let Some(qemu) = qemu::find() else {
        println!("skipped: no qemu-riscv64 or qemu-riscv64-static of version 9 or later is on PATH");
        return;
    };
    let number = |name, default| std::env::var(name).map_or(default, |v| v.parse().expect("a number"));
    let (first, programs) = (number("DURASIM_ISA_SEED", 1_000_000), number("DURASIM_ISA_PROGRAMS", 20u64));
    for kind in Kind::ALL {
        for seed in first..first + programs {
            let elf = program(kind, seed);
            let expected = qemu::run(&qemu, &elf).unwrap_or_else(|e| panic!("{} seed {seed}: {e}", kind.name()));
            compare(&elf, &expected).unwrap_or_else(|e| panic!("{} seed {seed}: {e}", kind.name()));
        }
    }
}
