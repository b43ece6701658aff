"""Results of packing an artifact and of simulating it again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from durasim.documents.document import Document

RERUN_SCHEMA = "durasim-rerun/1"


@dataclass(frozen=True, slots=True)
class Artifact(Document):
    """An artifact that was packed.

    Attributes:
        path: Its file.
        size_bytes: Size of the file.
        sha256: Hash of the file.
        points: Number of simulations.
        programs: Number of guest programs.
        wheels: Number of wheels.
        numbers: Number of rows in the tables of its appendix.
        disk_bytes: Size of the unpacked artifact with the installed wheels.
        seconds: Host time of all simulations on one core, as measured when they were simulated.
        memory_bytes: Largest memory of a simulation.
    """

    path: str
    size_bytes: int
    sha256: str
    points: int
    programs: int
    wheels: int
    numbers: int
    disk_bytes: int
    seconds: float
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Deviation(Document):
    """A value of a new document that is not the packed one; None where a document lacks it.

    Attributes:
        place: Its place in the document, such as `roi.cycles`.
        expected: The packed value.
        found: The new value.
    """

    place: str
    expected: Any
    found: Any


@dataclass(frozen=True, slots=True)
class RerunPoint(Document):
    """A point of an artifact that was simulated again.

    Attributes:
        result: The packed document.
        design: Durability design.
        workload: Name of the workload or program.
        state: `equal`, `different` or `failed`.
        seconds: Host time of the new simulation; 0 if it failed.
        differences: All values that differ, in the order of the document.
        error: The reason if it failed.
    """

    result: str
    design: str
    workload: str
    state: str
    seconds: float
    differences: tuple[Deviation, ...]
    error: str | None


@dataclass(frozen=True, slots=True)
class Rerun(Document):
    """The document of `durasim rerun`.

    Attributes:
        schema: Name and version of this document.
        durasim_version: Version of durasim.
        build: Hash of the sources of the build.
        name: Name of the study or the papers.
        points: The points, in the order of the artifact.
        equal: Number of points whose results are equal to the packed ones, except times and memory of the host.
        different: Number of points with other results.
        failed: Number of points that could not be simulated.
    """

    schema: str
    durasim_version: str
    build: str
    name: str
    points: tuple[RerunPoint, ...]
    equal: int
    different: int
    failed: int

    @property
    def passes(self) -> bool:
        """Whether all results are equal."""
        return self.equal == len(self.points)
