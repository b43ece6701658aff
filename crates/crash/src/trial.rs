//! A trial: the failures of a run, one after the other. Its text is the argument of `--replay`.
//!
//! | text | meaning |
//! | --- | --- |
//! | `e17` | power fails after persist event 17; exactly what the domain guarantees survives |
//! | `e17:torn.5` | and lines in flight to the media are torn: of their words of eight bytes those of subset 5 are new |
//! | `e17:reorder.3` | and of the cleans that no fence has waited for another part was accepted: choice 3 |
//! | `e17:evict.2` | and of the dirty lines in the caches those of subset 2 had been evicted |
//! | `e17:image.9` | and of all images of reordered cleans and early evictions this one is left |
//! | `e17:x86.7` | and persistent memory has image 7 of those that a persistency model permits: `strict`, `epoch`, `x86`, `x86-clflush` |
//! | `e17:energy.640` | and the energy of the crash flush ends after 640 bytes |
//! | `…/r4` | the hardware's recovery fails at its fourth write |
//! | `…/g9` | the program's recovery fails after its persist event 9 |
//! | `…+e8` | recovery is complete, the program works on, and power fails after persist event 8 of that |
//!
//! The parts after `/` and `+` happen in the order of the text, so `e17/r4/r2` is a recovery that failed twice. `/g9` and
//! `+e8` take `:torn.5`, `:reorder.3` and `:energy.640` as the first failure does: `e4/g1:reorder.0`.

use crate::failure_kind::FailureKind;
use crate::persistency_model::PersistencyModel;
use durasim_contract::CrashImage;
use durasim_machine::{PowerFailureOptions, System};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The way in which power fails at a crash point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PowerFault {
    /// Exactly what the persistence domain guarantees survives.
    Clean,
    /// [`PowerFailureOptions::torn`].
    Torn(u64),
    /// [`PowerFailureOptions::reorder`].
    Reorder(u64),
    /// [`PowerFailureOptions::energy_bytes`].
    Energy(u64),
    /// [`PowerFailureOptions::evict`].
    Evict(u64),
    /// [`PowerFailureOptions::image`].
    Image(u64),
    /// An image that a persistency model permits, by its number (`persistency`).
    Model(PersistencyModel, u64),
}

impl PowerFault {
    /// The name of those that an exhaustive campaign takes.
    pub(crate) const IMAGE: &'static str = "image";

    /// Whether it undoes what was accepted: such an image is judged by what was acknowledged at the event itself.
    pub(crate) fn revokes_accepted_writes(self) -> bool {
        matches!(self, PowerFault::Reorder(_) | PowerFault::Image(_))
    }

    /// The name in the text of trials, in options and in results.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            PowerFault::Clean => FailureKind::Clean.name(),
            PowerFault::Torn(_) => FailureKind::Torn.name(),
            PowerFault::Reorder(_) => FailureKind::Reorder.name(),
            PowerFault::Energy(_) => FailureKind::Energy.name(),
            PowerFault::Evict(_) => FailureKind::Evict.name(),
            PowerFault::Image(_) => PowerFault::IMAGE,
            PowerFault::Model(model, _) => model.name(),
        }
    }

    /// The options of the machine for it.
    pub fn power_failure(self) -> PowerFailureOptions {
        let clean = PowerFailureOptions::default();
        match self {
            // A model changes no more than the contents of persistent memory, which the machine does not know.
            PowerFault::Clean | PowerFault::Model(..) => clean,
            PowerFault::Torn(choice) => PowerFailureOptions { torn: Some(choice), ..clean },
            PowerFault::Reorder(choice) => PowerFailureOptions { reorder: Some(choice), ..clean },
            PowerFault::Energy(bytes) => PowerFailureOptions { energy_bytes: Some(bytes), ..clean },
            PowerFault::Evict(choice) => PowerFailureOptions { evict: Some(choice), ..clean },
            PowerFault::Image(number) => PowerFailureOptions { image: Some(number), ..clean },
        }
    }

    /// Whether it undoes nothing: further failures are drawn after one such power failure at each crash point.
    pub(crate) const fn is_plainest(self) -> bool {
        matches!(self, PowerFault::Clean | PowerFault::Model(_, 0))
    }

    /// The number of choices that the machine has at this moment for failures of this kind.
    pub(crate) fn ways(self, system: &System) -> u64 {
        let choices = system.power_failure_choices();
        match self {
            PowerFault::Clean | PowerFault::Energy(_) | PowerFault::Model(..) => u64::MAX,
            PowerFault::Torn(_) => choices.torn,
            PowerFault::Reorder(_) => choices.reorder,
            PowerFault::Evict(_) => choices.evict,
            PowerFault::Image(_) => choices.reorder.saturating_mul(choices.evict),
        }
    }

    /// Its choice; 0 if it has none.
    pub(crate) const fn choice(self) -> u64 {
        match self {
            PowerFault::Clean => 0,
            PowerFault::Torn(number)
            | PowerFault::Reorder(number)
            | PowerFault::Energy(number)
            | PowerFault::Evict(number)
            | PowerFault::Image(number)
            | PowerFault::Model(_, number) => number,
        }
    }

    /// This failure with the image that it leaves.
    pub(crate) fn image(self, system: &System) -> (PowerFault, CrashImage) {
        (self, system.power_failure(&self.power_failure()).image)
    }
}

