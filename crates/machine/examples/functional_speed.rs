//! Prints how fast a guest program is executed functionally: the whole run, and the way to its region of interest
//! without and with warming. Also prints what the results depend on, so that two builds can be compared.
//!
//! `cargo run --release -p durasim-machine --example functional_speed -- TURNS ELF ARGUMENTS...`, where ARGUMENTS are those
//! of the guest. The three ways take turns; the best and the median turn of each are shown. The variables MACHINE and DESIGN
//! name another machine than `hercules-tecs23-modern` and another design than `opt`.

use durasim_machine::{Captured, RunRequest, Session, prepare, run};
use std::time::Instant;

const WAYS: [(&str, Option<bool>); 3] =
    [("functional run", None), ("fast-forward, cold", Some(false)), ("fast-forward, warm", Some(true))];

/// Result of one turn of one variant.
struct Turn {
    instructions: u64,
    seconds: f64,
    /// The digest of the machine, or of the persistent memory after a functional run.
    digest: String,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let turns: usize = arguments.next().and_then(|n| n.parse().ok()).filter(|&n| n > 0).expect("the number of turns");
    let elf = arguments.next().expect("a guest program");
    let arguments: Vec<String> = arguments.collect();
    let named = |variable, usual: &str| std::env::var(variable).unwrap_or(usual.into());
    let (machine, design) = (named("MACHINE", "hercules-tecs23-modern"), named("DESIGN", "opt"));
    let request = |fast_forward: Option<bool>| -> RunRequest {
        let request = serde_json::json!({
            "machine": machine, "design": design, "elf": elf, "elf_name": elf, "args": arguments, "seed": 1,
            "workload": "guest", "functional": fast_forward.is_none(),
            "fast_forward": fast_forward.map(|_| "roi"), "warm": fast_forward.unwrap_or(true),
        });
        serde_json::from_value(request).expect("a complete request")
    };
    let mut all: [Vec<Turn>; 3] = Default::default();
    for _ in 0..turns {
        for (index, (_, fast_forward)) in WAYS.iter().enumerate() {
            all[index].push(turn(&request(*fast_forward)));
        }
    }
    for ((name, _), turns) in WAYS.iter().zip(&all) {
        let mut mips: Vec<f64> = turns.iter().map(|turn| turn.instructions as f64 / turn.seconds / 1e6).collect();
        mips.sort_by(f64::total_cmp);
        let last = turns.last().expect("one turn or more");
        let (best, median) = (mips[mips.len() - 1], mips[mips.len() / 2]);
        println!(
            "{name:20} best {best:6.1} median {median:6.1} MIPS  {} instructions, {}",
            last.instructions, last.digest
        );
    }
}

fn turn(request: &RunRequest) -> Turn {
    let mut output = Captured::default();
    let begin = Instant::now();
    if request.functional {
        let result = run(request, durasim_designs::VARIANTS, &mut output).expect("a program that runs");
        let seconds = begin.elapsed().as_secs_f64();
        return Turn { instructions: result.program.instructions, seconds, digest: result.digest };
    }
    let prepared = prepare(request, durasim_designs::VARIANTS).expect("a machine");
    let mut session =
        Session::start(request, prepared, durasim_designs::VARIANTS, &mut output).expect("a program that comes there");
    let seconds = begin.elapsed().as_secs_f64();
    let machine = session.machine();
    Turn { instructions: machine.instructions(), seconds, digest: machine.digest() }
}
