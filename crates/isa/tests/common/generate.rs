//! Seeded random programs that leave a trace: each writes the value of every destination register, and the flags after
//! every floating-point instruction, to memory, and at the end memory and all registers to standard output.
//!
//! The data: final x registers, final f registers (both hold the initial ones at first), fcsr, scratch memory, trace.
//! Of the registers, x2 points to the scratch memory, x29 to its middle, x31 to the middle of the trace; x28 and x30 are
//! temporaries. Random instructions read all registers and write all but these.

use super::assemble::*;
use super::elf;
use super::operands;
use durasim_isa::{Class, Inst, Op, decode};
use durasim_types::Rng;

const X_AT: i32 = 0;
const F_AT: i32 = 256;
const FCSR_AT: i32 = 512;
const SCRATCH_AT: i32 = 576;
const SCRATCH_BYTES: i32 = 1024;
const TRACE_AT: i32 = SCRATCH_AT + SCRATCH_BYTES;
const TRACE_BYTES: i32 = 4096;
/// Bytes of data, and of output.
pub const DATA_BYTES: i32 = TRACE_AT + TRACE_BYTES;

const BASE: u8 = 29;
const BASE_AT: i32 = SCRATCH_AT + SCRATCH_BYTES / 2;
const TRACE: u8 = 31;
const POINTER: u8 = 28;
const FLAGS: u8 = 30;
const RESERVED: [u8; 5] = [SP, POINTER, BASE, FLAGS, TRACE];

const CSR_FFLAGS: i32 = 1;
const CSR_FRM: i32 = 2;
const CSR_FCSR: i32 = 3;

/// Random instructions in a program.
pub const ITEMS: usize = 200;

/// The parts of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Rv64i,
    M,
    A,
    F,
    D,
    C,
    Zicsr,
    Mixed,
    /// Zba, Zbb, Zbs and Zicond.
    Zb,
    Zfhmin,
    Zacas,
    Zicboz,
}

impl Kind {
    pub const ALL: [Kind; 12] = [
        Kind::Rv64i,
        Kind::M,
        Kind::A,
        Kind::F,
        Kind::D,
        Kind::C,
        Kind::Zicsr,
        Kind::Mixed,
        Kind::Zb,
        Kind::Zfhmin,
        Kind::Zacas,
        Kind::Zicboz,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Rv64i => "rv64i",
            Kind::M => "m",
            Kind::A => "a",
            Kind::F => "f",
            Kind::D => "d",
            Kind::C => "c",
            Kind::Zicsr => "zicsr",
            Kind::Mixed => "mixed",
            Kind::Zb => "zb",
            Kind::Zfhmin => "zfhmin",
            Kind::Zacas => "zacas",
            Kind::Zicboz => "zicboz",
        }
    }
}

/// A jump whose offset is known only when the items it skips have their place.
struct Jump {
    /// Bytes of the item before the instruction that carries the offset.
    at: usize,
    /// Bytes of the item before the instruction the offset counts from.
    from: usize,
    skip: usize,
    patch: fn(Carrier, i32) -> Carrier,
    carrier: Carrier,
}

#[derive(Clone, Copy)]
enum Carrier {
    Word(u32),
    Half(u16),
}

#[derive(Default)]
struct Item {
    bytes: Vec<u8>,
    jump: Option<Jump>,
}

impl Item {
    fn word(&mut self, word: u32) {
        self.bytes.extend(word.to_le_bytes());
    }
    fn half(&mut self, half: u16) {
        self.bytes.extend(half.to_le_bytes());
    }
}

struct Generator {
    rng: Rng,
    kind: Kind,
    slots: i32,
}

/// The executable for a seed.
pub fn program(kind: Kind, seed: u64) -> Vec<u8> {
    let mut generator = Generator { rng: Rng::new(seed ^ (kind as u64) << 56), kind, slots: 0 };
    let data = generator.data();
    let items: Vec<Item> = (0..ITEMS).map(|_| generator.item()).collect();
    let mut code = prologue();
    code.extend(link(&items));
    code.extend(epilogue());
    elf::write(&code, &data, DATA_BYTES as u64, false)
}

