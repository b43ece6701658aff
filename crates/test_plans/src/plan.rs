//! The parts of a test plan.

use durasim_contract::Locking;
use durasim_types::Domain;

/// Settings in the form of `--set`: `path.to.key=value`.
pub type Settings = &'static [&'static str];

/// The test plan of a variant.
#[derive(Clone, Copy, Debug)]
pub struct TestPlan {
    /// Crash campaigns that have to catch planted faults, those that are quick and catch the most first. The design without
    /// a fault has to pass them.
    pub campaigns: &'static [&'static [ShortCampaign]],
    /// Planted faults of different kinds that these campaigns catch quickly. The tests of every commit run no others.
    pub quick_faults: &'static [&'static str],
    /// The planted fault whose recovery misses one transaction's data. If no test catches it, the tests check nothing.
    pub canary: Option<&'static str>,
    /// Options of the random tester for this variant.
    pub random: RandomTester,
    /// Situations that have to occur in ordinary runs on the machine `tiny`.
    pub common_on_tiny: CommonOnTiny,
    /// Settings of `tiny` under which a run of a few transactions contains rare events, such as the end of an epoch.
    pub short_run_settings: Settings,
    /// Settings of `tiny` for long campaigns, under which queues and logs overflow and identifiers wrap around.
    pub overflow_settings: Settings,
    /// Other values of its parameters, at which the effects of assumptions (DEVIATIONS.md) are measured.
    pub alternatives: &'static [Alternatives],
}

impl TestPlan {
    /// A plan without campaigns, the base of all others.
    pub const EMPTY: TestPlan = TestPlan {
        campaigns: &[],
        quick_faults: &[],
        canary: None,
        random: RandomTester::DEFAULT,
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
    /// Marks ([`durasim_contract::Durability::marks`]) that hold at crash points of a short campaign.
    pub marks: &'static [&'static str],
}

/// A crash campaign with one workload on the machine `tiny`.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct ShortCampaign {
    /// The workload.
    pub workload: &'static str,
    /// Names and values of its arguments.
    pub arguments: &'static [(&'static str, &'static str)],
    /// Number of guest threads.
    pub threads: u16,
    /// Number of operations.
    pub ops: u64,
    /// Number of persist events to crash at.
    pub points: u64,
    /// Kinds of power failure; if empty, the default kinds of campaigns.
    pub faults: &'static [&'static str],
    /// Parameters that differ from those of `tiny`; the last value of a parameter counts.
    pub settings: &'static [Settings],
    /// The persistence domain, if it is not the default of the variant.
    pub domain: Option<Domain>,
    /// Whether every transaction is aborted and retried once before it commits.
    pub abort_each_once: bool,
    /// Number of runs, each with its own seed: a race within a few cycles occurs in some runs only.
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
            abort_each_once: false,
            seeds: 1,
        }
    }

    /// Replaces the settings by these lists, which apply in their order.
    pub const fn with(self, settings: &'static [Settings]) -> Self {
        ShortCampaign { settings, ..self }
    }

    /// Replaces the number of threads.
    pub const fn threads(self, threads: u16) -> Self {
        ShortCampaign { threads, ..self }
    }

    /// Replaces the number of operations.
    pub const fn ops(self, ops: u64) -> Self {
        ShortCampaign { ops, ..self }
    }

    /// Replaces the number of crash points.
    pub const fn points(self, points: u64) -> Self {
        ShortCampaign { points, ..self }
    }

    /// Replaces the kinds of power failure.
    pub const fn faults(self, faults: &'static [&'static str]) -> Self {
        ShortCampaign { faults, ..self }
    }

    /// Replaces the persistence domain.
    pub const fn on(self, domain: Domain) -> Self {
        ShortCampaign { domain: Some(domain), ..self }
    }

    /// Aborts and retries each transaction once before it commits.
    pub const fn with_abort_and_retry(self) -> Self {
        ShortCampaign { abort_each_once: true, ..self }
    }

    /// Replaces the number of seeds.
    pub const fn seeds(self, seeds: u64) -> Self {
        ShortCampaign { seeds, ..self }
    }
}

