//! A program that tries encodings one by one and reports which of them raise an illegal-instruction signal.
//!
//! It writes each encoding between breakpoints, points all registers at scratch memory and jumps to it. Whatever happens
//! ends in a signal (the breakpoint, if nothing else), whose number the handler notes before it continues with the next.

use super::assemble::*;
use super::elf;
use durasim_types::Rng;

const SIGNALS: [i32; 4] = [4, 5, 7, 11];
const SIGILL: u8 = 4;
const C_EBREAK: u16 = 0x9002;
const SCRATCH_BYTES: u32 = 8192;
const ALTSTACK_BYTES: u32 = 32768;
/// Breakpoints on both sides of the encoding: as far as a branch can jump.
const MARGIN_BYTES: usize = 4096 + 16;

/// 16-bit encodings that can be tried, in order: all whose low bits are not both set, but `c.j`, `c.beqz` and `c.bnez` to
/// themselves, which would never leave.
pub fn compressed() -> impl Iterator<Item = u16> {
    let to_itself = |bits: u16| bits == 0xa001 || matches!(bits & 0xfc7f, 0xc001 | 0xe001);
    (0..=u16::MAX).filter(move |&bits| bits & 3 != 3 && !to_itself(bits))
}

/// Random 32-bit encodings, most of them close to legal ones. ECALL and JAL, which would leave the probe, branches to
/// themselves, which would stay in it, or into their own second half, compare and swap of 16 bytes, Zicbom, Zicboz, Zicsr
/// and the vector loads and stores, some of them accepted by qemu even where it has no vectors, are left out.
pub fn full(seed: u64, count: usize) -> Vec<u32> {
    let mut rng = Rng::new(seed);
    let mut words = Vec::new();
    while words.len() < count {
        let random = rng.next_u64() as u32;
        let mut word = random | 3;
        if rng.below(8) != 0 {
            let opcodes = [
                0x03, 0x07, 0x0f, 0x13, 0x1b, 0x23, 0x27, 0x2f, 0x33, 0x3b, 0x43, 0x47, 0x4b, 0x4f, 0x53, 0x53, 0x63,
                0x67, 0x73,
            ];
            word = word & !0x7f | opcodes[rng.below(opcodes.len() as u64) as usize];
        }
        if rng.below(2) == 0 {
            word = word & !0x01f0_0000 | (rng.below(4) as u32) << 20;
        }
        if rng.below(2) == 0 {
            let funct7 = [0, 1, 0x20, 0x10, 4, 5, 7, 0x14, 0x24, 0x30, 0x34, 0x22][rng.below(12) as usize];
            word = word & 0x01ff_ffff | funct7 << 25;
        }
        if rng.below(8) == 0 {
            word &= !0x000f_8f80;
        }
        let (opcode, funct3) = (word & 0x7f, word >> 12 & 7);
        let to_itself = opcode == 0x63 && word & 0xfe00_0e80 == 0;
        let vector = matches!(opcode, 0x07 | 0x27) && !(1..=4).contains(&funct3);
        let swap_of_16_bytes = opcode == 0x2f && funct3 == 4;
        let left_out = to_itself
            || vector
            || swap_of_16_bytes
            || word == ECALL
            || opcode == 0x6f
            || opcode == 0x73 && funct3 != 0
            || opcode == 0x0f && funct3 == 2;
        if !left_out {
            words.push(word);
        }
    }
    words
}

/// The encodings as the probe stores them: a 16-bit one is followed by a breakpoint.
pub fn padded(bits: u16) -> u32 {
    u32::from(bits) | u32::from(C_EBREAK) << 16
}

/// The executable that tries `encodings` and writes one byte for each: the signal it raised.
pub fn program(encodings: &[u32]) -> Vec<u8> {
    // The code ends with the slot; where it starts depends on its length, so it is laid out twice.
    let draft = code(encodings.len() as u32, 0);
    let data_bytes = 32 + encodings.len() * 4;
    let probe = elf::write(&draft, &vec![0; data_bytes], data_bytes as u64, true);
    let (entry, _) = elf::read(&probe);
    let code = code(encodings.len() as u32, entry as u32);
    assert_eq!(code.len(), draft.len());

    // Data: sigaction (handler, flags, mask), the index, the encodings; then zeros: results, scratch, signal stack.
    let handler = entry + u64::from(JUMP_BYTES);
    let mut data: Vec<u8> = [handler, 0x4800_0000, 0, 0].iter().flat_map(|v| v.to_le_bytes()).collect();
    data.extend(encodings.iter().flat_map(|word| word.to_le_bytes()));
    let zeros = encodings.len() as u32 + 64 + SCRATCH_BYTES + ALTSTACK_BYTES + 64;
    elf::write(&code, &data, data.len() as u64 + u64::from(zeros), true)
}

