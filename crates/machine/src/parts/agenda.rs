//! Scheduled work of the memory system, timers, and requests that wait for acknowledgements or signals.

mod suspensions;

use durasim_contract::{LevelId, Message, Node, Origin, Signal, Token};
use durasim_memory::{Write, WriteToken};
use durasim_types::{Cause, CoreId, Cycle, Line, LineAddr, PhysAddr};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use suspensions::Suspension;

/// Tokens with this bit are cache-block operations of the core in the low bits; the others are a design's.
const CLEAN: u64 = 1 << 63;

/// Of these, those with this bit have come with a store.
const WITH_STORE: u64 = 1 << 61;

/// The token of a cache-block operation of `core`.
pub(crate) const fn clean_token(core: CoreId) -> WriteToken {
    WriteToken::new(CLEAN | core.0 as u64, Origin::Core(core))
}

/// The token of a persistent write of `core`: a cache-block operation that comes with a store.
pub(crate) const fn persistent_write_token(core: CoreId) -> WriteToken {
    WriteToken::new(CLEAN | WITH_STORE | core.0 as u64, Origin::Core(core))
}

/// Whether a token is that of a persistent write.
pub(crate) const fn is_persistent_write_token(token: WriteToken) -> bool {
    token.number & (CLEAN | WITH_STORE) == CLEAN | WITH_STORE
}

/// The core of the cache-block operation of a token.
pub(crate) const fn core_of_clean(token: WriteToken) -> Option<CoreId> {
    if token.number & CLEAN == 0 { None } else { Some(CoreId((token.number & !CLEAN) as u16)) }
}

/// Waits in one cycle that are over when they begin, beyond which the machine is stuck: more than any structure has entries.
const IMMEDIATE_WAITS_MAX: u32 = 1 << 20;

/// Work that the system has scheduled for itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Scheduled {
    Timer {
        id: u64,
    },
    Message {
        to: Node,
        message: Message,
    },
    /// The second half of a copy: its data was read, it is written now.
    Write {
        from: Origin,
        write: Box<Write>,
    },
    /// A barrier that writes of its cycle had to come before.
    Barrier {
        token: Token,
        cause: Cause,
    },
    /// The acknowledgement of a write arrives.
    Acknowledgement {
        token: WriteToken,
        line: LineAddr,
        /// Cycle in which its controller sent it.
        sent: Cycle,
    },
    /// A line that was pushed down is in the last level.
    Pushed {
        line: LineAddr,
        token: Token,
    },
    Scan(Scan),
    /// A read of the design's own arrives.
    Read(Box<ReadInFlight>),
}

impl Scheduled {
    /// Whether a design starts it without a request of a core.
    pub(crate) fn is_background(&self) -> bool {
        matches!(self, Scheduled::Timer { .. } | Scheduled::Scan(_))
    }
}

/// A scan that is in progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Scan {
    /// The design's own number.
    pub id: u64,
    /// The next place, counted through all caches.
    pub position: usize,
    pub lines_per_cycle: u32,
    /// Whether it takes the port of the array that it is in.
    pub takes_ports: bool,
    /// Lines that were shown already.
    pub shown: BTreeSet<LineAddr>,
    /// Places ahead that need not be looked at.
    #[serde(skip)]
    pub quiet: QuietPlaces,
}

/// Places of an array in which a scan finds no line to show, as long as no line of the array becomes dirty or tagged.
#[derive(Clone, Copy)]
pub(crate) struct QuietStretch {
    pub level: LevelId,
    pub core: CoreId,
    /// [`durasim_cache::CacheArray::changes`] when they were looked at.
    pub changes: u64,
    /// The first of them, counted through all caches, and the place after the last.
    pub begin: usize,
    pub end: usize,
}

/// Knowledge of a scan about the places ahead. It follows from the caches: scans that differ in it alone are equal.
#[derive(Clone, Copy, Default)]
pub(crate) struct QuietPlaces(pub Option<QuietStretch>);

impl PartialEq for QuietPlaces {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for QuietPlaces {}

impl std::fmt::Debug for QuietPlaces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("QuietPlaces")
    }
}

