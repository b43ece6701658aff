//! What a power failure leaves: the durable part of the machine as an image. Taking it changes nothing.

use super::System;
use super::unfenced::Chooser;
use durasim_design::{BudgetSpent, CachedLine, CrashImage, CrashSink, CrashView, HeldWrite, LevelId};
use durasim_types::{CoreId, Pages};

/// How the power fails. By default it is a clean cut: what the machine's domain keeps is there, all of it and no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PowerCut {
    /// The energy of the crash flush, as bytes that it can save in its order; `None`: enough.
    pub energy_bytes: Option<u64>,
    /// Lines that the media was writing, and that no queue keeps, are torn at words of eight bytes: which of the words are
    /// new, as a number below [`Chances::torn`].
    pub torn: Option<u64>,
    /// Of cleans that no fence has waited for, another part was accepted: a number below [`Chances::reorder`].
    pub reorder: Option<u64>,
}

/// What a power failure leaves.
#[derive(Clone, Debug)]
pub struct Aftermath {
    /// Persistent memory and nonvolatile structures.
    pub image: CrashImage,
    /// Bytes that the crash flush saved.
    pub flushed_bytes: u64,
}

/// In how many ways a power failure at this moment can end that is no clean cut; saturating, 1 = as a clean cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chances {
    /// Subsets of the words in flight to the media.
    pub torn: u64,
    /// Subsets of unfenced cleans, the versions of each line in order.
    pub reorder: u64,
}

const WORDS_PER_LINE: u32 = 8;

impl System {
    /// The image that a power failure at this moment leaves, if the crash flush can save `budget_bytes`. The second
    /// value tells whether that energy sufficed.
    pub fn crash_image(&self, budget_bytes: u64) -> (CrashImage, Result<(), BudgetSpent>) {
        let Aftermath { image, .. } =
            self.power_cut(&PowerCut { energy_bytes: Some(budget_bytes), ..PowerCut::default() });
        let complete = if image.dirty_shutdown { Err(BudgetSpent) } else { Ok(()) };
        (image, complete)
    }

    /// In how many other ways the power can fail at this moment.
    pub fn chances(&self) -> Chances {
        let durable = self.durable_pmem();
        let versions = self.unfenced_versions(|line| durable.line(line));
        let torn = self.torn_words().try_fold(1u64, |product, _| product.checked_mul(2));
        let reorder = versions.iter().try_fold(1u64, |product, (_, v)| product.checked_mul(v.len() as u64));
        Chances { torn: torn.unwrap_or(u64::MAX), reorder: reorder.unwrap_or(u64::MAX) }
    }

    /// What a power failure of this kind leaves at this moment.
    pub fn power_cut(&self, cut: &PowerCut) -> Aftermath {
        let mut pmem = self.durable_pmem();
        if let Some(choice) = cut.reorder {
            let durable = pmem.clone();
            let mut chooser = Chooser::new(choice, self.chances().reorder);
            for (line, versions) in self.unfenced_versions(|line| durable.line(line)) {
                let version = chooser.next(versions.len() as u64);
                pmem.write(line.base(), &versions[version as usize]);
            }
        }
        if let Some(choice) = cut.torn {
            let mut chooser = Chooser::new(choice, self.chances().torn);
            for (write, mask) in self.torn_words() {
                if chooser.next(2) == 1 {
                    pmem.write_masked(write.line, mask, &write.data);
                }
            }
        }
        let held = |(controller, entry): (u16, &durasim_memory::Entry)| {
            let write = &entry.write;
            let held = |group| HeldWrite { controller, group, line: write.line, mask: write.mask, data: write.data };
            write.held.map(held)
        };
        let held: Vec<HeldWrite> =
            if self.domain.queue_is_durable() { self.pmem.queue().filter_map(held).collect() } else { Vec::new() };
        let mut lines = self.cached_pmem_lines();
        if self.llc_alone_is_durable() {
            lines.retain(|line| line.level == LevelId::Llc);
        } else if !self.domain.caches_are_durable() {
            lines.clear();
        }
        let mut image = CrashImage::new(pmem);
        let view = CrashView { domain: self.domain, geometry: &self.geometry, lines: &lines, held: &held };
        let mut sink = CrashSink::new(&mut image, cut.energy_bytes.unwrap_or(u64::MAX));
        let buffered = match self.persist_buffers.exist() {
            true => self.persist_buffers.save(self.pmem.inbound(), &mut sink),
            false => Ok(()),
        };
        let complete = buffered.and_then(|()| self.design.crash(&view, &mut sink));
        let flushed_bytes = sink.bytes_written();
        image.dirty_shutdown = complete.is_err();
        Aftermath { image, flushed_bytes }
    }

    /// What is durable outside of caches and designs: media, queues that survive, and what left a durable LLC.
    pub(super) fn durable_pmem(&self) -> Pages {
        let mut pmem = self.pmem.media().clone();
        if self.domain.queue_is_durable() {
            for (_, entry) in self.pmem.queue().filter(|(_, entry)| !entry.is_held()) {
                pmem.write_masked(entry.write.line, entry.write.mask, &entry.write.data);
            }
        }
        if self.domain.llc_is_durable() {
            // Write-back buffers belong to the last level: what left the LLC and waits for the queue survives.
            for write in self.pmem.inbound() {
                pmem.write_masked(write.line, write.mask, &write.data);
            }
        }
        pmem
    }

    /// The words that the media is writing and that no durable queue keeps, each with its bytes as a mask.
    fn torn_words(&self) -> impl Iterator<Item = (&durasim_memory::Write, u64)> {
        let in_flight = self.pmem.queue().filter(|(_, e)| e.in_service() && !self.domain.queue_is_durable());
        in_flight.flat_map(|(_, entry)| {
            let words = (0..WORDS_PER_LINE).map(|word| entry.write.mask & 0xff << (8 * word)).filter(|mask| *mask != 0);
            words.map(move |mask| (&entry.write, mask))
        })
    }

    /// Writes untagged dirty lines home into an image, as an orderly shutdown does on machines whose caches a power
    /// failure would lose. Tagged lines are the design's affair: it has them elsewhere.
    pub fn write_caches_home(&self, image: &mut CrashImage) {
        if !self.domain.caches_are_durable() {
            for line in self.cached_pmem_lines().iter().filter(|l| l.dirty && !self.is_version(l.tag)) {
                image.pmem.write(line.line.base(), &line.data);
            }
        }
    }

    /// What the design adds to an orderly shutdown.
    pub fn shut_down_design(&self, image: &mut CrashImage) {
        self.design.shut_down(image);
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
