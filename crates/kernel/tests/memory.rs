//! Mappings, rights and the initial stack.

use crate::common::{DATA, Program, program};
use ::syscalls::riscv64::Sysno;
use durasim_isa::{Access, AccessFaultKind};
use std::collections::BTreeMap;

const ENOMEM: i64 = -12;
const EFAULT: i64 = -14;
const EEXIST: i64 = -17;
const EINVAL: i64 = -22;
const ANONYMOUS: u64 = 0x22;
const FIXED: u64 = 0x10;
const NO_FILE: u64 = u64::MAX;

fn anonymous(p: &mut Program, pages: u64) -> u64 {
    p.call(Sysno::mmap, &[0, pages * 4096, 3, ANONYMOUS, NO_FILE, 0]) as u64
}

fn why(p: &mut Program, addr: u64, access: Access) -> Option<AccessFaultKind> {
    p.process.space().translate(addr, access).err().map(|fault| fault.why)
}

#[test]
fn rights_are_checked() {
    let mut p = program(|_| {});
    assert_eq!(why(&mut p, 0x10_0400, Access::Execute), None);
    assert_eq!(why(&mut p, 0x10_0400, Access::Read), None);
    assert_eq!(why(&mut p, 0x10_0400, Access::Write), Some(AccessFaultKind::Protected));
    assert_eq!(why(&mut p, DATA, Access::Execute), Some(AccessFaultKind::Protected));
    assert_eq!(why(&mut p, 0, Access::Read), Some(AccessFaultKind::Unmapped));
    assert_eq!(why(&mut p, u64::MAX, Access::Read), Some(AccessFaultKind::Unmapped));
    let at = anonymous(&mut p, 1);
    assert_eq!(p.call(Sysno::mprotect, &[at, 4096, 0]), 0);
    let fault = p.process.space().translate(at + 8, Access::Read).unwrap_err();
    assert_eq!(p.process.space().describe(&fault), format!("load from {:#x}, which its mapping forbids", at + 8));
    assert_eq!(p.call(Sysno::mprotect, &[at, 4096, 2]), 0);
    assert_eq!(why(&mut p, at, Access::Read), None, "what can be written can be read");
}

#[test]
fn pages_that_lose_something_are_reported_once() {
    let mut p = program(|_| {});
    p.process.space().take_lost();
    let at = anonymous(&mut p, 8);
    let page = at / 4096;
    assert_eq!(p.process.space().take_lost(), [], "gains change no translation");
    assert_eq!(p.call(Sysno::mprotect, &[at + 4096, 2 * 4096, 1]), 0);
    assert_eq!(p.call(Sysno::munmap, &[at + 4 * 4096, 4096]), 0);
    assert_eq!(p.process.space().take_lost(), [page + 1..page + 3, page + 4..page + 5]);
    assert_eq!(p.process.space().take_lost(), []);
    let moved = p.call(Sysno::mremap, &[at + 6 * 4096, 2 * 4096, 4 * 4096, 1]) as u64;
    assert_ne!(moved, at + 6 * 4096);
    assert_eq!(p.process.space().take_lost(), vec![page + 6..page + 8]);
}

#[test]
fn a_page_table_takes_frames_when_it_is_read() {
    let mut p = program(|_| {});
    let mut entry = |vaddr: u64, level| p.process.space().table_entry(vaddr, level).unwrap();
    let leaf = entry(0x4000_3000, 0);
    assert_eq!(leaf.0 % 4096, 8 * 3, "the fourth page of its table");
    assert_eq!(entry(0x4000_4000, 0), leaf.plus(8));
    assert_eq!(entry(0x4000_3fff, 0), leaf, "it is there now");
    let next = entry(0x4020_3000, 0);
    assert_ne!(next.0 / 4096, leaf.0 / 4096, "another 2 MB has another table");
    let above = entry(0x4000_3000, 1);
    assert_eq!((above.0 % 4096, entry(0x4020_3000, 1)), (0, above.plus(8)));
    // From the root: 512 GB, 1 GB, 2 MB, 4 KB.
    let levels = [3, 2, 1, 0].map(|level| entry(0x7654_3210_f000, level).0 % 4096 / 8);
    assert_eq!(levels, [39, 30, 21, 12].map(|shift| 0x7654_3210_f000u64 >> shift & 511));
}

