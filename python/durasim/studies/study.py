"""Studies: the points of a sweep over designs, workloads or programs, and keys."""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from durasim.crashes.crash_request import FIELDS, CrashOptions, check_options, has, options_of
from durasim.documents.described import RunOptions
from durasim.documents.metrics import metric_named, metric_names
from durasim.documents.toml_files import read_toml, schema_named, validate
from durasim.errors import refusal, unknown_name
from durasim.programs import suites
from durasim.programs.scale import DEFAULT_SCALE
from durasim.programs.workload_tables import is_path
from durasim.runs import settings as parameter_settings
from durasim.runs.scenario import (
    DEFAULT_MACHINE,
    DEFAULT_SEED,
    Scenario,
    design_variants,
    settings_of,
    variant_name,
    workload_info,
)
from durasim.studies.axes import Axis, Value, axes_of, drawn, refuse_open
from durasim.studies.constraints import Constraint, constraint_of, machine_values

POINTS_UNASKED_MAX = 10_000
"""Number of points above which a study asks for `--yes`."""
_DRAWS_MAX = 1000
"""Draws for each point of a random sample before its constraints count as too narrow."""
_ARG, _CRASH = "arg.", "crash."
_RUN_OPTIONS = {field.name.rstrip("_"): field.name for field in dataclasses.fields(RunOptions)}
_CRASH_OPTIONS = tuple(name for name in FIELDS if has(name, "file"))
_OWN_CRASH_OPTIONS = tuple(name for name in FIELDS if has(name, "elf"))
_OF_CHECK = {"check": "check_args", "again": "again_args", "oracle": "oracles"}
"""Options of `durasim crash` by the keys of programs in study and campaign files."""
_NUMBERS: Mapping[str, Value] = {"threads": 1, "seed": DEFAULT_SEED}
"""Numbers of a point that the arguments of a program may contain, with the values of a study without them."""
_OF_SCENARIO = ("ops", "threads", "seed", "domain", "scale", "machine")


