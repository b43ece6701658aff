"""Runs what a paper measured and holds it against the numbers that the paper prints.

    .venv/bin/python tools/published.py lad-micro19      # 15 minutes on two cores

`experiments/NAME/published.csv` has the paper's numbers, `experiments/NAME/table.py` the commands and, for each number,
the formula that gives ours from their documents. Written is `docs/results/NAME.csv`, of which `make generate` makes the
table of the page beside it. Nothing is tuned here: a number that differs stays as it is.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import io
import json
import runpy
import shlex
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "experiments"))
from comparison import Command, Documents, Measured, Published, verdict  # noqa: E402 - found by the path above

DURASIM = Path(sys.executable).with_name("durasim")
COLUMNS = (
    "figure", "metric", "design", "workload", "baseline", "published", "unit", "ours", "verdict", "reason", "command",
)  # fmt: skip


def main() -> None:
    """Runs all commands of a paper, or evaluates the documents of earlier runs, and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=sorted(folder.name.replace("_", "-") for folder in _papers()))
    parser.add_argument("--documents", type=Path, help="folder that keeps the documents; what it has is not run again")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    arguments = parser.parse_args()
    table = runpy.run_path(str(ROOT / "experiments" / arguments.name.replace("-", "_") / "table.py"))
    published = read_published(arguments.name)
    unknown = {row.key for row in published} ^ table["FORMULAS"].keys()
    if unknown:
        sys.exit(f"published.csv and table.py do not name the same rows: {sorted(unknown)}")
    with tempfile.TemporaryDirectory() as own:
        folder = arguments.documents or Path(own)
        folder.mkdir(parents=True, exist_ok=True)
        documents = run_all(table["COMMANDS"], folder, arguments.jobs)
    rows = evaluate(published, table["FORMULAS"], documents, table["COMMANDS"])
    file = ROOT / "docs" / "results" / f"{arguments.name}.csv"
    file.write_text(csv_text(rows), encoding="utf-8")
    print(f"{file.relative_to(ROOT)}: {summary(rows)}")


def _papers() -> Iterator[Path]:
    return (file.parent for file in (ROOT / "experiments").glob("*/table.py"))


def read_published(name: str) -> list[Published]:
    """Reads the numbers of a paper, in its order."""
    file = ROOT / "experiments" / name.replace("-", "_") / "published.csv"
    with file.open(encoding="utf-8", newline="") as text:
        return [Published(**row) for row in csv.DictReader(text)]


def run_all(commands: Mapping[str, Command], folder: Path, jobs: int) -> Documents:
    """Runs the commands whose documents are not there yet.

    Commands of one program begin with one snapshot, which the first of them takes behind its functional population.
    """
    groups: dict[str, list[tuple[str, Command]]] = defaultdict(list)
    for name, command in commands.items():
        groups[command.program or name].append((name, command))
    # The longest populations first.
    with ThreadPoolExecutor(jobs) as pool:
        for _ in pool.map(lambda group: _first(group, folder), groups.values()):
            pass
        followers = [(command, folder / f"{name}.json") for group in groups.values() for name, command in group[1:]]
        for _ in pool.map(lambda item: _run(*item, folder=folder), followers):
            pass
    return Documents({name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in commands})


def _first(group: Sequence[tuple[str, Command]], folder: Path) -> None:
    (name, command), *others = group
    snapshot = _snapshot(command, folder)
    is_wanted = any(not (folder / f"{other}.json").exists() for other, _ in others) and not snapshot.exists()
    file = folder / f"{name}.json"
    if file.exists() and not is_wanted:
        return
    taken = ("--snapshot-at", "0", "--snapshot", str(snapshot)) if others else ()
    _execute((*command.by_itself, *taken), file)


def _run(command: Command, file: Path, folder: Path) -> None:
    if not file.exists():
        _execute((*command.arguments, "--from", str(_snapshot(command, folder))), file)


def _snapshot(command: Command, folder: Path) -> Path:
    return folder / f"{command.program}.snapshot"


def _execute(arguments: Sequence[str], file: Path) -> None:
    part = file.with_suffix(".part")
    done = subprocess.run([str(DURASIM), *arguments, "--json", str(part)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"durasim {shlex.join(arguments)}: {done.stderr.strip() or done.returncode}")
    part.rename(file)
    print(file.stem, flush=True)


def evaluate(
    published: Iterable[Published],
    formulas: Mapping[tuple[str, str, str, str], Any],
    documents: Documents,
    commands: Mapping[str, Command],
) -> list[dict[str, str]]:
    """Gives a row for each published number, with ours and what follows from both."""
    rows = []
    for number in published:
        documents.used.clear()
        measured: Measured = formulas[number.key](documents, number)
        used = sorted(documents.used)
        command = f"durasim {shlex.join(commands[used[0]].by_itself)}" if used else ""
        more = f" (and {len(used) - 1} more)" if len(used) > 1 else ""
        text = dataclasses.asdict(number)
        rows.append({
            **{name: text[name] for name in ("figure", "metric", "design", "workload", "baseline")},
            "published": number.value,
            "unit": number.unit,
            "ours": measured.text,
            "verdict": verdict(measured),
            "reason": measured.reason,
            "command": command + more,
        })  # fmt: skip
    return rows


def csv_text(rows: Iterable[Mapping[str, str]]) -> str:
    """Gives the text of the file of results."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def table(name: str) -> str:
    """Gives the results of a paper as a table of its page, with the numbers of verdicts above it."""
    with (ROOT / "docs" / "results" / f"{name}.csv").open(encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text))
    lines = [
        f"{len(rows)} numbers: {summary(rows)}.",
        "",
        "| where | what | design | workload | published | ours | verdict | note |",
        "| --- | --- | --- | --- | ---: | ---: | --- | --- |",
    ]
    for row in rows:
        published = f"{row['published']} {row['unit']}".strip()
        cells = (row["figure"], row["metric"], row["design"], row["workload"], published, row["ours"], row["verdict"])
        lines.append(f"| {' | '.join((*cells, row['reason']))} |")
    return "\n".join(lines)


def summary(rows: Sequence[Mapping[str, str]]) -> str:
    """Says how many numbers have which verdict."""
    of = [row["verdict"] for row in rows]
    return ", ".join(f"{of.count(name)} {name}" for name in dict.fromkeys(sorted(of)))


if __name__ == "__main__":
    main()
