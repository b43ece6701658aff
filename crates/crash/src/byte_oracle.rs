//! The byte oracle: after recovery, persistent memory equals the state after all acknowledged transactions, plus any
//! dependency-closed subset of those still inside commit.
//!
//! It sees the journal of the program and the bytes of an image, and nothing of the machine or the design.

mod loose;
#[cfg(test)]
mod tests;

use self::loose::Loose;
use durasim_types::{CoreId, DataRange, Journal, LINE_BYTES, Line, LineAddr, PAGE_BYTES, Pages, PhysAddr, TxId, Write};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// The number of a store in the order of the journal. Stores of several cores to one byte come in the order in which the
/// machine made them, which the order of acknowledgements need not be.
type Number = u64;

/// A value with the store that it comes from.
type Stored = (Number, u8);

/// The requests of the program so far.
#[derive(Clone, Debug)]
pub struct ByteOracle {
    range: Option<DataRange>,
    /// Whether the program will declare a range: without one nothing is kept, for nothing is compared.
    keeps: bool,
    /// Persistent memory after all acknowledged transactions and all stores outside of transactions.
    settled: Pages,
    /// Bytes last stored outside of a transaction, with all values they may still have, oldest first: nothing orders
    /// such stores before one of them is known to be durable.
    loose: Loose,
    /// Lines with such bytes that a core has cleaned since its last fence, each with the last store that the clean covers.
    cleaned: BTreeMap<CoreId, BTreeMap<LineAddr, Number>>,
    open: BTreeMap<TxId, OpenTx>,
    /// The bytes that transactions inside commit bring, without those that newer stores have settled already.
    committing: BTreeMap<TxId, Arc<Bytes>>,
    stores: Number,
    /// Whether one of them was to the range.
    has_stores_in_range: bool,
    acknowledged: u64,
    /// Whether the program still recovers: it has not begun its first transaction.
    is_recovering: bool,
    epochs: Option<Epochs>,
}

/// The stores of a transaction that has not started to commit.
#[derive(Clone, Debug, Default)]
struct OpenTx {
    writes: Vec<(Number, Write)>,
    /// Bytes of these that stores outside of transactions have overwritten and that are durable, with the number of the store:
    /// what was written before it never shows again.
    overwritten: BTreeMap<PhysAddr, Number>,
}

/// The contents at the ends of epochs, for designs that promise to recover to one of them and no more.
#[derive(Clone, Debug)]
struct Epochs {
    /// The number of further epochs after which an epoch may not be lost.
    further: usize,
    /// Persistent memory at the last ends of epochs, the newest last. The first is from before the first epoch.
    ends: VecDeque<Pages>,
    ended: u64,
}

/// The judgement of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The image is one of the allowed states.
    Right,
    /// It is not; one sentence says where.
    Wrong(String),
}

/// The number of transactions that share bytes and may be inside commit at once, up to which every subset is tried.
const COMMITTING_MAX: usize = 8;

fn bytes_of(write: &Write) -> impl Iterator<Item = (PhysAddr, u8)> + use<> {
    let (addr, len, data) = (write.addr, write.len, write.data.to_le_bytes());
    (0..len).map(move |i| (addr.plus(u64::from(i)), data[i as usize]))
}

fn byte_of(pages: &Pages, addr: PhysAddr) -> u8 {
    let mut byte = [0];
    pages.read(addr, &mut byte);
    byte[0]
}

type Bytes = BTreeMap<PhysAddr, Stored>;

fn share_bytes(a: &Bytes, b: &Bytes) -> bool {
    a.keys().any(|addr| b.contains_key(addr))
}

/// Whether a byte of `later` overwrites one of `earlier`.
fn overwrites(later: &Bytes, earlier: &Bytes) -> bool {
    later.iter().any(|(addr, (number, _))| earlier.get(addr).is_some_and(|(before, _)| before < number))
}

