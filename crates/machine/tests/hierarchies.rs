//! Hierarchies that are refused, and how many lines of a set may have TransTags.

use durasim_contract::LevelId;
use durasim_core::{Outcome, PendingStore};
use durasim_machine::{CopyLocation, MachineConfig, PMEM_BASE, Plan, System, presets};
use durasim_types::{CoreId, Cycle, Domain, PhysAddr, TxId};

const CORE: CoreId = CoreId(0);

fn plan(variant: &str, sets: &[String]) -> Result<(MachineConfig, Plan), durasim_types::ConfigError> {
    let config = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), sets)?;
    let plan = Plan::new(&config, durasim_designs::variant(variant).unwrap(), Domain::Eadr)?;
    Ok((config, plan))
}

/// Section 4.5.1 of the Hercules paper "rules out the exclusivity of a cache line"; for the others it is not supported.
#[test]
fn exclusive_hierarchies_are_refused() {
    let sets = ["interconnect.inclusion=\"exclusive\"".to_owned()];
    let refusal = plan("hercules", &sets).map(drop).unwrap_err();
    assert_eq!(refusal.field, "design.hercules");
    assert!(refusal.problem.contains("the older version of a line") && refusal.problem.contains("section 4.5.1"));
    for variant in ["opt", "swl-flush", "tc"] {
        let domain = if variant == "tc" { Domain::NvTc } else { Domain::Eadr };
        let config = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &sets).unwrap();
        let refusal = Plan::new(&config, durasim_designs::variant(variant).unwrap(), domain).map(drop).unwrap_err();
        assert_eq!(refusal.field, "interconnect.inclusion");
        assert!(refusal.problem.contains("exclusive caches are not supported"), "{}", refusal.problem);
    }
}

/// Lines of the same set of every cache of `tiny`, of a set of four ways.
fn word(number: u64) -> PhysAddr {
    PMEM_BASE.plus(64 + number * 8 * 64)
}

struct Transaction {
    system: System,
    tx: TxId,
    now: Cycle,
}

impl Transaction {
    fn new(percent: u32, inclusion: &str) -> Self {
        let sets = [
            format!("design.hercules.trans_tag_percent_l1d={percent}"),
            format!("interconnect.inclusion=\"{inclusion}\""),
        ];
        let (config, plan) = plan("hercules", &sets).unwrap();
        let mut system = System::new(&config, &plan).unwrap();
        let tx = system.new_tx();
        let Outcome::Done(now) = system.tx_begin(CORE, tx, 30_000) else { panic!("refused") };
        Transaction { system, tx, now: now + 10_000 }
    }

    fn store(&mut self, number: u64, data: u64) {
        let store = PendingStore::plain(word(number), 8, data, Some(self.tx));
        let Outcome::Done(done) = self.system.store(CORE, &store, self.now) else { panic!("refused") };
        self.now = done + 10_000;
    }

    fn load(&mut self, number: u64) -> u64 {
        let (value, done) = self.system.load(CORE, word(number), 8, Some(self.tx), self.now);
        self.now = done + 10_000;
        value
    }

    /// The lines, of this many, that have their tag in the L1D.
    fn tagged_in_l1d(&self, lines: u64) -> Vec<u64> {
        assert_eq!(self.system.check_all_lines(), Ok(()));
        let is_there = |number: &u64| {
            let copies = self.system.copies(word(*number).line());
            copies.iter().any(|c| c.place == CopyLocation::Cache(LevelId::L1d, Some(CORE)) && c.tag.is_some())
        };
        (0..lines).filter(is_there).collect()
    }
}

/// Section 4.1: a part of the lines of a set have TransTags. A store that would be one too many makes the oldest line of
/// a transaction leave, a line that comes up or from the log likewise.
#[test]
fn a_set_of_the_l1d_has_no_more_tags_than_its_share() {
    const LINES: u64 = 14;
    for inclusion in ["inclusive", "non-inclusive"] {
        for (percent, limit) in [(1, 1), (25, 1), (50, 2), (75, 3), (100, 4)] {
            let mut run = Transaction::new(percent, inclusion);
            for number in 0..LINES {
                run.store(number, 100 + number);
                let tagged = run.tagged_in_l1d(LINES);
                let first = (number + 1).saturating_sub(limit);
                // If every line has a tag, an L2 as small as the L1D takes lines away as well.
                let exact = limit == 4 || tagged == (first..=number).collect::<Vec<_>>();
                assert!(exact && tagged.contains(&number), "{percent} %: {tagged:?} after {number}");
            }
            let flushes = |run: &Transaction| run.system.stats().get("hercules.premature_flushes").unwrap();
            assert!(flushes(&run) > 0.0, "lines of all levels and of the log come back");
            for number in (0..LINES).chain((0..LINES).rev()) {
                assert_eq!(run.load(number), 100 + number, "{percent} %");
                let tagged = run.tagged_in_l1d(LINES);
                assert!(tagged.contains(&number) && tagged.len() as u64 <= limit, "{percent} %: {tagged:?}");
            }
            // A line that has its tag takes no other one's.
            let before = run.tagged_in_l1d(LINES);
            run.store(before[0], 1);
            assert_eq!(run.tagged_in_l1d(LINES), before);
            let Outcome::Done(_) = run.system.tx_commit(CORE, run.tx, run.now) else { panic!("refused") };
            assert_eq!(run.tagged_in_l1d(LINES), [0; 0]);
        }
    }
}
