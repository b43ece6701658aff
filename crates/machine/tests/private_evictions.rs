//! Versions that leave private levels: a design that names the hook is asked with the level, the core and the thread, and
//! each of its answers is carried out.

use durasim_contract::{
    AbortCause, Actions, Backend, Ctx, Design, Durability, ErasedDesign, Evict, Gate, Geometry, HardwareCost, Hooks,
    Interface, LevelId, LineTag, Promise, RegionRequest, SpecError, Stateful, Store, Token, Variant, Wait, kept,
};
use durasim_core::{Outcome, PendingStore};
use durasim_machine::{MachineConfig, PMEM_BASE, Plan, System, presets};
use durasim_types::{Cause, CoreId, Cycle, Domain, Line, LineAddr, PhysAddr, Stats, TxId};
use serde::{Deserialize, Serialize};
use std::sync::Mutex;

/// Answer of the design at private levels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
enum Answer {
    #[default]
    Proceed,
    /// Waits 300 cycles, 100 ns, the first time it is asked about a line.
    AfterOnce,
    /// Written to another place.
    To,
    Drop,
    Abort,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct AskedSpec {
    #[serde(default)]
    answer: Answer,
}

type Seen = (LevelId, CoreId, u32, u64);
/// Questions to the design of the running test: level, core, thread and line.
static SEEN: Mutex<Vec<Seen>> = Mutex::new(Vec::new());
/// The design is found by type, so its tests take turns.
static TURN: Mutex<()> = Mutex::new(());

const CORE: CoreId = CoreId(0);
/// Target of the writes of `Answer::To`.
const ELSEWHERE: u64 = 1 << 12;

#[derive(Clone)]
struct Asked {
    answer: Answer,
    waited: Vec<LineAddr>,
}

impl Stateful for Asked {
    kept!(waited: Vec<LineAddr>);
}

impl Durability for Asked {
    fn store(&mut self, _: &Ctx, store: &Store<'_>, tag: &mut LineTag, _: &mut Actions) -> Gate {
        *tag = LineTag(store.tx.map_or(0, |tx| tx.0));
        Gate::Done
    }
    fn tx_abort(&mut self, _: &Ctx, tx: TxId, _: AbortCause, out: &mut Actions) -> Gate {
        out.push(durasim_contract::Action::InvalidateTagged(tx));
        Gate::Done
    }
    fn belongs_to(&self, tag: LineTag, tx: TxId) -> bool {
        tag.0 == tx.0
    }
    fn evict(&mut self, cx: &Ctx, from: LevelId, line: LineAddr, tag: LineTag, _: &Line, _: &mut Actions) -> Evict {
        if from == LevelId::Llc {
            return Evict::Proceed;
        }
        SEEN.lock().unwrap().push((from, cx.core, cx.thread, line.0 - PMEM_BASE.line().0));
        match self.answer {
            Answer::Proceed => Evict::Proceed,
            Answer::AfterOnce if self.waited.contains(&line) => Evict::Proceed,
            Answer::AfterOnce => {
                self.waited.push(line);
                Evict::After(Wait::Cycles(300))
            }
            Answer::To => {
                Evict::To { at: line.base().plus(64 * ELSEWHERE), cause: Cause::Log, token: Some(Token(line.0)) }
            }
            Answer::Drop => Evict::Drop,
            Answer::Abort => Evict::Abort(TxId(tag.0), AbortCause::Capacity),
        }
    }
    fn stats(&self, _: &mut Stats) {}
}

struct AskedDesign;

impl Design for AskedDesign {
    const NAME: &'static str = "asked";
    const HOOKS: Hooks = Hooks::TX.with(Hooks::STORE).with(Hooks::EVICT).with(Hooks::EVICT_PRIVATE);
    type Spec = AskedSpec;

