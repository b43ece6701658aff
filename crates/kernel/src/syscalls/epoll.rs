//! Interests in many files at once.

use super::files::O_CLOEXEC;
use super::{Answer, Call, Stop};
use crate::files::{Interest, Kind, Opened};
use crate::poll_events::{ALWAYS_REPORTED, ONE_SHOT, READABLE};
use ::syscalls::Errno;

/// Bytes of `struct epoll_event`: events, padding, the data of the program.
const EVENT_BYTES: u64 = 16;
/// Epolls inside of each other, as in Linux.
const DEPTH_MAX: u32 = 5;
/// Files that a look at one epoll may look at, those inside of other epolls as often as there are paths to them. Linux limits
/// the paths too, by their length.
const LOOKS_MAX: u32 = 1 << 14;
const NS_PER_MS: u64 = 1_000_000;

impl Call<'_> {
    pub(super) fn epoll_create1(&mut self, flags: u64) -> Answer {
        if flags & !O_CLOEXEC != 0 {
            return Err(Errno::EINVAL.into());
        }
        let opened = Opened::new(Kind::Epoll(Vec::new()), false, false, 2);
        Ok(self.process.files.add(opened, flags & O_CLOEXEC != 0)? as u64)
    }

    fn interests(&mut self, epoll: i32) -> Result<&mut Vec<Interest>, Stop> {
        match &mut self.process.files.get_mut(epoll)?.kind {
            Kind::Epoll(interests) => Ok(interests),
            _ => Err(Errno::EINVAL.into()),
        }
    }

    pub(super) fn epoll_ctl(&mut self, epoll: i32, operation: u64, fd: i32, event: u64) -> Answer {
        const ADD: u64 = 1;
        const DELETE: u64 = 2;
        const MODIFY: u64 = 3;
        let (own, slot) = (self.process.files.slot(epoll)?, self.process.files.slot(fd)?);
        let given = if operation == DELETE { [0, 0] } else { self.words_from(event)? };
        if matches!(
            self.process.files.get(fd)?.kind,
            Kind::File { .. } | Kind::Pmem { .. } | Kind::Folder { .. } | Kind::Device(_)
        ) {
            return Err(Errno::EPERM.into());
        }
        let place = self.interests(epoll)?.iter().position(|i| (i.fd, i.slot) == (fd, slot));
        if own == slot {
            return Err(Errno::EINVAL.into());
        }
        let events = given[0] as u32 | u32::from(ALWAYS_REPORTED);
        let interest = Interest { fd, slot, events, data: given[1], seen: None };
        match (operation, place) {
            (ADD, Some(_)) => return Err(Errno::EEXIST.into()),
            (ADD, None) => {
                if self.depth_of(slot, own).is_none_or(|depth| depth >= DEPTH_MAX) {
                    return Err(Errno::ELOOP.into());
                }
                self.interests(epoll)?.push(interest);
                if self.has_too_many_paths() {
                    self.interests(epoll)?.pop();
                    return Err(Errno::EINVAL.into());
                }
            }
            (MODIFY, Some(place)) => self.interests(epoll)?[place] = interest,
            (DELETE, Some(place)) => drop(self.interests(epoll)?.remove(place)),
            (MODIFY | DELETE, None) => return Err(Errno::ENOENT.into()),
            _ => return Err(Errno::EINVAL.into()),
        }
        // Others that wait here look again: what they wait for is another set.
        self.process.looks_again = true;
        Ok(0)
    }

    /// The number of epolls inside of each other below the open file at `slot`; none if `outer` is one of them.
    fn depth_of(&self, slot: usize, outer: usize) -> Option<u32> {
        let Some(Opened { kind: Kind::Epoll(interests), .. }) = self.process.files.at(slot) else { return Some(0) };
        if slot == outer {
            return None;
        }
        let depths: Option<Vec<u32>> = interests.iter().map(|interest| self.depth_of(interest.slot, outer)).collect();
        Some(1 + depths?.into_iter().max().unwrap_or(0))
    }

    /// Whether a look at one of the epolls takes too long.
    fn has_too_many_paths(&self) -> bool {
        self.process.files.epolls().any(|slot| self.look(slot, LOOKS_MAX).is_none())
    }

    /// Looks at the open file at `slot` and what it watches; the looks that are left of `looks`, none if they do not suffice.
    fn look(&self, slot: usize, looks: u32) -> Option<u32> {
        let left = looks.checked_sub(1)?;
        match self.process.files.at(slot) {
            Some(Opened { kind: Kind::Epoll(interests), .. }) => {
                interests.iter().try_fold(left, |left, interest| self.look(interest.slot, left))
            }
            _ => Some(left),
        }
    }

    /// `timeout` is in milliseconds, -1 = without end.
    pub(super) fn epoll_pwait(&mut self, epoll: i32, to: u64, most: u64, timeout: u64, mask: [u64; 2]) -> Answer {
        self.wait_with_mask(mask[0], mask[1])?;
        let length_ns = u64::try_from(timeout as i32).ok().map(|ms| ms * NS_PER_MS);
        self.epoll_wait(epoll, to, most, length_ns)
    }

    pub(super) fn epoll_pwait2(&mut self, epoll: i32, to: u64, most: u64, timeout: u64, mask: [u64; 2]) -> Answer {
        self.wait_with_mask(mask[0], mask[1])?;
        let length_ns = if timeout == 0 { None } else { Some(self.timespec_from(timeout)?) };
        self.epoll_wait(epoll, to, most, length_ns)
    }

    fn epoll_wait(&mut self, epoll: i32, to: u64, most: u64, length_ns: Option<u64>) -> Answer {
        let most = usize::try_from(most as i32).ok().filter(|&most| most > 0).ok_or(Errno::EINVAL)?;
        let slot = self.process.files.slot(epoll)?;
        let interests = self.interests(epoll)?.clone();
        let reports = |interest: &Interest| {
            let events = self.process.reported(self.thread, interest, self.now_ns);
            (events != 0).then_some((*interest, events))
        };
        let found: Vec<(Interest, u32)> = interests.iter().filter_map(reports).take(most).collect();
        if found.is_empty() {
            let until_ns = match self.thread().repeated {
                Some(begun) => begun.until_ns,
                None => length_ns.map(|length_ns| self.now_ns.saturating_add(length_ns)),
            };
            return match until_ns {
                Some(until_ns) if until_ns <= self.now_ns => Ok(0),
                _ => self.wait_for(vec![(slot, READABLE)], until_ns),
            };
        }
        for (n, &(interest, events)) in (0..).zip(&found) {
            self.words_to(to.wrapping_add(EVENT_BYTES * n), &[events.into(), interest.data])?;
        }
        for &(interest, _) in &found {
            self.report(epoll, interest)?;
        }
        Ok(found.len() as u64)
    }

    /// An interest has been reported: it is the last to be reported next time, so that others have their turn.
    fn report(&mut self, epoll: i32, mut reported: Interest) -> Result<(), Stop> {
        reported.seen = Some(self.process.happened(reported.slot, self.now_ns));
        if reported.events & ONE_SHOT != 0 {
            reported.events = 0;
        }
        let interests = self.interests(epoll)?;
        interests.retain(|interest| (interest.fd, interest.slot) != (reported.fd, reported.slot));
        interests.push(reported);
        Ok(())
    }
}
