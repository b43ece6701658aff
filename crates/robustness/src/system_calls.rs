//! Any bytes as a program of system calls: whatever it asks for, it sees and changes nothing outside of its root folder.
//!
//! Beside the root lies a folder that no call may touch or show, and symbolic links in the root lead there. A fork of the
//! process changes nothing on the host at all.

use crate::assert_is_a_sentence;
use crate::bytes::Bytes;
use crate::marks::reach;
use crate::memory::{Fenced, small_map};
use crate::small_program::{CALL, DATA, small_program};
use durasim_isa::Hart;
use durasim_kernel::{PmemPool, Process, ProcessConfig, SyscallOutcome, ThreadId};
use durasim_machine::Captured;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use syscalls::riscv64::Sysno;

/// In every file outside of the root, and in the name of one of them.
const MARK: &[u8] = b"5ent1nel";
/// The first bytes of the host's own list of users.
const HOST_MARK: &[u8] = b"root:x:";
/// A size that no file in the root gets.
const SECRET_BYTES: u64 = (1 << 20) + 17;
const CALLS_MAX: usize = 200;
const AT_FDCWD: u64 = -100i64 as u64;
/// The address at which the program puts paths, and that of its answers.
const PATH: u64 = DATA;
const OTHER_PATH: u64 = DATA + 512;
const ANSWER: u64 = DATA + 1024;
const ANSWER_BYTES: u64 = 2048;
const MAPPED: u64 = 0x3000_0000;

/// Paths; `TOP` stands for the folder that holds the root and what lies outside.
const PATHS: [&str; 35] = [
    "file",
    "d",
    "d/file",
    "d/e",
    "d/e/new",
    "new",
    "/new",
    ".",
    "/",
    "..",
    "/..",
    "../outside",
    "../outside/secret",
    "/../outside/secret",
    "d/../../outside/secret",
    "TOP/outside/secret",
    "TOP/root/file",
    "out",
    "out/secret",
    "out/new",
    "up",
    "up/outside/secret",
    "up/up/up/outside/new",
    "absolute",
    "absolute/../secret",
    "d/deep",
    "loop",
    "link",
    "link/secret",
    "/proc/self/root/etc/passwd",
    "/pmem/pool",
    "/dev/null",
    "/etc/passwd",
    "../../../../../../../../etc/passwd",
    "up/../../../../../etc/passwd",
];

const CALLS: [Sysno; 40] = [
    Sysno::openat,
    Sysno::openat,
    Sysno::openat,
    Sysno::read,
    Sysno::write,
    Sysno::pread64,
    Sysno::pwrite64,
    Sysno::lseek,
    Sysno::close,
    Sysno::dup,
    Sysno::ftruncate,
    Sysno::fallocate,
    Sysno::fsync,
    Sysno::fstat,
    Sysno::getdents64,
    Sysno::newfstatat,
    Sysno::statx,
    Sysno::faccessat,
    Sysno::readlinkat,
    Sysno::unlinkat,
    Sysno::unlinkat,
    Sysno::mkdirat,
    Sysno::renameat2,
    Sysno::renameat2,
    Sysno::linkat,
    Sysno::linkat,
    Sysno::symlinkat,
    Sysno::symlinkat,
    Sysno::truncate,
    Sysno::fchmod,
    Sysno::fchmodat,
    Sysno::fchownat,
    Sysno::utimensat,
    Sysno::statfs,
    Sysno::chdir,
    Sysno::fchdir,
    Sysno::getcwd,
    Sysno::mmap,
    Sysno::msync,
    Sysno::sendfile,
];

/// The byte that stands for a call, in inputs of [`system_calls`]; `None` is the one that forks the process.
///
/// # Panics
/// If there is no such call.
#[must_use]
pub fn call_byte(sysno: Option<Sysno>) -> u8 {
    let place = |sysno| CALLS.iter().position(|&call| call == sysno).expect("a call that is made");
    sysno.map_or(CALLS.len(), place) as u8
}

