//! What recovery has found of lines: the newest version of each byte.

use durasim_types::LineAddr;
use std::collections::BTreeMap;

/// Bytes with the numbers of the commits that they are of; 0: no byte.
pub(super) struct Newest {
    pub numbers: [u64; 64],
    pub data: [u8; 64],
}

/// What was found of lines.
pub(super) type Found = BTreeMap<LineAddr, Newest>;

/// What was found of a line, to which more is added.
pub(super) fn newest(found: &mut Found, line: LineAddr) -> &mut Newest {
    found.entry(line).or_insert(Newest { numbers: [0; 64], data: [0; 64] })
}