/// A line of persistent memory in flight to the design that asked for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReadInFlight {
    pub addr: PhysAddr,
    pub token: u64,
    #[serde(with = "serde_bytes")]
    pub data: Line,
}

super::part::part! {
    /// The part of the memory system with scheduled work and suspended requests.
    pub(crate) struct Agenda saved as SavedAgenda {
        saved {
            queue: BinaryHeap<Reverse<(Cycle, u64, usize)>>,
            work: BTreeMap<usize, Scheduled>,
            count: u64,
            /// Timers in retired instructions, by due count and the design's number.
            instruction_timers: BTreeSet<(u64, u64)>,
            next_instruction_timer: u64,
            instructions: u64,
            /// Nothing is scheduled before this cycle.
            due: Cycle,
            /// Writes handed over and not acknowledged, by the design's token.
            outstanding: BTreeMap<u64, u32>,
            /// Cache-block operations of each core that are not acknowledged.
            cleans: Vec<u32>,
            /// Cycle in which the last acknowledgement of one reaches each core; 0 once a fence has waited for it.
            clean_acks: Vec<Cycle>,
            raised: BTreeSet<u64>,
            /// The request of each core that waits while others continue.
            suspended: Vec<Option<Suspension>>,
        }
        kept {
            /// The cycle of the last wait that was over when it began, and how many such waits there were in it.
            immediate_waits: (Cycle, u32),
            /// Number of times in succession that a request was made again while nothing was scheduled.
            retries: u32,
            /// Whether a scan may be scheduled.
            may_scan: bool,
            /// Whether a scan that takes ports may be scheduled.
            may_take_ports: bool,
            /// Number of times that it became known when a suspended request can be made again.
            resumptions: u64,
        }
    }
}

impl Agenda {
    pub(crate) fn new(cores: usize) -> Self {
        Agenda {
            queue: BinaryHeap::new(),
            work: BTreeMap::new(),
            count: 0,
            instruction_timers: BTreeSet::new(),
            next_instruction_timer: u64::MAX,
            instructions: 0,
            due: Cycle::MAX,
            outstanding: BTreeMap::new(),
            cleans: vec![0; cores],
            clean_acks: vec![0; cores],
            raised: BTreeSet::new(),
            suspended: vec![None; cores],
            immediate_waits: (0, 0),
            retries: 0,
            may_scan: false,
            may_take_ports: false,
            resumptions: 0,
        }
    }

    pub(crate) fn fork(&self) -> Self {
        Agenda {
            queue: self.queue.clone(),
            work: self.work.clone(),
            count: self.count,
            instruction_timers: self.instruction_timers.clone(),
            next_instruction_timer: self.next_instruction_timer,
            instructions: self.instructions,
            due: self.due,
            outstanding: self.outstanding.clone(),
            cleans: self.cleans.clone(),
            clean_acks: self.clean_acks.clone(),
            raised: self.raised.clone(),
            suspended: self.suspended.clone(),
            immediate_waits: (0, 0),
            retries: 0,
            may_scan: self.may_scan,
            may_take_ports: self.may_take_ports,
            resumptions: 0,
        }
    }

    /// Schedules work of the system's own.
    pub(crate) fn schedule(&mut self, at: Cycle, work: Scheduled) {
        self.count += 1;
        let key = self.count as usize;
        if let Scheduled::Scan(scan) = &work {
            self.may_scan = true;
            self.may_take_ports |= scan.takes_ports;
        }
        self.work.insert(key, work);
        self.queue.push(Reverse((at, self.count, key)));
        self.due = self.due.min(at);
    }

    /// Cycle in which the first scheduled work is due; `Cycle::MAX` if there is none.
    pub(crate) fn first(&self) -> Cycle {
        self.queue.peek().map_or(Cycle::MAX, |Reverse((at, ..))| *at)
    }

    /// Takes the first scheduled work.
    pub(crate) fn take_first(&mut self) -> Option<(Cycle, Scheduled)> {
        let Reverse((at, _, key)) = self.queue.pop()?;
        Some((at, self.work.remove(&key).expect("every scheduled item has its work")))
    }

    /// Whether a scan may be scheduled.
    #[inline]
    pub(crate) fn may_scan(&self) -> bool {
        self.may_scan
    }

