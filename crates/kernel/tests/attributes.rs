//! Rights, owners, links, sizes and positions of files.

use crate::common::{AT_FDCWD, DATA, O_CREAT, O_RDWR, PMEM_BYTES, Program, program};
use ::syscalls::riscv64::Sysno;
use std::os::unix::fs::PermissionsExt;

const ENOENT: i64 = -2;
const EPERM: i64 = -1;
const EXDEV: i64 = -18;
const EISDIR: i64 = -21;
const ESPIPE: i64 = -29;
const OTHER: u64 = DATA + 1024;

fn rooted() -> (tempfile::TempDir, Program) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), b"0123456789").unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    let root = folder.path().to_path_buf();
    (folder, program(|c| c.root = Some(root)))
}

#[test]
fn rights_and_owners() {
    let (folder, mut p) = rooted();
    let path = p.put("/file");
    let rights = || std::fs::metadata(folder.path().join("file")).unwrap().permissions().mode() & 0o777;
    assert_eq!(p.call(Sysno::fchmodat, &[AT_FDCWD, path, 0o700]), 0);
    assert_eq!(rights(), 0o700);
    let fd = p.open("/file", O_RDWR) as u64;
    assert_eq!(p.call(Sysno::fchmod, &[fd, 0o640]), 0);
    assert_eq!(rights(), 0o640);
    assert_eq!(p.call(Sysno::fchown, &[fd, 1000, u64::MAX]), 0);
    assert_eq!(p.call(Sysno::fchown, &[fd, 0, 0]), EPERM);
    assert_eq!(p.call(Sysno::fchownat, &[AT_FDCWD, path, 1000, 1000, 0]), 0);
    assert_eq!(p.call(Sysno::utimensat, &[fd, 0, 0, 0]), 0);
    let path = p.put("/none");
    assert_eq!(p.call(Sysno::utimensat, &[AT_FDCWD, path, 0, 0]), ENOENT);
    assert_eq!(p.call(Sysno::fchmodat, &[AT_FDCWD, path, 0o700]), ENOENT);
    assert_eq!(p.call(Sysno::fgetxattr, &[fd, path, 0, 0]), -95);
}

#[test]
fn links_and_sizes() {
    let (folder, mut p) = rooted();
    p.poke(OTHER, b"/sub/link\0");
    let path = p.put("/file");
    assert_eq!(p.call(Sysno::linkat, &[AT_FDCWD, path, AT_FDCWD, OTHER, 0]), 0);
    assert_eq!(p.call(Sysno::truncate, &[OTHER, 4]), 0);
    assert_eq!(std::fs::read(folder.path().join("file")).unwrap(), b"0123");
    p.poke(OTHER, b"/soft\0");
    let target = p.put("sub/link");
    assert_eq!(p.call(Sysno::symlinkat, &[target, AT_FDCWD, OTHER]), 0);
    assert_eq!(std::fs::read(folder.path().join("soft")).unwrap(), b"0123");
    let path = p.put("/sub");
    assert_eq!(p.call(Sysno::truncate, &[path, 4]), EISDIR);
    p.open("/pmem/pool", O_RDWR | O_CREAT);
    let path = p.put("/pmem/pool");
    assert_eq!(p.call(Sysno::truncate, &[path, 8192]), 0);
    p.poke(OTHER, b"/other\0");
    assert_eq!(p.call(Sysno::linkat, &[AT_FDCWD, path, AT_FDCWD, OTHER, 0]), EXDEV);
    assert_eq!(p.call(Sysno::statfs, &[path, OTHER]), 0);
    let blocks = PMEM_BYTES / 4096;
    assert_eq!((p.peek_word(OTHER + 16), p.peek_word(OTHER + 24)), (blocks, blocks - 2));
    assert_eq!(p.call(Sysno::sync, &[]), 0);
    let path = p.put("/file");
    assert_eq!(p.call(Sysno::statfs, &[path, OTHER]), 0);
    assert_eq!(p.peek_word(OTHER + 24), 1 << 28);
}

#[test]
fn transfers_at_positions_and_between_files() {
    let (folder, mut p) = rooted();
    let fd = p.open("/file", O_RDWR) as u64;
    let vectors =
        |parts: [(u64, u64); 2]| parts.map(|(at, len)| [at.to_le_bytes(), len.to_le_bytes()].concat()).concat();
    p.poke(OTHER, &vectors([(DATA, 3), (DATA + 8, 4)]));
    assert_eq!(p.call(Sysno::preadv, &[fd, OTHER, 2, 4]), 6, "the file ends");
    assert_eq!((p.peek(DATA, 3), p.peek(DATA + 8, 3)), (b"456".to_vec(), b"789".to_vec()));
    assert_eq!(p.call(Sysno::pwritev, &[fd, OTHER, 2, 8]), 7);
    assert_eq!(std::fs::read(folder.path().join("file")).unwrap()[8..14], *b"456789");
    assert_eq!(p.call(Sysno::lseek, &[fd, 0, 1]), 0, "the position is as before");
    assert_eq!(p.call(Sysno::preadv, &[0, OTHER, 2, 4]), ESPIPE);

    let to = p.open("/copy", O_RDWR | O_CREAT) as u64;
    assert_eq!(p.call(Sysno::sendfile, &[to, fd, 0, 5]), 5);
    p.poke(OTHER, &8u64.to_le_bytes());
    assert_eq!(p.call(Sysno::sendfile, &[to, fd, OTHER, 3]), 3);
    assert_eq!(p.peek_word(OTHER), 11);
    assert_eq!((p.call(Sysno::lseek, &[fd, 0, 1]), p.call(Sysno::lseek, &[to, 0, 1])), (5, 8));
    assert_eq!(std::fs::read(folder.path().join("copy")).unwrap(), b"01234456");

    p.poke(OTHER, &1u16.to_le_bytes());
    assert_eq!(p.call(Sysno::fcntl, &[fd, 5, OTHER]), 0);
    assert_eq!(p.peek(OTHER, 2), [2, 0], "no process holds a lock");
    assert_eq!(p.call(Sysno::fadvise64, &[fd, 0, 0, 1]), 0);
}