/// Bytes of the range in which an image is not as expected, with what was found there.
fn differing_from(reference: &Pages, range: DataRange, image: &Pages) -> Vec<(PhysAddr, u8)> {
    let mut pages = BTreeSet::new();
    for (addr, _) in reference.touched().chain(image.touched()) {
        pages.insert(addr);
    }
    let mut differing = Vec::new();
    let (mut expected, mut found) = ([0u8; PAGE_BYTES as usize], [0u8; PAGE_BYTES as usize]);
    for page in pages {
        if page.0 + PAGE_BYTES <= range.base.0 || page.0 >= range.base.0 + range.size_bytes {
            continue;
        }
        if reference.shares_page(image, page) {
            continue;
        }
        reference.read(page, &mut expected);
        image.read(page, &mut found);
        if expected == found {
            continue;
        }
        for offset in 0..PAGE_BYTES as usize {
            let addr = page.plus(offset as u64);
            if expected[offset] != found[offset] && range.contains(addr) {
                differing.push((addr, found[offset]));
            }
        }
    }
    differing
}

impl ByteOracle {
    /// An oracle that checks a promise by epochs: recovery leads exactly to the end of an epoch, and an epoch may not be
    /// lost once `further` later ones have ended.
    pub fn of_epochs(initial: Pages, further: u32) -> Self {
        let ends = VecDeque::from([initial.clone()]);
        let epochs = Some(Epochs { further: further as usize, ends, ended: 0 });
        ByteOracle { epochs, ..ByteOracle::new(initial) }
    }

    /// The same oracle for a program that first recovers by itself, to the contents that the oracle starts with. Recovery may
    /// replay older values and be cut, so that until the first transaction begins no store is promised.
    pub fn recovering(self) -> Self {
        ByteOracle { is_recovering: true, ..self }
    }

    /// An oracle over persistent memory that starts as `initial`.
    pub fn new(initial: Pages) -> Self {
        ByteOracle {
            epochs: None,
            range: None,
            keeps: true,
            settled: initial,
            loose: Loose::default(),
            cleaned: BTreeMap::new(),
            open: BTreeMap::new(),
            committing: BTreeMap::new(),
            stores: 0,
            has_stores_in_range: false,
            is_recovering: false,
            acknowledged: 0,
        }
    }

    /// This oracle for a program that declares no range: it keeps nothing and finds everything right.
    pub fn of_nothing_declared(self) -> Self {
        ByteOracle { keeps: false, ..self }
    }

    /// Transactions acknowledged so far.
    pub fn acknowledged_count(&self) -> u64 {
        self.acknowledged
    }

    /// The number of the last store so far.
    pub fn last_store(&self) -> u64 {
        self.stores
    }

    /// Stores outside of transactions to these bytes are durable, the one with the number `last` and those before it: a
    /// domain keeps them, or a fence has waited for them. False if all of them were durable before.
    pub fn made_durable(&mut self, addr: PhysAddr, len: u64, last: u64) -> bool {
        if self.is_recovering {
            return false;
        }
        let mut durable: Vec<(PhysAddr, Number)> = Vec::new();
        self.loose.change(addr..addr.plus(len), |addr, values| {
            let newest = values.iter().rposition(|(number, _)| *number <= last);
            let Some(floor) = newest.filter(|floor| *floor > 0) else { return };
            values.drain(..floor);
            durable.push((addr, values[0].0));
        });
        for &(addr, number) in &durable {
            self.supersede(addr, number);
        }
        self.overwrite_open(addr, len, &durable);
        !durable.is_empty()
    }

    /// Of these bytes, the stores with these numbers are durable: what open transactions stored there earlier is overwritten.
    fn overwrite_open(&mut self, addr: PhysAddr, len: u64, durable: &[(PhysAddr, Number)]) {
        if durable.is_empty() {
            return;
        }
        for OpenTx { writes, overwritten } in self.open.values_mut() {
            let near = |write: &Write| write.addr < addr.plus(len) && addr < write.addr.plus(write.len.into());
            for (earlier, write) in writes.iter().filter(|(_, write)| near(write)) {
                let concerned = bytes_of(write).filter_map(|(byte, _)| durable.iter().find(|(addr, _)| *addr == byte));
                overwritten.extend(concerned.filter(|(_, number)| earlier < number).copied());
            }
        }
    }

    /// A byte has been settled by this store: transactions inside commit that wrote it earlier do not bring it any more.
    fn supersede(&mut self, addr: PhysAddr, number: Number) {
        for bytes in self.committing.values_mut() {
            if bytes.get(&addr).is_some_and(|(earlier, _)| *earlier < number) {
                Arc::make_mut(bytes).remove(&addr);
            }
        }
    }

