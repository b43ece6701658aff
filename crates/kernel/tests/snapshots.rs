//! Forks and snapshots of processes: what continues independently, and what comes back from a file.

use crate::common::{AT_FDCWD, Captured, DATA, O_CREAT, O_RDWR, Program, program};
use ::syscalls::riscv64::Sysno;
use durasim_kernel::{FileChange, Process, SavedProcess, SyscallOutcome, ThreadEvent, ThreadId};
use std::path::{Path, PathBuf};

const ENOENT: i64 = -2;
const MAP_SHARED: u64 = 1;
const READ_WRITE: u64 = 3;

fn rooted() -> (tempfile::TempDir, PathBuf, Program) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_path_buf();
    std::fs::create_dir(root.join("sub")).unwrap();
    std::fs::write(root.join("text"), "hello world").unwrap();
    let p = program(|c| {
        c.root = Some(root.clone());
        c.stdin = b"typed in".to_vec();
    });
    (folder, root, p)
}

/// The program on another process: all else is copied.
fn with(p: &Program, process: Process) -> Program {
    Program { process, memory: p.memory.clone(), hart: p.hart.clone(), out: Captured::default(), now_ns: p.now_ns }
}

fn fork(p: &Program) -> Program {
    with(p, p.process.fork())
}

fn restored(p: &Program, root: Option<&Path>) -> Program {
    let bytes = postcard::to_stdvec(&p.process.save().unwrap()).unwrap();
    let saved: SavedProcess = postcard::from_bytes(&bytes).unwrap();
    let process = Process::restore(saved, root).unwrap();
    let again = postcard::to_stdvec(&process.save().unwrap()).unwrap();
    assert_eq!(again, bytes, "what was restored is what was saved");
    with(p, process)
}

fn write(p: &mut Program, fd: u64, text: &str) {
    p.poke(DATA + 256, text.as_bytes());
    assert_eq!(p.call(Sysno::write, &[fd, DATA + 256, text.len() as u64]), text.len() as i64);
}

fn read(p: &mut Program, fd: u64) -> String {
    let count = p.call(Sysno::read, &[fd, DATA + 512, 1024]);
    assert!(count >= 0, "{count}");
    String::from_utf8(p.peek(DATA + 512, count as usize)).unwrap()
}

fn contents(p: &mut Program, path: &str) -> Option<String> {
    let fd = p.open(path, 0);
    if fd < 0 {
        assert_eq!(fd, ENOENT);
        return None;
    }
    let text = read(p, fd as u64);
    assert_eq!(p.call(Sysno::close, &[fd as u64]), 0);
    Some(text)
}

fn remove(p: &mut Program, path: &str) {
    let path = p.put(path);
    assert_eq!(p.call(Sysno::unlinkat, &[AT_FDCWD, path, 0]), 0);
}

#[test]
fn processes_can_go_to_other_threads() {
    fn check<T: Send + Sync>() {}
    check::<Process>();
    check::<SavedProcess>();
}

#[test]
fn forks_that_write_the_same_file_do_not_see_each_other() {
    let (_folder, root, mut p) = rooted();
    let fd = p.open("log", O_RDWR | O_CREAT) as u64;
    write(&mut p, fd, "start ");
    let (mut one, mut two) = (fork(&p), fork(&p));
    write(&mut one, fd, "one");
    write(&mut p, fd, "original");
    write(&mut two, fd, "two");
    let mut nested = fork(&two);
    write(&mut nested, fd, " nested");
    for (side, text) in [
        (&mut one, "start one"),
        (&mut two, "start two"),
        (&mut nested, "start two nested"),
        (&mut p, "start original"),
    ] {
        assert_eq!(contents(side, "log").unwrap(), text);
        assert_eq!(side.call(Sysno::lseek, &[fd, 0, 1]), text.len() as i64, "each has its own position");
    }
    assert_eq!(std::fs::read_to_string(root.join("log")).unwrap(), "start original", "only the original writes there");
    // The original changes what a fork has not looked at yet, and the other way round.
    remove(&mut p, "text");
    assert_eq!(contents(&mut one, "text").unwrap(), "hello world");
    assert_eq!(contents(&mut p, "text"), None);
    remove(&mut two, "log");
    assert_eq!(contents(&mut two, "log"), None);
    assert_eq!(contents(&mut p, "log").unwrap(), "start original");
    assert_eq!(two.process.changed_files().unwrap(), [], "it removed what it had made: nothing is left to report");
    assert_eq!(
        one.process.changed_files().unwrap(),
        [FileChange::Written { path: "/log".into(), bytes: b"start one".to_vec() }]
    );
}

