"""The rule for verdicts: a measured number beside a published one."""

import pytest

from durasim import ConfigError
from durasim.papers.evaluation import verdict_of
from durasim.papers.verdicts import REPRODUCED, Published, check, class_of, verdict


def number(compared: str, value: str, kind: str = "measured", unit: str = "%", if_equal: str = "") -> Published:
    return Published("", "", "", "", "", value, unit, "true", "", "", kind, compared, if_equal, "", "")


@pytest.mark.parametrize(
    ("compared", "value", "ours", "expected"),
    [
        # Within 15 %, and 0.58 of the logarithm.
        ("gain", "29.2", 16.0, "reproduced"),
        # Within 15 %, but a fifth of the logarithm: a gain of 3 % does not reproduce one of 15 %.
        ("gain", "15.2", 3.0, "differs"),
        ("gain", "15.2", -2.0, "differs"),
        ("gain", "15.2", 22.6, "reproduced"),
        ("gain", "15.2", 34.0, "differs"),
        ("gain", "50", 20.0, "differs"),
        ("gain", "60", 30.0, "direction holds"),
        ("loss", "20", 3.5, "differs"),
        ("loss", "20", 13.0, "reproduced"),
        # Both logarithms are small; and one is not, though the ratios are within 7 %.
        ("share", "98.5", 98.3, "reproduced"),
        ("share", "98.5", 102.0, "reproduced"),
        ("share", "98.5", 92.2, "differs"),
        ("share", "100", 99.0, "reproduced"),
        ("factor", "2-3", 2.5, "reproduced"),
        ("factor", "2-3", 1.6, "direction holds"),
        ("factor", "2-3", 1.3, "differs"),
        ("amount", "48", 44.0, "reproduced"),
        ("amount", "48", 20.0, "differs"),
        ("amount", "0", 0.0, "reproduced"),
        ("amount", "0", 2.0, "differs"),
        ("rate", "4", 4.9, "reproduced"),
        ("rate", "4", 5.1, "differs"),
        ("rate", "15.8", 13.5, "reproduced"),
        ("rate", "15.8", 12.0, "differs"),
        ("rate-of-rest", "100", 99.5, "reproduced"),
        ("rate-of-rest", "100", 98.5, "differs"),
        ("above", "3", 3.3, "reproduced"),
        ("above", "3", 3.0, "differs"),
        ("at-most", "5", 5.0, "reproduced"),
        ("at-least 1.10", "2", 1.05, "differs"),
        ("between", "8-12", 12.0, "reproduced"),
        ("between", "8-12", 24.0, "differs"),
        ("near 1 0.15", "0", 0.56, "differs"),
        ("near 1 0.15", "0", 1.15, "reproduced"),
    ],
)
def test_verdicts(compared: str, value: str, ours: float, expected: str):
    assert verdict(number(compared, value), [ours]) == expected


@pytest.mark.parametrize(
    ("compared", "values", "holds"),
    [
        ("ranked 2", (3, 2, 1), True),
        ("ranked 2", (3, 1, 1), False),
        ("ascending 1", (1.5, 9), True),
        ("ascending 1", (1.5, 1.2), False),
        ("rise-then-fall 2", (1.0, 1.1, 0.9, 0.8), True),
        ("rise-then-fall 2", (1.0, 0.9, 0.9, 0.8), False),
        ("lowest", (1, 2, 3), True),
        ("lowest", (2, 2, 3), False),
        ("only-first-falls", (-1, 2, 3), True),
        ("only-first-falls", (-1, 2, -3), False),
        ("equal", (12, 12), True),
    ],
)
def test_predicates(compared: str, values: tuple[float, ...], holds: bool):
    claim = number(compared, "12", "predicate", "" if compared == "equal" else "qualitative")
    assert (verdict(claim, values) == REPRODUCED) == holds


def test_what_cannot_be_compared_has_no_verdict():
    assert verdict(number("gain", "15"), ()) == "not comparable"
    assert verdict(number("", "15"), (1.0,)) == "not comparable"


@pytest.mark.parametrize(
    ("compared", "value", "expected"),
    [
        ("gain", "15.2", "measured"),
        ("gain", "4", "null"),
        ("loss", "2", "null"),
        ("share", "98.5", "null"),
        ("share", "87.8", "measured"),
        ("rate", "0.67", "null"),
        ("rate", "2.7", "measured"),
        ("amount", "0", "null"),
        ("at-most", "20", "null"),
        ("near 0 5", "0", "null"),
    ],
)
def test_a_number_that_the_baseline_would_reproduce_is_null(compared: str, value: str, expected: str):
    assert class_of(number(compared, value)) == expected


@pytest.mark.parametrize(
    ("ours", "interval", "expected"),
    [
        (30.0, (28.0, 32.0), "reproduced"),
        (16.0, (12.0, 20.0), "uncertain"),
        (90.0, (85.0, 95.0), "differs"),
        # Both ends differ, but the published number is between them.
        (29.2, (-80.0, 138.0), "uncertain"),
    ],
)
def test_a_verdict_has_to_hold_over_the_whole_interval(ours, interval, expected):
    assert verdict_of(number("gain", "29.2"), [ours], interval) == expected


@pytest.mark.parametrize(("compared", "ours", "interval"), [("near 1 0.15", 3, (-5, 11)), ("between 8 12", 3, (2, 14))])
def test_an_interval_around_all_bounds_is_uncertain(compared, ours, interval):
    assert verdict_of(number(compared, "words", "predicate", "qualitative"), [ours], interval) == "uncertain"


@pytest.mark.parametrize("compared", ["ranked", "near 1", "between 3", "above x", "gain 3", "lowest 1", "above"])
def test_wrong_bounds_are_refused(compared):
    with pytest.raises(ConfigError):
        check(number(compared, "words", "predicate", "qualitative"))
