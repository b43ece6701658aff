//! A run as a persistency model sees it: the steps of its journal become stores with an order.

use super::Persistency;
use super::certain::Awaited;
use super::epoch::Epoch;
use super::persists::{PersistId, Persists, StoredWord};
use super::strict::Strict;
use super::x86::X86;
use crate::persistency_model::PersistencyModel;
use durasim_types::{CoreId, LineAddr, Pages, PhysAddr, Site, Write};

const WORD_BYTES: u64 = 8;

/// The order of a model.
#[derive(Clone, Debug)]
enum Order {
    Strict(Strict),
    Epoch(Epoch),
    X86 { order: X86, has_clflush: bool },
}

impl Order {
    fn of(model: PersistencyModel) -> Self {
        match model {
            PersistencyModel::Strict => Order::Strict(Strict::default()),
            PersistencyModel::Epoch => Order::Epoch(Epoch::default()),
            PersistencyModel::X86 => Order::X86 { order: X86::default(), has_clflush: false },
            PersistencyModel::X86Clflush => Order::X86 { order: X86::default(), has_clflush: true },
        }
    }
}

/// The stores of a run so far under a model.
#[derive(Clone, Debug)]
pub(crate) struct ModelledRun {
    persistency: Persistency,
    order: Order,
    persists: Persists,
    awaited: Awaited,
    core: CoreId,
    site: Site,
}

impl ModelledRun {
    /// A run that begins on this persistent memory.
    pub fn new(persistency: &Persistency, initial: Pages) -> Self {
        ModelledRun {
            persistency: persistency.clone(),
            order: Order::of(persistency.model),
            persists: Persists::new(initial),
            awaited: Awaited::default(),
            core: CoreId(0),
            site: Site::default(),
        }
    }

    pub fn model(&self) -> PersistencyModel {
        self.persistency.model
    }

    /// The stores so far.
    pub fn persists(&self) -> &Persists {
        &self.persists
    }

    /// The core of the next step.
    pub fn moment(&mut self, core: CoreId) {
        self.core = core;
    }

    /// The instruction and the thread of the next step.
    pub fn site(&mut self, site: Site) {
        self.site = site;
    }

    /// A store is visible.
    pub fn store(&mut self, write: &Write) {
        let is_non_temporal = self.persistency.instructions.is_hinted(self.site.pc);
        for stored in words_of(write) {
            let id = self.persists.next();
            let after = match &mut self.order {
                Order::Strict(strict) => strict.store(id),
                Order::Epoch(epoch) => epoch.store(id, self.site.thread, stored.word),
                Order::X86 { order, .. } => order.store(id, &stored, is_non_temporal),
            };
            self.persists.store(stored, after);
            if is_non_temporal {
                self.awaited.non_temporal(self.core, id);
            }
        }
    }

    /// The stores that a clean makes certain if it is performed now.
    pub fn certain_at_clean(&self, line: LineAddr) -> Vec<PersistId> {
        let is_clflush = matches!(self.order, Order::X86 { has_clflush: true, .. })
            && self.persistency.instructions.is_flush(self.site.pc);
        if is_clflush { self.persists.pending_of(line, self.persists.next()).collect() } else { Vec::new() }
    }

    /// A core has performed `cbo.clean` or `cbo.flush` of a line.
    pub fn cleaned(&mut self, core: CoreId, line: LineAddr) {
        let certain = self.certain_at_clean(line);
        self.persists.settle(certain);
        self.awaited.clean(core, line, &self.persists);
    }

    /// The stores that a fence of a core makes certain if it is done now.
    pub fn certain_at_fence(&self, core: CoreId) -> Vec<PersistId> {
        self.awaited.at_fence(core, &self.persists)
    }

    /// A fence of a core with W in its predecessor set is done.
    pub fn fenced(&mut self, core: CoreId) {
        let certain = self.certain_at_fence(core);
        self.persists.settle(certain);
        self.awaited.fence(core);
        if let Order::Epoch(epoch) = &mut self.order {
            epoch.fence(self.site.thread, &mut self.persists);
        }
    }
}

/// The parts of a store by word (M2).
fn words_of(write: &Write) -> impl Iterator<Item = StoredWord> + use<> {
    let Write { addr, len, data } = *write;
    let first = addr.0 & !(WORD_BYTES - 1);
    (0..2).map(move |next| first + WORD_BYTES * next).filter_map(move |word| {
        let mut stored = StoredWord { word: PhysAddr(word), mask: 0, data: 0 };
        for byte in (0..u64::from(len)).filter(|byte| addr.0 + byte >= word && addr.0 + byte < word + WORD_BYTES) {
            let shift = 8 * (addr.0 + byte - word);
            stored.mask |= 0xff << shift;
            stored.data |= (data >> (8 * byte) & 0xff) << shift;
        }
        (stored.mask != 0).then_some(stored)
    })
}
