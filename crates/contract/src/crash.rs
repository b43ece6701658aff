//! Power failure and recovery: what a design sees, what it may save, and the image recovery works on.

use crate::{Geometry, LevelId, LineTag};
use durasim_types::{CoreId, Domain, Line, LineAddr, Pages, PhysAddr};
use std::collections::BTreeMap;

/// The energy of the crash flush is used up; what was not saved by then is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetSpent;

/// Recovery was cut by a further power failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoveryCut;

/// A dirty or tagged line of persistent memory in a cache.
#[derive(Clone, Copy, Debug)]
pub struct CachedLine {
    /// Its level.
    pub level: LevelId,
    /// The core whose cache it is; `None` for the LLC.
    pub core: Option<CoreId>,
    /// The line.
    pub line: LineAddr,
    /// Its tag.
    pub tag: LineTag,
    /// Whether it is dirty.
    pub dirty: bool,
    /// Its data.
    pub data: Line,
}

/// An entry of a write queue that survives a power failure, and that only recovery can put in order.
#[derive(Clone, Copy, Debug)]
pub struct StagedWrite {
    /// The controller.
    pub controller: u16,
    /// Its group, if it is held; `None`: an ordinary entry that waits for a held one of its line.
    pub group: Option<u64>,
    /// The line.
    pub line: LineAddr,
    /// The bytes.
    pub mask: u64,
    /// The data.
    pub data: Line,
}

/// The machine when the power fails.
pub struct CrashView<'a> {
    /// The domain of the machine.
    pub domain: Domain,
    /// The machine's shape.
    pub geometry: &'a Geometry,
    /// Dirty or tagged lines of persistent memory, in the order in which eADR flushes them (LLC, L2, L1D: the newest
    /// version last). Where the last level alone is nonvolatile they are its lines, where no cache survives there are none.
    pub lines: &'a [CachedLine],
    /// Held entries of durable queues, and ordinary ones that wait for a held one of their line, controller by
    /// controller, oldest first. All other entries are in persistent memory already.
    pub staged: &'a [StagedWrite],
}

impl CrashView<'_> {
    /// The behaviour of the domain without a design: every dirty line is written to its home address if caches are
    /// durable. A nonvolatile last level keeps its lines where they are, which costs no energy and looks the same to
    /// recovery.
    pub fn flush_caches_home(&self, sink: &mut CrashSink<'_>) -> Result<(), BudgetSpent> {
        if self.domain.llc_alone_is_durable() {
            for line in self.lines.iter().filter(|l| l.dirty && l.level == LevelId::Llc) {
                sink.image.pmem.write(line.line.base(), &line.data);
            }
        }
        if self.domain.caches_are_durable() {
            for line in self.lines.iter().filter(|l| l.dirty) {
                sink.write(line.line.base(), &line.data)?;
            }
        }
        Ok(())
    }
}

/// The sink for the state of a design that survives, within the energy budget.
pub struct CrashSink<'a> {
    image: &'a mut CrashImage,
    budget_bytes: u64,
    bytes_written: u64,
}

impl<'a> CrashSink<'a> {
    /// A sink into `image` that can save `budget_bytes` more bytes.
    pub fn new(image: &'a mut CrashImage, budget_bytes: u64) -> Self {
        CrashSink { image, budget_bytes, bytes_written: 0 }
    }

    fn spend(&mut self, bytes: u64) -> Result<(), BudgetSpent> {
        if self.budget_bytes < bytes {
            self.budget_bytes = 0;
            return Err(BudgetSpent);
        }
        self.budget_bytes -= bytes;
        Ok(())
    }

    /// Writes to persistent memory using residual energy. Where it ends in the middle, the first words of eight bytes that it
    /// lasted for are written.
    pub fn write(&mut self, at: PhysAddr, bytes: &[u8]) -> Result<(), BudgetSpent> {
        let budget_bytes = self.budget_bytes;
        let spent = self.spend(bytes.len() as u64);
        let written = if spent.is_ok() { bytes.len() } else { (budget_bytes / 8 * 8) as usize };
        self.image.pmem.write(at, &bytes[..written]);
        self.bytes_written += written as u64;
        spent
    }

    /// Bytes written using residual energy so far.
    pub fn bytes_written(&self) -> u64 {
        self.bytes_written
    }

    /// A nonvolatile structure keeps its contents by itself, without energy.
    pub fn keep(&mut self, name: &str, bytes: Vec<u8>) {
        self.image.structures.insert(name.to_owned(), bytes);
    }

    /// Bytes that can still be saved.
    pub fn budget_bytes(&self) -> u64 {
        self.budget_bytes
    }
}

