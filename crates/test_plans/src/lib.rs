//! Test plans: how each variant of the registry is tested. Tests, `durasim mutation`, campaigns, the random tester and the
//! measurements of assumptions read them, so that none of these names a design, and designs know nothing of their tests.

mod fwb;
mod hercules;
mod hoop;
mod kiln;
mod lad;
mod lad_llc;
mod p_inspect;
mod picl;
mod plan;
mod proteus;
mod reachability;
mod rtm;
mod small_runs;
mod software_logging;
mod tc;

use std::sync::OnceLock;

pub use plan::{
    Alternatives, Choice, CommonOnTiny, Draw, RandomTester, Settings, ShortCampaign, SmallestRegion, TestPlan, Values,
};

/// The test plan of each variant by the variant's name, in the order of the registry.
pub const TEST_PLANS: &[(&str, &TestPlan)] = &[
    ("opt", &small_runs::DEFAULT),
    ("swl-flush", &software_logging::UNDO_FLUSH),
    ("swl-eadr", &software_logging::UNDO_FENCE),
    ("sp", &software_logging::WRITE_AHEAD),
    ("sp-indirect", &software_logging::REDO),
    ("hercules", &hercules::PLAN),
    ("tc", &tc::PLAN),
    ("kiln", &kiln::PLAN),
    ("kiln-eadr", &kiln::PLAN_EADR),
    ("proteus", &proteus::PLAN),
    ("proteus-eadr", &proteus::PLAN_EADR),
    ("fwb", &fwb::PLAN),
    ("fwb-eadr", &fwb::PLAN_EADR),
    ("picl", &picl::PLAN),
    ("hoop", &hoop::PLAN),
    ("hoop-eadr", &hoop::PLAN_EADR),
    ("lad", &lad::PLAN),
    ("lad-base", &lad::PLAN),
    ("lad-llc", &lad_llc::PLAN),
    ("autopersist", &reachability::AUTOPERSIST),
    ("ideal-r", &reachability::IDEAL),
    ("p-inspect--", &p_inspect::PLAN_SEPARATE),
    ("p-inspect", &p_inspect::PLAN),
    ("htm-sgl", &rtm::SGL),
    ("spht-eadr", &rtm::SPHT),
    ("spht-eadr-flush", &rtm::SPHT),
    ("spht", &rtm::TIMED),
    ("nv-htm", &rtm::NV_HTM),
];

type Plans = Vec<(&'static str, &'static TestPlan)>;

/// The test plans of designs that another crate has added to the registry.
static ADDED: OnceLock<Plans> = OnceLock::new();

/// Adds the test plans of designs of another crate, by the names of their variants. Returns whether this was the first
/// call in the process; another one changes nothing.
#[must_use]
pub fn add_test_plans(plans: Plans) -> bool {
    ADDED.set(plans).is_ok()
}

/// The test plan of each variant by its name: those of the registry, then those that were added.
pub fn all_test_plans() -> impl Iterator<Item = (&'static str, &'static TestPlan)> {
    TEST_PLANS.iter().chain(ADDED.get().into_iter().flatten()).copied()
}

/// The test plan of a variant, by the variant's name.
///
/// # Panics
/// If it has none.
#[must_use]
pub fn test_plan(variant: &str) -> &'static TestPlan {
    let found = all_test_plans().find(|(name, _)| *name == variant);
    found.unwrap_or_else(|| panic!("{variant} has no test plan in TEST_PLANS")).1
}

#[cfg(test)]
mod tests {
    use super::*;
    use durasim_designs::VARIANTS;

    #[test]
    fn each_variant_has_one_plan_and_each_plan_a_variant() {
        let planned: Vec<&str> = TEST_PLANS.iter().map(|(name, _)| *name).collect();
        let registered: Vec<&str> = VARIANTS.iter().map(|variant| variant.name).collect();
        assert_eq!(planned, registered);
    }

    #[test]
    fn plans_name_faults_and_marks_that_exist() {
        for variant in VARIANTS {
            let plan = test_plan(variant.name);
            let planted: Vec<&str> = variant.planted().map(|fault| fault.name).collect();
            for fault in plan.random.out_of_reach.iter().chain(plan.random.seen_without_locks) {
                assert!(planted.contains(fault), "{}: {fault}", variant.name);
            }
            let marks = [variant.hardware.marks, variant.backend.situations].concat();
            let random = plan.random.common_marks.iter().chain(plan.random.rare_marks);
            for mark in plan.common_on_tiny.marks.iter().chain(random) {
                assert!(marks.contains(mark), "{}: {mark}", variant.name);
            }
        }
    }
}
