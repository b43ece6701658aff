"""Products of cases of which `make test` runs pairs; the rest is marked `long` and part of `make test-all`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import durasim as ds


def rows_with(interface: str, *, control: bool | None = None) -> list[str]:
    """Gives the designs that have a runtime for programs written with `transactions` or `objects`."""
    found = [row for row in ds.designs() if interface in row["interfaces"]]
    return [row["name"] for row in found if control is None or row["control"] == control]


# The programs of STAMP and tpcc-any take long, and use nothing of a design that others do not.
MET_LESS_OFTEN = {member.info.program for member in ds.suite_members() if member.suite == "stamp"} | {"tpcc-any"}
EVERY, EVERY_OF_LONG = 6, 10


def stride_of(design: dict[str, Any], workload: str) -> int:
    """Gives which part of the workloads a design meets in `make test`: each sixth, of those that take long each tenth.

    A runtime that one design alone has costs a compilation for each pair, so there it is half as many.
    """
    own = sum(row["backend"] == design["backend"] for row in ds.designs()) == 1
    return (EVERY_OF_LONG if workload in MET_LESS_OFTEN else EVERY) * (1 + own)


def pairs(*axes: Sequence[Any], keep: Callable[..., bool]) -> list[Any]:
    """Gives the product of the axes as parameters of a test.

    Args:
        axes: The values of each parameter.
        keep: Says from the indices of a case on each axis whether `make test` runs it.
    """
    cases = []
    for indices in itertools.product(*(range(len(axis)) for axis in axes)):
        values = (axis[index] for axis, index in zip(axes, indices, strict=True))
        cases.append(pytest.param(*values, marks=() if keep(*indices) else pytest.mark.long))
    return cases
