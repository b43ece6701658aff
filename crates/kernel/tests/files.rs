//! Files of the host: confinement to the root folder, contents, and what must not leak from the host.

use crate::common::{AT_FDCWD, DATA, O_CREAT, O_RDWR, Program, program};
use ::syscalls::riscv64::Sysno;
use durasim_isa::Hart;
use durasim_kernel::{MemoryMap, SyscallOutcome, ThreadId};
use std::path::Path;

const ENOENT: i64 = -2;
const EBADF: i64 = -9;
const EACCES: i64 = -13;
const EFAULT: i64 = -14;
const EEXIST: i64 = -17;
const ENOTDIR: i64 = -20;
const EISDIR: i64 = -21;
const EINVAL: i64 = -22;
const ENOTTY: i64 = -25;
const ESPIPE: i64 = -29;

/// A folder with `inside/` as the root of a program and `secret` beside it.
fn rooted() -> (tempfile::TempDir, Program) {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("inside");
    std::fs::create_dir_all(inside.join("sub")).unwrap();
    std::fs::write(folder.path().join("secret"), "secret").unwrap();
    std::fs::write(inside.join("b.txt"), "hello world").unwrap();
    std::fs::write(inside.join("a.txt"), "").unwrap();
    let p = program(|c| c.root = Some(inside));
    (folder, p)
}

fn symlink(target: impl AsRef<Path>, link: impl AsRef<Path>) {
    std::os::unix::fs::symlink(target, link).unwrap();
}

#[test]
fn nothing_outside_of_the_root_can_be_reached() {
    let (folder, mut p) = rooted();
    let inside = folder.path().join("inside");
    symlink("../secret", inside.join("relative"));
    symlink(folder.path().join("secret"), inside.join("absolute"));
    symlink("..", inside.join("up"));
    symlink("/etc", inside.join("etc"));
    let secret = folder.path().join("secret");
    for path in [
        "../secret",
        "/../secret",
        "sub/../../secret",
        "relative",
        "absolute",
        "up/secret",
        "up/inside/b.txt",
        "etc/hostname",
        secret.to_str().unwrap(),
    ] {
        for flags in [0, O_RDWR, O_RDWR | O_CREAT] {
            // Created under the root instead is fine; opened outside is not.
            let fd = p.open(path, flags);
            if fd >= 0 {
                assert!(p.call(Sysno::read, &[fd as u64, DATA + 512, 64]) <= 0, "{path} was read");
            }
        }
        let name = p.put(path);
        p.call(Sysno::unlinkat, &[AT_FDCWD, name, 0]);
        p.call(Sysno::mkdirat, &[AT_FDCWD, name, 0o755]);
    }
    assert_eq!(std::fs::read_to_string(secret).unwrap(), "secret");
    let mut names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["inside", "secret"]);
}

#[test]
fn links_inside_of_the_root_work() {
    let (folder, mut p) = rooted();
    symlink("../b.txt", folder.path().join("inside/sub/link"));
    let fd = p.open("/sub/link", 0);
    assert!(fd >= 0, "{fd}");
    assert_eq!(p.call(Sysno::read, &[fd as u64, DATA + 512, 5]), 5);
    assert_eq!(p.peek(DATA + 512, 5), b"hello");
    let name = p.put("sub/link");
    assert_eq!(p.call(Sysno::readlinkat, &[AT_FDCWD, name, DATA + 512, 64]), 8);
    assert_eq!(p.peek(DATA + 512, 8), b"../b.txt");
}

#[test]
fn without_a_root_there_are_no_files() {
    let mut p = program(|_| {});
    assert_eq!(p.open("/etc/hostname", 0), ENOENT);
    assert_eq!(p.open("new", O_RDWR | O_CREAT), ENOENT);
    let null = p.open("/dev/null", O_RDWR) as u64;
    assert_eq!(p.call(Sysno::read, &[null, DATA, 10]), 0);
    assert_eq!(p.call(Sysno::write, &[null, DATA, 10]), 10);
}

