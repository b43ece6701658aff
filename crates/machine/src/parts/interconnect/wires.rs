//! Wires that messages share by the flit: the links between routers, and the ports of ends.
//!
//! In each cycle a wire carries one flit, of the message that has waited longest since its last flit went, or since it came. A
//! message that waits keeps no wire busy. At a port out of an end the messages of this end go one after the other, and ends
//! that share the port alternate.
//!
//! **Answers.** A sender asks at once when its message arrives, but messages that are sent later share its wires. The answer is
//! the time of arrival if nothing else is sent, and it is kept. A new message moves flits of others on all wires of its route and
//! after them. The sum of these delays is added to the answers of later messages, to its own first, each by at most
//! [`CHANGED_PERCENT`], so the mean latency is that of the wires. Media with rows answer reads in the same way.
//!
//! **Messages with earlier times.** Cores run ahead, so a message may be sent after others with later times. It takes its
//! place among them. A wire remembers [`REMEMBERED`] messages, and nothing goes before those that it has forgotten.

use super::link::Forgotten;
use durasim_types::Cycle;
use serde::{Deserialize, Serialize};

/// Messages that a wire remembers.
pub(super) const REMEMBERED: usize = 256;
/// Largest share of the latency of a message that is added to its answer, or taken from the time that it waits.
const CHANGED_PERCENT: i64 = 50;
/// A flit that has no cycle yet.
const NOT_PLACED: Cycle = Cycle::MAX;

/// A flit at a wire.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Flit {
    /// The cycle in which it reaches the wire.
    ready: Cycle,
    /// The cycle in which it goes.
    goes: Cycle,
}

/// A message at a wire.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Passage {
    message: u64,
    /// Queue at the port of an end: its messages go one after the other. On other wires each message has its own.
    queue: u64,
    /// The wire that follows on its route.
    next: Option<usize>,
    /// The cycle in which its last flit goes.
    ends: Cycle,
    flits: Vec<Flit>,
}

impl Passage {
    /// The cycle in which its last flit reaches the wire.
    fn reaches(&self) -> Cycle {
        self.flits.last().map_or(0, |flit| flit.ready)
    }

    /// The cycle in which its first flit reaches the wire.
    fn comes(&self) -> Cycle {
        self.flits[0].ready
    }
}

/// Flits of a passage that have to find their cycles.
#[derive(Clone, Copy, Debug)]
struct Turn {
    place: usize,
    /// The next flit.
    flit: usize,
    /// Cycle in which its last flit went before.
    ended: Cycle,
    /// Cycles between which flits have left or gained a place.
    moved: Span,
}

/// Turns of one queue, by their place among all, and since when it waits.
#[derive(Clone, Copy, Debug)]
struct Lane {
    front: usize,
    end: usize,
    since: Cycle,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    from: Cycle,
    to: Cycle,
}

const EMPTY: Span = Span { from: Cycle::MAX, to: 0 };

impl Span {
    fn add(&mut self, at: Cycle) {
        *self = Span { from: self.from.min(at), to: self.to.max(at) };
    }
}

/// Properties of a wire.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Kind {
    /// No message goes on to a wire of a smaller or equal rank.
    pub rank: u32,
    /// Cycles from a wire to what follows it.
    pub delay: Cycle,
    /// Whether it leads out of an end, which sends one message after the other.
    pub is_out: bool,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Wire {
    kind: Kind,
    passages: Vec<Passage>,
    /// From here on nothing goes.
    free_from: Cycle,
    /// Nothing new goes before.
    forgotten_until: Cycle,
    busy_cycles: Cycle,
    /// Cycles that last flits have waited, so far as is known.
    wait_cycles: i64,
}

/// A wire whose flits have to be placed again, if they are ready within a span.
#[derive(Clone, Copy, Debug)]
struct Changed {
    rank: u32,
    wire: usize,
    ready: Span,
}

/// Memory that is used again. Its contents mean nothing between messages.
#[derive(Clone, Debug, Default)]
struct Scratch {
    changed: Vec<Changed>,
    turns: Vec<Turn>,
    lanes: Vec<Lane>,
    goes: Vec<Cycle>,
    flits: Vec<Vec<Flit>>,
}

/// A message to send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent<'a> {
    /// The wires of its route, by increasing rank.
    pub route: &'a [usize],
    /// The end at which it waits to be sent.
    pub queue: u64,
    pub flits: Cycle,
    pub at: Cycle,
}

/// Wires, and the messages that they remember.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Wires {
    wires: Vec<Wire>,
    messages: u64,
    /// Cycles by which messages were answered too early so far, less those that were added to later ones.
    owed: i64,
    #[serde(skip)]
    scratch: Scratch,
}

