//! Files under `/pmem/`: where they lie, how they are mapped, and what is refused.

use crate::common::{AT_FDCWD, DATA, O_CREAT, O_RDWR, PMEM_BYTES, Program, map, program};
use ::syscalls::riscv64::Sysno;
use durasim_isa::{Access, AccessFaultKind};
use durasim_kernel::{PMEM_WINDOW_BASE, PageCopy, PhysMemory, PmemPool, Process, ProcessConfig};
use durasim_types::PhysAddr;

const MAP_SHARED: u64 = 1;
const MAP_PRIVATE: u64 = 2;
const MAP_SHARED_VALIDATE_SYNC: u64 = 3 | 0x8_0000;
const EBUSY: i64 = -16;
const EINVAL: i64 = -22;
const ENOMEM: i64 = -12;
const ENOSPC: i64 = -28;
const ENOENT: i64 = -2;

/// A new file under `/pmem/` of `size_bytes`, opened.
fn create(p: &mut Program, name: &str, size_bytes: u64) -> u64 {
    let fd = p.open(&format!("/pmem/{name}"), O_RDWR | O_CREAT) as u64;
    assert_eq!(p.call(Sysno::ftruncate, &[fd, size_bytes]), 0);
    fd
}

fn phys(p: &mut Program, offset: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    p.memory.read(map().pmem_base.plus(offset), &mut bytes);
    bytes
}

#[test]
fn a_file_is_mapped_where_it_lies() {
    let mut p = program(|_| {});
    create(&mut p, "first", 5000);
    let fd = create(&mut p, "second", 4096);
    let at = p.call(Sysno::mmap, &[0, 4096, 3, MAP_SHARED_VALIDATE_SYNC, fd, 0]) as u64;
    assert_eq!(at, PMEM_WINDOW_BASE + 8192);
    let addr = p.process.space().translate(at + 5, Access::Write).unwrap();
    assert_eq!(addr, map().pmem_base.plus(8192 + 5));
    p.poke(at, b"durable");
    assert_eq!(phys(&mut p, 8192, 7), b"durable");
    assert_eq!(p.call(Sysno::pread64, &[fd, DATA, 7, 0]), 7);
    assert_eq!(p.peek(DATA, 7), b"durable");
    p.poke(DATA, b"DU");
    assert_eq!(p.call(Sysno::write, &[fd, DATA, 2]), 2);
    assert_eq!(p.peek(at, 7), b"DUrable");
    assert_eq!(p.call(Sysno::lseek, &[fd, 0, 2]), 4096);
    assert_eq!(p.call(Sysno::fstat, &[fd, DATA]), 0);
    assert_eq!(p.peek_word(DATA + 48), 4096);

    let epoch = p.process.space().epoch();
    assert_eq!(p.call(Sysno::munmap, &[at, 4096]), 0);
    assert_ne!(p.process.space().epoch(), epoch);
    assert!(p.process.space().translate(at, Access::Read).is_err());
    assert_eq!(phys(&mut p, 8192, 7), b"DUrable");
}

#[test]
fn a_pool_comes_back_in_the_next_run() {
    let mut p = program(|_| {});
    let fd = create(&mut p, "tree", 8192);
    let at = p.call(Sysno::mmap, &[0, 8192, 3, MAP_SHARED, fd, 0]) as u64;
    p.poke(at + 4096, b"kept");
    let (pool, mut memory) = (p.process.into_pool(), p.memory);
    let config = ProcessConfig::new("prog", crate::common::elf(), map());
    let (process, hart) = Process::load(config, pool.clone(), &mut memory).unwrap();
    let mut q = Program { process, memory, hart, out: Default::default(), now_ns: 0 };
    assert_eq!(q.process.pool(), &pool);
    let fd = q.open("/pmem/tree", O_RDWR) as u64;
    assert_eq!(q.call(Sysno::mmap, &[0, 8192, 3, MAP_SHARED, fd, 0]) as u64, at);
    assert_eq!(q.peek(at + 4096, 4), b"kept");
}

