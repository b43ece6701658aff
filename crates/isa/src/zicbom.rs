//! Zicbom: cache-block management by the address in rs1.

use crate::fields::Fields;
use crate::inst::Inst;
use crate::op::Op;

pub(crate) fn decode(fields: Fields) -> Option<Inst> {
    let op = match (fields.rd(), fields.imm_i()) {
        (0, 0) => Op::CboInval,
        (0, 1) => Op::CboClean,
        (0, 2) => Op::CboFlush,
        _ => return None,
    };
    Some(fields.inst(op, 0))
}
