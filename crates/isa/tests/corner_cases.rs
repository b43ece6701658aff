//! The corners of the instruction set, one instruction at a time.

mod common;

use common::assemble::*;
use common::elf::Segment;
use common::flat::FlatBus;
use durasim_isa::*;

const MEMORY: u64 = 0x1000;

fn bus() -> FlatBus {
    FlatBus::new(vec![Segment { base: MEMORY, bytes: vec![0; 256], writable: true }])
}

/// Executes one encoding at pc 0x100 with the given x registers.
fn step(bits: u32, registers: &[(usize, u64)], bus: &mut FlatBus) -> (Hart, Result<Flow, Stop>) {
    let mut hart = Hart { pc: 0x100, ..Hart::default() };
    registers.iter().for_each(|&(index, value)| hart.x[index] = value);
    let flow = execute(&mut hart, decode(bits).expect("a legal encoding"), bus);
    (hart, flow)
}

/// The value of x3 after an R-type instruction on x1 and x2.
fn alu(opcode: u32, funct3: u32, funct7: u32, a: u64, b: u64) -> u64 {
    step(r_type(opcode, funct3, funct7, 3, 1, 2), &[(1, a), (2, b)], &mut bus()).0.x[3]
}

#[test]
fn division_never_traps() {
    let (min, all_ones) = (i64::MIN as u64, u64::MAX);
    // div, divu, rem, remu by zero.
    assert_eq!([4, 5, 6, 7].map(|f| alu(0x33, f, 1, 42, 0)), [all_ones, all_ones, 42, 42]);
    // The one overflow.
    assert_eq!([4, 6].map(|f| alu(0x33, f, 1, min, all_ones)), [min, 0]);
    // Words: the upper halves of the operands do not matter, results are sign-extended.
    let junk = 0xdead_0000_0000_0000;
    assert_eq!([4, 5, 6, 7].map(|f| alu(0x3b, f, 1, junk | 42, junk)), [all_ones, all_ones, 42, 42]);
    let min_word = junk | 0x8000_0000;
    assert_eq!(alu(0x3b, 4, 1, min_word, all_ones), 0xffff_ffff_8000_0000);
    assert_eq!(alu(0x3b, 6, 1, min_word, all_ones), 0);
    assert_eq!(alu(0x3b, 5, 1, 0xffff_fffe, 1), 0xffff_ffff_ffff_fffe);
    assert_eq!(alu(0x3b, 7, 1, 0x8000_0000, 0), 0xffff_ffff_8000_0000);
}

#[test]
fn high_halves_of_products() {
    let (min, minus_one) = (i64::MIN as u64, u64::MAX);
    assert_eq!(alu(0x33, 1, 1, min, min), 1 << 62);
    assert_eq!(alu(0x33, 1, 1, minus_one, 1), minus_one);
    assert_eq!(alu(0x33, 2, 1, min, minus_one), min);
    assert_eq!(alu(0x33, 3, 1, minus_one, minus_one), minus_one - 1);
}

#[test]
fn shifts_use_the_low_bits_of_their_amount() {
    assert_eq!(alu(0x33, 1, 0, 1, 64 + 3), 8);
    assert_eq!(alu(0x33, 5, 0x20, i64::MIN as u64, 63), u64::MAX);
    assert_eq!(alu(0x3b, 1, 0, 1, 32 + 31), 0xffff_ffff_8000_0000);
    assert_eq!(alu(0x3b, 5, 0, 0xffff_ffff_8000_0000, 0), 0xffff_ffff_8000_0000);
    let shift = |funct3, imm| decode(i_type(0x13, funct3, 3, 1, imm)).map(|inst| (inst.op, inst.imm));
    assert_eq!(shift(1, 63), Ok((Op::Slli, 63)));
    assert_eq!(shift(5, 0x400 | 33), Ok((Op::Srai, 33)));
    assert_eq!(shift(1, 0x400), Err(Illegal));
    assert!(decode(i_type(0x1b, 1, 3, 1, 32)).is_err(), "slliw by 32 is reserved");
}

