//! Power failure and recovery: the flush of section 4.2, "flush on a power-off", then section 4.3.
//!
//! Recovery: transactions with a TxLen of zero are discarded, those with another one are carried
//! through from the log and from the emergency area.
//!
//! Everything that leads to a decision stays in place until all homes are written; then TxLens are cleared, then the
//! extension area, then the zone is marked recovered. Interrupted anywhere and run again, it leads to the same image.

use super::planted;
use super::state::{Part, State};
use super::zone::{
    CompactEntry, FLUSHED, LogZone, PartZone, RECOVERED, RUNNING, emergency_owner, entry_header, is_entry_of,
};
use durasim_contract::{
    ActiveFault, BudgetSpent, CrashImage, CrashSink, CrashView, Geometry, RecoveryCut, RecoveryReport,
};
use durasim_types::{Line, LineAddr, PhysAddr, TxId};
use std::collections::{BTreeMap, BTreeSet};

impl State {
    /// Section 4.2, "flush on a power-off": LogHead, LogTail and eWPQ, then the caches, LLC first; lines of open transactions
    /// go to the emergency area.
    pub(super) fn flush_on_power_off(&self, view: &CrashView<'_>, sink: &mut CrashSink<'_>) -> Result<(), BudgetSpent> {
        sink.write(self.zone.flag(), &RUNNING.to_le_bytes())?;
        for part in &self.contents.parts {
            part.save_registers(sink, self.fault)?;
        }
        let mut saved = 0;
        // LLC first, so that the newest version of a line comes last.
        let lines = view.lines.len();
        let lines = self.fault.swaps(planted::FLUSH_DROPS_LINE, lines, lines.saturating_sub(1));
        for nth in 0..lines {
            let line = &view.lines[self.fault.swaps(planted::FLUSH_ORDER_REVERSED, nth, lines - 1 - nth)];
            if let Some(open) = self.contents.registers.get(TxId(line.tag.0)).filter(|_| line.tag.is_some()) {
                let id = open.hardware_id;
                self.zone.save_emergency(sink, saved, line.line, id, &line.data)?;
                saved += 1;
            } else if line.dirty {
                sink.write(line.line.base(), &line.data)?;
            }
        }
        let count = self.fault.swaps(planted::EMERGENCY_ONE_SHORT, saved, saved.saturating_sub(1));
        sink.write(self.zone.emergency_saved(), &count.to_le_bytes())?;
        sink.write(self.zone.flag(), &FLUSHED.to_le_bytes())
    }
}

impl Part {
    /// LogHead, LogTail and eWPQ of a controller, with its validity bitmap.
    fn save_registers(&self, sink: &mut CrashSink<'_>, fault: ActiveFault) -> Result<(), BudgetSpent> {
        sink.write(self.zone.log_head(), &self.ewpq.log_head().to_le_bytes())?;
        sink.write(self.zone.log_tail(), &self.ewpq.log_tail().to_le_bytes())?;
        let mut validity = vec![0u64; self.zone.validity_words() as usize];
        // All its entries, those in flight to the home address too.
        let valid = self.ewpq.queued().filter(|(_, mapping)| mapping.is_valid(fault));
        for (slot, mapping) in valid.skip(fault.swaps(planted::FLUSH_DROPS_EWPQ_ENTRY, 0, 1)) {
            assert!(slot < self.zone.ewpq_entries, "the eWPQ holds more entries than it has");
            sink.write(self.zone.ewpq_slot(slot), &mapping.record(&self.zone, fault))?;
            validity[(slot / 64) as usize] |= 1 << (slot % 64);
        }
        // The validity bitmap gives recovery the valid entries of the eWPQ.
        if !fault.skips(planted::VALIDITY_NOT_SAVED) {
            for (word, bits) in (0..).zip(validity) {
                sink.write(self.zone.validity(word), &bits.to_le_bytes())?;
            }
        }
        Ok(())
    }
}

impl LogZone {
    /// A line of an open transaction goes to the emergency area.
    fn save_emergency(
        &self,
        sink: &mut CrashSink<'_>,
        slot: u64,
        home: LineAddr,
        hardware_id: u64,
        data: &Line,
    ) -> Result<(), BudgetSpent> {
        assert!(slot < self.emergency_entries, "more transactional lines than TransTags");
        let (header, place) = self.emergency(slot);
        sink.write(header, &entry_header(home, hardware_id))?;
        sink.write(place, data)
    }
}

/// A register or a count that was saved cannot be.
const TOO_MANY: &str = "its counters name more entries than fit";

