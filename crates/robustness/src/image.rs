//! Contents of persistent memory and of nonvolatile structures as short inputs: records of what is not zero.
//!
//! A record is a kind (one byte: which place), an offset in it (four bytes), a length (two bytes) and the bytes. What does
//! not fit wraps around or is cut, so that any bytes are records.

use crate::bytes::Bytes;
use durasim_contract::{CrashImage, Geometry};
use durasim_types::{LINE_BYTES, Pages, PhysAddr};

/// Kinds from here on are structures, those below are the data area and the regions.
const STRUCTURES: u8 = 128;
/// Bytes that a structure may have.
const STRUCTURE_BYTES_MAX: usize = 1 << 16;

/// A range of persistent memory that records are put into: first byte and size.
pub type Sparse = (PhysAddr, u64);

/// The data area and the regions of a design.
pub(crate) fn places(geometry: &Geometry) -> Vec<Sparse> {
    let data = (geometry.pmem_base, geometry.pmem_data_bytes);
    std::iter::once(data).chain(geometry.regions.iter().map(|region| (region.base, region.size_bytes))).collect()
}

/// Writes the records into an image; `names` are the structures that they may change.
pub(crate) fn put(mut input: Bytes<'_>, places: &[Sparse], names: &[String], image: &mut CrashImage) {
    while !input.is_over() {
        let (kind, offset, len) = (input.byte(), input.number(4), input.number(2) as usize);
        let bytes = input.take(len);
        if kind >= STRUCTURES && !names.is_empty() {
            let name = &names[usize::from(kind - STRUCTURES) % names.len()];
            let structure = image.structures.entry(name.clone()).or_default();
            let at = offset as usize % STRUCTURE_BYTES_MAX;
            let end = (at + bytes.len()).min(STRUCTURE_BYTES_MAX);
            structure.resize(structure.len().max(end), 0);
            structure[at..end].copy_from_slice(&bytes[..end - at]);
        } else {
            let (base, size_bytes) = places[usize::from(kind) % places.len()];
            let at = offset % size_bytes;
            let end = (at + bytes.len() as u64).min(size_bytes);
            image.pmem.write(base.plus(at), &bytes[..(end - at) as usize]);
        }
    }
}

fn record(kind: u8, offset: u64, bytes: &[u8]) -> Vec<u8> {
    let head = [&[kind][..], &(offset as u32).to_le_bytes(), &(bytes.len() as u16).to_le_bytes()].concat();
    [head.as_slice(), bytes].concat()
}

/// The records of the lines in these places that are not all zero, runs of lines in one record.
pub fn records(pmem: &Pages, places: &[Sparse]) -> Vec<u8> {
    const RUN_LINES: u64 = 512;
    let mut written = Vec::new();
    for (kind, &(base, size_bytes)) in (0..).zip(places) {
        let line = |n: u64| pmem.line(base.plus(n * LINE_BYTES).line());
        let mut at = 0;
        while at < size_bytes / LINE_BYTES {
            if !pmem.is_touched(base.plus(at * LINE_BYTES)) || line(at) == [0; LINE_BYTES as usize] {
                at += 1;
                continue;
            }
            let end = (at..size_bytes / LINE_BYTES)
                .find(|&n| n - at == RUN_LINES || line(n) == [0; LINE_BYTES as usize])
                .unwrap_or(size_bytes / LINE_BYTES);
            let bytes: Vec<u8> = (at..end).flat_map(line).collect();
            written.extend(record(kind, at * LINE_BYTES, &bytes));
            at = end;
        }
    }
    written
}

/// The records of the structures of an image, in the order of their names.
pub(crate) fn structure_records(image: &CrashImage) -> Vec<u8> {
    (STRUCTURES..).zip(image.structures.values()).flat_map(|(kind, bytes)| record(kind, 0, bytes)).collect()
}
