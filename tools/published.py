"""Reruns a paper's experiments and compares the results with its published numbers.

    .venv/bin/python -m tools.published lad-micro19      # 15 minutes on two cores
    .venv/bin/python -m tools.published all --compare    # no runs: applies the rule to the recorded numbers

`experiments/published.csv` contains the numbers of all papers, `experiments/NAME/table.py` the commands and, for each
number, the formula that computes ours from their documents; `experiments/scoring.py` contains the rule. The outputs are
`docs/results/NAME.csv`, from which `make generate` builds the table of its page, and `NAME-PART.csv` for each of its
`TABLES`. `PARTS` are tables of runs that no published number needs, measured one at a time with `--part`. Nothing is
tuned here: a number that differs remains.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
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

from experiments.comparison import Command, Documents, Experiment, Measured
from experiments.scoring import (
    NOT_COMPARABLE,
    REPRODUCED,
    SCORING,
    VERDICTS,
    Published,
    class_of,
    read_published,
    score,
    verdict,
)

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
DURASIM = Path(sys.executable).with_name("durasim")
COLUMNS = (
    "figure", "metric", "design", "workload", "baseline", "published", "unit", "ours", "values", "class", "verdict",
    "reason", "command",
)  # fmt: skip
# Columns of the key of a formula.
KEY = ("figure", "metric", "design", "workload")
EXPERIMENT_COLUMNS = (
    "experiment", "workload", "design", "throughput_ops_per_us", "relative_to_opt", "prepare_cycles", "commit_cycles",
    "undo_entries", "media_writes_per_tx", "instructions_per_tx", "command",
)  # fmt: skip


def main() -> None:
    """Runs all commands of a paper, or evaluates the documents of earlier runs, and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = sorted(folder.name.replace("_", "-") for folder in _papers())
    parser.add_argument("name", choices=[*names, "all"])
    parser.add_argument("--documents", type=Path, help="folder of the documents; existing ones are not run again")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--experiments", action="store_true", help="run the experiments of its page instead")
    instead.add_argument("--part", metavar="NAME", help="run one additional table of its page instead")
    instead.add_argument("--compare", action="store_true", help="no runs: compare the recorded numbers again")
    parser.add_argument(
        "--jobs", type=int, choices=range(1, 65), metavar="1-64", default=2, help="number of concurrent runs"
    )
    arguments = parser.parse_args()
    if arguments.compare:
        for name in names if arguments.name == "all" else [arguments.name]:
            _write_results(name, compared_again(name))
        return
    if arguments.name == "all":
        parser.error("all: only with --compare")
    table = runpy.run_path(str(ROOT / "experiments" / arguments.name.replace("-", "_") / "table.py"))
    published = read_published(arguments.name)
    unknown = {row.key for row in published} ^ table["FORMULAS"].keys()
    if unknown:
        sys.exit(f"published.csv and table.py have different rows: {sorted(unknown)}")
    with tempfile.TemporaryDirectory() as own:
        folder = arguments.documents or Path(own)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            sys.exit(f"--documents {folder}: {error.strerror}")
        results = ROOT / "docs" / "results"
        if arguments.experiments:
            commands = table["COMMANDS"] | table["EXPERIMENT_COMMANDS"]
            needed = {name: commands[name] for name in _names_of(table["EXPERIMENTS"])}
            documents = run_all(needed, folder, arguments.jobs)
            found = experiment_rows(table["EXPERIMENTS"], documents, needed)
            file = results / f"{arguments.name}-experiments.csv"
            file.write_text(csv_text(EXPERIMENT_COLUMNS, found), encoding="utf-8")
            print(f"docs/results/{file.name}: {len(needed)} runs")
            return
        if arguments.part is not None:
            parts = table.get("PARTS", {})
            if arguments.part not in parts:
                sys.exit(f"--part {arguments.part}: {arguments.name} has {', '.join(parts) or 'none'}")
            commands, rows_of = parts[arguments.part]
            _write_part(arguments.name, arguments.part, rows_of(run_all(commands, folder, arguments.jobs)))
            return
        documents = run_all(table["COMMANDS"], folder, arguments.jobs)
    rows = evaluate(published, table["FORMULAS"], documents, table["COMMANDS"])
    _write_results(arguments.name, rows)
    for part, rows_of in table.get("TABLES", {}).items():
        _write_part(arguments.name, part, rows_of(documents))


