//! What a trial is: the failures that a run takes, one after the other. Its text is what `--replay` takes.
//!
//! | text | meaning |
//! | --- | --- |
//! | `e17` | power fails after persist event 17; exactly what the domain guarantees survives |
//! | `e17:torn.5` | and lines in flight to the media are torn: of their words of eight bytes those of subset 5 are new |
//! | `e17:reorder.3` | and of the cleans that no fence has waited for another part was accepted: choice 3 |
//! | `e17:energy.640` | and the energy of the crash flush ends after 640 bytes |
//! | `…/r4` | the hardware's recovery fails at its fourth write |
//! | `…/g9` | the program's recovery fails after its persist event 9 |
//! | `…+e8` | recovery is complete, the program works on, and power fails after persist event 8 of that |
//!
//! What follows `/` and `+` happens in the order of the text, so `e17/r4/r2` is a recovery that failed twice.

use durasim_machine::PowerFailureOptions;
use std::fmt;
use std::str::FromStr;

/// How the power fails at a crash point.
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
}

impl PowerFault {
    /// Whether it undoes what was accepted: such an image is judged by what was acknowledged at the event itself.
    pub(crate) fn revokes_accepted_writes(self) -> bool {
        matches!(self, PowerFault::Reorder(_))
    }

    /// What the machine takes.
    pub fn power_failure(self) -> PowerFailureOptions {
        let clean = PowerFailureOptions::default();
        match self {
            PowerFault::Clean => clean,
            PowerFault::Torn(choice) => PowerFailureOptions { torn: Some(choice), ..clean },
            PowerFault::Reorder(choice) => PowerFailureOptions { reorder: Some(choice), ..clean },
            PowerFault::Energy(bytes) => PowerFailureOptions { energy_bytes: Some(bytes), ..clean },
        }
    }
}

/// A failure after the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Then {
    /// At this write of the hardware's recovery, counted from 1.
    Recovery(u64),
    /// After this persist event of the program's recovery.
    GuestRecovery(u64),
    /// After this persist event of the work that follows a complete recovery.
    Work(u64),
}

/// A trial.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    /// The persist event of the run after which power fails first.
    pub event: u64,
    /// How.
    pub fault: PowerFault,
    /// What fails after that.
    pub then: Vec<Then>,
}

impl Case {
    /// A power failure after this persist event.
    pub fn new(event: u64, fault: PowerFault) -> Self {
        Case { event, fault, then: Vec::new() }
    }

    /// The same with one more failure.
    pub fn and(&self, then: Then) -> Self {
        let mut case = self.clone();
        case.then.push(then);
        case
    }

    /// The kind of the failure, as results name it.
    pub fn fault_name(&self) -> &'static str {
        let works_on = self.then.iter().any(|then| matches!(then, Then::Work(_)));
        match self.fault {
            _ if works_on => "recrash",
            _ if !self.then.is_empty() => "nested",
            PowerFault::Clean => "clean",
            PowerFault::Torn(_) => "torn",
            PowerFault::Reorder(_) => "reorder",
            PowerFault::Energy(_) => "energy",
        }
    }

    /// How many recoveries in a row fail.
    pub fn depth(&self) -> u64 {
        let in_a_row = self.then.split(|then| matches!(then, Then::Work(_))).map(<[Then]>::len);
        in_a_row.max().unwrap_or(0) as u64
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "e{}", self.event)?;
        match self.fault {
            PowerFault::Clean => {}
            PowerFault::Torn(choice) => write!(f, ":torn.{choice}")?,
            PowerFault::Reorder(choice) => write!(f, ":reorder.{choice}")?,
            PowerFault::Energy(bytes) => write!(f, ":energy.{bytes}")?,
        }
        for then in &self.then {
            match then {
                Then::Recovery(write) => write!(f, "/r{write}")?,
                Then::GuestRecovery(event) => write!(f, "/g{event}")?,
                Then::Work(event) => write!(f, "+e{event}")?,
            }
        }
        Ok(())
    }
}

impl FromStr for Case {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let problem = || format!("'{text}' is not a crash id such as e17, e17:torn.5/r2 or e17+e8");
        let number = |digits: &str| -> Result<u64, String> {
            let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            digits.parse().ok().filter(|_| plain).ok_or_else(problem)
        };
        let first_end = text.find(['/', '+']).unwrap_or(text.len());
        let (first, mut rest) = text.split_at(first_end);
        let (event, fault) = match first.split_once(':') {
            None => (first, PowerFault::Clean),
            Some((event, fault)) => {
                let (kind, choice) = fault.split_once('.').ok_or_else(problem)?;
                let fault = match kind {
                    "torn" => PowerFault::Torn(number(choice)?),
                    "reorder" => PowerFault::Reorder(number(choice)?),
                    "energy" => PowerFault::Energy(number(choice)?),
                    _ => return Err(problem()),
                };
                (event, fault)
            }
        };
        let mut case = Case::new(number(event.strip_prefix('e').ok_or_else(problem)?)?, fault);
        while !rest.is_empty() {
            let end = rest[1..].find(['/', '+']).map_or(rest.len(), |at| at + 1);
            let (part, after) = rest.split_at(end);
            rest = after;
            let then = match part.split_at_checked(2) {
                Some(("/r", n)) => Then::Recovery(number(n)?),
                Some(("/g", n)) => Then::GuestRecovery(number(n)?),
                Some(("+e", n)) => Then::Work(number(n)?),
                _ => return Err(problem()),
            };
            case.then.push(then);
        }
        Ok(case)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_case_are_one() {
        for text in ["e1", "e17:torn.5", "e17:reorder.0/r3", "e9:energy.640", "e2/r4/r2/r1", "e3/g7+e12/r1"] {
            let case: Case = text.parse().unwrap();
            assert_eq!(case.to_string(), text);
        }
        let case: Case = "e3:torn.9/r4/g2+e12/r1".parse().unwrap();
        assert_eq!(case.event, 3);
        assert_eq!(case.fault, PowerFault::Torn(9));
        assert_eq!(case.then, [Then::Recovery(4), Then::GuestRecovery(2), Then::Work(12), Then::Recovery(1)]);
        assert_eq!(case.depth(), 2);
        assert_eq!("e3".parse::<Case>().unwrap().depth(), 0);
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
        ] {
            let refused = text.parse::<Case>().unwrap_err();
            assert!(refused.contains("not a crash id"), "{text}: {refused}");
        }
    }
}
