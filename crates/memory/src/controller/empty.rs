//! Writes of no bytes. They ask for the acknowledgement of what was sent before them, and write nothing: they take no entry
//! of the queue, the media does not see them, and they are not counted as writes.

use super::{Controller, Step, Waiting};
use crate::Write;

impl Controller {
    /// Whether the next write that waits outside has no bytes: it needs no room, and the design is not asked about it.
    pub(super) fn is_empty_next(&self) -> bool {
        self.inbound.front().is_some_and(|waiting| waiting.write.mask == 0)
    }

    /// The next of what waits outside is one, and passes.
    pub(super) fn pass_next(&mut self) -> Option<Step> {
        let Waiting { write, arrived_ps, .. } = self.inbound.pop_front()?;
        self.pass(&write);
        self.refresh();
        let Write { line, mask, cause, token, .. } = write;
        Some(Step::Accepted { at_ps: arrived_ps.max(self.freed_ps), line, mask, cause, token })
    }

    /// Nothing is in front of a write of no bytes outside. Its token joins the youngest entry of its line: where a write has
    /// to be in the media to be acknowledged, that is when this one is.
    pub(super) fn pass(&mut self, write: &Write) {
        if self.may_have(write.line)
            && let Some(entry) = self.queue.iter_mut().rev().find(|entry| entry.write.line == write.line)
        {
            entry.joined.extend(write.token);
        }
    }
}
