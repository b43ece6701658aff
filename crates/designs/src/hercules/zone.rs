//! The layout of the in-pmem log zone (section 4.1, Figure 3b): registers saved at a power failure, transaction
//! profiles, eWPQ extension area, emergency area, log entries. Data of log entries and of emergency entries is kept
//! in whole lines, their headers of 16 bytes apart.

use super::spec::HerculesSpec;
use durasim_design::{BudgetSpent, CrashSink, Geometry, LevelId, SpecError};
use durasim_types::{Line, LineAddr, PhysAddr};

/// The machine runs, or its crash flush did not finish.
pub(super) const RUNNING: u64 = 0;
/// The crash flush finished.
pub(super) const FLUSHED: u64 = 0x4845_5243_464c_5348;
/// Recovery finished.
pub(super) const RECOVERED: u64 = 0x4845_5243_5245_4356;

/// A record that is in use has this bit.
const VALID: u64 = 1 << 63;

/// Where everything lies.
#[derive(Clone, Debug)]
pub(super) struct LogZone {
    base: PhysAddr,
    ewpq_entries: u64,
    pub tx_ids: u64,
    pub extension_entries: u64,
    pub emergency_entries: u64,
    pub log_entries: u64,
    ewpq: PhysAddr,
    profiles: PhysAddr,
    extension: PhysAddr,
    emergency_headers: PhysAddr,
    emergency_data: PhysAddr,
    log_headers: PhysAddr,
    log_data: PhysAddr,
}

const fn line_up(bytes: u64) -> u64 {
    bytes.next_multiple_of(64)
}

impl LogZone {
    /// Lays the zone out in the region of that name.
    pub fn new(spec: &HerculesSpec, geometry: &Geometry) -> Result<Self, SpecError> {
        let tags = |level: LevelId| {
            let instances = if level == LevelId::Llc { 1 } else { u64::from(geometry.cores) };
            let shape = geometry.level(level);
            let per_set = u64::from((shape.ways * spec.trans_tag_percent(level) / 100).max(1));
            u64::from(shape.sets) * per_set * instances
        };
        let tx_ids = 1u64 << spec.tx_id_bits;
        let ewpq_entries = u64::from(spec.ewpq_entries);
        let extension_entries = ewpq_entries * u64::from(spec.ewpq_extension_factor);
        let emergency_entries = LevelId::ALL.iter().map(|&level| tags(level)).sum::<u64>();
        let mut at = geometry.region("log_zone").base;
        let base = at;
        let mut take = |bytes: u64| {
            let here = at;
            at = at.plus(line_up(bytes));
            here
        };
        take(64);
        let ewpq = take(ewpq_entries * 8);
        let profiles = take(tx_ids * 4);
        let extension = take(extension_entries * 8);
        let emergency_headers = take(emergency_entries * 16);
        let emergency_data = take(emergency_entries * 64);
        let fixed_bytes = at.0 - base.0;
        let log_entries = spec.log_zone_bytes.saturating_sub(fixed_bytes + 64) / 80;
        if log_entries < 16 {
            let problem = format!("{} bytes hold fewer than 16 log entries", spec.log_zone_bytes);
            return Err(SpecError::new("log_zone_bytes", problem));
        }
        let log_headers = at;
        let log_data = at.plus(line_up(log_entries * 16));
        Ok(LogZone {
            base,
            ewpq_entries,
            tx_ids,
            extension_entries,
            emergency_entries,
            log_entries: log_entries - 4,
            ewpq,
            profiles,
            extension,
            emergency_headers,
            emergency_data,
            log_headers,
            log_data,
        })
    }

    /// The word that tells how the zone was left.
    pub fn flag(&self) -> PhysAddr {
        self.base
    }

    /// The TxLen of a transaction.
    pub fn tx_len(&self, hardware_id: u64) -> PhysAddr {
        self.profiles.plus(hardware_id % self.tx_ids * 4)
    }

    /// The data of a log entry.
    pub fn entry_data(&self, log: u64) -> PhysAddr {
        self.log_data.plus(log % self.log_entries * 64)
    }

    /// The header of a log entry.
    pub fn entry_header_at(&self, log: u64) -> PhysAddr {
        self.log_headers.plus(log % self.log_entries * 16)
    }

