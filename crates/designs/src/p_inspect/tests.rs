//! Decisions about accesses: the tables over all conditions, and the way of objects through the filters.

use super::tables::{CHECK_H_AND_V, CHECK_V, Conditions, Holder, LOAD_CHECK, LOG_STORE, Value, load, store};
use super::{FilterHash, PInspect, PInspectSeparate, PInspectSpec};
use crate::testing::geometry;
use durasim_contract::{AnyState, Checks, CrashImage, Design, Hooks, SpecError, snapshot};
use durasim_types::{
    AccessKind, CheckRegisters, CheckVerdict, CheckedAccess, FILTER_LINES, FilterOperation, Line, Pages, SEED_LINE,
};

const PERSISTENT: CheckVerdict = CheckVerdict::Hardware { persistent: true };
const PLAIN: CheckVerdict = CheckVerdict::Hardware { persistent: false };
const NVM: bool = true;
const DRAM: bool = false;

/// A row of Table IV: an empty condition fits anything.
struct Row {
    holder_in_nvm: bool,
    holder_in_fwd: Option<bool>,
    value_in_nvm: Option<bool>,
    value_in_fwd: Option<bool>,
    value_in_trans: Option<bool>,
    in_transaction: Option<bool>,
    verdict: CheckVerdict,
}

/// Table IV, with the rows that the text distinguishes (section V-D): handler 1 for either object, handler 2 for either
/// reason.
const TABLE_IV: [Row; 8] = [
    Row::of(NVM, None, Some(NVM), None, Some(false), Some(false), PERSISTENT),
    Row::of(DRAM, Some(false), Some(DRAM), Some(false), None, None, PLAIN),
    Row::of(DRAM, Some(false), Some(NVM), None, None, None, PLAIN),
    Row::of(DRAM, Some(true), None, None, None, None, CheckVerdict::Handler(CHECK_H_AND_V)),
    Row::of(DRAM, Some(false), Some(DRAM), Some(true), None, None, CheckVerdict::Handler(CHECK_H_AND_V)),
    Row::of(NVM, None, Some(DRAM), None, None, None, CheckVerdict::Handler(CHECK_V)),
    Row::of(NVM, None, Some(NVM), None, Some(true), None, CheckVerdict::Handler(CHECK_V)),
    Row::of(NVM, None, Some(NVM), None, Some(false), Some(true), CheckVerdict::Handler(LOG_STORE)),
];

impl Row {
    const fn of(
        holder_in_nvm: bool,
        holder_in_fwd: Option<bool>,
        value_in_nvm: Option<bool>,
        value_in_fwd: Option<bool>,
        value_in_trans: Option<bool>,
        in_transaction: Option<bool>,
        verdict: CheckVerdict,
    ) -> Self {
        Row { holder_in_nvm, holder_in_fwd, value_in_nvm, value_in_fwd, value_in_trans, in_transaction, verdict }
    }

    fn fits(&self, bits: [bool; 6]) -> bool {
        let conditions = [
            Some(self.holder_in_nvm),
            self.holder_in_fwd,
            self.value_in_nvm,
            self.value_in_fwd,
            self.value_in_trans,
            self.in_transaction,
        ];
        conditions.into_iter().zip(bits).all(|(wanted, bit)| wanted.is_none_or(|wanted| wanted == bit))
    }
}

fn holder(in_nvm: bool, may_forward: bool) -> Holder {
    if in_nvm { Holder::InNvm } else { Holder::InDram { may_forward } }
}

fn value(in_nvm: bool, may_forward: bool, may_be_queued: bool) -> Value {
    if in_nvm { Value::InNvm { may_be_queued } } else { Value::InDram { may_forward } }
}

#[test]
fn stores_of_references_go_by_table_iv() {
    for number in 0..64u32 {
        let bits: [bool; 6] = std::array::from_fn(|n| number >> n & 1 != 0);
        let rows: Vec<&Row> = TABLE_IV.iter().filter(|row| row.fits(bits)).collect();
        assert_eq!(rows.len(), 1, "the rows cover {bits:?} once");
        let conditions = Conditions {
            holder: holder(bits[0], bits[1]),
            value: value(bits[2], bits[3], bits[4]),
            in_transaction: bits[5],
        };
        assert_eq!(store(&conditions), rows[0].verdict, "{conditions:?}");
    }
}

