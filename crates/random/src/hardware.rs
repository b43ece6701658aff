//! Hardware transactions of the machine (RTM): threads begin and end them by instructions, everything in them rolls back, and
//! nothing that they have read changes before they commit.

use crate::model::{OpenTx, Place, Request};
use crate::power_cycle::{PowerCycle, core};
use durasim_contract::Trap;
use durasim_core::{HtmAbort, Outcome};

/// Bits of the status of an abort (Intel SDM, volume 1, table 16-1).
const EXPLICIT: u64 = 1;
const NESTED: u64 = 1 << 5;
const CODE: u8 = 7;
const CODE_SHIFT: u32 = 24;
/// The depth of nested transactions here; the machine allows seven.
const DEPTH_MAX: u32 = 3;

impl PowerCycle {
    /// Whether the thread at a port is in a hardware transaction, as far as it knows.
    pub fn in_hardware(&self, port: usize) -> bool {
        self.hardware && self.thread(port).tx.is_some()
    }

    /// Begins a hardware transaction, or one inside of it.
    pub fn begin_hardware(&mut self, port: usize) -> Result<(), String> {
        if self.thread(port).tx.is_none() {
            let (id, left) = (self.system.new_tx(), 1 + self.rng.below(self.tx_ops_max));
            self.thread_mut(port).tx = Some(OpenTx::new(id, left));
        }
        self.request(port, Request::HardwareBegin)
    }

    /// Whether one more may begin inside of that of a port.
    pub fn may_nest(&self, port: usize) -> bool {
        self.hardware && self.thread(port).tx.as_ref().is_some_and(|tx| tx.depth < DEPTH_MAX)
    }

    pub fn hardware_begun(&mut self, port: usize) {
        let tx = self.thread_mut(port).tx.as_mut().expect("it begins one");
        tx.depth += 1;
    }

    /// The innermost transaction has ended; with the outermost all stores have become visible, and survive where caches do.
    pub fn hardware_ended(&mut self, port: usize) -> Result<(), String> {
        let thread = self.thread_mut(port);
        let tx = thread.tx.as_mut().expect("it ends one");
        if tx.aborted {
            return Err(format!("transaction {} ends after its abort", tx.id.0));
        }
        tx.depth -= 1;
        if tx.depth > 0 {
            return Ok(());
        }
        let stores = thread.tx.take().expect("just seen").undo;
        self.tally.committed += 1;
        let mut shared = self.shared.lock().expect("no holder panics with it");
        for (place, _) in stores.iter().filter(|(place, _)| place.is_pmem()) {
            shared.stored_outside(place.addr(), place.len)?;
        }
        Ok(())
    }

    /// An instruction ends or aborts the transaction of a port.
    pub fn end_hardware(&mut self, port: usize) -> Result<(), String> {
        if !self.aborts || self.rng.below(4) > 0 {
            return self.request(port, Request::HardwareEnd);
        }
        let nested = if self.thread(port).tx.as_ref().is_some_and(|tx| tx.depth > 1) { NESTED } else { 0 };
        let wanted = EXPLICIT | nested | u64::from(CODE) << CODE_SHIFT;
        let outcome = self.system.htm_abort(core(port), HtmAbort::Requested(CODE), self.ports[port].now);
        self.aborts_with(port, outcome, Some(wanted))
    }

    /// A cache-block operation aborts the transaction instead.
    pub fn abort_by_cache_block(&mut self, port: usize) -> Result<(), String> {
        let outcome = self.system.htm_abort(core(port), HtmAbort::CacheBlock, self.ports[port].now);
        self.aborts_with(port, outcome, None)
    }

    fn aborts_with(&mut self, port: usize, outcome: Outcome, status: Option<u64>) -> Result<(), String> {
        let Outcome::Aborted(cycle, found) = outcome else {
            return Err("an abort was done, not aborted".into());
        };
        if status.is_some_and(|wanted| wanted != found) {
            return Err(format!("an abort by an instruction has the status {found:#x}"));
        }
        self.abort_noticed(port, cycle, found)?;
        self.after_request(Some(port))
    }

    /// An access that no transaction can contain aborts one that is open; true if there was one.
    pub fn trap(&mut self, port: usize, trap: Trap) -> Result<bool, String> {
        if !self.in_hardware(port) {
            return Ok(false);
        }
        if !self.system.htm_trap(core(port), trap, self.ports[port].now) {
            return Err(format!("the machine knows of no transaction of port {port}"));
        }
        self.after_request(Some(port))?;
        self.process_abort(port)
    }

    /// Follows what a request has done to transactions of any port: what they have stored is rolled back.
    pub fn roll_back_hardware(&mut self, by: Option<usize>) {
        for port in 0..self.ports.len() {
            let Some(index) = self.ports[port].thread else { continue };
            let is_open = self.threads[index].tx.as_ref().is_some_and(|tx| !tx.aborted);
            if is_open && self.system.is_aborted(core(port)) {
                self.roll_back(index);
                self.tally.aborted_by_others += u64::from(by.is_some_and(|by| by != port));
            }
        }
    }

    /// A thread has read these bytes: no other may change their line before its transaction has ended.
    pub fn note_read(&mut self, port: usize, place: Place) {
        if self.hardware
            && let Some(tx) = &mut self.thread_mut(port).tx
        {
            tx.read.push(place.line());
        }
    }

    /// A reader of the line of a store, in a transaction that is not aborted, would commit values that never were.
    pub fn check_read_sets(&self, port: usize, place: Place) -> Result<(), String> {
        for (index, thread) in self.threads.iter().enumerate() {
            let Some(tx) = thread.tx.as_ref().filter(|tx| !tx.aborted) else { continue };
            if self.ports[port].thread != Some(index) && tx.read.contains(&place.line()) {
                self.check_health()?;
                let (line, id) = (place.line(), tx.id.0);
                return Err(format!(
                    "port {port} stores to {line}, and transaction {id}, which has read it, continues"
                ));
            }
        }
        Ok(())
    }
}
