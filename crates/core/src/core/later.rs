//! A core that continues with a program which was executed elsewhere before.

use super::Core;
use crate::CoreConfig;
use crate::branch::{Predictor, PredictorConfig};
use durasim_types::Cycle;

impl Core {
    /// Starts at `cycle` after a part of the program that was executed elsewhere, with what its predictor learnt there.
    /// A predictor of other sizes is left aside.
    pub fn start_later(&mut self, cycle: Cycle, instructions: u64, learnt: Option<(&PredictorConfig, Predictor)>) {
        self.count_system(cycle);
        self.window.restart(cycle);
        self.instructions = instructions;
        if let Some((config, predictor)) = learnt
            && *config == self.config.predictor
        {
            self.predictor = predictor;
        }
    }

    /// Its parameters.
    pub fn config(&self) -> &CoreConfig {
        &self.config
    }

    /// What the branch predictor has learnt.
    pub fn predictor(&self) -> &Predictor {
        &self.predictor
    }
}