#[test]
fn reading_writing_and_seeking() {
    let (folder, mut p) = rooted();
    let fd = p.open("new", O_RDWR | O_CREAT) as u64;
    assert_eq!(fd, 3);
    p.poke(DATA, b"0123456789");
    assert_eq!(p.call(Sysno::write, &[fd, DATA, 10]), 10);
    assert_eq!(p.call(Sysno::lseek, &[fd, -4i64 as u64, 1]), 6);
    let twin = p.call(Sysno::dup, &[fd]) as u64;
    assert_eq!(p.call(Sysno::read, &[twin, DATA + 100, 50]), 4);
    assert_eq!(p.peek(DATA + 100, 4), b"6789");
    assert_eq!(p.call(Sysno::lseek, &[fd, 0, 1]), 10, "a duplicate shares the offset");
    assert_eq!(p.call(Sysno::pwrite64, &[fd, DATA, 3, 20]), 3);
    assert_eq!(p.call(Sysno::pread64, &[fd, DATA + 200, 10, 15]), 8);
    assert_eq!(p.peek(DATA + 200, 8), [0, 0, 0, 0, 0, b'0', b'1', b'2']);
    assert_eq!(p.call(Sysno::ftruncate, &[fd, 2]), 0);
    assert_eq!(p.call(Sysno::fallocate, &[fd, 0, 0, 5]), 0);
    assert_eq!(p.call(Sysno::fsync, &[fd]), 0);
    assert_eq!(std::fs::read(folder.path().join("inside/new")).unwrap(), b"01\0\0\0");
    assert_eq!(p.call(Sysno::close, &[fd]), 0);
    assert_eq!(p.call(Sysno::close, &[fd]), EBADF);
    assert_eq!(p.call(Sysno::read, &[twin, DATA, 1]), 0);
    assert_eq!(p.open("new", O_RDWR | O_CREAT | 0x80), EEXIST);
    assert_eq!(p.open("new/x", 0), ENOTDIR);
    assert_eq!(p.open("sub", O_RDWR), EISDIR);
    assert_eq!(p.open("b.txt", 0x1_0000), ENOTDIR);
    assert_eq!(p.open("new", 0), 3, "the lowest free descriptor");
    assert_eq!(p.call(Sysno::write, &[3, DATA, 1]), EBADF, "opened for reading");
}

#[test]
fn appending_vectors_and_standard_streams() {
    let (_folder, mut p) = rooted();
    let fd = p.open("b.txt", O_RDWR | 0x400) as u64;
    p.poke(DATA, b"!?");
    let vector: Vec<u8> = [DATA, 1, DATA + 1, 1].iter().flat_map(|w: &u64| w.to_le_bytes()).collect();
    p.poke(DATA + 64, &vector);
    assert_eq!(p.call(Sysno::writev, &[fd, DATA + 64, 2]), 2);
    assert_eq!(p.call(Sysno::pread64, &[fd, DATA + 128, 64, 0]), 13);
    assert_eq!(p.peek(DATA + 128, 13), b"hello world!?");
    assert_eq!(p.call(Sysno::writev, &[2, DATA + 64, 2]), 2);
    assert_eq!(p.out.stderr, b"!?");
    assert_eq!(p.call(Sysno::lseek, &[1, 0, 0]), ESPIPE);
    assert_eq!(p.call(Sysno::ioctl, &[1, 0x5413, DATA]), ENOTTY);
    assert_eq!(p.call(Sysno::dup3, &[1, 2, 0]), 2);
    assert_eq!(p.call(Sysno::write, &[2, DATA, 1]), 1);
    assert_eq!(p.out.stdout, b"!");
    assert_eq!(p.call(Sysno::fcntl, &[fd, 3, 0]), 0x402);
}

#[test]
fn standard_input() {
    let mut p = program(|c| c.stdin = b"abc".to_vec());
    assert_eq!(p.call(Sysno::read, &[0, DATA, 2]), 2);
    assert_eq!(p.call(Sysno::read, &[0, DATA, 2]), 1);
    assert_eq!(p.call(Sysno::read, &[0, DATA, 2]), 0);
    assert_eq!(p.call(Sysno::write, &[0, DATA, 1]), EBADF);
}

#[test]
fn bad_pointers_are_efault() {
    let mut p = program(|c| c.stdin = b"abc".to_vec());
    for addr in [0, 0x55, 0x3f_0000_0000, u64::MAX - 3, DATA + 4095] {
        assert_eq!(p.call(Sysno::write, &[1, addr, 2]), EFAULT, "{addr:#x}");
        assert_eq!(p.call(Sysno::read, &[0, addr, 2]), EFAULT);
        assert_eq!(
            p.call(Sysno::openat, &[AT_FDCWD, addr & !1, 0, 0]),
            if addr == DATA + 4095 { ENOENT } else { EFAULT }
        );
    }
    assert_eq!(p.call(Sysno::read, &[0, 0x10_0000, 2]), EFAULT, "code cannot be written");
    assert_eq!(p.call(Sysno::read, &[0, DATA, u64::MAX]), EFAULT);
    assert_eq!(p.call(Sysno::read, &[0, DATA, 3]), 3, "failures consumed no input");
}

