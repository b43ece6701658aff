//! Any bytes as a program: it is refused with one sentence, or loaded inside the memory and run as far as it gets.

use crate::assert_is_a_sentence;
use crate::marks::reach;
use crate::memory::{Fenced, small_map};
use durasim_designs::variant;
use durasim_isa::Access;
use durasim_kernel::{PmemPool, Process, ProcessConfig};
use durasim_machine::{Budget, Captured, MachineConfig, Plan, Program, presets, run_functionally};
use durasim_types::Error;

/// Instructions that a program which was loaded may execute.
const INSTRUCTIONS_MAX: u64 = 2000;

/// The ELF loader.
///
/// # Panics
/// If a bug is found.
pub fn elf_loader(data: &[u8]) {
    let config = ProcessConfig::new("program", data.to_vec(), small_map());
    let mut memory = Fenced::new(&config.map);
    let pool = PmemPool::new(config.map.pmem_data_bytes);
    match Process::load(config, pool, &mut memory) {
        Err(Error::Config(refused)) => {
            reach("ELF refused");
            assert_is_a_sentence(&refused.to_string());
        }
        Err(error) => panic!("the loader neither loads nor refuses: {error}"),
        Ok((mut process, hart)) => {
            let entry = process.space().translate(hart.pc, Access::Execute);
            assert!(entry.is_ok(), "a loaded program starts at {:#x}, which it may not execute", hart.pc);
            assert!(hart.x[2].is_multiple_of(16), "the stack pointer {:#x} is not aligned", hart.x[2]);
            reach("ELF loaded");
            run(data);
        }
    }
    assert_eq!(memory.pmem.touched().count(), 0, "the loader wrote to persistent memory");
}

/// A program that can be loaded ends somehow: an exit, a fault with a sentence, or the bound.
fn run(data: &[u8]) {
    let text = presets::text("tiny").expect("a preset");
    let config = MachineConfig::parse("tiny", text, &[]).expect("a preset is right");
    let variant = variant("opt").expect("a variant");
    let plan = Plan::new(&config, variant, variant.default_domain()).expect("a preset fits its variants");
    let program = Program { elf: data.to_vec(), elf_name: "program".into(), ..Program::default() };
    match run_functionally(
        &config,
        &plan,
        &program,
        Budget::of_instructions(INSTRUCTIONS_MAX),
        &mut Captured::default(),
    ) {
        Ok(ending) if ending.exit_code.is_none() => reach("ELF runs into its bound"),
        Ok(_) => {}
        Err(error) => {
            reach("ELF faults");
            assert_is_a_sentence(&error.to_string());
        }
    }
}