#[test]
fn epochs_change_when_something_is_lost() {
    let mut p = program(|_| {});
    let epochs = |p: &mut Program| (p.process.space().epoch(), p.process.space().code_epoch());
    let start = epochs(&mut p);
    let at = anonymous(&mut p, 4);
    assert_eq!(p.call(Sysno::brk, &[0x20_5000]), 0x20_5000);
    assert_eq!(epochs(&mut p), start, "gains cost nothing");
    assert_eq!(p.call(Sysno::mprotect, &[at, 4096, 1]), 0);
    let lost = epochs(&mut p);
    assert!(lost.0 > start.0 && lost.1 == start.1);
    assert_eq!(p.call(Sysno::mprotect, &[at, 4096, 5]), 0);
    let code = epochs(&mut p);
    assert!(code.0 == lost.0 && code.1 > lost.1);
    assert_eq!(p.call(Sysno::munmap, &[at, 4096]), 0);
    let gone = epochs(&mut p);
    assert!(gone.0 > code.0 && gone.1 > code.1);
}

#[test]
fn pages_start_as_zeros_also_the_second_time() {
    let mut p = program(|_| {});
    let at = anonymous(&mut p, 3);
    p.poke(at, &[1; 3 * 4096]);
    assert_eq!(p.call(Sysno::munmap, &[at + 4096, 4096]), 0);
    assert_eq!(why(&mut p, at + 4096, Access::Read), Some(AccessFaultKind::Unmapped));
    assert_eq!(p.peek(at + 8192, 2), [1, 1]);
    assert_eq!(p.call(Sysno::mmap, &[at + 4096, 4096, 3, ANONYMOUS | FIXED, NO_FILE, 0]) as u64, at + 4096);
    assert_eq!(p.peek(at + 4096, 4096), [0; 4096]);
    assert_eq!(p.call(Sysno::madvise, &[at, 3 * 4096, 4]), 0);
    assert_eq!(p.peek(at, 3 * 4096), [0; 3 * 4096]);
}

#[test]
fn mappings_are_placed_as_asked() {
    let mut p = program(|_| {});
    let first = anonymous(&mut p, 2);
    let second = anonymous(&mut p, 1);
    assert_eq!((first, second), (0x40_0080_2000, first + 8192), "from the bottom up, after the stack");
    assert_eq!(p.call(Sysno::munmap, &[first, 4096]), 0);
    assert_eq!(anonymous(&mut p, 1), second + 4096, "what was given back is not used again");
    let hint = 0x3000_0000;
    let map_at = |p: &mut Program, flags| p.call(Sysno::mmap, &[hint, 4096, 3, ANONYMOUS | flags, NO_FILE, 0]);
    assert_eq!(map_at(&mut p, 0) as u64, hint);
    let elsewhere = map_at(&mut p, 0) as u64;
    assert_eq!((elsewhere >> 40, elsewhere % 0x1_0000), (0x7f, 0x8000), "where qemu's host would put it");
    assert_eq!(
        p.call(Sysno::mmap, &[elsewhere - 0x1000 + 5, 4096, 3, ANONYMOUS, NO_FILE, 0]) as u64,
        elsewhere - 0x1000
    );
    assert_eq!(map_at(&mut p, 0) as u64, elsewhere - 0x1_0000);
    assert_eq!(map_at(&mut p, 0x10_0000), EEXIST);
    p.poke(hint, b"old");
    assert_eq!(map_at(&mut p, FIXED) as u64, hint);
    assert_eq!(p.peek(hint, 3), [0; 3]);
    let refused = |p: &mut Program, args: &[u64]| p.call(Sysno::mmap, args);
    assert_eq!(refused(&mut p, &[0, 0, 3, ANONYMOUS, NO_FILE, 0]), EINVAL);
    assert_eq!(refused(&mut p, &[0, 4096, 3, 0x20, NO_FILE, 0]), EINVAL);
    assert_eq!(refused(&mut p, &[0, 4096, 3, 2, 99, 0]), -9);
    assert_eq!(refused(&mut p, &[0, u64::MAX, 3, ANONYMOUS, NO_FILE, 0]), ENOMEM);
    assert_eq!(refused(&mut p, &[0x100, 4096, 3, ANONYMOUS | FIXED, NO_FILE, 0]), EINVAL);
    assert_eq!(refused(&mut p, &[0x1000, 4096, 3, ANONYMOUS | FIXED, NO_FILE, 0]), -1);
    assert_eq!(refused(&mut p, &[0x7fff_ffff_f000, 8192, 3, ANONYMOUS | FIXED, NO_FILE, 0]), ENOMEM);
    assert_eq!(p.call(Sysno::munmap, &[first + 1, 4096]), EINVAL);
}

#[test]
fn the_heap_grows_and_shrinks() {
    let mut p = program(|_| {});
    let start = p.call(Sysno::brk, &[0]) as u64;
    assert_eq!(start, DATA + 4096);
    assert_eq!(p.call(Sysno::brk, &[start + 10_000]) as u64, start + 10_000);
    p.poke(start + 9_000, b"heap");
    assert_eq!(p.call(Sysno::brk, &[start + 100]) as u64, start + 100);
    assert_eq!(why(&mut p, start + 9_000, Access::Read), Some(AccessFaultKind::Unmapped));
    assert_eq!(p.call(Sysno::brk, &[start + 10_000]) as u64, start + 10_000);
    assert_eq!(p.peek(start + 9_000, 4), [0; 4]);
    assert_eq!(p.call(Sysno::brk, &[start - 1]) as u64, start + 10_000);
    assert_eq!(p.call(Sysno::brk, &[1 << 40]) as u64, start + 10_000);
}

