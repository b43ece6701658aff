//! Questions about the system and its limits.

use super::{Answer, Call};
use crate::files::FILES_MAX;
use crate::stack::{STACK_BYTES, USER_ID};
use crate::threads::THREAD_NAME_BYTES;
use ::syscalls::Errno;
use durasim_types::PAGE_BYTES;

impl Call<'_> {
    /// Limits are what they are; the program may not change them but may set what already holds.
    pub(super) fn prlimit64(&mut self, pid: u64, resource: u64, new: u64, old: u64) -> Answer {
        const STACK: u64 = 3;
        const CORE: u64 = 4;
        const FILES: u64 = 7;
        self.check_own_pid(pid)?;
        let limits = match resource {
            STACK => [STACK_BYTES, u64::MAX],
            CORE => [0, 0],
            FILES => [FILES_MAX as u64; 2],
            0..=15 => [u64::MAX; 2],
            _ => return Err(Errno::EINVAL.into()),
        };
        if new != 0 && self.words_from::<2>(new)? != limits {
            return Err(Errno::EPERM.into());
        }
        if old != 0 {
            self.words_to(old, &limits)?;
        }
        Ok(0)
    }

    pub(super) fn getrandom(&mut self, to: u64, len: u64) -> Answer {
        // Linux also returns fewer bytes than asked for when that is many.
        let len = len.min(1 << 20);
        self.check_range(to, len)?;
        let mut bytes = vec![0; len as usize];
        self.process.random.fill(&mut bytes);
        self.bytes_to(to, &bytes)?;
        Ok(len)
    }

    pub(super) fn uname(&mut self, to: u64) -> Answer {
        const FIELD_BYTES: usize = 65;
        let fields = ["Linux", "durasim", "6.6.0", "#1", "riscv64", "(none)"];
        let mut bytes = vec![0; fields.len() * FIELD_BYTES];
        for (slot, field) in bytes.chunks_exact_mut(FIELD_BYTES).zip(fields) {
            slot[..field.len()].copy_from_slice(field.as_bytes());
        }
        self.bytes_to(to, &bytes)?;
        Ok(0)
    }

    pub(super) fn sysinfo(&mut self, to: u64) -> Answer {
        let mut words = [0; 14];
        words[0] = self.now_ns / 1_000_000_000;
        words[4] = self.process.space.map().dram_bytes;
        words[5] = self.process.space.frames.available() * PAGE_BYTES;
        // procs (u16) at byte 80, mem_unit (u32) at byte 104.
        words[10] = 1;
        words[13] = 1;
        self.words_to(to, &words)?;
        Ok(0)
    }

    /// The real, effective and saved user, or group.
    pub(super) fn getresid(&mut self, to: [u64; 3]) -> Answer {
        for addr in to {
            self.bytes_to(addr, &(USER_ID as u32).to_le_bytes())?;
        }
        Ok(0)
    }

    /// The name of a thread; of the other controls none is here.
    pub(super) fn prctl(&mut self, control: u64, argument: u64) -> Answer {
        const SET_NAME: u64 = 15;
        const GET_NAME: u64 = 16;
        match control {
            SET_NAME => {
                let mut name = [0; THREAD_NAME_BYTES];
                for (n, byte) in name.iter_mut().enumerate().take(THREAD_NAME_BYTES - 1) {
                    *byte = self.bytes_from(argument.wrapping_add(n as u64), 1)?[0];
                    if *byte == 0 {
                        break;
                    }
                }
                self.thread().name = name;
                Ok(0)
            }
            GET_NAME => {
                let name = self.thread().name;
                self.bytes_to(argument, &name)?;
                Ok(0)
            }
            // As in a kernel without the control, such as names for mappings; C libraries try and continue.
            _ => Err(Errno::EINVAL.into()),
        }
    }

    /// There is one policy, SCHED_OTHER; those of real time are for others, as for any user without privileges.
    pub(super) fn sched_setscheduler(&mut self, tid: u64, policy: u64, parameters: u64) -> Answer {
        const FIFO_AND_ROUND_ROBIN: [u64; 2] = [1, 2];
        self.thread_of(tid)?;
        let priority = self.word_from(parameters)?;
        match policy {
            0 if priority == 0 => Ok(0),
            _ if FIFO_AND_ROUND_ROBIN.contains(&policy) => Err(Errno::EPERM.into()),
            _ => Err(Errno::EINVAL.into()),
        }
    }

    pub(super) fn sched_getparam(&mut self, tid: u64, to: u64) -> Answer {
        self.thread_of(tid)?;
        self.bytes_to(to, &[0; 4])?;
        Ok(0)
    }

    /// The highest, or lowest, priority of a policy.
    pub(super) fn priority_bound(&self, policy: u64, of_real_time: u64) -> Answer {
        match policy {
            0 | 3 | 5 => Ok(0),
            1 | 2 => Ok(of_real_time),
            _ => Err(Errno::EINVAL.into()),
        }
    }

    /// The one personality, which a program may ask for, and whether it wants addresses that are not random: they never
    /// are.
    pub(super) fn personality(&mut self, wanted: u64) -> Answer {
        const ONLY_ASKED: u32 = u32::MAX;
        const ADDR_NO_RANDOMIZE: u32 = 0x4_0000;
        let before = self.process.personality;
        match wanted as u32 {
            ONLY_ASKED => {}
            given @ (0 | ADDR_NO_RANDOMIZE) => self.process.personality = given,
            _ => return Err(Errno::EINVAL.into()),
        }
        Ok(before.into())
    }

    /// No slice ends because of the policy, so its length is 0, as in Linux for a thread that is alone.
    pub(super) fn sched_rr_get_interval(&mut self, tid: u64, to: u64) -> Answer {
        self.thread_of(tid)?;
        self.words_to(to, &[0, 0])?;
        Ok(0)
    }
}
