//! Causes of the waits of the front entries of a store buffer: an instruction at the head of the reorder buffer waits for them if it needs
//! room in the buffer, or needs it empty.

use crate::Port;
use durasim_types::{CoreId, Cycle, LineAddr, StallCause, StallSegment};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The waits of the front entries of the store buffer, in order of time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct FrontWaits {
    segments: VecDeque<StallSegment>,
}

/// More segments than an instruction at the head of the reorder buffer can wait for.
const SEGMENTS_MAX: usize = 256;

fn push(segments: &mut VecDeque<StallSegment>, segment: StallSegment) {
    if let Some(last) = segments.back_mut()
        && last.until == segment.from
        && last.cause == segment.cause
    {
        last.until = segment.until;
        return;
    }
    if segments.len() == SEGMENTS_MAX {
        segments.pop_front();
    }
    segments.push_back(segment);
}

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
        let mut at = from;
        let otherwise = if line.is_some() { StallCause::PrivateCaches } else { StallCause::Commit };
        let segments = &mut self.segments;
        port.explain_wait(core, line, from, until, |segment| {
            if segment.from > at {
                push(segments, StallSegment { from: at, until: segment.from, cause: otherwise });
            }
            push(segments, segment);
            at = segment.until;
        });
        if until > at {
            push(segments, StallSegment { from: at, until, cause: otherwise });
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