    fn reserve(_: &AskedSpec, _: &Geometry) -> Vec<RegionRequest> {
        Vec::new()
    }
    fn build(spec: &AskedSpec, _: &Geometry) -> Result<impl Stateful, SpecError> {
        Ok(Asked { answer: spec.answer, waited: Vec::new() })
    }
    fn recover(
        _: &AskedSpec,
        _: &Geometry,
        _: &mut durasim_contract::CrashImage,
    ) -> Result<durasim_contract::RecoveryReport, durasim_contract::RecoveryCut> {
        Ok(durasim_contract::RecoveryReport::default())
    }
    fn cost(_: &AskedSpec, _: &Geometry) -> HardwareCost {
        HardwareCost::default()
    }
}

fn machine(answer: &str, inclusion: &str) -> System {
    let sets = [format!("interconnect.inclusion={inclusion}"), format!("design.asked.answer={answer}")];
    let config = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &sets).unwrap();
    let variant = Variant {
        name: "asked",
        aliases: &[],
        hardware: ErasedDesign::of::<AskedDesign>(),
        backend: Backend::MARKERS,
        interfaces: &[Interface::Transactions],
        domains: &[Domain::Adr],
        promise: Promise::Immediate,
        control: true,
        summary: "",
        paper: "",
        assumptions: &[],
        locking: durasim_contract::Locking::Nothing,
        path_faults: &[],
        equivalent_faults: &[],
    };
    SEEN.lock().unwrap().clear();
    System::new(&config, &Plan::new(&config, &variant, Domain::Adr).unwrap()).unwrap()
}

fn place(line: u64) -> PhysAddr {
    PMEM_BASE.plus(64 * line)
}

/// Stores to `count` lines of one set of every level in one transaction: the first that is not done, else the cycle after.
fn fill_set(system: &mut System, count: u64) -> Result<Cycle, Outcome> {
    let tx = system.new_tx();
    let mut now = 0;
    assert_eq!(system.tx_begin(CORE, tx, now), Outcome::Done(0));
    for n in 0..count {
        let store = PendingStore::plain(place(8 * n), 8, n + 1, Some(tx));
        match system.store(CORE, &store, now + 1) {
            Outcome::Done(cycle) => now = cycle,
            other => return Err(other),
        }
    }
    Ok(now)
}

fn seen_at(level: LevelId) -> Vec<u64> {
    SEEN.lock().unwrap().iter().filter(|seen| seen.0 == level).map(|seen| seen.3).collect()
}

#[test]
fn a_victim_of_the_l1d_is_shown_with_its_level_core_and_thread_and_moves_down() {
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut system = machine("Proceed", "non-inclusive");
    system.assign_thread(CORE, 7);
    let now = fill_set(&mut system, 5).unwrap();
    // Four ways: the first line leaves the L1D for the fifth one.
    assert_eq!(*SEEN.lock().unwrap(), [(LevelId::L1d, CORE, 7, 0)]);
    assert_eq!(system.load(CORE, place(0), 8, None, now).0, 1);
}

#[test]
fn a_line_that_may_not_leave_yet_is_asked_for_again() {
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let at_once = fill_set(&mut machine("Proceed", "non-inclusive"), 5).unwrap();
    let mut system = machine("AfterOnce", "non-inclusive");
    let waited = fill_set(&mut system, 5).unwrap();
    assert_eq!(seen_at(LevelId::L1d), [0, 0]);
    assert_eq!(waited, at_once + 300);
}

#[test]
fn a_line_that_is_written_elsewhere_or_dropped_leaves_the_caches() {
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for (answer, elsewhere) in [("To", 1), ("Drop", 0)] {
        let mut system = machine(answer, "non-inclusive");
        let now = fill_set(&mut system, 5).unwrap();
        let now = system.drain_queues(now);
        assert_eq!(seen_at(LevelId::L1d), [0]);
        assert_eq!(system.load(CORE, place(0), 8, None, now).0, 0, "{answer}: home has not changed");
        assert_eq!(system.load(CORE, place(ELSEWHERE), 8, None, now).0, elsewhere, "{answer}");
    }
}

#[test]
fn a_line_that_cannot_leave_aborts_its_transaction() {
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut system = machine("Abort", "non-inclusive");
    let aborted = fill_set(&mut system, 5).unwrap_err();
    assert!(matches!(aborted, Outcome::Aborted(_, code) if code == AbortCause::Capacity.code()), "{aborted:?}");
    assert_eq!(system.load(CORE, place(0), 8, None, 10_000).0, 0, "its versions are gone");
}

#[test]
fn with_inclusion_lines_are_shown_that_a_level_below_loses() {
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut system = machine("Proceed", "inclusive");
    let now = fill_set(&mut system, 40).unwrap();
    assert!(!seen_at(LevelId::L1d).is_empty() && !seen_at(LevelId::L2).is_empty());
    system.check_all_lines().unwrap();
    for n in 0..40 {
        assert_eq!(system.load(CORE, place(8 * n), 8, None, now + 100_000).0, n + 1);
    }
}
