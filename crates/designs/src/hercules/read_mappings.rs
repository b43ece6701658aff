//! The first step of recovery: what eWPQ and extension area of a controller say of the log (section 4.3).

use super::record::CompactEntry;
use super::zone::PartZone;
use durasim_design::{ActiveFault, CrashImage};
use durasim_types::PhysAddr;

/// A register or a count that was saved cannot be.
pub(super) const TOO_MANY: &str = "its counters name more entries than fit";

/// What was found.
#[derive(Default)]
pub(super) struct Mappings {
    pub all: Vec<CompactEntry>,
    /// LogTail and LogHead.
    window: (u64, u64),
    /// Slots of the extension area in use, which recovery clears at its end.
    pub extension_slots: Vec<PhysAddr>,
    /// Blocks that are chained to it.
    pub chained_blocks: u64,
}

impl Mappings {
    /// Whether LogTail and LogHead frame this log entry. Outside there is nothing in use, but for what garbage
    /// collection had just appended at LogHead: that belongs to an uncommitted transaction (section 4.4).
    fn frame(&self, log: u64, part: &PartZone) -> bool {
        let (tail, head) = self.window;
        log < part.log_entries && (log + part.log_entries - tail % part.log_entries) % part.log_entries < head - tail
    }
}

impl CompactEntry {
    /// Header and data of the log entry that it names, if there is one: in the window of the log, or by way of the index
    /// in a chunk of the extension.
    pub fn entry(&self, mappings: &Mappings, part: &PartZone, image: &CrashImage) -> Option<(PhysAddr, PhysAddr)> {
        if !self.indirect {
            let framed = mappings.frame(self.log, part);
            return framed.then(|| (part.entry_header_at(self.log), part.entry_data(self.log)));
        }
        let chunk = self.log / part.chunk_entries;
        if chunk >= part.chunks {
            return None;
        }
        let address = PhysAddr(image.read_u64(part.index_slot(chunk)));
        part.is_chunk(address).then(|| part.indirect_entry(address, self.log))
    }
}

/// Reads the mappings of a controller: those of the eWPQ first. What contradicts itself is a loss.
pub(super) fn read_mappings(part: &PartZone, image: &CrashImage, fault: ActiveFault) -> Result<Mappings, &'static str> {
    let validity: Vec<u64> = (0..part.validity_words()).map(|word| image.read_u64(part.validity(word))).collect();
    let is_valid = |slot: u64| (validity[(slot / 64) as usize] >> (slot % 64)) & 1 == 1;
    let beyond = (part.ewpq_entries..part.validity_words() * 64).any(is_valid);
    let (tail, head) = (image.read_u64(part.log_tail()), image.read_u64(part.log_head()));
    if beyond || tail > head || head - tail > part.log_entries {
        return Err(TOO_MANY);
    }
    let Some(chained_blocks) = part.saved_chain(image) else {
        return Err("the chain of its eWPQ extension points outside of the extension area");
    };
    let mapping = |at: PhysAddr| part.mapping_of(image.read_u64(at));
    let mut mappings = Mappings { window: (tail, head), chained_blocks, ..Mappings::default() };
    for slot in (0..part.ewpq_entries).filter(|slot| is_valid(*slot)) {
        mappings.all.push(mapping(part.ewpq_slot(slot)).ok_or("a valid entry of its eWPQ names no log entry")?);
    }
    for slot in 0..part.slots_to_read(chained_blocks, fault) {
        let at = part.extension_slot(slot);
        if let Some(found) = mapping(at) {
            mappings.all.push(found);
            mappings.extension_slots.push(at);
        }
    }
    Ok(mappings)
}
