//! The instructions of hardware transactions: encodings, texts, and what they ask of the bus.

use durasim_isa::encodings::CUSTOM_1;
use durasim_isa::{
    AccessFault, AmoOp, Bus, CacheBlockOp, Class, Counter, FenceSet, Flow, HTM_STARTED, Hart, HtmOperation, Marker, Op,
    Stop, decode, execute,
};

fn custom_1(funct3: u32, funct7: u32, rd: u8, rs1: u8, rs2: u8) -> u32 {
    CUSTOM_1 | u32::from(rd) << 7 | funct3 << 12 | u32::from(rs1) << 15 | u32::from(rs2) << 20 | funct7 << 25
}

/// A machine that answers each operation with a number, and remembers it.
#[derive(Default)]
struct Machine {
    asked: Vec<HtmOperation>,
    answer: u64,
    refuses: bool,
}

const NEVER: &str = "none of these instructions does this";

impl Bus for Machine {
    fn load(&mut self, _: u64, _: u8) -> Result<u64, AccessFault> {
        unreachable!("{NEVER}")
    }
    fn store(&mut self, _: u64, _: u8, _: u64) -> Result<(), AccessFault> {
        unreachable!("{NEVER}")
    }
    fn load_reserved(&mut self, _: u64, _: u8) -> Result<u64, AccessFault> {
        unreachable!("{NEVER}")
    }
    fn store_conditional(&mut self, _: u64, _: u8, _: u64) -> Result<bool, AccessFault> {
        unreachable!("{NEVER}")
    }
    fn amo(&mut self, _: u64, _: u8, _: AmoOp, _: u64) -> Result<u64, AccessFault> {
        unreachable!("{NEVER}")
    }
    fn fence(&mut self, _: FenceSet) {
        unreachable!("{NEVER}")
    }
    fn fence_i(&mut self) {
        unreachable!("{NEVER}")
    }
    fn cache_block(&mut self, _: CacheBlockOp, _: u64) -> Result<(), AccessFault> {
        unreachable!("{NEVER}")
    }
    fn hardware_transaction(&mut self, operation: HtmOperation) -> Result<u64, Stop> {
        if self.refuses {
            return Err(Stop::NoHardwareTransactions);
        }
        self.asked.push(operation);
        Ok(self.answer)
    }
    fn counter(&mut self, _: Counter) -> u64 {
        unreachable!("{NEVER}")
    }
    fn marker(&mut self, _: Marker, _: u64) {
        unreachable!("{NEVER}")
    }
}

/// All of funct3 = 2: the four operations with their unused fields zero, and nothing else.
#[test]
fn every_encoding_is_decoded_or_refused() {
    for fields in 0..1u32 << 22 {
        let (rd, rs1, rs2, funct7) = (fields & 31, fields >> 5 & 31, fields >> 10 & 31, fields >> 15);
        let bits = custom_1(2, funct7, rd as u8, rs1 as u8, rs2 as u8);
        let expected = match funct7 {
            0 if (rs1, rs2) == (0, 0) => Some((Op::HtmBegin, 0)),
            1 if (rd, rs1, rs2) == (0, 0, 0) => Some((Op::HtmEnd, 0)),
            2 if rd == 0 && rs2 < 8 => Some((Op::HtmAbort, rs2 << 5 | rs1)),
            3 if (rs1, rs2) == (0, 0) => Some((Op::HtmTest, 0)),
            _ => None,
        };
        let decoded = decode(bits).ok().map(|inst| (inst.op, inst.imm as u32));
        assert_eq!(decoded, expected, "{bits:#010x}");
    }
}

#[test]
fn texts_classes_and_registers() {
    let texts = [
        (custom_1(2, 0, 3, 0, 0), "htm.begin x3", 3),
        (custom_1(2, 1, 0, 0, 0), "htm.end", 0),
        (custom_1(2, 2, 0, 31, 7), "htm.abort 255", 0),
        (custom_1(2, 3, 4, 0, 0), "htm.test x4", 4),
    ];
    for (bits, text, dest) in texts {
        let inst = decode(bits).unwrap();
        assert_eq!((inst.to_string().as_str(), inst.class()), (text, Class::HardwareTransaction));
        assert_eq!((inst.sources(), inst.dest(), inst.ends_block()), ([0; 3], dest, false));
    }
}

#[test]
fn the_machine_is_asked_and_answers() {
    let mut machine = Machine { answer: HTM_STARTED, ..Machine::default() };
    let mut hart = Hart::default();
    let run = |bits, hart: &mut Hart, machine: &mut Machine| execute(hart, decode(bits).unwrap(), machine);
    assert_eq!(run(custom_1(2, 0, 3, 0, 0), &mut hart, &mut machine), Ok(Flow::Next));
    assert_eq!(hart.x[3], u64::MAX);
    machine.answer = 1;
    for bits in [custom_1(2, 3, 4, 0, 0), custom_1(2, 1, 0, 0, 0), custom_1(2, 2, 0, 5, 1), custom_1(2, 3, 0, 0, 0)] {
        run(bits, &mut hart, &mut machine).unwrap();
    }
    assert_eq!((hart.x[4], hart.x[0]), (1, 0));
    let asked = [
        HtmOperation::Begin { rd: 3 },
        HtmOperation::Test,
        HtmOperation::End,
        HtmOperation::Abort { code: 37 },
        HtmOperation::Test,
    ];
    assert_eq!(machine.asked, asked);
    let before = hart.clone();
    machine.refuses = true;
    assert_eq!(run(custom_1(2, 0, 3, 0, 0), &mut hart, &mut machine), Err(Stop::NoHardwareTransactions));
    assert_eq!(hart, before);
}
