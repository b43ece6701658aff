"""The file of the sensitivity experiment: where the alternatives to assumptions are measured, on which programs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from durasim.crashes.test_plans import measurements
from durasim.documents.toml_files import read_toml, schema_named, validate
from durasim.errors import refusal, unknown_name
from durasim.papers.paper_files import ALL, paper_named, papers_folder
from durasim.programs import suites
from durasim.runs.assumptions import assumptions
from durasim.runs.scenario import variant_name

Settings = tuple[str, ...]
"""Settings as for `--set`; `--arg NAME=VALUE` is an argument of the program."""


@dataclass(frozen=True, slots=True)
class Place:
    """Machine, sizes and programs of a paper, on which its assumptions are varied.

    Attributes:
        paper: Name of the folder of the paper.
        table: The table of its runs, with two programs, one seed and the designs that are compared.
        most: The program whose runs its assumptions change most.
        least: The one whose runs they change least.
        designs: The compared designs.
        further: Designs that are run for assumptions of their own alone.
        sources: Names of papers, as `assumptions.toml` has them, whose assumptions are varied here.
        programs: Programs for single assumptions that do nothing on those above: most, then least.
    """

    paper: str
    table: Mapping[str, Any]
    most: str
    least: str
    designs: tuple[str, ...]
    further: tuple[str, ...]
    sources: frozenset[str]
    programs: Mapping[str, tuple[str, str]]

    def programs_of(self, key: str) -> tuple[str, str]:
        """Returns the programs for an assumption: the one that it changes most, and the one that it changes least."""
        return self.programs.get(key, (self.most, self.least))


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Alternatives to an assumption.

    Attributes:
        key: Its key.
        points: The settings of each.
        designs: Designs that they concern; None for all, where the assumption is about the machine.
    """

    key: str
    points: tuple[Settings, ...]
    designs: tuple[str, ...] | None


def sensitivity_file() -> Path:
    """Returns the file of the experiment."""
    return papers_folder() / "sensitivity.toml"


@cache
def machine_alternatives() -> Mapping[str, tuple[Settings, ...]]:
    """Returns the alternatives to assumptions about machines by key; those about designs are in the test plans.

    Raises:
        ConfigError: The file is wrong.
        HostIoError: It cannot be read.
    """
    return {of["key"]: tuple(tuple(point) for point in of["points"]) for of in _tables()["alternatives"]}


def places(paper: str | None = None) -> list[Place]:
    """Returns the places, or those of one paper by its name or alias; `all` as well stands for all.

    Raises:
        ConfigError: The file is wrong, or the paper has no place.
        HostIoError: A file cannot be read.
    """
    wanted = None if paper in (None, ALL) else paper_named(paper).name
    found = [_place_of(of) for of in _tables()["places"] if wanted in (None, of["paper"])]
    if not found:
        raise unknown_name("paper", str(paper), [of["paper"] for of in _tables()["places"]])
    return found


def alternatives_at(place: Place, keys: Sequence[str] = ()) -> list[Alternatives]:
    """Returns the alternatives that are measured at a place, in the order of `assumptions.toml`.

    Args:
        place: The place.
        keys: Keys of assumptions; all if empty.

    Raises:
        ConfigError: A key is unknown.
    """
    if unknown := sorted(set(keys) - assumptions().keys()):
        raise unknown_name("key", unknown[0], assumptions())
    known = _all_alternatives()
    here = {key for key in known if place.sources & _sources_of(assumptions()[key].paper)}
    return [known[key] for key in assumptions() if key in here and (not keys or key in keys)]


def not_varied() -> list[str]:
    """Returns the keys of the assumptions without an alternative: no parameter sets them, or none was chosen."""
    return [key for key in assumptions() if key not in _all_alternatives()]


@cache
def _all_alternatives() -> Mapping[str, Alternatives]:
    found = {key: Alternatives(key, points, None) for key, points in machine_alternatives().items()}
    return found | {key: Alternatives(key, of.points, of.designs) for key, of in measurements().items()}


def _sources_of(text: str) -> set[str]:
    """Returns the names of papers in the field `paper` of an assumption, such as `TC, section 4.1; Hercules`."""
    return set(re.split(r"[,;] ", text))


@cache
def _tables() -> Mapping[str, Any]:
    file = sensitivity_file()
    tables = read_toml(file, "sensitivity")
    validate(tables, schema_named("sensitivity-file"), "sensitivity", f"{file}: ")
    _check_keys(file, (of["key"] for of in tables["alternatives"]))
    _check_keys(file, (key for place in tables["places"] for of in place.get("programs", ()) for key in of["keys"]))
    return tables


def _check_keys(file: Path, keys: Iterable[str]) -> None:
    for key in keys:
        if key not in assumptions():
            raise refusal("alternatives", f"{file}: '{key}' is no assumption of assumptions.toml")


def _place_of(of: Mapping[str, Any]) -> Place:
    tables = {name: table for figure in paper_named(of["paper"]).figures for name, table in figure.runs.items()}
    if of["runs"] not in tables:
        raise unknown_name("places.runs", of["runs"], tables)
    programs = {key: (each["most"], each["least"]) for each in of.get("programs", ()) for key in each["keys"]}
    table, further = tables[of["runs"]], tuple(of.get("further", ()))
    designs = tuple(variant_name(name) for name in suites.designs_of(table["designs"]))
    used = dict.fromkeys(name for pair in [(of["most"], of["least"]), *programs.values()] for name in pair)
    changed = {"workloads": list(used), "designs": [*designs, *further], "seeds": 1}
    return Place(
        of["paper"], {**table, **changed}, of["most"], of["least"], designs, further, frozenset(of["sources"]), programs
    )