fn words(words: impl IntoIterator<Item = u32>) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

fn prologue() -> Vec<u8> {
    let data = elf::DATA_BASE as u32;
    let mut code = li(BASE, data + BASE_AT as u32).to_vec();
    code.extend(li(TRACE, data + (TRACE_AT + TRACE_BYTES / 2) as u32));
    code.extend((0..32u8).map(|i| fld(i, BASE, F_AT - BASE_AT + 8 * i32::from(i))));
    code.extend([ld(1, BASE, FCSR_AT - BASE_AT), csr(1, 0, CSR_FCSR, 1)]);
    let random = (1..32u8).filter(|i| ![SP, BASE, TRACE].contains(i));
    code.extend(random.map(|i| ld(i, BASE, X_AT - BASE_AT + 8 * i32::from(i))));
    code.push(addi(SP, BASE, SCRATCH_AT - BASE_AT));
    words(code)
}

fn epilogue() -> Vec<u8> {
    let mut code: Vec<u32> = (0..32u8).map(|i| sd(i, BASE, X_AT - BASE_AT + 8 * i32::from(i))).collect();
    code.extend((0..32u8).map(|i| fsd(i, BASE, F_AT - BASE_AT + 8 * i32::from(i))));
    code.extend([csr(2, FLAGS, CSR_FCSR, 0), sd(FLAGS, BASE, FCSR_AT - BASE_AT)]);
    code.extend([addi(A0, 0, 1), addi(A1, BASE, -BASE_AT)]);
    code.extend(li(A2, DATA_BYTES as u32));
    code.extend([addi(A7, 0, 64), ECALL, addi(A0, 0, 0), addi(A7, 0, 93), ECALL]);
    words(code)
}

/// Lays the items out one after the other and fills in the jumps.
fn link(items: &[Item]) -> Vec<u8> {
    let mut starts = vec![0];
    for item in items {
        starts.push(starts.last().unwrap() + item.bytes.len());
    }
    let mut code: Vec<u8> = items.iter().flat_map(|item| item.bytes.clone()).collect();
    for (index, jump) in items.iter().enumerate().filter_map(|(i, item)| Some((i, item.jump.as_ref()?))) {
        let target = starts[(index + 1 + jump.skip).min(items.len())];
        let offset = target as i32 - (starts[index] + jump.from) as i32;
        let at = starts[index] + jump.at;
        match (jump.patch)(jump.carrier, offset) {
            Carrier::Word(word) => code[at..at + 4].copy_from_slice(&word.to_le_bytes()),
            Carrier::Half(half) => code[at..at + 2].copy_from_slice(&half.to_le_bytes()),
        }
    }
    code
}

impl Generator {
    fn one_in(&mut self, n: u64) -> bool {
        self.rng.below(n) == 0
    }

    fn register(&mut self) -> u8 {
        self.rng.below(32) as u8
    }

    fn destination(&mut self) -> u8 {
        loop {
            let register = self.register();
            if !RESERVED.contains(&register) {
                return register;
            }
        }
    }

    fn operand(&mut self) -> u64 {
        let kind = if self.kind == Kind::Mixed || self.kind == Kind::C {
            [Kind::Rv64i, Kind::F, Kind::D][self.rng.below(3) as usize]
        } else {
            self.kind
        };
        match (kind, self.rng.below(4)) {
            (Kind::F, 1..) => operands::single(&mut self.rng),
            (Kind::D, 1..) => operands::double(&mut self.rng),
            (Kind::D, _) => operands::single(&mut self.rng),
            (Kind::Zfhmin, 0) => operands::single(&mut self.rng),
            (Kind::Zfhmin, 1) => operands::double(&mut self.rng),
            (Kind::Zfhmin, 2..) => operands::half(&mut self.rng),
            _ => operands::integer(&mut self.rng),
        }
    }

