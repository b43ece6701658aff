//! The requests of a hart to the world around it. [`Bus`] gives it the memory system, the system calls and the clock.

use crate::encodings::Marker;
use crate::log_register::LogRegister;
use crate::stop::{AccessFault, Stop};
use durasim_types::{CheckRegisters, CheckVerdict, CheckedAccess, FilterOperation, LINE_BYTES, StoreKind};
use serde::{Deserialize, Serialize};

/// The sets of a FENCE, each a combination of I = 8, O = 4, R = 2 and W = 1 as encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FenceSet {
    /// The accesses that come before the fence.
    pub pred: u8,
    /// The accesses that come after it.
    pub succ: u8,
    /// FENCE.TSO: earlier stores need not come before later loads.
    pub tso: bool,
}

impl FenceSet {
    /// Whether the fence orders earlier reads of memory.
    pub const fn reads(self) -> bool {
        self.pred & 2 != 0
    }

    /// Whether the fence orders earlier writes of memory.
    pub const fn writes(self) -> bool {
        self.pred & 1 != 0
    }
}

/// The cache-block management operations of Zicbom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CacheBlockOp {
    /// `cbo.clean`: write the block back and keep it.
    Clean,
    /// `cbo.flush`: write the block back and drop it.
    Flush,
    /// `cbo.inval`: drop the block. In user mode an implementation may flush instead.
    Inval,
}

/// The request of an instruction of hardware transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum HtmOperation {
    /// A transaction begins. After an abort the register `rd` holds the status.
    Begin {
        /// The register.
        rd: u8,
    },
    /// The innermost transaction ends.
    End,
    /// The transaction aborts, if one is open.
    Abort {
        /// The information of the program about it.
        code: u8,
    },
    /// Asks whether a transaction is open.
    Test,
}

/// The operations of the AMO instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AmoOp {
    /// The operand.
    Swap,
    /// Sum, modulo the size.
    Add,
    /// Exclusive or.
    Xor,
    /// And.
    And,
    /// Or.
    Or,
    /// Smaller, signed.
    Min,
    /// Larger, signed.
    Max,
    /// Smaller, unsigned.
    Minu,
    /// Larger, unsigned.
    Maxu,
    /// The operand if the old value is this one; else nothing is written.
    CompareAndSwap {
        /// The expected value; of 4 bytes, the low half counts.
        expected: u64,
    },
}

impl AmoOp {
    /// The value that the operation writes, zero-extended from `bytes` (4 or 8); `None` if it writes nothing. Bits of `old`
    /// and `operand` above that size do not matter.
    pub fn apply(self, bytes: u8, old: u64, operand: u64) -> Option<u64> {
        if let AmoOp::CompareAndSwap { expected } = self
            && (old ^ expected) << (64 - 8 * u32::from(bytes)) != 0
        {
            return None;
        }
        Some(if bytes == 4 {
            u64::from(self.apply_word(old as u32, operand as u32))
        } else {
            self.apply_double(old, operand)
        })
    }

    fn apply_word(self, old: u32, operand: u32) -> u32 {
        match self {
            AmoOp::Swap | AmoOp::CompareAndSwap { .. } => operand,
            AmoOp::Add => old.wrapping_add(operand),
            AmoOp::Xor => old ^ operand,
            AmoOp::And => old & operand,
            AmoOp::Or => old | operand,
            AmoOp::Min => (old as i32).min(operand as i32) as u32,
            AmoOp::Max => (old as i32).max(operand as i32) as u32,
            AmoOp::Minu => old.min(operand),
            AmoOp::Maxu => old.max(operand),
        }
    }

    fn apply_double(self, old: u64, operand: u64) -> u64 {
        match self {
            AmoOp::Swap | AmoOp::CompareAndSwap { .. } => operand,
            AmoOp::Add => old.wrapping_add(operand),
            AmoOp::Xor => old ^ operand,
            AmoOp::And => old & operand,
            AmoOp::Or => old | operand,
            AmoOp::Min => (old as i64).min(operand as i64) as u64,
            AmoOp::Max => (old as i64).max(operand as i64) as u64,
            AmoOp::Minu => old.min(operand),
            AmoOp::Maxu => old.max(operand),
        }
    }
}

/// The counters of Zicntr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counter {
    /// Clock cycles of this core.
    Cycle,
    /// The one clock that all harts share.
    Time,
    /// Instructions this hart has retired.
    Instret,
}

