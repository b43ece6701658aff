//! What recovery finds in the log: the words that go home.

use durasim_design::{ActiveFault, CrashImage, RecoveryCut, RecoveryReport};
use durasim_types::PhysAddr;
use std::collections::{BTreeMap, BTreeSet};

/// Words that go home: those bits of the value that count.
pub(super) type Words = BTreeMap<PhysAddr, (u64, u64)>;

/// What the log says.
#[derive(Default)]
pub(super) struct Contents {
    pub words: Words,
    pub report: RecoveryReport,
    /// Where caches survive nothing is redone.
    pub undo_only: bool,
    pub fault: ActiveFault,
}

/// Brings all words home, line by line.
pub(super) fn write_home(words: &Words, image: &mut CrashImage) -> Result<u64, RecoveryCut> {
    let lines: BTreeSet<PhysAddr> = words.keys().map(|addr| addr.line().base()).collect();
    for &line in &lines {
        let mut data = image.line(line);
        for (addr, (mask, word)) in words.range(line..line.plus(64)) {
            let place = &mut data[addr.offset()..addr.offset() + 8];
            let old = u64::from_le_bytes((&*place).try_into().expect("eight bytes"));
            place.copy_from_slice(&(old & !mask | word & mask).to_le_bytes());
        }
        image.write(line, &data)?;
    }
    Ok(lines.len() as u64)
}
