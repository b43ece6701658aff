//! A second machine in the same state.

use super::Machine;
use super::kept_call_stacks::KeptCallStacks;
use durasim_core::Core;

impl Machine {
    /// A machine in the same state that continues independently: neither sees what later happens to the other. Large caches,
    /// memories, page tables and decoded code are shared until one side changes them, which is why the original has to
    /// be borrowed mutably.
    ///
    /// The fork has no observer and keeps no journal. It never writes to files of the host
    /// ([`durasim_kernel::Process::fork`]).
    pub fn fork(&mut self) -> Machine {
        Machine {
            system: self.system.fork(),
            process: self.process.fork(),
            cores: self.cores.iter_mut().map(Core::fork).collect(),
            measure: self.measure.clone(),
            scheduler: self.scheduler.clone(),
            pauses: self.pauses.clone(),
            drain_reasons: self.drain_reasons.clone(),
            interrupted_step: self.interrupted_step,
            stop_at_snapshot_point: self.stop_at_snapshot_point,
            stops_after_region: self.stops_after_region,
            cycles_max: self.cycles_max,
            context_switch_cycles: self.context_switch_cycles,
            skew_cycles: self.skew_cycles,
            physical_cores: self.physical_cores,
            executes_singly: self.executes_singly,
            inserted: self.inserted.clone(),
            call_stacks: KeptCallStacks::default(),
        }
    }
}
