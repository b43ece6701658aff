//! Zicsr and Zicntr: the control and status registers a user program sees, which are `fflags`, `frm` and `fcsr` of the
//! F extension and the read-only counters `cycle`, `time` and `instret`.

use crate::bus::{Bus, Counter};
use crate::fields::Fields;
use crate::hart::Hart;
use crate::inst::Inst;
use crate::op::Op;

const FFLAGS: i32 = 0x001;
const FRM: i32 = 0x002;
const FCSR: i32 = 0x003;
const CYCLE: i32 = 0xc00;
const TIME: i32 = 0xc01;
const INSTRET: i32 = 0xc02;

pub(crate) fn decode(fields: Fields) -> Option<Inst> {
    let op = match fields.funct3() {
        1 => Op::Csrrw,
        2 => Op::Csrrs,
        3 => Op::Csrrc,
        5 => Op::Csrrwi,
        6 => Op::Csrrsi,
        7 => Op::Csrrci,
        _ => return None,
    };
    let csr = fields.imm_i() & 0xfff;
    // Setting or clearing no bits by naming x0 or the immediate 0 is not a write.
    let writes = matches!(op, Op::Csrrw | Op::Csrrwi) || fields.rs1() != 0;
    let allowed = match csr {
        FFLAGS | FRM | FCSR => true,
        CYCLE | TIME | INSTRET => !writes,
        _ => false,
    };
    allowed.then(|| fields.inst(op, csr))
}

/// Executes a decoded access and returns the old value for rd. `operand` is the value of rs1 or the immediate.
pub(crate) fn access<B: Bus>(hart: &mut Hart, inst: Inst, operand: u64, bus: &mut B) -> u64 {
    let old = match inst.imm {
        FFLAGS => u64::from(hart.fcsr & 0x1f),
        FRM => u64::from(hart.fcsr >> 5 & 7),
        FCSR => u64::from(hart.fcsr & 0xff),
        CYCLE => return bus.counter(Counter::Cycle),
        TIME => return bus.counter(Counter::Time),
        _ => return bus.counter(Counter::Instret),
    };
    let new = match inst.op {
        Op::Csrrw | Op::Csrrwi => operand,
        Op::Csrrs | Op::Csrrsi => old | operand,
        _ => old & !operand,
    } as u32;
    hart.fcsr = match inst.imm {
        FFLAGS => hart.fcsr & 0xe0 | new & 0x1f,
        FRM => hart.fcsr & 0x1f | (new & 7) << 5,
        _ => new & 0xff,
    };
    old
}
