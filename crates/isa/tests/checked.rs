//! The instructions of custom-0: every encoding, and the effect of each instruction on a bus with given answers of
//! checks.

mod common;

use common::assemble::r_type;
use common::elf::Segment;
use common::flat::FlatBus;
use durasim_isa::encodings::*;
use durasim_isa::*;
use durasim_types::{AccessKind, CheckRegisters, CheckVerdict, CheckedAccess, FilterOperation, Rng, StoreKind};

const MEMORY: u64 = 0x1000;
const FILTERS: u64 = 0x2_0000;
const HANDLERS: u64 = 0x3_0000;
const PC: u64 = 0x100;
const PERSISTENT: CheckVerdict = CheckVerdict::Hardware { persistent: true };
const PLAIN: CheckVerdict = CheckVerdict::Hardware { persistent: false };

fn custom_0(funct3: u32, funct7: u32, rd: u8, rs1: u8, rs2: u8) -> u32 {
    r_type(CUSTOM_0, funct3, funct7, rd, rs1, rs2)
}

/// Memory, and checks that give prepared answers and note what they were asked.
struct CheckedBus {
    memory: FlatBus,
    verdict: CheckVerdict,
    checked: Vec<CheckedAccess>,
    updates: Vec<(FilterOperation, u64)>,
    stored: Vec<(u64, u8, StoreKind)>,
}

impl CheckedBus {
    fn new(verdict: CheckVerdict) -> Self {
        let bytes = (0..=255).map(|byte: u8| byte.wrapping_mul(151) ^ 0x5a).collect();
        let memory = FlatBus::new(vec![Segment { base: MEMORY, bytes, writable: true }]);
        CheckedBus { memory, verdict, checked: vec![], updates: vec![], stored: vec![] }
    }
}

impl Bus for CheckedBus {
    fn load(&mut self, addr: u64, bytes: u8) -> Result<u64, AccessFault> {
        self.memory.load(addr, bytes)
    }
    fn store(&mut self, _: u64, _: u8, _: u64) -> Result<(), AccessFault> {
        unreachable!("these stores have a kind")
    }
    fn load_reserved(&mut self, _: u64, _: u8) -> Result<u64, AccessFault> {
        unreachable!()
    }
    fn store_conditional(&mut self, _: u64, _: u8, _: u64) -> Result<bool, AccessFault> {
        unreachable!()
    }
    fn amo(&mut self, _: u64, _: u8, _: AmoOp, _: u64) -> Result<u64, AccessFault> {
        unreachable!()
    }
    fn fence(&mut self, _: FenceSet) {}
    fn fence_i(&mut self) {}
    fn cache_block(&mut self, _: CacheBlockOp, _: u64) -> Result<(), AccessFault> {
        unreachable!()
    }
    fn counter(&mut self, _: Counter) -> u64 {
        0
    }
    fn marker(&mut self, _: Marker, _: u64) {}
    fn has_checks(&self) -> bool {
        true
    }
    fn check(&mut self, registers: &CheckRegisters, access: &CheckedAccess) -> Result<CheckVerdict, Stop> {
        assert_eq!(registers.0[CheckRegisters::FILTERS], FILTERS);
        self.checked.push(*access);
        Ok(self.verdict)
    }
    fn update_filters(
        &mut self,
        registers: &CheckRegisters,
        operation: FilterOperation,
        object: u64,
    ) -> Result<u64, Stop> {
        assert_eq!(registers.0[CheckRegisters::FILTERS], FILTERS);
        self.updates.push((operation, object));
        Ok(77)
    }
    fn store_as(&mut self, addr: u64, bytes: u8, value: u64, kind: StoreKind) -> Result<(), AccessFault> {
        self.stored.push((addr, bytes, kind));
        self.memory.store(addr, bytes, value)
    }
}

/// A hart with filters and handlers, whose registers all differ.
fn hart() -> Hart {
    let mut hart = Hart { pc: PC, fcsr: 0x21, ..Hart::default() };
    hart.x.iter_mut().enumerate().skip(1).for_each(|(n, x)| *x = 0x0801_0203_0405_0607 * n as u64);
    hart.f.iter_mut().enumerate().for_each(|(n, f)| *f = 0xf0 + n as u64);
    let mut checks = CheckRegisters::default();
    checks.0[CheckRegisters::FILTERS] = FILTERS;
    checks.0[CheckRegisters::HANDLERS] = HANDLERS;
    hart.checks = Some(Box::new(checks));
    hart
}

