//! The caches alone: holders of a line, its newest copy, and the version that has to leave.

use super::Caches;
use super::directory::AccessMode;
use crate::parts::design_port::DesignPort;
use crate::setup::config::MachineConfig;
use crate::setup::plan::Plan;
use crate::setup::presets;
use durasim_cache::Version;
use durasim_contract::{LevelId, LineTag};
use durasim_types::{CoreId, LineAddr};

const A: CoreId = CoreId(0);
const B: CoreId = CoreId(1);
const LINE: LineAddr = LineAddr(0x40);

fn caches() -> (Caches, DesignPort) {
    let config = MachineConfig::parse("tiny", presets::text("tiny").unwrap(), &[]).unwrap();
    let variant = &durasim_designs::VARIANTS[0];
    let plan = Plan::new(&config, variant, variant.default_domain()).unwrap();
    let design = (variant.hardware.build)(&plan.spec, &plan.geometry).unwrap();
    (
        Caches::new(&config, &plan.geometry, None),
        DesignPort::new(design, variant.hardware.name, variant.hardware.hooks, &plan.geometry),
    )
}

fn version(byte: u8, dirty: bool) -> Version {
    Version { line: LINE, data: [byte; 64], dirty, tag: LineTag::NONE }
}

/// `core` gets a line into its L1D and L2.
fn bring(caches: &mut Caches, core: CoreId, want: AccessMode, version: Version) {
    caches.array_mut(LevelId::L2, core).insert(Version { dirty: false, ..version }, 0);
    caches.l1d_mut(core).insert(version, 0);
    caches.note_arrival(core, version.line, want);
}

#[test]
fn the_first_reader_owns_a_line_until_a_second_one_shares_it() {
    let (mut caches, _) = caches();
    bring(&mut caches, A, AccessMode::Read, version(1, false));
    assert!(caches.owns(A, LINE));
    caches.share(A, LINE);
    bring(&mut caches, B, AccessMode::Read, version(1, false));
    assert!(!caches.owns(A, LINE) && !caches.owns(B, LINE));
    assert_eq!(caches.holders(LINE).collect::<Vec<_>>(), [A, B]);
    caches.drop_private(A, LINE);
    assert_eq!(caches.holders(LINE).collect::<Vec<_>>(), [B]);
}

#[test]
fn a_writer_ends_the_reservations_of_others() {
    let (mut caches, _) = caches();
    caches.reserve(A, LINE);
    caches.reserve(B, LINE);
    bring(&mut caches, B, AccessMode::Write, version(1, true));
    assert!(caches.reserving(LINE).eq([B]));
}

#[test]
fn the_newest_copy_is_the_uppermost_and_dirty_if_any_below_it_is() {
    let (mut caches, design) = caches();
    caches.llc_mut().insert(version(1, true), 0);
    bring(&mut caches, A, AccessMode::Write, version(2, false));
    assert_eq!(caches.newest(LINE, &design), Some(version(2, true)));
    assert_eq!(caches.newest_if_dirty(LINE), Some([2; 64]));
    caches.clean_copies(LINE, [2; 64], false);
    assert_eq!(caches.newest_if_dirty(LINE), None);
    assert_eq!(caches.copies_of(A, LINE).map(|(_, copy)| copy.data[0]).collect::<Vec<_>>(), [2, 2, 2]);
}

#[test]
fn a_clean_gives_the_newest_note_to_all_copies_and_leaves_versions_their_tags() {
    for (tags_follow_newest_data, below) in [(true, LineTag(7)), (false, LineTag(3))] {
        let (mut caches, _) = caches();
        caches.llc_mut().insert(Version { tag: LineTag(3), ..version(1, false) }, 0);
        bring(&mut caches, A, AccessMode::Write, Version { tag: LineTag(7), ..version(2, true) });
        caches.clean_copies(LINE, [2; 64], tags_follow_newest_data);
        let tags: Vec<_> = caches.copies_of(A, LINE).map(|(_, copy)| copy.tag).collect();
        assert_eq!(tags, [LineTag(7), LineTag(7), below]);
    }
}

#[test]
fn bytes_change_in_all_copies_and_one_of_them_keeps_the_change() {
    let (mut caches, _) = caches();
    assert!(!caches.overwrite(LINE.base(), &[9]), "memory has to change");
    caches.llc_mut().insert(version(1, false), 0);
    bring(&mut caches, A, AccessMode::Write, version(1, false));
    assert!(caches.overwrite(LINE.base().plus(3), &[9]));
    let copies: Vec<_> = caches.copies_of(A, LINE).map(|(level, copy)| (level, copy.data[3], copy.dirty)).collect();
    assert_eq!(copies, [(LevelId::L1d, 9, true), (LevelId::L2, 9, false), (LevelId::Llc, 9, false)]);
}

