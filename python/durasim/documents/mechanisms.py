"""Mechanisms of designs with their functions and tests, as `durasim designs --check` verifies them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from durasim._core import __version__


@dataclass(slots=True)
class Mechanism:
    """A mechanism with its functions and tests.

    Attributes:
        design: The design that the page belongs to.
        file: The page, relative to the checkout.
        line: The line of the table row, from 1.
        paper: Section, listing or figure of the paper.
        mechanism: Description.
        functions: Functions that implement it, as `path::name`.
        tests: Tests that verify it.
        problems: Problems of its table row; empty if there are none.
    """

    design: str
    file: str
    line: int
    paper: str
    mechanism: str
    functions: tuple[str, ...]
    tests: tuple[str, ...]
    problems: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Returns the row in the form of the JSON document."""
        return {
            "design": self.design,
            "file": self.file,
            "line": self.line,
            "paper": self.paper,
            "mechanism": self.mechanism,
            "functions": list(self.functions),
            "tests": list(self.tests),
            "problems": self.problems,
        }


def check_document(rows: Sequence[Mechanism]) -> dict[str, Any]:
    """Returns the document of `durasim designs --check --json`."""
    return {
        "schema": "durasim-designs-check/2",
        "durasim_version": __version__,
        "refused": sum(bool(row.problems) for row in rows),
        "mechanisms": [row.to_dict() for row in rows],
    }


def verdict_lines(rows: Sequence[Mechanism]) -> list[str]:
    """Returns a line for each refused row, and a summary line."""
    refused = [row for row in rows if row.problems]
    lines = [f"{row.file}:{row.line}: {row.mechanism or row.paper}: {'; '.join(row.problems)}" for row in refused]
    pages, tests = {row.file for row in rows}, {name for row in rows for name in row.tests}
    counted = f"{len(rows)} mechanisms on {len(pages)} pages, {len(tests)} tests"
    return [*lines, f"{counted}: {f'{len(refused)} are refused' if refused else 'all pass'}"]
