//! Every ELF that cannot run is refused with its own sentence.

use crate::common::{elf, map, program};
use durasim_kernel::{FlatMemory, PmemPool, Process, ProcessConfig};
use durasim_types::{Error, ExitCode};

/// Tries to load `bytes` and returns the sentence of the refusal.
fn refusal(bytes: Vec<u8>) -> String {
    let config = ProcessConfig::new("prog", bytes, map());
    let pool = PmemPool::new(config.map.pmem_data_bytes);
    let error = Process::load(config, pool, &mut FlatMemory::default()).expect_err("must be refused");
    assert_eq!(error.exit_code(), ExitCode::Usage);
    let Error::Config(error) = error else { panic!("{error}") };
    assert_eq!(error.field, "elf");
    assert!(error.problem.starts_with("prog "), "{}", error.problem);
    error.problem
}

fn patched(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut elf = elf();
    elf[at..at + bytes.len()].copy_from_slice(bytes);
    elf
}

/// Offset of program header `n`.
fn header(n: usize) -> usize {
    64 + 56 * n
}

#[test]
fn the_crafted_program_itself_loads() {
    program(|_| {});
}

#[test]
fn identity() {
    assert_eq!(refusal(b"#!/bin/sh\n".to_vec()), "prog is not an ELF file");
    assert_eq!(refusal(Vec::new()), "prog is not an ELF file");
    assert_eq!(refusal(patched(4, &[1])), "prog is a 32-bit ELF; only 64-bit RISC-V programs run");
    assert!(refusal(patched(4, &[9])).contains("neither"));
    assert!(refusal(patched(5, &[2])).contains("not little-endian"));
    assert_eq!(
        refusal(patched(18, &62u16.to_le_bytes())),
        "prog is for another processor (ELF machine 62); only RISC-V programs run"
    );
    assert!(refusal(patched(16, &1u16.to_le_bytes())).contains("not an executable"));
    assert!(refusal(patched(48, &8u32.to_le_bytes())).contains("RV64E"));
    assert!(refusal(patched(48, &6u32.to_le_bytes())).contains("quad"));
}

#[test]
fn dynamic_programs() {
    let interp = patched(header(2), &3u32.to_le_bytes());
    assert_eq!(refusal(interp), "prog is dynamically linked; link it with -static");
}

#[test]
fn truncation() {
    let whole = elf();
    for cut in [5, 20, 63] {
        assert!(refusal(whole[..cut].to_vec()).contains("truncated: its ELF header"), "cut at {cut}");
    }
    assert!(refusal(whole[..100].to_vec()).contains("truncated: its program headers"));
    let sentence = refusal(whole[..whole.len() - 1].to_vec());
    assert!(sentence.contains("is truncated: it has 8191 bytes but a segment reaches to byte 8192"), "{sentence}");
}

#[test]
fn segments() {
    let mut none = elf();
    for n in 0..2 {
        none[header(n)..header(n) + 4].copy_from_slice(&0u32.to_le_bytes());
    }
    assert_eq!(refusal(none), "prog has no segment to load");
    let at = |vaddr: u64| refusal(patched(header(1) + 16, &vaddr.to_le_bytes()));
    assert_eq!(at(0x10_0800), "prog has segments that overlap at 0x100800");
    assert!(at(0).contains("programs must lie between"));
    assert!(at(0x3f_0000_0000).contains("programs must lie between"));
    assert!(at(u64::MAX - 100).contains("programs must lie between"));
    let memory_bytes = |size: u64| refusal(patched(header(1) + 40, &size.to_le_bytes()));
    assert!(memory_bytes(1).contains("longer in the file than in memory"));
    assert!(memory_bytes(u64::MAX).contains("programs must lie between"));
    assert!(refusal(patched(24, &0x20_0000u64.to_le_bytes())).contains("starts at 0x200000"));
}

#[test]
fn arguments_pools_roots_and_memory() {
    let load = |change: &dyn Fn(&mut ProcessConfig), pool_bytes: u64| {
        let mut config = ProcessConfig::new("prog", elf(), map());
        change(&mut config);
        let error = Process::load(config, PmemPool::new(pool_bytes), &mut FlatMemory::default());
        error.map(|_| ()).unwrap_err().to_string()
    };
    let pmem = map().pmem_data_bytes;
    assert!(load(&|_| {}, 4096).starts_with("pool: the pool has 4096 bytes"));
    assert!(load(&|c| c.args = vec!["x".repeat(3 << 20)], pmem).starts_with("args: "));
    assert!(load(&|c| c.args = vec!["a\0b".into()], pmem).starts_with("args: "));
    assert!(load(&|c| c.root = Some("/no/such/folder".into()), pmem).starts_with("root: "));
    assert!(load(&|c| c.cores = 0, pmem).starts_with("cores: "));
    assert!(load(&|c| c.map.dram_bytes = 4096, pmem).starts_with("memory: "));
    assert!(load(&|c| c.map.dram_bytes = 5000, pmem).starts_with("memory: "));
}