fn run(hart: &mut Hart, bits: u32, bus: &mut impl Bus) -> Result<Flow, Stop> {
    let before = hart.clone();
    let flow = execute(hart, decode(bits).expect("a legal encoding"), bus);
    assert!(flow.is_ok() || *hart == before, "an instruction that stops must not change the hart");
    assert_eq!((hart.pc, hart.x[0]), (PC, 0));
    flow
}

/// The encodings, by the words of the table.
fn is_legal(funct3: u32, funct7: u32, rd: u8, rs1: u8, rs2: u8) -> bool {
    let (width, zero_extends, kind, bit_5) = (funct7 & 3, funct7 >> 2 & 1, funct7 >> 3 & 3, funct7 >> 5 & 1);
    match funct3 {
        0 => bit_5 == 0 && kind == 0 && !(width == 3 && zero_extends == 1),
        1 | 3 => bit_5 == 0 && kind != 3 && zero_extends == 0,
        2 => bit_5 == 0 && kind != 3 && zero_extends == 0 && width == 3,
        4 => match funct7 {
            0 => rs2 == 0,
            1 => (rd, rs2) == (0, 0),
            2..=4 => (rd, rs1, rs2) == (0, 0, 0),
            _ => false,
        },
        5 => funct7 < 11 && (rs1, rs2) == (0, 0),
        6 => funct7 < 11 && (rd, rs2) == (0, 0),
        _ => (funct7, rd, rs1, rs2) == (0, 0, 0, 0),
    }
}

/// The encoding of an instruction, from its fields.
fn encode(inst: Inst) -> u32 {
    let Inst { op, rd, rs1, rs2, rs3, rm, imm, .. } = inst;
    let funct7 = u32::from(rm);
    let is_constant = rm & ACCESS_CONSTANT_OFFSET != 0;
    let offset = |register| if is_constant { (imm >> (rm & 3)) as u8 } else { register };
    match op {
        Op::CheckLoad => custom_0(0, funct7, rd, rs1, offset(rs2)),
        Op::CheckStoreH => custom_0(1, funct7, offset(rs3), rs1, rs2),
        Op::CheckStoreBoth => custom_0(2, funct7, offset(rs3), rs1, rs2),
        Op::PersistStore => custom_0(3, funct7, offset(rs3), rs1, rs2),
        Op::InsertFwd => custom_0(4, 0, rd, rs1, 0),
        Op::InsertTrans => custom_0(4, 1, 0, rs1, 0),
        Op::ClearFwd => custom_0(4, 2, 0, 0, 0),
        Op::ClearTrans => custom_0(4, 3, 0, 0, 0),
        Op::ChangeActive => custom_0(4, 4, 0, 0, 0),
        Op::CheckRead => custom_0(5, imm as u32, rd, 0, 0),
        Op::CheckWrite => custom_0(6, imm as u32, 0, rs1, 0),
        Op::CheckReturn => custom_0(7, 0, 0, 0, 0),
        _ => panic!("{op:?} in custom-0"),
    }
}

/// All of custom-0: what the table has decodes to what it was, and the rest is illegal.
#[test]
fn every_encoding_is_decoded_or_refused() {
    for fields in 0..1u32 << 25 {
        let bits = fields << 7 | CUSTOM_0;
        let [rd, rs1, rs2] = [7, 15, 20].map(|at| (bits >> at & 31) as u8);
        let decoded = decode(bits);
        assert_eq!(decoded.is_ok(), is_legal(bits >> 12 & 7, bits >> 25, rd, rs1, rs2), "{bits:#010x}");
        if let Ok(inst) = decoded {
            assert_eq!((encode(inst), inst.len), (bits, 4), "{inst:?}");
        }
    }
    assert_eq!(disassemble(CUSTOM_0 | 1 << 31 | 7 << 12), "unsupported custom-0 encoding 0x8000700b");
}

