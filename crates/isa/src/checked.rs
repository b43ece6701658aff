//! The instructions of custom-0: accesses with checks, operations on the filters that checks look at, persistent stores,
//! and the registers and handlers that belong to them (P-INSPECT, MICRO 2020). What an access must not do, and what filters
//! hold, is decided by the design of the machine, on the other side of the bus.

use crate::bus::Bus;
use crate::encodings::{
    ACCESS_CLEAN, ACCESS_CLEAN_AND_FENCE, ACCESS_CONSTANT_OFFSET, ACCESS_ZERO_EXTEND, CHANGE_ACTIVE, CHECK_LOAD,
    CHECK_READ, CHECK_RETURN, CHECK_STORE_BOTH, CHECK_STORE_H, CHECK_WRITE, CLEAR_FWD, CLEAR_TRANS, INSERT_FWD,
    INSERT_TRANS, PERSIST_STORE,
};
use crate::fields::Fields;
use crate::hart::{Flow, Hart};
use crate::inst::Inst;
use crate::op::Op;
use crate::stop::Stop;
use durasim_types::{
    AccessKind, CheckRegisters, CheckVerdict, CheckedAccess, FILTER_LINES, FilterOperation, HANDLER_BYTES, LINE_BYTES,
    PAGE_BYTES, StoreKind,
};

/// Bits of funct7 that hold the binary logarithm of the width.
const WIDTH: u8 = 3;
/// The width of a doubleword.
const DOUBLE: u8 = 3;
/// The kinds of stores together are no kind.
const KINDS: u8 = ACCESS_CLEAN | ACCESS_CLEAN_AND_FENCE;

pub(crate) fn decode(fields: Fields) -> Option<Inst> {
    let (rd, rs1, rs2) = (fields.rd(), fields.rs1(), fields.rs2());
    let (funct3, funct7) = (fields.funct3(), fields.funct7() as u8);
    match (funct3, fields.funct7()) {
        (CHECK_LOAD, _) => decode_load(fields),
        (CHECK_STORE_H, _) => decode_store(fields, Op::CheckStoreH),
        (CHECK_STORE_BOTH, _) if funct7 & WIDTH == DOUBLE => decode_store(fields, Op::CheckStoreBoth),
        (PERSIST_STORE, _) => decode_store(fields, Op::PersistStore),
        INSERT_FWD if rs2 == 0 => Some(fields.inst(Op::InsertFwd, 0)),
        INSERT_TRANS if (rd, rs2) == (0, 0) => Some(fields.inst(Op::InsertTrans, 0)),
        CLEAR_FWD if (rd, rs1, rs2) == (0, 0, 0) => Some(fields.inst(Op::ClearFwd, 0)),
        CLEAR_TRANS if (rd, rs1, rs2) == (0, 0, 0) => Some(fields.inst(Op::ClearTrans, 0)),
        CHANGE_ACTIVE if (rd, rs1, rs2) == (0, 0, 0) => Some(fields.inst(Op::ChangeActive, 0)),
        (CHECK_READ, _) if (rs1, rs2) == (0, 0) => decode_register(fields, Op::CheckRead),
        (CHECK_WRITE, _) if (rd, rs2) == (0, 0) => decode_register(fields, Op::CheckWrite),
        CHECK_RETURN if (rd, rs1, rs2) == (0, 0, 0) => Some(fields.inst(Op::CheckReturn, 0)),
        _ => None,
    }
}

fn decode_load(fields: Fields) -> Option<Inst> {
    let funct7 = fields.funct7() as u8;
    let is_known = funct7 & !(WIDTH | ACCESS_ZERO_EXTEND | ACCESS_CONSTANT_OFFSET) == 0;
    let is_wide = funct7 & WIDTH == DOUBLE && funct7 & ACCESS_ZERO_EXTEND != 0;
    let (register, constant) = offset(funct7, fields.rs2());
    let inst = Inst { rs2: register, rs3: 0, rm: funct7, ..fields.inst(Op::CheckLoad, constant) };
    (is_known && !is_wide).then_some(inst)
}

fn decode_store(fields: Fields, op: Op) -> Option<Inst> {
    let funct7 = fields.funct7() as u8;
    let is_known = funct7 & !(WIDTH | KINDS | ACCESS_CONSTANT_OFFSET) == 0 && funct7 & KINDS != KINDS;
    let (register, constant) = offset(funct7, fields.rd());
    is_known.then_some(Inst { rd: 0, rs3: register, rm: funct7, ..fields.inst(op, constant) })
}

