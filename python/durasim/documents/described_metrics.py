"""The numeric measures of a run, from `runs/result.rs` of crates/machine.

Written by tools/generate_schemas.py: to change it, change that file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Metric(NamedTuple):
    """A measure of a run.

    Attributes:
        name: The field of `RunResult`.
        type: Its type.
        metadata: Its unit and, where its name is not readable, a label.
    """

    name: str
    type: str
    metadata: Mapping[str, str]


METRICS = (
    Metric("pmem_residual_dirty_bytes", "int", {"unit": "bytes", "label": "pmem left dirty"}),
    Metric("instructions_per_transaction", "float | None", {"unit": "instructions"}),
)
"""The measures in the order of the document."""