#[test]
fn classes_registers_and_texts() {
    let texts = [
        (custom_0(0, 0x43, 3, 1, 2), "check.load x3, x1, 16, d", Class::CheckedLoad, [1, 0, 0], 3),
        (custom_0(0, 0x06, 3, 1, 2), "check.load x3, x1, x2, wu", Class::CheckedLoad, [1, 2, 0], 3),
        (custom_0(1, 0x48, 31, 1, 2), "check.store.h x1, x2, 31, b, clean", Class::CheckedStore, [1, 2, 0], 0),
        (custom_0(1, 0x01, 3, 1, 2), "check.store.h x1, x2, x3, h", Class::CheckedStore, [1, 2, 3], 0),
        (
            custom_0(2, 0x13, 3, 1, 2),
            "check.store.both x1, x2, x3, d, clean and fence",
            Class::CheckedStore,
            [1, 2, 3],
            0,
        ),
        (custom_0(3, 0x42, 0, 1, 2), "persist.store x1, x2, w", Class::CheckedStore, [1, 2, 0], 0),
        (custom_0(4, 0, 3, 1, 0), "insert.fwd x3, x1", Class::FilterUpdate, [1, 0, 0], 3),
        (custom_0(4, 1, 0, 1, 0), "insert.trans x1", Class::FilterUpdate, [1, 0, 0], 0),
        (custom_0(4, 2, 0, 0, 0), "clear.fwd", Class::FilterUpdate, [0; 3], 0),
        (custom_0(4, 3, 0, 0, 0), "clear.trans", Class::FilterUpdate, [0; 3], 0),
        (custom_0(4, 4, 0, 0, 0), "change.active", Class::FilterUpdate, [0; 3], 0),
        (custom_0(5, 0, 3, 0, 0), "check.read x3, cr0", Class::CheckRegister, [0; 3], 3),
        (custom_0(6, 10, 0, 1, 0), "check.write x1, cr10", Class::CheckRegister, [1, 0, 0], 0),
        (custom_0(7, 0, 0, 0, 0), "check.return", Class::CheckReturn, [0; 3], 0),
    ];
    for (bits, text, class, sources, dest) in texts {
        let inst = decode(bits).unwrap();
        assert_eq!((inst.to_string().as_str(), inst.class()), (text, class));
        assert_eq!((inst.sources(), inst.dest()), (sources, dest), "{text}");
        assert_eq!(inst.ends_block(), inst.op == Op::CheckReturn, "{text}");
        assert!(!inst.is_call() && !inst.is_return());
    }
}

/// The table's numbers are those of the type.
#[test]
fn check_registers_have_their_names() {
    let numbered = [
        ("filters", CheckRegisters::FILTERS),
        ("handlers", CheckRegisters::HANDLERS),
        ("heap_base", CheckRegisters::HEAP_BASE),
        ("heap_limit", CheckRegisters::HEAP_LIMIT),
        ("xaction", CheckRegisters::XACTION),
        ("return_pc", CheckRegisters::RETURN_PC),
        ("base", CheckRegisters::BASE),
        ("offset", CheckRegisters::OFFSET),
        ("value", CheckRegisters::VALUE),
        ("access", CheckRegisters::ACCESS),
        ("result", CheckRegisters::RESULT),
    ];
    assert_eq!(CHECK_REGISTERS.len(), CheckRegisters::COUNT);
    for (name, number) in numbered {
        assert_eq!(CHECK_REGISTERS[number], name);
    }
}

/// All widths, both signs, constants and registers as offsets.
#[test]
fn checked_loads() {
    for funct7 in [0, 1, 2, 3, 4, 5, 6] {
        let bytes = 1u64 << (funct7 & 3);
        let signed = funct7 & 4 == 0;
        for offset in [0, 1, 7, 11] {
            let in_register = 16 * offset + 3;
            for (bits, distance) in [
                (custom_0(0, funct7 | 0x40, 3, 1, offset as u8), offset * bytes),
                (custom_0(0, funct7, 3, 1, 2), in_register),
            ] {
                let (mut hart, mut bus) = (hart(), CheckedBus::new(PLAIN));
                (hart.x[1], hart.x[2]) = (MEMORY, in_register);
                assert_eq!(run(&mut hart, bits, &mut bus), Ok(Flow::Next));
                let raw = bus.memory.load(MEMORY + distance, bytes as u8).unwrap();
                let unused = 64 - 8 * bytes as u32;
                let extended = if signed { ((raw << unused) as i64 >> unused) as u64 } else { raw };
                assert_eq!(hart.x[3], extended, "{bits:#x}");
                let access = CheckedAccess { kind: AccessKind::Load, base: MEMORY, offset: distance, value: 0 };
                assert_eq!(bus.checked, [access]);
            }
        }
    }
    // A negative offset of a register, and a result that no register takes.
    let (mut hart, mut bus) = (hart(), CheckedBus::new(PLAIN));
    (hart.x[1], hart.x[2]) = (MEMORY + 9, -8i64 as u64);
    assert_eq!(run(&mut hart, custom_0(0, 3, 3, 1, 2), &mut bus), Ok(Flow::Next));
    assert_eq!(hart.x[3], bus.memory.load(MEMORY + 1, 8).unwrap());
    assert_eq!(run(&mut hart, custom_0(0, 3, 0, 1, 2), &mut bus), Ok(Flow::Next));
}

