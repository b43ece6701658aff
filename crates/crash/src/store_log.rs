//! All stores of a run to persistent memory, with their cleans, fences and transactions, and the instruction of each: what causes of
//! violations are looked for in.

use durasim_machine::CallStacks;
use durasim_types::{CoreId, Cycle, DataRange, Journal, LineAddr, Pages, Site, TxId, Write};
use std::sync::{Arc, Mutex};

/// Steps that are kept. A run with more has no log: 100 MB.
const STEPS_MAX: usize = 1 << 20;

/// A step of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Store(Option<TxId>, Write),
    /// `cbo.clean` or `cbo.flush` of this line.
    Clean(LineAddr),
    /// A fence with W in its predecessor set.
    Fence,
    /// Any other fence.
    OtherFence,
    Acknowledged(TxId),
    Aborted(TxId),
}

/// A step with the instruction that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Logged {
    pub core: CoreId,
    pub site: Site,
    pub step: Step,
}

/// The log of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoreLog {
    /// In the order in which the machine made them.
    pub steps: Vec<Logged>,
    /// By persist event, from the first one on, the number of steps before it.
    events: Vec<usize>,
    /// Persistent memory when the program started.
    pub initial: Pages,
    /// The data that the program has declared.
    pub range: Option<DataRange>,
    /// Whether the run made more steps than are kept.
    pub is_cut: bool,
    /// The call stacks of the steps.
    pub call_stacks: Arc<Mutex<CallStacks>>,
}

impl StoreLog {
    /// The number of steps before this persist event.
    pub fn steps_before(&self, event: u64) -> usize {
        self.events.get(event.saturating_sub(1) as usize).copied().unwrap_or(self.steps.len())
    }

    /// The store with this number, if that step is one.
    pub fn store(&self, index: usize) -> Option<(Option<TxId>, Write)> {
        match self.steps.get(index)?.step {
            Step::Store(tx, write) => Some((tx, write)),
            _ => None,
        }
    }

    /// The return addresses of the calls that have led to a step, the innermost first.
    pub fn return_addresses(&self, site: Site) -> Vec<u64> {
        let call_stacks = self.call_stacks.lock().expect("no thread panics while it unwinds");
        call_stacks.return_addresses(site.call_stack).to_vec()
    }
}

/// The log, with the core and the instruction of the next step.
#[derive(Debug, Default)]
struct Recording {
    log: StoreLog,
    core: Option<CoreId>,
    site: Site,
}

/// Writes the log of a run. Clones write the same one.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoreRecorder(Arc<Mutex<Recording>>);

impl StoreRecorder {
    fn with<T>(&self, act: impl FnOnce(&mut Recording) -> T) -> T {
        act(&mut self.0.lock().expect("no thread panics while it holds the log"))
    }

    /// A run begins on this persistent memory, whose call stacks are kept there: what was recorded before is dropped.
    pub fn run_begins(&self, call_stacks: Arc<Mutex<CallStacks>>, pmem: Pages) {
        let log = StoreLog { initial: pmem, call_stacks, ..StoreLog::default() };
        self.with(|recording| *recording = Recording { log, ..Recording::default() });
    }

    /// The next persist event comes.
    pub fn event(&self) {
        self.with(|recording| recording.log.events.push(recording.log.steps.len()));
    }

    /// The number of steps so far.
    pub fn steps(&self) -> usize {
        self.with(|recording| recording.log.steps.len())
    }

    /// The log so far, which starts again.
    pub fn take(&self) -> StoreLog {
        self.with(|recording| std::mem::take(&mut recording.log))
    }

    fn add(&self, core: Option<CoreId>, step: Step) {
        self.with(|recording| {
            let (Some(core), log) = (core.or(recording.core), &mut recording.log) else { return };
            if log.steps.len() < STEPS_MAX {
                log.steps.push(Logged { core, site: recording.site, step });
            } else {
                log.is_cut = true;
            }
        });
    }
}

impl Journal for StoreRecorder {
    fn moment(&mut self, core: CoreId, _cycle: Cycle) {
        self.with(|recording| recording.core = Some(core));
    }

    fn site(&mut self, site: Site) {
        self.with(|recording| recording.site = site);
    }

    fn data_range(&mut self, range: DataRange) {
        self.with(|recording| recording.log.range = Some(range));
    }

    fn begin(&mut self, _tx: TxId) {}

    fn store(&mut self, tx: Option<TxId>, write: Write) {
        self.add(None, Step::Store(tx, write));
    }

    fn cleaned(&mut self, core: CoreId, line: LineAddr) {
        self.add(Some(core), Step::Clean(line));
    }

    fn fenced(&mut self, core: CoreId) {
        self.add(Some(core), Step::Fence);
    }

    fn fenced_without_writes(&mut self, core: CoreId) {
        self.add(Some(core), Step::OtherFence);
    }

    fn committing(&mut self, _tx: TxId) {}

    fn acknowledged(&mut self, tx: TxId) {
        self.add(None, Step::Acknowledged(tx));
    }

    fn aborted(&mut self, tx: TxId) {
        self.add(None, Step::Aborted(tx));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durasim_types::PhysAddr;

    #[test]
    fn steps_have_their_instruction_and_events_their_place() {
        let mut recorder = StoreRecorder::default();
        recorder.run_begins(Arc::default(), Pages::new(PhysAddr(0x1000), 0x1000));
        let write = Write { addr: PhysAddr(0x1000), len: 8, data: 7 };
        recorder.moment(CoreId(2), 10);
        recorder.site(Site { pc: 0x40, thread: 3, ..Site::default() });
        recorder.store(None, write);
        recorder.event();
        recorder.site(Site { pc: 0x44, thread: 3, ..Site::default() });
        recorder.cleaned(CoreId(2), write.addr.line());
        let log = recorder.take();
        assert_eq!(log.store(0), Some((None, write)));
        assert_eq!((log.steps[0].core, log.steps[0].site.pc, log.steps[1].site.pc), (CoreId(2), 0x40, 0x44));
        assert_eq!((log.steps_before(1), log.steps_before(2)), (1, 2));
        assert_eq!(log.store(1), None);
    }
}
