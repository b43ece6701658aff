"""Tests that a default, a count or a setting in prose is that of the preset, of the registry or of the results.

A fact is a sentence of a document with `{}` in place of each value. The values are read from what runs, and the
document has to contain the sentence with them. A setting in words that a sentence ascribes to presets or to a default
has to be such a fact.
"""

import csv
import re
import statistics
import sys
from functools import cache

import pytest

import durasim as ds
from document_blocks import ROOT, pages
from durasim.crashes import shrink
from durasim.crashes.crash_request import CrashOptions
from presets import argument, value

sys.path.insert(0, str(ROOT / "tests" / "timing"))
import multicore
import validation

OF_HERCULES = tuple(row["name"] for row in ds.machines() if row["name"].startswith("hercules-"))
WITH_CORE_OF_GEM5 = tuple(name for name in OF_HERCULES if "modern" not in name)
OF_TODAY = tuple(name for name in OF_HERCULES if "modern" in name)
HERCULES, TC = "hercules-tecs23", "tc-dac17"
# Presets whose DRAM has DDR timing; TC's names its policy.
WITH_DDR = ("lad-micro19", "lad-micro19-dual", "pinspect-micro20", "spht-eadr-2022")
OTHERS = tuple(row["name"] for row in ds.machines() if row["name"] not in (TC, "tiny"))

WORDS = {1: "a", 2: "two", 3: "three", 4: "four", 8: "eight"}
COALESCING = {"none": "takes an entry", "line": "share one"}
ASSUMPTIONS = "python/durasim/assumptions.toml"
ATTEMPTS = {10: "Ten"}
HTM_PAGE, LIMITS_SOURCE = "docs/hardware-transactions.md", "crates/crash/src/limits.rs"
MACHINE_PAGE, TC_PAGE, KILN_PAGE = "docs/machine-assumptions.md", "docs/designs/tc.md", "docs/designs/kiln.md"


def setting(key, *presets, scale=1, words=None):
    """Returns the value of a key on these presets, which have to agree; divided by `scale`, as a word of `words`."""
    found = {value(preset, key) for preset in presets or (HERCULES,)}
    assert len(found) == 1, f"{key}: the presets do not agree: {found}"
    only = found.pop()
    if words:
        return words[only]
    if isinstance(only, int) and not isinstance(only, bool):
        assert only % scale == 0
        return f"{only // scale:,}"
    return str(only)


def of_design(name, *presets, **how):
    return lambda: setting(f"design:{name}", *presets, **how)


def of_machine(name, *presets, **how):
    return lambda: setting(f"machine:{name}", *presets, **how)


@cache
def _results(name):
    with (ROOT / "docs/results" / f"{name}.csv").open(encoding="utf-8", newline="") as text:
        return tuple(csv.DictReader(text))


def result(page, number=str, **columns):
    """Ours of the one row of a page of results that has these columns."""

    def found():
        rows = [row["ours"] for row in _results(page) if columns.items() <= row.items()]
        assert len(rows) == 1, rows
        return number(rows[0])

    return found


def differing(name):
    """Returns the number of scored numbers of a page that differ, and of all that score."""
    scored = [row["verdict"] for row in _results(name) if row["class"] in ("measured", "predicate")]
    return lambda: str(scored.count("differs")), lambda: str(len(scored))


def kiln():
    """Hercules over Kiln with data of 1.4 times the LLC."""
    rows = _results("hercules-tecs23-throughput")
    return next(row["gem5 1.4"].split()[0] for row in rows if row["design"] == "`kiln`")


def default_of(path):
    """The default of an argument of a program or a runtime."""
    return lambda: f"{argument(path).default:,}" if isinstance(argument(path).default, int) else argument(path).default