#[test]
fn facts_do_not_depend_on_the_host() {
    let stat = |p: &mut Program, path: &str| {
        let name = p.put(path);
        assert_eq!(p.call(Sysno::newfstatat, &[AT_FDCWD, name, DATA + 1024, 0]), 0);
        p.peek(DATA + 1024, 128)
    };
    let (_one, mut p) = rooted();
    let (_two, mut q) = rooted();
    let first = stat(&mut p, "/b.txt");
    assert_eq!(first, stat(&mut q, "sub/../b.txt"));
    assert_eq!(first[72..], [0; 56], "times are 0");
    assert_eq!(first[48..56], 11u64.to_le_bytes());
    assert_eq!(first[16..20], 0o100_644u32.to_le_bytes());
    assert_ne!(first[8..16], stat(&mut p, "/a.txt")[8..16], "inodes differ");
    let fd = p.open("b.txt", 0) as u64;
    assert_eq!(p.call(Sysno::fstat, &[fd, DATA + 1024]), 0);
    assert_eq!(p.peek(DATA + 1024, 128), first);
    let name = p.put("/nope");
    assert_eq!(p.call(Sysno::newfstatat, &[AT_FDCWD, name, DATA + 1024, 0]), ENOENT);
}

#[test]
fn folders_are_listed_in_order() {
    let (folder, mut p) = rooted();
    for name in ["z", "m", "k"] {
        std::fs::write(folder.path().join("inside").join(name), "").unwrap();
    }
    let fd = p.open("/", 0) as u64;
    let mut names = Vec::new();
    loop {
        // Room for about two entries at a time.
        let count = p.call(Sysno::getdents64, &[fd, DATA + 512, 64]) as usize;
        if count == 0 {
            break;
        }
        let bytes = p.peek(DATA + 512, count);
        let mut at = 0;
        while at < count {
            let length = usize::from(u16::from_le_bytes([bytes[at + 16], bytes[at + 17]]));
            let name = &bytes[at + 19..at + length];
            let end = name.iter().position(|&b| b == 0).unwrap();
            names.push(String::from_utf8(name[..end].to_vec()).unwrap());
            at += length;
        }
    }
    assert_eq!(names, [".", "..", "a.txt", "b.txt", "k", "m", "sub", "z"]);
    assert_eq!(p.call(Sysno::lseek, &[fd, 0, 0]), 0);
    assert_eq!(p.call(Sysno::getdents64, &[fd, DATA + 512, 10]), EINVAL);
}

#[test]
fn folders_names_and_the_working_folder() {
    let (folder, mut p) = rooted();
    let name = p.put("sub/deep");
    assert_eq!(p.call(Sysno::mkdirat, &[AT_FDCWD, name, 0o755]), 0);
    assert_eq!(p.call(Sysno::chdir, &[name]), 0);
    assert_eq!(p.call(Sysno::getcwd, &[DATA + 512, 64]), 10);
    assert_eq!(p.peek(DATA + 512, 10), b"/sub/deep\0");
    p.poke(DATA + 512, b"../../c.txt\0");
    let from = p.put("../../b.txt");
    assert_eq!(p.call(Sysno::renameat2, &[AT_FDCWD, from, AT_FDCWD, DATA + 512, 1]), 0);
    assert!(folder.path().join("inside/c.txt").exists());
    let name = p.put("/c.txt");
    assert_eq!(p.call(Sysno::faccessat, &[AT_FDCWD, name, 4]), 0);
    assert_eq!(p.call(Sysno::faccessat, &[AT_FDCWD, name, 1]), EACCES);
    let sub = p.open("/sub", 0x1_0000) as u64;
    let name = p.put("deep");
    assert_eq!(p.call(Sysno::unlinkat, &[sub, name, 0x200]), 0);
    assert!(!folder.path().join("inside/sub/deep").exists());
}