#[test]
fn x0_stays_zero_and_links_count_the_length() {
    let (hart, flow) = step(jalr(0, 1, 1), &[(1, 0x2000)], &mut bus());
    assert_eq!((hart.x, flow), ([0; 32].map(|x: u64| x).tap_set(1, 0x2000), Ok(Flow::Jump(0x2000))));
    let (hart, _) = step(jalr(1, 1, 0), &[(1, 0x2000)], &mut bus());
    assert_eq!(hart.x[1], 0x104);
    // c.jalr x1
    let (hart, flow) = step(0x9082, &[(1, 0x2001)], &mut bus());
    assert_eq!((hart.x[1], flow), (0x102, Ok(Flow::Jump(0x2000))));
    let (hart, _) = step(addi(0, 0, 5), &[], &mut bus());
    assert_eq!(hart.x[0], 0);
}

trait TapSet {
    fn tap_set(self, index: usize, value: u64) -> Self;
}

impl TapSet for [u64; 32] {
    fn tap_set(mut self, index: usize, value: u64) -> Self {
        self[index] = value;
        self
    }
}

#[test]
fn loads_and_stores_of_any_alignment() {
    let mut bus = bus();
    bus.store(MEMORY + 3, 8, 0x8877_6655_4433_2211).unwrap();
    let mut load = |funct3, at| step(i_type(0x03, funct3, 3, 1, at), &[(1, MEMORY)], &mut bus).0.x[3];
    assert_eq!(load(3, 3), 0x8877_6655_4433_2211);
    assert_eq!(load(2, 7), 0xffff_ffff_8877_6655);
    assert_eq!(load(6, 7), 0x8877_6655);
    assert_eq!(load(1, 9), 0xffff_ffff_ffff_8877);
    assert_eq!(load(4, 10), 0x88);
}

#[test]
fn a_refused_access_changes_nothing() {
    let mut bus = bus();
    let before = Hart { pc: 0x100, ..Hart::default() };
    let (hart, flow) = step(ld(3, 0, 8), &[], &mut bus);
    let fault = AccessFault { addr: 8, access: Access::Read, why: AccessFaultKind::Unmapped };
    assert_eq!((hart, flow), (before.clone(), Err(Stop::AccessFault(fault))));
    assert_eq!(fault.to_string(), "read of unmapped address 0x8");
    let (hart, flow) = step(sd(3, 0, 8), &[], &mut bus);
    assert_eq!((hart, flow), (before, Err(Stop::AccessFault(AccessFault { access: Access::Write, ..fault }))));
}

#[test]
fn reservations() {
    let mut bus = bus();
    let lr_w = r_type(0x2f, 2, 2 << 2, 3, 1, 0);
    let sc_w = r_type(0x2f, 2, 3 << 2, 3, 1, 2);
    let registers = [(1, MEMORY), (2, 0xffff_ffff_8000_0001)];
    assert_eq!(step(sc_w, &registers, &mut bus).0.x[3], 1, "no reservation");
    step(lr_w, &registers, &mut bus).1.unwrap();
    assert_eq!(step(sc_w, &registers, &mut bus).0.x[3], 0);
    assert_eq!(bus.load(MEMORY, 8), Ok(0x8000_0001), "only a word is stored");
    assert_eq!(step(lr_w, &registers, &mut bus).0.x[3], 0xffff_ffff_8000_0001, "words are sign-extended");
    step(sc_w, &registers, &mut bus).1.unwrap();
    assert_eq!(step(sc_w, &registers, &mut bus).0.x[3], 1, "the reservation is used up");
    assert!(decode(r_type(0x2f, 2, 2 << 2, 3, 1, 4)).is_err(), "rs2 of lr is reserved");
}

#[test]
fn atomics_need_alignment() {
    for (funct5, access) in [(2, Access::Read), (3, Access::Write), (0, Access::Write)] {
        for (funct3, addr) in [(2, MEMORY + 2), (3, MEMORY + 4)] {
            let (_, flow) = step(r_type(0x2f, funct3, funct5 << 2, 3, 1, 0), &[(1, addr)], &mut bus());
            assert_eq!(flow, Err(Stop::AccessFault(AccessFault { addr, access, why: AccessFaultKind::Misaligned })));
        }
    }
}

