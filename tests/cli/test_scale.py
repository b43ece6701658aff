"""Comparisons at a smaller scale: reduced sizes, shared population, and scored runs."""

import dataclasses

import pytest

import durasim as ds
from durasim.programs import suites
from durasim.runs import comparison
from durasim.runs.scenario import Scenario, design_variants

QUICK = {"scale": "quick", "ops": 300, "workload_args": {"warm-ops": 50, "populate": 2000}}


def test_machine_design_and_data_shrink_by_one_factor_and_a_run_says_so():
    result = ds.run(design="hercules", workload="hercules-beyond-array-swap", **QUICK)
    caches = [result.configuration[level]["size_bytes"] for level in ("l1d", "l2", "llc")]
    assert caches == [4096, 32 << 10, 2 << 20]
    assert result.configuration["design"]["hercules"]["migration_period_instructions"] == 375_000
    whole = ds.run(design="hercules", workload="hercules-beyond-array-swap", ops=10, workload_args={"populate": 100})
    assert whole.configuration["l1i"] == result.configuration["l1i"]
    assert whole.configuration["llc"]["size_bytes"] == 8 * caches[-1]
    words = Scenario(workload="hercules-beyond-btree", scale="quick").guest_command("run", 7)
    assert words[words.index("--populate") + 1] == str(1_500_000 // 8)
    assert words[words.index("--ops") + 1] == "7"


def test_what_is_set_is_set_after_the_machine_has_shrunk():
    result = ds.run(
        design="hercules", workload="hercules-beyond-array-swap", set=["design.hercules.ewpq_entries=100"], **QUICK
    )
    assert result.configuration["design"]["hercules"]["ewpq_entries"] == 100


def test_operations_before_the_measured_region_are_not_measured():
    """They are part of the sequence: the final pool equals that of one run of all operations."""
    several = {"workload": "btree", "design": "opt", "threads": 3}
    parts = ds.run(ops=40, workload_args={"populate": 50, "warm-ops": 30}, **several)
    whole = ds.run(ops=70, workload_args={"populate": 50}, **several)
    assert (parts.ops, whole.ops) == (40, 70)
    assert parts.roi.instructions < whole.roi.instructions
    assert parts.guest_exit_code == whole.guest_exit_code == 0


def test_the_data_are_brought_in_once_for_each_guest_program():
    options = {"designs": ["opt", "swl-eadr", "hercules"], "workloads": ["hercules-beyond-array-swap"], **QUICK}
    results = ds.compare(**options, jobs=2).runs
    starts = [result.configuration["start"]["kind"] for result in results]
    assert starts == ["fast_forward", "fast_forward", "moved_program"]
    # With all runs concurrent, the results are equal.
    again = ds.compare(**options, jobs=1).runs
    assert [result.digest for result in results] == [result.digest for result in again]


def test_a_run_with_too_few_rounds_of_an_engine_has_no_part_in_the_means():
    names = ["opt", "hercules"]
    results = ds.compare(designs=names, workloads=["hercules-beyond-array-swap"], **QUICK).runs
    long, short = (comparison.judge(results, scale) for scale in ("paper", "quick"))
    assert short[1].rounds.keys() == {"migration_rounds"}
    assert short[1].rounds["migration_rounds"] < 3
    assert [run.scored for run in long] == [True, True]
    assert [run.scored for run in short] == [True, False]
    assert [mean.workloads for mean in comparison.means(short)] == [1, 0]
    assert comparison.means(short)[1].relative_to_opt is None
    assert comparison.means(long)[1].relative_to_opt == pytest.approx(long[1].relative_to_opt)


def test_means_are_geometric_and_leave_out_what_has_no_scored_baseline():
    results = ds.compare(
        designs=["opt", "hercules"], workloads=["hercules-beyond-array-swap", "hercules-beyond-sdg"], **QUICK
    ).runs
    judged = [dataclasses.replace(run, scored=True) for run in comparison.judge(results)]
    ratios = [run.relative_to_opt for run in judged if run.result.design == "hercules"]
    assert comparison.means(judged)[1].relative_to_opt == pytest.approx((ratios[0] * ratios[1]) ** 0.5)
    judged[0] = dataclasses.replace(judged[0], scored=False)
    assert comparison.means(judged)[1].relative_to_opt == pytest.approx(ratios[1])


def test_names_that_papers_use_stand_for_rows():
    assert ds.run(design="optimal", workload="array-swap", ops=5).design == "opt"
    assert set(suites.designs_of(["all-hercules"])) >= {"opt", "swl-eadr", "tc", "hercules"}
    assert suites.designs_of(["tc", "sp"]) == ["tc", "sp"]
    names = [name for row in design_variants().values() for name in (row["name"], *row["aliases"])]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--designs", "opt", "--workloads", "btree", "--scale", "quick"],
            ["scale", "hercules-beyond", "not for btree"],
        ),
        (["--designs", "opt", "--workloads", "btree", "--scale", "quik"], ["scale", "did you mean 'quick'"]),
        (["--designs", "all-macro", "--workloads", "btree"], ["designs", "all-macro"]),
        (["--designs", "opt,volatile", "--workloads", "btree"], ["designs", "twice"]),
    ],
)
def test_what_is_no_scale_is_refused(refused, arguments, words):
    refused(["compare", *arguments], 2, *words)
