//! The operands of checked accesses: registers of a hart, lines of filters, and the outcome of an access. P-INSPECT
//! (MICRO 2020), sections V and VI. Types only: the instructions are in `durasim-isa`, the tables in the design.

use serde::{Deserialize, Serialize};

/// Lines of a forwarding filter.
pub const FWD_LINES: usize = 4;
/// Lines of all filters of a process: the red filter in lines 0 to 3, the black one in lines 4 to 7, TRANS in line 8.
pub const FILTER_LINES: usize = 2 * FWD_LINES + 1;
/// The line of the TRANS filter.
pub const TRANS_LINE: usize = 2 * FWD_LINES;
/// The most significant line of the red filter, whose top bit says that red is the active one. Who changes filters takes
/// this line first.
pub const SEED_LINE: usize = FWD_LINES - 1;
/// Bytes between the entries of a handler table.
pub const HANDLER_BYTES: u64 = 8;

/// The check registers of a hart: the places of filters, handlers and the persistent heap, and the access that a
/// handler is to finish.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckRegisters(pub [u64; CheckRegisters::COUNT]);

impl CheckRegisters {
    /// The number of check registers.
    pub const COUNT: usize = 11;
    /// Virtual address of the nine filter lines; 0 if there are none.
    pub const FILTERS: usize = 0;
    /// Virtual address of the handler table: handler n, from 1 on, begins [`HANDLER_BYTES`] `* (n - 1)` after it. 0 if
    /// it is not set.
    pub const HANDLERS: usize = 1;
    /// First byte of the persistent heap.
    pub const HEAP_BASE: usize = 2;
    /// First byte after the persistent heap.
    pub const HEAP_LIMIT: usize = 3;
    /// Bit 0: inside of a transaction.
    pub const XACTION: usize = 4;
    /// The address at which the program continues after a handler.
    pub const RETURN_PC: usize = 5;
    /// The base of the access: the address of an object.
    pub const BASE: usize = 6;
    /// The offset of the access in bytes.
    pub const OFFSET: usize = 7;
    /// The value to be stored.
    pub const VALUE: usize = 8;
    /// The kind of the access: the fields `funct7 | funct3 << 8 | rd << 16` of its encoding.
    pub const ACCESS: usize = 9;
    /// The value that a handler has loaded for the program.
    pub const RESULT: usize = 10;
    /// The registers of a hart that has not written any.
    pub const ZERO: CheckRegisters = CheckRegisters([0; CheckRegisters::COUNT]);

    /// Whether an object is in the persistent heap.
    #[inline]
    pub const fn is_in_heap(&self, object: u64) -> bool {
        self.0[Self::HEAP_BASE] <= object && object < self.0[Self::HEAP_LIMIT]
    }

    /// Whether the hart is inside of a transaction.
    #[inline]
    pub const fn is_in_transaction(&self) -> bool {
        self.0[Self::XACTION] & 1 != 0
    }
}

/// The kinds of stores to persistent memory: the flavours of P-INSPECT's persistentWrite (section V-E).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum StoreKind {
    /// Nothing.
    #[default]
    Plain,
    /// A clean of the line.
    Clean,
    /// A clean of the line, and a fence that waits for it.
    CleanAndFence,
}

/// The checks of an access (P-INSPECT, Table III).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// checkLoad.
    Load,
    /// checkStoreH: a store of something that is no reference.
    StoreH,
    /// checkStoreBoth: a store of a reference.
    StoreBoth,
}

/// An access that is to be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CheckedAccess {
    /// Its checks.
    pub kind: AccessKind,
    /// The address of the object that it is for.
    pub base: u64,
    /// Bytes from there to what is loaded or stored.
    pub offset: u64,
    /// The stored value; 0 for a load.
    pub value: u64,
}

impl CheckedAccess {
    /// The address that is loaded or stored.
    #[inline]
    pub const fn address(&self) -> u64 {
        self.base.wrapping_add(self.offset)
    }
}

/// The outcome of a checked access (P-INSPECT, Tables IV and V).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CheckVerdict {
    /// The hardware makes it.
    Hardware {
        /// Whether it stores to an object in the persistent heap: its [`StoreKind`] then applies, and else it is plain.
        persistent: bool,
    },
    /// A handler of the program runs instead: 1 to 4.
    Handler(u8),
}

/// An operation on the filters of a process (P-INSPECT, Tables II and VI).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FilterOperation {
    /// Inserts an object into the active forwarding filter.
    InsertFwd,
    /// Inserts an object into the TRANS filter.
    InsertTrans,
    /// Clears the inactive forwarding filter.
    ClearFwd,
    /// Clears the TRANS filter.
    ClearTrans,
    /// Makes the inactive forwarding filter the active one.
    ChangeActive,
}
