//! The state of each system call of riscv64 Linux: the table that the dispatch follows for calls without a method, and
//! the source of docs/system-calls.md.

use super::{Answer, refuse};
use ::syscalls::Errno;
use ::syscalls::riscv64::Sysno;
use CallState::{Absent, Emulated, Fails, Refused};

/// The answer of the kernel to a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallState {
    /// It is carried out as Linux does, with the exceptions in the remark.
    Emulated,
    /// ENOSYS, as from a kernel that is older or was built without it: programs and libraries that try the call have
    /// another way.
    Absent,
    /// Always this error, with which Linux answers a user without privileges, or for files that cannot do it.
    Fails(Errno),
    /// The run ends with the remark: an error would let the program continue with a wrong result.
    Refused,
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct SystemCall {
    /// The call.
    pub sysno: Sysno,
    /// The answer.
    pub state: CallState,
    /// The exceptions of an emulated call, or the reason for an error or a refusal.
    pub remark: &'static str,
}

/// The row of `sysno`.
///
/// # Panics
/// If the table has no such row, which a test excludes.
pub(super) fn row_of(sysno: Sysno) -> &'static SystemCall {
    SYSTEM_CALLS.iter().find(|row| row.sysno == sysno).expect("the table has a row for each call")
}

/// The answer to a call that no method carries out.
pub(super) fn answer_of(sysno: Sysno) -> Answer {
    let row = row_of(sysno);
    match row.state {
        Absent => Err(Errno::ENOSYS.into()),
        Fails(errno) => Err(errno.into()),
        Refused => refuse(row.remark),
        Emulated => unreachable!("an emulated call has a method"),
    }
}

/// Rows of calls that share a state and a remark. tools/system_calls.py reads this form.
macro_rules! rows {
    ($([$($name:ident),+] => $state:expr, $remark:literal;)*) => {
        &[$($(SystemCall { sysno: Sysno::$name, state: $state, remark: $remark }),+),*]
    };
}

