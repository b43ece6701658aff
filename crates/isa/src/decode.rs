//! From encoding to [`Inst`]: picks the extension by major opcode; the extensions' files do the rest.

use crate::fields::Fields;
use crate::inst::Inst;
use crate::op::Op;
use crate::stop::Illegal;
use crate::{
    a, c, checked, d, f, htm, log, m, rv64i, zacas, zba, zbb, zbs, zfhmin, zicbom, zicboz, zicond, zicsr, zifencei,
};

/// Decodes one instruction. A 16-bit encoding is in the low half of `bits`; what is above it does not matter.
///
/// # Errors
///
/// [`Illegal`] for encodings outside of the extensions of this crate, for reserved ones, and for control and status
/// registers that this machine does not have.
pub fn decode(bits: u32) -> Result<Inst, Illegal> {
    if bits & 3 != 3 {
        return c::decode(bits as u16).ok_or(Illegal);
    }
    let fields = Fields(bits);
    match bits >> 2 & 31 {
        0b00000 => rv64i::decode_load(fields),
        0b00001 => match fields.funct3() {
            1 => Some(zfhmin::decode_load(fields)),
            2 => Some(f::decode_load(fields)),
            3 => Some(d::decode_load(fields)),
            _ => None,
        },
        0b00010 => checked::decode(fields),
        0b00011 => match fields.funct3() {
            0 => Some(rv64i::decode_fence(fields)),
            1 => Some(zifencei::decode(fields)),
            2 => zicbom::decode(fields).or_else(|| zicboz::decode(fields)),
            _ => None,
        },
        0b00100 => {
            rv64i::decode_op_imm(fields).or_else(|| zbb::decode_op_imm(fields)).or_else(|| zbs::decode_op_imm(fields))
        }
        0b00101 => Some(fields.inst(Op::Auipc, fields.imm_u())),
        0b00110 => rv64i::decode_op_imm_32(fields)
            .or_else(|| zba::decode_op_imm_32(fields))
            .or_else(|| zbb::decode_op_imm_32(fields)),
        0b01000 => rv64i::decode_store(fields),
        0b01001 => match fields.funct3() {
            1 => Some(zfhmin::decode_store(fields)),
            2 => Some(f::decode_store(fields)),
            3 => Some(d::decode_store(fields)),
            _ => None,
        },
        0b01010 => log::decode(fields).or_else(|| htm::decode(fields)),
        0b01011 => a::decode(fields).or_else(|| zacas::decode(fields)),
        0b01100 if fields.funct7() == 1 => Some(m::decode_op(fields)),
        0b01100 => rv64i::decode_op(fields)
            .or_else(|| zba::decode_op(fields))
            .or_else(|| zbb::decode_op(fields))
            .or_else(|| zbs::decode_op(fields))
            .or_else(|| zicond::decode_op(fields)),
        0b01101 => Some(fields.inst(Op::Lui, fields.imm_u())),
        0b01110 if fields.funct7() == 1 => m::decode_op_32(fields),
        0b01110 => {
            rv64i::decode_op_32(fields).or_else(|| zba::decode_op_32(fields)).or_else(|| zbb::decode_op_32(fields))
        }
        0b10000..=0b10011 => match bits >> 25 & 3 {
            0 => f::decode_fused(fields),
            1 => d::decode_fused(fields),
            _ => None,
        },
        0b10100 => match bits >> 25 & 3 {
            0 => f::decode_op_fp(fields).or_else(|| zfhmin::decode_op_fp(fields)),
            1 => d::decode_op_fp(fields).or_else(|| zfhmin::decode_op_fp(fields)),
            2 => zfhmin::decode_op_fp(fields),
            _ => None,
        },
        0b11000 => rv64i::decode_branch(fields),
        0b11001 if fields.funct3() == 0 => Some(fields.inst(Op::Jalr, fields.imm_i())),
        0b11011 => Some(fields.inst(Op::Jal, fields.imm_j())),
        0b11100 if fields.funct3() == 0 => rv64i::decode_environment(fields),
        0b11100 => zicsr::decode(fields),
        _ => None,
    }
    .ok_or(Illegal)
}

/// The name of an encoding, for messages about it: its mnemonic and operands, or the space it belongs to.
pub fn disassemble(bits: u32) -> String {
    if let Ok(inst) = decode(bits) {
        return inst.to_string();
    }
    if bits & 3 != 3 {
        return format!("reserved 16-bit encoding {:#06x}", bits as u16);
    }
    let space = match bits & 0x7f {
        crate::encodings::CUSTOM_0 => "custom-0 encoding",
        crate::encodings::CUSTOM_1 => "custom-1 encoding",
        0x5b | 0x7b => "custom encoding",
        0x57 => "vector encoding",
        0x07 | 0x27 => "vector or half-precision memory encoding",
        0x43 | 0x47 | 0x4b | 0x4f | 0x53 => "floating-point encoding",
        0x73 => "system encoding or unknown control and status register",
        0x0f => "fence or cache-block encoding",
        _ => "encoding",
    };
    format!("unsupported {space} {bits:#010x}")
}