/// The world as one hart sees it. Addresses are guest virtual; sizes are 1, 2, 4 or 8 bytes; values are little-endian
/// and zero-extended. A method that returns an error must not have changed anything.
pub trait Bus {
    /// Reads `bytes` bytes. Any alignment is allowed.
    fn load(&mut self, addr: u64, bytes: u8) -> Result<u64, AccessFault>;
    /// Writes the low `bytes` bytes of `value`; the bits above them do not matter. Any alignment is allowed.
    fn store(&mut self, addr: u64, bytes: u8, value: u64) -> Result<(), AccessFault>;
    /// Reads 4 or 8 bytes and reserves them. The address is a multiple of the size.
    fn load_reserved(&mut self, addr: u64, bytes: u8) -> Result<u64, AccessFault>;
    /// Writes 4 or 8 bytes if the reservation still holds, and drops the reservation in any case; true = stored. The
    /// address is a multiple of the size.
    fn store_conditional(&mut self, addr: u64, bytes: u8, value: u64) -> Result<bool, AccessFault>;
    /// Replaces 4 or 8 bytes by what [`AmoOp::apply`] gives, in one step, and returns the old value. The address is a multiple of the
    /// size.
    fn amo(&mut self, addr: u64, bytes: u8, op: AmoOp, operand: u64) -> Result<u64, AccessFault>;
    /// FENCE and FENCE.TSO.
    fn fence(&mut self, set: FenceSet);
    /// FENCE.I: caches of decoded instructions forget them.
    fn fence_i(&mut self);
    /// A cache-block operation on the block that holds `addr`, which may be any byte of it.
    fn cache_block(&mut self, op: CacheBlockOp, addr: u64) -> Result<(), AccessFault>;
    /// Writes zeros to the block of [`LINE_BYTES`] that holds `addr`, which may be any byte of it. No block is on two pages.
    fn zero_block(&mut self, addr: u64) -> Result<(), AccessFault> {
        let first = addr - addr % LINE_BYTES;
        (0..LINE_BYTES / 8).try_for_each(|word| self.store(first + 8 * word, 8, 0))
    }
    /// Reads the aligned block of [`crate::LOG_BLOCK_BYTES`] at `addr` for a log register.
    ///
    /// # Errors
    /// A refused access, or [`Stop::NoLogOperations`] where there are no log operations, which is what a bus says of itself.
    fn log_load(&mut self, _addr: u64) -> Result<[u64; 4], Stop> {
        Err(Stop::NoLogOperations)
    }
    /// Hands the block of a log register over to the log; errors as for [`Bus::log_load`].
    fn log_flush(&mut self, _register: &LogRegister) -> Result<(), Stop> {
        Err(Stop::NoLogOperations)
    }
    /// Whether there are checked accesses. Where there are none, none of the four methods below is called.
    fn has_checks(&self) -> bool {
        false
    }
    /// Decides the outcome of an access that is to be checked. The registers name the filters: nine lines in one page.
    ///
    /// # Errors
    /// A refused access to the filters, or [`Stop::NoCheckedAccesses`].
    fn check(&mut self, _registers: &CheckRegisters, _access: &CheckedAccess) -> Result<CheckVerdict, Stop> {
        Err(Stop::NoCheckedAccesses)
    }
    /// Changes the filters of the process; the answer is for the destination register, if the operation has one. Registers
    /// and errors as for [`Bus::check`].
    fn update_filters(
        &mut self,
        _registers: &CheckRegisters,
        _operation: FilterOperation,
        _object: u64,
    ) -> Result<u64, Stop> {
        Err(Stop::NoCheckedAccesses)
    }
    /// A store of a checked access or a persistent store. It may be plain. Otherwise as [`Bus::store`].
    fn store_as(&mut self, addr: u64, bytes: u8, value: u64, _kind: StoreKind) -> Result<(), AccessFault> {
        self.store(addr, bytes, value)
    }
    /// An operation of hardware transactions: the value for its destination register, if it has one. A begin is answered
    /// by [`crate::HTM_STARTED`], or by the status of an abort; 0 says that no retry helps.
    ///
    /// # Errors
    /// [`Stop::NoHardwareTransactions`] where there are none, and [`Stop::NoOpenTransaction`] for an end outside of one.
    fn hardware_transaction(&mut self, _operation: HtmOperation) -> Result<u64, Stop> {
        Err(Stop::NoHardwareTransactions)
    }
    /// Reads a counter.
    fn counter(&mut self, counter: Counter) -> u64;
    /// A marker of the program with the value of its rs1.
    fn marker(&mut self, marker: Marker, argument: u64);
}