impl Wires {
    pub(super) fn new(kinds: impl Iterator<Item = Kind>) -> Self {
        let wires = kinds.map(|kind| Wire { kind, ..Wire::default() }).collect();
        Wires { wires, messages: 0, owed: 0, scratch: Scratch::default() }
    }

    /// Cycles that a message takes on a route if it is alone.
    pub(super) fn unloaded_cycles(&self, route: &[usize], flits: Cycle) -> Cycle {
        route.iter().map(|&wire| self.wires[wire].kind.delay).sum::<Cycle>() + flits - 1
    }

    /// Sends a message; the cycle in which all of it has arrived.
    pub(super) fn send(&mut self, sent: Sent, forgotten: &mut Forgotten) -> Cycle {
        let arrives = self.place(sent, forgotten);
        let latency = (arrives - sent.at) as i64;
        let waited = latency - self.unloaded_cycles(sent.route, sent.flits) as i64;
        let added = self.owed.clamp(-(waited * CHANGED_PERCENT / 100), latency * CHANGED_PERCENT / 100);
        self.owed -= added;
        arrives.saturating_add_signed(added)
    }

    /// Finds the cycles of a message on all wires of its route, and new ones for others there and on the wires that follow.
    fn place(&mut self, sent: Sent, forgotten: &mut Forgotten) -> Cycle {
        let message = self.messages;
        self.messages += 1;
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut hop = 0;
        let mut arrives = 0;
        scratch.goes.clear();
        scratch.goes.extend(sent.at..sent.at + sent.flits);
        self.enter(message, sent, hop, &mut scratch, forgotten);
        while let Some(changed) = take_first(&mut scratch.changed) {
            let wire = &mut self.wires[changed.wire];
            wire.find_cycles(changed.ready, &mut scratch);
            let delay = wire.kind.delay;
            for turn in 0..scratch.turns.len() {
                let Turn { place, ended, moved, .. } = scratch.turns[turn];
                if moved.from > moved.to {
                    continue;
                }
                let passage = &self.wires[changed.wire].passages[place];
                scratch.goes.clear();
                scratch.goes.extend(passage.flits.iter().map(|flit| flit.goes + delay));
                let (of, next, ends) = (passage.message, passage.next, passage.ends);
                let ended = if of == message { passage.reaches() } else { ended };
                self.wires[changed.wire].wait_cycles += ends as i64 - ended as i64;
                if of == message {
                    hop += 1;
                    arrives = ends + delay;
                    if hop < sent.route.len() {
                        self.enter(message, sent, hop, &mut scratch, forgotten);
                    }
                } else if let Some(next) = next {
                    self.follow(of, next, &mut scratch);
                } else {
                    self.owed += ends as i64 - ended as i64;
                }
            }
        }
        self.scratch = scratch;
        arrives
    }

    /// A message comes to the next wire of its route; its flits in the cycles of `goes`.
    fn enter(&mut self, message: u64, sent: Sent, hop: usize, scratch: &mut Scratch, forgotten: &mut Forgotten) {
        let number = sent.route[hop];
        let wire = &mut self.wires[number];
        if wire.passages.len() == REMEMBERED {
            forgotten.bookings += wire.forget(&mut scratch.flits);
        }
        wire.busy_cycles += sent.flits;
        forgotten.messages += u64::from(scratch.goes[0] < wire.forgotten_until);
        let mut flits = scratch.flits.pop().unwrap_or_default();
        flits.clear();
        let mut span = EMPTY;
        for &ready in &scratch.goes {
            let ready = ready.max(wire.forgotten_until);
            span.add(ready);
            flits.push(Flit { ready, goes: NOT_PLACED });
        }
        let queue = if wire.kind.is_out { sent.queue } else { message };
        wire.passages.push(Passage { message, queue, next: sent.route.get(hop + 1).copied(), ends: NOT_PLACED, flits });
        note(&mut scratch.changed, Changed { rank: wire.kind.rank, wire: number, ready: span });
    }

    /// A message that is on the wire already reaches it in other cycles, those of `goes`.
    fn follow(&mut self, message: u64, number: usize, scratch: &mut Scratch) {
        let wire = &mut self.wires[number];
        let Some(passage) = wire.passages.iter_mut().find(|passage| passage.message == message) else {
            return;
        };
        let mut span = EMPTY;
        let before = passage.reaches();
        for (flit, &ready) in passage.flits.iter_mut().zip(&scratch.goes) {
            if flit.ready != ready && flit.goes >= wire.forgotten_until {
                span.add(flit.ready.max(wire.forgotten_until));
                flit.ready = ready.max(wire.forgotten_until);
                span.add(flit.ready);
            }
        }
        wire.wait_cycles -= passage.reaches() as i64 - before as i64;
        if span.from <= span.to {
            note(&mut scratch.changed, Changed { rank: wire.kind.rank, wire: number, ready: span });
        }
    }

