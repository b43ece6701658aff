"""Scales: the size of a run relative to the configuration of the paper.

`paper` is full size. `quick` divides the data caches, the data of the workload, and the scalable capacities and periods
of the design (`scaled` in `durasim.designs()`) by one factor, so that a short run reaches the steady state of the
paper's long run. Transactions keep their size, and so do structures that hold a single transaction.
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
        divisor: Divisor of sizes and periods.
        rounds_min: Rounds that each background engine of a design must complete in the measured region.
    """

    name: str
    divisor: int
    rounds_min: int


SCALES = {scale.name: scale for scale in (Scale("paper", 1, 0), Scale("quick", 8, 3))}


def scale_named(name: str) -> Scale:
    """Returns the scale of that name.

    Raises:
        ConfigError: The name is unknown.
    """
    if name not in SCALES:
        raise unknown_name("scale", name, SCALES)
    return SCALES[name]
