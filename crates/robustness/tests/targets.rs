//! Every fuzz body on its corpus and on seeded changes of it. `DURASIM_FUZZ_CASES` asks for more cases for each target
//! than a short run has, `DURASIM_FUZZ_SEED` for others.

mod driver;

use driver::{Settings, corpus, drive};
use durasim_isa::{decode, disassemble};
use durasim_robustness::{
    CANARIES, GUEST_REDO_TARGET, GUEST_TARGET, GUEST_WRITE_AHEAD_TARGET, TARGETS, Target, reached,
};

/// The settings that the environment asks for.
fn settings(target: &Target) -> Settings {
    let number = |name: &str| {
        let text = std::env::var(name).ok()?;
        Some(text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, which is no number")))
    };
    Settings {
        cases: number("DURASIM_FUZZ_CASES").map_or(target.cases, |cases: u64| cases as u32),
        seed: number("DURASIM_FUZZ_SEED").unwrap_or(1),
    }
}

fn fuzz(target: &Target) {
    let seeds = corpus(target.name);
    assert!(!seeds.is_empty(), "corpus/{} is empty", target.name);
    if let Err(found) = drive(target, &seeds, settings(target)) {
        let path = found.keep(target);
        panic!(
            "{}: {}\n{} bytes that show it are in {}; they belong into crates/robustness/corpus/{}",
            target.name,
            found.why,
            found.input.len(),
            path.display(),
            target.name
        );
    }
    let missed: Vec<_> = target.marks.iter().filter(|mark| !reached(mark)).collect();
    assert!(missed.is_empty(), "{}: no input led to {missed:?}", target.name);
}

macro_rules! targets {
    ($($name:ident)*) => {
        $(#[test] fn $name() {
            fuzz(TARGETS.iter().find(|target| target.name == stringify!($name)).expect("a target"));
        })*

        /// A target without a line here would never be driven.
        #[test]
        fn every_target_is_driven() {
            assert_eq!([$(stringify!($name)),*].as_slice(), TARGETS.map(|target| target.name).as_slice());
        }
    };
}

targets! { elf_loader configuration pool_file recovery decoder snapshot_file system_calls }

#[test]
#[ignore = "needs a guest program: tests/fuzz builds one and runs this"]
fn guest_recovery() {
    fuzz(&GUEST_TARGET);
}

#[test]
#[ignore = "needs a guest program: tests/fuzz builds one and runs this"]
fn guest_redo_recovery() {
    fuzz(&GUEST_REDO_TARGET);
}

#[test]
#[ignore = "needs a guest program: tests/fuzz builds one and runs this"]
fn guest_write_ahead_recovery() {
    fuzz(&GUEST_WRITE_AHEAD_TARGET);
}

/// A driver that finds no planted bug finds nothing anywhere.
fn find_planted(name: &str, seeds_of: &str) {
    let target = CANARIES.iter().find(|target| target.name == name).expect("a canary");
    let seeds = corpus(seeds_of);
    seeds.iter().for_each(|(file, seed)| {
        let unchanged = driver::fails(target, seed);
        assert!(unchanged.is_none(), "{name} fails on {file} as it is, which proves nothing: {unchanged:?}");
    });
    let settings = Settings { cases: target.cases, seed: 1 };
    let Err(found) = drive(target, &seeds, settings) else { panic!("the planted bug of {name} was not found") };
    assert!(driver::fails(target, &found.input).is_some(), "{name}: the input that is shown does not show the bug");
    let again = drive(target, &seeds, settings).expect_err("the same seed finds the same");
    assert_eq!(again.input, found.input, "{name}: the same seed finds something else");
}

#[test]
fn a_planted_bug_of_a_parser_is_found() {
    find_planted("parser_with_a_bug", "parser_with_a_bug");
}

#[test]
fn recovery_that_believes_everything_is_found() {
    find_planted("careless_recovery", "careless_recovery");
}

#[test]
fn a_root_that_is_too_high_is_found() {
    find_planted("root_too_high", "root_too_high");
}

/// Every 16-bit encoding, and of the 32-bit ones every opcode, every function code and every second operand, on a few
/// registers. A decoder that panics fails this; one that names what it cannot decode too.
#[test]
fn patterns_decode_or_are_refused() {
    let check = |bits: u32| {
        let (decoded, text) = (decode(bits), disassemble(bits));
        let refused = text.starts_with("unsupported ") || text.starts_with("reserved ");
        match decoded {
            Ok(inst) => assert_eq!(text.split(' ').next(), Some(inst.mnemonic()), "{bits:#010x}"),
            Err(_) => assert!(refused, "{bits:#010x}: {text}"),
        }
        decoded.is_ok()
    };
    let compressed = (0..=u32::from(u16::MAX)).filter(|bits| bits & 3 != 3).filter(|&bits| check(bits)).count();
    let mut decoded = 0u64;
    for opcode in (3..128).step_by(4) {
        for functions in 0..1 << 15 {
            let (funct3, rs2, funct7) = (functions & 7, functions >> 3 & 31, functions >> 8);
            let registers = [0, 0x0000_0080, 0x000a_8500, 0x000f_8f80][functions as usize % 4];
            decoded += u64::from(check(opcode | funct3 << 12 | rs2 << 20 | funct7 << 25 | registers));
        }
    }
    assert!(compressed > 30_000 && decoded > 100_000, "{compressed} {decoded}");
}
