//! Any bytes as a pool that a crash left to a log in software, undo, redo or write-ahead: the program's own recovery ends with one of its exit codes
//! within a bound of instructions, without a fault, and without touching what is not its pool.

use crate::bytes::Bytes;
use crate::image;
use crate::marks::reach;
use durasim_contract::CrashImage;
use durasim_designs::variant;
use durasim_machine::{
    Budget, Captured, LoadedProgram, MachineConfig, PMEM_BASE, Plan, PmemPool, PoolContents, Program, presets,
};
use durasim_types::{LINE_BYTES, PAGE_BYTES, Pages};
use std::sync::OnceLock;

/// The environment variable with the path of the program: a workload with a log of its own.
pub const GUEST_PROGRAM: &str = "DURASIM_FUZZ_GUEST";

/// Size of the pool.
const POOL_BYTES: u64 = 16 * PAGE_BYTES;
/// Another file follows the pool, full of this.
const OTHERS: [u8; PAGE_BYTES as usize] = [0xa5; PAGE_BYTES as usize];
/// Far more than a recovery or a check of a small pool takes.
const INSTRUCTIONS_MAX: u64 = 20_000_000;
/// The exit codes that guest/include/durasim/error.h gives programs.
const EXIT_CODES: [i32; 4] = [0, 1, 2, 70];

struct Programs {
    recover: LoadedProgram,
    check: LoadedProgram,
    capacity_bytes: u64,
}

/// A variant whose programs keep such a log; all of them have the same hardware.
const VARIANT: &str = "swl-flush";

impl Programs {
    fn new() -> Self {
        let path = std::env::var_os(GUEST_PROGRAM).unwrap_or_else(|| panic!("{GUEST_PROGRAM} has to name a program"));
        let elf = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let config = MachineConfig::parse("tiny", presets::text("tiny").expect("a preset"), &[]).expect("a preset");
        let variant = variant(VARIANT).expect("a variant of the registry");
        let plan = Plan::new(&config, variant, variant.default_domain()).expect("a preset fits its variants");
        let mut files = PmemPool::new(plan.geometry.pmem_data_bytes);
        for (name, bytes) in [("pool", POOL_BYTES), ("others", PAGE_BYTES)] {
            files.create(name);
            files.resize(name, bytes).expect("there is room");
        }
        let capacity_bytes = config.pmem.capacity_mib << 20;
        let load = |command: &str| {
            let pages = Pages::new(PMEM_BASE, capacity_bytes);
            let pool = Some(PoolContents { files: files.clone(), pages });
            let args = vec![command.to_owned()];
            let program = Program { elf: elf.clone(), elf_name: "program".into(), args, pool, ..Program::default() };
            LoadedProgram::new(&config, &plan, &program).expect("the program can be loaded")
        };
        Programs { recover: load("recover"), check: load("recover-and-check"), capacity_bytes }
    }
}

/// Runs a program on a pool; its contents afterwards, the exit code, and what it said.
fn run(program: &LoadedProgram, pmem: Pages) -> (Pages, i32, String) {
    let mut output = Captured::default();
    // Decoded code is shared and not kept: inputs may come from several threads.
    let ending = program.clone().run(pmem, Budget::of_instructions(INSTRUCTIONS_MAX), &mut output);
    let ending = ending.unwrap_or_else(|error| panic!("the program's recovery or check faults: {error}"));
    let said = output.text();
    let code =
        ending.exit_code.unwrap_or_else(|| panic!("it is still running after {INSTRUCTIONS_MAX} instructions: {said}"));
    assert!(EXIT_CODES.contains(&code), "it ended with {code}: {said}");
    assert!(code == 0 || !said.trim().is_empty(), "it failed with {code} and printed nothing");
    let pages = ending.pool.pages;
    let mut others = [0; PAGE_BYTES as usize];
    pages.read(PMEM_BASE.plus(POOL_BYTES), &mut others);
    assert!(others == OTHERS, "it wrote to a file that is not its pool");
    let end = PMEM_BASE.plus(POOL_BYTES + PAGE_BYTES);
    assert!(pages.touched().all(|(addr, _)| addr < end), "it wrote after all files");
    (pages, code, said)
}

/// Recovers until there is nothing left to do. A real crash leaves one transaction to undo; where an input has set the
/// state of a log back, each recovery undoes one more, and the log is too short for many.
fn settled(programs: &Programs, mut pmem: Pages) -> Pages {
    for _ in 0..POOL_BYTES / LINE_BYTES {
        let (recovered, code, said) = run(&programs.recover, pmem);
        assert_eq!(code, 0, "what has been recovered is refused: {said}");
        if said.contains(" 0 log entries") {
            return recovered;
        }
        reach("more to undo");
        pmem = recovered;
    }
    panic!("recovery does not terminate");
}

/// Recovery of a log in software, by the program that [`GUEST_PROGRAM`] names. The input is records of the pool.
///
/// # Panics
/// If a bug is found, and without a program.
pub fn guest_recovery(data: &[u8]) {
    static PROGRAMS: OnceLock<Programs> = OnceLock::new();
    let programs = PROGRAMS.get_or_init(Programs::new);
    let mut image = CrashImage::new(Pages::new(PMEM_BASE, programs.capacity_bytes));
    image::put(Bytes(data), &[(PMEM_BASE, POOL_BYTES)], &[], &mut image);
    image.pmem.write(PMEM_BASE.plus(POOL_BYTES), &OTHERS);
    let header = image.line(PMEM_BASE);
    let (recovered, code, said) = run(&programs.recover, image.pmem);
    reach(match code {
        0 if said.contains(" 0 log entries") => "nothing to apply",
        0 => "log entries applied",
        _ if said.contains("log of thread") => "damaged log refused",
        _ => "pool refused by its program",
    });
    assert_eq!(recovered.line(PMEM_BASE.line()), header, "recovery changed the header of the pool");
    let recovered = if code == 0 { settled(programs, recovered) } else { recovered };
    let (_, code, _) = run(&programs.check, recovered);
    reach(if code == 0 { "pool is sound" } else { "violation found" });
}

/// The input of [`guest_recovery`] that stands for a real pool.
#[must_use]
pub fn guest_image(pmem: &Pages) -> Vec<u8> {
    image::records(pmem, &[(PMEM_BASE, POOL_BYTES)])
}