#[test]
fn private_and_shared_mappings() {
    let (folder, mut p) = rooted();
    let path = folder.path().join("inside/b.txt");
    let fd = p.open("b.txt", O_RDWR) as u64;
    let private = p.call(Sysno::mmap, &[0, 4096, 3, 2, fd, 0]) as u64;
    let shared = p.call(Sysno::mmap, &[0, 8192, 3, 1, fd, 0]) as u64;
    let second = p.call(Sysno::mmap, &[0, 4096, 1, 1, fd, 0]) as u64;
    p.poke(private, b"P");
    p.poke(shared, b"J");
    assert_eq!(p.peek(private, 12), b"Pello world\0");
    assert_eq!(p.peek(second, 12), b"Jello world\0", "mappings of one file share their frames");
    assert_eq!(std::fs::read(&path).unwrap(), b"hello world");
    assert_eq!(p.call(Sysno::pread64, &[fd, DATA, 5, 0]), 5);
    assert_eq!(p.peek(DATA, 5), b"Jello", "read sees the mapping");
    p.poke(DATA, b"WW");
    assert_eq!(p.call(Sysno::pwrite64, &[fd, DATA, 2, 4]), 2);
    assert_eq!(p.peek(shared, 11), b"JellWWworld", "the mapping sees write");
    p.poke(shared + 1, b"E");
    assert_eq!(p.call(Sysno::msync, &[shared, 4096, 4]), 0);
    assert_eq!(std::fs::read(&path).unwrap(), b"JEllWWworld");
    p.poke(shared + 2, b"L");
    assert_eq!(p.call(Sysno::close, &[fd]), 0);
    assert_eq!(p.call(Sysno::munmap, &[shared, 8192]), 0);
    assert_eq!(p.call(Sysno::munmap, &[second, 4096]), 0);
    assert_eq!(std::fs::read(&path).unwrap(), b"JELlWWworld", "written back, not longer than it was");
    assert_eq!(p.peek(private, 2), b"Pe");

    let fd = p.open("b.txt", O_RDWR) as u64;
    let again = p.call(Sysno::mmap, &[0, 4096, 3, 1, fd, 0]) as u64;
    p.poke(again, b"exit");
    assert_eq!(p.outcome(Sysno::exit_group, &[7]).unwrap(), SyscallOutcome::Exit(7));
    assert_eq!(std::fs::read(&path).unwrap(), b"exitWWworld");
}

#[test]
fn read_only_files_cannot_be_mapped_for_writing() {
    let (_folder, mut p) = rooted();
    let fd = p.open("b.txt", 0) as u64;
    assert_eq!(p.call(Sysno::mmap, &[0, 4096, 3, 1, fd, 0]), EACCES);
    let shared = p.call(Sysno::mmap, &[0, 4096, 1, 1, fd, 0]) as u64;
    assert_eq!(p.call(Sysno::mprotect, &[shared, 4096, 3]), EACCES);
    let private = p.call(Sysno::mmap, &[0, 4096, 3, 2, fd, 0]);
    assert!(private > 0);
    assert_eq!(p.call(Sysno::mmap, &[0, 4096, 1, 3 | 0x8_0000, fd, 0]), -95, "MAP_SYNC needs persistent memory");
}

#[test]
fn a_small_dram_is_an_error_and_not_a_panic() {
    let mut p = program(|c| c.map = MemoryMap { dram_bytes: 16 * 4096, ..c.map });
    let at = p.call(Sysno::mmap, &[0, 64 * 4096, 3, 0x4022, u64::MAX, 0]) as u64;
    assert!(p.refused(Sysno::getrandom, &[at, 64 * 4096]).contains("needs more than the 65536 bytes of DRAM"));
    assert_eq!(p.call(Sysno::mmap, &[0, 64 * 4096, 3, 0x22, u64::MAX, 0]), -12);
}

