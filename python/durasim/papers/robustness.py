"""Whether a verdict survives the alternatives to assumptions: our number with each of them, from recorded effects."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from durasim.documents.reproduction import ReproducedRow
from durasim.documents.sensitivity import SensitivityRow
from durasim.errors import ConfigError
from durasim.papers import verdicts
from durasim.papers.evaluation import Evidence, numbers_of
from durasim.papers.paper_files import Claim
from durasim.papers.selections import Found, is_read, paths_of
from durasim.runs.scenario import variant_name

_TIMES = {"throughput_ops_per_us": 1, "roi.cycles": -1}
"""Numbers that change as throughput does, or as its inverse: the operations of a run are given."""
_BYTES = "pmem_write_bytes.total"
_CONSTANT = "configuration."


@dataclass(frozen=True, slots=True)
class Effect:
    """Effect of an alternative to an assumption on one program.

    Attributes:
        throughput: For each design that it changes, its throughput relative to that with all assumptions.
        pmem_bytes: Its bytes written to persistent memory relative to that run; a design without bytes is missing.
    """

    throughput: Mapping[str, float]
    pmem_bytes: Mapping[str, float]


def effects_of(paper: str, rows: Iterable[SensitivityRow]) -> list[Effect]:
    """Returns the recorded effects on the machine of a paper, for each alternative and program."""
    found: dict[tuple[str, str, str], list[SensitivityRow]] = {}
    for row in rows:
        if row.paper == paper and row.key and row.throughput_ratio is not None:
            found.setdefault((row.key, row.setting, row.workload), []).append(row)
    return [
        Effect(
            {row.design: row.throughput_ratio for row in of if row.throughput_ratio is not None},
            {row.design: row.pmem_bytes_ratio for row in of if row.pmem_bytes_ratio is not None},
        )
        for of in found.values()
    ]


def with_sensitivity(row: ReproducedRow, claim: Claim, evidence: Evidence, effects: Sequence[Effect]) -> ReproducedRow:
    """Returns a row with the range of our number over the alternatives, and whether its verdict holds for all of them.

    The effect of an alternative on a program is taken for all programs of the number: it is known for the one that the
    assumptions change most and for the one that they change least. A row remains without a range if it has not one
    number, if it reads others than throughputs, cycles, bytes and parameters, or if no alternative was measured.
    """
    if claim.measure is None or len(row.ours) != 1 or not effects:
        return row
    numbers = [row.ours[0]]
    for effect in effects:
        changed = _changed(claim, evidence, effect)
        if changed is None:
            return row
        numbers.append(changed)
    published = claim.published
    is_robust = None
    if row.verdict != verdicts.NOT_COMPARABLE:
        is_robust = all(verdicts.verdict(published, [number]) == row.verdict for number in numbers)
    return replace(row, sensitivity_range=(min(numbers), max(numbers)), robust=is_robust)


def _changed(claim: Claim, evidence: Evidence, effect: Effect) -> float | None:
    """Returns the number with an alternative; None if its effect on what is read is not known."""
    if claim.measure is None:
        return None
    read = {name: claim.selections[name] for name in claim.measure.formula.names()}
    of_runs = [of for of in read.values() if "runs" in of]
    if not of_runs:
        return None
    cells: Found = []
    for cell, numbers in evidence.cells:
        if not any(is_read(of, cell) for of in of_runs):
            continue
        factors = _factors(variant_name(str(cell.values.get("design"))), paths_of(of_runs), effect)
        if factors is None:
            return None
        cells.append((cell, {path: _scaled(of, factors.get(path, 1.0)) for path, of in numbers.items()}))
    try:
        found = numbers_of(claim.measure.formula, read, replace(evidence, cells=cells, batches=()))
    except ConfigError:
        return None
    return found[0] if len(found) == 1 and math.isfinite(found[0]) else None


def _scaled(number: float | None, factor: float) -> float | None:
    return None if number is None else number * factor


def _factors(design: str, paths: Iterable[str], effect: Effect) -> dict[str, float] | None:
    """Returns the factors of what is read of a design; None if one is not known."""
    found = {}
    for path in paths:
        if path in _TIMES:
            found[path] = effect.throughput.get(design, 1.0) ** _TIMES[path]
        elif path == _BYTES and (design in effect.pmem_bytes or design not in effect.throughput):
            found[path] = effect.pmem_bytes.get(design, 1.0)
        elif not path.startswith(_CONSTANT):
            return None
    return found
