//! Execution: one match over all operations. Operations of more than one line are in the file of their
//! extension.

use crate::bus::{AmoOp, Bus, CacheBlockOp};
use crate::encodings::Marker;
use crate::float::{self, Comparison, FusedSigns, Integer};
use crate::hart::{Flow, Hart};
use crate::inst::Inst;
use crate::log_register::{LOG_BLOCK_BYTES, LogRegister};
use crate::op::Op;
use crate::soft_float::{self, Arithmetic, F32, F64};
use crate::stop::Stop;
use crate::{a, checked, htm, m, zba, zbb, zbs, zicond, zicsr};

const FMADD: FusedSigns = FusedSigns { negate_product: false, negate_addend: false };
const FMSUB: FusedSigns = FusedSigns { negate_product: false, negate_addend: true };
const FNMSUB: FusedSigns = FusedSigns { negate_product: true, negate_addend: false };
const FNMADD: FusedSigns = FusedSigns { negate_product: true, negate_addend: true };

/// Sign-extends a 32-bit result.
#[inline(always)]
fn word(value: u32) -> u64 {
    value as i32 as u64
}

/// Executes one instruction that [`crate::decode`] made of the bytes at `hart.pc`.
///
/// It never writes `hart.pc`: after [`Flow::Next`], [`Flow::Ecall`] and [`Flow::Ebreak`] the caller adds `inst.len`,
/// after [`Flow::Jump`] it sets the target. ECALL and EBREAK do nothing else.
///
/// # Errors
///
/// [`Stop::AccessFault`] if the bus refuses an access or an atomic address is misaligned; [`Stop::Illegal`] for a dynamic
/// rounding mode while `frm` holds a reserved value; [`Stop::NoLogOperations`] if the bus knows no log, and
/// [`Stop::NoCheckedAccesses`] if it knows no checks; [`Stop::NoHardwareTransactions`] if it knows none; [`Stop::NoFilters`] and [`Stop::NoHandlers`] if the check registers lack
/// what a checked access needs. The hart is then unchanged.
#[inline(always)]
pub fn execute<B: Bus>(hart: &mut Hart, inst: Inst, bus: &mut B) -> Result<Flow, Stop> {
    let x = |register: u8| (register & 31) as usize;
    let rs1 = hart.x[x(inst.rs1)];
    let rs2 = hart.x[x(inst.rs2)];
    let imm = inst.imm as i64 as u64;
    let addr = rs1.wrapping_add(imm);

    macro_rules! rd {
        ($value:expr) => {{
            let value = $value;
            hart.x[x(inst.rd)] = value;
            hart.x[0] = 0;
        }};
    }
    macro_rules! branch {
        ($taken:expr) => {
            if $taken {
                return Ok(Flow::Jump(hart.pc.wrapping_add(imm)));
            }
        };
    }
    match inst.op {
        Op::Lui => rd!(imm),
        Op::Auipc => rd!(hart.pc.wrapping_add(imm)),
        Op::Jal => {
            rd!(hart.pc.wrapping_add(u64::from(inst.len)));
            return Ok(Flow::Jump(hart.pc.wrapping_add(imm)));
        }
        Op::Jalr => {
            rd!(hart.pc.wrapping_add(u64::from(inst.len)));
            return Ok(Flow::Jump(addr & !1));
        }
        Op::Beq => branch!(rs1 == rs2),
        Op::Bne => branch!(rs1 != rs2),
        Op::Blt => branch!((rs1 as i64) < rs2 as i64),
        Op::Bge => branch!(rs1 as i64 >= rs2 as i64),
        Op::Bltu => branch!(rs1 < rs2),
        Op::Bgeu => branch!(rs1 >= rs2),
        Op::Lb => rd!(bus.load(addr, 1)? as i8 as u64),
        Op::Lh => rd!(bus.load(addr, 2)? as i16 as u64),
        Op::Lw => rd!(bus.load(addr, 4)? as i32 as u64),
        Op::Ld => rd!(bus.load(addr, 8)?),
        Op::Lbu => rd!(bus.load(addr, 1)?),
        Op::Lhu => rd!(bus.load(addr, 2)?),
        Op::Lwu => rd!(bus.load(addr, 4)?),
        Op::Sb => bus.store(addr, 1, rs2)?,
        Op::Sh => bus.store(addr, 2, rs2)?,
        Op::Sw => bus.store(addr, 4, rs2)?,
        Op::Sd => bus.store(addr, 8, rs2)?,
        Op::Addi => rd!(addr),
        Op::Slti => rd!(u64::from((rs1 as i64) < imm as i64)),
        Op::Sltiu => rd!(u64::from(rs1 < imm)),
        Op::Xori => rd!(rs1 ^ imm),
        Op::Ori => rd!(rs1 | imm),
        Op::Andi => rd!(rs1 & imm),
        Op::Slli => rd!(rs1 << (imm & 63)),
        Op::Srli => rd!(rs1 >> (imm & 63)),
        Op::Srai => rd!((rs1 as i64 >> (imm & 63)) as u64),
        Op::Addiw => rd!(word(addr as u32)),
        Op::Slliw => rd!(word((rs1 as u32) << (imm & 31))),
        Op::Srliw => rd!(word(rs1 as u32 >> (imm & 31))),
        Op::Sraiw => rd!(word((rs1 as i32 >> (imm & 31)) as u32)),
        Op::Add => rd!(rs1.wrapping_add(rs2)),
        Op::Sub => rd!(rs1.wrapping_sub(rs2)),
        Op::Sll => rd!(rs1 << (rs2 & 63)),
        Op::Slt => rd!(u64::from((rs1 as i64) < rs2 as i64)),
        Op::Sltu => rd!(u64::from(rs1 < rs2)),
        Op::Xor => rd!(rs1 ^ rs2),
        Op::Srl => rd!(rs1 >> (rs2 & 63)),
        Op::Sra => rd!((rs1 as i64 >> (rs2 & 63)) as u64),
        Op::Or => rd!(rs1 | rs2),
        Op::And => rd!(rs1 & rs2),
        Op::Addw => rd!(word((rs1 as u32).wrapping_add(rs2 as u32))),
        Op::Subw => rd!(word((rs1 as u32).wrapping_sub(rs2 as u32))),
        Op::Sllw => rd!(word((rs1 as u32) << (rs2 & 31))),
        Op::Srlw => rd!(word(rs1 as u32 >> (rs2 & 31))),
        Op::Sraw => rd!(word((rs1 as i32 >> (rs2 & 31)) as u32)),
        Op::Ecall => return Ok(Flow::Ecall),
        Op::Ebreak => return Ok(Flow::Ebreak),

        Op::Mul => rd!(rs1.wrapping_mul(rs2)),
        Op::Mulh => rd!(m::mulh(rs1, rs2)),
        Op::Mulhsu => rd!(m::mulhsu(rs1, rs2)),
        Op::Mulhu => rd!(m::mulhu(rs1, rs2)),
        Op::Mulw => rd!(word((rs1 as u32).wrapping_mul(rs2 as u32))),
        Op::Div => rd!(m::div(rs1, rs2)),
        Op::Divu => rd!(m::divu(rs1, rs2)),
        Op::Rem => rd!(m::rem(rs1, rs2)),
        Op::Remu => rd!(m::remu(rs1, rs2)),
        Op::Divw => rd!(word(m::divw(rs1 as u32, rs2 as u32))),
        Op::Divuw => rd!(word(m::divuw(rs1 as u32, rs2 as u32))),
        Op::Remw => rd!(word(m::remw(rs1 as u32, rs2 as u32))),
        Op::Remuw => rd!(word(m::remuw(rs1 as u32, rs2 as u32))),

        Op::Flw => hart.f[x(inst.rd)] = soft_float::box_single(bus.load(addr, 4)? as u32),
        Op::Fld => hart.f[x(inst.rd)] = bus.load(addr, 8)?,
        Op::Fsw => bus.store(addr, 4, hart.f[x(inst.rs2)])?,
        Op::Fsd => bus.store(addr, 8, hart.f[x(inst.rs2)])?,
        Op::CheckLoad
        | Op::CheckStoreH
        | Op::CheckStoreBoth
        | Op::PersistStore
        | Op::InsertFwd
        | Op::InsertTrans
        | Op::ClearFwd
        | Op::ClearTrans
        | Op::ChangeActive
        | Op::CheckRead
        | Op::CheckWrite
        | Op::CheckReturn => {
            let Inst { op, rd, rs1, rs2, rs3, rm, len, imm } = inst;
            return execute_checked(hart, op, Numbers { rd, rs1, rs2, rs3, rm, len }, imm, bus);
        }
        _ => {
            let Inst { op, rd, rs1, rs2, rs3, rm, len, imm } = inst;
            execute_rest(hart, op, Numbers { rd, rs1, rs2, rs3, rm, len }, imm, bus)?;
        }
    }
    Ok(Flow::Next)
}

