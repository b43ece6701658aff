//! Modules of persistent memory: what reads and writes take with each state of the buffers, and what the cells have to do for
//! them.

use crate::common::{controller_of, memory, write};
use durasim_memory::{MediaConfig, MediaKind, Memory, ModuleStats, Step};
use durasim_types::{LineAddr, Picos};

const READ: Picos = 195_000;
const TABLE_MISS: Picos = 55_000;
const BUFFER: Picos = 87_000;
/// 256 bytes at 6,600 and at 2,300 MB/s.
const CELLS_READ: Picos = 38_788;
const CELLS_WRITE: Picos = 111_305;
/// 64 bytes at 21,328 MB/s.
const TRANSFER: Picos = 3_001;
/// After everything that a test does first.
const LATER: Picos = 100_000_000;

fn built(media: MediaConfig) -> Memory {
    let mut config = controller_of(media);
    config.controller.coalesce_writes = false;
    config.controller.write_queue_entries = 64;
    memory(&config)
}

/// One whose table of addresses delays nothing.
fn module(write_buffer_blocks: u32) -> Memory {
    built(MediaConfig {
        write_buffer_blocks: Some(write_buffer_blocks),
        table_miss_ns: Some(0),
        ..MediaConfig::of(MediaKind::PmemModule)
    })
}

fn read(memory: &mut Memory, line: u64, at: Picos) -> Picos {
    while memory.step(at).is_some() {}
    memory.read(LineAddr(line), at).done_ps - at
}

/// The time at which each of these writes, given at once, is in the module.
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
    // While the block is in flight its other lines come with it, one after the other.
    assert_eq!(read(&mut memory, 1, 1000), READ - 1000 + TRANSFER);
    assert_eq!(read(&mut memory, 3, LATER), BUFFER);
    assert_eq!(read(&mut memory, 4, LATER + 1000), READ, "another block");
    let expected = ModuleStats { read_hits: 2, block_reads: 2, table_misses: 1, ..ModuleStats::default() };
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
    let expected = ModuleStats { combined_writes: 3, block_writes: 1, table_misses: 1, ..ModuleStats::default() };
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
fn as_many_blocks_are_combined_as_the_buffer_has_places() {
    let mut memory = module(64);
    let halves = |second: u64| (0..64).map(move |block| 4 * block + 2 * second);
    for line in [0, 1].into_iter().flat_map(|second| halves(second).flat_map(|line| [line, line + 1])) {
        written(&mut memory, [line], LATER * (1 + line));
    }
    let stats = counted(&memory);
    assert_eq!((stats.combined_writes, stats.block_reads, stats.block_writes), (192, 0, 64));
}

#[test]
fn blocks_that_lack_lines_leave_when_another_needs_the_place_and_are_read_before() {
    // The third block takes the place of one of two, which the cells hold so much later.
    let there = TRANSFER * 3;
    let left = there + READ + CELLS_WRITE;
    for (cell_queue_blocks, fourth) in [(1, left), (2, TRANSFER * 3)] {
        let mut memory = built(MediaConfig {
            write_buffer_blocks: Some(2),
            cell_queue_blocks: Some(cell_queue_blocks),
            table_miss_ns: Some(0),
            ..MediaConfig::of(MediaKind::PmemModule)
        });
        let expected = [0, TRANSFER, 2 * TRANSFER, fourth].map(|start| start + BUFFER);
        assert_eq!(written(&mut memory, [0, 4, 8, 12], 0), expected, "{cell_queue_blocks} in flight");
        let stats = counted(&memory);
        assert_eq!((stats.block_reads, stats.block_writes, stats.partial_block_writes), (2, 2, 2));
        // Two of the four lines are in the buffer, the others are read from the cells.
        let times: Vec<Picos> = (0..4).map(|block| read(&mut memory, 4 * block, (1 + block) * LATER)).collect();
        assert_eq!(times.iter().filter(|&&time| time == BUFFER).count(), 2, "{times:?}");
    }
}

#[test]
fn partial_blocks_take_no_longer_than_whole_ones_where_many_are_written() {
    let blocks = 1000;
    let mut partial = module(8);
    let took = *written(&mut partial, (0..blocks).map(|block| 4 * block), 0).last().unwrap();
    let ideal = blocks * CELLS_WRITE;
    assert!(took > ideal - 40 * CELLS_WRITE && took < ideal, "{took} of {ideal}");
}

#[test]
fn a_page_without_a_table_entry_delays_its_block_and_not_those_after_it() {
    let mut memory = built(MediaConfig { table_pages: Some(2), ..MediaConfig::of(MediaKind::PmemModule) });
    // Lines of blocks that no buffer has, of 64 lines to a page.
    let mut at = 0;
    let mut times = |lines: &[u64]| -> Vec<Picos> {
        let one = |&line| {
            at += LATER;
            read(&mut memory, line, at)
        };
        lines.iter().map(one).collect()
    };
    let miss = READ + TABLE_MISS;
    assert_eq!(times(&[0, 4, 64, 8, 128, 12, 68]), [miss, READ, miss, READ, miss, READ, miss]);
    assert_eq!(counted(&memory).table_misses, 4);
    let mut memory = built(MediaConfig { table_pages: Some(2), ..MediaConfig::of(MediaKind::PmemModule) });
    let together: Vec<Picos> = [0, 4].map(|line| read(&mut memory, line, 0)).to_vec();
    assert_eq!(together, [miss, READ + CELLS_READ]);
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
    // Each line is in another block than the 64 before it: few blocks wait long enough for another one.
    let mut scattered = module(64);
    let took = last(&mut scattered, 401);
    let stats = counted(&scattered);
    assert!(stats.block_writes > 3 * blocks, "{stats:?}");
    assert!(took > (stats.block_writes - 40) * CELLS_WRITE, "{took}, {stats:?}");
}

#[test]
fn what_cannot_be_built_is_refused() {
    let refused = |change: fn(&mut MediaConfig)| {
        let mut media = MediaConfig::of(MediaKind::PmemModule);
        change(&mut media);
        controller_of(media).check("pmem").unwrap_err().to_string()
    };
    let reasons = [
        refused(|m| m.block_bytes = Some(96)),
        refused(|m| m.block_bytes = Some(32)),
        refused(|m| m.read_latency_ns = Some(38)),
        refused(|m| m.buffer_latency_ns = Some(3)),
        refused(|m| m.write_buffer_blocks = Some(0)),
        refused(|m| m.cell_queue_blocks = Some(0)),
        refused(|m| m.table_pages = Some(0)),
        refused(|m| m.write_latency_ns = Some(100)),
        refused(|m| m.banks = Some(8)),
    ];
    let expected = [
        "96 is not a power of two",
        "block_bytes",
        "38 ns are less than the cells take for a block, 39 ns",
        "3 ns are less than a line takes over the channel",
        "write_buffer_blocks",
        "cell_queue_blocks",
        "table_pages",
        "media of the kind 'pmem-module' have no such parameter",
        "media of the kind 'pmem-module' have no such parameter",
    ];
    for (reason, expected) in reasons.iter().zip(expected) {
        assert!(reason.contains(expected), "{reason}");
    }
}
