//! The state of Kiln that survives a power failure beside persistent memory: uncommitted lines of the last level with
//! their TxIDs, and the committing registers.

use durasim_contract::CrashImage;
use durasim_types::{LINE_BYTES, Line, LineAddr, TxId};

/// The uncommitted lines of the last level.
pub(super) const LINES: &str = "kiln.uncommitted_lines";
/// The committing registers, core by core; 0 is none.
pub(super) const REGISTERS: &str = "kiln.committing";
/// Bytes of a line with its address and TxID.
const LINE_RECORD_BYTES: usize = 16 + LINE_BYTES as usize;

/// An uncommitted line.
pub(super) struct Survivor {
    pub line: LineAddr,
    pub tx: TxId,
    pub data: Line,
}

/// Lines as bytes.
pub(super) fn save_lines(lines: &[Survivor]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(lines.len() * LINE_RECORD_BYTES);
    for survivor in lines {
        bytes.extend(survivor.line.0.to_le_bytes());
        bytes.extend(survivor.tx.0.to_le_bytes());
        bytes.extend(survivor.data);
    }
    bytes
}

/// The lines of an image; `None` if they are no lines.
pub(super) fn load_lines(image: &CrashImage) -> Option<Vec<Survivor>> {
    let (records, rest) = image.structure(LINES).unwrap_or(&[]).as_chunks::<LINE_RECORD_BYTES>();
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let survivor = |record: &[u8; LINE_RECORD_BYTES]| Survivor {
        line: LineAddr(word(&record[..8])),
        tx: TxId(word(&record[8..16])),
        data: record[16..].try_into().expect("a line"),
    };
    rest.is_empty().then(|| records.iter().map(survivor).collect())
}

/// Registers as bytes.
pub(super) fn save_registers(registers: &[Option<TxId>]) -> Vec<u8> {
    registers.iter().flat_map(|tx| tx.map_or(0, |tx| tx.0).to_le_bytes()).collect()
}

/// The transactions that the registers of an image name; `None` if the number of registers differs.
pub(super) fn load_registers(image: &CrashImage, cores: u16) -> Option<Vec<TxId>> {
    let bytes = image.structure(REGISTERS).unwrap_or(&[]);
    let (words, rest) = bytes.as_chunks::<8>();
    let sound = rest.is_empty() && (words.is_empty() || words.len() == usize::from(cores));
    sound.then(|| words.iter().map(|word| TxId(u64::from_le_bytes(*word))).filter(|tx| tx.0 != 0).collect())
}