    pub(super) fn reset_stats(&mut self) {
        self.wires.iter_mut().for_each(|wire| (wire.busy_cycles, wire.wait_cycles) = (0, 0));
    }

    /// Cycles that messages waited for these.
    pub(super) fn wait_cycles(&self, of: impl Iterator<Item = usize>) -> Cycle {
        of.map(|wire| self.wires[wire].wait_cycles).sum::<i64>().max(0) as Cycle
    }

    /// The most cycles for which any of these was busy.
    pub(super) fn busiest(&self, of: impl Iterator<Item = usize>) -> Cycle {
        of.map(|wire| self.wires[wire].busy_cycles).max().unwrap_or(0)
    }
}

/// Notes that flits of a wire have to be placed again.
fn note(all: &mut Vec<Changed>, new: Changed) {
    match all.iter_mut().find(|changed| changed.wire == new.wire) {
        Some(changed) => {
            changed.ready.add(new.ready.from);
            changed.ready.add(new.ready.to);
        }
        None => all.push(new),
    }
}

/// The wire of the smallest rank: no other one changes what reaches it.
fn take_first(all: &mut Vec<Changed>) -> Option<Changed> {
    let first = (0..all.len()).min_by_key(|&n| (all[n].rank, all[n].wire))?;
    Some(all.swap_remove(first))
}

impl Wire {
    /// Forgets the half of its messages that ended first. How many they were; their flits are memory to use again.
    fn forget(&mut self, spare: &mut Vec<Vec<Flit>>) -> u64 {
        let mut ends: Vec<Cycle> = self.passages.iter().map(|passage| passage.ends).collect();
        let (_, &mut last, _) = ends.select_nth_unstable(REMEMBERED / 2);
        self.forgotten_until = self.forgotten_until.max(last + 1);
        let old = self.passages.extract_if(.., |passage| passage.ends <= last);
        let before = spare.len();
        spare.extend(old.map(|passage| passage.flits));
        (spare.len() - before) as u64
    }

    /// Places the flits again that go in the first cycle of `ready` or later, until no flit waits after the last one.
    fn find_cycles(&mut self, ready: Span, scratch: &mut Scratch) {
        let from = ready.from.max(self.forgotten_until);
        scratch.turns.clear();
        if from >= self.free_from {
            // Most messages come when nothing else is there.
            return self.place_last(&mut scratch.turns);
        }
        self.find_turns(from, scratch);
        let Scratch { turns, lanes, .. } = scratch;
        let mut now = from;
        loop {
            let mut next: Option<(Cycle, Cycle, u64, usize)> = None;
            let mut idle_until = Cycle::MAX;
            for (n, lane) in lanes.iter().enumerate().filter(|(_, lane)| lane.front < lane.end) {
                let turn = turns[lane.front];
                let passage = &self.passages[turn.place];
                let reaches = passage.flits[turn.flit].ready;
                if reaches > now {
                    idle_until = idle_until.min(reaches);
                    continue;
                }
                let order = (lane.since, passage.comes(), passage.message, n);
                next = Some(next.map_or(order, |first| first.min(order)));
            }
            let Some((.., n)) = next else {
                if idle_until > ready.to {
                    break;
                }
                now = idle_until;
                continue;
            };
            let lane = &mut lanes[n];
            lane.since = now + 1;
            let turn = &mut turns[lane.front];
            let flits = &mut self.passages[turn.place].flits;
            let flit = &mut flits[turn.flit];
            if flit.goes != now {
                if flit.goes != NOT_PLACED {
                    turn.moved.add(flit.goes);
                }
                turn.moved.add(now);
                flit.goes = now;
            }
            turn.flit += 1;
            if turn.flit == flits.len() {
                self.passages[turn.place].ends = now;
                lane.front += 1;
            }
            now += 1;
        }
        self.free_from = self.free_from.max(now);
    }

    /// The last message to come waits for nothing.
    fn place_last(&mut self, turns: &mut Vec<Turn>) {
        let place = self.passages.len() - 1;
        let passage = &mut self.passages[place];
        passage.flits.iter_mut().for_each(|flit| flit.goes = flit.ready);
        passage.ends = passage.reaches();
        self.free_from = passage.ends + 1;
        let moved = Span { from: passage.comes(), to: passage.ends };
        turns.push(Turn { place, flit: passage.flits.len(), ended: NOT_PLACED, moved });
    }

