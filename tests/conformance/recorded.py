"""Storage of recorded results: values and units without descriptions, so that a description can be reworded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def without_descriptions(node: Any) -> Any:
    """Returns a part of a document without the description of each statistic in it."""
    if not isinstance(node, Mapping):
        return node
    left_out = {"description"} if node.keys() == {"value", "unit", "description"} else set()
    return {key: without_descriptions(node[key]) for key in node if key not in left_out}


def transactions(document: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the counts of transactions, without those specific to designs with hardware transactions."""
    return {name: count for name, count in document["tx"].items() if count is not None}


def write(file: Path, cases: Mapping[str, Any]) -> None:
    """Writes the results with one case per line, so that a difference shows the changed cases."""
    lines = (f"{json.dumps(name)}: {json.dumps(cases[name], sort_keys=True)}" for name in sorted(cases))
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")
