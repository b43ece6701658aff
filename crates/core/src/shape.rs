//! What the window needs to know of an instruction, found out once for each decoded one.

use crate::window::Window;
use durasim_isa::{AmoOp, BlockCache, BlockId, Bus, CacheBlockOp, Class, Counter, Fault, FenceSet, Inst, Marker};
use std::sync::Arc;

/// The class of an instruction, its registers and where it is executed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub class: Class,
    /// It computes and does nothing else: no memory, no control transfer, nothing at its commit.
    pub plain: bool,
    /// Pool of functional units.
    pub pool: u8,
    pub pipelined: bool,
    /// Registers read, as unified ids.
    pub sources: [u8; 3],
    /// The register written.
    pub dest: u8,
    /// Cycles from issue to result, without memory.
    pub latency_cycles: u32,
}

impl Shape {
    fn new(inst: Inst, window: &Window) -> Self {
        let class = inst.class();
        let plain = matches!(
            class,
            Class::IntAlu
                | Class::IntMul
                | Class::IntDiv
                | Class::FpAdd
                | Class::FpMul
                | Class::FpFused
                | Class::FpDiv
                | Class::FpSqrt
        );
        let (pool, latency_cycles, pipelined) = window.unit(class);
        Shape { class, plain, pool, pipelined, sources: inst.sources(), dest: inst.dest(), latency_cycles }
    }
}

/// An instruction with its shape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decoded {
    pub inst: Inst,
    pub shape: Shape,
}

/// All decoded instructions with their shapes, in the order in which they were decoded. A clone shares them until one
/// side decodes more.
#[derive(Clone, Default)]
pub(crate) struct Code {
    known: Option<Arc<Vec<Decoded>>>,
    forgotten: bool,
}

impl Code {
    /// Finds out what is not yet known of a block.
    #[inline]
    pub fn learn(&mut self, blocks: &BlockCache, block: BlockId, window: &Window) {
        if self.known.as_ref().is_none_or(|known| known.len() < block.range().end) {
            self.learn_more(blocks, window);
        }
    }

    #[cold]
    fn learn_more(&mut self, blocks: &BlockCache, window: &Window) {
        let known = Arc::make_mut(self.known.get_or_insert_default());
        let more = blocks.decoded_from(known.len()).iter();
        known.extend(more.map(|&inst| Decoded { inst, shape: Shape::new(inst, window) }));
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

/// The bus of an instruction that uses none.
pub(crate) struct NoBus;

const NEVER: &str = "a plain instruction uses no bus";

impl Bus for NoBus {
    fn load(&mut self, _: u64, _: u8) -> Result<u64, Fault> {
        unreachable!("{NEVER}")
    }
    fn store(&mut self, _: u64, _: u8, _: u64) -> Result<(), Fault> {
        unreachable!("{NEVER}")
    }
    fn load_reserved(&mut self, _: u64, _: u8) -> Result<u64, Fault> {
        unreachable!("{NEVER}")
    }
    fn store_conditional(&mut self, _: u64, _: u8, _: u64) -> Result<bool, Fault> {
        unreachable!("{NEVER}")
    }
    fn amo(&mut self, _: u64, _: u8, _: AmoOp, _: u64) -> Result<u64, Fault> {
        unreachable!("{NEVER}")
    }
    fn fence(&mut self, _: FenceSet) {
        unreachable!("{NEVER}")
    }
    fn fence_i(&mut self) {
        unreachable!("{NEVER}")
    }
    fn cache_block(&mut self, _: CacheBlockOp, _: u64) -> Result<(), Fault> {
        unreachable!("{NEVER}")
    }
    fn counter(&mut self, _: Counter) -> u64 {
        unreachable!("{NEVER}")
    }
    fn marker(&mut self, _: Marker, _: u64) {
        unreachable!("{NEVER}")
    }
}
