"""Scales: how much of a paper's configuration a run is given.

`paper` is everything as it is. `quick` divides the data caches, the data of the workload, and the capacities and
periods of the design that shrink with them (`scaled` in `durasim.designs()`) by one factor, so that a short run comes
to the steady state that the paper's long one has. Transactions keep their size, and what one transaction fills keeps
its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from durasim.errors import unknown_name

DEFAULT_SCALE = "paper"


@dataclass(frozen=True)
class Scale:
    """A scale.

    Attributes:
        name: Its name.
        divisor: What sizes and periods are divided by.
        rounds_min: Rounds that each background engine of a design has to complete in the measured region.
    """

    name: str
    divisor: int
    rounds_min: int


SCALES = {scale.name: scale for scale in (Scale("paper", 1, 0), Scale("quick", 8, 3))}


def scale_named(name: str) -> Scale:
    """Gives the scale of that name.

    Raises:
        ConfigError: There is none.
    """
    if name not in SCALES:
        raise unknown_name("scale", name, SCALES)
    return SCALES[name]
