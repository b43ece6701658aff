//! The cache-block operations and fences of a program by line of its source: which had nothing to do, what each cost, and which
//! stores to persistent memory were never followed by one. What pmemcheck reports of x86 programs, for RISC-V.

use durasim_kernel::{SourceFrame, SourceLines};
use durasim_types::{BlockOperation, CoreId, Cycle, DataRange, Journal, LINE_BYTES, LineAddr, Site, TxId, Write};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Cache-block operations, fences and stores of one line of the source, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PersistenceUse {
    /// Cache-block operations (`cbo.clean`, `cbo.flush`, `cbo.inval`).
    pub operations: u64,
    /// Those of them that found no changed bytes of their line in the caches.
    pub operations_of_clean_lines: u64,
    /// Those of lines of persistent memory to which no thread had stored since the last `cbo.clean` or `cbo.flush` of the line.
    pub operations_without_store: u64,
    /// Those of lines of other memory.
    pub operations_of_volatile_lines: u64,
    /// Core cycles in which fences waited for these operations: each operation since the last fence of its core has an equal share
    /// of the wait of the next one. The wait of the machine's own fence, when a thread leaves its core, is not counted.
    pub operation_wait_cycles: Cycle,
    /// The part of `operation_wait_cycles` of fences before which no operation had anything to write.
    pub wasted_wait_cycles: Cycle,
    /// Fences with W in their predecessor set.
    pub fences: u64,
    /// Those of them with no cache-block operation of their core since the one before.
    pub fences_without_operation: u64,
    /// Core cycles in which these fences waited.
    pub fence_wait_cycles: Cycle,
    /// Stores to persistent memory.
    pub stores: u64,
    /// Bytes that they stored.
    pub stored_bytes: u64,
    /// Bytes of persistent memory that were last stored here, and whose line no `cbo.clean` or `cbo.flush` wrote back
    /// before the end.
    pub uncleaned_bytes: u64,
}

impl PersistenceUse {
    fn add(&mut self, other: &PersistenceUse) {
        self.operations += other.operations;
        self.operations_of_clean_lines += other.operations_of_clean_lines;
        self.operations_without_store += other.operations_without_store;
        self.operations_of_volatile_lines += other.operations_of_volatile_lines;
        self.operation_wait_cycles += other.operation_wait_cycles;
        self.wasted_wait_cycles += other.wasted_wait_cycles;
        self.fences += other.fences;
        self.fences_without_operation += other.fences_without_operation;
        self.fence_wait_cycles += other.fence_wait_cycles;
        self.stores += other.stores;
        self.stored_bytes += other.stored_bytes;
        self.uncleaned_bytes += other.uncleaned_bytes;
    }

    fn has_operation_fence_or_uncleaned_bytes(&self) -> bool {
        self.operations > 0 || self.fences > 0 || self.uncleaned_bytes > 0
    }
}

/// A line of the source with its use of persistent memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PersistenceLine {
    /// The function; of one that the compiler has put into another one, the outer function. Null if it is not known.
    pub function: Option<String>,
    /// The file, as the compiler was given it; null if it is not known.
    pub file: Option<String>,
    /// The line, from 1; null if it is not known.
    pub line: Option<u32>,
    /// The addresses of its instructions.
    pub pcs: Vec<u64>,
    /// The sums over these instructions.
    #[serde(flatten)]
    pub uses: PersistenceUse,
}

/// The use of cache-block operations and fences by a program, from its start to its end.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PersistenceReport {
    /// All lines together.
    pub total: PersistenceUse,
    /// Bytes of the lines of persistent memory on which there were `cbo.clean` and `cbo.flush`, counted again for each of these.
    pub cleaned_bytes: u64,
    /// `cleaned_bytes` divided by the stored bytes; null without stores.
    pub cleaned_per_stored: Option<f64>,
    /// Lines of the source with an operation, a fence or uncleaned bytes.
    pub lines: Vec<PersistenceLine>,
    /// A sentence about what the debug information of the program lacks; null if it names lines.
    pub debug_information: Option<String>,
}

