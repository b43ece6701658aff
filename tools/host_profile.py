"""Host instructions of a simulation by part of the simulator.

`python -m tools.host_profile DESIGN...` runs each design under valgrind's callgrind, and prints host instructions per
simulated instruction. They do not depend on the load of the host, and hardly on its processor.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from durasim.documents.results import RunResult
from durasim.errors import refusal

# Parts of the simulator by the names of functions; the first that fits counts.
PARTS = {
    "core": re.compile(r"durasim_(core|isa)::|execution::Execution"),
    "design": re.compile(r"durasim_designs::"),
    "controllers": re.compile(r"durasim_memory::"),
    "events": re.compile(
        r"system::(work|persist_events)|parts::(agenda|memories|design_port)|machine::(interleave|scheduler)"
    ),
    "caches": re.compile(r"durasim_(cache|machine)::"),
}
_RECORD = re.compile(r"(fn|cfn)=\((\d+)\)(?: (.*))?")
_COST = re.compile(r"[+\-*\d]\S* (\d+)")


@dataclass(slots=True)
class Profile:
    """Host instructions of functions, their callees excluded, and of calls, with all that they call."""

    own: Counter[str] = field(default_factory=Counter)
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)

    @classmethod
    def parse(cls, lines: Iterable[str]) -> Profile:
        """Reads a file in the format of callgrind."""
        profile, names, function, callee, is_call = cls(), {}, "", "", False
        for line in lines:
            if record := _RECORD.match(line):
                kind, number, name = record.groups()
                name = names.setdefault(number, name or "")
                function, callee = (name, callee) if kind == "fn" else (function, name)
            elif line.startswith("calls="):
                is_call = True
            elif cost := _COST.match(line):
                if is_call:
                    profile.calls[function, callee] += int(cost[1])
                else:
                    profile.own[function] += int(cost[1])
                is_call = False
        return profile

    def by_part(self) -> Counter[str]:
        """Instructions of each of `PARTS`. What the simulator calls in libraries counts for the part that calls it."""
        parts: Counter[str] = Counter()
        for function, instructions in self.own.items():
            if part := part_of(function):
                parts[part] += instructions
        for (caller, callee), instructions in self.calls.items():
            if (part := part_of(caller)) and part_of(callee) is None:
                parts[part] += instructions
        return parts


def part_of(function: str) -> str | None:
    """Returns the part of the simulator that has a function; `None` for one of a library."""
    return next((part for part, names in PARTS.items() if names.search(function)), None)


def measure(design: str, workload: str, ops: int) -> dict[str, float]:
    """Runs a design; returns host instructions per simulated instruction by part.

    Raises: Refusal, if valgrind is not installed or the run fails.
    """
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise refusal("host_profile", "valgrind is not installed")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        count = [valgrind, "--tool=callgrind", f"--callgrind-out-file={out}"]
        run = [sys.executable, "-m", "durasim", "run", "--design", design, "--workload", workload, "--ops", str(ops)]
        done = subprocess.run([*count, *run, "--json", "-"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise refusal("host_profile", f"the run of {design} exits with {done.returncode}: {done.stderr[-500:]}")
        simulated = RunResult.from_dict(json.loads(done.stdout)).program.instructions
        with out.open(errors="replace") as lines:
            parts = Profile.parse(lines).by_part()
    return {part: parts[part] / simulated for part in PARTS}


def table(rows: dict[str, dict[str, float]]) -> Table:
    """Returns a table with a row for each design."""
    shown = Table(title="host instructions per simulated instruction")
    for name in ("design", "all", *PARTS):
        shown.add_column(name, justify="left" if name == "design" else "right")
    for design, parts in rows.items():
        shown.add_row(design, *(f"{value:,.0f}" for value in (sum(parts.values()), *parts.values())))
    return shown


def main() -> None:
    """Measures designs one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("designs", nargs="+", metavar="DESIGN")
    parser.add_argument("--workload", default="btree", help="the program (btree)")
    parser.add_argument("--ops", type=int, default=300, help="operations in the region of interest (300)")
    chosen = parser.parse_args()
    Console().print(table({design: measure(design, chosen.workload, chosen.ops) for design in chosen.designs}))


if __name__ == "__main__":
    main()