#[test]
fn a_campaign_can_keep_everything_in_memory() {
    let (_folder, root, mut p) = rooted();
    p.process.keep_files_in_memory();
    let fd = p.open("text", O_RDWR) as u64;
    write(&mut p, fd, "HELLO");
    assert_eq!(contents(&mut p, "text").unwrap(), "HELLO world");
    assert_eq!(p.call(Sysno::fsync, &[fd]), 0);
    assert_eq!(std::fs::read_to_string(root.join("text")).unwrap(), "hello world");
}

#[test]
fn a_restored_process_reads_on_where_it_was_although_the_host_has_changed() {
    let (_folder, root, mut p) = rooted();
    let text = p.open("text", 0) as u64;
    let new = p.open("new", O_RDWR | O_CREAT | 0x400) as u64;
    write(&mut p, new, "first,");
    let closed = p.open("closed", O_RDWR | O_CREAT) as u64;
    write(&mut p, closed, "changed and closed");
    assert_eq!(p.call(Sysno::close, &[closed]), 0);
    let removed = p.open("removed", O_RDWR | O_CREAT) as u64;
    write(&mut p, removed, "no name");
    remove(&mut p, "removed");
    assert_eq!(p.call(Sysno::lseek, &[removed, 3, 0]), 3);
    assert_eq!(p.call(Sysno::read, &[text, DATA, 6]), 6);
    assert_eq!(p.call(Sysno::read, &[0, DATA, 6]), 6);
    let twin = p.call(Sysno::dup, &[text]) as u64;

    let saved = p.process.save().unwrap();
    for name in ["text", "new", "closed"] {
        std::fs::write(root.join(name), "something else entirely").unwrap();
    }
    std::fs::write(root.join("removed"), "back").unwrap();
    let bytes = postcard::to_stdvec(&saved).unwrap();
    drop(p.process.fork());
    let mut q = with(&p, Process::restore(postcard::from_bytes(&bytes).unwrap(), Some(&root)).unwrap());
    assert_eq!(q.call(Sysno::read, &[twin, DATA, 2]), 2);
    assert_eq!(q.peek(DATA, 2), b"wo", "a duplicate shares its position");
    assert_eq!(read(&mut q, text), "rld");
    assert_eq!(read(&mut q, 0), "in");
    write(&mut q, new, "second");
    assert_eq!(contents(&mut q, "new").unwrap(), "first,second", "O_APPEND");
    assert_eq!(contents(&mut q, "closed").unwrap(), "changed and closed");
    assert_eq!(read(&mut q, removed), "name");
    assert_eq!(q.call(Sysno::close, &[text]), 0);
    assert_eq!(q.call(Sysno::close, &[twin]), 0);
    assert_eq!(contents(&mut q, "text").unwrap(), "hello world", "also after it was closed");
    assert_eq!(std::fs::read_to_string(root.join("new")).unwrap(), "something else entirely");
    std::fs::write(root.join("later"), "new on the host").unwrap();
    assert_eq!(contents(&mut q, "later").unwrap(), "new on the host", "the rest of the folder is the host's");
    assert_eq!(contents(&mut q, "removed"), Some("back".into()), "a name that the program gave up is the host's");
}

#[test]
fn listings_mappings_threads_and_waits_come_back() {
    let (_folder, root, mut p) = rooted();
    for name in ["x", "y", "z"] {
        std::fs::write(root.join(name), "").unwrap();
    }
    let folder = p.open("/", 0) as u64;
    assert_eq!(p.call(Sysno::getdents64, &[folder, DATA + 512, 64]), 48, "two names are read");
    let fd = p.open("text", O_RDWR) as u64;
    let shared = p.call(Sysno::mmap, &[0, 4096, READ_WRITE, MAP_SHARED, fd, 0]) as u64;
    assert_eq!(p.call(Sysno::close, &[fd]), 0);
    p.poke(shared, b"J");
    // A thread that waits for a futex.
    const CLONE: u64 = 0x0005_0f00;
    let tid = p.call(Sysno::clone, &[CLONE, DATA + 2048, 0, 0, 0]);
    assert!(matches!(p.process.take_events()[..], [ThreadEvent::Spawned { thread: ThreadId(1), .. }]), "{tid}");
    p.poke(DATA + 64, &[0; 4]);
    let waits = p.outcome_of(ThreadId(1), Sysno::futex, &[DATA + 64, 128, 0, 0]);
    assert_eq!(waits.unwrap(), SyscallOutcome::Wait { until_ns: None });

    let mut twin = fork(&p);
    let mut q = restored(&p, Some(&root));
    std::fs::remove_file(root.join("y")).unwrap();
    for side in [&mut p, &mut twin, &mut q] {
        assert_eq!(side.process.waiting().len(), 1);
        assert_eq!(side.call(Sysno::futex, &[DATA + 64, 129, 1]), 1);
        assert_eq!(side.process.take_events(), [ThreadEvent::Woken { thread: ThreadId(1) }]);
        assert_eq!(side.process.last_syscall(), Some("futex"));
        let mut names = Vec::new();
        while let count @ 1.. = side.call(Sysno::getdents64, &[folder, DATA + 512, 24]) {
            let name = side.peek(DATA + 512 + 19, count as usize - 19);
            names.push(String::from_utf8_lossy(&name).trim_end_matches('\0').to_string());
        }
        assert_eq!(names, ["sub", "text", "x", "y", "z"], "as the folder was when the listing began");
        assert_eq!(side.peek(shared, 5), b"Jello");
    }
    q.poke(shared + 1, b"E");
    let name = q.put("text");
    assert_eq!(q.call(Sysno::msync, &[shared, 4096, 4]), 0);
    assert_eq!(q.call(Sysno::faccessat, &[AT_FDCWD, name, 4]), 0);
    assert_eq!(contents(&mut q, "text").unwrap(), "JEllo world");
    assert_eq!(contents(&mut twin, "text").unwrap(), "Jello world");
    twin.poke(shared, b"T");
    assert_eq!(twin.call(Sysno::munmap, &[shared, 4096]), 0);
    assert_eq!(contents(&mut twin, "text").unwrap(), "Tello world");
    assert_eq!(std::fs::read_to_string(root.join("text")).unwrap(), "hello world", "the original has not written yet");
    assert_eq!(p.outcome(Sysno::exit_group, &[0]).unwrap(), SyscallOutcome::Exit(0));
    assert_eq!(std::fs::read_to_string(root.join("text")).unwrap(), "Jello world");
}

