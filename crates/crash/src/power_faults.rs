//! In which ways power fails at an event where a campaign takes images.

use crate::crashed_run::Selection;
use crate::failure_kind::FailureKind;
use crate::persistency::ModelChoice;
use crate::trial::PowerFault;
use durasim_contract::CrashImage;
use durasim_machine::System;
use durasim_types::Rng;
use std::collections::BTreeSet;

/// The draw at each event: a clean power failure, and a number of each of these kinds that can have many outcomes.
#[derive(Clone, Debug)]
pub(crate) struct PowerFaultDraw {
    pub faults: BTreeSet<FailureKind>,
    pub variants: u64,
    /// Whether the images are those of a persistency model, which stand for all of these kinds.
    pub of_model: bool,
}

/// The images of one event.
pub(crate) struct DrawnPowerFaults {
    pub images: Vec<(PowerFault, CrashImage)>,
    /// Whether a clean power failure loses a dirty line of persistent memory.
    pub loses_dirty_lines: bool,
}

impl PowerFaultDraw {
    /// The power failures to try at this moment.
    pub fn select(&self, system: &System, rng: &mut Rng) -> Selection {
        match self.of_model {
            true => Selection::OfModel(ModelChoice::Drawn { others: self.variants, seed: rng.next_u64() }),
            false => Selection::Images(self.draw(system, rng).images),
        }
    }

    /// The power failures to try at this moment, with what each leaves.
    pub fn draw(&self, system: &System, rng: &mut Rng) -> DrawnPowerFaults {
        let cut = |fault: PowerFault| system.power_failure(&fault.power_failure());
        let clean = cut(PowerFault::Clean);
        let (flushed_bytes, loses_dirty_lines) = (clean.flushed_bytes, clean.lost_dirty_lines > 0);
        let mut images = vec![(PowerFault::Clean, clean.image)];
        let mut others = |ways: u64, fault: fn(u64) -> PowerFault| {
            images.extend(some_of(ways, self.variants, rng).into_iter().map(fault).map(|b| (b, cut(b).image)));
        };
        let with_choices = [FailureKind::Torn, FailureKind::Reorder, FailureKind::Evict];
        let choices =
            with_choices.iter().any(|kind| self.faults.contains(kind)).then(|| system.power_failure_choices());
        if let Some(choices) = choices {
            if self.faults.contains(&FailureKind::Torn) && choices.torn > 1 {
                others(choices.torn, PowerFault::Torn);
            }
            if self.faults.contains(&FailureKind::Reorder) && choices.reorder > 1 {
                others(choices.reorder, PowerFault::Reorder);
            }
        }
        if self.faults.contains(&FailureKind::Energy) {
            others(flushed_bytes / 8, |words| PowerFault::Energy(8 * words));
        }
        // The first choice evicts nothing: it is the clean failure.
        if let Some(choices) = choices.filter(|choices| self.faults.contains(&FailureKind::Evict) && choices.evict > 1)
        {
            others(choices.evict - 1, |choice| PowerFault::Evict(choice + 1));
        }
        DrawnPowerFaults { images, loses_dirty_lines }
    }
}

/// `n` different numbers below `ways`, or all of them.
fn some_of(ways: u64, n: u64, rng: &mut Rng) -> BTreeSet<u64> {
    if ways <= n {
        return (0..ways).collect();
    }
    let mut drawn = BTreeSet::new();
    while (drawn.len() as u64) < n {
        drawn.insert(rng.below(ways));
    }
    drawn
}
