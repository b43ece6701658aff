//! Steps of a sequence that the machine calls back for, so that each is a crash point of its own. The lower bits are the
//! number of a transaction, or of a core.

/// The lines of a transaction whose old versions have a place are copied.
pub(super) const COPY: u64 = 1 << 61;
/// The first half of the lines of a commit becomes committed.
pub(super) const FLIP_FIRST_HALF: u64 = 2 << 61;
/// The second half does.
pub(super) const FLIP_SECOND_HALF: u64 = 3 << 61;
/// The committing register of a core is cleared.
pub(super) const RELEASE: u64 = 4 << 61;
/// The bits that distinguish the steps.
pub(super) const STEP: u64 = 7 << 61;
