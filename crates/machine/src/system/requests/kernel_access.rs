//! Memory as the kernel sees it in a system call, and code as it is fetched: the newest copy, in no time.

use super::gates::WaitMode;
use super::loads::read_word;
use crate::parts::caches::AccessMode;
use crate::setup::memory_map::is_pmem;
use crate::system::System;
use durasim_contract::Hooks;
use durasim_core::PendingStore;
use durasim_types::{CoreId, Cycle, LineAddr, PhysAddr, TxId};

impl System {
    /// Two bytes of code that a core decodes, before it asks for their line or from one that its L1I has: it reads them, so that a
    /// hardware transaction of another core that has written them aborts.
    pub fn decode(&mut self, core: CoreId, addr: PhysAddr, at: Cycle) -> u16 {
        // A core whose own transaction has been aborted notices that before it executes anything of them.
        let _ = self.announce_access(core, addr.line(), AccessMode::Read, at);
        self.code(addr)
    }

    /// Whether the open hardware transaction of a core has stored to a line.
    pub fn has_stored_to(&self, core: CoreId, line: LineAddr) -> bool {
        self.transactions.hardware_on(core).is_some_and(|tx| self.transactions.has_tagged(tx, line))
    }

    /// Two bytes of code, for messages.
    pub fn code(&self, addr: PhysAddr) -> u16 {
        read_word(&self.peek_line(addr.line()), addr.offset(), 2) as u16
    }

    /// Reads bytes as the kernel does in a system call: the newest copy, in no time. A line of persistent memory that no
    /// cache has may be in a place that only the design knows: it is loaded.
    pub fn read_newest(&mut self, core: CoreId, addr: PhysAddr, bytes: &mut [u8], tx: Option<TxId>, at: Cycle) {
        let mut done = 0;
        while done < bytes.len() {
            let place = addr.plus(done as u64);
            let (line, offset) = (place.line(), place.offset());
            // A hardware transaction of another core that has written it aborts.
            if self.announce_access(core, line, AccessMode::Read, at).is_err() {
                return;
            }
            let n = (64 - offset).min(bytes.len() - done);
            let known_to_design = is_pmem(line) && self.design.has(Hooks::FILL);
            let data = if known_to_design {
                match self.line_in_l1d(core, line, tx, AccessMode::Read, at) {
                    Ok((slot, _)) => *self.caches.l1d(core).data(slot),
                    // The core processes the abort and will make the call again.
                    Err(_) => return,
                }
            } else {
                self.peek_line(line)
            };
            bytes[done..done + n].copy_from_slice(&data[offset..offset + n]);
            done += n;
        }
    }

    /// Writes bytes as the kernel does in a system call. To persistent memory they are stores like any other and meet
    /// the design; volatile lines change in place, in no time.
    pub fn write_newest(&mut self, core: CoreId, addr: PhysAddr, bytes: &[u8], tx: Option<TxId>, at: Cycle) {
        let mut done = 0;
        while done < bytes.len() {
            let place = addr.plus(done as u64);
            if is_pmem(place.line()) {
                let n = (8 - place.0 as usize % 8).min(bytes.len() - done);
                let mut word = [0; 8];
                word[..n].copy_from_slice(&bytes[done..done + n]);
                let store = PendingStore::plain(place, n as u8, u64::from_le_bytes(word), tx);
                if self.kernel_store(core, &store, at) {
                    return;
                }
                done += n;
            } else {
                let n = (64 - place.offset()).min(bytes.len() - done);
                if self.announce_access(core, place.line(), AccessMode::Write, at).is_err() {
                    return;
                }
                self.write_volatile(place, &bytes[done..done + n]);
                done += n;
            }
        }
    }

    /// A store by the kernel; whether the transaction of the core was aborted on the way. The core processes the abort
    /// itself.
    fn kernel_store(&mut self, core: CoreId, store: &PendingStore, at: Cycle) -> bool {
        self.caches.end_reservations(None, store.addr.line());
        if self.is_aborted(core) {
            return true;
        }
        let mut at = at;
        if let Some(tx) = self.begun(store.tx)
            && self.has_log_operations()
        {
            at = self.log_for_kernel(core, store.addr, tx, at);
            if self.is_aborted(core) {
                return true;
            }
        }
        self.advance(at);
        self.caches.pin(store.addr.line());
        self.store_through_design(core, store, at, WaitMode::MemoryOnly);
        self.caches.unpin();
        self.is_aborted(core)
    }

    /// All copies of a line of DRAM change; one of them, or the memory below clean ones, keeps the change.
    fn write_volatile(&mut self, addr: PhysAddr, bytes: &[u8]) {
        self.caches.end_reservations(None, addr.line());
        if !self.caches.overwrite(addr, bytes) {
            self.memories.write_dram(addr, bytes);
        }
    }
}