#[test]
fn mappings_grow_in_place_or_move() {
    let mut p = program(|_| {});
    let at = anonymous(&mut p, 2);
    assert_eq!(anonymous(&mut p, 1), at + 8192);
    p.poke(at, b"moves");
    p.poke(at + 4096, b"too");
    assert_eq!(p.call(Sysno::mremap, &[at, 8192, 4 * 4096, 0]), ENOMEM, "no room above");
    let epoch = p.process.space().epoch();
    let moved = p.call(Sysno::mremap, &[at, 8192, 4 * 4096, 1]) as u64;
    assert_ne!(moved, at);
    assert_ne!(p.process.space().epoch(), epoch);
    assert_eq!(p.peek(moved, 5), b"moves");
    assert_eq!(p.peek(moved + 4096, 3), b"too");
    assert_eq!(p.peek(moved + 8192, 8192), [0; 8192]);
    assert_eq!(why(&mut p, at, Access::Read), Some(AccessFaultKind::Unmapped));
    assert_eq!(p.call(Sysno::mremap, &[moved, 4 * 4096, 4096, 0]) as u64, moved);
    assert_eq!(p.call(Sysno::mremap, &[moved, 4096, 8192, 0]) as u64, moved, "the room is free again");
    let smaller = p.call(Sysno::mremap, &[moved, 8192, 4096, 1]) as u64;
    assert_eq!(smaller, moved + 4 * 4096, "what may move does");
    assert_eq!(p.peek(smaller, 5), b"moves");
    for gone in [moved, moved + 4096, smaller + 4096] {
        assert_eq!(why(&mut p, gone, Access::Read), Some(AccessFaultKind::Unmapped));
    }
    assert_eq!(p.call(Sysno::mremap, &[0x6000_0000, 4096, 8192, 1]), EFAULT);
}

#[test]
fn the_stack_is_what_linux_makes() {
    let mut p = program(|c| {
        c.args = vec!["one".into(), "two words".into()];
        c.env = vec!["A=1".into()];
        c.seed = 42;
    });
    let sp = p.hart.x[2];
    assert_eq!(sp % 16, 0);
    assert_eq!(p.hart.pc, 0x10_0400);
    let word = |p: &mut Program, n: u64| p.peek_word(sp + 8 * n);
    let text = |p: &mut Program, addr: u64, len: usize| String::from_utf8(p.peek(addr, len)).unwrap();
    assert_eq!(word(&mut p, 0), 3);
    let (a0, a2, e0) = (word(&mut p, 1), word(&mut p, 3), word(&mut p, 5));
    assert_eq!(text(&mut p, a0, 5), "prog\0");
    assert_eq!(text(&mut p, a2, 10), "two words\0");
    assert_eq!(word(&mut p, 4), 0);
    assert_eq!(text(&mut p, e0, 4), "A=1\0");
    assert_eq!(word(&mut p, 6), 0);
    let mut aux = BTreeMap::new();
    let mut keys = Vec::new();
    let mut n = 7;
    while word(&mut p, n) != 0 {
        keys.push(word(&mut p, n));
        aux.insert(word(&mut p, n), word(&mut p, n + 1));
        n += 2;
    }
    assert_eq!(keys, [3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 16, 17, 25, 23, 31], "as qemu orders them");
    assert_eq!(aux[&25] % 16, 0);
    assert_eq!(text(&mut p, aux[&31], 5), "prog\0");
    assert_eq!(aux[&31] + 5, 0x40_0080_1000 - 8, "the name ends the stack, except for eight zero bytes");
    assert_eq!(why(&mut p, sp - (8 << 20), Access::Read), Some(AccessFaultKind::Protected), "a page below the stack");
    let expected = [(3, 0x10_0040), (4, 56), (5, 3), (6, 4096), (9, 0x10_0400), (16, 0x112d), (17, 100), (23, 0)];
    for (key, value) in expected {
        assert_eq!(aux[&key], value, "AT_ {key}");
    }
    let random = p.peek(aux[&25], 16);
    assert_ne!(random, [0; 16]);
    let mut again = program(|c| {
        c.args = vec!["one".into(), "two words".into()];
        c.env = vec!["A=1".into()];
        c.seed = 42;
    });
    assert_eq!(again.peek(aux[&25], 16), random, "seeded");
    assert_eq!(why(&mut p, sp - (7 << 20), Access::Write), None, "8 MB");
}
