//! Queues that ask before they take a write.

use crate::common::write;
use durasim_memory::{Memory, MemoryConfig, Step, Write};
use durasim_types::{LineAddr, Pages, PhysAddr, Picos};

/// One controller with one bank, whose writes take 100 ns.
fn asking(entries: u32) -> Memory {
    let mut config = MemoryConfig { capacity_mib: 1, ..MemoryConfig::default() };
    config.controller.write_queue_entries = entries;
    config.media.banks = Some(1);
    let mut memory = Memory::new(&config, Pages::new(PhysAddr(0), 1 << 20));
    memory.ask_before_accepting();
    memory
}

/// The line and the first byte of the write that the queue has room for.
fn candidate(memory: &Memory) -> Option<(u64, u8)> {
    memory.next_candidate(0).map(|write| (write.line.0, write.data[0]))
}

fn queued(memory: &Memory) -> Vec<(u64, u8)> {
    memory.queue().map(|(_, entry)| (entry.write.line.0, entry.write.data[0])).collect()
}

#[test]
fn a_write_waits_until_the_design_admits_it() {
    let mut memory = asking(2);
    assert!(!memory.submit(write(5, 9), 1000));
    assert_eq!((candidate(&memory), memory.queue().count()), (Some((5, 9)), 0));
    assert!(matches!(memory.step(Picos::MAX), Some(Step::HasRoom { at_ps: 1000, line: LineAddr(5) })));
    assert_eq!(memory.peek(LineAddr(5)), [9; 64], "a waiting write is visible to reads");
    assert_eq!(memory.admit(0, None, false).line, LineAddr(5));
    assert_eq!((candidate(&memory), memory.occupancy(0).ordinary), (None, 1));
    assert!(matches!(memory.step(Picos::MAX), Some(Step::Written { at_ps: 101_000, .. })));
}

#[test]
fn a_refused_write_lets_other_lines_pass_and_is_asked_about_when_the_queue_has_changed() {
    let mut memory = asking(2);
    for (line, value) in [(1, 1), (1, 2), (2, 3)] {
        memory.submit(write(line, value), 0);
    }
    memory.refuse(0);
    assert_eq!(candidate(&memory), Some((2, 3)), "the second write of the line stays after the first");
    memory.admit(0, None, false);
    assert_eq!(candidate(&memory), None);
    assert!(matches!(memory.step(Picos::MAX), Some(Step::Written { line: LineAddr(2), at_ps: 100_000, .. })));
    assert!(matches!(memory.step(Picos::MAX), Some(Step::HasRoom { at_ps: 100_000, line: LineAddr(1) })));
    assert_eq!(candidate(&memory), Some((1, 1)));
}

#[test]
fn a_write_without_bytes_waits_for_all_before_it() {
    let mut memory = asking(4);
    memory.submit(write(1, 1), 0);
    memory.submit(Write { mask: 0, ..write(2, 0) }, 0);
    memory.refuse(0);
    assert_eq!(candidate(&memory), None);
    memory.release(0, 7, None, 0);
    assert_eq!(candidate(&memory), Some((1, 1)), "the queue has changed");
    memory.admit(0, None, false);
    let Some(Step::Accepted { line, mask: 0, .. }) = memory.step(Picos::MAX) else {
        panic!("the design is not asked about it")
    };
    assert_eq!((line, queued(&memory)), (LineAddr(2), vec![(1, 1)]));
    assert_eq!((memory.stats(0).0.writes, memory.stats(0).0.queue_full), (1, 0));
}

#[test]
fn a_full_queue_takes_what_joins_an_entry() {
    let mut memory = asking(1);
    memory.submit(write(7, 1), 0);
    memory.admit(0, None, false);
    memory.submit(write(7, 2), 0);
    assert_eq!(candidate(&memory), Some((7, 2)));
    memory.admit(0, None, false);
    assert_eq!(queued(&memory), [(7, 2)]);
    memory.submit(write(8, 3), 0);
    assert_eq!(candidate(&memory), None, "there is no room for another line");
    assert_eq!((memory.stats(0).0.joined, memory.stats(0).0.queue_full), (1, 1));
}

#[test]
fn writes_join_held_entries_of_their_group_alone() {
    let mut memory = asking(4);
    for (value, group) in [(1, 7), (2, 7), (3, 8)] {
        memory.submit(write(5, value), 0);
        memory.admit(0, Some(group), false);
    }
    assert_eq!((queued(&memory), memory.occupancy(0).held), (vec![(5, 2), (5, 3)], 2));
    assert_eq!(memory.step(Picos::MAX), None, "nothing leaves");
    memory.release(0, 8, None, 0);
    assert_eq!(memory.step(Picos::MAX), None, "a write never passes an older held one of its line");
    memory.release(0, 7, None, 0);
    while memory.step(Picos::MAX).is_some() {}
    assert_eq!(memory.media(0).line(LineAddr(5)), [3; 64]);
}

#[test]
fn one_line_of_a_group_is_released_while_others_stay() {
    let mut memory = asking(4);
    for line in [1, 2] {
        memory.submit(write(line, 9), 0);
        memory.admit(0, Some(7), false);
    }
    memory.release(0, 7, Some(LineAddr(2)), 0);
    assert!(matches!(memory.step(Picos::MAX), Some(Step::Written { line: LineAddr(2), .. })));
    assert_eq!((memory.step(Picos::MAX), queued(&memory)), (None, vec![(1, 9)]));
}

#[test]
fn what_is_released_starts_no_earlier_and_all_versions_of_a_line_together() {
    let mut memory = asking(4);
    for (value, group) in [(1, 7), (2, 8), (3, 7)] {
        memory.submit(write(5, value), 0);
        memory.admit(0, Some(group), false);
    }
    memory.release(0, 7, Some(LineAddr(5)), 900_000);
    assert_eq!(memory.occupancy(0).held, 1);
    let Some(Step::Written { at_ps, .. }) = memory.step(Picos::MAX) else { panic!("the oldest leaves") };
    assert!(at_ps > 900_000, "{at_ps}");
}

#[test]
fn a_read_below_held_entries_sees_the_ordinary_ones_in_front_of_them() {
    let mut memory = asking(4);
    memory.submit(Write { mask: 0xff, ..write(5, 1) }, 0);
    memory.admit(0, None, false);
    memory.submit(Write { mask: 0xff00, ..write(5, 2) }, 0);
    memory.admit(0, Some(7), false);
    memory.submit(Write { mask: 0xff_0000, ..write(5, 3) }, 0);
    let below = memory.read_below_held(LineAddr(5), 0).data;
    assert_eq!((below[0], below[8], below[16]), (1, 0, 0));
    let newest = memory.read(LineAddr(5), 0).data;
    assert_eq!((newest[0], newest[8], newest[16]), (1, 2, 3), "what waits outside is seen by ordinary reads");
}
