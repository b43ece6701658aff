//! Every ELF that cannot run is refused with its own sentence.

use crate::common::{elf, map, program};
use durasim_isa::{Access, Hart};
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

/// The small program with a dynamic linker.
fn dynamic(linker: &[u8]) -> Vec<u8> {
    let mut elf = patched(header(2), &3u32.to_le_bytes());
    let place = 0x200;
    elf[place..place + linker.len()].copy_from_slice(linker);
    elf[header(2) + 8..header(2) + 16].copy_from_slice(&(place as u64).to_le_bytes());
    for size in [32, 40] {
        elf[header(2) + size..header(2) + size + 8].copy_from_slice(&(linker.len() as u64).to_le_bytes());
    }
    elf
}

/// Loads a dynamic program whose root folder has this file at /lib/ld.so.
fn load_with_linker(linker: Option<&[u8]>) -> Result<(Process, Hart), Error> {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("lib")).unwrap();
    if let Some(linker) = linker {
        std::fs::write(root.path().join("lib/ld-1.so"), linker).unwrap();
        // As in distributions: a link, here an absolute one, inside of the root folder.
        std::os::unix::fs::symlink("/lib/ld-1.so", root.path().join("lib/ld.so")).unwrap();
    }
    let mut config = ProcessConfig::new("prog", dynamic(b"/lib/ld.so\0"), map());
    config.root = Some(root.path().to_owned());
    let pool = PmemPool::new(config.map.pmem_data_bytes);
    Process::load(config, pool, &mut FlatMemory::default())
}

#[test]
fn a_dynamic_program_starts_in_its_linker() {
    let mut linker = elf();
    linker[16..18].copy_from_slice(&3u16.to_le_bytes());
    let (mut process, hart) = load_with_linker(Some(&linker)).unwrap();
    assert!(hart.pc > 0xf_0000_0000, "{:#x}: above program and heap", hart.pc);
    assert_eq!(hart.pc & 0xfff_ffff, 0x10_0400);
    for pc in [hart.pc, 0x10_0400] {
        assert!(process.space().translate(pc, Access::Execute).is_ok(), "{pc:#x}");
    }
}

#[test]
fn dynamic_programs_need_their_linker() {
    let sentence = "prog is dynamically linked: pass the folder with its libraries as root, or link it with -static";
    assert_eq!(refusal(dynamic(b"/lib/ld.so\0")), sentence);
    for damaged in [&b"lib/ld.so\0"[..], b"/lib/ld.so", b"/lib\0/ld.so\0", b"/\xff\0", b""] {
        assert_eq!(
            refusal(dynamic(damaged)),
            "prog is dynamically linked, and the path of its dynamic linker is damaged",
            "{damaged:?}"
        );
    }
    let problem = |linker: Option<&[u8]>| match load_with_linker(linker).unwrap_err() {
        Error::Config(error) => format!("{}: {}", error.field, error.problem),
        other => panic!("{other}"),
    };
    assert!(problem(None).starts_with("root: prog needs the dynamic linker /lib/ld.so, which cannot be read"));
    assert_eq!(problem(Some(b"text")), "elf: /lib/ld.so is not an ELF file");
    assert_eq!(problem(Some(&elf())), "elf: /lib/ld.so is no dynamic linker: its addresses are fixed");
    let mut itself = dynamic(b"/lib/ld.so\0");
    itself[16..18].copy_from_slice(&3u16.to_le_bytes());
    assert_eq!(problem(Some(&itself)), "elf: /lib/ld.so is no dynamic linker: it names one");
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
