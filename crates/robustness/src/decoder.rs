//! Any bytes as instructions: each decodes or is refused, and its description agrees with it.

use crate::marks::reach;
use durasim_isa::{AccessFault, AccessFaultKind, BlockCache, Class, Inst, Op, decode, disassemble};

/// The address of the bytes as code.
const BASE: u64 = 0x1_0000;

/// The instruction decoder, the disassembler, and the blocks of decoded instructions.
///
/// # Panics
/// If a bug is found.
pub fn decoder(data: &[u8]) {
    for bytes in data.chunks(4) {
        let mut word = [0; 4];
        word[..bytes.len()].copy_from_slice(bytes);
        pattern(u32::from_le_bytes(word));
    }
    blocks(data);
}

fn pattern(bits: u32) {
    let decoded = decode(bits);
    let text = disassemble(bits);
    match decoded {
        Ok(inst) => {
            reach("instruction decoded");
            check(bits, &inst);
            assert_eq!(text.split(' ').next(), Some(inst.mnemonic()), "{bits:#010x}");
        }
        Err(_) => {
            reach("instruction refused");
            let refused = text.starts_with("unsupported ") || text.starts_with("reserved ");
            assert!(refused, "{bits:#010x} is illegal and yet called {text}");
        }
    }
    if bits & 3 != 3 {
        assert_eq!(decoded, decode(bits ^ 0xffff_0000), "what stands above a 16-bit encoding matters: {bits:#010x}");
    }
}

fn check(bits: u32, inst: &Inst) {
    let registers = [inst.rd, inst.rs1, inst.rs2, inst.rs3];
    assert!(registers.iter().all(|&register| register < 32), "{bits:#010x}: {inst:?}");
    assert!(inst.dest() < 64 && inst.sources().iter().all(|&id| id < 64), "{bits:#010x}: {inst:?}");
    assert_eq!(inst.len, if bits & 3 == 3 { 4 } else { 2 }, "{bits:#010x}");
    let ends = matches!(
        inst.class(),
        Class::Branch | Class::Jump | Class::IndirectJump | Class::System | Class::FenceI | Class::CheckReturn
    );
    assert_eq!(inst.ends_block(), ends, "{bits:#010x}");
    if matches!(inst.op, Op::Jal | Op::Jalr | Op::CheckReturn) {
        assert!(ends, "{bits:#010x} jumps in the middle of a block");
    }
}

/// From every place where an instruction may start there is a block within the bytes, or a reason why not.
fn blocks(data: &[u8]) {
    let mut cache = BlockCache::new();
    for at in (0..data.len() as u64).step_by(2).take(64) {
        let fetch = |addr: u64| {
            let offset = addr.wrapping_sub(BASE) as usize;
            let half = data.get(offset..).and_then(|rest| rest.first_chunk::<2>());
            let outside = AccessFault { addr, access: durasim_isa::Access::Execute, why: AccessFaultKind::Unmapped };
            half.map(|half| u16::from_le_bytes(*half)).ok_or(outside)
        };
        if let Ok(block) = cache.get(BASE + at, fetch) {
            let insts = cache.insts(block);
            let bytes: u64 = insts.iter().map(|inst| u64::from(inst.len)).sum();
            assert!(!insts.is_empty() && at + bytes <= data.len() as u64, "a block of {bytes} bytes at {at}");
            assert!(insts[..insts.len() - 1].iter().all(|inst| !inst.ends_block()), "a block continues after its end");
        }
    }
}