    fn data(&mut self) -> Vec<u8> {
        let mut data: Vec<u8> = (0..64).flat_map(|_| self.operand().to_le_bytes()).collect();
        let fcsr = self.rng.below(5) << 5 | self.rng.below(32);
        data.extend(fcsr.to_le_bytes());
        data.resize(SCRATCH_AT as usize, 0);
        data.extend((0..SCRATCH_BYTES / 8).flat_map(|_| self.operand().to_le_bytes()));
        data
    }

    /// An offset from BASE to an aligned doubleword of scratch memory.
    fn aligned_offset(&mut self) -> i32 {
        self.rng.below(SCRATCH_BYTES as u64 / 8) as i32 * 8 - SCRATCH_BYTES / 2
    }

    fn item(&mut self) -> Item {
        let mut item = Item::default();
        let choice = self.rng.below(16);
        match (self.kind, choice) {
            (Kind::Rv64i, 0..=1) => self.branch(&mut item),
            (Kind::Rv64i, 2) => self.jump(&mut item),
            (Kind::Rv64i, 3..=5) => self.memory(&mut item, &[0x03, 0x23]),
            (Kind::A, 0..=13) => self.atomic(&mut item),
            (Kind::F | Kind::D, 0..=1) => self.memory(&mut item, &[0x07, 0x07, 0x27]),
            (Kind::F | Kind::D, 2) => self.rounding(&mut item),
            (Kind::C, 0..=14) => self.compressed(&mut item),
            (Kind::Zfhmin, 0..=2) => self.memory(&mut item, &[0x07, 0x07, 0x27]),
            (Kind::Zfhmin, 3) => self.rounding(&mut item),
            (Kind::Zacas, 0..=13) => self.compare_and_swap(&mut item),
            (Kind::Zicboz, 0..=7) => self.zero_block(&mut item),
            (Kind::Zicboz, 8..=13) => self.memory(&mut item, &[0x03, 0x23]),
            (Kind::Mixed, 0) => self.branch(&mut item),
            (Kind::Mixed, 1) => self.jump(&mut item),
            (Kind::Mixed, 2..=4) => self.memory(&mut item, &[0x03, 0x23, 0x07, 0x27]),
            (Kind::Mixed, 5) => self.atomic(&mut item),
            (Kind::Mixed, 6..=8) => self.compressed(&mut item),
            (Kind::Mixed, 9) => self.rounding(&mut item),
            _ => {
                let word = self.computation();
                self.emit(&mut item, decode(word).expect("chosen for being legal"), Carrier::Word(word));
            }
        }
        item
    }

    /// Emits an instruction that computes: now and then fresh sources, the instruction, its trace.
    fn emit(&mut self, item: &mut Item, inst: Inst, carrier: Carrier) {
        for source in inst.sources() {
            if source != 0 && !RESERVED.contains(&source) && self.one_in(2) {
                let offset = self.aligned_offset();
                item.word(if source < 32 { ld(source, BASE, offset) } else { fld(source - 32, BASE, offset) });
            }
        }
        match carrier {
            Carrier::Word(word) => item.word(word),
            Carrier::Half(half) => item.half(half),
        }
        self.trace(item, inst);
    }

    fn slot(&mut self) -> i32 {
        self.slots += 1;
        assert!(self.slots <= TRACE_BYTES / 8);
        (self.slots - 1) * 8 - TRACE_BYTES / 2
    }

    fn trace(&mut self, item: &mut Item, inst: Inst) {
        match inst.dest() {
            0 => {}
            id @ 1..32 => item.word(sd(id, TRACE, self.slot())),
            id => item.word(fsd(id - 32, TRACE, self.slot())),
        }
        let float = matches!(
            inst.class(),
            Class::FpAdd | Class::FpMul | Class::FpFused | Class::FpDiv | Class::FpSqrt | Class::Csr
        );
        if float {
            item.word(csr(2, FLAGS, CSR_FCSR, 0));
            if self.one_in(2) {
                item.word(csr(5, 0, CSR_FFLAGS, 0));
            }
            item.word(sd(FLAGS, TRACE, self.slot()));
        }
    }

