//! A design as a member of the registry.

use crate::{
    Backend, ChecksResult, CrashImage, Durability, Geometry, HardwareCost, Hooks, PlantedFault, RecoveryCut,
    RecoveryReport, RegionRequest, SpecError, Stateful, state,
};
use durasim_types::{Domain, StallCause};
use schemars::{JsonSchema, Schema};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// A durability design: parameters, structures, recovery and cost. [`Durability`] is its behaviour, [`Stateful`] its
/// state.
pub trait Design: 'static {
    /// Its name, which is also the name of its section in a machine file.
    const NAME: &'static str;
    /// The hooks the machine calls.
    const HOOKS: Hooks;
    /// The faults it can be built with; [`Geometry::planted`] says which it is.
    const PLANTED: &'static [PlantedFault] = &[];
    /// The rare situations that [`Durability::marks`] names. A long campaign that never reaches one of them fails.
    const MARKS: &'static [&'static str] = &[];
    /// The parameters that shrink with the machine where a run is made smaller by one factor: sizes of what holds data of
    /// many transactions, and periods of background engines. What one transaction fills keeps its size, as transactions do.
    const SCALED: &'static [&'static str] = &[];
    /// Counters of the completed rounds of its background engines: those that run by the clock or by instructions. A
    /// measurement during which one of them completed few rounds is not of a steady state.
    const ENGINES: &'static [&'static str] = &[];
    /// The structures that requests wait for when they are full or busy, in the order of `StallCause::Structure`.
    const STRUCTURES: &'static [&'static str] = &[];
    /// The number of threads of a program that may have transactions: those with a smaller number in its kernel.
    const THREADS_MAX: u32 = u32::MAX;
    /// Its parameters: every field with a default and a source, unknown fields refused.
    type Spec: Serialize + DeserializeOwned + JsonSchema + Default + Clone;

    /// Changes the machine's shape before anything is built.
    fn adapt(_spec: &Self::Spec, _geometry: &mut Geometry) {}

    /// The regions of persistent memory it needs.
    fn reserve(spec: &Self::Spec, geometry: &Geometry) -> Vec<RegionRequest>;

    /// Builds it, or names the parameter that cannot be.
    fn build(spec: &Self::Spec, geometry: &Geometry) -> Result<impl Stateful, SpecError>;

    /// Builds it in the state that [`AnyState::save`](crate::AnyState::save) wrote, with the same parameters and geometry.
    /// Bytes that are not such a state are refused.
    fn load(spec: &Self::Spec, geometry: &Geometry, bytes: &[u8]) -> BuildResult {
        Ok(Box::new(state::load(Self::build(spec, geometry)?, bytes)?))
    }

    /// The checks of its checked accesses. Without them, all of custom-0 is illegal.
    fn checks(_spec: &Self::Spec, _geometry: &Geometry) -> ChecksResult {
        Ok(None)
    }

    /// Recovers after a power failure. Must be idempotent: cut anywhere and run again, it ends in the same image.
    ///
    /// The image may be damaged, by a crash that no model foresaw or on purpose. Recovery limits counts to the room there
    /// is, asks [`Geometry::is_home`] before it writes to an address that it has read, and reports what it cannot believe
    /// as a loss. It never panics and always ends.
    fn recover(spec: &Self::Spec, geometry: &Geometry, image: &mut CrashImage) -> Result<RecoveryReport, RecoveryCut>;

    /// Its hardware cost.
    fn cost(spec: &Self::Spec, geometry: &Geometry) -> HardwareCost;
}

/// A design at work, or the parameter it cannot be built with.
pub type BuildResult = Result<Box<dyn Durability>, SpecError>;

/// A [`Design`] whose parameters are JSON, so that designs of different types fit one table.
#[derive(Clone, Copy)]
#[expect(missing_docs, reason = "each field is the function of Design with the same name")]
pub struct ErasedDesign {
    pub name: &'static str,
    pub hooks: Hooks,
    pub planted: &'static [PlantedFault],
    pub marks: &'static [&'static str],
    pub scaled: &'static [&'static str],
    pub engines: &'static [&'static str],
    pub structures: &'static [&'static str],
    pub threads_max: u32,
    pub default_spec: fn() -> Value,
    pub schema: fn() -> Schema,
    /// Refuses unknown fields and wrong types, without building.
    pub check: fn(&Value) -> Result<(), SpecError>,
    pub adapt: fn(&Value, &mut Geometry) -> Result<(), SpecError>,
    pub reserve: fn(&Value, &Geometry) -> Result<Vec<RegionRequest>, SpecError>,
    pub build: fn(&Value, &Geometry) -> BuildResult,
    pub load: fn(&Value, &Geometry, &[u8]) -> BuildResult,
    pub checks: fn(&Value, &Geometry) -> ChecksResult,
    pub recover: fn(&Value, &Geometry, &mut CrashImage) -> Result<RecoveryReport, RecoveryCut>,
    pub cost: fn(&Value, &Geometry) -> Result<HardwareCost, SpecError>,
}

