//! Values of a number known when durasim is built.

use durasim_cache::Page;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A page of `N` values, a power of two. Any index counts modulo `N`, so that an access has no bounds to check.
#[derive(Clone, Debug)]
pub(super) struct Grid<T: Copy, const N: usize>(Page<[T; N]>);

impl<T: Copy, const N: usize> Grid<T, N> {
    pub(super) fn new(value: T) -> Self {
        Self::from_values(vec![value; N]).unwrap_or_else(|_| unreachable!("there are {N} values"))
    }

    fn from_values(values: Vec<T>) -> Result<Self, usize> {
        let count = values.len();
        let values: Result<Box<[T; N]>, _> = values.into_boxed_slice().try_into();
        values.map(|values| Grid(values.into())).map_err(|_| count)
    }

    /// The value at `index`, to be changed.
    #[inline(always)]
    pub(super) fn at(&mut self, index: u64) -> &mut T {
        &mut self.write()[index as usize & (N - 1)]
    }

    /// All values.
    pub(super) fn read(&self) -> &[T; N] {
        self.0.read()
    }

    /// All values, to be changed.
    #[inline(always)]
    pub(super) fn write(&mut self) -> &mut [T; N] {
        self.0.write()
    }

    /// A second grid with the same values that is independent.
    pub(super) fn fork(&mut self) -> Self {
        Grid(self.0.fork())
    }
}

impl<T: Copy + Serialize, const N: usize> Serialize for Grid<T, N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.read().as_slice().serialize(serializer)
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
    fn a_fork_is_independent_and_the_number_of_values_is_fixed() {
        let mut a: Grid<u32, 8> = Grid::new(7);
        *a.at(9) = 1;
        let mut b = a.fork();
        *b.at(2) = 2;
        assert_eq!((a.write(), b.write()), (&mut [7, 1, 7, 7, 7, 7, 7, 7], &mut [7, 1, 2, 7, 7, 7, 7, 7]));
        let saved = postcard::to_stdvec(&a).unwrap();
        assert!(postcard::from_bytes::<Grid<u32, 8>>(&saved).is_ok());
        assert!(postcard::from_bytes::<Grid<u32, 16>>(&saved).is_err());
    }
}
