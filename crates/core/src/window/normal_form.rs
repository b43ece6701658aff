//! The state of the window relative to the cycle of its front end, without what no later instruction can notice. Two windows
//! with equal normal forms place the same instructions with the same memory latencies at the same distances (the state that
//! FastSim memoises; Schnarr and Larus, ASPLOS 1998).
//!
//! Left out is what is an average over the whole run: the pace of the front end, which bounds the wrong path of a squash.

use super::queues::{CALENDAR, Lane, Ring};
use super::{Slot, Window};
use durasim_types::Cycle;

impl Window {
    /// Writes the normal form in place of what `into` holds: distances in cycles, and counts.
    pub fn normal_form(&self, into: &mut Vec<u32>) {
        into.clear();
        let fetch = self.fetch.cycle;
        // The first cycles in which the next instruction can be renamed, dispatched and committed.
        let rename = fetch + self.fetch_to_rename_cycles;
        let dispatch = rename + self.rename_to_dispatch_cycles;
        let commit = dispatch + 1 + self.complete_to_commit_cycles;
        let after = |cycle: Cycle, from: Cycle| cycle.saturating_sub(from) as u32;
        let lane = |of: &Lane, from: Cycle| {
            if of.cycle < from { [0, 0] } else { [1 + after(of.cycle, from), of.left] }
        };
        into.extend(lane(&self.fetch, fetch));
        into.extend(lane(&self.rename, rename));
        into.extend(lane(&self.commit, commit));
        let mut ring = |of: &Ring, from: Cycle| into.extend(of.in_order().map(|freed| after(freed, from)));
        ring(&self.front, fetch);
        // An entry can be taken in the cycle after it became free.
        ring(&self.rob, rename - 1);
        ring(&self.loads, rename - 1);
        into.extend(self.registers.iter().map(|&cycle| after(cycle, dispatch)));
        into.extend(self.busy.iter().flatten().map(|&cycle| after(cycle, dispatch)));
        into.push(after(self.memory_floor, dispatch));
        into.extend(
            self.waiting.leaving_after(rename, self.commit.cycle).flat_map(|(cycle, n)| [after(cycle, rename), n]),
        );
        // Every instruction has issued before its commit.
        for cycle in dispatch..=self.commit.cycle {
            let Slot { round, counts } = self.calendar.read()[cycle as usize % CALENDAR];
            if u64::from(round) == cycle / CALENDAR as Cycle && counts != self.empty_counts {
                into.extend([after(cycle, dispatch), counts]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CoreConfig;
    use crate::inst_info::{InstInfo, Kind, NO_REGISTER};
    use durasim_isa::Class;
    use durasim_types::Rng;

    fn form(window: &Window) -> Vec<u32> {
        let mut form = Vec::new();
        window.normal_form(&mut form);
        form
    }

    /// Places an instruction; the distance of its commit from the fetch before it.
    fn step(window: &mut Window, rng: &mut Rng) -> Cycle {
        let class = [Class::IntAlu, Class::IntMul, Class::FpAdd, Class::Load][rng.below(4) as usize];
        let (pool, units, latency_cycles, pipelined) = window.unit(class);
        let sources = [rng.below(8) as u8 + 1, rng.below(8) as u8 + 1, 0];
        let dest = if rng.below(8) == 0 { NO_REGISTER } else { rng.below(8) as u8 + 1 };
        let shape =
            InstInfo { class, kind: Kind::Plain, pool, units, pipelined, sources, dest, latency_cycles, bytes: 0 };
        let (from, is_load) = (window.fetch_cycle(), class == Class::Load);
        let dispatched = if is_load { window.enter::<true>(0, 0) } else { window.enter::<false>(0, 0) };
        let issued = window.issue(&shape, dispatched, window.operands(&shape.sources));
        let complete = issued + Cycle::from(latency_cycles) + if is_load { rng.below(60) } else { 0 };
        window.leave_issue_queue(if is_load { complete } else { issued });
        window.write_register(shape.dest, complete);
        let committed = if is_load {
            window.commit::<true>(complete, |_, _| {})
        } else {
            window.commit::<false>(complete, |_, _| {})
        };
        if rng.below(6) == 0 {
            window.end_fetch_cycle();
        }
        committed - from
    }

    #[test]
    fn windows_with_equal_forms_place_equal_instructions_equally() {
        let config =
            CoreConfig { rob_entries: 16, issue_queue_entries: 8, load_queue_entries: 4, ..CoreConfig::default() };
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let mut old = Window::new(&config);
            (0..rng.below(300)).for_each(|_| {
                step(&mut old, &mut rng);
            });
            // After a wait that is long enough nothing of the past is left, wherever it was.
            let mut new = Window::new(&config);
            old.restart(old.commit_cycle() + 500);
            new.restart(1000);
            assert_eq!(form(&old), form(&new), "seed {seed}");
            for _ in 0..200 {
                let mut same = rng.clone();
                assert_eq!(step(&mut old, &mut rng), step(&mut new, &mut same), "seed {seed}");
                assert_eq!(form(&old), form(&new), "seed {seed}");
            }
        }
    }

    #[test]
    fn what_the_next_instruction_waits_for_is_in_the_form() {
        let mut window = Window::new(&CoreConfig::default());
        window.restart(1000);
        let empty = form(&window);
        window.write_register(5, 900);
        assert_eq!(form(&window), empty, "the value is there");
        window.write_register(5, 2000);
        assert_ne!(form(&window), empty);
    }
}