    /// The contents of a header: home address and transaction.
    pub fn entry_header(&self, home: LineAddr, hardware_id: u64) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&home.base().0.to_le_bytes());
        bytes[8..].copy_from_slice(&(hardware_id | VALID).to_le_bytes());
        bytes
    }

    /// A slot of the extension area.
    pub fn extension_slot(&self, slot: u64) -> PhysAddr {
        self.extension.plus(slot * 8)
    }

    /// The compact form of a mapping, as eWPQ and extension area hold it: transaction and log entry. The home
    /// address is in the log entry.
    pub fn extension_record(&self, hardware_id: u64, log: u64) -> [u8; 8] {
        (VALID | (hardware_id << 31) | (log % self.log_entries)).to_le_bytes()
    }

    /// Reads a compact mapping: transaction and log entry, if it is in use.
    pub fn mapping_of(&self, record: u64) -> Option<(u64, u64)> {
        (record & VALID != 0).then_some(((record & !VALID) >> 31, record & ((1 << 31) - 1)))
    }

    /// Whether the log entry that a mapping names is there, and is of the mapping's transaction.
    pub fn is_entry_of(&self, log: u64, header: [u64; 2], hardware_id: u64) -> bool {
        log < self.log_entries && header[1] == hardware_id | VALID
    }

    /// The transaction of an emergency entry, if its header is in use.
    pub fn emergency_owner(&self, header: [u64; 2]) -> Option<u64> {
        (header[1] & VALID != 0).then_some(header[1] & !VALID)
    }

    /// Whether a power failure can have saved so many entries of the eWPQ and of the emergency area.
    pub fn can_hold(&self, ewpq_saved: u64, emergency_saved: u64) -> bool {
        ewpq_saved <= self.ewpq_entries && emergency_saved <= self.emergency_entries
    }

    /// A saved eWPQ entry.
    pub fn ewpq_slot(&self, slot: u64) -> PhysAddr {
        self.ewpq.plus(slot * 8)
    }

    /// Number of eWPQ entries saved, and of emergency entries.
    pub fn saved_counts(&self) -> (PhysAddr, PhysAddr) {
        (self.base.plus(24), self.base.plus(32))
    }

    /// An emergency entry: header and data.
    pub fn emergency(&self, slot: u64) -> (PhysAddr, PhysAddr) {
        (self.emergency_headers.plus(slot * 16), self.emergency_data.plus(slot * 64))
    }

    /// The crash flush begins: LogHead, LogTail and eWPQ.
    pub fn save_registers(
        &self,
        sink: &mut CrashSink<'_>,
        log_head: u64,
        log_tail: u64,
        ewpq: impl Iterator<Item = (u64, u64)>,
    ) -> Result<(), BudgetSpent> {
        sink.write(self.flag(), &RUNNING.to_le_bytes())?;
        sink.write(self.base.plus(8), &log_head.to_le_bytes())?;
        sink.write(self.base.plus(16), &log_tail.to_le_bytes())?;
        let mut saved = 0u64;
        for (hardware_id, log) in ewpq {
            assert!(saved < self.ewpq_entries, "the eWPQ holds more entries than it has");
            sink.write(self.ewpq_slot(saved), &self.extension_record(hardware_id, log))?;
            saved += 1;
        }
        sink.write(self.saved_counts().0, &saved.to_le_bytes())
    }

    /// A line of an open transaction goes to the emergency area.
    pub fn save_emergency(
        &self,
        sink: &mut CrashSink<'_>,
        slot: u64,
        home: LineAddr,
        hardware_id: u64,
        data: &Line,
    ) -> Result<(), BudgetSpent> {
        assert!(slot < self.emergency_entries, "more transactional lines than TransTags");
        let (header, place) = self.emergency(slot);
        sink.write(header, &self.entry_header(home, hardware_id))?;
        sink.write(place, data)
    }

    /// The crash flush ends.
    pub fn save_end(&self, sink: &mut CrashSink<'_>, emergency_saved: u64) -> Result<(), BudgetSpent> {
        sink.write(self.saved_counts().1, &emergency_saved.to_le_bytes())?;
        sink.write(self.flag(), &FLUSHED.to_le_bytes())
    }
}
