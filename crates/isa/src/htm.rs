//! The instructions of hardware transactions in custom-1, after Intel's RTM (Software Developer's Manual, volume 1, chapter
//! 16). What a transaction reads and writes, and why it aborts, is decided by the machine, on the other side of the bus.

use crate::bus::{Bus, HtmOperation};
use crate::encodings::{HTM_ABORT, HTM_BEGIN, HTM_END, HTM_TEST};
use crate::fields::Fields;
use crate::hart::Hart;
use crate::inst::Inst;
use crate::op::Op;
use crate::stop::Stop;

/// The destination register of the start of a transaction after it has begun. No status is this value.
pub const HTM_STARTED: u64 = u64::MAX;

/// The largest value of the upper bits of an abort code: three of the five bits of their field.
const CODE_HIGH_MAX: u8 = 7;

pub(crate) fn decode(fields: Fields) -> Option<Inst> {
    let (rd, rs1, rs2) = (fields.rd(), fields.rs1(), fields.rs2());
    match (fields.funct3(), fields.funct7()) {
        HTM_BEGIN if (rs1, rs2) == (0, 0) => Some(fields.inst(Op::HtmBegin, 0)),
        HTM_END if (rd, rs1, rs2) == (0, 0, 0) => Some(fields.inst(Op::HtmEnd, 0)),
        HTM_ABORT if rd == 0 && rs2 <= CODE_HIGH_MAX => {
            Some(fields.inst(Op::HtmAbort, i32::from(rs2) << 5 | i32::from(rs1)))
        }
        HTM_TEST if (rs1, rs2) == (0, 0) => Some(fields.inst(Op::HtmTest, 0)),
        _ => None,
    }
}

/// Executes one of these: what it asks of the machine, and the value that it leaves in a register.
pub(crate) fn execute<B: Bus>(hart: &mut Hart, inst: Inst, bus: &mut B) -> Result<(), Stop> {
    let operation = match inst.op {
        Op::HtmBegin => HtmOperation::Begin { rd: inst.rd },
        Op::HtmEnd => HtmOperation::End,
        Op::HtmAbort => HtmOperation::Abort { code: inst.imm as u8 },
        _ => HtmOperation::Test,
    };
    let value = bus.hardware_transaction(operation)?;
    if matches!(inst.op, Op::HtmBegin | Op::HtmTest) {
        hart.x[usize::from(inst.rd & 31)] = value;
        hart.x[0] = 0;
    }
    Ok(())
}