@dataclass(frozen=True, slots=True)
class Refinement:
    """Bisection of an axis.

    Attributes:
        axis: Its key.
        metric: The metric, a column of the study's table or the begin of its name.
        threshold: The value to enclose, or a part of the metric at one end of the axis.
        of: `first` or `last` end of the axis that `threshold` is a part of; None if it is a value.
        tolerance: Largest distance of the two values that enclose it.
    """

    axis: str
    metric: str
    threshold: float
    of: str | None
    tolerance: float


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a study: one run or crash campaign.

    Attributes:
        values: The value of each axis; None for a parameter of another design.
        scenario: What is simulated.
        crash: Options of the crash campaign; None for a run.
    """

    values: Mapping[str, Value | None]
    scenario: Scenario
    crash: CrashOptions | None

    @property
    def kind(self) -> str:
        """The kind of simulation: `run` or `crash`."""
        return "run" if self.crash is None else "crash"


@dataclass(frozen=True, slots=True)
class Study:
    """A checked study.

    Attributes:
        name: Its name.
        kind: `run` or `crash`.
        axes: Its axes: workload or program first, then the design, then the others.
        constraints: Conditions that each point has to meet.
        refinement: The bisection of an axis, if any.
        tables: The content of the study file.
        folder: The folder to which paths in it are relative.
    """

    name: str
    kind: str
    axes: Mapping[str, Axis]
    constraints: tuple[Constraint, ...]
    refinement: Refinement | None
    tables: Mapping[str, Any]
    folder: str

    def count(self) -> int:
        """Returns the number of points before constraints."""
        sizes = {key: len(axis.values) for key, axis in self.axes.items()}
        if "sample" in self.tables:
            sampled = self._sampled()
            return self.tables["sample"]["points"] * math.prod(sizes[key] for key in sizes if key not in sampled)
        return math.prod(sizes.values())

    def points(self) -> list[Point]:
        """Returns the points in order, each once; those of a refinement begin with the ends of its axis.

        Raises:
            ConfigError: No point meets the constraints, or a name or number is not allowed.
        """
        found: dict[tuple[Any, ...], Point] = {}
        for values in self._combinations():
            point = self.point(values)
            found.setdefault(tuple(point.values.items()), point)
        if not found:
            texts = " and ".join(f"'{constraint.text}'" for constraint in self.constraints)
            raise refusal("constraints", f"no point of the study meets {texts}")
        return list(found.values())

    def _sampled(self) -> dict[str, Axis]:
        """Returns the axes of the table `[axes]`, which a sample draws; all others are combined with each draw."""
        named = axes_of(self.tables.get("axes", {})).keys() - {"design", "workload"}
        return {key: axis for key, axis in self.axes.items() if key in named}

    def _combinations(self) -> Iterator[dict[str, Value]]:
        """Yields the values of points that meet the constraints."""
        if "sample" not in self.tables:
            for values in _product(self.axes):
                if self._is_allowed(values):
                    yield values
            return
        sampled, asked = self._sampled(), self.tables["sample"]
        others = {key: axis for key, axis in self.axes.items() if key not in sampled}
        is_random = asked["method"] == "random"
        draws = drawn(sampled, asked["method"], asked["points"], asked.get("seed", 1))
        for outer in _product(others):
            taken = 0
            # Every combination of the others has the same draws, so that they can be compared.
            for _, values in zip(range(asked["points"] * (_DRAWS_MAX if is_random else 1)), draws, strict=False):
                combined = {key: (outer | values)[key] for key in self.axes}
                if self._is_allowed(combined):
                    taken += 1
                    yield combined
                if taken == asked["points"]:
                    break
            draws = drawn(sampled, asked["method"], asked["points"], asked.get("seed", 1))

    def _is_allowed(self, values: Mapping[str, Value]) -> bool:
        if not self.constraints:
            return True
        machine = self._machine(values)
        fixed = {key: parameter_settings.size_in_bytes(key, value) for key, value in self.fixed_settings().items()}
        known = {**machine_values(machine), **fixed, **values}
        return all(constraint.holds(known) for constraint in self.constraints)

    def fixed_settings(self) -> dict[str, Any]:
        """Returns the parameters that are equal at all points."""
        return dict(_leaves(self.tables.get("set", {}), ""))

    def _machine(self, values: Mapping[str, Value]) -> str:
        machine = str(values.get("machine", DEFAULT_MACHINE))
        return self._path(machine) if machine.endswith(".toml") else machine

    def _path(self, path: str) -> str:
        return os.path.join(self.folder, path)  # noqa: PTH118 - a text

    def workload(self, name: str) -> str:
        """Returns a name of a workload, or the path of its source, which is relative to the study file."""
        return self._path(name) if is_path(name) else name

    def point(self, values: Mapping[str, Value]) -> Point:
        """Returns the point with these values of the axes.

        Raises:
            ConfigError: A value is not allowed.
        """
        tables = self.tables
        design = str(values["design"])
        hardware = str(design_variants()[design]["hardware"])
        options = {name: tables[name] for name in ("ops", "domain", "scale", "control") if name in tables}
        options |= {_RUN_OPTIONS[name]: value for name, value in tables.get("run", {}).items()}
        crash = dict(tables.get("crash", {}))
        settings, arguments, shown = (
            self.fixed_settings(),
            dict(tables.get("args", {})),
            dict[str, Value | None](values),
        )
        for key, value in values.items():
            if key in _OF_SCENARIO:
                options[key] = value
            elif key.startswith(_ARG):
                arguments[key.removeprefix(_ARG)] = value
            elif key.startswith(_CRASH):
                crash[key.removeprefix(_CRASH)] = value
            elif key in _RUN_OPTIONS:
                options[_RUN_OPTIONS[key]] = value
            elif key not in ("design", "workload", "program"):
                settings[key] = value
        applied = parameter_settings.of_design(settings_of(settings), hardware)
        of_design = dict(setting.split("=", 1) for setting in applied)
        for key in values:
            if key in settings and key not in of_design:
                # A parameter of another design: these points are one.
                shown[key] = None
        options["machine"] = self._machine(values)
        program, of_check = self._program(values, arguments) if "program" in values else (None, {})
        if program is not None:
            # They are in the arguments of the program.
            options.pop("threads", None)
        else:
            options |= {"workload": self.workload(str(values["workload"])), "workload_args": _texts(arguments)}
            options["macros"] = tuple(tables.get("macros", ()))
            options["include_folders"] = tuple(map(self._path, tables.get("include_folders", ())))
            options.setdefault("threads", suites.threads_of(str(values["workload"])))
            is_small = options.get("scale", DEFAULT_SCALE) != DEFAULT_SCALE
            is_timed = self.kind == "run" and not options.get("functional", False)
            if is_small and is_timed and not self.tables.get("shared_population", False):
                # As in comparisons: data are populated functionally.
                options.setdefault("fast_forward", 0)
        scenario = Scenario(design=design, settings=applied, **(options | (program or {})))
        if self.kind == "run":
            return Point(shown, scenario, None)
        return Point(shown, scenario, dataclasses.replace(options_of(crash | of_check), workers=1))

    def _program(
        self, values: Mapping[str, Value], arguments: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns the fields of a scenario of an own program, and the options of its check."""
        name = str(values["program"])
        table = next(table for table in self.tables["programs"] if _name_of(table) == name)
        numbers = {key: values.get(key, default) for key, default in _NUMBERS.items()}
        texts = dict(_texts({**numbers, **arguments}))
        used = set()

        def filled(text: str) -> str:
            for argument, value in texts.items():
                if f"{{{argument}}}" in text:
                    used.add(argument)
                    text = text.replace(f"{{{argument}}}", value)
            return text

        scenario = {
            "elf": self._path(table["elf"]),
            "args": tuple(map(filled, table.get("args", ()))),
            "env": tuple(table.get("env", ())),
            "root": self._path(table["root"]) if "root" in table else None,
        }
        of_check = {
            option: filled(table[key]) if isinstance(table[key], str) else table[key]
            for key, option in _OF_CHECK.items()
            if key in table
        }
        for key in (*arguments, *({"threads"} & values.keys())):
            if key not in used:
                where = key if key == "threads" else f"axes.arg.{key}"
                raise refusal(where, f"no argument of {name} contains {{{key}}}")
        return scenario, of_check


