//! Decoded code with what the core needs to know of each instruction, found out once.

use crate::branch::BranchKind;
use crate::inst_info::{InstInfo, Kind, LOG_REGISTER_FIRST, NO_REGISTER};
use crate::window::Window;
use durasim_isa::{
    AccessFault, AmoOp, BlockCache, BlockId, Bus, CacheBlockOp, Class, Counter, FenceSet, Inst, LOG_BLOCK_BYTES,
    Marker, Op,
};
use durasim_types::LINE_BYTES;
use std::sync::Arc;

/// Bytes that a load or store moves.
fn bytes(op: Op) -> u8 {
    match op {
        Op::Lb | Op::Lbu | Op::Sb => 1,
        Op::Lh | Op::Lhu | Op::Flh | Op::Sh | Op::Fsh => 2,
        Op::LogLoad => LOG_BLOCK_BYTES as u8,
        Op::Lw | Op::Lwu | Op::Flw | Op::Sw | Op::Fsw => 4,
        _ => 8,
    }
}

fn shape_of(inst: Inst, window: &Window) -> InstInfo {
    let class = inst.class();
    let kind = match class {
        Class::IntAlu
        | Class::IntMul
        | Class::IntDiv
        | Class::FpAdd
        | Class::FpMul
        | Class::FpFused
        | Class::FpDiv
        | Class::FpSqrt => Kind::Plain,
        Class::Load if inst.op != Op::LogLoad => Kind::Load,
        Class::Store if inst.op != Op::CboZero => Kind::Store,
        Class::Branch | Class::Jump | Class::IndirectJump => Kind::Branch,
        _ => Kind::Other,
    };
    let (pool, units, latency_cycles, pipelined) = window.unit(class);
    let dest = if inst.dest() == 0 { NO_REGISTER } else { inst.dest() };
    let (dest, sources) = match inst.op {
        Op::LogLoad => (LOG_REGISTER_FIRST + inst.rd, inst.sources()),
        Op::LogFlush => (dest, [LOG_REGISTER_FIRST + inst.rd, 0, 0]),
        _ => (dest, inst.sources()),
    };
    let is_checked = matches!(class, Class::CheckedLoad | Class::CheckedStore);
    let bytes = if is_checked { inst.checked_bytes() } else { bytes(inst.op) };
    InstInfo { class, kind, pool, pipelined, sources, dest, bytes, units, latency_cycles }
}

/// An instruction with its shape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decoded {
    pub inst: Inst,
    pub shape: InstInfo,
    /// All of it is in the line in which the instruction before it in the block ends.
    pub same_line: bool,
    /// Kind of a control transfer.
    pub branch: BranchKind,
}

/// All decoded instructions with their shapes, in the order in which they were decoded. A clone shares them until one
/// side decodes more.
#[derive(Clone, Default)]
pub(crate) struct Code {
    known: Option<Arc<Vec<Decoded>>>,
    forgotten: bool,
}

impl Code {
    /// Decodes what is not yet decoded of a block, which starts at `pc`.
    #[inline]
    pub fn learn(&mut self, blocks: &BlockCache, block: BlockId, pc: u64, window: &Window) {
        if self.known.as_ref().is_none_or(|known| known.len() < block.range().end) {
            self.learn_more(blocks, block, pc, window);
        }
    }

    #[cold]
    fn learn_more(&mut self, blocks: &BlockCache, block: BlockId, pc: u64, window: &Window) {
        let known = Arc::make_mut(self.known.get_or_insert_default());
        assert_eq!(known.len(), block.range().start, "every block is learnt once it is decoded");
        let (mut pc, mut line) = (pc, None);
        for &inst in blocks.insts(block) {
            let next_pc = pc.wrapping_add(inst.len.into());
            let last_line = next_pc.wrapping_sub(1) / LINE_BYTES;
            let same_line = line == Some(pc / LINE_BYTES) && line == Some(last_line);
            let mut shape = shape_of(inst, window);
            if same_line && shape.kind == Kind::Plain {
                shape.kind = Kind::PlainBehind;
            }
            known.push(Decoded { inst, shape, same_line, branch: BranchKind::of(inst) });
            (pc, line) = (next_pc, Some(last_line));
        }
    }

    /// The instructions of a block that is known.
    #[inline]
    pub fn of(&self, block: BlockId) -> &[Decoded] {
        &self.known.as_ref().expect("the block has been learnt")[block.range()]
    }

    /// Forgets all: the decoded code was forgotten.
    pub fn clear(&mut self) {
        *self = Code { known: None, forgotten: true };
    }

    /// Whether it has been forgotten while it was away; asked once.
    pub fn is_forgotten(&mut self) -> bool {
        std::mem::take(&mut self.forgotten)
    }
}

/// The bus of an instruction that uses none, of a load whose bytes are there, and of a store whose bytes are taken care of
/// by its executor. The compiler sees through it.
#[derive(Default)]
pub(crate) struct Ready {
    /// The value that the load finds, or that the store has stored.
    pub value: u64,
}

const NEVER: &str = "only an instruction of another kind does this";

impl Bus for Ready {
    #[inline(always)]
    fn load(&mut self, _: u64, _: u8) -> Result<u64, AccessFault> {
        Ok(self.value)
    }
    #[inline(always)]
    fn store(&mut self, _: u64, _: u8, value: u64) -> Result<(), AccessFault> {
        self.value = value;
        Ok(())
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
    fn counter(&mut self, _: Counter) -> u64 {
        unreachable!("{NEVER}")
    }
    fn marker(&mut self, _: Marker, _: u64) {
        unreachable!("{NEVER}")
    }
}