    /// A transaction that is inside commit here has made this store later, with this number: what it brings, if it is
    /// carried through.
    pub fn allow_store_inside_commit(&mut self, tx: TxId, number: u64, write: &Write) {
        if let Some(bytes) = self.committing.get_mut(&tx) {
            Arc::make_mut(bytes).extend(bytes_of(write).map(|(addr, byte)| (addr, (number, byte))));
        }
    }

    /// Whether some transaction is inside commit both here and in `later`.
    pub fn awaits(&self, later: &ByteOracle) -> bool {
        self.committing.keys().any(|tx| later.committing.contains_key(tx))
    }

    /// Whether there is anything to compare: data are declared, and the program has stored some.
    pub fn compares(&self) -> bool {
        self.has_stores_in_range
    }

    /// Judges a recovered image.
    pub fn judge(&self, image: &Pages) -> Verdict {
        let Some(range) = self.range else { return Verdict::Right };
        if let Some(epochs) = &self.epochs {
            return self.judge_epochs(epochs, range, image);
        }
        let differing = self.differing(range, image);
        if differing.is_empty() {
            return Verdict::Right;
        }
        let mut unexplained: BTreeSet<PhysAddr> = differing.iter().map(|(addr, _)| *addr).collect();
        for group in self.groups() {
            if group.len() > COMMITTING_MAX {
                return Verdict::Wrong(format!(
                    "{} transactions that share bytes are inside commit at once, too many to try",
                    group.len()
                ));
            }
            let tried = |subset: &u32| self.is_closed(&group, *subset) && self.shows(&group, *subset, range, image);
            if !(0..1u32 << group.len()).any(|subset| tried(&subset)) {
                return Verdict::Wrong(self.explain(range, &differing, image));
            }
            group.iter().flat_map(|bytes| bytes.keys()).for_each(|addr| {
                unexplained.remove(addr);
            });
        }
        if unexplained.is_empty() { Verdict::Right } else { Verdict::Wrong(self.explain(range, &differing, image)) }
    }

    /// The end of an epoch that an image is most like, by its age in epochs, with the bytes that differ.
    fn nearest_end(epochs: &Epochs, range: DataRange, image: &Pages) -> (usize, Vec<(PhysAddr, u8)>) {
        let ends = epochs.ends.iter().rev().enumerate();
        let differing = ends.map(|(age, end)| (age, differing_from(end, range, image)));
        differing.min_by_key(|(_, bytes)| bytes.len()).expect("there is always a beginning")
    }

    fn judge_epochs(&self, epochs: &Epochs, range: DataRange, image: &Pages) -> Verdict {
        let (age, differing) = Self::nearest_end(epochs, range, image);
        let Some(&(addr, found)) = differing.first() else { return Verdict::Right };
        let expected = byte_of(&epochs.ends[epochs.ends.len() - 1 - age], addr);
        Verdict::Wrong(format!(
            "the state is not that at the end of any of the last {} of {} epochs; {} bytes differ from the end {age} epochs \
             ago, first at data offset {:#x}: expected {expected:#04x}, found {found:#04x}",
            epochs.ends.len(),
            epochs.ended,
            differing.len(),
            addr.0 - range.base.0
        ))
    }

    /// The lines with bytes that keep an image from being right, in their order; none if it is right.
    pub(crate) fn lines_in_question(&self, image: &Pages) -> Vec<LineAddr> {
        let Some(range) = self.range else { return Vec::new() };
        if let Some(epochs) = &self.epochs {
            let (_, differing) = Self::nearest_end(epochs, range, image);
            let lines: BTreeSet<LineAddr> = differing.iter().map(|(addr, _)| addr.line()).collect();
            return lines.into_iter().collect();
        }
        let mut bytes: BTreeSet<PhysAddr> = self.differing(range, image).iter().map(|(addr, _)| *addr).collect();
        for group in self.groups() {
            let tried = |subset: &u32| self.is_closed(&group, *subset) && self.shows(&group, *subset, range, image);
            let written = || group.iter().flat_map(|bytes| bytes.keys()).filter(|addr| range.contains(**addr));
            if group.len() <= COMMITTING_MAX && (0..1u32 << group.len()).any(|subset| tried(&subset)) {
                bytes.retain(|addr| !group.iter().any(|bytes| bytes.contains_key(addr)));
            } else {
                bytes.extend(written());
            }
        }
        let lines: BTreeSet<LineAddr> = bytes.iter().map(|addr| addr.line()).collect();
        lines.into_iter().collect()
    }

