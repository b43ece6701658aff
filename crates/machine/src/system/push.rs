//! Versions that a design pushes into the last level (Kiln's "clean on commit"), and requests that wait at its door.

use super::{Later, System};
use durasim_cache::Version;
use durasim_design::{Gate, Hooks, LevelId, Token};
use durasim_types::{CoreId, Cycle, LineAddr};

impl System {
    /// Cycles of a write into the last level.
    pub(super) fn llc_write_cycles(&self) -> Cycle {
        self.geometry.llc_write_ports.map_or(self.llc.geometry().latency_cycles, |ports| ports.latency_cycles)
    }

    /// A design has a line pushed; without a token nobody waits for it.
    pub(super) fn push_for_design(&mut self, line: LineAddr, token: Option<Token>, at: Cycle) {
        // Whoever waits for it waits from now on: room may have to be made first.
        if let Some(token) = token {
            *self.outstanding.entry(token.0).or_default() += 1;
        }
        let done = self.push_to_llc(line, at);
        if let Some(token) = token {
            self.schedule(done, Later::Pushed { line, token });
        }
    }

    /// The newest version of a line in private caches comes down to the last level, a pre-image below it before it, and
    /// their copies become clean copies of the newest; the cycle in which the last level has written it. A version leaves
    /// no array: it can be found at every persist event.
    pub(super) fn push_to_llc(&mut self, line: LineAddr, at: Cycle) -> Cycle {
        let Some(owner) = self.holders(line).find(|&core| self.is_dirty_in(core, line)) else { return at };
        self.pinned.push(line);
        let index = owner.0 as usize;
        let lookups = self.l1d[index].geometry().latency_cycles + self.l2[index].geometry().latency_cycles;
        let mut done = at + lookups + 2 * self.request_cycles;
        for level in [LevelId::L2, LevelId::L1d] {
            let Some(slot) = self.array(level, owner).find(line) else { continue };
            let mut version = self.array(level, owner).version(slot);
            version.tag = self.live(version.tag);
            if !version.dirty || level == LevelId::L2 && self.is_superseded(owner, version) {
                continue;
            }
            done = done.max(self.put_below(LevelId::Llc, owner, version, done));
            if self.halted {
                break;
            }
        }
        self.pinned.pop();
        // Making room may have aborted the transaction of the line: what is left then is older, and was pushed too.
        if let Some((level, slot)) = self.newest_private(owner, line)
            && !self.halted
        {
            let newest = self.array(level, owner).version(slot);
            for level in [LevelId::L1d, LevelId::L2] {
                let array = self.array_mut(level, owner);
                if let Some(slot) = array.find(line) {
                    array.replace(slot, Version { dirty: false, ..newest });
                }
            }
        }
        self.write_through_port(done)
    }

    /// Whether a version in the L2 is older than the one in the L1D and no pre-image of it.
    fn is_superseded(&self, core: CoreId, below: Version) -> bool {
        let l1d = &self.l1d[core.0 as usize];
        let above = l1d.find(below.line).filter(|&slot| l1d.is_dirty(slot));
        above.is_some_and(|slot| self.live(l1d.tag(slot)) == below.tag)
    }

    /// Whether a level has a dirty version of the same transaction as one that comes down on it.
    pub(super) fn is_dirty_below(&self, level: LevelId, core: CoreId, incoming: Version) -> bool {
        let array = self.array(level, core);
        let resident = array.find(incoming.line).filter(|&slot| array.is_dirty(slot));
        resident.is_some_and(|slot| self.live(array.tag(slot)) == incoming.tag)
    }

    fn is_dirty_in(&self, core: CoreId, line: LineAddr) -> bool {
        [LevelId::L1d, LevelId::L2].into_iter().any(|level| {
            let array = self.array(level, core);
            array.find(line).is_some_and(|slot| array.is_dirty(slot))
        })
    }

    /// Whether a line of the last level has no live tag there, and a dirty version with one above it, which an inclusive
    /// last level would lose with it.
    pub(super) fn is_tagged_above(&self, version: Version) -> bool {
        self.inclusive
            && !self.live(version.tag).is_some()
            && self.holders(version.line).any(|core| {
                self.newest_private(core, version.line).is_some_and(|(level, slot)| {
                    self.live(self.array(level, core).tag(slot)).is_some() && self.is_dirty_in(core, version.line)
                })
            })
    }

    /// The first port that is free takes a line; the cycle in which it is written.
    fn write_through_port(&mut self, at: Cycle) -> Cycle {
        let cycles = self.llc_write_cycles();
        let first = self.llc_ports.iter_mut().map(|port| (port.first_gap(at, cycles), port)).min_by_key(|port| port.0);
        let Some((start, port)) = first else { return at + cycles };
        port.book(start, cycles);
        start + cycles
    }

    /// The cycle in which the design lets a request of a core into the last level.
    #[inline]
    pub(super) fn llc_request(&mut self, core: CoreId, line: LineAddr, at: Cycle) -> Cycle {
        if self.hooks.has(Hooks::LLC_REQUEST) { self.ask_for_llc(core, line, at) } else { at }
    }

    fn ask_for_llc(&mut self, core: CoreId, line: LineAddr, at: Cycle) -> Cycle {
        let mut at = at;
        loop {
            let cx = self.cx(core, at);
            match self.design.llc_request(&cx, line) {
                Gate::Done => return at,
                Gate::After(wait) => return self.resolve(wait, at),
                Gate::Retry(wait) => at = self.resolve(wait, at),
                Gate::Abort(..) => unreachable!("a request at the last level is let in or waits"),
            }
            if self.halted {
                return at;
            }
        }
    }
}
