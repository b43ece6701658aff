//! Software logging: the hardware is [`Opt`], the runtime of the guest keeps transactions. The papers' variants differ in their
//! log and in what they clean.

use crate::Opt;
use crate::small_runs::{APART, BTREE, FOUR_CONTROLLERS, RING_OF_16, ROOMY, SWAP, TWO_PLACES};
use durasim_contract::{Alternatives, Backend, ErasedDesign, Interface, Laboratory, Promise, ShortCampaign, Variant};
use durasim_types::Domain;

pub(crate) const ROW_UNDO_FLUSH: Variant = Variant {
    name: "swl-flush",
    aliases: &[],
    hardware: ErasedDesign::of::<Opt>(),
    backend: Backend::UNDO_FLUSH,
    interfaces: &[Interface::Transactions],
    domains: &[Domain::Adr, Domain::Eadr, Domain::Media, Domain::Bbb, Domain::NvLlc],
    promise: Promise::Immediate,
    control: false,
    summary: "Software undo logging with cache-line cleans and fences",
    paper: "Hercules (TECS 2023) SWL_flush, section 3",
    assumptions: &["swl-granularity", "coalescing", "hops", "write-drain", "write-granularity"],
    laboratory: &UNDO_FLUSH,
};

pub(crate) const ROW_UNDO_FENCE: Variant = Variant {
    name: "swl-eadr",
    aliases: &[],
    hardware: ErasedDesign::of::<Opt>(),
    backend: Backend::UNDO_FENCE,
    interfaces: &[Interface::Transactions],
    domains: &[Domain::Eadr, Domain::Bbb],
    promise: Promise::Immediate,
    control: false,
    summary: "Software undo logging with fences alone, where stores survive: in caches or persist buffers",
    paper: "Hercules (TECS 2023) SWL_eADR, section 3",
    assumptions: &["swl-granularity", "hops", "write-drain", "write-granularity"],
    laboratory: &UNDO_FENCE,
};

/// Its log is durable where cleans are: at the media where no queue survives, as on the paper's machine, and at the
/// controller under ADR.
pub(crate) const ROW_WRITE_AHEAD: Variant = Variant {
    name: "sp",
    aliases: &[],
    hardware: ErasedDesign::of::<Opt>(),
    backend: Backend::WRITE_AHEAD,
    interfaces: &[Interface::Transactions],
    domains: &[Domain::Media, Domain::Adr, Domain::Eadr, Domain::Bbb, Domain::NvLlc],
    promise: Promise::Immediate,
    control: false,
    summary: "Software write-ahead logging: addresses and new values to a log, fence, stores in place, fence",
    paper: "TC (DAC 2017) SP, sections 2.1 and 5.1",
    assumptions: &["sp-log", "coalescing", "hops", "write-drain", "write-granularity"],
    laboratory: &WRITE_AHEAD,
};

/// The same promise with a write set in front of the log.
pub(crate) const VARIANT_REDO: Variant = Variant {
    name: "sp-indirect",
    backend: Backend::REDO_FLUSH,
    summary: "Software redo logging behind a write set that loads look up, with cache-line cleans and fences",
    paper: "TC (DAC 2017) SP, section 5.1, read as a library of transactions",
    assumptions: &["sp-indirect", "hops", "write-drain", "write-granularity"],
    laboratory: &REDO,
    ..ROW_WRITE_AHEAD
};

/// A ring of 328 words, no multiple of an entry, so that entries come to lie across its end.
const UNEVEN_RING: &[(&str, &str)] = &[("populate", "20"), ("node-bytes", "128"), ("log-bytes", "2688")];
const LOG_OF_WORDS: &[(&str, &str)] = &[("populate", "8"), ("shared-lines", "true"), ("log-granularity", "word")];

const UNDO_CAMPAIGNS: &[ShortCampaign] = &[
    ShortCampaign::of("btree", BTREE),
    ShortCampaign::of("btree", UNEVEN_RING).ops(30),
    ShortCampaign::of("array-swap", SWAP),
    ShortCampaign::of("btree", BTREE).with(&[FOUR_CONTROLLERS]).ops(20).faults(&["reorder", "nested"]),
    ShortCampaign::of("array-swap", RING_OF_16).ops(40),
    ShortCampaign::of("false-sharing", LOG_OF_WORDS).threads(4).ops(40),
    ShortCampaign::of("btree", BTREE).rehearsed(),
    ShortCampaign::of("array-swap", SWAP).threads(2).ops(30),
    ShortCampaign::of("false-sharing", APART).threads(4).ops(40),
];

const UNDO_FLUSH: Laboratory = Laboratory {
    campaigns: &[UNDO_CAMPAIGNS],
    quick_faults: &["entry-not-cleaned", "record-skipped", "recovery-skips-oldest"],
    canary: Some("recovery-skips-newest"),
    alternatives: &[Alternatives::of("swl-granularity", &[&["--arg log-granularity=word"]])],
    ..Laboratory::NONE
};

const UNDO_FENCE: Laboratory =
    Laboratory { quick_faults: &["checksum-after-store", "acknowledged-first", "recovery-skips-newest"], ..UNDO_FLUSH };

/// Of logs that hold new values: the words go home after the commit record.
const NEW_VALUE_CAMPAIGNS: &[ShortCampaign] = &[
    ShortCampaign::of("btree", BTREE),
    // A ring of 20 lines, so that transactions come to lie across its end.
    ShortCampaign::of("array-swap", RING_OF_16).ops(30),
    ShortCampaign::of("array-swap", SWAP).threads(2).ops(30),
    ShortCampaign::of("btree", BTREE).with(&[FOUR_CONTROLLERS]).ops(20).faults(&["reorder", "nested"]),
    ShortCampaign::of("btree", BTREE).rehearsed(),
    // Threads write to the same words in turn: what a log still holds is no longer the newest.
    ShortCampaign::of("array-swap", TWO_PLACES).with(&[ROOMY]).threads(4).ops(60),
    ShortCampaign::of("array-swap", TWO_PLACES)
        .with(&[ROOMY, FOUR_CONTROLLERS])
        .threads(4)
        .ops(60)
        .points(300)
        .faults(&["reorder"]),
    // Where no queue survives, a commit record is torn; another core has to do something meanwhile.
    ShortCampaign::of("false-sharing", APART).on(Domain::Media).threads(4).ops(40).points(300).faults(&["torn"]),
];

const REDO: Laboratory = Laboratory {
    campaigns: &[NEW_VALUE_CAMPAIGNS],
    quick_faults: &["record-before-entries", "truncated-before-home", "recovery-stops-after-first"],
    canary: Some("recovery-skips-last"),
    ..Laboratory::NONE
};

const WRITE_AHEAD: Laboratory = Laboratory {
    quick_faults: &["no-fence-after-log", "emptied-before-stores", "recovery-applies-first-only"],
    canary: Some("recovery-forgets-last"),
    ..REDO
};
