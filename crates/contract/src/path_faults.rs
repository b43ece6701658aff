//! Planted faults of a machine on the path to its controllers. A variant that they break lists them in
//! `Variant::path_faults`.

use crate::PlantedFault;

/// Writes are acknowledged when they are sent.
pub const ACKNOWLEDGED_ON_SENDING: PlantedFault = PlantedFault {
    name: "path-acknowledged-on-sending",
    summary: "Writes are acknowledged when they are sent, and not when their controller has accepted them",
    equivalent: None,
};

/// A write overtakes an older one of its line.
pub const WRITES_OVERTAKE: PlantedFault = PlantedFault {
    name: "path-writes-overtake",
    summary: "A write overtakes an older one of its line that is in flight",
    equivalent: None,
};

/// Reads do not see what is in flight.
pub const READS_PASS_WRITES: PlantedFault = PlantedFault {
    name: "path-reads-pass-writes",
    summary: "A read passes a write to its line that is in flight",
    equivalent: None,
};

/// All of them, for variants that lose what is in flight.
pub const ALL: &[PlantedFault] = &[ACKNOWLEDGED_ON_SENDING, WRITES_OVERTAKE, READS_PASS_WRITES];

/// Those that are faults where buffers of the caches survive a power failure: what has been sent is durable there.
pub const WHERE_BUFFERS_SURVIVE: &[PlantedFault] = &[WRITES_OVERTAKE, READS_PASS_WRITES];
