//! The parts of a whole that are needed: a search by halves.

/// Of `parts`, those that `passes` needs: it accepts them together, and not any beginning of `parts` before the last of them. All
/// parts together have to pass. At most about `log2(n)` questions for each part that is needed; `None` if more than `most` are, or
/// if nothing is needed.
pub(super) fn needed<T: Clone>(parts: &[T], most: usize, mut passes: impl FnMut(&[T]) -> bool) -> Option<Vec<T>> {
    let mut kept: Vec<T> = Vec::new();
    let mut bound = parts.len();
    if passes(&kept) {
        return None;
    }
    loop {
        // With the first `low` parts it fails, with the first `high` it passes.
        let (mut low, mut high) = (0, bound);
        while high - low > 1 {
            let middle = low.midpoint(high);
            let candidate: Vec<T> = kept.iter().chain(&parts[..middle]).cloned().collect();
            if passes(&candidate) { high = middle } else { low = middle }
        }
        if kept.len() == most || high == 0 {
            return None;
        }
        kept.push(parts[high - 1].clone());
        bound = high - 1;
        if passes(&kept) {
            kept.reverse();
            return Some(kept);
        }
    }
}

/// Of `parts`, one with which `passes` begins to fail, as far back as it takes: it accepts the parts before it, and not those up
/// to it. `None` if it accepts all, or none of the beginnings that were tried.
pub(super) fn last_wrong<T>(parts: &[T], mut passes: impl FnMut(&[T]) -> bool) -> Option<&T> {
    if passes(parts) {
        return None;
    }
    // With the first `high` parts it fails, with the first `low` it passes.
    let (mut high, mut step) = (parts.len(), 1);
    let mut low = loop {
        if high == 0 {
            return None;
        }
        let low = high.saturating_sub(step);
        if passes(&parts[..low]) {
            break low;
        }
        (high, step) = (low, 2 * step);
    };
    while high - low > 1 {
        let middle = low.midpoint(high);
        if passes(&parts[..middle]) { low = middle } else { high = middle }
    }
    parts.get(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_that_are_needed_are_found() {
        let parts: Vec<u32> = (0..100).collect();
        for wanted in [vec![0], vec![99], vec![3, 50, 51], vec![0, 99]] {
            let passes = |some: &[u32]| wanted.iter().all(|part| some.contains(part));
            assert_eq!(needed(&parts, 8, passes), Some(wanted.clone()));
        }
        assert_eq!(needed(&parts, 8, |_| true), None, "nothing is needed");
        assert_eq!(needed(&parts, 8, |some: &[u32]| some.len() == 100), None, "too many are");
    }

    #[test]
    fn the_part_with_which_it_begins_to_fail_is_found() {
        let parts: Vec<u32> = (0..100).collect();
        for wrong in [0, 1, 37, 99] {
            assert_eq!(last_wrong(&parts, |some| !some.contains(&wrong)), Some(&wrong));
        }
        let every_second = |some: &[u32]| some.len().is_multiple_of(2);
        assert_eq!(last_wrong(&parts[..99], every_second), Some(&98), "the last one of several");
        assert_eq!(last_wrong(&parts, |_| true), None);
        assert_eq!(last_wrong(&parts, |_| false), None);
    }
}
