//! Values that forks share until one of them writes.
//!
//! A page that is not shared is owned outright, so that writing it costs a branch and no atomic count.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::mem;
use std::sync::Arc;

/// Values of fixed number. A clone of an owned page is a copy, one of a shared page is a pointer; [`Page::fork`] makes it
/// shared first.
#[derive(Clone, Debug)]
pub struct Page<T>(Values<T>);

#[derive(Clone, Debug)]
enum Values<T> {
    Owned(Box<[T]>),
    Shared(Arc<Box<[T]>>),
}

impl<T: Copy> Page<T> {
    /// A page of equal values that is shared from the start: all its clones are one until they are written.
    pub fn blank(value: T, count: usize) -> Self {
        Page(Values::Shared(Arc::new(vec![value; count].into())))
    }

    /// The values.
    #[inline]
    pub fn read(&self) -> &[T] {
        match &self.0 {
            Values::Owned(values) => values,
            Values::Shared(values) => values,
        }
    }

    /// The values, to be changed.
    #[inline]
    pub fn write(&mut self) -> &mut [T] {
        if let Values::Shared(_) = self.0 {
            self.own();
        }
        match &mut self.0 {
            Values::Owned(values) => values,
            Values::Shared(_) => unreachable!("the page has just been made our own"),
        }
    }

    #[cold]
    fn own(&mut self) {
        if let Values::Shared(values) = &mut self.0 {
            // The last of those that shared the page takes it as it is.
            let values = match Arc::get_mut(values) {
                Some(ours) => mem::take(ours),
                None => Box::clone(values),
            };
            self.0 = Values::Owned(values);
        }
    }

    /// Makes the page one that clones share.
    pub fn share(&mut self) {
        if let Values::Owned(values) = &mut self.0 {
            self.0 = Values::Shared(Arc::new(mem::take(values)));
        }
    }

    /// A second page with the same values that goes its own way.
    pub fn fork(&mut self) -> Self {
        self.share();
        self.clone()
    }

    /// Whether the next write may have to copy the values.
    pub fn is_shared(&self) -> bool {
        matches!(self.0, Values::Shared(_))
    }
}

impl<T> From<Vec<T>> for Page<T> {
    fn from(values: Vec<T>) -> Self {
        Page(Values::Owned(values.into()))
    }
}

impl<T: Copy + Serialize> Serialize for Page<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.read().serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Page<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Page::from)
    }
}
