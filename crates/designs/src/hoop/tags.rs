//! The persistent bit of a line. The machine's tag says in addition which open transactions have written the line, so that
//! aborts reach it.

use durasim_contract::LineTag;
use durasim_types::TxId;
use serde::{Deserialize, Serialize};

/// The tag of a persistent line whose words are all committed.
pub(super) const COMMITTED: LineTag = LineTag(u64::MAX);
const SHARED: u64 = 1 << 63;

/// The meaning of tags: the number of a transaction names that transaction; other tags name several transactions that
/// have written a line at once. The abort of any of them discards such a line, and the next miss assembles it anew.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tags {
    /// Transactions by tag; none whose transactions have all ended.
    shared: Vec<(u64, Vec<TxId>)>,
    made: u64,
    /// Tags that the last aborts have discarded, with their transactions: versions of them may be moving from one
    /// cache to another.
    dead: Vec<(u64, Vec<TxId>)>,
}

impl Tags {
    /// The tag of a persistent line with these open writers, in order.
    pub fn of(&mut self, writers: &[TxId]) -> LineTag {
        match writers {
            [] => COMMITTED,
            [tx] => LineTag(tx.0),
            _ => {
                if let Some((tag, _)) = self.shared.iter().find(|(_, of)| of == writers) {
                    return LineTag(*tag);
                }
                self.made += 1;
                let tag = SHARED | self.made;
                self.shared.push((tag, writers.to_vec()));
                LineTag(tag)
            }
        }
    }

    /// Whether it is of this transaction, which is open.
    pub fn belongs_to(&self, tag: LineTag, tx: TxId) -> bool {
        tag.0 == tx.0 || self.shared.iter().chain(&self.dead).any(|(shared, of)| *shared == tag.0 && of.contains(&tx))
    }

    /// Whether no abort has discarded it.
    pub fn is_live(&self, tag: LineTag) -> bool {
        !self.dead.iter().any(|(dead, _)| *dead == tag.0)
    }

    /// A transaction has ended; these are still open.
    pub fn end(&mut self, is_open: impl Fn(TxId) -> bool) {
        self.shared.retain(|(_, of)| of.iter().any(|tx| is_open(*tx)));
    }

    /// The lines of a transaction are discarded.
    pub fn abort(&mut self, tx: TxId) {
        let (dead, shared) = std::mem::take(&mut self.shared).into_iter().partition(|(_, of)| of.contains(&tx));
        self.shared = shared;
        self.dead.push((tx.0, vec![tx]));
        self.dead.extend::<Vec<_>>(dead);
    }

    /// A request of a core begins: nothing is moving between caches, so no version has a dead tag.
    pub fn forget_dead(&mut self) {
        self.dead.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abort_kills_the_tags_of_its_lines_and_no_others() {
        let mut tags = Tags::default();
        let (one, two) = (tags.of(&[TxId(1)]), tags.of(&[TxId(2), TxId(3)]));
        let three = tags.of(&[TxId(1), TxId(3)]);
        assert_eq!(tags.of(&[TxId(2), TxId(3)]), two);
        assert!(tags.belongs_to(one, TxId(1)) && !tags.belongs_to(two, TxId(1)) && tags.belongs_to(three, TxId(1)));
        tags.abort(TxId(1));
        assert!(tags.belongs_to(three, TxId(1)), "until the caches are rid of it");
        assert!(!tags.is_live(one) && tags.is_live(two) && !tags.is_live(three) && tags.is_live(COMMITTED));
        tags.end(|tx| tx == TxId(3));
        assert!(tags.belongs_to(two, TxId(3)));
        tags.end(|_| false);
        assert!(!tags.belongs_to(two, TxId(3)) && tags.is_live(two));
        tags.forget_dead();
        assert!(tags.is_live(one));
    }
}
