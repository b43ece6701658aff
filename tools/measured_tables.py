"""Measures the additional tables of the pages of results: their runs, and tables of their documents.

    .venv/bin/python -m tools.measured_tables tc-dac17               # the tables of `TABLES`
    .venv/bin/python -m tools.measured_tables spht-eadr-2022 --part waits

`tools/additional_tables/NAME/table.py` has the commands. `TABLES` are tables of `COMMANDS`, `PARTS` have runs of their
own and are measured one at a time, `EXPERIMENTS` are runs with one change. The outputs are
`docs/results/NAME-PART.csv`. The published numbers are those of `durasim reproduce`.
"""

from __future__ import annotations

import argparse
import csv
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

from tools.additional_tables.comparison import Command, Documents, Experiment

ROOT = Path(__file__).resolve().parents[1]
TABLES = ROOT / "tools" / "additional_tables"
DURASIM = Path(sys.executable).with_name("durasim")
EXPERIMENT_COLUMNS = (
    "experiment", "workload", "design", "throughput_ops_per_us", "relative_to_opt", "prepare_cycles", "commit_cycles",
    "undo_entries", "media_writes_per_tx", "instructions_per_tx", "command",
)  # fmt: skip


def main() -> None:
    """Runs all commands of a paper's additional tables, and writes the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "name", choices=sorted(file.parent.name.replace("_", "-") for file in TABLES.glob("*/table.py"))
    )
    parser.add_argument("--documents", type=Path, help="folder of the documents; existing ones are not run again")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--experiments", action="store_true", help="run the experiments of its page instead")
    instead.add_argument("--part", metavar="NAME", help="run one table of `PARTS` instead")
    parser.add_argument(
        "--jobs", type=int, choices=range(1, 65), metavar="1-64", default=2, help="number of concurrent runs"
    )
    arguments = parser.parse_args()
    table = runpy.run_path(str(TABLES / arguments.name.replace("-", "_") / "table.py"))
    with tempfile.TemporaryDirectory() as own:
        folder = arguments.documents or Path(own)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            sys.exit(f"--documents {folder}: {error.strerror}")
        if arguments.experiments:
            commands = table["COMMANDS"] | table["EXPERIMENT_COMMANDS"]
            needed = {name: commands[name] for name in _names_of(table["EXPERIMENTS"])}
            documents = run_all(needed, folder, arguments.jobs)
            found = list(experiment_rows(table["EXPERIMENTS"], documents, needed))
            _write_part(arguments.name, "experiments", found)
        elif arguments.part is not None:
            parts = table.get("PARTS", {})
            if arguments.part not in parts:
                sys.exit(f"--part {arguments.part}: {arguments.name} has {', '.join(parts) or 'none'}")
            commands, rows_of = parts[arguments.part]
            _write_part(arguments.name, arguments.part, rows_of(run_all(commands, folder, arguments.jobs)))
        else:
            documents = run_all(table["COMMANDS"], folder, arguments.jobs)
            for part, rows_of in table.get("TABLES", {}).items():
                _write_part(arguments.name, part, rows_of(documents))


def _write_part(name: str, part: str, rows: Sequence[Mapping[str, str]]) -> None:
    file = ROOT / "docs" / "results" / f"{name}-{part}.csv"
    file.write_text(csv_text(tuple(rows[0]), rows), encoding="utf-8")
    print(f"docs/results/{file.name}: {len(rows)} rows")


def run_all(commands: Mapping[str, Command], folder: Path, jobs: int) -> Documents:
    """Runs the commands whose documents do not exist yet.

    Commands of one program start from one snapshot, which the first of them saves after its functional population.
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
    found = {name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in commands}
    builds = {of["provenance"]["durasim_build"] for of in found.values() if isinstance(of, dict)}
    if len(builds) > 1:
        sys.exit(
            f"--documents {folder}: its documents are of {len(builds)} builds of durasim; start with an empty folder"
        )
    return Documents(found)


def _first(group: Sequence[tuple[str, Command]], folder: Path) -> None:
    (name, command), *others = group
    snapshot = _snapshot(command, folder)
    is_wanted = any(not (folder / f"{other}.json").exists() for other, _ in others) and not snapshot.exists()
    file = folder / f"{name}.json"
    if file.exists() and not is_wanted:
        return
    part = snapshot.with_suffix(".part")
    _execute((*command.by_itself, *(("--snapshot-at", "0", "--snapshot", str(part)) if others else ())), file)
    if others:
        part.rename(snapshot)


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


def _baseline(experiment: Experiment, workload: str) -> str:
    """Returns the name of the baseline run of an experiment."""
    return f"{workload}.opt.{experiment.baseline or experiment.name}"


def _names_of(experiments: Iterable[Experiment]) -> list[str]:
    """Returns the names of the runs that experiments need, without duplicates."""
    names: dict[str, None] = {}
    for experiment in experiments:
        for workload in experiment.workloads:
            names[_baseline(experiment, workload)] = None
            names |= dict.fromkeys(f"{workload}.{design}.{experiment.name}" for design in experiment.designs)
    return list(names)


def experiment_rows(
    experiments: Iterable[Experiment], documents: Documents, commands: Mapping[str, Command]
) -> Iterator[dict[str, str]]:
    """Returns a row for each run of each experiment."""
    for experiment in experiments:
        for workload in experiment.workloads:
            opt = documents[_baseline(experiment, workload)]["throughput_ops_per_us"]
            for design in experiment.designs:
                name = f"{workload}.{design}.{experiment.name}"
                result = documents[name]
                phases = result["phases"] or {}
                cycles = [f"{phases[of]['mean_cycles']:.0f}" if phases else "" for of in ("prepare", "commit")]
                of_design = result["stats"].get(design, {})
                values = (
                    *(experiment.name, workload, design),
                    *(
                        f"{value:.4g}"
                        for value in (result["throughput_ops_per_us"], result["throughput_ops_per_us"] / opt)
                    ),
                    *(*cycles, f"{of_design['undo_entries']['value']:.0f}" if "undo_entries" in of_design else ""),
                    *(f"{result['accesses_per_tx']['writes']:.4g}", f"{result['instructions_per_transaction']:.0f}"),
                    f"durasim {shlex.join(commands[name].by_itself)}",
                )
                yield dict(zip(EXPERIMENT_COLUMNS, values, strict=True))


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, str]]) -> str:
    """Returns the text of a file of results."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


if __name__ == "__main__":
    main()
