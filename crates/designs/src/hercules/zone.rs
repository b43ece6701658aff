//! The layout of the in-pmem log zone (section 4.1, Figure 3b): registers saved at a power failure, transaction
//! profiles, eWPQ extension area, emergency area, log entries. Data of log entries and of emergency entries is kept
//! in whole lines, their headers of 16 bytes apart.
//!
//! Profiles and emergency area are shared; everything else is there once for each controller, in blocks that are that
//! controller's own.
//!
//! The log may be extended beyond the zone (section 4.4): the end of each controller's log holds the addresses of chunks
//! of further log entries, which are in a region of their own. The last part of this file is the form of log entries,
//! eWPQ
//! entries and emergency entries (sections 4.1 and 4.2).

use super::spec::{ExtensionLookup, HerculesSpec, LOG_ENTRIES_MAX, LOG_ENTRY_BITS};
use durasim_contract::{Geometry, Interleave, LevelId, SpecError};
use durasim_types::{LineAddr, PhysAddr};

/// The machine runs, or its crash flush did not finish.
pub(super) const RUNNING: u64 = 0;
/// The crash flush finished.
pub(super) const FLUSHED: u64 = 0x4845_5243_464c_5348;
/// Recovery finished.
pub(super) const RECOVERED: u64 = 0x4845_5243_5245_4356;

/// Fewer log entries than this at a controller are refused.
const LOG_ENTRIES_MIN: u64 = 6;

/// A stretch of the zone that lies at one controller: its bytes are in every n-th block. Neither a line nor a
/// record crosses the end of a block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stripe {
    first: PhysAddr,
    block_bytes: u64,
    /// From one block of the controller to its next.
    stride_bytes: u64,
}

impl Stripe {
    /// The byte of that number.
    pub fn at(&self, offset: u64) -> PhysAddr {
        let blocks = offset / self.block_bytes;
        self.first.plus(blocks * self.stride_bytes + offset % self.block_bytes)
    }
}

/// Deals out the region from its first byte on.
pub(super) struct RegionAllocator {
    at: PhysAddr,
    interleave: Interleave,
}

const fn line_up(bytes: u64) -> u64 {
    bytes.next_multiple_of(64)
}

impl RegionAllocator {
    pub fn new(at: PhysAddr, interleave: Interleave) -> Self {
        // One controller has one block, which never ends.
        let block_bytes = if interleave.controllers == 1 { 64 } else { interleave.block_bytes };
        RegionAllocator { at, interleave: Interleave { block_bytes, ..interleave } }
    }

    /// Whole lines that have no other owner.
    pub fn shared(&mut self, bytes: u64) -> PhysAddr {
        let here = self.at;
        self.at = here.plus(line_up(bytes));
        here
    }

    /// This many bytes at each controller.
    pub fn of_each(&mut self, bytes: u64) -> Vec<Stripe> {
        let Interleave { base, controllers, block_bytes } = self.interleave;
        let from_base = (self.at.0 - base.0).next_multiple_of(block_bytes);
        let (first_block, controllers) = (from_base / block_bytes, u64::from(controllers));
        self.at = base.plus(from_base + bytes.div_ceil(block_bytes) * block_bytes * controllers);
        let stripe = |controller: u64| {
            let ahead = (controller + controllers - first_block % controllers) % controllers;
            let first = base.plus(from_base + ahead * block_bytes);
            Stripe { first, block_bytes, stride_bytes: block_bytes * controllers }
        };
        (0..controllers).map(stripe).collect()
    }
}

/// The layout of the zone.
#[derive(Clone, Debug)]
pub(super) struct LogZone {
    pub tx_ids: u64,
    pub emergency_entries: u64,
    registers: PhysAddr,
    profiles: PhysAddr,
    emergency_headers: PhysAddr,
    emergency_data: PhysAddr,
    /// The parts of the controllers.
    pub parts: Vec<PartZone>,
}

/// The layout of the part of one controller.
#[derive(Clone, Debug, Default)]
pub(super) struct PartZone {
    pub ewpq_entries: u64,
    pub extension_entries: u64,
    pub log_entries: u64,
    /// Bits of a TxID and of a home address in an eWPQ entry.
    pub tx_id_bits: u32,
    pub home_bits: u32,
    /// The place of an entry in the extension area.
    pub extension_lookup: ExtensionLookup,
    registers: Stripe,
    ewpq: Stripe,
    extension: Stripe,
    log_headers: Stripe,
    log_data: Stripe,
    /// Log entries of a chunk of the extension.
    pub chunk_entries: u64,
    pub chunk_bytes: u64,
    /// Chunks that the extension has room for.
    pub chunks: u64,
    /// Their place.
    extension_chunks: Option<Stripe>,
    /// Slots of a further block of the eWPQ extension.
    pub block_entries: u64,
    pub block_bytes: u64,
    /// Blocks that there is room for.
    pub blocks: u64,
    /// Their place.
    chained_blocks: Option<Stripe>,
}

