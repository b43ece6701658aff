"""`durasim compare` and the data frame."""

import dataclasses
import json
import os
import re

import polars
import pytest

import durasim as ds
from durasim.runs import comparison
from durasim.runs.comparison_document import comparison_document
from durasim.runs.lost_cycles import lost_cycles

SMALL = {"machine": "tiny", "ops": 30, "workload_args": {"populate": 30}}


def test_one_row_for_each_pair():
    seen = []
    compared = ds.compare(designs=["opt", "hercules"], workloads=["btree", "array-swap"], progress=seen.append, **SMALL)
    frame = compared.to_frame()
    assert isinstance(frame, polars.DataFrame)
    assert frame.select("workload", "design").rows() == [
        ("btree", "opt"),
        ("btree", "hercules"),
        ("array-swap", "opt"),
        ("array-swap", "hercules"),
    ]
    assert frame.filter(design="opt")["relative_to_opt"].to_list() == [1.0, 1.0]
    for relative, throughput, baseline in zip(
        frame.filter(design="hercules")["relative_to_opt"],
        frame.filter(design="hercules")["throughput_ops_per_us"],
        frame.filter(design="opt")["throughput_ops_per_us"],
        strict=True,
    ):
        assert relative == pytest.approx(throughput / baseline)
    assert sorted(result.design for result in seen) == sorted(frame["design"].to_list())


DATA_IN_CACHES = {
    "machine": "hercules-tecs23-modern", "ops": 1000, "workload_args": {"populate": 5000}, "fast_forward": "roi",
}  # fmt: skip
WAITS = {
    "hercules": "commit.commit",
    "tc": "store_queue.structure.transaction_cache",
    "kiln": "commit.llc",
    "proteus": "commit.path",
    "hoop": "commit.path",
    "fwb": "commit.path",
    "swl-flush": "fence.path",
}
"""Causes of waits of each design if all data are in the caches."""


def test_the_counters_name_what_designs_lose():
    results = ds.compare(designs=["opt", *WAITS], workloads=["tc-sps"], threads=1, **DATA_IN_CACHES).runs
    causes = ("structure", "order", "commit", "design_lookup", "path", "queue")
    of_opt = {path for path, _ in results[0].stats.walk() if path.startswith("core.stalls.")}
    assert not {path for path in of_opt if set(path.split(".")) & set(causes)}, "opt has no waits of a design"
    for lost in lost_cycles(results):
        # The rest: a full store queue spreads commits over more cycles with one commit each.
        assert lost.attributed >= 0.94, lost
        assert lost.stalls[WAITS[lost.design]] > 0.25 * lost.core_cycles, lost
    assert [lost.design for lost in lost_cycles(results)] == list(WAITS)


def test_why_cycles_are_lost_is_printed(program, refused):
    options = ["compare", "--workloads", "btree", "--machine", "tiny", "--ops", "30", "--arg", "populate=30"]
    result = program(*options, "--designs", "opt,swl-flush", "--lost-cycles")
    assert result.returncode == 0, result.stderr
    for words in ("more cycles of swl-flush", "than opt", "fence: path", "of the loss"):
        assert words in result.stdout
    refused([*options, "--designs", "tc", "--lost-cycles"], 2, "lost_cycles: requires opt among the designs")


def test_a_smaller_scale_starts_with_its_own_snapshot(refused):
    options = ["compare", "--designs", "opt", "--workloads", "tc-sps", "--scale", "quick", "--fast-forward", "roi"]
    refused(options, 2, "fast_forward: cannot be combined with a smaller scale")


def test_without_opt_nothing_is_relative():
    frame = ds.compare(designs=["hercules"], workloads=["btree"], **SMALL).to_frame()
    assert frame["relative_to_opt"].to_list() == [None]


