//! Modules of persistent memory: what reads and writes take with each state of the buffers, and what the cells have to do for
//! them.

use crate::common::{behind, memory, write};
use durasim_memory::{MediaConfig, MediaKind, Memory, ModuleStats, Step};
use durasim_types::{LineAddr, Picos};

const READ: Picos = 250_000;
const BUFFER: Picos = 114_000;
/// 256 bytes at 6,600 and at 2,300 MB/s.
const CELLS_READ: Picos = 38_788;
const CELLS_WRITE: Picos = 111_305;
/// 64 bytes at 21,328 MB/s.
const TRANSFER: Picos = 3_001;
/// Behind everything that a test does first.
const LATER: Picos = 100_000_000;

fn module(write_buffer_blocks: u32) -> Memory {
    let media =
        MediaConfig { write_buffer_blocks: Some(write_buffer_blocks), ..MediaConfig::of(MediaKind::PmemModule) };
    let mut config = behind(media);
    config.controller.coalesce_writes = false;
    config.controller.write_queue_entries = 64;
    memory(&config)
}

fn read(memory: &mut Memory, line: u64, at: Picos) -> Picos {
    while memory.step(at).is_some() {}
    memory.read(LineAddr(line), at).done_ps - at
}

/// When each of these writes, given at once, is in the module.
fn written(memory: &mut Memory, lines: impl IntoIterator<Item = u64>, at: Picos) -> Vec<Picos> {
    let mut done = Vec::new();
    while memory.step(at).is_some() {}
    lines.into_iter().for_each(|line| {
        memory.submit(write(line, 1), at);
    });
    while let Some(step) = memory.step(Picos::MAX) {
        if let Step::Written { at_ps, .. } = step {
            done.push(at_ps - at);
        }
    }
    done
}

fn counted(memory: &Memory) -> ModuleStats {
    memory.module_stats(0).expect("a module counts")
}

#[test]
fn lines_of_a_block_come_from_the_cells_once() {
    let mut memory = module(64);
    assert_eq!(read(&mut memory, 0, 0), READ);
    // While the block is in flight its other lines come with it, one behind the other.
    assert_eq!(read(&mut memory, 1, 1000), READ - 1000 + TRANSFER);
    assert_eq!(read(&mut memory, 3, LATER), BUFFER);
    assert_eq!(read(&mut memory, 4, LATER + 1000), READ, "another block");
    let expected = ModuleStats { read_hits: 2, block_reads: 2, ..ModuleStats::default() };
    assert_eq!(counted(&memory), expected);
    // The buffer keeps the 64 blocks that were asked for last: that of line 0 is one of them.
    for block in 2..65 {
        read(&mut memory, 4 * block, block * LATER);
    }
    assert_eq!(read(&mut memory, 0, 100 * LATER), READ, "64 others were asked for since");
    assert_eq!(read(&mut memory, 4 * 64, 101 * LATER), BUFFER);
}

#[test]
fn the_cells_read_one_block_after_the_other() {
    let mut memory = module(64);
    let times: Vec<Picos> = (0..4).map(|block| read(&mut memory, 4 * block, 0)).collect();
    assert_eq!(times, [0, 1, 2, 3].map(|n| READ + n * CELLS_READ));
}

#[test]
fn a_written_line_is_in_the_module_once_it_is_in_the_buffer_and_a_whole_block_needs_no_read() {
    let mut memory = module(64);
    assert_eq!(written(&mut memory, 0..4, 0), [0, 1, 2, 3].map(|n| BUFFER + n * TRANSFER));
    let expected = ModuleStats { combined_writes: 3, block_writes: 1, ..ModuleStats::default() };
    assert_eq!(counted(&memory), expected);
    // It has left the buffer for the cells by then.
    assert_eq!(read(&mut memory, 0, LATER), READ);
}

#[test]
fn a_line_is_read_from_the_block_that_is_combined_but_no_line_beside_it() {
    let mut memory = module(64);
    written(&mut memory, [5], 0);
    assert_eq!(read(&mut memory, 5, LATER), BUFFER);
    assert_eq!(read(&mut memory, 6, 2 * LATER), READ);
    assert_eq!(counted(&memory).block_writes, 0);
}

#[test]
fn blocks_that_lack_lines_leave_when_they_take_all_places_and_are_read_before() {
    let mut memory = module(2);
    // The second block takes the last place, so the first one leaves; the third finds both places taken until then.
    let there = TRANSFER * 2;
    let left = there + READ + CELLS_WRITE;
    let expected = [BUFFER, BUFFER + TRANSFER, left + BUFFER];
    assert_eq!(written(&mut memory, [0, 4, 8], 0), expected);
    let stats = counted(&memory);
    assert_eq!((stats.block_reads, stats.block_writes, stats.partial_block_writes), (2, 2, 2));
    // A write to the oldest block that is combined makes it the youngest.
    let mut memory = module(3);
    written(&mut memory, [0, 4, 1, 8], 0);
    assert_eq!(read(&mut memory, 0, LATER), BUFFER);
    assert_eq!(read(&mut memory, 4, 2 * LATER), READ);
}

#[test]
fn cells_bound_the_bandwidth_of_writes_and_lines_in_different_blocks_take_a_block_each() {
    let blocks = 1000;
    let last = |memory: &mut Memory, step: u64| {
        *written(memory, (0..4 * blocks).map(|n| n * step % (4 * blocks)), 0).last().unwrap()
    };
    let mut in_order = module(64);
    let ideal = blocks * CELLS_WRITE;
    let took = last(&mut in_order, 1);
    assert!(took <= ideal && ideal < took + 65 * CELLS_WRITE, "{took} of {ideal}");
    assert_eq!(counted(&in_order).block_writes, blocks);
    // Each line is in another block than the 64 before it.
    let mut scattered = module(64);
    let took = last(&mut scattered, 401);
    assert!(took > 4 * ideal - 130 * (CELLS_WRITE + CELLS_READ), "{took}");
    let stats = counted(&scattered);
    assert!(stats.block_writes > 4 * blocks - 65 && stats.block_writes == stats.partial_block_writes);
}

#[test]
fn what_cannot_be_built_is_refused() {
    let refused = |change: fn(&mut MediaConfig)| {
        let mut media = MediaConfig::of(MediaKind::PmemModule);
        change(&mut media);
        behind(media).check("pmem").unwrap_err().to_string()
    };
    let reasons = [
        refused(|m| m.block_bytes = Some(96)),
        refused(|m| m.block_bytes = Some(32)),
        refused(|m| m.read_latency_ns = Some(38)),
        refused(|m| m.buffer_latency_ns = Some(3)),
        refused(|m| m.write_buffer_blocks = Some(1)),
        refused(|m| m.write_latency_ns = Some(100)),
        refused(|m| m.banks = Some(8)),
    ];
    let expected = [
        "96 is not a power of two",
        "block_bytes",
        "38 ns are less than the cells take for a block, 39 ns",
        "3 ns are less than a line takes over the channel",
        "write_buffer_blocks",
        "media of the kind 'pmem-module' have no such parameter",
        "media of the kind 'pmem-module' have no such parameter",
    ];
    for (reason, expected) in reasons.iter().zip(expected) {
        assert!(reason.contains(expected), "{reason}");
    }
}
