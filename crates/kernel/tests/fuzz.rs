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

/// Those of descriptors for which threads wait.
const WAITING: [Sysno; 30] = [
    Sysno::read,
    Sysno::read,
    Sysno::write,
    Sysno::write,
    Sysno::readv,
    Sysno::writev,
    Sysno::close,
    Sysno::dup3,
    Sysno::fcntl,
    Sysno::ioctl,
    Sysno::fstat,
    Sysno::pipe2,
    Sysno::pipe2,
    Sysno::socketpair,
    Sysno::socketpair,
    Sysno::sendto,
    Sysno::recvfrom,
    Sysno::sendmsg,
    Sysno::recvmsg,
    Sysno::shutdown,
    Sysno::eventfd2,
    Sysno::timerfd_create,
    Sysno::timerfd_settime,
    Sysno::timerfd_gettime,
    Sysno::epoll_create1,
    Sysno::epoll_ctl,
    Sysno::epoll_pwait,
    Sysno::ppoll,
    Sysno::memfd_create,
    Sysno::prlimit64,
];

/// Makes random calls and returns what each of them answered.
fn answers(seed: u64, root: &Path, calls: &[Sysno]) -> Vec<String> {
    let mut rng = Rng::new(seed);
    let mut p: Program = program(|c| {
        c.root = Some(root.to_path_buf());
        c.map.dram_bytes = 4 << 20;
        c.stdin = vec![5; 100];
    });
    // SIGPIPE is ignored: it would end the program early.
    p.poke(DATA, &1u64.to_le_bytes());
    p.call(Sysno::rt_sigaction, &[13, DATA, 0, 8]);
    let mut answers = Vec::new();
    for _ in 0..1500 {
        for (n, path) in PATHS.iter().enumerate() {
            // The program may have unmapped its own data.
            let at = DATA + 64 * n as u64;
            let Program { process, memory, .. } = &mut p;
            process.space().write(memory, at, &[path.as_bytes(), &[0]].concat()).ok();
        }
        let sysno = calls[rng.below(calls.len() as u64) as usize];
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
        match sysno {
            Sysno::pipe2 => args[1] &= 0x8_0800,
            Sysno::socketpair => (args[0], args[1], args[2]) = (1, [1, 2, 5, 0x801][rng.below(4) as usize], 0),
            Sysno::eventfd2 => args[1] &= 0x8_0801,
            Sysno::epoll_ctl => (args[0], args[1], args[2]) = (3 + rng.below(6), 1 + rng.below(3), 3 + rng.below(9)),
            _ if calls.len() == WAITING.len() && rng.below(4) > 0 => args[0] = 3 + rng.below(9),
            _ => {}
        }
        // Most masks would be refused for their length.
        if rng.below(4) > 0 {
            match sysno {
                Sysno::ppoll => args[3] = 0,
                Sysno::epoll_pwait => args[4] = 0,
                _ => {}
            }
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
        let first = answers(seed, one.path(), &CALLS);
        assert_eq!(first, answers(seed, two.path(), &CALLS), "seed {seed}");
        for sysno in ["mmap", "openat", "munmap", "mremap", "mprotect"] {
            worked +=
                first.iter().filter(|a| a.starts_with(sysno) && a.contains("Ok(") && !a.contains(" fffff")).count();
        }
    }
    assert!(worked > 1000, "only {worked} of the calls that matter succeeded");
}

#[test]
fn random_waits_are_answered_and_answered_alike() {
    let (mut waits, mut worked) = (0, 0);
    for seed in 0..40 {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let first = answers(seed, one.path(), &WAITING);
        assert_eq!(first, answers(seed, two.path(), &WAITING), "seed {seed}");
        waits += first.iter().filter(|a| a.contains("Ok(Wait")).count();
        worked += first.iter().filter(|a| a.contains("Ok(Continue") && !a.contains(" fffff")).count();
    }
    assert!(waits > 20 && worked > 1000, "{waits} waits, {worked} calls succeeded");
}
