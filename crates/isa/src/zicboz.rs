//! Zicboz: `cbo.zero`, which writes zeros to the block that holds the address in rs1.

use crate::fields::Fields;
use crate::inst::Inst;
use crate::op::Op;

pub(crate) fn decode(fields: Fields) -> Option<Inst> {
    let is_zero = (fields.rd(), fields.imm_i()) == (0, 4);
    is_zero.then(|| fields.inst(Op::CboZero, 0))
}
