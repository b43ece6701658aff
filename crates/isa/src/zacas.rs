//! Zacas: atomic compare and swap of 4 and 8 bytes. `amocas.q`, of 16 bytes, is not there.

use crate::fields::Fields;
use crate::inst::Inst;
use crate::op::Op;

pub(crate) fn decode(fields: Fields) -> Option<Inst> {
    let op = match (fields.funct7() >> 2, fields.funct3()) {
        (0b00101, 2) => Op::AmocasW,
        (0b00101, 3) => Op::AmocasD,
        _ => return None,
    };
    let aq_rl = (fields.funct7() & 3) as u8;
    // rd is a source too: it holds what memory has to be equal to.
    Some(Inst { rs3: fields.rd(), rm: aq_rl, ..fields.inst(op, 0) })
}