/// The small fields of an [`Inst`]. The compiler passes these in one register, but a whole `Inst` in memory, and so would
/// have every instruction written there.
#[derive(Clone, Copy)]
struct Numbers {
    rd: u8,
    rs1: u8,
    rs2: u8,
    rs3: u8,
    rm: u8,
    len: u8,
}

/// The instructions of custom-0, which may lead elsewhere than to the next instruction, apart from [`execute_rest`].
#[inline(never)]
fn execute_checked<B: Bus>(hart: &mut Hart, op: Op, numbers: Numbers, imm: i32, bus: &mut B) -> Result<Flow, Stop> {
    let Numbers { rd, rs1, rs2, rs3, rm, len } = numbers;
    checked::execute(hart, Inst { op, rd, rs1, rs2, rs3, rm, len, imm }, bus)
}

/// The operations that are rare or long, so that the rest of [`execute`] is small enough to be inlined in the loop of
/// its caller. None leads elsewhere than to the next instruction.
#[inline(never)]
fn execute_rest<B: Bus>(hart: &mut Hart, op: Op, numbers: Numbers, imm: i32, bus: &mut B) -> Result<(), Stop> {
    let Numbers { rd, rs1, rs2, rs3, rm, len } = numbers;
    let inst = Inst { op, rd, rs1, rs2, rs3, rm, len, imm };
    let x = |register: u8| (register & 31) as usize;
    let (rs1, rs2) = (hart.x[x(inst.rs1)], hart.x[x(inst.rs2)]);

    macro_rules! rd {
        ($value:expr) => {{
            let value = $value;
            hart.x[x(inst.rd)] = value;
            hart.x[0] = 0;
        }};
    }
    macro_rules! amo {
        ($op:ident, $bytes:literal) => {
            rd!(a::amo(hart, inst, $bytes, AmoOp::$op, bus)?)
        };
    }

    match inst.op {
        Op::Fence => bus.fence(inst.fence_set()),
        Op::Pause => {}
        Op::Marker => {
            if let Some(marker) = Marker::from_imm(inst.imm) {
                bus.marker(marker, rs1);
            }
        }
        Op::FenceI => bus.fence_i(),
        Op::CboInval => bus.cache_block(CacheBlockOp::Inval, rs1)?,
        Op::CboClean => bus.cache_block(CacheBlockOp::Clean, rs1)?,
        Op::CboFlush => bus.cache_block(CacheBlockOp::Flush, rs1)?,
        Op::Sh1add | Op::Sh2add | Op::Sh3add | Op::AddUw | Op::Sh1addUw | Op::Sh2addUw | Op::Sh3addUw | Op::SlliUw => {
            rd!(zba::value(inst.op, rs1, rs2, inst.imm))
        }
        Op::Andn
        | Op::Orn
        | Op::Xnor
        | Op::Min
        | Op::Minu
        | Op::Max
        | Op::Maxu
        | Op::Rol
        | Op::Ror
        | Op::Rolw
        | Op::Rorw
        | Op::Rori
        | Op::Roriw
        | Op::Clz
        | Op::Ctz
        | Op::Cpop
        | Op::Clzw
        | Op::Ctzw
        | Op::Cpopw
        | Op::SextB
        | Op::SextH
        | Op::ZextH
        | Op::OrcB
        | Op::Rev8 => rd!(zbb::value(inst.op, rs1, rs2, inst.imm)),
        Op::Bclr | Op::Bext | Op::Binv | Op::Bset | Op::Bclri | Op::Bexti | Op::Binvi | Op::Bseti => {
            rd!(zbs::value(inst.op, rs1, rs2, inst.imm))
        }
        Op::CzeroEqz | Op::CzeroNez => rd!(zicond::value(inst.op, rs1, rs2)),
        Op::CboZero => bus.zero_block(rs1)?,
        Op::LogLoad => {
            let addr = rs1 & !(LOG_BLOCK_BYTES - 1);
            let old = bus.log_load(addr)?;
            hart.log.get_or_insert_default()[usize::from(inst.rd)] = LogRegister { addr, old };
        }
        Op::LogFlush => {
            let register = hart.log.as_ref().map_or_else(LogRegister::default, |log| log[usize::from(inst.rd)]);
            bus.log_flush(&register)?;
        }
        Op::HtmBegin | Op::HtmEnd | Op::HtmAbort | Op::HtmTest => htm::execute(hart, inst, bus)?,
        Op::Csrrw | Op::Csrrs | Op::Csrrc => rd!(zicsr::access(hart, inst, rs1, bus)),
        Op::Csrrwi | Op::Csrrsi | Op::Csrrci => rd!(zicsr::access(hart, inst, u64::from(inst.rs1), bus)),

        Op::LrW => rd!(a::load_reserved(hart, inst, 4, bus)?),
        Op::LrD => rd!(a::load_reserved(hart, inst, 8, bus)?),
        Op::ScW => rd!(a::store_conditional(hart, inst, 4, bus)?),
        Op::ScD => rd!(a::store_conditional(hart, inst, 8, bus)?),
        Op::AmoswapW => amo!(Swap, 4),
        Op::AmoswapD => amo!(Swap, 8),
        Op::AmoaddW => amo!(Add, 4),
        Op::AmoaddD => amo!(Add, 8),
        Op::AmoxorW => amo!(Xor, 4),
        Op::AmoxorD => amo!(Xor, 8),
        Op::AmoandW => amo!(And, 4),
        Op::AmoandD => amo!(And, 8),
        Op::AmoorW => amo!(Or, 4),
        Op::AmoorD => amo!(Or, 8),
        Op::AmominW => amo!(Min, 4),
        Op::AmominD => amo!(Min, 8),
        Op::AmomaxW => amo!(Max, 4),
        Op::AmomaxD => amo!(Max, 8),
        Op::AmominuW => amo!(Minu, 4),
        Op::AmominuD => amo!(Minu, 8),
        Op::AmomaxuW => amo!(Maxu, 4),
        Op::AmomaxuD => amo!(Maxu, 8),
        Op::AmocasW => rd!(a::amo(hart, inst, 4, AmoOp::CompareAndSwap { expected: hart.x[x(inst.rs3)] }, bus)?),
        Op::AmocasD => rd!(a::amo(hart, inst, 8, AmoOp::CompareAndSwap { expected: hart.x[x(inst.rs3)] }, bus)?),

        Op::FmaddS => float::fused::<F32>(hart, inst, FMADD)?,
        Op::FmaddD => float::fused::<F64>(hart, inst, FMADD)?,
        Op::FmsubS => float::fused::<F32>(hart, inst, FMSUB)?,
        Op::FmsubD => float::fused::<F64>(hart, inst, FMSUB)?,
        Op::FnmsubS => float::fused::<F32>(hart, inst, FNMSUB)?,
        Op::FnmsubD => float::fused::<F64>(hart, inst, FNMSUB)?,
        Op::FnmaddS => float::fused::<F32>(hart, inst, FNMADD)?,
        Op::FnmaddD => float::fused::<F64>(hart, inst, FNMADD)?,
        Op::FaddS => float::arithmetic::<F32>(hart, inst, Arithmetic::Add)?,
        Op::FaddD => float::arithmetic::<F64>(hart, inst, Arithmetic::Add)?,
        Op::FsubS => float::arithmetic::<F32>(hart, inst, Arithmetic::Sub)?,
        Op::FsubD => float::arithmetic::<F64>(hart, inst, Arithmetic::Sub)?,
        Op::FmulS => float::arithmetic::<F32>(hart, inst, Arithmetic::Mul)?,
        Op::FmulD => float::arithmetic::<F64>(hart, inst, Arithmetic::Mul)?,
        Op::FdivS => float::arithmetic::<F32>(hart, inst, Arithmetic::Div)?,
        Op::FdivD => float::arithmetic::<F64>(hart, inst, Arithmetic::Div)?,
        Op::FsqrtS => float::square_root::<F32>(hart, inst)?,
        Op::FsqrtD => float::square_root::<F64>(hart, inst)?,
        Op::FsgnjS => float::sign_inject::<F32>(hart, inst, |_, b| b),
        Op::FsgnjD => float::sign_inject::<F64>(hart, inst, |_, b| b),
        Op::FsgnjnS => float::sign_inject::<F32>(hart, inst, |_, b| !b),
        Op::FsgnjnD => float::sign_inject::<F64>(hart, inst, |_, b| !b),
        Op::FsgnjxS => float::sign_inject::<F32>(hart, inst, |a, b| a ^ b),
        Op::FsgnjxD => float::sign_inject::<F64>(hart, inst, |a, b| a ^ b),
        Op::FminS => float::extremum::<F32>(hart, inst, false),
        Op::FminD => float::extremum::<F64>(hart, inst, false),
        Op::FmaxS => float::extremum::<F32>(hart, inst, true),
        Op::FmaxD => float::extremum::<F64>(hart, inst, true),
        Op::FeqS => float::compare::<F32>(hart, inst, Comparison::Equal),
        Op::FeqD => float::compare::<F64>(hart, inst, Comparison::Equal),
        Op::FltS => float::compare::<F32>(hart, inst, Comparison::Less),
        Op::FltD => float::compare::<F64>(hart, inst, Comparison::Less),
        Op::FleS => float::compare::<F32>(hart, inst, Comparison::LessOrEqual),
        Op::FleD => float::compare::<F64>(hart, inst, Comparison::LessOrEqual),
        Op::FclassS => float::classify::<F32>(hart, inst),
        Op::FclassD => float::classify::<F64>(hart, inst),
        Op::FcvtWS => float::to_integer::<F32>(hart, inst, Integer::W)?,
        Op::FcvtWD => float::to_integer::<F64>(hart, inst, Integer::W)?,
        Op::FcvtWuS => float::to_integer::<F32>(hart, inst, Integer::Wu)?,
        Op::FcvtWuD => float::to_integer::<F64>(hart, inst, Integer::Wu)?,
        Op::FcvtLS => float::to_integer::<F32>(hart, inst, Integer::L)?,
        Op::FcvtLD => float::to_integer::<F64>(hart, inst, Integer::L)?,
        Op::FcvtLuS => float::to_integer::<F32>(hart, inst, Integer::Lu)?,
        Op::FcvtLuD => float::to_integer::<F64>(hart, inst, Integer::Lu)?,
        Op::FcvtSW => float::from_integer::<F32>(hart, inst, Integer::W)?,
        Op::FcvtDW => float::from_integer::<F64>(hart, inst, Integer::W)?,
        Op::FcvtSWu => float::from_integer::<F32>(hart, inst, Integer::Wu)?,
        Op::FcvtDWu => float::from_integer::<F64>(hart, inst, Integer::Wu)?,
        Op::FcvtSL => float::from_integer::<F32>(hart, inst, Integer::L)?,
        Op::FcvtDL => float::from_integer::<F64>(hart, inst, Integer::L)?,
        Op::FcvtSLu => float::from_integer::<F32>(hart, inst, Integer::Lu)?,
        Op::FcvtDLu => float::from_integer::<F64>(hart, inst, Integer::Lu)?,
        Op::FcvtSD => float::narrow(hart, inst)?,
        Op::Flh => hart.f[x(inst.rd)] = soft_float::box_half(bus.load(rs1.wrapping_add(inst.imm as u64), 2)? as u16),
        Op::Fsh => bus.store(rs1.wrapping_add(inst.imm as u64), 2, hart.f[x(inst.rs2)])?,
        Op::FcvtSH => float::widen_half::<F32>(hart, inst)?,
        Op::FcvtDH => float::widen_half::<F64>(hart, inst)?,
        Op::FcvtHS => float::narrow_to_half::<F32>(hart, inst)?,
        Op::FcvtHD => float::narrow_to_half::<F64>(hart, inst)?,
        Op::FmvXH => rd!(hart.f[x(inst.rs1)] as i16 as u64),
        Op::FmvHX => hart.f[x(inst.rd)] = soft_float::box_half(rs1 as u16),
        Op::FcvtDS => float::widen(hart, inst)?,
        Op::FmvXW => rd!(word(hart.f[x(inst.rs1)] as u32)),
        Op::FmvXD => rd!(hart.f[x(inst.rs1)]),
        Op::FmvWX => hart.f[x(inst.rd)] = soft_float::box_single(rs1 as u32),
        Op::FmvDX => hart.f[x(inst.rd)] = rs1,
        _ => unreachable!("executed above"),
    }
    Ok(())
}
