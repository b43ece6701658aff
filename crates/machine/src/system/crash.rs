//! What a power failure leaves: the durable part of the machine as an image. Taking it changes nothing.

use super::System;
use durasim_design::{BudgetSpent, CachedLine, CrashImage, CrashSink, CrashView, HeldWrite, LevelId};
use durasim_types::CoreId;

impl System {
    /// The image that a power failure at this moment leaves, if the crash flush can save `budget_bytes`. The second
    /// value tells whether that energy sufficed.
    pub fn crash_image(&self, budget_bytes: u64) -> (CrashImage, Result<(), BudgetSpent>) {
        let mut pmem = self.pmem.media().clone();
        let mut held = Vec::new();
        if self.domain.queue_is_durable() {
            for (controller, entry) in self.pmem.queue() {
                let write = &entry.write;
                match write.held {
                    None => pmem.write_masked(write.line, write.mask, &write.data),
                    Some(group) => {
                        held.push(HeldWrite { controller, group, line: write.line, mask: write.mask, data: write.data })
                    }
                }
            }
        }
        if self.domain.llc_is_durable() {
            // Write-back buffers belong to the last level: what left the LLC and waits for the queue survives.
            for write in self.pmem.inbound() {
                pmem.write_masked(write.line, write.mask, &write.data);
            }
        }
        let mut lines = self.cached_pmem_lines();
        if self.llc_alone_is_durable() {
            lines.retain(|line| line.level == LevelId::Llc);
        }
        let mut image = CrashImage::new(pmem);
        let view = CrashView { domain: self.domain, geometry: &self.geometry, lines: &lines, held: &held };
        let mut sink = CrashSink::new(&mut image, budget_bytes);
        let buffered = match self.persist_buffers.exist() {
            true => self.persist_buffers.save(self.pmem.inbound(), &mut sink),
            false => Ok(()),
        };
        let complete = buffered.and_then(|()| self.design.crash(&view, &mut sink));
        (image, complete)
    }

    /// Writes untagged dirty lines home into an image, as an orderly shutdown does on machines whose caches a power
    /// failure would lose. Tagged lines are the design's affair: it has them elsewhere.
    pub fn write_caches_home(&self, image: &mut CrashImage) {
        if !self.domain.caches_are_durable() {
            for line in self.cached_pmem_lines().iter().filter(|l| l.dirty && !l.tag.is_some()) {
                image.pmem.write(line.line.base(), &line.data);
            }
        }
    }

    /// Dirty or tagged lines of persistent memory: LLC, then L2, then L1D, so that newer versions come later.
    fn cached_pmem_lines(&self) -> Vec<CachedLine> {
        let mut lines = Vec::new();
        for level in [LevelId::Llc, LevelId::L2, LevelId::L1d] {
            for core in self.cores() {
                if level == LevelId::Llc && core.0 > 0 {
                    continue;
                }
                let array = self.array(level, core);
                for slot in array.slots() {
                    if !array.is_dirty(slot) && !array.tag(slot).is_some() {
                        continue;
                    }
                    let version = array.version(slot);
                    let tag = self.live(version.tag);
                    if self.is_pmem(version.line) && (version.dirty || tag.is_some()) {
                        let core: Option<CoreId> = (level != LevelId::Llc).then_some(core);
                        let (line, dirty, data) = (version.line, version.dirty, version.data);
                        lines.push(CachedLine { level, core, line, tag, dirty, data });
                    }
                }
            }
        }
        lines
    }

    /// Bytes of persistent memory that are dirty in caches or wait in queues: what a run has not yet paid for.
    pub fn residual_dirty_bytes(&self) -> u64 {
        let dirty = match self.persist_buffers.exist() {
            // Dirty lines are dropped by the caches: persist buffers owe them.
            true => self.persist_buffers.resident_lines(),
            false => self.cached_pmem_lines().iter().filter(|l| l.dirty).count(),
        };
        dirty as u64 * 64 + self.pmem.owed_bytes()
    }
}
