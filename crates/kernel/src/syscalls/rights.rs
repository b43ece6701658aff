//! Rights of a user without privileges: its own identity, and a priority that is not higher.

use super::{Answer, Call};
use crate::stack::USER_ID;
use crate::threads::PROCESS_ID;
use ::syscalls::Errno;

impl Call<'_> {
    /// `setuid` and its family, and those of groups: a user may be what it is. `-1` leaves an identity as it is.
    pub(super) fn set_ids(&self, ids: &[u64], may_keep: bool) -> Answer {
        let own = |&id: &u64| id as u32 == USER_ID as u32 || may_keep && id as u32 == u32::MAX;
        if ids.iter().all(own) { Ok(0) } else { Err(Errno::EPERM.into()) }
    }

    /// The one process leads its group, which it cannot leave.
    pub(super) fn setpgid(&self, pid: u64, group: u64) -> Answer {
        self.check_own_pid(pid)?;
        match group as i32 {
            ..0 => Err(Errno::EINVAL.into()),
            // The leader of a session.
            _ => Err(Errno::EPERM.into()),
        }
    }

    /// There are no capabilities: all sets are empty.
    pub(super) fn capget(&mut self, header: u64, data: u64) -> Answer {
        const VERSION_1: u32 = 0x1998_0330;
        const VERSIONS_OF_64_BITS: [u32; 2] = [0x2007_1026, 0x2008_0522];
        let version = self.word_from(header)?;
        let bytes = match version {
            VERSION_1 => 12,
            _ if VERSIONS_OF_64_BITS.contains(&version) => 24,
            // The newest one is the answer to a question for it.
            _ => {
                self.bytes_to(header, &VERSIONS_OF_64_BITS[1].to_le_bytes())?;
                return if data == 0 { Ok(0) } else { Err(Errno::EINVAL.into()) };
            }
        };
        let pid = self.word_from(header.wrapping_add(4))?;
        self.thread_of(pid.into())?;
        if data != 0 {
            self.bytes_to(data, &vec![0; bytes])?;
        }
        Ok(0)
    }

    /// The answer of the kernel is 20 - nice.
    pub(super) fn getpriority(&mut self, kind: u64, of: u64) -> Answer {
        let nice = self.nice_of(kind, of)?;
        Ok((20 - i64::from(*nice)) as u64)
    }

    /// A lower priority is kept; a higher one would need a privilege.
    pub(super) fn setpriority(&mut self, kind: u64, of: u64, nice: u64) -> Answer {
        let wanted = (nice as i32).clamp(-20, 19) as i8;
        let nice = self.nice_of(kind, of)?;
        if wanted < *nice {
            return Err(Errno::EACCES.into());
        }
        *nice = wanted;
        Ok(0)
    }

    /// The nice value of a thread. That of the group and of the user is that of the calling thread.
    fn nice_of(&mut self, kind: u64, of: u64) -> Result<&mut i8, super::Stop> {
        const PROCESS: u64 = 0;
        const GROUP: u64 = 1;
        const USER: u64 = 2;
        let thread = match kind {
            PROCESS => self.thread_of(of)?,
            GROUP if [0, PROCESS_ID].contains(&of) => self.thread,
            USER if [0, USER_ID].contains(&of) => self.thread,
            GROUP | USER => return Err(Errno::ESRCH.into()),
            _ => return Err(Errno::EINVAL.into()),
        };
        Ok(&mut self.process.threads.get_mut(thread).nice)
    }
}
