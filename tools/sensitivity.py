"""Measures what the assumptions of DEVIATIONS.md change and writes the tables into it.

Each table stands between `<!-- measured KEY -->` and `<!-- end -->`. Its rows are the alternatives below and, for the
assumptions of designs, those that stand beside the designs. Nothing is tuned here: the first row is what the presets
and designs say, the others show how far the assumption matters.

    .venv/bin/python tools/sensitivity.py            # all tables
    .venv/bin/python tools/sensitivity.py coalescing # one of them
    .venv/bin/python tools/sensitivity.py --outdated # those that do not fit their description

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
from durasim.laboratory import Measurement, measurements
from durasim.sensitivity import COLUMNS

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "DEVIATIONS.md"
RATIOS = ROOT / "python/durasim/sensitivity.csv"
OPERATIONS = {"tiny": 300, "hercules-tecs23": 2000}
ALL = ("opt", "swl-flush", "swl-eadr", "tc", "hercules")

Alternative = tuple[str, ...]
"""Settings as for `--set`; `--arg NAME=VALUE` for an argument of the workload."""

PLAIN: Alternative = ()
OF_MACHINES: dict[str, tuple[tuple[str, ...], list[Alternative]]] = {
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
    "hops": (
        ("opt", "tc", "hercules", "proteus", "proteus-eadr"),
        [("interconnect.hop_cycles=0",), ("interconnect.hop_cycles=100",)],
    ),
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
}
# What concerns several cores only.
OF_SEVERAL_CORES = {"snoop", "skew"}


def _tables() -> dict[str, Measurement]:
    """Gives what is measured for each key: of machines as it stands above, of designs as it stands beside them."""
    of_machines = {
        key: Measurement(rows, tuple(points), threads=4 if key in OF_SEVERAL_CORES else 1)
        for key, (rows, points) in OF_MACHINES.items()
    }
    return of_machines | measurements()


TABLES = _tables()

AS_IT_IS = "as it is"
OUTDATED = "--outdated"


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
    """Measures the table of `key`; gives it in Markdown."""
    of = TABLES[key]
    cells = [(machine, point, design) for machine, point in rows_of(of) for design in of.designs]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        measured = iter(list(pool.map(lambda c: cell(c[2], c[0], c[1], of.workload, of.threads), cells)))
    lines = [f"{begin}{' | '.join(next(measured) for _ in of.designs)} |" for begin in begins_of_lines(of)]
    return "\n".join([*head(of), *lines])


def rows_of(of: Measurement) -> list[tuple[str, Alternative]]:
    """Gives machine and settings of each line of a table."""
    return [(machine, point) for machine in of.machines or OPERATIONS for point in (PLAIN, *of.points)]


def head(of: Measurement) -> list[str]:
    """Gives the head of a table."""
    names = " | ".join(f"`{design}`" for design in of.designs)
    return [f"| machine | setting | {names} |", "| --- | --- |" + " --- |" * len(of.designs)]


def begins_of_lines(of: Measurement) -> list[str]:
    """Gives each line of a table as far as the first number."""
    names = [(machine, "<br>".join(f"`{item}`" for item in point) or AS_IT_IS) for machine, point in rows_of(of)]
    return [f"| `{machine}` | {name} | " for machine, name in names]


def outdated(page: str) -> list[str]:
    """Gives the keys whose table in `page` is missing, or has other rows, machines or settings than are described."""
    found = dict(re.findall(r"<!-- measured (\S+) -->\n(.*?)\n<!-- end -->", page, re.DOTALL))
    return [key for key, of in TABLES.items() if not _is_table_of(of, found.get(key, ""))]


def _is_table_of(of: Measurement, text: str) -> bool:
    lines, begins = text.splitlines(), begins_of_lines(of)
    if lines[:2] != head(of) or len(lines) != 2 + len(begins):
        return False
    return all(line.startswith(begin) for line, begin in zip(lines[2:], begins, strict=True))


def with_places(page: str) -> str:
    """Gives `page` with a place for each table that has none, at the end of the entry of its key."""
    for key in TABLES:
        if f"<!-- measured {key} -->" not in page:
            entry = rf"(^### {re.escape(key)}\n.*?)\n*(?=^##|\Z)"
            place = rf"\1\n\n<!-- measured {key} -->\n<!-- end -->\n\n"
            page, entries = re.subn(entry, place, page, count=1, flags=re.MULTILINE | re.DOTALL)
            if entries != 1:
                sys.exit(f"DEVIATIONS.md has no entry for {key}")
    return page.rstrip("\n") + "\n"


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
    """Replaces the tables of `keys`, those that do not fit their descriptions, or all of them."""
    PAGE.write_text(with_places(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    if keys == [OUTDATED]:
        measure(outdated(PAGE.read_text(encoding="utf-8")))
        return
    unknown = set(keys) - TABLES.keys()
    if unknown:
        sys.exit(f"no table has the name {', '.join(sorted(unknown))}; there are {', '.join(TABLES)}")
    measure(keys or list(TABLES))


def measure(keys: list[str]) -> None:
    """Replaces the tables of `keys`, and what follows from all tables."""
    for key in keys:
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
