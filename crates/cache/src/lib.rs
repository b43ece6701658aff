//! Cache arrays that carry data, and miss status holding registers. An array knows nothing of other levels; the
//! machine moves lines between them.

mod array;
mod mshr;

pub use array::{CacheArray, CacheStats, Slot, Version};
pub use mshr::Mshrs;