/// All widths and kinds of stores. A kind applies to what goes to the persistent heap, and always to persist.store.
#[test]
fn checked_and_persistent_stores() {
    let kinds = [StoreKind::Plain, StoreKind::Clean, StoreKind::CleanAndFence];
    for (funct3, widths) in [(1, 0..=3), (2, 3..=3), (3, 0..=3)] {
        for width in widths {
            for ((flavour, kind), verdict) in (0..).zip(kinds).flat_map(|kind| [(kind, PERSISTENT), (kind, PLAIN)]) {
                let funct7 = width | flavour << 3;
                let bytes = 1u64 << width;
                for (bits, distance) in
                    [(custom_0(funct3, funct7 | 0x40, 6, 1, 2), 6 * bytes), (custom_0(funct3, funct7, 3, 1, 2), 19)]
                {
                    let (mut hart, mut bus) = (hart(), CheckedBus::new(verdict));
                    (hart.x[1], hart.x[2], hart.x[3]) = (MEMORY, 0x8182_8384_8586_8788, 19);
                    let after = bus.memory.load(MEMORY + distance + bytes, 8).unwrap();
                    assert_eq!(run(&mut hart, bits, &mut bus), Ok(Flow::Next));
                    let kind = if funct3 == 3 || verdict == PERSISTENT { kind } else { StoreKind::Plain };
                    assert_eq!(bus.stored, [(MEMORY + distance, bytes as u8, kind)]);
                    let stored = bus.memory.load(MEMORY + distance, bytes as u8).unwrap();
                    assert_eq!(stored, hart.x[2] & (u64::MAX >> (64 - 8 * bytes)));
                    assert_eq!(bus.memory.load(MEMORY + distance + bytes, 8).unwrap(), after);
                    let kind = if funct3 == 1 { AccessKind::StoreH } else { AccessKind::StoreBoth };
                    let access = CheckedAccess { kind, base: MEMORY, offset: distance, value: hart.x[2] };
                    assert_eq!(bus.checked, if funct3 == 3 { vec![] } else { vec![access] });
                }
            }
        }
    }
}

/// Figure 3: what the access was goes to the check registers, and no other register changes, there and back.
#[test]
fn handlers_preserve_all_registers() {
    for (number, bits) in [
        (1, custom_0(2, 0x13, 3, 1, 2)),
        (2, custom_0(2, 0x4b, 31, 1, 2)),
        (3, custom_0(1, 0x48, 3, 1, 2)),
        (4, custom_0(0, 0x42, 3, 1, 2)),
        (1, custom_0(1, 0x01, 0, 1, 2)),
    ] {
        let (mut hart, mut bus) = (hart(), CheckedBus::new(CheckVerdict::Handler(number)));
        let before = hart.clone();
        let entry = HANDLERS + 8 * u64::from(number - 1);
        assert_eq!(run(&mut hart, bits, &mut bus), Ok(Flow::Jump(entry)));
        assert!(bus.stored.is_empty());
        let access = bus.checked[0];
        let checks = hart.checks.as_mut().unwrap();
        let CheckRegisters(now) = **checks;
        assert_eq!(now[CheckRegisters::RETURN_PC], PC + 4);
        assert_eq!(now[CheckRegisters::BASE], before.x[1]);
        assert_eq!((now[CheckRegisters::OFFSET], now[CheckRegisters::VALUE]), (access.offset, access.value));
        let (funct7, funct3, rd) = (bits >> 25, bits >> 12 & 7, bits >> 7 & 31);
        assert_eq!(now[CheckRegisters::ACCESS], u64::from(funct7 | funct3 << 8 | rd << 16));
        // Everything else is as it was.
        let mut restored = hart.clone();
        restored.checks = before.checks.clone();
        assert_eq!(restored, before);

        hart.checks.as_mut().unwrap().0[CheckRegisters::RESULT] = 0x0123_4567_89ab_cdef;
        hart.pc = PC;
        let before = hart.clone();
        assert_eq!(run(&mut hart, custom_0(7, 0, 0, 0, 0), &mut bus), Ok(Flow::Jump(PC + 4)));
        if funct3 == 0 {
            assert_eq!(hart.x[3], 0xffff_ffff_89ab_cdef, "a word is sign-extended");
            hart.x[3] = before.x[3];
        }
        assert_eq!(hart, before, "{bits:#x}");
    }
}

