//! Planted faults of machines with checked accesses. A variant that they break lists them in `Variant::path_faults`.

use crate::PlantedFault;

/// As published: P-INSPECT (MICRO 2020) does not say that stores wait.
pub const FILTERS_GIVEN_UP_EARLY: PlantedFault = PlantedFault {
    name: "filters-given-up-early",
    summary: "Filters change while stores that were checked against them wait in store buffers of other cores",
    equivalent: None,
};

/// All of them.
pub const ALL: &[PlantedFault] = &[FILTERS_GIVEN_UP_EARLY];