/// The bytes of a line that were stored since it was last written back, by the instruction that stored them last.
type StoredBytes = BTreeMap<u64, u64>;

/// The operations of a core between two of its fences.
#[derive(Debug, Default)]
struct Operations {
    /// Their number, by instruction.
    counts: BTreeMap<u64, u64>,
    has_something_to_write: bool,
}

#[derive(Debug, Default)]
struct Recording {
    site: Site,
    uses: BTreeMap<u64, PersistenceUse>,
    lines: BTreeMap<LineAddr, StoredBytes>,
    unfenced: BTreeMap<CoreId, Operations>,
    /// The operations that the last fence of a core has waited for, until the fence instruction is known to be done.
    fenced: BTreeMap<CoreId, Operations>,
    cleaned_bytes: u64,
}

impl Recording {
    fn used(&mut self) -> &mut PersistenceUse {
        self.uses.entry(self.site.pc).or_default()
    }

    fn store(&mut self, write: Write) {
        let pc = self.site.pc;
        let used = self.used();
        used.stores += 1;
        used.stored_bytes += u64::from(write.len);
        let mut at = write.addr;
        let end = write.addr.plus(u64::from(write.len));
        while at < end {
            let line = at.line();
            let next = line.base().plus(LINE_BYTES).min(end);
            let mask = mask_of(at.0 % LINE_BYTES, next.0 - at.0);
            let stored = self.lines.entry(line).or_default();
            stored.retain(|_, bytes| {
                *bytes &= !mask;
                *bytes != 0
            });
            stored.insert(pc, stored.get(&pc).copied().unwrap_or(0) | mask);
            at = next;
        }
    }

    fn operation(&mut self, core: CoreId, operation: BlockOperation) {
        let pc = self.site.pc;
        let was_stored = if operation.writes_back {
            self.lines.remove(&operation.line).is_some()
        } else {
            self.lines.contains_key(&operation.line)
        };
        let used = self.used();
        used.operations += 1;
        used.operations_of_clean_lines += u64::from(operation.has_nothing_to_write);
        used.operations_without_store += u64::from(operation.is_persistent && !was_stored);
        used.operations_of_volatile_lines += u64::from(!operation.is_persistent);
        if operation.is_persistent && operation.writes_back {
            self.cleaned_bytes += LINE_BYTES;
        }
        let unfenced = self.unfenced.entry(core).or_default();
        *unfenced.counts.entry(pc).or_default() += 1;
        unfenced.has_something_to_write |= !operation.has_nothing_to_write;
    }

    fn fenced(&mut self, core: CoreId) {
        let operations = self.unfenced.remove(&core).unwrap_or_default();
        self.fenced.insert(core, operations);
    }

    fn fence_instruction(&mut self, core: CoreId, waited_cycles: Cycle) {
        let Operations { counts, has_something_to_write } = self.fenced.remove(&core).unwrap_or_default();
        let used = self.used();
        used.fences += 1;
        used.fences_without_operation += u64::from(counts.is_empty());
        used.fence_wait_cycles += waited_cycles;
        let all: u64 = counts.values().sum();
        let mut left_over = waited_cycles.checked_rem(all).unwrap_or(0);
        for (pc, count) in counts {
            // The operations at the lowest addresses have the cycles that are left over.
            let further = count.min(left_over);
            left_over -= further;
            let share = waited_cycles / all * count + further;
            let used = self.uses.entry(pc).or_default();
            used.operation_wait_cycles += share;
            used.wasted_wait_cycles += if has_something_to_write { 0 } else { share };
        }
    }