/// Pieces of the same size in a region that grows by them: chunks of the log extension, blocks of the eWPQ extension.
struct Pieces {
    bytes: u64,
    /// At each controller.
    number: u64,
    stripes: Vec<Stripe>,
}

impl Pieces {
    /// The pieces of this size that a region has room for; `what` is one of them.
    fn new(region: &str, region_bytes: u64, bytes: u64, what: &str, geometry: &Geometry) -> Result<Self, SpecError> {
        let controllers = u64::from(geometry.controllers);
        let block_bytes = if controllers == 1 { 64 } else { geometry.interleave_bytes };
        let bytes = bytes.next_multiple_of(block_bytes);
        if region_bytes == 0 {
            return Ok(Pieces { bytes, number: 0, stripes: Vec::new() });
        }
        // The first block may have to be one of another controller.
        let number = region_bytes.saturating_sub(block_bytes) / (bytes * controllers);
        if number == 0 {
            let each = if controllers == 1 { "" } else { " at each controller" };
            let problem = format!("{region_bytes} bytes hold no {what}{each}");
            return Err(SpecError::new(format!("{region}_bytes"), problem));
        }
        let stripes = RegionAllocator::new(geometry.region(region).base, geometry.interleave()).of_each(number * bytes);
        Ok(Pieces { bytes, number, stripes })
    }

    /// The chunks of the log extension.
    fn log_chunks(spec: &HerculesSpec, geometry: &Geometry) -> Result<Self, SpecError> {
        let entries = u64::from(spec.log_extension_chunk_entries);
        let what = format!("chunk of {entries} log entries");
        let bytes = line_up(entries * 16) + entries * 64;
        let chunks = Pieces::new("log_extension", spec.log_extension_bytes, bytes, &what, geometry)?;
        // An eWPQ entry can name no more.
        Ok(Pieces { number: chunks.number.min(LOG_ENTRIES_MAX / entries), ..chunks })
    }

    /// The blocks of the eWPQ extension: a line with the pointer to the next one, then slots.
    fn extension_blocks(spec: &HerculesSpec, geometry: &Geometry) -> Result<Self, SpecError> {
        let entries = u64::from(spec.extension_block_entries);
        let what = format!("block of {entries} eWPQ entries");
        let bytes = 64 + line_up(entries * 8);
        Pieces::new("extension_chain", spec.extension_chain_bytes, bytes, &what, geometry)
    }
}

