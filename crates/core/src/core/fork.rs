//! A second core in the same state.

use super::Core;

impl Core {
    /// A core that continues independently from here. The two share decoded code and large tables until one of them changes
    /// them.
    pub fn fork(&mut self) -> Core {
        Core {
            hart: self.hart.clone(),
            config: self.config.clone(),
            window: self.window.fork(),
            predictor: self.predictor.fork(),
            store_sets: self.store_sets.clone(),
            unit: self.unit.clone(),
            blocks: self.blocks.clone(),
            code: self.code.clone(),
            fetched_line: self.fetched_line,
            line_ready: self.line_ready,
            checkpoint: self.checkpoint.clone(),
            hardware_checkpoint: self.hardware_checkpoint.clone(),
            position: self.position,
            is_between_looks: self.is_between_looks,
            pause: self.pause,
            was_full: self.was_full,
            unfinished: self.unfinished,
            ends_fenced_store: self.ends_fenced_store,
            pending: self.pending,
            instructions: self.instructions,
            counted: self.counted,
            stats: self.stats,
            stalls: self.stalls.clone(),
            place_pauses: self.place_pauses.clone(),
            exit: None,
        }
    }
}
