//! The cache of decoded blocks.

mod common;

use common::assemble::*;
use durasim_isa::*;
use durasim_types::CheckRegisters;
use std::collections::BTreeMap;

/// Code by address, and how often each halfword was fetched.
struct Code {
    halves: BTreeMap<u64, u16>,
    fetches: u32,
}

impl Code {
    fn new(base: u64, words: &[u32]) -> Self {
        let halves = words.iter().enumerate().flat_map(|(i, &word)| {
            let at = base + 4 * i as u64;
            [(at, word as u16), (at + 2, (word >> 16) as u16)]
        });
        Code { halves: halves.collect(), fetches: 0 }
    }

    fn fetch(&mut self, addr: u64) -> Result<u16, AccessFault> {
        self.fetches += 1;
        let unmapped = AccessFault { addr, access: Access::Execute, why: AccessFaultKind::Unmapped };
        self.halves.get(&addr).copied().ok_or(unmapped)
    }
}

fn length(cache: &mut BlockCache, code: &mut Code, pc: u64) -> Result<usize, Stop> {
    let block = cache.get(pc, |addr| code.fetch(addr))?;
    Ok(cache.insts(block).len())
}

#[test]
fn blocks_end_where_control_may_leave() {
    let nop = addi(0, 0, 0);
    for last in [b_type(0, 0, 0, 8), jal(0, 8), jalr(0, 1, 0), ECALL, 0x0010_0073, FENCE_I] {
        let (mut cache, mut code) = (BlockCache::new(), Code::new(0, &[nop, nop, last, nop]));
        assert_eq!(length(&mut cache, &mut code, 0), Ok(3), "{}", disassemble(last));
    }
}

#[test]
fn only_the_illegal_instruction_itself_stops() {
    let nop = addi(0, 0, 0);
    let (mut cache, mut code) = (BlockCache::new(), Code::new(0, &[nop, nop, 0]));
    assert_eq!(length(&mut cache, &mut code, 0), Ok(2));
    assert_eq!(length(&mut cache, &mut code, 8), Err(Stop::Illegal));
    let fault =
        |addr| Err(Stop::AccessFault(AccessFault { addr, access: Access::Execute, why: AccessFaultKind::Unmapped }));
    assert_eq!(length(&mut cache, &mut code, 0x40), fault(0x40));
    // Half of an instruction lies on an unmapped page.
    code.halves.insert(0x80, 0x0013);
    assert_eq!(length(&mut cache, &mut code, 0x80), fault(0x82));
}

#[test]
fn blocks_end_with_their_page() {
    let nop = addi(0, 0, 0);
    let (mut cache, mut code) = (BlockCache::new(), Code::new(0xff2, &[nop; 16]));
    // Three instructions fit, the fourth starts on the page and ends on the next.
    assert_eq!(length(&mut cache, &mut code, 0xff2), Ok(4));
}

#[test]
fn code_is_decoded_once_until_cleared() {
    let nop = addi(0, 0, 0);
    let (mut cache, mut code) = (BlockCache::new(), Code::new(0, &[nop, jal(0, -4)]));
    // The second address falls into the same entry of the front table.
    for (at, half) in code.halves.clone() {
        code.halves.insert(at + 8192, half);
    }
    for _ in 0..3 {
        assert_eq!(length(&mut cache, &mut code, 0), Ok(2));
        assert_eq!(length(&mut cache, &mut code, 8192), Ok(2));
    }
    assert_eq!(code.fetches, 8);
    code.halves.insert(0, 0x9002);
    cache.clear();
    assert_eq!(length(&mut cache, &mut code, 0), Ok(1));
}

#[test]
fn clones_keep_their_blocks_and_are_independent() {
    let nop = addi(0, 0, 0);
    let (mut cache, mut code) = (BlockCache::new(), Code::new(0, &[nop, ECALL, nop, nop, ECALL]));
    let first = cache.get(0, |addr| code.fetch(addr)).unwrap();
    let mut clone = cache.clone();
    let fetched = code.fetches;
    assert_eq!(length(&mut clone, &mut code, 0), Ok(2));
    assert_eq!(code.fetches, fetched, "a clone does not decode again");
    cache.clear();
    let mut other = Code::new(0, &[ECALL]);
    assert_eq!(length(&mut cache, &mut other, 0), Ok(1));
    assert_eq!(clone.insts(first).len(), 2, "ids of before mean the same in a clone");
    assert_eq!(length(&mut clone, &mut code, 8), Ok(3));
    assert_eq!(
        length(&mut cache, &mut other, 8),
        Err(Stop::AccessFault(AccessFault { addr: 8, access: Access::Execute, why: AccessFaultKind::Unmapped }))
    );
}

#[test]
fn registers_come_back_as_they_were() {
    let mut hart = Hart { pc: 0x1_0000, fcsr: 0xe3, ..Hart::default() };
    for n in 1..32 {
        hart.x[n] = u64::MAX / n as u64;
        hart.f[n] = !(n as u64) << 32;
    }
    hart.checks = Some(Box::new(CheckRegisters(std::array::from_fn(|n| u64::MAX / (n as u64 + 1)))));
    let bytes = postcard::to_stdvec(&hart).unwrap();
    assert_eq!(postcard::from_bytes::<Hart>(&bytes).unwrap(), hart);
}