impl LogZone {
    /// Lays the zone out in the region of that name.
    pub fn new(spec: &HerculesSpec, geometry: &Geometry) -> Result<Self, SpecError> {
        let tags = |&level: &LevelId| {
            let shape = geometry.level(level);
            let per_set = u64::from(spec.trans_tags_of_set(level, shape));
            u64::from(shape.sets) * per_set * geometry.instances(level)
        };
        let tx_ids = 1u64 << spec.tx_id_bits;
        let ewpq_entries = u64::from(spec.ewpq_entries);
        let extension_entries = ewpq_entries * u64::from(spec.ewpq_extension_factor);
        // A line that comes from the log with its TransTag is in the L1D while the one that makes way for it leaves.
        let coming = if spec.trans_tag_percent_l1d < 100 { u64::from(geometry.cores) } else { 0 };
        let emergency_entries = geometry.levels().all().iter().map(tags).sum::<u64>() + coming;
        let base = geometry.region("log_zone").base;
        let mut allocator = RegionAllocator::new(base, geometry.interleave());
        let registers = allocator.of_each(64);
        // The entries, then the validity bitmap.
        let ewpq = allocator.of_each((ewpq_entries + ewpq_entries.div_ceil(64)) * 8);
        let profiles = allocator.shared(tx_ids * 4);
        let extension = allocator.of_each(extension_entries * 8);
        let emergency_headers = allocator.shared(emergency_entries * 16);
        let emergency_data = allocator.shared(emergency_entries * 64);
        let fixed_bytes = allocator.at.0 - base.0;
        let controllers = u64::from(geometry.controllers);
        // Headers and data end in blocks of their own at each controller, and begin with one.
        let rounding_bytes = if controllers == 1 { 64 } else { (2 * controllers + 1) * geometry.interleave_bytes };
        let log_entries = spec.log_zone_bytes.saturating_sub(fixed_bytes + rounding_bytes) / (80 * controllers);
        let chunks = Pieces::log_chunks(spec, geometry)?;
        let blocks = Pieces::extension_blocks(spec, geometry)?;
        let index_entries = (chunks.number * 8).div_ceil(64);
        if log_entries < LOG_ENTRIES_MIN + index_entries {
            let each = if controllers == 1 { "" } else { " for each controller" };
            let index = if index_entries == 0 { "" } else { " beside the index of the log extension" };
            let bytes = spec.log_zone_bytes;
            let problem = format!("{bytes} bytes hold fewer than {LOG_ENTRIES_MIN} log entries{each}{index}");
            return Err(SpecError::new("log_zone_bytes", problem));
        }
        let log_headers = allocator.of_each(log_entries * 16);
        let log_data = allocator.of_each(log_entries * 64);
        let part = |n: usize| PartZone {
            ewpq_entries,
            extension_entries,
            // An eWPQ entry can name no more.
            log_entries: (log_entries - 3 - index_entries).min(LOG_ENTRIES_MAX),
            tx_id_bits: spec.tx_id_bits,
            home_bits: spec.ewpq_home_bits,
            extension_lookup: spec.extension_lookup,
            registers: registers[n],
            ewpq: ewpq[n],
            extension: extension[n],
            log_headers: log_headers[n],
            log_data: log_data[n],
            chunk_entries: spec.log_extension_chunk_entries.into(),
            chunk_bytes: chunks.bytes,
            chunks: chunks.number,
            extension_chunks: chunks.stripes.get(n).copied(),
            block_entries: spec.extension_block_entries.into(),
            block_bytes: blocks.bytes,
            blocks: blocks.number,
            chained_blocks: blocks.stripes.get(n).copied(),
        };
        let parts = (0..usize::from(geometry.controllers)).map(part).collect();
        let registers = registers[0].at(0);
        Ok(LogZone { tx_ids, emergency_entries, registers, profiles, emergency_headers, emergency_data, parts })
    }

    /// The word that says in which state the zone was left.
    pub fn flag(&self) -> PhysAddr {
        self.registers
    }

    /// The TxLen of a transaction.
    pub fn tx_len(&self, hardware_id: u64) -> PhysAddr {
        self.profiles.plus(hardware_id % self.tx_ids * 4)
    }

    /// The number of emergency entries saved.
    pub fn emergency_saved(&self) -> PhysAddr {
        self.registers.plus(32)
    }

    /// An emergency entry: header and data.
    pub fn emergency(&self, slot: u64) -> (PhysAddr, PhysAddr) {
        (self.emergency_headers.plus(slot * 16), self.emergency_data.plus(slot * 64))
    }
}

impl PartZone {
    /// LogHead as a power failure saves it.
    pub fn log_head(&self) -> PhysAddr {
        self.registers.at(8)
    }

    /// LogTail as a power failure saves it.
    pub fn log_tail(&self) -> PhysAddr {
        self.registers.at(16)
    }

    /// Words of the eWPQ validity bitmap.
    pub fn validity_words(&self) -> u64 {
        self.ewpq_entries.div_ceil(64)
    }

    /// A word of the eWPQ validity bitmap as a power failure saves it: a bit for each entry.
    pub fn validity(&self, word: u64) -> PhysAddr {
        self.ewpq.at((self.ewpq_entries + word) * 8)
    }

    /// A saved eWPQ entry.
    pub fn ewpq_slot(&self, slot: u64) -> PhysAddr {
        self.ewpq.at(slot * 8)
    }

    /// The pointer to the first further block of the extension area.
    pub fn chain_start(&self) -> PhysAddr {
        self.registers.at(40)
    }

    /// A slot of the extension area, or of the blocks that are chained to it.
    pub fn extension_slot(&self, slot: u64) -> PhysAddr {
        let Some(slot) = slot.checked_sub(self.extension_entries) else { return self.extension.at(slot * 8) };
        let stripe = Stripe { first: self.block(slot / self.block_entries), ..self.extension };
        stripe.at(64 + slot % self.block_entries * 8)
    }

    /// A further block of the extension area.
    ///
    /// # Panics
    /// If there are none.
    pub fn block(&self, block: u64) -> PhysAddr {
        self.chained_blocks.expect("the extension area has blocks").at(block * self.block_bytes)
    }

    /// The data of a log entry.
    pub fn entry_data(&self, log: u64) -> PhysAddr {
        self.log_data.at(log % self.log_entries * 64)
    }

