//! An out-of-order core: it executes instructions in program order, functionally, and places each in time with an
//! instruction-window model. [`Port`] is its interface to memory and the rest of the machine.

mod banks;
pub mod branch;
mod code;
mod config;
mod core;
mod execution;
mod front_waits;
mod inst_info;
mod log_registers;
mod port;
mod saved_array;
mod store_buffer;
mod store_sets;
pub mod tlb;
mod translations;
mod window;

pub use config::{CoreConfig, Fences, UnitConfig, UnitsConfig};
pub use core::{
    Core, CoreStats, Exit, PlacePauses, StallCycles, StallKind, StallPlace, StallSlice, SuspensionFault, ThreadContext,
};
pub use port::{
    Control, EarlierStores, EarlyFlushOutcome, HtmAbort, InstructionOrigin, LogFlush, Outcome, PendingStore,
    PersistentStores, Port,
};
pub use store_buffer::StoreBuffer;
pub use store_sets::StoreSetsConfig;
