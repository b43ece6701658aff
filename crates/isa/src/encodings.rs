// Generated from crates/isa/encodings.toml by tools/gen_encodings.py: edit the table, not this file.

//! The encodings that are durasim's own.

use serde::{Deserialize, Serialize};

/// A message from the program to the machine: `slti x0, rs1, imm` with the value below as imm and the
/// argument in rs1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u16)]
pub enum Marker {
    /// The region of interest begins: counters that the result reports start from zero.
    ///
    /// Argument: unused.
    RoiBegin = 1,
    /// The region of interest ends.
    ///
    /// Argument: unused.
    RoiEnd = 2,
    /// An operation of the workload begins; its latency is measured up to the matching op_end.
    ///
    /// Argument: number of the operation.
    OpBegin = 3,
    /// The operation ends.
    ///
    /// Argument: number of the operation.
    OpEnd = 4,
    /// A transaction begins. The program sets a0 to 0 just before; after an abort the machine returns here with the cause in a0.
    ///
    /// Argument: unused.
    TxBegin = 5,
    /// The open transaction commits.
    ///
    /// Argument: unused.
    TxCommit = 6,
    /// The program aborts the open transaction itself.
    ///
    /// Argument: cause handed back in a0.
    TxAbort = 7,
    /// Declares where the program's persistent data starts.
    ///
    /// Argument: virtual address of the first byte.
    DataBase = 8,
    /// Declares how much persistent data there is, starting at data_base.
    ///
    /// Argument: size in bytes.
    DataSize = 9,
    /// A place where a snapshot of the machine may be taken.
    ///
    /// Argument: number of the place.
    SnapshotPoint = 10,
    /// A software commit is about to take effect: from here to its tx_commit a crash may show all of the transaction or nothing.
    ///
    /// Argument: unused.
    TxCommitting = 11,
    /// The open transaction read or changed an object.
    ///
    /// Argument: the object.
    OpObject = 12,
    /// The version of that object that the transaction found.
    ///
    /// Argument: the version, 0 if the object was not there.
    OpOld = 13,
    /// The version of that object that the transaction left.
    ///
    /// Argument: the version, 0 if the object is no longer there.
    OpNew = 14,
    /// The open transaction is suspended: the stores that follow are not part of it.
    ///
    /// Argument: unused.
    TxSuspend = 15,
    /// The suspended transaction resumes: the stores that follow are part of it.
    ///
    /// Argument: unused.
    TxResume = 16,
    /// The thread is in a rare situation from here on.
    ///
    /// Argument: number of the situation.
    SituationBegin = 17,
    /// The thread has left that situation.
    ///
    /// Argument: number of the situation.
    SituationEnd = 18,
    /// A replayer has gone over the redo logs once and applied the transactions that it found there.
    ///
    /// Argument: number of transactions.
    ReplayPass = 19,
}

impl Marker {
    /// All markers, in the order of their numbers.
    pub const ALL: [Marker; 19] = [
        Marker::RoiBegin,
        Marker::RoiEnd,
        Marker::OpBegin,
        Marker::OpEnd,
        Marker::TxBegin,
        Marker::TxCommit,
        Marker::TxAbort,
        Marker::DataBase,
        Marker::DataSize,
        Marker::SnapshotPoint,
        Marker::TxCommitting,
        Marker::OpObject,
        Marker::OpOld,
        Marker::OpNew,
        Marker::TxSuspend,
        Marker::TxResume,
        Marker::SituationBegin,
        Marker::SituationEnd,
        Marker::ReplayPass,
    ];

    /// The marker with the number `imm`, if there is one.
    pub const fn from_imm(imm: i32) -> Option<Marker> {
        match imm {
            1 => Some(Marker::RoiBegin),
            2 => Some(Marker::RoiEnd),
            3 => Some(Marker::OpBegin),
            4 => Some(Marker::OpEnd),
            5 => Some(Marker::TxBegin),
            6 => Some(Marker::TxCommit),
            7 => Some(Marker::TxAbort),
            8 => Some(Marker::DataBase),
            9 => Some(Marker::DataSize),
            10 => Some(Marker::SnapshotPoint),
            11 => Some(Marker::TxCommitting),
            12 => Some(Marker::OpObject),
            13 => Some(Marker::OpOld),
            14 => Some(Marker::OpNew),
            15 => Some(Marker::TxSuspend),
            16 => Some(Marker::TxResume),
            17 => Some(Marker::SituationBegin),
            18 => Some(Marker::SituationEnd),
            19 => Some(Marker::ReplayPass),
            _ => None,
        }
    }

    /// The name of the marker in the table.
    pub const fn name(self) -> &'static str {
        match self {
            Marker::RoiBegin => "roi_begin",
            Marker::RoiEnd => "roi_end",
            Marker::OpBegin => "op_begin",
            Marker::OpEnd => "op_end",
            Marker::TxBegin => "tx_begin",
            Marker::TxCommit => "tx_commit",
            Marker::TxAbort => "tx_abort",
            Marker::DataBase => "data_base",
            Marker::DataSize => "data_size",
            Marker::SnapshotPoint => "snapshot_point",
            Marker::TxCommitting => "tx_committing",
            Marker::OpObject => "op_object",
            Marker::OpOld => "op_old",
            Marker::OpNew => "op_new",
            Marker::TxSuspend => "tx_suspend",
            Marker::TxResume => "tx_resume",
            Marker::SituationBegin => "situation_begin",
            Marker::SituationEnd => "situation_end",
            Marker::ReplayPass => "replay_pass",
        }
    }
}

