//! RV64 with its floating-point registers, as gdb numbers them. gdb refuses a program with hard floating point on a target without.

use durasim_machine::ThreadView;
use gdbstub::arch::{Arch, Registers};

/// Registers in each register file.
const REGISTERS: usize = 32;

/// Registers of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rv64Registers {
    x: [u64; REGISTERS],
    pc: u64,
    f: [u64; REGISTERS],
    /// Control and status of floating point: `frm << 5 | fflags`.
    fcsr: u32,
}

impl From<ThreadView<'_>> for Rv64Registers {
    fn from(ThreadView { hart, .. }: ThreadView<'_>) -> Self {
        Rv64Registers { x: hart.x, pc: hart.pc, f: hart.f, fcsr: hart.fcsr }
    }
}

impl Registers for Rv64Registers {
    type ProgramCounter = u64;

    fn pc(&self) -> u64 {
        self.pc
    }

    fn gdb_serialize(&self, mut write_byte: impl FnMut(Option<u8>)) {
        let words = self.x.iter().chain([&self.pc]).chain(&self.f);
        words.flat_map(|word| word.to_le_bytes()).for_each(|byte| write_byte(Some(byte)));
        for status in [self.fcsr & 31, self.fcsr >> 5 & 7, self.fcsr] {
            status.to_le_bytes().into_iter().for_each(|byte| write_byte(Some(byte)));
        }
    }

    fn gdb_deserialize(&mut self, bytes: &[u8]) -> Result<(), ()> {
        let (words, status) = bytes.split_at_checked(8 * (2 * REGISTERS + 1)).ok_or(())?;
        let mut words = words.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("it has 8 bytes")));
        let mut next = || words.next().ok_or(());
        for register in &mut self.x {
            *register = next()?;
        }
        self.pc = next()?;
        for register in &mut self.f {
            *register = next()?;
        }
        let fcsr = status.get(8..12).ok_or(())?;
        self.fcsr = u32::from_le_bytes(fcsr.try_into().map_err(|_| ())?);
        Ok(())
    }
}

/// The architecture of the guest.
pub(crate) enum Rv64 {}

impl Arch for Rv64 {
    type Usize = u64;
    type Registers = Rv64Registers;
    type BreakpointKind = usize;
    type RegId = ();

    fn target_description_xml() -> Option<&'static str> {
        Some(include_str!("rv64.xml"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_go_to_gdb_and_back() {
        let mut registers = Rv64Registers { pc: 0x1_0000, fcsr: 0b101_00011, ..Rv64Registers::default() };
        (registers.x[31], registers.f[0]) = (7, 0x3ff0_0000_0000_0000);
        let mut bytes = Vec::new();
        registers.gdb_serialize(|byte| bytes.extend(byte));
        assert_eq!(bytes.len(), 65 * 8 + 3 * 4);
        let mut back = Rv64Registers::default();
        back.gdb_deserialize(&bytes).unwrap();
        assert_eq!(back, registers);
        assert!(back.gdb_deserialize(&bytes[..100]).is_err());
    }

    #[test]
    fn the_description_lists_all_registers_in_their_order() {
        let xml = Rv64::target_description_xml().unwrap();
        let names: Vec<&str> =
            xml.split("<reg name=\"").skip(1).map(|rest| rest.split('"').next().unwrap_or_default()).collect();
        assert_eq!(names.len(), 68);
        assert_eq!((names[0], names[2], names[32], names[33], names[67]), ("zero", "sp", "pc", "ft0", "fcsr"));
    }
}
