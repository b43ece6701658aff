//! Instructions of a program that a persistency model of x86 reads in its own way: flushes, and stores after a hint of poor locality.

use crate::elf::PIE_BASE;
use object::LittleEndian;
use object::elf;
use object::read::elf::{FileHeader, SectionHeader};
use std::collections::BTreeSet;

/// The addresses of such instructions, found in the executable sections of an ELF; none if it has no section table. Those of shared
/// libraries are not known.
#[derive(Clone, Debug, Default)]
pub struct Instructions {
    /// Instructions directly after a hint of Zihintntl.
    hinted: BTreeSet<u64>,
    /// `cbo.flush`.
    flushes: BTreeSet<u64>,
}

impl Instructions {
    /// Reads the code of the executable `data`.
    pub fn of(data: &[u8]) -> Self {
        let mut found = Instructions::default();
        for (address, code) in sections(data).unwrap_or_default() {
            found.add(address, code);
        }
        found
    }

    /// Those of this code, which begins at `address`.
    pub fn of_code(address: u64, code: &[u8]) -> Self {
        let mut found = Instructions::default();
        found.add(address, code);
        found
    }

    /// Whether the memory access at `pc` has a hint of poor temporal locality (`ntl.p1`, `ntl.pall`, `ntl.s1`, `ntl.all`, or their
    /// short forms).
    pub fn is_hinted(&self, pc: u64) -> bool {
        self.hinted.contains(&pc)
    }

    /// Whether the instruction at `pc` is `cbo.flush`.
    pub fn is_flush(&self, pc: u64) -> bool {
        self.flushes.contains(&pc)
    }

    /// The code of a section: its instructions follow each other without gaps.
    fn add(&mut self, address: u64, code: &[u8]) {
        let (mut rest, mut pc, mut is_hinted) = (code, address, false);
        while let [first, second, ..] = rest {
            if is_hinted {
                self.hinted.insert(pc);
            }
            let short = u16::from_le_bytes([*first, *second]);
            let word = match rest {
                [_, _, third, fourth, ..] if short & 3 == 3 => {
                    Some(u32::from_le_bytes([*first, *second, *third, *fourth]))
                }
                _ => None,
            };
            is_hinted = word.map_or(is_short_hint(short), is_hint);
            if word.is_some_and(is_flush) {
                self.flushes.insert(pc);
            }
            let bytes = if word.is_some() { 4 } else { 2 };
            rest = &rest[bytes..];
            pc += bytes as u64;
        }
    }
}

/// `add x0, x0, x2` to `add x0, x0, x5`.
const fn is_hint(word: u32) -> bool {
    matches!(word, 0x0020_0033 | 0x0030_0033 | 0x0040_0033 | 0x0050_0033)
}

/// `c.add x0, x2` to `c.add x0, x5`.
const fn is_short_hint(word: u16) -> bool {
    matches!(word, 0x900a | 0x900e | 0x9012 | 0x9016)
}

/// `cbo.flush` of the address in any register.
const fn is_flush(word: u32) -> bool {
    word & !(0x1f << 15) == 0x0020_200f
}

/// The executable sections by address.
fn sections(data: &[u8]) -> Option<Vec<(u64, &[u8])>> {
    let endian = LittleEndian;
    let header = elf::FileHeader64::<LittleEndian>::parse(data).ok()?;
    let base = if header.e_type(endian) == elf::ET_DYN { PIE_BASE } else { 0 };
    let sections = header.sections(endian, data).ok()?;
    let is_code = |section: &&elf::SectionHeader64<LittleEndian>| section.sh_flags(endian).contains(elf::SHF_EXECINSTR);
    let code = sections
        .iter()
        .filter(is_code)
        .filter_map(|section| Some((base.wrapping_add(section.sh_addr(endian)), section.data(endian, data).ok()?)));
    Some(code.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hinted_accesses_and_flushes_have_their_addresses() {
        let mut code = Vec::new();
        code.extend(0x0050_0033u32.to_le_bytes()); // 0x100: ntl.all
        code.extend(0x00b5_3023u32.to_le_bytes()); // 0x104: sd a1, 0(a0)
        code.extend(0x9016u16.to_le_bytes()); // 0x108: c.ntl.all
        code.extend(0xe10cu16.to_le_bytes()); // 0x10a: c.sd a1, 0(a0)
        code.extend(0x0025_200fu32.to_le_bytes()); // 0x10c: cbo.flush (a0)
        code.extend(0x0015_200fu32.to_le_bytes()); // 0x110: cbo.clean (a0)
        code.extend(0x00b5_3023u32.to_le_bytes()); // 0x114: sd a1, 0(a0)
        let found = Instructions::of_code(0x100, &code);
        assert_eq!(found.hinted, BTreeSet::from([0x104, 0x10a]));
        assert_eq!(found.flushes, BTreeSet::from([0x10c]));
    }

    /// The second half of an instruction is none of its own.
    #[test]
    fn half_an_instruction_is_no_hint() {
        let mut code = Vec::new();
        code.extend(0x9016_0513u32.to_le_bytes()); // addi a0, a2, -1791
        code.extend(0x00b5_3023u32.to_le_bytes());
        let found = Instructions::of_code(0x100, &code);
        assert!(found.hinted.is_empty());
    }

    #[test]
    fn what_is_no_elf_has_none() {
        let found = Instructions::of(b"no ELF");
        assert!(!found.is_hinted(0) && !found.is_flush(0));
    }
}
