//! Cache arrays that carry data, miss status holding registers, and the directory that knows which cores hold a line.
//! An array knows nothing of other levels, a directory nothing of arrays; the machine moves lines between them.

mod array;
mod column;
mod directory;
mod mshr;
mod occupancy;
mod page;
mod replacement;

pub use array::{CacheArray, CacheStats, Slot, Version};
pub use directory::{CORES_MAX, Cores, Directory, Entry};
pub use mshr::Mshrs;
pub use page::Page;
pub use replacement::Replacement;
