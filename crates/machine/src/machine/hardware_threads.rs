//! Two hardware threads for each core: the sibling of a thread, what it shares, and its name.

use super::Machine;
use durasim_types::CoreId;

impl Machine {
    /// The other hardware thread of the same core, where there is one.
    fn sibling(&self, thread: CoreId) -> Option<usize> {
        let (thread, cores) = (usize::from(thread.0), self.physical_cores);
        if self.cores.len() == cores {
            return None;
        }
        Some(if thread < cores { thread + cores } else { thread - cores })
    }

    /// Name of a hardware thread in statistics.
    pub(crate) fn name_of(&self, number: usize) -> String {
        let cores = self.physical_cores;
        if self.cores.len() == cores {
            number.to_string()
        } else {
            format!("{}.thread_{}", number % cores, number / cores)
        }
    }

    /// The program's thread on a hardware thread has come or gone: queues are halved while both of a core have one.
    pub(crate) fn share_queues(&mut self, thread: CoreId) {
        let Some(sibling) = self.sibling(thread) else { return };
        let pair = [usize::from(thread.0), sibling];
        let running = pair.iter().filter(|&&id| self.scheduler.running(CoreId(id as u16)).is_some()).count();
        for id in pair {
            self.cores[id].share_queues(running.max(1) as u32);
        }
    }

    /// Hands the bookings of the units of a core to its second thread, before it acts, and back, after it. Between turns
    /// the first one has it.
    #[inline]
    pub(crate) fn swap_units(&mut self, thread: CoreId) {
        let thread = usize::from(thread.0);
        if thread >= self.physical_cores {
            let (firsts, seconds) = self.cores.split_at_mut(self.physical_cores);
            let core = thread - self.physical_cores;
            firsts[core].swap_units(&mut seconds[core]);
        }
    }
}
