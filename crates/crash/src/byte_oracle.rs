//! The byte oracle: after recovery, persistent memory equals the state after all acknowledged transactions, plus any
//! dependency-closed subset of those still inside commit.
//!
//! It sees the journal of the program and the bytes of an image, and nothing of the machine or the design.

use durasim_types::{DataRange, Journal, PAGE_BYTES, Pages, PhysAddr, TxId, Write};
use std::collections::{BTreeMap, BTreeSet};

/// What the program asked for so far.
#[derive(Clone, Debug)]
pub struct ByteOracle {
    range: Option<DataRange>,
    /// Persistent memory after all acknowledged transactions and all stores outside of transactions.
    settled: Pages,
    /// Bytes last stored outside of a transaction, with all values they may still have: nothing orders such stores.
    loose: BTreeMap<PhysAddr, BTreeSet<u8>>,
    open: BTreeMap<TxId, Vec<Write>>,
    committing: BTreeMap<TxId, Vec<Write>>,
    acknowledged: u64,
}

/// The judgement of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The image is one of the allowed states.
    Right,
    /// It is not; one sentence says where.
    Wrong(String),
}

/// At most so many transactions may be inside commit at once for every subset to be tried.
const COMMITTING_MAX: usize = 8;

fn bytes_of(write: &Write) -> impl Iterator<Item = (PhysAddr, u8)> + use<> {
    let (addr, len, data) = (write.addr, write.len, write.data.to_le_bytes());
    (0..len).map(move |i| (addr.plus(u64::from(i)), data[i as usize]))
}

impl ByteOracle {
    /// An oracle over persistent memory that starts as `initial`.
    pub fn new(initial: Pages) -> Self {
        ByteOracle {
            range: None,
            settled: initial,
            loose: BTreeMap::new(),
            open: BTreeMap::new(),
            committing: BTreeMap::new(),
            acknowledged: 0,
        }
    }

    /// Transactions acknowledged so far.
    pub fn acknowledged_count(&self) -> u64 {
        self.acknowledged
    }

    fn byte(&self, addr: PhysAddr) -> u8 {
        let mut byte = [0];
        self.settled.read(addr, &mut byte);
        byte[0]
    }

    /// Judges a recovered image.
    pub fn judge(&self, image: &Pages) -> Verdict {
        let Some(range) = self.range else { return Verdict::Right };
        let differing = self.differing(range, image);
        if differing.is_empty() {
            return Verdict::Right;
        }
        let inside: Vec<&Vec<Write>> = self.committing.values().collect();
        if inside.len() > COMMITTING_MAX {
            return Verdict::Wrong(format!("{} transactions are inside commit at once, too many to try", inside.len()));
        }
        for subset in 1u32..1 << inside.len() {
            let mut overlay: BTreeMap<PhysAddr, u8> = BTreeMap::new();
            for (index, writes) in inside.iter().enumerate() {
                if subset >> index & 1 == 1 {
                    overlay.extend(writes.iter().flat_map(bytes_of));
                }
            }
            let explained = differing.iter().all(|(addr, found)| overlay.get(addr) == Some(found));
            let shown = overlay.iter().all(|(&addr, &byte)| {
                let mut found = [0];
                image.read(addr, &mut found);
                found[0] == byte || !range.contains(addr)
            });
            if explained && shown {
                return Verdict::Right;
            }
        }
        Verdict::Wrong(self.explain(range, &differing))
    }

    /// Bytes of the range whose value is not the settled one, with what was found there.
    fn differing(&self, range: DataRange, image: &Pages) -> Vec<(PhysAddr, u8)> {
        let mut pages = BTreeSet::new();
        for (addr, _) in self.settled.touched().chain(image.touched()) {
            pages.insert(addr);
        }
        let mut differing = Vec::new();
        let (mut expected, mut found) = ([0u8; PAGE_BYTES as usize], [0u8; PAGE_BYTES as usize]);
        for page in pages {
            if page.0 + PAGE_BYTES <= range.base.0 || page.0 >= range.base.0 + range.size_bytes {
                continue;
            }
            if self.settled.shares_page(image, page) {
                continue;
            }
            self.settled.read(page, &mut expected);
            image.read(page, &mut found);
            if expected == found {
                continue;
            }
            for offset in 0..PAGE_BYTES as usize {
                let addr = page.plus(offset as u64);
                if expected[offset] != found[offset]
                    && range.contains(addr)
                    && !self.loose.get(&addr).is_some_and(|values| values.contains(&found[offset]))
                {
                    differing.push((addr, found[offset]));
                }
            }
        }
        differing
    }

    fn explain(&self, range: DataRange, differing: &[(PhysAddr, u8)]) -> String {
        let (addr, found) = differing[0];
        let expected = self.byte(addr);
        let holds = |writes: &Vec<Write>| writes.iter().flat_map(bytes_of).any(|byte| byte == (addr, found));
        let origin = self
            .open
            .iter()
            .find(|(_, writes)| holds(writes))
            .map(|(tx, _)| format!(", a store of transaction {} that never committed", tx.0))
            .or_else(|| {
                let inside = self.committing.iter().find(|(_, writes)| holds(writes));
                inside.map(|(tx, _)| format!(", a part of transaction {} that is inside commit", tx.0))
            })
            .unwrap_or_default();
        format!(
            "{} bytes differ after {} acknowledged transactions, first at data offset {:#x}: expected {expected:#04x}, \
             found {found:#04x}{origin}",
            differing.len(),
            self.acknowledged,
            addr.0 - range.base.0
        )
    }

