//! The smallest program that the loader takes: one system call, and a page to put arguments into.

/// The address of its only instruction, an ECALL.
pub const CALL: u64 = 0x10_0200;
/// The address of its writable page.
pub const DATA: u64 = 0x20_0000;

/// The program as an ELF file: a page of code and a page of data.
pub fn small_program() -> Vec<u8> {
    const EXECUTABLE: u16 = 2;
    const RISCV: u16 = 243;
    const LOAD: u32 = 1;
    let (read_execute, read_write) = (5u32, 6u32);
    let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
    elf.resize(16, 0);
    elf.extend([EXECUTABLE, RISCV].map(u16::to_le_bytes).concat());
    elf.extend(1u32.to_le_bytes());
    // Entry, program headers, section headers.
    elf.extend([CALL, 64, 0].map(u64::to_le_bytes).concat());
    elf.extend(0u32.to_le_bytes());
    elf.extend([64u16, 56, 2, 0, 0, 0].map(u16::to_le_bytes).concat());
    for (flags, vaddr, file_bytes) in [(read_execute, 0x10_0000, 0x204), (read_write, DATA, 0)] {
        elf.extend([LOAD, flags].map(u32::to_le_bytes).concat());
        elf.extend([0u64, vaddr, vaddr, file_bytes, 4096, 4096].map(u64::to_le_bytes).concat());
    }
    elf.resize(0x200, 0);
    elf.extend(0x73u32.to_le_bytes());
    elf
}
