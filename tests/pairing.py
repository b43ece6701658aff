"""Products of cases: `make test` runs pairs of values; the rest is marked `long` and part of `make test-all`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import durasim as ds


def rows_with(interface: str, *, control: bool | None = None) -> list[str]:
    """Returns the designs with a runtime for the interface `transactions` or `objects`."""
    found = [row for row in ds.designs() if interface in row["interfaces"]]
    return [row["name"] for row in found if control is None or row["control"] == control]


# The programs of STAMP and tpcc-any take long, and use no additional part of a design.
MET_LESS_OFTEN = {member.info.program for member in ds.suite_members() if member.suite == "stamp"} | {"tpcc-any"}
EVERY, EVERY_OF_LONG = 6, 10


def stride_of(design: dict[str, Any], workload: str) -> int:
    """Returns the share of the workloads of a design in `make test`: each sixth, or each tenth of the long ones.

    A runtime used by only one design costs a compilation for each pair, so there the share is half.
    """
    own = sum(row["backend"] == design["backend"] for row in ds.designs()) == 1
    return (EVERY_OF_LONG if workload in MET_LESS_OFTEN else EVERY) * (1 + own)


def pairs(*axes: Sequence[Any], keep: Callable[..., bool]) -> list[Any]:
    """Returns the product of the axes as parameters of a test.

    Args:
        axes: The values of each parameter.
        keep: Returns from the indices of a case on each axis whether `make test` runs it.
    """
    cases = []
    for indices in itertools.product(*(range(len(axis)) for axis in axes)):
        values = (axis[index] for axis, index in zip(axes, indices, strict=True))
        cases.append(pytest.param(*values, marks=() if keep(*indices) else pytest.mark.long))
    return cases
