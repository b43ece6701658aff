//! The state of the memory system: forked, saved, and put into a new system of the same configuration.
//!
//! Each of the three names every field of [`System`]: a field that is added does not compile until it is said what
//! becomes of it.

use super::{Later, System, TxStats, gates, transactions};
use crate::latency::Latency;
use durasim_cache::{CacheArray, Directory, Mshrs};
use durasim_design::Row;
use durasim_memory::{Memory, Reservations};
use durasim_types::{ConfigError, Cycle, DataRange, Error, LineAddr, TxId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

macro_rules! state {
    ($($field:ident: $type:ty,)*) => {
        /// The state by reference, to be saved.
        #[derive(Serialize)]
        pub(crate) struct Written<'a> {
            $($field: &'a $type,)*
            design: Vec<u8>,
        }

        /// The state as it was saved: the same fields in the same order.
        #[derive(Deserialize)]
        pub(crate) struct Read {
            $($field: $type,)*
            design: Vec<u8>,
        }

        impl System {
            /// All that changes while the system works.
            pub(crate) fn state(&self) -> Written<'_> {
                let System {
                    $($field,)*
                    design,
                    // From the configuration.
                    clock: _, domain: _, geometry: _, inclusive: _, request_cycles: _, response_cycles: _, memory_request_cycles: _,
                    memory_response_cycles: _, hop_cycles: _, snoop_cycles: _,
                    write_back_buffers: _, hooks: _, exclusive_tags: _, tag_limits: _,
                    tagged_access_cycles: _, own_lines_are_silent: _, llc_keeps_tagged: _,
                    // Of use within a step only.
                    spare: _, view_tags: _, view_ranks: _, standing: _,
                    // Whoever watches belongs to this machine.
                    observer: _, journal: _, unfenced: _, history: _,
                } = self;
                Written { $($field,)* design: design.save() }
            }

            /// Puts a saved state into this system, which was built for the same plan.
            ///
            /// # Errors
            /// A state of the design that it refuses.
            pub(crate) fn put_state(&mut self, row: &Row, spec: &Value, read: Read) -> Result<(), ConfigError> {
                let loaded = (row.hardware.load)(spec, &self.geometry, &read.design);
                self.design = loaded.map_err(|e| ConfigError::new("from", e.problem))?;
                $(self.$field = read.$field;)*
                Ok(())
            }
        }
    };
}

state! {
    l1i: Vec<CacheArray>,
    l1d: Vec<CacheArray>,
    l2: Vec<CacheArray>,
    llc: CacheArray,
    directory: Directory,
    coherence_stats: super::CoherenceStats,
    reservations: Vec<Option<LineAddr>>,
    l1i_mshrs: Vec<Mshrs>,
    l1d_mshrs: Vec<Mshrs>,
    l2_mshrs: Vec<Mshrs>,
    l1d_write_backs: Vec<Mshrs>,
    l2_write_backs: Vec<Mshrs>,
    llc_mshrs: Mshrs,
    llc_ports: Vec<Reservations>,
    crossbar: Option<super::Crossbar>,
    pmem: Memory,
    dram: Memory,
    persist_buffers: super::PersistBuffers,
    pinned: Vec<LineAddr>,
    later: BinaryHeap<Reverse<(Cycle, u64, usize)>>,
    later_work: BTreeMap<usize, Later>,
    later_count: u64,
    instruction_timers: BTreeSet<(u64, u64)>,
    next_instruction_timer: u64,
    due: Cycle,
    outstanding: BTreeMap<u64, u32>,
    cleans: Vec<u32>,
    clean_acks: Vec<Cycle>,
    raised: BTreeSet<u64>,
    suspended: Vec<Option<gates::Suspension>>,
    running: Vec<Option<TxId>>,
    open: BTreeMap<TxId, transactions::OpenTx>,
    moved_tx: bool,
    abort_notices: u32,
    event_count: u64,
    event_kinds: [u64; durasim_types::EventKind::COUNT],
    stamp: Cycle,
    data_range: Option<DataRange>,
    instructions: u64,
    tx_count: u64,
    tx_stats: TxStats,
    tx_latency: Latency,
    halted: bool,
    error: Option<Error>,
}

