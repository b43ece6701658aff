//! Two hardware threads of one core. Each is a [`Core`] with registers, a reorder buffer, queues, a branch predictor and TLBs of its
//! own; functional units, issue width and the ports of the L1D's banks are shared (DEVIATIONS.md, hardware-threads).

use super::Core;

impl Core {
    /// Lets `threads` threads run on the core: each has an equal part of the reorder buffer and the queues from now on.
    pub fn share_queues(&mut self, threads: u32) {
        self.window.share_queues(&self.config, threads);
        self.unit.buffer.resize((self.config.store_queue_entries / threads) as usize);
    }

    /// Exchanges what units, issue width and the ports of banks have taken up. The thread that acts has it.
    #[inline]
    pub fn swap_units(&mut self, sibling: &mut Core) {
        self.window.swap_units(&mut sibling.window);
        std::mem::swap(&mut self.unit.banks, &mut sibling.unit.banks);
    }
}
