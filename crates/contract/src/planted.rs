//! Planted faults: what a design does wrong on purpose, so that crash campaigns can show that they would notice.
//!
//! They are always compiled and reachable from `durasim mutation` alone: no machine file, setting or parameter of
//! a design names one. A design asks for a fault on the line of its protocol that the fault breaks, by one of the
//! functions of [`ActiveFault`]; without a fault that is the test of one word.

/// A fault that a design can be built with. It goes wrong in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlantedFault {
    /// Its name, unique in the design.
    pub name: &'static str,
    /// The effect of the fault, in one sentence.
    pub summary: &'static str,
    /// The reason why no program can observe the fault, if that is so.
    pub equivalent: Option<&'static str>,
}

impl PlantedFault {
    /// The fault as a design is built with it.
    pub const fn fault(self) -> ActiveFault {
        ActiveFault(Some(self.name))
    }
}

/// The fault of a design that is built, or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActiveFault(Option<&'static str>);

impl ActiveFault {
    /// Nothing goes wrong on purpose.
    pub const NONE: ActiveFault = ActiveFault(None);

    /// Whether it is this one.
    #[inline]
    pub fn is(self, planted: PlantedFault) -> bool {
        match self.0 {
            None => false,
            Some(name) => name == planted.name,
        }
    }

    /// Whether the step of the protocol that follows is left out: `if !fault.skips(F) { step }`.
    #[inline]
    pub fn skips(self, planted: PlantedFault) -> bool {
        self.is(planted)
    }

    /// The condition as the protocol has it; with the fault it counts as not met.
    #[inline]
    pub fn ignores(self, planted: PlantedFault, condition: bool) -> bool {
        condition && !self.is(planted)
    }

    /// The condition as the protocol has it; with the fault it counts as met.
    #[inline]
    pub fn assumes(self, planted: PlantedFault, condition: bool) -> bool {
        condition || self.is(planted)
    }

    /// The value that the protocol has, or with the fault a wrong one.
    #[inline]
    pub fn swaps<T>(self, planted: PlantedFault, right: T, wrong: T) -> T {
        if self.is(planted) { wrong } else { right }
    }
}

/// Defines the faults of a design as constants, and `ALL`, the list of them:
///
/// ```
/// mod faults {
///     durasim_contract::planted! {
///         ENTRY_LOST = "entry-lost", "An entry is lost";
///         WRITTEN_TWICE = "written-twice", "An entry is written twice", equivalent: "Both writes are the same";
///     }
/// }
/// assert_eq!(faults::ALL.len(), 2);
/// assert!(faults::ENTRY_LOST.fault().is(faults::ENTRY_LOST));
/// ```
#[macro_export]
macro_rules! planted {
    ($($constant:ident = $name:literal, $summary:literal $(, equivalent: $why:literal)?;)*) => {
        $(
            #[doc = concat!($summary, ".")]
            pub(super) const $constant: $crate::PlantedFault = $crate::PlantedFault {
                name: $name,
                summary: $summary,
                equivalent: $crate::planted!(@why $($why)?),
            };
        )*
        /// All of them.
        pub(super) const ALL: &[$crate::PlantedFault] = &[$($constant),*];
    };
    (@why) => { None };
    (@why $why:literal) => { Some($why) };
}
