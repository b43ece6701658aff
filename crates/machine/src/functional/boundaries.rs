//! The contents of persistent memory at each boundary of operations of a functional run.

use super::memory::Flat;
use durasim_isa::Marker;
use durasim_types::{Boundary, BoundaryKind, Pages};

/// The boundaries that a run has passed, each with what persistent memory contained there.
pub(super) struct BoundaryContents {
    kind: BoundaryKind,
    passed: Vec<(Boundary, Pages)>,
    prints: u64,
}

impl BoundaryContents {
    pub(super) fn new(kind: BoundaryKind) -> Self {
        BoundaryContents { kind, passed: Vec::new(), prints: 0 }
    }

    pub(super) fn marker(&mut self, marker: Marker, argument: u64, memory: &Flat) {
        let boundary = match marker {
            Marker::OpBegin => Boundary::Begins(argument),
            Marker::OpEnd => Boundary::Ends(argument),
            _ => return,
        };
        if self.kind == BoundaryKind::Markers {
            self.pass(boundary, memory);
        }
    }

    /// The program has printed the end of a line.
    pub(super) fn line_printed(&mut self, memory: &Flat) {
        self.prints += 1;
        if self.kind == BoundaryKind::Lines {
            self.pass(Boundary::Printed(self.prints), memory);
        }
    }

    fn pass(&mut self, boundary: Boundary, memory: &Flat) {
        let before = self.passed.last().map(|(_, pages)| pages);
        let pages = memory.pmem_contents(before);
        self.passed.push((boundary, pages));
    }

    pub(super) fn into_passed(self) -> Vec<(Boundary, Pages)> {
        self.passed
    }
}
