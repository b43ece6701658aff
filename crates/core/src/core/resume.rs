//! Continuation of a program that was executed elsewhere before.

use super::Core;
use crate::branch::{Predictor, PredictorConfig};
use durasim_types::Cycle;

impl Core {
    /// Resumes at `cycle` after a part of the program that was executed elsewhere. `learnt` is the predictor that was
    /// trained there; one of another configuration is not taken over.
    pub fn resume_at(&mut self, cycle: Cycle, instructions: u64, learnt: Option<(&PredictorConfig, Predictor)>) {
        self.count_system(cycle);
        self.window.restart(cycle);
        self.instructions = instructions;
        if let Some((config, predictor)) = learnt
            && *config == self.config.predictor
        {
            self.predictor = predictor;
        }
    }
}