/// The register and the constant that the field of an offset stands for.
fn offset(funct7: u8, field: u8) -> (u8, i32) {
    if funct7 & ACCESS_CONSTANT_OFFSET == 0 { (field, 0) } else { (0, i32::from(field) << (funct7 & WIDTH)) }
}

fn decode_register(fields: Fields, op: Op) -> Option<Inst> {
    let number = fields.funct7();
    ((number as usize) < CheckRegisters::COUNT).then(|| fields.inst(op, number as i32))
}

impl Inst {
    /// The number of bytes that a checked access or persistent store moves.
    #[inline]
    pub fn checked_bytes(&self) -> u8 {
        1 << (self.rm & WIDTH)
    }

    /// The flavour of a checked or persistent store that goes to persistent memory.
    #[inline]
    pub fn store_kind(&self) -> StoreKind {
        match self.rm & KINDS {
            ACCESS_CLEAN => StoreKind::Clean,
            ACCESS_CLEAN_AND_FENCE => StoreKind::CleanAndFence,
            _ => StoreKind::Plain,
        }
    }

    /// The offset of a checked access or persistent store in bytes.
    #[inline]
    pub fn checked_offset(&self, hart: &Hart) -> u64 {
        let register = if self.op == Op::CheckLoad { self.rs2 } else { self.rs3 };
        // One of the two is 0.
        hart.x[usize::from(register & 31)].wrapping_add(self.imm as u64)
    }

    /// The fields of its encoding, as a handler finds them.
    fn access_fields(&self) -> u64 {
        let (funct3, rd) = match self.op {
            Op::CheckLoad => (CHECK_LOAD, self.rd),
            Op::CheckStoreH => (CHECK_STORE_H, self.offset_field()),
            _ => (CHECK_STORE_BOTH, self.offset_field()),
        };
        u64::from(self.rm) | u64::from(funct3) << 8 | u64::from(rd) << 16
    }

    fn offset_field(&self) -> u8 {
        if self.rm & ACCESS_CONSTANT_OFFSET == 0 { self.rs3 } else { (self.imm >> (self.rm & WIDTH)) as u8 }
    }

    /// Its width and the kind of its store, as text after its operands.
    pub(crate) fn access_text(&self) -> String {
        let sign = if self.rm & ACCESS_ZERO_EXTEND == 0 { "" } else { "u" };
        let kind = match self.store_kind() {
            StoreKind::Plain => "",
            StoreKind::Clean => ", clean",
            StoreKind::CleanAndFence => ", clean and fence",
        };
        format!("{}{sign}{kind}", ["b", "h", "w", "d"][usize::from(self.rm & WIDTH)])
    }
}

/// Executes any of these. A checked access leads into a handler if a check asks for one, or else to the next instruction.
pub(crate) fn execute<B: Bus>(hart: &mut Hart, inst: Inst, bus: &mut B) -> Result<Flow, Stop> {
    if !bus.has_checks() {
        return Err(Stop::NoCheckedAccesses);
    }
    let rs1 = hart.x[usize::from(inst.rs1 & 31)];
    let mut written = None;
    match inst.op {
        Op::CheckLoad => return access(hart, inst, AccessKind::Load, bus),
        Op::CheckStoreH => return access(hart, inst, AccessKind::StoreH, bus),
        Op::CheckStoreBoth => return access(hart, inst, AccessKind::StoreBoth, bus),
        Op::PersistStore => {
            let addr = rs1.wrapping_add(inst.checked_offset(hart));
            bus.store_as(addr, inst.checked_bytes(), hart.x[usize::from(inst.rs2 & 31)], inst.store_kind())?;
        }
        Op::InsertFwd => written = Some(update(hart, FilterOperation::InsertFwd, rs1, bus)?),
        Op::InsertTrans => drop(update(hart, FilterOperation::InsertTrans, rs1, bus)?),
        Op::ClearFwd => drop(update(hart, FilterOperation::ClearFwd, 0, bus)?),
        Op::ClearTrans => drop(update(hart, FilterOperation::ClearTrans, 0, bus)?),
        Op::ChangeActive => drop(update(hart, FilterOperation::ChangeActive, 0, bus)?),
        Op::CheckRead => written = Some(registers(hart).0[inst.imm as usize]),
        Op::CheckWrite => hart.checks.get_or_insert_default().0[inst.imm as usize] = rs1,
        _ => return Ok(leave_handler(hart)),
    }
    if let Some(value) = written {
        write(hart, inst.rd, value);
    }
    Ok(Flow::Next)
}

/// The check registers of a hart.
fn registers(hart: &Hart) -> &CheckRegisters {
    hart.checks.as_deref().unwrap_or(&CheckRegisters::ZERO)
}

