//! Decoded basic blocks by address, so that code is decoded once.

use crate::decode::decode;
use crate::inst::Inst;
use crate::stop::AccessFault;
use crate::stop::Stop;
use durasim_types::PAGE_BYTES;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A block in a [`BlockCache`]. Valid until the next [`BlockCache::clear`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId {
    /// The place of the block among all decoded instructions: one look less than a number that stands for it.
    start: u32,
    len: u32,
}

impl BlockId {
    /// The places of the block's instructions among all decoded ones.
    #[inline]
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.start as usize + self.len as usize
    }
}

const NO_BLOCK: BlockId = BlockId { start: 0, len: 0 };

/// Entries of the direct-mapped table in front of the map; a power of two.
const FRONT_ENTRIES: usize = 4096;
/// An address no instruction can have.
const NO_PC: u64 = 1;

/// Decoded basic blocks. A block starts at the address asked for and ends with a branch, a jump, ECALL, EBREAK or
/// FENCE.I, before an instruction that cannot be fetched or decoded, or where the next instruction would start on
/// another page of 4 KB. Blocks may overlap; none is empty.
///
/// The cache does not watch memory: a caller that changes or maps code calls [`BlockCache::clear`], at the latest
/// when FENCE.I is executed.
///
/// A clone shares what is decoded until either side decodes more or forgets; ids stay valid in both. The cache is no
/// state of the machine and is not saved: decoding again gives the same instructions.
#[derive(Clone)]
pub struct BlockCache {
    front: Arc<Front>,
    decoded: Arc<Decoded>,
    /// The number of times that it has been cleared.
    clears: u64,
}

type Front = [(u64, BlockId); FRONT_ENTRIES];

#[derive(Clone, Default)]
struct Decoded {
    by_pc: BTreeMap<u64, BlockId>,
    insts: Vec<Inst>,
}

impl Default for BlockCache {
    fn default() -> Self {
        BlockCache::new()
    }
}

impl BlockCache {
    /// An empty cache.
    pub fn new() -> Self {
        BlockCache { front: Arc::new([(NO_PC, NO_BLOCK); FRONT_ENTRIES]), decoded: Arc::default(), clears: 0 }
    }

    /// The block that starts at `pc`, decoded now if it was not before. `fetch` reads two bytes of code.
    ///
    /// # Errors
    ///
    /// The stop of the first instruction: the fault of `fetch`, or [`Stop::Illegal`].
    #[inline]
    pub fn get(&mut self, pc: u64, fetch: impl FnMut(u64) -> Result<u16, AccessFault>) -> Result<BlockId, Stop> {
        let (tag, id) = self.front[(pc >> 1) as usize % FRONT_ENTRIES];
        if tag == pc { Ok(id) } else { self.get_slow_path(pc, fetch) }
    }

    #[inline(never)]
    fn get_slow_path(&mut self, pc: u64, fetch: impl FnMut(u64) -> Result<u16, AccessFault>) -> Result<BlockId, Stop> {
        if pc & 1 != 0 {
            return Err(Stop::Illegal);
        }
        let id = match self.decoded.by_pc.get(&pc) {
            Some(&id) => id,
            None => self.decode_block(pc, fetch)?,
        };
        Arc::make_mut(&mut self.front)[(pc >> 1) as usize % FRONT_ENTRIES] = (pc, id);
        Ok(id)
    }

    fn decode_block(
        &mut self,
        pc: u64,
        mut fetch: impl FnMut(u64) -> Result<u16, AccessFault>,
    ) -> Result<BlockId, Stop> {
        let decoded = Arc::make_mut(&mut self.decoded);
        let start = decoded.insts.len();
        let mut at = pc;
        loop {
            match decode_at(at, &mut fetch) {
                Ok(inst) => {
                    decoded.insts.push(inst);
                    at = at.wrapping_add(u64::from(inst.len));
                    if inst.ends_block() || at / PAGE_BYTES != pc / PAGE_BYTES {
                        break;
                    }
                }
                Err(stop) if decoded.insts.len() == start => return Err(stop),
                Err(_) => break,
            }
        }
        let narrow = |index: usize| u32::try_from(index).expect("fewer than 2^32 decoded instructions");
        let id = BlockId { start: narrow(start), len: narrow(decoded.insts.len() - start) };
        decoded.by_pc.insert(pc, id);
        Ok(id)
    }

    /// The instructions of a block; each starts where the one before it ends.
    #[inline]
    pub fn insts(&self, block: BlockId) -> &[Inst] {
        &self.decoded.insts[block.start as usize..][..block.len as usize]
    }

    /// Forgets all blocks; ids handed out before mean nothing afterwards.
    pub fn clear(&mut self) {
        self.clears += 1;
        if let (Some(front), Some(decoded)) = (Arc::get_mut(&mut self.front), Arc::get_mut(&mut self.decoded)) {
            front.fill((NO_PC, NO_BLOCK));
            decoded.by_pc.clear();
            decoded.insts.clear();
        } else {
            *self = BlockCache { clears: self.clears, ..BlockCache::new() };
        }
    }

    /// The number of times that blocks have been forgotten: while it is constant, decoded code is what was first
    /// fetched.
    pub fn clears(&self) -> u64 {
        self.clears
    }
}

fn decode_at(pc: u64, fetch: &mut impl FnMut(u64) -> Result<u16, AccessFault>) -> Result<Inst, Stop> {
    let low = u32::from(fetch(pc)?);
    let bits = if low & 3 == 3 { low | u32::from(fetch(pc.wrapping_add(2))?) << 16 } else { low };
    Ok(decode(bits)?)
}
