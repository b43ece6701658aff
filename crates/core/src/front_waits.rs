//! Why the front entries of a store buffer waited: what an instruction at the head of the reorder buffer waits for that needs
//! room in the buffer, or needs it empty.

use crate::Port;
use durasim_types::{CoreId, Cycle, LineAddr, StallCause, StallSegment};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The waits of the front entries of the store buffer, in order of time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct FrontWaits {
    segments: VecDeque<StallSegment>,
    #[serde(skip)]
    explained: Vec<StallSegment>,
}

/// More segments than an instruction at the head of the reorder buffer can wait for.
const SEGMENTS_MAX: usize = 1024;

impl FrontWaits {
    /// The front entry, a store to `line` or something else, waited from `from` until `until`.
    #[inline(never)]
    pub(crate) fn note<P: Port>(
        &mut self,
        port: &mut P,
        core: CoreId,
        line: Option<LineAddr>,
        from: Cycle,
        until: Cycle,
    ) {
        self.explained.clear();
        port.explain_wait(core, line, from, until, &mut self.explained);
        let mut at = from;
        let otherwise = if line.is_some() { StallCause::PrivateCaches } else { StallCause::Commit };
        for segment in self.explained.drain(..).filter(|segment| segment.from < segment.until) {
            let from = segment.from.max(at);
            if from > at {
                self.segments.push_back(StallSegment { from: at, until: from, cause: otherwise });
            }
            if segment.until > from {
                self.segments.push_back(StallSegment { from, ..segment });
                at = segment.until;
            }
        }
        if until > at {
            self.segments.push_back(StallSegment { from: at, until, cause: otherwise });
        }
        while self.segments.len() > SEGMENTS_MAX {
            self.segments.pop_front();
        }
    }

    /// Those that are not over before `from`. What is over then is forgotten.
    pub(crate) fn since(&mut self, from: Cycle) -> impl Iterator<Item = StallSegment> {
        while self.segments.front().is_some_and(|segment| segment.until <= from) {
            self.segments.pop_front();
        }
        self.segments.iter().copied()
    }
}