/// All system calls of riscv64 Linux.
pub const SYSTEM_CALLS: &[SystemCall] = rows! {
    // Files by descriptor.
    [read, write, readv, writev, pread64, pwrite64, preadv, pwritev, lseek, close, dup, dup3, fchmod, fchown, fstat] =>
        Emulated, "";
    [sendfile] => Emulated, "not from or to pipes and sockets (EINVAL)";
    [preadv2, pwritev2] => Emulated, "RWF_NOWAIT and RWF_APPEND give EOPNOTSUPP";
    [close_range, getdents64, fadvise64, readahead, ftruncate, flock] => Emulated, "";
    [pipe2] => Emulated, "no packet mode (EINVAL)";
    [fcntl] =>
        Emulated, "locks are always granted, since there is one process; other commands than those of descriptors, \
            flags and locks give EINVAL";
    [ioctl] =>
        Emulated, "flags of descriptors and bytes that wait; all else is ENOTTY: no file is a terminal or device";
    [fallocate] => Emulated, "modes give EOPNOTSUPP";
    [fsync, fdatasync, sync, syncfs] =>
        Emulated, "for files under /pmem/ the kernel cleans their lines and waits, as for a DAX file system";
    [sync_file_range] => Emulated, "no effect on files under /pmem/";
    [fstatfs, statfs] => Emulated, "the disk has 1 TB, all of it free; /pmem has the size of the pool";
    [ppoll, pselect6] => Emulated, "";
    [copy_file_range] => Absent, "as before Linux 4.5; programs read and write";
    [splice, tee, vmsplice] => Fails(Errno::EINVAL), "as for files that cannot be spliced; programs read and write";

    // Events.
    [eventfd2, epoll_create1, epoll_ctl] => Emulated, "";
    [epoll_pwait, epoll_pwait2] =>
        Emulated, "files that are ready together are reported in the order of their interests";
    [timerfd_create, timerfd_settime, timerfd_gettime] => Emulated, "in simulated time; the clocks are never set";
    [signalfd4] => Emulated, "the sender is the program itself";
    [inotify_init1, inotify_add_watch, inotify_rm_watch] =>
        Absent, "as without CONFIG_INOTIFY_USER; programs look at files again";
    [fanotify_init, fanotify_mark] => Absent, "as without CONFIG_FANOTIFY";
    [io_setup, io_destroy, io_submit, io_cancel, io_getevents, io_pgetevents] =>
        Absent, "as without CONFIG_AIO; programs use plain reads and writes";
    [io_uring_setup, io_uring_enter, io_uring_register] =>
        Absent, "as before Linux 5.1; programs use plain reads and writes";

    // Files by path.
    [openat] => Emulated, "O_PATH and O_TMPFILE give EOPNOTSUPP";
    [openat2] => Absent, "as before Linux 5.6; programs use openat";
    [newfstatat, statx] => Emulated, "times, owners and inode numbers of the host are not shown";
    [faccessat, faccessat2, fchmodat, fchmodat2, fchownat, utimensat, truncate, linkat, readlinkat, unlinkat] =>
        Emulated, "";
    [renameat2, mkdirat, getcwd, chdir, fchdir, umask] => Emulated, "";
    [symlinkat] => Emulated, "a link that leaves the root folder is not made";
    [getxattr, lgetxattr, fgetxattr, listxattr, llistxattr, flistxattr] =>
        Fails(Errno::EOPNOTSUPP), "as from a file system without extended attributes";
    [setxattr, lsetxattr, fsetxattr, removexattr, lremovexattr, fremovexattr] =>
        Fails(Errno::EOPNOTSUPP), "as from a file system without extended attributes";
    [setxattrat, getxattrat, listxattrat, removexattrat, file_getattr, file_setattr] => Absent, "as before Linux 6.13";
    [mknodat] => Fails(Errno::EPERM), "as from a file system without devices and named pipes";
    [chroot, mount, umount2, pivot_root, swapon, swapoff, quotactl, quotactl_fd, acct] =>
        Fails(Errno::EPERM), "as for a user without privileges";
    [name_to_handle_at, open_by_handle_at] => Absent, "as without CONFIG_FHANDLE";
    [open_tree, open_tree_attr, move_mount, fsopen, fsconfig, fsmount, fspick, mount_setattr] =>
        Absent, "as before Linux 5.2";
    [statmount, listmount] => Absent, "as before Linux 6.8";
    [lookup_dcookie, nfsservctl] => Absent, "as in all kernels of today";

    // Memory.
    [brk, munmap, mprotect, mincore, riscv_flush_icache] => Emulated, "";
    [mmap] => Emulated, "a file under /pmem/ has one shared mapping at its fixed address; another one is refused";
    [mremap] => Emulated, "MREMAP_FIXED, MREMAP_DONTUNMAP and growing mappings of files are refused";
    [madvise] =>
        Emulated, "advice has no effect, except DONTNEED (refused on private mappings of files) and POPULATE_WRITE";
    [msync] => Emulated, "MS_SYNC of files under /pmem/ cleans their lines and waits, as for a DAX file system";
    [mlock, mlock2, munlock, mlockall, munlockall] => Emulated, "nothing is ever swapped out";
    [memfd_create] => Emulated, "no seals and no huge pages (EINVAL)";
    [memfd_secret] => Absent, "as without CONFIG_SECRETMEM";
    [mbind, get_mempolicy, set_mempolicy, set_mempolicy_home_node, migrate_pages, move_pages] =>
        Absent, "as without CONFIG_NUMA";
    [remap_file_pages] => Absent, "as without CONFIG_MMU; programs use mmap";
    [pkey_mprotect, pkey_alloc, pkey_free] => Absent, "as on all RISC-V processors: there are no protection keys";
    [userfaultfd] => Absent, "as without CONFIG_USERFAULTFD";
    [process_vm_readv, process_vm_writev] => Absent, "as without CONFIG_CROSS_MEMORY_ATTACH";
    [process_madvise, process_mrelease, cachestat, map_shadow_stack, mseal] => Absent, "as before Linux 5.10 to 6.10";

    // Time.
    [clock_gettime, gettimeofday] => Emulated, "simulated time; the real-time clock starts at 2020-01-01 00:00 UTC";
    [clock_getres, nanosleep, clock_nanosleep] => Emulated, "";
    [times, getrusage] => Emulated, "user time alone, which is the time since the start; other fields are 0";
    [timer_create, timer_gettime, timer_getoverrun, timer_settime, timer_delete, getitimer, setitimer] =>
        Absent, "as without CONFIG_POSIX_TIMERS";
    [settimeofday, clock_settime, adjtimex, clock_adjtime] => Fails(Errno::EPERM), "as for a user without privileges";

    // Threads.
    [clone] => Emulated, "makes threads; a new process is refused";
    [clone3] => Absent, "as before Linux 5.3; C libraries use clone";
    [exit, exit_group, gettid, set_tid_address, get_robust_list, sched_yield, sched_getaffinity] => Emulated, "";
    [sched_setaffinity, getcpu] => Emulated, "";
    [futex] => Emulated, "operations that inherit priorities give ENOSYS, as without CONFIG_FUTEX_PI";
    [futex_waitv, futex_wake, futex_wait, futex_requeue] => Absent, "as before Linux 5.16 and 6.7; libraries use futex";
    [set_robust_list] => Emulated, "ENOSYS, as under qemu, but the list is kept and honoured";
    [sched_getscheduler, sched_setscheduler, sched_getparam, sched_setparam] =>
        Emulated, "one policy, SCHED_OTHER; others give EPERM or EINVAL";
    [sched_get_priority_max, sched_get_priority_min, sched_rr_get_interval] => Emulated, "";
    [sched_setattr, sched_getattr] => Absent, "as before Linux 3.14";
    [getpriority, setpriority] => Emulated, "a lower priority is kept and has no effect";
    [ioprio_set, ioprio_get] => Absent, "as without CONFIG_BLOCK";
    [membarrier] => Absent, "as before Linux 4.3; programs use fences";
    [rseq] => Absent, "as before Linux 4.18; C libraries do without";
    [riscv_hwprobe] => Emulated, "as Linux 6.4 with the keys of 6.15: flags give EINVAL";

    // The process and its rights.
    [getpid, getppid, getuid, geteuid, getgid, getegid, getresuid, getresgid, getgroups, getpgid, getsid] =>
        Emulated, "fixed numbers: process and group 1000, parent 1, user 1000";
    [setuid, setgid, setreuid, setregid, setresuid, setresgid, setfsuid, setfsgid] =>
        Emulated, "to the own user or group; others give EPERM";
    [setpgid] => Emulated, "EPERM, as for the leader of a session";
    [setsid] => Fails(Errno::EPERM), "as for the leader of a group";
    [setgroups, setns, unshare, ptrace, capset] => Fails(Errno::EPERM), "as for a user without privileges";
    [capget] => Emulated, "there are no capabilities";
    [wait4, waitid] => Emulated, "always ECHILD: there are no other processes";
    [execve, execveat] => Refused, "starting another program is not supported";
    [personality] => Emulated, "PER_LINUX, with or without ADDR_NO_RANDOMIZE; others give EINVAL";
    [prctl] =>
        Emulated, "names of threads, and settings that have no effect here and are kept; other controls give EINVAL";
    [prlimit64, getrlimit, setrlimit] => Emulated, "limits are kept; that of descriptors has an effect";
    [kcmp] => Absent, "as without CONFIG_KCMP";
    [pidfd_open, pidfd_getfd, pidfd_send_signal] => Absent, "as before Linux 5.1 to 5.6; programs use process numbers";
    [add_key, request_key, keyctl] => Absent, "as without CONFIG_KEYS";
    [seccomp] => Absent, "as without CONFIG_SECCOMP";
    [landlock_create_ruleset, landlock_add_rule, landlock_restrict_self] => Absent, "as before Linux 5.13";
    [lsm_get_self_attr, lsm_set_self_attr, lsm_list_modules] => Absent, "as before Linux 6.8";

    // Signals.
    [rt_sigprocmask, rt_sigpending, rt_sigaction, rt_sigreturn, sigaltstack] => Emulated, "";
    [rt_sigsuspend, rt_sigtimedwait] => Emulated, "";
    [kill, tkill, tgkill, rt_sigqueueinfo, rt_tgsigqueueinfo] =>
        Emulated, "to the own process; a fatal signal ends the program with 128 + signal, one that stops it is refused";
    [restart_syscall] => Fails(Errno::EINTR), "as without a call that was interrupted";

    // The system.
    [getrandom] => Emulated, "bytes of the generator with the seed of the run";
    [uname] => Emulated, "Linux 6.6.0 on riscv64";
    [sysinfo] => Emulated, "memory, time and one process; loads are 0";
    [sethostname, setdomainname, syslog, reboot, vhangup] => Fails(Errno::EPERM), "as for a user without privileges";
    [init_module, finit_module, delete_module, kexec_load, kexec_file_load] =>
        Fails(Errno::EPERM), "as for a user without privileges";
    [bpf] => Absent, "as without CONFIG_BPF_SYSCALL";
    [perf_event_open] => Absent, "as without CONFIG_PERF_EVENTS";

    // Other processes and machines.
    [socket] => Fails(Errno::EAFNOSUPPORT), "as without CONFIG_INET: there is no network";
    [socketpair] => Emulated, "AF_UNIX alone";
    [sendto, recvfrom, shutdown, getsockname, getpeername, getsockopt, setsockopt] => Emulated, "";
    [sendmsg, recvmsg] => Emulated, "control messages are not sent (EINVAL)";
    [connect, bind, listen, accept, accept4] => Emulated, "EISCONN or EINVAL: a socket of a pair is connected";
    [sendmmsg, recvmmsg] => Absent, "as before Linux 3.0; programs use sendmsg and recvmsg";
    [mq_open, mq_unlink, mq_timedsend, mq_timedreceive, mq_notify, mq_getsetattr] =>
        Absent, "as without CONFIG_POSIX_MQUEUE";
    [msgget, msgctl, msgrcv, msgsnd, semget, semctl, semtimedop, semop, shmget, shmctl, shmat, shmdt] =>
        Absent, "as without CONFIG_SYSVIPC";
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_call_of_linux_has_one_row() {
        let known: BTreeSet<&str> = (0..4096).filter_map(Sysno::new).map(|sysno| sysno.name()).collect();
        let listed: BTreeSet<&str> = SYSTEM_CALLS.iter().map(|row| row.sysno.name()).collect();
        assert_eq!(listed, known);
        assert_eq!(listed.len(), SYSTEM_CALLS.len(), "no call is listed twice");
    }

    #[test]
    fn what_is_not_carried_out_has_a_reason() {
        let silent = |row: &&SystemCall| row.state != Emulated && row.remark.is_empty();
        assert_eq!(SYSTEM_CALLS.iter().filter(silent).count(), 0);
    }
}