/// Section V-C: without a value object its conditions fall away; loads go by Table V and log nothing.
#[test]
fn stores_of_other_values_and_loads() {
    for in_transaction in [false, true] {
        let of = |holder| store(&Conditions { holder, value: Value::NotAnObject, in_transaction });
        assert_eq!(of(Holder::InNvm), if in_transaction { CheckVerdict::Handler(LOG_STORE) } else { PERSISTENT });
        assert_eq!(of(Holder::InDram { may_forward: false }), PLAIN);
        assert_eq!(of(Holder::InDram { may_forward: true }), CheckVerdict::Handler(CHECK_H_AND_V));
    }
    assert_eq!(load(Holder::InNvm), PLAIN);
    assert_eq!(load(Holder::InDram { may_forward: false }), PLAIN);
    assert_eq!(load(Holder::InDram { may_forward: true }), CheckVerdict::Handler(LOAD_CHECK));
}

/// The filter lines of a process and a hart with a persistent heap.
pub(super) struct Process {
    pub checks: Box<dyn Checks>,
    pub lines: [Line; FILTER_LINES],
    pub registers: CheckRegisters,
}

pub(super) const PERSISTENT_OBJECT: u64 = 0x1000_0400;
pub(super) const VOLATILE_OBJECT: u64 = 0x4400;

impl Process {
    pub fn new(spec: &PInspectSpec) -> Self {
        let mut registers = CheckRegisters::default();
        registers.0[CheckRegisters::HEAP_BASE] = 0x1000_0000;
        registers.0[CheckRegisters::HEAP_LIMIT] = 0x2000_0000;
        let checks = PInspect::checks(spec, &geometry::<PInspect>(spec, 1)).unwrap().unwrap();
        Process { checks, lines: [[0; 64]; FILTER_LINES], registers }
    }

    pub fn check(&self, kind: AccessKind, base: u64, value: u64) -> CheckVerdict {
        let access = CheckedAccess { kind, base, offset: 8, value };
        self.checks.verdict(&self.registers, &access, &self.lines.each_ref())
    }

    pub fn update(&mut self, operation: FilterOperation, object: u64) -> u64 {
        self.checks.update(operation, object, &mut self.lines)
    }

    /// Whether the hardware takes an object of DRAM for a forwarding one.
    pub fn forwards(&self, object: u64) -> bool {
        self.check(AccessKind::Load, object, 0) == CheckVerdict::Handler(LOAD_CHECK)
    }

    /// Whether the hardware takes a persistent object for one whose closure is being moved.
    pub fn is_queued(&self, object: u64) -> bool {
        self.check(AccessKind::StoreBoth, PERSISTENT_OBJECT, object) == CheckVerdict::Handler(CHECK_V)
    }
}

#[test]
fn the_hardware_finishes_what_needs_no_look_at_objects() {
    let mut process = Process::new(&PInspectSpec::default());
    let other = PERSISTENT_OBJECT + 64;
    assert_eq!(process.check(AccessKind::StoreBoth, PERSISTENT_OBJECT, other), PERSISTENT);
    assert_eq!(process.check(AccessKind::StoreH, PERSISTENT_OBJECT, 7), PERSISTENT);
    assert_eq!(process.check(AccessKind::StoreBoth, VOLATILE_OBJECT, other), PLAIN, "this direction is always fine");
    assert_eq!(process.check(AccessKind::StoreH, VOLATILE_OBJECT, 7), PLAIN);
    for object in [PERSISTENT_OBJECT, VOLATILE_OBJECT] {
        assert_eq!(process.check(AccessKind::Load, object, 0), PLAIN);
    }
    process.registers.0[CheckRegisters::XACTION] = 1;
    for kind in [AccessKind::StoreH, AccessKind::StoreBoth] {
        assert_eq!(process.check(kind, PERSISTENT_OBJECT, other), CheckVerdict::Handler(LOG_STORE));
        assert_eq!(process.check(kind, VOLATILE_OBJECT, other), PLAIN);
    }
    assert_eq!(process.check(AccessKind::Load, PERSISTENT_OBJECT, 0), PLAIN);
    // Other bits of the register mean nothing.
    process.registers.0[CheckRegisters::XACTION] = !1;
    assert_eq!(process.check(AccessKind::StoreH, PERSISTENT_OBJECT, 7), PERSISTENT);
}