    /// Whether a scan that takes ports may be scheduled.
    #[inline]
    pub(crate) fn may_take_ports(&self) -> bool {
        self.may_take_ports
    }

    /// The place that a scan in progress looks at in a cycle, if it takes ports.
    pub(crate) fn place_of_scan(&self, at: Cycle) -> Option<usize> {
        self.queue.iter().find_map(|Reverse((due, _, key))| match &self.work[key] {
            Scheduled::Scan(scan) if scan.takes_ports => {
                let places = |cycles: Cycle| usize::try_from(cycles).ok()?.checked_mul(scan.lines_per_cycle as usize);
                if at < *due {
                    scan.position.checked_sub(places(due - at)?)
                } else {
                    scan.position.checked_add(places(at - due)?)
                }
            }
            _ => None,
        })
    }

    /// The first scheduled work if it is a step of a scan, with its cycle and the cycle of the second.
    pub(crate) fn first_scan(&self) -> Option<(Cycle, &Scan, Cycle)> {
        let Reverse((at, _, key)) = self.queue.peek()?;
        let Scheduled::Scan(scan) = &self.work[key] else { return None };
        // In a heap the second is a child of the first.
        let children = self.queue.as_slice().iter().skip(1).take(2);
        let second = children.map(|Reverse((at, ..))| *at).min().unwrap_or(Cycle::MAX);
        Some((*at, scan, second))
    }

    /// The first scheduled work is a step of a scan that finds nothing, as are those before `at`, when the scan is at `position`,
    /// with this knowledge of the places ahead.
    pub(crate) fn continue_first_scan(&mut self, at: Cycle, position: usize, quiet: QuietPlaces) {
        self.count += 1;
        let mut first = self.queue.peek_mut().expect("a scan is scheduled");
        let Reverse((_, _, key)) = *first;
        *first = Reverse((at, self.count, key));
        drop(first);
        let Some(Scheduled::Scan(scan)) = self.work.get_mut(&key) else { unreachable!("the first work is a scan") };
        (scan.position, scan.quiet) = (position, quiet);
    }

    pub(crate) fn is_anything_scheduled(&self) -> bool {
        !self.work.is_empty()
    }

    /// Whether nothing is scheduled but timers and scans, which designs start again and again.
    pub(crate) fn has_background_work_only(&self) -> bool {
        self.work.values().all(Scheduled::is_background)
    }

    /// All that is scheduled, with its distance from `now` in cycles, in the order in which it is due.
    pub(crate) fn schedule_from(&self, now: Cycle) -> Vec<(Cycle, &Scheduled)> {
        let mut entries: Vec<_> = self.queue.iter().map(|Reverse(entry)| *entry).collect();
        entries.sort_unstable();
        entries.into_iter().map(|(at, _, key)| (at - now, &self.work[&key])).collect()
    }

    /// Whether some read of the design's own has not arrived.
    pub(crate) fn any_read_in_flight(&self) -> bool {
        self.work.values().any(|work| matches!(work, Scheduled::Read(_)))
    }

    /// The cycle before which nothing is scheduled.
    #[inline]
    pub(crate) fn due(&self) -> Cycle {
        self.due
    }

    /// The memories have nothing to do before `memory`.
    #[inline]
    pub(crate) fn memories_are_due(&mut self, memory: Cycle) {
        self.due = memory.min(self.first());
    }

    /// Instructions retired by all cores so far.
    #[inline]
    pub(crate) fn instructions(&self) -> u64 {
        self.instructions
    }

    /// Continues after this many instructions that were executed elsewhere.
    pub(crate) fn start_after(&mut self, instructions: u64) {
        self.instructions = instructions;
    }

    /// Instructions have retired; whether a timer that counts them is due.
    #[inline]
    pub(crate) fn retired(&mut self, instructions: u64) -> bool {
        self.instructions += instructions;
        self.next_instruction_timer <= self.instructions
    }

    pub(crate) fn start_instruction_timer(&mut self, after_instructions: u64, id: u64) {
        self.instruction_timers.insert((self.instructions + after_instructions, id));
        self.find_next_instruction_timer();
    }

