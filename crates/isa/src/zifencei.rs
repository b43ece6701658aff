//! Zifencei: FENCE.I. Its other fields are reserved for finer fences and ignored, as the manual asks.

use crate::fields::Fields;
use crate::inst::Inst;
use crate::op::Op;

pub(crate) fn decode(fields: Fields) -> Inst {
    fields.inst(Op::FenceI, 0)
}