/// The names of the situations that programs report, in the order of their numbers.
pub const SITUATIONS: [&str; 8] = [
    "fall-back-lock",
    "commit-not-cleaned",
    "log-wrapped",
    "replay",
    "group-wait",
    "marker-not-fenced",
    "log-full",
    "page-out",
];

/// Checked accesses, operations on their filters, and persistent stores.
pub const CUSTOM_0: u32 = 0x0b;

/// Log operations; the rest is reserved for transaction tests and persistent writes.
pub const CUSTOM_1: u32 = 0x2b;

/// The aligned block of 32 bytes at the address in rs1 goes to the log register in rd, with its address (Proteus: log-load).
///
/// funct3 under CUSTOM_1.
pub const LOG_LOAD: u32 = 0;

/// The block in the log register in rd goes to the log, in order with stores (Proteus: log-flush).
///
/// funct3 under CUSTOM_1.
pub const LOG_FLUSH: u32 = 1;

/// A hardware transaction begins, or one inside of it; rd = all ones if it does, and after an abort the status of that, after this instruction (RTM: xbegin).
///
/// funct3 and funct7 under CUSTOM_1.
pub const HTM_BEGIN: (u32, u32) = (2, 0);

/// The innermost hardware transaction ends; with the outermost one all its stores become visible at once (RTM: xend).
///
/// funct3 and funct7 under CUSTOM_1.
pub const HTM_END: (u32, u32) = (2, 1);

/// The hardware transaction, if one is open, aborts, with a code of eight bits in the fields rs2 (upper three) and rs1 (RTM: xabort).
///
/// funct3 and funct7 under CUSTOM_1.
pub const HTM_ABORT: (u32, u32) = (2, 2);

/// rd = 1 inside a hardware transaction, else 0 (RTM: xtest).
///
/// funct3 and funct7 under CUSTOM_1.
pub const HTM_TEST: (u32, u32) = (2, 3);

/// Checks the object at rs1, then loads from rs1 plus the offset in the field rs2 to rd, or enters a handler (P-INSPECT: checkLoad).
///
/// funct3 under CUSTOM_0.
pub const CHECK_LOAD: u32 = 0;

/// Checks the object at rs1, then stores rs2 to rs1 plus the offset in the field rd, or enters a handler (P-INSPECT: checkStoreH).
///
/// funct3 under CUSTOM_0.
pub const CHECK_STORE_H: u32 = 1;

/// Checks the objects at rs1 and rs2, then stores rs2 to rs1 plus the offset in the field rd, or enters a handler; doublewords only (P-INSPECT: checkStoreBoth).
///
/// funct3 under CUSTOM_0.
pub const CHECK_STORE_BOTH: u32 = 2;

/// Stores rs2 to rs1 plus the offset in the field rd, without checks (P-INSPECT: persistentWrite).
///
/// funct3 under CUSTOM_0.
pub const PERSIST_STORE: u32 = 3;

/// Inserts the object at rs1 into the active forwarding filter; rd = 1 if it is so full that the pointer update thread has to work, else 0 (P-INSPECT: insertBF of FWD).
///
/// funct3 and funct7 under CUSTOM_0.
pub const INSERT_FWD: (u32, u32) = (4, 0);

/// Inserts the object at rs1 into the filter of closures in progress (P-INSPECT: insertBF of TRANS).
///
/// funct3 and funct7 under CUSTOM_0.
pub const INSERT_TRANS: (u32, u32) = (4, 1);

/// Clears the inactive forwarding filter (P-INSPECT: clearBF of FWD).
///
/// funct3 and funct7 under CUSTOM_0.
pub const CLEAR_FWD: (u32, u32) = (4, 2);

/// Clears the filter of closures in progress (P-INSPECT: clearBF of TRANS).
///
/// funct3 and funct7 under CUSTOM_0.
pub const CLEAR_TRANS: (u32, u32) = (4, 3);

/// Makes the inactive forwarding filter the active one (P-INSPECT: Change Active FWD Filter).
///
/// funct3 and funct7 under CUSTOM_0.
pub const CHANGE_ACTIVE: (u32, u32) = (4, 4);

/// The check register whose number is in funct7 goes to rd.
///
/// funct3 under CUSTOM_0.
pub const CHECK_READ: u32 = 5;

/// rs1 goes to the check register whose number is in funct7.
///
/// funct3 under CUSTOM_0.
pub const CHECK_WRITE: u32 = 6;

/// Leaves a handler: the program continues at return_pc, and if the access was a check_load, its rd gets result, truncated and extended as the access asks.
///
/// funct3 and funct7 under CUSTOM_0.
pub const CHECK_RETURN: (u32, u32) = (7, 0);

/// The loaded value is zero-extended, and else sign-extended.
pub const ACCESS_ZERO_EXTEND: u8 = 0x04;

/// A store to persistent memory cleans its line.
pub const ACCESS_CLEAN: u8 = 0x08;

/// A store to persistent memory cleans its line, and later stores wait until that is durable.
pub const ACCESS_CLEAN_AND_FENCE: u8 = 0x10;

/// The field of the offset is a constant, which counts in widths of the access, and else the number of a register that holds bytes.
pub const ACCESS_CONSTANT_OFFSET: u8 = 0x40;

/// The names of the check registers, in the order of their numbers.
pub const CHECK_REGISTERS: [&str; 11] = [
    "filters",
    "handlers",
    "heap_base",
    "heap_limit",
    "xaction",
    "return_pc",
    "base",
    "offset",
    "value",
    "access",
    "result",
];
