//! Questions about the system and its limits.

use super::{Answer, Call};
use crate::files::FILES_MAX;
use crate::limits::{DESCRIPTORS, RESOURCES, TIMER_SLACK_NS};
use crate::signals::SIGNALS;
use crate::stack::USER_ID;
use crate::threads::THREAD_NAME_BYTES;
use ::syscalls::Errno;
use durasim_types::PAGE_BYTES;

impl Call<'_> {
    /// Limits may be lowered, and soft ones raised up to the hard ones, as for any user.
    pub(super) fn prlimit64(&mut self, pid: u64, resource: u64, new: u64, old: u64) -> Answer {
        self.check_own_pid(pid)?;
        let resource = usize::try_from(resource).ok().filter(|&r| r < RESOURCES).ok_or(Errno::EINVAL)?;
        let before = self.process.limits.0[resource];
        let given = if new != 0 { Some(self.words_from::<2>(new)?) } else { None };
        if let Some([soft, hard]) = given {
            if soft > hard {
                return Err(Errno::EINVAL.into());
            }
            if hard > before[1] {
                return Err(Errno::EPERM.into());
            }
            self.process.limits.0[resource] = [soft, hard];
            if resource == DESCRIPTORS {
                self.process.files.descriptors_max = soft.min(FILES_MAX as u64) as i32;
            }
        }
        if old != 0 {
            self.words_to(old, &before)?;
        }
        Ok(0)
    }

    pub(super) fn getrandom(&mut self, to: u64, len: u64, flags: u64) -> Answer {
        const DO_NOT_WAIT: u64 = 1;
        const RANDOM: u64 = 2;
        const INSECURE: u64 = 4;
        if flags & !(DO_NOT_WAIT | RANDOM | INSECURE) != 0 || flags & (RANDOM | INSECURE) == RANDOM | INSECURE {
            return Err(Errno::EINVAL.into());
        }
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

    /// The name of a thread, and settings that are kept and given back.
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
            _ => self.set_control(control, argument),
        }
    }

    fn set_control(&mut self, control: u64, argument: u64) -> Answer {
        const SET_PARENT_DEATH_SIGNAL: u64 = 1;
        const GET_PARENT_DEATH_SIGNAL: u64 = 2;
        const GET_SUBREAPER: u64 = 37;
        const CAPABILITY_BOUNDS: u64 = 23;
        const LAST_CAPABILITY: u64 = 40;
        let is_on = argument != 0;
        let controls = &mut self.process.controls;
        match control {
            SET_PARENT_DEATH_SIGNAL if argument > SIGNALS => return Err(Errno::EINVAL.into()),
            SET_PARENT_DEATH_SIGNAL => controls.parent_death_signal = argument as u32,
            GET_PARENT_DEATH_SIGNAL | GET_SUBREAPER => {
                let of_subreaper = control == GET_SUBREAPER;
                let value = if of_subreaper { controls.is_subreaper.into() } else { controls.parent_death_signal };
                return self.bytes_to(argument, &value.to_le_bytes()).map(|()| 0);
            }
            // GET_DUMPABLE, SET_DUMPABLE.
            3 => return Ok(controls.is_dumpable.into()),
            4 if argument > 1 => return Err(Errno::EINVAL.into()),
            4 => controls.is_dumpable = is_on,
            // GET_KEEPCAPS, SET_KEEPCAPS.
            7 => return Ok(controls.keeps_capabilities.into()),
            8 if argument > 1 => return Err(Errno::EINVAL.into()),
            8 => controls.keeps_capabilities = is_on,
            CAPABILITY_BOUNDS if argument > LAST_CAPABILITY => return Err(Errno::EINVAL.into()),
            CAPABILITY_BOUNDS => return Ok(0),
            // SET_TIMERSLACK, GET_TIMERSLACK.
            29 => controls.timer_slack_ns = if is_on { argument } else { TIMER_SLACK_NS },
            30 => return Ok(controls.timer_slack_ns),
            // SET_CHILD_SUBREAPER.
            36 => controls.is_subreaper = is_on,
            // SET_NO_NEW_PRIVS, GET_NO_NEW_PRIVS.
            38 if argument != 1 => return Err(Errno::EINVAL.into()),
            38 => controls.has_no_new_privileges = true,
            39 => return Ok(controls.has_no_new_privileges.into()),
            // SET_THP_DISABLE, GET_THP_DISABLE.
            41 => controls.has_no_huge_pages = is_on,
            42 => return Ok(controls.has_no_huge_pages.into()),
            // As in a kernel without the control, such as names for mappings; C libraries try and continue.
            _ => return Err(Errno::EINVAL.into()),
        }
        Ok(0)
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