def _write_results(name: str, rows: Sequence[Mapping[str, str]]) -> None:
    file = ROOT / "docs" / "results" / f"{name}.csv"
    file.write_text(csv_text(COLUMNS, rows), encoding="utf-8")
    print(f"docs/results/{file.name}: {summary(rows)}")


def _write_part(name: str, part: str, rows: Sequence[Mapping[str, str]]) -> None:
    file = ROOT / "docs" / "results" / f"{name}-{part}.csv"
    file.write_text(csv_text(tuple(rows[0]), rows), encoding="utf-8")
    print(f"docs/results/{file.name}: {len(rows)} rows")


def _papers() -> Iterator[Path]:
    return (file.parent for file in (ROOT / "experiments").glob("*/table.py"))


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


def evaluate(
    published: Iterable[Published],
    formulas: Mapping[tuple[str, str, str, str], Any],
    documents: Documents,
    commands: Mapping[str, Command],
) -> list[dict[str, str]]:
    """Returns a row for each published number, with our measurement and the verdict."""
    rows = []
    for number in published:
        documents.used.clear()
        measured: Measured = formulas[number.key](documents, number)
        used = sorted(documents.used)
        command = f"durasim {shlex.join(commands[used[0]].by_itself)}" if used else ""
        more = f" (and {len(used) - 1} more)" if len(used) > 1 else ""
        rows.append(result_row(number, measured, command + more))
    return rows


def result_row(number: Published, measured: Measured, command: str) -> dict[str, str]:
    """Returns the row of a published number."""
    return {
        **{name: getattr(number, name) for name in ("figure", "metric", "design", "workload", "baseline")},
        "published": number.value,
        "unit": number.unit,
        "ours": measured.text,
        "values": " ".join(f"{value:.6g}" for value in measured.values),
        "class": class_of(number),
        "verdict": verdict(number, measured.values),
        "reason": measured.reason,
        "command": command,
    }


def recorded(name: str) -> list[dict[str, str]]:
    """Reads the recorded results of a paper."""
    with (ROOT / "docs" / "results" / f"{name}.csv").open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def compared_again(name: str) -> list[dict[str, str]]:
    """Compares the recorded numbers of a paper with the published ones by the current rule, without runs."""
    numbers, rows = read_published(name), recorded(name)
    if [number.key for number in numbers] != [tuple(row[column] for column in KEY) for row in rows]:
        sys.exit(f"docs/results/{name}.csv: its rows differ from experiments/published.csv; measure it again")
    return [
        result_row(
            number,
            Measured(row["ours"], tuple(map(float, row["values"].split())), row["reason"]),
            row["command"],
        )
        for number, row in zip(numbers, rows, strict=True)
    ]


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


def table(name: str) -> str:
    """Returns the results of a paper as tables of its page: numbers that score, then the others."""
    rows = recorded(name)
    scored = [row for row in rows if row["class"] in SCORING and row["verdict"] != NOT_COMPARABLE]
    others = [row for row in rows if row not in scored]
    return "\n".join([
        f"{summary(rows)}. {_as_csv(name)}",
        "",
        "### Numbers that score",
        "",
        *_result_lines(scored),
        "",
        "### Numbers that do not score",
        "",
        *_result_lines(others),
    ])  # fmt: skip


def _result_lines(rows: Iterable[Mapping[str, str]]) -> Iterator[str]:
    yield "| where | what | design | baseline | workload | published | ours | verdict | note |"
    yield "| --- | --- | --- | --- | --- | ---: | ---: | --- | --- |"
    for row in rows:
        published = f"{row['published']} {row['unit']}".strip()
        names = (row["figure"], row["metric"], row["design"], row["baseline"], row["workload"])
        yield f"| {' | '.join((*names, published, row['ours'], shown_verdict(row), row['reason']))} |"


