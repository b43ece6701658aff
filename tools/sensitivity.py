"""Measures what the assumptions of DEVIATIONS.md change and writes the tables into it.

Each table stands between `<!-- measured KEY -->` and `<!-- end -->`; its rows are the alternatives below. Nothing is
tuned here: the first row is what the presets and designs say, the others show how far the assumption matters.

    .venv/bin/python tools/sensitivity.py            # all tables
    .venv/bin/python tools/sensitivity.py coalescing # one of them

What the tables say of the assumptions of a row stands once more, as ratios, in `python/durasim/sensitivity.csv`: that
is where the band comes from that is shown beside a row.
"""

import csv
import io
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import durasim
from durasim.sensitivity import COLUMNS

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "DEVIATIONS.md"
RATIOS = ROOT / "python/durasim/sensitivity.csv"
OPERATIONS = {"tiny": 300, "hercules-tecs23": 2000}
ALL = ("opt", "swl-flush", "swl-eadr", "tc", "hercules")
HOOP = ("hoop", "hoop-eadr")
LOGGING = ("swl-flush", "swl-eadr")
PROTEUS = ("proteus", "proteus-eadr")
KILN = ("kiln", "kiln-eadr")

Alternative = tuple[str, ...]
"""Settings as for `--set`; `--arg NAME=VALUE` for an argument of the workload."""

