//! The image of a power failure: the durable part of the machine. Taking it changes nothing.

use crate::parts::memories::Chooser;
use crate::system::System;
use durasim_contract::{BudgetSpent, CachedLine, CrashImage, CrashSink, CrashView, LevelId};
use durasim_types::{Line, LineAddr};
use std::collections::{BTreeMap, BTreeSet};

/// Kind of a power failure. By default the image holds what the machine's domain keeps, all of it and no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PowerFailureOptions {
    /// The energy of the crash flush, as bytes that it can save in its order; `None`: enough.
    pub energy_bytes: Option<u64>,
    /// Lines that the media was writing, and that no queue keeps, are torn at words of eight bytes: which of the words are
    /// new, as a number below [`PowerFailureChoices::torn`].
    pub torn: Option<u64>,
    /// Of cleans that no fence has waited for, another part was accepted: a number below [`PowerFailureChoices::reorder`].
    pub reorder: Option<u64>,
    /// Dirty lines have left the caches early: a number below [`PowerFailureChoices::evict`].
    pub evict: Option<u64>,
    /// One choice of `reorder` and one of `evict`, as a number below their product.
    pub image: Option<u64>,
}

/// The state after a power failure.
#[derive(Clone, Debug)]
pub struct PowerFailureResult {
    /// Persistent memory and nonvolatile structures.
    pub image: CrashImage,
    /// Bytes that the crash flush saved.
    pub flushed_bytes: u64,
    /// Dirty lines of persistent memory in caches that do not survive.
    pub lost_dirty_lines: u64,
}

/// Numbers of images that a power failure of each kind can leave now; saturating, 1 = only the clean one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerFailureChoices {
    /// Subsets of the words in flight to the media.
    pub torn: u64,
    /// Subsets of unfenced cleans, the versions of each line in order.
    pub reorder: u64,
    /// Subsets of the dirty lines of persistent memory. 1 where a design decides about lines that leave the caches.
    pub evict: u64,
}

/// The images that a power failure can leave at a moment, beside the clean one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DistinctImages {
    /// Those of early evictions alone, which undo nothing: numbers of [`PowerFailureOptions::evict`].
    pub evictions: Vec<u64>,
    /// All others: numbers of [`PowerFailureOptions::image`].
    pub others: Vec<u64>,
}

impl System {
    /// The image that a power failure at this moment leaves, if the crash flush can save `budget_bytes`. The second
    /// value is an error if that energy did not suffice.
    pub fn crash_image(&self, budget_bytes: u64) -> (CrashImage, Result<(), BudgetSpent>) {
        let PowerFailureResult { image, .. } = self
            .power_failure(&PowerFailureOptions { energy_bytes: Some(budget_bytes), ..PowerFailureOptions::default() });
        let complete = if image.dirty_shutdown { Err(BudgetSpent) } else { Ok(()) };
        (image, complete)
    }

    /// Numbers of other ways in which the power can fail at this moment.
    pub fn power_failure_choices(&self) -> PowerFailureChoices {
        let durable = self.memories.durable_pmem();
        let versions = self.memories.unfenced_versions(|line| durable.line(line));
        let torn = self.memories.torn_words(&durable).iter().try_fold(1u64, |product, _| product.checked_mul(2));
        let reorder = versions.iter().try_fold(1u64, |product, (_, v)| product.checked_mul(v.len() as u64));
        let evictable = u32::try_from(self.evictable_lines().len()).ok();
        let evict = evictable.and_then(|lines| 2u64.checked_pow(lines)).unwrap_or(u64::MAX);
        PowerFailureChoices { torn: torn.unwrap_or(u64::MAX), reorder: reorder.unwrap_or(u64::MAX), evict }
    }

    /// All images that reordered cleans and early evictions can leave, one for each content but that of a clean failure.
    ///
    /// # Errors
    /// The number of choices, if it is above `most`.
    pub fn distinct_images(&self, most: u64) -> Result<DistinctImages, u64> {
        let choices = self.power_failure_choices();
        let count = choices.reorder.saturating_mul(choices.evict);
        if count > most {
            return Err(count);
        }
        let durable = self.memories.durable_pmem();
        let versions = self.memories.unfenced_versions(|line| durable.line(line));
        let evictable = self.evictable_lines();
        let clean: BTreeMap<LineAddr, Line> = versions
            .iter()
            .map(|(line, _)| *line)
            .chain(evictable.keys().copied())
            .map(|l| (l, durable.line(l)))
            .collect();
        let evict = |contents: &mut BTreeMap<LineAddr, Line>, choice: u64| {
            let mut chooser = Chooser::new(choice, choices.evict);
            contents.extend(evictable.iter().filter(|_| chooser.next(2) == 1).map(|(line, data)| (*line, *data)));
        };
        let mut known = BTreeSet::from([clean.clone()]);
        let evictions = (0..choices.evict).filter(|&choice| {
            let mut contents = clean.clone();
            evict(&mut contents, choice);
            known.insert(contents)
        });
        let evictions = evictions.collect();
        let others = (0..count).filter(|&image| {
            let mut chooser = Chooser::new(image % choices.reorder, choices.reorder);
            let mut contents = clean.clone();
            contents.extend(versions.iter().map(|(line, of)| (*line, of[chooser.next(of.len() as u64) as usize])));
            evict(&mut contents, image / choices.reorder);
            known.insert(contents)
        });
        let others = others.collect();
        Ok(DistinctImages { evictions, others })
    }

