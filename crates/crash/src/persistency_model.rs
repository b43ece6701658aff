//! The names of the persistency models.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A persistency model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PersistencyModel {
    /// Strict persistency: stores become durable in the order in which they are visible.
    Strict,
    /// Epoch persistency: stores between two fences of a thread in any order, those before a fence first.
    Epoch,
    /// Px86: the stores of each line in order; `cbo.clean` is `clwb` and `cbo.flush` is `clflushopt`.
    X86,
    /// Px86 with `cbo.flush` as `clflush`, which is ordered before later stores.
    X86Clflush,
}

impl PersistencyModel {
    /// All of them.
    pub const ALL: [PersistencyModel; 4] =
        [PersistencyModel::Strict, PersistencyModel::Epoch, PersistencyModel::X86, PersistencyModel::X86Clflush];

    /// The name in options, results and ids of trials.
    pub const fn name(self) -> &'static str {
        match self {
            PersistencyModel::Strict => "strict",
            PersistencyModel::Epoch => "epoch",
            PersistencyModel::X86 => "x86",
            PersistencyModel::X86Clflush => "x86-clflush",
        }
    }

    /// The model with this name.
    pub fn named(name: &str) -> Option<Self> {
        PersistencyModel::ALL.into_iter().find(|model| model.name() == name)
    }
}
