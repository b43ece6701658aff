//! Signals as the process as a whole has them. What belongs to one thread stands with the thread.

/// Signals are numbered from 1 to this.
pub(crate) const SIGNALS: u64 = 64;

/// What the program asked to happen on each signal, and which wait for a thread that lets them through.
#[derive(Clone, Debug)]
pub(crate) struct Signals {
    /// Handler, flags and mask of `struct sigaction`.
    pub(crate) actions: [[u64; 3]; SIGNALS as usize],
    pub(crate) pending: u64,
}

impl Default for Signals {
    fn default() -> Self {
        Signals { actions: [[0; 3]; SIGNALS as usize], pending: 0 }
    }
}
