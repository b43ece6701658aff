//! Log operations of programs: blocks that are loaded into log registers and leave the store buffer for the design's log.

use super::gates::WaitMode;
use crate::setup::memory_map::is_pmem;
use crate::system::System;
use durasim_contract::{Hooks, LogBlock};
use durasim_core::{EarlyFlushOutcome, LogFlush, Outcome};
use durasim_isa::LOG_BLOCK_BYTES;
use durasim_types::{CoreId, Cycle, PhysAddr, TxId};

impl System {
    /// Whether the design has log operations.
    pub fn has_log_operations(&self) -> bool {
        self.design.has(Hooks::LOG)
    }

    /// Loads the aligned block at `addr`: one access like that of a load. The newest bytes and the cycle in which they are
    /// there.
    pub fn load_block(&mut self, core: CoreId, addr: PhysAddr, tx: Option<TxId>, at: Cycle) -> ([u64; 4], Cycle) {
        let (_, done) = self.load(core, addr, 8, tx, at);
        let line = self.peek_line(addr.line());
        let word = |i: usize| {
            let first = addr.offset() + 8 * i;
            u64::from_le_bytes(line[first..first + 8].try_into().expect("eight bytes"))
        };
        (std::array::from_fn(word), done)
    }

    /// A flush of a log register leaves the store buffer. Volatile memory needs no log.
    pub fn log_flush(&mut self, core: CoreId, flush: &LogFlush, at: Cycle) -> Outcome {
        self.advance(at);
        if flush.tx.is_some()
            && let Some((cycle, code)) = self.take_abort(core)
        {
            return Outcome::Aborted(cycle, code);
        }
        if !is_pmem(flush.addr.line()) || !self.has_log_operations() {
            return Outcome::Done(at);
        }
        let block = block_of(flush);
        self.begin_waits(core);
        self.through(core, at, WaitMode::Suspend, |s, cx, out| s.design.log_flush(cx, &block, out))
    }

    /// A flush of a log register may leave ahead of stores in front of it. What was refused may be taken after the next
    /// scheduled event.
    pub fn offer_log_flush(&mut self, core: CoreId, flush: &LogFlush, at: Cycle) -> EarlyFlushOutcome {
        self.advance(at);
        if flush.tx.is_some()
            && let Some((cycle, code)) = self.take_abort(core)
        {
            return EarlyFlushOutcome::Aborted(cycle, code);
        }
        if !is_pmem(flush.addr.line()) || !self.has_log_operations() {
            return EarlyFlushOutcome::Taken(at);
        }
        let block = block_of(flush);
        let mut out = self.design.actions();
        let cx = self.cx(core, at);
        let taken = self.design.log_flush_early(&cx, &block, &mut out);
        // No design aborts where it only takes something.
        self.carry_out(core, at, out);
        if taken {
            EarlyFlushOutcome::Taken(at)
        } else {
            EarlyFlushOutcome::Refused { again_at: self.agenda.due().max(at + 1) }
        }
    }

    /// The kernel, about to store to `addr` in a transaction, logs the block as programs do: its code is built as theirs. An
    /// abort is noticed by the core.
    pub(super) fn log_for_kernel(&mut self, core: CoreId, addr: PhysAddr, tx: TxId, at: Cycle) -> Cycle {
        let addr = PhysAddr(addr.0 - addr.0 % LOG_BLOCK_BYTES);
        let (old, done) = self.load_block(core, addr, Some(tx), at);
        let block = block_of(&LogFlush { addr, old, tx: Some(tx) });
        self.through_or_note_abort(core, done, |s, cx, out| s.design.log_flush(cx, &block, out))
    }
}

fn block_of(flush: &LogFlush) -> LogBlock {
    let mut old = [0; LOG_BLOCK_BYTES as usize];
    for (bytes, word) in old.chunks_exact_mut(8).zip(flush.old) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    LogBlock { addr: flush.addr, old, tx: flush.tx }
}
