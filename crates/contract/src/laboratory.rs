//! How a variant of the registry is tested: one description beside the design. Tests, campaigns and tools iterate over the
//! registry and read it, so that none of them names a design.

use crate::PlantedFault;
use durasim_types::Domain;

/// Settings as for `--set`: `path.to.key=value`.
pub type Settings = &'static [&'static str];

/// What tests and tools have to know of a variant.
#[derive(Clone, Copy, Debug)]
pub struct Laboratory {
    /// The crash campaigns that planted faults are sent through, those that are quick and catch the most first. The sound
    /// design has to pass them too.
    pub campaigns: &'static [&'static [ShortCampaign]],
    /// Planted faults of different kinds that these campaigns catch quickly; the tests of every commit try no others.
    pub quick_faults: &'static [&'static str],
    /// Faults of the path to the controllers that the variant has to notice, of [`crate::path_faults`].
    pub path_faults: &'static [PlantedFault],
    /// Planted faults of hardware that several variants share which no program of this variant can observe, and why.
    pub equivalent_faults: &'static [(&'static str, &'static str)],
    /// The planted fault whose recovery overlooks what one transaction has left: if no test notices it, the tests check nothing.
    pub canary: Option<&'static str>,
    /// How the random tester treats the design.
    pub random: RandomTester,
    /// What has to occur in ordinary runs on the machine `tiny`.
    pub common_on_tiny: CommonOnTiny,
    /// Settings of `tiny` under which a run of a few transactions meets what takes time, such as the end of an epoch.
    pub short_run_settings: Settings,
    /// Settings of `tiny` under which queues, logs and identifiers run over, for long campaigns.
    pub overflow_settings: Settings,
    /// What else its parameters could be: the tables of DEVIATIONS.md are measured at these points.
    pub alternatives: &'static [Alternatives],
}

impl Laboratory {
    /// Nothing is known: for variants that are in no registry.
    pub const NONE: Laboratory = Laboratory {
        campaigns: &[],
        quick_faults: &[],
        path_faults: &[],
        equivalent_faults: &[],
        canary: None,
        random: RandomTester::USUAL,
        common_on_tiny: CommonOnTiny { counters: &[], marks: &[] },
        short_run_settings: &[],
        overflow_settings: &[],
        alternatives: &[],
    };
}

/// Situations that are rare on real machines and common on `tiny`.
#[derive(Clone, Copy, Debug)]
pub struct CommonOnTiny {
    /// Counters of the design that are not zero after a short run.
    pub counters: &'static [&'static str],
    /// Marks of [`crate::Durability::marks`] that crash points of a short campaign fall into.
    pub marks: &'static [&'static str],
}

/// A crash campaign with one workload on the machine `tiny`.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct ShortCampaign {
    /// The workload.
    pub workload: &'static str,
    /// Its arguments: names and values.
    pub arguments: &'static [(&'static str, &'static str)],
    /// Threads of the guest.
    pub threads: u16,
    /// Operations.
    pub ops: u64,
    /// Persist events to crash at.
    pub points: u64,
    /// What goes wrong there; the usual faults of campaigns if there are none.
    pub faults: &'static [&'static str],
    /// Parameters that differ from those of `tiny`; of two values of a parameter the later one counts.
    pub settings: &'static [Settings],
    /// The persistence domain, if it is not the variant's usual one.
    pub domain: Option<Domain>,
    /// Whether every transaction is aborted and retried once before it commits.
    pub rehearsals: bool,
    /// How many times it runs, each time with another seed: threads meet in a race of few cycles in some runs only.
    pub seeds: u64,
}

impl ShortCampaign {
    /// A workload with one thread, twelve operations and a hundred crash points on `tiny` as it is.
    pub const fn of(workload: &'static str, arguments: &'static [(&'static str, &'static str)]) -> Self {
        ShortCampaign {
            workload,
            arguments,
            threads: 1,
            ops: 12,
            points: 100,
            faults: &[],
            settings: &[],
            domain: None,
            rehearsals: false,
            seeds: 1,
        }
    }

    /// The same with these settings, one list after the other.
    pub const fn with(self, settings: &'static [Settings]) -> Self {
        ShortCampaign { settings, ..self }
    }

    /// The same with so many threads.
    pub const fn threads(self, threads: u16) -> Self {
        ShortCampaign { threads, ..self }
    }

    /// The same with so many operations.
    pub const fn ops(self, ops: u64) -> Self {
        ShortCampaign { ops, ..self }
    }

    /// The same with so many crash points.
    pub const fn points(self, points: u64) -> Self {
        ShortCampaign { points, ..self }
    }

    /// The same with other faults at the crash points.
    pub const fn faults(self, faults: &'static [&'static str]) -> Self {
        ShortCampaign { faults, ..self }
    }

    /// The same on another domain.
    pub const fn on(self, domain: Domain) -> Self {
        ShortCampaign { domain: Some(domain), ..self }
    }

    /// The same with transactions that are aborted and retried once.
    pub const fn rehearsed(self) -> Self {
        ShortCampaign { rehearsals: true, ..self }
    }

    /// The same with so many seeds.
    pub const fn seeds(self, seeds: u64) -> Self {
        ShortCampaign { seeds, ..self }
    }
}

