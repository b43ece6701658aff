//! The stores that are durable for certain (M4): those whose line a core has cleaned, and non-temporal stores, once a fence of that core has
//! waited for them.

use super::persists::{PersistId, Persists};
use durasim_types::{CoreId, LineAddr};
use std::collections::BTreeMap;

/// The cleans and non-temporal stores that the next fence of each core waits for.
#[derive(Clone, Debug, Default)]
pub(super) struct Awaited(BTreeMap<CoreId, OfCore>);

#[derive(Clone, Debug, Default)]
struct OfCore {
    /// Cleaned lines, each with the number before which its stores are covered by the clean.
    cleaned: BTreeMap<LineAddr, PersistId>,
    non_temporal: Vec<PersistId>,
}

impl Awaited {
    /// A core has cleaned a line: that covers the stores to it so far, of all cores.
    pub fn clean(&mut self, core: CoreId, line: LineAddr, persists: &Persists) {
        self.0.entry(core).or_default().cleaned.insert(line, persists.next());
    }

    /// A core has made a non-temporal store.
    pub fn non_temporal(&mut self, core: CoreId, id: PersistId) {
        self.0.entry(core).or_default().non_temporal.push(id);
    }

    /// The stores that a fence of a core makes certain.
    pub fn at_fence(&self, core: CoreId, persists: &Persists) -> Vec<PersistId> {
        let Some(of_core) = self.0.get(&core) else { return Vec::new() };
        let cleaned = of_core.cleaned.iter().flat_map(|(line, before)| persists.pending_of(*line, *before));
        let non_temporal = of_core.non_temporal.iter().copied().filter(|id| persists.is_pending(*id));
        cleaned.chain(non_temporal).collect()
    }

    /// A core has made a fence.
    pub fn fence(&mut self, core: CoreId) {
        self.0.remove(&core);
    }
}