    /// A random encoding of this kind that computes something: no memory, no control flow.
    fn computation(&mut self) -> u32 {
        loop {
            let kind = match self.kind {
                Kind::Mixed => [Kind::Rv64i, Kind::M, Kind::F, Kind::D][self.rng.below(4) as usize],
                Kind::A | Kind::C | Kind::Zacas | Kind::Zicboz => Kind::Rv64i,
                kind => kind,
            };
            let random = self.rng.next_u64() as u32;
            let mut pick = |choices: &[u32]| choices[self.rng.below(choices.len() as u64) as usize];
            let word = match kind {
                Kind::M => random & 0x01ff_ff80 | 1 << 25 | pick(&[0x33, 0x3b]),
                Kind::F | Kind::D => {
                    let format = if kind == Kind::F { 0 } else { 1 << 25 };
                    if pick(&[0, 0, 0, 1]) == 1 {
                        random & 0xf9ff_ff80 | format | pick(&[0x43, 0x47, 0x4b, 0x4f])
                    } else {
                        let funct5 = pick(&[
                            0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 5, 8, 11, 0x14, 0x14, 0x18, 0x18, 0x1a, 0x1a, 0x1c, 0x1e,
                        ]);
                        let rs2 =
                            if matches!(funct5, 8 | 11 | 0x18..) { pick(&[0, 1, 2, 3]) } else { random >> 20 & 31 };
                        // fcvt.s.d is a conversion to single precision; it belongs to D all the same.
                        let format = if funct5 == 8 && rs2 == 1 && kind == Kind::D { 0 } else { format };
                        random & 0x000f_ff80 | rs2 << 20 | funct5 << 27 | format | 0x53
                    }
                }
                Kind::Zicsr => random & 0x000f_ff80 | pick(&[1, 2, 3]) << 20 | 0x73,
                Kind::Zb => match pick(&[0x33, 0x33, 0x3b, 0x13, 0x13, 0x1b]) {
                    opcode @ (0x33 | 0x3b) => {
                        let funct7 = pick(&[4, 5, 7, 0x10, 0x14, 0x20, 0x24, 0x30, 0x34]);
                        let rs2 = if pick(&[0, 0, 0, 1]) == 1 { 0 } else { random & 0x01f0_0000 };
                        random & 0x000f_ff80 | rs2 | funct7 << 25 | opcode
                    }
                    opcode => {
                        let shift = pick(&[0x02, 0x0a, 0x12, 0x18, 0x1a]) << 6 | random >> 20 & 63;
                        let unary = pick(&[0x600, 0x601, 0x602, 0x604, 0x605, 0x287, 0x6b8]);
                        let imm = if pick(&[0, 1]) == 1 { shift } else { unary };
                        random & 0x000f_8f80 | pick(&[1, 5]) << 12 | imm << 20 | opcode
                    }
                },
                Kind::Zfhmin => {
                    let (funct7, rs2) = [(0x20, 2), (0x21, 2), (0x22, 0), (0x22, 1), (0x72, 0), (0x7a, 0)]
                        [pick(&[0, 1, 2, 3, 4, 5]) as usize];
                    random & 0x000f_ff80 | rs2 << 20 | funct7 << 25 | 0x53
                }
                _ => match pick(&[0x13, 0x13, 0x1b, 0x33, 0x33, 0x3b, 0x37, 0x17]) {
                    opcode @ (0x33 | 0x3b) => random & 0x01ff_ff80 | pick(&[0, 0x20]) << 25 | opcode,
                    // Half of these are shifts with one of the two legal top bits, the rest is free.
                    opcode @ (0x13 | 0x1b) if pick(&[0, 1]) == 1 => {
                        random & 0x03ff_8f80 | pick(&[1, 5]) << 12 | pick(&[0, 0x10]) << 26 | opcode
                    }
                    opcode => random & !0x7f | opcode,
                },
            };
            if let Ok(inst) = decode(word)
                && !RESERVED.contains(&inst.dest())
                && inst.class() != Class::System
                && !(inst.op == Op::FcvtSD && kind == Kind::F)
                && (kind == Kind::Zb) == (Op::Sh1add..=Op::CzeroNez).contains(&inst.op)
            {
                return word;
            }
        }
    }