#[test]
fn of_versions_without_a_tag_the_newest_dirty_one_has_to_leave() {
    let (mut caches, design) = caches();
    caches.llc_mut().insert(version(1, true), 0);
    bring(&mut caches, A, AccessMode::Write, version(2, true));
    let versions = caches.versions_from_llc_up(LINE, &design);
    let places: Vec<_> = versions.iter().map(|resident| (resident.level, resident.version.data[0])).collect();
    assert_eq!(places, [(LevelId::Llc, 1), (LevelId::L2, 2), (LevelId::L1d, 2)]);
    let leave: Vec<_> = (0..3).map(|first| caches.must_leave(&versions[first..], &design)).collect();
    assert_eq!(leave, [false, false, true]);
}

#[test]
fn no_pinned_line_is_a_victim() {
    let (mut caches, mut design) = caches();
    let sets = u64::from(caches.array(LevelId::L2, A).geometry().sets);
    let lines: Vec<LineAddr> = (0..5).map(|way| LineAddr(LINE.0 + way * sets)).collect();
    for &line in &lines[..4] {
        caches.array_mut(LevelId::L2, A).insert(Version { line, ..version(1, false) }, 0);
    }
    caches.pin(lines[0]);
    let victim = caches.victim(LevelId::L2, A, lines[4], LineTag::NONE, false, &mut design).unwrap();
    assert_eq!(caches.array(LevelId::L2, A).version(victim).line, lines[1]);
    caches.unpin();
    let victim = caches.victim(LevelId::L2, A, lines[4], LineTag::NONE, false, &mut design).unwrap();
    assert_eq!(caches.array(LevelId::L2, A).version(victim).line, lines[0]);
}

#[test]
fn an_older_version_stays_beside_a_newer_one_until_it_is_dropped_or_restored() {
    let (mut caches, design) = caches();
    let newer = |byte| Version { tag: LineTag(7), ..version(byte, true) };
    caches.llc_mut().insert(version(1, true), 0);
    assert!(caches.may_keep_older(LINE, &design) && caches.keep_older(version(1, true), 0));
    let slot = caches.llc().find(LINE).unwrap();
    caches.llc_mut().replace(slot, newer(2));
    let found = |caches: &Caches| {
        let llc = caches.llc();
        (llc.find(LINE).map(|slot| llc.data(slot)[0]), caches.older_version(LINE).map(|older| older.data[0]))
    };
    assert_eq!(found(&caches), (Some(2), Some(1)));
    let survivors: Vec<_> = caches.dirty_pmem_lines(&design).iter().map(|l| (l.line, l.data[0])).collect();
    assert_eq!(survivors, [], "line {LINE} is of DRAM");
    assert_eq!(caches.cached_lines().llc, [LINE], "caches that take over its lines get one of them");
    // The newer one was discarded by an abort.
    caches.take_out(LevelId::Llc, A, LINE);
    caches.pin(LINE);
    caches.restore_older(LINE);
    assert_eq!((found(&caches), caches.left_alone(&[LINE])), ((None, Some(1)), vec![LINE]), "the line is in service");
    caches.unpin();
    caches.restore_older(LINE);
    assert_eq!(found(&caches), (Some(1), None));
    assert!(caches.keep_older(version(1, true), 0));
    caches.restore_older(LINE);
    assert_eq!(found(&caches), (Some(1), Some(1)), "nothing was discarded");
    caches.drop_older(LINE, &design);
    assert_eq!(found(&caches), (Some(1), None));
}

#[test]
fn an_older_version_is_the_first_to_survive() {
    let (mut caches, design) = caches();
    let line = crate::setup::memory_map::PMEM_BASE.line();
    let of = |byte| Version { line, ..version(byte, true) };
    caches.llc_mut().insert(of(1), 0);
    assert!(caches.keep_older(of(1), 0));
    let slot = caches.llc().find(line).unwrap();
    caches.llc_mut().replace(slot, of(2));
    let survivors: Vec<_> = caches.dirty_pmem_lines(&design).iter().map(|l| (l.line, l.data[0])).collect();
    assert_eq!(survivors, [(line, 1), (line, 2)]);
}

#[test]
fn an_older_version_takes_no_way_of_a_line_in_service() {
    let (mut caches, design) = caches();
    let sets = u64::from(caches.llc().geometry().sets);
    let ways = u64::from(caches.llc().geometry().ways);
    for way in 0..ways {
        let line = LineAddr(LINE.0 + sets * way);
        caches.llc_mut().insert(Version { line, ..version(1, true) }, 0);
        caches.pin(line);
    }
    assert!(!caches.may_keep_older(LINE, &design) && !caches.keep_older(version(1, true), 0));
    caches.unpin();
    assert!(caches.may_keep_older(LINE, &design));
}
