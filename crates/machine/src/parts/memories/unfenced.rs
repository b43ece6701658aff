//! Cache-block operations that no fence has waited for.
//!
//! The machine accepts writes in the order in which they arrive. The architecture promises less: until its core has made a
//! fence, a clean may have been accepted or not, whatever became of later ones; only the versions of one line follow each
//! other. What could have been instead is kept here, for crashes that choose among it.

use super::Memories;
use durasim_memory::Write;
use durasim_types::{CoreId, Line, LineAddr, Rng};
use std::collections::BTreeMap;

/// A version of a line in flight to the domain.
#[derive(Clone, Debug)]
struct Version {
    data: Line,
    /// The core that has asked for it and not made a fence since; `None`: it was evicted, or it is the first of its list,
    /// which is durable for certain.
    core: Option<CoreId>,
}

/// Versions of lines since the last one that is durable for certain, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Unfenced(BTreeMap<LineAddr, Vec<Version>>);

/// Combinations up to this number are counted through one by one, beyond it they are drawn.
const COUNTED_MAX: u64 = 1 << 16;

/// Decisions of a choice, one after the other: its digits if all `choices` can be counted, else drawn.
pub(crate) struct Chooser {
    rest: u64,
    drawn: Option<Rng>,
}

impl Chooser {
    pub(crate) fn new(choice: u64, choices: u64) -> Self {
        Chooser { rest: choice, drawn: (choices > COUNTED_MAX).then(|| Rng::new(choice)) }
    }

    pub(crate) fn next(&mut self, ways: u64) -> u64 {
        if let Some(rng) = &mut self.drawn {
            return rng.below(ways);
        }
        let way = self.rest % ways;
        self.rest /= ways;
        way
    }
}

impl Unfenced {
    /// A write is handed over that is not yet in `memories`.
    pub(super) fn note(&mut self, core: CoreId, write: &Write, clean: bool, memories: &Memories) {
        let line = write.line;
        if clean && !self.0.contains_key(&line) {
            let mut data = memories.durable_line(line);
            let mut versions = vec![Version { data, core: None }];
            let queued = memories.queue().map(|(_, entry)| &entry.write);
            let queued = queued.filter(|_| !memories.domain.queue_is_durable());
            let earlier = queued.chain(memories.inbound());
            for earlier in earlier.filter(|earlier| earlier.line == line && earlier.mask != 0) {
                earlier.overlay(&mut data);
                versions.push(Version { data, core: None });
            }
            self.0.insert(line, versions);
        }
        if let Some(versions) = self.0.get_mut(&line) {
            let mut data = versions[versions.len() - 1].data;
            write.overlay(&mut data);
            versions.push(Version { data, core: clean.then_some(core) });
        }
    }
}

impl Memories {
    /// From now on, notes which cleans no fence has waited for.
    pub(crate) fn track_unfenced_cleans(&mut self) {
        self.unfenced = Some(Box::default());
    }

    /// A cache-block operation of `core` finds nothing to write: a fence of this core makes durable what others asked for.
    pub(crate) fn note_unfenced_again(&mut self, core: CoreId, line: LineAddr) {
        if let Some(versions) = self.unfenced.as_mut().and_then(|unfenced| unfenced.0.get_mut(&line)) {
            let data = versions[versions.len() - 1].data;
            versions.push(Version { data, core: Some(core) });
        }
    }

    /// The contents of a line that the domain holds by now, caches apart.
    fn durable_line(&self, line: LineAddr) -> Line {
        let mut data = self.pmem_media().line(line);
        if self.domain.queue_is_durable() {
            for (_, entry) in self.queue().filter(|(_, e)| e.write.line == line && !e.is_held()) {
                entry.write.overlay(&mut data);
            }
        }
        data
    }

    /// A fence of `core` has waited for its cleans.
    pub(crate) fn fenced(&mut self, core: CoreId) {
        if let Some(unfenced) = &mut self.unfenced {
            unfenced.0.retain(|_, versions| {
                if let Some(last) = versions.iter().rposition(|version| version.core == Some(core)) {
                    versions.drain(..last);
                    versions[0].core = None;
                }
                versions.len() > 1
            });
        }
    }

    /// The lines with another version that may be durable than the one in `durable`, each with all possible versions. What was evicted and
    /// accepted stays; of the cleans each may or may not have been.
    pub(crate) fn unfenced_versions(&self, durable: impl Fn(LineAddr) -> Line) -> Vec<(LineAddr, Vec<Line>)> {
        let Some(unfenced) = &self.unfenced else { return Vec::new() };
        let mut all = Vec::new();
        for (&line, versions) in &unfenced.0 {
            let now = durable(line);
            let reached = versions.iter().rposition(|version| version.data == now);
            let certain = reached.and_then(|at| versions[..=at].iter().rposition(|version| version.core.is_none()));
            let mut possible: Vec<Line> = versions[certain.unwrap_or(0)..].iter().map(|version| version.data).collect();
            possible.dedup();
            if possible.len() > 1 {
                all.push((line, possible));
            }
        }
        all
    }
}