#[test]
fn a_shared_file_is_mapped_piece_by_piece() {
    let (_folder, mut p) = rooted();
    let fd = p.open("/grows", O_RDWR | O_CREAT) as u64;
    let map = |p: &mut Program, page: u64, pages: u64| {
        let at = p.call(Sysno::mmap, &[0, pages * 4096, 3, 1, fd, page * 4096]);
        assert!(at > 0, "{at}");
        at as u64
    };
    assert_eq!(p.call(Sysno::ftruncate, &[fd, 8192]), 0);
    let middle = map(&mut p, 1, 1);
    p.poke(middle, b"one");
    assert_eq!(p.call(Sysno::ftruncate, &[fd, 4 * 4096]), 0);
    let all = map(&mut p, 0, 4);
    assert_eq!(p.peek(all + 4096, 3), b"one", "the page that was there before");
    p.poke(all + 3 * 4096, b"three");
    assert_eq!(p.call(Sysno::munmap, &[all, 4 * 4096]), 0);
    let last = map(&mut p, 3, 1);
    assert_eq!(p.peek(last, 5), b"three");
    // The only mapping is replaced by another of the same file.
    assert_eq!(p.call(Sysno::munmap, &[middle, 4096]), 0);
    assert_eq!(p.call(Sysno::mmap, &[last, 4096, 3, 1 | 0x10, fd, 4096]) as u64, last);
    assert_eq!(p.peek(last, 3), b"one");
    assert_eq!(p.call(Sysno::pread64, &[fd, DATA, 5, 3 * 4096]), 5);
    assert_eq!(p.peek(DATA, 5), b"three");
}

#[test]
fn pipes_hold_what_was_written() {
    const O_NONBLOCK: u64 = 0x800;
    const EAGAIN: i64 = -11;
    let mut p = program(|_| {});
    assert_eq!(p.call(Sysno::pipe2, &[DATA, 0x80_0000]), EINVAL);
    assert_eq!(p.call(Sysno::pipe2, &[DATA, O_NONBLOCK]), 0);
    let (reads, writes) = (3, 4);
    assert_eq!(p.peek_word(DATA), 3 | 4 << 32);
    p.poke(DATA, b"into the pipe");
    assert_eq!(p.call(Sysno::read, &[reads, DATA, 4]), EAGAIN);
    assert_eq!(p.call(Sysno::write, &[writes, DATA, 13]), 13);
    assert_eq!(p.call(Sysno::write, &[reads, DATA, 13]), EBADF);
    assert_eq!(p.call(Sysno::read, &[writes, DATA, 13]), EBADF);
    assert_eq!(p.call(Sysno::lseek, &[reads, 0, 0]), ESPIPE);
    assert_eq!(p.call(Sysno::read, &[reads, DATA + 64, 4]), 4);
    assert_eq!(p.call(Sysno::read, &[reads, DATA + 68, 99]), 9);
    assert_eq!(p.peek(DATA + 64, 13), b"into the pipe");

    let state = |p: &mut Program, fd: u64| {
        p.poke(DATA + 128, &(fd | 5 << 32).to_le_bytes());
        p.poke(DATA + 136, &[0; 16]);
        (p.call(Sysno::ppoll, &[DATA + 128, 1, DATA + 136]), p.peek(DATA + 134, 1)[0])
    };
    assert_eq!(state(&mut p, writes), (1, 4), "room to write");
    p.poke(DATA + 128, &(reads | 1 << 32).to_le_bytes());
    assert_eq!(p.call(Sysno::ppoll, &[DATA + 128, 1, DATA + 136]), 0, "not to wait");
    let big = p.call(Sysno::mmap, &[0, 1 << 20, 3, 0x22, u64::MAX, 0]) as u64;
    assert_eq!(p.call(Sysno::write, &[writes, big, 65536]), 65536);
    assert_eq!(p.call(Sysno::write, &[writes, big, 1]), EAGAIN, "it is full");
    assert_eq!(state(&mut p, reads), (1, 1));
    assert_eq!(p.call(Sysno::close, &[writes]), 0);
    assert_eq!(state(&mut p, reads), (1, 1 | 0x10), "the other side hung up");
    assert_eq!(p.call(Sysno::read, &[reads, big, 1 << 20]), 65536);
    assert_eq!(p.call(Sysno::read, &[reads, big, 1]), 0, "the end");

    assert_eq!(p.call(Sysno::pipe2, &[DATA, 0]), 0);
    assert_eq!(p.peek_word(DATA), 4 | 5 << 32);
    assert_eq!(p.outcome(Sysno::read, &[4, DATA, 1]).unwrap(), SyscallOutcome::Wait { until_ns: None });
    p.process.time_out(ThreadId::FIRST, &mut Hart::default());
    assert_eq!(p.outcome(Sysno::write, &[5, big, 65537]).unwrap(), SyscallOutcome::Wait { until_ns: None });
    assert_eq!(p.call(Sysno::ioctl, &[4, 0x541b, DATA]), 0);
    assert_eq!(p.peek_word(DATA) as u32, 65536, "one byte is left");
}
