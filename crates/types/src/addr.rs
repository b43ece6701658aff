//! Addresses and cache lines.

use serde::{Deserialize, Serialize};

/// Bytes of a cache line; every machine of the five papers uses 64.
pub const LINE_BYTES: u64 = 64;
/// Bytes of a page of the guest.
pub const PAGE_BYTES: u64 = 4096;

/// The data of one cache line.
pub type Line = [u8; LINE_BYTES as usize];

/// An address as the guest program sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct VirtAddr(pub u64);

/// An address as caches and controllers see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PhysAddr(pub u64);

/// A physical address divided by [`LINE_BYTES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LineAddr(pub u64);

impl PhysAddr {
    /// The line that holds this byte.
    #[inline]
    pub const fn line(self) -> LineAddr {
        LineAddr(self.0 / LINE_BYTES)
    }

    /// The position of this byte in its line.
    #[inline]
    pub const fn offset(self) -> usize {
        (self.0 % LINE_BYTES) as usize
    }

    /// The address `bytes` further on.
    #[inline]
    pub const fn plus(self, bytes: u64) -> PhysAddr {
        PhysAddr(self.0 + bytes)
    }
}

impl LineAddr {
    /// The address of the first byte of the line.
    #[inline]
    pub const fn base(self) -> PhysAddr {
        PhysAddr(self.0 * LINE_BYTES)
    }
}

macro_rules! hex_display {
    ($t:ident, $($scale:tt)*) => {
        impl std::fmt::Display for $t {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{:#x}", self.0 $($scale)*)
            }
        }
    };
}
hex_display!(VirtAddr,);
hex_display!(PhysAddr,);
hex_display!(LineAddr, *LINE_BYTES);