PLAIN: Alternative = ()
# The log of `tiny` with room for some dozen lines.
_SHORT_LOG = "design.hercules.log_zone_bytes=30400"
TABLES: dict[str, tuple[tuple[str, ...], list[Alternative]]] = {
    "core-queues": (
        ALL,
        [
            ("core.issue_queue_entries=64", "core.load_queue_entries=32", "core.store_queue_entries=32"),
            ("core.issue_queue_entries=192", "core.load_queue_entries=192", "core.store_queue_entries=192"),
        ],
    ),
    "core-pipeline": (
        ALL,
        [
            ("core.fetch_to_rename_cycles=1", "core.rename_to_dispatch_cycles=1", "core.mispredict_redirect_cycles=1"),
            ("core.fetch_to_rename_cycles=8", "core.rename_to_dispatch_cycles=4", "core.mispredict_redirect_cycles=6"),
            ("core.squash_width=4096",),
        ],
    ),
    "stores": (
        ALL,
        [
            ("core.ownership_prefetch=false",),
            ("core.ownership_prefetch=false", "core.pipelined_stores=false"),
        ],
    ),
    "fences": (ALL, [("core.fences=all",)]),
    "mshrs": (
        ALL,
        [
            ("l1i.mshrs=2", "l1d.mshrs=4", "l2.mshrs=8", "llc.mshrs=16"),
            ("l1i.mshrs=32", "l1d.mshrs=64", "l2.mshrs=128", "llc.mshrs=256"),
        ],
    ),
    "response": (ALL, [("interconnect.response_cycles=0",), ("interconnect.response_cycles=4",)]),
    "hops": (("opt", "tc", "hercules", *PROTEUS), [("interconnect.hop_cycles=0",), ("interconnect.hop_cycles=100",)]),
    "snoop": (ALL, [("interconnect.snoop_cycles=0",), ("interconnect.snoop_cycles=100",)]),
    "skew": (ALL, [("skew_cycles=10",), ("skew_cycles=100",), ("skew_cycles=1000",)]),
    "write-back-buffers": (
        ALL,
        [
            ("interconnect.write_back_buffers=1",),
            ("interconnect.write_back_buffers=64",),
            ("interconnect.l1d_write_back_buffers=1", "interconnect.l2_write_back_buffers=1"),
        ],
    ),
    "dram": (
        ALL,
        [
            ("dram.media.read_latency_ns=100", "dram.media.write_latency_ns=100"),
            ("dram.media.banks=4", "dram.media.bandwidth_mb_per_s=6400"),
        ],
    ),
    "coalescing": (ALL, [("pmem.controller.coalesce_writes=false",)]),
    "pmem-banks": (
        ALL,
        [("pmem.media.banks=1",), ("pmem.media.banks=64",), ("pmem.media.bandwidth_mb_per_s=3200",)],
    ),
    "interleaving": (
        ("opt", "swl-flush", "swl-eadr", "tc"),
        [("pmem.controllers=4", "pmem.interleave_bytes=64"), ("pmem.controllers=4", "pmem.interleave_bytes=4096")],
    ),
    "write-drain": (
        ALL,
        [
            ("pmem.controller.write_policy=read-first",),
            ("pmem.controller.write_policy=read-first", "pmem.controller.drain_stop_percent=0"),
        ],
    ),
    "write-granularity": (
        ALL,
        [("pmem.media.write_granularity_bytes=8",), ("pmem.media.write_granularity_bytes=256",)],
    ),
    "swl-granularity": (LOGGING, [("--arg log-granularity=word",)]),
    "hercules-victim": (
        ("hercules",),
        [
            ("design.hercules.trans_tag_percent_l2=100", "design.hercules.trans_tag_percent_llc=100"),
            ("design.hercules.trans_tag_percent_l2=50", "design.hercules.trans_tag_percent_llc=50"),
        ],
    ),
    "hercules-gc": (
        ("hercules",),
        [
            ("design.hercules.log_gc_trigger_entries=8", "design.hercules.log_gc_chunk_entries=4"),
            ("design.hercules.log_gc_trigger_entries=8", "design.hercules.log_gc_chunk_entries=1"),
        ],
    ),
    "hercules-controllers": (
        ("hercules",),
        [("pmem.controllers=2",), ("pmem.controllers=4", "pmem.interleave_bytes=64")],
    ),
    "hercules-txlen-store": (("hercules",), [("design.hercules.tx_len_store=controller",)]),
    "hercules-commit-wait": (("opt", "hercules"), [("design.hercules.commit_wait=none",)]),
    "hercules-conflict": (("hercules",), [("design.hercules.conflict_loser=requester",)]),
    "hercules-tag-rounding": (
        ("hercules",),
        [
            ("design.hercules.tag_latency_rounding=nearest",),
            ("design.hercules.tag_latency_rounding=down",),
            ("design.hercules.tag_latency_increase_percent=0",),
        ],
    ),
    "hercules-extension-search": (
        ("hercules",),
        [
            ("design.hercules.extension_search_first_cycles=0", "design.hercules.extension_search_line_cycles=0"),
            ("design.hercules.extension_search_first_cycles=900", "design.hercules.extension_search_line_cycles=30"),
            ("design.hercules.extension_lookup=scan",),
        ],
    ),
    "hercules-partial-match": (
        ("hercules",),
        [
            ("design.hercules.ewpq_home_bits=8",),
            ("design.hercules.ewpq_home_bits=4",),
            ("design.hercules.ewpq_home_bits=4", "design.hercules.false_match_cycles=0"),
            ("design.hercules.ewpq_home_bits=4", "design.hercules.false_match_cycles=900"),
        ],
    ),
    "hercules-log-extension": (
        ("hercules",),
        [
            (_SHORT_LOG,),
            (_SHORT_LOG, "design.hercules.log_extension_bytes=0"),
            (_SHORT_LOG, "design.hercules.log_extension_chunk_entries=64"),
            (_SHORT_LOG, "design.hercules.log_extension_cycles=300000"),
            (_SHORT_LOG, "design.hercules.log_indirect_cycles=0"),
            (_SHORT_LOG, "design.hercules.log_indirect_cycles=900"),
        ],
    ),
    "hercules-log-entry": (
        ("hercules",),
        [("pmem.media.write_granularity_bytes=16",), ("pmem.controller.coalesce_writes=false",)],
    ),
    "background-concurrency": (
        ("tc", "hercules", *KILN, *PROTEUS),
        [
            (
                "design.hercules.migrations_in_flight=1",
                "design.tc.copies_in_flight=1",
                "design.kiln.copies_in_flight=1",
                "design.proteus.spills_in_flight=1",
            ),
            (
                "design.hercules.migrations_in_flight=64",
                "design.tc.copies_in_flight=64",
                "design.kiln.copies_in_flight=64",
                "design.proteus.spills_in_flight=64",
            ),
        ],
    ),
    "kiln-llc": (
        KILN,
        [
            ("design.kiln.llc_size_factor=1",),
            ("design.kiln.llc_read_latency_cycles=30", "design.kiln.llc_write_latency_cycles=30"),
            (
                "design.kiln.llc_size_factor=1",
                "design.kiln.llc_read_latency_cycles=30",
                "design.kiln.llc_write_latency_cycles=30",
            ),
            ("design.kiln.pinned_lines=false",),
        ],
    ),
    "kiln-commit": (
        KILN,
        [("design.kiln.llc_write_ports=4",), ("design.kiln.llc_write_ports=16",)],
    ),
    "kiln-fifo": (
        KILN,
        [
            ("design.kiln.fifo_entries=8",),
            ("design.kiln.fifo_entries=16",),
            ("design.kiln.fifo_entries=1024",),
            ("design.kiln.fifo_walk_cycles=0",),
        ],
    ),
    "kiln-overflow": (
        KILN,
        [
            ("design.kiln.fifo_entries=8", "design.kiln.overflow_percent=50"),
            ("design.kiln.fifo_entries=8", "design.kiln.overflow_percent=100"),
            ("design.kiln.copy_area_lines=65536",),
        ],
    ),
    "kiln-blocking": (
        KILN,
        [("design.kiln.blocked_requests=lines",), ("design.kiln.blocked_requests=none",)],
    ),
    "kiln-txid": (KILN, [("design.kiln.tx_id_bits=3",)]),
    "hoop-address-slices": (HOOP, [("design.hoop.address_slices=1",), ("design.hoop.address_slices=65536",)]),
    "hoop-mapping-table": (
        HOOP,
        [
            ("design.hoop.mapping_table_bytes=512",),
            ("design.hoop.search_cycles=0",),
            ("design.hoop.search_cycles=40",),
            ("design.hoop.eviction_buffer_bytes=64",),
        ],
    ),
    "hoop-collector": (
        HOOP,
        [
            ("design.hoop.gc_period_ns=2000",),
            ("design.hoop.gc_period_ns=10000000",),
            ("design.hoop.copies_in_flight=1",),
            ("design.hoop.copies_in_flight=64",),
        ],
    ),
    "hoop-home": (HOOP, [("design.hoop.oop_buffer_bytes=256",), ("design.hoop.oop_buffer_bytes=8192",)]),
    "tc-coalescing": (("tc",), [("design.tc.coalesce=none",), ("design.tc.coalesce=line",)]),
    "tc-overflow": (
        ("tc",),
        [
            ("design.tc.overflow_percent=50",),
            ("design.tc.overflow_percent=100",),
            ("design.tc.shadow_lines=65536",),
        ],
    ),
    "tc-identifiers": (("tc",), [("design.tc.tx_id_bits=1",), ("design.tc.tx_id_bits=2",)]),
    "tc-latency": (
        ("tc",),
        [
            ("design.tc.latency_read_cycles=0", "design.tc.latency_write_cycles=0"),
            ("design.tc.latency_read_cycles=400", "design.tc.latency_write_cycles=500"),
        ],
    ),
    "proteus-sizes": (
        PROTEUS,
        [
            ("design.proteus.logq_entries=1",),
            ("design.proteus.logq_entries=4",),
            ("design.proteus.logq_entries=64",),
            ("design.proteus.llt_entries=8",),
            ("design.proteus.llt_entries=1024",),
        ],
    ),
    "proteus-lpq": (
        PROTEUS,
        [
            ("design.proteus.lpq_entries=32", "pmem.controller.write_queue_entries=32"),
            ("design.proteus.lpq_entries=16", "pmem.controller.write_queue_entries=48"),
            ("design.proteus.lpq_entries=8",),
        ],
    ),
    "proteus-logs": (PROTEUS, [("design.proteus.log_entries=1024",), ("design.proteus.logs_per_core=4",)]),
    "proteus-clean": (
        ("proteus",),
        [("design.proteus.clean_issue_cycles=0",), ("design.proteus.clean_issue_cycles=10",)],
    ),
    "fwb-sizes": (
        ("fwb", "fwb-eadr"),
        [
            ("design.fwb.log_buffer_entries=4",),
            ("design.fwb.log_buffer_entries=64",),
            ("design.fwb.log_bytes=65536",),
            ("design.fwb.scan_period_cycles=300000",),
        ],
    ),
    "fwb-combining": (("fwb",), [("design.fwb.write_combining=false",)]),
    "fwb-scan": (
        ("fwb",),
        [
            ("design.fwb.scan_lines_per_cycle=16",),
            ("design.fwb.scan_from_percent=25",),
            ("design.fwb.scan_from_percent=100",),
        ],
    ),
    "picl-sizes": (
        ("picl",),
        [
            ("design.picl.epoch_instructions=300000",),
            ("design.picl.epoch_instructions=300000", "design.picl.scan_gap_epochs=0"),
            ("design.picl.epoch_instructions=300000", "design.picl.undo_buffer_entries=8"),
            ("design.picl.epoch_instructions=300000", "design.picl.bloom_bits=256"),
        ],
    ),
    "picl-scan": (
        ("picl",),
        [
            ("design.picl.epoch_instructions=300000",),
            ("design.picl.epoch_instructions=300000", "design.picl.scan_lines_per_cycle=16"),
        ],
    ),
    "picl-log": (("picl",), [("design.picl.log_bytes=1048576",)]),
}