    /// The dirty lines of persistent memory that a power failure loses and that the machine might have evicted at any time, with
    /// their newest data. None where a design names hooks: it decides when its lines may leave.
    fn evictable_lines(&self) -> BTreeMap<LineAddr, Line> {
        let survive = self.domain.caches_are_durable() || self.llc_alone_is_durable() || self.persist_buffers.exist();
        if survive || self.design.has_hooks() {
            return BTreeMap::new();
        }
        // Newer versions follow older ones.
        let lines = self.caches.dirty_pmem_lines(&self.design);
        lines.into_iter().filter(|line| line.dirty).map(|line| (line.line, line.data)).collect()
    }

    /// The state that a power failure of this kind leaves at this moment.
    pub fn power_failure(&self, options: &PowerFailureOptions) -> PowerFailureResult {
        let of_image = options.image.map(|image| (image, self.power_failure_choices().reorder));
        let reorder = of_image.map_or(options.reorder, |(image, ways)| Some(image % ways));
        let evict = of_image.map_or(options.evict, |(image, ways)| Some(image / ways));
        let mut pmem = self.memories.durable_pmem();
        if let Some(choice) = reorder {
            let durable = pmem.clone();
            let mut chooser = Chooser::new(choice, self.power_failure_choices().reorder);
            for (line, versions) in self.memories.unfenced_versions(|line| durable.line(line)) {
                let version = chooser.next(versions.len() as u64);
                pmem.write(line.base(), &versions[version as usize]);
            }
        }
        if let Some(choice) = evict {
            let mut chooser = Chooser::new(choice, self.power_failure_choices().evict);
            for (line, data) in self.evictable_lines() {
                if chooser.next(2) == 1 {
                    pmem.write(line.base(), &data);
                }
            }
        }
        if let Some(choice) = options.torn {
            let mut chooser = Chooser::new(choice, self.power_failure_choices().torn);
            for (write, mask) in self.memories.torn_words(&pmem.clone()) {
                if chooser.next(2) == 1 {
                    pmem.write_masked(write.line, mask, &write.data);
                }
            }
        }
        let staged = self.memories.staged_writes();
        let mut lines = self.caches.dirty_pmem_lines(&self.design);
        let count = |lines: &[CachedLine]| lines.iter().filter(|line| line.dirty).count() as u64;
        let dirty_lines = count(&lines);
        if self.llc_alone_is_durable() {
            lines.retain(|line| line.level == LevelId::Llc);
        } else if !self.domain.caches_are_durable() {
            lines.clear();
        }
        // Persist buffers owe what caches beside them hold.
        let lost_dirty_lines = if self.persist_buffers.exist() { 0 } else { dirty_lines - count(&lines) };
        let mut image = CrashImage::new(pmem);
        let view = CrashView { domain: self.domain, geometry: &self.geometry, lines: &lines, staged: &staged };
        let mut sink = CrashSink::new(&mut image, options.energy_bytes.unwrap_or(u64::MAX));
        let buffered = match self.persist_buffers.exist() {
            true => self.persist_buffers.save(self.memories.inbound(), &mut sink),
            false => Ok(()),
        };
        let complete = buffered.and_then(|()| self.design.crash(&view, &mut sink));
        let flushed_bytes = sink.bytes_written();
        image.dirty_shutdown = complete.is_err();
        PowerFailureResult { image, flushed_bytes, lost_dirty_lines }
    }

    /// Writes untagged dirty lines home into an image, as an orderly shutdown does on machines whose caches a power
    /// failure would lose. Tagged lines are the design's affair: it has them elsewhere.
    pub fn write_caches_home(&self, image: &mut CrashImage) {
        if !self.domain.caches_are_durable() {
            for line in self.lines_to_write_home() {
                image.pmem.write(line.line.base(), &line.data);
            }
        }
    }

    /// The dirty lines of persistent memory that the caches owe their home addresses. Where caches are lost, a design has tagged
    /// lines elsewhere.
    fn lines_to_write_home(&self) -> impl Iterator<Item = CachedLine> {
        let is_owed =
            |line: &CachedLine| line.dirty && (self.domain.caches_are_durable() || !self.design.is_version(line.tag));
        self.caches.dirty_pmem_lines(&self.design).into_iter().filter(is_owed)
    }

    /// The part of the design in an orderly shutdown.
    pub fn shut_down_design(&self, image: &mut CrashImage) {
        self.design.shut_down(image);
    }

    /// Bytes of persistent memory that are dirty in caches or wait in queues: what a run has not yet paid for.
    pub fn residual_dirty_bytes(&self) -> u64 {
        let dirty = match self.persist_buffers.exist() {
            // Dirty lines are dropped by the caches: persist buffers owe them.
            true => self.persist_buffers.resident_lines(),
            false => self.lines_to_write_home().count(),
        };
        dirty as u64 * 64 + self.memories.owed_bytes()
    }
}