def _as_csv(name: str) -> str:
    return f"[As CSV]({name}.csv)."


def shown_verdict(row: Mapping[str, str]) -> str:
    """Returns a verdict with the class of its number, in brackets if it does not score."""
    if row["class"] in SCORING or row["verdict"] == NOT_COMPARABLE:
        return row["verdict"]
    return f"({row['class']}: {row['verdict']})"


def results_by_page() -> dict[str, list[dict[str, str]]]:
    """Gives the recorded results of all papers by the name of their page, and of all together."""
    names = sorted(folder.name.replace("_", "-") for folder in _papers())
    results = {name: recorded(name) for name in names}
    return results | {"all": [row for of in results.values() for row in of]}


def scoreboard() -> str:
    """Gives the verdicts of all papers that score, and what does not score by its class."""
    lines = []
    for title, rows in results_by_page().items():
        cells = {
            column: f"{count} ({_brackets(rows, column)})" if count and column not in VERDICTS else str(count)
            for column, count in score(rows).items()
        }
        link = title if title == "all" else f"[{title}]({title}.md)"
        lines.append(f"| {link} | {len(rows)} | {' | '.join(cells.values())} |")
    header = f"| experiment | numbers | {' | '.join(cells)} |"
    return "\n".join([header, f"| --- |{' ---: |' * (len(cells) + 1)}", *lines])


def _brackets(rows: Sequence[Mapping[str, str]], kind: str) -> int:
    """Returns the reproduced numbers of a class that does not score."""
    return sum(row["class"] == kind and row["verdict"] == REPRODUCED for row in rows)


def experiments_table(name: str) -> str:
    """Returns the results of the experiments as a table of the paper's page."""
    with (ROOT / "docs" / "results" / f"{name}-experiments.csv").open(encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text))
    shown = [column for column in EXPERIMENT_COLUMNS if column not in ("throughput_ops_per_us", "command")]
    lines = [f"| {' | '.join(column.replace('_', ' ') for column in shown)} |"]
    lines.append("| --- | --- | --- |" + " ---: |" * (len(shown) - 3))
    lines += [f"| {' | '.join(row[column] for column in shown)} |" for row in rows]
    return "\n".join([*lines, "", _as_csv(f"{name}-experiments")])


def part_table(name: str, part: str) -> str:
    """Returns a table of a paper's `TABLES` in the form of its page."""
    with (ROOT / "docs" / "results" / f"{name}-{part}.csv").open(encoding="utf-8", newline="") as text:
        header, *rows = csv.reader(text)
    are_numbers = [all(_is_number(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = [
        f"| {' | '.join(header)} |",
        f"| {' | '.join('---:' if is_number else '---' for is_number in are_numbers)} |",
    ]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows), "", _as_csv(f"{name}-{part}")])


def pages_with(design: str) -> list[str]:
    """Returns the names of the pages of results whose files have a design."""
    names = re.compile(rf"(?:--design {re.escape(design)} |[,.`]{re.escape(design)}[,.`])")
    found = []
    for name in (folder.name.replace("_", "-") for folder in sorted(_papers())):
        files = [file for file in RESULTS.glob(f"{name}*.csv") if _page_of(file) == name]
        if any(names.search(file.read_text(encoding="utf-8")) for file in files):
            found.append(name)
    return found


def _page_of(file: Path) -> str:
    """Returns the page of a file of results: the longest name of a page with which its name begins."""
    pages = [page.stem for page in RESULTS.glob("*.md") if file.stem.startswith(page.stem)]
    return max(pages, key=len, default="")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def summary(rows: Sequence[Mapping[str, str]]) -> str:
    """Returns the counts of numbers by verdict if they score, else by class."""
    of = score(rows)
    scored = {name: of.pop(name) for name in VERDICTS}
    texts = [", ".join(f"{count} {name}" for name, count in part.items() if count) for part in (scored, of)]
    return f"{len(rows)} numbers: {texts[0]}" + (f"; not scored: {texts[1]}" if texts[1] else "")


if __name__ == "__main__":
    main()