#[test]
fn atomic_operations_of_both_sizes() {
    let (minus_one, two) = (u64::MAX, 2);
    for (op, double, word) in [
        (AmoOp::Swap, two, 2),
        (AmoOp::Add, 1, 1),
        (AmoOp::Xor, !2, 0xffff_fffd),
        (AmoOp::And, 2, 2),
        (AmoOp::Or, minus_one, 0xffff_ffff),
        (AmoOp::Min, minus_one, 0xffff_ffff),
        (AmoOp::Max, two, 2),
        (AmoOp::Minu, two, 2),
        (AmoOp::Maxu, minus_one, 0xffff_ffff),
    ] {
        assert_eq!(op.apply(8, minus_one, two), Some(double), "{op:?}");
        assert_eq!(op.apply(4, minus_one, 0xdead_0000_0000_0002), Some(word), "{op:?}");
    }
}

#[test]
fn counters_are_read_only_and_other_registers_do_not_exist() {
    for (number, value) in [(0xc00, 1000), (0xc01, 2000), (0xc02, 3000)] {
        assert_eq!(step(csr(2, 3, number, 0), &[], &mut bus()).0.x[3], value);
        assert!(decode(csr(1, 3, number, 0)).is_err(), "csrrw writes, whatever it writes");
        assert!(decode(csr(2, 3, number, 1)).is_err());
        assert!(decode(csr(6, 3, number, 1)).is_err());
    }
    for number in [0x000, 0x004, 0x008, 0x300, 0xc03, 0xc80] {
        assert!(decode(csr(2, 3, number, 0)).is_err(), "{number:#x}");
    }
}

#[test]
fn the_views_of_fcsr_agree() {
    let mut hart = Hart { fcsr: 0xff, ..Hart::default() };
    let mut run = |bits| execute(&mut hart, decode(bits).unwrap(), &mut bus()).map(|_| (hart.x[3], hart.fcsr)).unwrap();
    assert_eq!(run(csr(5, 3, 1, 0)), (0x1f, 0xe0));
    assert_eq!(run(csr(5, 3, 2, 9)), (7, 1 << 5));
    assert_eq!(run(csr(6, 3, 3, 0x11)), (0x20, 0x31));
    assert_eq!(run(csr(7, 3, 1, 0x01)), (0x11, 0x30));
}

/// Executes one F or D instruction on f1 and f2 with the given fcsr.
fn float(bits: u32, a: u64, b: u64, fcsr: u32) -> (Hart, Result<Flow, Stop>) {
    let mut hart = Hart { fcsr, ..Hart::default() };
    (hart.f[1], hart.f[2]) = (a, b);
    let flow = execute(&mut hart, decode(bits).expect("a legal encoding"), &mut bus());
    (hart, flow)
}

const BOX: u64 = 0xffff_ffff_0000_0000;
const ONE: u64 = BOX | 0x3f80_0000;
const NAN: u64 = BOX | 0x7fc0_0000;

#[test]
fn a_bad_box_is_a_canonical_nan_except_for_moves_and_stores() {
    let bad = 0x3f80_0000;
    let fadd = r_type(0x53, 0, 0, 3, 1, 2);
    assert_eq!(float(fadd, bad, ONE, 0).0.f[3], NAN);
    assert_eq!(float(fadd, ONE, ONE, 0).0.f[3], BOX | 0x4000_0000);
    assert_eq!(float(r_type(0x53, 0, 0x10, 3, 1, 2), bad, ONE, 0).0.f[3], NAN, "fsgnj.s");
    assert_eq!(float(r_type(0x53, 1, 0x70, 3, 1, 0), bad, 0, 0).0.x[3], 1 << 9, "fclass.s");
    assert_eq!(float(r_type(0x53, 0, 0x70, 3, 1, 0), bad | 1 << 31, 0, 0).0.x[3], 0xffff_ffff_bf80_0000, "fmv.x.w");
    let mut hart = Hart::default();
    (hart.x[1], hart.f[2]) = (MEMORY, 0x1234_5678_9abc_def0);
    let mut bus = bus();
    execute(&mut hart, decode(s_type(0x27, 2, 1, 2, 0)).unwrap(), &mut bus).unwrap();
    assert_eq!(bus.load(MEMORY, 8), Ok(0x9abc_def0), "fsw");
    execute(&mut hart, decode(i_type(0x07, 2, 4, 1, 0)).unwrap(), &mut bus).unwrap();
    assert_eq!(hart.f[4], BOX | 0x9abc_def0, "flw");
}

