//! The instruction at the head of the reorder buffer while nothing commits.

/// Kind of the instruction at the head of the reorder buffer that waits for the memory system or for a design.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StallPlace {
    /// A load, or a load into a log register.
    Load,
    /// A store, or a cache-block operation, that waits for its translation.
    Store,
    /// An instruction that is not dispatched, because the store queue is full.
    StoreQueue,
    /// A fence, or a begin that waits for the store buffer.
    Fence,
    /// An atomic operation.
    Atomic,
    /// The commit of a transaction.
    Commit,
}

impl StallPlace {
    /// All of them, in the order of results.
    pub const ALL: [StallPlace; 6] = [
        StallPlace::Load,
        StallPlace::Store,
        StallPlace::StoreQueue,
        StallPlace::Fence,
        StallPlace::Atomic,
        StallPlace::Commit,
    ];

    /// The name in results.
    pub const fn name(self) -> &'static str {
        match self {
            StallPlace::Load => "load",
            StallPlace::Store => "store",
            StallPlace::StoreQueue => "store_queue",
            StallPlace::Fence => "fence",
            StallPlace::Atomic => "atomic",
            StallPlace::Commit => "commit",
        }
    }
}
