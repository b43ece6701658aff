//! Prints how many million instructions per second this crate decodes from its block cache and executes, for a loop of
//! integer arithmetic, loads, stores and branches on memory that costs nothing.
//!
//! `cargo run --release -p durasim-isa --example execution_speed`

#[path = "../tests/common/assemble.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod assemble;

use assemble::*;
use durasim_isa::*;
use std::time::Instant;

const MEMORY_BYTES: usize = 1 << 16;

/// Memory that wraps around; code lies at its start.
struct Memory(Box<[u8; MEMORY_BYTES]>);

impl Memory {
    fn at(&mut self, addr: u64, bytes: u8) -> &mut [u8] {
        let start = (addr as usize).min(MEMORY_BYTES - 8);
        &mut self.0[start..start + usize::from(bytes)]
    }
}

impl Bus for Memory {
    #[inline]
    fn load(&mut self, addr: u64, bytes: u8) -> Result<u64, AccessFault> {
        let start = (addr as usize).min(MEMORY_BYTES - 8);
        let word = u64::from_le_bytes(self.0[start..start + 8].try_into().expect("eight bytes"));
        Ok(word & u64::MAX >> (64 - 8 * u32::from(bytes)))
    }
    #[inline]
    fn store(&mut self, addr: u64, bytes: u8, value: u64) -> Result<(), AccessFault> {
        self.at(addr, bytes).copy_from_slice(&value.to_le_bytes()[..usize::from(bytes)]);
        Ok(())
    }
    fn load_reserved(&mut self, addr: u64, bytes: u8) -> Result<u64, AccessFault> {
        self.load(addr, bytes)
    }
    fn store_conditional(&mut self, addr: u64, bytes: u8, value: u64) -> Result<bool, AccessFault> {
        self.store(addr, bytes, value).map(|()| true)
    }
    fn amo(&mut self, addr: u64, bytes: u8, op: AmoOp, operand: u64) -> Result<u64, AccessFault> {
        let old = self.load(addr, bytes)?;
        op.apply(bytes, old, operand).map_or(Ok(()), |value| self.store(addr, bytes, value)).map(|()| old)
    }
    fn fence(&mut self, _set: FenceSet) {}
    fn fence_i(&mut self) {}
    fn cache_block(&mut self, _op: CacheBlockOp, _addr: u64) -> Result<(), AccessFault> {
        Ok(())
    }
    fn counter(&mut self, _counter: Counter) -> u64 {
        0
    }
    fn marker(&mut self, _marker: Marker, _argument: u64) {}
}

/// Sums and updates an array of 512 doublewords, over and over: x5 counts down, x6 is the cursor.
fn program(float: bool) -> Vec<u32> {
    let (count, cursor, sum, value, hash) = (5, 6, 7, 8, 9);
    let work = if float {
        [
            fld(1, cursor, 0),
            r_type(0x53, 7, 0x01, 2, 2, 1),
            r_type(0x53, 7, 0x09, 3, 2, 1),
            fsd(2, cursor, 0),
            addi(0, 0, 0),
            addi(0, 0, 0),
            addi(0, 0, 0),
        ]
    } else {
        [
            ld(value, cursor, 0),
            r_type(0x33, 0, 0, sum, sum, value),
            i_type(0x13, 1, hash, sum, 7),
            r_type(0x33, 4, 0, hash, hash, value),
            i_type(0x1b, 0, value, hash, 3),
            b_type(1, value, 0, 8),
            addi(value, value, 1),
        ]
    };
    let mut code = vec![lui(cursor, 0x4000), addi(count, 0, 512)];
    code.extend(work);
    code.extend([sd(value, cursor, 0), addi(cursor, cursor, 8), addi(count, count, -1)]);
    code.push(b_type(1, count, 0, -4 * (code.len() as i32 - 2)));
    code.push(jal(0, -4 * code.len() as i32));
    code
}

fn main() {
    for (name, float) in [("integer", false), ("floating point", true)] {
        let mut memory = Memory(vec![0; MEMORY_BYTES].into_boxed_slice().try_into().expect("the right length"));
        for (index, word) in program(float).into_iter().enumerate() {
            memory.0[4 * index..][..4].copy_from_slice(&word.to_le_bytes());
        }
        let (mut hart, mut cache) = (Hart::default(), BlockCache::new());
        let (mut executed, started) = (0u64, Instant::now());
        while executed < 300_000_000 {
            let block = cache.get(hart.pc, |addr| Ok(memory.load(addr, 2)? as u16)).expect("legal code");
            for &inst in cache.insts(block) {
                executed += 1;
                match execute(&mut hart, inst, &mut memory).expect("no faults") {
                    Flow::Jump(target) => hart.pc = target,
                    _ => hart.pc += u64::from(inst.len),
                }
            }
        }
        println!(
            "{name}: {:.0} million instructions per second",
            executed as f64 / started.elapsed().as_secs_f64() / 1e6
        );
    }
}