def _product(axes: Mapping[str, Axis]) -> Iterator[dict[str, Value]]:
    for combination in itertools.product(*(axis.values for axis in axes.values())):
        yield dict(zip(axes, combination, strict=True))


def _texts(arguments: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, str(value).lower() if isinstance(value, bool) else str(value)) for name, value in arguments.items()
    )


def _leaves(tables: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, value in tables.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _name_of(program: Mapping[str, Any]) -> str:
    return str(program.get("name", Path(program["elf"]).name))


def read_study(path: str | os.PathLike[str]) -> Study:
    """Reads and checks a study file.

    Raises:
        ConfigError: It is not TOML, or not a study.
        HostIoError: It cannot be read.
    """
    file = Path(path)
    folder = "" if file.parent == Path() else os.fspath(file.parent)
    return study_of(read_toml(file, "study"), folder)


def study_of(tables: Mapping[str, Any], folder: str = "") -> Study:
    """Checks the content of a study file and returns the study.

    Args:
        tables: The content.
        folder: The folder to which paths in it are relative.

    Raises:
        ConfigError: A key or value is not allowed.
    """
    validate(tables, schema_named("study-file"), "study")
    kind = tables.get("kind", "run")
    _check_options(tables, kind)
    for program in tables.get("programs", ()):
        _check_program(program, tables, kind)
    axes = _ordered(_axes_of_fields(tables), tables)
    constraints = tuple(constraint_of(text) for text in tables.get("constraints", []))
    study = Study(tables["name"], kind, axes, constraints, _refinement(tables, axes, kind), tables, folder)
    _check_keys(study)
    for name in ("maximize", "minimize"):
        for metric in tables.get("pareto", {}).get(name, ()):
            metric_named(metric, metric_names(kind), f"pareto.{name}")
    return study


def _check_options(tables: Mapping[str, Any], kind: str) -> None:
    if ("workloads" in tables) == ("programs" in tables) and "workload" not in tables.get("axes", {}):
        raise refusal("workloads", "give either workloads or programs")
    _check_compiler(tables)
    for name in tables.get("run", {}):
        if kind == "crash":
            raise refusal("run", "applies only to a study of kind run")
        if name not in _RUN_OPTIONS:
            raise unknown_name("run", name, _RUN_OPTIONS)
        if name in ("pool", "snapshot", "snapshot_at"):
            raise refusal(f"run.{name}", "is a file that each point would write: a study only reads")
    if tables.get("shared_population", False):
        if kind == "crash":
            raise refusal("shared_population", "applies only to a study of kind run: a crash needs the whole run")
        if given := {"from", "fast_forward"} & {*tables.get("run", {}), *axes_of(tables.get("axes", {}))}:
            raise refusal("shared_population", f"cannot be combined with {given.pop()}: points start at its snapshot")
    allowed = (*_CRASH_OPTIONS, *(_OWN_CRASH_OPTIONS if "programs" in tables else ()))
    for name in tables.get("crash", {}):
        if kind == "run":
            raise refusal("crash", 'applies only to a study of kind = "crash"')
        if name not in allowed:
            raise unknown_name("crash", name, allowed)
    if kind == "crash":
        check_options(options_of(tables.get("crash", {})))


def _check_program(program: Mapping[str, Any], tables: Mapping[str, Any], kind: str) -> None:
    """Refuses keys of the check of a program without an effect."""
    for key, option in _OF_CHECK.items():
        if key in program and kind == "run":
            raise refusal(f"programs.{key}", 'applies only to a study of kind = "crash"')
        if key in program and option in tables.get("crash", {}):
            raise refusal(f"programs.{key}", f"crash.{option} gives it for all programs: give either of them")


def _check_compiler(tables: Mapping[str, Any]) -> None:
    for name in ("macros", "include_folders"):
        if name in tables and "programs" in tables:
            raise refusal(name, "applies only to workloads, which are compiled here, not to programs")


def _axes_of_fields(tables: Mapping[str, Any]) -> dict[str, Axis]:
    """Returns all axes: fields of the study with several values, and the table `[axes]`."""
    found: dict[str, Axis] = {}
    if "workloads" in tables:
        found["workload"] = Axis("workload", _distinct("workloads", suites.expand(tables["workloads"])))
    if "programs" in tables:
        found["program"] = Axis("program", _distinct("programs", map(_name_of, tables["programs"])))
    if "designs" in tables:
        names = (variant_name(name) for name in suites.designs_of(tables["designs"]))
        found["design"] = Axis("design", _distinct("designs", names))
    for field in ("machine", "threads"):
        if field in tables:
            values = tables[field] if isinstance(tables[field], list) else [tables[field]]
            found[field] = Axis(field, _distinct(field, values))
    own = axes_of(tables.get("axes", {}))
    for key in own:
        if key in found or (key == "seed" and "seeds" in tables) or key in _fixed(tables):
            raise refusal(f"axes.{key}", "two axes have this key, or the study also sets it")
    if "design" in own:
        own["design"] = Axis("design", tuple(variant_name(str(name)) for name in own["design"].values))
    seeds = tables.get("seeds")
    if seeds is not None:
        values = seeds if isinstance(seeds, list) else list(range(1, seeds + 1))
        own["seed"] = Axis("seed", _distinct("seeds", values))
    return found | own


def _fixed(tables: Mapping[str, Any]) -> set[str]:
    """Returns the keys that have one value at all points."""
    fixed = {name for name in ("ops", "domain", "scale") if name in tables}
    fixed |= {key for key, _ in _leaves(tables.get("set", {}), "")} | set(tables.get("run", {}))
    fixed |= {f"{_CRASH}{name}" for name in tables.get("crash", {})}
    return fixed | {f"{_ARG}{name}" for name in tables.get("args", {})}


def _distinct(field: str, values: Iterable[Any]) -> tuple[Any, ...]:
    listed = tuple(values)
    if twice := sorted({str(value) for value in listed if listed.count(value) > 1}):
        raise refusal(field, f"lists {', '.join(twice)} twice")
    return listed


def _ordered(axes: dict[str, Axis], tables: Mapping[str, Any]) -> dict[str, Axis]:
    """Returns the axes in the order of the points: workload or program, design, then as in the file."""
    if "design" not in axes:
        raise refusal("designs", "is required")
    first = [key for key in ("workload", "program", "design") if key in axes]
    ordered = {key: axes[key] for key in first} | axes
    if "refine" not in tables and "sample" not in tables:
        refuse_open(ordered)
    return ordered


def _refinement(tables: Mapping[str, Any], axes: Mapping[str, Axis], kind: str) -> Refinement | None:
    if "refine" not in tables:
        return None
    if "sample" in tables:
        raise refusal("refine", "cannot be combined with sample: a bisection needs the ends of its axis")
    described = tables["refine"]
    ranges = [key for key, axis in axes.items() if axis.is_open]
    key = described.get("axis") or (ranges[0] if len(ranges) == 1 else None)
    if key is None:
        raise refusal("refine.axis", f"is required: {len(ranges)} axes are ranges without points")
    if key not in axes:
        raise unknown_name("refine.axis", key, axes)
    if not axes[key].is_open:
        raise refusal("refine.axis", f"{key} has to be a range with from and to alone")
    refuse_open({name: axis for name, axis in axes.items() if name != key})
    metric = metric_named(described["metric"], metric_names(kind), "refine.metric")
    return Refinement(key, metric, described["threshold"], described.get("of"), described.get("tolerance", 1))


def _check_keys(study: Study) -> None:
    """Refuses unknown names of designs, workloads and keys, and parameters of designs that are not in the study."""
    for design in study.axes["design"].values:
        if design not in design_variants():
            raise unknown_name("designs", str(design), design_variants())
    for workload in study.axes["workload"].values if "workload" in study.axes else ():
        workload_info(study.workload(str(workload)))
    swept: Sequence[str] = [key for key in study.axes if _is_parameter(key)]
    for key in swept:
        parameter_settings.check_known(key)
    for key in (key for key in study.axes if key.startswith(_CRASH)):
        if study.kind != "crash":
            raise refusal(f"axes.{key}", 'applies only to a study of kind = "crash"')
        if key.removeprefix(_CRASH) not in _CRASH_OPTIONS:
            raise unknown_name(f"axes.{key}", key.removeprefix(_CRASH), _CRASH_OPTIONS)
    for key in study.axes:
        if key in ("pool", "snapshot", "snapshot_at"):
            raise refusal(f"axes.{key}", "is a file that each point would write: a study only reads")
        if study.kind == "crash" and key in _RUN_OPTIONS:
            raise refusal(f"axes.{key}", "applies only to a study of kind run")
    hardware = [str(design_variants()[str(name)]["hardware"]) for name in study.axes["design"].values]
    parameter_settings.check_any(settings_of({**study.fixed_settings(), **dict.fromkeys(swept, "")}), hardware)


def _is_parameter(key: str) -> bool:
    named = (*_OF_SCENARIO, *_RUN_OPTIONS, "design", "workload", "program")
    return key not in named and not key.startswith((_ARG, _CRASH))


def refuse_many(study: Study, *, yes: bool) -> None:
    """Refuses a study with very many points, unless the user agrees.

    Raises:
        ConfigError: It has more than `POINTS_UNASKED_MAX` points and `yes` is False.
    """
    if study.count() > POINTS_UNASKED_MAX and not yes:
        sizes = " x ".join(f"{key} {len(axis.values):,}" for key, axis in study.axes.items() if len(axis.values) > 1)
        raise refusal("axes", f"the study has {study.count():,} points ({sizes}): add --yes to simulate all of them")
