//! Cache-block operations and fences.

use super::System;
use super::controllers::clean_token;
use durasim_design::{FlushVerdict, Hooks, LevelId};
use durasim_isa::CacheBlockOp;
use durasim_memory::Write;
use durasim_types::{Cause, CoreId, Cycle, Domain, LineAddr};

impl System {
    /// A cache-block operation leaves the store buffer; the cycle in which the next entry may follow. Its
    /// acknowledgement is awaited by the next fence with W in its predecessor set.
    pub fn cache_block(&mut self, core: CoreId, op: CacheBlockOp, line: LineAddr, at: Cycle) -> Cycle {
        self.advance(at);
        let mut newest = None;
        let mut path = 0;
        for level in LevelId::ALL {
            let array = self.array(level, core);
            path += array.geometry().latency_cycles;
            if let Some(slot) = array.find(line)
                && newest.is_none()
            {
                let mut version = array.version(slot);
                version.tag = self.live(version.tag);
                newest = Some(version);
            }
        }
        let pmem = self.is_pmem(line);
        let in_domain = matches!(self.domain, Domain::Eadr | Domain::Bbb);
        if pmem && self.hooks.has(Hooks::FLUSH) {
            let tag = newest.map_or(Default::default(), |v| v.tag);
            let mut out = self.actions();
            let cx = self.cx(core, at);
            let verdict = self.design.flush(&cx, line, tag, &mut out);
            self.carry_out(core, at, out);
            if verdict == FlushVerdict::Ignore {
                // Nothing is written for it, but what was written before is waited for.
                if !in_domain && self.pmem_write_pending(line) {
                    self.await_pending(core, line, at + path);
                }
                return at;
            }
        }
        if let Some(data) = self.newest_if_dirty(core, line) {
            let cause = if pmem { self.home_cause(line) } else { Cause::Data };
            let mut write = Write::line(line, data, cause);
            if pmem && !in_domain {
                write.token = Some(clean_token(core));
            }
            self.submit(core, write, at + path);
            self.clean_copies(core, line, data);
        } else if pmem && !in_domain && self.pmem_write_pending(line) {
            self.await_pending(core, line, at + path);
        }
        if op != CacheBlockOp::Clean {
            for level in LevelId::ALL {
                let array = self.array_mut(level, core);
                if let Some(slot) = array.find(line) {
                    array.remove(slot);
                }
            }
        }
        at
    }

    /// An earlier write of the line is on its way: an empty write behind it brings the acknowledgement.
    fn await_pending(&mut self, core: CoreId, line: LineAddr, at: Cycle) {
        let mut write = Write::line(line, [0; 64], Cause::Data);
        write.mask = 0;
        write.token = Some(clean_token(core));
        self.submit(core, write, at);
    }

    /// Whether a write of the line has been handed over and is not durable.
    fn pmem_write_pending(&self, line: LineAddr) -> bool {
        self.pmem.inbound().any(|w| w.line == line)
            || !self.domain.queue_is_durable() && self.pmem.queue().any(|e| e.write.line == line)
    }

    /// A fence whose earlier stores have left the store buffer: through when the cache-block operations before it are
    /// acknowledged and the design lets it.
    pub fn fence(&mut self, core: CoreId, orders_writes: bool, at: Cycle) -> Cycle {
        let mut at = at;
        if orders_writes && self.cleans_outstanding(core) {
            at = self.wait_for_cleans(core, at);
        }
        if self.hooks.has(Hooks::FENCE) {
            at = self.through_or_note_abort(core, at, |s, cx, out| s.design.fence(cx, out));
        }
        at
    }

    /// Whether a fence of `core` has acknowledgements of cache-block operations to wait for.
    pub fn cleans_outstanding(&self, core: CoreId) -> bool {
        self.cleans[core.0 as usize] > 0 || self.clean_acks[core.0 as usize] > 0
    }
}