#[test]
fn memory_random_numbers_and_the_heap_continue_unchanged() {
    let mut p = program(|_| {});
    let heap = p.call(Sysno::brk, &[0]) as u64;
    assert_eq!(p.call(Sysno::brk, &[heap + 20_000]) as u64, heap + 20_000);
    p.poke(heap, &[7; 20_000]);
    let area = p.call(Sysno::mmap, &[0, 1 << 20, READ_WRITE, 0x22, u64::MAX, 0]) as u64;
    p.poke(area + 5000, b"deep");
    assert_eq!(p.call(Sysno::munmap, &[area, 4096]), 0);
    let fd = p.open("/pmem/pool", O_RDWR | O_CREAT) as u64;
    assert_eq!(p.call(Sysno::ftruncate, &[fd, 8192]), 0);
    let sides = [restored(&p, None), fork(&p), p];
    let mut seen = sides.map(|mut p| {
        assert_eq!(p.peek(area + 5000, 4), b"deep");
        assert_eq!(p.peek(heap + 19_000, 2), [7, 7]);
        let pmem = p.call(Sysno::mmap, &[0, 8192, READ_WRITE, MAP_SHARED, fd, 0]);
        assert_eq!(p.call(Sysno::getrandom, &[DATA, 32]), 32);
        let random = p.peek(DATA, 32);
        let next = p.call(Sysno::mmap, &[0, 1 << 16, READ_WRITE, 0x22, u64::MAX, 0]) as u64;
        p.poke(next, b"frame");
        let frame = p.process.space().translate(next, durasim_isa::Access::Read).unwrap();
        (pmem, random, next, frame, p.call(Sysno::brk, &[0]))
    });
    seen.sort();
    assert!(seen.iter().all(|side| *side == seen[0]), "{seen:?}");
}

#[test]
fn the_root_folder_has_to_fit() {
    let (_folder, root, p) = rooted();
    let refusal = |p: &Program, root: Option<&Path>| {
        Process::restore(p.process.save().unwrap(), root).map(drop).unwrap_err().to_string()
    };
    assert!(refusal(&p, None).starts_with("root: the saved program had a root folder"));
    assert!(refusal(&p, Some(&root.join("nowhere"))).contains("cannot be used as the root folder"));
    assert!(refusal(&program(|_| {}), Some(&root)).starts_with("root: the saved program had no root folder"));
}

#[test]
fn files_that_are_too_large_for_a_snapshot_are_named() {
    let (_folder, root, mut p) = rooted();
    std::fs::File::create(root.join("large")).unwrap().set_len(5 << 30).unwrap();
    let fd = p.open("large", 0) as u64;
    let error = p.process.save().unwrap_err();
    assert_eq!(
        error.to_string(),
        "/large: the program has it open with 5368709120 bytes; files of more than 4294967296 bytes in all cannot be saved"
    );
    let mut q = fork(&p);
    assert_eq!(q.call(Sysno::pread64, &[fd, DATA, 8, 5_000_000_000]), 8, "forks need no copy");
    assert_eq!(p.call(Sysno::close, &[fd]), 0);
    restored(&p, Some(&root));
}
