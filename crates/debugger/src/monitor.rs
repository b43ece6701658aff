//! The commands of durasim inside gdb: `monitor COMMAND`.

use crate::replay::{Place, Replay, RunEnd};
use durasim_machine::ThreadId;
use durasim_types::PhysAddr;
use std::fmt::Write;

const HELP: &str = "\
monitor where: the run, the instruction, the cycle and the last persist event
monitor runs: the runs of this trial
monitor line ADDRESS: the copies of the line of persistent memory at this address, from the cores down
";

/// The answer to a command.
pub(crate) fn answer(replay: &mut Replay<'_>, command: &str) -> String {
    let words: Vec<&str> = command.split_whitespace().collect();
    match words.as_slice() {
        ["where"] => place(replay),
        ["runs"] => runs(replay),
        ["line", address] => match parse_address(address) {
            Some(address) => line(replay, address),
            None => format!("'{address}' is no address: write it as 0x followed by hexadecimal digits\n"),
        },
        _ => HELP.to_owned(),
    }
}

fn parse_address(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The place of the replay, in one sentence.
pub(crate) fn place(replay: &Replay<'_>) -> String {
    let Place { run, position, cycle, last_event } = replay.place();
    let number = run + 1;
    let (purpose, total) = (replay.purpose().name(), replay.runs().len());
    let mut text = format!(
        "{purpose} (run {number} of {total}), after instruction {position} of all cores, cycle {cycle}, persist event {last_event}"
    );
    match replay.end() {
        Some(RunEnd::PowerFailure) => text.push_str(": the power has failed"),
        Some(RunEnd::Exited(code)) => {
            let _ = write!(text, ": it has exited with code {code}");
        }
        Some(RunEnd::Failed(what)) => {
            let _ = write!(text, ": {what}");
        }
        None => {}
    }
    text + "\n"
}

fn runs(replay: &Replay<'_>) -> String {
    let mut text = String::new();
    for (index, run) in replay.runs().iter().enumerate() {
        let mark = if index == replay.run() { '*' } else { ' ' };
        let end = match run.fails_after {
            Some(event) => format!("power fails after persist event {event}"),
            None => "to its end".to_owned(),
        };
        let args = if run.program.args.is_empty() {
            String::new()
        } else {
            format!(", arguments: {}", run.program.args.join(" "))
        };
        let _ = writeln!(text, "{mark} {}: {}, {end}{args}", index + 1, run.purpose.name());
    }
    text
}

fn line(replay: &mut Replay<'_>, address: u64) -> String {
    // Physical addresses of persistent memory are taken too: documents name lines by them.
    let machine = replay.machine();
    let phys = machine.physical_address(address).unwrap_or(PhysAddr(address));
    let copies = machine.system().copies(phys.line());
    if copies.is_empty() {
        return format!("{address:#x} is no address of persistent memory\n");
    }
    let line = phys.line();
    let mut text = format!("line {:#x}\n", line.base().0);
    for copy in copies {
        let state = if copy.dirty { "newer than below" } else { "" };
        let words: Vec<String> = copy
            .data
            .chunks_exact(8)
            .map(|word| format!("{:016x}", u64::from_le_bytes(word.try_into().expect("a word has 8 bytes"))))
            .collect();
        let _ = writeln!(text, "  {:<28} {:<17} {}", copy.place.to_string(), state, words.join(" "));
    }
    text
}

impl Replay<'_> {
    /// A thread, for gdb's list of threads.
    pub(crate) fn describe_thread(&self, thread: ThreadId) -> String {
        match self.view(thread) {
            Some(Some(core)) => format!("thread {} on core {}", thread.0, core.0),
            Some(None) => format!("thread {} without a core", thread.0),
            None => format!("thread {} has ended", thread.0),
        }
    }
}
