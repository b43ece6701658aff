"""The document of a plan: the points of a study with expected time and memory, before any is simulated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from durasim.documents.document import Document

SCHEMA = "durasim-sweep-plan/1"


@dataclass(frozen=True, slots=True)
class PlannedPoint(Document):
    """A point of a plan.

    Attributes:
        key: Hash of all that its simulation reads.
        is_stored: Whether its result is in the store.
        seconds: Expected host time; 0 if its result is stored, None if unknown.
        command: The command that simulates it alone.
        values: The value of each axis; None for a parameter of another design.
    """

    key: str
    is_stored: bool
    seconds: float | None
    command: str
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Plan(Document):
    """The document of `durasim sweep --plan`.

    Attributes:
        schema: Name and version of this document.
        durasim_version: Version of durasim.
        name: Name of the study.
        points: The points in order; those that a bisection adds are unknown.
        to_simulate: Number of points that are not stored.
        minutes: Expected time with `jobs` processes; None if unknown.
        memory_bytes: Expected memory of all processes together.
        jobs: Number of concurrent simulations.
    """

    schema: str
    durasim_version: str
    name: str
    points: tuple[PlannedPoint, ...]
    to_simulate: int
    minutes: float | None
    memory_bytes: int
    jobs: int