/// Null is neither in DRAM nor in persistent memory, and no object: not even a filter that holds everything is asked.
#[test]
fn null_is_no_value_object() {
    let mut process = Process::new(&PInspectSpec { hash: FilterHash::Constant, ..PInspectSpec::default() });
    assert_eq!(process.check(AccessKind::StoreBoth, VOLATILE_OBJECT, 0), PLAIN);
    process.update(FilterOperation::InsertFwd, 64);
    process.update(FilterOperation::InsertTrans, 64);
    assert_eq!(process.check(AccessKind::StoreBoth, PERSISTENT_OBJECT, 0), PERSISTENT);
    assert_eq!(
        process.check(AccessKind::StoreBoth, VOLATILE_OBJECT, 0),
        CheckVerdict::Handler(CHECK_H_AND_V),
        "the holder may forward"
    );
    process.registers.0[CheckRegisters::XACTION] = 1;
    assert_eq!(process.check(AccessKind::StoreBoth, PERSISTENT_OBJECT, 0), CheckVerdict::Handler(LOG_STORE));
}

#[test]
fn the_heap_is_from_its_base_to_below_its_limit() {
    let mut process = Process::new(&PInspectSpec::default());
    for (object, verdict) in
        [(0xfff_ffff, PLAIN), (0x1000_0000, PERSISTENT), (0x1fff_ffff, PERSISTENT), (0x2000_0000, PLAIN), (0, PLAIN)]
    {
        assert_eq!(process.check(AccessKind::StoreH, object, 1), verdict, "{object:#x}");
    }
    // The offset does not count, wherever it leads.
    let access = CheckedAccess { kind: AccessKind::StoreH, base: 0x1fff_fff8, offset: u64::MAX, value: 1 };
    assert_eq!(process.checks.verdict(&process.registers, &access, &process.lines.each_ref()), PERSISTENT);
    // A heap that ends before it begins holds nothing.
    process.registers.0.swap(CheckRegisters::HEAP_BASE, CheckRegisters::HEAP_LIMIT);
    for object in [0, 0x1000_0000, 0x1800_0000, 0x2000_0000, u64::MAX] {
        assert_eq!(process.check(AccessKind::StoreH, object, 1), PLAIN);
    }
}

/// An object moves (section V-A): queued while its closure is being copied, then forwarding.
#[test]
fn a_move_goes_through_both_filters() {
    let mut process = Process::new(&PInspectSpec::default());
    let moved = PERSISTENT_OBJECT + 0x800;
    let both = |process: &Process, base, value| process.check(AccessKind::StoreBoth, base, value);
    assert_eq!(both(&process, PERSISTENT_OBJECT, VOLATILE_OBJECT), CheckVerdict::Handler(CHECK_V), "it has to move");
    assert_eq!(process.update(FilterOperation::InsertTrans, moved), 0);
    assert_eq!(process.update(FilterOperation::InsertFwd, VOLATILE_OBJECT), 0);
    assert!(process.is_queued(moved), "its closure may lack");
    assert_eq!(both(&process, VOLATILE_OBJECT + 0x1000, moved), PLAIN, "ordinary objects may refer to it");
    assert!(process.forwards(VOLATILE_OBJECT));
    assert_eq!(both(&process, VOLATILE_OBJECT + 0x1000, VOLATILE_OBJECT), CheckVerdict::Handler(CHECK_H_AND_V));
    assert_eq!(process.update(FilterOperation::ClearTrans, 0), 0);
    assert_eq!(both(&process, PERSISTENT_OBJECT, moved), PERSISTENT);
    assert!(process.forwards(VOLATILE_OBJECT), "it forwards until all pointers to it have been replaced");
}

