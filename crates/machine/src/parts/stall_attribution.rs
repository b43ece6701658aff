//! Causes of the waits of requests of cores: the way of a line that a core asked for, and the reason for which a design let a request wait. Cores ask for
//! it when an instruction at the head of their reorder buffer has waited ([`durasim_core::Port::explain_wait`]). Nothing in the
//! memory system depends on it.

use durasim_contract::Token;
use durasim_types::{CoreId, Cycle, LineAddr, StallCause, StallSegment};
use serde::{Deserialize, Serialize};

/// Requests of a core whose waits are kept: a power of two that most programs have in flight at most.
const REQUESTS: usize = 16;
/// Parts of one request. What comes beyond has the cause of the last one.
const PARTS_MAX: usize = 12;
/// Waits of one request for the design. The core asks for all of them when the request has left.
const GATES_MAX: usize = 64;

/// The way of a request for a line, from a core down and back: each part ends at a cycle.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct RequestWay {
    line: LineAddr,
    from: Cycle,
    len: usize,
    parts: [(Cycle, StallCause); PARTS_MAX],
}

impl RequestWay {
    const NONE: RequestWay =
        RequestWay { line: LineAddr(u64::MAX), from: 0, len: 0, parts: [(0, StallCause::PrivateCaches); PARTS_MAX] };

    fn end(&self) -> Cycle {
        if self.len == 0 { self.from } else { self.parts[self.len - 1].0 }
    }

    #[inline]
    fn mark(&mut self, cause: StallCause, until: Cycle) {
        if until <= self.end() {
            return;
        }
        if self.len > 0 && (self.parts[self.len - 1].1 == cause || self.len == PARTS_MAX) {
            self.parts[self.len - 1].0 = until;
        } else {
            self.parts[self.len] = (until, cause);
            self.len += 1;
        }
    }

    /// The parts between two cycles.
    #[inline]
    fn report_parts(&self, from: Cycle, until: Cycle, mut report: impl FnMut(StallSegment)) {
        let mut at = self.from;
        for &(end, cause) in &self.parts[..self.len] {
            let part = StallSegment { from: at.max(from), until: end.min(until), cause };
            if part.from < part.until {
                report(part);
            }
            at = end;
        }
    }
}

/// The waits of one core.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct CoreStalls {
    requests: [RequestWay; REQUESTS],
    /// The request in progress.
    current: usize,
    /// Waits that the design has added to it since the last mark.
    added: [(StallCause, Cycle); 2],
    is_added_to: bool,
    /// From each cycle on, why the design lets the request wait.
    gates: Vec<(Cycle, StallCause)>,
    /// The acknowledgement that the request awaits, and since when.
    awaited: Option<(Token, Cycle)>,
    /// Of the acknowledgements of cleans that arrives last: when its write arrived at the controller, when that was done with
    /// it, and when it arrives.
    clean: (Cycle, Cycle, Cycle),
}

super::part::part! {
    /// The part of the memory system that knows why cores wait.
    pub(crate) struct StallAttribution saved as SavedStallAttribution {
        saved {
            cores: Vec<CoreStalls>,
        }
        kept {}
    }
}

impl StallAttribution {
    pub(crate) fn new(cores: usize) -> Self {
        let stalls = CoreStalls {
            requests: [RequestWay::NONE; REQUESTS],
            current: 0,
            added: [(StallCause::Order, 0), (StallCause::DesignLookup, 0)],
            is_added_to: false,
            gates: Vec::new(),
            awaited: None,
            clean: (0, 0, 0),
        };
        StallAttribution { cores: vec![stalls; cores] }
    }

    pub(crate) fn fork(&self) -> Self {
        StallAttribution { cores: self.cores.clone() }
    }

    fn of(&mut self, core: CoreId) -> &mut CoreStalls {
        &mut self.cores[core.0 as usize]
    }

    /// A request for a line leaves the L1D.
    pub(crate) fn start(&mut self, core: CoreId, line: LineAddr, at: Cycle) {
        let stalls = self.of(core);
        stalls.current = line.0 as usize % REQUESTS;
        let way = &mut stalls.requests[stalls.current];
        (way.line, way.from, way.len) = (line, at, 0);
    }

    /// The waits that the design has added belong to a request whose way is not noted.
    #[inline]
    pub(crate) fn forget_added(&mut self, core: CoreId) {
        let stalls = self.of(core);
        if std::mem::take(&mut stalls.is_added_to) {
            stalls.added.iter_mut().for_each(|(_, cycles)| *cycles = 0);
        }
    }