    /// A load or store of any alignment.
    fn memory(&mut self, item: &mut Item, opcodes: &[u32]) {
        let offset = self.rng.below(SCRATCH_BYTES as u64 - 8) as i32 - SCRATCH_BYTES / 2;
        let opcode = opcodes[self.rng.below(opcodes.len() as u64) as usize];
        loop {
            let funct3 = self.rng.below(8) as u32;
            let word = if opcode & 0x20 == 0 {
                i_type(opcode, funct3, self.destination(), BASE, offset)
            } else {
                s_type(opcode, funct3, BASE, self.register(), offset)
            };
            if let Ok(inst) = decode(word) {
                item.word(word);
                return self.trace(item, inst);
            }
        }
    }

    fn atomic(&mut self, item: &mut Item) {
        let double = self.rng.below(2) as u32;
        let funct3 = 2 + double;
        let offset = self.aligned_offset() + if double == 0 { self.rng.below(2) as i32 * 4 } else { 0 };
        item.word(addi(POINTER, BASE, offset));
        let operation = [0u32, 1, 4, 8, 12, 16, 20, 24, 28, 2, 2, 3][self.rng.below(12) as usize];
        let mut word = |this: &mut Self, funct5: u32, rs2: u8| {
            let aq_rl = this.rng.below(4) as u32;
            let word = r_type(0x2f, funct3, funct5 << 2 | aq_rl, this.destination(), POINTER, rs2);
            let inst = decode(word).expect("an atomic");
            if !(2..=3).contains(&funct5) {
                this.emit(item, inst, Carrier::Word(word));
            } else {
                item.word(word);
                this.trace(item, inst);
            }
        };
        if operation == 2 {
            // A pair that succeeds; a lone store-conditional (3) fails, as the pair before it used its reservation up.
            word(self, 2, 0);
            let value = self.register();
            word(self, 3, value);
        } else {
            let operand = self.register();
            word(self, operation, operand);
        }
    }

    /// A compare and swap, in half of the cases with what memory holds.
    fn compare_and_swap(&mut self, item: &mut Item) {
        let double = self.rng.below(2) as u32;
        let offset = self.aligned_offset() + if double == 0 { self.rng.below(2) as i32 * 4 } else { 0 };
        item.word(addi(POINTER, BASE, offset));
        // Not x0, which qemu 10.0 changes by such an instruction.
        let expected = loop {
            let register = self.destination();
            if register != 0 {
                break register;
            }
        };
        if self.one_in(2) {
            item.word(i_type(0x03, 2 + double, expected, POINTER, 0));
        }
        let (aq_rl, new) = (self.rng.below(4) as u32, self.register());
        let word = r_type(0x2f, 2 + double, 5 << 2 | aq_rl, expected, POINTER, new);
        item.word(word);
        self.trace(item, decode(word).expect("a compare and swap"));
    }

    /// Zeros in a block of the scratch memory, by the address of any byte of it.
    fn zero_block(&mut self, item: &mut Item) {
        let offset = self.rng.below(SCRATCH_BYTES as u64) as i32 - SCRATCH_BYTES / 2;
        item.word(addi(POINTER, BASE, offset));
        item.word(i_type(0x0f, 2, 0, POINTER, 4));
    }

    fn rounding(&mut self, item: &mut Item) {
        item.word(csr(5, 0, CSR_FRM, self.rng.below(5) as u8));
    }