#[test]
fn both_designs_have_the_same_checks_and_no_hook() {
    assert_eq!((PInspect::HOOKS, PInspectSeparate::HOOKS), (Hooks::NONE, Hooks::NONE));
    let spec =
        PInspectSpec { handler_entry_cycles: 9, look_up_cycles: 3, fence_holds_commit: true, ..Default::default() };
    let geometry = geometry::<PInspect>(&spec, 2);
    assert!(PInspect::reserve(&spec, &geometry).is_empty());
    let both = [PInspect::checks(&spec, &geometry), PInspectSeparate::checks(&spec, &geometry)];
    let [combined, separate] = both.map(|checks| checks.unwrap().unwrap());
    assert!(combined.combines_persistent_writes() && !separate.combines_persistent_writes());
    for checks in [combined, separate] {
        assert_eq!((checks.handler_entry_cycles(), checks.look_up_cycles()), (9, 3));
        assert!(checks.fence_holds_commit());
    }
}

#[test]
fn parameters_out_of_range_are_refused_by_name() {
    let default = PInspectSpec::default();
    let bad = [
        ("fwd_bits", PInspectSpec { fwd_bits: 30, ..default.clone() }, "30 is not between 31 and 2047"),
        ("fwd_bits", PInspectSpec { fwd_bits: 2048, ..default.clone() }, "2048 is not between 31 and 2047"),
        ("trans_bits", PInspectSpec { trans_bits: 7, ..default.clone() }, "7 is not between 8 and 512"),
        ("trans_bits", PInspectSpec { trans_bits: 513, ..default.clone() }, "513 is not between 8 and 512"),
        ("wake_percent", PInspectSpec { wake_percent: 0, ..default.clone() }, "0 is not between 1 and 100"),
        ("wake_percent", PInspectSpec { wake_percent: 101, ..default.clone() }, "101 is not between 1 and 100"),
    ];
    for (field, spec, problem) in bad {
        let geometry = geometry::<PInspect>(&default, 1);
        let refused = SpecError::new(field, problem);
        assert_eq!(PInspect::build(&spec, &geometry).err(), Some(refused.clone()));
        assert_eq!(PInspectSeparate::build(&spec, &geometry).err(), Some(refused.clone()));
        assert_eq!(PInspect::checks(&spec, &geometry).err(), Some(refused));
    }
    assert!(serde_json::from_str::<PInspectSpec>(r#"{"fwd_lines": 4}"#).is_err());
    assert!(serde_json::from_str::<PInspectSpec>(r#"{"hash": "constant"}"#).is_ok());
}

#[test]
fn there_is_nothing_to_save_or_recover_and_the_hardware_is_that_of_the_paper() {
    let spec = PInspectSpec::default();
    let geometry = geometry::<PInspect>(&spec, 8);
    let state = PInspect::build(&spec, &geometry).unwrap();
    assert_eq!(state.save(), snapshot::to_bytes(&()));
    assert!(PInspect::load(&spec, &geometry, &state.save()).is_ok());
    assert!(PInspect::load(&spec, &geometry, &[1]).is_err());
    let mut image = CrashImage::new(Pages::new(geometry.pmem_base, geometry.pmem_bytes));
    for (dirty_shutdown, losses) in [(false, 0), (true, 1)] {
        image.dirty_shutdown = dirty_shutdown;
        assert_eq!(PInspect::recover(&spec, &geometry, &mut image).unwrap().losses.len(), losses);
    }
    let cost = PInspect::cost(&spec, &geometry);
    let buffer = cost.structures.iter().find(|s| s.name == "BFilter_Buffer").unwrap();
    assert_eq!((buffer.bits, buffer.instances), (9 * 512, 8));
}

#[test]
fn the_active_bit_is_the_top_bit_of_the_seed_line() {
    let mut process = Process::new(&PInspectSpec::default());
    process.update(FilterOperation::ChangeActive, 0);
    assert_eq!((process.lines[SEED_LINE][63], process.lines[SEED_LINE + 4][63]), (0x80, 0));
    process.update(FilterOperation::ChangeActive, 0);
    assert_eq!((process.lines[SEED_LINE][63], process.lines[SEED_LINE + 4][63]), (0, 0x80));
}
