//! Places in the program's sources, for documents.

use super::document::{Frame, Place, StorePlace};
use crate::store_log::StoreLog;
use durasim_machine::{SourceFrame, SourceLines};
use durasim_types::Site;

impl From<SourceFrame> for Frame {
    fn from(SourceFrame { function, file, line }: SourceFrame) -> Frame {
        Frame { function, file, line }
    }
}

/// The line of the source that an instruction belongs to; the instruction itself, if that is not known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SourceKey {
    Line(String, u32),
    Instruction(u64),
}

pub(super) fn key(lines: &mut SourceLines, pc: u64) -> SourceKey {
    match lines.frames(pc).swap_remove(0) {
        SourceFrame { file: Some(file), line: Some(line), .. } => SourceKey::Line(file, line),
        _ => SourceKey::Instruction(pc),
    }
}

pub(super) fn place(lines: &mut SourceLines, log: &StoreLog, site: Site) -> Place {
    let mut frames = lines.frames(site.pc).into_iter().map(Frame::from);
    let at = frames.next().unwrap_or_default();
    let inlined_into = frames.collect();
    // A call is before the address to which it returns.
    let calls = log.return_addresses(site).into_iter().map(|return_address| return_address - 1);
    let callers = calls.flat_map(|call| lines.frames(call)).map(Frame::from).collect();
    Place { pc: site.pc, at, inlined_into, callers, thread: site.thread }
}

pub(super) fn store_place(lines: &mut SourceLines, log: &StoreLog, index: usize) -> Option<StorePlace> {
    let (tx, write) = log.store(index)?;
    let offset = log.range.filter(|range| range.contains(write.addr)).map(|range| write.addr.0 - range.base.0);
    Some(StorePlace {
        place: place(lines, log, log.steps[index].site),
        address: write.addr.0,
        data_offset: offset,
        size_bytes: write.len,
        value: format!("{:#x}", if write.len >= 8 { write.data } else { write.data & ((1 << (8 * write.len)) - 1) }),
        tx: tx.map(|tx| tx.0),
    })
}
