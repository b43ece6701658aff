"""Numbers by chance: those reproduced by runs whose labels of designs are exchanged at random.

Each permutation draws an order of all designs of a paper. Runs that differ in the design alone exchange their results
by this order, baselines among them, and all formulas are evaluated again. A number is exchangeable if it scores, was
measured, and all that it reads exists for each design whose runs it may get. Verdicts of permutations are those of the
numbers without their intervals, and so is the count beside them.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from durasim.documents.reproduction import Chance
from durasim.errors import ConfigError
from durasim.papers import verdicts
from durasim.papers.evaluation import Evidence, numbers_of
from durasim.papers.grids import Cell
from durasim.papers.paper_files import Claim
from durasim.papers.selections import Found, is_read, paths_of

PERMUTATIONS = 1000
_DESIGN = "design"
_TAIL = 0.025
"""Share of the permutations on each side of the interval."""

Numbers = Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class _Exchangeable:
    """A number that scores and depends on labels of designs.

    Attributes:
        claim: The number.
        cells: Positions of the cells that it reads.
        designs: Designs of the runs that it may get.
    """

    claim: Claim
    cells: tuple[int, ...]
    designs: frozenset[str]

    def is_reproduced(self, evidence: Evidence, numbers: Sequence[Numbers]) -> bool:
        """Returns whether it is reproduced if the cells have these numbers."""
        found = [(evidence.cells[at][0], numbers[at]) for at in self.cells]
        ours = _numbers(self.claim, Evidence(found, evidence.failed, evidence.counts, ()))
        return bool(ours) and verdicts.verdict(self.claim.published, ours) == verdicts.REPRODUCED


class Permutations:
    """Counts of reproduced numbers of one paper: with the true labels, and with each permutation of them."""

    def __init__(self, claims: Sequence[Claim], evidence: Evidence, permutations: int, seed: int) -> None:
        """Evaluates the numbers of a paper.

        Args:
            claims: Its published numbers.
            evidence: Its runs.
            permutations: Number of permutations.
            seed: Seed of the permutations.
        """
        groups = _groups(evidence.cells)
        found = [_exchangeable(claim, evidence, groups) for claim in claims]
        self.claims = [each for each in found if each is not None]
        true = [of for _, of in evidence.cells]
        self.ours = sum(each.is_reproduced(evidence, true) for each in self.claims)
        self.counts = [0] * permutations
        drawn = random.Random(seed)  # noqa: S311 - a reproducible draw
        designs = sorted({str(cell.values[_DESIGN]) for cell, _ in evidence.cells if _DESIGN in cell.values})
        seen: dict[tuple[int, tuple[str, ...]], bool] = {}
        for draw in range(permutations if self.claims else 0):
            order = drawn.sample(designs, len(designs))
            exchanged = _exchanged(evidence.cells, groups, order)
            for at, each in enumerate(self.claims):
                key = at, tuple(design for design in order if design in each.designs)
                if key not in seen:
                    seen[key] = each.is_reproduced(evidence, exchanged)
                self.counts[draw] += seen[key]


def chance_of(papers: Sequence[Permutations]) -> Chance:
    """Returns what chance gives for all numbers of several papers."""
    counts = sorted(sum(of) for of in zip(*(paper.counts for paper in papers), strict=True))
    ours = sum(paper.ours for paper in papers)
    last = len(counts) - 1
    return Chance(
        permutations=len(counts),
        numbers=sum(len(paper.claims) for paper in papers),
        ours=ours,
        mean=sum(counts) / len(counts) if counts else 0.0,
        interval=(counts[round(_TAIL * last)], counts[round((1 - _TAIL) * last)]) if counts else (0, 0),
        share_at_least_ours=sum(count >= ours for count in counts) / len(counts) if counts else 0.0,
    )


def _groups(cells: Found) -> list[list[int]]:
    """Returns the positions of cells that differ in the design alone, in lists of two and more."""
    found: dict[Any, list[int]] = defaultdict(list)
    for at, (cell, _) in enumerate(cells):
        if _DESIGN in cell.values:
            others = frozenset((key, value) for key, value in cell.values.items() if key != _DESIGN)
            found[cell.runs, others].append(at)
    return [group for group in found.values() if len(group) > 1]


def _exchanged(cells: Found, groups: Sequence[Sequence[int]], order: Sequence[str]) -> list[Numbers]:
    """Returns the numbers of each cell after the designs of each group got the results of others in this order."""
    rank = {design: place for place, design in enumerate(order)}
    numbers = [of for _, of in cells]
    for group in groups:
        sources = sorted(group, key=lambda at: rank[_design(cells[at][0])])
        for at, source in zip(group, sources, strict=True):
            numbers[at] = cells[source][1]
    return numbers


def _exchangeable(claim: Claim, evidence: Evidence, groups: Sequence[Sequence[int]]) -> _Exchangeable | None:
    if verdicts.class_of(claim.published) not in verdicts.SCORING or not _numbers(claim, evidence):
        return None
    read = [at for at, (cell, _) in enumerate(evidence.cells) if _reads(claim, cell)]
    own = [group for group in groups if not set(group).isdisjoint(read)]
    paths = paths_of(claim.selections.values())
    have = all(evidence.cells[at][1].get(path) is not None for group in own for at in group for path in paths)
    if not own or not have:
        return None
    return _Exchangeable(claim, tuple(read), frozenset(_design(evidence.cells[at][0]) for group in own for at in group))


def _reads(claim: Claim, cell: Cell) -> bool:
    return any(is_read(selection, cell) for selection in claim.selections.values())


def _numbers(claim: Claim, evidence: Evidence) -> tuple[float, ...]:
    """Returns the numbers of a claim; none if it cannot be measured."""
    if claim.measure is None:
        return ()
    try:
        numbers = numbers_of(claim.measure.formula, claim.selections, evidence)
        verdicts.check_count(claim.published, numbers)
    except ConfigError:
        return ()
    return numbers if all(map(math.isfinite, numbers)) else ()


def _design(cell: Cell) -> str:
    return str(cell.values[_DESIGN])
