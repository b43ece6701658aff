//! Hardware transactions: the registers that an abort brings back.

use super::Core;
use durasim_isa::Hart;
use durasim_types::{Cycle, TxId};
use serde::{Deserialize, Serialize};

/// The core as it was at the begin of the outermost hardware transaction.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct HardwareCheckpoint {
    hart: Hart,
    /// The register that gets the status of the abort.
    rd: u8,
    /// The transaction of the program that was open.
    open_tx: Option<TxId>,
    store_tx: Option<TxId>,
    /// The registers of its begin.
    checkpoint: Option<Hart>,
    /// Whether the core has decoded lines that the transaction had stored to: an abort takes that code away.
    has_decoded_stores: bool,
}

impl HardwareCheckpoint {
    /// An instruction is decoded inside of the transaction.
    pub(super) fn note_decoded(&mut self, from_stored_line: bool) {
        self.has_decoded_stores |= from_stored_line;
    }
}

impl Core {
    pub(super) fn begin_hardware_tx(&mut self, rd: u8) {
        self.unit.in_hardware_tx = true;
        self.hardware_checkpoint = Some(Box::new(HardwareCheckpoint {
            hart: self.hart.clone(),
            rd,
            open_tx: self.unit.open_tx,
            store_tx: self.unit.store_tx,
            checkpoint: self.checkpoint.clone(),
            has_decoded_stores: false,
        }));
    }

    pub(super) fn end_hardware_tx(&mut self) {
        self.unit.in_hardware_tx = false;
        self.hardware_checkpoint = None;
    }

    /// The registers of the outermost begin come back, with the status of the abort in its destination register; so does what
    /// was open of the program's own transactions.
    pub(super) fn roll_back_hardware_tx(&mut self, cycle: Cycle, status: u64) {
        // The begin has left the buffer empty: what is there is of the transaction.
        self.unit.buffer.discard();
        let before = *self.hardware_checkpoint.take().expect("a hardware transaction has a begin");
        self.hart = before.hart;
        if before.rd != 0 {
            self.hart.x[usize::from(before.rd)] = status;
        }
        (self.unit.open_tx, self.unit.store_tx) = (before.open_tx, before.store_tx);
        self.checkpoint = before.checkpoint;
        if before.has_decoded_stores {
            self.forget_code();
        }
        self.unit.in_hardware_tx = false;
        self.unit.lease_end = 0;
        self.restart_after_abort(cycle);
    }
}
