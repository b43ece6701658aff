//! The situations that bodies have reached. A body that never gets after the first refusal says little, so every target
//! names what a run of it has to reach.

use std::collections::BTreeSet;
use std::sync::Mutex;

static REACHED: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());

/// Notes that an input led to this.
pub(crate) fn reach(mark: &'static str) {
    REACHED.lock().expect("no thread panics while it holds the marks").insert(mark);
}

/// Whether any input of this process has led to that.
#[must_use]
pub fn reached(mark: &str) -> bool {
    REACHED.lock().expect("no thread panics while it holds the marks").contains(mark)
}
