"""Notes about swept keys that cannot matter: no result changes with them."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from durasim.documents.stats import StatTree
from durasim.documents.sweep import PointResult
from durasim.studies.study import Study

_UNITS = ("entries", "bytes", "lines", "percent", "cycles", "ns", "bits", "factor", "instructions")


@dataclass(frozen=True, slots=True)
class Evidence:
    """Facts of a result that notes use.

    Attributes:
        results: A hash of all counters.
        unused: Counters of the design that are 0, with their descriptions.
    """

    results: str
    unused: Mapping[str, str]


def evidence_of(stats: StatTree, hardware: str) -> Evidence:
    """Returns the evidence in the statistics of a run or crash of a design with this hardware."""
    counters = list(stats.walk())
    text = json.dumps([(name, stat.value) for name, stat in counters])
    # Many points have the same names.
    unused = {
        sys.intern(name): sys.intern(stat.description)
        for name, stat in counters
        if name.startswith(f"{hardware}.") and stat.value == 0
    }
    return Evidence(hashlib.blake2b(text.encode(), digest_size=16).hexdigest(), unused)


def notes(study: Study, outcomes: Sequence[tuple[PointResult, Evidence | None]]) -> Iterator[str]:
    """Yields a sentence for each swept parameter that changed no counter of any result."""
    done = [(result, evidence) for result, evidence in outcomes if evidence is not None]
    for key, axis in study.axes.items():
        if len(axis.values) == 1 or key in ("design", "workload", "program", "seed"):
            continue
        groups: dict[str, dict[str, set[Any]]] = {}
        unused: list[Mapping[str, str]] = []
        for result, evidence in done:
            if result.values[key] is None:
                continue
            others = json.dumps([value for name, value in result.values.items() if name != key])
            group = groups.setdefault(others, {"values": set(), "results": set()})
            group["values"].add(result.values[key])
            group["results"].add(evidence.results)
            unused.append(evidence.unused)
        compared = [group for group in groups.values() if len(group["values"]) > 1]
        if compared and all(len(group["results"]) == 1 for group in compared):
            yield f"{key}: no result depends on it{_reason(key, unused)}"


def _reason(key: str, unused: Sequence[Mapping[str, str]]) -> str:
    """Returns the counters of the same structure that are 0 at all points."""
    words = key.rpartition(".")[2].split("_")
    stem = "_".join(word for word in words if word not in _UNITS)
    always = set(unused[0]).intersection(*unused[1:]) if unused else set()
    related = sorted(name for name in always if stem and stem in name.rpartition(".")[2])
    return "".join(f"; {name} is 0 at every point: {unused[0][name]}" for name in related[:2])
