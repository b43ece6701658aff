//! The undo data of an abort under designs whose caches keep no older version: the bytes that each store overwrote.

use durasim_contract::{Action, Actions, Payload, Store, Token};
use durasim_types::PhysAddr;
use serde::{Deserialize, Serialize};

/// A store that was made, for the case that its transaction aborts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Undo {
    addr: PhysAddr,
    len: u8,
    old: u64,
}

impl Undo {
    /// The bytes that a store overwrites.
    pub fn of(store: &Store<'_>) -> Self {
        let mut old = [0; 8];
        let bytes = &store.before[store.addr.offset()..][..usize::from(store.len)];
        old[..bytes.len()].copy_from_slice(bytes);
        Undo { addr: store.addr, len: store.len, old: u64::from_le_bytes(old) }
    }

    /// The line that was stored to.
    pub fn line(&self) -> durasim_types::LineAddr {
        self.addr.line()
    }

    /// Brings the old bytes back to where the newest data is.
    pub fn restore(self, token: Token, out: &mut Actions) {
        let payload = Payload::new(&self.old.to_le_bytes()[..usize::from(self.len)]);
        out.push(Action::Restore { addr: self.addr, payload, token: Some(token) });
    }
}
