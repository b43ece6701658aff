//! The counters of caches and memories by name.

use durasim_cache::CacheArray;
use durasim_memory::{ControllerStats, Memory, ModuleStats, RowStats};
use durasim_types::Stats;

/// Counters of the caches of a level; lookups and misses are those counted by thread, or else by the arrays.
pub(crate) fn cache_stats(stats: &mut Stats, name: &str, arrays: &[CacheArray], by_thread: Option<(u64, u64)>) {
    let sum = |f: fn(&durasim_cache::CacheStats) -> u64| arrays.iter().map(|a| f(&a.stats)).sum::<u64>();
    let (accesses, misses) = by_thread.unwrap_or_else(|| (sum(|s| s.accesses), sum(|s| s.misses)));
    stats.count(format!("{name}.accesses"), accesses, "Lookups");
    stats.count(format!("{name}.misses"), misses, "Lookups that found nothing");
    stats.count(format!("{name}.evictions"), sum(|s| s.evictions), "Lines that had to leave");
    stats.count(format!("{name}.write_backs"), sum(|s| s.write_backs), "Dirty or tagged lines that had to leave");
}

/// Counters of a range of a memory; those of its controllers beside them if there are several.
pub(crate) fn memory_stats(stats: &mut Stats, name: &str, memory: &Memory, range: usize) {
    let (sum, rows) = memory.stats(range);
    controller_stats(stats, name, &sum, rows);
    module_stats(stats, name, memory.module_stats(range));
    if memory.controllers() > 1 {
        for (number, (of_one, rows)) in memory.controller_stats(range).enumerate() {
            controller_stats(stats, &format!("{name}.controller_{number}"), of_one, rows);
        }
        for (number, of_one) in memory.controller_module_stats(range).enumerate() {
            module_stats(stats, &format!("{name}.controller_{number}"), of_one);
        }
    }
}

/// Counters of a module of persistent memory.
fn module_stats(stats: &mut Stats, name: &str, module: Option<ModuleStats>) {
    let Some(m) = module else { return };
    let counters = [
        ("read_hits", m.read_hits, "Reads that a buffer of the module answered"),
        ("combined_writes", m.combined_writes, "Writes that joined a block being combined in the module"),
        ("block_reads", m.block_reads, "Blocks read from the cells"),
        ("block_writes", m.block_writes, "Blocks written to the cells"),
        ("partial_block_writes", m.partial_block_writes, "Those of them that lacked lines, which were read before"),
        ("table_misses", m.table_misses, "Blocks of pages without an entry in the module's table of addresses"),
    ];
    for (what, count, description) in counters {
        stats.count(format!("{name}.module.{what}"), count, description);
    }
}

fn controller_stats(stats: &mut Stats, name: &str, s: &ControllerStats, rows: Option<RowStats>) {
    stats.count(format!("{name}.reads"), s.reads, "Reads served");
    stats.count(format!("{name}.forwards"), s.forwards, "Reads answered from the write queue");
    stats.count(format!("{name}.writes"), s.writes, "Writes accepted by the write queue");
    stats.count(format!("{name}.joined_writes"), s.joined, "Writes that joined a waiting entry of their line");
    stats.count(format!("{name}.queue_full"), s.queue_full, "Writes that found the write queue full");
    stats.count(format!("{name}.drains"), s.drains, "Times at which the write queue was drained");
    stats.count(format!("{name}.reads_behind_drains"), s.reads_behind_drains, "Reads that arrived during a drain");
    stats.count(
        format!("{name}.yielded"),
        s.yielded,
        "Held entries that became ordinary ones as writes waited for room",
    );
    stats.count(format!("{name}.discarded"), s.discarded, "Held entries that were discarded");
    let mean_ns = if s.reads == 0 { 0.0 } else { s.read_latency_ps as f64 / s.reads as f64 / 1000.0 };
    stats.set(format!("{name}.read_latency_mean"), mean_ns, "ns", "Mean time from a read's arrival to its data");
    let bytes = s.media_write_bytes.iter().sum::<u64>() as f64;
    stats.set(format!("{name}.media_write_bytes"), bytes, "bytes", "Bytes accepted by the media");
    if let Some(rows) = rows {
        stats.count(format!("{name}.row_hits"), rows.hits, "Accesses that found their row open");
        stats.count(format!("{name}.row_misses"), rows.misses, "Accesses that found no row open in their bank");
        stats.count(format!("{name}.row_conflicts"), rows.conflicts, "Accesses that found another row open");
    }
}