    fn branch(&mut self, item: &mut Item) {
        let funct3 = [0, 1, 4, 5, 6, 7][self.rng.below(6) as usize];
        let (rs1, rs2) = (self.register(), self.register());
        let carrier = Carrier::Word(b_type(funct3, rs1, rs2, 0));
        self.emit(item, decode(b_type(funct3, rs1, rs2, 0)).expect("a branch"), carrier);
        let patch: fn(Carrier, i32) -> Carrier = |carrier, offset| match carrier {
            Carrier::Word(word) => Carrier::Word(word | b_type(0, 0, 0, offset)),
            half => half,
        };
        self.jump_last(item, 4, 4, carrier, patch);
    }

    /// Marks the last `tail` bytes of the item as a jump over one to three items.
    fn jump_last(
        &mut self,
        item: &mut Item,
        tail: usize,
        from_tail: usize,
        carrier: Carrier,
        patch: fn(Carrier, i32) -> Carrier,
    ) {
        let (at, from) = (item.bytes.len() - tail, item.bytes.len() - from_tail);
        item.jump = Some(Jump { at, from, skip: 1 + self.rng.below(3) as usize, patch, carrier });
    }

    fn jump(&mut self, item: &mut Item) {
        let rd = self.destination();
        if self.one_in(2) {
            item.word(0);
            let patch: fn(Carrier, i32) -> Carrier = |carrier, offset| match carrier {
                Carrier::Word(word) => Carrier::Word(word | jal(0, offset)),
                half => half,
            };
            self.jump_last(item, 4, 4, Carrier::Word(jal(rd, 0)), patch);
        } else {
            item.word(auipc(POINTER, 0));
            item.word(0);
            let patch: fn(Carrier, i32) -> Carrier = |carrier, offset| match carrier {
                // Bit 0 of the target is dropped.
                Carrier::Word(word) => Carrier::Word(word | jalr(0, 0, offset | 1)),
                half => half,
            };
            self.jump_last(item, 4, 8, Carrier::Word(jalr(rd, POINTER, 0)), patch);
        }
    }

    /// Any legal 16-bit encoding but `c.ebreak`.
    fn compressed(&mut self, item: &mut Item) {
        loop {
            let half = self.rng.next_u64() as u16;
            let Ok(inst) = decode(u32::from(half)) else { continue };
            if inst.len != 2 {
                continue;
            }
            match inst.class() {
                Class::IntAlu if inst.dest() == SP => {
                    self.emit(item, inst, Carrier::Half(half));
                    item.word(addi(SP, BASE, SCRATCH_AT - BASE_AT));
                }
                Class::IntAlu if !RESERVED.contains(&inst.dest()) => self.emit(item, inst, Carrier::Half(half)),
                Class::Load | Class::Store if !RESERVED.contains(&inst.dest()) => {
                    if inst.rs1 != SP {
                        item.word(addi(inst.rs1, BASE, self.rng.below(512) as i32 - 256));
                    }
                    item.half(half);
                    self.trace(item, inst);
                }
                Class::Branch | Class::Jump => {
                    let half = with_compressed_offset(half, 0);
                    self.emit(item, decode(u32::from(half)).expect("still a branch"), Carrier::Half(half));
                    let patch: fn(Carrier, i32) -> Carrier = |carrier, offset| match carrier {
                        Carrier::Half(half) => Carrier::Half(with_compressed_offset(half, offset)),
                        word => word,
                    };
                    self.jump_last(item, 2, 2, Carrier::Half(half), patch);
                }
                Class::IndirectJump => {
                    // The target is computed from the pc of the auipc, eight bytes before the jump.
                    let half = half & 0xf07f | u16::from(POINTER) << 7;
                    item.word(auipc(POINTER, 0));
                    item.word(0);
                    item.half(half);
                    let patch: fn(Carrier, i32) -> Carrier = |carrier, offset| match carrier {
                        Carrier::Word(word) => Carrier::Word(word | addi(0, 0, offset)),
                        half => half,
                    };
                    self.jump_last(item, 6, 10, Carrier::Word(addi(POINTER, POINTER, 0)), patch);
                }
                _ => continue,
            }
            return;
        }
    }
}
