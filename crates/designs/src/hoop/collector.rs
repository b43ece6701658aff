//! The collector: brings the words of committed transactions home, in the background every so often, or on demand when the
//! region, the address slices or the mapping table are full.
//!
//! It walks the slices of transactions from the newest commit to the oldest and reads them from persistent memory. The
//! first version that it finds of a byte is the newest. The bytes that it has found are written to their home addresses
//! line by line, each line past the eviction buffer, and leave the mapping table with that. When all lines are there, the
//! mark moves to the newest of these commits, and only when the mark is durable their slices are free.

use super::commit::{OOP_REGION, WORDS_RETRY_CYCLES};
use super::region::Region;
use super::slice::{END, Patch, SLICE_BYTES, Slice};
use super::spec::CommitEnd;
use super::transaction::TokenPurpose;
use super::{HOMES, Mapped, State, planted};
use durasim_contract::{Action, Actions, Origin, Payload, Wait};
use durasim_types::{Cause, EventKind, Line, LineAddr, PhysAddr, StallCause};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// A line of a slice that has been read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Read(#[serde(with = "serde_bytes")] pub Line);

/// The slices of one transaction, from the first on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SliceChain {
    /// The slice that is read, or [`END`].
    pub at: u32,
    pub data: Option<Read>,
    pub metadata: Option<Read>,
    pub found: BTreeMap<LineAddr, Patch>,
}

/// The phase of the collector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Phase {
    #[default]
    Idle,
    Reading,
    Writing,
    /// The mark is in flight.
    Sealing,
}

/// The collector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Collector {
    pub phase: Phase,
    /// Collections begun.
    pub number: u64,
    /// The newest commit that this one collects.
    pub upto: u64,
    /// The newest commit that is collected and marked so.
    pub collected: u64,
    /// First slices of transactions that are not read yet, oldest first.
    pub waiting: VecDeque<u32>,
    /// Those that are read, newest first.
    pub walks: VecDeque<SliceChain>,
    /// The bytes that were found and are not in flight to their home addresses.
    pub found: BTreeMap<LineAddr, Patch>,
    /// Reads and writes that are not done.
    pub in_flight: u32,
    /// More lines go home in the next cycle.
    pub resting: bool,
    /// The period has passed since it began, or it began with that.
    pub of_period: bool,
}

impl Collector {
    /// Whether a snapshot can hold it: it reads slices that are there.
    pub fn fits(&self, region: &Region) -> bool {
        let known = |slice: u32| slice < region.slices() || slice == END;
        self.waiting.iter().all(|&slice| known(slice)) && self.walks.iter().all(|walk| known(walk.at))
    }
}

impl State {
    /// The event after which slices, places for commits or mapping entries become free; `None` if nothing will free any.
    pub(super) fn make_space(&mut self, out: &mut Actions) -> Option<Wait> {
        if self.protocol.collector.phase == Phase::Idle {
            match self.protocol.commits.front() {
                Some(commit) if !commit.durable => {
                    return Some(Wait::Acked(self.token(TokenPurpose::Entry(commit.number))));
                }
                Some(_) => {
                    self.counters.collections_on_demand += 1;
                    self.collect(out);
                }
                None => {
                    let slices = |tx: u64| self.token(TokenPurpose::Slices(tx));
                    let mut committing = self.protocol.open.iter().filter(|(_, open)| open.committing);
                    let awaited = committing
                        .find(|(tx, _)| self.protocol.in_flight.contains_key(&slices(tx.0).0))
                        .map(|(tx, _)| Wait::Acked(slices(tx.0)));
                    let awaits_words =
                        self.protocol.open.values().any(|open| open.committing && !open.closed.is_empty());
                    let awaited = awaited.or_else(|| awaits_words.then_some(Wait::Cycles(WORDS_RETRY_CYCLES)));
                    return awaited.or_else(|| self.drop_mappings_of_home_lines().then_some(Wait::Cycles(1)));
                }
            }
        }
        let Collector { in_flight, number, .. } = self.protocol.collector;
        // Between two batches of lines nothing is in flight.
        Some(if in_flight == 0 { Wait::Cycles(1) } else { Wait::Acked(TokenPurpose::Collection(number).token()) })
    }

