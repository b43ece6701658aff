//! An index of the entries of a write queue: the lines that have an entry, the writes in service,
//! and the first waiting write of each bank. All of it follows from the entries, and is built anew where it is absent.

use super::Controller;
use crate::Entry;
use crate::media::Direction;
use durasim_types::{LineAddr, Picos};

/// Counters of entries by line, a power of two.
pub(super) const BUCKETS: usize = 64;

/// A write that the media are writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct InService {
    finish_ps: Picos,
    number: u64,
    line: LineAddr,
}

/// The first waiting write of a bank.
#[derive(Clone, Copy, Debug)]
struct Head {
    number: u64,
    line: LineAddr,
    local: u64,
    bank: u16,
    /// It does not start before this time.
    bound_ps: Picos,
}

/// See the head of the file.
#[derive(Clone, Debug)]
pub(super) struct Index {
    /// Number of the next entry that comes.
    next: u64,
    /// Entries of all lines that share a bucket.
    lines: [u16; BUCKETS],
    in_service: Vec<InService>,
    /// One for each bank with a write that waits. Absent while entries are held, and with media for which a write may start
    /// earlier than it could before, or which order writes themselves.
    heads: Option<Vec<Head>>,
}

/// The bucket of a line.
pub(super) fn bucket(line: LineAddr) -> usize {
    // Adjacent lines and those of adjacent rows are in different buckets.
    (line.0 ^ line.0 >> 6) as usize % BUCKETS
}

fn head(entry: &Entry) -> Head {
    let Entry { number, bank, local, start_bound_ps: bound_ps, .. } = *entry;
    Head { number, line: entry.write.line, local, bank, bound_ps }
}

impl Controller {
    /// Whether the queue may have an entry of the line.
    #[inline]
    pub(super) fn may_have(&self, line: LineAddr) -> bool {
        self.index.as_ref().is_none_or(|index| index.lines[bucket(line)] > 0)
    }

    /// The place in the queue of the entry with a number.
    fn place_of(&self, number: u64) -> usize {
        self.queue.binary_search_by_key(&number, |entry| entry.number).expect("the entry is in the queue")
    }

    /// The number of the next entry that comes.
    pub(super) fn next_number(&mut self) -> u64 {
        self.index().next
    }

    /// The last entry of the queue has come.
    pub(super) fn index_arrival(&mut self) {
        let entry = self.queue.back().expect("an entry has come");
        let Some(index) = &mut self.index else { return };
        index.next = entry.number + 1;
        index.lines[bucket(entry.write.line)] += 1;
        if entry.is_held() {
            index.heads = None;
        } else if let Some(heads) = &mut index.heads
            && heads.iter().all(|head| head.bank != entry.bank)
        {
            heads.push(head(entry));
        }
    }

    /// The media begin with the entry at `place`.
    pub(super) fn index_start(&mut self, place: usize) {
        let Controller { queue, index: Some(index), .. } = self else { return };
        let Entry { number, bank, finish_ps, .. } = queue[place];
        let finish_ps = finish_ps.expect("the media have begun with it");
        index.in_service.push(InService { finish_ps, number, line: queue[place].write.line });
        let Some(heads) = &mut index.heads else { return };
        let Some(at) = heads.iter().position(|head| head.number == number) else { return };
        match queue.range(place + 1..).find(|entry| entry.bank == bank && entry.finish_ps.is_none()) {
            Some(next) => heads[at] = head(next),
            None => {
                heads.swap_remove(at);
            }
        }
    }

    /// An entry has left the queue, which the media had finished.
    pub(super) fn index_departure(&mut self, entry: &Entry) {
        let Some(index) = &mut self.index else { return };
        index.lines[bucket(entry.write.line)] -= 1;
        let at = index.in_service.iter().position(|served| served.number == entry.number);
        index.in_service.swap_remove(at.expect("only writes in service are finished"));
    }

    /// Entries have become ordinary ones.
    pub(super) fn index_release(&mut self) {
        if let Some(index) = &mut self.index {
            index.heads = None;
        }
    }