    /// The word of the index of the extension, at the end of the log, with the address of a chunk.
    pub fn index_slot(&self, chunk: u64) -> PhysAddr {
        self.log_data.at(self.log_entries * 64 + chunk * 8)
    }

    /// A chunk of the extension.
    ///
    /// # Panics
    /// If there is no extension.
    pub fn chunk(&self, chunk: u64) -> PhysAddr {
        self.extension_chunks.expect("the log has an extension").at(chunk * self.chunk_bytes)
    }

    /// Whether a chunk of the extension begins here.
    pub fn is_chunk(&self, address: PhysAddr) -> bool {
        (0..self.chunks).any(|chunk| self.chunk(chunk) == address)
    }

    /// Header and data of an entry of the extension, in the chunk that begins at this address.
    pub fn indirect_entry(&self, chunk: PhysAddr, entry: u64) -> (PhysAddr, PhysAddr) {
        let stripe = Stripe { first: chunk, ..self.log_data };
        let entry = entry % self.chunk_entries;
        (stripe.at(entry * 16), stripe.at(line_up(self.chunk_entries * 16) + entry * 64))
    }

    /// The header of a log entry.
    pub fn entry_header_at(&self, log: u64) -> PhysAddr {
        self.log_headers.at(log % self.log_entries * 16)
    }
}

/// A header that is in use has this bit.
const VALID: u64 = 1 << 63;
/// A mapping with this bit names an entry of the log extension (section 4.4: "one more bit to tell the MC if it needs to
/// do indirect references or not"). It stands where section 4.2 has TxState, which recovery reads off the TxLen.
const INDIRECT: u64 = 1 << 63;

const fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

/// An eWPQ entry as persistent memory holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CompactEntry {
    pub hardware_id: u64,
    /// Part of the home address; the rest of it is in the header of the log entry.
    pub partial_home: u64,
    /// The log entry, counted within the log or its extension.
    pub log: u64,
    /// Whether it is one of the log extension.
    pub indirect: bool,
}

/// The header of a log entry or of an emergency entry: home address and transaction.
pub(super) fn entry_header(home: LineAddr, hardware_id: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&home.base().0.to_le_bytes());
    bytes[8..].copy_from_slice(&(hardware_id | VALID).to_le_bytes());
    bytes
}

/// The transaction of an emergency entry, if its header is in use.
pub(super) fn emergency_owner(header: [u64; 2]) -> Option<u64> {
    (header[1] & VALID != 0).then_some(header[1] & !VALID)
}

impl PartZone {
    /// The part of a home address that an eWPQ entry holds.
    pub fn partial_home(&self, home: LineAddr) -> u64 {
        home.0 & mask(self.home_bits)
    }

    /// The compact form of a mapping, as eWPQ and extension area hold it (section 4.2).
    pub fn mapping_record(&self, hardware_id: u64, home: LineAddr, log: u64, indirect: bool) -> [u8; 8] {
        let log = if indirect { INDIRECT | (log + 1) } else { log % self.log_entries + 1 };
        let addresses = (self.partial_home(home) << self.tx_id_bits) | hardware_id;
        ((addresses << LOG_ENTRY_BITS) | log).to_le_bytes()
    }

    /// Reads a compact mapping, if it is in use.
    pub fn mapping_of(&self, record: u64) -> Option<CompactEntry> {
        let addresses = (record & !INDIRECT) >> LOG_ENTRY_BITS;
        Some(CompactEntry {
            hardware_id: addresses & mask(self.tx_id_bits),
            partial_home: addresses >> self.tx_id_bits,
            log: (record & LOG_ENTRIES_MAX).checked_sub(1)?,
            indirect: record & INDIRECT != 0,
        })
    }
}

/// Whether the header of a log entry says that it is of this transaction.
pub(super) fn is_entry_of(header: [u64; 2], hardware_id: u64) -> bool {
    header[1] == hardware_id | VALID
}

#[cfg(test)]
mod tests {
    use super::super::{Hercules, HerculesSpec};
    use super::*;
    use crate::testing::geometry_of;
    use std::collections::BTreeSet;