/// A failure after the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NextFailure {
    /// At this write of the hardware's recovery, counted from 1.
    Recovery(u64),
    /// After this persist event of the program's recovery, in this way.
    GuestRecovery(u64, PowerFault),
    /// After this persist event of the work that follows a complete recovery, in this way.
    Work(u64, PowerFault),
}

impl NextFailure {
    /// The way in which power fails, where there are several.
    fn fault(self) -> Option<PowerFault> {
        match self {
            NextFailure::Recovery(_) => None,
            NextFailure::GuestRecovery(_, fault) | NextFailure::Work(_, fault) => Some(fault),
        }
    }

    fn is_work(self) -> bool {
        matches!(self, NextFailure::Work(..))
    }
}

/// A trial.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Trial {
    /// The persist event of the run after which power fails first.
    pub event: u64,
    /// The way in which it fails.
    pub fault: PowerFault,
    /// The further failures.
    pub then: Vec<NextFailure>,
}

impl Trial {
    /// A power failure after this persist event.
    pub fn new(event: u64, fault: PowerFault) -> Self {
        Trial { event, fault, then: Vec::new() }
    }

    /// This trial with one more failure.
    pub fn and(&self, then: NextFailure) -> Self {
        let mut trial = self.clone();
        trial.then.push(then);
        trial
    }

    /// The kinds of its failures, as results name them: `nested` or `recrash` if there are several, and those of
    /// [`PowerFault`] that are not clean, joined by `+`.
    pub fn fault_name(&self) -> String {
        let mut names = Vec::new();
        if self.then.iter().any(|then| then.is_work()) {
            names.push("recrash");
        } else if !self.then.is_empty() {
            names.push("nested");
        }
        let faults = self.then.iter().filter_map(|then| then.fault()).chain([self.fault]);
        let faults: BTreeSet<PowerFault> = faults.collect();
        for fault in faults.into_iter().filter(|fault| *fault != PowerFault::Clean) {
            if !names.contains(&fault.name()) {
                names.push(fault.name());
            }
        }
        if names.is_empty() { PowerFault::Clean.name().to_owned() } else { names.join("+") }
    }

    /// The ways in which power fails, in their order.
    pub(crate) fn power_faults(&self) -> impl Iterator<Item = PowerFault> {
        [self.fault].into_iter().chain(self.then.iter().filter_map(|then| then.fault()))
    }

    /// The number of recoveries in a row that fail.
    pub fn depth(&self) -> u64 {
        let in_a_row = self.then.split(|then| then.is_work()).map(<[NextFailure]>::len);
        in_a_row.max().unwrap_or(0) as u64
    }
}

impl fmt::Display for PowerFault {
    /// The part after the event in the text of a trial: empty if it is clean.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PowerFault::Clean => Ok(()),
            fault => write!(f, ":{}.{}", fault.name(), fault.choice()),
        }
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "e{}{}", self.event, self.fault)?;
        for then in &self.then {
            match then {
                NextFailure::Recovery(write) => write!(f, "/r{write}")?,
                NextFailure::GuestRecovery(event, fault) => write!(f, "/g{event}{fault}")?,
                NextFailure::Work(event, fault) => write!(f, "+e{event}{fault}")?,
            }
        }
        Ok(())
    }
}

/// A number of the text of a trial.
fn number(digits: &str) -> Option<u64> {
    let is_plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    digits.parse().ok().filter(|_| is_plain)
}

/// An event, and what follows it: `17`, or `17:torn.5`.
fn event_and_fault(text: &str) -> Option<(u64, PowerFault)> {
    let Some((event, fault)) = text.split_once(':') else { return Some((number(text)?, PowerFault::Clean)) };
    let (kind, choice) = fault.split_once('.')?;
    let choice = number(choice)?;
    let fault = match kind {
        "torn" => PowerFault::Torn(choice),
        "reorder" => PowerFault::Reorder(choice),
        "energy" => PowerFault::Energy(choice),
        "evict" => PowerFault::Evict(choice),
        PowerFault::IMAGE => PowerFault::Image(choice),
        model => PowerFault::Model(PersistencyModel::named(model)?, choice),
    };
    Some((number(event)?, fault))
}

/// A failure after the first one, with the sign that it begins with.
fn further(text: &str) -> Option<NextFailure> {
    match text.split_at_checked(2)? {
        ("/r", write) => number(write).map(NextFailure::Recovery),
        ("/g", at) => event_and_fault(at).map(|(event, fault)| NextFailure::GuestRecovery(event, fault)),
        ("+e", at) => event_and_fault(at).map(|(event, fault)| NextFailure::Work(event, fault)),
        _ => None,
    }
}