    /// The event that a commit waits for until its words are home, if it has to [D:hoop-commit]; `index` is its place among
    /// those that are not collected.
    pub(super) fn migration(&mut self, index: Option<usize>, out: &mut Actions) -> Option<Wait> {
        if self.spec.commit == CommitEnd::Recorded || index.is_none() {
            return None;
        }
        out.stalls_for(StallCause::Structure(OOP_REGION));
        self.make_space(out)
    }

    /// Begins a collection of all commits up to the first that is not durable.
    pub(super) fn collect(&mut self, out: &mut Actions) {
        let durable = self.protocol.commits.iter().take_while(|commit| commit.durable);
        let first_slices: VecDeque<u32> = durable.clone().map(|commit| commit.slices[0]).collect();
        let Some(newest) = durable.last().map(|commit| commit.number) else { return };
        let collector = &mut self.protocol.collector;
        collector.phase = Phase::Reading;
        collector.number += 1;
        collector.upto = newest;
        collector.waiting = first_slices;
        self.counters.collections += 1;
        self.counters.collected_transactions += collector.waiting.len() as u64;
        self.read_on(out);
    }

    fn read_slice(&mut self, slice: u32, out: &mut Actions) {
        let at = self.slice_place(slice);
        let token = TokenPurpose::Collection(self.protocol.collector.number).token();
        for at in [at, at.plus(64)] {
            out.push(Action::Read { by: Origin::Controller, at, token });
            self.protocol.collector.in_flight += 1;
        }
    }

    /// Merges the transactions that are read, begins with others, and continues to write when all are.
    fn read_on(&mut self, out: &mut Actions) {
        while self.protocol.collector.walks.front().is_some_and(|walk| walk.at == END)
            && let Some(walk) = self.protocol.collector.walks.pop_front()
        {
            // Data coalescing: what newer commits have hides what was found of an older one.
            for (line, mut older) in walk.found {
                let newer = self.protocol.collector.found.entry(line).or_default();
                if self.fault.skips(planted::GC_OLDEST_WINS) {
                    newer.cover(&older);
                    continue;
                }
                older.cover(newer);
                *newer = older;
            }
        }
        while self.protocol.collector.walks.len() < self.spec.copies_in_flight as usize
            && let Some(first) = self.protocol.collector.waiting.pop_back()
        {
            let walk = SliceChain { at: first, data: None, metadata: None, found: BTreeMap::new() };
            self.protocol.collector.walks.push_back(walk);
            self.read_slice(first, out);
        }
        if self.protocol.collector.walks.is_empty() {
            // All slices are read: their words go home. The mark that their commits are collected comes after them.
            self.protocol.collector.phase = Phase::Writing;
            if self.fault.skips(planted::GC_SEALS_FIRST) {
                let (mark, newest) = (self.address_slices.mark(), self.protocol.collector.upto);
                out.append(Origin::Controller, mark, &newest.to_le_bytes(), Cause::Metadata, None);
            }
            self.write_on(out);
        }
    }

    /// A line of a slice has been read.
    pub(super) fn slice_read(&mut self, addr: PhysAddr, data: &Line, out: &mut Actions) {
        self.protocol.collector.in_flight -= 1;
        let offset = addr.0 - self.region_base.0;
        let slice = (offset / SLICE_BYTES) as u32;
        let base = self.pmem_base;
        let walk = self.protocol.collector.walks.iter_mut().find(|walk| walk.at == slice).expect("some walk reads it");
        if offset.is_multiple_of(SLICE_BYTES) {
            walk.data = Some(Read(*data))
        } else {
            walk.metadata = Some(Read(*data))
        }
        let (Some(Read(data)), Some(Read(metadata))) = (&walk.data, &walk.metadata) else { return };
        let read = Slice::decode(base, data, metadata).expect("committed slices are as they were written");
        (walk.data, walk.metadata) = (None, None);
        for word in &read.words {
            walk.found.entry(word.line()).or_default().update(word);
            self.counters.collected_bytes += u64::from(word.mask.count_ones());
        }
        walk.at = self.fault.swaps(planted::GC_STOPS_AT_FIRST_SLICE, read.next, END);
        let next = walk.at;
        if next == END {
            self.read_on(out);
        } else {
            self.read_slice(next, out);
        }
    }