/// The entries of eWPQ and extension area of a controller, as a power failure left them.
#[derive(Default)]
struct Mappings {
    all: Vec<CompactEntry>,
    /// LogTail and LogHead.
    window: (u64, u64),
    /// Slots of the extension area in use, which recovery clears at its end.
    extension_slots: Vec<PhysAddr>,
    /// Blocks that are chained to it.
    chained_blocks: u64,
}

impl Mappings {
    /// Whether LogTail and LogHead frame this log entry. Outside there is nothing in use, except what garbage
    /// collection had just appended at LogHead: that belongs to an uncommitted transaction (section 4.4).
    fn frame(&self, log: u64, part: &PartZone) -> bool {
        let (tail, head) = self.window;
        log < part.log_entries && (log + part.log_entries - tail % part.log_entries) % part.log_entries < head - tail
    }
}

impl CompactEntry {
    /// Header and data of the log entry that it names, if there is one: in the window of the log, or by way of the index
    /// in a chunk of the extension.
    fn entry(&self, mappings: &Mappings, part: &PartZone, image: &CrashImage) -> Option<(PhysAddr, PhysAddr)> {
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

/// The first step: reads the mappings of a controller, those of the eWPQ first. What contradicts itself is a loss.
fn read_mappings(part: &PartZone, image: &CrashImage, fault: ActiveFault) -> Result<Mappings, &'static str> {
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
    // The slots of the extension area and those of the blocks that are chained to it.
    let blocks = fault.swaps(planted::RECOVERY_SKIPS_CHAIN, chained_blocks, 0);
    let slots = part.extension_entries + blocks * part.block_entries;
    for slot in 0..fault.swaps(planted::RECOVERY_SKIPS_EXTENSION, slots, 0) {
        let at = part.extension_slot(slot);
        if let Some(found) = mapping(at) {
            mappings.all.push(found);
            mappings.extension_slots.push(at);
        }
    }
    Ok(mappings)
}

/// The entry of a line in log or emergency area.
struct Found {
    hardware_id: u64,
    home: PhysAddr,
    data: PhysAddr,
    /// Whether it is not there, or its header contradicts itself, its mapping or the machine.
    damaged: bool,
}

/// Recovery (section 4.3).
pub(super) fn recover(
    zone: &LogZone,
    geometry: &Geometry,
    image: &mut CrashImage,
) -> Result<RecoveryReport, RecoveryCut> {
    let fault = geometry.planted;
    let mut report = RecoveryReport::default();
    match image.read_u64(zone.flag()) {
        RECOVERED => return Ok(report),
        FLUSHED => {}
        _ => {
            report.losses.push("the crash flush did not finish: cached data is lost".into());
            return Ok(report);
        }
    }
    let emergency_saved = image.read_u64(zone.emergency_saved());
    let read = |part| read_mappings(part, image, fault);
    let mappings = zone.parts.iter().map(read).collect::<Result<Vec<Mappings>, _>>();
    let mappings =
        mappings.and_then(|all| if emergency_saved <= zone.emergency_entries { Ok(all) } else { Err(TOO_MANY) });
    let mappings = match mappings {
        Ok(mappings) => mappings,
        Err(why) => {
            report.losses.push(format!("the log zone is damaged: {why}"));
            return Ok(report);
        }
    };
    let mut found = found_in_the_log(zone, geometry, image, &mappings);
    let emergency_saved = fault.swaps(planted::RECOVERY_SKIPS_EMERGENCY, emergency_saved, 0);
    found.extend(found_in_the_emergency_area(zone, geometry, image, emergency_saved, &mut report));
    let mut fates: BTreeMap<u64, bool> = BTreeMap::new();
    for entry in &found {
        let mut len = [0; 4];
        image.read(zone.tx_len(entry.hardware_id), &mut len);
        // Its TxLen is the commit point.
        let has_committed = fault.assumes(planted::RECOVERY_REPLAYS_UNCOMMITTED, len != [0; 4]);
        fates.insert(entry.hardware_id, has_committed);
    }
    // All of a transaction or nothing: one whose entries are damaged is lost whole.
    let lost: BTreeSet<u64> =
        found.iter().filter(|e| e.damaged && fates[&e.hardware_id]).map(|e| e.hardware_id).collect();
    for hardware_id in &lost {
        report.losses.push(format!("committed transaction {hardware_id} is damaged in the log: none of it is written"));
    }
    found.retain(|entry| fates[&entry.hardware_id] && !lost.contains(&entry.hardware_id));
    let committed: BTreeSet<u64> = fates.iter().filter(|(_, committed)| **committed).map(|(id, _)| *id).collect();
    if fault.skips(planted::RECOVERY_MARKS_FIRST) {
        image.write_u64(zone.flag(), RECOVERED)?;
    }
    if fault.skips(planted::RECOVERY_CLEARS_TX_LEN_FIRST) {
        clear_tx_lens(zone, image, &committed)?;
    }
    for _ in 0..fault.swaps(planted::RECOVERY_WRITES_TWICE, 1, 2) {
        write_homes(image, &found, &mut report, fault)?;
    }
    if !fault.skips(planted::RECOVERY_KEEPS_TX_LEN) {
        clear_tx_lens(zone, image, &committed)?;
    }
    clear_extension(zone, image, &mappings)?;
    image.write_u64(zone.flag(), RECOVERED)?;
    report.replayed = (committed.len() - lost.len()) as u64;
    report.discarded = (fates.len() - committed.len()) as u64;
    Ok(report)
}

/// The two words of the header of a log or emergency entry: home and owner.
fn header(image: &CrashImage, at: PhysAddr) -> [u64; 2] {
    [image.read_u64(at), image.read_u64(at.plus(8))]
}

/// The lines whose log entries the eWPQs and their extension areas name.
fn found_in_the_log(zone: &LogZone, geometry: &Geometry, image: &CrashImage, mappings: &[Mappings]) -> Vec<Found> {
    let mut found = Vec::new();
    for (part, mappings) in zone.parts.iter().zip(mappings) {
        for mapping in &mappings.all {
            let hardware_id = mapping.hardware_id;
            let entry = mapping.entry(mappings, part, image);
            let entry = entry.map(|(at, data)| (header(image, at), data));
            let sound = |&([home, owner], _): &([u64; 2], PhysAddr)| {
                geometry.is_home(PhysAddr(home))
                    && part.partial_home(PhysAddr(home).line()) == mapping.partial_home
                    && is_entry_of([home, owner], hardware_id)
            };
            found.push(match entry.filter(sound) {
                Some(([home, _], data)) => Found { hardware_id, home: PhysAddr(home), data, damaged: false },
                None => Found { hardware_id, home: geometry.pmem_base, data: geometry.pmem_base, damaged: true },
            });
        }
    }
    let count = found.len();
    found.truncate(geometry.planted.swaps(planted::RECOVERY_DROPS_LOG_ENTRY, count, count.saturating_sub(1)));
    found
}

/// The lines in the emergency area. An entry without a transaction is a loss.
fn found_in_the_emergency_area(
    zone: &LogZone,
    geometry: &Geometry,
    image: &CrashImage,
    saved: u64,
    report: &mut RecoveryReport,
) -> Vec<Found> {
    let mut found = Vec::new();
    for slot in 0..saved {
        let (at, data) = zone.emergency(slot);
        let header = header(image, at);
        let Some(hardware_id) = emergency_owner(header) else {
            report.losses.push("the emergency area is damaged: an entry belongs to no transaction".into());
            continue;
        };
        let home = PhysAddr(header[0]);
        found.push(Found { hardware_id, home, data, damaged: !geometry.is_home(home) });
    }
    found
}

/// Homes are written in the order of age: log entries, then emergency entries, which are newer.
fn write_homes(
    image: &mut CrashImage,
    found: &[Found],
    report: &mut RecoveryReport,
    fault: ActiveFault,
) -> Result<(), RecoveryCut> {
    for nth in 0..found.len() {
        let entry = &found[fault.swaps(planted::RECOVERY_NEWEST_FIRST, nth, found.len() - 1 - nth)];
        let data = image.line(entry.data);
        image.write(entry.home, &data)?;
        report.lines_written += 1;
    }
    Ok(())
}

fn clear_tx_lens(zone: &LogZone, image: &mut CrashImage, committed: &BTreeSet<u64>) -> Result<(), RecoveryCut> {
    for &hardware_id in committed {
        image.write(zone.tx_len(hardware_id), &[0; 4])?;
    }
    Ok(())
}

fn clear_extension(zone: &LogZone, image: &mut CrashImage, mappings: &[Mappings]) -> Result<(), RecoveryCut> {
    for slot in mappings.iter().flat_map(|part| &part.extension_slots) {
        image.write_u64(*slot, 0)?;
    }
    for (part, mappings) in zone.parts.iter().zip(mappings) {
        // From the last one on: if recovery is interrupted, what is left is a chain.
        for block in (0..mappings.chained_blocks).rev() {
            image.write_u64(part.block_pointer(block), 0)?;
        }
    }
    Ok(())
}