#[test]
fn sizes_and_space() {
    let mut p = program(|_| {});
    let fd = p.open("/pmem/a", O_RDWR | O_CREAT) as u64;
    assert_eq!(p.call(Sysno::fallocate, &[fd, 0, 0, 4096]), 0);
    assert_eq!(p.call(Sysno::fallocate, &[fd, 0, 0, 100]), 0, "never shrinks");
    assert_eq!(p.process.pool().get("a").unwrap().size_bytes, 4096);
    assert_eq!(p.call(Sysno::ftruncate, &[fd, 8192]), 0);
    let other = create(&mut p, "b", 4096);
    assert_eq!(p.call(Sysno::ftruncate, &[fd, 12288]), ENOSPC, "b follows");
    assert_eq!(p.call(Sysno::ftruncate, &[other, PMEM_BYTES]), ENOSPC);
    assert_eq!(p.call(Sysno::ftruncate, &[other, PMEM_BYTES - 8192]), 0);
    p.poke(DATA, b"x");
    assert_eq!(p.call(Sysno::pwrite64, &[other, DATA, 1, PMEM_BYTES - 8192]), ENOSPC);
    assert_eq!(p.call(Sysno::pwrite64, &[other, DATA, 1, PMEM_BYTES - 8193]), 1);
}

#[test]
fn removed_and_shrunk_files_leave_zeros() {
    let mut p = program(|_| {});
    let fd = create(&mut p, "a", 8192);
    let at = p.call(Sysno::mmap, &[0, 8192, 3, MAP_SHARED, fd, 0]) as u64;
    p.poke(at, &[7; 8192]);
    let name = p.put("/pmem/a");
    assert_eq!(p.call(Sysno::unlinkat, &[AT_FDCWD, name, 0]), EBUSY, "mapped and open");
    assert_eq!(p.call(Sysno::ftruncate, &[fd, 100]), EBUSY, "its second page is mapped");
    assert_eq!(p.call(Sysno::munmap, &[at + 4096, 4096]), 0);
    assert_eq!(p.call(Sysno::ftruncate, &[fd, 100]), 0);
    assert_eq!(p.peek(at + 98, 4), [7, 7, 0, 0]);
    assert_eq!(p.call(Sysno::munmap, &[at, 4096]), 0);
    assert_eq!(p.call(Sysno::close, &[fd]), 0);
    let name = p.put("/pmem/a");
    assert_eq!(p.call(Sysno::unlinkat, &[AT_FDCWD, name, 0]), 0);
    assert_eq!(phys(&mut p, 0, 8192), [0; 8192]);
    assert_eq!(p.open("/pmem/a", O_RDWR), ENOENT);
}

#[test]
fn names_are_flat_and_listed_and_can_change() {
    let mut p = program(|_| {});
    create(&mut p, "b", 1);
    let fd = create(&mut p, "a", 1);
    assert_eq!(p.open("/pmem/x/y", O_RDWR | O_CREAT), ENOENT);
    assert_eq!(p.open("/pmem/../pmem/./a", O_RDWR), 5);
    p.poke(DATA + 512, b"/pmem/c\0");
    let from = p.put("/pmem/a");
    assert_eq!(p.call(Sysno::renameat2, &[AT_FDCWD, from, AT_FDCWD, DATA + 512, 0]), 0);
    assert_eq!(p.call(Sysno::ftruncate, &[fd, 10]), 0, "open files follow");
    let names: Vec<_> = p.process.pool().files().map(|(name, e)| (name.to_string(), e.size_bytes)).collect();
    assert_eq!(names, [("b".into(), 1), ("c".into(), 10)]);
    let folder = p.open("/pmem", 0) as u64;
    assert_eq!(p.call(Sysno::getdents64, &[folder, DATA, 2048]), 4 * 24);
}