    /// All lines of the zone by owner: `None` for what controllers share.
    fn lines(zone: &LogZone) -> Vec<(Option<u16>, PhysAddr)> {
        let shared = (0..zone.tx_ids).step_by(16).map(|id| zone.tx_len(id));
        let emergency = (0..zone.emergency_entries).map(|slot| zone.emergency(slot).1);
        let headers = (0..zone.emergency_entries).step_by(4).map(|slot| zone.emergency(slot).0);
        let mut lines: Vec<_> = shared.chain(emergency).chain(headers).map(|at| (None, at)).collect();
        for (controller, part) in (0..).zip(&zone.parts) {
            let mut of_it = vec![part.log_head(), part.log_tail()];
            of_it.extend((0..part.ewpq_entries).map(|slot| part.ewpq_slot(slot)));
            of_it.extend((0..part.validity_words()).map(|word| part.validity(word)));
            of_it.dedup_by_key(|at| at.line());
            of_it.extend((0..part.extension_entries).step_by(8).map(|slot| part.extension_slot(slot)));
            of_it.extend((0..part.log_entries).step_by(4).map(|log| part.entry_header_at(log)));
            of_it.extend((0..part.log_entries).map(|log| part.entry_data(log)));
            of_it.extend((0..part.chunks).step_by(8).map(|chunk| part.index_slot(chunk)));
            lines.extend(of_it.into_iter().map(|at| (Some(controller), at)));
        }
        lines
    }

    #[test]
    fn parts_lie_at_their_controllers() {
        for controllers in 1..=8 {
            for interleave_bytes in [64, 256, 4096] {
                let spec =
                    HerculesSpec { tx_id_bits: 4, ewpq_entries: 20, log_zone_bytes: 1 << 20, ..Default::default() };
                let spec = HerculesSpec { log_extension_bytes: 100_000, log_extension_chunk_entries: 9, ..spec };
                let mut geometry = geometry_of::<Hercules>(&spec, 2, controllers);
                geometry.interleave_bytes = interleave_bytes;
                let zone = LogZone::new(&spec, &geometry).unwrap();
                let region = geometry.region("log_zone");
                let mut taken = BTreeSet::new();
                for (owner, at) in lines(&zone) {
                    assert!(at >= region.base && at.0 + 64 <= region.base.0 + region.size_bytes, "{at} is outside");
                    assert!(owner.is_none_or(|owner| owner == geometry.controller_of(at.line())), "{at} of {owner:?}");
                    assert!(taken.insert(at.line()), "{at} is used twice");
                }
                assert_eq!(geometry.controller_of(zone.flag().line()), 0);
                assert!(controllers > 1 || zone.flag() == region.base);
                let region = geometry.region("log_extension");
                let mut taken = BTreeSet::new();
                for (controller, part) in (0..).zip(&zone.parts) {
                    for entry in 0..part.chunks * part.chunk_entries {
                        let (header, data) = part.indirect_entry(part.chunk(entry / part.chunk_entries), entry);
                        for (at, bytes) in [(header, 16), (data, 64)] {
                            assert!(at >= region.base && at.0 + bytes <= region.base.0 + region.size_bytes);
                            assert_eq!(geometry.controller_of(at.line()), controller);
                            assert!((0..bytes).step_by(16).all(|n| taken.insert(at.plus(n))), "{at} is used twice");
                        }
                    }
                }
                // Neither records nor headers cross a line.
                let part = &zone.parts[0];
                for n in 0..part.extension_entries {
                    assert_eq!(part.extension_slot(n).offset() as u64, n % 8 * 8);
                    assert_eq!(part.entry_header_at(n).offset() as u64, n % part.log_entries % 4 * 16);
                }
            }
        }
    }

    #[test]
    fn a_zone_without_room_for_every_controller_is_refused() {
        let spec = HerculesSpec { tx_id_bits: 4, ewpq_entries: 2, log_zone_bytes: 13_000, ..Default::default() };
        let refusal = LogZone::new(&spec, &geometry_of::<Hercules>(&spec, 1, 1)).unwrap_err();
        assert!(refusal.problem.ends_with("log entries beside the index of the log extension"), "{}", refusal.problem);
        let small = HerculesSpec { log_extension_bytes: 50_000, ..spec.clone() };
        let refusal = LogZone::new(&small, &geometry_of::<Hercules>(&small, 1, 1)).unwrap_err();
        assert_eq!(refusal.field, "log_extension_bytes");
        assert!(refusal.problem.ends_with("hold no chunk of 1024 log entries"), "{}", refusal.problem);
        let spec = HerculesSpec { log_extension_bytes: 0, ..spec };
        assert!(LogZone::new(&spec, &geometry_of::<Hercules>(&spec, 1, 1)).is_ok());
        let refusal = LogZone::new(&spec, &geometry_of::<Hercules>(&spec, 1, 8)).unwrap_err();
        assert_eq!(refusal.field, "log_zone_bytes");
        assert!(refusal.problem.contains("for each controller"), "{}", refusal.problem);
    }
}