impl System {
    /// A second system in the same state, which goes on by itself. Nobody watches it.
    pub(crate) fn fork(&mut self) -> System {
        let forked = |arrays: &mut [CacheArray]| arrays.iter_mut().map(CacheArray::fork).collect::<Vec<_>>();
        let (l1i, l1d, l2) = (forked(&mut self.l1i), forked(&mut self.l1d), forked(&mut self.l2));
        let llc = self.llc.fork();
        System {
            l1i,
            l1d,
            l2,
            llc,
            design: self.design.fork(),
            observer: None,
            journal: None,
            unfenced: None,
            history: None,
            spare: Vec::new(),
            standing: (0, 0),
            view_tags: Vec::new(),
            view_ranks: Vec::new(),
            geometry: self.geometry.clone(),
            directory: self.directory.clone(),
            reservations: self.reservations.clone(),
            l1i_mshrs: self.l1i_mshrs.clone(),
            l1d_mshrs: self.l1d_mshrs.clone(),
            l2_mshrs: self.l2_mshrs.clone(),
            l1d_write_backs: self.l1d_write_backs.clone(),
            l2_write_backs: self.l2_write_backs.clone(),
            llc_mshrs: self.llc_mshrs.clone(),
            llc_ports: self.llc_ports.clone(),
            crossbar: self.crossbar.clone(),
            pmem: self.pmem.clone(),
            dram: self.dram.clone(),
            persist_buffers: self.persist_buffers.clone(),
            pinned: self.pinned.clone(),
            later: self.later.clone(),
            later_work: self.later_work.clone(),
            instruction_timers: self.instruction_timers.clone(),
            outstanding: self.outstanding.clone(),
            cleans: self.cleans.clone(),
            clean_acks: self.clean_acks.clone(),
            raised: self.raised.clone(),
            suspended: self.suspended.clone(),
            running: self.running.clone(),
            open: self.open.clone(),
            tx_latency: self.tx_latency.clone(),
            error: self.error.clone(),
            clock: self.clock,
            domain: self.domain,
            inclusive: self.inclusive,
            request_cycles: self.request_cycles,
            response_cycles: self.response_cycles,
            memory_request_cycles: self.memory_request_cycles,
            memory_response_cycles: self.memory_response_cycles,
            hop_cycles: self.hop_cycles,
            snoop_cycles: self.snoop_cycles,
            write_back_buffers: self.write_back_buffers,
            coherence_stats: self.coherence_stats,
            hooks: self.hooks,
            exclusive_tags: self.exclusive_tags,
            tag_limits: self.tag_limits,
            tagged_access_cycles: self.tagged_access_cycles,
            own_lines_are_silent: self.own_lines_are_silent,
            llc_keeps_tagged: self.llc_keeps_tagged,
            later_count: self.later_count,
            next_instruction_timer: self.next_instruction_timer,
            due: self.due,
            moved_tx: self.moved_tx,
            abort_notices: self.abort_notices,
            event_count: self.event_count,
            event_kinds: self.event_kinds,
            stamp: self.stamp,
            data_range: self.data_range,
            instructions: self.instructions,
            tx_count: self.tx_count,
            tx_stats: self.tx_stats,
            halted: self.halted,
        }
    }

    /// Names what is under way right now: what a snapshot of this moment has to hold beside caches and memory.
    pub fn under_way(&self) -> Vec<&'static str> {
        let queued = |memory: &Memory| memory.queue().next().is_some();
        let names = [
            ("open transaction", !self.open.is_empty()),
            ("aborted transaction", self.abort_notices > 0),
            ("suspended request", self.suspended.iter().any(Option::is_some)),
            ("queued write", queued(&self.pmem) || queued(&self.dram)),
            ("persist buffer", self.persist_buffers.resident_lines() > 0),
            ("waiting write", self.pmem.inbound_len() + self.dram.inbound_len() > 0),
            ("awaited acknowledgement", !self.outstanding.is_empty()),
            ("awaited clean", self.cleans.iter().any(|&n| n > 0)),
            ("scheduled work", !self.later_work.is_empty()),
            ("instruction timer", !self.instruction_timers.is_empty()),
        ];
        names.into_iter().filter_map(|(name, is)| is.then_some(name)).collect()
    }
}