    fn report(&self, elf_path: &Path, elf: &[u8]) -> PersistenceReport {
        let mut uses = self.uses.clone();
        for (&pc, &bytes) in self.lines.values().flatten() {
            uses.entry(pc).or_default().uncleaned_bytes += u64::from(bytes.count_ones());
        }
        let mut sources = SourceLines::of(elf_path, elf);
        let (mut total, mut lines) = (PersistenceUse::default(), BTreeMap::new());
        for (&pc, used) in &uses {
            total.add(used);
            if used.has_operation_fence_or_uncleaned_bytes() {
                let frame = sources.frames(pc).pop().unwrap_or_default();
                // Instructions without a known line are listed one by one.
                let key = (frame.clone(), if frame.line.is_some() { 0 } else { pc });
                let (pcs, sum): &mut (Vec<u64>, PersistenceUse) = lines.entry(key).or_default();
                pcs.push(pc);
                sum.add(used);
            }
        }
        let debug_information = if lines.is_empty() { None } else { sources.problem() };
        let line = |((frame, _), (pcs, uses)): ((SourceFrame, u64), (Vec<u64>, PersistenceUse))| PersistenceLine {
            function: frame.function,
            file: frame.file,
            line: frame.line,
            pcs,
            uses,
        };
        let stored_bytes = total.stored_bytes;
        PersistenceReport {
            total,
            cleaned_bytes: self.cleaned_bytes,
            cleaned_per_stored: (stored_bytes > 0).then(|| self.cleaned_bytes as f64 / stored_bytes as f64),
            lines: lines.into_iter().map(line).collect(),
            debug_information,
        }
    }
}

/// The bits of these bytes of a line.
fn mask_of(offset: u64, bytes: u64) -> u64 {
    (u64::MAX >> (LINE_BYTES - bytes)) << offset
}

/// Listens to a run. Clones listen to the same one.
#[derive(Clone, Debug, Default)]
pub(crate) struct PersistenceRecorder(Arc<Mutex<Recording>>);

impl PersistenceRecorder {
    fn with<T>(&self, act: impl FnOnce(&mut Recording) -> T) -> T {
        act(&mut self.0.lock().expect("no thread panics while it holds the recording"))
    }

    /// The report so far on the program `elf`, which was read from a file.
    pub fn report(&self, elf_path: &Path, elf: &[u8]) -> PersistenceReport {
        self.with(|recording| recording.report(elf_path, elf))
    }
}

impl Journal for PersistenceRecorder {
    fn site(&mut self, site: Site) {
        self.with(|recording| recording.site = site);
    }

    fn data_range(&mut self, _range: DataRange) {}

    fn begin(&mut self, _tx: TxId) {}

    fn store(&mut self, _tx: Option<TxId>, write: Write) {
        self.with(|recording| recording.store(write));
    }

    fn block_operation(&mut self, core: CoreId, operation: BlockOperation) {
        self.with(|recording| recording.operation(core, operation));
    }

    fn fenced(&mut self, core: CoreId) {
        self.with(|recording| recording.fenced(core));
    }

    fn fence_instruction(&mut self, core: CoreId, waited_cycles: Cycle) {
        self.with(|recording| recording.fence_instruction(core, waited_cycles));
    }

    fn committing(&mut self, _tx: TxId) {}

    fn acknowledged(&mut self, _tx: TxId) {}

    fn aborted(&mut self, _tx: TxId) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use durasim_types::PhysAddr;

    const CORE: CoreId = CoreId(0);
    const BASE: PhysAddr = PhysAddr(0x1_0000);

    fn at(recorder: &mut PersistenceRecorder, pc: u64) -> &mut PersistenceRecorder {
        recorder.site(Site { pc, ..Site::default() });
        recorder
    }

    fn clean(addr: PhysAddr, has_nothing_to_write: bool) -> BlockOperation {
        BlockOperation { line: addr.line(), is_persistent: true, writes_back: true, has_nothing_to_write }
    }

    fn store(offset: u64, len: u8) -> Write {
        Write { addr: BASE.plus(offset), len, data: 0 }
    }

