"""Lengths of transactions of the suites that have those of Table 4 of Hercules, over whole runs at scale quick."""

import pytest

import durasim as ds

SUITES = {"hercules-table4-half": 0.5, "hercules-table4-one": 1.0, "hercules-table4": 1.4, "hercules-table4-four": 4.0}
PUBLISHED = {"array-swap": 8.0, "btree": 34.4, "linked-list": 12.5, "rbtree": 50.6, "sdg": 33.8}
# Three short ones in make test, the others in make test-all.
SHORT = ("hercules-table4-linked-list", "hercules-table4-rbtree", "hercules-table4-sdg")
MEMBERS = [
    pytest.param(member, id=member.info.name, marks=() if member.info.name in SHORT else pytest.mark.long)
    for member in ds.suite_members()
    if member.suite in SUITES
]
LLC_BYTES = 2 * 1024 * 1024


@pytest.mark.parametrize("member", MEMBERS)
def test_a_whole_run_has_the_published_mean_and_data_of_its_suite(member):
    profile = ds.measure_workload(member.info.name, scale="quick")
    program = member.info.name.removeprefix(f"{member.suite}-")
    assert member.published_tx_lines == PUBLISHED.get(program)
    if program in PUBLISHED:
        assert profile.tx_lines.avg == pytest.approx(PUBLISHED[program], rel=0.05)
    assert profile.footprint_bytes / LLC_BYTES == pytest.approx(SUITES[member.suite], rel=0.05)


def test_programs_without_a_published_mean_are_lighter_than_the_b_plus_tree():
    """Section 5.3: hash table and binary heap are among the light programs."""
    for program in ("hash-table", "binary-heap"):
        lines = ds.measure_workload(f"hercules-table4-half-{program}", scale="quick").tx_lines
        assert 1.6 < lines.avg < PUBLISHED["btree"]
