//! Values of a number known when durasim is built, shared between forks until one of them writes.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::Arc;

/// `N` values, a power of two. Any index counts modulo `N`, so that no access has bounds to check. Unlike an `Arc`, a grid
/// that is not shared costs no atomic count when it is written.
#[derive(Clone, Debug)]
pub(super) struct Grid<T, const N: usize>(Values<T, N>);

#[derive(Clone, Debug)]
enum Values<T, const N: usize> {
    Owned(Box<[T; N]>),
    Shared(Arc<[T; N]>),
}

impl<T: Copy, const N: usize> Grid<T, N> {
    pub(super) fn new(value: T) -> Self {
        Self::from_values(vec![value; N]).unwrap_or_else(|_| unreachable!("there are {N} values"))
    }

    fn from_values(values: Vec<T>) -> Result<Self, usize> {
        let count = values.len();
        let values: Result<Box<[T; N]>, _> = values.into_boxed_slice().try_into();
        values.map(|values| Grid(Values::Owned(values))).map_err(|_| count)
    }

    /// The value at `index`, to be changed.
    #[inline(always)]
    pub(super) fn at(&mut self, index: u64) -> &mut T {
        &mut self.write()[index as usize % N]
    }

    /// All values, to be changed.
    #[inline(always)]
    pub(super) fn write(&mut self) -> &mut [T; N] {
        if let Values::Shared(_) = self.0 {
            self.own();
        }
        match &mut self.0 {
            Values::Owned(values) => values,
            Values::Shared(_) => unreachable!("the grid has just been made our own"),
        }
    }

    #[cold]
    #[inline(never)]
    fn own(&mut self) {
        if let Values::Shared(values) = &self.0 {
            let copy = Self::from_values(values.to_vec());
            *self = copy.unwrap_or_else(|_| unreachable!("there are {N} values"));
        }
    }

    fn read(&self) -> &[T; N] {
        match &self.0 {
            Values::Owned(values) => values,
            Values::Shared(values) => values,
        }
    }

    /// A second grid with the same values that goes its own way.
    pub(super) fn fork(&mut self) -> Self {
        if let Values::Owned(values) = &self.0 {
            self.0 = Values::Shared(Arc::new(**values));
        }
        self.clone()
    }
}

impl<T: Copy + Serialize, const N: usize> Serialize for Grid<T, N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.read().as_slice().serialize(serializer)
    }
}

impl<'de, T: Copy + Deserialize<'de>, const N: usize> Deserialize<'de> for Grid<T, N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_values(Vec::deserialize(deserializer)?)
            .map_err(|count| D::Error::custom(format!("{count} values where {N} belong")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_goes_its_own_way_and_the_number_of_values_is_fixed() {
        let mut a: Grid<u32, 8> = Grid::new(7);
        *a.at(9) = 1;
        let mut b = a.fork();
        *b.at(2) = 2;
        assert_eq!((a.read(), b.read()), (&[7, 1, 7, 7, 7, 7, 7, 7], &[7, 1, 2, 7, 7, 7, 7, 7]));
        assert_eq!(Grid::<u32, 8>::from_values(vec![1, 2]).unwrap_err(), 2);
    }
}