    /// The request has waited until a cycle: for this, and before for what the design has added.
    #[inline]
    pub(crate) fn mark(&mut self, core: CoreId, cause: StallCause, until: Cycle) {
        let stalls = self.of(core);
        let way = &mut stalls.requests[stalls.current];
        if std::mem::take(&mut stalls.is_added_to) {
            for (cause, cycles) in &mut stalls.added {
                let end = way.end();
                way.mark(*cause, (end + std::mem::take(cycles)).min(until));
            }
        }
        way.mark(cause, until);
    }

    /// The design has let the request wait for this many cycles.
    pub(crate) fn add(&mut self, core: CoreId, cause: StallCause, cycles: Cycle) {
        let stalls = self.of(core);
        stalls.is_added_to = true;
        let added = stalls.added.iter_mut().find(|(added, _)| *added == cause);
        added.expect("the causes that are added are listed").1 += cycles;
    }

    /// A request begins that the design may let wait.
    #[inline]
    pub(crate) fn begin(&mut self, core: CoreId) {
        let stalls = self.of(core);
        stalls.gates.clear();
        stalls.awaited = None;
    }

    /// From `since` on the design lets a request of the core wait, or the next part of its wait begins.
    pub(crate) fn gate(&mut self, core: CoreId, since: Cycle, cause: StallCause) {
        let gates = &mut self.of(core).gates;
        if gates.len() < GATES_MAX {
            let since = gates.last().map_or(since, |(last, _)| since.max(*last));
            gates.push((since, cause));
        }
    }

    /// The design itself asks for a line in the name of the core, which waits for it from `since` until `done`.
    pub(crate) fn gate_for_line(&mut self, core: CoreId, line: LineAddr, since: Cycle, done: Cycle) {
        if done <= since {
            return;
        }
        let way = self.of(core).requests[line.0 as usize % REQUESTS];
        if way.line == line {
            way.report_parts(since, Cycle::MAX, |part| self.gate(core, part.from, part.cause));
        }
        self.gate(core, way.end().max(since), StallCause::Commit);
    }

    /// The request of the core awaits an acknowledgement.
    pub(crate) fn await_ack(&mut self, core: CoreId, token: Token, since: Cycle) {
        self.of(core).awaited = Some((token, since));
    }

    /// All writes under a token are acknowledged. The last one arrived at its controller in `arrived` and was
    /// accepted, or written where acceptance is not enough, in `done`.
    pub(crate) fn acked(&mut self, token: Token, arrived: Cycle, done: Cycle) {
        for core in 0..self.cores.len() {
            if let Some((_, since)) = self.cores[core].awaited.take_if(|(awaited, _)| *awaited == token) {
                self.acknowledgement(CoreId(core as u16), since, arrived, done);
            }
        }
    }

    /// The last level has a line that was pushed down to it.
    pub(crate) fn pushed(&mut self, token: Token) {
        for core in 0..self.cores.len() {
            if let Some((_, since)) = self.cores[core].awaited.take_if(|(awaited, _)| *awaited == token) {
                self.gate(CoreId(core as u16), since, StallCause::Llc);
            }
        }
    }

    /// A request waited for an acknowledgement from `since` on.
    fn acknowledgement(&mut self, core: CoreId, since: Cycle, arrived: Cycle, done: Cycle) {
        self.gate(core, since, StallCause::Path);
        self.gate(core, arrived, StallCause::Queue);
        self.gate(core, done, StallCause::Path);
    }

    /// The acknowledgement of a clean is in flight to its core.
    pub(crate) fn clean_is_acked(&mut self, core: CoreId, arrived: Cycle, done: Cycle, arrives: Cycle) {
        let stalls = self.of(core);
        if arrives >= stalls.clean.2 {
            stalls.clean = (arrived, done, arrives);
        }
    }

    /// A fence has waited for the acknowledgements of all cleans, or a store that brings a fence with it, which had to wait
    /// for its line until `since`.
    pub(crate) fn cleans_are_acked(&mut self, core: CoreId, since: Cycle) {
        let (arrived, done, _) = std::mem::take(&mut self.of(core).clean);
        self.acknowledgement(core, since, arrived, done);
    }