#[test]
fn results_of_handlers_are_truncated_and_extended() {
    const RESULT: u64 = 0x8182_8384_8586_8788;
    let results = [
        (0, 0xffff_ffff_ffff_ff88),
        (1, 0xffff_ffff_ffff_8788),
        (2, 0xffff_ffff_8586_8788),
        (3, RESULT),
        (4, 0x88),
        (5, 0x8788),
        (6, 0x8586_8788),
    ];
    for (funct7, result) in results {
        for constant in [0, 0x40] {
            let (mut hart, mut bus) = (hart(), CheckedBus::new(CheckVerdict::Handler(4)));
            run(&mut hart, custom_0(0, funct7 | constant, 29, 1, 2), &mut bus).unwrap();
            hart.checks.as_mut().unwrap().0[CheckRegisters::RESULT] = RESULT;
            run(&mut hart, custom_0(7, 0, 0, 0, 0), &mut bus).unwrap();
            assert_eq!(hart.x[29], result);
        }
    }
}

#[test]
fn operations_on_filters() {
    let (mut hart, mut bus) = (hart(), CheckedBus::new(PLAIN));
    let object = hart.x[5];
    let before = hart.clone();
    for bits in [
        custom_0(4, 1, 0, 5, 0),
        custom_0(4, 2, 0, 0, 0),
        custom_0(4, 3, 0, 0, 0),
        custom_0(4, 4, 0, 0, 0),
        custom_0(4, 0, 0, 5, 0),
    ] {
        assert_eq!(run(&mut hart, bits, &mut bus), Ok(Flow::Next));
    }
    assert_eq!(hart, before);
    assert_eq!(run(&mut hart, custom_0(4, 0, 5, 5, 0), &mut bus), Ok(Flow::Next));
    assert_eq!(hart.x[5], 77);
    let updates = [
        (FilterOperation::InsertTrans, object),
        (FilterOperation::ClearFwd, 0),
        (FilterOperation::ClearTrans, 0),
        (FilterOperation::ChangeActive, 0),
        (FilterOperation::InsertFwd, object),
        (FilterOperation::InsertFwd, object),
    ];
    assert_eq!(bus.updates, updates);
}

#[test]
fn check_registers_are_read_and_written() {
    let mut bus = CheckedBus::new(PLAIN);
    let mut hart = Hart { pc: PC, ..Hart::default() };
    for number in 0..11 {
        assert_eq!(run(&mut hart, custom_0(5, number, 3, 0, 0), &mut bus), Ok(Flow::Next));
        assert_eq!((hart.x[3], &hart.checks), (0, &None), "they hold 0 and take no room before one is written");
    }
    for number in 0..11 {
        hart.x[4] = u64::MAX - u64::from(number);
        assert_eq!(run(&mut hart, custom_0(6, number, 0, 4, 0), &mut bus), Ok(Flow::Next));
    }
    for number in 0..11 {
        assert_eq!(run(&mut hart, custom_0(5, number, 3, 0, 0), &mut bus), Ok(Flow::Next));
        assert_eq!(hart.x[3], u64::MAX - u64::from(number));
    }
    assert_eq!(run(&mut hart, custom_0(5, 2, 0, 0, 0), &mut bus), Ok(Flow::Next));
}

/// On other machines all of it stops, with one sentence of its own.
#[test]
fn a_bus_without_checks_says_so() {
    for funct3 in 0..8 {
        let bits = custom_0(funct3, if funct3 == 2 { 3 } else { 0 }, 0, 0, 0);
        let mut bus = FlatBus::new(vec![]);
        assert_eq!(run(&mut hart(), bits, &mut bus), Err(Stop::NoCheckedAccesses), "{}", disassemble(bits));
    }
}