impl std::fmt::Debug for ErasedDesign {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ErasedDesign({})", self.name)
    }
}

fn spec_of<D: Design>(value: &Value) -> Result<D::Spec, SpecError> {
    serde_json::from_value(value.clone()).map_err(|e| SpecError::new("", e.to_string()))
}

impl ErasedDesign {
    /// The table entry of `D`.
    pub const fn of<D: Design>() -> Self {
        ErasedDesign {
            name: D::NAME,
            hooks: D::HOOKS,
            planted: D::PLANTED,
            marks: D::MARKS,
            scaled: D::SCALED,
            engines: D::ENGINES,
            structures: {
                assert!(D::STRUCTURES.len() <= StallCause::STRUCTURES_MAX);
                D::STRUCTURES
            },
            threads_max: D::THREADS_MAX,
            default_spec: || serde_json::to_value(D::Spec::default()).expect("parameters are plain data"),
            schema: || schemars::schema_for!(D::Spec),
            check: |v| spec_of::<D>(v).map(drop),
            adapt: |v, g| {
                D::adapt(&spec_of::<D>(v)?, g);
                Ok(())
            },
            reserve: |v, g| Ok(D::reserve(&spec_of::<D>(v)?, g)),
            build: |v, g| Ok(Box::new(D::build(&spec_of::<D>(v)?, g)?)),
            load: |v, g, bytes| D::load(&spec_of::<D>(v)?, g, bytes),
            checks: |v, g| D::checks(&spec_of::<D>(v)?, g),
            recover: |v, g, image| {
                D::recover(&spec_of::<D>(v).expect("the parameters built a machine before"), g, image)
            },
            cost: |v, g| Ok(D::cost(&spec_of::<D>(v)?, g)),
        }
    }
}

/// The programming interface of guest programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// Transactions over a pool: `durasim/tx.h`.
    Transactions,
    /// Typed objects and references: `durasim/objects.h`.
    Objects,
}

impl Interface {
    /// The name that workloads and runtimes have for it.
    pub const fn name(self) -> &'static str {
        match self {
            Interface::Transactions => "transactions",
            Interface::Objects => "objects",
        }
    }
}

/// The promise of a variant about acknowledged transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// They survive at once.
    Immediate,
    /// They survive after at most this number of further epochs.
    Epoch(u32),
}

/// Data that a program has to lock before it stores, because the hardware does not isolate transactions that touch it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locking {
    /// No data: the hardware isolates transactions, or the programs have none.
    Nothing,
    /// Words of eight bytes: threads may store to different words of a line.
    Words,
    /// Blocks of 32 bytes, the data of a log entry.
    Blocks,
    /// Lines.
    Lines,
}

impl Locking {
    /// The name in lists of designs.
    pub const fn name(self) -> &'static str {
        match self {
            Locking::Nothing => "nothing",
            Locking::Words => "words",
            Locking::Blocks => "blocks",
            Locking::Lines => "lines",
        }
    }
}

/// A variant of the registry: what users name with `--design`.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Its name.
    pub name: &'static str,
    /// Other names in papers, accepted wherever a variant is named.
    pub aliases: &'static [&'static str],
    /// The hardware.
    pub hardware: ErasedDesign,
    /// The runtime of its guest programs.
    pub backend: Backend,
    /// The programming interfaces of its guest programs.
    pub interfaces: &'static [Interface],
    /// The domains it is right on; the first is the default.
    pub domains: &'static [Domain],
    /// Its promise.
    pub promise: Promise,
    /// Whether it exists to show failing: crash checks must find violations.
    pub control: bool,
    /// One sentence.
    pub summary: &'static str,
    /// The publication.
    pub paper: &'static str,
    /// Keys of DEVIATIONS.md that its parameters rest on.
    pub assumptions: &'static [&'static str],
    /// The data that its programs have to lock.
    pub locking: Locking,
    /// Planted faults of the machine that violate its promise: those of [`crate::path_faults`] or [`crate::check_faults`].
    pub path_faults: &'static [PlantedFault],
    /// Names of planted faults of hardware that several variants share which no program of this variant can observe, and
    /// why.
    pub equivalent_faults: &'static [(&'static str, &'static str)],
}

impl Variant {
    /// The faults that a machine of the variant can be built with: those of its hardware, and those of the path that the variant has
    /// to notice.
    pub fn planted(&self) -> impl Iterator<Item = PlantedFault> + use<> {
        let here = self.equivalent_faults;
        self.hardware.planted.iter().chain(self.path_faults).map(|planted| {
            let why = here.iter().find(|(name, _)| *name == planted.name).map(|(_, why)| *why);
            PlantedFault { equivalent: planted.equivalent.or(why), ..*planted }
        })
    }

    /// The domain it runs on by default.
    pub const fn default_domain(&self) -> Domain {
        self.domains[0]
    }
}