    /// See [`durasim_core::Port::explain_wait`].
    pub(crate) fn explain(
        &mut self,
        core: CoreId,
        line: Option<LineAddr>,
        from: Cycle,
        until: Cycle,
        mut report: impl FnMut(StallSegment),
    ) {
        // No write has brought what is awaited: a read or a copy of the controller has.
        if let Some((_, since)) = self.of(core).awaited.take() {
            self.gate(core, since, StallCause::Queue);
        }
        let stalls = self.of(core);
        let held = stalls.gates.first().map_or(until, |gate| gate.0);
        if let Some(line) = line {
            let way = &stalls.requests[line.0 as usize % REQUESTS];
            if way.line == line {
                way.report_parts(from, until.min(held), &mut report);
            }
        }
        if stalls.gates.is_empty() {
            return;
        }
        for (number, &(since, cause)) in stalls.gates.iter().enumerate() {
            let end = stalls.gates.get(number + 1).map_or(until, |gate| gate.0.min(until));
            if since.max(from) < end {
                report(StallSegment { from: since.max(from), until: end, cause });
            }
        }
        stalls.gates.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CORE: CoreId = CoreId(1);
    const LINE: LineAddr = LineAddr(0x48);

    fn explained(
        stalls: &mut StallAttribution,
        line: Option<LineAddr>,
        from: Cycle,
        until: Cycle,
    ) -> Vec<(Cycle, Cycle, StallCause)> {
        let mut segments = Vec::new();
        stalls.explain(CORE, line, from, until, |segment| segments.push(segment));
        segments.into_iter().map(|s| (s.from, s.until, s.cause)).collect()
    }

    #[test]
    fn the_parts_of_a_request_follow_each_other() {
        let mut stalls = StallAttribution::new(2);
        stalls.start(CORE, LINE, 100);
        stalls.mark(CORE, StallCause::PrivateCaches, 110);
        stalls.mark(CORE, StallCause::Llc, 120);
        // Nothing was added, so there is no part.
        stalls.mark(CORE, StallCause::Eviction, 120);
        stalls.add(CORE, StallCause::DesignLookup, 7);
        stalls.add(CORE, StallCause::Order, 3);
        stalls.mark(CORE, StallCause::Path, 150);
        let all = [
            (100, 110, StallCause::PrivateCaches),
            (110, 120, StallCause::Llc),
            (120, 123, StallCause::Order),
            (123, 130, StallCause::DesignLookup),
            (130, 150, StallCause::Path),
        ];
        assert_eq!(explained(&mut stalls, Some(LINE), 0, 200), all);
        assert_eq!(explained(&mut stalls, Some(LINE), 130, 200), all[4..]);
        assert_eq!(explained(&mut stalls, Some(LineAddr(LINE.0 + REQUESTS as u64)), 0, 200), []);
    }

    #[test]
    fn a_request_that_the_design_lets_wait_has_no_line_to_wait_for_then() {
        let mut stalls = StallAttribution::new(2);
        stalls.start(CORE, LINE, 100);
        stalls.mark(CORE, StallCause::Llc, 140);
        stalls.gate(CORE, 130, StallCause::Structure(1));
        stalls.gate(CORE, 150, StallCause::Path);
        let parts = [(100, 130, StallCause::Llc), (130, 150, StallCause::Structure(1)), (150, 160, StallCause::Path)];
        assert_eq!(explained(&mut stalls, Some(LINE), 90, 160), parts);
        assert_eq!(explained(&mut stalls, None, 90, 160), [], "that was reported");
    }

    #[test]
    fn an_acknowledgement_has_parts_if_a_write_brought_it() {
        let mut stalls = StallAttribution::new(2);
        stalls.await_ack(CORE, Token(7), 100);
        stalls.acked(Token(7), 120, 150);
        let parts = [(100, 120, StallCause::Path), (120, 150, StallCause::Queue), (150, 160, StallCause::Path)];
        assert_eq!(explained(&mut stalls, None, 100, 160), parts);
        stalls.await_ack(CORE, Token(8), 200);
        stalls.acked(Token(9), 220, 250);
        assert_eq!(explained(&mut stalls, Some(LINE), 190, 260), [(200, 260, StallCause::Queue)]);
    }

    #[test]
    fn a_request_of_many_parts_keeps_its_end() {
        let mut stalls = StallAttribution::new(2);
        stalls.start(CORE, LINE, 0);
        for n in 1..=2 * PARTS_MAX as u64 {
            stalls.mark(CORE, if n % 2 == 0 { StallCause::Path } else { StallCause::Queue }, 10 * n);
        }
        let parts = explained(&mut stalls, Some(LINE), 0, 1000);
        assert_eq!((parts.len(), parts.last().unwrap().1), (PARTS_MAX, 20 * PARTS_MAX as u64));
    }
}