/// How the random tester treats a design: it drives the memory system without programs, on machines of many shapes.
#[derive(Clone, Copy, Debug)]
pub struct RandomTester {
    /// Parameters of the design, drawn in this order.
    pub draws: &'static [Draw],
    /// What is drawn besides on several cores.
    pub draws_on_many_cores: &'static [Draw],
    /// A region that is as small as the machine accepts.
    pub smallest_region: Option<SmallestRegion>,
    /// Sizes that are never made small: transactions that fill such a structure stop the run, as the paper leaves them no other
    /// end.
    pub sizes_kept: &'static [&'static str],
    /// What threads lock before they store, on one core.
    pub locking: Locking,
    /// What threads of several cores lock; one of these is drawn.
    pub locking_on_many_cores: &'static [Locking],
    /// The design is shown requests of other cores, and grants them all the same.
    pub probes_isolate_nothing: bool,
    /// The hardware aborts nothing by itself.
    pub never_aborts: bool,
    /// Marks that more than one run in ten has to meet.
    pub common_marks: &'static [&'static str],
    /// Marks that more than one run in twenty has to meet.
    pub rare_marks: &'static [&'static str],
    /// Whether no request of the design ever waits for the memory system.
    pub never_waits: bool,
    /// Planted faults that no campaign with programs has shown so far; they are in no list of the design.
    pub further_faults: &'static [&'static str],
    /// Faults that cannot be seen in programs whose threads lock what they write, but without locks.
    pub seen_without_locks: &'static [&'static str],
    /// Faults that need more transactions, or larger ones, than the tester makes.
    pub out_of_reach: &'static [&'static str],
    /// Faults that show themselves in few runs, and the runs they get.
    pub runs_of_rare_faults: &'static [(&'static str, u64)],
}

impl RandomTester {
    /// A design whose parameters stay as they are and whose hardware isolates transactions.
    pub const USUAL: RandomTester = RandomTester {
        draws: &[],
        draws_on_many_cores: &[],
        smallest_region: None,
        sizes_kept: &[],
        locking: Locking::Nothing,
        locking_on_many_cores: &[Locking::Nothing],
        probes_isolate_nothing: false,
        never_aborts: false,
        common_marks: &[],
        rare_marks: &[],
        never_waits: false,
        further_faults: &[],
        seen_without_locks: &[],
        out_of_reach: &[],
        runs_of_rare_faults: &[],
    };
}

/// What programs have to lock, because the hardware does not keep transactions apart that touch it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locking {
    /// Nobody locks anything: the hardware isolates, or there is nothing to isolate.
    Nothing,
    /// Words of eight bytes: lines are shared falsely.
    Words,
    /// Blocks of 32 bytes: what a log entry covers.
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

/// A parameter with values to choose from, as they stand in a setting.
#[derive(Clone, Copy, Debug)]
pub struct Values {
    /// The path of the parameter.
    pub parameter: &'static str,
    /// Its values.
    pub values: &'static [&'static str],
}

impl Values {
    /// A parameter with these values.
    pub const fn of(parameter: &'static str, values: &'static [&'static str]) -> Self {
        Values { parameter, values }
    }
}

/// Settings that the random tester draws.
#[derive(Clone, Copy, Debug)]
pub struct Draw {
    /// One run in so many takes it.
    pub one_in: u64,
    /// What is drawn then.
    pub choice: Choice,
}

/// Settings to choose from.
#[derive(Clone, Copy, Debug)]
pub enum Choice {
    /// One value of a parameter.
    Value(Values),
    /// One of several lists of settings.
    OneOf(&'static [Settings]),
    /// All of these settings.
    All(Settings),
}

impl Draw {
    /// Every run draws a value of this parameter.
    pub const fn always(parameter: &'static str, values: &'static [&'static str]) -> Self {
        Draw { one_in: 1, choice: Choice::Value(Values::of(parameter, values)) }
    }

    /// Half of the runs draw a value of this parameter.
    pub const fn half(parameter: &'static str, values: &'static [&'static str]) -> Self {
        Draw { one_in: 2, choice: Choice::Value(Values::of(parameter, values)) }
    }
}

/// A region of persistent memory that is as small as the machine accepts, and some bytes larger.
#[derive(Clone, Copy, Debug)]
pub struct SmallestRegion {
    /// The parameter that gives its size.
    pub parameter: &'static str,
    /// Runs that set this parameter, and no others, get such a region.
    pub if_set: &'static str,
    /// Bytes that are added for each controller; one of these is drawn.
    pub spare_bytes: &'static [u64],
}

/// Other values of parameters that rest on an assumption.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Alternatives {
    /// The key of DEVIATIONS.md.
    pub key: &'static str,
    /// What is tried, beside the parameters as they are; `--arg NAME=VALUE` is an argument of the workload. Variants of
    /// several designs that rest on the key are measured together: their first lists at once, their second ones, and so on.
    pub points: &'static [Settings],
    /// The workload.
    pub workload: &'static str,
    /// Its threads.
    pub threads: u16,
    /// The machines that have room for it; all that are usual if there are none.
    pub machines: &'static [&'static str],
    /// Variants that stand beside for comparison.
    pub beside: &'static [&'static str],
}

impl Alternatives {
    /// Points at which a B+-tree runs with one thread.
    pub const fn of(key: &'static str, points: &'static [Settings]) -> Self {
        Alternatives { key, points, workload: "btree", threads: 1, machines: &[], beside: &[] }
    }

    /// The same with so many threads of another workload.
    pub const fn shared_by(self, workload: &'static str, threads: u16) -> Self {
        Alternatives { workload, threads, ..self }
    }
}