    /// Lets the next lines go home, and the mark when all have arrived.
    pub(super) fn write_on(&mut self, out: &mut Actions) {
        self.protocol.collector.resting = false;
        let token = TokenPurpose::Collection(self.protocol.collector.number).token();
        while self.protocol.collector.in_flight < self.spec.copies_in_flight
            && let Some((line, mut patch)) = self.protocol.collector.found.pop_first()
        {
            patch.mask = self.fault.swaps(planted::GC_WHOLE_LINES, patch.mask, u64::MAX);
            // The line leaves the mapping table, unless it has words that stay in the region.
            let has_newer = self.protocol.lines.has_newer(line, self.protocol.collector.upto);
            if self.fault.assumes(planted::GC_TAKES_NEWER_MAPPINGS, !has_newer) {
                self.unmap(line);
            }
            self.protocol.evicted.insert(line, &patch, self.spec.eviction_lines());
            self.protocol.collector.in_flight += 1;
            self.counters.home_lines += 1;
            self.counters.home_bytes += u64::from(patch.mask.count_ones());
            let payload = Payload::masked(&patch.data, patch.mask);
            out.push(Action::Append {
                from: Origin::Controller,
                at: line.base(),
                payload,
                cause: Cause::Data,
                token: Some(token),
            });
        }
        if self.protocol.collector.in_flight == 0 {
            self.protocol.collector.phase = Phase::Sealing;
            self.protocol.collector.in_flight = 1;
            let newest = self.fault.swaps(planted::GC_NEVER_SEALS, self.protocol.collector.upto, 0);
            out.append(
                Origin::Controller,
                self.address_slices.mark(),
                &newest.to_le_bytes(),
                Cause::Metadata,
                Some(token),
            );
        }
    }

    /// A write of the collector is acknowledged.
    pub(super) fn collection_acked(&mut self, out: &mut Actions) {
        self.protocol.collector.in_flight -= 1;
        match self.protocol.collector.phase {
            Phase::Sealing => self.end_collection(out),
            // Not at once: what is accepted at once would be acknowledged inside of this call.
            _ if !self.protocol.collector.resting => {
                self.protocol.collector.resting = true;
                out.push(Action::Timer { id: HOMES, after_cycles: 1 });
            }
            _ => {}
        }
    }

    /// The mark is durable: the slices of these commits are not needed any more.
    fn end_collection(&mut self, out: &mut Actions) {
        let newest = self.protocol.collector.upto;
        self.protocol.collector.phase = Phase::Idle;
        self.protocol.collector.collected = newest;
        self.counters.background_collections += u64::from(std::mem::take(&mut self.protocol.collector.of_period));
        while self.protocol.commits.front().is_some_and(|commit| commit.number <= newest) {
            let commit = self.protocol.commits.pop_front().expect("it was just seen");
            commit.slices.iter().for_each(|&slice| self.protocol.region.free(slice));
        }
        self.protocol.lines.collect(newest);
        let mapped: Vec<LineAddr> = self.protocol.mapping.keys().copied().collect();
        for line in mapped {
            if !self.has_words(line) {
                self.unmap(line);
            }
        }
        out.event(EventKind::Background, self.address_slices.mark());
        self.record_waiting(out);
        self.set_timer(out);
    }

    /// A line leaves the mapping table.
    pub(super) fn unmap(&mut self, line: LineAddr) -> Option<Mapped> {
        let mapped = self.protocol.mapping.remove(&line)?;
        if let Mapped::Evicted(slice) = mapped {
            self.protocol.region.free(slice);
        }
        Some(mapped)
    }
}
