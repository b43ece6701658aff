//! The log operations of custom-1: instructions of designs that save the old content of memory by instructions, as Proteus
//! does (Shin et al., MICRO 2017). What becomes of a block that is flushed is decided by the machine, on the other side of the bus.

use crate::encodings::{LOG_FLUSH, LOG_LOAD};
use crate::fields::Fields;
use crate::inst::Inst;
use crate::log_register::LOG_REGISTERS;
use crate::op::Op;

pub(crate) fn decode(fields: Fields) -> Option<Inst> {
    let is_register = usize::from(fields.rd()) < LOG_REGISTERS;
    match (fields.funct3(), fields.imm_i()) {
        (LOG_LOAD, 0) if is_register => Some(fields.inst(Op::LogLoad, 0)),
        (LOG_FLUSH, 0) if is_register && fields.rs1() == 0 => Some(fields.inst(Op::LogFlush, 0)),
        _ => None,
    }
}
