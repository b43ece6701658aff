"""Grids: the points that the tables `[[runs]]` of a paper stand for, at scale `quick` or `paper`."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from durasim.errors import ConfigError, refusal, unknown_name
from durasim.programs import suites
from durasim.runs import settings as parameter_settings
from durasim.runs.scenario import Scenario, design_variants, settings_of, variant_name, workload_info
from durasim.studies.axes import Value
from durasim.studies.study import Point, Study, study_of

SCALES = ("quick", "paper")
UNPUBLISHED = "unpublished"
"""Key of a table of runs that says what the paper does not state of their sizes."""
RUN_AS = "run_as"
"""Key of a table of runs with the workloads that run in the place of its own, which still label the points."""
_OWN = ("where", "ops_per_thread", UNPUBLISHED, RUN_AS)
"""Keys of a table of runs that a study does not have."""
_SEED = "seed"
_CONDITIONS = {"workload": "workloads", "design": "designs", "threads": "threads", "machine": "machine"}
"""Conditions of `where` by the key of the study with the allowed values."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A point of a table of runs.

    Attributes:
        runs: Name of the table.
        values: The value of each axis; None for a parameter of another design.
    """

    runs: str
    values: Mapping[str, Value | None]


@dataclass(frozen=True, slots=True)
class Grid(Study):
    """A study of the points of several tables of runs, each scenario once.

    Attributes:
        cells: The cells of each point, in the order of the points.
        distinct: The points.
        repeated: Names of the tables whose runs have several seeds because more were asked for than the table has.
    """

    cells: tuple[tuple[Cell, ...], ...]
    distinct: tuple[Point, ...]
    repeated: frozenset[str] = frozenset()

    def count(self) -> int:
        """Returns the number of points."""
        return len(self.distinct)

    def points(self) -> list[Point]:
        """Returns the points."""
        return list(self.distinct)


def grid_of(
    name: str,
    runs: Sequence[Mapping[str, Any]],
    scale: str,
    is_read: Callable[[Cell], bool] = lambda _: True,
    seeds: int = 1,
) -> Grid:
    """Returns the grid of some tables of runs.

    Args:
        name: Name of the study in the store.
        runs: The tables.
        scale: `quick` for the sizes that are scored, `paper` for the published ones.
        is_read: Whether a cell is needed.
        seeds: Least number of seeds of each run; a table that has more keeps them.

    Raises:
        ConfigError: A table is wrong; the sentence names it.
    """
    points: dict[Scenario, Point] = {}
    cells: dict[Scenario, list[Cell]] = {}
    repeated = set[str]()
    for table in runs:
        tables = list(_tables(table, scale))
        if seeds > 1 and not any(_has_seeds(of) for of in tables):
            repeated.add(table["name"])
        studies = [_study(table["name"], _with_seeds(of, seeds)) for of in tables]
        listed = [point for study in studies for point in study.points()]
        if len(studies) > 1:
            listed = _in_order_of_axes(listed, table)
        for point in (_run_as(point, table.get(RUN_AS, {})) for point in listed):
            cell = Cell(table["name"], point.values)
            if is_read(cell):
                same = _in_one_order(point.scenario)
                points.setdefault(same, point)
                cells.setdefault(same, []).append(cell)
    distinct = tuple(points.values())
    labels = tuple(map(tuple, cells.values()))
    return Grid(name, "run", {}, (), None, {"name": name}, "", labels, distinct, frozenset(repeated))


def _run_as(point: Point, workloads: Mapping[str, str]) -> Point:
    """Returns a point with the workload that runs in the place of its own; its label stays."""
    named = point.scenario.workload
    if named not in workloads:
        return point
    return dataclasses.replace(point, scenario=dataclasses.replace(point.scenario, workload=workloads[named]))


def union_of(name: str, grids: Sequence[Grid]) -> Grid:
    """Returns the grid of all points of some grids, each scenario once; its points have no cells."""
    points: dict[Scenario, Point] = {}
    for point in (point for grid in grids for point in grid.distinct):
        points.setdefault(_in_one_order(point.scenario), point)
    distinct = tuple(points.values())
    return Grid(name, "run", {}, (), None, {"name": name}, "", ((),) * len(distinct), distinct)


def without_repeated(grids: Sequence[Grid]) -> list[Grid]:
    """Returns the grids without the points that an earlier one has; their points have no cells."""
    seen = set[Scenario]()
    found = []
    for grid in grids:
        own = {_in_one_order(point.scenario): point for point in grid.distinct}
        distinct = tuple(point for same, point in own.items() if same not in seen)
        seen |= own.keys()
        found.append(dataclasses.replace(grid, cells=((),) * len(distinct), distinct=distinct))
    return found


def numbers_in(union: Grid, grid: Grid) -> list[int]:
    """Returns the number in a union of each point of one of its grids."""
    numbers = {_in_one_order(point.scenario): number for number, point in enumerate(union.distinct)}
    return [numbers[_in_one_order(point.scenario)] for point in grid.distinct]


def _in_order_of_axes(points: Sequence[Point], table: Mapping[str, Any]) -> list[Point]:
    """Returns points in the order of workloads, designs and threads of their table, whatever `where` distinguishes."""
    workloads = suites.expand(table["workloads"])
    designs = [variant_name(name) for name in suites.designs_of(table["designs"])]
    threads = _listed(table.get("threads"))

    def place(point: Point) -> tuple[int, ...]:
        values = point.values
        of_threads = threads.index(values.get("threads")) if values.get("threads") in threads else 0
        return workloads.index(str(values["workload"])), designs.index(str(values["design"])), of_threads

    return sorted(points, key=place)


def _in_one_order(scenario: Scenario) -> Scenario:
    """Returns a scenario with its arguments and parameters in one order, which is equal for equal runs."""
    return dataclasses.replace(
        scenario, workload_args=tuple(sorted(scenario.workload_args)), settings=tuple(sorted(scenario.settings))
    )


def _tables(table: Mapping[str, Any], scale: str) -> Iterator[dict[str, Any]]:
    """Yields the tables of a study for each combination of values that the table's `where` distinguishes."""
    # At scale `paper` without the scale of the quick runs, and with its own changes after those of `where`.
    is_full, full = scale == "paper", table.get("paper", {})
    plain = {key: value for key, value in table.items() if key not in (*_OWN, "paper", *(["scale"] if is_full else []))}
    changes, per_thread = table.get("where", []), "ops_per_thread" in table or "ops_per_thread" in full
    distinguished = {key for change in changes for key in change if key in _CONDITIONS}
    if per_thread or any("ops_per_thread" in change for change in changes):
        distinguished.add("threads")
    listed = {key: _listed(plain.get(_CONDITIONS[key])) for key in _CONDITIONS if key in distinguished}
    for key, values in listed.items():
        if values == [None]:
            raise refusal(f"runs.{table['name']}.where", f"{key} is a condition, but {_CONDITIONS[key]} is not given")
    for change in changes:
        _check_names(change, table["name"])
    for combination in itertools.product(*listed.values()):
        values = dict(zip(listed, combination, strict=True))
        of = plain | {_CONDITIONS[key]: _like(plain[_CONDITIONS[key]], value) for key, value in values.items()}
        ops_per_thread = table.get("ops_per_thread")
        for change in changes:
            if all(values[key] in _listed(change[key]) for key in change if key in _CONDITIONS):
                of = merged(of, {key: value for key, value in change.items() if key not in (*_CONDITIONS, *_OWN)})
                ops_per_thread = change.get("ops_per_thread", ops_per_thread)
        if ops_per_thread is not None:
            of["ops"] = ops_per_thread * values["threads"]
        if is_full:
            own = {key: value for key, value in full.items() if key != "ops_per_thread"}
            of = merged(
                of, own | ({"ops": full["ops_per_thread"] * values["threads"]} if "ops_per_thread" in full else {})
            )
        if "design" in values and "set" in of:
            of["set"] = _of_design(of["set"], values["design"])
        yield _with_batches(of)


