//! A machine as a debugger sees it: one instruction at a time, the registers of the threads, and memory as a thread loads it.

use super::{Ending, Machine};
use durasim_isa::{DataAccess, Hart, decode};
use durasim_kernel::{Output, ThreadId, Viewed};
use durasim_types::{CoreId, Error, PAGE_BYTES, PhysAddr};

/// A step of a machine that executes its instructions singly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SingleStep {
    /// This thread has executed an instruction.
    Executed(ThreadId),
    /// Other parts of the machine have acted.
    NoInstruction,
    /// The run has ended, in the step in which this thread has executed its last instruction, if one has.
    Ended(Ending, Option<ThreadId>),
}

/// A thread of the program.
#[derive(Clone, Copy, Debug)]
pub struct ThreadView<'a> {
    /// Its number.
    pub thread: ThreadId,
    /// Its core, if it has one.
    pub core: Option<CoreId>,
    /// Its registers. Those of a thread that has a core are those after its last executed instruction, which need not have
    /// committed.
    pub hart: &'a Hart,
}

impl Machine {
    /// From now on a core executes at most one instruction in a step. The run takes the same course as without this.
    pub fn execute_singly(&mut self) {
        self.executes_singly = true;
    }

    /// Takes the next step of a machine that executes singly.
    ///
    /// # Errors
    /// As from [`Machine::run`].
    pub fn single_step(&mut self, output: &mut dyn Output) -> Result<SingleStep, Error> {
        debug_assert!(self.executes_singly, "one instruction at most is asked for");
        let step = self.take_step(1, output)?;
        let executed = step.core.filter(|_| step.executed > 0).map(|core| self.measure.threads[usize::from(core.0)]);
        Ok(match (step.ending, executed) {
            (Some(ending), executed) => SingleStep::Ended(ending, executed),
            (None, Some(thread)) => SingleStep::Executed(thread),
            (None, None) => SingleStep::NoInstruction,
        })
    }

    /// The threads of the program that have not ended, by their numbers.
    pub fn program_threads(&self) -> Vec<ThreadView<'_>> {
        let on_cores = (0..).map(CoreId).zip(&self.cores).filter_map(|(id, core)| {
            let thread = self.scheduler.running(id)?;
            Some(ThreadView { thread, core: Some(id), hart: &core.hart })
        });
        let without_core = self.scheduler.waiting_contexts();
        let without_core =
            without_core.map(|(thread, context)| ThreadView { thread, core: None, hart: context.hart() });
        let mut threads: Vec<_> = on_cores.chain(without_core).collect();
        threads.sort_by_key(|view| view.thread);
        threads
    }

    /// A thread of the program, if it has not ended.
    pub fn program_thread(&self, thread: ThreadId) -> Option<ThreadView<'_>> {
        self.program_threads().into_iter().find(|view| view.thread == thread)
    }

    /// The program counter of a thread, if it has not ended.
    pub fn thread_pc(&self, thread: ThreadId) -> Option<u64> {
        let core = (0..self.cores.len()).find(|&core| self.scheduler.running(CoreId(core as u16)) == Some(thread));
        core.map_or_else(|| self.scheduler.pc(thread), |core| Some(self.cores[core].hart.pc))
    }

    /// Reads memory from a virtual address on as a thread loads it: its stores that have not left its core included. Gives the
    /// number of bytes before the first one that is not mapped. The machine stays as it is.
    pub fn read_as(&mut self, thread: ThreadId, addr: u64, bytes: &mut [u8]) -> usize {
        let core = self.program_thread(thread).and_then(|view| view.core);
        // A design may have to load a line to read it.
        let mut fork = self.fork();
        let cycle = fork.cycle();
        let mut done = 0;
        while done < bytes.len() {
            let at = addr.wrapping_add(done as u64);
            let Some(viewed) = fork.process.space().view(at) else { break };
            let in_page = (PAGE_BYTES - at % PAGE_BYTES) as usize;
            let end = bytes.len().min(done + in_page);
            let part = &mut bytes[done..end];
            match viewed {
                Viewed::Zeros => part.fill(0),
                Viewed::Frame(phys) => {
                    fork.system.read_newest(core.unwrap_or(CoreId(0)), phys, part, None, cycle);
                    if let Some(core) = core {
                        fork.core(core).put_buffered_stores_over(phys, part);
                    }
                }
            }
            done = end;
        }
        done
    }

    /// The physical address of a virtual one; `None` if it has none.
    pub fn physical_address(&mut self, addr: u64) -> Option<PhysAddr> {
        self.process.space().view(addr)?.frame()
    }

    /// The access to memory of a thread's next instruction; `None` if it makes none whose address is known.
    pub fn next_access(&mut self, thread: ThreadId) -> Option<DataAccess> {
        let pc = self.thread_pc(thread)?;
        let mut half = |at| Some(u32::from(self.system.code(self.process.space().view(at)?.frame()?)));
        let low = half(pc)?;
        let bits = if low & 3 == 3 { low | half(pc.wrapping_add(2))? << 16 } else { low };
        decode(bits).ok()?.data_access(self.program_thread(thread)?.hart)
    }
}