    /// The flits that go at `from` or later, in lanes by their queues.
    fn find_turns(&self, from: Cycle, scratch: &mut Scratch) {
        let Scratch { turns, lanes, .. } = scratch;
        lanes.clear();
        for (place, passage) in self.passages.iter().enumerate() {
            let ended = passage.ends;
            if ended >= from {
                let flit = passage.flits.partition_point(|flit| flit.goes < from);
                turns.push(Turn { place, flit, ended, moved: EMPTY });
            }
        }
        if !self.kind.is_out {
            let lane = |(front, turn): (usize, &Turn)| {
                let passage = &self.passages[turn.place];
                let since = if turn.flit > 0 { passage.flits[turn.flit - 1].goes + 1 } else { passage.comes() };
                Lane { front, end: front + 1, since }
            };
            return lanes.extend(turns.iter().enumerate().map(lane));
        }
        turns.sort_unstable_by_key(|turn| {
            let passage = &self.passages[turn.place];
            (passage.queue, passage.comes(), passage.message)
        });
        for (front, turn) in turns.iter().enumerate() {
            let passage = &self.passages[turn.place];
            match lanes.last_mut() {
                Some(lane) if self.passages[turns[lane.front].place].queue == passage.queue => lane.end += 1,
                _ => lanes.push(Lane { front, end: front + 1, since: self.queue_waits_since(passage, from) }),
            }
        }
    }