    /// Entries that wait for the media.
    pub(super) fn waiting(&self) -> usize {
        let in_service = self.index.as_ref().map(|index| index.in_service.len());
        self.queue.len() - in_service.unwrap_or_else(|| self.queue.iter().filter(|e| e.finish_ps.is_some()).count())
    }

    /// The write in service that is finished first, with its place in the queue.
    pub(super) fn next_finish(&mut self) -> Option<(usize, Picos)> {
        let InService { finish_ps, number, .. } = *self.index().in_service.iter().min()?;
        Some((self.place_of(number), finish_ps))
    }

    /// The end of the last write of the line that is in service and came before the entry with a number; 0 if there is none.
    pub(super) fn line_is_written_until(&mut self, line: LineAddr, number: u64) -> Picos {
        let older = self.index().in_service.iter().filter(|served| served.line == line && served.number < number);
        older.map(|served| served.finish_ps).fold(0, Picos::max)
    }

    /// Whether the last entry is the first waiting one of its bank.
    pub(super) fn is_last_first_of_bank(&self) -> bool {
        let Some(last) = self.queue.back() else { return false };
        match self.index.as_ref().and_then(|index| index.heads.as_ref()) {
            Some(heads) => heads.iter().any(|head| head.number == last.number),
            None => {
                let mut waiting = self.queue.iter().filter(|e| e.bank == last.bank && e.finish_ps.is_none());
                waiting.next().is_some_and(|first| first.number == last.number)
            }
        }
    }

    /// The last entry does not start before `start_ps`.
    pub(super) fn bound_start_of_last(&mut self, start_ps: Picos) {
        let Controller { queue, index, .. } = self;
        let last = queue.back_mut().expect("an entry has come");
        last.start_bound_ps = start_ps;
        let heads = index.as_mut().and_then(|index| index.heads.as_mut());
        for head in heads.into_iter().flatten().filter(|head| head.number == last.number) {
            head.bound_ps = start_ps;
        }
    }

    /// The first write of all banks that may start at `from_ps` or later, with its place in the queue and its start; the older
    /// one of two with the same start. `None` without heads.
    pub(super) fn next_start_of_heads(&mut self, from_ps: Picos) -> Option<Option<(usize, Picos)>> {
        self.index_with_heads();
        let Controller { media, index, .. } = self;
        let Index { in_service, heads, .. } = index.as_mut()?;
        let mut best = (Picos::MAX, u64::MAX);
        for head in heads.as_mut()? {
            if (head.bound_ps, head.number) >= best {
                continue;
            }
            let older = in_service.iter().filter(|served| served.line == head.line && served.number < head.number);
            let earliest_ps = older.map(|served| served.finish_ps).fold(head.bound_ps, Picos::max);
            let start_ps = media.first_start(head.local, Direction::Write, earliest_ps.max(from_ps));
            if from_ps <= earliest_ps {
                // With a later `from_ps` this would be no bound for an access that may start earlier, in a drain.
                head.bound_ps = start_ps;
            }
            best = best.min((start_ps, head.number));
        }
        Some((best.1 != u64::MAX).then(|| (self.place_of(best.1), best.0)))
    }

    fn index(&mut self) -> &mut Index {
        if self.index.is_none() {
            self.index = Some(self.build_index());
        }
        self.index.as_mut().expect("it was just built")
    }

    fn build_index(&mut self) -> Index {
        let mut index = Index { next: 0, lines: [0; BUCKETS], in_service: Vec::new(), heads: None };
        for entry in &mut self.queue {
            entry.number = index.next;
            index.next += 1;
            index.lines[bucket(entry.write.line)] += 1;
            let of_line = |finish_ps| InService { finish_ps, number: entry.number, line: entry.write.line };
            index.in_service.extend(entry.finish_ps.map(of_line));
        }
        index
    }

    fn index_with_heads(&mut self) -> &mut Index {
        let may_have_heads = self.held == 0 && self.media.starts_only_get_later();
        if may_have_heads && self.index().heads.is_none() {
            let mut heads: Vec<Head> = Vec::new();
            for entry in self.queue.iter().filter(|entry| entry.finish_ps.is_none()) {
                if heads.iter().all(|head| head.bank != entry.bank) {
                    heads.push(head(entry));
                }
            }
            self.index().heads = Some(heads);
        }
        self.index()
    }
}