AS_IT_IS = "as it is"

# What concerns several cores only: workload and threads of the table.
SHARED = {
    "snoop": ("btree", 4),
    "skew": ("btree", 4),
    "hercules-conflict": ("false-sharing", 4),
    "kiln-blocking": ("btree", 4),
    "kiln-txid": ("btree", 4),
}
# What one machine alone has room for.
MACHINES = {"hercules-log-extension": ("tiny",)}


@cache
def cell(design: str, machine: str, alternative: Alternative, workload: str, threads: int) -> str:
    """Gives throughput in operations per microsecond and pmem bytes written, or why there are none."""
    arguments = dict(item.removeprefix("--arg ").split("=", 1) for item in alternative if item.startswith("--arg "))
    settings = [item for item in alternative if not item.startswith("--arg ")]
    try:
        result = durasim.run(
            design=design,
            workload=workload,
            machine=machine,
            ops=OPERATIONS[machine],
            threads=threads,
            set=settings,
            workload_args=arguments,
            guest_output=lambda _stream, _bytes: None,
        )
    except durasim.DurasimError as error:
        return f"refused: {error}"
    if result.guest_exit_code != 0:
        return f"the program ends with exit code {result.guest_exit_code}"
    return f"{result.throughput_ops_per_us:.5f} / {result.pmem_write_bytes.total}"


