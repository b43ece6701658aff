//! Runs of a real design, recorded and replayed against its model, the same for all protocols.
//!
//! A protocol gives its [`Subject`]: the machines and operations of random runs, what a hook of the design means for
//! the protocol, and the step of the model that it is.

#![allow(dead_code, reason = "each test binary uses its own part")]

pub mod driver;
pub mod log;
pub mod recorder;
pub mod replay;
pub mod trials;

use driver::{Driver, Run};
use durasim_contract::{ActiveFault, CrashImage};
use durasim_machine::{MachineConfig, Plan, System, presets};
use durasim_models::protocol::{Protocol, ProtocolModel};
use durasim_types::{ConfigError, Domain, PersistEvent, Rng, TxId};
use log::Shared;
use recorder::{Observe, observed_variant};
use replay::Replay;
use std::fmt::Debug;

/// A design with the model of its protocol. A value is what was drawn for one run.
pub trait Subject: Observe {
    /// The protocol of the model.
    type Protocol: Protocol;
    /// The state of a replay besides the machine of the model.
    type Follower;
    /// The domain of persistence of its machines.
    const DOMAIN: Domain;
    /// Threads that a run may have besides one for each core, plus one.
    const SPARE_THREADS: u64;
    /// The probability of a context switch before an operation, in percent; one of them is drawn for each run.
    const SWITCH_PERCENT: [u64; 3];
    /// The probability that a request is made out of the order of time, in percent; one is drawn for each run.
    const DISORDER_PERCENT: Option<[u64; 3]> = None;
    /// Whether some of the recoveries are interrupted and run again.
    const INTERRUPTS_RECOVERY: bool = false;

    /// Draws the settings of a small machine.
    fn overrides(rng: &mut Rng, cores: u16) -> Vec<String>;

    /// Draws the rest of a run.
    fn draw(rng: &mut Rng) -> Self;

    /// The name of the variant of the design.
    fn variant(&self) -> &'static str;

    /// Builds the machine.
    fn build(
        &self,
        sets: &[String],
        shared: &Shared<Self>,
        planted: Option<Self::Planted>,
    ) -> Result<(Plan, System), ConfigError> {
        let text = presets::text("tiny").expect("tiny is a preset");
        let config = MachineConfig::parse("tiny", text, sets)?;
        let variant = observed_variant(self.variant(), shared, planted);
        let plan = Plan::new(&config, &variant, Self::DOMAIN)?;
        System::new(&config, &plan).map(|system| (plan, system))
    }

    /// Draws the line of the next operation.
    fn line(&self, rng: &mut Rng) -> u8 {
        rng.below(u64::from(Self::LINES)) as u8
    }

    /// One operation of the thread at a port on a line; the number from 0 to 99 chooses it.
    fn operate(driver: &mut Driver<Self>, port: usize, line: u8, choice: u64);

    /// After each operation.
    fn operated(_driver: &mut Driver<Self>, _port: usize) {}

    /// A persist event of the machine.
    fn persisted(_shared: &Shared<Self>, _event: &PersistEvent, _system: &System) {}

    /// The program is informed that a transaction has committed.
    fn acknowledged(_shared: &Shared<Self>, _tx: TxId) {}

    /// A step to record before a power failure that leaves this image.
    fn fails(_image: &CrashImage) -> Option<Self::Step> {
        None
    }

    /// The bounds of the model: those of the machine.
    fn bounds(run: &Run<Self>) -> <Self::Protocol as Protocol>::Bounds;

    /// The state in which a replay starts.
    fn follower(run: &Run<Self>) -> Self::Follower;

    /// Follows a recorded step.
    fn follow(replay: &mut Replay<Self>, step: &Self::Step) -> Result<(), String>;

    /// The state of the machine of the model, for messages.
    fn about(machine: &<Self::Protocol as Protocol>::Machine) -> String;

    /// The rare situation in which the model makes a step, to be counted.
    fn rarity(_replay: &Replay<Self>, _action: &<Self::Protocol as Protocol>::Action) -> Option<&'static str> {
        None
    }

    /// Follows what only the recovery after a power failure shows, which found these versions.
    fn decide(_replay: &mut Replay<Self>, _found: &[<Self::Protocol as Protocol>::Version]) -> Result<(), String> {
        Ok(())
    }
}

/// A fault of the design itself, or of the hooks that the recorder passes on.
pub trait Planted: Copy + Debug + PartialEq + Send + 'static {
    /// The fault of the design.
    fn in_design(self) -> ActiveFault;
}

impl Planted for ActiveFault {
    fn in_design(self) -> ActiveFault {
        self
    }
}

/// The model of a subject.
pub type ModelOf<S> = ProtocolModel<<S as Subject>::Protocol>;