    /// The allowed contents of a line after recovery: without the transactions that are inside commit, and with all of
    /// them.
    pub(crate) fn allowed(&self, line: LineAddr) -> Vec<Line> {
        if let Some(epochs) = &self.epochs {
            let mut lines: Vec<Line> = epochs.ends.iter().map(|end| end.line(line)).collect();
            lines.dedup();
            return lines;
        }
        let without = self.settled.line(line);
        let (mut with, mut newest) = (without, [0; size_of::<Line>()]);
        for bytes in self.committing.values() {
            for (addr, &(number, byte)) in bytes.range(line.base()..line.base().plus(newest.len() as u64)) {
                if number > newest[addr.offset()] {
                    (newest[addr.offset()], with[addr.offset()]) = (number, byte);
                }
            }
        }
        if with == without { vec![without] } else { vec![without, with] }
    }

    /// The range that the program has declared.
    pub(crate) fn data(&self) -> Option<DataRange> {
        self.range
    }

    /// Transactions inside commit, those together that have written the same bytes: each group is judged by itself.
    fn groups(&self) -> Vec<Vec<&Bytes>> {
        let mut groups: Vec<Vec<&Bytes>> = Vec::new();
        for bytes in self.committing.values().filter(|bytes| !bytes.is_empty()) {
            let bytes: &Bytes = bytes;
            let (joined, apart): (Vec<_>, Vec<_>) =
                groups.into_iter().partition(|group| group.iter().any(|other| share_bytes(bytes, other)));
            groups = apart;
            let mut group: Vec<&Bytes> = joined.into_iter().flatten().collect();
            group.push(bytes);
            groups.push(group);
        }
        groups
    }

    /// Whether a subset contains every transaction whose bytes one of it has overwritten.
    fn is_closed(&self, group: &[&Bytes], subset: u32) -> bool {
        let inside = |index: usize| subset >> index & 1 == 1;
        (0..group.len())
            .filter(|&later| inside(later))
            .all(|later| (0..group.len()).all(|earlier| inside(earlier) || !overwrites(group[later], group[earlier])))
    }

    /// Whether the image shows this subset of a group and nothing of the others.
    fn shows(&self, group: &[&Bytes], subset: u32, range: DataRange, image: &Pages) -> bool {
        let mut newest: BTreeMap<PhysAddr, Option<Stored>> = BTreeMap::new();
        for (index, bytes) in group.iter().enumerate() {
            for (&addr, &stored) in *bytes {
                let shown = (subset >> index & 1 == 1).then_some(stored);
                let place = newest.entry(addr).or_default();
                *place = (*place).max(shown);
            }
        }
        newest.into_iter().filter(|(addr, _)| range.contains(*addr)).all(|(addr, stored)| {
            let found = byte_of(image, addr);
            let loose = self.loose.values(addr);
            match stored {
                Some((number, value)) => found == value || loose.iter().any(|&(n, value)| n > number && value == found),
                None if loose.is_empty() => found == byte_of(&self.settled, addr),
                None => loose.iter().any(|(_, value)| *value == found),
            }
        })
    }

    /// Bytes of the range whose value is not the settled one, with what was found there.
    fn differing(&self, range: DataRange, image: &Pages) -> Vec<(PhysAddr, u8)> {
        let mut differing = differing_from(&self.settled, range, image);
        differing.retain(|(addr, found)| !self.loose.values(*addr).iter().any(|(_, value)| value == found));
        differing
    }

    fn explain(&self, range: DataRange, differing: &[(PhysAddr, u8)], image: &Pages) -> String {
        let (addr, found) = differing[0];
        let expected = byte_of(&self.settled, addr);
        let open = self.open.iter().find(|(_, open)| {
            open.writes.iter().flat_map(|(_, write)| bytes_of(write)).any(|byte| byte == (addr, found))
        });
        let inside = self.committing.iter().find(|(_, bytes)| bytes.get(&addr).is_some_and(|(_, b)| *b == found));
        let origin = match (open, inside) {
            (Some((tx, _)), _) => format!(", a store of transaction {} that never committed", tx.0),
            (None, Some((tx, bytes))) => {
                let seen = |addr: &PhysAddr, byte: u8| byte_of(image, *addr) == byte || !range.contains(*addr);
                let shown = bytes.iter().filter(|(addr, (_, byte))| seen(addr, *byte)).count();
                format!(", a part of transaction {} that is inside commit ({shown} of {} bytes)", tx.0, bytes.len())
            }
            (None, None) => String::new(),
        };
        format!(
            "{} bytes differ after {} acknowledged transactions, first at data offset {:#x}: expected {expected:#04x}, \
             found {found:#04x}{origin}",
            differing.len(),
            self.acknowledged,
            addr.0 - range.base.0
        )
    }

