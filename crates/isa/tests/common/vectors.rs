//! Recorded programs with the output qemu gave: `u32 length, bytes` pairs of executable and output, little-endian.

use super::generate::Kind;
use std::path::PathBuf;

/// Programs recorded for each kind.
pub const PROGRAMS: u64 = 8;

pub fn path(kind: Kind) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(format!("{}.bin", kind.name()))
}

pub fn read(kind: Kind) -> Vec<(Vec<u8>, Vec<u8>)> {
    let file = path(kind);
    let bytes = std::fs::read(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let mut rest = &bytes[..];
    let mut take = || {
        let (length, tail) = rest.split_first_chunk::<4>()?;
        let (chunk, tail) = tail.split_at(u32::from_le_bytes(*length) as usize);
        rest = tail;
        Some(chunk.to_vec())
    };
    let mut vectors = Vec::new();
    while let Some(program) = take() {
        vectors.push((program, take().expect("an output for every program")));
    }
    vectors
}

pub fn write(kind: Kind, vectors: &[(Vec<u8>, Vec<u8>)]) -> std::io::Result<()> {
    let mut out = Vec::new();
    for chunk in vectors.iter().flat_map(|(program, output)| [program, output]) {
        out.extend((chunk.len() as u32).to_le_bytes());
        out.extend(chunk);
    }
    std::fs::create_dir_all(path(kind).parent().expect("a folder"))?;
    std::fs::write(path(kind), out)
}

/// Seed and number of the recorded 32-bit encodings.
pub const FULL_ENCODINGS: (u64, usize) = (7, 40_000);

fn legality_path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(format!("legal_{name}.bin"))
}

/// The legal encodings of a list: a bit for each, lowest first.
pub fn read_legality(name: &str) -> Vec<bool> {
    let bytes = std::fs::read(legality_path(name)).expect("a recorded list");
    bytes.iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1 == 1)).collect()
}

pub fn write_legality(name: &str, legal: &[bool]) -> std::io::Result<()> {
    let pack = |bits: &[bool]| bits.iter().enumerate().fold(0u8, |byte, (i, &bit)| byte | u8::from(bit) << i);
    std::fs::write(legality_path(name), legal.chunks(8).map(pack).collect::<Vec<_>>())
}
