//! Just enough encoding to build test programs.

pub const RA: u8 = 1;
pub const SP: u8 = 2;
pub const A0: u8 = 10;
pub const A1: u8 = 11;
pub const A2: u8 = 12;
pub const A3: u8 = 13;
pub const A7: u8 = 17;

pub const ECALL: u32 = 0x73;
pub const FENCE_I: u32 = 0x100f;

pub fn r_type(opcode: u32, funct3: u32, funct7: u32, rd: u8, rs1: u8, rs2: u8) -> u32 {
    opcode | u32::from(rd) << 7 | funct3 << 12 | u32::from(rs1) << 15 | u32::from(rs2) << 20 | funct7 << 25
}

pub fn i_type(opcode: u32, funct3: u32, rd: u8, rs1: u8, imm: i32) -> u32 {
    assert!((-2048..4096).contains(&imm), "immediate {imm} does not fit");
    opcode | u32::from(rd) << 7 | funct3 << 12 | u32::from(rs1) << 15 | (imm as u32 & 0xfff) << 20
}

pub fn s_type(opcode: u32, funct3: u32, rs1: u8, rs2: u8, imm: i32) -> u32 {
    assert!((-2048..2048).contains(&imm), "offset {imm} does not fit");
    let imm = imm as u32;
    r_type(opcode, funct3, imm >> 5 & 0x7f, (imm & 31) as u8, rs1, rs2)
}

pub fn b_type(funct3: u32, rs1: u8, rs2: u8, offset: i32) -> u32 {
    assert!((-4096..4096).contains(&offset) && offset & 1 == 0);
    let o = offset as u32;
    let rd = (o >> 11 & 1 | (o >> 1 & 0xf) << 1) as u8;
    r_type(0x63, funct3, (o >> 12 & 1) << 6 | o >> 5 & 0x3f, rd, rs1, rs2)
}

pub fn jal(rd: u8, offset: i32) -> u32 {
    assert!((-(1 << 20)..1 << 20).contains(&offset) && offset & 1 == 0);
    let o = offset as u32;
    0x6f | u32::from(rd) << 7 | o & 0xff000 | (o >> 11 & 1) << 20 | (o >> 1 & 0x3ff) << 21 | (o >> 20 & 1) << 31
}

pub fn jalr(rd: u8, rs1: u8, offset: i32) -> u32 {
    i_type(0x67, 0, rd, rs1, offset)
}

pub fn lui(rd: u8, value: u32) -> u32 {
    assert!(value.is_multiple_of(4096));
    0x37 | u32::from(rd) << 7 | value
}

pub fn auipc(rd: u8, value: u32) -> u32 {
    0x17 | u32::from(rd) << 7 | value
}

pub fn addi(rd: u8, rs1: u8, imm: i32) -> u32 {
    i_type(0x13, 0, rd, rs1, imm)
}

pub fn ld(rd: u8, base: u8, offset: i32) -> u32 {
    i_type(0x03, 3, rd, base, offset)
}

pub fn sd(value: u8, base: u8, offset: i32) -> u32 {
    s_type(0x23, 3, base, value, offset)
}

pub fn fld(rd: u8, base: u8, offset: i32) -> u32 {
    i_type(0x07, 3, rd, base, offset)
}

pub fn fsd(value: u8, base: u8, offset: i32) -> u32 {
    s_type(0x27, 3, base, value, offset)
}

/// `csrrw` (1), `csrrs` (2), ... `csrrwi` (5) by funct3.
pub fn csr(funct3: u32, rd: u8, number: i32, rs1: u8) -> u32 {
    i_type(0x73, funct3, rd, rs1, number)
}

/// Two instructions that put any 32-bit value that is positive as i32 into `rd`.
pub fn li(rd: u8, value: u32) -> [u32; 2] {
    assert!(value < 0x7fff_f800);
    let high = (value + 0x800) & 0xffff_f000;
    [lui(rd, high), addi(rd, rd, value.wrapping_sub(high) as i32)]
}

/// A 16-bit jump or branch with another offset: `c.j`, `c.beqz`, `c.bnez`.
pub fn with_compressed_offset(bits: u16, offset: i32) -> u16 {
    let o = offset as u32;
    let bit = |from: u32, to: u32| (o >> from & 1) << to;
    if bits >> 13 == 0b101 {
        assert!((-2048..2048).contains(&offset));
        let fields = bit(11, 12) | bit(4, 11) | bit(9, 10) | bit(8, 9) | bit(10, 8) | bit(6, 7) | bit(7, 6);
        (0xa001 | fields | bit(3, 5) | bit(2, 4) | bit(1, 3) | bit(5, 2)) as u16
    } else {
        assert!((-256..256).contains(&offset));
        let fields = bit(8, 12) | bit(4, 11) | bit(3, 10) | bit(7, 6) | bit(6, 5) | bit(2, 4) | bit(1, 3) | bit(5, 2);
        bits & 0xe383 | fields as u16
    }
}