def test_the_document(program, conforms):
    result = program(
        "compare", "--designs", "opt,swl-flush", "--workloads", "btree", "--machine", "tiny", "--ops", "30",
        "--arg", "populate=30", "--json", "-",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    conforms("compare", document)
    assert [run["design"] for run in document["runs"]] == ["opt", "swl-flush"]
    assert document["relative"][0]["relative_to_opt"] == 1.0
    opt, swl = (run["roi"]["cycles"] for run in document["runs"])
    (lost,) = document["lost_cycles"]
    assert (lost["design"], lost["core_cycles"]) == ("swl-flush", swl - opt)
    assert sum(lost["stalls"].values()) + lost["committing_cycles"] == pytest.approx(swl - opt, abs=len(lost["stalls"]))
    assert lost["stalls"]["fence.path"] > 0


def test_the_table(program):
    result = program(
        "compare", "--designs", "opt,tc", "--workloads", "btree", "--machine", "tiny", "--ops", "30", "--arg",
        "populate=30", "--wide",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    for word in ("opt", "tc", "IPC", "p99.9", "metadata"):
        assert word in result.stdout


FORMATS = ["compare", "--designs", "opt,tc", "--workloads", "btree,array-swap", "--machine", "tiny", "--ops", "30"]
FORMATS += ["--arg", "populate=30"]


def test_a_table_has_six_columns_on_a_terminal_of_100(program):
    result = program(*FORMATS, env=dict(os.environ, COLUMNS="100"))
    (headers,) = [line for line in result.stdout.splitlines() if "workload" in line and "design" in line]
    assert headers.count("┃") == 7
    assert max(map(len, result.stdout.splitlines())) <= 100


def test_forms_of_a_comparison(program, conforms, refused):
    frame = polars.read_csv(program(*FORMATS, "--format", "csv").stdout.encode())
    assert frame["design"].to_list() == ["opt", "tc"] * 2
    assert frame["throughput_ops_per_us"].min() > 0
    conforms("compare", json.loads(program(*FORMATS, "--format", "json").stdout))
    lines = program(*FORMATS, "--format", "markdown").stdout.splitlines()
    table = lines[2 : lines.index("", 2)]
    assert len({line.count(" | ") for line in table}) == 1
    assert [line.split(" | ")[1] for line in table[2:]] == ["opt", "tc†"] * 2
    refused([*FORMATS, "--format", "cvs"], 2, "format: ", "cvs", "did you mean 'csv'")
    refused([*FORMATS, "--format", "csv", "--json", "-"], 2, "format: cannot be combined with --json -")


def test_forms_of_a_run(program, conforms, refused):
    options = ["run", "--workload", "btree", "--machine", "tiny", "--ops", "30", "--arg", "populate=30"]
    csv = program(*options, "--format", "csv")
    assert polars.read_csv(csv.stdout.encode())["ops"].to_list() == [30]
    assert "btree: ops=30" in csv.stderr, "the guest's output must not corrupt the rows"
    conforms("run", json.loads(program(*options, "--format", "json").stdout))
    assert "| digest |" in program(*options, "--format", "markdown").stdout
    refused([*options, "--quiet", "--format", "csv"], 2, "quiet: ", "--format")


@pytest.mark.parametrize(
    ("designs", "word"), [("opt", "list"), ([], "is empty"), (["opt", "opt"], "twice"), (["optt"], "opt")]
)
def test_wrong_lists_are_refused_before_any_run(designs, word):
    with pytest.raises(ds.ConfigError, match=word):
        ds.compare(designs=designs, workloads=["btree"])


def test_writes_are_compared_with_a_design_of_choice(program, refused):
    options = ["compare", "--designs", "opt,swl-flush", "--workloads", "btree", "--machine", "tiny", "--ops", "30"]
    options += ["--arg", "populate=30"]
    for chosen, baseline in ((["--pmem-baseline", "swl-flush"], "swl-flush"), ([], "opt")):
        document = json.loads(program(*options, *chosen, "--json", "-").stdout)
        assert document["pmem_baseline"] == baseline
        ratios = {run["design"]: run["pmem_relative_to_baseline"] for run in document["relative"]}
        assert ratios[baseline] == 1.0
        assert (ratios["swl-flush"] > ratios["opt"]) is True
    refused([*options, "--pmem-baseline", "tc"], 2, "pmem_baseline", "unknown name 'tc'", "opt, swl-flush")


def test_designs_and_threads_are_those_of_the_suite():
    chosen = comparison.scenarios(None, ["all-tc"], machine="tiny")
    assert [(of.workload, of.design) for of in chosen[:4]] == [
        ("tc-sps", "opt"), ("tc-sps", "sp"), ("tc-sps", "tc"), ("tc-sps", "kiln"),
    ]  # fmt: skip
    assert {of.threads for of in chosen} == {4}
    assert {of.threads for of in comparison.scenarios(["opt"], ["tc-sps", "btree"], threads=2)} == {2}
    assert [of.threads for of in comparison.scenarios(["opt"], ["tc-sps", "btree"])] == [4, 1]


@pytest.mark.parametrize(
    ("workloads", "words"),
    [("btree", "not of one suite"), ("tc-sps,lad-tatp", "not of one suite"), ("all-macro", "all-macro")],
)
def test_workloads_without_one_suite_need_designs(refused, workloads, words):
    refused(["compare", "--workloads", workloads, "--machine", "tiny", "--ops", "5"], 2, "designs", words)


def test_the_columns_of_bytes_add_up_to_the_total(program):
    """Hercules migrates the contents of its log, which counts neither as data nor as log or metadata."""
    options = ["--workloads", "btree", "--machine", "tiny", "--ops", "300", "--arg", "populate=200", "--jobs", "1"]
    result = program("compare", "--designs", "hercules", "--wide", *options, env={**os.environ, "COLUMNS": "250"})
    assert result.returncode == 0, result.stderr
    header = next(line for line in result.stdout.splitlines() if "metadata" in line)
    row = next(line for line in result.stdout.splitlines() if line.startswith("│ btree"))
    names, cells = (re.split("[┃│]", line)[1:-1] for line in (header, row))
    of = {name.strip(): cell.strip().replace(",", "") for name, cell in zip(names, cells, strict=True)}
    causes = ("data", "log", "metadata", "migration", "checkpoint")
    assert int(of["migration"]) > 0
    assert int(of["written"]) == sum(int(of[cause]) for cause in causes if cause in of)


def test_throughput_is_compared_with_a_named_design(program, conforms, tmp_path):
    path = tmp_path / "comparison.json"
    options = ["--workloads", "btree", "--machine", "tiny", "--ops", "20", "--arg", "populate=20"]
    sets = ["--set", "design.tc.entries=8", "--set", "llc.size_bytes=8KiB"]
    result = program("compare", "--designs", "tc,kiln", *options, *sets, "--baseline", "tc", "--json", path)
    assert result.returncode == 0, result.stderr
    assert "vs. tc" in result.stdout
    document = json.loads(path.read_text())
    conforms("compare", document)
    assert (document["baseline"], document["runs_wanted"]) == ("tc", 2)
    assert document["relative"][0]["relative_to_baseline"] == 1.0
    assert [row["set"] for row in document["relative"]] == [
        ["design.tc.entries=8", "llc.size_bytes=8192"],
        ["llc.size_bytes=8192"],
    ]
    loaded = ds.load(path)
    assert isinstance(loaded, ds.Comparison)
    frame = loaded.to_frame()
    assert frame["relative_to_baseline"].to_list() == [row["relative_to_baseline"] for row in document["relative"]]
    assert frame["relative_to_opt"].to_list() == [None, None]
    assert frame["set"].to_list()[1] == ["llc.size_bytes=8192"]


def test_a_program_is_compared(program, conforms, hello, tmp_path):
    path = tmp_path / "comparison.json"
    result = program("compare", "--elf", hello, "--designs", "opt,tc", "--machine", "tiny", "--json", path, "--", "a")
    assert result.returncode == 0, result.stderr
    document = json.loads(path.read_text())
    conforms("compare", document)
    assert [(run["workload"], run["provenance"]["elf_args"]) for run in document["runs"]] == [("hello", ["a"])] * 2


def test_what_is_done_when_a_comparison_is_interrupted_is_kept():
    """The second run is endless."""
    scenarios = comparison.scenarios(["opt", "tc"], ["array-swap"], machine="tiny", workload_args={"populate": 5})
    scenarios = [dataclasses.replace(scenarios[0], ops=5), dataclasses.replace(scenarios[1], ops=10**9)]
    kept = []

    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as interrupt:
        comparison.run_all(scenarios, progress=stop, interrupted=kept.extend)
    assert [result.design for result in kept] == ["opt"]
    assert interrupt.value.__notes__ == ["1 of 2 runs were done, and their results are kept"]
    document = comparison_document(comparison.judge(kept), "paper", 2)
    assert (document.runs_wanted, len(document.runs)) == (2, 1)
