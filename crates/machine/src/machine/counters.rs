//! The counters of the cores by name, beside those of the memory system.

use super::Machine;
use crate::statistics::latency::LoadLatency;
use durasim_core::tlb::TlbStats;
use durasim_core::{Core, CoreStats, StallCycles, StallKind, StallPlace};
use durasim_types::{StallCause, Stats};

impl Machine {
    /// All counters of the memory system and the cores.
    pub(super) fn stats(&self) -> Stats {
        let mut stats = self.system.stats();
        let mut c = CoreStats::default();
        for (number, core) in self.cores.iter().enumerate() {
            c.add(&core.stats());
            if self.cores.len() > 1 && core.instructions() > 0 {
                let name = |what| format!("core.{}.{what}", self.name_of(number));
                stats.count(name("instructions"), core.instructions(), "Instructions of this core, since the start");
                stats.set(name("cycle"), core.cycle() as f64, "cycles", "The cycle that this core has reached");
            }
        }
        stats.count("core.branches", c.branches, "Conditional branches");
        stats.count("core.mispredictions", c.mispredictions, "Branches and jumps predicted wrongly");
        stats.count("core.loads", c.loads, "Loads executed");
        stats.count("core.forwards", c.forwards, "Loads whose data came from the store buffer");
        let violations = c.order_violations;
        stats.count("core.order_violations", violations, "Loads executed again because they passed an older store");
        stats.count("core.stores", c.stores, "Stores executed");
        stats.count("core.fences", c.fences, "Fences executed");
        let without = "Fences with W before that found no cache-block operation to wait for";
        stats.count("core.fences_without_cleans", c.fences_without_cleans, without);
        let cleans = self.measure.cache_block_operations;
        stats.count("core.cache_block_operations", cleans, "Cache-block operations executed");
        let waited = c.fence_stall_cycles as f64;
        stats.set("core.fence_stall_cycles", waited, "cycles", "Cycles in which fences held younger instructions");
        let waited = c.commit_stall_cycles as f64;
        stats.set("core.commit_stall_cycles", waited, "cycles", "Cycles in which commits held younger instructions");
        stats.count("core.system_calls", c.system_calls, "System calls");
        tlb_stats(&mut stats, &self.cores);
        stall_stats(&mut stats, &c.stalls, self.system.structures());
        load_stats(&mut stats, &self.measure.pmem_load_latency);
        stats.count("core.pmem_stores", self.measure.pmem_stores, "Stores that left for a line of persistent memory");
        if self.system.has_checks() {
            check_stats(&mut stats, &c);
        }
        let switches = self.scheduler.switches;
        stats.count("core.context_switches", switches, "Times a thread got the core, since the start");
        stats
    }
}

/// Counters of TLBs, on machines that have them.
fn tlb_stats(stats: &mut Stats, cores: &[Core]) {
    if cores.iter().all(|core| core.tlbs().is_none()) {
        return;
    }
    let mut t = TlbStats::default();
    cores.iter().filter_map(Core::tlbs).for_each(|tlbs| t.add(&tlbs.stats()));
    stats.count("tlb.data.accesses", t.data_accesses, "Look-ups of the TLBs for data");
    stats.count("tlb.data.misses", t.data_misses, "Look-ups of the TLBs for data that found nothing");
    stats.count("tlb.code.accesses", t.code_accesses, "Look-ups of the TLBs for instructions");
    stats.count("tlb.code.misses", t.code_misses, "Look-ups of the TLBs for instructions that found nothing");
    let second = t.data_misses + t.code_misses;
    stats.count("tlb.l2.accesses", second, "Look-ups of the second TLBs");
    stats.count("tlb.l2.misses", t.walks, "Look-ups of the second TLBs that found nothing: page walks");
    let cycles = t.walk_cycles as f64;
    stats.set(
        "tlb.walk_cycles",
        cycles,
        "cycles",
        "Cycles from misses of the second TLBs to translations, over all walks",
    );
    stats.count("tlb.shoot_downs", t.shoot_downs, "Translations dropped because mappings changed");
}

/// Counters of a design with checked accesses, derived from others (P-INSPECT, MICRO 2020, Table IX).
fn check_stats(stats: &mut Stats, cores: &CoreStats) {
    let of = |name| stats.get(name).unwrap_or(0.0);
    let accesses = of("core.loads") - of("core.forwards") + of("core.stores");
    let persistent = of("core.pmem_loads.count") + of("core.pmem_stores");
    let writes = of("persistent_writes.writes");
    let share = if accesses > 0.0 { 100.0 * persistent / accesses } else { 0.0 };
    let description = "Share of the loads and stores that go to the caches that go to persistent memory";
    stats.set("p_inspect.nvm_access_percent", share, "percent", description);
    let description = "Stores that went to persistent memory in one operation with their clean";
    stats.count("p_inspect.persistent_writes", writes as u64, description);
    let description =
        "Stores that persist with a fence of their own, in one operation or as a store, a clean and a fence";
    stats.count("p_inspect.fenced_stores.count", cores.fenced_stores, description);
    let description = "Cycles from when each could leave the store buffer until it was acknowledged, overlap left out";
    stats.set("p_inspect.fenced_stores.cycles", cores.fenced_store_cycles as f64, "cycles", description);
}

/// Latencies of loads of persistent memory, as cores see them.
fn load_stats(stats: &mut Stats, latency: &LoadLatency) {
    let (count, mean, all) = latency.distribution();
    let name = |what| format!("core.pmem_loads.{what}");
    stats.count(name("count"), count, "Loads of persistent memory that go to the caches");
    stats.set(name("latency_mean"), mean, "cycles", "Mean time from the issue of such a load to its data");
    let percentiles = [
        ("latency_p50", 0.5, "Median"),
        ("latency_p90", 0.9, "90th percentile"),
        ("latency_p99", 0.99, "99th percentile"),
        ("latency_p999", 0.999, "99.9th percentile"),
        ("latency_max", 1.0, "Maximum"),
    ];
    for (what, quantile, description) in percentiles {
        let description = format!("{description} of that time, three digits exact");
        stats.set(name(what), all.value_at_quantile(quantile) as f64, "cycles", &description);
    }
}

/// Cycles in which cores committed nothing, by what stood at the head of the reorder buffer and why it waited.
fn stall_stats(stats: &mut Stats, stalls: &StallCycles, structures: &[&str]) {
    let mut set = |name: String, cycles: u64, what: &str| {
        stats.set(
            format!("core.stalls.{name}"),
            cycles as f64,
            "cycles",
            &format!("Cycles in which nothing committed: {what}"),
        );
    };
    set("front_end".into(), stalls.front_end, "the next instruction had not been fetched, decoded and renamed");
    set("execution".into(), stalls.execution, "the oldest instruction was computing");
    set("system".into(), stalls.system, "system calls, thread switches, instructions that empty the pipeline");
    set("abort".into(), stalls.abort, "a transaction was rolled back");
    for place in StallPlace::ALL {
        let what = match place {
            StallPlace::Load => "a load",
            StallPlace::Store => "a store or cache-block operation",
            StallPlace::StoreQueue => "the store queue was full, its oldest entry",
            StallPlace::Fence => "a fence, or what it waits for,",
            StallPlace::Atomic => "an atomic operation",
            StallPlace::Commit => "the commit of a transaction, or what it waits for,",
        };
        for cause in StallCause::ALL {
            let cycles = stalls.of(place, cause);
            // Most pairs never occur.
            if cycles > 0 {
                let name = StallKind::Wait(place, cause).name(structures);
                set(name, cycles, &format!("{what} was {}", cause.description()));
            }
        }
    }
}
