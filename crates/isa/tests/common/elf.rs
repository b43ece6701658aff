//! The smallest static ELF64 executables: headers, data, code. A segment's file offset and address must agree modulo the
//! page size; with the data right after the headers its address is the same in every program.

const EHDR_BYTES: u64 = 64;
const PHDR_BYTES: u64 = 56;
const HEADER_BYTES: u64 = EHDR_BYTES + 2 * PHDR_BYTES;
const PAGE_BYTES: u64 = 4096;

const CODE_PAGE: u64 = 0x1_0000;
/// Address of the first byte of data.
pub const DATA_BASE: u64 = 0x8_0000 + HEADER_BYTES;

/// An executable that starts with the first byte of `code`. Its data is `data` and then zeros, `data_mem_bytes` in all;
/// the code may be written to if `self_modifying`.
pub fn write(code: &[u8], data: &[u8], data_mem_bytes: u64, self_modifying: bool) -> Vec<u8> {
    let code_offset = HEADER_BYTES + data.len() as u64;
    assert!(code_offset.is_multiple_of(4) && data_mem_bytes >= data.len() as u64);
    let code_base = CODE_PAGE + code_offset % PAGE_BYTES;
    assert!(code_base + (code.len() as u64) < 0x8_0000);

    let mut out = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0];
    out.resize(16, 0);
    // ET_EXEC, EM_RISCV, version.
    out.extend([2, 0, 243, 0, 1, 0, 0, 0]);
    put(&mut out, &[code_base, EHDR_BYTES, 0]);
    // Flags: compressed code, double-precision ABI; then sizes and counts of headers, no sections.
    out.extend([5, 0, 0, 0, EHDR_BYTES as u8, 0, PHDR_BYTES as u8, 0, 2, 0, 0, 0, 0, 0, 0, 0]);

    let code_bytes = code.len() as u64;
    // PT_LOAD with flags R = 4, W = 2, X = 1.
    out.extend([1, 0, 0, 0, if self_modifying { 7 } else { 5 }, 0, 0, 0]);
    put(&mut out, &[code_offset, code_base, code_base, code_bytes, code_bytes, PAGE_BYTES]);
    out.extend([1, 0, 0, 0, 6, 0, 0, 0]);
    put(&mut out, &[HEADER_BYTES, DATA_BASE, DATA_BASE, data.len() as u64, data_mem_bytes, PAGE_BYTES]);
    assert_eq!(out.len() as u64, HEADER_BYTES);
    out.extend(data);
    out.extend(code);
    out
}

fn put(out: &mut Vec<u8>, values: &[u64]) {
    values.iter().for_each(|value| out.extend(value.to_le_bytes()));
}

/// A loaded segment.
pub struct Segment {
    pub base: u64,
    pub bytes: Vec<u8>,
    pub writable: bool,
}

/// The entry point and the segments of an executable that [`write`] made.
pub fn read(elf: &[u8]) -> (u64, Vec<Segment>) {
    let double = |at: usize| u64::from_le_bytes(elf[at..at + 8].try_into().unwrap());
    let segments = (0..2).map(|index| {
        let header = (EHDR_BYTES + index * PHDR_BYTES) as usize;
        let (offset, base) = (double(header + 8) as usize, double(header + 16));
        let (file_bytes, mem_bytes) = (double(header + 32) as usize, double(header + 40) as usize);
        let mut bytes = elf[offset..offset + file_bytes].to_vec();
        bytes.resize(mem_bytes, 0);
        Segment { base, bytes, writable: elf[header + 4] & 2 != 0 }
    });
    (double(24), segments.collect())
}
