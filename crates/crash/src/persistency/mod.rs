//! Persistency models: which sets of the stores of a run may be durable when power fails, whatever the machine has written back.
//!
//! Each model is a list of numbered sentences of docs/crash.md (Persistency models). All share M1 to M6, on which
//! [`ModelledRun`] is built: the stores come in one visible order; some of them are durable for certain; and an image has with each
//! store all that the model orders before it. A model is the order: one file each (`strict`, `epoch`, `x86`). The images are the sets
//! that are closed under it (`images`).
//!
//! Sources: S. Pelley, P. M. Chen, T. F. Wenisch: Memory Persistency, ISCA 2014 (strict and epoch persistency). A. Raad,
//! J. Wickerson, G. Neiger, V. Vafeiadis: Persistency Semantics of the Intel-x86 Architecture, POPL 2020 (Px86). A. Khyzha,
//! O. Lahav: Taming x86-TSO Persistency, POPL 2021 (a fence that waits). A. Raad, L. Maranget, V. Vafeiadis: Extending Intel-x86
//! Consistency and Persistency, POPL 2022 (non-temporal stores).

mod certain;
mod epoch;
mod images;
mod moments;
mod persists;
mod run;
mod strict;
#[cfg(test)]
mod tests;
mod x86;

pub(crate) use moments::{CrashMoment, ModelChoice, ModelState, PermittedImage, Recorders, Refusal};

use crate::persistency_model::PersistencyModel;
use durasim_contract::Hooks;
use durasim_machine::{Instructions, Prepared};
use durasim_types::{ConfigError, Domain};
use std::sync::Arc;

/// A model for the runs of a program.
#[derive(Clone, Debug)]
pub(crate) struct Persistency {
    pub model: PersistencyModel,
    /// The code of the program, which says which stores are non-temporal and which cleans are flushes.
    pub instructions: Arc<Instructions>,
}

impl Persistency {
    /// # Errors
    /// A variant or a domain with a promise of its own, which no model describes.
    pub fn of(model: PersistencyModel, prepared: &Prepared) -> Result<Self, ConfigError> {
        let plan = &prepared.plan;
        let refuse = |problem: String| Err(ConfigError::new("persistency_model", problem));
        if plan.variant.hardware.hooks != Hooks::NONE || plan.checks.is_some() {
            return refuse(format!(
                "{} has hardware that decides what becomes durable: a model is for programs on a machine without, such as opt",
                plan.variant.name
            ));
        }
        if plan.domain != Domain::Adr {
            return refuse(format!(
                "a model takes the place of the domain {}, and this run has {}",
                Domain::Adr,
                plan.domain
            ));
        }
        Ok(Persistency { model, instructions: Arc::new(Instructions::of(&prepared.program.elf)) })
    }
}