#[test]
fn minimum_and_maximum_prefer_numbers() {
    let (fmin, fmax) = (r_type(0x53, 0, 0x14, 3, 1, 2), r_type(0x53, 1, 0x14, 3, 1, 2));
    let (zero, minus_zero, signaling) = (BOX, BOX | 0x8000_0000, BOX | 0x7f80_0001);
    let result = |bits, a, b| {
        let (hart, _) = float(bits, a, b, 0);
        (hart.f[3], hart.fcsr)
    };
    assert_eq!(result(fmin, zero, minus_zero), (minus_zero, 0));
    assert_eq!(result(fmax, minus_zero, zero), (zero, 0));
    assert_eq!(result(fmin, NAN, ONE), (ONE, 0));
    assert_eq!(result(fmax, ONE, signaling), (ONE, 0x10));
    assert_eq!(result(fmin, BOX | 0x7fff_ffff, NAN), (NAN, 0));
}

#[test]
fn conversions_saturate() {
    let convert = |funct7, kind, a| {
        let (hart, _) = float(r_type(0x53, 1, funct7, 3, 1, kind), a, 0, 0);
        (hart.x[3], hart.fcsr)
    };
    let infinity = 0x7ff0_0000_0000_0000u64;
    let minus_infinity = infinity | 1 << 63;
    let nan = 0x7ff8_0000_0000_0000;
    for (kind, high, low) in [
        (0, i32::MAX as u64, i32::MIN as u64),
        (1, u64::MAX, 0),
        (2, i64::MAX as u64, i64::MIN as u64),
        (3, u64::MAX, 0),
    ] {
        assert_eq!(convert(0x61, kind, infinity), (high, 0x10));
        assert_eq!(convert(0x61, kind, nan), (high, 0x10));
        assert_eq!(convert(0x61, kind, minus_infinity), (low, 0x10));
    }
    // -0.5 towards zero is 0 and only inexact, unsigned or not.
    assert_eq!(convert(0x61, 1, 0xbfe0_0000_0000_0000), (0, 1));
    // 2^31 as fcvt.wu is a sign-extended word.
    assert_eq!(convert(0x61, 1, 0x41e0_0000_0000_0000), (0xffff_ffff_8000_0000, 0));
}

#[test]
fn reserved_rounding_modes_are_illegal() {
    for mode in [5, 6] {
        assert!(decode(r_type(0x53, mode, 0, 3, 1, 2)).is_err());
        assert!(decode(r_type(0x43, mode, 1, 3, 1, 2)).is_err());
        let dynamic = r_type(0x53, 7, 0, 3, 1, 2);
        let (hart, flow) = float(dynamic, ONE, ONE, mode << 5);
        assert_eq!((hart.f[3], flow), (0, Err(Stop::Illegal)));
        // A static mode does not look at frm.
        assert_eq!(float(r_type(0x53, 0, 0, 3, 1, 2), ONE, ONE, mode << 5).1, Ok(Flow::Next));
    }
}

