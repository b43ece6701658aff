//! Whatever a program asks for, the simulator answers or refuses: it never panics, and equal requests get equal answers.

use crate::common::{AT_FDCWD, DATA, Program, program};
use ::syscalls::riscv64::Sysno;
use durasim_kernel::{PMEM_WINDOW_BASE, SyscallOutcome, ThreadId};
use durasim_types::Rng;
use std::path::Path;

/// All but those that end the program.
const CALLS: [Sysno; 76] = [
    Sysno::read,
    Sysno::write,
    Sysno::readv,
    Sysno::writev,
    Sysno::pread64,
    Sysno::pwrite64,
    Sysno::lseek,
    Sysno::close,
    Sysno::dup,
    Sysno::dup3,
    Sysno::fcntl,
    Sysno::ftruncate,
    Sysno::fallocate,
    Sysno::fsync,
    Sysno::fstat,
    Sysno::getdents64,
    Sysno::openat,
    Sysno::openat,
    Sysno::openat,
    Sysno::newfstatat,
    Sysno::statx,
    Sysno::faccessat,
    Sysno::readlinkat,
    Sysno::unlinkat,
    Sysno::mkdirat,
    Sysno::renameat2,
    Sysno::getcwd,
    Sysno::chdir,
    Sysno::fchdir,
    Sysno::brk,
    Sysno::mmap,
    Sysno::mmap,
    Sysno::mmap,
    Sysno::mmap,
    Sysno::munmap,
    Sysno::munmap,
    Sysno::mremap,
    Sysno::mremap,
    Sysno::mprotect,
    Sysno::mprotect,
    Sysno::madvise,
    Sysno::msync,
    Sysno::clock_gettime,
    Sysno::nanosleep,
    Sysno::clock_nanosleep,
    Sysno::futex,
    Sysno::rt_sigprocmask,
    Sysno::rt_sigaction,
    Sysno::sched_getaffinity,
    Sysno::prlimit64,
    Sysno::getrandom,
    Sysno::getcpu,
    Sysno::preadv,
    Sysno::pwritev,
    Sysno::sendfile,
    Sysno::truncate,
    Sysno::fchmodat,
    Sysno::fchownat,
    Sysno::utimensat,
    Sysno::linkat,
    Sysno::symlinkat,
    Sysno::statfs,
    Sysno::fstatfs,
    Sysno::ppoll,
    Sysno::pselect6,
    Sysno::mincore,
    Sysno::mlock,
    Sysno::prctl,
    Sysno::clone,
    Sysno::set_robust_list,
    Sysno::get_robust_list,
    Sysno::set_tid_address,
    Sysno::sched_setaffinity,
    Sysno::sched_setscheduler,
    Sysno::sigaltstack,
    Sysno::rt_sigpending,
];

const PATHS: [&str; 8] = ["/pmem/a", "/pmem/b", "/pmem", "f", "/d/../f", "/d", "/dev/zero", "../../x"];

fn argument(rng: &mut Rng) -> u64 {
    match rng.below(9) {
        0 => rng.below(8),
        1 => rng.below(8) * 4096,
        2 => DATA + 64 * rng.below(PATHS.len() as u64),
        3 => DATA + rng.below(4096),
        4 => PMEM_WINDOW_BASE + rng.below(8) * 4096,
        5 => 0x3000_0000 + rng.below(16) * 4096,
        6 => 1 << rng.below(64),
        7 => (rng.below(200) as i64 - 110) as u64,
        _ => rng.next_u64(),
    }
}

/// Makes random calls and returns what each of them answered.
fn answers(seed: u64, root: &Path) -> Vec<String> {
    let mut rng = Rng::new(seed);
    let mut p: Program = program(|c| {
        c.root = Some(root.to_path_buf());
        c.map.dram_bytes = 4 << 20;
        c.stdin = vec![5; 100];
    });
    let mut answers = Vec::new();
    for _ in 0..1500 {
        for (n, path) in PATHS.iter().enumerate() {
            // The program may have unmapped its own data.
            let at = DATA + 64 * n as u64;
            let Program { process, memory, .. } = &mut p;
            process.space().write(memory, at, &[path.as_bytes(), &[0]].concat()).ok();
        }
        let sysno = CALLS[rng.below(CALLS.len() as u64) as usize];
        let mut args: Vec<u64> = (0..6).map(|_| argument(&mut rng)).collect();
        // Left to chance, few files would be opened and little would be mapped.
        if sysno == Sysno::openat && rng.below(4) > 0 {
            args[0] = AT_FDCWD;
            args[2] = [0, 1, 2, 0x42, 0xc2, 0x242, 0x442][rng.below(7) as usize];
        }
        if sysno == Sysno::mmap && rng.below(4) > 0 {
            args[1] = 1 + rng.below(5 * 4096);
            args[2] = rng.below(8);
            args[3] = [1, 2, 0x8_0003, 0x22, 0x32, 0x4022][rng.below(6) as usize];
            args[4] = 3 + rng.below(5);
            args[5] = rng.below(3) * 4096;
        }
        if sysno == Sysno::clone {
            args[0] |= 0x1_0f00;
        }
        if sysno == Sysno::futex {
            args[1] = (args[1] % 14) | (args[1] & 0x180);
        }
        let outcome = p.outcome(sysno, &args);
        p.process.take_events();
        if let Ok(SyscallOutcome::Wait { .. }) = outcome {
            p.process.time_out(ThreadId::FIRST, &mut p.hart);
        }
        answers.push(format!("{sysno} {args:x?} = {outcome:?} {:x}", p.hart.x[10]));
        if let Ok(SyscallOutcome::Exit(_)) = outcome {
            break;
        }
    }
    p.process.pool().check().unwrap();
    answers
}

#[test]
fn random_calls_are_answered_and_answered_alike() {
    let mut worked = 0;
    for seed in 0..40 {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let first = answers(seed, one.path());
        assert_eq!(first, answers(seed, two.path()), "seed {seed}");
        for sysno in ["mmap", "openat", "munmap", "mremap", "mprotect"] {
            worked +=
                first.iter().filter(|a| a.starts_with(sysno) && a.contains("Ok(") && !a.contains(" fffff")).count();
        }
    }
    assert!(worked > 1000, "only {worked} of the calls that matter succeeded");
}