    /// The cycle after the last one before `from` in which a flit of a passage's queue went, or that in which the passage came.
    fn queue_waits_since(&self, of: &Passage, from: Cycle) -> Cycle {
        let same = self.passages.iter().filter(|passage| passage.queue == of.queue);
        let went = same.flat_map(|passage| &passage.flits).map(|flit| flit.goes).filter(|&goes| goes < from).max();
        went.map_or(0, |goes| goes + 1).max(of.comes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durasim_types::Rng;
    use std::collections::{BTreeMap, BTreeSet, VecDeque};

    impl Wires {
        /// The cycles in which flits go on a wire: each has its own, in the order of its message, not before it is there.
        pub(in crate::parts::interconnect) fn cycles_of_flits(&self, wire: usize) -> BTreeSet<Cycle> {
            let mut seen = BTreeSet::new();
            for passage in &self.wires[wire].passages {
                assert!(passage.flits.windows(2).all(|two| two[0].goes < two[1].goes));
                for flit in &passage.flits {
                    assert!(
                        flit.ready <= flit.goes && seen.insert(flit.goes),
                        "two flits in one cycle, or one too early"
                    );
                }
            }
            seen
        }

        /// Cycle in which all of a remembered message is at the end of its route.
        fn arrives(&self, message: u64) -> Cycle {
            let all = self.wires.iter().flat_map(|wire| wire.passages.iter().map(move |passage| (wire, passage)));
            let mut last = all.filter(|(_, passage)| passage.message == message && passage.next.is_none());
            let (wire, passage) = last.next().expect("the message is remembered");
            passage.ends + wire.kind.delay
        }
    }

    /// Four wires out of ends, two rows of four wires, and four wires into ends.
    fn kinds() -> Vec<Kind> {
        let kind = |wire: u32| Kind { rank: wire / 4, delay: [1, 3, 2, 0][wire as usize / 4], is_out: wire < 4 };
        (0..16).map(kind).collect()
    }

    struct Drawn {
        route: [usize; 4],
        queue: u64,
        flits: Cycle,
        at: Cycle,
    }

    fn draw(seed: u64, messages: u64) -> Vec<Drawn> {
        let mut rng = Rng::new(seed);
        let mut at = 0;
        let mut one = |_| {
            at += rng.below(4);
            let route = [0, 4, 8, 12].map(|first| first + rng.below(4) as usize);
            Drawn { route, queue: rng.below(2), flits: [1, 1, 4, 9][rng.below(4) as usize], at }
        };
        (0..messages).map(&mut one).collect()
    }

    fn send(wires: &mut Wires, drawn: &Drawn) -> Cycle {
        let Drawn { route, queue, flits, at } = drawn;
        wires.send(Sent { route, queue: *queue, flits: *flits, at: *at }, &mut Forgotten::default())
    }

    /// A message on a wire of the plain model: the cycles in which its flits come, how many went, and since when it waits.
    #[derive(Default)]
    struct Waiting {
        comes: VecDeque<Cycle>,
        first: Cycle,
        went: Cycle,
        since: Cycle,
    }

    /// Cycle by cycle: when each message has arrived.
    fn plain(drawn: &[Drawn]) -> Vec<Cycle> {
        let kinds = kinds();
        let mut on: Vec<BTreeMap<usize, Waiting>> = kinds.iter().map(|_| BTreeMap::new()).collect();
        let mut queues = BTreeMap::new();
        let mut arrived = vec![0; drawn.len()];
        for (message, of) in drawn.iter().enumerate() {
            let comes = (of.at..of.at + of.flits).collect();
            on[of.route[0]].insert(message, Waiting { comes, first: of.at, went: 0, since: of.at });
        }
        for now in 0..20_000 {
            for wire in 0..16 {
                let is_out = kinds[wire].is_out;
                let fronts = on[wire].iter().filter(|(message, waiting)| {
                    let is_front = |(other, its): (&usize, &Waiting)| {
                        drawn[*other].queue != drawn[**message].queue
                            || (its.first, *other) >= (waiting.first, **message)
                    };
                    waiting.comes.front().is_some_and(|&comes| comes <= now)
                        && (!is_out || on[wire].iter().all(is_front))
                });
                let order = |(message, waiting): (&usize, &Waiting)| {
                    let queue = queues.get(&(wire, drawn[*message].queue)).copied().unwrap_or(0);
                    (if is_out { waiting.first.max(queue) } else { waiting.since }, waiting.first, *message)
                };
                let Some((.., message)) = fronts.map(order).min() else { continue };
                let of = &drawn[message];
                let waiting = on[wire].get_mut(&message).unwrap();
                waiting.comes.pop_front();
                (waiting.went, waiting.since) = (waiting.went + 1, now + 1);
                if waiting.went == of.flits {
                    on[wire].remove(&message);
                }
                queues.insert((wire, of.queue), now + 1);
                let reaches = now + kinds[wire].delay;
                let hop = of.route.iter().position(|&on_route| on_route == wire).unwrap();
                arrived[message] = reaches;
                if let Some(&next) = of.route.get(hop + 1) {
                    let empty = Waiting { first: reaches, since: reaches, ..Waiting::default() };
                    on[next].entry(message).or_insert(empty).comes.push_back(reaches);
                }
            }
        }
        arrived
    }

    #[test]
    fn flits_go_as_a_model_says_that_decides_cycle_by_cycle() {
        for seed in 0..40 {
            let drawn = draw(seed, 120);
            let mut wires = Wires::new(kinds().into_iter());
            for drawn in &drawn {
                send(&mut wires, drawn);
            }
            let arrive: Vec<Cycle> = (0..drawn.len() as u64).map(|message| wires.arrives(message)).collect();
            assert_eq!(arrive, plain(&drawn), "seed {seed}");
        }
    }

    #[test]
    fn answers_add_up_to_what_the_wires_do_in_any_order_of_calls() {
        for seed in 0..40 {
            let mut rng = Rng::new(seed);
            let mut drawn = draw(seed, 120);
            drawn.sort_by_cached_key(|drawn| drawn.at + rng.below(300));
            let mut wires = Wires::new(kinds().into_iter());
            let mut answers = 0;
            for drawn in &drawn {
                let answer = send(&mut wires, drawn);
                assert!(answer >= drawn.at + wires.unloaded_cycles(&drawn.route, drawn.flits), "sooner than alone");
                answers += answer as i64;
            }
            let arrive: Cycle = (0..120).map(|message| wires.arrives(message)).sum();
            assert_eq!(answers + wires.owed, arrive as i64, "seed {seed}");
            for wire in 0..16 {
                wires.cycles_of_flits(wire);
            }
        }
    }

    #[test]
    fn a_short_message_passes_a_long_one_that_is_sent_by_another_end() {
        let mut wires = Wires::new(kinds().into_iter());
        let of = |route, flits, at| Drawn { route, queue: 0, flits, at };
        let lone = 1 + 3 + 2;
        assert_eq!(send(&mut wires, &of([0, 4, 8, 12], 9, 10)), 10 + lone + 8);
        // After one flit. The eight others are a cycle later.
        assert_eq!(send(&mut wires, &of([1, 4, 8, 12], 1, 10)), 10 + lone + 1 + 1);
        assert_eq!(wires.arrives(0), 10 + lone + 9);
        // After the long one at its end, and before what it sends later.
        assert_eq!(send(&mut wires, &of([0, 5, 9, 13], 1, 12)), 19 + lone);
    }
}
