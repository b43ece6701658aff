"""The rule for comparing a measured number with a published one, and the classes of numbers that score.

Every published gain, loss, cost or share is turned into a ratio of two designs. *reproduced*: ours is within 15 % of it
and its logarithm between half and twice the published one, or both logarithms are below 0.05. *direction holds*: the
logarithm alone. Amounts: within 15 %. Rates below 5 %: within one point. Claims in words are predicates. *differs*:
none of these. *not comparable*: there is no comparable measurement; the reason explains it. *uncertain*: the verdict is
not the same over the whole 95 % interval of our number.

Each published number has a class. `measured` and `predicate` numbers score; the others are also compared, in brackets:
`input` (programs or machine were chosen to match it), `arithmetic` (follows from constants), `repeat` (the number of
another row), and `null`, which is computed: the formula still passes with the baseline instead of the design.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from durasim.errors import refusal, unknown_name

WITHIN = 0.15
# Other widths of the band for which the scoreboard is printed.
BANDS = (0.05, 0.10, 0.25, 0.50)
SHARE_OF_LOGARITHM = (0.5, 2.0)
SMALL_LOGARITHM = 0.05
# Rates below this, in percent, are compared in points.
SMALL_RATE, POINT = 5.0, 1.0
CLASSES = ("measured", "predicate", "input", "arithmetic", "repeat")
SCORING = ("measured", "predicate")
REPRODUCED, DIRECTION, DIFFERS, NOT_COMPARABLE = "reproduced", "direction holds", "differs", "not comparable"
UNCERTAIN = "uncertain"
VERDICTS = (REPRODUCED, DIRECTION, DIFFERS, UNCERTAIN, NOT_COMPARABLE)
# Number of equal values, as many as the longest predicate compares.
MANY = 8


@dataclass(frozen=True)
class Published:
    """A number of a paper: a table `[[published]]` of the file of a figure.

    Attributes:
        figure: Figure, table or section of the paper.
        metric: Metric.
        design: Design, by its name in the paper.
        workload: Workload, by its name in the paper.
        baseline: Baseline, or empty.
        value: The number, a range of numbers, or words.
        unit: Its unit.
        exact: `true` if it is printed, `approx` if the text rounds it.
        quote: Quotation of the paper.
        note: Remark on its reading.
        kind: Its class, see above; `class` in the file.
        relation: Its form: one of RATIOS, `amount`, `rate`, `rate-of-rest`, or a predicate with its bounds; or empty.
        if_equal: Value of its formula if the design is the baseline; implied by its form if empty.
        same_as: For a repeat, the figure with the original number.
        class_reason: Reason for its class.
    """

    figure: str
    metric: str
    design: str
    workload: str
    baseline: str
    value: str
    unit: str
    exact: str
    quote: str
    note: str
    kind: str
    relation: str
    if_equal: str
    same_as: str
    class_reason: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Key of its formula."""
        return self.figure, self.metric, self.design, self.workload

    @property
    def number(self) -> float:
        """Its value."""
        return float(self.value)

    @property
    def is_number(self) -> bool:
        """Whether it is a number or a range of numbers."""
        return re.fullmatch(r"[0-9.]+(-[0-9.]+)?", self.value) is not None

    @property
    def ends(self) -> tuple[float, float]:
        """The ends of its range, equal for a single number."""
        first, *rest = self.value.split("-")
        return float(first), float(rest[0] if rest else first)


# From a printed number to the ratio of two designs.
RATIOS: Mapping[str, Callable[[float], float]] = {
    "gain": lambda printed: 1 + printed / 100,
    "loss": lambda printed: 1 - printed / 100,
    "share": lambda printed: printed / 100,
    "factor": lambda printed: printed,
}
# Value of each form for two equal designs.
EQUAL = {"gain": 0.0, "loss": 0.0, "share": 100.0, "factor": 1.0}
# Predicates of our values and the bounds: those after the name, else the published number.
PREDICATES: Mapping[str, Callable[[Sequence[float], Sequence[float]], bool]] = {
    "above": lambda ours, bounds: min(ours) > bounds[0],
    "at-least": lambda ours, bounds: min(ours) >= bounds[0],
    "below": lambda ours, bounds: max(ours) < bounds[0],
    "at-most": lambda ours, bounds: max(ours) <= bounds[0],
    "equal": lambda ours, bounds: all(value == bounds[0] for value in ours),
    "between": lambda ours, bounds: bounds[0] <= min(ours) and max(ours) <= bounds[1],
    # Within the second bound of the first.
    "near": lambda ours, bounds: max(abs(value - bounds[0]) for value in ours) <= bounds[1],
    # The first values, in the number of the bound, are above all others.
    "ranked": lambda ours, bounds: min(ours[: int(bounds[0])]) > max(ours[int(bounds[0]) :]),
    "ascending": lambda ours, bounds: bounds[0] < ours[0] < ours[1],
    # The first values are not below 1, the others are.
    "rise-then-fall": lambda ours, bounds: min(ours[: int(bounds[0])]) >= 1 > max(ours[int(bounds[0]) :]),
    "lowest": lambda ours, _: ours[0] < min(ours[1:]),
    "only-first-falls": lambda ours, _: ours[0] < 0 < min(ours[1:]),
}


