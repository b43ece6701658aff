//! Cache-block operations and fences.

use super::System;
use super::controllers::clean_token;
use super::gates::Patience;
use super::interconnect::Load;
use durasim_core::Outcome;
use durasim_design::{FlushVerdict, Hooks, LevelId, LineTag};
use durasim_isa::CacheBlockOp;
use durasim_memory::Write;
use durasim_types::{Cause, CoreId, Cycle, LineAddr};

impl System {
    /// A cache-block operation leaves the store buffer; the cycle in which the next entry may follow. Its
    /// acknowledgement is awaited by the next fence with W in its predecessor set.
    pub fn cache_block(&mut self, core: CoreId, op: CacheBlockOp, line: LineAddr, at: Cycle) -> Cycle {
        self.advance(at);
        let mut path = self.way_down(core);
        if self.holders(line).any(|holder| holder != core) {
            path += self.snoop_cycles;
        }
        let mut at = at;
        let mut newest = self.newest_cached(line);
        let pmem = self.is_pmem(line);
        let in_domain = self.domain.stores_are_durable() || self.llc_alone_is_durable();
        while pmem && self.hooks.has(Hooks::FLUSH) {
            let tag = newest.map_or(LineTag::NONE, |v| v.tag);
            let mut out = self.actions();
            let cx = self.cx(core, at);
            let verdict = self.design.flush(&cx, line, tag, &mut out);
            self.carry_out(core, at, out);
            match verdict {
                FlushVerdict::Proceed => break,
                FlushVerdict::After(wait) => {
                    at = self.resolve(wait, at);
                    newest = self.newest_cached(line);
                    if self.halted {
                        return at;
                    }
                }
                FlushVerdict::Ignore => {
                    // Nothing is written for it, but what was written before is waited for.
                    if !in_domain && self.pmem_write_pending(line) {
                        self.await_pending(core, line, at + path + self.memory_request_cycles);
                    }
                    return at;
                }
            }
        }
        if pmem && self.persist_buffers.exist() {
            // The buffer has written the line, or will: only where it has to leave the caches does it do so now.
            self.drain_line(line, at + path);
            if let Some(data) = self.newest_if_dirty(line) {
                self.clean_copies(line, data);
            }
        } else if pmem && self.llc_alone_is_durable() && !newest.is_some_and(|v| v.tag.is_some()) {
            self.clean_to_llc(core, line, op, at + path);
        } else if let Some(data) = self.newest_if_dirty(line) {
            let cause = if pmem { self.home_cause(line) } else { Cause::Data };
            let mut write = Write::line(line, data, cause);
            if pmem && !self.domain.stores_are_durable() {
                write.token = Some(clean_token(core));
            }
            let private = self.holders(line).next().is_some();
            let arrived = if private { self.send_to_llc(line, Load::Line, at + path) } else { at + path };
            self.submit(core, write, arrived + self.memory_request_cycles);
            self.clean_copies(line, data);
        } else if pmem && !in_domain && self.pmem_write_pending(line) {
            self.await_pending(core, line, at + path + self.memory_request_cycles);
        } else if pmem {
            self.note_unfenced_again(core, line);
        }
        if op != CacheBlockOp::Clean {
            for holder in self.holders(line).collect::<Vec<_>>() {
                self.drop_private(holder, line);
            }
            self.take_out(LevelId::Llc, core, line);
        }
        at
    }

    /// A nonvolatile last level acknowledges a line that has arrived. What is to leave the caches is then on its way home.
    fn clean_to_llc(&mut self, core: CoreId, line: LineAddr, op: CacheBlockOp, at: Cycle) {
        self.advance(at);
        if let Some(done) = self.gather_in_llc(line, at) {
            let home = done + LevelId::ALL.len() as Cycle * self.response_cycles;
            let acks = &mut self.clean_acks[core.0 as usize];
            *acks = (*acks).max(home);
        }
        if op != CacheBlockOp::Clean
            && let Some(data) = self.newest_if_dirty(line)
        {
            self.submit(core, Write::line(line, data, self.home_cause(line)), at);
            self.clean_copies(line, data);
        }
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
            || !self.domain.queue_is_durable() && self.pmem.queue().any(|(_, e)| e.write.line == line)
    }

    /// A fence whose earlier stores have left the store buffer: through when the cache-block operations before it are
    /// acknowledged and the design lets it.
    pub fn fence(&mut self, core: CoreId, orders_writes: bool, at: Cycle) -> Outcome {
        let index = core.0 as usize;
        let mut at = at;
        if orders_writes && self.cleans_outstanding(core) {
            self.advance(at);
            if self.cleans[index] > 0 {
                self.suspend_for_cleans(core, at);
                return Outcome::Pending;
            }
            self.forget_suspension(core);
            at = at.max(std::mem::take(&mut self.clean_acks[index]));
        }
        if orders_writes {
            self.fenced(core);
        }
        if self.hooks.has(Hooks::FENCE) {
            return self.through(core, at, Patience::Core, |s, cx, out| s.design.fence(cx, out));
        }
        Outcome::Done(at)
    }

    /// Waits for the acknowledgements of the cache-block operations of `core`, while no other core acts.
    pub(super) fn wait_for_cleans(&mut self, core: CoreId, at: Cycle) -> Cycle {
        let mut at = at;
        if self.cleans_outstanding(core) {
            let index = core.0 as usize;
            let what = "the acknowledgement of a cache-block operation is waited for";
            let now = self.wait_until(at, what, |s| s.cleans[index] == 0);
            at = now.max(std::mem::take(&mut self.clean_acks[index]));
        }
        self.fenced(core);
        at
    }

    /// Whether a fence of `core` has acknowledgements of cache-block operations to wait for.
    pub fn cleans_outstanding(&self, core: CoreId) -> bool {
        self.cleans[core.0 as usize] > 0 || self.clean_acks[core.0 as usize] > 0
    }
}