    /// A fence instruction at `pc`.
    fn fence(recorder: &mut PersistenceRecorder, pc: u64, waited_cycles: Cycle) {
        at(recorder, pc).fenced(CORE);
        at(recorder, pc).fence_instruction(CORE, waited_cycles);
    }

    fn uses_at(report: &PersistenceReport, pc: u64) -> PersistenceUse {
        report.lines.iter().find(|line| line.pcs == [pc]).expect("the instruction is listed").uses
    }

    #[test]
    fn operations_fences_and_stores_are_counted_by_instruction() {
        let mut recorder = PersistenceRecorder::default();
        at(&mut recorder, 0x10).store(None, store(0, 8));
        // Crosses into the next line, and overwrites four bytes of the first store.
        at(&mut recorder, 0x14).store(None, store(60, 8));
        at(&mut recorder, 0x18).store(None, store(4, 4));
        at(&mut recorder, 0x20).block_operation(CORE, clean(BASE.plus(64), false));
        at(&mut recorder, 0x24).block_operation(CORE, clean(BASE.plus(64), true));
        fence(&mut recorder, 0x30, 11);
        fence(&mut recorder, 0x34, 0);
        at(&mut recorder, 0x24).block_operation(CORE, clean(BASE.plus(64), true));
        fence(&mut recorder, 0x30, 5);
        let report = recorder.report(Path::new("none"), &[]);
        let of = |pc| uses_at(&report, pc);
        assert_eq!(of(0x10).uncleaned_bytes, 4);
        assert_eq!(of(0x14).uncleaned_bytes, 4, "the other four are in the line that was cleaned");
        assert_eq!(of(0x18).uncleaned_bytes, 4);
        let first = of(0x20);
        assert_eq!((first.operations, first.operations_without_store, first.operation_wait_cycles), (1, 0, 6));
        let second = of(0x24);
        assert_eq!((second.operations, second.operations_of_clean_lines), (2, 2));
        assert_eq!((second.operations_without_store, second.operation_wait_cycles), (2, 10));
        assert_eq!(second.wasted_wait_cycles, 5, "of the fence that had nothing else to wait for");
        let fence = of(0x30);
        assert_eq!((fence.fences, fence.fences_without_operation, fence.fence_wait_cycles), (2, 0, 16));
        assert_eq!(of(0x34).fences_without_operation, 1);
        assert_eq!((report.total.stores, report.total.stored_bytes, report.cleaned_bytes), (3, 20, 192));
        assert!(report.debug_information.is_some());
    }
    #[test]
    fn an_invalidation_writes_nothing_back() {
        let mut recorder = PersistenceRecorder::default();
        at(&mut recorder, 0x10).store(None, store(0, 8));
        let invalidation = BlockOperation { writes_back: false, ..clean(BASE, false) };
        at(&mut recorder, 0x14).block_operation(CORE, invalidation);
        let report = recorder.report(Path::new("none"), &[]);
        assert_eq!(uses_at(&report, 0x10).uncleaned_bytes, 8);
        assert_eq!((uses_at(&report, 0x14).operations, uses_at(&report, 0x14).operations_without_store), (1, 0));
        assert_eq!(report.cleaned_bytes, 0);
    }

    #[test]
    fn what_the_machine_has_waited_for_is_not_left_to_the_next_fence() {
        let mut recorder = PersistenceRecorder::default();
        at(&mut recorder, 0x10).block_operation(CORE, clean(BASE, false));
        // The thread leaves its core.
        recorder.fenced(CORE);
        at(&mut recorder, 0x14).block_operation(CORE, clean(BASE, false));
        fence(&mut recorder, 0x18, 7);
        let report = recorder.report(Path::new("none"), &[]);
        assert_eq!(uses_at(&report, 0x10).operation_wait_cycles, 0);
        assert_eq!(uses_at(&report, 0x14).operation_wait_cycles, 7);
    }
}