def table(key: str) -> str:
    """Gives the table of `key` in Markdown."""
    designs, alternatives = TABLES[key]
    workload, threads = SHARED.get(key, ("btree", 1))
    lines = [
        "| machine | setting | " + " | ".join(f"`{design}`" for design in designs) + " |",
        "| --- | --- |" + " --- |" * len(designs),
    ]
    cells = [
        (machine, alternative, design)
        for machine in MACHINES.get(key, tuple(OPERATIONS))
        for alternative in [PLAIN, *alternatives]
        for design in designs
    ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        measured = iter(list(pool.map(lambda c: cell(c[2], c[0], c[1], workload, threads), cells)))
    for machine, alternative, _ in cells[:: len(designs)]:
        name = "<br>".join(f"`{item}`" for item in alternative) or AS_IT_IS
        lines.append(f"| `{machine}` | {name} | " + " | ".join(next(measured) for _ in designs) + " |")
    return "\n".join(lines)


def ratios(page: str) -> str:
    """Gives the tables of `page`, as far as they concern assumptions of the rows they are about, as ratios in CSV.

    A cell without numbers, because the program did not end, gives none.
    """
    assumptions = {row["name"]: row["assumptions"] for row in durasim.designs()}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for key, text in re.findall(r"<!-- measured (\S+) -->\n(.*?)\n<!-- end -->", page, re.DOTALL):
        header, _, *lines = [[part.strip() for part in line.split("|")[1:-1]] for line in text.splitlines()]
        usual: dict[tuple[str, str], tuple[float, float]] = {}
        for machine, setting, *cells in lines:
            for design, measured in zip((name.strip("`") for name in header[2:]), cells, strict=True):
                numbers = re.fullmatch(r"([0-9.]+) / ([0-9]+)", measured)
                if numbers is None or key not in assumptions[design]:
                    continue
                throughput, written = float(numbers[1]), float(numbers[2])
                if setting == AS_IT_IS:
                    usual[design, machine] = (throughput, written)
                    continue
                throughput_before, written_before = usual[design, machine]
                name = setting.replace("`", "").replace("<br>", " ")
                row = (design, machine.strip("`"), key, name, f"{throughput / throughput_before:.4f}")
                writer.writerow((*row, f"{written / written_before:.4f}" if written_before else ""))
    return out.getvalue()


def main(keys: list[str]) -> None:
    """Replaces the tables of `keys`, or all of them."""
    unknown = set(keys) - TABLES.keys()
    if unknown:
        sys.exit(f"no table has the name {', '.join(sorted(unknown))}; there are {', '.join(TABLES)}")
    for key in keys or TABLES:
        print(key, flush=True)
        measured = table(key)
        pattern = re.compile(rf"(<!-- measured {re.escape(key)} -->\n).*?(<!-- end -->)", re.DOTALL)
        text, places = pattern.subn(lambda m, new=measured: f"{m[1]}{new}\n{m[2]}", PAGE.read_text(encoding="utf-8"))
        if places != 1:
            sys.exit(f"DEVIATIONS.md has {places} places for the table of {key}")
        PAGE.write_text(text, encoding="utf-8")
    RATIOS.write_text(ratios(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