impl FromStr for Trial {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let problem =
            || format!("'{text}' is not the id of a trial such as e17, e17:torn.5/r2, e4/g1:reorder.0 or e17+e8");
        let first_end = text.find(['/', '+']).unwrap_or(text.len());
        let (first, mut rest) = text.split_at(first_end);
        let (event, fault) = first.strip_prefix('e').and_then(event_and_fault).ok_or_else(problem)?;
        let mut trial = Trial::new(event, fault);
        while !rest.is_empty() {
            let end = rest[1..].find(['/', '+']).map_or(rest.len(), |at| at + 1);
            let (part, after) = rest.split_at(end);
            trial.then.push(further(part).ok_or_else(problem)?);
            rest = after;
        }
        Ok(trial)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durasim_types::Rng;

    #[test]
    fn text_and_trial_are_one() {
        for text in [
            "e1",
            "e17:torn.5",
            "e17:reorder.0/r3",
            "e9:energy.640",
            "e2/r4/r2/r1",
            "e3/g7+e12/r1",
            "e4/g1:reorder.0",
            "e3+e8:torn.5",
            "e3+e8:energy.640/r2",
            "e3:evict.9/g4:evict.2",
            "e3:image.12+e4",
            "e3:x86.12/g4:x86.0",
            "e3:x86-clflush.1+e4:strict.2",
        ] {
            let trial: Trial = text.parse().unwrap();
            assert_eq!(trial.to_string(), text);
        }
        let trial: Trial = "e3:torn.9/r4/g2+e12/r1".parse().unwrap();
        assert_eq!(trial.event, 3);
        assert_eq!(trial.fault, PowerFault::Torn(9));
        assert_eq!(
            trial.then,
            [
                NextFailure::Recovery(4),
                NextFailure::GuestRecovery(2, PowerFault::Clean),
                NextFailure::Work(12, PowerFault::Clean),
                NextFailure::Recovery(1)
            ]
        );
        assert_eq!(trial.depth(), 2);
        assert_eq!("e3".parse::<Trial>().unwrap().depth(), 0);
    }

    /// Every trial that can be built has a text of its own, from which it comes back.
    #[test]
    fn any_trial_comes_back_from_its_text() {
        let mut rng = Rng::new(7);
        let mut texts = std::collections::BTreeMap::new();
        for _ in 0..5000 {
            let fault = |rng: &mut Rng| match rng.below(6) {
                0 => PowerFault::Clean,
                1 => PowerFault::Torn(rng.next_u64()),
                2 => PowerFault::Reorder(rng.below(4)),
                3 => PowerFault::Evict(rng.next_u64()),
                4 => PowerFault::Model(PersistencyModel::ALL[rng.below(4) as usize], rng.below(9)),
                _ => PowerFault::Energy(8 * rng.below(1000)),
            };
            let mut trial = Trial::new(rng.below(100), fault(&mut rng));
            for _ in 0..rng.below(4) {
                let number = rng.below(20);
                trial = trial.and(match rng.below(3) {
                    0 => NextFailure::Recovery(number),
                    1 => NextFailure::GuestRecovery(number, fault(&mut rng)),
                    _ => NextFailure::Work(number, fault(&mut rng)),
                });
            }
            let text = trial.to_string();
            assert_eq!(text.parse::<Trial>().as_ref(), Ok(&trial), "{text}");
            assert_eq!(texts.entry(text).or_insert_with(|| trial.clone()), &trial);
        }
    }

    #[test]
    fn a_trial_is_named_after_all_its_faults() {
        let name = |text: &str| text.parse::<Trial>().unwrap().fault_name();
        assert_eq!(name("e17"), "clean");
        assert_eq!(name("e17:torn.5"), "torn");
        assert_eq!(name("e17/r4/g2"), "nested");
        assert_eq!(name("e4/g1:reorder.0/g3:reorder.1"), "nested+reorder");
        assert_eq!(name("e3:torn.1/g2+e8:energy.640/r2"), "recrash+torn+energy");
        assert_eq!(name("e3:epoch.1/g2:epoch.5"), "nested+epoch");
    }

    #[test]
    fn other_text_is_refused() {
        for text in [
            "",
            "e",
            "17",
            "e17:",
            "e17:torn",
            "e17:torn.x",
            "e17:cut.1",
            "e17/",
            "e17/x2",
            "e17/r",
            "e+1",
            "e1+2",
            "e17/ré",
            "e17/r2:torn.1",
            "e17/g2:torn",
            "e17/g2:cut.1",
            "e17+e:torn.1",
            "e17:torn.1:torn.2",
        ] {
            let refused = text.parse::<Trial>().unwrap_err();
            assert!(refused.contains("not the id of a trial"), "{text}: {refused}");
        }
    }
}
