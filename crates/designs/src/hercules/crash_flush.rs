//! Section 4.2, "flush on a power-off": LogHead, LogTail and eWPQ, then the caches, LLC first; lines of open
//! transactions go to the emergency area.

use super::State;
use super::controller::Part;
use super::record::entry_header;
use super::steps::recovery::{emergency_count, flush_order};
use super::zone::{FLUSHED, LogZone, RUNNING};
use durasim_design::{ActiveFault, BudgetSpent, CrashSink, CrashView};
use durasim_types::{Line, LineAddr, TxId};

impl State {
    /// The whole of it.
    pub(super) fn flush_on_power_off(&self, view: &CrashView<'_>, sink: &mut CrashSink<'_>) -> Result<(), BudgetSpent> {
        sink.write(self.zone.flag(), &RUNNING.to_le_bytes())?;
        for part in &self.parts {
            part.save_registers(sink, self.fault)?;
        }
        let mut saved = 0;
        for line in &*flush_order(view.lines, self.fault) {
            if let Some(open) = self.registers.get(TxId(line.tag.0)).filter(|_| line.tag.is_some()) {
                let id = open.hardware_id;
                self.zone.save_emergency(sink, saved, line.line, id, &line.data)?;
                saved += 1;
            } else if line.dirty {
                sink.write(line.line.base(), &line.data)?;
            }
        }
        sink.write(self.zone.emergency_saved(), &emergency_count(saved, self.fault).to_le_bytes())?;
        sink.write(self.zone.flag(), &FLUSHED.to_le_bytes())
    }
}

impl Part {
    /// LogHead, LogTail and eWPQ of a controller, with its validity bitmap.
    fn save_registers(&self, sink: &mut CrashSink<'_>, fault: ActiveFault) -> Result<(), BudgetSpent> {
        sink.write(self.zone.log_head(), &self.ewpq.log_head().to_le_bytes())?;
        sink.write(self.zone.log_tail(), &self.ewpq.log_tail().to_le_bytes())?;
        let mut validity = vec![0u64; self.zone.validity_words() as usize];
        for (slot, mapping) in self.ewpq.saved(fault) {
            assert!(slot < self.zone.ewpq_entries, "the eWPQ holds more entries than it has");
            sink.write(self.zone.ewpq_slot(slot), &mapping.record(&self.zone, fault))?;
            validity[(slot / 64) as usize] |= 1 << (slot % 64);
        }
        self.save_validity(&validity, sink, fault)
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
