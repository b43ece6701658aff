"""The sensitivity experiment: a run for each alternative, place, program and design, and one with all assumptions."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from durasim import _core
from durasim.documents.sensitivity import SCHEMA, MovedComparison, Sensitivity, SensitivityRow
from durasim.documents.sweep import SweepResult
from durasim.errors import refusal
from durasim.papers.grids import Grid, grid_of
from durasim.papers.selections import number_at
from durasim.papers.sensitivity_file import Alternatives, Place, Settings, alternatives_at, not_varied
from durasim.runs import settings as parameter_settings
from durasim.runs.scenario import Scenario, design_variants
from durasim.runs.sensitivity import FEW_BYTES, SECOND_SETTINGS
from durasim.studies.study import Point, Study
from durasim.studies.study_run import See

Run = Callable[[Study, See], SweepResult]
"""Runs all points of a study, and calls its second argument with the number and the document of each."""
HOURS_MAX = 6.0
"""Largest time of the whole experiment on two cores."""
CORES = 2
_ARGUMENT = "--arg "
_THROUGHPUT, _BYTES = "throughput_ops_per_us", "pmem_write_bytes.total"


@dataclass(frozen=True, slots=True)
class Planned:
    """A run of the experiment.

    Attributes:
        key: Key of the assumption; empty for the run with all assumptions.
        place: The place.
        workload: The program.
        setting: The alternative, separated by spaces; empty for the run with all assumptions.
        design: The design.
        scenario: The run.
    """

    key: str
    place: Place
    workload: str
    setting: str
    design: str
    scenario: Scenario


def planned(places: Sequence[Place], keys: Sequence[str] = ()) -> list[Planned]:
    """Returns the runs of the experiment at some places, those with all assumptions before the others of a place.

    Args:
        places: The places.
        keys: Keys of assumptions; all if empty.

    Raises:
        ConfigError: A key is unknown, or nothing is varied.
    """
    found: list[Planned] = []
    for place in places:
        base = {
            (str(point.values["workload"]), str(point.values["design"])): point.scenario
            for point in grid_of(place.paper, [place.table], "quick").distinct
        }
        varied = [run for of in alternatives_at(place, keys) for run in _varied(place, of, base)]
        # All compared designs, for ratios of them, and those that are run for their own assumptions.
        programs = dict.fromkeys(run.workload for run in varied)
        needed = dict.fromkeys((workload, design) for workload in programs for design in place.designs)
        needed |= dict.fromkeys((run.workload, run.design) for run in varied)
        found += [Planned("", place, workload, "", design, base[workload, design]) for workload, design in needed]
        found += varied
    if not found:
        raise refusal("key", f"no alternative to {', '.join(keys) or 'an assumption'} is measured there")
    return found


def _varied(place: Place, of: Alternatives, base: Mapping[tuple[str, str], Scenario]) -> Iterator[Planned]:
    designs = place.designs if of.designs is None else [n for n in (*place.designs, *place.further) if n in of.designs]
    for workload in place.programs_of(of.key):
        for settings in of.points:
            for design in designs:
                scenario = _changed(base[workload, design], settings)
                if scenario != base[workload, design]:
                    yield Planned(of.key, place, workload, " ".join(settings), design, scenario)


def _changed(scenario: Scenario, settings: Settings) -> Scenario:
    """Returns a scenario with an alternative, without what it sets for other designs."""
    arguments = [tuple(of.removeprefix(_ARGUMENT).split("=", 1)) for of in settings if of.startswith(_ARGUMENT)]
    hardware = str(design_variants()[scenario.design]["hardware"])
    own = parameter_settings.of_design([of for of in settings if not of.startswith(_ARGUMENT)], hardware)
    kept = tuple(pair for pair in scenario.workload_args if pair[0] not in dict(arguments))
    return dataclasses.replace(
        scenario, settings=(*scenario.settings, *own), workload_args=(*kept, *((name, of) for name, of in arguments))
    )


def study_of(runs: Sequence[Planned]) -> Grid:
    """Returns the study of some runs, each scenario once."""
    points: dict[Scenario, Point] = {}
    for run in runs:
        values = {
            "paper": run.place.paper, "key": run.key or "-", "setting": run.setting or "-", "workload": run.workload,
            "design": run.design,
        }  # fmt: skip
        points.setdefault(run.scenario, Point(values, run.scenario, None))
    name, distinct = "sensitivity", tuple(points.values())
    return Grid(name, "run", {}, (), None, {"name": name}, "", ((),) * len(distinct), distinct)


def measure(runs: Sequence[Planned], run: Run) -> Sensitivity:
    """Runs the experiment.

    Args:
        runs: The runs.
        run: Runs all points of a study, and calls its second argument with the documents.

    Raises:
        ConfigError: A run is refused before any is simulated.
        HostIoError: The store cannot be written.
        ToolchainError: A guest program cannot be built.
    """
    began, study = time.monotonic(), study_of(runs)
    numbers: dict[int, tuple[float, int]] = {}

    def see(number: int, document: Mapping[str, Any]) -> None:
        numbers[number] = number_at(document, _THROUGHPUT) or 0.0, int(number_at(document, _BYTES) or 0)

    results = run(study, see).points
    places = {point.scenario: number for number, point in enumerate(study.distinct)}
    rows = []
    for of in runs:
        at = places[of.scenario]
        throughput, written = numbers.get(at, (None, None))
        rows.append(
            SensitivityRow(
                of.key, of.place.paper, of.workload, of.setting, of.design, throughput, written, None, None,
                results[at].error, results[at].command,
            )
        )  # fmt: skip
    rows = with_ratios(rows)
    return Sensitivity(
        schema=SCHEMA,
        durasim_version=_core.__version__,
        build=_core.__build__,
        wall_s=round(time.monotonic() - began, 3),
        rows=tuple(rows),
        moved=tuple(moved_comparisons(rows)),
        not_varied=tuple(not_varied()),
    )


def with_ratios(rows: Sequence[SensitivityRow]) -> list[SensitivityRow]:
    """Returns rows with their ratios to the run without the alternative.

    That is the run with all assumptions, or the run with the setting without which the alternative has no effect.
    """
    known = {(row.paper, row.workload, row.design, row.setting): row for row in rows}
    found = []
    for row in rows:
        second = SECOND_SETTINGS.get(row.key, "")
        setting = second if second and row.setting.startswith(f"{second} ") else ""
        baseline = known.get((row.paper, row.workload, row.design, setting)) if row.key else None
        throughput = pmem_bytes = None
        if baseline is not None and row.error is None and baseline.error is None:
            throughput = _ratio(row.throughput_ops_per_us, baseline.throughput_ops_per_us)
            if (baseline.pmem_write_bytes or 0) >= FEW_BYTES:
                pmem_bytes = _ratio(row.pmem_write_bytes, baseline.pmem_write_bytes)
        found.append(dataclasses.replace(row, throughput_ratio=throughput, pmem_bytes_ratio=pmem_bytes))
    return found


def _ratio(after: float | None, before: float | None) -> float | None:
    return after / before if after is not None and before else None


def moved_comparisons(rows: Sequence[SensitivityRow]) -> list[MovedComparison]:
    """Returns for each assumption the largest change of a ratio of the throughputs of two designs, the largest first.

    A design that an alternative does not concern has the run with all assumptions in its place.
    """
    largest: dict[str, tuple[float, MovedComparison]] = {}
    for row in rows:
        if not row.key or row.throughput_ratio is None or row.throughput_ops_per_us is None:
            continue
        for other in _others(rows, row):
            if other.throughput_ops_per_us is None or not other.throughput_ops_per_us or not row.throughput_ratio:
                continue
            instead = row.throughput_ops_per_us / other.throughput_ops_per_us
            assumed = instead / row.throughput_ratio * (other.throughput_ratio or 1.0)
            factor = max(instead / assumed, assumed / instead)
            if row.key not in largest or factor > largest[row.key][0]:
                largest[row.key] = (
                    factor,
                    MovedComparison(
                        row.key, row.paper, row.workload, row.setting, row.design, other.design, assumed, instead
                    ),
                )
    return [of for _, of in sorted(largest.values(), key=lambda of: -of[0])]


def _others(rows: Sequence[SensitivityRow], row: SensitivityRow) -> list[SensitivityRow]:
    """Returns the runs of other designs with the same alternative, or with all assumptions if it changes nothing."""
    here = [of for of in rows if (of.paper, of.workload) == (row.paper, row.workload) and of.design != row.design]
    same = {of.design: of for of in here if (of.key, of.setting) == (row.key, row.setting)}
    unchanged = {of.design: of for of in here if not of.key}
    return list((unchanged | same).values())