fn write(hart: &mut Hart, rd: u8, value: u64) {
    hart.x[usize::from(rd & 31)] = value;
    hart.x[0] = 0;
}

/// The registers of a hart that has filters: nine lines in one page.
fn with_filters(hart: &Hart) -> Result<&CheckRegisters, Stop> {
    let registers = registers(hart);
    let filters = registers.0[CheckRegisters::FILTERS];
    let is_in_page = filters % PAGE_BYTES <= PAGE_BYTES - FILTER_LINES as u64 * LINE_BYTES;
    if filters != 0 && filters.is_multiple_of(LINE_BYTES) && is_in_page { Ok(registers) } else { Err(Stop::NoFilters) }
}

fn update<B: Bus>(hart: &Hart, operation: FilterOperation, object: u64, bus: &mut B) -> Result<u64, Stop> {
    bus.update_filters(with_filters(hart)?, operation, object)
}

fn access<B: Bus>(hart: &mut Hart, inst: Inst, kind: AccessKind, bus: &mut B) -> Result<Flow, Stop> {
    let access = CheckedAccess {
        kind,
        base: hart.x[usize::from(inst.rs1 & 31)],
        offset: inst.checked_offset(hart),
        value: if kind == AccessKind::Load { 0 } else { hart.x[usize::from(inst.rs2 & 31)] },
    };
    let persistent = match bus.check(with_filters(hart)?, &access)? {
        CheckVerdict::Handler(number) => return enter_handler(hart, inst, &access, number),
        CheckVerdict::Hardware { persistent } => persistent,
    };
    let addr = access.address();
    if kind == AccessKind::Load {
        let bits = match inst.rm & WIDTH {
            0 => bus.load(addr, 1)?,
            1 => bus.load(addr, 2)?,
            2 => bus.load(addr, 4)?,
            _ => bus.load(addr, 8)?,
        };
        write(hart, inst.rd, extend(bits, inst.rm));
    } else {
        let kind = if persistent { inst.store_kind() } else { StoreKind::Plain };
        bus.store_as(addr, inst.checked_bytes(), access.value, kind)?;
    }
    Ok(Flow::Next)
}

/// The value of rd that a load with this funct7 makes of its bits.
fn extend(bits: u64, funct7: u8) -> u64 {
    match (funct7 & WIDTH, funct7 & ACCESS_ZERO_EXTEND != 0) {
        (0, false) => bits as i8 as u64,
        (1, false) => bits as i16 as u64,
        (2, false) => bits as i32 as u64,
        (0, true) => u64::from(bits as u8),
        (1, true) => u64::from(bits as u16),
        (2, true) => u64::from(bits as u32),
        _ => bits,
    }
}

/// Writes the access to the check registers; no other register changes.
fn enter_handler(hart: &mut Hart, inst: Inst, access: &CheckedAccess, number: u8) -> Result<Flow, Stop> {
    let handlers = registers(hart).0[CheckRegisters::HANDLERS];
    if handlers == 0 {
        return Err(Stop::NoHandlers);
    }
    let return_pc = hart.pc.wrapping_add(inst.len.into());
    let checks = &mut hart.checks.get_or_insert_default().0;
    checks[CheckRegisters::RETURN_PC] = return_pc;
    checks[CheckRegisters::BASE] = access.base;
    checks[CheckRegisters::OFFSET] = access.offset;
    checks[CheckRegisters::VALUE] = access.value;
    checks[CheckRegisters::ACCESS] = inst.access_fields();
    Ok(Flow::Jump(handlers.wrapping_add(HANDLER_BYTES * u64::from(number.saturating_sub(1)))))
}

impl Hart {
    /// The register for which a handler has loaded, by its unified id, if it was called for a load.
    pub fn handled_load(&self) -> Option<u8> {
        let fields = registers(self).0[CheckRegisters::ACCESS];
        ((fields >> 8 & 7) as u32 == CHECK_LOAD).then_some((fields >> 16 & 31) as u8).filter(|&register| register != 0)
    }
}

/// Continues after the access that the registers name. Any content of them is an access: bits outside of its fields,
/// and those that no load has, do not count.
fn leave_handler(hart: &mut Hart) -> Flow {
    let CheckRegisters(checks) = *registers(hart);
    let fields = checks[CheckRegisters::ACCESS];
    if (fields >> 8 & 7) as u32 == CHECK_LOAD {
        write(hart, (fields >> 16 & 31) as u8, extend(checks[CheckRegisters::RESULT], fields as u8));
    }
    Flow::Jump(checks[CheckRegisters::RETURN_PC] & !1)
}