/// Everything that is left after a power failure: persistent memory and nonvolatile structures by name. Recovery
/// works on it; each of its writes may be cut by the next failure.
#[derive(Clone, Debug, Default)]
pub struct CrashImage {
    /// Persistent memory.
    pub pmem: Pages,
    /// Nonvolatile structures, by name.
    pub structures: BTreeMap<String, Vec<u8>>,
    /// Whether the platform's energy ended before its flush had: what platforms count as a dirty shutdown, for
    /// recovery to see.
    pub dirty_shutdown: bool,
    writes: u64,
    cut_at: Option<u64>,
    log: Option<Vec<ImageWrite>>,
}

/// A write of recovery, for timelines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageWrite {
    /// These bytes of persistent memory.
    Pmem(PhysAddr, Vec<u8>),
    /// This number of bytes are the contents of this structure.
    Structure(String, usize),
}

impl CrashImage {
    /// An image of this persistent memory and no structure.
    pub fn new(pmem: Pages) -> Self {
        CrashImage { pmem, ..CrashImage::default() }
    }

    /// Lets the `n`-th write from now on (counted from 1) and all later ones fail; `None` lets all succeed.
    pub fn cut_at(&mut self, n: Option<u64>) {
        self.writes = 0;
        self.cut_at = n;
    }

    /// From now on, notes what recovery writes.
    pub fn keep_log(&mut self) {
        self.log = Some(Vec::new());
    }

    /// The writes of recovery since `keep_log` was called, in order; ends the log.
    pub fn take_log(&mut self) -> Vec<ImageWrite> {
        self.log.take().unwrap_or_default()
    }

    /// Writes of recovery so far, since `cut_at` was last called.
    pub fn writes(&self) -> u64 {
        self.writes
    }

    fn step(&mut self) -> Result<(), RecoveryCut> {
        if self.cut_at.is_some_and(|n| self.writes + 1 >= n) {
            return Err(RecoveryCut);
        }
        self.writes += 1;
        Ok(())
    }

    /// Reads persistent memory.
    pub fn read(&self, at: PhysAddr, bytes: &mut [u8]) {
        self.pmem.read(at, bytes);
    }

    /// Writes persistent memory and waits until it is durable: one step that a further failure may precede.
    pub fn write(&mut self, at: PhysAddr, bytes: &[u8]) -> Result<(), RecoveryCut> {
        self.step()?;
        self.pmem.write(at, bytes);
        if let Some(log) = &mut self.log {
            log.push(ImageWrite::Pmem(at, bytes.to_vec()));
        }
        Ok(())
    }

    /// Reads a little-endian word of eight bytes.
    pub fn read_u64(&self, at: PhysAddr) -> u64 {
        self.pmem.read_u64(at)
    }

    /// Reads a line.
    pub fn line(&self, at: PhysAddr) -> Line {
        self.pmem.line(at.line())
    }

    /// Writes a little-endian word of eight bytes; see [`CrashImage::write`].
    pub fn write_u64(&mut self, at: PhysAddr, value: u64) -> Result<(), RecoveryCut> {
        self.write(at, &value.to_le_bytes())
    }

    /// A nonvolatile structure, if it was kept.
    pub fn structure(&self, name: &str) -> Option<&[u8]> {
        self.structures.get(name).map(Vec::as_slice)
    }

    /// Changes a nonvolatile structure: one step.
    pub fn keep(&mut self, name: &str, bytes: Vec<u8>) -> Result<(), RecoveryCut> {
        self.step()?;
        if let Some(log) = &mut self.log {
            log.push(ImageWrite::Structure(name.to_owned(), bytes.len()));
        }
        self.structures.insert(name.to_owned(), bytes);
        Ok(())
    }
}

/// The report of a recovery.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Transactions found committed and carried through.
    pub replayed: u64,
    /// Transactions found uncommitted and discarded or rolled back.
    pub discarded: u64,
    /// Lines or entries moved to their home address.
    pub lines_written: u64,
    /// Acknowledged work that recovery knows to be lost, one sentence each (energy that ended early).
    pub losses: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_the_writes_that_were_made_and_none_that_was_cut() {
        let at = PhysAddr(0x1000);
        let mut image = CrashImage::new(Pages::new(at, 1 << 16));
        image.write_u64(at, 1).unwrap();
        image.keep_log();
        image.cut_at(Some(3));
        image.write_u64(at, 2).unwrap();
        image.keep("register", vec![7, 8]).unwrap();
        assert_eq!(image.write_u64(at, 3), Err(RecoveryCut));
        let two = ImageWrite::Pmem(at, 2u64.to_le_bytes().to_vec());
        assert_eq!(image.take_log(), [two, ImageWrite::Structure("register".into(), 2)]);
        image.cut_at(None);
        image.write_u64(at, 4).unwrap();
        assert!(image.take_log().is_empty());
    }
}