def constant(file, name, scale=1):
    """A constant of a source in Rust."""

    def found():
        text = (ROOT / file).read_text(encoding="utf-8")
        number, shift = re.search(rf"const {name}: u64 = ([\d_]+)(?: << (\d+))?;", text).groups()
        return str((int(number) << int(shift or 0)) // scale)

    return found


def default_domain(*designs):
    """The domain that these rows have if none is given."""

    def found():
        (domain,) = {row["default_domain"] for row in ds.designs() if row["name"] in designs}
        return domain

    return found


def ipc_error(of_all):
    """The error of IPC beside gem5 that `of_all` makes of the recorded ones, in percent."""
    errors = [abs(error) for of in validation.ipc_errors().values() for error in of.values()]
    return lambda: f"{of_all(errors):.1f}"


def far_from_gem5():
    """Returns the bound of rows with several cores, the number beyond it, and the number of all rows."""
    rows = multicore.recorded()
    far = sum(not row.is_close for row in rows)
    return lambda: str(multicore.DIFFERENCE_PERCENT_MAX), lambda: str(far), lambda: str(len(rows))


MIB, MILLION = 1 << 20, 1_000_000
FACTS = [
    # The commit of TC.
    (
        TC_PAGE,
        "On `tc-dac17`, and by default, it does not hold later stores (`{}`)",
        of_design("tc.commit", TC, "tiny"),
    ),
    (
        TC_PAGE,
        "on the presets of Hercules they wait until the array has been written (`{}`)",
        of_design("tc.commit", *OF_HERCULES),
    ),
    (
        ASSUMPTIONS,
        "later stores wait for it on the presets of Hercules (`{}`), not elsewhere (`{}`)",
        of_design("tc.commit", *OF_HERCULES),
        of_design("tc.commit", TC),
    ),
    (
        "docs/results/hercules-tecs23.md",
        "commit wait until the transaction cache has recorded it (`design.tc.commit={}`",
        of_design("tc.commit"),
    ),
    ("docs/first-hour.md", "│ commit │ {} │ early, accepted, acknowledged │", of_design("tc.commit", "tiny", TC)),
    ("docs/first-hour.md", "│ coalesce │ {} │ none, line │", of_design("tc.coalesce", "tiny", TC)),
    # Its sizes.
    (
        ASSUMPTIONS,
        "Each store {} on `tc-dac17`; on the presets of Hercules stores to a line {}",
        of_design("tc.coalesce", TC, words=COALESCING),
        of_design("tc.coalesce", *OF_HERCULES, words=COALESCING),
    ),
    (TC_PAGE, "without joining it overflows a cache of {} entries", of_design("tc.entries", TC, *OF_HERCULES[:1])),
    (
        TC_PAGE,
        "from {} % on, if the oldest entry is of an open transaction",
        of_design("tc.overflow_percent", TC, HERCULES),
    ),
    (TC_PAGE, "The area has {} lines for each core", of_design("tc.shadow_lines", TC, HERCULES)),
    (TC_PAGE, "`tiny`, which has 64 MiB, has {}.", of_design("tc.shadow_lines", "tiny")),
    (
        TC_PAGE,
        "identifiers are 1 to {} on each core",
        lambda: str(2 ** int(setting("design:tc.tx_id_bits", TC, HERCULES)) - 1),
    ),
    (
        TC_PAGE,
        "No further copy begins while {} entries of the cache are being copied",
        of_design("tc.copies_in_flight", TC, HERCULES, words=WORDS),
    ),
    # Kiln: its last level, ports, FIFOs.
    (KILN_PAGE, "the LLC has {} times the sets of the machine's own by default", of_design("kiln.llc_size_factor")),
    (KILN_PAGE, "as many ({}) on `tc-dac17`", of_design("kiln.llc_size_factor", TC)),
    (
        KILN_PAGE,
        "{} port beside each core, as for one slice",
        of_design("kiln.llc_ports_per_core", TC, *OF_HERCULES, words=WORDS),
    ),
    (
        ASSUMPTIONS,
        "LLC of four times the sets, {} and {} cycles",
        of_design("kiln.llc_read_latency_cycles", *OF_HERCULES),
        of_design("kiln.llc_write_latency_cycles", *OF_HERCULES),
    ),
    (
        ASSUMPTIONS,
        "One port for each core, any port for any line; a write keeps it for {} cycles, {} are pipelined",
        of_design("kiln.llc_write_latency_cycles", *OF_HERCULES),
        of_design("kiln.llc_pipelined", TC, *OF_HERCULES),
    ),
    (KILN_PAGE, "{} entries for each of L1D and L2, of each core", of_design("kiln.fifo_entries", TC, HERCULES)),
    (
        ASSUMPTIONS,
        "{} entries for each of L1D and L2; one cycle an entry at commit",
        of_design("kiln.fifo_entries", HERCULES),
    ),
    (KILN_PAGE, "from {} % of the entries of a core's FIFOs on", of_design("kiln.overflow_percent", TC, HERCULES)),
    (KILN_PAGE, "Assumed: {} bits. A number is free again", of_design("kiln.tx_id_bits", TC, HERCULES)),
    ("docs/results/tc-dac17.md", "Kiln with `versions={}`, as we have it", of_design("kiln.versions", TC, HERCULES)),
    # Proteus, FWB, HOOP, PiCL, LAD, Hercules.
    (
        "docs/designs/proteus.md",
        "these sizes, a LogQ of {} and an LLT of {} entries in {} ways",
        *(of_design(f"proteus.{name}", TC, HERCULES) for name in ("logq_entries", "llt_entries", "llt_ways")),
    ),
    (
        "docs/designs/proteus.md",
        "a queue of its own with {} entries at each controller",
        of_design("proteus.lpq_entries"),
    ),
    (
        "docs/designs/proteus.md",
        "a flush leaves ahead of older stores (`{}`)",
        of_design("proteus.flush_order", TC, HERCULES),
    ),
    (
        "docs/designs/proteus.md",
        "There are {} for each core, of {} entries each (`tiny` has {})",
        of_design("proteus.logs_per_core", words=WORDS),
        of_design("proteus.log_entries"),
        of_design("proteus.log_entries", "tiny"),
    ),
    (ASSUMPTIONS, "A log pending queue of {} entries", of_design("proteus.lpq_entries", TC, HERCULES)),
    (
        "docs/designs/fwb.md",
        "a log buffer of {} records, a log of {} MB, a scan every three million cycles",
        of_design("fwb.log_buffer_entries"),
        of_design("fwb.log_bytes", scale=MIB),
    ),
    (
        ASSUMPTIONS,
        "Log buffer of {} records of 32 bytes, log of {} MB, a scan every {} million cycles",
        of_design("fwb.log_buffer_entries"),
        of_design("fwb.log_bytes", scale=MIB),
        of_design("fwb.scan_period_cycles", scale=MILLION),
    ),
    (
        "docs/designs/hoop.md",
        "Assumed: {} MB for all cores, in entries of eight bytes",
        of_design("hoop.mapping_table_bytes", scale=MIB),
    ),
    (
        "docs/designs/hoop.md",
        "It is as large as the mapping table, {} MB",
        of_design("hoop.line_table_bytes", scale=MIB),
    ),
    (
        "docs/designs/hoop.md",
        "the slices of {} transactions are read at a time",
        of_design("hoop.copies_in_flight", words=WORDS),
    ),
    (ASSUMPTIONS, "four lines at a time, every {} ms", of_design("hoop.gc_period_ns", TC, HERCULES, scale=MILLION)),
    (
        "docs/designs/picl.md",
        "an epoch has {} million instructions, the asynchronous cache scan lags by {} epochs",
        of_design("picl.epoch_instructions", scale=MILLION),
        of_design("picl.scan_gap_epochs", words=WORDS),
    ),
    (
        "docs/designs/picl.md",
        "the undo buffer 2 KB ({} lines) and its Bloom filter 4096 bits",
        of_design("picl.undo_buffer_entries"),
    ),
    ("docs/designs/picl.md", "The log has {} MB and does not grow", of_design("picl.log_bytes", scale=MIB)),
    (
        "docs/designs/lad.md",
        "room for {} entries of two lines for each controller, doubled up to {} in {} cycles",
        *(
            of_design(f"lad.{name}", "lad-micro19")
            for name in ("undo_log_entries", "undo_log_entries_max", "undo_log_growth_cycles")
        ),
    ),
    ("docs/designs/lad.md", "reclaimed every {} cycles", of_design("lad.reclaim_period_cycles", "lad-micro19")),
    ("docs/designs/lad.md", "serial numbers of {} bits", of_design("lad.dtx_id_bits", "lad-micro19")),
    (
        "docs/designs/hercules.md",
        "{} migrations, {} copies, also of Kiln's fall-back path, {} entries",
        of_design("hercules.migrations_in_flight"),
        of_design("tc.copies_in_flight"),
        of_design("proteus.spills_in_flight"),
    ),
    ("docs/designs/hercules.md", "Assumed: `{}`. The bits of the home address", of_design("hercules.extension_lookup")),
    (
        "docs/designs/hercules.md",
        "{} cycles to the first line (one read of pmem), {} to each further one",
        of_design("hercules.extension_search_first_cycles"),
        of_design("hercules.extension_search_line_cycles"),
    ),
    # Controllers: drain policy, queues, channels; media.
    (
        MACHINE_PAGE,
        "`tc-dac17` has this policy (`{}`): a drain starts at {} % and ends when no more than {} % of the queue",
        *(
            of_machine(f"pmem.controller.{name}", TC)
            for name in ("write_policy", "drain_start_percent", "drain_stop_percent")
        ),
    ),
    (MACHINE_PAGE, "its machine keeps `{}`", of_machine("pmem.controller.write_policy", *OF_HERCULES)),
    (
        MACHINE_PAGE,
        "those of both memories together, and the policy `{}`",
        of_machine("dram.controller.write_policy", "lad-micro19", "lad-micro19-dual"),
    ),
    (
        MACHINE_PAGE,
        "The presets with DDR media that name none have `{}`",
        of_machine("dram.controller.write_policy", *WITH_DDR),
    ),
    (
        ASSUMPTIONS,
        "`{}`: a write starts when its bank is free; DDR media: `{}`, drain from {} to {} %",
        of_machine("pmem.controller.write_policy", *OF_HERCULES),
        *(
            of_machine(f"dram.controller.{name}", TC, *WITH_DDR)
            for name in ("write_policy", "drain_start_percent", "drain_stop_percent")
        ),
    ),
    (
        MACHINE_PAGE,
        "The presets of Hercules and TC have {} controller for each memory",
        lambda: {"1": "one"}[setting("machine:pmem.controllers", TC, *OF_HERCULES)],
    ),
    (
        MACHINE_PAGE,
        "{} accesses in service at a time, lines spread over them by address, and 12.8 GB/s",
        of_machine("pmem.media.banks", *OF_HERCULES),
    ),
    (
        MACHINE_PAGE,
        "what else that model has: {} banks, rows of {} bytes",
        of_machine("pmem.media.banks", "hercules-tecs23-rows"),
        of_machine("pmem.media.row_bytes", "hercules-tecs23-rows"),
    ),
    (
        MACHINE_PAGE,
        "blocks of {} bytes in turn",
        lambda: setting("machine:pmem.interleave_bytes", *OTHERS).replace(",", ""),
    ),
    (
        MACHINE_PAGE,
        "every write costs the media a multiple of {} bytes",
        of_machine("pmem.media.write_granularity_bytes", *OF_HERCULES),
    ),
    (
        MACHINE_PAGE,
        "a controller with eight banks, read and write queues of {} entries",
        of_machine("pmem.controller.write_queue_entries", "pinspect-micro20"),
    ),
    (
        MACHINE_PAGE,
        "Each controller has {} entries for reads and {} for writes",
        *(
            of_machine(f"pmem.controller.{name}_queue_entries", "lad-micro19", "lad-micro19-dual")
            for name in ("read", "write")
        ),
    ),
    # Cores and caches.
    (
        MACHINE_PAGE,
        "queues of {} (issue), {} (loads) and {} entries (stores); one store in flight",
        *(of_machine(f"core.{name}_queue_entries", *WITH_CORE_OF_GEM5) for name in ("issue", "load", "store")),
    ),
    (
        MACHINE_PAGE,
        "{} misses in flight of each level-one cache and {} of the others",
        of_machine("l1d.mshrs", *WITH_CORE_OF_GEM5),
        of_machine("llc.mshrs", *WITH_CORE_OF_GEM5),
    ),
    (
        MACHINE_PAGE,
        "issue queue {}, load queue {}, store queue {}, the sizes of a contemporary server core",
        *(of_machine(f"core.{name}_queue_entries", *OF_TODAY) for name in ("issue", "load", "store")),
    ),
    (
        MACHINE_PAGE,
        "{} for the L1I, {} for the L1D, {} for L2, {} for the LLC",
        *(of_machine(f"{level}.mshrs", TC, "pinspect-micro20", *OF_TODAY) for level in ("l1i", "l1d", "l2", "llc")),
    ),
    (
        MACHINE_PAGE,
        "reorder buffer {}, issue queue {}, load queue {}, store queue {}. Its LLC includes",
        *(of_machine(f"core.{name}_entries", TC) for name in ("rob", "issue_queue", "load_queue", "store_queue")),
    ),
    (
        MACHINE_PAGE,
        "takes {} cycles more than one that the last level answers",
        of_machine("interconnect.snoop_cycles"),
    ),
    (MACHINE_PAGE, "A line that leaves the LLC finds one of {} buffers", of_machine("interconnect.write_back_buffers")),
    (MACHINE_PAGE, "while more than {} % of its entries are taken", of_machine("bbb.drain_threshold_percent")),
    (
        ASSUMPTIONS,
        "queues {}, {}, {}; one store in flight; {} and {} MSHRs",
        *(of_machine(f"core.{name}_queue_entries", *WITH_CORE_OF_GEM5) for name in ("issue", "load", "store")),
        of_machine("l1d.mshrs", *WITH_CORE_OF_GEM5),
        of_machine("llc.mshrs", *WITH_CORE_OF_GEM5),
    ),
    (
        "docs/first-hour.md",
        "The default machine, `hercules-tecs23-modern`, has an LLC of {} MiB",
        of_machine("llc.size_bytes", scale=MIB),
    ),
    # Programs, runtimes and campaigns.
    (ASSUMPTIONS, "{} attempts, all aborts count, no back-off", lambda: ATTEMPTS[argument("spht.attempts").default]),
    (HTM_PAGE, "the log of each thread ({})", default_of("spht.log-bytes")),
    (HTM_PAGE, "tried in hardware before it takes the global lock ({})", default_of("spht.attempts")),
    (HTM_PAGE, "at most n times N ({})", default_of("spht.back-off-pauses")),
    (HTM_PAGE, "(`{}`: a fence comes first)", default_of("spht-eadr.commit-clock")),
    (HTM_PAGE, "`spht` and `nv-htm` default to `{}`", default_domain("spht", "nv-htm")),
    (
        "docs/designs/spht.md",
        "{} by default under SPHT, {} under NV-HTM",
        default_of("spht.replay"),
        default_of("nv-htm.replay"),
    ),
    (
        "docs/results/hercules-tecs23.md",
        "SWL_eADR, whose log has {} KB at both scales",
        lambda: str(argument("undo-fence.log-bytes").default // 1024),
    ),
    ("docs/crash.md", "`--points {}` (the default)", lambda: str(CrashOptions().points)),
    ("docs/crash.md", "A candidate is a campaign over {} points", lambda: str(shrink.CANDIDATE_POINTS)),
    ("docs/crash.md", "At most {} candidates are tried", lambda: str(shrink.CANDIDATES_MAX)),
    (
        "docs/crash.md",
        "may take {} times the instructions that they take without a crash, at least {} million",
        constant(LIMITS_SOURCE, "TIMES_CRASH_FREE"),
        constant(LIMITS_SOURCE, "INSTRUCTIONS_MIN", MILLION),
    ),
    (
        "docs/crash.md",
        "They may write {} times the memory, at least {} MiB",
        constant(LIMITS_SOURCE, "TIMES_CRASH_FREE"),
        constant(LIMITS_SOURCE, "MEMORY_BYTES_MIN", MIB),
    ),
    # Results that are repeated.
    (
        "LIMITS.md",
        "differ from gem5's O3 model by {} % in the mean and {} % at most",
        ipc_error(statistics.mean),
        ipc_error(max),
    ),
    ("README.md", "above {} % in {} of {} rows with several cores", *far_from_gem5()),
    ("TRUST.md", "Kiln is ahead of Hercules ({})", kiln),
    (
        "TRUST.md",
        "TC loses {} % where 1.5 % is published",
        result("tc-dac17", lambda ours: f"{100 - float(ours):.1f}", figure="Fig7", design="TC", baseline="Optimal"),
    ),
    (
        "TRUST.md",
        "LAD is {} % ahead of LAD-Base on two sockets, published 5 %",
        result("lad-micro19", metric="throughput_gain dual-socket", workload="average", baseline="LAD-Base"),
    ),
    ("TRUST.md", "{} of {} numbers of P-INSPECT that are scored differ", *differing("pinspect-micro20")),
]

# Settings in words. A sentence that ascribes one to presets or to a default is a fact above.
SETTINGS = ("early", "accepted", "acknowledged", "when-free", "read-first", "home-first", "two-in-llc")
ASCRIBES = re.compile(r"\bpresets?\b|\bby default\b|\bthe default is\b")


@cache
def _text(document):
    return " ".join((ROOT / document).read_text(encoding="utf-8").split())


def _expected(template, values):
    return template.format(*(of() for of in values))


@pytest.mark.parametrize(("document", "template", "values"), [(of[0], of[1], of[2:]) for of in FACTS],
                         ids=[f"{of[0].rpartition('/')[2]}: {of[1][:40]}" for of in FACTS])  # fmt: skip
def test_prose_says_what_is_set(document, template, values):
    expected = _expected(template, values)
    assert expected in _text(document), f"{document} should say: {expected}"


def test_a_value_that_changes_is_noticed():
    changed = _expected("from {} % on", [lambda: "91"])
    assert _expected("from {} % on, if the oldest", [of_design("tc.overflow_percent")]) in _text(TC_PAGE)
    assert f"{changed}, if the oldest" not in _text(TC_PAGE)
    with pytest.raises(AssertionError, match="do not agree"):
        setting("design:tc.commit", TC, HERCULES)


def test_the_page_of_hardware_transactions_has_the_domains_of_its_designs():
    rows = re.findall(
        r"^\| \[?`([\w-]+)`(?:\]\([^)]*\))? \|[^|]*\| (.*) \|$", (ROOT / HTM_PAGE).read_text(), re.MULTILINE
    )
    shown = {name: tuple(re.findall(r"`([\w-]+)`", domains)) for name, domains in rows}
    domains = {row["name"]: tuple(row["domains"]) for row in ds.designs()}
    found = {name: of for name, of in shown.items() if name in domains}
    assert len(found) == 5
    assert found == {name: domains[name] for name in found}


def _ascribed(document):
    for sentence in re.split(r"(?<=[.;]) ", _text(document)):
        if ASCRIBES.search(sentence) and any(f"`{name}`" in sentence for name in SETTINGS):
            yield sentence


def test_a_setting_that_prose_ascribes_to_presets_is_a_fact():
    known = [re.split(r"(?<=[.;]) ", _expected(template, values))[-1] for _, template, *values in FACTS]
    documents = [page.relative_to(ROOT).as_posix() for page in pages() if page.name != "CHANGELOG.md"]
    found = [(document, sentence) for document in documents for sentence in _ascribed(document)]
    assert found
    assert [of for of in found if not any(fact in of[1] for fact in known)] == []
