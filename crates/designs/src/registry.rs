//! The registry: one line of facts per row. Tests, campaigns, reports and pages iterate over it.

use crate::{Hercules, Kiln, Opt, Tc};
use durasim_design::{Backend, ErasedDesign, Promise, Row};
use durasim_types::Domain;

const KILN_ASSUMPTIONS: &[&str] = &[
    "kiln-commit",
    "kiln-fifo",
    "kiln-overflow",
    "kiln-blocking",
    "kiln-txid",
    "kiln-isolation",
    "kiln-llc",
    "nv-llc",
    "background-concurrency",
];

/// All rows, in the order in which they are listed.
pub const ROWS: &[Row] = &[
    Row {
        name: "opt",
        aliases: &["optimal", "volatile"],
        hardware: ErasedDesign::of::<Opt>(),
        backend: Backend::Markers,
        domains: &[Domain::Adr, Domain::Eadr, Domain::Media, Domain::Bbb, Domain::NvLlc],
        promise: Promise::Immediate,
        control: true,
        summary: "Plain write-back caches, no logging, no flush, no fence: the optimum, which loses data",
        paper: "Hercules (TECS 2023) OPT; TC (DAC 2017) Optimal; LAD (MICRO 2019) Volatile",
        assumptions: &[],
    },
    Row {
        name: "swl-flush",
        aliases: &[],
        hardware: ErasedDesign::of::<Opt>(),
        backend: Backend::UndoFlush,
        domains: &[Domain::Adr, Domain::Eadr, Domain::Media, Domain::Bbb, Domain::NvLlc],
        promise: Promise::Immediate,
        control: false,
        summary: "Software undo logging with cache-line cleans and fences",
        paper: "Hercules (TECS 2023) SWL_flush, section 3",
        assumptions: &["swl-granularity"],
    },
    Row {
        name: "swl-eadr",
        aliases: &[],
        hardware: ErasedDesign::of::<Opt>(),
        backend: Backend::UndoFence,
        domains: &[Domain::Eadr, Domain::Bbb],
        promise: Promise::Immediate,
        control: false,
        summary: "Software undo logging with fences alone, where stores survive: in caches or persist buffers",
        paper: "Hercules (TECS 2023) SWL_eADR, section 3",
        assumptions: &["swl-granularity"],
    },
    // Its log is durable where cleans are: at the controller under ADR, at the media where no queue survives. The paper's
    // machine has acknowledgements of the media alone, which is the domain `media`.
    Row {
        name: "sp",
        aliases: &[],
        hardware: ErasedDesign::of::<Opt>(),
        backend: Backend::RedoFlush,
        domains: &[Domain::Adr, Domain::Eadr, Domain::Media, Domain::Bbb, Domain::NvLlc],
        promise: Promise::Immediate,
        control: false,
        summary: "Software write-ahead (redo) logging with cache-line cleans and fences",
        paper: "TC (DAC 2017) SP, section 5.1",
        assumptions: &["sp-log"],
    },
    Row {
        name: "hercules",
        aliases: &[],
        hardware: ErasedDesign::of::<Hercules>(),
        backend: Backend::Markers,
        domains: &[Domain::Eadr],
        promise: Promise::Immediate,
        control: false,
        summary: "eADR-backed caches as transaction log: TransTags, eWPQ, in-pmem log zone",
        paper: "Ye, Chen, Jiang, Wang: Hercules, ACM TECS 2023",
        assumptions: &[
            "hercules-log-entry",
            "hercules-partial-match",
            "hercules-victim",
            "hercules-recovery",
            "hercules-controllers",
            "hercules-gc",
            "hercules-log-extension",
            "hercules-extension-chain",
            "hercules-txlen-store",
            "hercules-tag-rounding",
            "hercules-extension-search",
            "hercules-conflict",
            "background-concurrency",
        ],
    },
    Row {
        name: "tc",
        aliases: &[],
        hardware: ErasedDesign::of::<Tc>(),
        backend: Backend::Markers,
        domains: &[Domain::NvTc],
        promise: Promise::Immediate,
        control: false,
        summary: "A nonvolatile transaction cache beside each core drains committed stores; the caches drop theirs",
        paper: "Lai, Zhao, Yang: Leave the Cache Hierarchy Operation as It Is, DAC 2017",
        assumptions: &[
            "tc-coalescing",
            "tc-merge",
            "tc-overflow",
            "tc-plain-stores",
            "tc-order",
            "tc-home",
            "tc-identifiers",
            "tc-latency",
            "tc-acknowledgement",
            "background-concurrency",
        ],
    },
    Row {
        name: "kiln",
        aliases: &[],
        hardware: ErasedDesign::of::<Kiln>(),
        backend: Backend::Markers,
        domains: &[Domain::NvLlc],
        promise: Promise::Immediate,
        control: false,
        summary: "A nonvolatile last level: commits flush the lines of their transaction into it and turn them committed",
        paper: "Zhao, Li, Yoon, Xie, Jouppi: Kiln, MICRO 2013",
        assumptions: KILN_ASSUMPTIONS,
    },
    // What a machine whose upper caches survive too would give it; no paper shows it.
    Row {
        name: "kiln-eadr",
        aliases: &[],
        hardware: ErasedDesign { planted: Kiln::PLANTED_EADR, marks: Kiln::MARKS_EADR, ..ErasedDesign::of::<Kiln>() },
        backend: Backend::Markers,
        domains: &[Domain::Eadr],
        promise: Promise::Immediate,
        control: false,
        summary: "Kiln where all caches survive: commits flush nothing, the states of their lines change",
        paper: "Zhao, Li, Yoon, Xie, Jouppi: Kiln, MICRO 2013, on an eADR machine",
        assumptions: KILN_ASSUMPTIONS,
    },
];

/// The row of that name, or of that alias.
pub fn row(name: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.name == name || row.aliases.contains(&name))
}
