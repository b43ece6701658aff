//! The memory as the kernel sees it while it serves a system call.

use crate::system::System;
use durasim_kernel::PhysMemory;
use durasim_types::{CoreId, Cycle, PhysAddr, TxId};

pub(crate) struct KernelMemory<'a> {
    pub system: &'a mut System,
    pub core: CoreId,
    pub tx: Option<TxId>,
    /// The cycle of the next access.
    pub at: Cycle,
}

impl PhysMemory for KernelMemory<'_> {
    fn read(&mut self, addr: PhysAddr, bytes: &mut [u8]) {
        self.system.read_newest(self.core, addr, bytes, self.tx, self.at);
    }

    fn write(&mut self, addr: PhysAddr, bytes: &[u8]) {
        self.system.write_newest(self.core, addr, bytes, self.tx, self.at);
    }

    fn persist(&mut self, addr: PhysAddr, size_bytes: u64) {
        self.at = self.system.persist(self.core, addr, size_bytes, self.at);
    }
}
