//! One value per slot of an array: a plain vector when it is small, pages shared between forks when it is large.
//!
//! A fork of a large column copies pointers. A page is copied when the first of those that share it writes it. What is
//! not shared is owned outright, so that writing it costs a branch and no atomic count.

use crate::page::Page;
use std::ops::Range;

/// Values of the slots 0 to n - 1: either all in a row or all in pages, and the other part is empty. So the check of
/// the bounds of the row is also the question for the form: what each load and store of a core touches pays nothing.
#[derive(Clone, Debug)]
pub(crate) struct Column<T> {
    row: Box<[T]>,
    pages: Pages<T>,
}

/// Pages of equal size; the last may be longer than its used part.
#[derive(Clone, Debug)]
struct Pages<T> {
    pages: Vec<Page<[T]>>,
    slots: usize,
    slots_per_page: u32,
    /// 2^64 / slots_per_page, rounded up: multiplying by it divides any u32 exactly (Lemire, Kaser, Kurz, "Faster
    /// Remainder by Direct Computation", 2019, theorem 1). Sets of any number of ways stay whole in a page this way.
    reciprocal: u64,
}

impl<T: Copy> Column<T> {
    /// `slots` times `blank` in a row.
    pub(crate) fn flat(blank: T, slots: usize) -> Self {
        let pages = Pages { pages: Vec::new(), slots: 0, slots_per_page: 0, reciprocal: 0 };
        Column { row: vec![blank; slots].into(), pages }
    }

    /// `slots` times `blank` in pages of about `page_slots`, each made of whole sets. Pages that have not been written
    /// are one and the same, so that an array takes memory for what it holds.
    pub(crate) fn paged(blank: T, slots: usize, ways: usize, page_slots: usize) -> Self {
        assert!(slots <= u32::MAX as usize, "{slots} slots do not fit into an array");
        let sets_per_page = (page_slots / ways).max(1);
        // At least 2: the reciprocal of 1 does not fit.
        let slots_per_page = (sets_per_page * ways).max(2);
        let page = Page::blank(blank, slots_per_page);
        let pages = Pages {
            pages: vec![page; slots.div_ceil(slots_per_page)],
            slots,
            slots_per_page: slots_per_page as u32,
            reciprocal: u64::MAX / slots_per_page as u64 + 1,
        };
        Column { row: Box::default(), pages }
    }

    /// The value of a slot.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> &T {
        match self.row.get(at) {
            Some(value) => value,
            None => self.pages.get(at),
        }
    }

    /// The value of a slot, to be changed.
    #[inline]
    pub(crate) fn get_mut(&mut self, at: usize) -> &mut T {
        match self.row.get_mut(at) {
            Some(value) => value,
            None => self.pages.get_mut(at),
        }
    }

    /// The values of `count` slots of one set, from slot `first` on.
    #[inline]
    pub(crate) fn of_set(&self, first: usize, count: usize) -> &[T] {
        match self.row.get(first..first + count) {
            Some(values) => values,
            None => self.pages.of_set(first, count),
        }
    }

    /// The values of all slots.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.row.iter().chain(self.pages.pages.iter().flat_map(Page::read).take(self.pages.slots))
    }

    /// The first slot of a range whose value is as asked for.
    pub(crate) fn find(&self, range: Range<usize>, mut is_wanted: impl FnMut(usize, &T) -> bool) -> Option<usize> {
        let mut first = range.start;
        while first < range.end {
            let values = match self.row.get(first..range.end) {
                Some(values) => values,
                None => self.pages.from(first, range.end),
            };
            let found = (first..).zip(values).find(|&(at, value)| is_wanted(at, value));
            if let Some((at, _)) = found {
                return Some(at);
            }
            first += values.len();
        }
        None
    }

    /// A second column with the same values that is independent.
    pub(crate) fn fork(&mut self) -> Self {
        self.pages.pages.iter_mut().for_each(Page::share);
        self.clone()
    }
}

impl<T: Copy> Pages<T> {
    #[inline(never)]
    fn get(&self, at: usize) -> &T {
        let (page, offset) = self.place(at);
        &self.pages[page].read()[offset]
    }

    #[inline(never)]
    fn get_mut(&mut self, at: usize) -> &mut T {
        let (page, offset) = self.place(at);
        &mut self.pages[page].write()[offset]
    }

    #[inline(never)]
    fn of_set(&self, first: usize, count: usize) -> &[T] {
        let (page, offset) = self.place(first);
        &self.pages[page].read()[offset..offset + count]
    }

    /// The values from a slot on, up to another one or to the end of its page.
    fn from(&self, first: usize, end: usize) -> &[T] {
        let (page, offset) = self.place(first);
        let values = self.pages[page].read();
        &values[offset..values.len().min(offset + end - first)]
    }

    /// The page of a slot and its position there.
    #[inline]
    fn place(&self, at: usize) -> (usize, usize) {
        debug_assert!(at < self.slots, "slot {at} of {}", self.slots);
        let page = ((u128::from(self.reciprocal) * at as u128) >> 64) as usize;
        (page, at - page * self.slots_per_page as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_has_a_place_of_its_own_for_any_number_of_ways() {
        for ways in 1..=64 {
            let slots = 1024 * ways;
            let mut column = Column::paged(0, slots, ways, 64);
            (0..slots).for_each(|at| *column.get_mut(at) = at);
            assert!(column.iter().copied().eq(0..slots), "{ways} ways");
            for first in (0..slots).step_by(ways) {
                assert!(
                    column.of_set(first, ways).iter().copied().eq(first..first + ways),
                    "{ways} ways, slot {first}"
                );
            }
        }
    }

    #[test]
    fn the_first_wanted_value_of_a_range_is_found_in_rows_and_pages() {
        for mut column in [Column::flat(0, 200), Column::paged(0, 200, 4, 64)] {
            [3, 70, 199].iter().for_each(|&at| *column.get_mut(at) = at);
            let find = |range| column.find(range, |at, &value| value != 0 && value == at);
            assert_eq!(
                [find(0..200), find(4..200), find(71..200), find(71..199)],
                [Some(3), Some(70), Some(199), None]
            );
            assert_eq!([find(4..70), find(5..5), find(199..200)], [None, None, Some(199)]);
        }
    }

    #[test]
    fn pages_are_shared_until_one_is_written_and_taken_by_the_last() {
        let shared = |column: &Column<u8>| column.pages.pages.iter().filter(|p| p.is_shared()).count();
        let mut a = Column::paged(0_u8, 256, 4, 64);
        assert_eq!(shared(&a), 4, "a new column is one blank page");
        *a.get_mut(0) = 1;
        assert_eq!(shared(&a), 3);
        let mut b = a.fork();
        assert_eq!((shared(&a), shared(&b)), (4, 4));
        *b.get_mut(0) = 2;
        assert_eq!((shared(&a), shared(&b), *a.get(0), *b.get(0)), (4, 3, 1, 2));
        let before = a.get(0) as *const u8;
        *a.get_mut(1) = 3;
        assert_eq!(a.get(0) as *const u8, before, "no other array has this page any more: it is not copied");
    }
}
