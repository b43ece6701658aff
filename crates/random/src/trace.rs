//! The steps of a run, one by one, for the one run that fails.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Lines that are kept: the last ones, which lead to the failure.
const LINES_MAX: usize = 10_000;

/// The steps of a run, or nothing if they are not requested. Clones share the lines.
#[derive(Clone, Debug, Default)]
pub struct Trace(Option<Arc<Mutex<VecDeque<String>>>>);

impl Trace {
    /// One that keeps the last 10,000 steps.
    #[must_use]
    pub fn wanted() -> Self {
        Trace(Some(Arc::default()))
    }

    /// Adds a step.
    pub(crate) fn note(&self, what: impl FnOnce() -> String) {
        let Some(lines) = &self.0 else { return };
        let mut lines = lines.lock().expect("no thread panics with it");
        if lines.len() == LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(what());
    }

    /// The steps, oldest first.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let lines = self.0.as_ref().map(|lines| lines.lock().map(|lines| lines.iter().cloned().collect()));
        lines.and_then(Result::ok).unwrap_or_default()
    }
}
