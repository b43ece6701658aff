//! Slices of a track without overlap. Perfetto draws slices of one track inside each other, so slices that overlap need tracks of their
//! own: a commit that retires early ends while the next transaction of its thread is open.

use durasim_types::Cycle;

/// A slice of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slice<T> {
    pub from: Cycle,
    pub until: Cycle,
    pub what: T,
}

/// The slices in as few lanes as have no overlap, each in order of time.
pub(crate) fn lanes<T>(mut slices: Vec<Slice<T>>) -> Vec<Vec<Slice<T>>> {
    slices.sort_by_key(|slice| (slice.from, slice.until));
    let mut lanes: Vec<Vec<Slice<T>>> = Vec::new();
    for slice in slices {
        let is_free = |lane: &Vec<Slice<T>>| lane.last().is_none_or(|last| last.until <= slice.from);
        match lanes.iter().position(is_free) {
            Some(lane) => lanes[lane].push(slice),
            None => lanes.push(vec![slice]),
        }
    }
    lanes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(lane: &[Slice<()>]) -> Vec<(Cycle, Cycle)> {
        lane.iter().map(|slice| (slice.from, slice.until)).collect()
    }

    #[test]
    fn slices_that_touch_share_a_lane_and_those_that_overlap_do_not() {
        let slice = |(from, until)| Slice { from, until, what: () };
        let found = lanes([(5, 9), (0, 5), (4, 7), (9, 9), (9, 12)].map(slice).to_vec());
        assert_eq!(found.len(), 2);
        assert_eq!(spans(&found[0]), [(0, 5), (5, 9), (9, 9), (9, 12)]);
        assert_eq!(spans(&found[1]), [(4, 7)]);
    }
}
