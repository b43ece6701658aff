//! Fuzz bodies: plain functions that take any bytes, and panic if what they look at does anything but what it promises.
//!
//! Nothing here knows who makes the bytes. `tests/targets.rs` changes the files in `corpus/` on the stable toolchain, seeded
//! and bounded; the folder `fuzz/` of the repository wraps the same functions for cargo-fuzz. docs/fuzzing.md says what
//! each of them asks.

mod bytes;
mod configuration;
mod decoder;
mod elf_loader;
mod guest_recovery;
mod image;
mod marks;
mod memory;
mod planted;
mod pool_file;
mod recovery;
mod small_program;
mod snapshot_file;
mod system_calls;

pub use configuration::configuration;
pub use decoder::decoder;
pub use elf_loader::elf_loader;
pub use guest_recovery::{GUEST_PROGRAM, guest_image, guest_recovery};
pub use image::{Sparse, records};
pub use marks::reached;
pub use planted::{careless_recovery, parser_with_a_bug, root_too_high};
pub use pool_file::pool_file;
pub use recovery::{recovery, recovery_input};
pub use small_program::{CALL, DATA, small_program};
pub use snapshot_file::{quiesced_machine, snapshot_file};
pub use system_calls::{call_byte, path_byte, system_calls};

/// A fuzz body with its name, which is also that of its folder in `corpus/` and of its wrapper in `fuzz/`.
#[derive(Clone, Copy)]
pub struct Target {
    /// The name.
    pub name: &'static str,
    /// The function that is run with each input.
    pub body: fn(&[u8]),
    /// Inputs that a short run tries, so that all targets take about a second each.
    pub cases: u32,
    /// The marks that some of the inputs have to reach, or the run shows little.
    pub marks: &'static [&'static str],
}

/// All bodies that need nothing but this crate; [`guest_recovery`] needs a program for the guest.
pub const TARGETS: [Target; 7] = [
    Target {
        name: "elf_loader",
        body: elf_loader,
        cases: 10_000,
        marks: &["ELF refused", "ELF loaded", "ELF runs into its bound", "ELF faults"],
    },
    Target {
        name: "configuration",
        body: configuration,
        cases: 3000,
        marks: &["machine refused", "override refused", "variant does not fit", "machine built"],
    },
    Target { name: "pool_file", body: pool_file, cases: 10_000, marks: &["pool refused", "pool with pages read"] },
    Target {
        name: "recovery",
        body: recovery,
        cases: 20_000,
        marks: &["transaction replayed", "transaction discarded", "loss reported", "replayed and lost", "recovery cut"],
    },
    Target { name: "decoder", body: decoder, cases: 5000, marks: &["instruction decoded", "instruction refused"] },
    Target {
        name: "snapshot_file",
        body: snapshot_file,
        cases: 1000,
        marks: &["snapshot refused", "machine restored", "state refused"],
    },
    Target {
        name: "system_calls",
        body: system_calls,
        cases: 1000,
        marks: &["call succeeded", "call failed", "link made", "file renamed", "process forked"],
    },
];

/// The body that runs a guest's own recovery.
pub const GUEST_TARGET: Target = Target {
    name: "guest_recovery",
    body: guest_recovery,
    cases: 300,
    marks: &[
        "log entries applied",
        "nothing to apply",
        "more to undo",
        "violation found",
        "pool refused by its program",
        "pool is sound",
    ],
};

/// Recovery of a program that keeps a redo log: each of its logs holds one transaction at most.
pub const GUEST_REDO_TARGET: Target = Target {
    name: "guest_redo_recovery",
    body: guest_recovery,
    cases: 300,
    marks: &[
        "log entries applied",
        "nothing to apply",
        "damaged log refused",
        "violation found",
        "pool refused by its program",
        "pool is sound",
    ],
};

/// Recovery of a program whose log has one checksum for record and entries: what damage has changed is left out.
pub const GUEST_WRITE_AHEAD_TARGET: Target = Target {
    name: "guest_write_ahead_recovery",
    body: guest_recovery,
    cases: 300,
    marks: &[
        "log entries applied",
        "nothing to apply",
        "violation found",
        "pool refused by its program",
        "pool is sound",
    ],
};

/// Bodies with a planted bug. A maker of inputs has to find it, or finds nothing elsewhere either.
pub const CANARIES: [Target; 3] = [
    Target { name: "parser_with_a_bug", body: parser_with_a_bug, cases: 2000, marks: &[] },
    Target { name: "careless_recovery", body: careless_recovery, cases: 2000, marks: &[] },
    Target { name: "root_too_high", body: root_too_high, cases: 500, marks: &[] },
];

/// A refusal is one sentence that a user can read.
fn assert_is_a_sentence(text: &str) {
    assert!(!text.trim().is_empty() && !text.contains('\n'), "an error that is not a sentence: {text:?}");
}
