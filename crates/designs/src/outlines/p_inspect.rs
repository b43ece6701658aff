//! P-INSPECT: "P-INSPECT: Architectural Support for Programmable Non-Volatile Memory Frameworks", MICRO 2020.
//!
//! An outline of the hardware: checked accesses (sections V-B and V-C, Tables II to V), the bloom filters in lines of
//! memory (sections V-A, VI, Table VI) and the kinds of persistentWrite (section V-E). It needs W13 (instructions, their
//! handlers, hart registers, kinds of stores), W2 (lines of a design) and W9 (their page of DRAM), and not one hook: all it
//! knows lies in lines of memory and in registers of harts, so that fast-forward, recovery programs and snapshots have it
//! without a word. Handlers, moves of objects and the pointer update thread are software.

use super::planned::{Call, Effect, LinesWanted, PlannedDesign, PlannedHooks, PlannedRegion, Registers, StoreKind};
use durasim_design::{
    CrashImage, Design, Durability, Geometry, HardwareCost, Hooks, RecoveryCut, RecoveryReport, RegionRequest,
    SpecError, snapshot,
};
use durasim_types::{Line, Stats};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::hash::Hasher;

/// The instructions (Table II), and Change Active FWD Filter (Table VI). Those that store have three flavours.
pub(super) mod number {
    /// checkStoreBoth: plain, with CLWB, with CLWB and sfence.
    pub const CHECK_STORE_BOTH: u8 = 0;
    /// checkStoreH, likewise.
    pub const CHECK_STORE_H: u8 = 3;
    pub const CHECK_LOAD: u8 = 6;
    pub const INSERT_FWD: u8 = 7;
    pub const INSERT_TRANS: u8 = 8;
    pub const CLEAR_FWD: u8 = 9;
    pub const CLEAR_TRANS: u8 = 10;
    pub const CHANGE_ACTIVE: u8 = 11;
}

/// Registers of the hart: the limits of the persistent heap (section VI-B, Figure 3).
pub(super) const HEAP_BASE: usize = 2;
pub(super) const HEAP_LIMIT: usize = 3;

/// Handlers (section V-D, Algorithm 1).
pub(super) const CHECK_H_AND_V: u8 = 1;
pub(super) const CHECK_V: u8 = 2;
pub(super) const LOG_STORE: u8 = 3;
pub(super) const LOAD_CHECK: u8 = 4;

/// Lines of a FWD filter (section VI-B): 2,047 bits, and Active in the most significant one.
const FWD_LINES: usize = 4;
const FWD_BITS: usize = 2047;
/// Red, black, TRANS.
const TRANS_LINE: usize = 2 * FWD_LINES;
const TRANS_BITS: usize = 512;
/// The most significant line of the red filter (section VI-C).
const SEED_LINE: usize = FWD_LINES - 1;
/// Bits set from which on the pointer update thread is woken (section IX-B).
const WAKE_PERCENT: usize = 30;
/// One page, at one place in each process (section VI-B).
const FILTER_PAGE: u64 = 0x3f_ffff_f000;

/// No parameters.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PInspectSpec {}

/// The design.
pub(super) struct PInspect;

impl Design for PInspect {
    const NAME: &'static str = "p-inspect";
    const HOOKS: Hooks = Hooks::NONE;
    type Spec = PInspectSpec;

    fn reserve(_: &PInspectSpec, _: &Geometry) -> Vec<RegionRequest> {
        Vec::new()
    }

    fn build(_: &PInspectSpec, _: &Geometry) -> Result<Box<dyn Durability>, SpecError> {
        Ok(Box::new(Stateless))
    }

    fn load(spec: &PInspectSpec, geometry: &Geometry, bytes: &[u8]) -> Result<Box<dyn Durability>, SpecError> {
        let () = snapshot::from_bytes(bytes)?;
        Self::build(spec, geometry)
    }

    /// Section VII: failures are the software's to recover from.
    fn recover(_: &PInspectSpec, _: &Geometry, _: &mut CrashImage) -> Result<RecoveryReport, RecoveryCut> {
        Ok(RecoveryReport::default())
    }

    fn cost(_: &PInspectSpec, g: &Geometry) -> HardwareCost {
        let mut cost = HardwareCost::default();
        cost.add("BFilter_Buffer", 512 * Self::LINES as u64, g.cores.into());
        cost
    }
}

impl PlannedDesign for PInspect {
    const PLANNED: PlannedHooks = PlannedHooks::INSTRUCTION;
    const LINES: usize = TRANS_LINE + 1;

    fn regions(_: &PInspectSpec) -> Vec<PlannedRegion> {
        let request = RegionRequest { name: "bloom-filters", size_bytes: 4096 };
        vec![PlannedRegion { request, dram: true, mapped_at: Some(FILTER_PAGE) }]
    }

    fn lines_wanted(number: u8) -> LinesWanted {
        match number {
            ..=number::CHECK_LOAD => LinesWanted::Read,
            number::INSERT_FWD..=number::CHANGE_ACTIVE => LinesWanted::Own { first: SEED_LINE },
            _ => LinesWanted::None,
        }
    }

