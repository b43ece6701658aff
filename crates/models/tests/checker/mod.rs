//! Checks of a protocol by exploring its states, the same for all protocols.
//!
//! `make models` goes deeper: `DURASIM_MODEL=deep cargo test -p durasim-models -- --nocapture`.

use durasim_models::protocol::{Protocol, ProtocolModel};
use stateright::{Checker, Expectation, HasDiscoveries, Model};
use std::collections::BTreeSet;
use std::time::Instant;

/// Explores all states: every property holds, and every state that has to be reached is.
pub fn holds<P: Protocol>(name: &str, bounds: P::Bounds) {
    let start = Instant::now();
    let checker = ProtocolModel::<P>::new(bounds.clone()).checker().spawn_bfs().join();
    let (states, depth) = (checker.unique_state_count(), checker.max_depth());
    println!("{name}: {states} states, {depth} steps deep, {:.1} s; {bounds:?}", start.elapsed().as_secs_f64());
    checker.assert_properties();
    for property in checker.model().properties() {
        assert!(property.expectation != Expectation::Sometimes || checker.discovery(property.name).is_some());
    }
}

/// Explores all states, if `DURASIM_MODEL=deep` asks for it.
pub fn holds_deeper<P: Protocol>(name: &str, bounds: P::Bounds) {
    if std::env::var("DURASIM_MODEL").is_ok_and(|setting| setting == "deep") {
        holds::<P>(name, bounds);
    } else {
        println!("{name}: only with DURASIM_MODEL=deep");
    }
}

/// Explores states until a planted fault breaks the property, as it has to, and prints the steps.
pub fn is_caught<P: Protocol>(fault: P::Fault, bounds: P::Bounds, property: &'static str) {
    let until = HasDiscoveries::AnyOf(BTreeSet::from([property]));
    let checker = ProtocolModel::<P>::with_fault(bounds, fault).checker().finish_when(until).spawn_bfs().join();
    assert_eq!(checker.model().property(property).expectation, Expectation::Always);
    let path = checker.discovery(property).unwrap_or_else(|| panic!("{fault:?} does not break \"{property}\""));
    let states = checker.unique_state_count();
    println!("{fault:?} breaks \"{property}\" (within {states} states): {:?}", path.into_actions());
}

/// One test for each planted fault.
macro_rules! faults {
    ($protocol:ident: $($test:ident: $fault:ident in $bounds:ident breaks $property:ident;)*) => {
        $(#[test]
        fn $test() {
            checker::is_caught::<$protocol>(ProtocolFault::$fault, $bounds, $property);
        })*
    };
}
pub(crate) use faults;