#[test]
fn private_pages_are_copied_when_they_are_written() {
    let mut p = program(|_| {});
    create(&mut p, "before", 4096);
    let fd = create(&mut p, "heap", 3 * 4096);
    let shared = p.call(Sysno::mmap, &[0, 3 * 4096, 3, MAP_SHARED, fd, 0]) as u64;
    p.poke(shared, &[1; 3 * 4096]);
    let own = p.call(Sysno::mmap, &[0, 2 * 4096, 3, MAP_PRIVATE, fd, 4096]) as u64;
    assert!(own > PMEM_WINDOW_BASE + (1 << 37), "{own:#x}");
    let original = p.process.space().translate(own + 5, Access::Read).unwrap();
    assert_eq!(original, map().pmem_base.plus(2 * 4096 + 5));
    p.poke(shared + 4096, b"seen");
    assert_eq!(p.peek(own, 4), b"seen", "until it is copied the page is the file's");

    let fault = p.process.space().translate(own + 5, Access::Write).unwrap_err();
    assert_eq!((fault.why, fault.addr), (AccessFaultKind::CopyOnWrite, own + 5));
    let epoch = p.process.space().epoch();
    p.process.space().resolve_copy_on_write(&mut p.memory, own + 5).unwrap();
    assert_ne!(p.process.space().epoch(), epoch, "cached translations are stale");
    let copy = p.process.space().translate(own + 5, Access::Write).unwrap();
    assert_eq!(p.process.space().translate(own + 5, Access::Read).unwrap(), copy);
    assert!(copy >= map().dram_base && copy < map().pmem_base);
    p.process.space().resolve_copy_on_write(&mut p.memory, own + 5).unwrap();
    assert_eq!(p.process.space().translate(own + 5, Access::Write).unwrap(), copy, "copied once");
    let copied = vec![PageCopy { frame: PhysAddr(copy.0 - 5), original: Some(map().pmem_base.plus(2 * 4096)) }];
    assert_eq!((p.process.space().take_copies(), p.process.space().private_copies()), (copied.clone(), copied));

    // The kernel copies, too; the file keeps what it had.
    p.poke(own + 4094, b"mine");
    assert_eq!(p.peek(own, 8), [b"seen".as_slice(), &[1; 4]].concat());
    assert_eq!(p.peek(own + 4094, 4), b"mine");
    assert_eq!(phys(&mut p, 2 * 4096 + 4094, 4), [1; 4]);
    assert_eq!(p.call(Sysno::msync, &[own, 8192, 4]), 0, "nothing to do");
    assert_eq!(p.call(Sysno::madvise, &[own, 8192, 4]), 0);
    assert_eq!(p.peek(own + 4094, 4), [1; 4], "the copies are gone");
    assert_eq!(p.process.space().private_copies(), []);

    assert_eq!(p.call(Sysno::mprotect, &[own, 4096, 1]), 0);
    let fault = p.process.space().translate(own, Access::Write).unwrap_err();
    assert_eq!(fault.why, AccessFaultKind::Protected);
    assert!(p.process.space().resolve_copy_on_write(&mut p.memory, own).is_err());
    assert_eq!(p.call(Sysno::munmap, &[shared, 3 * 4096]), 0);
    assert_eq!(p.call(Sysno::ftruncate, &[fd, 2 * 4096]), EBUSY, "its last page is mapped");
    assert_eq!(p.call(Sysno::munmap, &[own + 4096, 4096]), 0);
    assert_eq!(p.call(Sysno::ftruncate, &[fd, 2 * 4096]), 0);
}

#[test]
fn a_private_mapping_can_lie_where_the_file_would_be_shared() {
    let mut p = program(|_| {});
    let fd = create(&mut p, "heap", 8192);
    let window = PMEM_WINDOW_BASE;
    assert_eq!(p.call(Sysno::mmap, &[window, 8192, 3, MAP_PRIVATE, fd, 0]) as u64, window);
    assert_ne!(p.call(Sysno::mmap, &[window, 8192, 3, MAP_PRIVATE, fd, 0]) as u64, window, "taken");
    p.poke(window, b"mine");
    assert_eq!(phys(&mut p, 0, 4), [0; 4]);
    assert_eq!(p.call(Sysno::mmap, &[window, 8192, 3, MAP_PRIVATE | 0x10, fd, 0]) as u64, window, "anew");
    assert_eq!(p.peek(window, 4), [0; 4]);
    assert_eq!(p.call(Sysno::mmap, &[window, 8192, 3, MAP_PRIVATE | 0x10_0000, fd, 0]), -17);
    assert!(p.refused(Sysno::mmap, &[0, 16384, 3, MAP_PRIVATE, fd, 0]).contains("set its size first"));
}