# Forms that compare one number, without bounds.
_PLAIN = ("amount", "rate", "rate-of-rest")
# Number of bounds of each predicate; those that compare with the published number may have none.
_BOUNDS = {
    "near": 2,
    "between": 2,
    "ranked": 1,
    "ascending": 1,
    "rise-then-fall": 1,
    "lowest": 0,
    "only-first-falls": 0,
}


def check(published: Published) -> None:
    """Refuses a relation that does not exist, or that cannot be applied to the published value.

    Raises:
        ConfigError: It does not fit.
    """
    if not published.relation:
        return
    form, *bounds = published.relation.split()
    if form not in (*RATIOS, *_PLAIN, *PREDICATES):
        raise unknown_name("relation", form, (*RATIOS, *_PLAIN, *PREDICATES))
    if form not in PREDICATES:
        if bounds:
            raise refusal("relation", f"'{published.relation}': {form} has no bounds")
        if not published.is_number:
            raise refusal("value", f"'{published.value}' is no number or range, which {form} needs")
        if form in RATIOS and min(RATIOS[form](end) for end in published.ends) <= 0:
            raise refusal("value", f"'{published.value}' is no {form} of two positive numbers")
        return
    if any(re.fullmatch(r"-?[0-9.]+", bound) is None for bound in bounds):
        raise refusal("relation", f"'{published.relation}' has a bound that is no number")
    wanted = _BOUNDS.get(form, 1)
    takes_value = form not in _BOUNDS or form == "between"
    if len(bounds) != wanted and not (takes_value and not bounds and published.is_number):
        raise refusal("relation", f"'{published.relation}': {form} needs {wanted} bounds")


def check_count(published: Published, values: Sequence[float]) -> None:
    """Refuses several numbers where the relation compares one.

    Raises:
        ConfigError: There are several.
    """
    form = published.relation.partition(" ")[0]
    if form and form not in PREDICATES and len(values) != 1:
        raise refusal("formula", f"gives {len(values)} numbers, and {form} compares one")


def bounds_of(published: Published) -> list[float]:
    """Returns the published numbers and the bounds of a predicate, at which verdicts change."""
    form, *bounds = published.relation.split()
    found = [float(bound) for bound in bounds]
    if form == "near":
        found = [found[0], found[0] - found[1], found[0] + found[1]]
    return found + (list(published.ends) if published.is_number else [])


def verdict(published: Published, values: Sequence[float], within: float = WITHIN) -> str:
    """Compares our values, in the unit of the paper, with a published number.

    Args:
        published: The number.
        values: Our values.
        within: Largest relative difference of a reproduced ratio or amount, as a share of 1.
    """
    if not values or not published.relation:
        return NOT_COMPARABLE
    form, *rest = published.relation.split()
    if form in PREDICATES:
        are_words = published.unit == "qualitative"
        bounds = [float(bound) for bound in rest] if rest or are_words else published.ends
        return REPRODUCED if PREDICATES[form](values, bounds) else DIFFERS
    (ours,) = values
    least, most = published.ends
    nearest = min(max(ours, least), most)
    if form in RATIOS:
        return _of_ratio(RATIOS[form](ours), RATIOS[form](nearest), within)
    if form == "rate-of-rest":
        form, ours, nearest = "rate", 100 - ours, 100 - nearest
    if form == "rate" and nearest < SMALL_RATE:
        return REPRODUCED if abs(ours - nearest) <= POINT else DIFFERS
    return REPRODUCED if abs(ours - nearest) <= within * nearest else DIFFERS


def _of_ratio(ours: float, published: float, within: float) -> str:
    if ours <= 0:
        return DIFFERS
    log_ours, log_published = math.log(ours), math.log(published)
    are_small = max(abs(log_ours), abs(log_published)) < SMALL_LOGARITHM
    share = log_ours / log_published if log_published else math.inf
    is_of_size = SHARE_OF_LOGARITHM[0] <= share <= SHARE_OF_LOGARITHM[1]
    if abs(ours / published - 1) <= within and (is_of_size or are_small):
        return REPRODUCED
    return DIRECTION if is_of_size else DIFFERS


def values_if_equal(published: Published) -> tuple[float, ...]:
    """Returns the values of the formula if the design is the baseline: equal designs, or events that do not occur."""
    form = published.relation.split()[0]
    value = float(published.if_equal) if published.if_equal else EQUAL.get(form, 0.0)
    return (value,) * (MANY if form in PREDICATES else 1)


def null_verdict(published: Published) -> str:
    """Returns the verdict of the baseline in the place of the design."""
    return verdict(published, values_if_equal(published)) if published.relation else NOT_COMPARABLE


def class_of(published: Published) -> str:
    """Returns the class of a number: `null` if it would score although the baseline passes as well."""
    if published.kind not in SCORING or not published.relation:
        return published.kind
    return "null" if null_verdict(published) == REPRODUCED else published.kind