/// The byte that stands for a path.
///
/// # Panics
/// If there is no such path.
#[must_use]
pub fn path_byte(path: &str) -> u8 {
    PATHS.iter().position(|&known| known == path).expect("a path of the table") as u8
}

/// The folder that the program gets as its root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    /// The one that is meant for it.
    Right,
    /// The one above, which a guest must not be able to reach: a planted bug.
    OneTooHigh,
}

/// The system calls that have to do with files.
///
/// # Panics
/// If a bug is found.
pub fn system_calls(data: &[u8]) {
    make_calls(data, Root::Right);
}

/// All that can be seen of a folder: names, kinds, sizes, rights, times of change, contents.
fn look(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut seen = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the folder is ours") {
            let path = entry.expect("an entry").path();
            let about = fs::symlink_metadata(&path).expect("it was listed");
            let what = if about.is_dir() {
                folders.push(path.clone());
                "folder".to_owned()
            } else if about.is_symlink() {
                format!("to {}", fs::read_link(&path).expect("a link").display())
            } else {
                // A guest may take the right to read away.
                fs::read(&path).map_or("unreadable".into(), |bytes| blake3::hash(&bytes).to_hex().to_string())
            };
            let (mode, links, size_bytes) = (about.mode(), about.nlink(), about.len());
            let changed = (about.mtime(), about.mtime_nsec(), about.ctime(), about.ctime_nsec());
            seen.insert(path, format!("{what} {mode:o} {links} {size_bytes} {changed:?}"));
        }
    }
    seen
}

fn furnish(top: &Path) {
    for folder in ["root/d/e", "outside/d"] {
        fs::create_dir_all(top.join(folder)).expect("a folder of ours");
    }
    let secret = [MARK, &vec![0; SECRET_BYTES as usize - MARK.len()]].concat();
    for (path, contents) in [
        ("root/file", &b"something"[..]),
        ("root/d/file", b"something else"),
        ("outside/secret", &secret),
        ("outside/5ent1nel", MARK),
        ("outside/d/file", MARK),
    ] {
        fs::write(top.join(path), contents).expect("a file of ours");
    }
    let absolute = top.join("outside/secret");
    for (link, to) in [
        ("root/out", Path::new("../outside")),
        ("root/up", Path::new("..")),
        ("root/absolute", &absolute),
        ("root/d/deep", Path::new("../../outside/secret")),
        ("root/loop", Path::new("loop")),
    ] {
        symlink(to, top.join(link)).expect("a link of ours");
    }
}

struct Caller<'a> {
    top: &'a Path,
    process: Process,
    memory: Fenced,
    hart: Hart,
    /// The contents of the root when the process was forked.
    forked: Option<BTreeMap<PathBuf, String>>,
}

pub(crate) fn make_calls(data: &[u8], root: Root) {
    let top = tempfile::tempdir().expect("a temporary folder");
    let top = top.path();
    furnish(top);
    let given = match root {
        Root::Right => top.join("root"),
        Root::OneTooHigh => top.to_path_buf(),
    };
    let mut config = ProcessConfig::new("program", small_program(), small_map());
    config.root = Some(given);
    let mut memory = Fenced::new(&config.map);
    let pool = PmemPool::new(config.map.pmem_data_bytes);
    let (process, hart) = Process::load(config, pool, &mut memory).expect("the small program can be loaded");

    let working = fs::canonicalize(".").expect("a working folder");
    let names = || -> BTreeSet<PathBuf> {
        fs::read_dir(&working).expect("a working folder").filter_map(Result::ok).map(|entry| entry.path()).collect()
    };
    let (outside, around) = (look(&top.join("outside")), names());
    let mut caller = Caller { top, process, memory, hart, forked: None };
    let mut input = Bytes(data);
    for _ in 0..CALLS_MAX {
        if input.is_over() || !caller.call(&mut input) {
            break;
        }
    }
    caller.process.write_back_files(&mut caller.memory);
    if let Some(forked) = &caller.forked {
        assert_eq!(look(&top.join("root")), *forked, "a fork wrote to the host");
    }
    caller.process.pool().check().expect("the namespace under /pmem/ stays sound");
    drop(caller);
    assert_eq!(look(&top.join("outside")), outside, "the guest escaped from its root folder");
    let entries: Vec<PathBuf> = fs::read_dir(top).expect("ours").map(|e| e.expect("an entry").path()).collect();
    assert_eq!(entries.len(), 2, "the guest left something beside its root: {entries:?}");
    assert_eq!(names(), around, "the guest left something in the host's working folder");
}