def _with_batches(of: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a table whose runs record batches of operations, for intervals; functional runs have no cycles."""
    options = of.get("run", {})
    return {**of} if options.get("functional") else {**of, "run": {"batches": True, **options}}


def _study(name: str, tables: Mapping[str, Any]) -> Study:
    try:
        return study_of(tables)
    except ConfigError as error:
        raise refusal(f"runs.{name}.{error.field}", error.problem) from None


def _has_seeds(tables: Mapping[str, Any]) -> bool:
    return "seeds" in tables or _SEED in tables.get("axes", {})


def _with_seeds(tables: Mapping[str, Any], seeds: int) -> Mapping[str, Any]:
    """Returns the tables of a study with at least this many seeds; seeds that are an axis of their own are kept."""
    if seeds == 1 or _SEED in tables.get("axes", {}):
        return tables
    own = tables.get("seeds", 1)
    if isinstance(own, int):
        return {**tables, "seeds": max(own, seeds)}
    others = (seed for seed in itertools.count(1) if seed not in own)
    return {**tables, "seeds": [*own, *itertools.islice(others, max(seeds - len(own), 0))]}


def merged(tables: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Returns tables with changes; the keys of a table in them are changed one by one."""
    found = dict(tables)
    for key, value in changes.items():
        found[key] = {**found[key], **value} if isinstance(value, Mapping) and key in found else value
    return found


def _check_names(change: Mapping[str, Any], runs: str) -> None:
    """Refuses a condition that no run can have: an unknown design or workload."""
    for name in _listed(change.get("design", [])):
        if variant_name(name) not in design_variants():
            raise unknown_name(f"runs.{runs}.where.design", name, design_variants())
    for name in _listed(change.get("workload", [])):
        workload_info(name)


def _of_design(settings: Mapping[str, Any], design: str) -> dict[str, Any]:
    """Returns the parameters without those of other designs, which a study of one design refuses."""
    hardware = design_variants()[variant_name(design)]["hardware"]
    kept = {of.partition("=")[0] for of in parameter_settings.of_design(settings_of(settings), str(hardware))}
    return {key: value for key, value in settings.items() if key in kept}


def _like(original: Any, value: Any) -> Any:
    return [value] if isinstance(original, list) else value


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [value]