/// Whether each encoding is legal, from the output of the program.
pub fn legal(output: &[u8]) -> Vec<bool> {
    assert!(output.iter().all(|signal| SIGNALS.contains(&i32::from(*signal))), "an encoding left the probe");
    output.iter().map(|&signal| signal != SIGILL).collect()
}

/// Bytes of the jump over the handler at the start.
const JUMP_BYTES: u32 = 4;

fn code(count: u32, entry: u32) -> Vec<u8> {
    let data = elf::DATA_BASE as u32;
    let (action, index, list) = (data, data + 24, data + 32);
    let results = list + 4 * count;
    let scratch = (results + count).next_multiple_of(64);
    let altstack = scratch + SCRATCH_BYTES;
    let middle = scratch + SCRATCH_BYTES / 2;
    let (t0, t1, t2, s1) = (5, 6, 7, 9);

    // Handler: note the signal (a0) and count on.
    let mut handler = li(t0, index).to_vec();
    handler.push(ld(t1, t0, 0));
    handler.extend(li(t2, results));
    handler.extend([r_type(0x33, 0, 0, t2, t2, t1), s_type(0x23, 0, t2, A0, 0), addi(t1, t1, 1), sd(t1, t0, 0)]);

    // Set-up: the signal stack, described in scratch memory, then the handlers.
    let mut setup = li(t0, middle).to_vec();
    setup.extend(li(t1, altstack));
    setup.extend([sd(t1, t0, 0), sd(0, t0, 8)]);
    setup.extend(li(t1, ALTSTACK_BYTES));
    setup.extend([sd(t1, t0, 16), addi(A0, t0, 0), addi(A1, 0, 0), addi(A7, 0, 132), ECALL]);
    // An encoding that loads sp must not get the address of the signal stack.
    setup.extend([sd(0, t0, 0), sd(0, t0, 16)]);
    for signal in SIGNALS {
        setup.push(addi(A0, 0, signal));
        setup.extend(li(A1, action));
        setup.extend([addi(A2, 0, 0), addi(A3, 0, 8), addi(A7, 0, 134), ECALL]);
    }

    // Loop: fetch the next encoding or finish, write it to the slot, set the registers, jump.
    let mut finish = vec![addi(A0, 0, 1)];
    finish.extend(li(A1, results));
    finish.extend(li(A2, count));
    finish.extend([addi(A7, 0, 64), ECALL, addi(A0, 0, 0), addi(A7, 0, 93), ECALL]);
    let mut head = li(t0, index).to_vec();
    head.push(ld(t1, t0, 0));
    head.extend(li(t2, count));
    head.push(b_type(6, t1, t2, 4 + 4 * finish.len() as i32));
    head.extend(&finish);
    head.push(i_type(0x13, 1, t1, t1, 2));
    head.extend(li(s1, list));
    head.extend([r_type(0x33, 0, 0, s1, s1, t1), i_type(0x03, 2, s1, s1, 0)]);

    let before_slot = 1 + handler.len() + 1 + setup.len() + head.len() + 2 + 2 + 2 + 2 + 30 + 1;
    let slot = entry + 4 * before_slot as u32 + MARGIN_BYTES as u32;
    head.extend(li(t0, slot));
    head.extend([s_type(0x23, 2, t0, s1, 0), FENCE_I, csr(1, 0, 3, 0), addi(0, 0, 0)]);
    head.extend(li(RA, middle));
    head.extend((2..32).map(|register| addi(register, RA, 0)));

    let mut code = vec![jal(0, JUMP_BYTES as i32 + 4 * handler.len() as i32)];
    code.extend(&handler);
    // The handler continues after the set-up.
    code.push(jal(0, 4 + 4 * setup.len() as i32));
    code[0] = jal(0, 4 * code.len() as i32);
    code.extend(&setup);
    code.extend(&head);
    code.push(jal(0, 4 + MARGIN_BYTES as i32));
    assert_eq!(code.len(), before_slot);

    let mut bytes: Vec<u8> = code.into_iter().flat_map(u32::to_le_bytes).collect();
    bytes.extend([C_EBREAK.to_le_bytes(); MARGIN_BYTES + 2].concat());
    bytes
}