    /// The number of the next timer in instructions that is due.
    pub(crate) fn take_instruction_timer(&mut self) -> Option<u64> {
        if self.next_instruction_timer > self.instructions {
            return None;
        }
        let (_, id) = self.instruction_timers.pop_first().expect("a due timer was seen");
        self.find_next_instruction_timer();
        Some(id)
    }

    fn find_next_instruction_timer(&mut self) {
        self.next_instruction_timer = self.instruction_timers.first().map_or(u64::MAX, |timer| timer.0);
    }

    pub(crate) fn any_instruction_timer(&self) -> bool {
        !self.instruction_timers.is_empty()
    }

    /// One more write or read under this token is to be waited for.
    pub(crate) fn hand_over(&mut self, token: u64) {
        *self.outstanding.entry(token).or_default() += 1;
    }

    /// One write or read under this token is outstanding no more. A request that waits for the last of them can continue.
    pub(crate) fn forget_outstanding(&mut self, token: u64, at: Cycle) {
        let count = self.outstanding.get_mut(&token).expect("only writes handed over are acknowledged");
        *count -= 1;
        if *count == 0 {
            self.outstanding.remove(&token);
            self.token_is_acked(Token(token), at);
        }
    }

    pub(crate) fn is_outstanding(&self, token: Token) -> bool {
        self.outstanding.contains_key(&token.0)
    }

    pub(crate) fn is_anything_outstanding(&self) -> bool {
        !self.outstanding.is_empty()
    }

    /// A cache-block operation of `core` has been handed over.
    pub(crate) fn hand_over_clean(&mut self, core: CoreId) {
        self.cleans[core.0 as usize] += 1;
    }

    /// A cache-block operation of `core` is acknowledged, and the acknowledgement reaches it at `home`.
    pub(crate) fn clean_is_acked(&mut self, core: CoreId, home: Cycle) {
        let index = core.0 as usize;
        self.cleans[index] -= 1;
        self.await_clean_until(core, home);
        if self.cleans[index] == 0 {
            self.cleans_are_acked(core, self.clean_acks[index]);
        }
    }

    /// The next fence of `core` waits until `home`.
    pub(crate) fn await_clean_until(&mut self, core: CoreId, home: Cycle) {
        let acked = &mut self.clean_acks[core.0 as usize];
        *acked = (*acked).max(home);
    }

    /// Whether cache-block operations of `core` are not acknowledged.
    pub(crate) fn has_unacked_cleans(&self, core: CoreId) -> bool {
        self.cleans[core.0 as usize] > 0
    }

    pub(crate) fn any_unacked_clean(&self) -> bool {
        self.cleans.iter().any(|&n| n > 0)
    }

    /// Whether a fence of `core` has acknowledgements of cache-block operations to wait for.
    pub(crate) fn cleans_outstanding(&self, core: CoreId) -> bool {
        self.has_unacked_cleans(core) || self.clean_acks[core.0 as usize] > 0
    }

    /// A fence has waited for the cache-block operations of `core`: the cycle of the last acknowledgement.
    pub(crate) fn take_clean_ack(&mut self, core: CoreId) -> Cycle {
        std::mem::take(&mut self.clean_acks[core.0 as usize])
    }

    pub(crate) fn is_raised(&self, signal: Signal) -> bool {
        self.raised.contains(&signal.0)
    }

    /// Takes a raised signal away; whether there was one.
    pub(crate) fn take_signal(&mut self, signal: Signal) -> bool {
        self.raised.remove(&signal.0)
    }

    /// Counts a wait that was over when it began. False beyond a number in one cycle at which the design would wait without end.
    pub(crate) fn may_lack_progress(&mut self, at: Cycle) -> bool {
        let (cycle, count) = self.immediate_waits;
        self.immediate_waits = if cycle == at { (at, count + 1) } else { (at, 1) };
        self.immediate_waits.1 <= IMMEDIATE_WAITS_MAX
    }

    /// A request is made again, and nothing is scheduled until then. False if that happened too often in succession.
    pub(crate) fn may_retry(&mut self) -> bool {
        self.retries += 1;
        self.retries <= IMMEDIATE_WAITS_MAX
    }

