//! Decisions about accesses: Tables III to V, as sections V-C and V-D explain them.

use durasim_types::CheckVerdict;

/// The handlers of Algorithm 1.
pub(super) const CHECK_H_AND_V: u8 = 1;
pub(super) const CHECK_V: u8 = 2;
pub(super) const LOG_STORE: u8 = 3;
pub(super) const LOAD_CHECK: u8 = 4;

/// The known properties of the object that is accessed, before its memory is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    InNvm,
    InDram {
        /// In a FWD filter.
        may_forward: bool,
    },
}

/// The known properties of the object that is to be referred to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// There is none: what is stored is no reference, or null [D:pinspect-null].
    NotAnObject,
    InNvm {
        /// In the TRANS filter.
        may_be_queued: bool,
    },
    InDram {
        /// In a FWD filter.
        may_forward: bool,
    },
}

/// The conditions of a decision about a store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conditions {
    pub holder: Holder,
    pub value: Value,
    pub in_transaction: bool,
}

/// Table IV. Handler 1 is for either object that may forward, handler 2 for either reason (section V-D).
pub(super) fn store(conditions: &Conditions) -> CheckVerdict {
    let Conditions { holder, value, in_transaction } = *conditions;
    match (holder, value) {
        (Holder::InDram { may_forward: true }, _) | (Holder::InDram { .. }, Value::InDram { may_forward: true }) => {
            CheckVerdict::Handler(CHECK_H_AND_V)
        }
        (Holder::InDram { .. }, _) => CheckVerdict::Hardware { persistent: false },
        (Holder::InNvm, Value::InDram { .. } | Value::InNvm { may_be_queued: true }) => CheckVerdict::Handler(CHECK_V),
        (Holder::InNvm, _) if in_transaction => CheckVerdict::Handler(LOG_STORE),
        (Holder::InNvm, _) => CheckVerdict::Hardware { persistent: true },
    }
}

/// Table V.
pub(super) fn load(holder: Holder) -> CheckVerdict {
    match holder {
        Holder::InDram { may_forward: true } => CheckVerdict::Handler(LOAD_CHECK),
        Holder::InDram { .. } | Holder::InNvm => CheckVerdict::Hardware { persistent: false },
    }
}