#[test]
fn rounding_modes_and_flags() {
    let third = |mode| {
        let (hart, _) = float(r_type(0x53, mode, 0x0c, 3, 1, 2), ONE, BOX | 0x4040_0000, 0);
        (hart.f[3] as u32, hart.fcsr)
    };
    assert_eq!(
        [0, 1, 2, 3, 4].map(third),
        [0x3eaa_aaab, 0x3eaa_aaaa, 0x3eaa_aaaa, 0x3eaa_aaab, 0x3eaa_aaab].map(|b| (b, 1))
    );
    let (hart, _) = float(r_type(0x53, 0, 0x0c, 3, 1, 2), ONE, BOX, 0);
    assert_eq!((hart.f[3], hart.fcsr), (BOX | 0x7f80_0000, 8), "division by zero");
    // Infinity times zero plus a quiet NaN is invalid.
    let mut hart = Hart::default();
    (hart.f[1], hart.f[2], hart.f[4]) = (BOX | 0x7f80_0000, BOX, NAN);
    execute(&mut hart, decode(r_type(0x43, 0, 4 << 2, 3, 1, 2)).unwrap(), &mut bus()).unwrap();
    assert_eq!((hart.f[3], hart.fcsr), (NAN, 0x10));
}

#[test]
fn host_arithmetic_gives_what_soft_float_gives() {
    // With the inexact flag up, fadd and its kin may take the host's arithmetic.
    let mut rng = durasim_types::Rng::new(11);
    for _ in 0..200_000 {
        let (double, funct7) = (rng.below(2) == 1, rng.below(4) as u32 * 4);
        let mut operand = || {
            if double { common::operands::double(&mut rng) } else { common::operands::single(&mut rng) }
        };
        let (a, b) = (operand(), operand());
        let bits = r_type(0x53, 0, funct7 | u32::from(double), 3, 1, 2);
        let (slow, fast) = (float(bits, a, b, 0).0, float(bits, a, b, 1).0);
        assert_eq!((slow.f[3], slow.fcsr | 1), (fast.f[3], fast.fcsr), "{bits:#x} {a:#x} {b:#x}");
    }
}

#[test]
fn fused_host_arithmetic_gives_what_soft_float_gives() {
    let mut rng = durasim_types::Rng::new(12);
    for _ in 0..200_000 {
        let double = rng.below(2) == 1;
        let mut operand = || {
            if double { common::operands::double(&mut rng) } else { common::operands::single(&mut rng) }
        };
        let operands = [operand(), operand(), operand()];
        let opcode = [0x43, 0x47, 0x4b, 0x4f][rng.below(4) as usize];
        let bits = r_type(opcode, 0, 4 << 2 | u32::from(double), 3, 1, 2);
        let run = |fcsr: u32| {
            let mut hart = Hart { fcsr, ..Hart::default() };
            (hart.f[1], hart.f[2], hart.f[4]) = operands.into();
            execute(&mut hart, decode(bits).unwrap(), &mut bus()).unwrap();
            (hart.f[3], hart.fcsr | 1)
        };
        assert_eq!(run(0), run(1), "{bits:#x} {operands:#x?}");
    }
}