    /// A request proceeds.
    #[inline]
    pub(crate) fn forget_retries(&mut self) {
        self.retries = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durasim_contract::Wait;

    const CORE: CoreId = CoreId(1);

    #[test]
    fn work_comes_in_order_of_cycles_and_then_of_scheduling() {
        let mut agenda = Agenda::new(2);
        for (at, id) in [(7, 1), (5, 2), (7, 3)] {
            agenda.schedule(at, Scheduled::Timer { id });
        }
        assert_eq!(agenda.due(), 5);
        let order: Vec<_> = std::iter::from_fn(|| agenda.take_first()).collect();
        let timer = |at, id| (at, Scheduled::Timer { id });
        assert_eq!(order, [timer(5, 2), timer(7, 1), timer(7, 3)]);
        agenda.memories_are_due(Cycle::MAX);
        assert_eq!(agenda.due(), Cycle::MAX);
    }

    #[test]
    fn a_token_is_acknowledged_with_its_last_write() {
        let mut agenda = Agenda::new(2);
        let token = Token(3);
        agenda.hand_over(token.0);
        agenda.hand_over(token.0);
        assert!(!agenda.suspend(CORE, Wait::Acked(token), 10, false));
        agenda.forget_outstanding(token.0, 20);
        assert_eq!(agenda.resumes_at(CORE), None);
        assert!(agenda.has_waiters());
        agenda.forget_outstanding(token.0, 30);
        assert_eq!(agenda.resumes_at(CORE), Some(30));
        assert!(!agenda.is_outstanding(token) && !agenda.has_waiters());
    }

    #[test]
    fn a_fence_waits_for_the_last_clean_of_its_core() {
        let mut agenda = Agenda::new(2);
        agenda.hand_over_clean(CORE);
        agenda.hand_over_clean(CORE);
        agenda.clean_is_acked(CORE, 50);
        agenda.suspend_for_cleans(CORE, 5);
        assert_eq!(agenda.resumes_at(CORE), None);
        // The acknowledgement that was sent last need not be the last to reach the core.
        agenda.clean_is_acked(CORE, 40);
        assert_eq!(agenda.resumes_at(CORE), Some(50));
        assert!(agenda.cleans_outstanding(CORE) && !agenda.cleans_outstanding(CoreId(0)));
        assert_eq!(agenda.take_clean_ack(CORE), 50);
        assert!(!agenda.cleans_outstanding(CORE));
    }

    #[test]
    fn a_signal_is_kept_for_the_next_wait_if_no_request_waits() {
        let mut agenda = Agenda::new(2);
        agenda.raise(Signal(1), 5);
        assert!(agenda.suspend(CORE, Wait::Signal(Signal(1)), 6, false), "the wait is over at once");
        assert!(!agenda.is_raised(Signal(1)));
        assert!(!agenda.suspend(CORE, Wait::Signal(Signal(1)), 6, false));
        agenda.raise(Signal(1), 9);
        assert_eq!(agenda.resumes_at(CORE), Some(9));
        assert!(!agenda.is_raised(Signal(1)), "who waited has taken it");
    }

    #[test]
    fn timers_in_instructions_come_when_as_many_have_retired() {
        let mut agenda = Agenda::new(1);
        assert!(!agenda.retired(10));
        agenda.start_instruction_timer(5, 1);
        agenda.start_instruction_timer(3, 2);
        assert!(!agenda.retired(2));
        assert!(agenda.retired(3));
        assert_eq!(agenda.take_instruction_timer(), Some(2));
        assert_eq!(agenda.take_instruction_timer(), Some(1));
        assert_eq!(agenda.take_instruction_timer(), None);
    }

    #[test]
    fn waits_that_are_over_at_once_are_counted_in_one_cycle() {
        let mut agenda = Agenda::new(1);
        assert!((0..IMMEDIATE_WAITS_MAX).all(|_| agenda.may_lack_progress(4)));
        assert!(!agenda.may_lack_progress(4));
        assert!(agenda.may_lack_progress(5));
    }

    #[test]
    fn retries_are_counted_until_a_request_proceeds() {
        let mut agenda = Agenda::new(1);
        assert!((0..IMMEDIATE_WAITS_MAX).all(|_| agenda.may_retry()));
        assert!(!agenda.may_retry());
        agenda.forget_retries();
        assert!(agenda.may_retry());
    }
}