/// The filters are nine lines in one page; handlers are needed when one is called.
#[test]
fn filters_and_handlers_that_are_not_set_stop_the_program() {
    let checked = [custom_0(0, 3, 3, 1, 2), custom_0(1, 3, 3, 1, 2), custom_0(2, 3, 3, 1, 2)];
    let updates: Vec<u32> = (0..5).map(|funct7| custom_0(4, funct7, 0, 0, 0)).collect();
    let mut bus = CheckedBus::new(CheckVerdict::Handler(1));
    for filters in [0, FILTERS + 1, FILTERS + 8, FILTERS + 4096 - 512, FILTERS - 64, u64::MAX] {
        for &bits in checked.iter().chain(&updates) {
            let mut hart = hart();
            hart.checks.as_mut().unwrap().0[CheckRegisters::FILTERS] = filters;
            assert_eq!(run(&mut hart, bits, &mut bus), Err(Stop::NoFilters), "{filters:#x}");
            hart.checks = None;
            assert_eq!(run(&mut hart, bits, &mut bus), Err(Stop::NoFilters));
        }
    }
    assert!(bus.checked.is_empty() && bus.updates.is_empty());
    for bits in checked {
        let mut hart = hart();
        hart.checks.as_mut().unwrap().0[CheckRegisters::HANDLERS] = 0;
        assert_eq!(run(&mut hart, bits, &mut bus), Err(Stop::NoHandlers));
    }
    // Those that check nothing need neither.
    let mut hart = Hart { pc: PC, ..Hart::default() };
    hart.x[1] = MEMORY;
    assert_eq!(run(&mut hart, custom_0(3, 0x43, 1, 1, 0), &mut bus), Ok(Flow::Next));
    assert_eq!(run(&mut hart, custom_0(7, 0, 0, 0, 0), &mut bus), Ok(Flow::Jump(0)));
}

/// A refused access changes nothing, whether the hardware or the bus refuses it.
#[test]
fn a_refused_access_changes_nothing() {
    let mut bus = CheckedBus::new(PERSISTENT);
    for bits in [custom_0(0, 0x43, 3, 1, 0), custom_0(1, 0x53, 0, 1, 2), custom_0(3, 0x53, 0, 1, 2)] {
        let mut hart = hart();
        hart.x[1] = MEMORY + 252;
        assert!(matches!(run(&mut hart, bits, &mut bus), Err(Stop::AccessFault(_))));
    }
}

/// Programs write what they like into the check registers: a return leads somewhere, and writes at most one register.
#[test]
fn returns_from_anything_are_defined() {
    let mut rng = Rng::new(21);
    let mut bus = CheckedBus::new(PLAIN);
    for _ in 0..100_000 {
        let mut hart = hart();
        hart.checks.as_mut().unwrap().0.iter_mut().for_each(|register| *register = rng.next_u64());
        let before = hart.clone();
        let CheckRegisters(checks) = *before.checks.clone().unwrap();
        let flow = run(&mut hart, custom_0(7, 0, 0, 0, 0), &mut bus);
        assert_eq!(flow, Ok(Flow::Jump(checks[CheckRegisters::RETURN_PC] & !1)));
        let rd = (checks[CheckRegisters::ACCESS] >> 16 & 31) as usize;
        let is_load = checks[CheckRegisters::ACCESS] >> 8 & 7 == 0;
        let changed: Vec<usize> = (0..32).filter(|&n| hart.x[n] != before.x[n]).collect();
        assert!(changed.is_empty() || is_load && changed == [rd], "{changed:?}");
        hart.x = before.x;
        assert_eq!(hart, before);
    }
}

/// Any registers at the entry of a handler: addresses wrap around, and the next fetch says what is wrong.
#[test]
fn entries_with_anything_are_defined() {
    for (handlers, number, entry) in
        [(u64::MAX, 4, 23), (1, 1, 1), (HANDLERS, 0, HANDLERS), (HANDLERS, 255, HANDLERS + 8 * 254)]
    {
        let (mut hart, mut bus) = (hart(), CheckedBus::new(CheckVerdict::Handler(number)));
        hart.checks.as_mut().unwrap().0[CheckRegisters::HANDLERS] = handlers;
        assert_eq!(run(&mut hart, custom_0(0, 3, 3, 1, 2), &mut bus), Ok(Flow::Jump(entry)));
    }
}