#[test]
fn private_pages_can_be_copied_before_they_are_written() {
    const POPULATE_WRITE: u64 = 23;
    let mut p = program(|c| c.map.dram_bytes = 64 * 4096);
    let fd = create(&mut p, "heap", 80 * 4096);
    let shared = p.call(Sysno::mmap, &[0, 4 * 4096, 3, MAP_SHARED, fd, 0]) as u64;
    p.poke(shared, &[7; 4 * 4096]);
    let own = p.call(Sysno::mmap, &[0, 80 * 4096, 3, MAP_PRIVATE, fd, 0]) as u64;
    p.poke(own + 4096, b"mine");
    assert_eq!(p.call(Sysno::madvise, &[own, 3 * 4096, POPULATE_WRITE]), 0);
    assert_eq!(p.process.space().private_copies().len(), 3);
    assert_eq!(p.peek(own + 4094, 8), [&[7, 7], b"mine".as_slice(), &[7, 7]].concat(), "no byte is another");
    p.poke(shared, b"later");
    assert_eq!(p.peek(own, 5), [7; 5], "it is a copy already");
    assert_eq!(p.peek(own + 3 * 4096, 1), [7]);

    assert_eq!(p.call(Sysno::madvise, &[shared, 4096, POPULATE_WRITE]), 0, "nothing to do");
    assert_eq!(p.call(Sysno::madvise, &[own, 80 * 4096, POPULATE_WRITE]), ENOMEM, "the DRAM has fewer pages");
    let fault = p.process.space().translate(8, Access::Read).unwrap_err();
    assert_eq!(p.process.space().describe(&fault), "load from 0x8, where nothing is mapped", "no lack of DRAM");
    assert_eq!(p.call(Sysno::mprotect, &[own, 4096, 1]), 0);
    assert_eq!(p.call(Sysno::madvise, &[own, 4096, POPULATE_WRITE]), EINVAL, "it must not be written");
    assert_eq!(p.call(Sysno::munmap, &[own, 4096]), 0);
    assert_eq!(p.call(Sysno::madvise, &[own, 4096, POPULATE_WRITE]), ENOMEM, "nothing is mapped");
}

#[test]
fn copies_need_dram() {
    let mut p = program(|c| c.map.dram_bytes = 16 * 4096);
    let fd = create(&mut p, "heap", 64 * 4096);
    let own = p.call(Sysno::mmap, &[0, 64 * 4096, 3, MAP_PRIVATE, fd, 0]) as u64;
    let Program { process, memory, .. } = &mut p;
    let fault = (0..64).find_map(|page| process.space().resolve_copy_on_write(memory, own + page * 4096).err());
    let sentence = process.space().describe(&fault.expect("there are more pages than frames"));
    assert_eq!(sentence, "the program needs more than the 65536 bytes of DRAM of the machine");
}

#[test]
fn what_is_not_supported_says_so() {
    let mut p = program(|_| {});
    let fd = create(&mut p, "a", 4096);
    assert!(p.refused(Sysno::mmap, &[0, 8192, 3, MAP_SHARED, fd, 0]).contains("set its size first"));
    let elsewhere = p.refused(Sysno::mmap, &[0x5000_0000, 4096, 3, MAP_SHARED | 0x10, fd, 0]);
    assert!(elsewhere.contains("can be mapped at 0x1000000000 only"), "{elsewhere}");
    let at = p.call(Sysno::mmap, &[0x5000_0000, 4096, 3, MAP_SHARED, fd, 0]) as u64;
    assert_eq!(at, PMEM_WINDOW_BASE, "a hint is only a hint");
    assert!(p.refused(Sysno::mmap, &[0, 4096, 3, MAP_SHARED, fd, 0]).contains("a second time"));
    assert!(p.refused(Sysno::mremap, &[at, 4096, 8192, 1]).contains("cannot grow"));
    let reserved = p.refused(Sysno::mmap, &[PMEM_WINDOW_BASE + (1 << 30), 4096, 3, 0x32, u64::MAX, 0]);
    assert!(reserved.contains("reserved for files under /pmem/"), "{reserved}");
    let hinted = p.call(Sysno::mmap, &[PMEM_WINDOW_BASE + (1 << 30), 4096, 3, 0x22, u64::MAX, 0]) as u64;
    assert!(hinted > PMEM_WINDOW_BASE + (1 << 37), "{hinted:#x}");
}

#[test]
fn an_impossible_pool_is_refused() {
    let text = r#"{"capacity_bytes":16777216,"files":{"a":{"offset_bytes":100,"size_bytes":1}}}"#;
    let pool: PmemPool = serde_json::from_str(text).unwrap();
    let config = ProcessConfig::new("prog", crate::common::elf(), map());
    let error = Process::load(config, pool, &mut durasim_kernel::FlatMemory::default()).unwrap_err();
    assert!(error.to_string().contains("does not start at a page"), "{error}");
}
