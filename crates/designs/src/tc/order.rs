//! The order of writes to a line that has entries in several transaction caches [D:tc-order].
//!
//! Section 3: "the TC will also ensure that different write requests of conflicted addresses are issued to the NVRAM in
//! program order". One FIFO does that by itself; between the private FIFOs of several cores it has to be made so. A
//! store looks at the other transaction caches, in no time, and waits until their committed entries of the line are
//! acknowledged. Two of them therefore never hold committed entries of the same
//! bytes: neither draining nor recovery can write a line backwards, whatever order they take the cores in.
//!
//! Active entries block no transaction, or two transactions could deadlock. They can be of the same
//! line only by false sharing, that is for other bytes, unless the program lets two open transactions write the same
//! bytes. Then the one that commits last wins at home, and it has to wait for the other.

use super::{Order, State};
use durasim_design::{Store, Wait};
use durasim_types::{Cycle, TxId};

impl State {
    /// What a store has to wait for because of other transaction caches than `core`'s: committed entries of its line, or
    /// those of them that have some of its bytes.
    pub(super) fn committed_elsewhere(&self, core: usize, store: &Store<'_>, now: Cycle) -> Option<Wait> {
        let mask = match self.spec.order {
            Order::Line => u64::MAX,
            Order::Bytes => ((1u64 << store.len) - 1) << store.addr.offset(),
        };
        let others = self.caches.iter().enumerate().filter(|(other, _)| *other != core);
        others.filter_map(|(_, cache)| cache.draining(store.line(), mask, now)).next()
    }

    /// What a commit has to wait for: a committed entry elsewhere that has bytes of the transaction.
    pub(super) fn same_bytes_elsewhere(&self, core: usize, tx: TxId, now: Cycle) -> Option<Wait> {
        let own = |line, mask| self.caches[core].occupied().any(|e| e.tx == tx && e.line == line && e.mask & mask != 0);
        let others = self.caches.iter().enumerate().filter(|(other, _)| *other != core);
        let mut committed = others.flat_map(|(_, cache)| cache.occupied()).filter(|e| e.state.drains());
        committed.find(|e| own(e.line, e.mask)).and_then(|e| e.state.wait(now))
    }
}
