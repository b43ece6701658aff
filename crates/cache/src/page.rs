//! Values that forks share until one of them writes.
//!
//! A page that is not shared is owned outright, so that writing it costs a branch and no atomic count.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::mem;
use std::sync::Arc;

/// Values of fixed number, `[T]` or `[T; N]`. A clone of an owned page is a copy, one of a shared page is a pointer;
/// [`Page::fork`] makes it shared first.
#[derive(Debug)]
pub struct Page<S: ?Sized>(Values<S>);

#[derive(Debug)]
enum Values<S: ?Sized> {
    Owned(Box<S>),
    Shared(Arc<Box<S>>),
    /// Only while the values go from the one to the other.
    OnTheWay,
}

impl<S: ?Sized> Page<S>
where
    Box<S>: Clone,
{
    /// The values.
    #[inline]
    pub fn read(&self) -> &S {
        match &self.0 {
            Values::Owned(values) => values,
            Values::Shared(values) => values,
            Values::OnTheWay => unreachable!("a page has values"),
        }
    }

    /// The values, to be changed.
    #[inline]
    pub fn write(&mut self) -> &mut S {
        if self.is_shared() {
            self.own();
        }
        match &mut self.0 {
            Values::Owned(values) => values,
            Values::Shared(_) | Values::OnTheWay => unreachable!("the page has just been made our own"),
        }
    }

    #[cold]
    #[inline(never)]
    fn own(&mut self) {
        if let Values::Shared(values) = mem::replace(&mut self.0, Values::OnTheWay) {
            // The last of those that shared the page takes it as it is.
            self.0 = Values::Owned(Arc::unwrap_or_clone(values));
        }
    }

    /// Makes the page one that clones share.
    pub fn share(&mut self) {
        self.0 = match mem::replace(&mut self.0, Values::OnTheWay) {
            Values::Owned(values) => Values::Shared(Arc::new(values)),
            shared => shared,
        };
    }

    /// A second page with the same values that is independent.
    pub fn fork(&mut self) -> Self {
        self.share();
        self.clone()
    }

    /// Whether the next write may have to copy the values.
    #[inline]
    pub fn is_shared(&self) -> bool {
        !matches!(self.0, Values::Owned(_))
    }
}

impl<S: ?Sized> Clone for Page<S>
where
    Box<S>: Clone,
{
    fn clone(&self) -> Self {
        Page(match &self.0 {
            Values::Owned(values) => Values::Owned(values.clone()),
            Values::Shared(values) => Values::Shared(values.clone()),
            Values::OnTheWay => Values::OnTheWay,
        })
    }
}

impl<T: Copy> Page<[T]> {
    /// A page of equal values that is shared from the start: all its clones are one until they are written.
    pub fn blank(value: T, count: usize) -> Self {
        Page(Values::Shared(Arc::new(vec![value; count].into())))
    }
}

impl<S: ?Sized> From<Box<S>> for Page<S> {
    fn from(values: Box<S>) -> Self {
        Page(Values::Owned(values))
    }
}

impl<T> From<Vec<T>> for Page<[T]> {
    fn from(values: Vec<T>) -> Self {
        Page(Values::Owned(values.into()))
    }
}

impl<T: Copy + Serialize> Serialize for Page<[T]> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.read().serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Page<[T]> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Page::from)
    }
}