    fn instruction(call: &Call, registers: &Registers, lines: &[Line]) -> Effect {
        let heap = registers.0[HEAP_BASE]..registers.0[HEAP_LIMIT];
        let side = |object: u64| Side { in_nvm: heap.contains(&object), may_forward: forwards(lines, object) };
        let value =
            || Value { side: side(call.value), may_be_queued: contains(&lines[TRANS_LINE..], call.value, TRANS_BITS) };
        let in_transaction = registers.0[Registers::IN_TX] != 0;
        let (access, flavour) = match call.number {
            n @ number::CHECK_STORE_BOTH..number::CHECK_STORE_H => (Access::StoreBoth(value()), n),
            n @ number::CHECK_STORE_H..number::CHECK_LOAD => (Access::StoreH, n - number::CHECK_STORE_H),
            number::CHECK_LOAD => (Access::Load, 0),
            _ => return Effect::Illegal,
        };
        let kind = [StoreKind::Plain, StoreKind::Persist, StoreKind::PersistAndFence][usize::from(flavour)];
        match flow(side(call.base), access, in_transaction) {
            Flow::Load => Effect::Load,
            Flow::PersistentWrite => Effect::Store(kind),
            Flow::Write => Effect::Store(StoreKind::Plain),
            Flow::Handler(handler) => Effect::Handler(handler),
        }
    }

    /// Table VI. An insert says whether the filter is full enough for the pointer update thread.
    fn update(call: &Call, lines: &mut [Line]) -> u64 {
        let (active, inactive) = if is_active(&lines[..FWD_LINES]) { (0, FWD_LINES) } else { (FWD_LINES, 0) };
        match call.number {
            number::INSERT_FWD => {
                insert(&mut lines[active..active + FWD_LINES], call.base, FWD_BITS);
                let set = (0..FWD_BITS).filter(|bit| is_set(&lines[active..], *bit)).count();
                return u64::from(set * 100 >= FWD_BITS * WAKE_PERCENT);
            }
            number::INSERT_TRANS => insert(&mut lines[TRANS_LINE..], call.base, TRANS_BITS),
            number::CLEAR_FWD => lines[inactive..inactive + FWD_LINES].fill([0; 64]),
            number::CLEAR_TRANS => lines[TRANS_LINE] = [0; 64],
            number::CHANGE_ACTIVE => {
                // Both are clear when a process starts; the black one is active then.
                lines[SEED_LINE][63] ^= 0x80;
                lines[SEED_LINE + FWD_LINES][63] =
                    !lines[SEED_LINE][63] & 0x80 | lines[SEED_LINE + FWD_LINES][63] & 0x7f;
            }
            _ => unreachable!("only instructions that own the lines change them"),
        }
        0
    }
}

/// What is known of an object without a look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Side {
    pub in_nvm: bool,
    /// In the FWD filter.
    pub may_forward: bool,
}

/// What is known of a value object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Value {
    pub side: Side,
    /// In the TRANS filter.
    pub may_be_queued: bool,
}

/// The checks that an access makes (Table III).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    StoreBoth(Value),
    StoreH,
    Load,
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    Load,
    PersistentWrite,
    Write,
    Handler(u8),
}

/// Tables IV and V.
pub(super) fn flow(holder: Side, access: Access, in_transaction: bool) -> Flow {
    if !holder.in_nvm && holder.may_forward {
        return Flow::Handler(if access == Access::Load { LOAD_CHECK } else { CHECK_H_AND_V });
    }
    match access {
        Access::Load => Flow::Load,
        Access::StoreBoth(value) if holder.in_nvm && (!value.side.in_nvm || value.may_be_queued) => {
            Flow::Handler(CHECK_V)
        }
        _ if holder.in_nvm && in_transaction => Flow::Handler(LOG_STORE),
        _ if holder.in_nvm => Flow::PersistentWrite,
        Access::StoreBoth(value) if !value.side.in_nvm && value.side.may_forward => Flow::Handler(CHECK_H_AND_V),
        Access::StoreBoth(_) | Access::StoreH => Flow::Write,
    }
}

/// Both filters are looked at: one is being emptied while the other fills (section VI-A).
fn forwards(lines: &[Line], object: u64) -> bool {
    contains(&lines[..FWD_LINES], object, FWD_BITS) || contains(&lines[FWD_LINES..TRANS_LINE], object, FWD_BITS)
}

fn is_active(filter: &[Line]) -> bool {
    filter[FWD_LINES - 1][63] & 0x80 != 0
}

fn is_set(filter: &[Line], bit: usize) -> bool {
    filter[bit / 512][bit % 512 / 8] >> (bit % 8) & 1 != 0
}

fn insert(filter: &mut [Line], object: u64, bits: usize) {
    for bit in hashes(object, bits) {
        filter[bit / 512][bit % 512 / 8] |= 1 << (bit % 8);
    }
}

fn contains(filter: &[Line], object: u64, bits: usize) -> bool {
    hashes(object, bits).into_iter().all(|bit| is_set(filter, bit))
}

/// H0 and H1 are CRCs; the paper does not say which. Two polynomials of 16 bits stand for them here.
fn hashes(object: u64, bits: usize) -> [usize; 2] {
    [0x1021, 0x8005].map(|polynomial| usize::from(crc(object, polynomial)) % bits)
}

fn crc(value: u64, polynomial: u16) -> u16 {
    let bits = (0..64).rev().map(|bit| (value >> bit & 1) as u16);
    bits.fold(u16::MAX, |crc, bit| {
        let feedback = crc >> 15 ^ bit != 0;
        crc << 1 ^ if feedback { polynomial } else { 0 }
    })
}

/// There is nothing for a design at work to know.
#[derive(Clone, Copy)]
struct Stateless;

impl Durability for Stateless {
    fn digest(&self, _: &mut dyn Hasher) {}

    fn stats(&self, _: &mut Stats) {}

    fn reset_stats(&mut self) {}

    fn fork(&self) -> Box<dyn Durability> {
        Box::new(*self)
    }

    fn save(&self) -> Vec<u8> {
        snapshot::to_bytes(&())
    }
}