    /// A transaction is durable with these bytes. Newer stores outside of transactions may be so or not.
    fn settle(&mut self, bytes: &Bytes) {
        for (&addr, &(number, byte)) in bytes {
            let mut newer = false;
            self.loose.change(addr..addr.plus(1), |_, values| {
                values.retain(|(other, _)| *other > number);
                values.insert(0, (number, byte));
                newer = values.len() > 1;
            });
            if !newer {
                self.settled.write(addr, &[byte]);
            }
            self.supersede(addr, number);
        }
    }
}

impl Journal for ByteOracle {
    fn data_range(&mut self, range: DataRange) {
        self.range = self.keeps.then_some(range);
    }

    fn begin(&mut self, tx: TxId) {
        self.is_recovering = false;
        self.open.insert(tx, OpenTx::default());
    }

    fn store(&mut self, tx: Option<TxId>, write: Write) {
        self.stores += 1;
        self.has_stores_in_range |= self.range.is_some_and(|range| range.contains(write.addr));
        if !self.keeps {
            return;
        }
        let number = self.stores;
        match tx {
            Some(tx) => {
                if let Some(bytes) = self.committing.get_mut(&tx) {
                    Arc::make_mut(bytes).extend(bytes_of(&write).map(|(addr, byte)| (addr, (number, byte))));
                } else {
                    let open = self.open.get_mut(&tx).expect("stores of a transaction follow its begin");
                    open.writes.push((number, write));
                }
            }
            None => {
                // Between a store and its repetition only stores of transactions make a difference.
                let is_repetition_left_out = self.open.is_empty() && self.committing.is_empty();
                self.loose.store(&write, number, &self.settled, is_repetition_left_out);
                self.settled.write(write.addr, &write.data.to_le_bytes()[..write.len as usize]);
            }
        }
    }

    fn store_is_durable(&mut self, tx: Option<TxId>, write: Write) {
        if tx.is_none() {
            self.made_durable(write.addr, write.len.into(), self.stores);
        }
    }

    fn cleaned(&mut self, core: CoreId, line: LineAddr) {
        let bytes = line.base()..line.base().plus(LINE_BYTES);
        if self.loose.any_in(bytes) {
            self.cleaned.entry(core).or_default().insert(line, self.stores);
        }
    }

    fn fenced(&mut self, core: CoreId) {
        for (line, last) in self.cleaned.remove(&core).into_iter().flatten() {
            self.made_durable(line.base(), LINE_BYTES, last);
        }
    }

    fn committing(&mut self, tx: TxId) {
        if let Some(OpenTx { writes, overwritten }) = self.open.remove(&tx) {
            let mut bytes = Bytes::new();
            for (number, write) in &writes {
                bytes.extend(bytes_of(write).map(|(addr, byte)| (addr, (*number, byte))));
            }
            bytes.retain(|addr, (number, _)| overwritten.get(addr).is_none_or(|newer| *newer < *number));
            self.committing.insert(tx, Arc::new(bytes));
        }
    }

    fn acknowledged(&mut self, tx: TxId) {
        let bytes = self.committing.remove(&tx).expect("an acknowledged transaction was committing");
        self.settle(&bytes);
        self.acknowledged += 1;
    }

    fn epoch_ends(&mut self) {
        if !self.keeps {
            return;
        }
        let settled = self.settled.clone();
        if let Some(epochs) = &mut self.epochs {
            epochs.ended += 1;
            epochs.ends.push_back(settled);
            if epochs.ends.len() > epochs.further + 1 {
                epochs.ends.pop_front();
            }
        }
    }

    fn aborted(&mut self, tx: TxId) {
        self.open.remove(&tx);
        self.committing.remove(&tx);
    }
}
