//! Questions about the system and its limits.

use super::{Answer, Call};
use crate::stack::STACK_BYTES;
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
            FILES => [super::files::FILES_MAX as u64; 2],
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
}
