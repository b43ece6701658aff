//! The memories by themselves: the cause of a write home, what a power failure finds, and cleans that no fence covers.

use super::Memories;
use crate::setup::config::MachineConfig;
use crate::setup::memory_map::{DRAM_BASE, PMEM_BASE, is_pmem};
use crate::setup::plan::Plan;
use crate::setup::presets;
use durasim_memory::Write;
use durasim_types::{Cause, CoreId, DataRange, Domain, LineAddr};

fn memories(domain: Domain) -> Memories {
    let config = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &[]).unwrap();
    let plan = Plan::new(&config, &durasim_designs::VARIANTS[0], domain).unwrap();
    Memories::new(&config, &plan.geometry, false)
}

fn line(n: u64) -> LineAddr {
    LineAddr(PMEM_BASE.line().0 + n)
}

#[test]
fn a_line_outside_of_the_declared_data_is_the_log_of_the_program() {
    let mut memories = memories(Domain::Adr);
    assert!(is_pmem(line(0)) && !is_pmem(DRAM_BASE.line()));
    assert_eq!(memories.home_cause(line(3)), Cause::Data, "nothing is declared");
    memories.declare_data(Some(DataRange { base: line(2).base(), size_bytes: 64 }));
    let causes = [line(1), line(2), line(3), DRAM_BASE.line()].map(|line| memories.home_cause(line));
    assert_eq!(causes, [Cause::Log, Cause::Data, Cause::Log, Cause::Data]);
}

#[test]
fn a_queue_survives_where_the_domain_says_so() {
    for (domain, survives) in [(Domain::Adr, true), (Domain::Media, false)] {
        let mut memories = memories(domain);
        assert!(memories.submit(Write::line(line(1), [7; 64], Cause::Data), 0));
        assert_eq!(memories.peek(line(1)), [7; 64]);
        assert_eq!(memories.durable_pmem().line(line(1)), [if survives { 7 } else { 0 }; 64], "{domain}");
    }
}

#[test]
fn an_unfenced_clean_may_or_may_not_have_been_accepted() {
    let mut memories = memories(Domain::Adr);
    memories.track_unfenced_cleans();
    let core = CoreId(0);
    let clean = Write::line(line(1), [7; 64], Cause::Data);
    memories.note_unfenced(core, &clean, true);
    assert!(memories.submit(clean, 0));
    let durable = memories.durable_pmem();
    assert_eq!(memories.unfenced_versions(|l| durable.line(l)), [(line(1), vec![[0; 64], [7; 64]])]);
    memories.fenced(CoreId(1));
    assert_eq!(memories.unfenced_versions(|l| durable.line(l)).len(), 1, "another core's fence does not cover it");
    memories.fenced(core);
    assert_eq!(memories.unfenced_versions(|l| durable.line(l)), []);
}

#[test]
fn a_clean_of_a_few_bytes_stands_on_what_a_volatile_queue_holds() {
    let mut memories = memories(Domain::Media);
    memories.track_unfenced_cleans();
    assert!(memories.submit(Write::line(line(1), [7; 64], Cause::Data), 0));
    let clean = Write { mask: 1, ..Write::line(line(1), [9; 64], Cause::Data) };
    memories.note_unfenced(CoreId(0), &clean, true);
    assert!(memories.submit(clean, 0));
    let mut both = [7; 64];
    both[0] = 9;
    let durable = memories.durable_pmem();
    assert_eq!(memories.unfenced_versions(|l| durable.line(l)), [(line(1), vec![[0; 64], [7; 64], both])]);
}
