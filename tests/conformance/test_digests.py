"""No optimisation changes a simulated number: every statistic of every configuration is unchanged."""

import json

import digests
import pytest

from durasim.programs import toolchain
from pairing import pairs

CASES = digests.cases()


@pytest.fixture(scope="module")
def recorded():
    return json.loads(digests.FILE.read_text())


def test_all_cases_are_recorded(recorded):
    assert recorded.keys() == CASES.keys()


@pytest.mark.parametrize("name", pairs(list(CASES), keep=lambda case: digests.is_among_pairs(list(CASES)[case])))
def test_every_statistic_is_what_it_was(recorded, name):
    found = digests.digest(CASES[name])
    if "elf" not in CASES[name] and "ziglang" not in toolchain.compiler().version:
        print("skipped: digests of workloads belong to the pinned compiler")
        return
    assert found == recorded[name], "run tests/conformance/digests.py if the change is meant"