#[test]
fn threads_do_not_share_rounding_or_flags() {
    let work = |mode: u32| {
        move || {
            for _ in 0..20_000 {
                let (hart, _) = float(r_type(0x53, mode, 0x0c, 3, 1, 2), ONE, BOX | 0x4040_0000, 0);
                assert_eq!(hart.f[3] as u32, if mode == 1 { 0x3eaa_aaaa } else { 0x3eaa_aaab });
                let (hart, _) = float(r_type(0x53, mode, 0, 3, 1, 2), ONE, ONE, 0);
                assert_eq!(hart.fcsr, 0);
            }
        }
    };
    let threads = [0, 1, 3, 1].map(|mode| std::thread::spawn(work(mode)));
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn compressed_expansions() {
    let show = |bits: u16| decode(u32::from(bits)).map(|inst| inst.to_string());
    for (bits, text) in [
        (0x0001, "addi"),
        (0x1141, "addi x2, x2, -16"),
        (0x717d, "addi x2, x2, -16"),
        (0x6105, "addi x2, x2, 32"),
        (0x0808, "addi x10, x2, 16"),
        (0x557d, "addi x10, -1"),
        (0x7579, "lui x10, -8192"),
        (0x852e, "add x10, x11"),
        (0x952e, "add x10, x10, x11"),
        (0x8d0d, "sub x10, x10, x11"),
        (0x8082, "jalr x1"),
        (0x9502, "jalr x1, x10"),
        (0x9002, "ebreak"),
        (0x60a2, "ld x1, x2, 8"),
        (0xe406, "sd x2, x1, 8"),
        (0x2422, "fld f8, x2, 8"),
        (0x157d, "addi x10, x10, -1"),
        (0x9101, "srli x10, x10, 32"),
    ] {
        assert_eq!(show(bits), Ok(text.to_string()), "{bits:#06x}");
    }
    let reserved =
        [0x0000u16, 0x0004, 0x8000, 0x2001, 0x6101, 0x6001, 0x7001 & !0x1000, 0x9c41, 0x9c61, 0x4002, 0x6002, 0x8002];
    for bits in reserved {
        assert_eq!(show(bits), Err(Illegal), "{bits:#06x}");
    }
}

#[test]
fn fences_and_cache_blocks() {
    let mut bus = bus();
    for imm in [0x0ff, 0x031, 0x833, 0x010] {
        step(i_type(0x0f, 0, 0, 0, imm), &[], &mut bus).1.unwrap();
    }
    let set = |pred, succ, tso| FenceSet { pred, succ, tso };
    // The last one is PAUSE and reaches no bus.
    assert_eq!(bus.fences, [set(15, 15, false), set(3, 1, false), set(3, 3, true)]);
    assert_eq!(decode(0x0100_000f).unwrap().op, Op::Pause);
    assert_eq!(decode(i_type(0x0f, 0, 0, 0, 0x0ff)).unwrap().class(), Class::Fence);
    assert!(set(1, 0, false).writes() && !set(1, 0, false).reads());

    for imm in [0, 1, 2] {
        step(i_type(0x0f, 2, 0, 1, imm), &[(1, MEMORY + 13)], &mut bus).1.unwrap();
    }
    let ops = [CacheBlockOp::Inval, CacheBlockOp::Clean, CacheBlockOp::Flush];
    assert_eq!(bus.cache_blocks, ops.map(|op| (op, MEMORY + 13)));
    assert!(decode(i_type(0x0f, 2, 0, 1, 3)).is_err(), "no operation");
    assert!(decode(i_type(0x0f, 2, 3, 1, 1)).is_err(), "rd must be x0");
}

#[test]
fn a_block_is_zeroed_as_a_whole_or_not_at_all() {
    let mut bus = FlatBus::new(vec![Segment { base: MEMORY, bytes: vec![7; 256], writable: true }]);
    step(i_type(0x0f, 2, 0, 1, 4), &[(1, MEMORY + 64 + 63)], &mut bus).1.unwrap();
    assert_eq!(bus.bytes(MEMORY, 256), [[7; 64], [0; 64], [7; 64], [7; 64]].concat());
    bus.segments[0].writable = false;
    let (_, stopped) = step(i_type(0x0f, 2, 0, 1, 4), &[(1, MEMORY)], &mut bus);
    assert!(matches!(stopped, Err(Stop::AccessFault(AccessFault { why: AccessFaultKind::Protected, .. }))));
}

#[test]
fn a_compare_and_swap_reads_its_destination() {
    let swap = |funct3, expected: u64, old: u64| {
        let mut bus = bus();
        bus.store(MEMORY, 8, old).unwrap();
        let inst = r_type(0x2f, funct3, 5 << 2, 3, 1, 2);
        let (hart, flow) = step(inst, &[(1, MEMORY), (2, 0x9_0000_0009), (3, expected)], &mut bus);
        flow.unwrap();
        (hart.x[3], bus.load(MEMORY, 8).unwrap())
    };
    assert_eq!(decode(r_type(0x2f, 3, 5 << 2, 3, 1, 2)).unwrap().sources(), [1, 2, 3]);
    assert_eq!(swap(3, 5, 5), (5, 0x9_0000_0009));
    assert_eq!(swap(3, 6, 5), (5, 5));
    assert_eq!(AmoOp::CompareAndSwap { expected: 6 }.apply(8, 5, 9), None, "no store");
    // Of a word, the low half of the destination counts, and the old value is sign-extended.
    assert_eq!(swap(2, 0x7_8000_0000, 0x1_8000_0000), (0xffff_ffff_8000_0000, 0x1_0000_0009));
    assert!(decode(r_type(0x2f, 4, 5 << 2, 2, 1, 4)).is_err(), "amocas.q");
}

#[test]
fn markers_are_hints() {
    let mut bus = bus();
    let slti = |rd, imm| i_type(0x13, 2, rd, 1, imm);
    for marker in Marker::ALL {
        let inst = decode(slti(0, marker as i32)).unwrap();
        assert_eq!((inst.op, inst.class(), inst.sources(), inst.dest()), (Op::Marker, Class::Marker, [1, 0, 0], 0));
        step(slti(0, marker as i32), &[(1, 77)], &mut bus).1.unwrap();
    }
    assert_eq!(bus.markers, Marker::ALL.map(|marker| (marker, 77)));
    assert_eq!(Marker::from_imm(5), Some(Marker::TxBegin));
    for plain in [slti(0, 0), slti(0, 2047), slti(0, -1), slti(3, 5)] {
        assert_eq!(decode(plain).unwrap().op, Op::Slti);
    }
}

/// Of custom-1 the log operations on existing log registers and hardware transactions (`htm.rs`) are assigned; the rest is
/// illegal. `checked.rs` has custom-0.
#[test]
fn log_operations_are_assigned_in_custom_1() {
    let custom_1 = |imm, rs1, funct3, rd| i_type(encodings::CUSTOM_1, funct3, rd, rs1, imm);
    let reserved = [
        custom_1(0, 10, encodings::LOG_LOAD, 8),
        custom_1(1, 10, encodings::LOG_LOAD, 0),
        custom_1(0, 10, encodings::LOG_FLUSH, 0),
        custom_1(0, 0, encodings::LOG_FLUSH, 31),
        custom_1(0, 1, 2, 0),
        custom_1(0, 0, 3, 0),
        custom_1(0, 0, 7, 0),
    ];
    for bits in reserved {
        assert!(decode(bits).is_err(), "{bits:#010x}");
        assert!(disassemble(bits).contains("custom-1"), "{bits:#010x}");
    }

    let load = custom_1(0, 10, encodings::LOG_LOAD, 7);
    let flush = custom_1(0, 0, encodings::LOG_FLUSH, 7);
    assert_eq!(disassemble(load), "log.load lr7, x10");
    assert_eq!(disassemble(flush), "log.flush lr7");
    let [load, flush] = [load, flush].map(|bits| decode(bits).unwrap());
    assert_eq!((load.sources(), load.dest(), flush.sources(), flush.dest()), ([10, 0, 0], 0, [0, 0, 0], 0));
    // A bus without a log says so.
    for inst in [load, flush] {
        let mut hart = Hart::default();
        hart.x[10] = MEMORY;
        assert_eq!(execute(&mut hart, inst, &mut bus()).unwrap_err(), Stop::NoLogOperations);
    }
}

#[test]
fn calls_and_returns() {
    let hints = |bits| decode(bits).map(|inst| (inst.is_call(), inst.is_return())).unwrap();
    assert_eq!(hints(jal(1, 8)), (true, false));
    assert_eq!(hints(jal(0, 8)), (false, false));
    assert_eq!(hints(jalr(0, 1, 0)), (false, true));
    assert_eq!(hints(jalr(1, 10, 0)), (true, false));
    assert_eq!(hints(jalr(1, 5, 0)), (true, true), "coroutines swap");
    assert_eq!(hints(jalr(1, 1, 0)), (true, false));
    assert_eq!(hints(jalr(0, 10, 0)), (false, false));
}

#[test]
fn registers_have_unified_numbers() {
    let fmadd = decode(r_type(0x43, 0, 4 << 2, 3, 1, 0)).unwrap();
    assert_eq!((fmadd.sources(), fmadd.dest()), ([33, 32, 36], 35));
    let fsd = decode(fsd(2, 1, 0)).unwrap();
    assert_eq!((fsd.sources(), fsd.dest()), ([1, 34, 0], 0));
    let csrrwi = decode(csr(5, 3, 1, 7)).unwrap();
    assert_eq!((csrrwi.sources(), csrrwi.dest()), ([0; 3], 3));
}