    fn settle(&mut self, writes: &[Write]) {
        for write in writes {
            self.settled.write(write.addr, &write.data.to_le_bytes()[..write.len as usize]);
            for (addr, _) in bytes_of(write) {
                self.loose.remove(&addr);
            }
        }
    }
}

impl Journal for ByteOracle {
    fn data_range(&mut self, range: DataRange) {
        self.range = Some(range);
    }

    fn begin(&mut self, tx: TxId) {
        self.open.insert(tx, Vec::new());
    }

    fn store(&mut self, tx: Option<TxId>, write: Write) {
        match tx {
            Some(tx) => {
                let writes = self.open.get_mut(&tx).or_else(|| self.committing.get_mut(&tx));
                writes.expect("stores of a transaction follow its begin").push(write);
            }
            None => {
                for (addr, byte) in bytes_of(&write) {
                    let old = self.byte(addr);
                    self.loose.entry(addr).or_default().extend([old, byte]);
                }
                self.settled.write(write.addr, &write.data.to_le_bytes()[..write.len as usize]);
            }
        }
    }

    fn committing(&mut self, tx: TxId) {
        if let Some(writes) = self.open.remove(&tx) {
            self.committing.insert(tx, writes);
        }
    }

    fn acknowledged(&mut self, tx: TxId) {
        let writes = self.committing.remove(&tx).expect("an acknowledged transaction was committing");
        self.settle(&writes);
        self.acknowledged += 1;
    }

    fn aborted(&mut self, tx: TxId) {
        self.open.remove(&tx);
        self.committing.remove(&tx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: PhysAddr = PhysAddr(0x1000);

    fn oracle() -> ByteOracle {
        let mut oracle = ByteOracle::new(Pages::new(BASE, 1 << 16));
        oracle.data_range(DataRange { base: BASE, size_bytes: 0x2000 });
        oracle
    }

    fn word(offset: u64, data: u64) -> Write {
        Write { addr: BASE.plus(offset), len: 8, data }
    }

    fn image(words: &[(u64, u64)]) -> Pages {
        let mut pages = Pages::new(BASE, 1 << 16);
        words.iter().for_each(|&(offset, data)| pages.write(BASE.plus(offset), &data.to_le_bytes()));
        pages
    }

    fn run(oracle: &mut ByteOracle, tx: u64, writes: &[(u64, u64)]) {
        oracle.begin(TxId(tx));
        writes.iter().for_each(|&(offset, data)| oracle.store(Some(TxId(tx)), word(offset, data)));
    }

    fn is_right(oracle: &ByteOracle, words: &[(u64, u64)]) -> bool {
        oracle.judge(&image(words)) == Verdict::Right
    }

    #[test]
    fn acknowledged_means_kept_and_open_means_unseen() {
        let mut o = oracle();
        run(&mut o, 1, &[(0, 7), (64, 8)]);
        assert!(is_right(&o, &[]) && !is_right(&o, &[(0, 7), (64, 8)]) && !is_right(&o, &[(0, 7)]));
        o.committing(TxId(1));
        assert!(is_right(&o, &[]) && is_right(&o, &[(0, 7), (64, 8)]) && !is_right(&o, &[(0, 7)]));
        o.acknowledged(TxId(1));
        assert!(!is_right(&o, &[]) && is_right(&o, &[(0, 7), (64, 8)]) && !is_right(&o, &[(64, 8)]));
    }

    #[test]
    fn an_aborted_transaction_is_unseen_and_bytes_outside_the_range_do_not_count() {
        let mut o = oracle();
        run(&mut o, 1, &[(0, 7)]);
        o.aborted(TxId(1));
        assert!(!is_right(&o, &[(0, 7)]) && is_right(&o, &[(0x3000, 9)]));
    }

    #[test]
    fn stores_outside_of_transactions_may_be_old_or_new() {
        let mut o = oracle();
        o.store(None, word(8, 1));
        o.store(None, word(8, 2));
        assert!(is_right(&o, &[]) && is_right(&o, &[(8, 1)]) && is_right(&o, &[(8, 2)]) && !is_right(&o, &[(8, 3)]));
        run(&mut o, 1, &[(8, 4)]);
        o.committing(TxId(1));
        o.acknowledged(TxId(1));
        assert!(is_right(&o, &[(8, 4)]) && !is_right(&o, &[(8, 2)]));
    }

    #[test]
    fn any_subset_inside_commit_is_allowed() {
        let mut o = oracle();
        for tx in 1..=2 {
            run(&mut o, tx, &[(64 * tx, tx)]);
            o.committing(TxId(tx));
        }
        for words in [&[][..], &[(64, 1)], &[(128, 2)], &[(64, 1), (128, 2)]] {
            assert!(is_right(&o, words), "{words:?}");
        }
    }

    #[test]
    fn the_message_names_the_place_and_the_culprit() {
        let mut o = oracle();
        run(&mut o, 5, &[(0x40, 0xab)]);
        let Verdict::Wrong(message) = o.judge(&image(&[(0x40, 0xab)])) else { panic!("an open store was seen") };
        assert!(message.contains("0x40") && message.contains("0xab") && message.contains("transaction 5"), "{message}");
    }
}
