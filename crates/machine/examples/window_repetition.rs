//! Prints how often the window of a core comes back to a state that it was in before at the same instruction: what a memoised
//! scheduler (FastSim; Schnarr and Larus, ASPLOS 1998) could replay.
//!
//! `cargo run --release -p durasim-machine --example window_repetition -- INSTRUCTIONS ELF ARGUMENTS...`, where ARGUMENTS are
//! those of the guest. The program runs functionally to its region of interest, then INSTRUCTIONS in detail. The variables
//! MACHINE and DESIGN name another machine than `hercules-tecs23-modern` and another design than `opt`.
//!
//! A stretch is what the core executes at once: a decoded block, or the part of one up to where a store leaves or something else
//! is due. It can be replayed if the same stretch was placed before from an equal normal form of the window, with the same result:
//! distances of commit and fetch, and the next normal form. The state of the store buffer, caches and predictors shows in that
//! result alone, so the shares are upper bounds. They count instructions.
//!
//! The last line says what a stretch costs that is not known: its window has to be written as a normal form, at least. Beside it
//! stands the time of a stretch in the simulator as it is, from as many further instructions.

use durasim_core::Core;
use durasim_machine::{Captured, RunRequest, Session, prepare};
use durasim_types::{CoreId, Cycle};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

/// Numbers of remembered stretches for which shares are printed.
const REMEMBERED: [u64; 4] = [1 << 12, 1 << 16, 1 << 20, u64::MAX];

/// The stretches used last. Like the least recently used that it stands for, it finds each of the last
/// `entries / 2` that were used, and none older than the last `entries`.
struct Memory {
    entries: u64,
    young: HashMap<u64, ()>,
    old: HashMap<u64, ()>,
}

impl Memory {
    fn new(entries: u64) -> Self {
        Memory { entries, young: HashMap::new(), old: HashMap::new() }
    }

    /// Uses an entry; whether it was remembered.
    fn is_known(&mut self, key: u64) -> bool {
        let known = self.young.insert(key, ()).is_some() || self.old.contains_key(&key);
        if self.young.len() as u64 >= self.entries / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        known
    }
}

/// Instructions of known stretches, for one number of remembered ones.
struct Shares {
    states: Memory,
    placements: Memory,
    known_states: u64,
    known_placements: u64,
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The pc, the hash of the normal form, and the cycles of fetch and commit. `forming` grows by the time of the normal form.
fn look(core: &Core, form: &mut Vec<u32>, forming: &mut Duration) -> (u64, u64, [Cycle; 2]) {
    let began = Instant::now();
    core.window_form(form);
    *forming += began.elapsed();
    (core.hart.pc, hash(&*form), [core.fetch_cycle(), core.cycle()])
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let wanted: u64 =
        arguments.next().and_then(|n| n.parse().ok()).filter(|&n| n > 0).expect("a number of instructions");
    let elf = arguments.next().expect("a guest program");
    let arguments: Vec<String> = arguments.collect();
    let named = |variable, usual: &str| std::env::var(variable).unwrap_or(usual.into());
    let request = serde_json::json!({
        "machine": named("MACHINE", "hercules-tecs23-modern"), "design": named("DESIGN", "opt"), "elf": elf, "elf_name": elf,
        "args": arguments, "seed": 1, "workload": "guest", "fast_forward": "roi",
    });
    let request: RunRequest = serde_json::from_value(request).expect("a complete request");
    let mut output = Captured::default();
    let prepared = prepare(&request, durasim_designs::VARIANTS).expect("a machine");
    let mut session =
        Session::start(&request, prepared, durasim_designs::VARIANTS, &mut output).expect("a program that comes there");
    let machine = session.machine();
    let mut all = REMEMBERED.map(|entries| Shares {
        states: Memory::new(entries),
        placements: Memory::new(entries),
        known_states: 0,
        known_placements: 0,
    });
    let (mut form, mut forming) = (Vec::new(), Duration::ZERO);
    let (mut form_words, mut stretches, mut instructions) = (0, 0_u64, 0);
    let first = machine.instructions();
    let mut before = look(machine.core(CoreId(0)), &mut form, &mut forming);
    while instructions < wanted {
        machine.run(Some(first + instructions + 1), &mut output).expect("a program that runs");
        if machine.instructions() == first + instructions {
            break;
        }
        let count = machine.instructions() - first - instructions;
        instructions += count;
        stretches += 1;
        form_words += form.len() as u64;
        let after = look(machine.core(CoreId(0)), &mut form, &mut forming);
        let (pc, state, [fetched, committed]) = before;
        let placed = [after.2[0] - fetched, after.2[1] - committed];
        for shares in &mut all {
            let is_known = shares.states.is_known(hash((pc, count, state)));
            shares.known_states += if is_known { count } else { 0 };
            let is_known = shares.placements.is_known(hash((pc, count, state, placed, after.0, after.1)));
            shares.known_placements += if is_known { count } else { 0 };
        }
        before = after;
    }
    let first = machine.instructions();
    let began = Instant::now();
    machine.run(Some(first + wanted), &mut output).expect("a program that runs");
    let ns_per_instruction = began.elapsed().as_nanos() as f64 / (machine.instructions() - first).max(1) as f64;
    println!(
        "{instructions} instructions in {stretches} stretches, {} words in a normal form",
        form_words / stretches.max(1)
    );
    for (entries, shares) in REMEMBERED.iter().zip(&all) {
        let percent = |n: u64| 100.0 * n as f64 / instructions as f64;
        let remembered = if *entries == u64::MAX { "all".into() } else { entries.to_string() };
        println!(
            "remembered {remembered:>8}: state {:5.1} %, state and result {:5.1} %",
            percent(shares.known_states),
            percent(shares.known_placements)
        );
    }
    println!(
        "normal form {:.0} ns, stretch {:.0} ns",
        forming.as_nanos() as f64 / stretches.max(1) as f64,
        ns_per_instruction * instructions as f64 / stretches.max(1) as f64
    );
}