/// Options of the random tester, which drives the memory system without programs on machines of many shapes.
#[derive(Clone, Copy, Debug)]
pub struct RandomTester {
    /// Draws of parameters of the design, in this order.
    pub draws: &'static [Draw],
    /// Further draws on machines with several cores.
    pub draws_on_many_cores: &'static [Draw],
    /// A region that is made as small as the machine accepts.
    pub smallest_region: Option<SmallestRegion>,
    /// Sizes that are never made small, because a transaction that fills the structure ends the run: the paper says nothing
    /// else.
    pub sizes_kept: &'static [&'static str],
    /// Data that threads of several cores lock before they store; one of these is drawn. Threads of one core lock
    /// [`durasim_contract::Variant::locking`].
    pub locking_on_many_cores: &'static [Locking],
    /// Whether the design names the hook of requests of other cores but isolates no transaction with it.
    pub probes_isolate_nothing: bool,
    /// Whether the hardware never aborts a transaction by itself.
    pub never_aborts: bool,
    /// Marks that have to hold in more than one run in ten.
    pub common_marks: &'static [&'static str],
    /// Marks that have to hold in more than one run in twenty.
    pub rare_marks: &'static [&'static str],
    /// Whether no request of the design ever waits for the memory system.
    pub never_waits: bool,
    /// Planted faults that no campaign with programs has caught so far; they are in no list of the design.
    pub further_faults: &'static [&'static str],
    /// Faults that are visible only if threads do not lock the data that they write.
    pub seen_without_locks: &'static [&'static str],
    /// Faults that need more transactions, or larger ones, than the tester generates.
    pub out_of_reach: &'static [&'static str],
    /// Faults that are visible in few runs, and the number of runs to try.
    pub runs_of_rare_faults: &'static [(&'static str, u64)],
}

impl RandomTester {
    /// Options for a design whose parameters keep their values and whose hardware isolates transactions.
    pub const DEFAULT: RandomTester = RandomTester {
        draws: &[],
        draws_on_many_cores: &[],
        smallest_region: None,
        sizes_kept: &[],
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

/// A parameter and values for it, in the form of a setting.
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
    /// The draw is made in one run out of this number.
    pub one_in: u64,
    /// The settings to draw from.
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
    /// A value of this parameter in every run.
    pub const fn always(parameter: &'static str, values: &'static [&'static str]) -> Self {
        Draw { one_in: 1, choice: Choice::Value(Values::of(parameter, values)) }
    }

    /// A value of this parameter in half of the runs.
    pub const fn half(parameter: &'static str, values: &'static [&'static str]) -> Self {
        Draw { one_in: 2, choice: Choice::Value(Values::of(parameter, values)) }
    }
}

/// A region of persistent memory of the smallest size that the machine accepts, or a few bytes more.
#[derive(Clone, Copy, Debug)]
pub struct SmallestRegion {
    /// The parameter that gives its size.
    pub parameter: &'static str,
    /// Only runs that set this parameter have such a region.
    pub if_set: &'static str,
    /// Bytes to add for each controller; one of these is drawn.
    pub spare_bytes: &'static [u64],
}

/// Other values of the parameters of an assumption.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Alternatives {
    /// The key of DEVIATIONS.md.
    pub key: &'static str,
    /// Settings to measure beside the defaults; `--arg NAME=VALUE` is an argument of the workload. Variants of several designs
    /// with the same key are measured together: their first lists in one measurement, their second lists in the next.
    pub points: &'static [Settings],
    /// The workload.
    pub workload: &'static str,
    /// Number of threads.
    pub threads: u16,
    /// Machines that have room for it; if empty, the default machines.
    pub machines: &'static [&'static str],
    /// Variants to measure with it for comparison.
    pub beside: &'static [&'static str],
}

impl Alternatives {
    /// Points that are measured with a B+-tree and one thread.
    pub const fn of(key: &'static str, points: &'static [Settings]) -> Self {
        Alternatives { key, points, workload: "btree", threads: 1, machines: &[], beside: &[] }
    }

    /// Replaces the workload and the number of threads.
    pub const fn shared_by(self, workload: &'static str, threads: u16) -> Self {
        Alternatives { workload, threads, ..self }
    }
}