impl Caller<'_> {
    /// A path: one of the table, or any bytes.
    fn path(&self, input: &mut Bytes<'_>) -> Vec<u8> {
        let choice = usize::from(input.byte());
        let bytes = match PATHS.get(choice % (PATHS.len() + 4)) {
            Some(path) => path.replace("TOP", &self.top.display().to_string()).into_bytes(),
            None => {
                let len = usize::from(input.byte()) % 64;
                input.take(len).to_vec()
            }
        };
        [bytes.as_slice(), &[0]].concat()
    }

    fn put(&mut self, at: u64, bytes: &[u8]) {
        // The program may have mapped something over its own page.
        self.process.space().write(&mut self.memory, at, bytes).ok();
    }

    /// Makes one call. False if the program is over.
    fn call(&mut self, input: &mut Bytes<'_>) -> bool {
        let choice = usize::from(input.byte());
        let Some(&sysno) = CALLS.get(choice % (CALLS.len() + 1)) else {
            self.process.write_back_files(&mut self.memory);
            self.process = self.process.fork();
            reach("process forked");
            self.forked.get_or_insert_with(|| look(&self.top.join("root")));
            return true;
        };
        self.put(ANSWER, &[0; ANSWER_BYTES as usize]);
        let arguments = self.arguments(sysno, input);
        self.hart.pc = CALL;
        self.hart.x[17] = sysno.id() as u64;
        self.hart.x[10..16].copy_from_slice(&arguments);
        let outcome =
            self.process.syscall(ThreadId::FIRST, &mut self.hart, &mut self.memory, 0, &mut Captured::default());
        match outcome {
            Ok(SyscallOutcome::Exit(_)) => return false,
            Ok(SyscallOutcome::Wait { .. }) => self.process.time_out(ThreadId::FIRST, &mut self.hart),
            Ok(_) => self.check_answer(sysno),
            Err(fault) => {
                reach("call refused");
                assert_is_a_sentence(&fault.to_string());
            }
        }
        true
    }

    fn arguments(&mut self, sysno: Sysno, input: &mut Bytes<'_>) -> [u64; 6] {
        let fd = |input: &mut Bytes<'_>| u64::from(input.byte() % 10);
        let folder = |input: &mut Bytes<'_>| match input.byte() % 16 {
            fd @ 3..10 => u64::from(fd),
            _ => AT_FDCWD,
        };
        let takes_two = matches!(sysno, Sysno::renameat2 | Sysno::linkat | Sysno::symlinkat);
        let takes_one = takes_two
            || matches!(sysno, Sysno::openat | Sysno::newfstatat | Sysno::statx | Sysno::faccessat | Sysno::readlinkat)
            || matches!(sysno, Sysno::unlinkat | Sysno::mkdirat | Sysno::truncate | Sysno::fchmodat | Sysno::fchownat)
            || matches!(sysno, Sysno::utimensat | Sysno::statfs | Sysno::chdir);
        for (wanted, at) in [(takes_one, PATH), (takes_two, OTHER_PATH)] {
            if wanted {
                let path = self.path(input);
                self.put(at, &path);
            }
        }
        match sysno {
            Sysno::openat => {
                let flags = [0, 1, 2, 0x42, 0xc2, 0x242, 0x442, 0x1_0000, 0x2_0000, 0x20_0000, 0x40_0042];
                [folder(input), PATH, input.any(&flags), 0o644, 0, 0]
            }
            Sysno::newfstatat => [folder(input), PATH, ANSWER, input.any(&[0, 0x100, 0x1000]), 0, 0],
            Sysno::statx => [folder(input), PATH, input.any(&[0, 0x100, 0x1000]), 0xfff, ANSWER, 0],
            Sysno::readlinkat => [folder(input), PATH, ANSWER, ANSWER_BYTES, 0, 0],
            Sysno::unlinkat => [folder(input), PATH, input.any(&[0, 0x200]), 0, 0, 0],
            Sysno::mkdirat | Sysno::fchmodat => [folder(input), PATH, 0o755, 0, 0, 0],
            Sysno::fchownat => [folder(input), PATH, 0, 0, input.any(&[0, 0x100]), 0],
            Sysno::utimensat => [folder(input), PATH, 0, input.any(&[0, 0x100]), 0, 0],
            Sysno::faccessat => [folder(input), PATH, input.number(1) & 7, 0, 0, 0],
            Sysno::renameat2 => [folder(input), PATH, folder(input), OTHER_PATH, input.any(&[0, 0, 1, 2]), 0],
            Sysno::linkat => [folder(input), PATH, folder(input), OTHER_PATH, input.any(&[0, 0x400]), 0],
            Sysno::symlinkat => [PATH, folder(input), OTHER_PATH, 0, 0, 0],
            Sysno::statfs => [PATH, ANSWER, 0, 0, 0, 0],
            Sysno::truncate | Sysno::chdir => [PATH, input.number(2), 0, 0, 0, 0],
            Sysno::getcwd => [ANSWER, ANSWER_BYTES, 0, 0, 0, 0],
            Sysno::fstat => [fd(input), ANSWER, 0, 0, 0, 0],
            Sysno::sendfile => [fd(input), fd(input), 0, input.number(2), 0, 0],
            Sysno::mmap => [MAPPED, 1 + input.number(2), 3, input.any(&[0x11, 0x12]), fd(input), 0],
            Sysno::msync => {
                self.put(MAPPED, b"through a mapping");
                [MAPPED, 4096, 4, 0, 0, 0]
            }
            Sysno::read | Sysno::write | Sysno::getdents64 => [fd(input), ANSWER, ANSWER_BYTES, 0, 0, 0],
            Sysno::pread64 | Sysno::pwrite64 => [fd(input), ANSWER, ANSWER_BYTES, input.number(2), 0, 0],
            Sysno::fallocate => [fd(input), 0, input.number(2), input.number(2), 0, 0],
            _ => [fd(input), input.number(2), 0, 0, 0, 0],
        }
    }

    /// Nothing that lies outside may show.
    fn check_answer(&mut self, sysno: Sysno) {
        match (self.hart.x[10] as i64, sysno) {
            (..0, _) => reach("call failed"),
            (_, Sysno::linkat | Sysno::symlinkat) => reach("link made"),
            (_, Sysno::renameat2) => reach("file renamed"),
            _ => reach("call succeeded"),
        }
        for at in [ANSWER, MAPPED] {
            let mut answer = vec![0; ANSWER_BYTES as usize];
            if self.process.space().read(&mut self.memory, at, &mut answer).is_ok() {
                for mark in [MARK, HOST_MARK] {
                    let shown = answer.windows(mark.len()).any(|window| window == mark);
                    assert!(!shown, "{sysno} shows what is outside of the root");
                }
                let size = |offset: usize| answer[offset..].first_chunk().map(|word| u64::from_le_bytes(*word));
                let returned = match sysno {
                    Sysno::newfstatat | Sysno::fstat => size(48),
                    Sysno::statx => size(40),
                    _ => None,
                };
                assert!(returned != Some(SECRET_BYTES), "{sysno} reveals a file outside of the root");
            }
        }
    }
}
